"""Series as a dataset: rows in the order of time, several channels, a graph, and which rows train, validate and test.

A split is a list of slices of rows; a window lies in one of them, for ``series`` has a border wherever one begins.
Nothing is filled and nothing is left out: a row without any reading is a row of gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ..core.errors import InputError, counted, shortened, some, unknown
from ..graphs.graph import Graph
from . import gaps, outliers, splits
from .assembly import leave_out, marker_notes
from .channels import Channels, refuse_empty
from .formats.channels import read_channels
from .formats.table import Table
from .matching import fitted, matched
from .notes import Note
from .options import Options
from .origin import Origin
from .series import Series, interval_of
from .splits import NAMES as SPLIT_NAMES
from .timeline import Timeline

Rows = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class SeriesDataset:
    """Readings of channels at the nodes of a graph, in their own units."""

    name: str
    series: Series  # values (rows, nodes, channels), NaN where missing; borders wherever a split begins
    graph: Graph
    channels: tuple[str, ...]
    units: tuple[str, ...]  # "" where unknown
    splits: dict[str, Rows]  # by split, in the order of rows
    hidden: np.ndarray | None = None  # (rows, nodes, channels), True where a benchmark hides a reading and scores it
    notes: tuple[Note, ...] = ()
    origin: Origin = field(default_factory=Origin)

    def __repr__(self) -> str:
        """Three lines: how many rows, of what, on which graph."""
        counts = " / ".join(f"{len(self.rows(split)):,}" for split in self.splits)
        measured = some(
            f"{name} ({unit})" if unit else name for name, unit in zip(self.channels, self.units, strict=True)
        )
        lines = f"SeriesDataset {shortened(self.name)}: {counts} rows ({' / '.join(self.splits)})", measured
        return "\n  ".join([*lines, repr(self.graph).partition("\n")[0]])

    @property
    def node_ids(self) -> tuple[str, ...]:
        return self.graph.node_ids

    def rows(self, split: str) -> np.ndarray:  # (rows of the split,)
        """The numbers of the rows of train, val or test."""
        if split not in SPLIT_NAMES:
            raise unknown("split", split, SPLIT_NAMES)
        return np.concatenate([np.arange(part.start, part.stop) for part in self.splits[split]]).astype(int)

    def part(self, split: str, hide: bool = False) -> Series:
        """The rows of a split by themselves, with borders where they were cut; ``hide`` makes gaps of ``hidden``."""
        rows, lengths = self.rows(split), [part.stop - part.start for part in self.splits[split]]
        values = self.series.values[rows]
        if hide and self.hidden is not None:
            values = np.where(self.hidden[rows], np.nan, values)
        times = None if self.series.times is None else self.series.times[rows]
        cuts = {*np.cumsum(lengths[:-1]).tolist(), *np.flatnonzero(np.isin(rows, self.series.borders)).tolist()}
        return Series(values, times, tuple(sorted(cuts - {0})), self.series.interval)

    def refuse_short(self, window: int, names: Sequence[str] = ("train", "val")) -> None:
        """Refuse windows that are longer than any stretch of rows without a break in one of these splits."""
        for name in names:
            which = {"train": "training", "val": "validation"}.get(name, name)
            self.part(name).refuse_short(window, which)


def assembled(
    name: str, channels: Channels, network: Graph, options: Options, where: str, hidden: np.ndarray | None = None
) -> SeriesDataset:
    """Match nodes by name, mark gaps, put on a clock, split; and say what was done. ``hidden`` has all columns."""
    _refuse(options, where)
    channels, columns, graph, notes = _matched(channels.with_units(options.unit), network, options, where)
    series = _clocked(channels, options, where)
    refuse_empty(series.values, channels.names, where)
    notes = (*channels.notes, *notes, *_notes(series, channels, graph, options))
    parts, series = _with_own_files(series, channels, graph, options, where)
    refuse_unseen(series.values[_all(parts["train"])], graph)
    borders = sorted({part.start for rows in parts.values() for part in rows} | {*series.borders})
    origin = Origin(
        source=where,
        unit=", ".join(channels.units) if any(channels.units) else "",
        missing=float(np.isnan(series.values).mean()),
        markers=[float(marker) for marker in options.missing or ()],
        fill="none",
        split_by=options.split_by or "chronological",
        files={split: str(file) for split in ("val", "test") if (file := getattr(options, split)) is not None} or None,
        every=options.every,
        channels=list(channels.names),
        written=channels.clock.as_list(),
    )
    return SeriesDataset(
        name,
        replace(series, borders=tuple(row for row in borders if row)),
        graph,
        channels.names,
        channels.units,
        parts,
        None if hidden is None else hidden[:, columns],
        notes,
        origin,
    )


def _refuse(options: Options, where: str) -> None:
    """Options for rows that are apart from each other."""
    if options.fill not in (None, "none"):
        do = "leave --fill out: a window is trained on what is there"
        raise InputError(f"--fill {options.fill} for {where} in time", "gaps that stay open", do)
    if options.cap:
        raise InputError(f"--cap for {where} in time", "all rows: those left out would be breaks", "leave --cap out")
    if options.split_by == "random":
        do = "split them --split-by chronological, or by a column"
        raise InputError(f"a random split of {where}", "rows that follow each other", do)


def _matched(
    channels: Channels, network: Graph, options: Options, where: str
) -> tuple[Channels, np.ndarray, Graph, tuple[Note, ...]]:
    """In the graph's order of nodes; and which columns these were."""
    numbers = Table(np.arange(channels.values.shape[1], dtype=float)[None], channels.node_ids)
    numbers, network = leave_out(options.drop, numbers, network)
    if numbers.node_ids is None and numbers.values.shape[1] != len(network):
        counts = f"{counted(numbers.values.shape[1], 'node')} without names in {where}"
        raise InputError(counts, f"{len(network)}, as the graph has nodes", "name them, or check the graph")
    places, graph, notes = matched(numbers.values, numbers.node_ids, network, where, options.common)
    columns = places[0].astype(int)
    return replace(channels, values=channels.values[:, columns], node_ids=graph.node_ids), columns, graph, notes


def _clocked(channels: Channels, options: Options, where: str) -> Series:
    """Gaps for markers, times on a clock where one was named; irregular times are refused."""
    values = np.ascontiguousarray(channels.values)  # so that the columns of all channels are a view
    gaps.mark(values.reshape(len(values), -1), options.missing or ())
    series = Series(values, channels.times)
    if options.every is not None:
        series = series.regular(interval_of(options.every, channels.times))
    series.refuse_irregular(where)
    return series


def _with_own_files(
    series: Series, channels: Channels, graph: Graph, options: Options, where: str
) -> tuple[dict[str, Rows], Series]:
    """Which rows make which split; those with a file of their own are appended behind a border."""
    own = {split: getattr(options, split) for split in ("val", "test") if getattr(options, split) is not None}
    if channels.labels is not None:
        if options.every is not None:
            raise InputError("--every and a column of splits", "one of them", "give validation and test files (--val)")
        return {split: _runs(rows) for split, rows in splits.labelled(channels.labels, where).items()}, series
    names = [split for split in SPLIT_NAMES if split not in own]
    parts = {split: (part,) for split, part in splits.cut(len(series), names, options.hold_out).items()}
    for split, file in own.items():
        more = Channels.of(read_channels(file, nodes=graph.node_ids), str(file))
        later = _clocked(_fitted(more, channels, graph, options, str(file)), options, str(file))
        if (later.times is None) != (series.times is None):
            what = f"only one of {where} and {file} with times"
            raise InputError(what, "times in both, or in none", "write the times alike")
        Timeline.of(series).refuse_other(later, str(file))
        start = len(series)
        times = None if series.times is None or later.times is None else np.concatenate([series.times, later.times])
        both = np.concatenate([series.values, later.values])
        series = Series(both, times, (*series.borders, start), series.interval)
        parts[split] = (slice(start, len(series)),)
    return {split: parts[split] for split in SPLIT_NAMES}, series


def _fitted(more: Channels, channels: Channels, graph: Graph, options: Options, where: str) -> Channels:
    """Another file in the order of these channels and nodes, all of which it has to have."""
    if absent := [name for name in channels.names if name not in more.names]:
        raise InputError(f"{where} without {some(absent)}", f"the channels {some(channels.names)}", "add them")
    numbers = np.arange(more.values.shape[1], dtype=float)[None]
    columns = fitted(numbers, more.node_ids, graph, where, options.common)[0][0].astype(int)
    order = [more.names.index(name) for name in channels.names]
    return replace(more, values=more.values[:, columns][..., order], names=channels.names, units=channels.units)


def _runs(rows: np.ndarray) -> Rows:
    """Numbers of rows, ascending, as slices."""
    ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
    return tuple(slice(int(rows[start]), int(rows[stop - 1]) + 1) for start, stop in pairwise(ends))


def _all(parts: Rows) -> np.ndarray:
    return np.concatenate([np.arange(part.start, part.stop) for part in parts])


def refuse_unseen(train: np.ndarray, graph: Graph) -> None:  # (rows, nodes, channels)
    """Refuse training rows in which a node has no reading of anything."""
    never = [graph.node_ids[i] for i in np.flatnonzero(np.isnan(train).all(axis=(0, 2)))]
    if never:
        raise InputError(
            f"{counted(len(never), 'node')} without a reading among the training rows: {some(never)}",
            "some training readings at every node",
            "leave those nodes out (--drop NAME), or split the rows otherwise (--split-by)",
        )


def _notes(series: Series, channels: Channels, graph: Graph, options: Options) -> list[Note]:
    """Of each channel: what looks like a marker, and wild readings."""
    notes = list[Note]()
    for k, channel in enumerate(channels.names):
        values = series.values[:, :, k]
        about = [*marker_notes(values, options.missing or ()), *outliers.notes(values, graph.node_ids, series.times)]
        notes += [Note(f"{channel}: {note.what}", note.do) for note in about] if len(channels.names) > 1 else about
    lacking = np.isnan(series.values).all(axis=0)  # (nodes, channels)
    for k in np.flatnonzero(lacking.any(axis=0)).tolist():
        nodes = [graph.node_ids[i] for i in np.flatnonzero(lacking[:, k])]
        notes.append(
            Note(
                f"{counted(len(nodes), 'node has', 'nodes have')} no {channels.names[k]}: {some(nodes)}",
                "those columns are left open",
            )
        )
    return notes
