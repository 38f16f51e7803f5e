"""Filled tables into files: the median in place of every gap, quantiles beside it, or all draws.

    .csv, .parquet   the table as it was, times first, gaps filled by the median; a column "NODE 5%" for each quantile.
                     Of all draws (.parquet only): one row for each draw of each signal, and its number in "draw"
    .npz, .nc        signals (signals, nodes); quantiles (levels, signals, nodes) and levels, and ensemble (draws,
                     signals, nodes), if asked for; node_ids, and times if there were any

Draws come some signals at a time and may be more than memory holds: quantiles are taken as they come, and the ensemble
goes through a file of its own.
"""

from __future__ import annotations

import math
import os
import shutil
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InputError, InputWarning
from ...core.files import make_folder, scratch, whole
from ...metrics.ensemble import quantiles as of_draws
from ..times import as_text
from .signals import need_xarray
from .writing import refuse_not_finite, warn_of_formulas

if TYPE_CHECKING:
    from pandas import DataFrame

Fillings = Iterable[tuple[np.ndarray, np.ndarray]]  # rows, and their draws (n, rows, nodes)


class Filled:
    """What is known of a table once its gaps are filled."""

    def __init__(self, node_ids: Sequence[str], times: np.ndarray | None, levels: Sequence[float], unit: str = ""):
        self.node_ids, self.times, self.levels, self.unit = list(node_ids), times, tuple(levels), unit

    def write(self, path: str | Path, fillings: Fillings, shape: tuple[int, int, int], ensemble: bool = False) -> None:
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
            kept = None if room is None else np.lib.format.open_memmap(room, "w+", np.float64, shape)
            median, quantiles = self._summarised(path, fillings, shape, kept)
            WRITERS[path.suffix](self, path, median, quantiles, kept)
        warn_of_formulas(path, self.node_ids)

    def _warn(self, n: int) -> None:
        """Levels that lie beyond the outermost draws (see ``ensemble``)."""
        inner = [min(level, 1 - level) for level in self.levels if 0 < level < 1]
        if inner and min(inner) * (n + 1) < 1:
            enough = math.ceil(1 / min(inner)) - 1
            note = f"{n} draws do not reach as far as the quantiles asked for: take {enough} or more"
            warnings.warn(note, InputWarning, stacklevel=4)

    def _summarised(
        self, path: Path, fillings: Fillings, shape: tuple, kept: np.memmap | None
    ) -> tuple[np.ndarray, np.ndarray]:
        median, quantiles = np.empty(shape[1:]), np.empty((len(self.levels), *shape[1:]))
        for rows, drawn in fillings:
            refuse_not_finite(drawn, path)
            median[rows] = np.median(drawn, axis=0)
            if self.levels:
                quantiles[:, rows] = of_draws(drawn, self.levels)
            if kept is not None:
                kept[:, rows] = drawn
        return median, quantiles

    def frame(self, median: np.ndarray, quantiles: np.ndarray) -> DataFrame:
        import pandas

        columns = {} if self.times is None else {"time": self.times}
        for i, name in enumerate(self.node_ids):
            columns[name] = median[:, i]
            columns |= {f"{name} {100 * level:g}%": quantiles[k, :, i] for k, level in enumerate(self.levels)}
        return pandas.DataFrame(columns)

    def csv(self, path: Path, median: np.ndarray, quantiles: np.ndarray, kept: np.memmap | None) -> None:
        frame = self.frame(median, quantiles)
        if self.times is not None:
            frame["time"] = as_text(self.times)
        with whole(path) as temporary:
            frame.to_csv(temporary, index=False)

    def parquet(self, path: Path, median: np.ndarray, quantiles: np.ndarray, kept: np.memmap | None) -> None:
        if kept is None:
            with whole(path) as temporary:
                self.frame(median, quantiles).to_parquet(temporary)
            return
        import pyarrow
        import pyarrow.parquet

        with whole(path) as temporary:
            writer: Any = None
            for number, draw in enumerate(kept):  # a draw at a time: all of them may not fit
                frame = Filled(self.node_ids, self.times, ()).frame(draw, quantiles[:0])
                frame.insert(0, "draw", number)
                part = pyarrow.Table.from_pandas(frame, preserve_index=False)
                writer = writer or pyarrow.parquet.ParquetWriter(temporary, part.schema)
                writer.write_table(part)
            writer.close()

    def npz(self, path: Path, median: np.ndarray, quantiles: np.ndarray, kept: np.memmap | None) -> None:
        arrays: dict[str, Any] = {"signals": median}
        arrays |= {"quantiles": quantiles, "levels": np.array(self.levels)} if self.levels else {}
        arrays |= {"node_ids": np.array(self.node_ids)} | ({} if self.times is None else {"times": self.times})
        arrays |= {"unit": np.array(self.unit)} if self.unit else {}
        with whole(path) as temporary:
            with temporary.open("wb") as file:
                np.savez_compressed(file, **arrays)
            if kept is not None:
                assert kept.filename is not None
                kept.flush()
                with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
                    archive.write(kept.filename, "ensemble.npy")

    def netcdf(self, path: Path, median: np.ndarray, quantiles: np.ndarray, kept: np.memmap | None) -> None:
        xarray = need_xarray()
        row = "sample" if self.times is None else "time"
        # A dimension without limit comes first, and its records are what the file ends with: one now, the others after.
        arrays: dict[str, Any] = {} if kept is None else {"ensemble": (("draw", row, "node"), kept[:1])}
        arrays |= {"signals": ((row, "node"), median)}
        arrays |= {"quantiles": (("level", row, "node"), quantiles)} if self.levels else {}
        coords: dict[str, Any] = {"node": self.node_ids} | ({"level": list(self.levels)} if self.levels else {})
        coords |= {} if self.times is None else {row: self.times}
        found = xarray.Dataset(arrays, coords)
        for name in arrays:
            found[name].attrs |= {"units": self.unit} if self.unit else {}
        with whole(path) as temporary:
            endless = [] if kept is None else ["draw"]
            found.to_netcdf(temporary, engine="scipy", format="NETCDF3_64BIT", unlimited_dims=endless)
            if kept is not None:
                _append_records(temporary, kept)


def _append_records(path: Path, kept: np.ndarray) -> None:
    """To a netCDF file that has the first of them: each is its numbers, most significant byte first."""
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for draw in kept[1:]:
            file.write(draw.astype(">f8").tobytes())
        file.seek(4)  # behind "CDF" and the version: how many there are
        file.write(len(kept).to_bytes(4, "big"))


def _refuse_without_room(folder: Path, size: int) -> None:
    """Before any draw: the ensemble lies there once by itself, and once in the file."""
    free = shutil.disk_usage(folder).free
    if 2 * size > free:
        raise InputError(
            f"an ensemble of {size / 1e9:,.1f} GB for {folder}, where {free / 1e9:,.1f} GB are free",
            "room for it twice: once while it is made, once in the file",
            "take fewer draws, choose another place, or write quantiles in place of the ensemble",
        )


WRITERS = {".csv": Filled.csv, ".parquet": Filled.parquet, ".npz": Filled.npz, ".nc": Filled.netcdf}
