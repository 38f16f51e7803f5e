"""The paper's reference of signals that are too large for a covariance: variances of projections on the basis.

With ``x`` centred, ``v_i = mean (b_i^T x)^2``, shrunk as Ledoit and Wolf shrink a covariance (see ``covariance``): all
that they ask of ``S = X^T X / n`` is its trace and ``|S|_F = |X X^T|_F / n``, of inner products of signals. No matrix
of ``d^2`` numbers is formed, and the result is that of the whole covariance.

**Gaps** are drawn given what was observed, under the variances that there are, and variances taken again, ``ROUNDS``
times from variances that are all alike: an expectation-maximisation with draws.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..core.rows import evenly, observed_mean
from ..core.streams import Stream
from ..graphs.graph import Spectrum
from .covariance import EPS_REF
from .gaussian import Spectral

LARGE = 2048  # numbers of a signal above which no covariance is formed
SIGNALS, ROUNDS, CHUNK = 2048, 3, 64  # signals, at most; draws of their gaps; and how many are drawn for together


def spectral_by_projection(signals: np.ndarray, spectrum: Spectrum, eps_ref: float = EPS_REF) -> Tensor:  # (modes,)
    """The paper's variances of z-scored signals (samples, d), NaN where missing."""
    rows = signals[np.asarray(evenly(len(signals), SIGNALS))]
    x = torch.from_numpy(np.asarray(rows - observed_mean(rows)[1], dtype=np.float64))
    basis, missing = spectrum.basis.contiguous(), x.isnan()
    v = torch.full((x.shape[1],), float(x[~missing].square().mean()), dtype=torch.float64)
    for number in range(ROUNDS if missing.any() else 1):
        whole = _drawn(Spectral(v, basis), x, Stream(number, "gaps of projections")) if missing.any() else x
        v = torch.from_numpy(spectrum.average(_shrunk(whole, (whole @ basis).square().mean(0)).numpy())) + eps_ref
    return v


def _drawn(reference: Spectral, x: Tensor, random: Stream) -> Tensor:
    """Signals with their gaps drawn given the rest."""
    parts = list[Tensor]()
    for first in range(0, len(x), CHUNK):
        some = x[first : first + CHUNK]
        noise = random.normal(range(first, first + len(some)), x.shape[1])
        draws = reference.posterior(some, ~some.isnan(), noise[:, None]).draws
        assert draws is not None
        parts.append(draws[:, 0])
    return torch.cat(parts)


def _shrunk(x: Tensor, v: Tensor) -> Tensor:
    """Variances ``v`` of projections of complete signals ``x`` (samples, d) towards their mean."""
    (n, d), m = x.shape, v.mean()
    squared = (x @ x.T).square().sum() / n**2  # |S|_F^2
    error = (x.square().sum(1).square().mean() - squared) / n
    distance = squared - d * m**2
    share = torch.where(distance > 0, (error.clamp(min=0) / distance).clamp(max=1), 0.0)
    return (1 - share) * v + share * m
