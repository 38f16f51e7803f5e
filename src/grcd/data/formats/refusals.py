"""Files that are refused: absent, damaged, in need of a package, or claiming what they do not store.

What a file claims is compared with what it stores, and with the memory there is, before any memory is asked for.

A header of a few bytes may claim any size, and an HDF5 dataset without stored chunks is all fill value: 5 kB that would
take gigabytes. Deflate, the usual compression, makes at most 1,032 bytes out of one; a file that claims more than
`MOST` for each of its bytes is damaged, or all but empty. `SMALL` claims are let pass.

HDF5 may also point at other files: by external links, external raw storage and virtual datasets. A table to be read is
no reason to read what else is on the machine, so all three are refused.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ...core import memory
from ...core.errors import InputError

if TYPE_CHECKING:
    import h5py

MOST = 1100  # bytes claimed for each byte stored
SMALL = 1 << 26  # bytes that nobody misses


def existing(path: str | Path) -> Path:
    """The path, if there is a file."""
    path = Path(path)
    if not os.path.isfile(path):  # Path.is_file raises on a name that is too long
        raise InputError(f"{path}, which is no file", "an existing file", "check the path")
    return path


def unreadable(path: Path, error: object, kind: str = "") -> InputError:
    """The error for a file that is damaged, or of another kind than its ending says."""
    got = f"{path}, which cannot be read {f'as {kind} ' if kind else ''}({error})"
    return InputError(got, "a whole file of its kind", "get or make the file again")


@contextmanager
def damage_is_refused(path: Path, kind: str = "") -> Iterator[None]:
    """Parsers and the system raise what they like on a damaged file: here it becomes one error, with its reason."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise unreadable(path, error, kind) from None


def needed(package: str, extra: str) -> ModuleType:
    """An optional package, or the error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise InputError(
            f"no {name} on this machine", f"{name} for this file ending", f'pip install "grcd[{extra}]"'
        ) from None


def refuse_claim(claimed: float, stored: int, what: str) -> None:
    """Bytes that a file would take, and bytes that are there for it."""
    if claimed > max(SMALL, MOST * stored):
        raise InputError(
            f"{what}, which claims {memory.readable_size(claimed)} and stores {memory.readable_size(stored)}",
            "a file that stores what it claims",
            "it is damaged, or all but empty: make the file again",
        )
    refuse_no_memory(claimed, what)


def refuse_no_memory(size: float, what: str) -> None:
    """What is there may still be more than the machine can hold."""
    memory.refuse_over(size, what, "take fewer nodes or rows, or a larger machine")


def bytes_of(shape: Iterable[int], dtype: np.dtype) -> float:
    """Of an array; as a float, since a claim may be beyond any integer type."""
    return float(np.prod([*shape], dtype=float)) * dtype.itemsize


def refuse_hdf5(file: h5py.File) -> None:
    """A whole file: no link and no dataset leads out of it, and all that it claims together is there."""
    import h5py

    links, path = dict[str, object](), Path(file.filename)
    file.visititems_links(links.__setitem__)  # nothing is raised, or opened, on the way: h5py would lose the error
    for name, link in links.items():
        if isinstance(link, h5py.ExternalLink):
            raise _elsewhere(f"`{name}`, a link to another file,", path)
    nodes = (file[name] for name, link in links.items() if isinstance(link, h5py.HardLink))
    refuse_datasets((node for node in nodes if isinstance(node, h5py.Dataset)), path)


def refuse_datasets(datasets: Iterable[h5py.Dataset], path: Path) -> None:
    """These together."""
    claimed, stored = 0.0, 0
    for node in datasets:
        if node.external or node.is_virtual:
            raise _elsewhere(f"`{node.name}`, whose values are in other files,", path)
        claimed += bytes_of(node.shape or (), node.dtype)
        stored += node.id.get_storage_size()
    refuse_claim(claimed, min(stored, os.path.getsize(path)), str(path))


def _elsewhere(what: str, path: Path) -> InputError:
    return InputError(
        f"{what} in {path}",
        "a file that holds its own values: others are not opened on its behalf",
        "write the values themselves: read the file with what wrote it, and save it again",
    )
