"""Filled tables into files: the median in place of every gap, quantiles beside it, or all draws (see ``output``).

Draws come some signals at a time and may be more than memory holds: quantiles are taken as they come, and the ensemble
goes through a file of its own.
"""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from ...core.errors import InputError, InputWarning, counted
from ...core.files import make_folder, scratch
from ...metrics.ensemble import summaries as of_draws
from ..written_times import PLAIN, TimeColumn
from .output import Output
from .writing import refuse_not_finite, write

Fillings = Iterable[tuple[np.ndarray, np.ndarray]]  # rows, and their draws (n, rows, nodes[, channels])


class Filled:
    """What is known of a table once its gaps are filled."""

    def __init__(
        self,
        node_ids: Sequence[str],
        times: np.ndarray | None,
        levels: Sequence[float],
        unit: str = "",
        channels: Sequence[str] = (),  # of draws that have an axis of them
        units: Sequence[str] = (),  # one a channel
        long: bool = False,  # a table with a row a reading
        lacking: np.ndarray | None = None,  # (nodes[, channels]) of which there are no readings, and no draws
        clock: TimeColumn = PLAIN,  # what a table's column of times is called, and how they are written
    ):
        self.clock = clock
        self.node_ids, self.times, self.levels, self.unit = tuple(node_ids), times, tuple(levels), unit
        self.channels, self.units, self.long, self.lacking = tuple(channels), tuple(units), long, lacking

    def write(self, path: str | Path, fillings: Fillings, shape: tuple[int, ...], ensemble: bool = False) -> None:
        """Take all draws, and write the file whole or not at all; ``shape`` is that of the ensemble."""
        path = Path(path)
        if ensemble and path.suffix == ".parquet" and self.levels:
            note = "all draws of a .parquet file go without quantiles: they follow from the draws, or take .npz or .nc"
            warnings.warn(note, InputWarning, stacklevel=3)
        if ensemble and path.suffix == ".csv":
            raise InputError("an ensemble as .csv", "a file that ends in .npz, .parquet or .nc", "choose another --out")
        self._warn(shape[0])
        folder = make_folder(path.parent)
        if ensemble:
            _refuse_without_room(folder, 8 * math.prod(shape))
        with scratch(folder, "ensemble.npy") if ensemble else nullcontext() as room:
            draws = None if room is None else np.lib.format.open_memmap(room, "w+", np.float64, shape)
            self._write(path, *self._summarised(path, fillings, shape, draws), draws)

    def write_rows(self, path: str | Path, signals: np.ndarray) -> None:
        """Rows as they are (rows, nodes[, channels]), in the same layout."""
        refuse_not_finite(signals, path, self.lacking)
        self._write(Path(path), signals)

    def _write(
        self, path: Path, signals: np.ndarray, quantiles: np.ndarray | None = None, draws: np.memmap | None = None
    ) -> None:
        about = self.node_ids, self.unit, self.times, self.levels
        write(path, Output(signals, *about, quantiles, draws, self.channels, self.units, self.long, self.clock))

    def _warn(self, n: int) -> None:
        """Levels that lie beyond the outermost draws (see ``ensemble``)."""
        inner = [min(level, 1 - level) for level in self.levels if 0 < level < 1]
        if inner and min(inner) * (n + 1) < 1:
            enough = math.ceil(1 / min(inner)) - 1
            few = counted(n, "draw does", "draws do")
            note = f"{few} not reach as far as the quantiles asked for: take {enough} or more"
            warnings.warn(note, InputWarning, stacklevel=4)

    def _summarised(
        self, path: Path, fillings: Fillings, shape: tuple, ensemble: np.memmap | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        median, quantiles = np.empty(shape[1:]), np.empty((len(self.levels), *shape[1:]))
        for rows, drawn in fillings:
            refuse_not_finite(drawn, path, self.lacking)
            median[rows], *others = of_draws(drawn, (0.5, *self.levels))
            if self.levels:
                quantiles[:, rows] = others
            if ensemble is not None:
                ensemble[:, rows] = drawn
        return median, quantiles if self.levels else None


def _refuse_without_room(folder: Path, size: int) -> None:
    """Before any draw: the ensemble lies there once by itself, and once in the file."""
    free = shutil.disk_usage(folder).free
    if 2 * size > free:
        raise InputError(
            f"an ensemble of {size / 1e9:,.1f} GB for {folder}, where {free / 1e9:,.1f} GB are free",
            "room for it twice: once while it is made, once in the file",
            "take fewer draws, choose another place, or write quantiles in place of the ensemble",
        )
