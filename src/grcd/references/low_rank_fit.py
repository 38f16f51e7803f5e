"""A low-rank reference of windows that are too large for a covariance of their own.

Leading principal modes of training windows, one variance for all other directions. Gaps are drawn given what was
observed, by a reference that is there already (a separable one). With fewer windows than readings the modes come from
the windows' inner products, so that nothing grows faster than ``d RANK`` and ``windows^2``; variances are shrunk
towards their mean as far as so many windows can tell (Ledoit and Wolf, see ``covariance``).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..core.streams import Stream
from . import probes
from .gaussian import LowRank
from .probes import Products

RANK, WINDOWS = 256, 1024  # modes, and windows that they are taken from, at most


def completed(windows: Tensor, filler: Products, seed: int = 0) -> Tensor:  # (windows, d) twice
    """Gaps drawn given what was observed."""
    noise = Stream(seed, "gaps of windows", windows.device).normal(range(len(windows)), windows.shape[1])
    return probes.completed(filler, windows, noise)


def fit(windows: Tensor, rank: int = RANK, least: float = 1e-3) -> LowRank:  # (windows, d), complete
    """At most ``rank`` modes of windows, z-scores about zero; no variance is below ``least``."""
    (n, d), x = windows.shape, windows.double()
    rank = min(rank, n // 2, d - 1)
    gram = x @ x.T if n < d else x.T @ x
    energies, vectors = torch.linalg.eigh(gram)
    v, lead = energies[-rank:] / n, vectors[:, -rank:]
    B = torch.linalg.qr(x.T @ lead if n < d else lead).Q
    mean = x.square().sum() / (n * d)
    error = (x.square().sum(1).square().mean() - gram.square().sum() / n**2) / n
    distance = (gram.square().sum() / n**2 - d * mean**2).clamp(min=1e-12)
    share = float((error / distance).clamp(0, 1))
    v = ((x @ B).square().mean(0) * (1 - share) + share * mean).clamp(min=least)
    rest = ((d * mean - v.sum()) / (d - rank)).clamp(min=least)
    return LowRank(torch.cat([v, rest[None]]), B.contiguous())
