"""Coefficients of features of a row, the same for all columns but for what a column shows by itself: empirical Bayes.

Readings ``y_i`` in units of a column's own spread, features turned to axes ``P`` that are uncorrelated over what was
observed and have unit variance. On every axis, for all columns together and for each by itself,

    b = G^-1 P^T y        d_i = (G_i + I)^-1 P^T (y_i - P b)         G, G_i: sums of P P^T over what was observed
    b_i = w b + w_i d_i

(the identity is one reading's worth of being like all others). Weights are one less the share of noise,

    w = (1 - v / b^2)_+                w_i = tau^2 / (tau^2 + v_i)        tau^2 = (mean of d_i^2 - v_i)_+

and the noise ``v`` is measured, not assumed: readings in a row are alike, and so are columns. Rows are cut into about
``sqrt(rows)`` blocks; how the blocks' shares ``G^-1 P_block^T e_block`` of a coefficient scatter is its variance,
however long memory is, up to the length of a block. Features that only repeat others have no axis of their own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

AXIS = 1e-6  # variance, of the largest, under which an axis is none
ROWS = 4  # at least, for an axis
CHUNK = 1 << 22  # products of features taken together


def coefficients(values: Tensor, features: Tensor) -> Tensor:  # (features, columns)
    """What one more of a feature adds to a column: ``values`` (rows, columns) in the order of time with NaN where
    missing, ``features`` (rows, features) without gaps, both about their means."""
    y, seen, size = _scaled(values)
    turn = _axes(features, seen.sum(1), len(values) // ROWS)
    P = features @ turn
    if not P.shape[1]:
        return features.new_zeros(features.shape[1], values.shape[1])
    blocks = block_count(len(P), P.shape[1])
    G, product = _grams(P, seen), P.T @ y
    b, total = product.sum(1) / seen.sum(), seen.sum()
    common = _blocked(P, (y - seen * (P @ b)[:, None]).sum(1, keepdim=True), blocks)[..., 0] / total
    v = _noise(common, P.shape[1])
    shared = torch.where(b.square() > v, b - v / b, 0.0)

    rest = product.T - G @ b
    G = G + torch.eye(P.shape[1], dtype=G.dtype, device=G.device)
    own = torch.linalg.solve(G, rest)  # (columns, axes)
    error = y - seen * (P @ (b[:, None] + own.T))
    shares = torch.linalg.solve(G, _blocked(P, error, blocks).permute(2, 1, 0))  # (columns, axes, blocks)
    v_own = _noise(shares.permute(2, 0, 1), P.shape[1])
    count = seen.sum(0)[:, None]
    tau2 = ((count * (own.square() - v_own)).sum(0) / count.sum().clamp(min=1)).clamp(min=0)
    own = own * torch.where(tau2 > 0, tau2 / (tau2 + v_own), 0.0)
    return turn @ (shared[:, None] + own.T) * size


def worth(values: Tensor, features: Tensor) -> Tensor:  # (features,)
    """How much each feature explains by itself: its squared coefficient less the noise in it, in units of the columns'
    and of its own variance, over all columns."""
    y, seen, _ = _scaled(values)
    size = features.square().mean(0).sqrt()
    f = features / torch.where(size > 0, size, 1.0)
    count = seen.sum(0)
    shares = _blocked(f, y, block_count(len(f), 1)) / (seen.T @ f.square()).T.clamp(min=1)
    beyond = shares.sum(0).square() - _noise(shares - shares.mean(0), 1)
    return (beyond * count).sum(1) / count.sum().clamp(min=1)


def order(values: Tensor, features: Tensor, most: int) -> list[int]:
    """The features, at most so many, that explain most: each the one that is worth most beside those before it."""
    y, seen, _ = _scaled(values)
    f, chosen = features.clone(), list[int]()
    size = f.square().sum(0)
    for _ in range(min(most, f.shape[1])):
        value = worth(torch.where(seen > 0, y, torch.nan), f)
        value[chosen] = -torch.inf
        best = int(value.argmax())
        chosen.append(best)
        axis = f[:, best].clone()
        y = y - seen * axis[:, None] * (axis @ y) / (seen.T @ axis.square()).clamp(min=1e-12)
        f = f - axis[:, None] * (axis @ f) / axis.square().sum().clamp(min=1e-12)
        f = torch.where(f.square().sum(0) > AXIS * size, f, 0.0)  # the rest of one that repeats others is rounding
    return chosen


def block_count(rows: int, axes: int) -> int:
    """Into how many blocks rows are cut: more than twice as many as there are axes."""
    return min(rows, max(math.ceil(math.sqrt(rows)), 2 * axes + 2))


def _scaled(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Readings in units of their column's spread, 0 where missing; what is observed, and the spread (columns,)."""
    seen = (~values.isnan()).double()
    filled = values.nan_to_num()
    size = (filled.square().sum(0) / seen.sum(0).clamp(min=1)).sqrt()
    return filled / torch.where(size > 0, size, 1.0), seen, size


def _axes(features: Tensor, weight: Tensor, most: int) -> Tensor:  # (features, axes)
    """From features to axes that are uncorrelated and have unit variance, where rows have a ``weight`` (rows,)."""
    size = features.square().mean(0).sqrt()
    scale = torch.where(size > 0, 1 / torch.where(size > 0, size, 1.0), 0.0)
    f = features * scale
    v, V = torch.linalg.eigh((f * weight[:, None]).T @ f / weight.sum().clamp(min=1))
    keep = torch.nonzero(v > AXIS * v[-1:].clamp(min=AXIS))[:, 0]
    keep = keep[max(0, len(keep) - most) :]
    return scale[:, None] * V[:, keep] / v[keep].sqrt()


def _grams(P: Tensor, seen: Tensor) -> Tensor:  # (columns, axes, axes)
    """Sums of products of axes over each column's readings."""
    rows, axes = P.shape
    total = P.new_zeros(seen.shape[1], axes * axes)
    step = max(1, CHUNK // axes**2)
    for first in range(0, rows, step):
        part = P[first : first + step]
        total += seen[first : first + step].T @ (part[:, :, None] * part[:, None]).flatten(1)
    return total.view(-1, axes, axes)


def _blocked(P: Tensor, error: Tensor, blocks: int) -> Tensor:  # (blocks, axes, columns)
    """``P^T error`` of about so many blocks of rows."""
    length = math.ceil(len(P) / blocks)
    lack = -len(P) % length
    P, error = (torch.cat([part, part.new_zeros(lack, part.shape[1])]) for part in (P, error))
    return P.view(-1, length, P.shape[1]).mT @ error.view(-1, length, error.shape[1])


def _noise(shares: Tensor, axes: int) -> Tensor:
    """The variance of a sum of shares (blocks, ...) that are about 0, after so many axes were fitted."""
    blocks = len(shares)
    return shares.square().sum(0) * blocks / max(1, blocks - axes)
