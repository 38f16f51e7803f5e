"""The table of filled gaps: a block for each kind of gap, a row for each way to fill them, mean and sd over seeds.

CRPS of a point is its MAE, and a point covers nothing. The lowest CRPS of a block is bold once all of it
has been measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from . import suites
from .cells import measured
from .layout import comma_separated, escaped, formatted, joined, latex, long, markdown, shown
from .measured import lacking
from .tables import row_name

COLUMNS = {
    "mae": "MAE",
    "rmse": "RMSE",
    "crps": "CRPS",
    "cover_50": "within 50 %",
    "cover_90": "within 90 %",
    "filling": "s per 1,000",
}
Blocks = dict[str, dict[str, dict[str, list[float]]]]  # mask, row, column: a value for each seed


def blocks(setting: str, seeds: Sequence[int], results: Path) -> Blocks:
    found: Blocks = {}
    for cell in suites.cells("impute", [setting], seeds):
        row = found.setdefault(cell.mask or "", {}).setdefault(row_name("impute", cell), {})
        known = measured(cell, results)
        for column, value in known[cell.holds].items() if known else ():
            row.setdefault(column, []).append(value)
    if not any("crps" in row for rows in found.values() for row in rows.values()):
        raise lacking("with filled gaps", "impute", [setting], seeds, results)
    return found


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    found = {setting: blocks(setting, seeds, results) for setting in settings}
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(found)


def _lines(rows: dict[str, dict[str, list[float]]]) -> list[list[str]]:
    whole = all("crps" in values for values in rows.values())  # else the best may be one that is not there yet
    best = min(rows, key=lambda row: np.mean(rows[row]["crps"])) if whole else None
    lines = [["method", *COLUMNS.values()]]
    for row, values in rows.items():
        point = values.get("cover_90") == values.get("cover_50")  # both ends are the same reading
        texts = {name: shown(values.get(name, []), 3) for name in COLUMNS}
        texts |= dict.fromkeys(("cover_50", "cover_90"), "-") if point else {}
        texts |= {"crps": f"**{texts['crps']}**"} if row == best else {}
        lines.append([row, *texts.values()])
    return lines


def _each(found: dict[str, Blocks]) -> Iterator[tuple[str, list[list[str]]]]:
    for setting, masks in found.items():
        yield from ((f"{setting}, {mask}", _lines(rows)) for mask, rows in masks.items())


def _markdown(found: dict[str, Blocks]) -> str:
    legend = (
        "Hidden readings, in the signals' units; mean +- sd over networks, all of which fill the same gaps. A hundred"
        " draws a signal; CRPS of a point is its MAE. Bold: the lowest CRPS; -: not measured, or nothing to tell."
    )
    return joined((markdown(title, lines) for title, lines in _each(found)), legend)


def _latex(found: dict[str, Blocks]) -> str:
    return joined(latex(title, [[*map(escaped, line)] for line in lines]) for title, lines in _each(found))


def _csv(found: dict[str, Blocks]) -> str:
    lines = [["setting", "mask", "method", "metric", "mean", "sd", "seeds"]]
    for setting, masks in found.items():
        for mask, rows in masks.items():
            for row, values in rows.items():
                lines += [[setting, mask, row, name, *long(values[name])] for name in COLUMNS if name in values]
    return comma_separated(lines)
