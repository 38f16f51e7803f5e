"""Windows in files, by ending: generated series of some steps each, with the times of their rows.

.csv, .parquet   sample, step, and time where there are times; then a column a node. Of several channels a long table:
                 sample, step, time, node, variable, value
.npz             signals (samples, steps, nodes[, channels]), times (samples, steps), node_ids, channels, unit or units
.nc              a variable `signals` (sample, step, node), or of several channels one for each, and `times`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InputError, some, unknown
from ...core.files import whole
from .. import times as clock
from ..written_times import PLAIN, TimeColumn
from . import netcdf, parquet
from .csv import read_columns
from .npz import Archive
from .output import without_points
from .refusals import damage_is_refused, existing, refuse_no_memory
from .table import names_of
from .writing import refuse_not_finite, warn_of_formulas

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = ("sample", "step")
BESIDE = (*PLACE, "time")  # columns that are no nodes


@dataclass(frozen=True, eq=False)
class Windows:
    """Readings of windows, in their own units."""

    signals: np.ndarray  # (samples, steps, nodes, channels)
    node_ids: tuple[str, ...] | None  # None if a file names none
    channels: tuple[str, ...] = ("",)  # the only one may have no name
    units: tuple[str, ...] = ()  # one a channel, "" where unknown
    times: np.ndarray | None = None  # (samples, steps)
    clock: TimeColumn = PLAIN  # how they are written as text

    @property
    def names(self) -> tuple[str, ...]:
        """Of the nodes; numbers where there are none."""
        return self.node_ids or tuple(map(str, range(self.signals.shape[2])))


def write_windows(path: str | Path, windows: Windows, lacking: np.ndarray | None = None) -> None:
    """In the format of the ending, whole or not at all; ``lacking`` (nodes, channels) have no readings."""
    path = Path(path)
    refuse_not_finite(windows.signals, path, lacking)
    if path.suffix not in FORMATS:
        raise unknown("ending of an output file", path.suffix, FORMATS)
    FORMATS[path.suffix][0](path, windows)
    warn_of_formulas(path, windows.names)


def read_windows(path: str | Path) -> Windows:
    """What ``write_windows`` wrote, or another file of that layout."""
    path = existing(path)
    if path.suffix not in FORMATS:
        raise unknown("ending of a file of windows", path.suffix, FORMATS)
    windows = FORMATS[path.suffix][1](path)
    if 0 in windows.signals.shape:
        raise InputError(f"{path} with windows of shape {windows.signals.shape}", "one or more", "sample them again")
    return windows


# -- tables ----------------------------------------------------------------------------------------------------------


def _frame(windows: Windows, path: Path, text: bool = False) -> DataFrame:
    """A row a step, or of several channels a row a reading."""
    import pandas

    n, steps, nodes, channels = windows.signals.shape
    if taken := [name for name in windows.names if channels == 1 and name.casefold() in BESIDE]:
        raise InputError(f"{some(taken)} as a column of {path}", "another name", "rename the node, or write .npz")
    each = 1 if channels == 1 else nodes * channels
    stamps = windows.times if windows.times is None or not text else windows.clock.text(windows.times.ravel())
    columns: dict[str, Any] = {"sample": np.repeat(np.arange(n), steps * each)}
    columns["step"] = np.tile(np.repeat(np.arange(steps), each), n)
    time = {} if stamps is None else {"time": np.repeat(np.ravel(stamps), each)}
    if channels == 1:
        flat = windows.signals.reshape(n * steps, nodes)
        columns |= {name: flat[:, i] for i, name in enumerate(windows.names)} | time
    else:
        columns |= time
        columns["node"] = np.tile(np.repeat(np.array(windows.names, dtype=object), channels), n * steps)
        columns["variable"] = np.tile(np.array(windows.channels, dtype=object), n * steps * nodes)
        columns["value"] = windows.signals.ravel()
    return pandas.DataFrame(columns)


def _write_csv(path: Path, windows: Windows) -> None:
    frame = without_points(_frame(windows, path, text=True))
    with whole(path) as temporary:
        frame.to_csv(temporary, index=False)


def _write_parquet(path: Path, windows: Windows) -> None:
    parquet.need()
    with whole(path) as temporary:
        _frame(windows, path).to_parquet(temporary)


def _read_csv(path: Path) -> Windows:
    columns = read_columns(path, lambda names: [name for name in names if name in ("time", "node", "variable")])
    _refuse_columns(columns.names, path)
    place = columns.numbers(PLACE)
    if "variable" not in columns.names:
        nodes = [name for name in columns.names if name not in BESIDE]
        return _wide(place, _stamps(columns.text, columns.names, path), nodes, columns.numbers(nodes), path)
    stamps, node, variable = _stamps(columns.text, columns.names, path), columns.text("node"), columns.text("variable")
    return _long(place, stamps, node, variable, columns.numbers(["value"])[:, 0], path)


def _read_parquet(path: Path) -> Windows:
    parquet.need()
    import pandas

    with damage_is_refused(path):
        frame = pandas.read_parquet(path)
        names = [str(name) for name in frame.columns]
        _refuse_columns(names, path)
        place = frame[[*PLACE]].to_numpy(np.float64)
        stamps = _stamps(lambda name: frame[name].to_numpy(), names, path)
        if "variable" not in names:
            nodes = [name for name in names if name not in BESIDE]
            return _wide(place, stamps, nodes, frame[nodes].to_numpy(np.float64), path)
        node, variable = frame["node"].to_numpy(dtype=str), frame["variable"].to_numpy(dtype=str)
        return _long(place, stamps, node, variable, frame["value"].to_numpy(np.float64), path)


def _refuse_columns(names: Sequence[str], path: Path) -> None:
    long = {"node", "variable", "value"}
    if not {*PLACE} <= {*names} or ("variable" in names and {*names} - {"time"} != {*PLACE, *long}):
        raise InputError(
            f"{path} with the columns {some(names)}",
            "sample, step, then a column a node; or sample, step, node, variable, value",
            "windows are what grcd sample writes for a run with a window",
        )


def _stamps(column: Callable[[str], np.ndarray], names: Sequence[str], path: Path) -> np.ndarray | None:
    return clock.parsed(column("time"), str(path)) if "time" in names else None


def _wide(
    place: np.ndarray, stamps: np.ndarray | None, nodes: Sequence[str], values: np.ndarray, path: Path
) -> Windows:
    order, shape = _order(place, 1, path)
    times = None if stamps is None else stamps[order].reshape(shape)
    return Windows(values[order].reshape(*shape, len(nodes), 1), tuple(nodes), times=times)


def _long(
    place: np.ndarray,  # (readings, 2)
    stamps: np.ndarray | None,  # (readings,)
    node: np.ndarray,
    variable: np.ndarray,
    values: np.ndarray,
    path: Path,
) -> Windows:
    import pandas

    i, nodes = pandas.factorize(node)
    k, channels = pandas.factorize(variable)
    order, shape = _order(np.column_stack([place, i, k]), len(nodes) * len(channels), path)
    times = None if stamps is None else stamps[order].reshape(*shape, -1)[..., 0]
    signals = values[order].reshape(*shape, len(nodes), len(channels))
    return Windows(signals, tuple(map(str, nodes)), tuple(map(str, channels)), times=times)


def _order(place: np.ndarray, each: int, path: Path) -> tuple[np.ndarray, tuple[int, int]]:
    """The order that sorts rows by sample and step, and how many there are of both: every step of every sample."""
    order = np.lexsort(place.T[::-1])
    samples, steps = (len(np.unique(place[:, axis])) for axis in (0, 1))
    if len(place) != samples * steps * each or len(np.unique(place, axis=0)) != len(place):
        got = f"{len(place):,} rows for {samples:,} samples of {steps:,} steps in {path}"
        raise InputError(got, f"{each:,} for every step of every sample", "sample them again")
    return order, (samples, steps)


# -- arrays ----------------------------------------------------------------------------------------------------------


def _write_npz(path: Path, windows: Windows) -> None:
    single, units = windows.signals.shape[3] == 1, windows.units
    arrays: dict[str, Any] = {"signals": windows.signals[..., 0] if single else windows.signals}
    arrays |= {"node_ids": np.array(windows.names), "channels": np.array(windows.channels)}
    arrays |= {} if windows.times is None else {"times": windows.times}
    if any(units):
        arrays |= {"unit": np.array(units[0])} if single else {"units": np.array(units)}
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read_npz(path: Path) -> Windows:
    arrays = Archive(path)
    signals, ids, channels = arrays["signals"], arrays.names_under("node_ids"), arrays.names_under("channels")
    if signals.ndim not in (3, 4) or signals.dtype.kind not in "fiu":
        got = f"`signals` in {path} of shape {signals.shape} and type {signals.dtype}"
        raise InputError(got, "numbers (samples, steps, nodes[, channels])", "sample them again")
    signals = (signals if signals.ndim == 4 else signals[..., None]).astype(np.float64)
    units, stamps = arrays.names_under("units"), arrays.first("times")
    if units is None and "unit" in arrays:
        units = names_of(np.ravel(arrays["unit"]), str(path))
    times = None if stamps is None else clock.parsed(np.ravel(stamps), str(path)).reshape(np.shape(stamps))
    channels = channels or tuple(f"channel {k}" for k in range(signals.shape[3]))
    fits = times is None or times.shape == signals.shape[:2]
    if len(channels) != signals.shape[3] or not fits or (ids is not None and len(ids) != signals.shape[2]):
        got = f"`signals` in {path} of shape {signals.shape}, which its names and times do not fit"
        raise InputError(got, "one name a node and channel, one time a step", "sample them again")
    return Windows(signals, ids, channels, units or (), times)


def _write_nc(path: Path, windows: Windows) -> None:
    single = windows.signals.shape[3] == 1
    names = ("signals",) if single else windows.channels
    if not single:
        netcdf.refuse_names(names, path)
    units = windows.units or ("",) * len(names)
    arrays: dict[str, Any] = {
        name: (("sample", "step", "node"), windows.signals[..., k], {"units": units[k]} if units[k] else {})
        for k, name in enumerate(names)
    }
    arrays |= {} if windows.times is None else {"times": (("sample", "step"), windows.times)}
    netcdf.write_dataset(path, netcdf.need().Dataset(arrays, {"node": list(windows.names)}))


def _read_nc(path: Path) -> Windows:
    with netcdf.opened(path) as dataset:
        names = [name for name, variable in dataset.data_vars.items() if variable.dims == ("sample", "step", "node")]
        if not names:
            expected = "a variable of the dimensions (sample, step, node)"
            raise InputError(f"{path} with the variables {some(dataset.data_vars)}", expected, "sample them again")
        refuse_no_memory(sum(dataset[name].nbytes for name in names), str(path))
        signals = np.stack([dataset[name].to_numpy().astype(np.float64) for name in names], axis=3)
        ids = names_of(dataset["node"].to_numpy(), str(path)) if "node" in dataset.coords else None
        stamps = dataset["times"].to_numpy() if "times" in dataset else None
        times = None if stamps is None else clock.parsed(stamps.ravel(), str(path)).reshape(stamps.shape)
        units = tuple(str(dataset[name].attrs.get("units", "")) for name in names)
        channels = ("",) if names == ["signals"] else tuple(map(str, names))
        return Windows(signals, ids, channels, units, times)


# By ending: how windows are written and read.
FORMATS: dict[str, tuple[Callable[[Path, Windows], None], Callable[[Path], Windows]]] = {
    ".npz": (_write_npz, _read_npz),
    ".csv": (_write_csv, _read_csv),
    ".parquet": (_write_parquet, _read_parquet),
    ".nc": (_write_nc, _read_nc),
}
