"""What distance along the graph says of correlations: the smaller model that few rows are shrunk towards.

Few rows say little of each pair of nodes, but all pairs together say how correlation falls with distance. Weights are
taken for those of a Gaussian kernel (see ``graphs/weights``), ``w = exp(-d^2 / 2)``, so that an edge has the length

    d = sqrt(-2 log(w / max w))

and two nodes are as far from each other as the shortest path between them is long. Through the correlations of all
pairs at lag 0 goes, by least squares over a grid of lengths ``L`` and powers ``p``, a curve

    K_ij = s exp(-(d_ij / L)^p),      0 <= s <= 1,    K_ii = 1

positive definite up to eigenvalues that are raised. Channels are correlated at a node as they are on average, ``R``,
and rows ``l`` apart by ``r_l = tr C_l / tr C_0``. Lag covariances go a share ``weight`` of the way to

    D (K (x) R) D r_l,      D^2 = diag C_0

which keeps every column's own variance. How far is decided by held-out likelihood (``training/window_references``):
far with few rows, and hardly at all with thousands.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core.rows import evenly
from ..graphs.graph import Graph

NEAREST = 1e-3  # of the largest weight's logarithm: nodes at the same place are not quite one
LENGTHS = np.geomspace(0.05, 20, 30)  # of the median distance
POWERS = 1.0, 1.5, 2.0
PAIRS = 100_000  # of nodes that the curve goes through, at most
LEAST = 1e-4  # eigenvalue


@lru_cache(maxsize=2)  # several laws ask in turn
def path_lengths(graph: Graph) -> np.ndarray:  # (nodes, nodes)
    """From node to node along the graph; infinite where there is no path."""
    from scipy.sparse.csgraph import shortest_path

    W = graph.weights.tocoo()
    if not W.nnz:
        return np.where(np.eye(len(graph), dtype=bool), 0.0, np.inf)
    length = np.sqrt(-2 * np.log(np.minimum(W.data / W.data.max(), 1 - NEAREST)))
    return np.asarray(shortest_path(sp.csr_array((length, (W.row, W.col)), W.shape), directed=False))


def nearness(rho: np.ndarray, distance: np.ndarray) -> np.ndarray:  # three of (nodes, nodes)
    """``K``: the curve of distance that is nearest to correlations ``rho``."""
    upper = np.triu_indices(len(rho), 1)
    known = np.flatnonzero(np.isfinite(distance[upper]))
    known = known[evenly(len(known), PAIRS)]
    far, near = distance[upper][known], rho[upper][known]
    best, scale = (np.inf, 0.0, 1.0, 1.0), float(np.median(far)) if len(far) else 1.0
    for power in POWERS:
        for length in scale * LENGTHS:
            curve = np.exp(-((far / length) ** power))
            s = float(np.clip(curve @ near / max(curve @ curve, 1e-300), 0, 1))
            best = min(best, (float(np.square(near - s * curve).sum()), s, length, power))
    _, s, length, power = best
    K = s * np.exp(-((distance / length) ** power))
    np.fill_diagonal(K, 1.0)
    v, B = np.linalg.eigh(K)
    K = (B * v.clip(LEAST)) @ B.T
    sd = np.sqrt(K.diagonal())
    return K / np.outer(sd, sd)


def towards(C: Tensor, distance: np.ndarray, weight: float) -> Tensor:  # (lags, columns, columns)
    """Lag covariances of ``nodes x channels`` columns, a share ``weight`` of the way to what distance says."""
    if not weight:
        return C
    nodes, channels = len(distance), C.shape[1] // len(distance)
    sd = C[0].diagonal().clamp(min=1e-12).sqrt()
    rho = (C[0] / (sd[:, None] * sd)).cpu().numpy().reshape(nodes, channels, nodes, channels)
    between = np.einsum("icjc->ij", rho) / channels
    R = np.einsum("icid->cd", rho) / nodes
    K = torch.from_numpy(np.kron(nearness(between, distance), R)).to(C)
    correlation = C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace()
    return (1 - weight) * C + weight * correlation[:, None, None] * (sd[:, None] * sd * K)
