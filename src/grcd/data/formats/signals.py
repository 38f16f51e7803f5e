"""Signals from files, by ending: the table of formats. Each has a module of its own, and makes a ``Table``.

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
                 netCDF-4 or netCDF-3; the unit is the variable's attribute `units`

Files of several channels are read by ``channels``.

A column of times is known by its name (time, timestamp, datetime, date); a first column without a name, or of dates
under another name, is one too. A long table has no further column. Rows are sorted by time. A column that says which
split a row belongs to is left out of the nodes when it is named (`split_by="fold"`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from ...core.errors import unknown
from ..notes import Note
from . import csv_signals, hdf5, netcdf, npz, parquet
from .refusals import existing
from .table import Table, refuse_no_label

# By ending: takes the path, the name of the split column, and the names of the nodes of a graph at hand.
READERS: dict[str, Callable[[Path, str | None, Collection[str]], Table]] = {
    ".csv": csv_signals.read,
    ".parquet": parquet.read,
    ".npz": npz.read_npz_signals,
    ".npy": npz.read_npy_signals,
    ".h5": hdf5.read_signals,
    ".hdf5": hdf5.read_signals,
    ".hdf": hdf5.read_signals,
    ".nc": netcdf.read,
}


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
    return settled(table, path)


def settled(table: Table, path: Path) -> Table:
    """The table of a file, checked and in the order of its times."""
    note = Note(f"the rows of {path.name} were not in the order of their times", "sorted")
    return table.checked(path).in_order(str(path), note)
