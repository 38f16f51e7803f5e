"""Tables from cells: mean and sample standard deviation over seeds, the paper's value beside ours, floor and controls.

The best method of a column is bold. A method whose difference from the best, paired by seed, is within the 95 %
interval of Student's t is marked with ``~``: with these seeds the two cannot be told apart.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from ..core.errors import InputError
from .cells import Cell, read
from .layout import comma_separated, escaped, formatted, joined, markdown, piped
from .measured import Entry, ratios

Key = tuple[str, str, int | None]  # setting, row, nfe


def collected(suite: str, cells: Sequence[Cell], results: Path) -> dict[Key, Entry]:
    """What has been measured, by setting, row and budget."""
    found: dict[Key, dict] = {}
    told: dict[Key, list[dict]] = {}
    for cell in (cell for cell in cells if not cell.timed):
        key = cell.setting, row_name(suite, cell), cell.nfe
        entry = found.setdefault(key, {"values": {}, "failed": 0, "ranked": cell.split == "test"})
        known = read(cell, results)
        if known is not None and not known.get("error"):
            entry["values"][cell.seed] = known["scores"]["ammd"]
            told.setdefault(key, []).append(known)
        elif known is not None:
            entry["failed"] += 1
    notes = {key: _note(known) for key, known in told.items() if suite == "gad-native" and key[2] is not None}
    table = {key: Entry(**entry, paper=paper(suite, *key), note=notes.get(key, "")) for key, entry in found.items()}
    if not any(entry.values for entry in table.values()):
        raise InputError(
            f"no cells of {suite} in {results}", "measured ones", f"grcd bench run {suite} --results {results}"
        )
    return table | (_gains(cells, results) if suite == "snr" else {})


def _note(seeds: list[dict]) -> str:
    """Readings out of range, their mean over seeds, and seconds, the least: with nothing beside it, or least of it."""
    outside, seconds = ([known[key] for known in seeds if key in known] for key in ("outside", "seconds_per_1000"))
    said = [f"{np.mean(outside):.1%} out of range"] if outside else []
    return ", ".join(said + ([f"{min(seconds):.2f} s per 1,000"] if seconds else []))


def _gains(cells: Sequence[Cell], results: Path) -> dict[Key, Entry]:
    """What fitting the terminal reference gains: a row for each regime, paired by seed."""
    table: dict[Key, Entry] = {}
    seeds = sorted({cell.seed for cell in cells if cell.needs_network})
    for setting in dict.fromkeys(cell.setting for cell in cells):
        for near_zero, values in ratios(setting, seeds, results).items():
            if values:
                table[setting, f"scalar over fitted, {'near zero SNR' if near_zero else 'kappa 2'}", 16] = Entry(
                    values, ranked=False
                )
    return table


def row_name(suite: str, cell: Cell) -> str:
    """What a table calls a cell's row: the method, or what the suite varies."""
    if not cell.needs_network:
        return cell.method
    if suite == "solvers":
        name = (cell.solver or "").removesuffix("-paper")
        name = "exponential-ours" if cell.solver == "exponential" else name
        return name if name == "heun" else f"{name}-{'uniform' if cell.grid == 'log-snr' else f'rho{cell.rho:g}'}"
    if suite == "grid":
        return f"rho{cell.rho:g}" + (", validation" if cell.split == "val" else "")
    varied = [
        f"NFE {cell.nfe}" if suite == "impute" and cell.nfe else None,
        cell.solver,
        None if cell.rho is None else f"rho {cell.rho:g}",
        None if cell.grid == "power" else cell.grid,
        None if cell.kappa is None else f"kappa {cell.kappa:g}",
        cell.symmetrize,
        None if cell.support is None else f"within {cell.support.replace(',', ' to ')}",
    ]
    return ", ".join([cell.method, *filter(None, varied)])


@cache
def _paper() -> dict[tuple, tuple[float, float | None]]:
    text = (resources.files(__package__) / "paper.csv").read_text()
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        key = (row["suite"], row["setting"], row["method"], int(row["nfe"]) if row["nfe"] else None)
        found[key] = float(row["mean"]), float(row["sd"]) if row["sd"] else None
    return found


def paper(suite: str, setting: str, row: str, nfe: int | None) -> tuple[float, float | None] | None:
    """What the paper prints for this row; controls and the ladder's shared rows appear in several of its tables."""
    known = _paper()
    for table in (suite, "controls", "main"):
        if (table, setting, row, nfe) in known:
            return known[table, setting, row, nfe]
    return None


def tied(one: Entry, best: Entry) -> bool:
    """Whether two rows cannot be told apart: paired by seed, 95 %."""
    seeds = sorted(set(one.values) & set(best.values))
    gaps = np.array([one.values[seed] - best.values[seed] for seed in seeds])
    if len(gaps) < 2:
        return False
    return bool(abs(gaps.mean()) <= student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / math.sqrt(len(gaps)))


# -- formats -----------------------------------------------------------------------------------------------------------


def render(table: dict[Key, Entry], kind: str) -> str:
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(table)


def _csv(table: dict[Key, Entry]) -> str:
    lines: list[list[object]] = [["setting", "method", "nfe", "mean", "sd", "seeds", "paper"]]
    for (setting, row, nfe), entry in table.items():
        if entry.values:
            numbers = ["" if math.isnan(x) else f"{x:.6f}" for x in (entry.mean, entry.sd)]
            printed = "" if entry.paper is None else entry.paper[0]
            lines.append([setting, row, "" if nfe is None else nfe, *numbers, len(entry.values), printed])
    return comma_separated(lines)


def _layout(table: dict[Key, Entry], setting: str) -> tuple[list[str], list[int], list[str]]:
    """Rows with a budget, the budgets, and the rows without."""
    keys = [key for key in table if key[0] == setting]
    rows = list(dict.fromkeys(row for _, row, nfe in keys if nfe is not None))
    return rows, sorted({nfe for *_, nfe in keys if nfe is not None}), [row for _, row, nfe in keys if nfe is None]


def _markdown(table: dict[Key, Entry]) -> str:
    parts = []
    for setting in dict.fromkeys(key[0] for key in table):
        rows, budgets, alone = _layout(table, setting)
        lines = [["method", *(f"NFE {nfe}" for nfe in budgets)]]
        lines += [[row, *_row(table, setting, row, rows, budgets, _md_cell)] for row in rows]
        beside = [[row, _md_cell(table[setting, row, None], "", "")] for row in alone]
        parts.append(markdown(setting, lines) if rows else f"### {setting}")
        parts.append(piped([["without a network", "aMMD"], *beside]))
    return joined(parts, "aMMD, mean +- sd over seeds (paper's value, ratio). Bold: best; ~: not separable from it.")


def _row(
    table: dict[Key, Entry],
    setting: str,
    row: str,
    rows: Sequence[str],
    budgets: Sequence[int],
    show: Callable[[Entry, str, str], str],
) -> list[str]:
    shown = []
    for nfe in budgets:
        column = {name: table[setting, name, nfe] for name in rows if (setting, name, nfe) in table}
        column = {name: entry for name, entry in column.items() if entry.values and entry.ranked}
        best = min(column, key=lambda name: column[name].mean, default=None)
        entry = table.get((setting, row, nfe), Entry({}))
        mark = "**" if row == best else ""
        tie = "~" if row != best and row in column and best and tied(entry, column[best]) else ""
        shown.append(show(entry, mark, tie))
    return shown


def _md_cell(entry: Entry, mark: str, tie: str) -> str:
    if not entry.values:
        return "failed" if entry.failed else "-"
    spread = "" if math.isnan(entry.sd) else f" +- {entry.sd:.4f}"
    beside = "" if entry.paper is None else f" ({entry.paper[0]:.4f}, {entry.mean / entry.paper[0]:.2f}x)"
    failed = f", {entry.failed} failed" if entry.failed else ""
    note = f"; {entry.note}" if entry.note else ""
    return f"{mark}{entry.mean:.4f}{mark}{tie}{spread}{beside}{failed}{note}"


def _latex(table: dict[Key, Entry]) -> str:
    parts = []
    for setting in dict.fromkeys(key[0] for key in table):
        rows, budgets, alone = _layout(table, setting)
        lines = [rf"% {setting}", rf"\begin{{tabular}}{{l{'c' * max(1, len(budgets))}}}"]
        lines.append(" & ".join(["method", *(f"NFE {nfe}" for nfe in budgets)]) + r" \\ \hline")
        lines += [
            " & ".join([escaped(row), *_row(table, setting, row, rows, budgets, _tex_cell)]) + r" \\" for row in rows
        ]
        lines.append(r"\hline")
        lines += [f"{escaped(row)} & {_tex_cell(table[setting, row, None], '', '')}" + r" \\" for row in alone]
        parts.append("\n".join([*lines, r"\end{tabular}"]))
    return joined(parts)


def _tex_cell(entry: Entry, mark: str, tie: str) -> str:
    if not entry.values:
        return "failed" if entry.failed else "--"
    number = rf"\mathbf{{{entry.mean:.4f}}}" if mark else f"{entry.mean:.4f}"
    spread = "" if math.isnan(entry.sd) else rf" \pm {entry.sd:.4f}"
    beside = "" if entry.paper is None else rf"\;({entry.paper[0]:.4f})"
    alike = r"^{\sim}" if tie else ""
    return f"${number}{alike}{spread}{beside}$"
