"""Rows in time for a trained model of windows: from files, matched to its nodes and channels by name, on its clock.

Whatever is asked of such a model takes rows at the interval it was trained at: rows at another one are refused, and
``every`` puts them on its clock. What came in is remembered, so that what goes out looks like it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ..core.errors import InputError, some
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from . import gaps
from .channels import UNNAMED, Channels
from .formats.channels import named, read_channels
from .formats.table import Table
from .matching import fitted
from .normalizer import check_signals
from .notes import Note, warn
from .observed import unlabelled, with_gaps, without
from .series import Series, interval_of
from .timeline import refuse_interval
from .written_times import PLAIN, TimeColumn

NAMELESS = ("", UNNAMED)


@dataclass(frozen=True)
class Wanted:
    """What a trained model has to find in a file."""

    graph: Graph
    channels: tuple[str, ...]
    units: tuple[str, ...] = ()  # "" where unknown
    interval: np.timedelta64 | float | None = None  # between rows; None: they have no times


@dataclass(frozen=True, eq=False)
class ObservedSeries:
    """A series in the model's order of nodes and channels, and what the files said of it."""

    series: Series  # values (rows, nodes, channels), NaN where missing
    node_ids: list[str]  # in the order of the files
    order: list[int]  # where in the model's order these are
    variables: tuple[str, ...]  # names of channels as the files have them; none where they have none
    channel_order: list[int]  # where in the model's order these channels are
    units: tuple[str, ...]  # the model's, in the order of the files
    long: bool  # whether a table that goes out has a row a reading
    clock: TimeColumn = PLAIN  # what its column of times is called, and how they are written

    def laid_out(self, values: np.ndarray) -> np.ndarray:  # (..., nodes, channels) -> (..., nodes[, channels])
        """In the order of the files; without an axis of channels where they name none."""
        ordered = values[..., self.order, :][..., self.channel_order]
        return ordered if self.variables else ordered[..., 0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row, laid out."""
        return (len(self.order), *(len(self.channel_order),) * bool(self.variables))


def read_observed_series(
    files: Sequence[str | Path],
    wanted: Wanted,
    missing: Sequence[float] = (),  # values that mark a gap
    common: bool = False,  # drop columns and channels that the model does not know
    absent: bool = False,  # a node or a channel that is not there has a gap everywhere
    every: str | None = None,
    dropped: Collection[str] = (),  # nodes that the training left out, and that are left out here
    label: str | None = None,  # the split column of the training, which may be here too
) -> ObservedSeries:
    """Rows in time from a file, or from several, each as `NAME=FILE`."""
    where = ", ".join(str(named(file)[1]) for file in files)
    tables = unlabelled(partial(read_channels, files, nodes=wanted.graph.node_ids), label)
    own = [name for name in tables if name and not (len(files) == 1 and named(files[0])[0])]  # names that a file has
    long = len(files) > 1 or any(table.long for table in tables.values())
    channels = Channels.of(tables, where)
    channels, places, notes = _known_channels(channels, wanted, where, common, absent)
    values, node_ids, order, more = _known_nodes(channels, wanted.graph, where, common, absent, dropped)
    gaps.mark(values.reshape(len(values), -1), missing)
    _refuse_values(values, wanted, where)
    series = Series(values, channels.times)
    if every is not None:
        series = series.regular(interval_of(every, channels.times))
    refuse_interval(series, wanted.interval, where)
    series.refuse_irregular(where)
    warn((*channels.notes, *notes, *more, *_unit_notes(channels, wanted, where)))
    units = tuple(wanted.units[k] for k in places) if wanted.units else ()
    variables = tuple(wanted.channels[k] for k in places) if own or len(places) > 1 else ()
    return ObservedSeries(series, node_ids, order, variables, places, units, long, channels.clock)


def _known_channels(
    channels: Channels, wanted: Wanted, where: str, common: bool, absent: bool
) -> tuple[Channels, list[int], tuple[Note, ...]]:
    """All channels of the model in its order; and where in it those of the files are, the absent ones last."""
    place = {name: k for k, name in enumerate(wanted.channels)}
    names = list(channels.names)
    if len(names) == len(place) == 1 and (names[0] in NAMELESS or wanted.channels[0] in NAMELESS):
        names = [*wanted.channels]
    strange, lacking = [name for name in names if name not in place], [name for name in place if name not in names]
    if (strange and not common) or len(lacking) == len(place) or (lacking and not absent):
        raise _other_channels(strange, lacking, wanted, where)
    notes = (Note(f"{where} has {some(strange)}, which the model does not know", "dropped"),) * bool(strange)
    notes += (Note(f"{where} has no {some(lacking)}", "all of their readings are gaps"),) * bool(lacking)
    values = np.full((*channels.values.shape[:2], len(place)), np.nan)
    units = ["" for _ in place]
    kept = [(k, place[name]) for k, name in enumerate(names) if name in place]
    for k, there in kept:
        values[..., there], units[there] = channels.values[..., k], channels.units[k]
    order = [there for _, there in kept] + [place[name] for name in lacking]
    return replace(channels, values=values, names=wanted.channels, units=tuple(units)), order, notes


def _other_channels(strange: list[str], lacking: list[str], wanted: Wanted, where: str) -> InputError:
    if strange and all(name in NAMELESS for name in strange):
        got = f"{where}, which does not say what was measured"
    else:
        parts = [f"{len(lacking)} missing ({some(lacking)})"] * bool(lacking)
        got = f"{where} with channels that do not match the run's: " + ", ".join(
            [*parts, *[f"{len(strange)} unknown ({some(strange)})"] * bool(strange)]
        )
    do = f"name each: {wanted.channels[0] or UNNAMED}=FILE"
    do += ", or drop those that are unknown (--common)" if strange and not lacking else ""
    return InputError(got, f"the channels {some(wanted.channels)}", do)


def _known_nodes(
    channels: Channels, graph: Graph, where: str, common: bool, absent: bool, dropped: Collection[str]
) -> tuple[np.ndarray, list[str], list[int], tuple[Note, ...]]:
    """Values in the graph's order of nodes, the names of the files in theirs, and where those are in the graph's."""
    rows, width, count = channels.values.shape
    numbers = without(dropped, Table(np.arange(width, dtype=float)[None], channels.node_ids))
    numbers = with_gaps(numbers, graph, where) if absent else numbers
    if numbers.node_ids is None and width != len(graph):
        got = f"{width} columns without names in {where}"
        raise InputError(got, f"{len(graph)}, as the model has nodes", "name them")
    columns, notes = fitted(numbers.values, numbers.node_ids, graph, where, common=common)
    values = np.full((rows, len(graph), count), np.nan)
    there = ~np.isnan(columns[0])
    values[:, there] = channels.values[:, columns[0, there].astype(int)]
    place = {name: i for i, name in enumerate(graph.node_ids)}
    names = [name for name in numbers.node_ids or graph.node_ids if name in place]
    return values, names, [place[name] for name in names], (*numbers.notes, *notes)


def _refuse_values(values: np.ndarray, wanted: Wanted, where: str) -> None:
    """Infinite ones."""
    for k, name in enumerate(wanted.channels):
        what = f"{where} ({name})" if len(wanted.channels) > 1 else where
        check_signals(values[..., k], SignalSpace(wanted.graph), what, least=1, gaps=True)


def _unit_notes(channels: Channels, wanted: Wanted, where: str) -> list[Note]:
    """Of channels that a file has in another unit than the run, by what both say."""
    pairs = zip(channels.names, channels.units, wanted.units or ("",) * len(channels.names), strict=True)
    return [
        Note(f"{where} has {f'{name} ' if name not in NAMELESS else 'readings '}in {unit}, the run in {own}", "convert")
        for name, unit, own in pairs
        if unit and own and unit != own
    ]
