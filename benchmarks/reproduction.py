"""Write results/REPRODUCTION.md: the paper claim by claim, what was measured here, and a verdict.

Numbers come from the cells under results/, verdicts from the bands stated beside them. Only the reasons are prose.

    python benchmarks/reproduction.py
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grcd.bench import suites, tables
from grcd.bench.cells import Generated, read
from grcd.bench.measured import Entry, costs, levels, ratios
from grcd.bench.tables.cost import cheapest
from grcd.core.errors import InputError

RESULTS = Path(__file__).parent.parent / "results"
SEEDS, BUDGETS = (0, 1, 2), (4, 8, 16, 64)
SBMS = ("sbm-c1", "sbm-c4", "sbm-c16")
COMPARATORS = ("edm", "gad", "wsd-scalar", "wsd-graph", "isotropic-ve", "static-precond", "conjugate-precond")
CONTROLS = ("isotropic-ve", "static-precond", "conjugate-precond")
REPRODUCED, DIFFERS, OPEN = "reproduced", "differs", "not measured yet"


@dataclass
class Claim:
    """A line of the page."""

    says: str
    paper: str
    ours: str
    verdict: str

    def line(self) -> str:
        return f"| {self.says} | {self.paper} | {self.ours} | **{self.verdict}** |"


def table(suite: str, results: Path = RESULTS) -> dict[tables.Key, Entry]:
    return tables.collected(suite, suites.cells(suite), results)


def cell(setting: str, method: str, nfe: int, seed: int, **choices) -> dict:
    return read(Generated(setting, method, seed, nfe, **choices), RESULTS) or {}


def over_seeds(key: str, *place, **choices) -> list[float]:
    """A diagnostic of a cell, for every seed that has it."""
    values = [cell(*place, seed, **choices).get(key) for seed in SEEDS]
    return [float(np.mean(value)) for value in values if value is not None]


def verdict(holds: bool | None) -> str:
    return OPEN if holds is None else REPRODUCED if holds else DIFFERS


def spread(values: Iterable[float], digits: int = 3) -> str:
    values = list(values)
    return " / ".join(f"{value:.{digits}f}" for value in values) if values else "-"


# -- bands -------------------------------------------------------------------------------------------------------------


def within(entry: Entry, share: float, sds: float = 0.0) -> bool:
    """Whether the mean is within a share of the paper's, or so many of the paper's sd, whichever is wider."""
    mean, sd = entry.paper
    return abs(entry.mean - mean) <= max(share * mean, sds * (sd or 0.0))


def band(suite: str, setting: str, rows: Iterable[str], budgets: Iterable[int], share: float, sds: float, says: str):
    """One claim a row: all its budgets within the band."""
    measured = table(suite)
    for row in rows:
        entries = {nfe: measured.get((setting, row, nfe), Entry()) for nfe in budgets}
        entries = {nfe: entry for nfe, entry in entries.items() if entry.values and entry.paper}
        paper = " / ".join(f"{entry.paper[0]:.4f}" for entry in entries.values())
        ours = " / ".join(
            f"{entry.mean:.4f}{'' if within(entry, share, sds) else ' (!)'}" for entry in entries.values()
        )
        holds = all(within(entry, share, sds) for entry in entries.values()) if entries else None
        at = ", ".join(str(nfe) for nfe in entries)
        yield Claim(f"{says.format(row=row, setting=setting)}, NFE {at}", paper, ours, verdict(holds))


# -- the claims --------------------------------------------------------------------------------------------------------


def metr_la():
    for row, budgets in (("grcd-rho3", BUDGETS), ("grcd-epsilon-heun", BUDGETS)):
        yield from band("main", "metr-la", [row], budgets, 0.2, 0.0, "{row} (20 %)")
    yield from band("main", "metr-la", ["grcd-rho1"], (8, 16, 64), 0.2, 0.0, "{row} (20 % from NFE 8; below see grid)")
    yield from band("main", "metr-la", ["edm", *CONTROLS], BUDGETS, 0.3, 0.0, "{row} (30 %)")
    yield from band("main", "metr-la", ["gad", "wsd-scalar", "wsd-graph"], BUDGETS, 0.3, 0.0, "{row} (30 %)")
    yield from side()
    yield from ladder()
    rows = dict.fromkeys(row for _, row, nfe in table("solvers") if nfe and row != "exponential-ours-rho3")
    yield from band("solvers", "metr-la", rows, (4, 8, 16, 32), 0.2, 2.0, "solver {row} (20 % or two sd)")
    rows = [f"rho{rho:g}" for rho in suites.RHOS]
    yield from band("grid", "metr-la", rows, (4, 6, 8, 12, 16), 0.2, 2.0, "grid {row} (20 % or two sd)")


def side():
    """WSD and GAD on the same side of GRCD as in the paper, at every budget."""
    measured = table("main")
    for row in ("gad", "wsd-scalar", "wsd-graph"):
        pairs = [(measured["metr-la", row, nfe], measured["metr-la", "grcd-rho3", nfe]) for nfe in BUDGETS]
        holds = all((a.mean > b.mean) == (a.paper[0] > b.paper[0]) for a, b in pairs)
        yield Claim(f"{row} is worse than GRCD at every budget", "yes", "yes" if holds else "no", verdict(holds))


def ladder():
    measured = table("ladder")
    before, after = (measured["metr-la", row, 16] for row in suites.LADDER[:2])
    factor = before.mean / after.mean
    yield Claim(
        "the fitted terminal reference improves aMMD at NFE 16 by a factor (5.5 to 9)",
        f"{before.paper[0] / after.paper[0]:.2f}",
        f"{factor:.2f}",
        verdict(5.5 <= factor <= 9),
    )
    yield from band("ladder", "metr-la", suites.LADDER, (8, 12, 16, 64), 0.2, 2.0, "ladder {row} (20 % or two sd)")
    ours = measured["metr-la", "clock+reference", 16].mean / measured["metr-la", "clock+reference", 64].mean
    yield Claim(
        "Heun has converged at NFE 16 (aMMD there over that at NFE 64)", "1.03", f"{ours:.2f}", verdict(ours < 1.05)
    )


def other_settings():
    measured = table("main")
    for setting in ("metr-la", *SBMS):
        ours, paper = (_margin(measured, setting, of) for of in (lambda e: e.mean, lambda e: e.paper[0]))
        yield Claim(
            f"{setting}: GRCD rho 3 is best at NFE 4, by a factor over the best comparator (at least 15)",
            f"{paper[1]:.0f} ({paper[0]})",
            f"{ours[1]:.1f} ({ours[0]})",
            verdict(ours[1] >= 15),
        )
    rows = ("grcd-rho3", "grcd-rho1", "grcd-epsilon-heun", "edm")
    for setting in ("molene", *SBMS):
        yield from band("main", setting, rows, BUDGETS, 0.3, 2.0, "{setting}: {row} (30 % or two sd)")
    for setting in SBMS:
        grcd = measured[setting, "grcd-rho3", 64]
        below = [row for row in ("edm", *CONTROLS) if measured[setting, row, 64].mean < grcd.mean]
        paper = [row for row in ("edm", *CONTROLS) if measured[setting, row, 64].paper[0] < grcd.paper[0]]
        yield Claim(
            f"{setting}: at NFE 64 GRCD rho 3 is overtaken by",
            ", ".join(paper) or "none",
            ", ".join(below) or "none",
            verdict(set(paper) == set(below)),
        )


def _margin(measured, setting: str, of) -> tuple[str, float]:
    grcd = of(measured[setting, "grcd-rho3", 4])
    values = {row: of(measured[setting, row, 4]) for row in COMPARATORS}
    best = min(values, key=values.get)
    return best, values[best] / grcd


def terminal_snr():
    snr = json.loads((RESULTS / "terminal-snr.json").read_text())["snr"]
    ours = snr["metr-la"]["kappa 2"]
    yield Claim("METR-LA: terminal SNR at kappa 2", "2.663", f"{ours:.3f}", verdict(round(ours, 3) == 2.663))
    near = sorted(of["near zero"] for of in snr.values())
    yield Claim(
        "terminal SNR near zero, least and largest of five settings",
        "0.003 to 0.027",
        f"{near[0]:.4f} to {near[-1]:.4f}",
        verdict(round(near[0], 3) == 0.003 and abs(near[-1] - 0.027) < 0.001),
    )
    for near_zero, says, paper, low, high in (
        (False, "scalar over fitted reference at kappa 2 (2 to 9)", "2.7 to 7.3", 2.0, 9.0),
        (True, "scalar over fitted reference near zero SNR (at most 1.03)", "1.00 to 1.01", 0.0, 1.03),
    ):
        means = {s: np.mean(list(ratios(s, SEEDS, RESULTS)[near_zero].values())) for s in suites.SETTINGS}
        ours = ", ".join(f"{setting} {mean:.2f}" for setting, mean in means.items())
        yield Claim(says, paper, ours, verdict(all(low <= mean <= high for mean in means.values())))
    kappa = suites.NEAR_ZERO["metr-la"]
    for method, at, says, paper in (
        ("clock", None, "scalar, kappa 2", 0.795),
        ("clock+reference", None, "fitted, kappa 2", 0.913),
        ("clock", kappa, "scalar, near zero", 0.916),
        ("clock+reference", kappa, "fitted, near zero", 0.918),
    ):
        values = over_seeds("node_std", "metr-la", method, 16, kappa=at)
        holds = abs(np.mean(values) - paper) <= 0.02 if values else None
        yield Claim(f"METR-LA: mean per-sensor std, {says} (within 0.02)", f"{paper}", spread(values), verdict(holds))


def in_passing():
    measured = table("grid")
    means = {
        rho: np.mean([measured["metr-la", f"rho{rho:g}, validation", nfe].mean for nfe in (4, 6, 8, 12, 16)])
        for rho in suites.RHOS
    }
    best = min(means, key=means.get)
    ours = f"{best:g} (" + ", ".join(f"rho {rho:g}: {mean:.4f}" for rho, mean in means.items()) + ")"
    yield Claim("rho chosen by mean validation aMMD over budgets", "3", ours, verdict(best == 3))
    yield updates()
    for nfe, paper, low, high in ((4, "166", 160, 172), (64, "15", 14, 16)):
        values = over_seeds("dispersion", "metr-la", "gad", nfe)
        holds = low <= np.mean(values) <= high if values else None
        yield Claim(f"GAD's median dispersion ratio at NFE {nfe}", paper, spread(values, 1), verdict(holds))
    values = over_seeds("outside", "metr-la", "gad", 4)
    holds = abs(np.mean(values) - 0.965) < 0.005 if values else None
    yield Claim("GAD's readings outside 0 to 120 mph at NFE 4", "0.965", spread(values), verdict(holds))
    yield from band("gad-native", "metr-la", ["gad"], (1000, 3000), 0.0, 2.0, "{row} at its own budgets (two sd)")
    yield from band("gad-native", "metr-la", ["gad-native"], (5000,), 0.0, 2.0, "{row} (two sd)")
    rows = ["grcd-rho1, max", "conjugate-precond, max"]
    yield from band("symmetrizer", "metr-la", rows, (16,), 0.2, 0.0, "symmetrizer {row} (20 %)")
    yield from molene()


def updates() -> Claim:
    most = {}
    for path in sorted((RESULTS / "cells").rglob("*.json")):
        content = json.loads(path.read_text())
        if "training" in content and content["cell"]["method"] != "gad-native":
            setting = content["cell"]["setting"]
            most[setting] = max(most.get(setting, 0), content["training"]["updates"])
    ours = ", ".join(f"{setting} {count:,}" for setting, count in most.items())
    return Claim(
        "most updates that any arm uses (at most 25,000)", "25,000", ours, verdict(max(most.values()) <= 25_000)
    )


def molene():
    values = over_seeds("dispersion", "molene", "edm", 4)
    yield Claim(
        "Molene: EDM's dispersion contracts from 45 (NFE 4; 30 %)",
        "45",
        spread(values, 1),
        verdict(abs(np.mean(values) - 45) <= 13.5 if values else None),
    )
    entry = table("main")["molene", "edm", 32]
    yield Claim(
        "Molene: EDM at NFE 32 (0.176 within two of our sd)",
        "0.176",
        f"{entry.mean:.3f} +- {entry.sd:.3f}",
        verdict(abs(entry.mean - 0.176) <= 2 * entry.sd),
    )


def controls():
    for (setting, row, _), entry in table("controls").items():
        if entry.paper and entry.values:
            mean, sd = entry.paper
            apart = abs(entry.mean - mean) / math.hypot(entry.sd, sd or 0.0)
            ours = f"{entry.mean:.4f} +- {entry.sd:.4f} ({apart:.1f} sd)"
            yield Claim(f"{setting}: {row} (three sd of the difference)", f"{mean:.4f}", ours, verdict(apart <= 3))
    for setting in suites.SETTINGS:
        best, floor = levels(setting, RESULTS).items()
        grcd = table("main")[setting, "grcd-rho3", 4].mean
        ours = f"{best[0]} {best[1]:.4f}, floor {floor[1]:.4f}, GRCD {grcd:.4f}"
        yield Claim(f"{setting}: no control is better than GRCD rho 3 at NFE 4", "yes", ours, verdict(best[1] > grcd))


def cost_claims():
    try:
        by_method = costs("metr-la", SEEDS, RESULTS)
    except InputError:  # not measured
        by_method = {}
    ours = cheapest(by_method.get("grcd-rho3", []), 0.1)
    others = [reached for row in COMPARATORS if (reached := cheapest(by_method.get(row, []), 0.1))]
    if ours is None or not others:
        yield Claim("less time than any comparator to aMMD 0.1 (80 %)", "87 %", "-", OPEN)
        return
    least = min(others, key=lambda reached: reached.seconds)
    saved = 1 - ours.seconds / least.seconds
    words = (
        f"{saved:.0%} ({1e3 * ours.seconds:.1f} ms at NFE {ours.nfe}, {1e3 * least.seconds:.1f} ms at NFE {least.nfe})"
    )
    yield Claim("less time than any comparator to aMMD 0.1 (80 %)", "87 %", words, verdict(saved >= 0.8))
    native = over_seeds("seconds_per_1000", "metr-la", "gad-native", 5000)
    times = min(native) / ours.seconds if native else math.nan
    words = f"{times:.0f} ({min(native):.2f} s, {ours.seconds:.4f} s)" if native else "-"
    holds = abs(times / (261 / 0.52) - 1) <= 0.3 if native else None
    yield Claim(
        "GAD at its native budget takes so many times GRCD's seconds (30 %; not timed in one run)",
        "502",
        words,
        verdict(holds),
    )


def lengths() -> list[str]:
    """The same rows after the paper's stopping rule and after 25,000 updates: which lengths explain the paper."""
    short, long = table("main"), table("main", RESULTS / "converged")
    lines = ["| | NFE | the paper's rule | paper | 25,000 updates |", "| --- | --- | --- | --- | --- |"]
    for setting, row, nfe in (
        ("metr-la", "grcd-rho1", 4),
        ("metr-la", "grcd-rho3", 4),
        ("metr-la", "grcd-rho3", 16),
        ("metr-la", "grcd-epsilon-heun", 64),
        ("sbm-c1", "grcd-rho3", 4),
        ("sbm-c16", "grcd-rho3", 16),
        ("sbm-c16", "grcd-rho1", 16),
        ("sbm-c16", "edm", 64),
        ("sbm-c16", "isotropic-ve", 64),
    ):
        first, last = short[setting, row, nfe], long.get((setting, row, nfe), Entry())
        after = f"{last.mean:.4f} +- {last.sd:.4f}" if last.values else "-"
        paper = f"{first.paper[0]:.4f} +- {first.paper[1]:.4f}"
        lines.append(f"| {setting}, {row} | {nfe} | {first.mean:.4f} +- {first.sd:.4f} | {paper} | {after} |")
    return lines


PARTS = {
    "METR-LA": metr_la,
    "Molene and the stochastic block models": other_settings,
    "Terminal signal-to-noise ratio": terminal_snr,
    "Said in passing": in_passing,
    "Without a network": controls,
    "Cost": cost_claims,
}


def main() -> None:
    """The page: a count of verdicts, the tables, and the reasons."""
    claims = {title: list(part()) for title, part in PARTS.items()}
    every = [claim for part in claims.values() for claim in part]
    count = {name: sum(claim.verdict == name for claim in every) for name in (REPRODUCED, DIFFERS, OPEN)}
    lines = [
        "# Reproduction",
        "",
        "Written by `benchmarks/reproduction.py` from the cells beside it. The band of a claim is in brackets; in a"
        " differing line `(!)` marks the numbers outside it. Means over seeds 0, 1, 2.",
        "",
        f"{len(every)} claims: "
        + ", ".join(f"{number} {name.replace(DIFFERS, 'differ')}" for name, number in count.items())
        + ".",
    ]
    for title, part in claims.items():
        lines += ["", f"## {title}", "", "| claim (band) | paper | here | verdict |", "| --- | --- | --- | --- |"]
        lines += [claim.line() for claim in part]
    lines += ["", "## How long to train", "", *lengths()]
    reasons = (Path(__file__).parent / "reasons.md").read_text()
    (RESULTS / "REPRODUCTION.md").write_text("\n".join(lines) + "\n\n" + reasons)


if __name__ == "__main__":
    main()
