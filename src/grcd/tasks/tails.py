"""How far off a candidate may be: standard deviations times a number, and tails as heavy as its errors have.

A line in time is nearly exact most of the time and far off after a jump: a Gaussian of its mean squared error is too
wide for the one and too narrow for the other, and scores worse than no spread at all. So what a candidate draws, ``u``
standard deviations from its mean, goes to

    spread * sinh(tail u) / tail,        tail = 0: spread * u

which is monotone: medians stay, mirror images stay mirror images, and draws hang together in time as they did. Both
numbers have the least CRPS in hidden readings; that of a distribution with quantiles ``x_p`` is

    CRPS(y) = 2 E_p (1[y < x_p] - p) (x_p - y)

And where errors are skew (counts that are mostly zero: their mean is no median), the median is ``shift`` standard
deviations from the mean, if the absolute error is noticeably less by it. That is the median of errors less their own
mean: what they are off by on the average may be an accident of these rows, their shape is not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..core.rows import evenly

TAILS = (0.0, 0.5, 1.0, 1.5, 2.0)
SPREADS = 24
LEVELS = 40  # quantiles that stand for a distribution
MOST = 10_000  # readings that are looked at
NOTICEABLE = 0.02  # of the absolute error
INNER = 0.6745  # of a standard normal number, half of the absolute values are below this


def stretched(u: Tensor, tail: float | Tensor) -> Tensor:
    """``sinh(tail u) / tail``, of numbers or one for each column."""
    tail = torch.as_tensor(tail, dtype=u.dtype, device=u.device)
    return torch.where(tail > 0, torch.sinh(tail * u) / tail.clamp(min=1e-12), u)


def fitted(away: Tensor, sd: Tensor) -> tuple[float, float, float]:
    """Spread, tail and shift, of readings so far from the mean (readings,) where standard deviations are these."""
    some = torch.from_numpy(evenly(len(away), MOST)).to(away.device)
    away, sd = away[some], sd[some]
    shift = _shift(away, sd)
    away = away - shift * sd
    size = (away / sd).abs()
    widest = float(size.square().mean().sqrt())
    if widest == 0:
        return 1.0, 0.0, shift
    inner = max(float(size.median()) / INNER, 1e-3 * widest)
    spreads = torch.logspace(0, 1, SPREADS, base=1.5 * widest / (0.3 * inner)).tolist()
    tried = [(crps(away, 0.3 * inner * k * sd, tail), 0.3 * inner * k, tail) for tail in TAILS for k in spreads]
    _, spread, tail = min(tried)
    return spread, tail, shift


def _shift(away: Tensor, sd: Tensor) -> float:
    """The median of ``away / sd`` about its mean, weighed by ``sd``; 0 where that gains little."""
    centred = away - away.mean() / sd.mean() * sd
    leaning, order = (centred / sd).sort()
    weight = sd[order].cumsum(0)
    shift = float(leaning[torch.searchsorted(weight, weight[-1:] / 2).clamp(max=len(weight) - 1)])
    less = [(each - shift * sd).abs().mean() < (1 - NOTICEABLE) * each.abs().mean() for each in (centred, away)]
    return shift if all(less) else 0.0


def crps(away: Tensor, sd: Tensor, tail: float) -> float:
    """The mean over readings so far from the median, where deviations are ``stretched`` and so large."""
    p = (torch.arange(LEVELS, dtype=away.dtype, device=away.device) + 0.5) / LEVELS
    x = sd[:, None] * stretched(torch.special.ndtri(p), tail)
    y = away[:, None]
    return float((2 * ((y < x).to(x) - p) * (x - y)).mean())
