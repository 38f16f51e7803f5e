"""Weights from positions and distances: how near two nodes are, as a number between 0 and 1.

    positions (x, y)                    d_ij = |p_i - p_j|                                      "euclidean"
    positions (longitude, latitude)     d_ij = 2 R asin sqrt(h), in kilometres                  "great-circle"
                                        h = sin^2((phi_i - phi_j)/2) + cos phi_i cos phi_j sin^2((lam_i - lam_j)/2)
    k nearest neighbours                w_ij = exp(-d_ij^2 / (2 s^2)) if either end chose the other, else 0
                                        s = median of d_ij over all pairs i < j
    thresholded kernel                  w_ij = exp(-(d_ij / s)^2) if that is no less than the threshold, else 0
                                        s = standard deviation (population) of the distances that are given

The second kernel is DCRNN's (Li et al. 2018), which has no factor 2 and counts the zeros a table lists from a node to
itself. The first, with five neighbours, makes the Molene graph. In both the weight does not change when positions and
bandwidth are given in another unit.

A node chooses **every** node no farther than its k-th nearest, so it chooses more than k where distances tie: were one
of them left out, the order of the nodes would decide which. Distances that agree to nine digits tie, or else rounding
would decide. Nodes at the same place are at distance 0 and have weight 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..core.errors import InputError, some, unknown
from ..core.rows import BLOCK, blocks, evenly

EARTH_RADIUS = 6371.0088  # km, the mean radius
TIE = 1e-9  # relative
SLACK = 1e-6, 1e-12  # relative, and of the extent of all: what a tree may be off by, and more
DIGITS = ((22, 42), (21, 21), (21, 0))  # of 64 bits: how many at a time, and how many are behind them
NEIGHBOURS = 256  # a node, on average, beyond which a large graph is no sparse one
ALL, SAMPLED = 4096, 1024  # nodes up to which all distances have their median; of more, so many nodes, evenly spaced


def distance(
    a: np.ndarray,  # (..., 2): (x, y), or (longitude, latitude) in degrees
    b: np.ndarray,  # (..., 2)
    metric: str = "euclidean",
) -> np.ndarray:  # (...)
    """From places to places, broadcast: in the unit of the coordinates, or in kilometres along the great circle."""
    return METRICS[metric].between(a, b)


class Euclidean:
    """Places in a plane."""

    @staticmethod
    def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        step = a - b
        return np.hypot(step[..., 0], step[..., 1])

    @staticmethod
    def straight(p: np.ndarray) -> np.ndarray:  # (nodes, 2)
        """Scaled by a power of two, which is exact, so that squares do not overflow."""
        return np.ldexp(p, -int(np.frexp(np.abs(p).max())[1]))

    @staticmethod
    def check(p: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            widest = Euclidean.between(p.min(axis=0), p.max(axis=0))
        if not np.isfinite(widest):
            raise InputError(
                "positions too far apart for their distance to be a number", "coordinates", "check the unit"
            )


class GreatCircle:
    """Places on the Earth, by the haversine formula."""

    @staticmethod
    def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        (lam_a, phi_a), (lam_b, phi_b) = (np.moveaxis(np.radians(p), -1, 0) for p in (a, b))
        across = np.cos(phi_a) * np.cos(phi_b)
        h = np.sin((phi_a - phi_b) / 2) ** 2 + across * np.sin((lam_a - lam_b) / 2) ** 2
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(h, 1.0)))

    @staticmethod
    def straight(p: np.ndarray) -> np.ndarray:  # (nodes, 3)
        """On the unit sphere, where the chord grows with the arc."""
        lam, phi = np.radians(p).T
        return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=1)

    @staticmethod
    def check(p: np.ndarray) -> None:
        outside = np.flatnonzero((np.abs(p) > (360.0, 90.0)).any(axis=1))
        if len(outside):
            row = outside[0]
            raise InputError(
                f"longitude {p[row, 0]:g}, latitude {p[row, 1]:g} at node {row} ({len(outside)} such nodes)",
                "degrees, longitude first: up to 360 and up to 90 either way",
                'swap the columns if latitude comes first, or name the metric "euclidean" if these are x and y',
            )


METRICS: dict[str, type[Euclidean] | type[GreatCircle]] = {"euclidean": Euclidean, "great-circle": GreatCircle}


def nearest(
    coords: ArrayLike,  # (nodes, 2): (x, y), or (longitude, latitude) in degrees
    k: int | None = None,
    bandwidth: float | None = None,
    metric: str = "euclidean",
) -> tuple[sp.csr_array, float]:
    """The Gaussian graph of ``k`` nearest neighbours (five, or all of fewer), and the bandwidth used.

    The weights (nodes, nodes) are symmetric by construction. Memory grows with the number of edges, not with that of
    pairs; without a bandwidth all distances are looked at, some at a time, and of a large graph
    those between ``SAMPLED`` of its nodes.
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    p = checked_positions(coords)
    METRICS[metric].check(p)
    n = len(p)
    k = _neighbours(min(5, n - 1) if k is None else k, n)
    if not distance(p[0], p, metric).any():
        raise InputError(f"{n} nodes at one place", "positions that differ", "check the coordinates")
    s = _bandwidth(
        bandwidth,
        lambda: _median_distance(p if n <= ALL else p[evenly(n, SAMPLED)], metric),
        "median of all pairwise distances",
    )
    i, j, d = _chosen(p, k, metric)
    codes, first = np.unique(np.concatenate([i * n + j, j * n + i]), return_index=True)  # if either end chose the other
    with np.errstate(over="ignore"):
        w = np.exp(-((np.concatenate([d, d])[first] / s) ** 2) / 2)
    return _refuse_vanished(sp.csr_array((w, np.divmod(codes, n)), shape=(n, n)), s), s


def _neighbours(k: Any, n: int) -> int:
    try:
        number = operator.index(k)
    except TypeError:
        raise InputError(f"{k!r} neighbours", "a whole number", f"choose k from 1 to {n - 1}") from None
    if not 1 <= number < n:
        raise InputError(f"{k} neighbours among {n} nodes", f"1 to {n - 1}", "choose k in that range")
    if n > ALL and number > NEIGHBOURS:
        raise InputError(f"{k} neighbours among {n:,} nodes", f"1 to {NEIGHBOURS} on a graph of this size", "lower k")
    return number


def _chosen(p: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (choices,) each
    """Who chooses whom, and how far away that is. A tree proposes, with room for its rounding; distances decide."""
    from scipy.spatial import cKDTree

    places, parts = METRICS[metric].straight(p), []
    tree = cKDTree(places)
    for rows in blocks(len(p), 4 * (k + 1)):
        reach = tree.query(places[rows], k + 1)[0][:, k] * (1 + SLACK[0]) + SLACK[1]  # a node is its own nearest
        near = tree.query_ball_point(places[rows], reach)
        i = np.repeat(np.arange(len(p))[rows], [len(each) for each in near])
        j = np.concatenate(near).astype(np.int64)
        i, j = i[i != j], j[i != j]
        d = distance(p[i], p[j], metric)
        order = np.lexsort((d, i))
        start = np.searchsorted(i, np.arange(len(p))[rows])
        kth = d[order][start + k - 1]
        kept = d <= kth[i - i[0]] * (1 + TIE)
        parts.append((i[kept], j[kept], d[kept]))
    i, j, d = (np.concatenate(part) for part in zip(*parts, strict=True))
    return i, j, d


def _median_distance(p: np.ndarray, metric: str) -> float:
    """Of all pairs, exactly, though they may be more than memory holds.

    Numbers from 0 up are in the order of their bits: some of these at a time, the first first, counts tell in which
    part of the numbers the median is.
    """
    pairs = len(p) * (len(p) - 1) // 2
    if pairs <= BLOCK:
        return float(np.median(np.concatenate([*_pairs(p, metric)])))
    rank, prefix, count = (pairs - 1) // 2, 0, 0
    for digits, below in DIGITS:
        counts: np.ndarray = np.zeros(1 << digits, dtype=np.int64)
        for d in _pairs(p, metric):
            bits = d.view(np.int64) >> below
            bits = bits[bits >> digits == prefix] & ((1 << digits) - 1)
            counts += np.bincount(bits, minlength=len(counts))
        upto = np.cumsum(counts)
        digit = int(np.searchsorted(upto, rank, side="right"))
        rank, count, prefix = rank - int(upto[digit] - counts[digit]), int(counts[digit]), prefix << digits | digit
    lower = np.int64(prefix).view(np.float64)
    if pairs % 2 or rank + 1 < count:
        return float(lower)
    return float((lower + min(d[d > lower].min(initial=np.inf) for d in _pairs(p, metric))) / 2)


def _pairs(p: np.ndarray, metric: str) -> Iterator[np.ndarray]:
    """The distances of all pairs i < j, some rows at a time."""
    for rows in blocks(len(p), len(p)):
        d = distance(p[rows, None], p[None, rows.start :], metric)
        yield d[np.arange(len(d))[:, None] < np.arange(d.shape[1])]


def kernel(
    distances: ArrayLike | sp.sparray,  # (nodes, nodes): sparse, a stored 0 is a distance; dense, infinity is none
    bandwidth: float | None = None,
    threshold: float = 0.1,
) -> tuple[sp.csr_array, float]:
    """DCRNN's thresholded Gaussian kernel of a distance table, in its directions, and the bandwidth used."""
    d = _listed(distances)
    if np.isnan(d.data).any() or (d.data < 0).any():
        bad = np.flatnonzero(np.isnan(d.data) | (d.data < 0))
        examples = [f"({d.row[e]}, {d.col[e]}) {d.data[e]:g}" for e in bad[:3]]
        raise InputError(f"{len(bad)} distances such as {some(examples)}", "numbers from 0 up", "remove those entries")
    threshold = _number("threshold", threshold, lambda t: 0 <= t <= 1, "a number from 0 to 1")
    s = _bandwidth(bandwidth, lambda: _spread(d.data), "standard deviation of the distances")
    with np.errstate(over="ignore"):
        w = np.exp(-((d.data / s) ** 2))
    kept = (w >= threshold) & (w > 0)
    weights = sp.csr_array((w[kept], (d.row[kept], d.col[kept])), shape=d.shape)
    return _refuse_vanished(weights, s), s


def _spread(d: np.ndarray) -> float:
    """The population standard deviation, and exactly 0 where rounding alone would make one up."""
    top = d.max(initial=0.0)
    spread = float(np.std(d / top)) if top > 0 else 0.0
    return top * spread if spread > TIE else 0.0


# -- checks ----------------------------------------------------------------------------------------------------------


def checked_positions(coords: ArrayLike, nodes: int | None = None) -> np.ndarray:  # (nodes, 2)
    """Two finite coordinates a node."""
    p = _numbers("coordinates", coords)
    if p.ndim != 2 or p.shape[1] != 2 or len(p) < 2 or nodes not in (None, len(p)):
        shape = f"({'nodes' if nodes is None else nodes}, 2), two nodes or more"
        raise InputError(f"coordinates of shape {p.shape}", shape, "give each node two coordinates")
    bad = np.flatnonzero(~np.isfinite(p).all(axis=1))
    if len(bad):
        raise InputError(f"coordinates that are not finite, at node {some(bad, 3)}", "numbers", "correct those nodes")
    return p


def _listed(distances: ArrayLike | sp.sparray) -> sp.coo_array:
    """The distances there are, as triples; infinity stands for none."""
    if sp.issparse(distances):
        d = _square(sp.coo_array(distances, dtype=np.float64, copy=True))
        d.sum_duplicates()
    else:
        dense = _square(_numbers("distances", distances))
        d = sp.coo_array((dense.ravel(), np.indices(dense.shape).reshape(2, -1)), shape=dense.shape)
    finite = d.data != np.inf
    return sp.coo_array((d.data[finite], (d.row[finite], d.col[finite])), shape=d.shape)


def _numbers(what: str, values: ArrayLike) -> np.ndarray:
    """A float64 copy."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)  # rows of several lengths
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} that are no numbers", "an array of numbers", "pass numbers only")
    return array.astype(np.float64)


def _square(matrix: Any) -> Any:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise InputError(
            f"distances of shape {matrix.shape}", "a square matrix of two nodes or more", "pass all of them"
        )
    return matrix


def _bandwidth(chosen: float | None, default: Callable[[], float], what: str) -> float:
    if chosen is not None:
        return _number("bandwidth", chosen, lambda s: 0 < s < np.inf, "a positive number")
    s = float(default())
    if s == 0:
        raise InputError(f"a {what} of 0", "distances that differ", "name a bandwidth, in the unit of the distances")
    return s


def _number(name: str, value: Any, fits: Callable[[float], bool], expected: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not fits(number):
        raise InputError(f"{name} {value!r}", expected, f"choose another {name}")
    return number


def _refuse_vanished(weights: sp.csr_array, s: float) -> sp.csr_array:
    """A bandwidth in the wrong unit leaves no edge, and no other sign of itself."""
    weights.eliminate_zeros()
    weights.sort_indices()
    if weights.nnz == np.count_nonzero(weights.diagonal()):
        raise InputError(
            f"no weight between any two nodes, with bandwidth {s:g}",
            "a bandwidth like the distances between neighbours",
            "name a larger --bandwidth, in the unit of the distances, or a lower --threshold",
        )
    return weights
