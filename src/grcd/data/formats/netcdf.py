"""netCDF through xarray: version 4, which is HDF5 and read by h5netcdf, and version 3, read by scipy. Written is 4.

The signals are the variable `signals`, or the only one with two dimensions: times first, then nodes. The unit is its
attribute `units`. An HDF5 file that leads to others is refused (`refusals`).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.errors import InputError, some
from ...core.files import whole
from .. import times
from .output import Output
from .refusals import damage_is_refused, needed, refuse_hdf5, refuse_no_memory
from .table import NODE_NAMES, Table, held_in, names_of, unit_of


def need() -> ModuleType:
    needed("h5netcdf", "netcdf")
    return needed("xarray", "netcdf")


def read(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """One variable of numbers with two dimensions, and their coordinates if there are any."""
    import h5py

    xarray = needed("xarray", "netcdf")
    with damage_is_refused(path):
        engine = "scipy"
        if h5py.is_hdf5(path):
            needed(engine := "h5netcdf", "netcdf")
            with h5py.File(path, "r") as file:
                refuse_hdf5(file)
        with xarray.open_dataset(path, engine=engine) as dataset:
            return _table(_variable(dataset, path), path)


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
    flat = [name for name, variable in dataset.data_vars.items() if variable.ndim == 2]
    name = "signals" if "signals" in dataset.data_vars else flat[0] if len(flat) == 1 else None
    if name is None or dataset[name].ndim != 2 or dataset[name].dtype.kind not in "fiu":
        raise InputError(
            f"{path} with the variables {some(dataset.data_vars) or 'none'}",
            "a variable `signals` of numbers with dimensions (time, node)",
            "rename the variable",
        )
    array = dataset[name]
    node_first = array.dims[0].casefold() in NODE_NAMES or times.is_time(array.dims[1])
    return array.transpose(*array.dims[::-1]) if node_first else array


def write(path: Path, output: Output) -> None:
    """Version 4; an ensemble draw by draw: all of them may not fit."""
    arrays: dict[str, Any] = {"signals": ((output.row, "node"), output.signals)}
    coords: dict[str, Any] = {"node": list(output.node_ids)}
    if output.quantiles is not None:
        arrays["quantiles"], coords["level"] = (("level", output.row, "node"), output.quantiles), list(output.levels)
    coords |= {} if output.times is None else {"time": output.times}
    dataset, about = need().Dataset(arrays, coords), {"units": output.unit} if output.unit else {}
    for name in arrays:
        dataset[name].attrs |= about
    with whole(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")
        if output.ensemble is not None:
            _append(temporary, output.ensemble, (output.row, "node"), about)


def _append(path: Path, ensemble: np.ndarray, dimensions: tuple[str, str], about: dict[str, str]) -> None:
    import h5netcdf

    with h5netcdf.File(path, "a") as file:
        file.dimensions["draw"] = len(ensemble)
        variable = file.create_variable("ensemble", ("draw", *dimensions), np.float64)
        variable.attrs.update(about)
        for number, draw in enumerate(ensemble):
            variable[number] = draw
