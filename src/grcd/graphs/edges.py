"""Edge lists: rows (source, target, value) by node name, checked, and turned into a matrix.

Nodes stand in the order of ``node_ids``, or else in the order in which the list first names them. A row from a node to
itself declares that node and nothing more. The same row twice is an error, as is a value that is not a finite number
from 0 up. Whole numbers that come as floats (an array of rows has one type) name their nodes without the ``.0``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.errors import InputError, counted, some


@dataclass(frozen=True)
class EdgeList:
    """Edges as triples of places in ``node_ids`` and values."""

    node_ids: tuple[str, ...]
    source: np.ndarray  # (edges,)
    target: np.ndarray  # (edges,)
    values: np.ndarray  # (edges,)

    @classmethod
    def of(cls, edges: Iterable, node_ids: Sequence[str] | None = None, value: str = "weight") -> EdgeList:
        """Rows (source, target, value); a weight may be left out and is then 1."""
        rows = _rows(edges, value)
        named = tuple(dict.fromkeys(name for source, target, _ in rows for name in (source, target)))
        ids = named if node_ids is None else checked_ids(node_ids, len(node_ids))
        if not ids:
            raise InputError("no edges", "rows (source, target), or the names of the nodes", "list the edges")
        place = {name: i for i, name in enumerate(ids)}
        strangers = [name for name in named if name not in place]
        if strangers:
            raise InputError(
                f"edges of {len(strangers)} unknown nodes: {some(strangers)}",
                f"nodes out of the {len(ids)} that are named",
                "name those nodes too, or remove their edges",
            )
        ends = np.array([(place[source], place[target]) for source, target, _ in rows], dtype=int).reshape(-1, 2)
        listed = cls(ids, ends[:, 0], ends[:, 1], np.array([number for *_, number in rows], dtype=np.float64))
        listed._refuse_bad(value)
        listed._refuse_twice()
        return listed

    @property
    def once(self) -> bool:
        """Whether no pair of nodes occurs in both directions."""
        between = self.source != self.target
        back = self.target * len(self.node_ids) + self.source
        return not np.isin(self._codes[between], back[between]).any()

    @property
    def matrix(self) -> sp.coo_array:  # (nodes, nodes), from source to target; zeros are stored
        return sp.coo_array((self.values, (self.source, self.target)), shape=(len(self.node_ids),) * 2)

    @property
    def _codes(self) -> np.ndarray:
        return self.source * len(self.node_ids) + self.target

    def _refuse_bad(self, value: str) -> None:
        bad = np.flatnonzero(~(np.isfinite(self.values) & (self.values >= 0)))
        if len(bad):
            at = [f"{self._edge(e)} ({self.values[e]:g})" for e in bad[:4]]
            raise InputError(
                f"{counted(len(bad), 'edge')} with a {value} that is negative or not finite: {some(at, 3)}",
                "finite numbers from 0 up",
                "correct or remove those edges",
            )

    def _refuse_twice(self) -> None:
        _, first, count = np.unique(self._codes, return_index=True, return_counts=True)
        if (count > 1).any():
            twice = [self._edge(e) for e in first[count > 1]]
            raise InputError(
                f"edges that occur twice: {some(twice, 3)}", "every edge once", "remove or merge the repeated rows"
            )

    def _edge(self, e: int) -> str:
        return f"{self.node_ids[self.source[e]]} -> {self.node_ids[self.target[e]]}"


def _rows(edges: Iterable, value: str) -> list[tuple[str, str, float]]:
    if hasattr(edges, "itertuples"):  # a data frame iterates over its column names
        edges = edges.itertuples(index=False, name=None)
    try:
        edges = list(edges)
    except TypeError:
        raise InputError(f"edges of type {type(edges).__name__}", "rows of nodes", "pass a list of tuples") from None
    return [_row(number, edge, value) for number, edge in enumerate(edges, start=1)]


def _row(number: int, edge: Any, value: str) -> tuple[str, str, float]:
    try:
        source, target, amount = (*edge, 1.0) if value == "weight" and len(edge) == 2 else edge
        return name_of(source), name_of(target), float(amount)
    except (TypeError, ValueError, OverflowError):
        expected = "(source, target) or (source, target, weight)" if value == "weight" else f"(source, target, {value})"
        got = f"{str(edge)[:80]} as edge {number}"
        raise InputError(got, f"{expected}: two names and a number", "correct that row") from None


def name_of(end: object) -> str:
    """What a node is called; a whole number that came as a float without its ``.0``."""
    if isinstance(end, float | np.floating):
        if not np.isfinite(end):
            raise ValueError("no name")
        return str(int(end)) if end == int(end) else str(end)
    if end is None:
        raise ValueError("no name")
    return str(end)


def checked_ids(node_ids: Sequence[str] | None, nodes: int) -> tuple[str, ...]:
    """Unique names, one a node; where there are none, the nodes are numbered."""
    ids = tuple(str(i) for i in range(nodes)) if node_ids is None else tuple(str(name) for name in node_ids)
    if len(ids) != nodes:
        raise InputError(
            f"{len(ids)} node names for {nodes} nodes", "one name per node", "give every node exactly one name"
        )
    if len(set(ids)) != nodes:
        twice = sorted(name for name, count in Counter(ids).items() if count > 1)
        raise InputError(f"node names that occur twice: {some(twice)}", "unique names", "rename or merge those nodes")
    return ids
