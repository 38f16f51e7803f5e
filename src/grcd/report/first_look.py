"""The first look at a run of windows: a gap filled with its band, a forecast, and some hours as they were and made up.

What is drawn is chosen by what was read, never by how near anything came to it:

    gap        of all spells of hidden readings, half a window to two windows long, one whose readings move more than
               those of nine in ten
    forecast   of all forecasts and columns one whose past, a window of it, moves more than that of nine in ten
    hours      two windows of the held-out day in which readings are furthest from their columns' means

How far is in units of each column's spread over the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..evaluation.guesses import Guesses
from ..evaluation.windows import moments
from . import drawings_in_time as drawings
from .material_in_time import SeriesMaterial
from .pictures import INK, WIDTH

LIVELY = 0.9  # share of all others that move less
FEW = 3  # rows without a reading in a spell
FAMILIES = ("spells", "sensors", "points")  # of which a gap is taken: the first that there is


@dataclass(frozen=True)
class Gap:
    """Hidden readings of one column in a row."""

    guesses: Guesses  # of the family
    rows: slice  # of the pieces, with some before and behind
    node: int
    channel: int


def gap(material: SeriesMaterial) -> Gap | None:
    """The one that is drawn; None where nothing was hidden."""
    family = next((family for family in FAMILIES if family in material.gaps), None)
    if family is None:
        return None
    g, sd = material.gaps[family], moments(material.data.part("train"))[1]
    runs = [run for run in _runs(g, 2 * material.steps) if g.channel[run[0]] in material.shown]
    runs = [run for run in runs if len(run) >= material.steps // 2] or runs
    if not runs:
        return None
    run = runs[_lively([np.ptp(g.truth[run]) / sd[g.node[run[0]], g.channel[run[0]]] for run in runs])]
    begin, end = int(g.row[run[0]]), int(g.row[run[-1]]) + 1
    stretch = next(s for s in material.pieces.stretches if s.start <= begin < s.stop)
    around = max(1, material.steps // 2)
    rows = slice(max(stretch.start, begin - around), min(stretch.stop, end + around))
    return Gap(g, rows, int(g.node[run[0]]), int(g.channel[run[0]]))


def _lively(moves: list[float] | np.ndarray) -> int:
    """Which of them is larger than nine in ten."""
    return int(np.argsort(moves, kind="stable")[int(LIVELY * (len(moves) - 1))])


def _runs(g: Guesses, most: int) -> Iterator[np.ndarray]:
    """Places of hidden readings of one column that follow each other, but for what was never read, at most so many."""
    order = np.lexsort((g.row, g.node, g.channel))
    apart = (np.diff(g.row[order]) > FEW) | (np.diff(g.node[order]) != 0) | (np.diff(g.channel[order]) != 0)
    for run in np.split(order, np.flatnonzero(apart) + 1):
        yield from (run[k : k + most] for k in range(0, len(run), most))


def forecast(material: SeriesMaterial) -> tuple[Guesses, int, int] | None:
    """The one that is drawn, its node and its channel; None where there is none."""
    g, sd = material.ahead, moments(material.data.part("train"))[1]
    if g is None:
        return None
    columns = np.unique(np.stack([g.group, g.node, g.channel], axis=1)[np.isin(g.channel, material.shown)], axis=0)
    ends = dict(zip(g.group.tolist(), (g.row - g.lead + 1).tolist(), strict=True))
    past = [material.test.values[max(0, ends[k] - material.steps) : ends[k], i, c] for k, i, c in columns.tolist()]
    seen = [readings[~np.isnan(readings)] for readings in past]
    moves = [
        float(np.ptp(each)) / sd[i, c] if len(each) else 0.0 for each, (_, i, c) in zip(seen, columns, strict=True)
    ]
    if not moves:
        return None
    group, node, channel = columns[_lively(moves)].tolist()
    return g.of((g.group == group) & (g.node == node) & (g.channel == channel)), node, channel


def hours(material: SeriesMaterial) -> slice:
    """The rows of the day that are drawn."""
    mean, sd = moments(material.data.part("train"))
    off = np.nanmean(np.square(np.nan_to_num((material.day.real - mean) / sd)), axis=(1, 2))
    length = min(len(off), 2 * material.steps)
    start = int(np.convolve(off, np.ones(length), mode="valid").argmax())
    return slice(start, start + length)


# -- drawn -----------------------------------------------------------------------------------------------------------


def filled(material: SeriesMaterial) -> Figure:
    """The gap."""
    figure = _small()
    drawings.legend_below(figure, _gap(figure.subplots(), material))
    return figure


def foretold(material: SeriesMaterial) -> Figure:
    """The forecast."""
    figure = _small()
    drawings.legend_below(figure, _forecast(figure.subplots(), material))
    return figure


def made_up(material: SeriesMaterial) -> Figure:
    """The hours, held-out and generated."""
    return drawings.day(material, hours(material), names=True)


def together(material: SeriesMaterial) -> Figure:
    """All of it as one picture."""
    figure = Figure(figsize=(WIDTH, 7.0), layout="constrained", dpi=130)
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.25))
    sides = parts[0].subfigures(1, 2)
    for side, draw in zip(sides, (_gap, _forecast), strict=True):
        drawings.legend_below(side, draw(side.subplots(), material))
    drawings.day_in(parts[1], material, hours(material), names=True)
    return figure


def _small() -> Figure:
    return Figure(figsize=(WIDTH / 2, 2.9), layout="constrained", dpi=120)


def _gap(axis: Axes, material: SeriesMaterial) -> Axes:
    chosen = gap(material)
    if chosen is None:
        axis.set_axis_off()
        return axis
    drawings.panel(axis, material, chosen.guesses, chosen.rows, chosen.node, chosen.channel)
    return _titled(axis, "A gap")


def _forecast(axis: Axes, material: SeriesMaterial) -> Axes:
    chosen = forecast(material)
    if chosen is None:
        axis.set_axis_off()
        return axis
    drawings.forecast(axis, material, *chosen)
    axis.set_ylabel(drawings.measure(material, chosen[2]), color=INK)
    return _titled(axis, "A forecast")


def _titled(axis: Axes, what: str) -> Axes:
    axis.set_title(f"{what}: {axis.get_title(loc='left')}", loc="left", fontsize=11, color=INK)
    return axis
