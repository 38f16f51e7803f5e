"""Graphs from files, by ending: the table of formats. Each has a module of its own.

===================  =================================================================================================
.csv                 an edge list, a distance table, positions, or an adjacency (``csv_graphs``)
.npy                 an adjacency:          numpy.save("graph.npy", W)
.npz                 an adjacency           numpy.savez("graph.npz", adjacency=W, node_ids=names, coords=xy)
                     (names, also as ``sensor_ids`` or ``station_ids``, and coordinates may be left out),
                     positions:             numpy.savez("graph.npz", coords=xy, node_ids=names),
                     or a sparse matrix:    scipy.sparse.save_npz("graph.npz", W)
.graphml, .gml       networkx, igraph, Gephi: edge attribute ``weight`` (1 if no edge has a number), node attributes
                     ``label`` (else the id), and for drawing ``x``, ``y`` or longitude and latitude. Directed files
                     are asymmetric.         networkx.write_gml(G, "graph.gml")
.pkl                 DCRNN's adj_mx.pkl: (names, name -> place, W), read without running it (``pickles.py``)
===================  =================================================================================================

A list in which no pair occurs both ways is undirected; any other asymmetry needs ``symmetrize``. Names are text: node
``007`` stays ``007``. An option that the kind of file has no use for is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...core.errors import unknown
from ...graphs.graph import Graph
from . import csv_graphs, graphml, npz, pickles
from .refusals import existing
from .stored_graph import StoredGraph

READERS: dict[str, Callable[[Path], StoredGraph]] = {
    ".csv": csv_graphs.read,
    ".npy": npz.read_npy_graph,
    ".npz": npz.read_npz_graph,
    ".graphml": graphml.read_graphml,
    ".gml": graphml.read_gml,
    ".pkl": pickles.read_graph,
}


def read_graph(
    path: str | Path,
    symmetrize: str | None = None,  # "half-sum" or "max", for directed weights
    k: int | None = None,  # 5 nearest neighbours
    bandwidth: float | None = None,  # of positions the median distance, of a table the standard deviation
    metric: str | None = None,  # "great-circle" for longitude and latitude in a .csv, else "euclidean"
    threshold: float | None = None,  # 0.1, the smallest weight kept from a distance table
) -> Graph:
    """A graph from a file. None is the default of the kind of file."""
    path = existing(path)
    if path.suffix.lower() not in READERS:
        raise unknown("ending of a graph file", path.suffix, READERS)
    options = {"symmetrize": symmetrize, "k": k, "bandwidth": bandwidth, "metric": metric, "threshold": threshold}
    chosen = {name: value for name, value in options.items() if value is not None}
    return READERS[path.suffix.lower()](path).graph(path, chosen)
