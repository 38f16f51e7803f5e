"""Files of several channels, by ending, and `NAME=FILE`: what each holds, as a table a channel.

    temp=a.csv wind=b.csv     a file a channel
    .csv .parquet             long: time,node,variable,value        (also `channel` or `parameter` for `variable`)
    .nc                       a variable (time, node) a channel, each with its own `units`
    .npz                      `signals` (time, node, channel), with `channels` and `units`

Any other file is one channel, without a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ...core.errors import InputError
from . import csv_signals, netcdf, npz, parquet, signals
from .refusals import existing
from .table import Table, refuse_no_label

Source = str | Path | Iterable[str | Path]
# By ending, as in ``signals``; other files have one channel.
READERS: dict[str, Callable[[Path, str | None, Collection[str]], dict[str, Table]]] = {
    ".csv": csv_signals.read_channels,
    ".parquet": parquet.read_channels,
    ".npz": npz.read_npz_channels,
    ".nc": netcdf.read_channels,
}


def read_channels(source: Source, label: str | None = None, nodes: Collection[str] = ()) -> dict[str, Table]:
    """Tables by channel, from a file or several; ``label`` and ``nodes`` as for ``read_signals``."""
    files = [source] if isinstance(source, str | Path) else list(source)
    tables = dict[str, Table]()
    for file in files:
        name, path = named(file)
        more = _of_file(path, label, nodes)
        if name and len(more) > 1:
            do = "leave its name out"
            raise InputError(f"{file}, which holds {', '.join(more)}", f"one channel to be called {name!r}", do)
        more = {name or channel: table for channel, table in more.items()}
        if len(files) > 1 and "" in more:
            raise InputError(f"{file} among several files", "NAME=FILE for each", f"say what it measures: NAME={file}")
        if again := [channel for channel in more if channel in tables]:
            raise InputError(f"{again[0]!r} twice, again in {file}", "each channel once", "name them otherwise")
        tables |= more
    return tables


def named(file: str | Path) -> tuple[str, str | Path]:
    """The name and the file of `NAME=FILE`; no name for a plain file, also one whose name has an `=` in it."""
    match = re.fullmatch(r"([^=/\\]+)=(.+)", str(file)) if isinstance(file, str) else None
    return (match[1].strip(), match[2]) if match and not Path(file).exists() else ("", file)


def _of_file(path: str | Path, label: str | None, nodes: Collection[str]) -> dict[str, Table]:
    path = existing(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        return {"": signals.read_signals(path, label, nodes)}
    tables = reader(path, label, nodes)
    if all(table.labels is None for table in tables.values()):
        refuse_no_label(label, [], path)
    return {name: signals.settled(table, path) for name, table in tables.items()}
