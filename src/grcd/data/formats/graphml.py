"""GraphML and GML, through networkx: what networkx, igraph and Gephi write.

The edge attribute `weight` counts (1 if no edge has a number); nodes are called by their `label`, or else by their id;
`x` and `y`, or longitude and latitude, are kept for drawing. Directed files are asymmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.errors import InputError, counted, some
from ...graphs.edges import EdgeList
from .csv_graphs import ALIASES
from .refusals import damage_is_refused, needed
from .stored_graph import StoredGraph


def read_graphml(path: Path) -> StoredGraph:
    """One graph, without graphs in its nodes."""
    return _stored(path, partial(_parsed_graphml, path))


def read_gml(path: Path) -> StoredGraph:
    return _stored(path, lambda networkx: networkx.parse_gml(path.read_text(encoding="utf-8-sig"), label=None))


def _stored(path: Path, parse: Callable[[ModuleType], Any]) -> StoredGraph:
    networkx = needed("networkx", "graphs")
    with damage_is_refused(path):
        return of_network(parse(networkx), path)


def of_network(network: Any, path: Path | str) -> StoredGraph:
    """Of a networkx graph; ``path`` is what messages call it."""
    ids = _labels(network, path)
    edges, origin = _weighted(network, ids, path)
    if not network.is_directed():
        edges += [(v, u, weight) for u, v, weight in edges if u != v]
    names = list(ids.values())
    return StoredGraph.adjacency(EdgeList.of(edges, names).matrix, names, _positions(network), origin)


def _parsed_graphml(path: Path, networkx: ModuleType) -> Any:
    """networkx would take the first of several graphs, drop nested ones, and make up nodes that only edges name."""
    from xml.etree import ElementTree

    tree = ElementTree.parse(path)
    if (graphs := len(tree.findall("{*}graph"))) > 1:
        raise InputError(f"{path} with {graphs} graphs", "one", "save the one that counts alone")
    if nested := [str(node.get("id")) for node in tree.iterfind(".//{*}node") if node.find("{*}graph") is not None]:
        raise InputError(
            f"{path} with graphs nested in the nodes {some(nested)}, whose nodes would be lost",
            "one graph without graphs in its nodes",
            "save it flat: all nodes and edges in one graph",
        )
    nodes = {node.get("id") for node in tree.iterfind(".//{*}node")}
    ends = dict.fromkeys(edge.get(end) for edge in tree.iterfind(".//{*}edge") for end in ("source", "target"))
    if strangers := [str(name) for name in ends if name not in nodes]:
        raise InputError(
            f"{path} with edges of nodes that it does not declare: {some(strangers)}",
            "edges between its nodes",
            "declare those nodes, or remove their edges",
        )
    return networkx.read_graphml(path)


def _labels(network: Any, path: Path | str) -> dict:
    """What each node is called: its label, or its id where no node has one."""
    bare = [node for node, data in network.nodes(data=True) if "label" not in data]
    if 0 < len(bare) < len(network):
        raise InputError(
            f"{path} with {counted(len(bare), 'node')} without a label, of the ids {some(bare)}",
            "a label at every node, or at none",
            "complete the labels",
        )
    return {node: str(node if bare else data["label"]) for node, data in network.nodes(data=True)}


def _weighted(network: Any, ids: dict, path: Path | str) -> tuple[list[tuple], str]:
    """Edges with their weights, and what to say of them."""
    default = network.graph.get("edge_default", {}).get("weight")  # of a GraphML key
    edges = [(ids[u], ids[v], data.get("weight", default)) for u, v, data in network.edges(data=True)]
    bare = [f"{u} -> {v}" for u, v, weight in edges if weight is None and u != v]  # self-loops do not count
    if any(weight is not None for *_, weight in edges):
        if bare:
            raise InputError(
                f"{path} with {counted(len(bare), 'edge')} without a weight: {some(bare, 3)}",
                "a weight at every edge, or at none",
                "complete the weights",
            )
        return [(u, v, 1 if weight is None else weight) for u, v, weight in edges], "adjacency"
    values = {(name, type(value)) for *_, data in network.edges(data=True) for name, value in data.items()}
    numbers = sorted({name for name, kind in values if kind in (int, float) and name.casefold() != "id"})
    if numbers:
        raise InputError(
            f"{path} without the edge attribute `weight`, but with {some(repr(name) for name in numbers)}",
            "the weights as `weight`, or no number at any edge, which is weight 1",
            "rename the attribute that counts, and remove the others; distances go into a table, as .csv",
        )
    return [(u, v, 1) for u, v, _ in edges], "adjacency, unit weights"


def _positions(network: Any) -> np.ndarray | None:  # (nodes, 2)
    """Coordinates for drawing, if every node has them; in memory also as a pair, ``pos``."""
    every = [{str(key).casefold(): value for key, value in data.items()} for _, data in network.nodes(data=True)]
    if every and all(np.shape(data.get("pos", ())) == (2,) for data in every):
        every = [dict(zip("xy", data["pos"], strict=True)) for data in every]
    for axes in (("longitude", "latitude"), ("x", "y")):
        try:
            places = [
                [float(next(data[name] for name in ALIASES[axis] if name in data)) for axis in axes] for data in every
            ]
        except (StopIteration, TypeError, ValueError, OverflowError):
            continue
        if np.isfinite(places).all():
            return np.array(places)
    return None
