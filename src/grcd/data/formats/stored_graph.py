"""What a file holds of a graph: an adjacency, edges, distances or positions, and which options each of these takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...graphs.graph import Graph

LARGEST = 10_000_000  # nodes of a sparse matrix: what no file means
OPTIONS = {
    "an adjacency": ("symmetrize",),
    "an edge list": ("symmetrize",),
    "a distance table": ("symmetrize", "bandwidth", "threshold"),
    "positions": ("k", "bandwidth", "metric"),
}


@dataclass(frozen=True)
class StoredGraph:
    """A kind of content, and how a graph is built from it once the options are known."""

    kind: str  # one of ``OPTIONS``
    build: Callable[..., Graph]  # takes the options of its kind

    @classmethod
    def adjacency(
        cls,
        weights: Any,  # (nodes, nodes), dense or sparse
        ids: Sequence[str] | None = None,
        coords: np.ndarray | None = None,  # (nodes, 2)
        origin: str = "adjacency",
    ) -> StoredGraph:
        return cls("an adjacency", partial(Graph.from_adjacency, weights, ids, coords=coords, origin=origin))

    @classmethod
    def edges(cls, rows: list[tuple]) -> StoredGraph:  # of (source, target) or (source, target, weight)
        return cls("an edge list", partial(Graph.from_edges, rows))

    @classmethod
    def distances(cls, rows: list[tuple]) -> StoredGraph:  # of (source, target, distance)
        return cls("a distance table", partial(Graph.from_distances, rows))

    @classmethod
    def positions(cls, coords: np.ndarray, ids: Sequence[str] | None, metric: str = "euclidean") -> StoredGraph:
        return cls("positions", partial(Graph.from_coordinates, coords, ids, metric=metric))

    def graph(self, path: Path, options: dict[str, Any]) -> Graph:
        """The graph; an option that this kind has no use for is refused."""
        for name in options:
            if name not in OPTIONS[self.kind]:
                belongs = [other for other, names in OPTIONS.items() if name in names]
                raise InputError(
                    f"the option {name} for {path}, which holds {self.kind}",
                    f"{name} with {' or '.join(belongs)}",
                    "leave it out",
                )
        graph = self.build(**options)
        return replace(graph, origin=f"{path.name}: {graph.origin}")
