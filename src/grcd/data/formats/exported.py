"""A dataset in one .npz file, as used: what `grcd data export` writes, and reading it again.

train, val, test            signals in their own units, filled and capped
mean, std                   training statistics
adjacency, node_ids         the symmetrised graph; coords, if there are any
train_filled, train_times   and so on: what was made up, and the times, if there are any
made                        JSON: how the signals were prepared (``Origin``), the unit, how the graph was made
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...core.files import refuse_other_ending, whole
from ...graphs.graph import LARGE, Graph
from ..dataset import Dataset
from ..matching import matched
from ..origin import Origin
from ..splits import NAMES as SPLIT_NAMES
from .npz import Archive

OF_GRAPH = ("origin", "one_way", "one_way_share")


def check_dataset_ending(path: str | Path) -> None:
    refuse_other_ending(path, ".npz", "a dataset has several arrays: use .npz")


def write_dataset(path: str | Path, data: Dataset) -> None:
    """Everything as used: splits in their own units, training statistics, the symmetrised adjacency, node names."""
    check_dataset_ending(path)
    if data.graph.large:
        raise InputError(
            f"a dataset of {len(data.graph):,} nodes, whose file would hold a weight for every two of them",
            f"up to {LARGE:,} nodes",
            "keep readings and graph in files of their own, as they came",
        )
    arrays: dict[str, Any] = {split: data.split(split) for split in SPLIT_NAMES}
    arrays |= {"mean": data.normalizer.mean, "std": data.normalizer.std}
    arrays |= {f"{split}_filled": mask for split, mask in data.filled.items()}
    arrays |= {f"{split}_times": times for split, times in data.times.items()}
    if data.graph.coords is not None:
        arrays["coords"] = data.graph.coords
    graph = {key: getattr(data.graph, key) for key in OF_GRAPH}
    arrays["made"] = np.array(json.dumps(data.origin.to_dict() | {"unit": data.unit, "graph": graph}))
    arrays |= {"adjacency": data.graph.weights.toarray(), "node_ids": np.array(data.graph.node_ids)}
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def is_dataset(path: Path) -> bool:
    """Whether a file holds the three splits."""
    return path.suffix.lower() == ".npz" and set(SPLIT_NAMES) <= set(Archive(path).names)


def read_dataset(
    path: Path,
    graph: Graph,  # its own, or another one for the same nodes
    own_graph: bool = True,
    unit: str | None = None,  # else what the file says
    common: bool = False,  # drop the nodes that only signals or graph have
) -> Dataset:
    """The dataset of an exported file."""
    arrays = Archive(path)
    ids, origin, of_graph = arrays.names_under("node_ids"), *_about(arrays)
    if own_graph:
        graph = replace(graph, **{key: of_graph[key] for key in OF_GRAPH if key in of_graph})
    values, masks, times = {}, {}, {}
    for split in SPLIT_NAMES:
        where = f"{split} in {path}"
        values[split], network, notes = matched(arrays.signals(split), ids, graph, where, common)
        if f"{split}_filled" in arrays:
            masks[split] = matched(arrays[f"{split}_filled"], ids, graph, where, common)[0]
        if f"{split}_times" in arrays:
            times[split] = arrays[f"{split}_times"]
    unit = unit or origin.unit or ""
    return Dataset(path.stem, network, **values, unit=unit, times=times, filled=masks, notes=notes, origin=origin)


def _about(arrays: Archive) -> tuple[Origin, dict]:
    """How the signals and the graph were made, as far as the file says."""
    try:
        about = json.loads(str(arrays["made"])) if "made" in arrays else {}
    except ValueError:
        about = {}
    graph = about.pop("graph", {}) if isinstance(about, dict) else None
    return (Origin.of(about), graph) if isinstance(graph, dict) else (Origin(), {})
