"""Pictures: signals on the drawn graph, and variance per graph frequency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse.csgraph as csgraph
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from .files import whole
from .graph import Graph

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
    _save(figure, path)


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
    axis.set_xlabel("graph frequency (eigenvalue of the normalised Laplacian)", color=INK)
    axis.set_ylabel("variance of the coefficient", color=INK)
    axis.set_title("Variance per graph frequency", loc="left", color=INK)
    axis.grid(True, which="major", color="#e5e5e5", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    _save(figure, path)


def _variance(signals: np.ndarray, U: np.ndarray) -> np.ndarray:
    return (signals @ U).var(axis=0)


def _save(figure: Figure, path: str | Path) -> None:
    with whole(path) as temporary:
        figure.savefig(temporary, format="png")
