"""From a name, files or arrays to a dataset.

data = grcd.load_dataset("metr-la")
data = grcd.load_dataset("readings.csv", graph="stations.csv")
data = grcd.load_dataset("speeds.parquet", graph="adj_mx.pkl", symmetrize="half-sum", missing=[0], fill="linear")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, unknown
from ..graphs.graph import Graph
from . import catalog, notes
from . import times as clock
from .assembly import Opened
from .dataset import Dataset
from .formats import exported
from .formats.graphs import read_graph
from .formats.npz import Archive
from .formats.refusals import existing
from .formats.signals import read_signals
from .formats.table import Table
from .options import GRAPH_OPTIONS, Options


def load_dataset(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Dataset:
    """A dataset by name, as exported, or signals with a graph; split into training, validation and test signals.

    ``source``    a name (``grcd data list``), a file, an array (samples, nodes) or a data frame
    ``graph``     a file, a ``Graph`` or weights (nodes, nodes), where the source does not bring one
    ``options``   how they are read, see docs/data.md: symmetrize, k, bandwidth, metric, threshold, drop, common,
                  missing, fill, split_by, split_seed, val, test, cap, unit, data_dir
    """
    signals = opened(source, graph, **options)
    if signals.graph is None:
        what = f"signals in {source}" if isinstance(source, str | Path) else "signals"
        raise InputError(f"{what} without a graph", "a graph for them", "name its file with --graph")
    data = signals.dataset
    if not isinstance(source, str) or source not in catalog.DATASETS:  # what is said of those is in their module
        notes.warn(data.notes)
    return data


def opened(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Opened:
    """Find and read what ``load_dataset`` names, up to the point where the two sides have to fit together."""
    chosen = Options.of({"graph": graph, **options})
    if not isinstance(source, str | Path):
        return Opened("signals", _table(source), _graph(Path(), chosen) if chosen.graph else None, chosen, "signals")
    name = str(source)
    if name in catalog.DATASETS:
        return catalog.DATASETS[name].opened(chosen)
    if Path(source).suffix == "" and not os.path.exists(source):
        raise unknown("dataset", name, catalog.DATASETS)
    path = existing(source)
    network = _graph(path, chosen)
    if exported.is_dataset(path):
        return _exported(path, network, chosen)
    nodes = () if network is None else network.node_ids
    return Opened(path.stem, read_signals(path, chosen.label, nodes), network, chosen, name)


def _exported(path: Path, network: Graph | None, options: Options) -> Opened:
    """What `grcd data export` wrote: already split, filled and capped."""
    options.refuse_changed(str(path), {*GRAPH_OPTIONS, "graph", "common", "unit", "data_dir"})
    if network is None:
        raise InputError(f"{path}, which holds no adjacency", "a graph", "name its file with --graph")
    own = options.graph is None
    return Opened.ready(exported.read_dataset(path, network, own, options.unit, options.common), options, str(path))


def _table(signals: Any) -> Table:
    """An array (samples, nodes), or a data frame with nodes as columns and, if it has them, times as index."""
    try:
        values = np.array(signals, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"{type(signals).__name__} of shape {np.shape(values)}",
            "a name, a file, or numbers (samples, nodes)",
            "pass an array or a data frame with one column a node",
        )
    columns, index = getattr(signals, "columns", None), getattr(signals, "index", None)
    dated = getattr(getattr(index, "dtype", None), "kind", "") == "M"
    times = clock.parsed(np.asarray(index), "the index") if dated else None
    names = None if columns is None else tuple(str(name) for name in columns)
    return Table(values, names, times).in_order("the index")


def _graph(path: Path, options: Options) -> Graph | None:
    """The graph that is named, or the one that lies in the same .npz file as the signals."""
    if isinstance(options.graph, Graph):
        return options.graph
    inside = path.suffix.lower() == ".npz" and {"adjacency", "coords"} & set(Archive(path).names)
    if options.graph is None and not inside:
        return None
    return read_graph(options.graph or path, **options.of_graph)
