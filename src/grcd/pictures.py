"""Pictures: signals on the drawn graph, variance per graph frequency, a dataset at a glance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse.csgraph as csgraph
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from .data.dataset import Dataset
from .files import whole
from .graph import Graph
from .reference import ledoit_wolf, spectral

MOST_NAMES = 25  # on one axis
INK, DATA, REFERENCE, SAMPLES = "#333333", "#1b6ca8", "#e08e0b", "#b3123f"


def layout(graph: Graph) -> np.ndarray:  # (nodes, 2)
    """Where to draw the nodes: their coordinates if known, else positions whose distances mimic hops on the graph.

    The latter by stress majorisation from the leading eigenvectors of the hop distances (classical scaling), which
    needs no random start, so a graph always looks the same.
    """
    if graph.coords is not None:
        return np.asarray(graph.coords, dtype=float)
    hops = csgraph.shortest_path(graph.weights, unweighted=True, directed=False)
    hops[np.isinf(hops)] = hops[np.isfinite(hops)].max() + 1  # components side by side
    n = len(hops)
    centre = np.eye(n) - 1 / n
    value, vector = np.linalg.eigh(-centre @ hops**2 @ centre / 2)
    place = vector[:, -2:] * np.sqrt(np.maximum(value[-2:], 1e-9))
    weight = np.where(np.eye(n) > 0, 0.0, np.maximum(hops, 1.0) ** -2)
    spread = np.linalg.pinv(np.diag(weight.sum(1)) - weight)
    for _ in range(200):
        gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
        pull = weight * hops / np.maximum(gap, 1e-9)
        place = spread @ ((np.diag(pull.sum(1)) - pull) @ place)
    return place[:, ::-1]


def signals_on_graph(path: str | Path, graph: Graph, rows: dict[str, np.ndarray], unit: str = "") -> None:
    """A few signals of each kind, one row a kind, on one colour scale."""
    columns = max(len(signals) for signals in rows.values())
    place, edges = layout(graph), np.array(graph.weights.nonzero()).T
    breadth, height = np.ptp(place, axis=0)
    row = 2.6 * np.clip(height / breadth, 0.4, 1.5) + 0.35  # as tall as the drawing, and its title
    figure = Figure(figsize=(2.6 * columns + 1, row * len(rows)), layout="constrained", dpi=150)
    limit = np.quantile(np.abs(np.concatenate(list(rows.values()))), 0.99)
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (title, signals) in zip(axes, rows.items(), strict=True):
        for k, axis in enumerate(line):
            axis.set_axis_off()
            axis.set_aspect("equal")
            axis.margins(0.08)
            axis.add_collection(LineCollection(place[edges], colors="#bbbbbb", linewidths=0.6, zorder=1))
            dots = axis.scatter(
                *place.T,
                c=signals[k],
                s=55,
                cmap="RdBu_r",
                vmin=-limit,
                vmax=limit,
                edgecolors=INK,
                linewidths=0.5,
                zorder=2,
            )
        line[0].set_title(title, loc="left", fontsize=12, color=INK)
    figure.colorbar(dots, ax=axes, shrink=0.7, label=f"signal{f' ({unit})' if unit else ''}", extend="both")
    save(figure, path)


def mode_variances(
    path: str | Path, graph: Graph, data: np.ndarray, reference: np.ndarray, samples: np.ndarray
) -> None:
    """Variance per graph-Fourier mode of z-scored data, the fitted reference, and z-scored samples."""
    spectrum = graph.spectrum
    figure = Figure(figsize=(7.2, 4.2), layout="constrained", dpi=150)
    axis = figure.subplots()
    styles = (
        ("held-out data", _variance(data, spectrum.U), "o", DATA, 7, "none"),
        ("Gaussian reference, fitted on training data", reference, "_", REFERENCE, 11, REFERENCE),
        ("generated signals", _variance(samples, spectrum.U), "x", SAMPLES, 6, SAMPLES),
    )
    for label, variance, marker, colour, size, face in styles:
        axis.plot(
            spectrum.lam,
            variance,
            marker,
            label=label,
            color=colour,
            markersize=size,
            markerfacecolor=face,
            markeredgewidth=1.6,
        )
    axis.set_yscale("log")
    frequency = "graph frequency (eigenvalue of the normalised Laplacian)"
    label_axes(axis, frequency, "variance of the coefficient", "Variance per graph frequency")
    axis.grid(True, which="major", color="#e5e5e5", linewidth=0.8)
    axis.legend(frameon=False)
    save(figure, path)


def _variance(signals: np.ndarray, U: np.ndarray) -> np.ndarray:
    return (signals @ U).var(axis=0)


def save(figure: Figure, path: str | Path) -> None:
    """As a whole PNG file, or none."""
    with whole(path) as temporary:
        figure.savefig(temporary, format="png")


def inspected(path: str | Path, data: Dataset) -> None:
    """A dataset at a glance: the graph, the readings, what is missing, and where the energy is."""
    figure = Figure(figsize=(11, 8), layout="constrained", dpi=130)
    (graph, readings), (missing, energy) = figure.subplots(2, 2)
    figure.suptitle(f"{data.name}: {len(data.train)} training signals on {len(data.graph)} nodes", color=INK)
    unit = f" ({data.unit})" if data.unit else ""
    _draw_nodes(figure, graph, data, f"training mean{unit}")
    seen = data.train[_seen(data)]
    readings.hist(seen, bins=_bins(seen), color=DATA)
    label_axes(readings, f"reading{unit}", "how often", "Training readings")
    absent = 1 - _seen(data).mean(axis=0)
    worst = np.argsort(-absent, kind="stable")[:MOST_NAMES]
    missing.bar(np.arange(len(worst)), 100 * absent[worst], color=REFERENCE)
    missing.set_xticks(
        np.arange(len(worst)), [data.graph.node_ids[i] for i in worst], rotation=60, ha="right", fontsize=8
    )
    missing.set_ylim(0, max(1.0, 110 * absent.max()))
    label_axes(missing, "node, worst first", "% of training readings missing", "Gaps")
    reference = spectral(ledoit_wolf(data.normalizer.apply(data.train)), data.graph.spectrum)
    energy.plot(data.graph.spectrum.lam, reference.v.numpy(), "o", color=SAMPLES, markersize=4)
    energy.set_yscale("log")
    label_axes(energy, "graph frequency", "variance of the coefficient", "Energy over graph frequencies")
    save(figure, path)


def _bins(values: np.ndarray) -> np.ndarray:
    """About fifty bins, as wide as a whole number of steps of readings that come in steps: no teeth."""
    distinct = np.unique(values)
    step = max(np.median(np.diff(distinct)), np.ptp(distinct) * 1e-4)
    width = step * np.ceil(np.ptp(distinct) / 50 / step)
    return np.arange(distinct[0] - step / 2, distinct[-1] + width, width)


def _seen(data: Dataset) -> np.ndarray:
    seen = data.observed("train")
    return np.ones(data.train.shape, dtype=bool) if seen is None else seen


def _draw_nodes(figure: Figure, axis, data: Dataset, label: str) -> None:
    place, edges = layout(data.graph), np.array(data.graph.weights.nonzero()).T
    axis.set_axis_off()
    axis.set_aspect("equal")
    axis.add_collection(LineCollection(place[edges], colors="#bbbbbb", linewidths=0.5, zorder=1))
    dots = axis.scatter(
        *place.T, c=data.normalizer.mean, s=28, cmap="viridis", edgecolors=INK, linewidths=0.4, zorder=2
    )
    axis.set_title(f"Graph: {data.graph.pairs} pairs", loc="left", color=INK)
    figure.colorbar(dots, ax=axis, shrink=0.8, label=label)


def label_axes(axis, x: str, y: str, title: str) -> None:
    """The look that all pictures share."""
    axis.set_xlabel(x, color=INK)
    axis.set_ylabel(y, color=INK)
    axis.set_title(title, loc="left", color=INK)
    axis.spines[["top", "right"]].set_visible(False)
