"""Tables of aMMD: mean and sample standard deviation over seeds, the paper's value beside ours, floor and controls.

The best method of a column is bold, unless it is no further from the test signals than training signals are: below the
floor, or so near that chance decides (``LEAST``), one is not better than another, so that all rows there are marked
with ``=``, and none is bold. A method whose ratio to the best, paired by seed, is within the 95 % interval of Student's
t in logarithms is marked with ``~``: with these seeds the two cannot be told apart. Of fewer than five seeds nothing of
the kind is claimed.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np

from ...core.errors import InputError
from ...core.tables import comma_separated, escaped, joined, latex, markdown, refuse_unknown, titled
from ..cells import Cell, Generated
from ..measured import LEAST, Entry, ammd_frame, apart, by_place, ratios, values

Key = tuple[str, str, int | None]  # setting, row, nfe
COLUMNS = ("setting", "method", "nfe", "mean", "sd", "seeds", "paper")  # of a CSV file
OURS = {"exponential": "exponential-ours", "dpm++3m": "dpm++3m-ours"}  # solvers beside the paper's of that name
LEGEND = (
    "aMMD, mean +- sd over seeds (paper's value, ratio). Bold: best; =: no further from test signals than training"
    f" signals are (the floor, give or take {LEAST:g}); ~: not separable from the best (five seeds or more)."
)
SIGNS = {"tied": "~", "floor": "="}


def collected(suite: str, cells: Sequence[Cell], results: Path) -> dict[Key, Entry]:
    """What has been measured, by setting, row and budget."""
    groups = by_place(ammd_frame(cells, results, partial(row_name, suite)), "setting", "row", "nfe")
    table = {
        key: Entry(
            values(lines),
            sum(lines.failed),
            paper(suite, *key),
            _note(lines.content) if suite == "gad-native" and key[2] is not None else "",
            lines.split[0] == "test",
        )
        for key, lines in groups.items()
    }
    if not any(entry.values for entry in table.values()):
        raise InputError(
            f"no cells of {suite} in {results}", "measured ones", f"grcd bench run {suite} --results {results}"
        )
    return table | (_gains(cells, results) if suite == "snr" else {})


def _note(contents: Sequence[dict]) -> str:
    """Readings out of range, their mean over seeds, and seconds, the least: with nothing beside it, or least of it."""
    outside, seconds = (
        [content[key] for content in contents if key in content] for key in ("outside", "seconds_per_1000")
    )
    parts = [f"{np.mean(outside):.1%} out of range"] if outside else []
    return ", ".join(parts + ([f"{min(seconds):.2f} s per 1,000"] if seconds else []))


def _gains(cells: Sequence[Cell], results: Path) -> dict[Key, Entry]:
    """What fitting the terminal reference gains: a row for each regime, paired by seed."""
    table: dict[Key, Entry] = {}
    seeds = sorted({cell.seed for cell in cells if cell.needs_network})
    for setting in dict.fromkeys(cell.setting for cell in cells):
        for near_zero, gains in ratios(setting, seeds, results).items():
            row = f"scalar over fitted, {'near zero SNR' if near_zero else 'kappa 2'}"
            table |= {(setting, row, 16): Entry(gains, ranked=False)} if gains else {}
    return table


def row_name(suite: str, cell: Cell) -> str:
    """What a table calls a cell's row: the method, or what the suite varies."""
    if not isinstance(cell, Generated) or suite not in ("solvers", "grid"):
        return cell.row
    if suite == "grid":
        return f"rho{cell.rho:g}" + (", validation" if cell.split == "val" else "")
    name = OURS.get(cell.solver or "", cell.solver or "").removesuffix("-paper").removesuffix("-halved")
    return name if name == "heun" else f"{name}-{'uniform' if cell.grid == 'log-snr' else f'rho{cell.rho:g}'}"


@cache
def _paper() -> dict[tuple[str, str, str, int | None], tuple[float, float | None]]:
    text = (resources.files("grcd.bench") / "paper.csv").read_text()
    return {
        (row["suite"], row["setting"], row["method"], int(row["nfe"]) if row["nfe"] else None): (
            float(row["mean"]),
            float(row["sd"]) if row["sd"] else None,
        )
        for row in csv.DictReader(io.StringIO(text))
    }


def printed(suite: str) -> dict[Key, tuple[float, float | None]]:
    """Mean and sd of every number that the paper prints in a suite's table, in its order."""
    return {(setting, row, nfe): value for (table, setting, row, nfe), value in _paper().items() if table == suite}


def paper(suite: str, setting: str, row: str, nfe: int | None) -> tuple[float, float | None] | None:
    """What the paper prints for this row; controls and the ladder's shared rows appear in several of its tables."""
    places = ((table, setting, row, nfe) for table in (suite, "controls", "main"))
    return next((_paper()[place] for place in places if place in _paper()), None)


def tied(one: Entry, best: Entry) -> bool:
    """Whether two rows cannot be told apart: log ratios paired by seed, 95 %; of few seeds nobody knows."""
    found = apart(one, best)
    return found is not None and abs(found[0]) <= found[1]


# -- formats -----------------------------------------------------------------------------------------------------------

Mark = Literal["", "best", "tied", "floor"]
Show = Callable[[Entry, Mark], str]  # an entry as text; how it stands in its column


def render(table: dict[Key, Entry], kind: str, alone: bool = True) -> str:
    """The table as text: md, tex or csv; ``alone``: with what has no network, or (md) without it."""
    refuse_unknown(kind)
    return _markdown(table, alone) if kind == "md" else {"tex": _latex, "csv": _csv}[kind](table)


def _csv(table: dict[Key, Entry]) -> str:
    lines: list[Sequence[object]] = [COLUMNS]
    for (setting, row, nfe), entry in table.items():
        if entry.values:
            numbers = ["" if math.isnan(x) else f"{x:.6f}" for x in (entry.mean, entry.sd)]
            theirs = "" if entry.paper is None else entry.paper[0]
            lines.append([setting, row, "" if nfe is None else nfe, *numbers, len(entry.values), theirs])
    return comma_separated(lines)


def _sheet(table: dict[Key, Entry], setting: str, show: Show) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """The head, the rows with budgets, and those without."""
    entries = {(row, nfe): entry for (where, row, nfe), entry in table.items() if where == setting}
    budgets = sorted({nfe for _, nfe in entries if nfe is not None})
    floor = entries.get(("floor", None), Entry()).mean
    by_budget = {nfe: {row: entry for (row, at), entry in entries.items() if at == nfe} for nfe in budgets}
    columns = {nfe: _column(column, floor, show) for nfe, column in by_budget.items()}
    rows = dict.fromkeys(row for row, nfe in entries if nfe is not None)
    body = [[row, *(columns[nfe].get(row, show(Entry(), "")) for nfe in budgets)] for row in rows]
    alone = [[row, show(entry, "")] for (row, nfe), entry in entries.items() if nfe is None]
    return ["method", *(f"NFE {nfe}" for nfe in budgets)], body, alone


def _column(entries: dict[str, Entry], floor: float, show: Show) -> dict[str, str]:
    """The texts of one budget by row: what is at the floor marked, or else the best and what is tied with it."""
    ranked = {row: entry for row, entry in entries.items() if entry.values and entry.ranked}
    best = min(ranked, key=lambda row: ranked[row].mean, default="")
    near = {row for row, entry in ranked.items() if entry.mean <= floor + LEAST}  # none where there is no floor

    def mark(row: str) -> Mark:
        if near or row not in ranked:
            return "floor" if row in near else ""
        return "best" if row == best else "tied" if tied(ranked[row], ranked[best]) else ""

    return {row: show(entry, mark(row)) for row, entry in entries.items()}


def _markdown(table: dict[Key, Entry], with_alone: bool) -> str:
    parts = []
    for setting in dict.fromkeys(key[0] for key in table):
        head, body, alone = _sheet(table, setting, _markdown_cell)
        parts.append(titled(setting, [head, *body]) if body else f"### {setting}")
        if with_alone:
            parts.append(markdown([["without a network", "aMMD"], *alone]))
    return joined(parts, LEGEND)


def _markdown_cell(entry: Entry, mark: Mark) -> str:
    if not entry.values:
        return "failed" if entry.failed else "-"
    bold = "**" if mark == "best" else ""
    spread = "" if math.isnan(entry.sd) else f" +- {entry.sd:.4f}"
    beside = "" if entry.paper is None else f" ({entry.paper[0]:.4f}, {entry.mean / entry.paper[0]:.2f}x)"
    failed = f", {entry.failed} failed" if entry.failed else ""
    note = f"; {entry.note}" if entry.note else ""
    return f"{bold}{entry.mean:.4f}{bold}{SIGNS.get(mark, '')}{spread}{beside}{failed}{note}"


def _latex(table: dict[Key, Entry]) -> str:
    parts = []
    for setting in dict.fromkeys(key[0] for key in table):
        head, *bodies = _sheet(table, setting, _latex_cell)
        named = [[[escaped(row), *cells] for row, *cells in body] for body in bodies]
        parts.append(latex(setting, head, *named, columns=2))
    return joined(parts)


def _latex_cell(entry: Entry, mark: Mark) -> str:
    if not entry.values:
        return "failed" if entry.failed else "--"
    number = rf"\mathbf{{{entry.mean:.4f}}}" if mark == "best" else f"{entry.mean:.4f}"
    spread = "" if math.isnan(entry.sd) else rf" \pm {entry.sd:.4f}"
    beside = "" if entry.paper is None else rf"\;({entry.paper[0]:.4f})"
    alike = {"tied": r"^{\sim}", "floor": "^{=}"}.get(mark, "")
    return f"${number}{alike}{spread}{beside}$"
