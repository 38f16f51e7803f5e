"""Ridge regressions: every lead of a column a linear function of its past and of that of the columns most like it.

    z_(t+k) = b_k + sum over past rows s < t and columns c in {the column itself, its nearest} of  w_(k,s,c) z_s,c

with ``z`` the z-scores of columns. Near are columns whose correlation with it over training rows is far from 0, and the
past is as long as the future. How many are taken and the penalty are, for each channel, those of the least error over
validation rows, at some of its nodes. What is missing in the past is the last reading of the stretch before it, and the
mean where there is none. Futures to learn from have their gaps filled on a line in time; one with most of its readings
missing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..core.rows import evenly
from ..data.series import Series
from .baselines import latest, straight
from .column_imputer import cut
from .windows import moments

NEAREST, PENALTIES = (0, 5, 20), (10.0, 100.0, 1000.0)
WINDOWS = 8000  # training windows, evenly spaced
NODES, CHECKS = 6, 500  # of a channel, and validation windows, by which is chosen


@dataclass(frozen=True, eq=False)
class Scored:
    """z-scores of a series, ready to be learned from."""

    series: Series
    z: np.ndarray  # (rows, columns), NaN where missing
    carried: np.ndarray  # the same, gaps at the last reading
    lines: np.ndarray  # the same, gaps on a line

    @classmethod
    def of(cls, series: Series, mean: np.ndarray, sd: np.ndarray) -> Scored:
        z = ((series.values - mean) / sd).reshape(len(series), -1)
        carried, lines = (np.concatenate([way(z[s]) for s in series.stretches]) for way in (latest, straight))
        return cls(series, z, carried, lines)

    def ends(self, horizon: int, cap: int) -> np.ndarray:
        """Evenly spaced, with past and future in one stretch."""
        starts = self.series.starts(2 * horizon)
        return starts[evenly(len(starts), cap)] + horizon

    def past(self, ends: np.ndarray, columns: np.ndarray, horizon: int) -> np.ndarray:  # (ends, horizon columns)
        """Of the stretch in which the row before an end lies."""
        rows = cut(self.series, self.carried[:, columns], ends - horizon, ends - 1, horizon)
        return np.nan_to_num(rows).reshape(len(ends), horizon * len(columns))

    def future(self, ends: np.ndarray, column: int, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Readings (ends, horizon), NaN where missing; and without gaps."""
        rows = ends[:, None] + np.arange(horizon)
        return self.z[rows, column], self.lines[rows, column]


@dataclass(frozen=True, eq=False)
class RidgeForecast:
    """Of columns (nodes, channels) with a mean and a spread, so many rows ahead."""

    mean: np.ndarray  # (nodes, channels)
    sd: np.ndarray  # (nodes, channels)
    horizon: int
    seen: tuple[np.ndarray, ...]  # by column: it and its nearest
    models: tuple[Any, ...]  # by column; None where there is nothing to learn from

    @classmethod
    def fit(cls, train: Series, val: Series, horizon: int) -> RidgeForecast:
        """``NEAREST`` and ``PENALTIES`` by validation rows."""
        mean, sd = moments(train)
        nodes, channels = mean.shape
        known, held = Scored.of(train, mean, sd), Scored.of(val, mean, sd)
        order, columns = _nearest(known.carried), np.arange(mean.size).reshape(nodes, channels)
        seen, models = dict[int, np.ndarray](), dict[int, Any]()
        for channel in range(channels):
            some = columns[evenly(nodes, NODES), channel]
            near, penalty = _chosen(known, held, order, some, horizon)
            for column in columns[:, channel].tolist():
                seen[column] = order[column, : near + 1]
                models[column] = next(_learned(known, column, seen[column], horizon, (penalty,)))
        return cls(mean, sd, horizon, *(tuple(each[c] for c in range(mean.size)) for each in (seen, models)))

    def foretell(self, series: Series, ends: np.ndarray) -> np.ndarray:  # (ends, horizon, nodes, channels)
        """The rows from each of ``ends`` on, from those before it."""
        given = Scored.of(series, self.mean, self.sd)
        ahead = np.zeros((len(ends), self.horizon, self.mean.size))
        for column, (seen, model) in enumerate(zip(self.seen, self.models, strict=True)):
            if model is not None:
                ahead[:, :, column] = _ahead(model, given.past(ends, seen, self.horizon))
        return ahead.reshape(len(ends), self.horizon, *self.mean.shape) * self.sd + self.mean


def _nearest(carried: np.ndarray) -> np.ndarray:  # (rows, columns) -> (columns, columns)
    """Of each column itself, and all others by the size of their correlation."""
    z = carried - carried.mean(axis=0)
    spread = np.sqrt(np.square(z).sum(axis=0))
    near = np.abs(z.T @ z) / np.maximum(np.outer(spread, spread), 1e-300)
    np.fill_diagonal(near, np.inf)
    return np.argsort(-near, axis=1, kind="stable")


def _chosen(known: Scored, held: Scored, order: np.ndarray, columns: np.ndarray, horizon: int) -> tuple[int, float]:
    """How many columns and what penalty have the least mean absolute error."""
    counts = sorted({min(near, order.shape[1] - 1) for near in NEAREST})
    ends, off = held.ends(horizon, CHECKS), dict.fromkeys(product(counts, PENALTIES), 0.0)
    for column, near in product(columns.tolist(), counts):
        seen = order[column, : near + 1]
        past, truth = held.past(ends, seen, horizon), held.future(ends, column, horizon)[0]
        for penalty, model in zip(PENALTIES, _learned(known, column, seen, horizon, PENALTIES), strict=True):
            error = np.zeros(0) if model is None else np.abs(_ahead(model, past) - truth)
            off[near, penalty] += float(np.nansum(error))
    return min(off, key=lambda way: off[way])


def _learned(known: Scored, column: int, seen: np.ndarray, horizon: int, penalties: tuple[float, ...]) -> Iterator[Any]:
    from sklearn.linear_model import Ridge

    ends = known.ends(horizon, WINDOWS)
    readings, lines = known.future(ends, column, horizon)
    some = np.isnan(readings).mean(axis=1) <= 0.5
    past = known.past(ends[some], seen, horizon)
    for penalty in penalties:
        yield Ridge(alpha=penalty).fit(past, lines[some]) if some.any() else None


def _ahead(model: Any, past: np.ndarray) -> np.ndarray:  # (ends, horizon)
    return np.asarray(model.predict(past)).reshape(len(past), -1) if len(past) else np.zeros((0, 1))
