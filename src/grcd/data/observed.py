"""Signals for a trained model to work on: read from a file, and matched to its nodes by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..core.errors import some
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from . import gaps
from .formats.signals import read_signals
from .formats.table import NoLabel, Table
from .matching import fitted
from .normalizer import check_signals
from .notes import Note, warn
from .written_times import PLAIN, TimeColumn

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Observed:
    """Signals in the model's node order, and what the file said of them."""

    x: np.ndarray  # (signals, nodes), NaN where missing
    times: np.ndarray | None  # (signals,)
    node_ids: list[str]  # in the order of the file
    order: list[int]  # where in the model's order these are
    clock: TimeColumn = PLAIN  # what its column of times is called, and how they are written


def read_observed(
    file: str | Path,
    graph: Graph,
    missing: Sequence[float] = (),  # values that mark a gap
    common: bool = False,  # drop columns that the graph does not have
    absent: bool = False,  # a node without a column has a gap everywhere
    dropped: Collection[str] = (),  # nodes that the training left out, and that are left out here
    label: str | None = None,  # the split column of the training, which may be here too
) -> Observed:
    """Signals from a file, with one column for each node of the graph."""
    table = without(dropped, unlabelled(partial(read_signals, file, nodes=graph.node_ids), label))
    table = with_gaps(table, graph, str(file)) if absent else table
    values = np.array(table.values, np.float64)  # a copy: columns are put in order in place
    gaps.mark(values, missing)
    x, notes = fitted(values, table.node_ids, graph, str(file), common=common)
    warn((*table.notes, *notes))
    place = {name: i for i, name in enumerate(graph.node_ids)}
    names = [name for name in table.node_ids or graph.node_ids if name in place]
    x = check_signals(x, SignalSpace(graph), str(file), least=1, gaps=True)
    return Observed(x, table.times, names, [place[name] for name in names], table.clock)


def unlabelled(read: Callable[..., T], label: str | None) -> T:
    """What ``read(label=...)`` reads, whether or not there is such a column."""
    try:
        return read(label=label)
    except NoLabel:
        return read(label=None)


def without(dropped: Collection[str], table: Table) -> Table:
    """Leave out the columns of nodes that the training left out."""
    columns = [i for i, name in enumerate(table.node_ids or ()) if name not in dropped]
    if table.node_ids is None or len(columns) == len(table.node_ids):
        return table
    names = [name for name in table.node_ids if name in dropped]
    note = Note(f"{some(names)} {'was' if len(names) == 1 else 'were'} left out of the training", "left out here too")
    ids = tuple(table.node_ids[i] for i in columns)
    return replace(table, values=table.values[:, columns], node_ids=ids, notes=(*table.notes, note))


def with_gaps(table: Table, graph: Graph, where: str) -> Table:
    """An empty column for each node that has none, if some have one."""
    named = table.node_ids or graph.node_ids
    absent = [name for name in graph.node_ids if name not in named]
    if not absent or len(absent) == len(graph):
        return table
    empty = np.full((len(table.values), len(absent)), np.nan)
    note = Note(f"{where} has no column for {some(absent)}", "all of their readings are gaps")
    values, names = np.hstack([table.values, empty]), (*named, *absent)
    return replace(table, values=values, node_ids=names, notes=(*table.notes, note))
