"""From a name, files or arrays to a dataset.

data = grcd.load_dataset("metr-la")
data = grcd.load_dataset("readings.csv", graph="stations.csv")
data = grcd.load_dataset("speeds.parquet", graph="adj_mx.pkl", symmetrize="half-sum", missing=[0], fill="linear")
data = grcd.data.load_series(["temp=a.csv", "wind=b.csv"], graph="stations.csv")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, unknown
from ..graphs.graph import Graph
from . import catalog, gaps, notes
from . import times as clock
from .assembly import Opened
from .channels import Channels
from .dataset import Dataset
from .formats import exported
from .formats.channels import named, read_channels
from .formats.graphs import read_graph
from .formats.npz import Archive
from .formats.refusals import existing
from .formats.signals import read_signals
from .formats.table import SeveralChannels, Table
from .options import GRAPH_OPTIONS, Options
from .series import Series, interval_of
from .series_dataset import SeriesDataset, assembled

NO_GRAPH = "name its file with --graph; for a few hundred nodes without one, a table source,target with all pairs"


def load_dataset(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Dataset:
    """A dataset by name, as exported, or signals with a graph; split into training, validation and test signals.

    ``source``    a name (``grcd data list``), a file, an array (samples, nodes) or a data frame
    ``graph``     a file, a ``Graph`` or weights (nodes, nodes), where the source does not bring one
    ``options``   how they are read, see docs/data.md: symmetrize, k, bandwidth, metric, threshold, drop, common,
                  missing, fill, split_by, split_seed, hold_out, val, test, cap, unit, data_dir
    """
    return _settled(opened(source, graph, **options))


def _settled(signals: Opened) -> Dataset:
    _with_graph(signals.graph, signals.where)
    data = signals.dataset
    if signals.where not in catalog.DATASETS:  # what is said of those is in their module
        notes.warn(data.notes)
    return data


def _with_graph(network: Graph | None, where: str) -> Graph:
    if network is None:
        what = "signals" if where == "signals" else f"signals in {where}"
        raise InputError(f"{what} without a graph", "a graph for them", NO_GRAPH)
    return network


def load_rows(source: str | Path, graph: str | Path | Graph | None = None, **options: Any) -> Dataset | SeriesDataset:
    """A name or a file as a series where its rows are in time, at regular times or of several channels; elsewhere, and
    with options that take rows apart (fill, cap, a random split), as a dataset of single moments."""
    try:
        signals = opened(source, graph, **options)
    except SeveralChannels:
        return load_series(source, graph, **options)
    data = rows_of(signals)
    if data is None:
        return _settled(signals)
    notes.warn(data.notes)
    return data


def rows_of(signals: Opened) -> SeriesDataset | None:
    """What was opened, as a series; None where rows are single moments."""
    if not _in_time(signals):
        return None
    network, channels = _with_graph(signals.graph, signals.where), Channels.of({"": signals.table}, signals.where)
    return assembled(signals.name, channels, network, signals.options, signals.where)


def _in_time(signals: Opened) -> bool:
    """Whether rows of a file follow each other at regular times, and nothing asks to take them apart."""
    chosen, table = signals.options, signals.table
    apart = chosen.fill not in (None, "none") or chosen.cap or chosen.split_by == "random"
    if signals.where in catalog.DATASETS or signals.settled is not None or apart or table.times is None:
        return False
    try:
        Series(table.values[:, :, None], table.times).refuse_irregular(signals.where)
    except InputError as error:
        notes.warn([notes.Note(error.got, f"rows are taken as single moments; {error.do}")])
        return False
    return len(table.times) > 2


def load_series(
    source: Any, graph: str | Path | Graph | ArrayLike | None = None, times: ArrayLike | None = None, **options: Any
) -> SeriesDataset:
    """Rows in time: a dataset by name, files (`NAME=FILE` for each of several channels), arrays or data frames.

    ``source`` may also be an array (time, nodes[, channels]), with ``times`` (time,) if there are any, or a dictionary
    with a file, an array or a data frame for each channel. ``options`` as for ``load_dataset``, and ``every``; nothing
    is filled or capped.
    """
    chosen = Options.of({"graph": graph, **options})
    if isinstance(source, str) and source in catalog.DATASETS:
        return catalog.DATASETS[source].series(chosen)
    name, channels, network, where = opened_series(source, chosen, times)
    data = assembled(name, channels, _with_graph(network, where), chosen, where)
    notes.warn(data.notes)
    return data


def opened_series(
    source: Any, options: Options, times: ArrayLike | None = None
) -> tuple[str, Channels, Graph | None, str]:
    """What ``load_series`` reads: a name, all channels, the graph if there is one, and where that was."""
    files = _files(source)
    if files is None:
        tables = source if isinstance(source, Mapping) else {"": source}
        read = {str(name): _channel(part, options, times) for name, part in tables.items()}
        parts = {name or key: table for name, made in read.items() for key, table in made.items()}
        return "series", Channels.of(parts, "series"), _graph(Path(), options) if options.graph else None, "series"
    paths = [existing(named(file)[1]) for file in files]
    if len(paths) == 1 and exported.is_dataset(paths[0]):
        raise InputError(f"{paths[0]}, an exported dataset, in time", "rows in time", "give the original files")
    network = _graph(paths[0], options)
    nodes, where = () if network is None else network.node_ids, ", ".join(str(path) for path in paths)
    return paths[0].stem, Channels.of(read_channels(files, options.label, nodes), where), network, where


def _files(source: Any) -> list[str | Path] | None:
    """The files that a source names; None if it is made of arrays."""
    if isinstance(source, str | Path):
        name = str(source)
        if "=" not in name and Path(source).suffix == "" and not os.path.exists(source):
            raise unknown("dataset", name, catalog.DATASETS)
        return [source]
    if isinstance(source, Mapping):
        given = [isinstance(part, str | Path) for part in source.values()]
        return [f"{name}={file}" for name, file in source.items()] if all(given) and given else None
    listed = isinstance(source, Sequence) and len(source) > 0 and all(isinstance(part, str | Path) for part in source)
    return list(source) if listed else None


def _channel(part: Any, options: Options, times: ArrayLike | None) -> dict[str, Table]:
    """Tables of an array (time, nodes[, channels]), a data frame, or a file."""
    if isinstance(part, str | Path):
        return read_channels(part, options.label)
    stamps = None if times is None else clock.parsed(np.asarray(times), "times")
    if np.ndim(part) != 3:
        return {"": _timed(_table(part), stamps)}
    values = np.asarray(part, dtype=np.float64)
    return {f"channel {k}": _timed(_table(values[:, :, k]), stamps) for k in range(values.shape[2])}


def _timed(table: Table, times: np.ndarray | None) -> Table:
    if times is None:
        return table
    return replace(table, times=times).checked(Path("the array")).in_order("the times")


def opened(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Opened:
    """Find and read what ``load_dataset`` names, up to the point where the two sides have to fit together."""
    chosen = Options.of({"graph": graph, **options})
    if not isinstance(source, str | Path):
        network = _graph(Path(), chosen) if chosen.graph else None
        return Opened("signals", _on_clock(_table(source), chosen), network, chosen, "signals")
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
    table = _on_clock(read_signals(path, chosen.label, nodes), chosen)
    return Opened(path.stem, table, network, chosen, name)


def _on_clock(table: Table, options: Options) -> Table:
    """Rows at the ticks of a clock, where one was named."""
    if options.every is None:
        return table
    if table.labels is not None:
        raise InputError("--every and a column of splits", "one of them", "leave one of them out")
    gaps.mark(table.values, options.missing or ())
    series = Series(table.values[:, :, None], table.times).regular(interval_of(options.every, table.times))
    return replace(table, values=series.values[:, :, 0], times=series.times)


def _exported(path: Path, network: Graph | None, options: Options) -> Opened:
    """What `grcd data export` wrote: already split, filled and capped."""
    options.refuse_changed(str(path), {*GRAPH_OPTIONS, "graph", "common", "unit", "data_dir"})
    if network is None:
        raise InputError(f"{path}, which holds no adjacency", "a graph", NO_GRAPH)
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
