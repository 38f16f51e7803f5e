"""Unbiased MMD^2 of one-dimensional samples with a sum of five RBF kernels (appendix A.6.5).

    MMD^2 = mean_{i != j} k(x_i, x_j) + mean_{i != j} k(y_i, y_j) - 2 mean_{ij} k(x_i, y_j)
    k(x, y) = sum_m exp(-(x - y)^2 / (2 s_m^2)),      s_m = 10^{-1, -1/2, 0, 1/2, 1} x median

where the median, unless it is given, is over the positive pairwise distances of the pooled sample. Being unbiased it
may come out slightly below zero. The samples are numbers, which allows two exact short cuts: successive bandwidths
differ by ``sqrt(10)``, so each kernel is the tenth power of the next wider one (one exponential a pair, not five), and
the median of all pairwise distances is found by bisection on the sorted sample, without forming them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MULTIPLIERS = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 26}  # pairs held at a time: 2 MB a buffer stays in the cache, 512 MB fills a GPU


def mmd2(x: Tensor, y: Tensor, bandwidth: float | None = None) -> float:
    """Unbiased MMD^2 between two samples of numbers (n,) and (m,), in float64.

    ``bandwidth`` takes the place of the pooled median, unless it is 0: that of numbers that are all the same.
    """
    x, y = x.double(), y.double()
    bandwidth = bandwidth or median_distance(torch.cat([x, y]))
    if bandwidth == 0.0:  # all values of both samples are one number
        return 0.0
    x, y = x - x[0], y - x[0]  # distances are what counts: a common offset would cost digits
    widest = bandwidth * MULTIPLIERS[-1]
    n, m, five = len(x), len(y), len(MULTIPLIERS)
    xx = (kernel_sum(x, x, widest) - five * n) / (n * (n - 1))  # the diagonal holds ones
    yy = (kernel_sum(y, y, widest) - five * m) / (m * (m - 1))
    return xx + yy - 2 * kernel_sum(x, y, widest) / (n * m)


def kernel_sum(x: Tensor, y: Tensor, widest: float) -> float:
    """``sum_ij k(x_i, y_j)`` for the five kernels whose widest bandwidth is ``widest``."""
    x, y = x / (widest * 2**0.5), y / (widest * 2**0.5)
    total = torch.zeros((), dtype=torch.float64, device=x.device)
    for part in x.split(max(1, BLOCK[x.device.type] // len(y))):
        k = (part[:, None] - y).square_().neg_().exp_()
        total += k.sum()
        for _ in MULTIPLIERS[1:]:
            k.square_()
            k *= k.square().square_()  # k^2 (k^2)^4 = k^10
            total += k.sum()
    return float(total)


def median_distance(values: Tensor) -> float:
    """Median of the positive pairwise distances: the mean of the two middle ones if their number is even."""
    v = np.sort(values.cpu().numpy())
    n = len(v)
    zero = _pairs_within(v, 0.0)
    positive = n * (n - 1) // 2 - zero
    if positive == 0:
        return 0.0
    lower, upper = (_kth_distance(v, zero + k) for k in ((positive - 1) // 2, positive // 2))
    return (lower + upper) / 2


def _within(v: np.ndarray, radius: float) -> np.ndarray:  # (n,)
    """For each value of the sorted sample: the end of the stretch after it that is at most ``radius`` away."""
    return np.maximum(np.searchsorted(v, v + radius, side="right"), np.arange(1, len(v) + 1))


def _pairs_within(v: np.ndarray, radius: float) -> int:
    return int(_within(v, radius).sum()) - len(v) * (len(v) + 1) // 2


def _kth_distance(v: np.ndarray, k: int) -> float:
    """The ``k``-th smallest pairwise distance (from 0): bisection until few pairs are left, which are then sorted."""
    low, high = -1.0, 2 * float(v[-1] - v[0])  # v[0] + (v[-1] - v[0]) may round below v[-1]
    while _pairs_within(v, high) - _pairs_within(v, low) > 4 * len(v) and low < (low + high) / 2 < high:
        middle = (low + high) / 2
        low, high = (middle, high) if _pairs_within(v, middle) <= k else (low, middle)
    if not low < (low + high) / 2 < high:  # nothing lies between: all that is left are ties
        return high
    start, stop = _within(v, low), _within(v, high)
    left = np.repeat(np.arange(len(v)), stop - start)
    first = np.cumsum(stop - start) - (stop - start)
    right = np.arange(len(left)) + (start - first)[left]
    return float(np.sort(v[right] - v[left])[k - _pairs_within(v, low)])
