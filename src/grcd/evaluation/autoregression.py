"""A vector autoregression: every reading a linear function of all readings of the last rows.

With ``z`` the z-scores of columns, ``z_t = A_1 z_(t-1) + ... + A_p z_(t-p)``. The matrices have the least squared error
over training rows plus ``ridge`` times their own squares; ``p`` and ``ridge`` are those of the least error one row
ahead over validation rows. A gap is filled by what the rows before it say, and counts as read from then on; so what is
filled never looks ahead, and the future is a gap like any other. Rows to learn from have their gaps filled on a line in
time; a row with most of its readings missing is no target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..data.series import Series
from .baselines import straight
from .windows import moments

ORDERS = (1, 2, 4)
RIDGES = (1.0, 30.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Autoregression:
    """Of columns (nodes, channels) with a mean and a spread."""

    mean: np.ndarray  # (nodes, channels)
    sd: np.ndarray  # (nodes, channels)
    weights: np.ndarray  # (p columns, columns), of the last row first

    @classmethod
    def fit(cls, train: Series, val: Series) -> Autoregression:
        """Order and ridge by validation rows."""
        mean, sd = moments(train)
        tried = [cls(mean, sd, weights) for weights in _candidates(train, mean, sd)]
        return min(tried, key=lambda model: model.error(val))

    @property
    def order(self) -> int:
        return len(self.weights) // self.weights.shape[1]

    def error(self, series: Series) -> float:
        """The mean absolute error one row ahead, in z-scores."""
        z, filled = self._scored(series), self._filled(series)
        off = [np.abs(_lagged(filled[s], self.order) @ self.weights - z[s][self.order :]) for s in series.stretches]
        return float(np.nanmean(np.concatenate(off)))

    def fill(self, series: Series) -> np.ndarray:  # (rows, nodes, channels)
        """Without gaps; what was read stays as it was."""
        filled = self._units(self._filled(series))
        return np.where(np.isnan(series.values), filled, series.values)

    def foretell(self, series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:  # (ends, horizon, ...)
        """The rows from each of ``ends`` on, from those before it."""
        filled, columns = self._filled(series), self.weights.shape[1]
        back = ends[:, None] - 1 - np.arange(self.order)
        past = np.where(back[:, :, None] >= 0, filled[back], 0.0).reshape(len(ends), -1)  # the last row first
        ahead = []
        for _ in range(horizon):
            ahead.append(past @ self.weights)
            past = np.concatenate([ahead[-1], past[:, :-columns]], axis=1)
        return self._units(np.stack(ahead, axis=1))

    def _scored(self, series: Series) -> np.ndarray:  # (rows, columns)
        return ((series.values - self.mean) / self.sd).reshape(len(series), -1)

    def _units(self, z: np.ndarray) -> np.ndarray:  # (..., columns) -> (..., nodes, channels)
        return z.reshape(*z.shape[:-1], *self.mean.shape) * self.sd + self.mean

    def _filled(self, series: Series) -> np.ndarray:  # (rows, columns)
        z = self._scored(series)
        for stretch in series.stretches:
            past = np.zeros(len(self.weights))
            for row in z[stretch]:
                gap = np.isnan(row)
                row[gap] = (past @ self.weights[:, gap]) if gap.any() else row[gap]
                past = np.concatenate([row, past[: -len(row)]])
        return z


def _candidates(train: Series, mean: np.ndarray, sd: np.ndarray) -> Iterator[np.ndarray]:
    z = ((train.values - mean) / sd).reshape(len(train), -1)
    stretches = [s for s in train.stretches if s.stop - s.start > max(ORDERS)]
    lines = [straight(z[s]) for s in stretches]
    seen = np.concatenate([(~np.isnan(z[s])).mean(axis=1)[max(ORDERS) :] for s in stretches]) > 0.5
    y = np.concatenate([line[max(ORDERS) :] for line in lines])[seen]
    x = np.concatenate([_lagged(line, max(ORDERS)) for line in lines])[seen]
    for order, ridge in product(ORDERS, RIDGES):
        some = x[:, : order * z.shape[1]]
        yield np.linalg.solve(some.T @ some + ridge * np.eye(some.shape[1]), some.T @ y)


def _lagged(z: np.ndarray, order: int) -> np.ndarray:  # (rows, columns) -> (rows - order, order columns)
    """The rows before each row from number ``order`` on, the last one first."""
    return np.concatenate([z[order - k : len(z) - k] for k in range(1, order + 1)], axis=1)
