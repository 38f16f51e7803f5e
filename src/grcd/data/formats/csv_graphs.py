"""Graphs in CSV files. The header (in any case) tells the kinds apart.

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
"""

from __future__ import annotations

from pathlib import Path

from ...core.errors import InputError, counted, some
from .csv import Columns, is_number, read_columns
from .stored_graph import StoredGraph
from .table import NODE_NAMES, is_unnamed

NAMES = (*NODE_NAMES, "name", "id")  # the first one counts
TELLING = 0.8  # of the rows have another text: a column that names nodes, some of them twice
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


def read(path: Path) -> StoredGraph:
    """What the header says it is."""
    columns = read_columns(path, text=names_in, square=True)
    stored = listed(columns)
    if stored is not None:
        return stored
    return _matrix(read_columns(path, square=True) if _place(_roles(columns.names)) else columns)


def listed(columns: Columns) -> StoredGraph | None:
    """A list of edges or distances, or positions, if the names of columns say so; those in ``names_in`` are text."""
    roles = _roles(columns.names)
    if {"source", "target"} <= set(roles):
        return _edges(columns, roles)
    if _place(roles) and (node := _id_column(columns, roles)) is not None:
        return _located(columns, roles, node)
    return None


def _located(columns: Columns, roles: dict[str, str], node: str) -> StoredGraph:
    place = _place(roles)
    coords, ids = columns.numbers([roles[axis] for axis in place or ()]), columns.text(node).tolist()
    metric = "great-circle" if place == ("longitude", "latitude") else "euclidean"
    return StoredGraph.positions(coords, ids, metric)


def _id_column(columns: Columns, roles: dict[str, str]) -> str | None:
    """The column that names the nodes: by its name, or else the first with another text or whole number in every row.

    One that only numbers the rows, as pandas writes an index, counts if there is no other; so does one in which few
    names come twice, which is then the fault that is named. None for the matrix of nodes that are called x and y.
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
    ids = ids or [name for name, column in cells.items() if not all(map(is_number, column)) and _few_twice(column)]
    return next((name for name in ids if cells[name] != [*map(str, range(rows))]), ids[0] if ids else None)


def _few_twice(cells: list[str]) -> bool:
    return len(set(cells) - {""}) >= TELLING * len(cells)


def _measured(cells: list[str]) -> bool:
    """Numbers that are not whole, such as heights, name nothing."""
    return all(map(is_number, cells)) and not all(map(str.isdigit, cells))


def _beside(roles: dict[str, str], names: list[str]) -> list[str]:
    """Columns that are no coordinates of these positions."""
    return [name for name in names if name not in [roles[axis] for axis in _place(roles) or ()]]


def _roles(names: list[str]) -> dict[str, str]:
    """What each column is for, as far as its name says so."""
    folded = {name.casefold(): name for name in reversed(names)}
    columns = {role: [folded[alias] for alias in aliases if alias in folded] for role, aliases in ALIASES.items()}
    return {role: names[0] for role, names in columns.items() if names}


def _place(roles: dict[str, str]) -> tuple[str, str] | None:
    return next((axes for axes in (("longitude", "latitude"), ("x", "y")) if set(axes) <= set(roles)), None)


def names_in(names: list[str]) -> list[str]:
    """Columns that hold names of nodes, or may."""
    roles = _roles(names)
    if {"source", "target"} <= set(roles):
        return [roles["source"], roles["target"]]
    if not _place(roles):
        return []
    return [roles["node"]] if "node" in roles else _beside(roles, names)


def _edges(columns: Columns, roles: dict[str, str]) -> StoredGraph:
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
        return StoredGraph.distances(edges)
    return StoredGraph.edges(edges)


def _matrix(columns: Columns) -> StoredGraph:
    names, rows = columns.names, len(columns)
    if rows == len(names) and "" not in names:
        return StoredGraph.adjacency(columns.numbers(names), names)
    if rows != len(names) - 1:
        raise InputError(
            f"{columns.path} with {counted(rows, 'row')} and the columns {some(repr(name) for name in names)}",
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
    return StoredGraph.adjacency(columns.numbers(ids)[[place[name] for name in ids]], ids)
