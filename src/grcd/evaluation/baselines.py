"""Baselines that fill gaps: what a model has to beat. Each is fitted to training signals and works on z-scores.

    fill-mean        the node's mean
    fill-last        the node's last reading before the gap; its mean where there is none
    fill-linear      on a straight line between the node's readings before and after the gap: the one that sees the
                     future, no competitor for what has just been measured
    fill-tikhonov    the smoothest signal on the graph near the readings: min |x_o - y|^2 + alpha x' L x + beta |x|^2,
                     with alpha and beta from ``WEIGHTS``
    fill-neighbours  the mean of the ``NEIGHBOURS`` nearest nodes on the graph that have a reading, nearness by hops
                     and then by weight
    fill-iterative   scikit-learn's IterativeImputer: every node regressed on ``FEATURES`` others, in ``ROUNDS`` turns,
                     as ``MOST`` training signals say
    fill-gaussian    the exact posterior of one Gaussian with the Ledoit-Wolf covariance; the only one with uncertainty

Where there is something to choose, it is what has the least error on validation signals of which a quarter of the
readings are hidden. Training signals may have gaps too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import scipy.sparse as sp
import torch

from ..core.rows import evenly
from ..core.streams import Stream
from ..core.systems import solve
from ..data import Dataset
from ..references.covariance import ledoit_wolf
from ..references.gaussian import full
from ..references.observations import Observations

WEIGHTS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
NEIGHBOURS = (1, 3, 5, 10, 20)
FEATURES, ROUNDS = (20, 40), (5, 20)
MOST = 5000  # training signals of the imputer, which takes minutes as it is
ROWS = 500  # signals at a time, and validation signals to choose by

Fillings = Iterator[tuple[np.ndarray, np.ndarray]]  # rows, and their completions (n or 1, rows, nodes)
Fill = Callable[[np.ndarray], np.ndarray]  # (signals, nodes) z-scored with NaN -> the same without


def mean(data: Dataset) -> Fill:
    """Zero, which is the mean of z-scores."""
    return lambda z: np.where(np.isnan(z), 0.0, z)


def last(data: Dataset) -> Fill:
    """The last reading of the node."""
    return latest


def latest(z: np.ndarray) -> np.ndarray:  # (rows, columns), NaN where missing -> the same without
    """Each column's last reading; 0 before its first."""
    row = np.maximum.accumulate(np.where(np.isnan(z), -1, np.arange(len(z))[:, None]), axis=0)
    return np.where(row < 0, 0.0, np.take_along_axis(z, np.maximum(row, 0), axis=0))


def linear(data: Dataset) -> Fill:
    """Between the readings before and after; a straight line."""
    return straight


def straight(z: np.ndarray) -> np.ndarray:  # (rows, columns), NaN where missing -> the same without
    """On straight lines between the readings of a column, constant beyond them; 0 in a column that has none."""
    filled, place = z.copy(), np.arange(len(z))
    for column in filled.T:
        gap = np.isnan(column)
        column[gap] = np.interp(place[gap], place[~gap], column[~gap]) if not gap.all() else 0.0
    return filled


def tikhonov(data: Dataset) -> Fill:
    """The smoothest signal near the readings."""
    L = torch.from_numpy(data.graph.combinatorial.toarray() / data.graph.degree.mean())

    def smooth(z: np.ndarray, alpha: float, beta: float) -> np.ndarray:
        """``(M + alpha L + beta I) x = M y`` by the equivalent update of a Gaussian with that precision."""
        v, B = torch.linalg.eigh(alpha * L + beta * torch.eye(len(L)))
        covariance = (B / v) @ B.T
        y, seen = torch.from_numpy(np.nan_to_num(z)), torch.from_numpy(~np.isnan(z))
        u, _ = solve(covariance + torch.eye(len(L)), seen, torch.where(seen, y, 0.0)[:, None])
        return np.where(np.isnan(z), (u[:, 0] @ covariance).numpy(), z)

    return _best(data, [partial(smooth, alpha=alpha, beta=beta) for alpha, beta in product(WEIGHTS, WEIGHTS)])


def neighbours(data: Dataset) -> Fill:
    """The mean of the nearest nodes that have a reading."""
    hops = sp.csgraph.dijkstra(data.graph.weights, directed=False, unweighted=True)
    weights = data.graph.weights.toarray()
    order = np.lexsort((-weights, hops), axis=1)[:, 1:]  # the nearest first, without the node itself

    def fill(z: np.ndarray, most: int) -> np.ndarray:
        filled = z.copy()
        for node in range(z.shape[1]):
            gap = np.isnan(z[:, node])
            near = z[gap][:, order[node]]
            rank = np.cumsum(~np.isnan(near), axis=1)
            near = np.where(rank <= most, near, np.nan)
            count = (~np.isnan(near)).sum(axis=1)
            filled[gap, node] = np.nansum(near, axis=1) / np.maximum(count, 1)
        return filled

    return _best(data, [partial(fill, most=most) for most in NEIGHBOURS])


def iterative(data: Dataset) -> Fill:
    """Regressions of each node on others, in turns."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    z = data.normalizer.apply(data.train[evenly(len(data.train), MOST)]).astype(np.float64)
    z[Stream(0, "iterative").uniform(0, z.size).view(z.shape).numpy() < 0.25] = np.nan  # it learns from gaps only
    fitted = []
    for features, rounds in product(sorted({min(count, z.shape[1]) for count in FEATURES}), ROUNDS):
        model = IterativeImputer(max_iter=rounds, n_nearest_features=features, random_state=0, tol=1e-2)
        with warnings.catch_warnings():  # what has not quite converged after its turns is what it is
            warnings.simplefilter("ignore")
            fitted.append(model.fit(z).transform)
    return _best(data, fitted)


def _best(data: Dataset, fills: Sequence[Fill]) -> Fill:
    """The one with the least mean absolute error on validation signals."""
    rows = evenly(len(data.val), ROWS)
    z, observed = data.normalizer.apply(data.val[rows]).astype(np.float64), data.observed("val")
    gone = Stream(0, "baselines").uniform(0, z.size).view(z.shape).numpy() < 0.25
    real = gone & ~np.isnan(z) & (True if observed is None else observed[rows])
    holed = np.where(gone, np.nan, z)
    return min(fills, key=lambda fill: np.abs(fill(holed) - z)[real].mean())


POINTS: dict[str, Callable[[Dataset], Fill]] = {
    "fill-mean": mean,
    "fill-last": last,
    "fill-linear": linear,
    "fill-tikhonov": tikhonov,
    "fill-neighbours": neighbours,
    "fill-iterative": iterative,
}
BASELINES = (*POINTS, "fill-gaussian")


def fitted(name: str, data: Dataset) -> Callable[[np.ndarray, int, int], Fillings]:
    """A baseline of ``BASELINES``, fitted to the training signals.

    Returns a function of signals (signals, nodes) in the data's units with NaN in the gaps, a number of draws and a
    seed; it yields row numbers and their completions, one draw where there is nothing to draw.
    """
    apply, undo = data.normalizer.apply, data.normalizer.undo
    if name in POINTS:
        fill = POINTS[name](data)
        return lambda x, n, seed: iter([(np.arange(len(x)), undo(fill(apply(x).astype(np.float64)))[None])])
    gaussian = full(ledoit_wolf(apply(data.train)))

    def drawn(x: np.ndarray, n: int, seed: int) -> Fillings:
        z = torch.from_numpy(apply(x).astype(np.float64))
        for start in range(0, len(x), ROWS):
            rows = np.arange(start, min(start + ROWS, len(x)))
            noise = Stream(seed, "fill gaussian").normal(rows, n * x.shape[1]).view(len(rows), n, -1)
            conditioned, first = gaussian.condition(Observations(z[rows])), torch.zeros(len(rows), n).double()
            yield rows, undo(conditioned.draw(n, partial(_always, noise), first).transpose(0, 1).numpy())

    return drawn


def _always(noise: torch.Tensor, purpose: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The same noise, whatever it is for."""
    return noise
