"""Every number of the paper's tables beside ours, how many agree, and which are shifted together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from grcd.bench import shifts, suites
from grcd.bench.bands import OPEN, TIGHT, WIDE, Band
from grcd.bench.measured import Entry
from grcd.bench.shifts import Shift
from grcd.core.tables import comma_separated, markdown
from grcd.training.methods import METHODS

from .evidence import BUDGETS, COMPARATORS, CONTROLS, EPSILON, GRCD, SETTINGS, paper_table

ROWS = (*COMPARATORS, EPSILON, "grcd-rho1", GRCD)
FAMILIES = {"EDM and controls": ("edm", *CONTROLS), "GRCD": (EPSILON, "grcd-rho1", GRCD), "WSD": ROWS[2:4]}
TABLES = {  # the paper's other tables of aMMD
    "ladder": "Ablation ladder (section 5.3)",
    "solvers": "Solvers (section 5.4)",
    "grid": "Time grids (appendix A.6.5)",
    "gad-native": "GAD at its authors' budgets (section 5.1, appendix A.6.4)",
    "symmetrizer": "The other symmetrizer (appendix A.6.1)",
    "controls": "Gaussian controls (appendix A.8.1)",
}
COLUMNS = ("setting", "method", "nfe", "paper", "paper_sd", "ours", "sd", "seeds", "ratio", "within_20", "within_30")


# -- numbers -----------------------------------------------------------------------------------------------------------


def cell(entry: Entry, most: int) -> str:
    """Ours, the paper's in brackets, the ratio; what is out of either band is marked."""
    mean, sd = entry.paper or (math.nan, None)
    theirs = f"({mean:.4f}" + (f" +- {sd:.4f})" if sd is not None else ")")
    if not entry.values:
        return f"{'failed' if entry.failed else OPEN} {theirs}"
    spread = "" if math.isnan(entry.sd) else f" +- {entry.sd:.4f}"
    seeds = f", {len(entry.values)} of {most} seeds" if len(entry.values) < most else ""
    mark = "" if TIGHT.holds(entry) else " (!)" if WIDE.holds(entry) else " (!!)"
    return f"{entry.mean:.4f}{spread} {theirs} {entry.mean / mean:.2f}{mark}{seeds}"


def sheet(suite: str, setting: str) -> str:
    """A table of one setting: a line a row, a column a budget; numbers of fewer seeds than the suite has say so."""
    of = {(row, nfe): entry for (where, row, nfe), entry in paper_table(suite).items() if where == setting}
    budgets, most = list(dict.fromkeys(nfe for _, nfe in of)), seeds(suite, setting)
    head = ["", *("aMMD" if nfe is None else f"NFE {nfe:,}" for nfe in budgets)]
    rows = dict.fromkeys(row for row, _ in of)
    return markdown(
        [head, *([row, *(cell(of[row, n], most) if (row, n) in of else "" for n in budgets)] for row in rows)]
    )


def seeds(suite: str, setting: str) -> int:
    """How many a number is the mean of once all are measured; of controls draws."""
    return suites.DRAWS if suite == "controls" else len(suites.seeds_of(suite, setting))


def csv_lines() -> str:
    """The 200 cells of the main tables as comma-separated values."""
    lines: list[Sequence[object]] = [COLUMNS]
    for (setting, row, nfe), entry in paper_table("main").items():
        mean, sd = entry.paper
        own = [f"{x:.6f}" if not math.isnan(x) else "" for x in (entry.mean, entry.sd)]
        ratio = f"{entry.mean / mean:.4f}" if entry.values else ""
        held = ["" if (holds := band.holds(entry)) is None else int(holds) for band in (TIGHT, WIDE)]
        lines.append([setting, row, nfe, mean, sd, *own, len(entry.values), ratio, *held])
    return comma_separated(lines)


# -- counts ------------------------------------------------------------------------------------------------------------


def counted(entries: Iterable[Entry], band: Band) -> str:
    """How many of some numbers are in a band; what was not measured is said, and not in it."""
    held = [band.holds(entry) for entry in entries]
    missing = sum(each is None for each in held)
    return f"{sum(each is True for each in held)} of {len(held)}" + (f", {missing} {OPEN}" if missing else "")


def counts(band: Band) -> str:
    """By method and by setting."""
    table = paper_table("main")
    lines = [["", *SETTINGS, "all"]]
    for row in ROWS:
        of = [[entry for (s, name, _), entry in table.items() if (s, name) == (setting, row)] for setting in SETTINGS]
        lines.append([row, *(counted(each, band) for each in of), counted([e for each in of for e in each], band)])
    columns = [[entry for (s, _, _), entry in table.items() if s == setting] for setting in SETTINGS]
    lines.append(["**all**", *(counted(each, band) for each in columns), f"**{counted(table.values(), band)}**"])
    return markdown(lines)


def to_reach() -> str:
    """What was set out to be reached, and where it stands."""
    table = paper_table("main")
    main = [WIDE.holds(entry) for entry in table.values()]
    rows = [(s, row) for s in SETTINGS[1:] for row in (GRCD, "grcd-rho1", EPSILON, "edm")]
    whole = [all(WIDE.holds(table[s, row, nfe]) for nfe in BUDGETS) for s, row in rows]
    wsd = [table[s, row, nfe] for s in SETTINGS[2:] for row in ROWS[2:4] for nfe in BUDGETS]
    near = [bool(entry.values) and abs(shifts.log_ratio(entry)) <= math.log(1.5) for entry in wsd]
    metr_la = [WIDE.holds(entry) for (s, _, _), entry in table.items() if s == "metr-la"]
    native = paper_table("gad-native")["metr-la", "gad-native", 5000]
    reached = [
        ["cells within 30 % or two of the paper's sd", "180 of 200", f"{sum(each is True for each in main)} of 200"],
        ["those of METR-LA", "36 of 40", f"{sum(each is True for each in metr_la)} of 40"],
        ["rows of GRCD and EDM on Molene and the SBMs, whole", f"{len(rows)}", f"{sum(whole)}"],
        ["WSD's cells on the SBMs within a factor of 1.5", f"{len(wsd)}", f"{sum(near)}"],
        ["gad-native, within two of the paper's sd", "2.10 +- 0.15", _reached(native)],
    ]
    return markdown([["", "to reach", "here"], *reached])


def _reached(entry: Entry) -> str:
    held = Band(0.0).holds(entry)
    spread = f"+- {entry.sd:.2f}" if len(entry.values) > 1 else "of one seed"
    return OPEN if held is None else f"{entry.mean:.2f} {spread}, {'yes' if held else 'no'}"


# -- shifts ------------------------------------------------------------------------------------------------------------


def row_shifts() -> Iterator[tuple[str, str, Shift, bool]]:
    """By setting and method, over budgets; and whether all its cells are in the wide band."""
    for setting in SETTINGS:
        for row in ROWS:
            entries = [paper_table("main")[setting, row, nfe] for nfe in BUDGETS]
            if shift := shifts.of_row(entries):
                yield setting, row, shift, all(WIDE.holds(entry) is True for entry in entries)


def small_shifts() -> str:
    """Rows on one side of the paper's by more than chance explains, but by little."""
    small = [
        f"{setting} {row} {shift.ratio:.3f}"
        for setting, row, shift, _ in row_shifts()
        if shift.one_side and shift.p < shifts.LEVEL and not shift.called
    ]
    return ", ".join(small) or "none"


def group_shifts() -> Iterator[tuple[str, str, Shift, bool]]:
    """By setting, family of methods and budget, over networks; and by method, over settings and over the SBMs."""
    table = paper_table("main")
    for setting in SETTINGS:
        for family, rows in FAMILIES.items():
            for nfe in BUDGETS:
                networks: dict[tuple, list[Entry]] = {}
                for row in rows:
                    networks.setdefault(METHODS[row].network, []).append(table[setting, row, nfe])
                if shift := shifts.of_group(list(networks.values())):
                    inside = all(WIDE.holds(entry) is True for each in networks.values() for entry in each)
                    yield setting, f"{family}, NFE {nfe}", shift, inside
    for where, settings in (("all settings", SETTINGS), ("the SBMs", SETTINGS[2:])):
        for row in ROWS:
            of = [[table[setting, row, nfe] for nfe in BUDGETS] for setting in settings]
            if shift := shifts.of_group(of):
                yield where, row, shift, all(WIDE.holds(entry) is True for each in of for entry in each)


def shift_table(found: Iterable[tuple[str, str, Shift, bool]]) -> str:
    """Those that are called shifts, as a table."""
    lines = [["", "", "ours over paper's, mean", "range", "p", "sign test", "all in the 30 % band"]]
    for setting, name, shift, inside in found:
        if shift.called:
            span = f"{shift.least:.2f} to {shift.most:.2f}"
            lines.append(
                [
                    setting,
                    name,
                    f"{shift.ratio:.2f}",
                    span,
                    f"{shift.p:.3f}",
                    f"{shift.sign:.2f}",
                    "yes" if inside else "no",
                ]
            )
    return markdown(lines) if len(lines) > 1 else "None."
