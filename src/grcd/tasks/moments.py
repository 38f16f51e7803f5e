"""Every row by itself: each reading given what other nodes read at that moment.

A sensor that is silent throughout is known by the others alone, and the shrinkage that suits whole windows need not
suit moments: where nodes drift apart, noise that keeps windows from overfitting is too much for them. So
beside the reference stands a Gaussian of the z-scores of single rows, with the covariance ``C_0`` at lag 0 that the
reference has already, shrunk in a way of its own (see ``references/lags``):

    Sigma = w * C_0 + noise I,    w_ij = rho_ij^2 / (rho_ij^2 + local^2) between nodes

Both weights are fitted to hidden readings, and so is ``spread``, which standard deviations are multiplied by. Of a
mixture ``C_0`` is that of all its parts together, their means included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.rows import BLOCK, split
from ..core.streams import Stream
from ..references.lags import Shrinkage
from ..references.mixture import Mixture
from ..references.reference import Reference
from ..references.stationary import Stationary
from .columns import mirrored


@dataclass(frozen=True)
class Moments:
    """How the law of single rows is made of that of windows."""

    local: float
    noise: float
    spread: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> Moments:
        """The way back."""
        return cls(**numbers)

    def law(self, C0: Tensor, channels: int = 1) -> MomentLaw:
        """Of rows with this covariance (columns, columns)."""
        node = torch.arange(len(C0), device=C0.device) // channels
        shrinkage = Shrinkage(0.0, 0.0, self.local, self.noise)
        return MomentLaw(Stationary.of(C0[None], shrinkage, node), self.spread)


@dataclass(frozen=True)
class MomentLaw:
    """A Gaussian of single rows, asked as ``columns`` is."""

    reference: Stationary  # of one step
    spread: float

    def posterior(self, z: Tensor, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """Mean and standard deviation of z-scores (rows, columns), NaN where missing, given those of the same row."""
        found = self.reference.posterior(z.nan_to_num(), ~z.isnan())
        sd = self.spread * found.sd.to(z)
        return torch.where(z.isnan(), found.mean.to(z), z), torch.where(z.isnan(), sd, 0.0)

    def draws(
        self, z: Tensor, stretches: Sequence[slice], n: int, seed: int, chunk: int | None = None
    ) -> Iterator[tuple[np.ndarray, Tensor]]:  # each (rows,), (n, rows, columns)
        """``n`` draws of z-scores given those that are there, some rows at a time, in the order of the stretches; in
        pairs, each second one the mirror image of the first."""
        rows, stream = (
            np.concatenate([np.arange(s.start, s.stop) for s in stretches]),
            Stream(seed, "moments", z.device),
        )
        for some in split(rows, chunk or max(1, BLOCK // (n * z.shape[1]))):
            part, xi = z[some], mirrored(stream, some, n, z.shape[1]).to(z)
            found = self.reference.posterior(part.nan_to_num(), ~part.isnan(), xi)
            assert found.draws is not None
            mean = found.mean[:, None].to(z)
            drawn = mean + self.spread * (found.draws.to(z) - mean)
            yield some, torch.where(part.isnan()[:, None], drawn, part[:, None]).transpose(0, 1)


def covariance(reference: Reference, columns: int) -> Tensor | None:  # (columns, columns)
    """``C_0``, where a reference of windows has it."""
    if isinstance(reference, Stationary):
        return reference.C[0].double()
    if not isinstance(reference, Mixture):
        return None
    total = reference.means.new_zeros(columns, columns, dtype=torch.float64)
    means = reference.means.double().view(len(reference.parts), -1, columns)  # (parts, steps, columns)
    for weight, mean, part in zip(reference.weights.double(), means, reference.parts, strict=True):
        if not isinstance(part, Stationary):
            return None
        total += weight * (part.C[0].double() + mean.T @ mean / len(mean))
    return total
