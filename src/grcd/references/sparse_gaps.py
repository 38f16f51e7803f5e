"""Gaps in the signals that a sparse reference is fitted to: a first guess, and draws given the rest.

What is missing of each signal is another part of it, and little of all: nothing is computed but there. For each missing
entry its row of a sparse matrix is looked up, in its own signal.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from ..core import factors
from ..core.rows import blocks
from ..core.streams import Stream
from .sparse import Sparse

DIGITS = 1e-3  # of conjugate gradients


class Rows:
    """Rows of a sparse ``matrix`` (d, d), one for each of some entries, at ``node`` of ``signal``."""

    def __init__(self, matrix: sp.csr_array, node: np.ndarray, signal: np.ndarray):
        count = np.diff(matrix.indptr)[node]
        first = np.repeat(matrix.indptr[node] - np.concatenate([[0], count.cumsum()[:-1]]), count)
        places = first + np.arange(len(first))
        self.number, self.owner = len(node), np.repeat(np.arange(len(node)), count)
        self.node, self.signal, self.value = matrix.indices[places], np.repeat(signal, count), matrix.data[places]

    def product(self, x: np.ndarray) -> np.ndarray:  # (d, signals) -> (entries,)
        """The matrix times each entry's own signal."""
        return np.bincount(self.owner, self.value * x[self.node, self.signal], self.number)


def neighbourly(x: np.ndarray, weights: sp.csr_array, rounds: int = 3) -> np.ndarray:  # (samples, d) twice
    """Gaps filled with the mean of what neighbours have, theirs included; with 0 where none has anything."""
    result = np.array(x)
    for some in blocks(*x.shape):
        node, signal = np.nonzero(np.isnan(x[some]).T)
        if not len(node):
            continue
        near = Rows(weights, node, signal)
        filled, known = np.nan_to_num(x[some]).T, (~np.isnan(x[some])).T
        for _ in range(rounds):
            total, sums = near.product(known), near.product(filled * known)
            filled[node, signal] = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
            known[node, signal] |= total > 0
        result[some] = filled.T
    return result


def drawn(reference: Sparse, x: np.ndarray, filled: np.ndarray, random: Stream) -> np.ndarray:  # (samples, d) thrice
    """Signals ``x`` with their gaps drawn given the rest, from how they were ``filled`` before.

    First ``f`` given the signals as they were filled, then what is hidden of ``e = x - V f`` given the rest of it
    (Gibbs). With ``Q = R^T R`` and standard normal ``xi``

        Q_hh e_h = (R^T xi)_h - Q_ho e_o

    has the mean and, as ``Q_hh`` is ``R_h^T R_h``, the covariance of that.
    """
    result, V, d = np.array(x), torch.from_numpy(reference.modes), x.shape[1]
    for some in blocks(*x.shape):
        noise = random.normal(range(len(x))[some], d + V.shape[1])
        mean, spread = reference.factors(torch.from_numpy(filled[some].T.astype(np.float64)))
        f = mean + torch.linalg.cholesky(spread) @ noise[:, d:].T if V.shape[1] else mean
        wide, hidden = (V @ f).numpy(), np.isnan(x[some]).T  # (d, signals)
        e = np.where(hidden, 0.0, np.nan_to_num(x[some].T) - wide)
        e = _hidden(reference.precision.Q, reference.precision.half, hidden, e, noise[:, :d].numpy().T)
        result[some] = np.where(hidden, wide + e, x[some].T).T
    return result


def _hidden(
    Q: sp.csr_array, half: sp.csr_array, hidden: np.ndarray, e: np.ndarray, xi: np.ndarray
) -> np.ndarray:  # (d, signals) each, ``e`` 0 where it is hidden
    """What is hidden of each signal, 0 elsewhere: each misses others, and their systems are the blocks of one.

    It is well conditioned, for what is hidden hangs on what is seen beside it, and some digits are enough for a fit.
    """
    node, signal = np.nonzero(hidden)
    place = np.full(hidden.shape, -1, dtype=np.int64)
    place[node, signal] = np.arange(len(node))
    rows = Rows(Q, node, signal)
    right = Rows(half, node, signal).product(xi) - rows.product(e)
    column = place[rows.node, rows.signal]
    kept = column >= 0
    system = sp.csr_array((rows.value[kept], (rows.owner[kept], column[kept])), shape=(len(node),) * 2)
    u = np.zeros_like(e)
    u[node, signal] = factors.Iterative(system, DIGITS).solve(right[:, None])[:, 0]
    return u
