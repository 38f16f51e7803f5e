"""DCRNN's ``adj_mx.pkl``, read without running what it says.

A pickle is a program for a small stack machine that may call anything importable. Here the machine keeps only what data
need, and nothing outside this module is ever imported, called or changed:

- instructions: numbers, strings, bytes, None, lists, tuples, dicts, the memo, and a call; no classes, no persistent
  ids, no extension codes;
- a call (REDUCE) reaches the stand-ins of ``CALLS``, which note what numpy would have been told; state (BUILD) goes to
  those notes alone; any other name is refused, and named;
- an array is made at the end, from bytes whose number fits its shape and type; numbers only, never objects.

Python-2 strings are read as latin-1, so the bytes of an array come through whole.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...core.errors import InputError
from .stored_graph import StoredGraph

DTYPES = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})
MAX_BYTES = 2**28
PLAIN = (str, bytes, int, float, bool, type(None))


def load(path: str | Path) -> object:
    """Whatever the pickle holds, made of arrays, lists, tuples, dicts, strings, bytes, numbers and None."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB")
        return _plain(_Machine(path.read_bytes()).load(), {})
    except _Refused as error:
        raise InputError(
            f"{path}, a pickle that asks for {error}",
            "a pickle of arrays, lists, tuples, dicts, strings and numbers only",
            "do not open this file with anything else: get it again from where it was published",
        ) from None
    except Exception as error:  # a damaged pickle fails in as many ways as there are instructions
        raise InputError(
            f"{path}, which cannot be read as a pickle ({type(error).__name__}: {error})",
            "a whole pickle file",
            "get the file again",
        ) from None


def read_graph(path: Path) -> StoredGraph:
    ids, weights = adjacency(path)
    return StoredGraph.adjacency(weights, ids)


def adjacency(path: str | Path) -> tuple[list[str] | None, np.ndarray]:
    """Sensor names and weights (N, N): DCRNN's triple (names, name -> index, weights), or a lone square array."""
    value = load(path)
    if isinstance(value, np.ndarray):
        return None, _square(value, path)
    if not (isinstance(value, list | tuple) and len(value) == 3):
        raise _unexpected(path, f"a {type(value).__name__}")
    names, index, weights = value
    if not (isinstance(names, list | tuple) and isinstance(index, dict) and isinstance(weights, np.ndarray)):
        raise _unexpected(path, f"({', '.join(type(part).__name__ for part in value)})")
    ids, places = [_text(name, path) for name in names], {_text(name, path): place for name, place in index.items()}
    numbered = all(type(place) is int for place in places.values()) and places == {n: i for i, n in enumerate(ids)}
    if len(ids) != len(_square(weights, path)) or not numbered:
        raise _unexpected(path, f"{len(ids)} names that do not number the rows of an array {weights.shape}")
    return ids, weights


def _square(weights: np.ndarray, path: str | Path) -> np.ndarray:
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not np.isfinite(weights).all():
        raise _unexpected(path, f"an array of shape {weights.shape}, not square or not finite")
    return weights


def _text(name: object, path: str | Path) -> str:
    if type(name) is bytes:
        return name.decode("latin1")
    if type(name) is str or (type(name) is int and abs(name) < 1 << 63):
        return str(name)
    # Not by str() of anything: lists that share their entries can spell out to more than any memory holds.
    raise _unexpected(path, f"a {type(name).__name__} as a sensor's name")


def _unexpected(path: str | Path, got: str) -> InputError:
    return InputError(
        f"{path}, which holds {got}",
        "sensor names, their numbering and a square array of weights, as in DCRNN's adj_mx.pkl, or the array alone",
        "give that file, or save the array with numpy.save and name it as a graph file",
    )


# -- stand-ins for numpy ---------------------------------------------------------------------------------------------


class _Refused(Exception):
    """What the pickle asked for and does not get."""


class _Dtype:
    """What the pickle says of a type: a code such as f4, then (with its state) the byte order."""

    def __init__(self, code: str, *_: object):
        if type(code) is not str:  # the hash and the text of nested tuples take for ever
            raise _Refused("an array of no known type")
        if code not in DTYPES:
            raise _Refused(f"an array of type {code!r}")
        self.dtype = np.dtype(code)

    def build(self, state: tuple) -> None:
        _, order, subtype, names, fields = state[:5]
        if (subtype, names, fields) != (None, None, None) or order not in ("<", ">", "=", "|"):
            raise _Refused("an array of a compound type")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """What the pickle says of an array."""

    def __init__(self, *_: object):
        self.value: np.ndarray | None = None

    def build(self, state: tuple) -> None:
        _, shape, dtype, fortran, data = state
        self.fill(data, dtype, shape, "F" if fortran else "C")

    def fill(
        self, data: bytes | bytearray | str, dtype: _Dtype, shape: tuple[int, ...], order: Literal["C", "F"], *_: None
    ) -> _Array:
        if not isinstance(dtype, _Dtype):
            raise _Refused("an array of no known type")
        raw = data.encode("latin1") if isinstance(data, str) else bytes(data) if type(data) is bytearray else data
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.dtype.itemsize != len(raw):
            raise ValueError(f"{len(raw)} bytes for an array of shape {shape}")
        array = np.frombuffer(raw, dtype.dtype).reshape(shape, order=order)
        self.value = np.array(array, dtype.dtype.newbyteorder("="), order="C")
        return self


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise _Refused(f"the encoding {encoding!r}" if type(encoding) is str else "an encoding without a name")
    return text.encode("latin1")


class _Name:
    """A name that may be called, or handed to a call. Not the function itself: nothing can be read off or set on it."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., object]):
        self.call = call


CALLS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):
    CALLS[_core + ".multiarray", "_reconstruct"] = _Array
    CALLS[_core + ".numeric", "_frombuffer"] = lambda *arguments: _Array().fill(*arguments)


# -- the machine -----------------------------------------------------------------------------------------------------


class _Machine(pickle._Unpickler):
    """The standard library's machine in Python, whose table of instructions can be cut down: the C one's cannot."""

    # What it has and does not tell: the stack, what puts something there, and what takes a marked part of it away.
    stack: list[Any]
    append: Callable[[object], None]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]
    readline: Callable[[], bytes]

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.size, self.spent = len(data), 0

    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in CALLS:
            raise _Refused(f"{module}.{name}")
        return _Name(CALLS[module, name])

    def reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Name):
            raise _Refused(f"a call of a {type(function).__name__}")
        self.append(function.call(*self.spend(arguments)))

    def build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Dtype | _Array):
            raise _Refused(f"a change to a {type(self.stack[-1]).__name__}")
        self.stack[-1].build(self.spend(state))

    def spend(self, arguments: tuple) -> tuple:
        """An honest pickle hands its bytes on once or twice; one that does so over and over is after the memory."""
        self.spent += sum(len(entry) for entry in arguments if isinstance(entry, str | bytes | bytearray))
        if self.spent > 4 * self.size:
            raise _Refused("more memory than its size explains")
        return arguments

    def setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.fill([key, value])

    def setitems(self) -> None:
        self.fill(self.pop_mark())

    def dict(self) -> None:
        entries = self.pop_mark()
        self.append({})
        self.fill(entries)

    def fill(self, entries: list) -> None:
        """Keys and values in turn, into the dict on top. To hash tuples of tuples that are shared takes for ever."""
        for key, value in zip(entries[::2], entries[1::2], strict=True):
            if type(key) not in PLAIN:
                raise _Refused(f"{_kind(key)} as a key")
            self.stack[-1][key] = value

    def bytearray8(self) -> None:
        size = int.from_bytes(self.read(8), "little")
        if size > self.size:  # the standard library would first make room for what the file only claims to hold
            raise EOFError(f"{size} bytes in a file of {self.size}")
        self.append(bytearray(self.read(size)))

    def inst(self) -> None:
        module, name = (self.readline()[:-1].decode("latin1") for _ in range(2))
        raise _Refused(f"{module}.{name}")

    def refuse(self, instruction: str) -> None:
        raise _Refused(f"the instruction {instruction}")


_KEPT = (
    "PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT "
    "BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES "
    "SHORT_BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT "
    "PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL"
)
_OWN = {
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "SETITEM": _Machine.setitem,
    "SETITEMS": _Machine.setitems,
    "DICT": _Machine.dict,
    "BYTEARRAY8": _Machine.bytearray8,
    "INST": _Machine.inst,
}


def _table() -> dict:
    """All 256 instructions: the standard library's for data, our own for calls, a refusal for everything else."""
    names = {ord(code): name for name, code in vars(pickle).items() if isinstance(code, bytes) and len(code) == 1}
    table: dict[int, Callable] = {
        code: partial(_Machine.refuse, instruction=names.get(code, hex(code))) for code in range(256)
    }
    for code, name in names.items():
        if name in _KEPT.split():
            table[code] = pickle._Unpickler.dispatch[code]
        elif name in _OWN:
            table[code] = _OWN[name]
    return table


_Machine.dispatch = _table()


def _plain(value: object, seen: dict[int, object]) -> object:
    """The value with every note on an array replaced by the array; nothing but data is left in it."""
    if id(value) in seen:  # shared, or inside itself
        return seen[id(value)]
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    if type(value) in PLAIN:
        return value
    if type(value) is list:
        entries: list[object] = []
        seen[id(value)] = entries  # before what is in it, which may be itself
        entries.extend(_plain(entry, seen) for entry in value)
    elif type(value) is tuple:
        seen[id(value)] = tuple(_plain(entry, seen) for entry in value)
    elif type(value) is dict:
        items: dict[object, object] = {}
        seen[id(value)] = items
        items.update((_plain(key, seen), _plain(entry, seen)) for key, entry in value.items())
    else:
        raise _Refused(f"{_kind(value)} as a value")
    return seen[id(value)]


def _kind(value: object) -> str:
    kind = type(value).__name__.strip("_").lower()
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
