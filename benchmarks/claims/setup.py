"""Section 4 and appendix A.2, A.6: data, graphs, training, noise, samplers, evaluation; and the limits it names."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np

from grcd.bench.suites import NEAR_ZERO, RHOS
from grcd.data.catalog import sbm
from grcd.graphs.graph import Spectrum

from . import efficiency, hyperparameters
from .evidence import (
    BUDGETS,
    GRCD,
    SETTINGS,
    Claim,
    contents,
    diagnostic,
    entry,
    every_entry,
    facts,
    less,
    listed,
    main,
    mean,
    near,
    number,
    printed,
    rounds_to,
    trainings,
    yes,
)

SIZES = {"metr-la": (207, 20_000, 3_000, 5_000), "molene": (37, 520, 74, 150)}
SIZES |= {f"sbm-c{c}": (32, 4_000, 1_000, 5_000) for c in (1, 4, 16)}
NATIVE = 785_000  # updates


def claims() -> Iterator[Claim]:
    yield from data()
    yield from graphs()
    yield from noise()
    yield from training()
    yield from hyperparameters.claims()
    yield from sampling()
    yield limits()


def data() -> Iterator[Claim]:
    for setting, expected in SIZES.items():
        of = facts()["settings"][setting]
        own = (of["nodes"], *of["signals"])
        yield Claim(
            f"A.6-sizes-{setting}",
            f"4, A.6.1: {setting}: nodes, and signals to train, validate and test on",
            listed_whole(expected),
            listed_whole(own),
            [tuple(own) == expected],
        )
    own = facts()["metr-la before caps"]
    yield Claim(
        "A.6-before-caps",
        "A.6.1: METR-LA's splits before they are capped",
        listed_whole((23_990, 3_427, 6_855)),
        listed_whole(own),
        [own == [23_990, 3_427, 6_855]],
    )
    ranges = {s: facts()["settings"][s]["variance_largest_over_least"] for s in SETTINGS}
    yield Claim(
        "1-variation",
        "1: the variance of graph-Fourier coefficients varies a lot over frequencies (largest over least; tenfold)",
        "large",
        ", ".join(f"{setting} {value:.0f}" for setting, value in ranges.items()),
        [value > 10 for value in ranges.values()],
    )
    sizes = {s: {content["scores"]["n"] for content in contents(s, GRCD, 4)} for s in SETTINGS}
    yield Claim(
        "A.6-evaluated",
        "A.6.6: a cell compares 5,000 generated with 5,000 test signals, 150 with 150 on Molene",
        "5,000; 150",
        ", ".join(f"{s} {listed_whole(sorted(n))}" for s, n in sizes.items()),
        [n == {150 if s == "molene" else 5_000} if n else None for s, n in sizes.items()],
    )


def graphs() -> Iterator[Claim]:
    of = facts()["settings"]["metr-la"]
    own = (of["pairs"], of["one_way"], f"{of['one_way_share']:.1%}")
    yield Claim(
        "A.6-edges",
        "A.6.1: METR-LA: edges, those in one direction only, their share of the weight",
        "1,313 / 1,111 / 75.0%",
        f"{own[0]:,} / {own[1]:,} / {own[2]}",
        [own == (1_313, 1_111, "75.0%")],
    )
    energy = of["off_diagonal_energy"]
    yield Claim(
        "A.2-off-diagonal",
        "A.2: METR-LA: share of the covariance that the reference discards",
        "0.6677",
        f"{energy:.4f}",
        [rounds_to(energy, 0.6677, 4)],
    )
    rows = ("grcd-rho1", "conjugate-precond")
    before = [main("metr-la", row, 16).mean for row in rows]
    after = [entry("symmetrizer", "metr-la", f"{row}, max", 16) for row in rows]
    yield Claim(
        "A.6-symmetrizer",
        "A.6.1: with the larger of two directed weights in place of their mean the exponential arm stays below the"
        " conjugate control (NFE 16: the two, before and after)",
        "0.0499, 0.1385; 0.0536, 0.1295",
        f"{number(before[0])}, {number(before[1])}; {number(after[0].mean)}, {number(after[1].mean)}",
        [less(*before), less(*(each.mean for each in after))],
    )
    yield blocks()
    connected = [facts()["settings"][f"sbm-c{c}"]["components"] == 1 for c in (1, 4, 16)]
    yield Claim(
        "A.6-connected", "A.6.1: the stochastic block model is connected", "yes", yes(all(connected)), connected
    )


def blocks() -> Claim:
    """The stochastic block model's recipe, and what it says of the second mode."""
    graph = sbm.sbm_graph()
    signs = np.sign(Spectrum.of(graph.combinatorial.toarray()).U[:, 1])
    apart = bool((signs == signs[0] * np.where(np.arange(sbm.NODES) < sbm.NODES // 2, 1, -1)).all())
    own = (sbm.NODES, sbm.P_IN, sbm.P_OUT, sbm.DELTA, sbm.SHIFT)
    return Claim(
        "A.6-blocks",
        "A.6.1: SBM: nodes, p_in, p_out, delta, shift of the second mode; that mode separates the two blocks",
        "32 / 0.4 / 0.04 / 0.05 / 3; yes",
        f"{' / '.join(f'{value:g}' for value in own)}; {yes(apart)}",
        [own == (32, 0.4, 0.04, 0.05, 3.0), apart],
    )


def noise() -> Iterator[Claim]:
    snr = {setting: facts()["settings"][setting]["snr"] for setting in SETTINGS}
    kappa = facts()["settings"]["metr-la"]["kappa_of_snr_0.010"]
    yield Claim(
        "A.6-kappa",
        "A.6.3: METR-LA: the kappa with terminal SNR 0.010",
        "32.6356",
        f"{kappa:.4f}",
        [rounds_to(kappa, 32.6356, 4)],
    )
    others = [of["near zero"] for setting, of in snr.items() if setting != "metr-la"]
    yield Claim(
        "A.6-snr-range",
        f"A.6.3: terminal SNR at kappa {NEAR_ZERO['molene']} on the other settings, least and largest (in the band)",
        "0.003 to 0.027",
        f"{min(others):.4f} to {max(others):.4f}",
        [near(min(others), 0.003), near(max(others), 0.027)],
    )
    orders = [math.log10(of["kappa 2"] / of["near zero"]) for of in snr.values()]
    yield Claim(
        "A.6-snr-orders",
        "A.6.3: that is two to three orders of magnitude below the finite one, on all five settings",
        "2 to 3",
        f"{min(orders):.2f} to {max(orders):.2f}",
        [2 <= order <= 3 for order in orders],
    )


def training() -> Iterator[Claim]:
    counts = {name: count for name, count in facts()["parameters"].items() if name != "gad-native"}
    yield Claim(
        "A.6-parameters",
        "4, A.6.7: trainable parameters, the same for every arm",
        "61,185",
        listed_whole(sorted(set(counts.values()))),
        [set(counts.values()) == {61_185}],
    )
    most = {setting: max(of.values()) for setting, of in trainings().items()}
    yield Claim(
        "A.6-updates",
        "A.6.4: no arm of the matched protocol needs more than 25,000 updates (the most, by setting)",
        "25,000 at most",
        ", ".join(f"{setting} {count:,}" for setting, count in most.items()),
        [most[setting] <= 25_000 if setting in most else None for setting in SETTINGS],
    )
    yield Claim(
        "A.6-cap",
        "A.6.2: no arm reaches the cap of 40,000 updates",
        "none",
        f"{max(most.values()):,} at most" if most else "-",
        [most[setting] < 40_000 if setting in most else None for setting in SETTINGS],
    )
    size, updates = (
        facts()["parameters"]["gad-native"],
        [c["training"]["updates"] for c in contents("metr-la", "gad-native", 5000)],
    )
    yield Claim(
        "A.6-native-size",
        "A.6.4: GAD's own configuration: parameters and updates",
        f"3,985; {NATIVE:,}",
        f"{size:,}; {listed_whole(sorted(set(updates)))}",
        [size == 3_985, set(updates) == {NATIVE} if updates else None],
    )
    own = entry("gad-native", "metr-la", "gad-native", 5000)
    matched = {nfe: entry("gad-native", "metr-la", "gad", nfe) for nfe in (1000, 3000)}
    yield Claim(
        "A.6-native-no-better",
        "A.6.4: so trained, GAD is no better than in the matched protocol (aMMD at 5,000 steps; matched at 1,000 and"
        " 3,000; above both)",
        f"{printed(own):.2f}; {listed(map(printed, matched.values()), 2)}",
        f"{number(own.mean, 2)}; {listed((each.mean for each in matched.values()), 2)}",
        [less(each.mean, own.mean) for each in matched.values()],
    )
    far = less(10 * main("metr-la", GRCD, 4).mean, own.mean)
    yield Claim("A.6-native-far", "A.6.4: and nowhere near GRCD (ten times its aMMD)", "yes", yes(far), [far])
    yield efficiency.native()


def sampling() -> Iterator[Claim]:
    by_seed = {rho: validated(rho) for rho in RHOS}
    means = {rho: mean(values.values()) for rho, values in by_seed.items()}
    known = not any(map(math.isnan, means.values()))
    best = min(means, key=means.__getitem__)
    level = [f"{rho:g}" for rho in RHOS if rho != best and _level(by_seed[best], by_seed[rho])]
    yield Claim(
        "3.4-rho",
        "3.4, A.6.5: rho chosen by mean validation aMMD over budgets on METR-LA",
        "3",
        (f"{best:g}" if known else "-")
        + (f", level with {', '.join(level)}" if level else "")
        + " ("
        + ", ".join(f"rho {r:g}: {number(m)}" for r, m in means.items())
        + ")",
        [best == 3 if known else None],
    )
    yield from efficiency.spent()


def validated(rho: float) -> dict[int, float]:
    """Validation aMMD by seed, the mean over budgets; of seeds that have all."""
    entries = [every_entry("grid").get(("metr-la", f"rho{rho:g}, validation", nfe)) for nfe in (4, 6, 8, 12, 16)]
    if not all(entries):
        return {}
    seeds = set.intersection(*({*each.values} for each in entries))
    return {seed: mean(each.values[seed] for each in entries) for seed in sorted(seeds)}


def _level(one: dict[int, float], other: dict[int, float]) -> bool:
    """Whether two differ by less than the standard error of their difference over seeds."""
    apart = [other[seed] - one[seed] for seed in one.keys() & other.keys()]
    return len(apart) > 1 and abs(mean(apart)) < statistics.stdev(apart) / math.sqrt(len(apart))


def limits() -> Claim:
    shares = {nfe: mean(diagnostic("outside", "metr-la", GRCD, nfe)) for nfe in BUDGETS}
    return Claim(
        "6-invalid",
        "6: GRCD permits invalid values of bounded signals (share out of 0 to 120 mph at NFE 4, 8, 16, 64)",
        "some",
        listed(shares.values()),
        [less(0.0, share) for share in shares.values()],
    )


def listed_whole(numbers) -> str:
    return " / ".join(f"{n:,}" for n in numbers) or "-"
