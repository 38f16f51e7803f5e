"""Guesses at readings that were hidden, by several methods, beside what those readings were.

A method is asked to fill a series, or for the rows after each of several ends of it; it answers with draws, or with one
number a reading. Errors are those of ``filling``: mae, rmse, crps, the shares within 50 and 90 % intervals.

**Noise.** Errors near each other in time are alike, and so are those of one forecast: they count as one group (see
``metrics/chance``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.series import Series
from ..metrics.chance import standard_error
from ..metrics.ensemble import covered, crps
from .competitors import Fill
from .filling import errors

Draws = Iterable[tuple[np.ndarray, np.ndarray]]  # row numbers (rows,), draws (n, rows, nodes, channels)
Filler = Callable[[Series], Draws]
Forecaster = Callable[[Series, Sequence[int], int], Iterable[np.ndarray]]  # ends, horizon -> (n, horizon, ...) each


@dataclass(frozen=True, eq=False)
class Guesses:
    """One entry a hidden reading."""

    truth: np.ndarray  # (readings,)
    row: np.ndarray  # (readings,) of the series
    node: np.ndarray  # (readings,)
    channel: np.ndarray  # (readings,)
    lead: np.ndarray  # (readings,) rows ahead of what was seen; 0 in a gap
    group: np.ndarray  # (readings,) whose errors are alike
    draws: dict[str, np.ndarray]  # by method (n, readings); one draw is a point

    def __len__(self) -> int:
        return len(self.truth)

    def of(self, chosen: np.ndarray) -> Guesses:
        """Some of them: a mask (readings,)."""
        parts = {name: getattr(self, name)[chosen] for name in ("truth", "row", "node", "channel", "lead", "group")}
        return replace(self, **parts, draws={name: draws[:, chosen] for name, draws in self.draws.items()})

    def over(self, sd: np.ndarray) -> Guesses:
        """In units of each channel's ``sd`` (channels,)."""
        draws = {name: draws / sd[self.channel] for name, draws in self.draws.items()}
        return replace(self, truth=self.truth / sd[self.channel], draws=draws)

    def errors(self, method: str) -> dict[str, float | int]:
        """mae, rmse, crps, cover_50, cover_90 and how many readings."""
        everywhere = np.ones((1, len(self)), dtype=bool)
        return errors([(np.array([0]), self.draws[method][:, None])], self.truth[None], everywhere)

    def off(self, method: str) -> np.ndarray:  # (readings,)
        """How far the median of the draws is from each reading."""
        return np.abs(np.median(self.draws[method], axis=0) - self.truth)

    def covered(self, method: str, share: float) -> tuple[float, float]:
        """The share of readings in the middle ``share`` of their draws, and its standard error."""
        inside = covered(self.draws[method], self.truth, ((1 - share) / 2, (1 + share) / 2))
        return float(inside.mean()), standard_error(inside, self.group)

    def loss(self, method: str) -> np.ndarray:  # (readings,)
        """Absolute error and CRPS of each reading, one added to the other: what is nearest on both is nearest."""
        return self.off(method) + crps(self.draws[method], self.truth)

    def ahead(self, method: str, other: str) -> tuple[float, float]:
        """By how much the mean absolute error of ``other`` is larger, and the standard error of that."""
        gain = self.off(other) - self.off(method)
        return float(gain.mean()), standard_error(gain, self.group)


def joined(parts: Sequence[Guesses]) -> Guesses:
    """Of several series, by the methods that all of them have; no group is of two of them."""
    first = np.cumsum([0, *(part.group.max(initial=0) + 1 for part in parts)])
    groups = np.concatenate([part.group + start for part, start in zip(parts, first, strict=False)])
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("truth", "row", "node", "channel", "lead")
    }
    methods = [name for name in parts[0].draws if all(name in part.draws for part in parts)]
    draws = {name: np.concatenate([part.draws[name] for part in parts], axis=1) for name in methods}
    return Guesses(**arrays, group=groups, draws=draws)


def gaps(series: Series, hidden: np.ndarray, methods: Mapping[str, Filler], steps: int) -> Guesses:
    """Hide readings (rows, nodes, channels) of a series and have them filled; groups are ``steps`` rows in a row."""
    where = hidden & ~np.isnan(series.values)
    holed = Series(np.where(where, np.nan, series.values), series.times, series.borders)
    row, node, channel = where.nonzero()
    draws = {}
    for name, method in methods.items():
        parts = [(rows, filled[:, where[rows]]) for rows, filled in method(holed)]
        order = np.concatenate([np.repeat(rows, where[rows].sum(axis=(1, 2))) for rows, _ in parts])
        draws[name] = np.concatenate([part for _, part in parts], axis=1)[:, order.argsort(kind="stable")]
    lead = np.zeros(len(row), dtype=int)
    return Guesses(series.values[where], row, node, channel, lead, row // steps, draws)


def forecasts(series: Series, ends: np.ndarray, horizon: int, methods: Mapping[str, Forecaster]) -> Guesses:
    """Have the ``horizon`` rows from each of ``ends`` on foretold from what is before it; a group is a forecast."""
    rows = ends[:, None] + np.arange(horizon)
    truth = series.values[rows]  # (forecasts, horizon, nodes, channels)
    there = ~np.isnan(truth)
    forecast, ahead, node, channel = there.nonzero()
    draws = {}
    for name, method in methods.items():
        answers = method(series, ends.tolist(), horizon)
        parts = [np.asarray(answer)[:, seen] for answer, seen in zip(answers, there, strict=True)]
        draws[name] = np.concatenate(parts, axis=1)
    return Guesses(truth[there], rows[forecast, ahead], node, channel, ahead + 1, forecast, draws)


def filler(fill: Fill) -> Filler:
    """A competitor as a method: one number a reading."""
    return lambda series: [(np.arange(len(series)), fill(series)[None])]


def forecaster(fill: Fill) -> Forecaster:
    """A competitor that is asked to fill what comes after the end, of which nothing is left to see."""

    def foretold(series: Series, ends: Sequence[int], horizon: int) -> Iterable[np.ndarray]:
        for end in ends:
            first = max(s.start for s in series.stretches if s.start < end)
            values = series.values[first : end + horizon].copy()
            values[end - first :] = np.nan
            times = None if series.times is None else series.times[first : end + horizon]
            yield fill(Series(values, times))[None, -horizon:]

    return foretold
