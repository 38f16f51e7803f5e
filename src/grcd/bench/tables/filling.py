"""The table of filled gaps: a block for each kind of gap, a row for each way to fill them, mean and sd over seeds.

CRPS of a point is its MAE, and a point covers nothing. The lowest CRPS of a block is bold once all of it
has been measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.tables import Lines, render
from .. import suites
from ..cells import Baseline, Filled, measured
from ..measured import Statistic, lacking, over_seeds

COLUMNS = {
    "mae": "MAE",
    "rmse": "RMSE",
    "crps": "CRPS",
    "cover_50": "within 50 %",
    "cover_90": "within 90 %",
    "filling": "s per 1,000",
}
LEGEND = (
    "Hidden readings, in the signals' units; mean +- sd over networks, all of which fill the same gaps. A hundred"
    " draws a signal; CRPS of a point is its MAE. Bold: the lowest CRPS; -: not measured, or nothing to tell."
)
Blocks = dict[str, dict[str, dict[str, Statistic]]]  # by mask, row and metric; a row without any was not measured


def blocks(setting: str, seeds: Sequence[int], results: Path) -> Blocks:
    """What has been measured on a dataset."""
    lines, table = [], Blocks()
    for cell in suites.cells("impute", [setting], seeds):
        assert isinstance(cell, Baseline | Filled)
        table.setdefault(cell.mask, {}).setdefault(cell.row, {})
        content = measured(cell, results) or {}
        lines += [(cell.mask, cell.row, metric, value) for metric, value in content.get(cell.key, {}).items()]
    if not any(metric == "crps" for *_, metric, _ in lines):
        raise lacking("with filled gaps", "impute", [setting], seeds, results)
    for (mask, row, metric), statistic in over_seeds(lines).items():
        table[mask][row][metric] = statistic
    return table


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The table of some datasets as md, tex or csv."""
    by_setting = {setting: blocks(setting, seeds, results) for setting in settings}
    return render(kind, _sheets(by_setting), LEGEND, _fields(by_setting))


def _sheets(by_setting: dict[str, Blocks]) -> Iterator[tuple[str, Lines]]:
    for setting, masks in by_setting.items():
        yield from ((f"{setting}, {mask}", _lines(rows)) for mask, rows in masks.items())


def _lines(rows: dict[str, dict[str, Statistic]]) -> Lines:
    whole = all("crps" in metrics for metrics in rows.values())  # else the best may be one that is not there yet
    best = min(rows, key=lambda row: rows[row]["crps"].mean) if whole else None
    lines = [["method", *COLUMNS.values()]]
    for row, metrics in rows.items():
        texts = {name: metrics[name].text(3) if name in metrics else "-" for name in COLUMNS}
        if metrics.get("cover_90") == metrics.get("cover_50"):  # a point: both ends are the same reading
            texts |= {"cover_50": "-", "cover_90": "-"}
        texts |= {"crps": f"**{texts['crps']}**"} if row == best else {}
        lines.append([row, *texts.values()])
    return lines


def _fields(by_setting: dict[str, Blocks]) -> Iterator[list[object]]:
    yield ["setting", "mask", "method", "metric", "mean", "sd", "seeds"]
    for setting, masks in by_setting.items():
        for mask, rows in masks.items():
            for row, metrics in rows.items():
                yield from ([setting, mask, row, key, *metrics[key].fields()] for key in COLUMNS if key in metrics)
