"""Columns meet nodes by name, never by order; where one side has no names it takes the other's, and that is said."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np

from ..core.errors import InputError, counted, some
from ..core.rows import blocks
from ..graphs.graph import Graph
from .notes import Note

Match = tuple[np.ndarray, Graph, tuple[Note, ...]]
Fitted = tuple[np.ndarray, tuple[Note, ...]]


def matched(values: np.ndarray, ids: Sequence[str] | None, graph: Graph, where: str, common: bool = False) -> Match:
    """Columns in the graph's node order, the graph they belong to, and what to say. Values may be reordered in place.

    ``common`` drops the nodes that only one side has.
    """
    if ids is None or graph.named:
        return _by_name(values, ids, graph, where, common)
    if len(ids) != len(graph):
        raise InputError(
            f"{counted(len(ids), 'column')} in {where}", f"{len(graph)}, as the graph has nodes", "name its nodes"
        )
    note = Note("the graph has no node names", f"its order is taken to be that of the columns in {where}")
    notes = () if tuple(ids) == graph.node_ids else (note,)
    return values, replace(graph, node_ids=tuple(ids), named=True), notes


def fitted(values: np.ndarray, ids: Sequence[str] | None, graph: Graph, where: str, common: bool = False) -> Fitted:
    """Columns in the order of a graph that is settled: every node has to be there; ``common`` drops other columns."""
    if ids is not None and common and set(graph.node_ids) <= set(ids):
        return _by_name(values, ids, graph, where, True)[::2]
    try:
        return _by_name(values, ids, graph, where, False)[::2]
    except InputError as error:
        if ids is None or set(graph.node_ids) <= set(ids):
            raise
        do = "rename the columns, or add those that are missing (an empty one is a gap)"  # --common cannot help
        raise InputError(error.got, error.expected, do) from None


def _by_name(values: np.ndarray, ids: Sequence[str] | None, graph: Graph, where: str, common: bool) -> Match:
    if ids is None:
        note = Note(f"{where} has no node names", "its columns are taken in the graph's order")
        return values, graph, (note,) if graph.named and values.shape[1:] == (len(graph),) else ()
    if tuple(ids) == graph.node_ids:
        return values, graph, ()
    place, nodes = {name: i for i, name in enumerate(ids)}, set(graph.node_ids)
    missing, extra = [name for name in graph.node_ids if name not in place], [name for name in ids if name not in nodes]
    if not missing and not extra:
        return _reordered(values, [place[name] for name in graph.node_ids]), graph, ()
    if not common or len(missing) > len(graph) - 2:
        raise _mismatch(missing, extra, graph, where)
    graph = _reduced(graph, place, len(missing))
    dropped = [f"{len(extra)} of the signals ({some(extra)})"] * bool(extra)
    dropped += [f"{len(missing)} of the graph ({some(missing)})"] * bool(missing)
    note = Note(f"nodes that only one side has, {' and '.join(dropped)}", "dropped")
    return values[:, [place[name] for name in graph.node_ids]], graph, (note,)


def _reduced(graph: Graph, kept: Container[str], dropped: int) -> Graph:
    if not dropped:
        return graph
    graph = graph.permuted([i for i, name in enumerate(graph.node_ids) if name in kept])
    return replace(graph, origin=f"{graph.origin}, without {dropped} nodes that have no signals (one-way: before that)")


def _reordered(values: np.ndarray, order: list[int]) -> np.ndarray:
    """In place, block by block: a second copy of a large table might not fit."""
    for rows in blocks(*values.shape):
        values[rows] = values[rows][:, order]
    return values


def _mismatch(missing: list[str], extra: list[str], graph: Graph, where: str) -> InputError:
    parts = [f"{len(missing)} missing ({some(missing)})"] * bool(missing)
    parts += [f"{len(extra)} unknown ({some(extra)})"] * bool(extra)
    return InputError(
        f"{where} with nodes that do not match the graph: {', '.join(parts)}",
        f"the graph's {len(graph)} node names",
        "rename the columns, take the graph or the run of these signals, or keep only the common nodes (--common)"
        + "; a line NODE,NODE,1 in a list of edges names a node without neighbours" * bool(extra),
    )
