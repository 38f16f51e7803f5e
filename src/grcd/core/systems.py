"""Many linear systems at once, each on its own choice of rows of one symmetric positive definite matrix.

    (A u)_k = b_k  on the kept rows,     u = 0  on the others

What gaps and observations come down to: every signal has its own mask, and so its own system. Systems of one size are
factored together (Cholesky), the smaller ones filled up with rows of the identity, which change neither solution nor
determinant. Where all masks are the same there is one system, factored once. A system that is singular up to rounding
is an error, ``LinAlgError``.
"""

from __future__ import annotations

import torch
from torch import Tensor

Singular = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # public, but not listed as such

BYTES = 1 << 26  # of the systems solved together; indices, masks and factors take up to thrice as much
ROUNDING = 1e-13  # of a diagonal entry: what is left of it once all other rows are known, if it is nothing


def solve(A: Tensor, keep: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:  # (m, m), (batch, m), (batch, n, m)
    """``u`` like ``b``, and the logarithms of the systems' determinants (batch,)."""
    if len(keep) > 1 and bool((keep == keep[0]).all()):
        u, size = solve(A, keep[:1], b.flatten(0, 1)[None])
        return u.view_as(b), size.expand(len(b))
    most = max(1, int(keep.sum(1).max())) if len(keep) else 1
    order = keep.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # the kept rows first
    u, sizes = torch.zeros_like(b), torch.zeros_like(b[:, 0, 0])
    for rows in torch.arange(len(b), device=b.device).split(max(1, BYTES // (8 * most**2))):
        at, real = order[rows], keep[rows].gather(1, order[rows])
        K = A[at[:, :, None], at[:, None, :]]
        K *= real[:, :, None] & real[:, None, :]
        K.diagonal(dim1=1, dim2=2)[~real] = 1.0
        root = torch.linalg.cholesky(K)
        pivots = root.diagonal(dim1=1, dim2=2)
        if bool((pivots.square() < ROUNDING * K.diagonal(dim1=1, dim2=2)).any()):
            raise Singular("a row follows from the others, up to rounding")
        right = b[rows].gather(2, at[:, None].expand(-1, b.shape[1], -1)) * real[:, None]
        solution = torch.cholesky_solve(right.mT, root).mT
        u[rows] = u[rows].scatter(2, at[:, None].expand_as(solution), solution)
        sizes[rows] = 2 * pivots.log().sum(1)
    return u, sizes
