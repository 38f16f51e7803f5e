"""numpy's .npy and .npz files: signals, graphs, or both in one archive. No file is ever unpickled.

A large array is streamed: read block by block into the precision it is held in.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from ...core.errors import InputError, some
from ...core.files import whole
from .. import times
from .output import Output
from .refusals import bytes_of, damage_is_refused, refuse_claim, refuse_no_memory
from .stored_graph import LARGEST, StoredGraph
from .table import SeveralChannels, Table, held_in, names_of, unit_of

BLOCK = 1 << 22  # entries read at a time


class Archive:
    """The arrays of an .npz file by name, read when asked for."""

    def __init__(self, path: Path):
        self.path = path
        with damage_is_refused(path), zipfile.ZipFile(path) as file:
            claimed, stored = (
                sum(getattr(part, size) for part in file.infolist()) for size in ("file_size", "compress_size")
            )
            refuse_claim(claimed, min(stored, path.stat().st_size), str(path))
            self.names = [name.removesuffix(".npy") for name in file.namelist() if name.endswith(".npy")]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def signals(self, name: str) -> np.ndarray:  # (rows, nodes) float32 or float64
        self._refuse_absent(name)
        with damage_is_refused(self.path), zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as handle:
            return _streamed(handle, file.getinfo(f"{name}.npy").file_size, f"`{name}` in {self.path}")

    def dimensions(self, name: str) -> int:
        """How many an array has."""
        with damage_is_refused(self.path), zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as handle:
            return len(_header(handle, f"`{name}` in {self.path}")[0])

    def __getitem__(self, name: str) -> np.ndarray:
        self._refuse_absent(name)
        with damage_is_refused(self.path), zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as handle:
            return _read_whole(handle, file.getinfo(f"{name}.npy").file_size, f"`{name}` in {self.path}")

    def names_under(self, *names: str) -> tuple[str, ...] | None:
        """The list of names under the first of these that is there."""
        ids = self.first(*names)
        return None if ids is None else names_of(ids, str(self.path))

    def first(self, *names: str) -> np.ndarray | None:
        """The first of these that is there."""
        return next((self[name] for name in names if name in self), None)

    def _refuse_absent(self, name: str) -> None:
        if name not in self:
            raise InputError(
                f"{self.path} with the arrays {some(self.names) or 'none'}", f"an array `{name}`", "save it so"
            )


# -- signals ---------------------------------------------------------------------------------------------------------


def read_npy_signals(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """An array (samples, nodes), without names."""
    with damage_is_refused(path), path.open("rb") as handle:
        return Table(_streamed(handle, path.stat().st_size, str(path)))


def read_npz_signals(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """`signals`, and if there: names, times, a unit, and the split labels."""
    arrays, where = Archive(path), str(path)
    if "signals" in arrays and arrays.dimensions("signals") == 3:
        raise SeveralChannels.of(f"`signals` in {path} with three dimensions: time, node and channel")
    values, unit = arrays.signals("signals"), arrays.first("unit")
    return Table(values, *_beside(arrays, label, where), "" if unit is None else unit_of(unit, where))


def _beside(
    arrays: Archive, label: str | None, where: str
) -> tuple[tuple[str, ...] | None, np.ndarray | None, np.ndarray | None]:
    """Names of nodes, times and split labels, where they are there."""
    ids = arrays.names_under("node_ids", "sensor_ids", "station_ids")
    stamps, labels = arrays.first("timestamps", "times", "time"), None if label is None else arrays.first(label)
    return (
        ids,
        None if stamps is None else times.parsed(np.ravel(stamps), where),
        None if labels is None else np.array(names_of(np.ravel(labels), where, f"{label!r}")),
    )


def read_npz_channels(path: Path, label: str | None, nodes: Collection[str]) -> dict[str, Table]:
    """`signals` (rows, nodes, channels), with `channels`, their names, and `units`; or of one channel, as above."""
    arrays, where = Archive(path), str(path)
    if "signals" not in arrays or arrays.dimensions("signals") != 3:
        return {"": read_npz_signals(path, label, nodes)}
    values = arrays["signals"]
    if values.dtype.kind not in "fiu" or 0 in values.shape:
        what = f"`signals` in {path} of shape {values.shape} and type {values.dtype}"
        raise InputError(what, "numbers (time, node, channel), one or more of each", "save it so")
    names = arrays.names_under("channels") or tuple(f"channel {k}" for k in range(values.shape[2]))
    units = arrays.names_under("units") or ("",) * len(names)
    if not len(set(names)) == len(units) == values.shape[2]:
        what = f"{len(set(names))} names and {len(units)} units for {values.shape[2]} channels in {path}"
        raise InputError(what, "one of each a channel", "correct `channels` and `units`")
    ids, stamps, labels = _beside(arrays, label, where)
    held: np.ndarray = values.astype(held_in(values.dtype, values.size))
    return {name: Table(held[:, :, k], ids, stamps, labels, units[k]) for k, name in enumerate(names)}


def write(path: Path, output: Output) -> None:
    """Compressed; an ensemble goes into the archive from its own file."""
    arrays: dict[str, Any] = {"signals": output.signals}
    arrays |= {} if output.quantiles is None else {"quantiles": output.quantiles, "levels": np.array(output.levels)}
    arrays |= {"node_ids": np.array(output.node_ids)} | ({} if output.times is None else {"times": output.times})
    arrays |= {"unit": np.array(output.unit)} if output.unit else {}
    arrays |= {"channels": np.array(output.channels)} if output.channels else {}
    arrays |= {"units": np.array(output.units)} if any(output.units) else {}
    with whole(path) as temporary:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)
        if output.ensemble is not None:
            assert output.ensemble.filename is not None
            output.ensemble.flush()
            with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
                archive.write(output.ensemble.filename, "ensemble.npy")


# -- graphs ----------------------------------------------------------------------------------------------------------


def read_npy_graph(path: Path) -> StoredGraph:
    """An adjacency, without names."""
    with damage_is_refused(path), path.open("rb") as handle:
        return StoredGraph.adjacency(_read_whole(handle, path.stat().st_size, str(path)))


def read_npz_graph(path: Path) -> StoredGraph:
    """An adjacency, dense or as scipy saves a sparse one, or positions."""
    arrays = Archive(path)
    ids = arrays.names_under("node_ids", "sensor_ids", "station_ids")
    if "adjacency" in arrays:
        return StoredGraph.adjacency(arrays["adjacency"], ids, arrays.first("coords"))
    if {"format", "shape", "data"} <= set(arrays.names):
        return StoredGraph.adjacency(_sparse(path, arrays), ids)
    if "coords" in arrays:
        return StoredGraph.positions(arrays["coords"], ids)
    raise InputError(
        f"{path} with the arrays {some(arrays.names) or 'none'}", "`adjacency` or `coords`", "save one under that name"
    )


def _sparse(path: Path, arrays: Archive) -> sp.csr_array:
    shape = arrays["shape"]
    if shape.dtype.kind not in "iu" or shape.size != 2 or shape.max() > LARGEST:
        raise InputError(
            f"a sparse matrix of shape {shape.tolist()} in {path}", f"up to {LARGEST} nodes", "check the file"
        )
    with damage_is_refused(path):
        W = sp.load_npz(path)
        if hasattr(W, "check_format"):
            W.check_format(full_check=True)  # compiled code would follow a wrong index anywhere
        return sp.csr_array(W)


# -- arrays ----------------------------------------------------------------------------------------------------------


def _read_whole(handle: IO[bytes], size: int, what: str) -> np.ndarray:
    """An array of any shape and type, from a file of so many bytes."""
    shape, _, dtype = _header(handle, what)
    _refuse_short(handle, shape, dtype, size)
    handle.seek(0)
    return npy.read_array(handle, allow_pickle=False)


def _streamed(handle: IO[bytes], size: int, what: str) -> np.ndarray:
    shape, fortran, dtype = _header(handle, what)
    if dtype.kind not in "fiu":
        raise InputError(f"{what} of type {dtype}", "numbers", "save it as an array of numbers")
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"{what} of shape {shape}", "(samples, nodes), one or more of each", "reshape it")
    _refuse_short(handle, shape, dtype, size)
    held = held_in(dtype, shape[0] * shape[1])
    refuse_no_memory(bytes_of(shape, np.dtype(held)), what)
    if fortran:  # whole columns follow each other
        return _streamed_rows(handle, shape[::-1], dtype, held).T
    return _streamed_rows(handle, shape, dtype, held)


def _streamed_rows(handle: IO[bytes], shape: tuple[int, int], dtype: np.dtype, held: type) -> np.ndarray:
    rows, width = shape
    values: np.ndarray = np.empty(shape, dtype=held)
    step = max(1, BLOCK // width)
    for start in range(0, rows, step):
        count = min(step, rows - start)
        data = handle.read(count * width * dtype.itemsize)
        if len(data) < count * width * dtype.itemsize:
            raise ValueError("it ends too early")
        values[start : start + count] = np.frombuffer(data, dtype).reshape(count, width)
    return values


def _refuse_short(handle: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    if handle.tell() + bytes_of(shape, dtype) > size:
        raise ValueError("it ends too early")


def _header(handle: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(handle)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"npy format {version}")
    shape, fortran, dtype = readers[version](handle)
    if dtype.hasobject:
        raise InputError(f"{what}, an array of Python objects", "an array of numbers or text", "save it without pickle")
    return shape, fortran, dtype
