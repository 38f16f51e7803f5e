"""MATLAB files, v5 (scipy) and v7.3 (h5py), as one tree: structs are dicts, cells lists, the rest arrays and text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .refusals import damage_is_refused, refuse_datasets, refuse_hdf5

DEEPEST = 20  # references may go in circles


def read_matlab(path: Path) -> dict:
    """Every variable by its name. Arrays of a v7.3 file come out transposed: MATLAB's first axis is last there."""
    import h5py
    from scipy.io import loadmat

    with damage_is_refused(path, "a MATLAB file"):
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                refuse_hdf5(file)
                return {name: _node(file, file[name]) for name in file if not name.startswith("#")}
        return loadmat(path, simplify_cells=True)


def _node(file: Any, node: Any, depth: int = 0) -> object:
    """A v7.3 file is HDF5: structs are groups, cells hold references, text is numbers marked as such."""
    import h5py

    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(node, h5py.Group):
        return {name: _node(file, node[name], depth + 1) for name in node}
    value = node[()]
    if h5py.check_ref_dtype(node.dtype):
        return [_referred(file, file[reference], depth + 1) for reference in value.flat if reference]
    if node.attrs.get("MATLAB_class") == b"char":
        return "".join(map(chr, value.T.flat))
    return value


def _referred(file: Any, node: Any, depth: int) -> object:
    """What no group may have a link to, and nobody has looked at yet."""
    import h5py

    if isinstance(node, h5py.Dataset):
        refuse_datasets([node], Path(file.filename))
    return _node(file, node, depth)


def children(tree: object) -> list:
    """What a struct or a cell holds."""
    if isinstance(tree, dict):
        return list(tree.values())
    if isinstance(tree, np.ndarray) and tree.dtype == object:
        return list(tree.flat)
    return tree if isinstance(tree, list) else []


def leaves(tree: object) -> Iterator[np.ndarray | list]:
    """All arrays of numbers, in float64, and all cells: each as a whole, then what is in it."""
    if isinstance(tree, np.ndarray) and tree.dtype.kind in "fiu":
        yield tree.astype(np.float64)
    elif isinstance(tree, np.ndarray | list):
        yield tree if isinstance(tree, list) else list(tree.flat)
    for child in children(tree):
        yield from leaves(child)
