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

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, some
from ..core.rows import blocks
from ..data import catalog, gaps, outliers
from ..data.assembly import Opened
from ..data.catalog.named import Published
from ..data.channels import Channels
from ..data.dataset import Dataset
from ..data.formats.channels import named
from ..data.formats.table import SeveralChannels, Table
from ..data.loading import opened, opened_series
from ..data.normalizer import UnusableNodes
from ..data.notes import Note
from ..data.options import Options
from ..data.series import Series
from ..data.series_dataset import assembled
from ..graphs.graph import Graph
from ..references.covariance import ledoit_wolf
from ..references.gaussian import off_diagonal_energy, spectral
from . import in_time

KAPPA, LARGEST_SNR = 2.0, 7.2
FEW = 500  # training signals below which covariance and network have little to learn from
LAPTOP: dict[str, Any] = {"width": 32, "max_updates": 2000}  # a network that two cores train in minutes


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
        lines = [f"{self.name}: {verdict}"]
        time = in_time.lines(self.time)
        for title, text in (
            *_signal_lines(self.signals),
            *time,
            *_graph_lines(self.graph),
            *_method_lines(self.method),
        ):
            lines.append(f"  {title:<12}{text}")
        for mark, pairs in (("x", self.problems), ("!", self.warnings)):
            lines += [f"  {mark} {what}\n    -> {do}" for what, do in pairs]
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
    readings = _Readings.of(data)
    time = _in_time(data, warnings)
    problems += readings.problems()
    graph_facts, method = {}, {}
    if data.graph is None:
        problems.append(Remark("no graph was given", "name its file with --graph"))
    else:
        graph_facts = _graph(data.graph, warnings)
        method = _method(data, readings, problems, warnings)
    if not method:  # else it is among the dataset's own notes
        names = data.table.node_ids or readings.node_ids  # values are in the order of the file
        warnings += map(_remark, outliers.notes(data.table.values, names, data.table.times))
    if picture is not None and "snr_at_kappa_2" in method:
        from .pictures import inspected, save

        save(inspected(data.dataset), picture)
    return Inspection(data.name, readings.facts(data), graph_facts, method, problems, warnings, time)


def _in_time(data: Opened, warnings: list[Remark]) -> dict:
    """Of rows as they were read; those that were drawn, or chosen before, have no order."""
    if data.settled is not None or data.options.split_by == "random":
        return {}
    named = catalog.DATASETS.get(data.name) if data.where == data.name else None
    channels = Channels.of({named.channel if isinstance(named, Published) else "": data.table}, data.where)
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
    channels, method = channels.with_units(options.unit), {}
    series = Series(channels.values, channels.times)
    if network is None:
        problems.append(Remark("no graph was given", "name its file with --graph"))
    else:
        try:
            data = assembled(name, channels, network, options, where)
            series, method = replace(data.series, borders=()), {"split": [len(data.rows(s)) for s in data.splits]}
            channels, warnings = replace(channels, node_ids=data.node_ids), [_remark(note) for note in data.notes]
        except InputError as error:
            problems.append(Remark(error.got, error.do))
    rows, nodes = series.values.shape[:2]
    ids = [f"{node} {channel}" for node in channels.node_ids or range(nodes) for channel in channels.names]
    opened = Opened(name, Table(series.values.reshape(rows, -1), tuple(ids), series.times), network, options, where)
    readings = _Readings.of(opened)
    if readings.constant:
        what = f"{len(readings.constant)} columns never change: {some(readings.constant)}"
        warnings.append(Remark(what, "they say nothing: empty them, or leave the channel out"))
    signals = readings.facts(opened) | {"nodes": nodes, "channels": list(channels.names), "range": [None, None]}
    signals["unit"] = ", ".join(channels.units) if any(channels.units) else None
    graph = {} if network is None else _graph(network, warnings)
    time = in_time.facts(series, channels.names, channels.units)
    return Inspection(name, signals, graph, method, problems, warnings, time)


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
    def of(cls, data: Opened) -> _Readings:
        values = data.table.values
        gaps.mark(values, data.options.missing or ())  # again when the dataset is made, which changes nothing
        ids = data.table.node_ids or [str(place) for place in range(values.shape[1])]
        return cls(values, ids, gaps.missing(values), *_ranges(values))

    @property
    def constant(self) -> list[str]:
        return self._named(~(self.high > self.low) & (self.absent < len(self.values)))

    @property
    def never_read(self) -> list[str]:
        return self._named(self.absent == len(self.values))

    def _named(self, which: np.ndarray) -> list[str]:
        return [self.node_ids[int(i)] for i in np.flatnonzero(which)]

    def problems(self) -> list[Remark]:
        """Nodes that no model can be trained on."""
        kinds = ("never change", self.constant), ("have no reading at all", self.never_read)
        do = "leave those nodes out (--drop NAME)"
        return [Remark(f"{len(names)} nodes {what}: {some(names)}", do) for what, names in kinds if names]

    def facts(self, data: Opened) -> dict:
        table, rows = data.table, len(self.values)
        worst = [i for i in np.argsort(-self.absent, kind="stable")[:3] if self.absent[i]]
        return {
            "samples": rows,
            "nodes": self.values.shape[1],
            "unit": data.options.unit or table.unit or None,
            "times": None if table.times is None else f"{_day(table.times[0])} to {_day(table.times[-1])}",
            "missing": float(self.absent.sum() / self.values.size),
            "missing_most_at": {self.node_ids[i]: float(self.absent[i] / rows) for i in worst},
            "constant_nodes": self.constant,
            "range": [_finite(np.nanmin(self.low, initial=np.inf)), _finite(np.nanmax(self.high, initial=-np.inf))],
            "held_in": str(self.values.dtype),
        }


def _ranges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (nodes,) each
    """Smallest and largest reading of each node; inf and -inf where there is none."""
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for rows in blocks(*values.shape):
        low = np.minimum(low, np.fmin.reduce(values[rows], axis=0, initial=np.inf))
        high = np.maximum(high, np.fmax.reduce(values[rows], axis=0, initial=-np.inf))
    return low, high


def _graph(graph: Graph, warnings: list[Remark]) -> dict:
    isolated = [graph.node_ids[i] for i in np.flatnonzero(graph.degree == 0)]
    if graph.pairs == len(graph) * (len(graph) - 1) // 2 and len(graph) > 5:
        do = "if it holds distances, list them as from,to,distance: far nodes must have small weights"
        warnings.append(Remark("every node is linked with every other", do))
    if graph.components > 1 + len(isolated):
        what = f"the graph falls into {graph.components} parts"
        warnings.append(Remark(what, "fine if true; else add edges, or --neighbours"))
    if graph.pairs == 0:
        do = "check how it was made; positions give one with --neighbours"
        warnings.append(Remark("the graph has no edges", do))
    elif isolated:
        what = f"{len(isolated)} nodes have no neighbour: {some(isolated)}"
        do = "nothing ties them to the rest, so they are drawn independently: add their edges, or drop them"
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


def _method(source: Opened, readings: _Readings, problems: list[Remark], warnings: list[Remark]) -> dict:
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
    warnings += map(_remark, data.notes)
    if len(data.train) < FEW:
        do = f"{FEW} or more are better; with few, trust the Gaussian controls as much as the network"
        warnings.append(Remark(f"{len(data.train)} training signals", do))
    if data.graph.large:  # no covariance, and no frequencies
        return facts
    covariance = ledoit_wolf(z)
    reference = spectral(covariance, data.graph.spectrum)
    v = reference.v.numpy()
    snr, kappa = reference.energy_snr(KAPPA), max(KAPPA, math.ceil(100 * reference.q_for_snr(LARGEST_SNR)) / 100)
    if kappa > KAPPA:
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
        **_times(data),
    }


def _times(data: Dataset) -> dict:
    """Seconds that training takes here at most: a small network, and the default one. Measured on a few updates."""
    from ..model import GRCD

    seconds = {}
    for name, settings in (("training_small_s", LAPTOP), ("training_default_s", {})):
        model = GRCD(data.graph, **settings)
        seconds[name] = round(model.seconds_per_update(data.train) * model.config.max_updates)
    return seconds


def _day(moment: Any) -> str:
    return str(moment.astype("datetime64[m]")) if isinstance(moment, np.datetime64) else f"{moment:g}"


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


# -- the screen ------------------------------------------------------------------------------------------------------


def _signal_lines(f: dict) -> list[tuple[str, str]]:
    size = f"{f['samples']:,} samples of {f['nodes']} nodes"
    if "channels" in f:
        size += f", {len(f['channels'])} channels"
    else:
        low, high = ("?" if end is None else f"{end:g}" for end in f["range"])
        size += f", {low} to {high} {f['unit'] or ''}".rstrip()
    lines = [("signals", size)]
    if f["times"]:
        lines.append(("times", f["times"]))
    worst = ", ".join(f"{name} {share:.1%}" for name, share in f["missing_most_at"].items())
    lines.append(("missing", f"{f['missing']:.2%} of the readings" + (f"; most at {worst}" if worst else "")))
    return [*lines, ("constant", f"{len(f['constant_nodes'])} nodes" if f["constant_nodes"] else "no node")]


def _graph_lines(f: dict) -> list[tuple[str, str]]:
    if not f:
        return []
    shape = f"{f['pairs']:,} pairs, {f['one_way']:,} of them one-way"
    shape += f" ({f['one_way_share_of_weight']:.1%} of the weight)" if f["one_way"] else ""
    shape += f"; {f['components']} component{'s' * (f['components'] != 1)}, {len(f['isolated_nodes'])} isolated nodes"
    least, middle, most = f["neighbours_a_node"]
    low, _, high = f["weighted_degree"]
    degrees = f"{least} to {most} neighbours a node, median {middle:g}; weighted degrees {low:.3g} to {high:.3g}"
    return [("graph", f["graph"]), ("", shape), ("", degrees)]


def _method_lines(f: dict) -> list[tuple[str, str]]:
    if not f:
        return []
    lines = [("split", "{:,} training, {:,} validation, {:,} test signals".format(*f["split"]))]
    if "snr_at_kappa_2" not in f:
        return lines
    share = f"{f['modes_sharing_energy']:.1f} modes share the energy, {f['energy_in_lowest_tenth']:.0%} of it is in the"
    share += f" lowest tenth of the frequencies; {f['covariance_off_the_modes']:.0%} of the covariance is between modes"
    small, default = (_duration(f[key]) for key in ("training_small_s", "training_default_s"))
    return [
        *lines,
        ("spectrum", share),
        ("kappa", f"{f['kappa_suggested']:g} suggested; the reference's SNR at kappa 2 is {f['snr_at_kappa_2']:.2f}"),
        ("training", f"about {small} here for a small network ({_set(LAPTOP)})"),
        ("", f"at most {default} for the default, which may stop earlier"),
    ]


def _set(settings: dict) -> str:
    return " ".join(f"--set {key}={value:g}" for key, value in settings.items())


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.0f} s"
