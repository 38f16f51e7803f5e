"""Per-node quantile maps: readings of any shape to normal ones and back, in place of z-scores.

With ``F`` the distribution of a node's training readings and ``Phi`` the normal one,

    z = Phi^-1(F(x))        x = F^-1(Phi(z))

so that whatever is generated has the marginals of the training signals as soon as ``z`` is normal, and never leaves
their range: beyond its ends there is nothing that ``F^-1`` could return. ``F`` is kept as ``LEVELS`` order statistics
at most, evenly spaced. Equal readings (a sensor that saturates, a display that rounds) share the middle of their
levels on the way there, and on the way back take up all of them. The slope ``dz/dx = f(x) / phi(z)`` has the density
``f`` of the lines between distinct readings: at one of them the mean of both sides, beyond the ends that of the last.

The price: where the reference was right in the readings' own units, it need not be in these (on METR-LA a Gaussian
mixture is worse after the map than before it). Z-scores are the default; this is for signals whose marginals matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..core.rows import blocks
from ..graphs.graph import Graph
from .normalizer import Normalizer

LEVELS = 1001


@dataclass(frozen=True)
class Quantiles:
    """A node's readings at evenly spaced levels ``(k + 1/2) / K``, in ascending order."""

    knots: np.ndarray  # (nodes, K)

    @classmethod
    def fit(cls, train: np.ndarray, graph: Graph) -> Quantiles:
        Normalizer.fit(train, graph)  # refuses nodes that never change, or were hardly observed
        return cls._at(train, int((~np.isnan(train)).sum(axis=0).min()))

    @classmethod
    def of(cls, train: np.ndarray) -> Quantiles:
        """Of columns that may never change, or have no reading: those are what they are, or 0."""
        count = (~np.isnan(train)).sum(axis=0)
        return cls._at(np.where(count > 0, train, 0.0), int(np.median(count[count > 0])) if count.any() else 1)

    @classmethod
    def _at(cls, train: np.ndarray, count: int) -> Quantiles:
        levels = _levels(min(LEVELS, count))
        columns = [np.asarray(column, np.float64) for column in train.T]
        return cls(np.stack([np.nanquantile(column, levels, method="hazen") for column in columns]))

    def __len__(self) -> int:
        return len(self.knots)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"knots": self.knots}

    @classmethod
    def saved(cls, arrays: Mapping[str, np.ndarray]) -> Quantiles:
        return cls(arrays["knots"])

    def apply(self, signals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Normal scores in the precision of the signals; of all of them, or of the given rows. Gaps stay gaps."""
        rows = np.arange(len(signals)) if rows is None else rows
        z = np.empty((len(rows), signals.shape[1]), np.float32 if signals.dtype == np.float32 else np.float64)
        for node, (values, middle) in enumerate(map(_distinct, self.knots)):
            for part in blocks(len(z), 1):
                z[part, node] = ndtri(np.interp(signals[rows[part], node], values, middle))
        return z

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        """Back into the signals' units, in float64."""
        levels, u = _levels(self.knots.shape[1]), ndtr(np.asarray(normalized, np.float64))
        return np.stack([np.interp(u[..., node], levels, knots) for node, knots in enumerate(self.knots)], axis=-1)

    def forward(self, x: np.ndarray) -> np.ndarray:  # (..., nodes) twice
        """``apply``, as a scale of readings."""
        return self.apply(x.reshape(-1, len(self))).reshape(x.shape)

    def back(self, y: np.ndarray) -> np.ndarray:  # (..., nodes) twice
        """``undo``, as a scale of readings."""
        return self.undo(y)

    def log_slope(self, x: np.ndarray) -> np.ndarray:  # (..., nodes) twice
        """``log f(x) - log phi(z)``; 0 at a node that never changes."""
        density = np.stack([_density(x[..., node], knots) for node, knots in enumerate(self.knots)], axis=-1)
        return np.log(density) + 0.5 * np.square(self.forward(x)) + 0.5 * np.log(2 * np.pi)


def _levels(count: int) -> np.ndarray:  # (count,)
    return (np.arange(count) + 0.5) / count


def _density(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The slope of the line that ``apply`` reads levels from."""
    values, middle = _distinct(knots)
    if len(values) == 1:
        return np.where(np.isnan(x), np.nan, 1 / np.sqrt(2 * np.pi))
    slopes = np.diff(middle) / np.diff(values)
    sides = [np.searchsorted(values, x, side) - 1 for side in ("left", "right")]
    mean = np.mean([slopes[np.clip(side, 0, len(slopes) - 1)] for side in sides], axis=0)
    return np.where(np.isnan(x), np.nan, mean)


def _distinct(knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values among the knots, and the middle of the levels of each."""
    values, first, count = np.unique(knots, return_index=True, return_counts=True)
    return values, (first + count / 2) / len(knots)
