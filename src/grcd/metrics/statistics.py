"""The three graph statistics that aMMD compares (appendix A.6.5), on z-scored signals with ``L = D - W``.

With ``observed`` (samples, nodes) each looks at the observed nodes of a signal only: the edges between them, their
energy, their degrees (which stay those of the whole graph). What stands elsewhere does not matter, NaN included.
"""

from __future__ import annotations

import numpy as np

from ..graphs.graph import Graph

Mask = np.ndarray | None  # (samples, nodes), True where observed; None for everywhere


def quadratic_variation(x: np.ndarray, graph: Graph, observed: Mask = None) -> np.ndarray:  # (samples,)
    """``x^T L x``, the sum over edges of ``w_ij (x_i - x_j)^2``: ``D`` holds the weights to observed nodes."""
    if observed is None:
        return np.einsum("sn,sn->s", x, (graph.combinatorial @ x.T).T)
    x = np.where(observed, x, 0.0)
    degree = (graph.weights @ observed.T.astype(np.float64)).T
    return np.einsum("sn,sn->s", x, degree * x - (graph.weights @ x.T).T)


def spectral_centroid(x: np.ndarray, graph: Graph, observed: Mask = None) -> np.ndarray:
    """``x^T L x / x^T x``: the mean graph frequency, weighted by energy; 0 for the zero signal."""
    x = x if observed is None else np.where(observed, x, 0.0)
    return _ratio(quadratic_variation(x, graph, observed), np.einsum("sn,sn->s", x, x))


def degree_correlation(x: np.ndarray, graph: Graph, observed: Mask = None) -> np.ndarray:
    """Pearson correlation over nodes between signal and weighted degree; 0 where either is constant."""
    seen = np.ones((1, len(graph)), dtype=bool) if observed is None else observed
    degree, centred = _centred(graph.degree, seen), _centred(x, seen)
    # Equal degrees, up to rounding: in a regular graph, or among the nodes that were observed.
    degree[np.abs(degree).max(axis=1) <= 1e-12 * max(graph.degree.max(), 1e-300)] = 0.0
    products = np.einsum("sn,sn->s", centred, np.broadcast_to(degree, centred.shape))
    r = _ratio(products, np.linalg.norm(centred, axis=1) * np.linalg.norm(degree, axis=1))
    return np.where(seen.sum(axis=1) == 2, np.sign(r), r)  # of two nodes 1 or -1: rounding must not tell them apart


def _centred(x: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Less the mean over observed nodes; 0 at the others."""
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    return np.where(observed, x - np.where(observed, x, 0.0).sum(axis=1, keepdims=True) / count, 0.0)


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


STATISTICS = {
    "quadratic_variation": quadratic_variation,
    "spectral_centroid": spectral_centroid,
    "degree_correlation": degree_correlation,
}
