"""From a name or files to a dataset: read, match nodes by name, mark gaps, split, fill, cap.

data = grcd.load_dataset("metr-la")
data = grcd.load_dataset("readings.csv", graph="stations.csv")
data = grcd.load_dataset("speeds.parquet", graph="adj_mx.pkl", symmetrize="half-sum", missing=[0], fill="linear")
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, InputWarning, some, unknown
from ..core.rows import evenly
from ..graphs.graph import Graph
from . import gaps, outliers, splits
from . import times as clock
from .catalog import recipes
from .dataset import Dataset
from .formats.arrays import Archive, names_of
from .formats.graphs import read_graph
from .formats.signals import Table, existing, read_signals
from .formats.writing import read_made
from .matching import fitted, matched
from .normalizer import check_signals
from .splits import NAMES as SPLIT_NAMES

GRAPH_OPTIONS = ("symmetrize", "k", "bandwidth", "metric", "threshold")


@dataclass(frozen=True)
class Options:
    """How signals and graph are read. None is the default of the dataset, or of the kind of file."""

    graph: str | Path | Graph | None = None
    symmetrize: str | None = None  # half-sum or max, for directed weights
    k: int | None = None  # nearest neighbours, for positions
    bandwidth: float | None = None  # of the Gaussian weights, for positions and distances
    metric: str | None = None  # euclidean or great-circle, for positions
    threshold: float | None = None  # smallest weight that is kept, for distances
    drop: Sequence[str] = ()  # nodes to leave out, of signals and graph
    common: bool = False  # drop the nodes that only the signals or only the graph have
    missing: Sequence[float] | None = None  # values that mark a missing reading; NaN always does
    fill: str | None = None  # forward-backward, linear, mean or none
    split_by: str | None = None  # chronological, random, or the column that says it
    split_seed: int = 0
    val: str | Path | None = None  # files of their own
    test: str | Path | None = None
    cap: Sequence[int] | None = None  # at most so many training, validation and test signals
    unit: str | None = None
    data_dir: str | Path | None = None

    def __post_init__(self) -> None:
        """One number is a list of one; and what cannot be is refused before anything is read."""
        markers, cap = (None if x is None else np.atleast_1d(x).tolist() for x in (self.missing, self.cap))
        object.__setattr__(self, "missing", markers and tuple(m for m in markers if not np.isnan(m)))
        object.__setattr__(self, "cap", cap and tuple(cap))
        if not np.isfinite(self.missing or ()).all():
            raise InputError(f"missing = {markers}", "finite numbers", "infinite readings are always refused")
        if self.fill is not None and self.fill not in gaps.POLICIES:
            raise unknown("fill policy", self.fill, gaps.POLICIES)
        if self.cap and (len(self.cap) not in (1, 3) or any(number < 2 for number in self.cap)):
            raise InputError(f"cap = {cap}", "one number from 2 up, or three", "give e.g. --cap 20000,3000,5000")
        if _label(self) and (self.val or self.test):
            raise InputError("a split column and files of their own", "one of them", "leave out --val and --test")
        graph: object = self.graph
        if graph is not None and not isinstance(graph, str | Path | Graph):
            object.__setattr__(self, "graph", Graph.from_adjacency(self.graph, symmetrize=self.symmetrize))


def load_dataset(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Dataset:
    """A dataset by name, as exported, or signals (a file, an array, a data frame) with a graph (a file, a ``Graph``).

    ``options`` say how they are read, see docs/data.md: symmetrize, k, bandwidth, metric, threshold, drop, common,
    missing, fill, split_by, split_seed, val, test, cap, unit, data_dir.
    """
    found = opened(source, graph, **options)
    if found.graph is None:
        what = f"signals in {source}" if isinstance(source, str | Path) else "signals"
        raise InputError(f"{what} without a graph", "a graph for them", "name its file with --graph")
    data = found.dataset
    if not isinstance(source, str) or source not in recipes.NAMES:  # what is said of those is in their recipe
        for note in data.notes:
            warnings.warn(note, InputWarning, stacklevel=2)
    return data


@dataclass(frozen=True)
class Opened:
    """Signals as read, and the graph if there is one: what a dataset is made of."""

    name: str
    table: Table
    graph: Graph | None
    given: Options
    where: str
    ready: Dataset | None = None  # where splits and gaps were settled before

    @cached_property
    def dataset(self) -> Dataset:
        if self.ready is not None:
            return self.ready
        assert self.graph is not None  # or it was refused
        return _assembled(self.name, self.table, self.graph, self.given, self.where)


def opened(
    source: str | Path | ArrayLike, graph: str | Path | Graph | ArrayLike | None = None, **options: Any
) -> Opened:
    """Find and read what ``load_dataset`` names, up to the point where the two sides have to fit together."""
    known = list(Options.__dataclass_fields__)
    for key in options:
        if key not in known:
            raise unknown("option", key, known)
    given = Options(**{"graph": graph, **options})
    if not isinstance(source, str | Path):
        return Opened("signals", _table(source), _graph(Path(), given) if given.graph else None, given, "signals")
    name = str(source)
    if name in recipes.BUILT_IN:
        return _built_in(name, given)
    if name in recipes.RECIPES:
        return _from_recipe(name, given)
    if Path(source).suffix == "" and not os.path.exists(source):
        raise unknown("dataset", name, recipes.NAMES)
    path = existing(source)
    if path.suffix.lower() == ".npz" and set(SPLIT_NAMES) <= set(Archive(path).names):
        return _exported(path, given)
    network = _graph(path, given)
    nodes = () if network is None else network.node_ids
    return Opened(path.stem, read_signals(path, _label(given), nodes), network, given, name)


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
    order = None if times is None else clock.in_order(times, "the index")[0]
    table = Table(values, None if columns is None else tuple(str(name) for name in columns), times)
    return table if times is None or order is None else replace(table, values=values[order], times=times[order])


def _built_in(name: str, given: Options) -> Opened:
    _refuse_changed(given, f"the built-in {name}", {"data_dir"})
    from .catalog import sbm

    return _ready(sbm.load(int(name.removeprefix("sbm-c"))), given, name)


def _ready(data: Dataset, given: Options, where: str) -> Opened:
    """With its splits put together again, and open gaps for what was filled."""
    values = np.concatenate([data.split(split) for split in SPLIT_NAMES])
    if data.filled:
        values[np.concatenate([data.filled[split] for split in SPLIT_NAMES])] = np.nan
    times = np.concatenate([data.times[split] for split in SPLIT_NAMES]) if data.times else None
    table = Table(values, data.graph.node_ids, times, unit=data.unit)
    data = replace(data, notes=(*data.notes, *outliers.notes(values, data.graph.node_ids, times)))
    return Opened(data.name, table, data.graph, given, where, data)


def _refuse_changed(given: Options, what: str, allowed: set[str]) -> None:
    changed = {key for key, value in vars(given).items() if value != Options.__dataclass_fields__[key].default}
    if changed - allowed:
        raise InputError(
            f"{', '.join('--' + key.replace('_', '-') for key in sorted(changed - allowed))} for {what}",
            "no such options: its signals, gaps and splits are settled",
            "leave them out",
        )


def _from_recipe(name: str, given: Options) -> Opened:
    if given.graph is not None:
        raise InputError(f"--graph for {name}", "no graph: it has its own", "leave --graph out")
    defaults = {key: value for key, value in recipes.RECIPES[name].options.items() if getattr(given, key) is None}
    given = replace(given, **defaults)
    return Opened(name, *recipes.read_recipe(name, given.data_dir, given.symmetrize), given, name)


def _graph(path: Path, given: Options) -> Graph | None:
    """The graph that was given, or the one that lies in the same .npz file as the signals."""
    if isinstance(given.graph, Graph):
        return given.graph
    inside = path.suffix.lower() == ".npz" and {"adjacency", "coords"} & set(Archive(path).names)
    if given.graph is None and not inside:
        return None
    return read_graph(given.graph or path, **{key: getattr(given, key) for key in GRAPH_OPTIONS})


def _exported(path: Path, given: Options) -> Opened:
    """What `grcd data export` wrote: already split, filled and capped."""
    _refuse_changed(given, str(path), {*GRAPH_OPTIONS, "graph", "common", "unit", "data_dir"})
    arrays = Archive(path)
    network, named, made = _graph(path, given), arrays.first("node_ids"), read_made(arrays)
    if network is None:
        raise InputError(f"{path}, which holds no adjacency", "a graph", "name its file with --graph")
    if given.graph is None:
        network = replace(network, **made.pop("graph", {}))
    ids, unit = None if named is None else names_of(named, str(path)), given.unit or made.get("unit", "")
    values, masks, times = {}, {}, {}
    for split in SPLIT_NAMES:
        where = f"{split} in {path}"
        values[split], graph, notes = matched(arrays.signals(split), ids, network, where, given.common)
        if f"{split}_filled" in arrays:
            masks[split] = matched(arrays[f"{split}_filled"], ids, network, where, given.common)[0]
        if f"{split}_times" in arrays:
            times[split] = arrays[f"{split}_times"]
    train, val, test = (values[split] for split in SPLIT_NAMES)
    data = Dataset(path.stem, graph, train, val, test, unit=unit, times=times, filled=masks, notes=notes, facts=made)
    return _ready(data, given, str(path))


def _label(given: Options) -> str | None:
    return given.split_by if given.split_by not in (None, "chronological", "random") else None


# -- from tables to a dataset ----------------------------------------------------------------------------------------


def _assembled(name: str, table: Table, network: Graph, given: Options, where: str) -> Dataset:
    table, network = _without(given.drop, table, network)
    values, graph, notes = matched(table.values, table.node_ids, network, where, given.common)
    table = replace(table, values=values, notes=(*table.notes, *notes))
    table, rows, apart = _with_own_files(table, graph, given, where)
    policy, markers, unit = given.fill or "none", given.missing or (), given.unit or table.unit
    gaps.mark(table.values, markers)
    absent = gaps.missing(table.values)
    said = [*table.notes, *_markers(table.values, markers), *_said(absent, len(table.values), graph, policy)]
    said += outliers.notes(table.values, graph.node_ids, table.times)
    together = [part for split, part in rows.items() if split not in apart]
    own = [rows[split] for split in apart]
    filled = gaps.fill(table.values, policy, together, graph.node_ids, table.times, own)
    rows, dropped = _kept(table.values, rows, given.cap or (), policy)
    said += [f"{dropped} rows have no reading at all: left out"] * bool(dropped)
    facts = {
        "source": where,
        "unit": unit,
        "missing": float(absent.sum() / table.values.size),
        "markers": [float(marker) for marker in markers],
        "fill": policy,
        "split_by": given.split_by or "chronological",
        "split_seed": given.split_seed if given.split_by == "random" else None,
        "files": {split: str(getattr(given, split)) for split in apart},
        "cap": list(given.cap or ()),
    }
    train, val, test = (table.values[rows[split]] for split in SPLIT_NAMES)
    return Dataset(
        name,
        graph,
        train,
        val,
        test,
        unit=unit,
        times={} if table.times is None else {split: table.times[part] for split, part in rows.items()},
        filled={} if filled is None else {split: filled[part] for split, part in rows.items()},
        notes=tuple(said),
        facts=facts,
    )


def _without(drop: Sequence[str], table: Table, graph: Graph) -> tuple[Table, Graph]:
    """Leave nodes out on both sides."""
    names = [str(name) for name in drop]
    strange = [name for name in names if name not in graph.node_ids and name not in (table.node_ids or ())]
    if strange:
        raise InputError(f"nodes to drop that are nowhere: {some(strange)}", "names of nodes", "check their names")
    if not names:
        return table, graph
    kept = [i for i, name in enumerate(graph.node_ids) if name not in names]
    columns = [i for i, name in enumerate(table.node_ids or graph.node_ids) if name not in names]
    ids = table.node_ids and tuple(table.node_ids[i] for i in columns)
    graph = replace(graph.permuted(kept), origin=f"{graph.origin}, without {', '.join(names)}")
    return replace(table, values=table.values[:, columns], node_ids=ids), graph


def _with_own_files(table: Table, graph: Graph, given: Options, where: str) -> tuple[Table, dict, list[str]]:
    """Which rows make which split, and which splits have a file of their own: those are appended to the table."""
    own = {split: getattr(given, split) for split in ("val", "test") if getattr(given, split) is not None}
    names, count = [split for split in SPLIT_NAMES if split not in own], len(table.values)
    rows: dict[str, np.ndarray | slice] = {}
    if table.labels is not None:
        rows |= splits.labelled(table.labels, where)
    elif given.split_by == "random":
        rows |= splits.drawn(count, given.split_seed, names)
    else:
        rows |= splits.cut(count, names)
    for split, file in own.items():
        more = read_signals(file, nodes=graph.node_ids)
        if given.drop and more.node_ids:
            more = _without([name for name in given.drop if name in more.node_ids], more, graph)[0]
        table = _appended(table, more, graph, given, str(file))
        rows[split] = slice(count, len(table.values))
        count = len(table.values)
    return table, {split: rows[split] for split in SPLIT_NAMES}, list(own)


def _appended(table: Table, more: Table, graph: Graph, given: Options, where: str) -> Table:
    values, notes = fitted(more.values, more.node_ids, graph, where, given.common)
    values = check_signals(values, graph, where, 1, gaps=True)
    if (table.times is None) != (more.times is None):
        notes = (*notes, f"only one of {where} and the training signals has times: they are left out")
    times = None if table.times is None or more.times is None else [table.times, more.times]
    if times and len({part.dtype.kind == "M" for part in times}) > 1:
        raise InputError(
            f"{where} with times of another kind than the training signals",
            "dates in both files, or numbers in both",
            "write the times alike, or leave them out",
        )
    return replace(
        table,
        values=np.concatenate([table.values, values]),
        times=None if times is None else np.concatenate(times),
        notes=(*table.notes, *more.notes, *notes),
    )


def _kept(values: np.ndarray, rows: dict, cap: Sequence[int], policy: str) -> tuple[dict, int]:
    """Rows with nothing observed are of no use; of the rest at most ``cap``. And how many had nothing."""
    caps = dict(zip(SPLIT_NAMES, cap if len(cap) == 3 else [*cap] * 3, strict=False))
    seen = gaps.any_reading(values) if policy == "none" else np.ones(len(values), dtype=bool)
    kept = {}
    for split, part in rows.items():
        places = np.flatnonzero(seen[part])
        chosen = places[evenly(len(places), caps.get(split, len(places)))]
        whole = len(chosen) == len(seen[part])  # then a slice stays one, and its rows a view
        kept[split] = part if whole else np.arange(len(values))[part][chosen]
    return kept, int((~seen).sum())


def _markers(values: np.ndarray, markers: Sequence[float]) -> list[str]:
    """Readings that look like markers of missing ones."""
    share, far = 0.0 if 0 in markers else gaps.suspicious_zeros(values), gaps.far_constant(values)
    notes = [
        f"{share:.1%} of the readings are exactly 0 and none is negative: if 0 marks a missing reading, --missing 0"
    ]
    notes = notes * bool(share)
    if far is not None:
        value = f"{far:.15g}"
        notes.append(f"many readings are exactly {value}, far from all others: if it marks a gap, --missing {value}")
    return notes


def _said(absent: np.ndarray, rows: int, graph: Graph, policy: str) -> list[str]:
    if not absent.any():
        return []
    worst = np.argsort(-absent, kind="stable")[:3]
    share = f"{absent.sum() / (rows * len(absent)):.2%} of the readings are missing (most at "
    share += ", ".join(f"{graph.node_ids[i]} {absent[i] / rows:.1%}" for i in worst if absent[i]) + ")"
    if policy == "none":
        return [f"{share}: the model is trained on what is there; --fill linear (or forward-backward, mean) fills them"]
    return [f"{share} and were filled by {policy!r}: evaluate with --observed-only leaves them out"]
