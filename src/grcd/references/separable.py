"""Separable references of windows: time (x) space (x) channels, factors that are never multiplied out.

    Sigma = noise I + K_time (x) K_space (x) K_channels

with eigenbases ``B_t (x) B_s (x) B_c`` and variances ``noise + v_t v_s v_c``: everything a reference is asked costs
``d (steps + nodes + channels)`` a product, and as many numbers in memory as the factors have. What it says of a window
of which some readings are observed is in ``conditioning``.

**Fitted** to lag covariances (see ``lags``), pairwise over gaps: ``K_time`` has ``r_l = tr C_l / tr C_0`` at lag ``l``;
``K_space`` and ``K_channels`` are the means of ``C_0`` over channels and over nodes, scaled so that the trace is that
of ``C_0``. On data that are separable these are the factors. Means over different pairs need not fit together:
eigenvalues of factors below zero are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ..graphs.kronecker import Basis, Kronecker
from .gaussian import Gaussian
from .lags import FLOOR, Shrinkage

AXES = "time", "space", "channels"


@dataclass(frozen=True)
class Separable(Gaussian):
    """``v`` (d,) in a basis of three factors, ``B = B_time (x) B_space (x) B_channels``."""

    @classmethod
    def of(cls, C0: Tensor, correlation: Tensor, by: Shrinkage, channels: int = 1) -> Self:
        """From ``C_0`` (columns, columns) and ``r_l`` (steps,); weak correlations and noise are those of ``by``."""
        nodes = len(C0) // channels
        blocks = C0.double().view(nodes, channels, nodes, channels)
        space = blocks.diagonal(dim1=1, dim2=3).sum(2) / channels
        across = blocks.diagonal(dim1=0, dim2=2).sum(2) / nodes
        scale = C0.double().trace() / len(C0)
        eye = torch.eye(nodes, dtype=torch.float64, device=C0.device)
        if by.local > 0:
            sd = space.diagonal().clamp(min=1e-12).sqrt()
            rho2 = (space / (sd[:, None] * sd)).square()
            space = torch.where(eye > 0, space, space * rho2 / (rho2 + by.local**2))
        space = torch.where(eye > 0, space, space * (1 - by.nodes - by.readings))
        steps = torch.arange(len(correlation), device=C0.device)
        time = correlation.double()[(steps[:, None] - steps).abs()] * (1 - by.readings)
        time = time.diagonal_scatter(torch.ones_like(correlation, dtype=torch.float64))
        pairs = [torch.linalg.eigh((K + K.mT) / 2) for K in (time, space, across / scale.clamp(min=1e-12))]
        v = pairs[0].eigenvalues.clamp(min=0)
        for _, (more, _) in zip(AXES[1:], pairs[1:], strict=True):
            v = (v[:, None] * more.clamp(min=0)).flatten()
        return cls(v + max(by.noise, FLOOR), Kronecker(*(B.contiguous() for _, B in pairs)))

    def tensors(self) -> dict[str, Tensor]:
        assert isinstance(self.B, Kronecker)
        factors = zip(AXES, self.B.factors, strict=True)
        return {"v": self.v} | {name: factor for name, factor in factors if isinstance(factor, Tensor)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Self:
        factors = [tensors[name] for name in AXES]
        if any(factor.ndim != 2 or factor.shape[0] != factor.shape[1] for factor in factors):
            raise ValueError("factors of the reference have different sizes along their axes")
        return cls(tensors["v"], Kronecker(*factors)).checked()
