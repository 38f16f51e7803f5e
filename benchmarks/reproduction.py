"""Write results/REPRODUCTION.md: the paper number by number and claim by claim, what was measured here, and a verdict.

Numbers come from the cells under results/, verdicts from the paper's bands (grcd.bench.bands). Only the reasons are
prose, benchmarks/reasons.md: each names the places that it is for, and those that nothing needs any more are listed at
the end and printed. The 200 cells of the main tables go to results/paper-against-ours.csv too.

    python benchmarks/facts.py --out results/facts.json      # what needs no training
    python benchmarks/reproduction.py
    grcd bench figures --results results
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from claims import conclusions, derivations, efficiency, others, results, setup, sheets, solvers
from claims.evidence import BY_SPREAD, GAUSSIANS, RESULTS, SETTINGS, Claim, entry, number, paper_table

from grcd.bench import suites, tables
from grcd.bench.bands import DIFFERS, OPEN, REPRODUCED, SEEDS, TIGHT, WIDE, Band
from grcd.bench.cells import Generated, earlier, measured
from grcd.bench.reasons import Reason, parsed, unexplained
from grcd.core.tables import markdown

REASONS = Path(__file__).parent / "reasons.md"
PROSE = {  # sections of the paper
    "Section 4 and appendix A.2, A.6: what was set up": setup.claims,
    "Section 5.1: overall comparison": results.overall,
    "Section 5.2: terminal references": results.mechanism,
    "Section 5.3: components": results.components,
    "Section 5.4: solvers and grids": solvers.claims,
    "Section 5.5: time": efficiency.claims,
    "Appendix A.7, A.8: the other settings, Gaussian controls": others.claims,
}


def main() -> None:
    """The page, and the table of 200 cells."""
    seven = list(conclusions.claims())
    prose = {title: list(part()) for title, part in PROSE.items()}
    places = [*(("main", setting) for setting in SETTINGS), ("ladder", "metr-la"), ("solvers", "metr-la")]
    bold = [others.bold(*place) for place in places]
    cost = [*efficiency.cost_table(), efficiency.cheapest_of_all()]
    every = list(
        {claim.key: claim for claim in [*seven, *bold, *cost, *(c for part in prose.values() for c in part)]}.values()
    )
    off = [
        *cells_that(False),
        *(f"claim/{claim.key}" for claim in every if claim.verdict not in (REPRODUCED, OPEN)),
        *shifted(),
    ]
    lines = [*head(every), "## The seven conclusions", "", *claim_table(seven), "", *agreement()]
    lines += [*main_tables(bold), *other_tables(cost), *shift_lines(), "## Claims of the prose", ""]
    for title, part in prose.items():
        lines += [f"### {title}", "", *claim_table(part), ""]
    lines += [*derivations.lines(), *why(parsed(REASONS.read_text()), off, unknown(every))]
    (RESULTS / "REPRODUCTION.md").write_text("\n".join(lines).rstrip() + "\n")
    (RESULTS / "paper-against-ours.csv").write_text(sheets.csv_lines())


# -- parts of the page -------------------------------------------------------------------------------------------------


def head(every: Sequence[Claim]) -> list[str]:
    verdicts = Counter(claim.verdict.split(",")[0].split(";")[0] for claim in every)
    words = ", ".join(
        f"{verdicts[name]} {name}" for name in (REPRODUCED, "in part", DIFFERS, OPEN) if verdicts[name]
    ).replace(DIFFERS, "differ")
    return [
        "# Reproduction",
        "",
        "Written by `benchmarks/reproduction.py` from the cells beside it (their origin: [README.md](README.md)).",
        "Bands are the paper's: 20 % of what it prints or two of the standard deviations that it prints, whichever is"
        " wider; our own spread widens none. The sd of a factor of two printed numbers is what follows from theirs, as"
        f" if they were independent; `{BY_SPREAD}`: it is in its band for that alone, not within 20 %. `(!)` marks"
        " what is out of its band, `(!!)` what is out of 30 % or two sd too. A claim in several parts is *in part*"
        " where some of them hold. Seconds are of another machine: their ratios are compared. A Gaussian control is one"
        " of the paper's four; our mixture stands beside, not instead.",
        "",
        f"Of the cells of the five main tables **{in_band(WIDE)}** are within 30 % or two of the paper's sd,"
        f" **{in_band(TIGHT)}** within 20 % or two sd. Of {len(every)} claims {words}.",
        "",
        sheets.to_reach(),
        "",
    ]


def in_band(band: Band) -> str:
    return sheets.counted(paper_table("main").values(), band)


def agreement() -> list[str]:
    """How many cells agree, by method and setting, and the figure."""
    return [
        "## The 200 cells of the main tables",
        "",
        "Within 30 % or two of the paper's sd, by method and setting:",
        "",
        sheets.counts(WIDE),
        "",
        "Within 20 % or two of the paper's sd:",
        "",
        sheets.counts(TIGHT),
        "",
        "![The paper's aMMD against ours](figures/paper.png)",
        "",
        "The same 200 points: [paper-against-ours.csv](paper-against-ours.csv); `grcd bench figures` draws them.",
        "",
    ]


def claim_table(claims: Iterable[Claim]) -> list[str]:
    lines = [[claim.says, claim.paper, claim.ours, f"**{claim.verdict}**"] for claim in claims]
    return [markdown([["claim", "paper", "here", "verdict"], *lines])]


def main_tables(bold: Sequence[Claim]) -> list[str]:
    lines = ["## The five main tables, all 50 rows", ""]
    lines += ["Ours, mean +- sd over seeds; in brackets the paper's; the ratio of ours to it.", ""]
    for setting in SETTINGS:
        lines += [f"### {setting}, {seeds_of(setting)}", "", sheets.sheet("main", setting), ""]
    return [*lines, "What is bold in the paper:", "", *claim_table(bold), ""]


def seeds_of(setting: str) -> str:
    entries = [entry for (where, _, _), entry in paper_table("main").items() if where == setting]
    seeds = sorted({seed for each in entries for seed in each.values})
    return f"seeds {', '.join(map(str, seeds))}" if seeds else OPEN


def other_tables(cost: Sequence[Claim]) -> list[str]:
    lines = ["## The other tables", ""]
    for suite, title in sheets.TABLES.items():
        lines += [f"### {title}", "", *before(suite)]
        for setting in dict.fromkeys(setting for setting, _, _ in paper_table(suite)):
            name = "" if suite != "controls" else f"{setting}{beside(setting)}:"
            lines += [*([name, ""] if name else []), sheets.sheet(suite, setting), ""]
    lines += ["Over GRCD:", "", *claim_table(map(results.gaussian, SETTINGS)), ""]
    lines += ["### Terminal references (figure 1)", "", *claim_table(results.gained()), ""]
    lines += [
        "### Cost of a target (appendix A.8.2)",
        "",
        *before("cost", " Section 5.5 and conclusion 7 rest on them, too."),
        "The first budget that reaches aMMD 0.2 / 0.1 / 0.06, in brackets its seconds over those of GRCD at NFE 4. A"
        " part holds where budget, or *never*, is the paper's.",
        "",
        *claim_table(cost),
        "",
    ]
    return lines


def before(suite: str, more: str = "") -> list[str]:
    """How many cells of a suite were measured before networks or data changed, if any."""
    count = earlier((cell for cell in suites.cells(suite) if cell.needs_network), RESULTS)
    what = f"*{count} of the cells were measured before networks or data changed, and wait to be measured again.{more}*"
    return [what, ""] if count else []


def beside(setting: str) -> str:
    """What is not in the paper's table of controls: the others of its four, our mixture, and the floor."""
    names = [
        name
        for name in (*GAUSSIANS, "control-mixture", "floor")
        if (setting, name, None) not in paper_table("controls")
    ]
    means = [f"{name.removeprefix('control-')} {number(entry('controls', setting, name, None).mean)}" for name in names]
    return f" (not printed: {', '.join(means[:-2])}; beside the paper's four: {', '.join(means[-2:])})"


def shift_lines() -> list[str]:
    return [
        "## Systematic shifts",
        "",
        "A band looks at each number by itself; these are on one side of the paper's together, by 5 % or more, and by"
        " more than chance explains at the level of 0.05 (`grcd.bench.shifts`; nothing is corrected for how many were"
        " looked at: of 50 rows one to three would be expected by chance alone).",
        "",
        "Rows, all four budgets, against the spread of seeds here and there:",
        "",
        sheets.shift_table(sheets.row_shifts()),
        "",
        f"As sure, but by less than 5 %: {sheets.small_shifts()}.",
        "",
        "Groups, against the spread over networks; p is Student's t, beside it the sign test, which with so few"
        " networks cannot come below 0.05:",
        "",
        sheets.shift_table(sheets.group_shifts()),
        "",
    ]


# -- what is off -------------------------------------------------------------------------------------------------------


def cells_that(holds: bool | None) -> list[str]:
    """Numbers of any table that are in the band of 20 % or two sd, out of it, or not measured (None)."""
    return [
        f"{suite}/{setting}/{row}/{nfe}"
        for suite in ("main", *sheets.TABLES)
        for (setting, row, nfe), each in paper_table(suite).items()
        if TIGHT.holds(each) is holds
    ]


def shifted() -> list[str]:
    """Rows that are shifted with all their numbers in the wide band."""
    return [f"shift/{setting}/{row}" for setting, row, shift, inside in sheets.row_shifts() if shift.called and inside]


def unknown(every: Sequence[Claim]) -> list[str]:
    """Places of which nothing can be said yet: a reason for them is not idle."""
    missing = cells_that(None)
    rows = dict.fromkeys(
        place.rpartition("/")[0].replace("main/", "shift/") for place in missing if place.startswith("main/")
    )
    return [*missing, *rows, *(f"claim/{claim.key}" for claim in every if OPEN in claim.verdict)]


def why(reasons: Sequence[Reason], off: Sequence[str], unknown: Sequence[str]) -> list[str]:
    """The reasons that something needs, what has none, and what has become idle, which is printed too."""
    lines = ["## What is off, why, and what was ruled out", "", "In square brackets what the paper prints.", ""]
    for reason in reasons:
        if places := reason.of(off):
            lines += [f"### {reason.title}", "", reason.filled(value), ""]
            lines += [f"*For: {shortened(places)}.*", ""]
            later = latest(places)
            if later > reason.day:
                note = f"Written about cells of {reason.day}; some of these are of {later}: to be looked at again."
                lines += [f"*{note}*", ""]
                print(f"{reason.title}: {note}")
    bare = unexplained(reasons, off)
    lines += [f"### Without a known reason ({len(bare)})", "", shortened(bare) or "None.", ""]
    idle = [f"{reason.title}: {pattern}" for reason in reasons for pattern in reason.idle([*off, *unknown])]
    for line in idle:
        print(f"idle: {line}")
    if idle:
        lines += ["### Reasons that nothing needs any more", "", *(f"- {line}" for line in idle), ""]
    return lines


def value(place: str) -> str:
    """What was measured at SUITE/SETTING/ROW/NFE, the paper's beside it."""
    suite, setting, row, nfe = place.split("/")
    each = entry(suite, setting, row, None if nfe == "None" else int(nfe))
    theirs = "" if each.paper is None else f" [{each.paper[0]:.4f}]"
    return (f"{each.mean:.4f}" if each.values else OPEN) + theirs


def shortened(places: Sequence[str]) -> str:
    """Places with the budgets of a row together, and so the claims."""
    last: dict[str, list[str]] = {}
    for place in places:
        before, _, end = place.rpartition("/")
        last.setdefault(before, []).append(end)
    return "; ".join(f"`{before}` {', '.join(ends)}" for before, ends in last.items())


def latest(places: Sequence[str]) -> str:
    """The last day of the cells of some places; of claims and shifts none is known."""
    days = [""]
    for place in places:
        suite, *rest = place.split("/")
        if suite in ("main", *sheets.TABLES):
            setting, row, nfe = rest
            for cell in suites.cells(suite, [setting], SEEDS):
                same = isinstance(cell, Generated) and cell.nfe == int(nfe) and tables.row_name(suite, cell) == row
                content = measured(cell, RESULTS) if same else None
                days.append(content["date"] if content else "")
    return max(days)


if __name__ == "__main__":
    main()
