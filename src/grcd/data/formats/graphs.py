"""Graphs in files, by file ending. In a .csv file the header (in any case) tells the kinds apart.

edge list: ``source`` (or ``from``), ``target`` (or ``to``) alone, or ``weight`` and any other column beside them

    source,target,weight
    a,b,0.5
    b,c,1.0

distance table: ``source``, ``target``, and ``distance`` (or ``dist``, ``cost``); weights by DCRNN's kernel

    from,to,cost
    773869,767541,2610.3
    767541,767542,890.1

positions: a column of names, and ``longitude``, ``latitude`` (``lon``, ``lng``, ``lat``) in degrees, or ``x``, ``y``;
nearest neighbours along the great circle, or in the plane; other columns are ignored. The names are under one of
``NAMES`` below, or else in the first column that has another text or whole number in every row

    station,longitude,latitude
    BREST,-4.412,48.444
    LANNION,-3.473,48.755

adjacency, under any other header: node names, then the matrix, with or without a first column of row names

    node,a,b
    a,0,0.5
    b,0.5,0

===================  =================================================================================================
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

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.errors import InputError, some, unknown
from ...graphs.edges import EdgeList
from ...graphs.graph import Graph
from .arrays import Archive, names_of, read_whole
from .columns import Columns, read_columns, unreadable
from .header import is_number
from .signals import NODE_NAMES, existing, extra, is_unnamed

NAMES = (*NODE_NAMES, "name", "id")  # the first one counts
ALIASES = {
    "source": ("source", "from"),
    "target": ("target", "to"),
    "weight": ("weight",),
    "distance": ("distance", "dist", "cost"),
    "node": NAMES,
    "longitude": ("longitude", "lon", "lng"),
    "latitude": ("latitude", "lat"),
    "x": ("x",),
    "y": ("y",),
}
OPTIONS = {
    "an adjacency": ("symmetrize",),
    "an edge list": ("symmetrize",),
    "a distance table": ("symmetrize", "bandwidth", "threshold"),
    "positions": ("k", "bandwidth", "metric"),
}
LARGEST = 100_000  # nodes of a sparse matrix: its basis would be a dense one of 80 GB

Build = Callable[..., Graph]  # takes the options of its kind


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
    options = {name: value for name, value in options.items() if value is not None}
    kind, build = READERS[path.suffix.lower()](path)
    for name in options:
        if name not in OPTIONS[kind]:
            belongs = [other for other, names in OPTIONS.items() if name in names]
            raise InputError(
                f"the option {name} for {path}, which holds {kind}",
                f"{name} with {' or '.join(belongs)}",
                "leave it out",
            )
    graph = build(**options)
    return replace(graph, origin=f"{path.name}: {graph.origin}")


def _adjacency(
    W: Any, ids: Sequence[str] | None = None, coords: np.ndarray | None = None, origin: str = "adjacency"
) -> tuple[str, Build]:
    return "an adjacency", partial(Graph.from_adjacency, W, ids, coords=coords, origin=origin)


# -- .csv ------------------------------------------------------------------------------------------------------------


def _csv(path: Path) -> tuple[str, Build]:
    columns = read_columns(path, text=_names_in, square=True)
    roles = _roles(columns.names)
    if {"source", "target"} <= set(roles):
        return _edges(columns, roles)
    if _place(roles) and (node := _id_column(columns, roles)) is not None:
        return _located(columns, roles, node)
    return _matrix(read_columns(path, square=True) if _place(roles) else columns)


def _located(columns: Columns, roles: dict[str, str], node: str) -> tuple[str, Build]:
    place = _place(roles)
    coords, ids = columns.numbers([roles[axis] for axis in place or ()]), columns.text(node).tolist()
    metric = "great-circle" if place == ("longitude", "latitude") else "euclidean"
    return "positions", partial(Graph.from_coordinates, coords, ids, metric=metric)


def _id_column(columns: Columns, roles: dict[str, str]) -> str | None:
    """The column that names the nodes: by its name, or else the first with another text or whole number in every row.

    One that only numbers the rows, as pandas writes an index, counts if there is no other. None for the matrix of
    nodes that are called x and y.
    """
    if "node" in roles:
        return roles["node"]
    names, rows = columns.names, len(columns)
    cells = {name: columns.frame[names.index(name)].astype(str).tolist() for name in _beside(roles, names)}
    numbers = all(is_number(cell) for column in cells.values() for cell in column)
    matrix = numbers and rows == len(names) and "" not in names and _place(roles) == ("x", "y")
    if matrix or set(cells.get(names[0], ())) == set(names[1:]):
        return None
    ids = [name for name, column in cells.items() if len(set(column) - {""}) == rows and not _measured(column)]
    return next((name for name in ids if cells[name] != [*map(str, range(rows))]), ids[0] if ids else None)


def _measured(cells: list[str]) -> bool:
    """Numbers that are not whole, such as heights, name nothing."""
    return all(map(is_number, cells)) and not all(map(str.isdigit, cells))


def _beside(roles: dict[str, str], names: list[str]) -> list[str]:
    """Columns that are no coordinates of these positions."""
    return [name for name in names if name not in [roles[axis] for axis in _place(roles) or ()]]


def _roles(names: list[str]) -> dict[str, str]:
    """What each column is for, as far as its name says so."""
    folded = {name.casefold(): name for name in reversed(names)}
    found = {role: [folded[alias] for alias in aliases if alias in folded] for role, aliases in ALIASES.items()}
    return {role: columns[0] for role, columns in found.items() if columns}


def _place(roles: dict[str, str]) -> tuple[str, str] | None:
    return next((axes for axes in (("longitude", "latitude"), ("x", "y")) if set(axes) <= set(roles)), None)


def _names_in(names: list[str]) -> list[str]:
    roles = _roles(names)
    if {"source", "target"} <= set(roles):
        return [roles["source"], roles["target"]]
    if not _place(roles):
        return []
    return [roles["node"]] if "node" in roles else _beside(roles, names)


def _edges(columns: Columns, roles: dict[str, str]) -> tuple[str, Build]:
    values = [roles[role] for role in ("weight", "distance") if role in roles]
    more = [name for name in columns.names if name not in (roles["source"], roles["target"])]
    more = more[1:] if is_unnamed(columns.names[0]) else more  # the index of a pandas frame
    if len(values) > 1 or (more and not values):
        raise InputError(
            f"{columns.path}, a list of edges with the columns {some(repr(name) for name in more)}",
            "one column `weight`, one column `distance`, or no more than source and target",
            "rename the column that counts, and remove the other",
        )
    rows = [columns.text(roles["source"]).tolist(), columns.text(roles["target"]).tolist()]
    rows += [columns.numbers(values)[:, 0].tolist()] if values else []
    edges = list(zip(*rows, strict=True))
    if "distance" in roles:
        return "a distance table", partial(Graph.from_distances, edges)
    return "an edge list", partial(Graph.from_edges, edges)


def _matrix(columns: Columns) -> tuple[str, Build]:
    names, rows = columns.names, len(columns)
    if rows == len(names) and "" not in names:
        return _adjacency(columns.numbers(names), names)
    if rows != len(names) - 1:
        raise InputError(
            f"{columns.path} with {rows} rows and the columns {some(repr(name) for name in names)}",
            "columns source,target[,weight or distance], or node,longitude,latitude, or node,x,y, or a square matrix",
            "name the columns so, or export the whole matrix",
        )
    columns, ids = read_columns(columns.path, text=lambda names: names[:1]), names[1:]
    place = {name: row for row, name in enumerate(columns.text(names[0]).tolist())}
    if set(place) != set(ids):
        strange = [name for name in place if name not in set(ids)] or [name for name in ids if name not in place]
        raise InputError(
            f"{columns.path} with names that only its rows or only its columns have: {some(strange)}",
            "the same names in both",
            "give rows and columns the same names",
        )
    return _adjacency(columns.numbers(ids)[[place[name] for name in ids]], ids)


# -- arrays ----------------------------------------------------------------------------------------------------------


def _npy(path: Path) -> tuple[str, Build]:
    try:
        with path.open("rb") as handle:
            return _adjacency(read_whole(handle, path.stat().st_size, str(path)))
    except InputError:
        raise
    except Exception as error:  # numpy and the system have many for a damaged file
        raise unreadable(path, error) from None


def _npz(path: Path) -> tuple[str, Build]:
    arrays = Archive(path)
    ids = _ids(arrays)
    if "adjacency" in arrays:
        return _adjacency(arrays["adjacency"], ids, arrays.first("coords"))
    if {"format", "shape", "data"} <= set(arrays.names):
        return _adjacency(_sparse(path, arrays), ids)
    if "coords" in arrays:
        return "positions", partial(Graph.from_coordinates, arrays["coords"], ids)
    raise InputError(
        f"{path} with the arrays {some(arrays.names) or 'none'}", "`adjacency` or `coords`", "save one under that name"
    )


def _ids(arrays: Archive) -> tuple[str, ...] | None:
    ids = arrays.first("node_ids", "sensor_ids", "station_ids")
    return None if ids is None else names_of(ids, str(arrays.path))


def _sparse(path: Path, arrays: Archive) -> sp.csr_array:
    shape = arrays["shape"]
    if shape.dtype.kind not in "iu" or shape.size != 2 or shape.max() > LARGEST:
        raise InputError(
            f"a sparse matrix of shape {shape.tolist()} in {path}", f"up to {LARGEST} nodes", "check the file"
        )
    try:
        W = sp.load_npz(path)
        if hasattr(W, "check_format"):
            W.check_format(full_check=True)  # compiled code would follow a wrong index anywhere
        return sp.csr_array(W)
    except Exception as error:  # as above
        raise unreadable(path, error) from None


def _pickle(path: Path) -> tuple[str, Build]:
    from .pickles import adjacency

    ids, W = adjacency(path)
    return _adjacency(W, ids)


# -- networkx --------------------------------------------------------------------------------------------------------


def _graphml(path: Path) -> tuple[str, Build]:
    return _network(path, partial(_read_graphml, path))


def _read_graphml(path: Path, networkx: ModuleType) -> Any:
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


def _gml(path: Path) -> tuple[str, Build]:
    return _network(path, lambda nx: nx.parse_gml(path.read_text(encoding="utf-8-sig"), label=None))


def _network(path: Path, read: Callable) -> tuple[str, Build]:
    try:
        import networkx
    except ImportError:
        raise extra("networkx", "graphs") from None
    try:
        network = read(networkx)
        ids = _labels(network, path)
        edges, origin = _weighted(network, ids, path)
    except InputError:
        raise
    except Exception as error:  # parsers raise what they like
        raise unreadable(path, error) from None
    if not network.is_directed():
        edges += [(v, u, weight) for u, v, weight in edges if u != v]
    names = list(ids.values())
    return _adjacency(EdgeList.of(edges, names).matrix, names, _positions(network), origin)


def _labels(network: Any, path: Path) -> dict:
    """What each node is called: its label, or its id where no node has one."""
    bare = [node for node, data in network.nodes(data=True) if "label" not in data]
    if 0 < len(bare) < len(network):
        raise InputError(
            f"{path} with {len(bare)} nodes without a label, of the ids {some(bare)}",
            "a label at every node, or at none",
            "complete the labels",
        )
    return {node: str(node if bare else data["label"]) for node, data in network.nodes(data=True)}


def _weighted(network: Any, ids: dict, path: Path) -> tuple[list[tuple], str]:
    """Edges with their weights, and what to say of them."""
    default = network.graph.get("edge_default", {}).get("weight")  # of a GraphML key
    edges = [(ids[u], ids[v], data.get("weight", default)) for u, v, data in network.edges(data=True)]
    bare = [f"{u} -> {v}" for u, v, weight in edges if weight is None and u != v]  # self-loops do not count
    if any(weight is not None for *_, weight in edges):
        if bare:
            raise InputError(
                f"{path} with {len(bare)} edges without a weight: {some(bare, 3)}",
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
    """Coordinates for drawing, if every node has them."""
    every = [{str(key).casefold(): value for key, value in data.items()} for _, data in network.nodes(data=True)]
    for axes in (("longitude", "latitude"), ("x", "y")):
        try:
            found = [
                [float(next(data[name] for name in ALIASES[axis] if name in data)) for axis in axes] for data in every
            ]
        except (StopIteration, TypeError, ValueError, OverflowError):
            continue
        if np.isfinite(found).all():
            return np.array(found)
    return None


READERS: dict[str, Callable[[Path], tuple[str, Build]]] = {
    ".csv": _csv,
    ".npy": _npy,
    ".npz": _npz,
    ".graphml": _graphml,
    ".gml": _gml,
    ".pkl": _pickle,
}
