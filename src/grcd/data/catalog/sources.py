"""Published data: `get` brings, assembles and verifies the files of a dataset, `verify` checks what is there.

    the user's files  ->  the rest downloaded into `<name>.parts/`  ->  assembled  ->  verified  ->  written

Nothing is written before every array has its pinned sha256. A download that cannot be used is removed, so that the next
try brings it again; all of them, if each can be read and only their sum is wrong. Files of the user's are left alone.
Cut short anywhere, the same call goes on.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InputError, some
from ...core.files import whole
from .fetch import fetch

Arrays = dict[str, np.ndarray]
Files = Mapping[str, Path]  # raw files by the name they are published under
HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Pin:
    """What an array must be: shape, type, and the sha256 of its bytes in C order, as it is or rounded to decimals."""

    shape: tuple[int, ...]
    dtype: str
    sums: dict[int | None, str]  # decimals (None: as it is) -> sha256

    def fits(self, array: np.ndarray) -> bool:
        if array.shape != self.shape or array.dtype.kind != np.dtype(self.dtype).kind:
            return False
        typed = array.astype(self.dtype)
        same = np.array_equal(typed, array, equal_nan=typed.dtype.kind == "f")
        return same and any(total == sha256(typed, d) for d, total in self.sums.items())


def sha256(array: np.ndarray, decimals: int | None = None) -> str:
    rounded = array if decimals is None else np.round(array, decimals) + 0.0  # no negative zeros
    return hashlib.sha256(np.ascontiguousarray(rounded).view(np.uint8).data).hexdigest()


class UnusableFiles(InputError):
    """Raw files that cannot be used, and which ones; none are named where only their sum is wrong."""

    def __init__(self, got: str, expected: str, do: str, files: Sequence[Path] = ()):
        super().__init__(got, expected, do)
        self.files = tuple(files)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What is wrong while a raw file is read is wrong with that file."""
    try:
        yield
    except InputError as error:
        raise UnusableFiles(error.got, error.expected, error.do, [path]) from None


class Home(NamedTuple):
    """A folder of a public repository at one commit."""

    repository: str
    commit: str
    folder: str

    def url(self, name: str, mirror: str | None = None) -> str:
        return "/".join([(mirror or HOST).rstrip("/"), self.repository, self.commit, self.folder, name])


@dataclass(frozen=True)
class Source:
    """One dataset: what it is made of, where that is published, and how it is put together."""

    name: str
    raw: dict[str, Home | None]  # raw files, {} for a sensor's number; without a home: only as a file of the user's
    files: dict[str, tuple[str, ...]]  # what `get` writes: file -> the arrays it has at least
    missing: Callable[[Files], list[str]]
    assemble: Callable[[Files], dict[str, Arrays]]
    faults: Callable[[Mapping[str, Arrays]], list[str]]
    licence: str
    by_hand: str  # for those without a network

    def kind(self, name: str) -> str | None:
        """Which of the raw files this name is one of."""
        return next((raw for raw in self.raw if re.fullmatch(re.escape(raw).replace(r"\{\}", r"\d+"), name)), None)

    def home(self, name: str) -> Home:
        """Where a raw file is published."""
        home = self.raw[self.kind(name) or name]
        assert home is not None, f"{name} is published nowhere"
        return home

    def folder(self, data_dir: str | Path | None = None) -> Path:
        """The first of ``folders`` that has all files."""
        looked = folders(data_dir)
        for folder in looked:
            if all((folder / file).is_file() for file in self.files):
                return folder
        raise InputError(
            f"no {' and '.join(self.files)} in {', '.join(str(folder) for folder in looked)}",
            f"the files of {self.name}",
            f"bring them with: grcd data get {self.name}; or name their folder with --data-dir or GRCD_DATA",
        )

    def get(self, folder: str | Path, own: Sequence[str | Path] = (), mirror: str | None = None) -> list[Path]:
        """The files in ``folder``, verified. ``mirror`` stands in for the scheme and host of every address.

        ``own`` are files and folders of the user's: what is there is not downloaded.
        """
        folder, raw = Path(folder), self._recognised([Path(path) for path in own])
        if self._faults(folder):
            parts = folder / f"{self.name}.parts"
            for file, arrays in self._assembled(parts, raw, mirror).items():
                with whole(folder / file) as temporary, temporary.open("wb") as handle:
                    np.savez_compressed(handle, **dict[str, Any](arrays))
            shutil.rmtree(parts, ignore_errors=True)
        return [folder / file for file in self.files]

    def verify(self, folder: str | Path) -> list[Path]:
        """The files in ``folder``, if the arrays in them are the published ones."""
        folder = Path(folder)
        if faults := self._faults(folder):
            raise InputError(
                f"{folder} with {self.name} absent, damaged or not as published: {some(faults)}",
                f"{' and '.join(self.files)} with the pinned sha256 sums",
                f"grcd data get {self.name}",
            )
        return [folder / file for file in self.files]

    def _assembled(self, parts: Path, own: Files, mirror: str | None) -> dict[str, Arrays]:
        """All arrays, verified, from the user's own files and from downloads for the rest."""
        while True:  # what is missing may show only when something else is there
            raw = {**{path.name: path for path in parts.glob("*")}, **own}
            with self._judged(parts, own):
                missing = self.missing(raw)
                if not missing:
                    arrays = self.assemble(raw)
                    if faults := self.faults(arrays):
                        got = f"{some(faults)}, not as published"
                        raise UnusableFiles(got, "the pinned sha256", "get the files again")
                    return arrays
            urls = {parts / file: self.home(file).url(file, mirror) for file in missing}
            fetch(urls, self.name, self.by_hand)

    @contextmanager
    def _judged(self, parts: Path, own: Files) -> Iterator[None]:
        """Raw files that cannot be used: downloaded ones are removed, and the message says so."""
        try:
            yield
        except UnusableFiles as error:
            downloaded, blamed = sorted(parts.glob("*")), set(error.files)
            removed = [path for path in downloaded if path in blamed or not blamed]
            users = [path for path in own.values() if path in blamed or not blamed]
            for path in removed:
                with suppress(OSError):
                    path.unlink()
            with suppress(OSError):
                parts.rmdir()  # if nothing is left
            ways = []
            if removed:
                names = some((path.name for path in removed), 2)
                ways.append(f"downloaded files have been removed ({names}): run the same command again, it brings them")
            if users:
                ways.append(f"leave out, or replace, what was given ({some(path.name for path in users)})")
            raise InputError(
                f"raw files of {self.name} that cannot be used, nothing was written: {error.got}",
                "the files as published, whose arrays have the pinned sha256 sums",
                "; or ".join(ways),
            ) from None

    def _faults(self, folder: Path) -> list[str]:
        """What is wrong with the files in a folder: nothing, if they are as published."""
        loaded = {file: _arrays(folder / file) for file in self.files}
        absent = [
            f"{name} in {file}" for file, names in self.files.items() for name in names if name not in loaded[file]
        ]
        return absent or self.faults(loaded)

    def _recognised(self, own: Sequence[Path]) -> dict[str, Path]:
        """The user's files under the names they were published with. A folder may hold other things too."""
        raw: dict[str, Path] = {}
        for path in own:
            if not os.path.exists(path):
                raise InputError(f"{path}, which is not there", "a file, or a folder with files", "check the path")
            entries = sorted(path.iterdir()) if os.path.isdir(path) else [path]
            spelt = [(entry, spelling) for entry in entries for spelling in (entry.name, entry.name.lower())]
            files = {spelling: entry for entry, spelling in spelt if self.kind(spelling)}  # METR-LA.h5 goes round too
            if not files:
                raise InputError(
                    f"{path}, which {'holds' if os.path.isdir(path) else 'is'} no file of {self.name}, going by the "
                    "names",
                    f"any of {', '.join(raw.format('<sensor number>') for raw in self.raw)}",
                    "give files under the names they were published with",
                )
            raw |= files
        return raw


def _arrays(path: Path) -> Arrays:
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # absent, or damaged in one of many ways: none of its arrays is there
        return {}


def folders(data_dir: str | Path | None = None) -> list[Path]:
    """Where data are looked for: `data_dir`, the environment variable GRCD_DATA, the user's cache folder."""
    named = [data_dir, os.environ.get("GRCD_DATA")]
    return [*(Path(folder) for folder in named if folder), cache()]


def cache() -> Path:
    """The user's cache folder for data."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "grcd"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "grcd"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "grcd"
