"""Partitions: files that are worked on one by one, and the files that come of them.

Partitions come in as a folder or a glob of .parquet files, and go out under the same names in another folder. Each has
a seed of its own, which follows from that of the command and from its name. So what comes of it depends neither on the
worker that does it nor on which others there are.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import InputError, some, whole_number
from ..core.streams import SEED_MOST, Stream
from ..data.formats import parquet
from ..data.formats.refusals import damage_is_refused
from ..data.formats.table import role_of

ENDING = ".parquet"
MOST = 10**6  # files
UNNAMED = "__index_level_"  # begins the name of a column that is an index of pandas without a name


@dataclass(frozen=True)
class Partition:
    """One file to be written, and what it is made of."""

    name: str  # within its folder, with / between the parts
    seed: int
    source: str | None = None  # the file to read, if there is one
    own: Mapping[str, Any] = field(default_factory=dict)  # options that this one has, and others have not

    @property
    def stamp(self) -> list[int]:
        """By which another source is known: its size and the time of its last change."""
        if self.source is None:
            return [self.own["n"]]
        status = os.stat(self.source)
        return [status.st_size, status.st_mtime_ns]


def is_many(files: Sequence[str]) -> bool:
    """Whether this is a folder or a glob, and not a file, or a file for each of several channels."""
    return len(files) == 1 and (os.path.isdir(files[0]) or (glob.has_magic(files[0]) and not os.path.exists(files[0])))


def read(pattern: str, out: Path, seed: int) -> list[Partition]:
    """Those of a folder, with all folders below it, or of a glob; in the order of their names."""
    folder, paths = _matching(pattern)
    if not paths:
        got = f"no {ENDING} file in {pattern}" if os.path.isdir(pattern) else f"no file that matches {pattern}"
        raise InputError(got, f"one {ENDING} file or more", "check the path; put quotes around a pattern")
    if foreign := [str(path) for path in paths if path.suffix != ENDING]:
        raise InputError(f"{some(foreign, 3)} among many files", f"{ENDING} files", "write them as .parquet first")
    if out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents:
        raise InputError(f"the output {out} within {folder}, which is read", "another folder", "choose another --out")
    refuse_different(paths)
    names = [path.relative_to(folder).as_posix() for path in paths]
    return [Partition(name, seed_of(seed, name), str(path.absolute())) for name, path in zip(names, paths, strict=True)]


def _matching(pattern: str) -> tuple[Path, list[Path]]:
    """The folder that names are relative to, and the files."""
    matches: Iterable[Path]
    if os.path.isdir(pattern):
        folder, matches = Path(pattern), Path(pattern).rglob(f"*{ENDING}")
    else:
        parts = Path(pattern).parts
        fixed = next(k for k, part in enumerate(parts) if glob.has_magic(part))
        folder, matches = Path(*parts[:fixed]), map(Path, glob.iglob(pattern, recursive=True))
    visible = (path for path in matches if path.is_file() and not _is_hidden(path.relative_to(folder)))
    return folder, sorted(visible, key=lambda path: path.as_posix())


def _is_hidden(path: Path) -> bool:
    """As others that read partitions see it: what begins with a dot or an underscore is no data."""
    return any(part.startswith((".", "_")) for part in path.parts)


def generated(n: int, count: int, seed: int) -> list[Partition]:
    """``n`` signals out of nothing, in ``count`` files that are as long as each other."""
    whole_number("n", n)
    whole_number("partitions", count, 1, min(n, MOST))
    names = [f"part-{k:05d}{ENDING}" for k in range(count)]
    sizes = [n * (k + 1) // count - n * k // count for k in range(count)]
    return [Partition(name, seed_of(seed, name), own={"n": size}) for name, size in zip(names, sizes, strict=True)]


def seed_of(seed: int, name: str) -> int:
    """Of the partition with this name."""
    return int(Stream(seed, f"partition {name}").integers(0, 1, SEED_MOST))


def refuse_different(paths: Sequence[Path]) -> None:
    """Before any work: files of one table have its columns, in any order, and numbers in the same ones of them."""
    arrow, first = parquet.need(), dict[str, Any]()
    for path in paths:
        with damage_is_refused(path):
            schema = arrow.parquet.read_schema(path)
            indices = (schema.pandas_metadata or {}).get("index_columns", [])
        kinds = {field.name: field.type for field in schema}
        first = first or kinds
        if kinds.keys() != first.keys():
            lacks, extra = sorted(first.keys() - kinds.keys()), sorted(kinds.keys() - first.keys())
            differ = [f"without {some(lacks)}"] * bool(lacks) + [f"with {some(extra)}"] * bool(extra)
            raise InputError(
                f"partitions with different columns: {path} is {' and '.join(differ)}, unlike {paths[0]}",
                "the same columns in all of them",
                _advice({name: {**first, **kinds}[name] for name in (*lacks, *extra)}),
            )
        for name in [name for name in kinds if kinds[name] != first[name] and name not in indices]:
            if _is_value(name) and parquet.is_number(kinds[name]) != parquet.is_number(first[name]):
                raise InputError(
                    f"partitions with different kinds of columns: {name!r} holds {kinds[name]} in {path} "
                    f"and {first[name]} in {paths[0]}",
                    "numbers in both",
                    "convert the column to numbers there, or drop it in all of them",
                )


def _advice(differ: Mapping[str, Any]) -> str:
    """For columns that some have, and others have not."""
    for name, kind in differ.items():
        if name.startswith(UNNAMED):
            if parquet.is_number(kind):
                return f"{name} is the index that pandas keeps: write all of them with to_parquet(index=False)"
            return f"{name} is an index that has no name: give it the same one in all of them, rename_axis('time')"
    return "correct that file, or give those of other columns by themselves; an empty column is a gap everywhere"


def _is_value(name: str) -> bool:
    """Unlike times, and names of nodes or channels in a long table: those may be numbers here and text there."""
    return role_of(name) in (None, "value")
