"""Molene: temperatures in Brittany, 37 stations, hourly, January 2014.

Published in a MATLAB file (v5 or v7.3) that is searched through: an array is known by its sum, not by its place. Kelvin
become degrees C, rounded to 0.01, which undoes floating-point noise only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ...core.errors import InputError
from ...graphs.graph import Graph
from ..formats.matlab import children, leaves, read_matlab
from ..formats.npz import Archive
from ..formats.table import Table
from .named import Published, Setting
from .sources import Arrays, Files, Home, Pin, Source, reading

MOLENE = "molene.npz"
MATLAB = ("gsp_molene_data.mat", "grasp_molene_data.mat")
BRITTANY = Home("bgirault-usc/Molene-Dataset", "a32fd4459e8ecaf986477a459b1a50b94dc75ab3", "Matlab")
KELVIN = 273.15
PINS = {
    "signals": Pin((744, 37), "<f8", {None: "e38aa66e2e54d9724cea87dd4a319d660cc8e47e6dd69350a092b3f6dbd46904"}),
    "coords": Pin(
        (37, 2),
        "<f8",
        {
            None: "38e3a2eeb4af071019fe8d0b97714706f7be730f1e13fc263dd70cbda62c92cb",
            0: "561703666b6fed224f883f5511f6bf485d57ed3e19241b89b16e858efe5ee31b",
        },
    ),
    "altitude": Pin((37,), "<f8", {0: "ae48cc76481ca07df255450a6a824dbbd76387f97993e98d893f1ba98ecf5d5b"}),
    "distances": Pin(
        (37, 37),
        "<f8",
        {
            None: "a4457a13ce6e2a3c5db2dec548de1d5eccf8a6d1da1018553439fb589cf49f1e",
            0: "aab44a3218d0a4baf02bdc8f1b845310c5098d9e1f8b2a2ab6edd06de96ff421",
        },
    ),
}


def read(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    """From the one file; the graph links the five nearest neighbours, and is symmetric as it is."""
    arrays = Archive(folder / MOLENE)
    values, names = arrays["signals"], arrays.first("station_names")
    ids = [str(name) for name in (range(values.shape[1]) if names is None else names)]
    times = arrays.first("timestamps")
    graph = Graph.from_coordinates(arrays["coords"], ids, k=5)
    return Table(values, tuple(ids), None if times is None else times.astype("datetime64[ns]"), unit="degrees C"), graph


# -- from the file as published ---------------------------------------------------------------------------------------


def missing(files: Files) -> list[str]:
    """The raw files still wanted: one of two will do."""
    return [] if any(name in files for name in MATLAB) else [MATLAB[0]]


def assemble(files: Files) -> dict[str, Arrays]:
    """The file of Molene: what the MATLAB file has of it, and nothing that it has not."""
    path = next(files[name] for name in MATLAB if name in files)
    with reading(path):
        tree = read_matlab(path)
        graph = _holder(tree)
        if graph is None:
            what = f"{path} without the pinned temperatures"
            raise InputError(what, "Molene's 744 hours at 37 stations", "get it again")
        arrays = {"signals": _first(graph, "signals")}
        for pin in ("coords", "altitude", "distances"):
            # Beside the temperatures first: the other graphs of the file have positions of their own.
            array = _first(graph, pin)
            arrays[pin] = _first(tree, pin) if array is None else array
        if arrays["coords"] is None:
            raise InputError(f"{path} without the pinned positions", "the positions of the 37 stations", "get it again")
    arrays["station_names"] = _names(graph)
    return {MOLENE: {name: array for name, array in arrays.items() if array is not None}}


def faults(files: Mapping[str, Arrays]) -> list[str]:
    """What in the file is not as pinned; altitudes and distances may be absent."""
    arrays = files[MOLENE]
    pins = ["signals", "coords"] + [pin for pin in ("altitude", "distances") if pin in arrays]
    return [f"{pin} in {MOLENE}" for pin in pins if not PINS[pin].fits(arrays[pin])]


def _first(tree: object, pin: str) -> np.ndarray | None:
    """The first array in the tree that is the pinned one, in any of its readings."""
    readings = (array for leaf in leaves(tree) if isinstance(leaf, np.ndarray) for array in _readings(leaf, pin))
    return next((np.ascontiguousarray(array) for array in readings if PINS[pin].fits(array)), None)


def _readings(leaf: np.ndarray, pin: str) -> Iterator[np.ndarray]:
    """MATLAB's arrays may be transposed, positions may have a third coordinate, and vectors are matrices to it."""
    for array in (leaf, leaf.T):
        if pin == "signals":
            if array.shape == PINS[pin].shape:
                yield np.round(array - KELVIN, 2) + 0.0
        elif pin == "coords":
            yield array[..., :2]
        elif pin == "altitude" and array.ndim == 2:
            yield from array.T
        else:
            yield array


def _holder(tree: object) -> dict | None:
    """The innermost struct that holds the temperatures."""
    inner = next((holder for child in children(tree) if (holder := _holder(child)) is not None), None)
    return inner or (tree if isinstance(tree, dict) and _first(tree, "signals") is not None else None)


def _names(graph: dict) -> np.ndarray | None:
    """The stations' names: a cell of as many texts as there are stations, all different."""
    stations = PINS["coords"].shape[0]
    cells = ([text.strip() for text in leaf] for leaf in leaves(graph) if _is_text(leaf))
    return next((np.array(cell) for cell in cells if len(cell) == len(set(cell)) == stations), None)


def _is_text(leaf: object) -> bool:
    return isinstance(leaf, list) and all(isinstance(text, str) for text in leaf)


SOURCE = Source(
    name="molene",
    raw=dict.fromkeys(MATLAB, BRITTANY),
    files={MOLENE: ("signals", "coords")},
    missing=missing,
    assemble=assemble,
    faults=faults,
    licence="Licence Ouverte / Open Licence (Etalab); data of Meteo-France, published on data.gouv.fr. "
    "Cite B. Girault, EUSIPCO 2015, doi 10.1109/EUSIPCO.2015.7362637.",
    by_hand="or save it anywhere and give it with --from FILE",
)
DATASETS = [
    Published(
        name="molene",
        about="temperatures in Brittany, 37 stations, hourly, January 2014 (grcd data get molene)",
        setting=Setting(),
        channel="temperature",
        source=SOURCE,
        read=read,
    )
]
