"""Where METR-LA and Molene come from: `get` brings, assembles and verifies them, `verify` checks what is there.

    given files  ->  what is still missing is downloaded into `<name>.parts/`  ->  assembled  ->  verified  ->  written

Nothing is written before every array has its pinned sha256. A download that cannot be used is removed, so that the next
try brings it again; all of them, if each can be read and only their sum is wrong. Files that were given are left alone.
Cut short anywhere, the same call goes on.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InputError, some, unknown
from ...core.files import whole
from . import assemble
from .assemble import COLUMN, GRAPH, H5, LOCATIONS, MATLAB, MOLENE, PICKLE, SPEED, Arrays, Files
from .fetch import fetch

HOST = "https://raw.githubusercontent.com"


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


PGAIN = Home("thanhquanse/PGAIN-VS", "f1bed1b48f18b6959442901e04d3b2fafde99854", "data/traffic_speed")
DCRNN = Home("liyaguang/DCRNN", "602afd9d767d3aa1c9b3eac51710d6aeee12c227", "data/sensor_graph")
BRITTANY = Home("bgirault-usc/Molene-Dataset", "a32fd4459e8ecaf986477a459b1a50b94dc75ab3", "Matlab")

SOURCES = {
    "metr-la": Source(
        raw={H5: None, PICKLE: DCRNN, LOCATIONS: DCRNN, COLUMN: PGAIN},
        files={
            SPEED: ("codes", "values", "sensor_ids", "timestamps"),
            GRAPH: ("adjacency", "sensor_ids", "coords"),
        },
        missing=assemble.metr_la_missing,
        assemble=assemble.metr_la,
        faults=assemble.metr_la_faults,
        licence="METR-LA was published with DCRNN (github.com/liyaguang/DCRNN); that repository, which has the graph, "
        "is under the MIT licence and states no separate licence for the data. The speeds come from the repository "
        "thanhquanse/PGAIN-VS, which states none.",
        by_hand="The speeds come after that, 207 files. Give what you have with --from FILE or FOLDER: "
        f"{H5} in place of all CSV files, or the folder data/traffic_speed of a clone of "
        "https://github.com/thanhquanse/PGAIN-VS",
    ),
    "molene": Source(
        raw=dict.fromkeys(MATLAB, BRITTANY),
        files={MOLENE: ("signals", "coords")},
        missing=assemble.molene_missing,
        assemble=assemble.molene,
        faults=assemble.molene_faults,
        licence="Licence Ouverte / Open Licence (Etalab); data of Meteo-France, published on data.gouv.fr. "
        "Cite B. Girault, EUSIPCO 2015, doi 10.1109/EUSIPCO.2015.7362637.",
        by_hand="or save it anywhere and give it with --from FILE",
    ),
}


def get(name: str, folder: str | Path, given: Sequence[str | Path] = (), mirror: str | None = None) -> list[Path]:
    """The dataset's files in ``folder``, verified. ``mirror`` stands in for the scheme and host of every address."""
    source, folder = _source(name), Path(folder)
    own = _recognised(name, source, [Path(path) for path in given])
    if _faults(source, folder):
        parts = folder / f"{name}.parts"
        for file, arrays in _assembled(name, source, parts, own, mirror).items():
            with whole(folder / file) as temporary, temporary.open("wb") as handle:
                np.savez_compressed(handle, **dict[str, Any](arrays))
        shutil.rmtree(parts, ignore_errors=True)
    return [folder / file for file in source.files]


def verify(name: str, folder: str | Path) -> list[Path]:
    """The dataset's files in ``folder``, if the arrays in them are the published ones."""
    source, folder = _source(name), Path(folder)
    if faults := _faults(source, folder):
        raise InputError(
            f"{folder} with {name} absent, damaged or not as published: {some(faults)}",
            f"{' and '.join(source.files)} with the pinned sha256 sums",
            f"grcd data get {name}",
        )
    return [folder / file for file in source.files]


def _assembled(name: str, source: Source, parts: Path, own: Files, mirror: str | None) -> dict[str, Arrays]:
    """All arrays, verified, from the user's own files and from downloads for the rest."""
    while True:  # what is missing may show only when something else is there
        files = {**{path.name: path for path in parts.glob("*")}, **own}
        with _judged(name, parts, own):
            missing = source.missing(files)
            if not missing:
                assembled = source.assemble(files)
                if faults := source.faults(assembled):
                    raise InputError(f"{some(faults)}, not as published", "the pinned sha256", "get the files again")
                return assembled
        urls = {parts / file: source.home(file).url(file, mirror) for file in missing}
        fetch(urls, name, source.by_hand)


@contextmanager
def _judged(name: str, parts: Path, own: Files) -> Iterator[None]:
    """Raw files that cannot be used: downloaded ones are removed, and the message says so."""
    try:
        yield
    except InputError as error:
        came = sorted(parts.glob("*"))
        named = [path for path in [*came, *own.values()] if str(path) in error.got]
        faulty = [path for path in came if path in named or not named]
        given = [path for path in own.values() if path in named or not named]
        for path in faulty:
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            parts.rmdir()  # if nothing is left
        ways = []
        if faulty:
            gone = some((path.name for path in faulty), 2)
            ways.append(f"downloaded files have been removed ({gone}): run the same command again, it brings them")
        if given:
            ways.append(f"leave out, or replace, what was given ({some(path.name for path in given)})")
        raise InputError(
            f"raw files of {name} that cannot be used, nothing was written: {error.got}",
            "the files as published, whose arrays have the pinned sha256 sums",
            "; or ".join(ways),
        ) from None


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise unknown("dataset to get", name, SOURCES)
    return SOURCES[name]


def _faults(source: Source, folder: Path) -> list[str]:
    """What is wrong with the files in a folder: nothing, if they are as published."""
    loaded = {file: _arrays(folder / file) for file in source.files}
    absent = [f"{name} in {file}" for file, names in source.files.items() for name in names if name not in loaded[file]]
    return absent or source.faults(loaded)


def _arrays(path: Path) -> Arrays:
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # absent, or damaged in one of many ways: none of its arrays is there
        return {}


def _recognised(name: str, source: Source, given: Sequence[Path]) -> dict[str, Path]:
    """The user's files under the names they were published with. A folder may hold other things too."""
    found: dict[str, Path] = {}
    for path in given:
        if not os.path.exists(path):
            raise InputError(f"{path}, which is not there", "a file, or a folder with files", "check the path")
        entries = sorted(path.iterdir()) if os.path.isdir(path) else [path]
        spelt = [(entry, spelling) for entry in entries for spelling in (entry.name, entry.name.lower())]
        known = {spelling: entry for entry, spelling in spelt if source.kind(spelling)}  # METR-LA.h5 goes round too
        if not known:
            raise InputError(
                f"{path}, which {'holds' if os.path.isdir(path) else 'is'} no file of {name}, going by the names",
                f"any of {', '.join(raw.format('<sensor number>') for raw in source.raw)}",
                "give files under the names they were published with",
            )
        found |= known
    return found
