"""The basis of a product graph, ``A (x) B (x) ...``: a matrix that is never formed.

With ``d = d_1 d_2 ...`` a row of ``d`` numbers is an array ``(d_1, d_2, ...)``, and the product with the whole matrix
is one product a factor, each along its own axis: ``d (d_1 + d_2 + ...)`` operations in place of ``d^2``, and as many
numbers in memory as the factors have. It stands wherever a basis is multiplied with: ``x @ K``, ``K @ x`` and ``K.T``
are those of the matrix. A factor may be a whole number ``n``: the identity of that size, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Basis: TypeAlias = "Tensor | Kronecker"  # (d, modes) orthonormal columns
PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__)  # with a tensor on the left


class Kronecker:
    """``factors``: matrices (d_i, d_i), or sizes of identities; not all of them sizes."""

    def __init__(self, *factors: Tensor | int):
        self.factors = factors
        self._sizes = [factor if isinstance(factor, int) else len(factor) for factor in factors]

    @property
    def _tensor(self) -> Tensor:
        return next(factor for factor in self.factors if isinstance(factor, Tensor))

    @property
    def shape(self) -> torch.Size:
        return torch.Size(2 * [math.prod(self._sizes)])

    def __len__(self) -> int:
        return math.prod(self._sizes)

    @property
    def dtype(self) -> torch.dtype:
        return self._tensor.dtype

    @property
    def device(self) -> torch.device:
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        return self._tensor.is_cuda

    @property
    def T(self) -> Kronecker:
        return Kronecker(*(factor if isinstance(factor, int) else factor.T for factor in self.factors))

    mT = T

    def to(self, *where: Any) -> Kronecker:
        """On another device, or in another precision."""
        return Kronecker(*(factor if isinstance(factor, int) else factor.to(*where) for factor in self.factors))

    def contiguous(self) -> Kronecker:
        return Kronecker(*(factor if isinstance(factor, int) else factor.contiguous() for factor in self.factors))

    def applied(self, x: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """``x K``, one axis after the other."""
        y = x.reshape(*x.shape[:-1], *self._sizes)
        for axis, factor in enumerate(self.factors, start=-len(self.factors)):
            if isinstance(factor, Tensor):
                y = y @ factor if axis == -1 else (y.movedim(axis, -1) @ factor).movedim(-1, axis)
        return y.reshape(x.shape)

    __rmatmul__ = applied  # torch comes here by itself; a reader and a type checker are told

    def __matmul__(self, x: Tensor) -> Tensor:  # (..., d, n) -> (..., d, n)
        return self.T.applied(x.mT).mT

    def whole(self) -> Tensor:  # (d, d)
        """The matrix itself, where it is small."""
        return self.applied(torch.eye(len(self), dtype=self.dtype, device=self.device))

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Products of a tensor with it; torch hands them over because of this method."""
        if function not in PRODUCTS or not isinstance(args[0], Tensor) or not isinstance(args[1], Kronecker):
            return NotImplemented
        return args[1].applied(args[0])


def dense(basis: Basis) -> Tensor:  # (d, modes)
    """A basis as one matrix."""
    return basis if isinstance(basis, Tensor) else basis.whole()
