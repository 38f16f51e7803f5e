"""Regressions on neighbours, in space and in time: the sparse precision of signals on a large graph, and of windows.

**Space.** Nodes are taken along a sweep of the graph (reverse Cuthill-McKee), so that each has neighbours both before
and after it, and each is regressed on up to ``MOST`` of the nodes within two steps that come later, the nearest first.
No second step goes through a hub: all that it links would be linked with each other, as many pairs as the square.

**Time.** In a window each reading is regressed on those neighbours, and on itself and the same neighbours in up to
``lags`` rows before. If rows follow ``x_t = Phi x_(t-1) + e_t``, with a number ``phi`` a node and ``e`` of the
precision ``(I - A)^T D^-1 (I - A)``, then ``x_t = A x_t + (I - A) Phi x_(t-1) + D^1/2 xi``: an autoregression in
time (x) space is exactly of this kind. The coefficients are the same in all rows but the first ones, which have fewer
rows before them, and are learned from all rows together. Rows are taken from the last to the first, so that the
window's ``A`` is strictly triangular again, and its determinant a product (see ``precision``).

All of that is local: a batch of small systems. Their diagonals are raised by a ridge, the one under which validation
signals are most probable.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core import factors, threads
from .precision import Regressions

MOST = 16  # nodes that one is regressed on
HUB = 256  # neighbours; a node with more of them is one
IN_TIME = 8  # and in every row of a window
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the diagonal
LEAST = 1e-6  # variance that is left of a z-score, at least
ENTRIES = 1 << 20  # of gathered signals at a time


class Neighbours:
    """Whom each reading is regressed on, in a signal of ``steps`` rows on a graph with these ``weights`` (n, n)."""

    def __init__(self, weights: sp.csr_array, steps: int = 1, lags: int = 0):
        self.nodes, self.steps, self.lags = weights.shape[0], steps, min(lags, steps - 1)
        sweep = factors.sweep(weights)
        self.sweep = torch.from_numpy(sweep)
        self.near = torch.from_numpy(later_neighbours(weights, sweep, MOST if steps == 1 else IN_TIME))
        self.order = np.concatenate([step * self.nodes + sweep for step in reversed(range(steps))])

    def regressed(self, e: Tensor, val: Tensor, modes: Tensor, spread: Tensor) -> Regressions:
        """Of signals ``e`` (d, samples), whose second moments have ``modes spread modes^T`` added; ``val`` (d, samples)
        chooses the ridge."""
        added = modes @ torch.linalg.cholesky(spread) if modes.shape[1] else modes
        parts = []
        for lags in range(self.lags + 1):
            times = range(lags, lags + 1 if lags < self.lags else self.steps)
            y, seen, more = (self._stacked(x, times, lags) for x in (e, val, added))
            parents = self._parents(lags)
            a, d = solved(y, seen, more / len(times) ** 0.5, parents, self.sweep)
            parts += [(time, a, d, parents) for time in times]
        return self._assembled(parts)

    def _parents(self, lags: int) -> Tensor:  # (nodes, parents)
        """``lag nodes + node`` of the readings that one is regressed on; -1 where there are fewer."""
        own = torch.cat([torch.arange(self.nodes)[:, None], self.near], 1)
        before = [torch.where(own >= 0, own + lag * self.nodes, -1) for lag in range(1, lags + 1)]
        return torch.cat([self.near, *before], 1)

    def _stacked(self, x: Tensor, times: range, lags: int) -> Tensor:  # (d, k) -> ((1 + lags) nodes, times k)
        """Readings of these rows, of the rows before them, and so on."""
        rows = x.view(self.steps, self.nodes, -1)
        each = [rows[times.start - lag : times.stop - lag].transpose(0, 1).flatten(1) for lag in range(lags + 1)]
        return each[0] if lags == 0 else torch.cat(each)

    def _assembled(self, parts: list[tuple[int, Tensor, Tensor, Tensor]]) -> Regressions:
        """The regressions of all rows as one: of each row its coefficients, variances and parents."""
        row, column, value = [], [], []
        for time, a, _, parents in parts:
            node, place = (parents >= 0).nonzero(as_tuple=True)
            lag = parents[node, place] // self.nodes
            row.append(time * self.nodes + node)
            column.append((time - 2 * lag) * self.nodes + parents[node, place])
            value.append(a[node, place])
        entries = torch.cat(value).numpy(), (torch.cat(row).numpy(), torch.cat(column).numpy())
        A = sp.csr_array(entries, shape=(self.steps * self.nodes,) * 2)
        A.sort_indices()
        return Regressions(A, torch.cat([d for _, _, d, _ in parts]).numpy(), self.order)


def solved(e: Tensor, val: Tensor, more: Tensor, parents: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients (nodes, parents) and what variance they leave (nodes,), of the first rows of ``e`` (rows, samples).

    Second moments have ``more more^T`` added, ``more`` (rows, k); the ridge is the one under which ``val``
    (rows, samples) is most probable; ``parents`` (nodes, parents) are rows, -1 where there are fewer. Nodes are taken
    in an ``order`` (nodes,) in which neighbours are near each other: what one needs is in a cache for the next.
    """
    (nodes, most), samples = parents.shape, e.shape[1]

    def of_block(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # by ridge: (., block, most), (., block), (.)
        family = torch.cat([rows[:, None], parents[rows]], 1)  # (block, 1 + most)
        there, family = (family >= 0).double(), family.clamp(min=0)
        y, w = e[family], more[family]
        second = (y @ y.mT).double() / samples + w @ w.mT  # in float32: the ridge is a thousand times its rounding
        second = second * (there[:, :, None] * there[:, None, :])
        own, across = second[:, 0, 0], second[:, 1:, :1]
        among = second[:, 1:, 1:] + torch.diag_embed(1 - there[:, 1:])
        size, seen = among.diagonal(dim1=1, dim2=2), val[family] * there[..., None]
        degrees = (samples - there[:, 1:].sum(1)).clamp(min=1) / samples
        a, d, score = [], [], []
        for ridge in RIDGES:
            weights = torch.linalg.solve(among + torch.diag_embed(ridge * size + LEAST**2), across)
            left = own - 2 * (weights * across).sum((1, 2)) + (weights.mT @ among @ weights)[:, 0, 0]
            left = (left / degrees).clamp(min=LEAST)
            off = seen[:, 0] - (weights.mT @ seen[:, 1:])[:, 0]
            a.append(weights[..., 0] * there[:, 1:])
            d.append(left)
            score.append(-(left.log()[:, None] + off.square() / left[:, None]).sum())
        return torch.stack(a), torch.stack(d), torch.stack(score)

    blocks = order.split(max(1, ENTRIES // ((most + 1) * (samples + val.shape[1]))))
    found = threads.each(of_block, blocks)
    best = int(torch.stack([score for _, _, score in found]).sum(0).argmax())
    a, d = torch.zeros(nodes, most, dtype=torch.float64), torch.zeros(nodes, dtype=torch.float64)
    for rows, (weights, left, _) in zip(blocks, found, strict=True):
        a[rows], d[rows] = weights[best], left[best]
    return a, d


def later_neighbours(weights: sp.csr_array, order: np.ndarray, most: int = MOST) -> np.ndarray:  # (nodes, most)
    """Up to ``most`` nodes within two steps that come later in the order, -1 where there are fewer: direct neighbours
    first, and by weight."""
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    near = sp.csr_array(weights / max(weights.max(), 1e-300)) if weights.nnz else weights
    through = np.diff(near.indptr) <= HUB
    far = sp.csr_array(near[:, through] @ near[through])
    pairs = sp.coo_array(near.sign() + near + far / (1 + far.max())) if far.nnz else sp.coo_array(near)
    kept = place[pairs.col] > place[pairs.row]
    row, col, score = pairs.row[kept].astype(np.int64), pairs.col[kept].astype(np.int64), pairs.data[kept]
    ranked = np.lexsort((place[col], -score, row))
    row, col = row[ranked], col[ranked]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(n))[row]
    kept = rank < most
    parents = np.full((n, int(rank[kept].max(initial=0)) + 1), -1, dtype=np.int64)
    parents[row[kept], rank[kept]] = col[kept]
    return parents
