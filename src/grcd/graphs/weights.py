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
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..core.errors import InputError, some, unknown

EARTH_RADIUS = 6371.0088  # km, the mean radius
TIE = 1e-9  # relative
LARGEST = 20_000  # nodes: all their distances take 3 GB


def distances(
    coords: ArrayLike,  # (nodes, 2): (x, y), or (longitude, latitude) in degrees
    metric: str = "euclidean",
) -> np.ndarray:  # (nodes, nodes)
    """All pairwise distances: in the unit of the coordinates, or in kilometres along the great circle."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    p = checked_positions(coords)
    if len(p) > LARGEST:
        raise InputError(f"positions of {len(p)} nodes", f"up to {LARGEST}", "give the graph as a list of edges")
    with np.errstate(over="ignore", invalid="ignore"):
        d = METRICS[metric](p)
    if not np.isfinite(d).all():
        raise InputError("positions too far apart for their distance to be a number", "coordinates", "check the unit")
    return d


def _euclidean(p: np.ndarray) -> np.ndarray:
    return np.hypot(*(p[:, None] - p[None, :]).transpose(2, 0, 1))


def _great_circle(p: np.ndarray) -> np.ndarray:
    outside = np.flatnonzero((np.abs(p) > (360.0, 90.0)).any(axis=1))
    if len(outside):
        row = outside[0]
        raise InputError(
            f"longitude {p[row, 0]:g}, latitude {p[row, 1]:g} at node {row} ({len(outside)} such nodes)",
            "degrees, longitude first: up to 360 and up to 90 either way",
            'swap the columns if latitude comes first, or name the metric "euclidean" if these are x and y',
        )
    lam, phi = np.radians(p).T
    across = np.cos(phi)[:, None] * np.cos(phi)[None, :]
    h = np.sin((phi[:, None] - phi) / 2) ** 2 + across * np.sin((lam[:, None] - lam) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(h, 1.0)))


METRICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"euclidean": _euclidean, "great-circle": _great_circle}


def nearest(
    distances: ArrayLike,  # (nodes, nodes) symmetric; the diagonal is not looked at
    k: int = 5,
    bandwidth: float | None = None,
) -> tuple[sp.csr_array, float]:
    """The Gaussian graph of k nearest neighbours, symmetric by construction, and the bandwidth used."""
    d = _checked_square(distances)
    n = len(d)
    try:
        k = operator.index(k)
    except TypeError:
        raise InputError(f"{k!r} neighbours", "a whole number", f"choose k from 1 to {n - 1}") from None
    if not 1 <= k < n:
        raise InputError(f"{k} neighbours among {n} nodes", f"1 to {n - 1}", "choose k in that range")
    pairs = d[np.triu_indices(n, 1)]
    if not pairs.any():
        raise InputError(f"{n} nodes at one place", "positions that differ", "check the coordinates")
    s = _bandwidth(bandwidth, lambda: np.median(pairs), "median of all pairwise distances")
    np.fill_diagonal(d, np.inf)  # no node is its own neighbour
    chosen = d <= np.partition(d, k - 1, axis=1)[:, [k - 1]] * (1 + TIE)
    i, j = np.nonzero(chosen | chosen.T)
    with np.errstate(over="ignore"):
        weights = sp.csr_array((np.exp(-((d[i, j] / s) ** 2) / 2), (i, j)), shape=d.shape)
    return _refuse_vanished(weights, s), s


def kernel(
    distances: ArrayLike | sp.sparray,  # (nodes, nodes): sparse, a stored 0 is a distance; dense, infinity is none
    bandwidth: float | None = None,
    threshold: float = 0.1,
) -> tuple[sp.csr_array, float]:
    """DCRNN's thresholded Gaussian kernel of a distance table, in its directions, and the bandwidth used."""
    d = _listed(distances)
    if np.isnan(d.data).any() or (d.data < 0).any():
        bad = np.flatnonzero(np.isnan(d.data) | (d.data < 0))
        at = [f"({d.row[e]}, {d.col[e]}) {d.data[e]:g}" for e in bad[:3]]
        raise InputError(f"{len(bad)} distances such as {some(at)}", "numbers from 0 up", "remove those entries")
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


def _checked_square(distances: ArrayLike) -> np.ndarray:
    """A copy of finite, non-negative, symmetric distances, with rounding taken out of the symmetry."""
    d = _square(_numbers("distances", distances))
    np.fill_diagonal(d, 0.0)
    if not np.isfinite(d).all() or (d < 0).any():
        raise InputError("distances that are negative or not finite", "numbers from 0 up", "correct those entries")
    if (abs(d - d.T) > TIE * np.maximum(d, d.T)).any():
        raise InputError("distances that depend on the direction", "symmetric ones", "use the mean of both directions")
    return np.maximum(d, d.T)


def _listed(distances: ArrayLike | sp.sparray) -> sp.coo_array:
    """The distances there are, as triples; infinity stands for none."""
    if sp.issparse(distances):
        d = _square(sp.coo_array(distances, dtype=np.float64, copy=True))
        d.sum_duplicates()
    else:
        dense = _square(_numbers("distances", distances))
        d = sp.coo_array((dense.ravel(), np.indices(dense.shape).reshape(2, -1)), shape=dense.shape)
    there = d.data != np.inf
    return sp.coo_array((d.data[there], (d.row[there], d.col[there])), shape=d.shape)


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


def _bandwidth(given: float | None, default: Callable[[], float], what: str) -> float:
    if given is not None:
        return _number("bandwidth", given, lambda s: 0 < s < np.inf, "a positive number")
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
            "name a larger bandwidth, in the unit of the distances, or a lower threshold",
        )
    return weights
