"""Do these data suit the method? One screen of facts, and for everything that is wrong a remedy.

The method wants many samples of signals that vary at every node, and a graph whose edges mean something. How
concentrated the spectrum is decides how much the reference explains: `(sum v)^2 / sum v^2` is the number of modes that
share the energy (all of them if it is spread evenly: then the graph says nothing). What decides the start of sampling
is the reference's signal-to-noise ratio at the last noise level, `sum v^2 / (sum v q^2)` with `q = kappa`. The paper's
five settings have between 0.8 and 7.2 at kappa 2; a kappa is suggested that keeps it at 7.2 or below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, InputWarning, counted, some
from ..core.rows import blocks
from ..data import catalog, gaps, kinds, outliers
from ..data.assembly import Opened, leave_out
from ..data.catalog.named import Published
from ..data.channels import Channels
from ..data.formats.channels import named
from ..data.formats.table import SeveralChannels, Table
from ..data.loading import NO_GRAPH, opened, opened_series, rows_of
from ..data.normalizer import UnusableNodes
from ..data.notes import Note
from ..data.options import Options
from ..data.series import Series
from ..data.series_dataset import assembled
from ..data.times import as_text
from ..graphs.graph import Graph
from ..references.covariance import ledoit_wolf
from ..references.gaussian import off_diagonal_energy, spectral
from . import in_time, screen
from .window import Window

KAPPA, LARGEST_SNR = 2.0, 7.2
FEW = 500  # training signals below which covariance and network have little to learn from
FAINT = 1e-6  # of the largest weighted degree: a node with less is as good as alone
NEAR = 0.05  # share of their range within which the least of readings is near zero
KERNELS = {  # by what a graph says of its origin: what links nodes that its weights leave alone
    "distance table": "raise --bandwidth, or lower --threshold",
    "Gaussian weights": "raise --bandwidth",
}


class Remark(NamedTuple):
    """Something about the data, and what to do about it."""

    what: str
    do: str


@dataclass(frozen=True)
class Inspection:
    """Facts by section; what keeps the data from training, and what is worth knowing."""

    name: str
    signals: dict
    graph: dict
    method: dict
    problems: list[Remark]
    warnings: list[Remark]
    time: dict = field(default_factory=dict)  # nothing for signals that have no order
    steps: int = 1  # rows of the windows that a training would learn, unless told otherwise

    @property
    def ready(self) -> bool:
        """Whether a model can be trained on these data as they are."""
        return not self.problems

    def to_dict(self) -> dict:
        listed = {
            key: [{key[:-1]: what, "remedy": do} for what, do in getattr(self, key)] for key in ("problems", "warnings")
        }
        return {"ready": self.ready, **asdict(self), **listed}

    def __str__(self) -> str:
        verdict = "ready to train" if self.ready else "cannot be trained on yet, see x below"
        facts = {"signals": self.signals, "time": self.time, "graph": self.graph, "method": self.method}
        lines = [f"{self.name}: {verdict}", *screen.lines(facts, self.steps, self.ready)]
        for mark, remarks in (("x", self.problems), ("!", self.warnings)):
            lines += [f"  {mark} {what}\n    -> {do}" for what, do in remarks]
        return "\n".join(lines)


def inspect(
    source: str | Path | ArrayLike | Sequence[str | Path],
    graph: str | Path | Graph | ArrayLike | None = None,
    picture: str | Path | None = None,
    **options: Any,
) -> Inspection:
    """Look at a dataset by name or from files; ``options`` as for ``load_dataset``. No graph: at signals only.

    Several files, each as `NAME=FILE`, and files of several channels are looked at as a series.
    """
    problems: list[Remark] = []
    warnings: list[Remark] = []
    if isinstance(source, list | tuple) or (isinstance(source, str) and named(source)[0]):
        return _series(source, Options.of({"graph": graph, **options}))
    try:
        data = _opened(source, graph, options, problems)
    except SeveralChannels:
        return _series(source, Options.of({"graph": graph, **options}))
    table, network = _left(data)
    readings = _Readings.of(table, data.options)
    time = _in_time(data, table, warnings)
    window = _window(data)
    steps, time = 1 if window is None else window.steps, _with_window(time, window)
    (problems if steps == 1 else warnings).extend(readings.constants())  # windows have room for those
    problems += readings.silent()
    warnings += readings.limits()
    graph_facts, method = {}, {}
    if network is None:
        problems.append(Remark("no graph was given", NO_GRAPH))
    else:
        graph_facts = _graph(network, warnings)
        method = _method(data, readings, problems, warnings, steps)
    if not method:  # else it is among the dataset's own notes
        warnings += map(_remark, outliers.notes(table.values, readings.node_ids, table.times))
    if picture is not None and "snr_at_kappa_2" in method:
        from .pictures import inspected, save

        save(inspected(data.dataset), picture)
    return Inspection(data.name, readings.facts(data), graph_facts, method, problems, warnings, time, steps)


def _left(data: Opened) -> tuple[Table, Graph | None]:
    """Without the nodes that were dropped."""
    if data.graph is None or data.settled is not None:
        return data.table, data.graph
    return leave_out(data.options.drop, data.table, data.graph)


def _window(data: Opened) -> Window | None:
    """What `grcd train` takes of such a file; None where it takes rows by themselves, or cannot take any."""
    if data.graph is None:
        return None
    try:
        with catch_warnings():
            simplefilter("ignore", InputWarning)  # there is a remark on irregular times already
            rows = rows_of(data)
    except InputError:  # which is among the problems
        return None
    return None if rows is None else Window.of(rows)


def _with_window(time: dict, window: Window | None) -> dict:
    """Facts in time, with the window that is taken in place of what all rows together suggest."""
    return time if window is None else time | {"window_suggested": window.steps, "window_why": window.why}


def _in_time(data: Opened, table: Table, warnings: list[Remark]) -> dict:
    """Of rows as they were read; those that were drawn, or chosen before, have no order."""
    if data.settled is not None or data.options.split_by == "random":
        return {}
    named = catalog.DATASETS.get(data.name) if data.where == data.name else None
    channels = Channels.of({named.channel if isinstance(named, Published) else "": table}, data.where)
    if isinstance(named, Published) and named.channels is not None:
        channels = named.channels(named.source.folder(data.options.data_dir))
    series = Series(channels.values, channels.times)
    try:
        series.refuse_irregular(data.where)
    except InputError as error:
        warnings.append(Remark(error.got, f"in time: {error.do}"))
    return in_time.facts(series, channels.names, channels.with_units(data.options.unit).units)


def _series(source: Any, options: Options) -> Inspection:
    """Of several channels: facts of the rows in time, and of the graph."""
    problems, warnings = list[Remark](), list[Remark]()
    try:
        name, channels, network, where = opened_series(source, options)
    except InputError as error:
        if options.symmetrize is not None or "symmetrize" not in error.do:
            raise
        problems.append(Remark(error.got, error.do))
        name, channels, network, where = opened_series(source, replace(options, symmetrize="half-sum"))
    channels, method, window = channels.with_units(options.unit), {}, None
    series = Series(channels.values, channels.times)
    if network is None:
        problems.append(Remark("no graph was given", NO_GRAPH))
    else:
        try:
            data = assembled(name, channels, network, options, where)
            series, method = replace(data.series, borders=()), {"split": [len(data.rows(s)) for s in data.splits]}
            channels, warnings = replace(channels, node_ids=data.node_ids), [_remark(note) for note in data.notes]
            network, window = data.graph, Window.of(data)  # without what was dropped
        except InputError as error:
            problems.append(Remark(error.got, error.do))
    rows, nodes = series.values.shape[:2]
    ids = [f"{node} {channel}" for node in channels.node_ids or range(nodes) for channel in channels.names]
    opened = Opened(name, Table(series.values.reshape(rows, -1), tuple(ids), series.times), network, options, where)
    readings = _Readings.of(opened.table, options)
    if readings.constant:
        what = counted(len(readings.constant), "column never changes", "columns never change")
        warnings.append(
            Remark(f"{what}: {some(readings.constant)}", "they say nothing: empty them, or leave the channel out")
        )
    signals = readings.facts(opened) | {"nodes": nodes, "channels": list(channels.names), "range": [None, None]}
    signals["unit"] = ", ".join(channels.units) if any(channels.units) else None
    each = [kind.to_dict() for kind in kinds.of_channels(series.values)]
    signals["kinds"] = dict(zip(channels.names, each, strict=True))
    graph = {} if network is None else _graph(network, warnings)
    time = _with_window(in_time.facts(series, channels.names, channels.units), window)
    return Inspection(name, signals, graph, method, problems, warnings, time, time["window_suggested"])


def _opened(source: Any, graph: Any, options: dict, problems: list[Remark]) -> Opened:
    """As read; a directed graph is looked at in its symmetrised form."""
    try:
        return opened(source, graph, **options)
    except InputError as error:
        if options.get("symmetrize") is not None:
            raise
        try:
            data = opened(source, graph, **{**options, "symmetrize": "half-sum"})
        except InputError:
            raise error from None
        problems.append(Remark(error.got, error.do))
        return data


def _remark(note: Note) -> Remark:
    return Remark(note.what, note.do or "nothing, if that is right")


@dataclass(frozen=True)
class _Readings:
    """What can be said of readings node by node."""

    values: np.ndarray  # (samples, nodes)
    node_ids: Sequence[str]  # or numbers
    absent: np.ndarray  # (nodes,) how many are missing
    low: np.ndarray  # (nodes,) inf where there is none
    high: np.ndarray  # (nodes,)

    @classmethod
    def of(cls, table: Table, options: Options) -> _Readings:
        values = table.values
        gaps.mark(values, options.missing or ())  # again when the dataset is made, which changes nothing
        ids = table.node_ids or [str(place) for place in range(values.shape[1])]
        return cls(values, ids, gaps.missing(values), *_ranges(values))

    @property
    def constant(self) -> list[str]:
        return self._named(~(self.high > self.low) & (self.absent < len(self.values)))

    @property
    def never_read(self) -> list[str]:
        return self._named(self.absent == len(self.values))

    def _named(self, which: np.ndarray) -> list[str]:
        return [self.node_ids[int(i)] for i in np.flatnonzero(which)]

    def constants(self) -> list[Remark]:
        """Nodes that say nothing, and that no model of single rows can be trained on."""
        what = counted(len(self.constant), "node never changes", "nodes never change")
        do = "leave such nodes out (--drop NAME)"
        return [Remark(f"{what}: {some(self.constant)}", do)] if self.constant else []

    def silent(self) -> list[Remark]:
        """Nodes that no model can be trained on."""
        what = counted(len(self.never_read), "node has", "nodes have") + " no reading at all"
        do = "leave such nodes out (--drop NAME)"
        return [Remark(f"{what}: {some(self.never_read)}", do)] if self.never_read else []

    def limits(self) -> list[Remark]:
        """Readings that come near zero, and never below; not where zeros may be gaps, which is another remark."""
        low, high = self.low.min(initial=np.inf), self.high.max(initial=-np.inf)
        if not 0 <= low < NEAR * high or kinds.Kind.of(self.values).low is not None:  # which a training keeps to
            return []
        if low == 0 and gaps.silent_zeros(self.values) is not None:
            return []
        what = f"no reading is below 0, and the least is {'0' if low == 0 else f'near it ({low:g})'}"
        return [Remark(what, "if none can be below, --support 0 inf in training keeps generated ones there")]

    def facts(self, data: Opened) -> dict:
        table, rows = data.table, len(self.values)
        worst = [i for i in np.argsort(-self.absent, kind="stable")[:3] if self.absent[i]]
        return {
            "samples": rows,
            "nodes": self.values.shape[1],
            "unit": data.options.unit or table.unit or None,
            "times": None if table.times is None else " to ".join(map(str, as_text(table.times[[0, -1]]))),
            "missing": float(self.absent.sum() / self.values.size),
            "missing_most_at": {self.node_ids[i]: float(self.absent[i] / rows) for i in worst},
            "constant_nodes": self.constant,
            "range": [_finite(np.nanmin(self.low, initial=np.inf)), _finite(np.nanmax(self.high, initial=-np.inf))],
            "held_in": str(self.values.dtype),
            "kinds": {"": kinds.Kind.of(self.values).to_dict()},
        }


def _ranges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (nodes,) each
    """Smallest and largest reading of each node; inf and -inf where there is none."""
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for rows in blocks(*values.shape):
        low = np.minimum(low, np.fmin.reduce(values[rows], axis=0, initial=np.inf))
        high = np.maximum(high, np.fmax.reduce(values[rows], axis=0, initial=-np.inf))
    return low, high


def _graph(graph: Graph, warnings: list[Remark]) -> dict:
    faint = FAINT * graph.degree.max(initial=0.0)
    isolated = [graph.node_ids[i] for i in np.flatnonzero(graph.degree <= faint)]
    if graph.pairs == len(graph) * (len(graph) - 1) // 2 and len(graph) > 5:
        do = "if it holds distances, list them as from,to,distance: far nodes must have small weights"
        warnings.append(Remark("every node is linked with every other", do))
    if graph.components > 1 + int((graph.degree == 0).sum()):
        what = f"the graph falls into {graph.components} parts"
        warnings.append(Remark(what, "fine if true; else add edges, or --neighbours"))
    if graph.pairs == 0:
        links = next((how for made, how in KERNELS.items() if made in graph.origin), "")
        do = links or "check how it was made; positions give one with --neighbours"
        warnings.append(Remark("the graph has no edges", do))
    elif isolated:
        what = f"{counted(len(isolated), 'node has no neighbour', 'nodes have no neighbour')}: {some(isolated)}"
        links = next((how for made, how in KERNELS.items() if made in graph.origin), "add their edges")
        shared = "are wide modes alone" if graph.large else "is learned from readings alone"
        do = f"what they share with the rest {shared}, without the graph: {links}, or drop them (--drop NAME)"
        warnings.append(Remark(what, do))
    linked = np.diff(graph.weights.indptr)
    return {
        "graph": graph.origin,
        "pairs": graph.pairs,
        "one_way": graph.one_way,
        "one_way_share_of_weight": graph.one_way_share,
        "components": graph.components,
        "isolated_nodes": isolated,
        "neighbours_a_node": [int(linked.min()), float(np.median(linked)), int(linked.max())],
        "weighted_degree": [float(graph.degree.min()), float(np.median(graph.degree)), float(graph.degree.max())],
    }


def _method(source: Opened, readings: _Readings, problems: list[Remark], warnings: list[Remark], steps: int) -> dict:
    try:
        data = source.dataset
        facts, z = {"split": [len(data.train), len(data.val), len(data.test)]}, data.normalizer.apply(data.train)
    except UnusableNodes as error:
        if not readings.constant and not readings.never_read:  # else it was said before, in other words
            problems.append(Remark(error.got, error.do))
        return {}
    except InputError as error:
        problems.append(Remark(error.got, error.do))
        return {}
    if steps > 1:  # gaps stay open, and the screen has them already
        warnings += [_remark(note) for note in data.notes if "--fill" not in note.do]
    else:
        warnings += map(_remark, data.notes)
    if len(data.train) < FEW:
        do = f"{FEW} or more are better; with few, trust the Gaussian controls as much as the network"
        warnings.append(Remark(counted(len(data.train), "training row"), do))
    if data.graph.large:  # no covariance, and no frequencies
        return facts
    covariance = ledoit_wolf(z)
    reference = spectral(covariance, data.graph.spectrum)
    v = reference.v.numpy()
    snr, kappa = reference.energy_snr(KAPPA), max(KAPPA, math.ceil(100 * reference.q_for_snr(LARGEST_SNR)) / 100)
    if kappa > KAPPA and steps == 1:
        what = f"at kappa 2 the reference SNR is {snr:.1f}, beyond the paper's settings"
        warnings.append(Remark(what, f"train with --set kappa={kappa:g}"))
    low = np.argsort(data.graph.spectrum.lam, kind="stable")[: max(1, len(v) // 10)]
    return facts | {
        "modes_sharing_energy": float(v.sum() ** 2 / (v**2).sum()),
        "energy_in_lowest_tenth": float(v[low].sum() / v.sum()),
        "covariance_off_the_modes": off_diagonal_energy(covariance, reference),
        "snr_at_kappa_2": snr,
        "kappa_suggested": kappa,
        "kappa_for_snr_0.01": reference.q_for_snr(0.01),
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
