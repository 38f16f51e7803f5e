"""From a table and a graph to a dataset: match nodes by name, mark gaps, split, fill, cap; and say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..core.errors import InputError, counted, some
from ..core.rows import evenly
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from . import gaps, outliers, splits
from .dataset import Dataset
from .formats.signals import read_signals
from .formats.table import Table
from .matching import fitted, matched
from .normalizer import check_signals
from .notes import Note
from .options import Options
from .origin import Origin
from .splits import NAMES as SPLIT_NAMES


@dataclass(frozen=True)
class Opened:
    """Signals as read, and the graph if there is one: what a dataset is made of."""

    name: str
    table: Table
    graph: Graph | None
    options: Options
    where: str  # the file or the name, for messages
    settled: Dataset | None = None  # where splits and gaps were settled before

    @classmethod
    def ready(cls, data: Dataset, options: Options, where: str) -> Opened:
        """With its splits put together again, and open gaps for what was filled."""
        values = np.concatenate([data.split(split) for split in SPLIT_NAMES])
        if data.filled:
            values[np.concatenate([data.filled[split] for split in SPLIT_NAMES])] = np.nan
        times = np.concatenate([data.times[split] for split in SPLIT_NAMES]) if data.times else None
        table = Table(values, data.graph.node_ids, times, unit=data.unit)
        data = replace(data, notes=(*data.notes, *outliers.notes(values, data.graph.node_ids, times)))
        return cls(data.name, table, data.graph, options, where, data)

    @cached_property
    def dataset(self) -> Dataset:
        if self.settled is not None:
            return self.settled
        assert self.graph is not None  # or it was refused
        return _assembled(self.name, self.table, self.graph, self.options, self.where)


def _assembled(name: str, table: Table, network: Graph, options: Options, where: str) -> Dataset:
    table, network = leave_out(options.drop, table, network)
    values, graph, notes = matched(table.values, table.node_ids, network, where, options.common)
    table = replace(table, values=values, notes=(*table.notes, *notes))
    table, rows, apart = _with_own_files(table, graph, options, where)
    policy, markers, unit = options.fill or "none", options.missing or (), options.unit or table.unit
    gaps.mark(table.values, markers)
    absent = gaps.missing(table.values)
    notes = (
        *table.notes,
        *marker_notes(table.values, markers),
        *_gap_notes(absent, len(table.values), graph, policy),
        *outliers.notes(table.values, graph.node_ids, table.times),
    )
    together = [part for split, part in rows.items() if split not in apart]
    own = [rows[split] for split in apart]
    filled = gaps.fill(table.values, policy, together, graph.node_ids, table.times, own)
    rows, dropped = _kept(table.values, rows, options.cap or (), policy)
    empty = f"{counted(dropped, 'row has', 'rows have')} no reading at all"
    notes += (Note(empty, "left out of single rows"),) * bool(dropped)
    origin = Origin(
        source=where,
        unit=unit,
        missing=float(absent.sum() / table.values.size),
        markers=[float(marker) for marker in markers],
        fill=policy,
        split_by=options.split_by or "chronological",
        split_seed=options.split_seed if options.split_by == "random" else None,
        files={split: str(getattr(options, split)) for split in apart},
        cap=list(options.cap or ()),
    )
    return Dataset(
        name,
        graph,
        **{split: table.values[rows[split]] for split in SPLIT_NAMES},
        unit=unit,
        times={} if table.times is None else {split: table.times[part] for split, part in rows.items()},
        filled={} if filled is None else {split: filled[part] for split, part in rows.items()},
        notes=notes,
        origin=origin,
    )


def leave_out(drop: Sequence[str], table: Table, graph: Graph) -> tuple[Table, Graph]:
    """Leave nodes out on both sides."""
    names = [str(name) for name in drop]
    strange = [name for name in names if name not in graph.node_ids and name not in (table.node_ids or ())]
    if strange:
        raise InputError(f"nodes to drop that are nowhere: {some(strange)}", "names of nodes", "check their names")
    if not names:
        return table, graph
    kept = [i for i, name in enumerate(graph.node_ids) if name not in names]
    columns = [i for i, name in enumerate(table.node_ids or graph.node_ids) if name not in names]
    ids = table.node_ids and tuple(table.node_ids[i] for i in columns)
    graph = replace(graph.permuted(kept), origin=f"{graph.origin}, without {', '.join(names)}")
    return replace(table, values=table.values[:, columns], node_ids=ids), graph


def _with_own_files(table: Table, graph: Graph, options: Options, where: str) -> tuple[Table, dict, list[str]]:
    """Which rows make which split, and which splits have a file of their own: those are appended to the table."""
    own = {split: getattr(options, split) for split in ("val", "test") if getattr(options, split) is not None}
    names, count = [split for split in SPLIT_NAMES if split not in own], len(table.values)
    rows: dict[str, np.ndarray | slice] = {}
    if table.labels is not None:
        rows |= splits.labelled(table.labels, where)
    elif options.split_by == "random":
        rows |= splits.drawn(count, options.split_seed, names, options.hold_out)
    else:
        rows |= splits.cut(count, names, options.hold_out)
    for split, file in own.items():
        more = read_signals(file, nodes=graph.node_ids)
        if options.drop and more.node_ids:
            more = leave_out([name for name in options.drop if name in more.node_ids], more, graph)[0]
        table = _appended(table, more, graph, options, str(file))
        rows[split] = slice(count, len(table.values))
        count = len(table.values)
    return table, {split: rows[split] for split in SPLIT_NAMES}, list(own)


def _appended(table: Table, more: Table, graph: Graph, options: Options, where: str) -> Table:
    values, notes = fitted(more.values, more.node_ids, graph, where, options.common)
    values = check_signals(values, SignalSpace(graph), where, 1, gaps=True)
    if (table.times is None) != (more.times is None):
        notes = (*notes, Note(f"only one of {where} and the training signals has times", "they are left out"))
    times = None if table.times is None or more.times is None else [table.times, more.times]
    if times and len({part.dtype.kind == "M" for part in times}) > 1:
        raise InputError(
            f"{where} with times of another kind than the training signals",
            "dates in both files, or numbers in both",
            "write the times alike, or leave them out",
        )
    return replace(
        table,
        values=np.concatenate([table.values, values]),
        times=None if times is None else np.concatenate(times),
        notes=(*table.notes, *more.notes, *notes),
    )


def _kept(values: np.ndarray, rows: dict, cap: Sequence[int], policy: str) -> tuple[dict, int]:
    """Rows with nothing observed are of no use; of the rest at most ``cap``. And how many had nothing."""
    caps = dict(zip(SPLIT_NAMES, cap if len(cap) == 3 else [*cap] * 3, strict=False))
    seen = gaps.any_reading(values) if policy == "none" else np.ones(len(values), dtype=bool)
    kept = {}
    for split, part in rows.items():
        places = np.flatnonzero(seen[part])
        chosen = places[evenly(len(places), caps.get(split, len(places)))]
        whole = len(chosen) == len(seen[part])  # then a slice stays one, and its rows a view
        kept[split] = part if whole else np.arange(len(values))[part][chosen]
    return kept, int((~seen).sum())


def marker_notes(values: np.ndarray, markers: Sequence[float]) -> list[Note]:
    """Readings that look like markers of missing ones."""
    silent, far = None if 0 in markers else gaps.silent_zeros(values), gaps.far_constant(values)
    notes = []
    if silent is not None:
        where = f"at {counted(silent.nodes, 'node')}, where others are about {silent.usual:.3g}"
        what = f"{silent.share:.1%} of the readings are exactly 0, {where}"
        notes.append(
            Note(what, "if 0 marks a missing reading, --missing 0; else they are learned as the readings they are")
        )
    if far is not None and not (silent is not None and far == 0):
        value = f"{far:.15g}"
        what = f"several readings are exactly {value}, far from all others"
        notes.append(Note(what, f"if it marks a gap, --missing {value}"))
    return notes


def _gap_notes(absent: np.ndarray, rows: int, graph: Graph, policy: str) -> list[Note]:
    """How many readings are missing, and what becomes of the gaps."""
    if not absent.any():
        return []
    worst = np.argsort(-absent, kind="stable")[:3]
    share = f"{absent.sum() / (rows * len(absent)):.2%} of the readings are missing (most at "
    share += ", ".join(f"{graph.node_ids[i]} {absent[i] / rows:.1%}" for i in worst if absent[i]) + ")"
    if policy == "none":
        do = "the model is trained on what is there; --fill linear (or forward-backward, mean) fills them"
        return [Note(share, do)]
    return [Note(f"{share} and were filled by {policy!r}", "evaluate with --observed-only leaves them out")]
