"""The covariance of signals with gaps, shrunk: what references are fitted to.

With ``x`` centred at the mean of what was observed, ``n_ij`` the number of signals that observed both ``i`` and ``j``,
and means over those signals,

    S_ij = mean_ij(x_i x_j)          Var S_ij = (mean_ij(x_i^2 x_j^2) - S_ij^2) / n_ij

and 0 for a pair never seen together. Means over different signals need not fit together: ``S`` may have negative
eigenvalues, which are set to zero, the nearest covariance in Frobenius norm. Ledoit-Wolf then mixes it with a multiple
of the identity, ``m = tr S / p``, as much as the error of ``S`` is of its distance from there:

    Sigma = (1 - b) S + b m I,       b = min(1, sum_ij Var S_ij / |S - m I|_F^2)

With nothing missing all ``n_ij`` are ``n``, and this is Ledoit and Wolf's estimate of 2004, scikit-learn's to rounding.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from torch import Tensor

from ..core.rows import observed_mean, parts

EPS_REF = 1e-6  # the paper's numerical shift
Matrix = TypeVar("Matrix", np.ndarray, Tensor)


def ledoit_wolf(signals: np.ndarray, eps_ref: float = EPS_REF) -> np.ndarray:  # (samples, d) -> (d, d)
    """Ledoit-Wolf shrinkage covariance of z-scored training signals, plus ``eps_ref I`` (eq. ref); gaps are NaN."""
    count, mean = observed_mean(signals)
    S, error = _complete(signals, mean) if (count == len(signals)).all() else _pairwise(signals, mean)
    return shrunk(S, error, np.eye(len(S)), eps_ref)


def shrunk(S: Matrix, error: float | Tensor, eye: Matrix, shift: float = 0.0) -> Matrix:
    """``Sigma`` of the module's docstring plus ``shift I``, from ``S`` and its ``error``, ``sum_ij Var S_ij``."""
    m = S.trace() / len(S)
    distance = ((S - m * eye) ** 2).sum()
    b = min(max(error, 0.0), distance) / distance if distance > 0 else 0.0
    return (1 - b) * S + (b * m + shift) * eye


def _complete(signals: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, float]:
    """``S``, and ``sum_ij Var S_ij``, which needs no matrix here: ``sum_ij x_i^2 x_j^2`` is ``|x|^4``."""
    n, S, fourth = len(signals), np.zeros((len(mean), len(mean))), 0.0
    for x, _ in parts(signals):
        x = x - mean
        S += x.T @ x
        fourth += np.square(np.square(x).sum(axis=1)).sum()
    S /= n
    return S, (fourth / n - np.square(S).sum()) / n


def _pairwise(signals: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, float]:
    """The same from the pairs that were observed together, ``S`` without negative eigenvalues."""
    count, S, fourth = (np.zeros((len(mean), len(mean))) for _ in range(3))
    for x, seen in parts(signals):
        x, seen = np.where(seen, x - mean, 0.0), seen.astype(np.float64)
        square = np.square(x)
        for total, factor in ((count, seen), (S, x), (fourth, square)):
            total += factor.T @ factor
    n = np.maximum(count, 1)
    S /= n
    error = ((fourth / n - np.square(S)) / n).sum()
    v, B = np.linalg.eigh(S)
    return (B * np.maximum(v, 0.0)) @ B.T, error
