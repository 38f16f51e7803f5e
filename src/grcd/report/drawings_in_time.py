"""The drawings of a report on windows: series with bands, forecasts, coverage by lead, autocorrelation, a day."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import MaxNLocator

from ..evaluation.competitors import TITLES
from ..evaluation.guesses import Guesses
from ..metrics.ensemble import quantiles
from .material import LEVELS
from .material_in_time import OURS, PIECE, REFERENCE, SeriesMaterial, along
from .pictures import (
    DATA,
    EDGE,
    GRID,
    INK,
    MOST_NAMES,
    SAMPLES,
    WIDTH,
    Drawn,
    label_axes,
    literal,
    on_clock,
    scale,
    signals_on_graph,
    written,
)
from .pictures import REFERENCE as ORANGE

PANELS = 4  # of a family, at most
LONG = 72  # rows that are drawn, where a piece is no longer
FORECASTS = 3  # that are drawn
SIZES = {"days": 1440, "hours": 60, "minutes": 1}  # in minutes
NOISE = 2.0  # standard errors that an error bar is long, to either side
METHODS = {  # colour, dash and mark: told apart without colours too
    OURS: (SAMPLES, "-", "o"),
    REFERENCE: (ORANGE, "--", "s"),
    "last": (DATA, "-.", "^"),
    "calendar": (INK, ":", "D"),
    "mean": (EDGE, "-", "v"),
}


def names(method: str) -> str:
    """A method in words."""
    return {OURS: "GRCD", REFERENCE: "reference alone"}.get(method) or TITLES[method]


def filled(material: SeriesMaterial, family: str) -> Figure:
    """Readings of a few columns over one piece of held-out rows: seen, hidden, and what they were filled with."""
    g = material.gaps[family]
    chosen = list(_columns(material, g))
    figure = Figure(figsize=(WIDTH, 2.3 * len(chosen) + 0.3), layout="constrained", dpi=120)
    axes = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for axis, (piece, node, channel) in zip(axes, chosen, strict=True):
        panel(axis, material, g, piece, node, channel)
    _legend(figure, axes[0])
    return figure


def _legend(figure: Figure, axis: Axes) -> None:
    """Above all panels, where it covers nothing."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, labelcolor=INK, fontsize=9, ncols=6, loc="outside upper right")


def legend_below(figure: FigureBase, axis: Axes) -> None:
    """Small, for a panel by itself."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, labelcolor=INK, fontsize=7, ncols=6, columnspacing=0.7,
                  handlelength=1.2, loc="outside lower center")  # fmt: skip


def _columns(material: SeriesMaterial, g: Guesses) -> Iterator[tuple[slice, int, int]]:
    """For every channel that is drawn: of one piece the columns of which most was hidden, as far as there is room."""
    many = max(1, PANELS // len(material.shown))
    for channel in material.shown:
        counts = np.zeros((len(material.pieces), len(material.data.graph)), dtype=int)
        one = g.of(g.channel == channel)
        np.add.at(counts, (one.row, one.node), 1)
        stretch = max(_drawn(material), key=lambda s: int(counts[s].sum()))
        order = np.argsort(-counts[stretch].sum(axis=0), kind="stable")
        for node in order[:many].tolist():
            if counts[stretch, node].any():
                yield stretch, node, channel


def _drawn(material: SeriesMaterial) -> Iterator[slice]:
    """Rows that one panel may show: a few windows without a break."""
    length = max(LONG, PIECE * material.steps)
    for s in material.pieces.stretches:
        yield from (slice(start, min(start + length, s.stop)) for start in range(s.start, s.stop, length))


def panel(axis: Axes, material: SeriesMaterial, g: Guesses, piece: slice, node: int, channel: int) -> None:
    rows = np.arange(len(material.pieces))[piece]
    at = _axis(material, axis, material.held[rows])
    one = g.of((g.node == node) & (g.channel == channel) & (g.row >= rows[0]) & (g.row <= rows[-1]))
    bands = np.full((len(LEVELS), len(rows)), np.nan)
    bands[:, one.row - rows[0]] = quantiles(one.draws[OURS], LEVELS)
    low, below, middle, above, high = bands
    width = float(np.median(np.diff(at))) if len(at) > 1 else 1.0
    for bottom, top, alpha, label in ((low, high, 0.18, "90 % of draws"), (below, above, 0.35, "50 % of draws")):
        edges = np.stack([at - width / 2, at + width / 2], axis=1).ravel()  # a row is as wide as the interval
        twice = np.repeat(bottom, 2), np.repeat(top, 2)
        axis.fill_between(edges, *twice, color=SAMPLES, alpha=alpha, linewidth=0, label=label)
    axis.plot(at, middle, color=SAMPLES, linewidth=1.2, marker="_", markersize=4, label="median")
    truth = material.pieces.values[rows, node, channel]
    seen = truth.copy()
    seen[one.row - rows[0]] = np.nan
    axis.plot(at, seen, color=DATA, linewidth=0.8, marker=".", markersize=4, label="reading")
    axis.plot(
        *(at[one.row - rows[0]], one.truth),
        linestyle="",
        marker="o",
        markersize=3.5,
        markerfacecolor="none",
        markeredgecolor=DATA,
        label="hidden reading",
    )
    axis.set_xlim(at[0] - width, at[-1] + width)
    label_axes(axis, axis.get_xlabel(), measure(material, channel), _title(material, node, channel))
    axis.title.set_fontsize(11)


def measure(material: SeriesMaterial, channel: int) -> str:
    """For an axis: the unit, or the channel's name."""
    name, unit = literal(material.named(channel), 20), literal(material.data.units[channel], 20)
    return f"{name} ({unit})" if name and unit else unit or name or "reading"


def _title(material: SeriesMaterial, node: int, channel: int) -> str:
    name = literal(material.data.graph.node_ids[node], 50)
    return f"{name}: {literal(material.named(channel))}" if material.named(channel) else name


def _axis(material: SeriesMaterial, axis: Axes, rows: np.ndarray, ticks: int = 9) -> np.ndarray:
    """Where rows of the table stand on an axis of times; of numbers, where there are none."""
    times = material.data.series.times
    if times is None:
        axis.set_xlabel("row", color=INK)
        return rows.astype(float)
    return on_clock(axis, times[rows], ticks)


def forecasts(material: SeriesMaterial) -> Figure:
    """For every channel that is drawn one node, and three of the forecasts: the past, what came, and the bands."""
    g = material.ahead
    assert g is not None
    shown = [channel for channel in material.shown if (g.channel == channel).any()]
    figure = Figure(figsize=(WIDTH, 2.6 * len(shown) + 0.5), layout="constrained", dpi=120)
    axes = figure.subplots(len(shown), FORECASTS, squeeze=False, sharey="row")
    for line, channel in zip(axes, shown, strict=True):
        one = g.of(g.channel == channel)
        node = int(np.bincount(one.node, minlength=len(material.data.graph)).argmax())
        one = one.of(one.node == node)
        groups = np.unique(one.group)
        chosen = groups[np.linspace(0, len(groups) - 1, min(FORECASTS + 2, len(groups))).astype(int)]
        chosen = chosen[1:-1] if len(chosen) > FORECASTS else chosen[:FORECASTS]
        for axis, group in zip(line, chosen.tolist(), strict=False):
            forecast(axis, material, one.of(one.group == group), node, channel)
        for axis in line[len(chosen) :]:
            axis.set_axis_off()
        line[0].set_ylabel(measure(material, channel), color=INK)
    _legend(figure, axes[0, 0])
    return figure


def forecast(axis: Axes, material: SeriesMaterial, one: Guesses, node: int, channel: int) -> None:
    """One forecast of one column, on the clock: the past, what came, the bands, and the last value."""
    end = int(one.row[0] - one.lead[0] + 1)
    one = one.of(one.lead.argsort())
    first = max(max(s.start for s in material.test.stretches if s.start < end), end - material.steps)
    table = material.data.rows("test")
    past, lead = (_axis(material, axis, table[rows], ticks=5) for rows in (np.arange(first, end), one.row))
    low, below, middle, above, high = quantiles(one.draws[OURS], LEVELS)
    axis.fill_between(lead, low, high, color=SAMPLES, alpha=0.18, linewidth=0, label="90 % of draws")
    axis.fill_between(lead, below, above, color=SAMPLES, alpha=0.35, linewidth=0, label="50 % of draws")
    axis.plot(lead, middle, color=SAMPLES, linewidth=1.2, marker="_", label="median")
    seen = material.test.values[first:end, node, channel]
    axis.plot(past, seen, color=DATA, linewidth=0.8, marker=".", label="reading")
    axis.plot(lead, one.truth, linestyle="", marker="o", markersize=3.5, markerfacecolor="none",
              markeredgecolor=DATA, label="what came")  # fmt: skip
    axis.plot(lead, one.draws["last"][0], color=INK, linewidth=0.8, linestyle="--", label="last value")
    axis.axvline((past[-1] + lead[0]) / 2, color=EDGE, linewidth=0.8)
    name = literal(material.data.graph.node_ids[node], 16)
    label_axes(axis, "", "", f"{name}, {when(material, table[end - 1])}")
    axis.title.set_fontsize(10)


def when(material: SeriesMaterial, row: int) -> str:
    """The time of a row of the table, to the minute; its number where there are no times."""
    times = material.data.series.times
    return f"row {row}" if times is None else written(times[row])


def _ahead(material: SeriesMaterial, rows: np.ndarray, what: str = "ahead") -> tuple[np.ndarray, str]:
    """Numbers of rows as days, hours or minutes, where rows have dates; and what to write below them."""
    interval = material.data.series.interval
    if not isinstance(interval, np.timedelta64):
        return rows.astype(float), f"rows {what}"
    minutes = rows * float(interval / np.timedelta64(1, "m"))
    unit, size = next(each for each in SIZES.items() if minutes.max() >= 2 * each[1] or each[1] == 1)
    return minutes / size, f"{unit} {what}"


def coverage(material: SeriesMaterial) -> Figure:
    """The share of readings within 50 and 90 % intervals, by lead, with what chance makes of it."""
    figure, axes, g = _by_lead(material)
    for axis, channel in axes:
        for share, fill in ((0.9, SAMPLES), (0.5, "none")):
            axis.axhline(100 * share, color=EDGE, linewidth=1, linestyle="--")
            points = []
            for lead in np.unique(g.lead).tolist():
                one = g.of((g.lead == lead) & (g.channel == channel))
                if len(one):
                    points.append((lead, *one.covered(OURS, share)))
            rows, inside, noise = np.array(points).T
            lead, ahead = _ahead(material, rows)
            axis.errorbar(lead, 100 * inside, 100 * NOISE * np.nan_to_num(noise), color=SAMPLES, marker="o",
                          markerfacecolor=fill, markersize=5, linewidth=1, elinewidth=0.8,
                          label=f"within {share:.0%} intervals")  # fmt: skip
        axis.set_ylim(0, 105)
        label_axes(axis, ahead, "% of readings", literal(material.named(channel)))
    _legend(figure, axes[0][0])
    return figure


def errors_by_lead(material: SeriesMaterial) -> Figure:
    """The mean absolute error by lead, of every method."""
    figure, axes, g = _by_lead(material)
    for axis, channel in axes:
        one = g.of(g.channel == channel)
        rows, place = np.unique(one.lead, return_inverse=True)
        lead, ahead = _ahead(material, rows)
        for method in one.draws:
            colour, dash, mark = METHODS[method]
            error = np.bincount(place, weights=one.off(method)) / np.bincount(place)
            axis.plot(lead, error, color=colour, linestyle=dash, marker=mark, markersize=4, label=names(method))
        axis.set_ylim(bottom=0)
        unit = literal(material.data.units[channel], 20)
        label_axes(axis, ahead, f"mean error{f' ({unit})' if unit else ''}", literal(material.named(channel)))
    _legend(figure, axes[0][0])
    return figure


def _by_lead(material: SeriesMaterial) -> tuple[Figure, list[tuple[Axes, int]], Guesses]:
    g = material.ahead
    assert g is not None
    shown = [channel for channel in material.shown if (g.channel == channel).any()]
    return *_side_by_side(shown), g


def _side_by_side(channels: list[int]) -> tuple[Figure, list[tuple[Axes, int]]]:
    """A panel a channel."""
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained", dpi=120)
    axes = figure.subplots(1, max(len(channels), 1), squeeze=False)[0]
    for axis in axes:
        axis.grid(True, color=GRID, linewidth=0.8)
        axis.xaxis.set_major_locator(MaxNLocator(8))
    return figure, list(zip(axes, channels, strict=True))


def autocorrelation(material: SeriesMaterial) -> Figure:
    """By lag, of held-out, training and generated windows."""
    figure, axes = _side_by_side(material.shown)
    styles = {"held-out": (DATA, "-", "o"), "training": (EDGE, "--", "s"), "generated": (SAMPLES, "-", "x")}
    for axis, channel in axes:
        for name, values in material.autocorrelations.items():
            colour, dash, mark = styles[name]
            label = "training (the floor)" if name == "training" else name
            lag, apart = _ahead(material, np.arange(len(values)), "apart")
            axis.plot(lag, values[:, channel], color=colour, linestyle=dash, marker=mark, markersize=5, label=label,
                      markerfacecolor="none")  # fmt: skip
        axis.set_ylim(min(0.0, axis.get_ylim()[0]), 1.05)
        label_axes(axis, apart, "autocorrelation", literal(material.named(channel)))
    _legend(figure, axes[0][0])
    return figure


def day(material: SeriesMaterial, some: slice = slice(None), names: bool = False) -> Figure:
    """The network over a day, or some rows of it."""
    nodes, shown = len(material.data.graph), len(material.shown)
    height = float(np.clip((0.1 if names and nodes <= MOST_NAMES + 5 else 0.06) * nodes + 1.2, 2.2, 4.5))
    figure = Figure(figsize=(WIDTH, 0.5 + shown * height), layout="constrained", dpi=120)
    day_in(figure, material, some, names)
    return figure


def day_in(figure: FigureBase, material: SeriesMaterial, some: slice = slice(None), names: bool = False) -> None:
    """Nodes along the graph over time, as it was and as it might have been, on one scale; few nodes by name."""
    picture, shown = material.day, material.shown
    order, rows = along(material.data.graph), picture.rows[some]
    axes = figure.subplots(len(shown), 2, squeeze=False, sharey=True, sharex=True)
    for line, channel in zip(axes, shown, strict=True):
        sides = [side[some][:, order, channel].T for side in (picture.real, picture.generated)]
        colours = scale(np.concatenate([side.ravel() for side in sides]))
        colours["cmap"] = colormaps[colours["cmap"]].with_extremes(bad=GRID)
        for axis, side, title in zip(line, sides, ("held-out", "generated"), strict=True):
            at = _axis(material, axis, rows, ticks=5)
            width = (at[-1] - at[0]) / max(1, len(at) - 1) / 2 or 0.5
            extent = (at[0] - width, at[-1] + width, len(order) - 0.5, -0.5)
            image = axis.imshow(side, aspect="auto", interpolation="nearest", extent=extent, **colours)
            name = literal(material.named(channel))
            axis.set_title(f"{name}, {title}" if name else title.capitalize(), loc="left", fontsize=11, color=INK)
            axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        line[0].set_ylabel("node, along the graph", color=INK)
        if names and len(order) <= MOST_NAMES + 5:
            named = [literal(material.data.graph.node_ids[node], 16) for node in order]
            line[0].set_yticks(np.arange(len(order)), named, fontsize=7)
            line[0].set_ylabel("")
        figure.colorbar(image, ax=line, shrink=0.9, label=measure(material, channel), extend="both")


def maps(material: SeriesMaterial, drawn: Drawn, rows: list[int]) -> Figure:
    """The network at some rows of the day, as it was and as it might have been; of the first channel that is drawn."""
    picture, channel = material.day, material.shown[0]
    sides = {"Held-out": picture.real[rows, :, channel], "Generated": picture.generated[rows, :, channel]}
    times = [when(material, int(row)) for row in picture.rows[rows]]
    return signals_on_graph(drawn, sides, material.data.units[channel], dict.fromkeys(sides, times))
