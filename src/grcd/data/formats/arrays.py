"""Arrays from .npy and .npz files, streamed: a large one is read block by block into the precision it is held in.

Signals are held in float64, or in float32 if the file has no more than that, or if they are so many (`LARGE`) that a
float64 copy would be a burden. No file is ever unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from ...core.errors import InputError, some
from .claims import bytes_of, refuse_claim, refuse_no_memory
from .columns import unreadable

LARGE = 1 << 27  # entries, one gigabyte in float64
BLOCK = 1 << 22  # entries read at a time


def held_in(dtype: np.dtype, entries: int) -> type:
    """The precision that signals are held in."""
    small = np.issubdtype(dtype, np.floating) and dtype.itemsize <= 4
    return np.float32 if small or entries > LARGE else np.float64


class Archive:
    """The arrays of an .npz file by name, read when asked for."""

    def __init__(self, path: Path):
        self.path = path
        with _guarded(path), zipfile.ZipFile(path) as file:
            claimed, stored = (
                sum(getattr(part, size) for part in file.infolist()) for size in ("file_size", "compress_size")
            )
            refuse_claim(claimed, min(stored, path.stat().st_size), str(path))
            self.names = [name.removesuffix(".npy") for name in file.namelist() if name.endswith(".npy")]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def signals(self, name: str) -> np.ndarray:  # (rows, nodes) float32 or float64
        self._refuse_absent(name)
        with _guarded(self.path), zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as handle:
            return _streamed(handle, file.getinfo(f"{name}.npy").file_size, f"`{name}` in {self.path}")

    def __getitem__(self, name: str) -> np.ndarray:
        self._refuse_absent(name)
        with _guarded(self.path), zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as handle:
            return read_whole(handle, file.getinfo(f"{name}.npy").file_size, f"`{name}` in {self.path}")

    def first(self, *names: str) -> np.ndarray | None:
        """The first of these that is there."""
        return next((self[name] for name in names if name in self), None)

    def _refuse_absent(self, name: str) -> None:
        if name not in self:
            raise InputError(
                f"{self.path} with the arrays {some(self.names) or 'none'}", f"an array `{name}`", "save it so"
            )


def read_npy(path: Path) -> np.ndarray:  # (rows, nodes)
    with _guarded(path), path.open("rb") as handle:
        return _streamed(handle, path.stat().st_size, str(path))


def read_whole(handle: IO[bytes], size: int, what: str) -> np.ndarray:
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


def names_of(ids: np.ndarray, where: str, what: str = "node names") -> tuple[str, ...]:
    """Names from an array of text, of bytes in UTF-8, or of whole numbers."""
    try:
        if ids.ndim == 1 and (ids.dtype.kind in "USiu" or all(isinstance(name, str | bytes) for name in ids)):
            return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in ids)
    except (ValueError, SystemError):  # bytes that are no UTF-8, code points that are none
        pass
    raise InputError(
        f"{what} of shape {ids.shape} and type {ids.dtype} in {where}", "a list of names", "save them as text"
    )


def unit_of(unit: ArrayLike, where: str) -> str:
    """A unit from text, bytes, or an array of one of them."""
    names = names_of(np.ravel(unit), where, "the unit")
    if len(names) != 1:
        raise InputError(f"{len(names)} units in {where}", "one", "save one text")
    return names[0]


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """zipfile, zlib, numpy and the system each have their own exceptions for a damaged file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise unreadable(path, error) from None
