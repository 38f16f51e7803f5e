"""The table of filled gaps: a block for each kind of gap, a row for each way to fill them, mean and sd over seeds.

CRPS of a point is its MAE, and a point covers nothing. The lowest CRPS of a block is bold.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import suites
from .cells import measured
from .measured import lacking
from .tables import escaped, formatted, row_name

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
        known = measured(cell, results)
        if known is not None:
            row = found.setdefault(cell.mask, {}).setdefault(row_name("impute", cell), {})
            for column, value in known[cell.holds].items():
                row.setdefault(column, []).append(value)
    scored = {mask: {name: row for name, row in rows.items() if "crps" in row} for mask, rows in found.items()}
    if not any(scored.values()):
        raise lacking("with filled gaps", "impute", [setting], seeds, results)
    return {mask: rows for mask, rows in scored.items() if rows}


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    found = {setting: blocks(setting, seeds, results) for setting in settings}
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(found)


def _lines(rows: dict[str, dict[str, list[float]]], bold: str) -> list[list[str]]:
    best = min(rows, key=lambda row: np.mean(rows[row]["crps"]))
    lines = []
    for row, values in rows.items():
        point = max(values["cover_90"]) <= min(values["cover_50"])  # both ends are the same reading
        shown = ["-" if point and name.startswith("cover") else _shown(values.get(name, [])) for name in COLUMNS]
        crps = list(COLUMNS).index("crps")
        shown[crps] = bold.format(shown[crps]) if row == best else shown[crps]
        lines.append([row, *shown])
    return lines


def _shown(values: list[float]) -> str:
    if not values:
        return "-"
    spread = f" +- {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def _markdown(found: dict[str, Blocks]) -> str:
    parts = []
    for setting, masks in found.items():
        for mask, rows in masks.items():
            head = [mask, *COLUMNS.values()]
            lines = [head, ["---"] * len(head), *_lines(rows, "**{}**")]
            parts.append(f"### {setting}, {mask}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "Hidden readings, in the signals' units; mean +- sd over seeds.\n\n" + "\n\n".join(parts) + "\n"


def _latex(found: dict[str, Blocks]) -> str:
    parts = []
    for setting, masks in found.items():
        for mask, rows in masks.items():
            head = " & ".join([mask, *COLUMNS.values()]).replace("%", r"\%") + r" \\ \hline"
            lines = [[escaped(row), *cells] for row, *cells in _lines(rows, r"\textbf{{{}}}")]
            body = [" & ".join(line).replace("+-", r"$\pm$") + r" \\" for line in lines]
            begin = rf"\begin{{tabular}}{{l{'c' * len(COLUMNS)}}}"
            parts.append("\n".join([f"% {setting}, {mask}", begin, head, *body, r"\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def _csv(found: dict[str, Blocks]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["setting", "mask", "method", "metric", "mean", "sd", "seeds"])
    for setting, masks in found.items():
        for mask, rows in masks.items():
            for row, values in rows.items():
                for name in (column for column in COLUMNS if column in values):
                    numbers = values[name]
                    spread = f"{np.std(numbers, ddof=1):.6f}" if len(numbers) > 1 else ""
                    writer.writerow([setting, mask, row, name, f"{np.mean(numbers):.6f}", spread, len(numbers)])
    return out.getvalue()
