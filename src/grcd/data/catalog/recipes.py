"""The datasets that have a name: three made here, two read from files that `grcd data get` brings.

METR-LA and Molene are taken exactly as the paper's figures pin them down: which readings are missing, how they are
filled, how rows are split and capped, how the graph is made. All of these are options of `load_dataset`, and the recipe
is only their defaults, so `load_dataset("metr-la", fill="none")` is the same data with its gaps left open.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import InputError
from ...graphs.graph import Graph
from ..formats.arrays import Archive
from ..formats.signals import Table
from .sources import verify

METR_LA_FILES = ("metr_la_speed.npz", "metr_la_graph.npz")
MOLENE_FILES = ("molene.npz",)


@dataclass(frozen=True)
class Recipe:
    """Signals and graph from files in a folder, and the options they are used with."""

    about: str
    files: tuple[str, ...]
    read: Callable[[Path, str | None], tuple[Table, Graph]]  # folder, symmetrizer
    options: dict = field(default_factory=dict)


def _metr_la(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    speed, graph = (Archive(folder / name) for name in METR_LA_FILES)
    ids = tuple(str(name) for name in speed["sensor_ids"])
    values = speed["values"][speed["codes"]]
    times = speed["timestamps"].astype("datetime64[ns]")
    network = Graph.from_adjacency(
        graph["adjacency"],
        [str(name) for name in graph["sensor_ids"]],
        symmetrize,
        graph["coords"][:, ::-1],  # longitude to the right, latitude upwards
        "DCRNN's road-distance weights",
    )
    return Table(values, ids, times, unit="mph"), network


def _molene(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    arrays = Archive(folder / MOLENE_FILES[0])
    values, names = arrays["signals"], arrays.first("station_names")
    ids = [str(name) for name in (range(values.shape[1]) if names is None else names)]
    times = arrays.first("timestamps")
    graph = Graph.from_coordinates(arrays["coords"], ids, k=5)
    return Table(values, tuple(ids), None if times is None else times.astype("datetime64[ns]"), unit="degrees C"), graph


RECIPES = {
    "metr-la": Recipe(
        "traffic speeds in Los Angeles, 207 sensors, every 5 minutes, March to June 2012 (grcd data get metr-la)",
        METR_LA_FILES,
        _metr_la,
        {"missing": (0.0,), "fill": "forward-backward", "symmetrize": "half-sum", "cap": (20_000, 3_000, 5_000)},
    ),
    "molene": Recipe(
        "temperatures in Brittany, 37 stations, hourly, January 2014 (grcd data get molene)", MOLENE_FILES, _molene
    ),
}
BUILT_IN = {
    "sbm-c1": "synthetic, 32 nodes: two-block graph, mild low-pass signals with two modes",
    "sbm-c4": "synthetic, 32 nodes: the same, energy more concentrated at low frequencies",
    "sbm-c16": "synthetic, 32 nodes: the same, most concentrated",
}
NAMES = BUILT_IN | {name: recipe.about for name, recipe in RECIPES.items()}


def read_recipe(name: str, data_dir: str | Path | None, symmetrize: str | None) -> tuple[Table, Graph]:
    recipe = RECIPES[name]
    folder = find(recipe.files, name, data_dir)
    verify(name, folder)  # a few tenths of a second: other numbers under these names would be worse than none
    return recipe.read(folder, symmetrize)


def folders(data_dir: str | Path | None = None) -> list[Path]:
    """Where data are looked for: `data_dir`, the environment variable GRCD_DATA, the user's cache folder."""
    named = [data_dir, os.environ.get("GRCD_DATA")]
    return [*(Path(folder) for folder in named if folder), cache()]


def cache() -> Path:
    """The user's cache folder for data."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "grcd"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "grcd"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "grcd"


def find(files: tuple[str, ...], name: str, data_dir: str | Path | None = None) -> Path:
    """The first folder that has all files of a dataset."""
    looked = folders(data_dir)
    for folder in looked:
        if all((folder / file).is_file() for file in files):
            return folder
    raise InputError(
        f"no {' and '.join(files)} in {', '.join(str(folder) for folder in looked)}",
        f"the files of {name}",
        f"bring them with: grcd data get {name}; or name their folder with --data-dir or GRCD_DATA",
    )
