"""Sparse precisions: ``Q`` on a graph, a root of its inverse, and its determinant.

**Regressions.** In a given order of the nodes each is regressed on some of those that come later,
``x_j = sum_k a_jk x_k + N(0, d_j)``: with ``A`` strictly upper triangular in that order

    Q = (I - A)^T D^-1 (I - A)         F = (I - A)^-1 D^1/2,   F F^T = Q^-1         log det Q = -sum_j log d_j

so that the Cholesky factor is sparse by construction, whatever the graph, and nothing fills in. (Vecchia's
approximation; exact where the nodes that are left out say nothing more.) A part that no other node is regressed on has
these same regressions: rows to come, given those that are there, need no factor.

**Any other** sparse ``Q``, such as a polynomial in the Laplacian, is factored: with ``Q = G G^T``, ``F = G^-T``.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu
from torch import Tensor

from ..core import factors, threads


class Precision(abc.ABC):
    """``Q`` (d, d). Signals are columns here: arrays (d, k)."""

    Q: sp.csr_array

    @property
    def d(self) -> int:
        return self.Q.shape[0]

    @property
    @abc.abstractmethod
    def log_det(self) -> float:
        """Of ``Q``."""

    @abc.abstractmethod
    def coloured(self, noise: np.ndarray) -> np.ndarray:
        """``F noise``: draws of ``N(0, Q^-1)``."""

    @abc.abstractmethod
    def whitened(self, x: np.ndarray) -> np.ndarray:
        """``F^-1 x``: the way back; ``|F^-1 x|^2 = x^T Q x``."""

    @property
    @abc.abstractmethod
    def half(self) -> sp.csr_array:
        """``F^-T``, sparse: ``Q = F^-T F^-1``."""

    @abc.abstractmethod
    def correlated(self, x: np.ndarray) -> np.ndarray:
        """``Q^-1 x``."""

    @abc.abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What there is to save, by name."""

    def free(self, some: np.ndarray) -> factors.System | None:  # (d,) a mask
        """``Q`` at some unknowns, where it needs no factor; None where it does."""
        return None

    @cached_property
    def largest(self) -> float:
        """A bound on the eigenvalues of ``Q``."""
        return float(abs(self.Q).sum(axis=1).max())

    @cached_property
    def pattern(self) -> sp.csr_array:
        """Who is linked with whom in ``Q``."""
        return factors.without_diagonal(self.Q)

    @cached_property
    def elimination(self) -> np.ndarray:  # (d,)
        """One order of elimination, for ``Q`` with anything on its diagonal, and for any part of that."""
        return factors.elimination(self.pattern)


class Regressions(Precision):
    """``A`` (d, d) sparse, ``D`` (d,) variances, and the ``order`` in which ``A`` is strictly upper triangular."""

    def __init__(self, A: sp.csr_array, D: np.ndarray, order: np.ndarray):
        self.A, self.D, self.order = A, D, order
        self.root = sp.csr_array((sp.eye_array(len(D)) - A) * (D**-0.5)[:, None])  # F^-1
        self.Q = sp.csr_array(self.root.T @ self.root)
        self.Q.sort_indices()

    @property
    def log_det(self) -> float:
        return -float(np.log(self.D).sum())

    @cached_property
    def half(self) -> sp.csr_array:
        return sp.csr_array(self.root.T)

    @cached_property
    def _triangle(self) -> object:
        upper = sp.csc_matrix(self.root[self.order][:, self.order])
        upper.sort_indices()
        # Of a triangle the factor is the triangle: there is nothing to eliminate.
        with threads.single():
            return splu(upper, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def _solved(self, x: np.ndarray, how: str) -> np.ndarray:
        y = np.empty(x.shape, order="F")
        right = np.asfortranarray(x[self.order])
        with threads.single():
            y[self.order] = self._triangle.solve(right, how)  # type: ignore[attr-defined]
        return y

    def coloured(self, noise: np.ndarray) -> np.ndarray:
        return self._solved(noise, "N")

    def whitened(self, x: np.ndarray) -> np.ndarray:
        return self.root @ x

    def correlated(self, x: np.ndarray) -> np.ndarray:
        return self._solved(self._solved(x, "T"), "N")

    def free(self, some: np.ndarray) -> factors.System | None:
        """Where nothing else is regressed on them (the rows to come, or all there is), they follow their own
        regressions."""
        if self.A[~some][:, some].nnz:
            return None
        place = np.cumsum(some) - 1
        return Along(
            Regressions(sp.csr_array(self.A[some][:, some]), self.D[some], place[self.order[some[self.order]]])
        )

    def tensors(self) -> dict[str, Tensor]:
        parts = {"offsets": self.A.indptr, "parents": self.A.indices, "coefficients": self.A.data, "D": self.D}
        return {name: torch.from_numpy(np.array(part)) for name, part in (parts | {"order": self.order}).items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        D, order = (tensors[key].cpu().numpy() for key in ("D", "order"))
        A = _sparse(tensors, "parents", "coefficients", len(D))
        if sorted(order) != [*range(len(D))]:
            raise ValueError("regressions and their order have different sizes")
        place = np.argsort(order)
        if (place[np.repeat(np.arange(len(D)), np.diff(A.indptr))] >= place[A.indices]).any():
            raise ValueError("regressions on nodes that come earlier")
        return cls(A, D, order)


class Along(factors.System):
    """``Q x = b`` along regressions."""

    nonzeros = 0

    def __init__(self, precision: Regressions):
        self.precision = precision

    def solve(self, b: np.ndarray) -> np.ndarray:
        return self.precision.correlated(np.asarray(b, dtype=np.float64))

    @property
    def log_det(self) -> float:
        return self.precision.log_det


class Given(Precision):
    """Any sparse positive definite ``Q``."""

    def __init__(self, Q: sp.csr_array):
        self.Q = Q

    @cached_property
    def _factor(self) -> factors.Factor:
        return factors.Factor(self.Q, self.elimination)

    @property
    def log_det(self) -> float:
        return self._factor.log_det

    @property
    def half(self) -> sp.csr_array:
        return self._factor.root

    def coloured(self, noise: np.ndarray) -> np.ndarray:
        return self._factor.solve(self._factor.root @ noise)

    def whitened(self, x: np.ndarray) -> np.ndarray:
        return self._factor.root.T @ x

    def correlated(self, x: np.ndarray) -> np.ndarray:
        return self._factor.solve(x)

    def tensors(self) -> dict[str, Tensor]:
        parts = {"offsets": self.Q.indptr, "neighbours": self.Q.indices, "precisions": self.Q.data}
        return {name: torch.from_numpy(np.array(part)) for name, part in parts.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        return cls(_sparse(tensors, "neighbours", "precisions", len(tensors["offsets"]) - 1))


def _sparse(tensors: Mapping[str, Tensor], columns: str, values: str, d: int) -> sp.csr_array:
    offsets, where, data = (tensors[key].cpu().numpy() for key in ("offsets", columns, values))
    if len(offsets) != d + 1 or not len(where) == len(data) == offsets[-1]:
        raise ValueError("offsets, columns and values of a sparse matrix have different sizes")
    matrix = sp.csr_array((data, where, offsets), shape=(d, d))
    matrix.check_format(full_check=True)
    return matrix


def from_tensors(tensors: Mapping[str, Tensor]) -> Precision:
    """Either kind, back from what it saved."""
    kind: type[Regressions | Given] = Given if "neighbours" in tensors else Regressions
    return kind.from_tensors(tensors)
