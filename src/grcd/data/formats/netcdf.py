"""netCDF through xarray: version 4, which is HDF5 and read by h5netcdf, and version 3, read by scipy.

The signals are the variable `signals`, or the only one with two dimensions: times first, then nodes. The unit is its
attribute `units`. An HDF5 file that leads to others is refused (`refusals`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.errors import InputError, some
from ...core.files import whole
from .. import times
from .output import Output
from .refusals import damage_is_refused, needed, refuse_hdf5, refuse_no_memory
from .table import NODE_NAMES, SeveralChannels, Table, held_in, names_of, unit_of


def need() -> ModuleType:
    needed("h5netcdf", "netcdf")
    return needed("xarray", "netcdf")


def read(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """One variable of numbers with two dimensions, and their coordinates if there are any."""
    with opened(path) as dataset:
        return _table(_variable(dataset, path), path)


def read_channels(path: Path, label: str | None, nodes: Collection[str]) -> dict[str, Table]:
    """A channel for every variable of numbers with two dimensions; one variable, or `signals`, is without a name."""
    with opened(path) as dataset:
        flat = _flat(dataset)
        if "signals" in dataset.data_vars or len(flat) < 2:
            return {"": _table(_variable(dataset, path), path)}
        refuse_no_memory(sum(dataset[name].nbytes for name in flat), str(path))
        return {str(name): _table(_times_first(dataset[name]), path) for name in flat}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    import h5py

    xarray = needed("xarray", "netcdf")
    with damage_is_refused(path):
        engine = "scipy"
        if h5py.is_hdf5(path):
            needed(engine := "h5netcdf", "netcdf")
            with h5py.File(path, "r") as file:
                refuse_hdf5(file)
        with xarray.open_dataset(path, engine=engine) as dataset:
            yield dataset


def _table(array: Any, path: Path) -> Table:
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


def _variable(dataset: Any, path: Path) -> Any:
    """`signals`, or the only variable with two dimensions; times first, then nodes."""
    flat = _flat(dataset)
    name = "signals" if "signals" in dataset.data_vars else flat[0] if len(flat) == 1 else None
    if name is None and flat:
        raise SeveralChannels.of(f"{path} with the variables {some(flat)}, and no `signals`")
    if name is None or dataset[name].ndim != 2 or dataset[name].dtype.kind not in "fiu":
        raise InputError(
            f"{path} with the variables {some(dataset.data_vars) or 'none'}",
            "a variable `signals` of numbers with dimensions (time, node)",
            "rename the variable",
        )
    return _times_first(dataset[name])


def _flat(dataset: Any) -> list:
    return [name for name, variable in dataset.data_vars.items() if variable.ndim == 2 and variable.dtype.kind in "fiu"]


def _times_first(array: Any) -> Any:
    node_first = array.dims[0].casefold() in NODE_NAMES or times.is_time(array.dims[1])
    return array.transpose(*array.dims[::-1]) if node_first else array


def write(path: Path, output: Output) -> None:
    """Version 4, made in memory: HDF5 itself does not survive a full disk. With an ensemble version 3, see below."""
    arrays, records = dict[str, Any](), list[np.ndarray]()
    parts: dict[str, Any] = {name: (..., k) for k, name in enumerate(output.channels)} or {"signals": ...}
    refuse_names(output.channels, path)
    coords: dict[str, Any] = {"node": list(output.node_ids)} | ({} if output.times is None else {"time": output.times})
    if output.quantiles is not None:
        coords["level"] = list(output.levels)
    for name, part in parts.items():
        about = dict(zip(output.channels, output.units, strict=False)).get(name, output.unit)
        units, start = {"units": about} if about else {}, f"{name}_" if output.channels else ""
        if output.ensemble is not None:
            records.append(output.ensemble[part])
            arrays[f"{start}ensemble"] = (("draw", output.row, "node"), records[-1][:1], units)
        arrays[name] = ((output.row, "node"), output.signals[part], units)
        if output.quantiles is not None:
            arrays[f"{start}quantiles"] = (("level", output.row, "node"), output.quantiles[part], units)
    write_dataset(path, need().Dataset(arrays, coords), records)


def refuse_names(channels: Sequence[str], path: Path) -> None:
    """Of channels that a variable cannot have, or that would be taken for something else on reading."""
    taken = {"signals", "node", "level", "draw", "sample", "step", *times.NAMES}
    if wrong := [name for name in channels if name in taken or "/" in name or name != name.strip()]:
        raise InputError(f"{some(wrong)} as a variable of {path}", "another name", "rename the channel, or write .npz")


def write_dataset(path: Path, dataset: Any, records: Sequence[np.ndarray] = ()) -> None:
    """``records``: arrays (draws, ...) of which the dataset has the first draw, in its order."""
    with whole(path) as temporary:
        if not records:
            temporary.write_bytes(dataset.to_netcdf(None, engine="h5netcdf"))
        else:
            dataset.to_netcdf(temporary, engine="scipy", format="NETCDF3_64BIT", unlimited_dims=["draw"])
            _append_records(temporary, records)


def _append_records(path: Path, records: Sequence[np.ndarray]) -> None:
    """Draw by draw, for all of them may not fit into memory, to a netCDF-3 file that has the first.

    In that format a dimension without limit comes first, and its records are what the file ends with: each is its
    numbers, variable by variable, most significant byte first.
    """
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for draw in range(1, len(records[0])):
            for record in records:
                file.write(record[draw].astype(">f8").tobytes())
        file.seek(4)  # behind "CDF" and the version: how many there are
        file.write(len(records[0]).to_bytes(4, "big"))
