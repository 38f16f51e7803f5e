"""Readings of several channels (temperature, wind): one table each, put together on the times and nodes of them all.

A node may lack a channel, and a channel may lack a time: those readings are gaps. Tables without times, or without
names of nodes, are taken row by row and column by column, and have to be of one size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.errors import InputError, some
from .formats.table import Table
from .notes import Note
from .written_times import PLAIN, TimeColumn

UNNAMED = "value"  # the only channel of a file that does not say what it measures


@dataclass(frozen=True, eq=False)
class Channels:
    """Readings as files have them, rows in the order of their times."""

    values: np.ndarray  # (rows, nodes, channels), NaN where there is no reading
    names: tuple[str, ...]
    units: tuple[str, ...]  # "" where unknown
    node_ids: tuple[str, ...] | None = None
    times: np.ndarray | None = None  # (rows,) datetime64[ns] or numbers, ascending
    labels: np.ndarray | None = None  # (rows,) what the split column says
    notes: tuple[Note, ...] = ()
    clock: TimeColumn = PLAIN  # of the first table

    @classmethod
    def of(cls, tables: Mapping[str, Table], where: str) -> Channels:
        """From a table a channel, by its name."""
        parts = list(tables.values())
        ids, times = _nodes(tables, where), _times(tables, where)
        shape = (
            len(parts[0].values if times is None else times),
            parts[0].values.shape[1] if ids is None else len(ids),
        )
        values = np.full((*shape, len(parts)), np.nan, dtype=np.result_type(*(part.values for part in parts)))
        labels = None if all(part.labels is None for part in parts) else np.full(shape[0], "", dtype=object)
        place = {name: i for i, name in enumerate(ids or ())}
        for channel, part in enumerate(parts):
            rows = np.arange(shape[0]) if times is None else np.searchsorted(times, _clocked(part))
            columns = np.array([place[name] for name in part.node_ids] if part.node_ids else range(shape[1]))
            values[rows[:, None], columns, channel] = part.values
            if labels is not None and part.labels is not None:
                labels[rows] = part.labels
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        names, units = tuple(name or UNNAMED for name in tables), tuple(part.unit for part in parts)
        return cls(values, names, units, ids, times, labels, notes, parts[0].clock)

    def with_units(self, unit: str | None) -> Channels:
        """With units named by the user: one for all channels, or as many with commas between them."""
        if unit is None:
            return self
        units = [part.strip() for part in unit.split(",")] if len(self.names) > 1 else [unit]
        if len(units) not in (1, len(self.names)):
            raise InputError(
                f"{len(units)} units, {unit!r}, for the channels {some(self.names)}",
                "one for all, or one a channel",
                "separate them by commas, in the order of the channels",
            )
        return replace(self, units=tuple(units * len(self.names) if len(units) == 1 else units))


def _clocked(table: Table) -> np.ndarray:
    assert table.times is not None  # or it was refused
    return table.times


def _nodes(tables: Mapping[str, Table], where: str) -> tuple[str, ...] | None:
    """All nodes, in the order in which they first appear; None if no table names any."""
    named = [table.node_ids for table in tables.values() if table.node_ids is not None]
    if len(named) == len(tables):
        return tuple(dict.fromkeys(name for ids in named for name in ids))
    widths = {channel: table.values.shape[1] for channel, table in tables.items()}
    if named or len({*widths.values()}) > 1:
        raise InputError(
            f"{where} with channels of {_listed(widths)} nodes, "
            + ("only some of which are named" if named else "without names"),
            "the names of the nodes in every channel, or as many nodes in each",
            "name them",
        )
    return None


def _times(tables: Mapping[str, Table], where: str) -> np.ndarray | None:
    """All times, ascending; None if no table has any."""
    clocks = [table.times for table in tables.values() if table.times is not None]
    if not clocks:
        heights = {channel: len(table.values) for channel, table in tables.items()}
        if len({*heights.values()}) > 1:
            what = f"{where} with channels of {_listed(heights)} rows, without times"
            raise InputError(what, "times, or as many rows in each channel", "add a column of times")
        return None
    if len(clocks) < len(tables) or len({clock.dtype.kind == "M" for clock in clocks}) > 1:
        raise InputError(
            f"{where} with {'times' if len(clocks) < len(tables) else 'dates'} in some channels only",
            "dates in every channel, or numbers in every channel, or times in none",
            "write the times alike",
        )
    return clocks[0] if len(clocks) == 1 else np.unique(np.concatenate(clocks))


def _listed(counts: Mapping[str, int]) -> str:
    return some(f"{count:,} ({name or UNNAMED})" for name, count in counts.items())


def refuse_empty(values: np.ndarray, names: Sequence[str], where: str) -> None:
    """A channel (of rows, nodes, channels) in which nothing was ever read is none."""
    empty = [name for name, channel in zip(names, np.moveaxis(values, -1, 0), strict=True) if np.isnan(channel).all()]
    if empty:
        raise InputError(
            f"{where} without a single reading of {some(empty)}", "some readings of every channel", "leave it out"
        )
