"""Labelled arrays (xarray) in and out: dimensions and coordinates by name, and back in the order they came in.

A ``DataArray`` has the dimensions (time, node) or (time, node, channel), in any order; a ``Dataset`` has a variable a
channel. A dimension is known by its name (``time``, ``node``, ``station``, ``channel``, ...), or else by its place
among those that are left. Coordinates of nodes and channels are matched by name; without them the order is the model's.

What comes out has the dimensions, coordinates, name and attributes that went in, and one dimension more in front where
there are draws (``draw``) or quantiles (``quantile``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InputError, some
from . import times as clock
from .formats.table import CHANNEL_NAMES, NODE_NAMES
from .notes import Note, warn
from .series import Series

if TYPE_CHECKING:
    from xarray import DataArray

NAMES = {"time": (*clock.NAMES, "sample", "row"), "node": NODE_NAMES, "channel": CHANNEL_NAMES}


@dataclass(frozen=True, eq=False)
class Labelled:
    """Readings of a labelled array in the model's order, and what it takes to make one like it."""

    values: np.ndarray  # (rows, nodes, channels) float64, in the order of time, NaN where missing
    times: np.ndarray | None  # (rows,) ascending; None where the dimension of time has no coordinate
    array: DataArray  # as it came
    dims: tuple[Hashable, ...]  # of time, nodes and, if there is one, channels
    order: np.ndarray  # (rows,) which row of the array each row is
    nodes: np.ndarray  # (nodes,) the place in the model of each node that comes out
    channels: np.ndarray  # (channels,) likewise
    coords: Mapping[Hashable, Any]  # of what comes out
    variables: bool  # whether it is a dataset with a variable a channel

    filled = False  # draws are what comes back

    @classmethod
    def of(
        cls, x: Any, nodes: Sequence[str], channels: Sequence[str] = ("",), absent: bool = False, timed: bool = True
    ) -> Labelled:
        """An array of these nodes and channels; ``absent`` and ``timed`` as of ``frames.Frame``."""
        array = as_array(x)
        dims = _dims(array)
        cells = array.transpose(*dims).to_numpy()
        if cells.dtype.kind not in "fiub":
            raise InputError(f"a labelled array of type {cells.dtype}", "numbers", "convert it")
        cells = cells.astype(np.float64).reshape(*cells.shape[:2], -1)
        coords = {name: c for name, c in array.coords.items() if {*c.dims} <= {*dims}}
        their, rest = _matched(array, dims[1], nodes, "node", absent)
        those, _ = _matched(array, dims[2] if len(dims) > 2 else None, channels, "channel")
        times, order = _times(array, dims[0]) if timed else (None, None)
        order = np.arange(len(cells)) if order is None else order
        values = np.full((len(cells), len(nodes), len(channels)), np.nan)
        values[:, their[:, None], those[None]] = cells[order]
        if len(rest):
            coords = {name: c for name, c in coords.items() if dims[1] not in c.dims}
            own = array.coords[dims[1]].to_numpy().astype(object)
            coords[dims[1]] = (dims[1], np.append(own, [nodes[k] for k in rest]))
        return cls(values, times, array, dims, order, np.append(their, rest), those, coords, is_dataset(x))

    def table(self, values: np.ndarray, index: np.ndarray | None = None) -> Any:
        """``values`` (rows, nodes, channels) as an array like the one that came: of its rows, or of others."""
        return self._like(values, (), {}, index)

    def bands(self, values: np.ndarray, levels: Sequence[float], index: np.ndarray | None = None) -> Any:
        """``values`` (levels, rows, nodes, channels)."""
        return self._like(values, ("quantile",), {"quantile": list(levels)}, index)

    def draws(self, values: np.ndarray, index: np.ndarray | None = None) -> Any:
        """``values`` (draws, rows, nodes, channels)."""
        return self._like(values, ("draw",), {"draw": np.arange(len(values))}, index)

    def scores(self, values: np.ndarray, name: str) -> DataArray:
        """A number a row."""
        import xarray

        coords = {key: c for key, c in self.coords.items() if getattr(c, "dims", None) == self.dims[:1]}
        return xarray.DataArray(values[np.argsort(self.order)], coords, self.dims[:1], name)

    def ahead(self, horizon: int) -> np.ndarray:  # (horizon,)
        """The times, or the numbers, of so many rows to come."""
        rows = len(self.values)
        if self.times is None:
            return np.arange(rows, rows + horizon)
        every = Series(self.values, self.times).interval
        if every is None:
            raise InputError("an array of a single row", "two rows at the least", "tell how far apart rows are by two")
        return self.times[-1] + np.arange(1, horizon + 1) * every

    def _like(
        self, values: np.ndarray, front: tuple[str, ...], more: Mapping[str, Any], index: np.ndarray | None
    ) -> Any:
        import xarray

        cells = values if index is not None else np.take(values, np.argsort(self.order), axis=len(front))
        cells = cells[..., self.nodes, :][..., self.channels]
        coords = dict(self.coords) | dict(more)
        if index is not None:
            coords = {key: c for key, c in coords.items() if self.dims[0] not in getattr(c, "dims", ())}
            coords[self.dims[0]] = index
        cells = cells if len(self.dims) > 2 else cells[..., 0]
        array = xarray.DataArray(cells, coords, (*front, *self.dims), self.array.name, self.array.attrs)
        array = array.transpose(*front, *self.array.dims)
        return array.to_dataset(self.dims[2]) if self.variables else array


def is_labelled(x: Any) -> bool:
    """Whether it is an xarray object."""
    return hasattr(x, "dims") and hasattr(x, "coords")


def is_dataset(x: Any) -> bool:
    """Whether it has variables."""
    return is_labelled(x) and hasattr(x, "data_vars")


def as_array(x: Any) -> DataArray:
    """The variables of a dataset are channels."""
    if not is_dataset(x):
        return x
    shapes = {name: {*variable.dims} for name, variable in x.data_vars.items()}
    if not shapes or any(dims != next(iter(shapes.values())) for dims in shapes.values()):
        raise InputError(
            f"a dataset with the variables {some(shapes) or 'none'}",
            "one or more that all have the dimensions (time, node)",
            "drop the others, or pass one variable: dataset['name']",
        )
    return x.to_array("channel")


def channels_of(x: Any) -> list[str]:
    """Names of channels; one without a name where there is no such dimension."""
    array = as_array(x)
    dims = _dims(array)
    if len(dims) < 3:
        return [""]
    if dims[2] in array.coords:
        return [str(name) for name in array.coords[dims[2]].to_numpy()]
    return [f"channel {k}" for k in range(array.sizes[dims[2]])]


def nodes_of(x: Any) -> list[str] | None:
    """Names of nodes, if they have a coordinate."""
    array = as_array(x)
    node = _dims(array)[1]
    return [str(name) for name in array.coords[node].to_numpy()] if node in array.coords else None


def _dims(array: DataArray) -> tuple[Hashable, ...]:
    """The dimensions of time, nodes and, if there are three, channels."""
    if array.ndim not in (2, 3):
        got = f"a labelled array with the dimensions {some(array.dims) or 'none'}"
        raise InputError(got, "(time, node) or (time, node, channel)", "select or stack the others")
    roles = ("time", "node", "channel")[: array.ndim]
    named = {role: [dim for dim in array.dims if str(dim).casefold() in NAMES[role]] for role in roles}
    dims = {role: found[0] for role, found in named.items() if len(found) == 1}
    left = [dim for dim in array.dims if dim not in dims.values()]
    return tuple(dims[role] if role in dims else left.pop(0) for role in roles)


def _matched(
    array: DataArray, dim: Hashable | None, names: Sequence[str], what: str, absent: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The place of each entry of a dimension among ``names``, and the places that have no entry."""
    count = 1 if dim is None else array.sizes[dim]
    if dim is None or dim not in array.coords:
        if count != len(names):
            got = f"{count} {what}{'s' * (count != 1)} without names in a labelled array"
            raise InputError(got, f"{len(names)}, as the model has", f"add a coordinate with the names of {what}s")
        return np.arange(count), np.arange(0)
    own, place = [str(name) for name in array.coords[dim].to_numpy()], {name: k for k, name in enumerate(names)}
    strange, lacking = [name for name in own if name not in place], [name for name in names if name not in {*own}]
    if strange or len({*own}) < len(own):
        wrong = strange or [name for name, count in Counter(own).items() if count > 1]
        why = "that the model does not know" if strange else "that come twice"
        raise InputError(f"{what}s {why}: {some(wrong)}", f"each {what} of the model once", "rename or drop them")
    if lacking and not (absent and len(lacking) < len(names)):
        raise InputError(f"a labelled array without {some(lacking)}", f"every {what}", "reindex it: gaps are NaN")
    if lacking:
        warn([Note(f"the labelled array has no {some(lacking)}", "all of their readings are gaps")], 6)
    return np.array([place[name] for name in own]), np.array([place[name] for name in lacking], dtype=int)


def _times(array: DataArray, dim: Hashable) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Times in their order, and the order, if the dimension has dates."""
    labels = array.coords[dim].to_numpy() if dim in array.coords else None
    text = labels is not None and labels.dtype.kind in "OU" and len(labels) > 0 and isinstance(labels[0], str)
    if labels is None or not (labels.dtype.kind == "M" or text):
        return None, None
    order, times = clock.in_order(clock.parsed(labels, f"the coordinate {dim}"), f"the coordinate {dim}")
    return times, order
