"""Pictures as figures: signals on the drawn graph, variance per graph frequency, a dataset at a glance."""

from __future__ import annotations

import unicodedata
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import AsinhNorm, LogNorm
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from ..core.errors import shortened
from ..core.files import whole
from ..core.rows import observed_mean
from ..data.dataset import Dataset
from ..graphs.graph import Graph
from ..references.covariance import ledoit_wolf
from ..references.gaussian import spectral
from .hover import GROUP

WIDTH = 10.0  # of a picture, in inches: letters are the same size in all of them
MOST_NAMES = 25  # on one axis
MOST_PLACED = 1000  # nodes that are placed by their distances, and drawn one by one
MOST_LINES = 500  # edges or nodes that a picture holds one by one; more are drawn as dots of colour
MOST_EDGES = 300  # of which a map can be read; more than that hide what they join
SKEWED, PEAKED = 0.1, 0.05  # shares of the range: half of the readings within them look all the same on a linear scale
INK, EDGE, GRID = "#333333", "#bbbbbb", "#e5e5e5"
DATA, REFERENCE, SAMPLES = "#1b6ca8", "#e08e0b", "#b3123f"


def layout(graph: Graph) -> np.ndarray:  # (nodes, 2)
    """Where to draw the nodes: their coordinates if known, else positions whose distances mimic hops on the graph.

    The latter by stress majorisation from the leading eigenvectors of the hop distances (classical scaling), which
    needs no random start, so a graph always looks the same. Of larger graphs the two slowest eigenvectors.
    """
    if graph.coords is not None:
        return np.asarray(graph.coords, dtype=float)
    if len(graph) > MOST_PLACED:
        return graph.spectrum.U[:, 1:3]
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


def edges(graph: Graph) -> np.ndarray:  # (edges, 2)
    """Those that are drawn: all, or of many the strongest, with those that hold the graph together."""
    upper = sp.triu(graph.weights, 1).tocoo()
    pairs = np.stack([upper.row, upper.col], axis=1)
    if len(pairs) <= MOST_EDGES:
        return pairs
    rank = np.argsort(np.argsort(-upper.data, kind="stable"), kind="stable") + 1.0  # the strongest first
    tree = csgraph.minimum_spanning_tree(sp.csr_array((rank, (upper.row, upper.col)), shape=upper.shape)).data
    others = np.setdiff1d(np.arange(1, len(pairs) + 1), tree)[: max(0, MOST_EDGES - len(tree))]
    return pairs[np.isin(rank, np.concatenate([tree, others]))]


class Drawn:
    """A graph on paper: where its nodes are, which of them are joined."""

    def __init__(self, graph: Graph):
        self.place, self.edges = layout(graph), edges(graph)
        self.left_out = graph.pairs - len(self.edges)

    def maps(self, rows: int, columns: int) -> tuple[Figure, np.ndarray]:
        """Room for so many drawings of the graph, each as tall as the drawing and its title."""
        (breadth, height), column = np.ptp(self.place, axis=0), (WIDTH - 1) / columns
        row = column * np.clip(height / breadth, 0.4, 1.5) + 0.35
        dpi = 150 if len(self.place) <= MOST_PLACED else 90  # of dots of colour: a page of them stays small
        figure = Figure(figsize=(WIDTH, row * rows), layout="constrained", dpi=dpi)
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis in axes.flat:
            axis.set_axis_off()
        return figure, axes

    def signal(self, axis: Axes, values: np.ndarray, **colours: Any) -> PathCollection:
        """One value a node; returns the dots, for a colour bar."""
        axis.set_aspect("equal")
        axis.margins(0.08)
        many, dense = (len(part) > MOST_LINES for part in (self.place, self.edges))
        axis.add_collection(
            LineCollection(self.place[self.edges], colors=EDGE, linewidths=0.6, zorder=1, rasterized=dense)
        )
        look = (
            {"s": 8, "linewidths": 0.0} if many else {"s": np.clip(2400 / len(self.place), 14, 55), "linewidths": 0.4}
        )
        colours["cmap"] = colormaps[colours["cmap"]].with_extremes(bad="none")  # a gap is a ring
        look |= {"plotnonfinite": True, "clip_on": False}
        x, y = self.place.T
        dots = axis.scatter(x, y, c=values, edgecolors=INK, zorder=2, rasterized=many, **look, **colours)
        dots.set_gid(None if many else GROUP)
        return dots


def literal(name: object, most: int = 30) -> str:
    """A name as a label: a dollar is no formula, what is long loses its middle, and what follows a name that is written
    from right to left stays behind it."""
    text = shortened(name, most)
    leftward = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return text.replace("$", r"\$") + "\u200e" * leftward


def scale(values: np.ndarray, least: float = 0.0) -> dict:
    """Colours for readings: two that meet at zero where readings lie about it, else one range; without outliers.

    The range is at least ``least``: what differs by less should look alike. Where most readings would have one colour,
    because a few are so much larger, it is logarithmic; linear about zero, if there are readings at or below it.
    """
    low, quarter, half, most, high = np.nanquantile(values, [0.01, 0.25, 0.5, 0.75, 0.99])
    skewed, peaked = half - low < SKEWED * (high - low), most - quarter < PEAKED * (high - low)
    if high - low > least and most > quarter and (skewed or peaked):
        if skewed and low > 0:
            return {"cmap": "viridis", "norm": LogNorm(low, high)}
        about = low < 0 < high and min(-low, high) > 0.2 * max(-low, high)
        ends = (-max(-low, high), max(-low, high)) if about else (low, high)
        size = np.abs(values[(values != 0) & ~np.isnan(values)])
        width = max(float(np.quantile(size, 0.1)), 1e-4 * float(size.max()))  # linear below it
        return {"cmap": "RdBu_r" if about else "viridis", "norm": AsinhNorm(width, *ends)}
    more = max(0.0, least - (high - low)) / 2
    low, high = low - more, high + more
    if low < 0 < high and min(-low, high) > 0.2 * max(-low, high):
        return {"cmap": "RdBu_r", "vmin": -max(-low, high), "vmax": max(-low, high)}
    return {"cmap": "viridis", "vmin": low, "vmax": high}


def written(time: Any) -> str:
    """A time in words: a date to the minute, or a number."""
    return str(time.astype("datetime64[m]")).replace("T", " ") if time.dtype.kind == "M" else f"{time:g}"


def on_clock(axis: Axes, times: np.ndarray, ticks: int = 9) -> np.ndarray:
    """Where times stand on an axis, which is made one of dates if they are."""
    if times.dtype.kind != "M":
        return times.astype(float)
    locator = AutoDateLocator(minticks=2, maxticks=ticks)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return np.asarray(date2num(times), dtype=float)


def signals_on_graph(
    drawn: Drawn, rows: dict[str, np.ndarray], unit: str = "", when: dict[str, list[str]] | None = None
) -> Figure:
    """A few signals of each kind, one row a kind, on one colour scale; ``when`` they were, below each."""
    figure, axes = drawn.maps(len(rows), max(len(signals) for signals in rows.values()))
    colours = scale(np.concatenate(list(rows.values())))
    for line, (title, signals) in zip(axes, rows.items(), strict=True):
        for axis, signal, time in zip_longest(line, signals, (when or {}).get(title, [])):
            if axis is not None and signal is not None:
                dots = drawn.signal(axis, signal, **colours)
                axis.text(0.5, 0, time or "", transform=axis.transAxes, ha="center", va="top", fontsize=8, color=INK)
        line[0].set_title(title, loc="left", fontsize=12, color=INK)
    label = f"signal{f' ({literal(unit)})' if unit else ''}"
    figure.colorbar(dots, ax=axes, shrink=0.7, label=label, extend="both")
    return figure


def mode_variances(graph: Graph, data: np.ndarray, reference: np.ndarray, samples: np.ndarray) -> Figure:
    """Variance per graph-Fourier mode of z-scored data, the fitted reference, and z-scored samples."""
    spectrum = graph.spectrum
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained", dpi=150)
    axis = figure.subplots()
    styles = (
        ("held-out data", _variance(data, spectrum.U), "o", DATA, 7, "none"),
        ("reference, fitted on training data", reference, "_", REFERENCE, 11, REFERENCE),
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
            rasterized=len(spectrum.lam) > MOST_PLACED,
        )
    axis.set_yscale("log")
    frequency = "graph frequency (eigenvalue of the normalised Laplacian)"
    label_axes(axis, frequency, "variance of the coefficient", "Variance per graph frequency")
    axis.grid(True, which="major", color=GRID, linewidth=0.8)
    axis.legend(frameon=False, labelcolor=INK)
    return figure


def _variance(signals: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Of each mode; what too few pairs leave without one is not drawn."""
    variance = ((U.T @ pairwise_covariance(signals)) * U.T).sum(axis=1)
    return np.where(variance > 0, variance, np.nan)


def pairwise_covariance(x: np.ndarray) -> np.ndarray:  # (signals, nodes), NaN where missing -> (nodes, nodes)
    """Over the signals in which both nodes have a reading."""
    there = ~np.isnan(x)
    off = np.where(there, x - observed_mean(x)[1], 0.0)
    return off.T @ off / np.maximum(there.T.astype(float) @ there, 1.0)


def save(figure: Figure, path: str | Path) -> None:
    """As a whole PNG file, or none."""
    with whole(path) as temporary:
        figure.savefig(temporary, format="png")


def inspected(data: Dataset) -> Figure:
    """A dataset at a glance: the graph, the readings, what is missing, and where the energy is."""
    figure = Figure(figsize=(11, 8), layout="constrained", dpi=130)
    (graph, readings), (missing, energy) = figure.subplots(2, 2)
    figure.suptitle(
        f"{literal(data.name, 60)}: {len(data.train)} training signals on {len(data.graph)} nodes", color=INK
    )
    unit = f" ({literal(data.unit)})" if data.unit else ""
    _draw_nodes(figure, graph, data, f"training mean{unit}")
    seen = data.train[_seen(data)]
    readings.hist(seen, bins=_bins(seen), color=DATA)
    label_axes(readings, f"reading{unit}", "how often", "Training readings")
    absent = 1 - _seen(data).mean(axis=0)
    worst = np.argsort(-absent, kind="stable")[:MOST_NAMES]
    missing.bar(np.arange(len(worst)), 100 * absent[worst], color=REFERENCE)
    missing.set_xticks(
        np.arange(len(worst)), [literal(data.graph.node_ids[i], 20) for i in worst], rotation=60, ha="right", fontsize=8
    )
    missing.set_ylim(0, max(1.0, 110 * absent.max()))
    label_axes(missing, "node, worst first", "% of training readings missing", "Gaps")
    reference = spectral(ledoit_wolf(data.normalizer.apply(data.train)), data.graph.spectrum)
    energy.plot(data.graph.spectrum.lam, reference.v.numpy(), "o", color=SAMPLES, markersize=4)
    energy.set_yscale("log")
    label_axes(energy, "graph frequency", "variance of the coefficient", "Energy over graph frequencies")
    return figure


def _bins(values: np.ndarray) -> np.ndarray:
    """About fifty bins, as wide as a whole number of steps of readings that come in steps: no teeth."""
    distinct = np.unique(values)
    step = max(np.median(np.diff(distinct)), np.ptp(distinct) * 1e-4)
    width = step * np.ceil(np.ptp(distinct) / 50 / step)
    return np.arange(distinct[0] - step / 2, distinct[-1] + width, width)


def _seen(data: Dataset) -> np.ndarray:
    seen = data.observed("train")
    return np.ones(data.train.shape, dtype=bool) if seen is None else seen


def _draw_nodes(figure: Figure, axis: Axes, data: Dataset, label: str) -> None:
    axis.set_axis_off()
    dots = Drawn(data.graph).signal(axis, data.normalizer.mean, cmap="viridis")
    axis.set_title(f"Graph: {data.graph.pairs} pairs", loc="left", color=INK)
    figure.colorbar(dots, ax=axis, shrink=0.8, label=label)


def label_axes(axis: Axes, x: str, y: str, title: str) -> None:
    """The look that all pictures share."""
    axis.set_xlabel(x, color=INK)
    axis.set_ylabel(y, color=INK)
    axis.set_title(title, loc="left", color=INK)
    axis.spines[["top", "right"]].set_visible(False)
