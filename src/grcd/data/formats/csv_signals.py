"""Readings in a CSV file: a wide table, with one column a node, or a long one, with time, node and value."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...core.errors import InputError
from ...core.files import whole
from .. import times
from ..notes import Note
from ..written_times import PLAIN, TimeColumn
from .csv import Columns, read_columns
from .output import Output, without_points
from .table import Table, is_unnamed, only_clock, pivoted_channels, refuse_no_label, roles_of


def read(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """Wide or long; ``label`` is the split column, ``nodes`` are the names of a graph at hand."""
    return next(iter(_read(path, label, nodes, False).values()))


def read_channels(path: Path, label: str | None, nodes: Collection[str]) -> dict[str, Table]:
    """The same, by channel: a long table may have a column that says which."""
    return _read(path, label, nodes, True)


def _read(path: Path, label: str | None, nodes: Collection[str], channels: bool) -> dict[str, Table]:
    def text(names: list[str]) -> list[str]:
        roles = roles_of(names, label, path, channels)
        if roles is not None:
            return [name for name in names if name != roles["value"]]
        return [
            name
            for place, name in enumerate(names)
            if times.is_time(name) or name == label or (place == 0 and is_unnamed(name))
        ]

    columns = read_columns(path, text, nodes)
    refuse_no_label(label, columns.names, path)
    roles = roles_of(columns.names, label, path, channels)
    labels = columns.text(label) if label in columns.names else None
    if roles is None:
        return {"": _wide(columns, label, labels)}
    written = columns.text(roles["time"])
    stamps = times.parsed(written, str(path))
    named, values = columns.text(roles["node"]), columns.numbers([roles["value"]])[:, 0]
    variables = columns.text(roles["variable"]) if "variable" in roles else None
    tables = pivoted_channels(stamps, named, variables, values, path, labels)
    clock = TimeColumn.of(roles.pop("time"), written, **roles)
    return {name: replace(table, clock=clock) for name, table in tables.items()}


def _wide(columns: Columns, label: str | None, labels: np.ndarray | None) -> Table:
    path, names = columns.path, columns.names
    no_nodes, stamps, notes = [label], None, tuple[Note, ...]()
    clock = only_clock([name for name in names if times.is_time(name) and name != label], path)
    if clock is not None:
        no_nodes, stamps = [label, clock], times.parsed(columns.text(clock), str(path))
        if is_unnamed(names[0]):
            no_nodes, notes = [*no_nodes, names[0]], (Note(f"the first column of {path.name} has no name", "left out"),)
    elif names[0] != label:
        index, stamps, notes = _index(columns)
        no_nodes += index
        clock = index[0] if stamps is not None else None
    nodes = [name for name in names if name not in no_nodes]
    if not nodes:
        raise InputError(f"{path} without a column of readings", "one column a node", "export the table again")
    column = PLAIN if clock is None else _clock(columns, clock)
    return Table(columns.numbers(nodes), tuple(nodes), stamps, labels, notes=notes, clock=column)


def _clock(columns: Columns, name: str) -> TimeColumn:
    """What a column of times is called, and how they are written."""
    return TimeColumn.of("time" if is_unnamed(name) else name, columns.text(name))


def _index(columns: Columns) -> tuple[list[str], np.ndarray | None, tuple[Note, ...]]:
    """The first column if it is an index or holds dates under another name: its name, times, and what to say."""
    name, cells, file = columns.names[0], columns.frame[0], columns.path.name
    if is_unnamed(name) or name.casefold() == "index":
        if _numbers_rows(cells):
            return [name], None, (Note(f"the first column of {file} numbers the rows", "left out"),)
        return [name], times.parsed(cells, str(columns.path)), ()
    if cells.dtype.kind in "iufb":
        return [], None, ()
    try:
        stamps = times.parsed(cells, str(columns.path))
    except InputError:
        return [], None, ()  # text: said where numbers are read
    return [name], stamps, (Note(f"column {name!r} of {file} is taken as the time"),)


def _numbers_rows(cells: np.ndarray) -> bool:
    """From 0 up; again and again where several tables were put together."""
    import pandas

    numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(float)
    return bool(numbers[0] == 0 and ((np.diff(numbers) == 1) | (numbers[1:] == 0)).all())


def write(path: Path, output: Output) -> None:
    """Times as text; quantiles beside the signals."""
    frame = without_points(output.frame(text=True), output.clock.variable)
    with whole(path) as temporary:
        frame.to_csv(temporary, index=False)
