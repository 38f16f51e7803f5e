"""Filters on graphs too large for an eigenbasis: polynomials in the Laplacian, by sparse products.

With ``S = L / lambda_max``, whose frequencies lie on [0, 1], a filter ``f(S) x`` is a Chebyshev series in ``2 S - I``:
one sparse product a degree, and as many degrees as ``f`` takes for ``TOLERANCE``. The paper's ``A_t`` takes some
twenty, for its nearest singularity is at ``-(delta + sigma^2 / q^2)``, well to the left of 0.

``LargeSpectrum`` stands where a graph has a ``Spectrum``; frequencies and modes it has none, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from ..core.errors import InputError
from .kronecker import Kronecker

TOLERANCE, DEGREES = 1e-12, (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def largest_eigenvalue(L: sp.csr_array) -> float:
    """Of a symmetric sparse matrix, by Lanczos, from a start that is the same every time."""
    if L.shape[0] < 3 or L.nnz == 0:
        return float(np.linalg.eigvalsh(L.toarray()).max(initial=0.0))
    start = np.random.default_rng(0).standard_normal(L.shape[0])
    values = eigsh(L, k=1, which="LA", v0=start, tol=1e-8, maxiter=100_000, return_eigenvectors=False)
    return float(values[0])


class Polynomials(Kronecker):
    """Stands where a basis does on a large graph: it filters, but has no coefficients. ``S`` is sparse, (d, d)."""

    def __init__(self, S: sp.csr_array, device: torch.device | str = "cpu"):
        self.S, self._where = S, torch.device(device)

    @cached_property
    def matrix(self) -> Tensor:  # (d, d) sparse
        """``S`` on the device, in float64."""
        return sparse_tensor(self.S).to(self._where)

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self.S.shape)

    def __len__(self) -> int:
        return int(self.S.shape[0])

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64

    @property
    def device(self) -> torch.device:
        return self._where

    @property
    def is_cuda(self) -> bool:
        return self._where.type == "cuda"

    @property
    def T(self) -> NoReturn:
        refuse(len(self))

    def to(self, *where: Any) -> Polynomials:
        devices = [each for each in where if isinstance(each, torch.device | str)]
        return Polynomials(self.S, devices[0]) if devices else self

    def contiguous(self) -> Polynomials:
        return self

    def applied(self, x: Tensor) -> NoReturn:
        refuse(len(self))

    __rmatmul__ = applied

    def __matmul__(self, x: Tensor) -> NoReturn:
        refuse(len(self))

    def whole(self) -> NoReturn:
        refuse(len(self))

    def filtered(self, x: Tensor, gain: Callable[[Tensor], Tensor]) -> Tensor:  # (..., d) twice
        """``f(S) x``: ``gain`` takes frequencies (points,) to (..., points), for all signals or for each its own."""
        c = series(lambda s: gain(s.to(x.device)))  # (degrees + 1, ...)
        rows = x.reshape(-1, x.shape[-1]).double().T  # (d, signals)
        c = c.reshape(len(c), -1)  # (degrees + 1, 1 or signals)
        before, now = rows, 2 * (self.matrix @ rows) - rows
        total = c[0] * before + c[1] * now
        for each in c[2:]:
            before, now = now, 2 * (2 * (self.matrix @ now) - now) - before
            total = total + each * now
        return total.T.reshape(x.shape)


def series(function: Callable[[Tensor], Tensor]) -> Tensor:  # (degree + 1, ...)
    """Chebyshev coefficients on [0, 1] of a function of (points,) to (..., points), to ``TOLERANCE``."""
    for degree in DEGREES:
        k = torch.arange(degree + 1, dtype=torch.float64)
        angle = torch.pi * (k + 0.5) / (degree + 1)
        values = function((angle.cos() + 1) / 2)  # (..., points)
        cosines = torch.cos(k[:, None] * angle).to(values)  # (degree + 1, points)
        c = torch.einsum("kp,...p->k...", cosines, values) * 2 / (degree + 1)
        c[0] /= 2
        if c[-2:].abs().max() <= TOLERANCE * c.abs().max():
            break
    return c


def sparse_tensor(matrix: sp.csr_array) -> Tensor:  # (rows, columns) sparse
    """As torch has it."""
    entries = sp.coo_array(sp.csr_array(matrix, copy=True))
    places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    values = torch.from_numpy(entries.data)
    return torch.sparse_coo_tensor(places, values, entries.shape, check_invariants=True, is_coalesced=True)


def refuse(nodes: int) -> NoReturn:
    """Whoever asks for all frequencies of a large graph."""
    raise InputError(
        f"all frequencies of a graph of {nodes:,} nodes",
        "a method that does without: grcd",
        "take the method grcd, whose reference is sparse on large graphs, or a smaller graph",
    )
