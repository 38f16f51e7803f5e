"""From a name or files to a dataset: read, match nodes by name, mark gaps, split, fill, cap.

data = grcd.load_dataset("metr-la")
data = grcd.load_dataset("readings.csv", graph="stations.csv")
data = grcd.load_dataset("speeds.parquet", graph="adj_mx.pkl", symmetrize="half-sum", missing=[0], fill="linear")
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import InputError, InputWarning, some, unknown
from ..graph import Graph
from ..normalizer import blocks, check_signals
from . import gaps, recipes, splits
from .arrays import Archive
from .dataset import SPLIT_NAMES, Dataset
from .graphs import read_graph
from .signals import Table, existing, read_signals

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
    common: bool = False  # drop the nodes that only the signals or only the graph have
    missing: Sequence[float] = ()  # values that mark a missing reading; NaN always does
    fill: str | None = None  # forward-backward, linear, mean or none
    split_by: str | None = None  # chronological, random, or the column that says it
    split_seed: int = 0
    val: str | Path | None = None  # files of their own
    test: str | Path | None = None
    cap: Sequence[int] = ()  # at most so many training, validation and test signals
    unit: str | None = None
    data_dir: str | Path | None = None


def load_dataset(source: str | Path, graph: str | Path | Graph | None = None, **options) -> Dataset:
    """A dataset by name, as exported, or from a file of signals and a graph. ``options``: the fields of ``Options``."""
    found = opened(source, graph, **options)
    if found.graph is None:
        raise InputError(f"signals in {source} without a graph", "a graph for them", "name its file with --graph")
    data = found.dataset()
    if found.name not in recipes.NAMES:  # what is said of those is in their recipe
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

    def dataset(self) -> Dataset:
        if self.ready is not None:
            return self.ready
        return _assembled(self.name, self.table, self.graph, self.given, self.where)


def opened(source: str | Path, graph: str | Path | Graph | None = None, **options) -> Opened:
    """Find and read what ``load_dataset`` names, up to the point where the two sides have to fit together."""
    known = list(Options.__dataclass_fields__)
    for key in options:
        if key not in known:
            raise unknown("option", key, known)
    given, name = Options(graph=graph, **options), str(source)
    if name in recipes.BUILT_IN:
        return _built_in(name, given)
    if name in recipes.RECIPES:
        return _from_recipe(name, given)
    if Path(source).suffix == "" and not Path(source).exists():
        raise unknown("dataset", name, recipes.NAMES)
    path = existing(source)
    if path.suffix.lower() == ".npz" and set(SPLIT_NAMES) <= set(Archive(path).names):
        return _exported(path, given)
    return Opened(path.stem, read_signals(path, _label(given)), _graph(path, given), given, name)


def _built_in(name: str, given: Options) -> Opened:
    _refuse_changed(given, f"the built-in {name}", {"data_dir"})
    from . import sbm

    return _ready(sbm.load(int(name.removeprefix("sbm-c"))), given, name)


def _ready(data: Dataset, given: Options, where: str) -> Opened:
    values = np.concatenate([data.split(split) for split in SPLIT_NAMES])
    return Opened(data.name, Table(values, data.graph.node_ids, unit=data.unit), data.graph, given, where, data)


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
    defaults = {key: value for key, value in recipes.RECIPES[name].options.items() if not getattr(given, key)}
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
    network, ids, unit = _graph(path, given), arrays.first("node_ids"), arrays.first("unit")
    if network is None:
        raise InputError(f"{path}, which holds no adjacency", "a graph", "name its file with --graph")
    ids = None if ids is None else tuple(str(name) for name in ids)
    values, masks, times = {}, {}, {}
    for split in SPLIT_NAMES:
        where = f"{split} in {path}"
        values[split], graph, notes = matched(arrays.signals(split), ids, network, where, given.common)
        if f"{split}_filled" in arrays:
            masks[split] = matched(arrays[f"{split}_filled"], ids, network, where, given.common)[0]
        if f"{split}_times" in arrays:
            times[split] = arrays[f"{split}_times"]
    unit = given.unit or ("" if unit is None else str(unit))
    data = Dataset(path.stem, graph, **values, unit=unit, times=times, filled=masks, notes=notes)
    return _ready(data, given, str(path))


def _label(given: Options) -> str | None:
    return given.split_by if given.split_by not in (None, "chronological", "random") else None


# -- from tables to a dataset ----------------------------------------------------------------------------------------


def _assembled(name: str, table: Table, network: Graph, given: Options, where: str) -> Dataset:
    values, graph, notes = matched(table.values, table.node_ids, network, where, given.common)
    table = replace(table, values=values, notes=(*table.notes, *notes))
    table, rows = _with_own_files(table, graph, given, where)
    notes = [*table.notes, *_zeros(table.values, given.missing)]
    gaps.mark(table.values, given.missing)
    absent, policy = gaps.missing(table.values), given.fill or "none"
    filled = gaps.fill(table.values, policy, list(rows.values()), graph.node_ids)
    notes += _said(absent, len(table.values), graph, policy)
    rows, dropped = _kept(table.values, rows, given.cap, policy)
    notes += [f"{dropped} rows without a single reading were left out"] * bool(dropped)
    unit = table.unit if given.unit is None else given.unit
    return Dataset(
        name,
        graph,
        **{split: table.values[part] for split, part in rows.items()},
        unit=unit,
        times={} if table.times is None else {split: table.times[part] for split, part in rows.items()},
        filled={} if filled is None else {split: filled[part] for split, part in rows.items()},
        notes=tuple(notes),
        facts={
            "source": where,
            "unit": unit,
            "missing": float(absent.sum() / table.values.size),
            "markers": [float(marker) for marker in given.missing],
            "fill": policy,
            "split_by": given.split_by or "chronological",
            "split_seed": given.split_seed if given.split_by == "random" else None,
            "cap": list(given.cap),
        },
    )


def matched(
    values: np.ndarray, ids: Sequence[str] | None, graph: Graph, where: str, common: bool = False
) -> tuple[np.ndarray, Graph, tuple[str, ...]]:
    """Columns in the graph's node order, the graph they belong to, and what to say. Names decide where there are any.

    ``common`` drops the nodes that only one side has. Values may be reordered in place.
    """
    if values.ndim != 2 or (ids is None and values.shape[1] != len(graph)):
        return values, graph, ()  # the dataset says what is wrong with the shape
    if ids is None or tuple(ids) == graph.node_ids:
        return values, graph, ()
    place, here = {name: i for i, name in enumerate(ids)}, set(graph.node_ids)
    missing, extra = [name for name in graph.node_ids if name not in place], [name for name in ids if name not in here]
    if not missing and not extra:
        return _reordered(values, [place[name] for name in graph.node_ids]), graph, ()
    if len(ids) == len(graph) and graph.node_ids == tuple(str(place) for place in range(len(graph))):
        note = f"the graph has no node names: its order is taken to be that of the columns in {where}"
        return values, replace(graph, node_ids=tuple(ids)), (note,)
    if common and len(missing) <= len(graph) - 2:
        graph = graph.permuted([i for i, name in enumerate(graph.node_ids) if name in place])
        gone = [f"{len(extra)} of the signals ({some(extra)})"] * bool(extra)
        gone += [f"{len(missing)} of the graph ({some(missing)})"] * bool(missing)
        note = f"nodes that only one side has were dropped: {', '.join(gone)}"
        return values[:, [place[name] for name in graph.node_ids]], graph, (note,)
    raise _mismatch(missing, extra, graph, where)


def _reordered(values: np.ndarray, order: list[int]) -> np.ndarray:
    """In place, block by block: a second copy of a large table might not fit."""
    for rows in blocks(*values.shape):
        values[rows] = values[rows][:, order]
    return values


def _mismatch(missing: list[str], extra: list[str], graph: Graph, where: str) -> InputError:
    parts = [f"{len(missing)} missing ({some(missing)})"] * bool(missing)
    parts += [f"{len(extra)} unknown ({some(extra)})"] * bool(extra)
    return InputError(
        f"{where} with nodes that do not match the graph: {', '.join(parts)}",
        f"the graph's {len(graph)} node names",
        "rename the columns, give the graph that belongs to these signals, or keep only the common nodes (--common)",
    )


def _with_own_files(table: Table, graph: Graph, given: Options, where: str) -> tuple[Table, dict]:
    """Which rows make which split; validation and test signals from files of their own are appended to the table."""
    own = {split: getattr(given, split) for split in ("val", "test") if getattr(given, split) is not None}
    names = [split for split in SPLIT_NAMES if split not in own]
    count = len(table.values)
    if table.labels is not None:
        rows = splits.labelled(table.labels, where)
    elif given.split_by == "random":
        rows = splits.drawn(count, given.split_seed, names)
    else:
        rows = splits.cut(count, names)
    for split, file in own.items():
        more = read_signals(file)
        values = matched(more.values, more.node_ids, graph, str(file), given.common)[0]
        both = table.times is not None and more.times is not None
        table = replace(
            table,
            values=np.concatenate([table.values, check_signals(values, graph, str(file), 1, gaps=True)]),
            times=np.concatenate([table.times, more.times]) if both else None,
            notes=(*table.notes, *more.notes),
        )
        rows[split] = slice(count, count + len(values))
        count += len(values)
    return table, {split: rows[split] for split in SPLIT_NAMES}


def _kept(values: np.ndarray, rows: dict, cap: Sequence[int], policy: str) -> tuple[dict, int]:
    """Rows with nothing observed are of no use; of the rest at most ``cap``. And how many had nothing."""
    if (cap and len(cap) not in (1, 3)) or any(number < 2 for number in cap):
        raise InputError(f"cap = {list(cap)}", "one number from 2 up, or three", "give e.g. --cap 20000,3000,5000")
    caps = dict(zip(SPLIT_NAMES, cap if len(cap) == 3 else [*cap] * 3, strict=False))
    seen = gaps.any_reading(values) if policy == "none" else None
    kept, dropped = {}, 0
    for split, part in rows.items():
        if seen is not None and not seen[part].all():
            part = np.arange(len(values))[part][seen[part]]
        count = len(range(*part.indices(len(values)))) if isinstance(part, slice) else len(part)
        if split in caps and count > caps[split]:
            part = np.arange(len(values))[part][splits.spaced(count, caps[split])]
        kept[split] = part
    if seen is not None:
        dropped = int((~seen).sum())
    return kept, dropped


def _zeros(values: np.ndarray, markers: Sequence[float]) -> list[str]:
    share = 0.0 if 0 in markers else gaps.suspicious_zeros(values)
    note = f"{share:.1%} of the readings are exactly 0 and none is negative: if 0 marks a missing reading, --missing 0"
    return [note] * bool(share)


def _said(absent: np.ndarray, rows: int, graph: Graph, policy: str) -> list[str]:
    if not absent.any():
        return []
    worst = np.argsort(-absent, kind="stable")[:3]
    share = f"{absent.sum() / (rows * len(absent)):.2%} of the readings are missing (most at "
    share += ", ".join(f"{graph.node_ids[i]}: {absent[i] / rows:.1%}" for i in worst if absent[i]) + ")"
    if policy == "none":
        return [f"{share}: the model is trained on what is there; --fill linear (or forward-backward, mean) fills them"]
    return [f"{share} and were filled by {policy!r}; evaluate with --observed-only leaves them out"]
