"""The three graph statistics that aMMD compares (appendix A.6.5), on z-scored signals with ``L = D - W``."""

from __future__ import annotations

import numpy as np

from ..graph import Graph


def quadratic_variation(x: np.ndarray, graph: Graph) -> np.ndarray:  # (samples, nodes) -> (samples,)
    """``x^T L x``."""
    return np.einsum("sn,sn->s", x, (graph.combinatorial @ x.T).T)


def spectral_centroid(x: np.ndarray, graph: Graph) -> np.ndarray:
    """``x^T L x / x^T x``: the mean graph frequency, weighted by energy; 0 for the zero signal."""
    return _ratio(quadratic_variation(x, graph), np.einsum("sn,sn->s", x, x))


def degree_correlation(x: np.ndarray, graph: Graph) -> np.ndarray:
    """Pearson correlation over nodes between signal and weighted degree; 0 where either is constant."""
    degree = graph.degree - graph.degree.mean()
    if np.abs(degree).max() <= 1e-12 * max(graph.degree.max(), 1e-300):  # a regular graph, up to rounding
        return np.zeros(len(x))
    centred = x - x.mean(axis=1, keepdims=True)
    return _ratio(centred @ degree, np.linalg.norm(centred, axis=1) * np.linalg.norm(degree))


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


STATISTICS = {
    "quadratic_variation": quadratic_variation,
    "spectral_centroid": spectral_centroid,
    "degree_correlation": degree_correlation,
}
