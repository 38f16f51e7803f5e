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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, some
from ..core.rows import blocks
from ..data import gaps, outliers
from ..data.dataset import Dataset
from ..data.loading import Opened, opened
from ..graphs.graph import Graph
from ..references.covariance import ledoit_wolf
from ..references.gaussian import off_diagonal_energy, spectral

KAPPA, LARGEST_SNR = 2.0, 7.2
FEW = 500  # training signals below which covariance and network have little to learn from
LAPTOP: dict[str, Any] = {"width": 32, "max_updates": 2000}  # a network that two cores train in minutes


@dataclass(frozen=True)
class Inspection:
    """Facts by section; what keeps the data from training, and what is worth knowing: what it is, what to do."""

    name: str
    signals: dict
    graph: dict
    method: dict
    problems: list[tuple[str, str]]
    warnings: list[tuple[str, str]]

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
        for title, text in (*_signal_lines(self.signals), *_graph_lines(self.graph), *_method_lines(self.method)):
            lines.append(f"  {title:<12}{text}")
        for mark, pairs in (("x", self.problems), ("!", self.warnings)):
            lines += [f"  {mark} {what}\n    -> {do}" for what, do in pairs]
        return "\n".join(lines)


def inspect(
    source: str | Path | ArrayLike,
    graph: str | Path | Graph | ArrayLike | None = None,
    picture: str | Path | None = None,
    **options: Any,
) -> Inspection:
    """Look at a dataset by name or from files; ``options`` as for ``load_dataset``. No graph: at signals only."""
    problems: list[tuple[str, str]] = []
    said: list[tuple[str, str]] = []
    found = _opened(source, graph, options, problems)
    signals, graph_facts, method = _signals(found, problems), {}, {}
    if found.graph is None:
        problems.append(("no graph was given", "name its file with --graph"))
    else:
        graph_facts = _graph(found.graph, said)
        method = _method(found, problems, said)
    if not method:  # else it is among the dataset's own notes
        said += [_note(note) for note in outliers.notes(*_named(found))]
    if picture is not None and "snr_at_kappa_2" in method:
        from .pictures import inspected, save

        save(inspected(found.dataset), picture)
    return Inspection(found.name, signals, graph_facts, method, problems, said)


def _opened(source: Any, graph: Any, options: dict, said: list) -> Opened:
    """As read; a directed graph is looked at in its symmetrised form."""
    try:
        return opened(source, graph, **options)
    except InputError as error:
        if options.get("symmetrize") is not None:
            raise
        try:
            found = opened(source, graph, **{**options, "symmetrize": "half-sum"})
        except InputError:
            raise error from None
        said.append((error.got, error.do))
        return found


def _note(note: str) -> tuple[str, str]:
    """What was found and what to do about it, where the note says both."""
    what, colon, do = note.partition(": ")
    return (what, do) if colon else (note, "nothing, if that is right")


def _named(found: Opened) -> tuple[np.ndarray, Sequence[str], np.ndarray | None]:
    """Readings with the names of their nodes, or their numbers, and their times."""
    table = found.table
    return table.values, table.node_ids or [str(place) for place in range(table.values.shape[1])], table.times


def _signals(found: Opened, said: list) -> dict:
    table, (values, ids, _) = found.table, _named(found)
    gaps.mark(values, found.given.missing or ())  # again when the dataset is made, which changes nothing
    absent, low, high = gaps.missing(values), *_ranges(values)
    worst = [i for i in np.argsort(-absent, kind="stable")[:3] if absent[i]]
    still = [ids[int(i)] for i in np.flatnonzero(~(high > low) & (absent < len(values)))]
    if still:
        said.append((f"{len(still)} nodes never change: {some(still)}", "leave those nodes out (--drop NAME)"))
    never = [ids[int(i)] for i in np.flatnonzero(absent == len(values))]
    if never:
        said.append(
            (f"{len(never)} nodes have no reading at all: {some(never)}", "leave those nodes out (--drop NAME)")
        )
    return {
        "samples": len(values),
        "nodes": values.shape[1],
        "unit": found.given.unit or table.unit or None,
        "times": None if table.times is None else f"{_day(table.times[0])} to {_day(table.times[-1])}",
        "missing": float(absent.sum() / values.size),
        "missing_most_at": {ids[i]: float(absent[i] / len(values)) for i in worst},
        "constant_nodes": still,
        "range": [_finite(np.nanmin(low, initial=np.inf)), _finite(np.nanmax(high, initial=-np.inf))],
        "held_in": str(values.dtype),
    }


def _ranges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (nodes,) each
    """Smallest and largest reading of each node; inf and -inf where there is none."""
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for rows in blocks(*values.shape):
        low = np.minimum(low, np.fmin.reduce(values[rows], axis=0, initial=np.inf))
        high = np.maximum(high, np.fmax.reduce(values[rows], axis=0, initial=-np.inf))
    return low, high


def _graph(graph: Graph, said: list) -> dict:
    if graph.pairs == len(graph) * (len(graph) - 1) // 2 and len(graph) > 5:
        do = "if it holds distances, list them as from,to,distance: far nodes must have small weights"
        said.append(("every node is linked with every other", do))
    if graph.components > 1 + int((graph.degree == 0).sum()):
        said.append((f"the graph falls into {graph.components} parts", "fine if true; else add edges, or --neighbours"))
    isolated = [graph.node_ids[i] for i in np.flatnonzero(graph.degree == 0)]
    if graph.pairs == 0:
        said.append(("the graph has no edges", "check how it was made; positions give one with --neighbours"))
    elif isolated:
        what = f"{len(isolated)} nodes have no neighbour: {some(isolated)}"
        said.append(
            (
                what,
                "nothing ties them to the rest, so they are drawn independently: add their edges, or drop them",
            )
        )
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


def _method(found: Opened, problems: list, said: list) -> dict:
    try:
        data = found.dataset
        facts, z = {"split": [len(data.train), len(data.val), len(data.test)]}, data.normalizer.apply(data.train)
    except InputError as error:
        if not any(error.do == do for _, do in problems):  # said before, in other words
            problems.append((error.got, error.do))
        return {}
    said += [_note(note) for note in data.notes]
    if len(data.train) < FEW:
        what = f"{len(data.train)} training signals"
        said.append((what, f"{FEW} or more are better; with few, trust the Gaussian controls as much as the network"))
    covariance = ledoit_wolf(z)
    reference = spectral(covariance, data.graph.spectrum)
    v = reference.v.numpy()
    snr, kappa = reference.energy_snr(KAPPA), max(KAPPA, math.ceil(100 * reference.q_for_snr(LARGEST_SNR)) / 100)
    if kappa > KAPPA:
        what = f"at kappa 2 the reference SNR is {snr:.1f}, beyond the paper's settings"
        said.append((what, f"train with --set kappa={kappa:g}"))
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

    found = {}
    for name, settings in (("training_small_s", LAPTOP), ("training_default_s", {})):
        model = GRCD(data.graph, **settings)
        found[name] = round(model.seconds_per_update(data.train) * model.config.max_updates)
    return found


def _day(moment: Any) -> str:
    return str(moment.astype("datetime64[m]")) if isinstance(moment, np.datetime64) else f"{moment:g}"


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


# -- the screen ------------------------------------------------------------------------------------------------------


def _signal_lines(f: dict) -> list[tuple[str, str]]:
    low, high = ("?" if end is None else f"{end:g}" for end in f["range"])
    lines = [("signals", f"{f['samples']:,} samples of {f['nodes']} nodes, {low} to {high} {f['unit'] or ''}".rstrip())]
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
