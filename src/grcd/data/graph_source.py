"""A graph from what users hold in memory: as ``formats`` reads it from files, so is it taken here.

Graph                            itself
networkx graph                   edge attribute ``weight`` (1 if no edge has a number); node attribute ``label``
data frame with columns
  source, target[, weight]       a list of edges; with ``distance`` in place of ``weight`` a table of distances
  node, latitude, longitude      positions, or x and y: nearest neighbours; nodes may be the index
  any other                      weights (nodes, nodes), named by the columns
scipy sparse matrix, array       weights (nodes, nodes)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InputError
from ..graphs.graph import Graph
from .formats import csv_graphs, graphml
from .formats.csv import Columns

if TYPE_CHECKING:
    from pandas import DataFrame

FRAME = Path("the data frame")  # as messages call it, where a file has its path


def graph_of(source: Any) -> Graph:
    """The graph that ``source`` is, or says."""
    if isinstance(source, Graph):
        return source
    if hasattr(source, "nodes") and hasattr(source, "edges") and hasattr(source, "is_directed"):
        return graphml.of_network(source, "the networkx graph").build()
    if hasattr(source, "columns") and hasattr(source, "index"):
        return _of_frame(source)
    return Graph.from_adjacency(source)


def _of_frame(frame: DataFrame) -> Graph:
    import pandas

    table = frame if isinstance(frame.index, pandas.RangeIndex) else frame.reset_index()
    names = [str(name) for name in table.columns]
    columns = Columns(FRAME, names, _as_read(table, {*csv_graphs.names_in(names)}))
    stored = csv_graphs.listed(columns)
    return _of_weights(frame) if stored is None else stored.build()


def _as_read(table: DataFrame, text: set[str]) -> DataFrame:
    """Columns by number, names of nodes as text: 7.0 is called 7, as in a file."""
    import pandas

    from ..graphs.edges import name_of

    frame = table.set_axis(range(len(table.columns)), axis=1)
    for place, name in enumerate(table.columns):
        if str(name) in text:
            cells = ["" if pandas.isna(cell) else name_of(cell) for cell in frame[place]]
            frame[place] = pandas.Series(cells, frame.index, dtype=str)
    return frame


def _of_weights(frame: DataFrame) -> Graph:
    """A square table, rows in the order of the columns, or named like them."""
    columns, index = [str(name) for name in frame.columns], [str(name) for name in frame.index]
    if len(columns) != len(index):
        raise InputError(
            f"a data frame of {len(index)} rows with the columns {', '.join(columns[:5])}",
            "columns source,target[,weight or distance], or node,longitude,latitude, or node,x,y, or a square table",
            "name the columns so, or pass the whole matrix",
        )
    if columns != index and {*columns} == {*index}:
        frame = frame.iloc[[index.index(name) for name in columns]]
    return Graph.from_adjacency(frame)


def complete(nodes: int) -> Graph:
    """Where nobody knows how nodes lie to each other: every node is next to every other."""
    origin = "no graph, so every node is next to every other"
    return Graph.from_adjacency(np.ones((nodes, nodes)) - np.eye(nodes), origin=origin)
