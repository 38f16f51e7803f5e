"""An ensemble of draws: its quantiles, and how well they foretell a reading.

**Quantiles.** A reading and ``n`` draws that are exchangeable with it fall in any order alike, so the reading lies
below the ``k``-th smallest draw with probability ``k / (n + 1)``. The quantile of level ``p`` is therefore the order
statistic at ``p (n + 1)``, interpolated between its neighbours, and an interval between two of them covers what it
says. (At ``1 + p (n - 1)``, numpy's default, 90 % intervals of a hundred draws cover 88 %.)

**CRPS** is ``E|x - y| - 1/2 E|x - x'|`` over distinct pairs of draws: unbiased in their number, and that of a single
draw, a point, is its absolute error. **The energy score** is the same of whole vectors, with their distance in place of
the difference: it sees how readings hang together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quantiles(draws: np.ndarray, levels: Sequence[float]) -> np.ndarray:  # (n, ...) -> (levels, ...)
    """Of draws along the first axis. Beyond the outermost draws there is nothing: levels there are theirs."""
    return np.quantile(draws, levels, axis=0, method="weibull")


def summaries(draws: np.ndarray, levels: Sequence[float]) -> np.ndarray:  # (n, ...) -> (levels, ...)
    """Quantiles to give back: where all draws are whole numbers they are whole, too, not half way between two."""
    found = quantiles(draws, levels)
    return np.rint(found, out=found, where=(np.rint(draws) == draws).all(axis=0))


def crps(draws: np.ndarray, readings: np.ndarray) -> np.ndarray:  # (n, ...), (...) -> (...)
    """The continuous ranked probability score of each reading, lower is better."""
    x, n = np.sort(draws, axis=0), len(draws)
    half = np.tensordot(2 * np.arange(n) - n + 1, x, axes=1) / max(1, n * (n - 1))  # of E|x - x'|, from sorted draws
    return np.abs(x - readings).mean(axis=0) - half


def energy(draws: np.ndarray, readings: np.ndarray) -> np.ndarray:  # (n, ..., d), (..., d) -> (...)
    """The energy score of each vector of readings, lower is better."""
    n = len(draws)
    apart = np.zeros(readings.shape[:-1])
    for k in range(1, n):
        apart += np.linalg.norm(draws[k:] - draws[:-k], axis=-1).sum(axis=0)  # every pair once
    return np.linalg.norm(draws - readings, axis=-1).mean(axis=0) - apart / max(1, n * (n - 1))


def covered(draws: np.ndarray, readings: np.ndarray, levels: tuple[float, float]) -> np.ndarray:  # (...) of bool
    """Whether each reading lies between two quantiles of its draws (n, ...)."""
    low, high = quantiles(draws, levels)
    return (low <= readings) & (readings <= high)
