"""A table of readings, one row a sample, one column a node: what every reader of signals makes.

Files with named columns are wide (one column a node) or long (time, node, value); a long table is made wide here.
Signals are held in float64, or in float32 if the file has no more than that, or if they are so many (`LARGE`) that a
float64 copy would be a burden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import InputError, counted, some
from .. import times
from ..notes import Note
from ..written_times import PLAIN, TimeColumn

NODE_NAMES = ("node", "node_id", "sensor", "sensor_id", "station", "station_id")
VALUE_NAMES = ("value", "reading")
CHANNEL_NAMES = ("variable", "channel", "parameter")
SPARSE = 10**9  # entries of a long table made wide, where most of them would be gaps
LARGE = 1 << 27  # entries, one gigabyte in float64


@dataclass(frozen=True, eq=False)
class Table:
    """Readings as a file has them, rows in the order of their times."""

    values: np.ndarray  # (rows, nodes) float32 or float64, NaN where there is no reading
    node_ids: tuple[str, ...] | None = None  # None if the file names no nodes
    times: np.ndarray | None = None  # (rows,) datetime64[ns] or numbers, ascending
    labels: np.ndarray | None = None  # (rows,) what the split column says
    unit: str = ""
    notes: tuple[Note, ...] = ()  # what was done on reading that the user should know
    long: bool = False  # whether the file had a row a reading
    clock: TimeColumn = PLAIN  # what its column of times is called, and how they are written

    def checked(self, path: Path) -> Table:
        """The same, if it has rows, nodes, one unique name a node, and one time and one label a row."""
        rows, nodes = self.values.shape
        if rows == 0 or nodes == 0:
            raise InputError(
                f"{counted(rows, 'row')} of {counted(nodes, 'node')} in {path}",
                "one or more of each",
                "export the table again",
            )
        ids = self.node_ids
        if ids is not None and (len(ids) != nodes or len(set(ids)) != nodes):
            twice = sorted(name for name, count in Counter(ids).items() if count > 1)
            raise InputError(
                f"{len(ids)} node names for {nodes} columns in {path}; twice: {some(twice) or 'none'}",
                "one name a column, each once",
                "correct the names",
            )
        for what, column in (("times", self.times), ("split labels", self.labels)):
            if column is not None and np.shape(column) != (rows,):
                raise InputError(f"{np.shape(column)} {what} for {rows} rows in {path}", "one a row", "correct them")
        return self

    def in_order(self, where: str, note: Note | None = None) -> Table:
        """Rows sorted by their times, with a note if they were not."""
        if self.times is None:
            return self
        order, ordered = times.in_order(self.times, where)
        if order is None:
            return self
        labels, notes = None if self.labels is None else self.labels[order], () if note is None else (note,)
        return replace(self, values=self.values[order], times=ordered, labels=labels, notes=(*self.notes, *notes))


def held_in(dtype: np.dtype, entries: int) -> type:
    """The precision that signals are held in."""
    small = np.issubdtype(dtype, np.floating) and dtype.itemsize <= 4
    return np.float32 if small or entries > LARGE else np.float64


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


# -- named columns ---------------------------------------------------------------------------------------------------


class NoLabel(InputError):
    """A split column that is not there."""


def refuse_no_label(label: str | None, names: list[str], path: Path) -> None:
    """A split column that is named has to be there."""
    if label is not None and label not in names:
        raise NoLabel(
            f"{path} without a column {label!r}",
            "the column that says train, val or test",
            "check its name, or split by `chronological` or `random`",
        )


def only_clock(names: list[str], path: Path) -> str | None:
    """The one column of times among these, if there is any."""
    if len(names) > 1:
        raise InputError(f"several time columns in {path}: {some(names)}", "one", "rename or remove the others")
    return names[0] if names else None


class SeveralChannels(InputError):
    """A file of several channels, where one was wanted."""

    @classmethod
    def of(cls, what: str) -> SeveralChannels:
        do = "give a file with one; in time (--window, or load_series in Python) all of them are used"
        return cls(what, "readings of one variable", do)


def roles_of(names: list[str], label: str | None, path: Path, channels: bool = False) -> dict[str, str] | None:
    """Time, node and value columns of a long table, and that of its ``channels``; None for a wide one."""
    rest = [name for place, name in enumerate(names) if name != label and (place or not is_unnamed(name))]
    roles = {role: name for name in reversed(rest) if (role := role_of(name))}
    if not {"time", "node", "value"} <= set(roles):
        return None
    if "variable" in roles and not channels:
        raise SeveralChannels.of(f"{path} with a column {roles['variable']!r}, of several variables")
    if more := [name for name in rest if name not in roles.values()]:
        raise InputError(
            f"{path} with the columns {', '.join(roles.values())}, and {some(repr(name) for name in more)}",
            "a long table, which has exactly time, node and value, or a wide one, with one column a node",
            "remove the other columns; one that says train, val or test is named with --split-by",
        )
    return roles


def role_of(name: str) -> str | None:
    """What a column of this name is for in a long table: time, node, variable or value."""
    if times.is_time(name):
        return "time"
    known = {"node": NODE_NAMES, "value": VALUE_NAMES, "variable": CHANNEL_NAMES}
    return next((role for role, spellings in known.items() if name.casefold() in spellings), None)


def is_unnamed(name: str) -> bool:
    """As a first column: the index of a pandas frame, which has no name, or got one when the file was read again."""
    return name == "" or name.casefold() == "unnamed: 0"


def pivoted_channels(
    stamps: np.ndarray,  # (readings,)
    nodes: Sequence[str] | np.ndarray,  # (readings,)
    variables: Sequence[str] | np.ndarray | None,  # (readings,); None: one channel without a name
    values: np.ndarray,  # (readings,)
    path: Path,
    labels: np.ndarray | None = None,  # (readings,)
) -> dict[str, Table]:
    """A long table made wide, a table a channel, in order of appearance."""
    if variables is None:
        return {"": pivoted(stamps, nodes, values, path, labels)}
    names, of = np.asarray(nodes, dtype=object), np.asarray(variables, dtype=object)
    tables = {}
    for variable in dict.fromkeys(of.tolist()):
        rows = np.flatnonzero(of == variable)
        label = None if labels is None else labels[rows]
        tables[str(variable)] = pivoted(stamps[rows], names[rows], values[rows], path, label)
    return tables


def pivoted(
    stamps: np.ndarray,  # (readings,)
    nodes: Sequence[str] | np.ndarray,  # (readings,)
    values: np.ndarray,  # (readings,)
    path: Path,
    labels: np.ndarray | None = None,  # (readings,)
) -> Table:
    """A long table made wide: rows are the distinct times, columns the nodes in order of appearance."""
    import pandas

    row_of, rows = pandas.factorize(stamps, sort=True)
    column_of, columns = pandas.factorize(np.asarray(nodes, dtype=object))
    if len(rows) * len(columns) > max(SPARSE, 100 * len(values)):
        raise InputError(
            f"{len(rows)} times and {len(columns)} nodes, but only {len(values)} rows in {path}: most would be gaps",
            "readings of most nodes at most times",
            "round the times to a common clock, or leave out nodes that are hardly read",
        )
    place = row_of.astype(np.int64) * len(columns) + column_of
    first = np.unique(place, return_index=True)[1]
    if len(first) < len(place):
        again = int(np.setdiff1d(np.arange(len(place)), first)[0])
        raise InputError(
            f"time {stamps[again]} and node '{nodes[again]}' twice in {path}, again in row {again + 1}",
            "one value a time and node",
            "merge those rows",
        )
    wide = np.full((len(rows), len(columns)), np.nan)
    wide.ravel()[place] = values
    label = None
    if labels is not None:
        label = np.empty(len(rows), dtype=object)
        label[row_of] = labels
        if (label[row_of] != labels).any():
            raise InputError(f"{path} with several splits at one time", "one split a time", "correct the split column")
    return Table(wide, tuple(str(name) for name in columns), np.asarray(rows), label, long=True)
