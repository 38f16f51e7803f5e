"""The tables of the benchmark: of aMMD for most suites; cost, distances, filled gaps and windows have their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..cells import Cell, earlier
from . import cost, distances, filling, windows
from .ammd import Key, collected, paper, printed, render, row_name

__all__ = ["Key", "collected", "paper", "printed", "render", "row_name", "table"]

OWN = {"cost": cost.table, "distances": distances.table, "impute": filling.table}
OWN |= {"imputation": windows.imputation, "forecast": windows.forecast}
EARLIER = (
    "{count} of the cells were measured before data, network or what is kept changed;"
    " `grcd bench run` measures them again."
)


def table(suite: str, cells: Sequence[Cell], seeds: Sequence[int], results: Path, kind: str, alone: bool = True) -> str:
    """The table of a suite as text.

    cells       of the suite, those that are to have a line
    seeds       that mean and sd are taken over
    results     folder of the cells' files
    kind        md, tex or csv
    alone       whether a table of aMMD in Markdown has controls and floor, which have no network, too
    """
    if suite in OWN:
        text = OWN[suite](list(dict.fromkeys(cell.setting for cell in cells)), seeds, results, kind)
    else:
        text = render(collected(suite, cells, results), kind, alone)
    count = earlier(cells, results)
    return text if not count or kind != "md" else f"{text}\n{EARLIER.format(count=count)}\n"
