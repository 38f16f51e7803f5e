"""The drawings of a report, as inline SVG whose colours follow the page: light, dark or print."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from . import pictures
from .material import Bands, Material
from .pictures import (
    DATA,
    EDGE,
    GRID,
    INK,
    REFERENCE,
    SAMPLES,
    WIDTH,
    Drawn,
    label_axes,
    literal,
    on_clock,
    scale,
    written,
)

COLOURS = {INK: "currentColor", GRID: "var(--line)", EDGE: "var(--edge)"} | {
    colour: f"var(--{name})" for name, colour in (("data", DATA), ("reference", REFERENCE), ("samples", SAMPLES))
}
HELD_OUT = "Held-out signals"
MATRIX = 300  # rows of a matrix that are drawn one by one
INKED: dict[Any, str] = {f"{part}.color": INK for part in ("text", "xtick", "ytick")} | {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "grcd",  # the same page from the same numbers
}


def svg(draw: Callable[..., Figure], *args: object) -> str:
    """A drawing as an element of a page."""
    with matplotlib.rc_context(INKED):
        figure, out = draw(*args), io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    for colour, name in COLOURS.items():
        text = text.replace(colour, name)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img"', text, count=1).replace(
        ' height="', ' data-height="', 1
    )


def signals(material: Material, drawn: Drawn) -> Figure:
    """Four of each, evenly spaced over the test signals; the first generated ones."""
    data = material.data
    chosen = np.linspace(0, len(data.test) - 1, 6).astype(int)[1:-1]
    times, rows = data.times.get("test"), {HELD_OUT: data.test[chosen], "Generated signals": material.samples[:4]}
    when = {} if times is None else {HELD_OUT: [written(times[row]) for row in chosen]}
    return pictures.signals_on_graph(drawn, rows, data.unit, when)


def node_moments(material: Material, drawn: Drawn) -> Figure:
    """Mean and standard deviation of each node, held-out and generated, on one scale each."""
    sides = {"Held-out": material.real, "Generated": material.samples}
    figure, axes = drawn.maps(2, 2)
    unit = f" ({literal(material.data.unit)})" if material.data.unit else ""
    moments: dict[str, Callable[..., np.ndarray]] = {"mean": np.nanmean, "standard deviation": np.nanstd}
    for line, (name, moment) in zip(axes, moments.items(), strict=True):
        with warnings.catch_warnings():  # a node without any reading has none
            warnings.simplefilter("ignore", RuntimeWarning)
            values = {side: moment(x, axis=0) for side, x in sides.items()}
            typical = np.nanmean(np.nanstd(sides["Held-out"], axis=0))
        colours = scale(np.concatenate(list(values.values())), typical / 2)
        for axis, (side, value) in zip(line, values.items(), strict=True):
            dots = drawn.signal(axis, value, **colours)
            axis.set_title(f"{side}: {name}", loc="left", fontsize=11, color=INK)
        figure.colorbar(dots, ax=line, shrink=0.8, label=f"{name}{unit}", extend="both")
    return figure


def frequencies(material: Material) -> Figure:
    """Variance per graph frequency of data, reference and samples, all as the model sees them."""
    model, U = material.model, material.data.graph.spectrum.U
    z = model.normalizer.apply
    covariance = model.reference.covariance().cpu().numpy()
    reference = ((U.T @ covariance) * U.T).sum(axis=1)
    return pictures.mode_variances(material.data.graph, z(material.real), reference, z(material.samples))


def correlations(material: Material, drawn: Drawn) -> Figure:
    """Correlation matrices, nodes in the order of the drawn graph's longer side."""
    order = np.argsort(drawn.place[:, np.argmax(np.ptp(drawn.place, axis=0))])
    real, generated = (_correlation(x[:, order]) for x in (material.real, material.samples))
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained", dpi=120)
    panels = {"Held-out": real, "Generated": generated, "Generated less held-out": generated - real}
    for axis, (title, matrix) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        limit = 1.0 if "less" not in title else max(0.05, np.quantile(np.abs(matrix), 0.995))
        shown = axis.imshow(_coarse(matrix), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        axis.set_title(title, loc="left", fontsize=11, color=INK)
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(shown, ax=axis, shrink=0.75)
    return figure


def _correlation(x: np.ndarray) -> np.ndarray:
    C = pictures.pairwise_covariance(x)
    std = np.maximum(np.sqrt(np.diag(C)), 1e-12)
    return C / np.outer(std, std)


def _coarse(matrix: np.ndarray) -> np.ndarray:
    """Blocks of a large matrix by their mean: the picture stays small."""
    edges = np.linspace(0, len(matrix), min(len(matrix), MATRIX) + 1).astype(int)[:-1]
    size = np.diff(np.append(edges, len(matrix)))
    summed = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    return summed / np.outer(size, size)


def marginals(material: Material) -> Figure:
    """Histograms of the nodes whose generated readings are least like held-out ones."""
    worst = material.worst(6)
    figure = Figure(figsize=(WIDTH, 2.6 * -(-len(worst) // 3)), layout="constrained", dpi=120)
    axes = figure.subplots(-(-len(worst) // 3), 3, squeeze=False)
    for axis in axes.flat[len(worst) :]:
        axis.set_axis_off()
    for axis, (node, apart) in zip(axes.flat, worst, strict=False):
        real, generated = (x[:, node][~np.isnan(x[:, node])] for x in (material.real, material.samples))
        both = np.concatenate([real, generated])
        low, high = np.quantile(both, [0.001, 0.999])
        bins = np.linspace(low, high, 31)
        for values, colour, label in ((real, DATA, "held-out"), (generated, SAMPLES, "generated")):
            axis.hist(
                np.clip(values, bins[0], bins[-1]), bins, density=True, histtype="step", color=colour, label=label
            )
        title = f"{literal(material.data.graph.node_ids[node])}: {apart:.2f}"
        label_axes(axis, literal(material.data.unit), "density", title)
    axes.flat[0].legend(frameon=False, labelcolor=INK, fontsize=9)
    return figure


def training(material: Material) -> Figure:
    """Denoising error over the updates, with that of the reference alone."""
    figure = Figure(figsize=(WIDTH, 4), layout="constrained", dpi=120)
    axis, result = figure.subplots(), material.model.result
    for key, label, colour in (("train", "training", DATA), ("val", "validation", SAMPLES)):
        errors = [r["update"] for r in material.curve], [r[key] for r in material.curve]
        axis.plot(*errors, label=label, color=colour, marker="." if len(material.curve) == 1 else "")
    axis.axhline(result["val_reference_alone"], color=REFERENCE, linestyle="--", label="reference alone, validation")
    axis.axvline(result["best_update"], color=INK, linewidth=0.8, linestyle=":", label="weights kept")
    label_axes(axis, "update", "denoising error", "")
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.legend(frameon=False, labelcolor=INK)
    return figure


def fillings(material: Material, bands: Bands) -> Figure:
    """Hidden readings, the median they were filled with, and the middle 50 % and 90 % of the draws."""
    figure = Figure(figsize=(WIDTH, 2.5 * len(bands.nodes)), layout="constrained", dpi=120)
    axes = figure.subplots(len(bands.nodes), 1, squeeze=False, sharex=True)[:, 0]
    at, times = np.arange(bands.first, bands.first + len(bands.truth)), material.data.times.get("test")
    if times is not None:
        at = on_clock(axes[-1], times[at])
    for k, (axis, node) in enumerate(zip(axes, bands.nodes, strict=True)):
        low, below, middle, above, high = bands.quantiles[:, :, k]
        axis.fill_between(at, low, high, color=SAMPLES, alpha=0.18, linewidth=0, label="90 % of draws")
        axis.fill_between(at, below, above, color=SAMPLES, alpha=0.35, linewidth=0, label="50 % of draws")
        axis.plot(at, middle, color=SAMPLES, label="median")
        axis.plot(at, bands.truth[:, k], ".", color=DATA, label="hidden reading")
        label_axes(axis, "", literal(material.data.unit), literal(material.data.graph.node_ids[node], 60))
    axes[-1].set_xlabel("test signal" if times is None else "")
    axes[0].legend(frameon=False, labelcolor=INK, fontsize=9, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    return figure
