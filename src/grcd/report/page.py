"""The page on a run of moments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.errors import counted
from ..core.tables import html as table
from ..data.splits import NAMES as SPLITS
from ..evaluation.beside import LEAST
from ..evaluation.comparison import TITLES
from ..metrics.statistics import STATISTICS
from . import drawings
from .hover import script
from .layout import Section, cards, document, figure, headline, span, strongest, where_from
from .material import DRAWS, OURS, Bands, Material
from .pictures import Drawn, written

FILLED_BY = {
    OURS: "GRCD",
    "fill-mean": "the node's mean",
    "fill-neighbours": "the nearest nodes",
    "fill-gaussian": "one Gaussian",
}
NEAR = 1.1  # times another: about as near
CHANCE = 1e-3  # an aMMD that is nothing


def html(material: Material) -> str:
    """The whole page."""
    data = material.data
    counts = f"{len(data.graph):,} nodes", f"{sum(len(data.split(split)) for split in SPLITS):,} signals"
    first, last = data.times.get("train"), data.times.get("test")
    times = None if first is None or last is None else np.concatenate([first, last])
    about = [*counts, *span(times), *([data.unit] if data.unit else [])]
    return document(data.name, about, _summary(material), _sections(material), _hovered(material))


def _hovered(material: Material) -> str:
    """Held-out readings, in their order."""
    data, times = material.data, material.data.times.get("test")
    ends = ("", "") if times is None else (written(times[0]), written(times[-1]))
    return script(data.graph.node_ids, {"held-out": material.real}, ends, data.unit)


def verdict(material: Material) -> tuple[str, str]:
    """What the score means, in a word (good, fair, bad) and in sentences: beside the floor, and beside this run's own
    reference; nothing where held-out signals are few, and no tie is a win. Where a baseline fills gaps better, that."""
    held = len(material.data.test)
    if held < LEAST:
        return "fair", f"{held:,} held-out signals: nothing can be said of how near generated ones are."
    kind, words = _generated(material, held)
    return kind, words + (_outdone(material.bands) if material.bands is not None else "")


def _outdone(bands: Bands) -> str:
    """Which baseline fills the hidden readings better, if one does."""
    readings = int((~np.isnan(bands.truth)).sum())
    errors = bands.errors() if readings else {OURS: 0.0}
    best = min(errors, key=lambda name: errors[name])
    if best == OURS:
        return ""
    many = f"in {readings:,} hidden readings at {counted(len(bands.nodes), 'node')}"
    return f" Gaps are filled better by {FILLED_BY[best]}: {errors[best]:.4g} against {errors[OURS]:.4g}, {many}."


def _generated(material: Material, held: int) -> tuple[str, str]:
    scores, beside = material.scores, material.beside
    assert scores.floor is not None
    near = scores.ammd <= max(NEAR * scores.floor.ammd, CHANCE)
    kind = "good" if near else "bad" if beside is not None and beside.ahead < 0 else "fair"
    as_near = (
        f"Generated signals are {'' if near else 'not '}as near to {held:,} held-out ones as training signals are."
    )
    if beside is None:
        trained = material.model.result["updates"] > 0
        why = "The network found nothing to add for certain" if trained else "No network was trained"
        return kind, f"{as_near} {why}: these signals are the reference's."
    return kind, f"{as_near} {beside.words()}" + (" Train longer." if kind == "bad" else "")


def _summary(material: Material) -> str:
    model, scores = material.model, material.scores
    assert scores.floor is not None
    numbers = {
        "aMMD, lower is better": f"{scores.ammd:.4f}",
        "floor: training signals": f"{scores.floor.ammd:.4f}",
        "this run's own reference": f"{(material.beside or material).scores.ammd:.4f}",
        "nodes": f"{len(model.graph):,}",
        "training signals": f"{model.facts['data']['train']:,}",
    }
    source = f"Method {model.config.method}; {material.how}, against {len(material.data.test):,} held-out ones."
    words = headline(source, verdict(material), material.same_data, material.data.notes)
    return f"{words}\n{cards(numbers)}"


def _sections(material: Material) -> Iterator[Section]:
    yield from _compared(material)
    yield from _measured(material)
    yield Section("provenance", "Where this comes from", "Enough to make it again.", _provenance(material))


def _compared(material: Material) -> Iterator[Section]:
    """Generated signals beside held-out ones, as pictures."""
    drawn, unit, names = Drawn(material.data.graph), material.data.unit, material.data.graph.node_ids
    yield Section(
        "signals",
        "Signals on the graph",
        "Above, signals that were measured and that the model has never seen; below, signals it made up. They should "
        "look alike as a kind: none of them is a copy, and none belongs to the one above it. A ring is a gap. Point at "
        f"a node for its name and its held-out readings.{strongest(drawn)}",
        figure("Held-out and generated signals", drawings.signals, material, drawn, names=names),
    )
    yield Section(
        "nodes",
        "Mean and spread of each node",
        f"Left measured, right generated{f', in {unit}' if unit else ''}. The two columns should look alike; colours "
        "span half a standard deviation at least.",
        figure("Mean and standard deviation of each node", drawings.node_moments, material, drawn, names=names),
    )
    yield Section(
        "frequencies",
        "Variance per graph frequency",
        "Left what neighbours share, right what sets them apart. The reference is what the model starts from; where "
        "crosses lie on circles and dashes do not, the network has made up for it.",
        figure("Variance per graph frequency", drawings.frequencies, material),
    )
    yield Section(
        "correlations",
        "Correlations between nodes",
        "Which nodes go up and down together. On the right the difference, on a scale of its own.",
        figure("Correlation matrices", drawings.correlations, material, drawn),
    )
    yield Section(
        "marginals",
        "The nodes that fit least",
        "Readings of the six nodes with the largest Kolmogorov-Smirnov distance, which is the number beside each name: "
        "0 is the same distribution, 1 no overlap at all. All other nodes fit better.",
        figure("Histograms of the worst nodes", drawings.marginals, material),
    )


def _measured(material: Material) -> Iterator[Section]:
    """How near they are in numbers, and how training and filling went."""
    yield Section(
        "scores",
        "Scores",
        "aMMD averages three squared distances (variation along edges, mean graph frequency, correlation with the "
        "nodes' degrees); lower is better. The floor is what training signals score: there is no need to be below it. "
        "Controls are Gaussians, and a mixture of them, without a network.",
        _scores(material) + _distances(material),
    )
    if material.curve:
        yield Section(
            "training",
            "Training",
            "The error in predicting noise. Most of it nobody could predict: what counts is the way below the dashed "
            "line, which is the reference without a network.",
            figure("Training curve", drawings.training, material),
        )
    if material.bands is not None:
        yield Section(
            "gaps",
            "Filled gaps",
            f"Readings of three nodes were hidden in {len(material.bands.truth)} test signals in a row, and filled "
            f"{DRAWS} times given all other nodes. Half of the dots should lie in the darker band, nine of ten in the "
            "lighter one. Here it is {:.0%} and {:.0%}. The table has mean absolute errors, ours beside what needs no "
            "network.".format(*material.bands.covered()),
            figure("Filled gaps with bands", drawings.fillings, material, material.bands) + _errors(material.bands),
        )


def _errors(bands: Bands) -> str:
    """Of all ways to fill, ours first, then the best first."""
    errors = bands.errors()
    order = sorted(errors, key=lambda name: (name != OURS, errors[name]))
    rows = [[FILLED_BY[name], f"{errors[name]:.4g}"] for name in order]
    return table(["filled by", "mean absolute error"], rows, own=0)


def _scores(material: Material) -> str:
    named = {"generated": material.scores, "floor": material.scores.floor}
    named |= {"own reference": material.beside.scores} if material.beside is not None else {}
    named |= material.scores.controls
    keys = ("ammd", *STATISTICS)
    rows = [[name, *(f"{getattr(scores, key):.4f}" for key in keys)] for name, scores in named.items()]
    return table(["", "aMMD", *(key.replace("_", " ") for key in STATISTICS)], rows, own=0)


def _distances(material: Material) -> str:
    if not material.distances:
        return "<p>Distances of whole signals are left out: the data have gaps, or too few signals.</p>"
    rows = []
    for name, d in material.distances.items():
        ratio = "" if d.ratio is None else f"{d.ratio:.2f}"
        floor = "" if name == "copies" else f"{d.floor:.4f}"  # training signals are their own copies
        rows.append([TITLES[name], f"{d.value:.4f}", floor, ratio, f"{d.ideal:g}"])
    return table(["distances of whole signals", "generated", "floor", "ratio", "ideal"], rows)


def _provenance(material: Material) -> str:
    model, result = material.model, material.model.result
    facts = {
        "validation error": f"{result['val']:.4f}, of the reference alone {result['val_reference_alone']:.4f}",
        "plan": "; ".join(
            f"NFE {nfe}: {choice.solver}, {choice.grid} {choice.rho:g}, from {choice.start:g}"
            for nfe, choice in model.plan.items()
        ),
    }
    return where_from(model, material.command, facts)
