"""A pandas DataFrame in an HDF5 file (`to_hdf`, format "fixed"), read with h5py: no pytables, no unpickling.

    /KEY                 a group with pandas_type = "frame"
    /KEY/axis0           column names: text as fixed-width bytes, or numbers
    /KEY/axis1           row labels; for times int64 with the attribute kind = "datetime64" (ns) or "datetime64[unit]"
    /KEY/block0_items    the names of the columns of the first block; one block a type
    /KEY/block0_values   their values (rows, columns of the block)

What pandas could only pickle (columns of text, mixed names) is refused, and so is an index that is neither times nor
row numbers from 0 up, and whatever leads out of the file (`refusals`). A time zone is not read: times come out as
stored, which is in UTC where the frame had a zone.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InputError, some, unknown
from .. import times
from .refusals import damage_is_refused, refuse_hdf5
from .table import Table, held_in

if TYPE_CHECKING:
    import h5py

UNITS = ("s", "ms", "us", "ns")


def read_frame(
    path: str | Path, key: str | None = None
) -> tuple[np.ndarray, list[str], np.ndarray | None]:  # values (rows, columns), column names, times (rows,)
    """The frame under ``key``, or the only one there is: values, names, and times in ns if rows have them."""
    import h5py

    path = Path(path)
    with damage_is_refused(path, "HDF5"), h5py.File(path, "r") as file:
        refuse_hdf5(file)
        return _frame(file[_key(path, _frames(file), key)], path)


def read_signals(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """The only frame of the file."""
    values, names, stamps = read_frame(path)
    return Table(values, tuple(names), stamps)


def _frames(file: h5py.File) -> dict[str, str]:
    """Every frame's key and how it is stored."""
    frames = {}

    def note(name: str, node: object) -> None:
        kind = _attribute(node, "pandas_type")
        if kind.startswith("frame"):
            frames[name] = kind

    file.visititems(note)
    return frames


def _key(path: Path, frames: dict[str, str], key: str | None) -> str:
    if not frames:
        raise InputError(
            f"{path}, which holds no DataFrame", "one written by pandas", 'write it with frame.to_hdf(path, key="df")'
        )
    if key is None and len(frames) > 1:
        raise InputError(
            f"{path} with {len(frames)} frames: {some(frames)}",
            "one frame",
            'write the one that counts to a file of its own: frame.to_hdf("one.h5", key="df")',
        )
    key = next(iter(frames)) if key is None else key.strip("/")
    if key not in frames:
        raise unknown(f"key in {path.name}:", key, frames)
    if frames[key] != "frame":
        raise InputError(
            f'{path} with `{key}` in format "table"',
            'format "fixed", which can be read without pytables',
            'write it with frame.to_hdf(path, key="df", format="fixed"), or as .csv or .parquet',
        )
    return key


def _frame(group: h5py.Group, path: Path) -> tuple[np.ndarray, list[str], np.ndarray | None]:
    columns = _names(group["axis0"], path)
    place = {name: i for i, name in enumerate(columns)}
    rows = group["axis1"].shape[0]
    blocks = [f"block{i}" for i in range(len(group)) if f"block{i}_values" in group]
    kind = np.result_type(*(group[f"{block}_values"].dtype for block in blocks)) if blocks else np.dtype(float)
    values = np.empty((rows, len(columns)), dtype=held_in(kind, rows * len(columns)))
    filled = np.zeros(len(columns), dtype=int)
    for block in blocks:
        where = [place[name] for name in _names(group[f"{block}_items"], path)]
        values[:, where] = _numbers(group[f"{block}_values"], (rows, len(where)), path)
        filled[where] += 1
    if not values.size or (filled != 1).any() or len(place) < len(columns):
        empty = [name for name, count in zip(columns, filled, strict=True) if count != 1]
        raise InputError(
            f"{path}, a frame of {rows} rows and {len(columns)} columns, without values for {some(empty) or 'any'}",
            "a value in every column, each column once",
            "get or make the file again",
        )
    return values, columns, _times(group["axis1"], path)


def _numbers(node: h5py.Dataset, shape: tuple[int, int], path: Path) -> np.ndarray:
    # Dates are stored as integers too: `value_type` tells them apart.
    if node.dtype.kind not in "fiu" or _attribute(node, "value_type"):
        raise _pickled(path, "columns that are not numbers")
    if node.shape != shape:
        raise ValueError(f"{node.name} is {node.shape}, its axes say {shape}")
    return node[()]


def _names(node: h5py.Dataset, path: Path) -> list[str]:
    if node.dtype.kind == "S":
        return [name.decode() for name in node[()]]
    if node.dtype.kind in "fiu" and node.ndim == 1:
        return [str(name) for name in node[()].tolist()]
    raise _pickled(path, "column names that are neither text nor numbers")


def _times(node: h5py.Dataset, path: Path) -> np.ndarray | None:
    kind = _attribute(node, "kind")
    if not kind.startswith("datetime64"):
        if not np.array_equal(node[()], np.arange(node.shape[0])):
            raise InputError(
                f"{path} with an index of kind {kind or node.dtype}",
                "times, or row numbers from 0 up",
                "make the times the index, or drop it with frame.reset_index(drop=True)",
            )
        return None
    unit = kind.removeprefix("datetime64").strip("[]") or "ns"
    if unit not in UNITS or node.dtype.kind != "i":
        raise ValueError(f"times of kind {kind} stored as {node.dtype}")
    return times.parsed(node[()].astype(np.int64).view(f"datetime64[{unit}]"), str(path))


def _attribute(node: Any, name: str) -> str:
    """A text attribute; empty if it is not there."""
    value = node.attrs.get(name, b"")
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _pickled(path: Path, what: str) -> InputError:
    return InputError(
        f"{path} with {what}",
        "columns of numbers under names that are text or numbers",
        "drop the other columns and write the file again; pickled objects are never read",
    )
