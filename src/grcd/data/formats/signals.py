"""Signals from files, by ending: a table of readings, one row a sample, one column a node.

.csv wide        time,north,south            one column a node; the time column may be left out
                 2024-01-01T00:00,3.1,2.9
                 2024-01-01T01:00,,2.8       an empty cell is a gap

.csv long        time,node,value             also `sensor` or `station` for `node`, `reading` for `value`
                 2024-01-01T00:00,north,3.1
                 2024-01-01T00:00,south,2.9  what has no row is a gap

.parquet         frame = pandas.DataFrame(readings, columns=names, index=times)
                 frame.to_parquet("readings.parquet")
                 wide or long, like CSV; an index of times is the time column

.npz             numpy.savez("readings.npz", signals=readings, node_ids=names)
                 further arrays, if there: timestamps, unit, and the graph as adjacency or coords

.npy             numpy.save("readings.npy", readings), an array (samples, nodes) without names

.h5 .hdf5 .hdf   frame.to_hdf("readings.h5", key="df"), as METR-LA's original metr-la.h5

.nc              array = xarray.DataArray(readings, dims=("time", "node"), coords={"time": times, "node": names})
                 array.to_dataset(name="signals").to_netcdf("readings.nc")
                 the unit is the variable's attribute `units`

A column of times is known by its name (time, timestamp, datetime, date); a first column without a name, or of dates
under another name, is one too. A long table has no further column. Rows are sorted by time. A column that says which
split a row belongs to is left out of the nodes when it is named (`split_by="fold"`).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.errors import InputError, some, unknown
from .. import times
from .arrays import Archive, held_in, names_of, read_npy, unit_of
from .claims import refuse_hdf5, refuse_no_memory
from .columns import Columns, read_columns, unreadable

NODE_NAMES = ("node", "node_id", "sensor", "sensor_id", "station", "station_id")
VALUE_NAMES = ("value", "reading")
ENGINES = ("h5netcdf", "netCDF4")  # either reads the HDF5 inside netCDF-4
SPARSE = 10**9  # entries of a long table made wide, where most of them would be gaps


@dataclass(frozen=True, eq=False)
class Table:
    """Readings as a file has them, rows in the order of their times."""

    values: np.ndarray  # (rows, nodes) float32 or float64, NaN where there is no reading
    node_ids: tuple[str, ...] | None = None  # None if the file names no nodes
    times: np.ndarray | None = None  # (rows,) datetime64[ns] or numbers, ascending
    labels: np.ndarray | None = None  # (rows,) what the split column says
    unit: str = ""
    notes: tuple[str, ...] = ()  # what was done on reading that the user should know


def read_signals(path: str | Path, label: str | None = None, nodes: Collection[str] = ()) -> Table:
    """A table from a file; ``label`` names a column that is no node (the split column).

    ``nodes`` are the names of a graph at hand: a first row of such names is a header, even if they are numbers.
    """
    path = existing(path)
    if path.suffix.lower() not in READERS:
        raise unknown("ending of a signals file", path.suffix, READERS)
    table = READERS[path.suffix.lower()](path, label, nodes)
    if table.labels is None:
        refuse_no_label(label, [], path)
    return _in_order(_checked(table, path), path)


def existing(path: str | Path) -> Path:
    path = Path(path)
    if not os.path.isfile(path):  # Path.is_file raises on a name that is too long
        raise InputError(f"{path}, which is no file", "an existing file", "check the path")
    return path


def refuse_no_label(label: str | None, names: list[str], path: Path) -> None:
    if label is not None and label not in names:
        raise InputError(
            f"{path} without a column {label!r}",
            "the column that says train, val or test",
            "check its name, or split by `chronological` or `random`",
        )


def _checked(table: Table, path: Path) -> Table:
    rows, nodes = table.values.shape
    if rows == 0 or nodes == 0:
        raise InputError(f"{rows} rows of {nodes} nodes in {path}", "one or more of each", "export the table again")
    ids = table.node_ids
    if ids is not None and (len(ids) != nodes or len(set(ids)) != nodes):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InputError(
            f"{len(ids)} node names for {nodes} columns in {path}; twice: {some(twice) or 'none'}",
            "one name a column, each once",
            "correct the names",
        )
    for what, column in (("times", table.times), ("split labels", table.labels)):
        if column is not None and np.shape(column) != (rows,):
            raise InputError(f"{np.shape(column)} {what} for {rows} rows in {path}", "one a row", "correct them")
    return table


def _in_order(table: Table, path: Path) -> Table:
    if table.times is None:
        return table
    order, ordered = times.in_order(table.times, str(path))
    if order is None:
        return table
    labels = None if table.labels is None else table.labels[order]
    note = f"the rows of {path.name} were not in the order of their times: sorted"
    return replace(table, values=table.values[order], times=ordered, labels=labels, notes=(*table.notes, note))


# -- tables with named columns ---------------------------------------------------------------------------------------


def roles_of(names: list[str], label: str | None, path: Path) -> dict[str, str] | None:
    """Time, node and value columns of a long table; None for a wide one."""
    rest = [name for place, name in enumerate(names) if name != label and (place or not is_unnamed(name))]
    roles = {role: name for name in reversed(rest) if (role := role_of(name))}
    if set(roles) != {"time", "node", "value"}:
        return None
    if more := [name for name in rest if name not in roles.values()]:
        raise InputError(
            f"{path} with the columns {', '.join(roles.values())}, and {some(repr(name) for name in more)}",
            "a long table, which has exactly time, node and value, or a wide one, with one column a node",
            "remove the other columns; one that says train, val or test is named with --split-by",
        )
    return roles


def is_unnamed(name: str) -> bool:
    """As a first column: the index of a pandas frame, which has no name, or got one when the file was read again."""
    return name == "" or name.casefold() == "unnamed: 0"


def role_of(name: str) -> str | None:
    if times.is_time(name):
        return "time"
    return "node" if name.casefold() in NODE_NAMES else "value" if name.casefold() in VALUE_NAMES else None


def _csv(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    def text(names: list[str]) -> list[str]:
        roles = roles_of(names, label, path)
        if roles is not None:
            return [name for name in names if name != roles["value"]]
        return [
            name
            for place, name in enumerate(names)
            if times.is_time(name) or name == label or (place == 0 and is_unnamed(name))
        ]

    columns = read_columns(path, text, nodes)
    refuse_no_label(label, columns.names, path)
    roles = roles_of(columns.names, label, path)
    labels = columns.text(label) if label in columns.names else None
    if roles is not None:
        value = columns.numbers([roles["value"]])[:, 0]
        return pivoted(
            times.parsed(columns.text(roles["time"]), str(path)), columns.text(roles["node"]), value, path, labels
        )
    return _wide_csv(columns, label, labels)


def _wide_csv(columns: Columns, label: str | None, labels: np.ndarray | None) -> Table:
    path, names = columns.path, columns.names
    clock = [name for name in names if times.is_time(name) and name != label]
    if len(clock) > 1:
        raise InputError(f"several time columns in {path}: {some(clock)}", "one", "rename or remove the others")
    stamps, notes = None, tuple[str, ...]()
    if clock:
        stamps = times.parsed(columns.text(clock[0]), str(path))
        if is_unnamed(names[0]):
            clock, notes = [names[0], *clock], (f"the first column of {path.name} has no name: left out",)
    elif names[0] != label:
        clock, stamps, notes = _first_column(columns)
    nodes = [name for name in names if name not in clock and name != label]
    if not nodes:
        raise InputError(f"{path} without a column of readings", "one column a node", "export the table again")
    return Table(columns.numbers(nodes), tuple(nodes), stamps, labels, notes=notes)


def _first_column(columns: Columns) -> tuple[list[str], np.ndarray | None, tuple[str, ...]]:
    """The first column if it is an index or holds dates under another name: its name, times, and what to say."""
    name, cells = columns.names[0], columns.frame[0]
    if is_unnamed(name) or name.casefold() == "index":
        if _numbers_rows(cells):
            return [name], None, (f"the first column of {columns.path.name} numbers the rows: left out",)
        return [name], times.parsed(cells, str(columns.path)), ()
    if cells.dtype.kind in "iufb":
        return [], None, ()
    try:
        stamps = times.parsed(cells, str(columns.path))
    except InputError:
        return [], None, ()  # text: said where numbers are read
    return [name], stamps, (f"column {name!r} of {columns.path.name} is taken as the time",)


def _numbers_rows(cells: np.ndarray) -> bool:
    """From 0 up; again and again where several tables were put together."""
    import pandas

    numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(float)
    return bool(numbers[0] == 0 and ((np.diff(numbers) == 1) | (numbers[1:] == 0)).all())


def pivoted(
    stamps: np.ndarray,
    nodes: Sequence[str] | np.ndarray,
    values: np.ndarray,
    path: Path,
    labels: np.ndarray | None = None,
) -> Table:
    """A long table made wide: rows are the distinct times, columns the nodes in order of appearance."""
    import pandas

    row_of, rows = pandas.factorize(stamps, sort=True)
    column_of, columns = pandas.factorize(np.asarray(nodes, dtype=object))
    if len(rows) * len(columns) > max(SPARSE, 100 * len(values)):
        raise InputError(
            f"{len(rows)} times and {len(columns)} nodes, but only {len(values)} rows in {path}: most would be gaps",
            "readings of most nodes at most times",
            "round the times to a common clock, or leave out nodes that are hardly read",
        )
    place = row_of.astype(np.int64) * len(columns) + column_of
    first = np.unique(place, return_index=True)[1]
    if len(first) < len(place):
        again = int(np.setdiff1d(np.arange(len(place)), first)[0])
        raise InputError(
            f"time {stamps[again]} and node '{nodes[again]}' twice in {path}, again in row {again + 1}",
            "one value a time and node",
            "merge those rows",
        )
    wide = np.full((len(rows), len(columns)), np.nan)
    wide.ravel()[place] = values
    label = None
    if labels is not None:
        label = np.empty(len(rows), dtype=object)
        label[row_of] = labels
        if (label[row_of] != labels).any():
            raise InputError(f"{path} with several splits at one time", "one split a time", "correct the split column")
    return Table(wide, tuple(str(name) for name in columns), np.asarray(rows), label)


def _parquet(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    from .parquet import read_parquet

    return read_parquet(path, label)


# -- arrays ----------------------------------------------------------------------------------------------------------


def _npz(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    arrays = Archive(path)
    values = arrays.signals("signals")
    ids, stamps, unit = (
        arrays.first("node_ids", "sensor_ids"),
        arrays.first("timestamps", "times", "time"),
        arrays.first("unit"),
    )
    return Table(
        values,
        None if ids is None else names_of(ids, str(path)),
        None if stamps is None else times.parsed(np.ravel(stamps), str(path)),
        None
        if label is None or label not in arrays
        else np.array(names_of(np.ravel(arrays[label]), str(path), f"{label!r}")),
        "" if unit is None else unit_of(unit, str(path)),
    )


def _hdf5(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    from .hdf5 import read_frame

    values, names, stamps = read_frame(path)
    return Table(values, tuple(names), stamps)


def _netcdf(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    xarray = need_xarray()
    try:
        if _is_hdf5(path):
            _refuse_netcdf_4(path)
        with xarray.open_dataset(path) as file:
            array = _variable(file, path)
            refuse_no_memory(array.nbytes, str(path))
            # Asked for a coordinate that is not there, xarray makes one up.
            clock, ids = (array.coords[dim].to_numpy() if dim in array.coords else None for dim in array.dims)
            values = array.to_numpy()
            return Table(
                values.astype(held_in(values.dtype, values.size)),
                None if ids is None else names_of(ids, str(path)),
                None if clock is None else times.parsed(clock, str(path)),
                unit=unit_of(array.attrs.get("units", ""), str(path)),
            )
    except InputError:
        raise
    except Exception as error:  # each engine raises its own
        if _is_hdf5(path) and not any(map(importlib.util.find_spec, ENGINES)):
            raise InputError(
                f"{path}, a netCDF-4 file, and neither {' nor '.join(ENGINES)} on this machine",
                "one of them, or a netCDF-3 file",
                f'pip install {ENGINES[0]}, or write the file with to_netcdf(path, format="NETCDF3_64BIT")',
            ) from None
        raise unreadable(path, error) from None


def _is_hdf5(path: Path) -> bool:
    import h5py

    return h5py.is_hdf5(path)


def _refuse_netcdf_4(path: Path) -> None:
    import h5py

    with h5py.File(path, "r") as file:
        refuse_hdf5(file)


def _variable(file: Any, path: Path) -> Any:
    """`signals`, or the only variable with two dimensions; times first, then nodes."""
    flat = [name for name, variable in file.data_vars.items() if variable.ndim == 2]
    name = "signals" if "signals" in file.data_vars else flat[0] if len(flat) == 1 else None
    if name is None or file[name].ndim != 2 or file[name].dtype.kind not in "fiu":
        raise InputError(
            f"{path} with the variables {some(file.data_vars) or 'none'}",
            "a variable `signals` of numbers with dimensions (time, node)",
            "rename the variable",
        )
    array = file[name]
    node_first = array.dims[0].casefold() in NODE_NAMES or times.is_time(array.dims[1])
    return array.transpose(*array.dims[::-1]) if node_first else array


READERS: dict[str, Callable[[Path, str | None, Collection[str]], Table]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".npz": _npz,
    ".npy": lambda path, label, nodes: Table(read_npy(path)),
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".hdf": _hdf5,
    ".nc": _netcdf,
}


def need_xarray() -> ModuleType:
    try:
        import xarray
    except ImportError:
        raise extra("xarray", "netcdf") from None
    return xarray


def extra(package: str, name: str) -> InputError:
    """The error for a file ending whose optional package is not installed."""
    return InputError(f"no {package} on this machine", f"{package} for this file ending", f'pip install "grcd[{name}]"')
