"""Stationary references of windows: a covariance that depends on the lag between two steps alone (see ``lags``).

``N(0, Sigma)`` by its lag covariances and their shrinkage, which is all that is saved; the matrix, its factor and its
inverse are made when somebody asks for a posterior, the eigenpairs when somebody asks for a noise level.

Shrinkage is chosen by the likelihood of windows, at the cost of an inverse a candidate; or by the CRPS of readings
hidden at random: joint likelihood rewards small noise in smooth directions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property

import torch
from torch import Tensor

from ..graphs.kronecker import Basis
from .conditioning import Dense, inverse_factor
from .gaussian import Gaussian
from .lags import FLOOR, Shrinkage, covariance, factored, lag_covariances, toeplitz

__all__ = [
    "Shrinkage",
    "Stationary",
    "Trial",
    "chosen_shrinkage",
    "inverse_factor",
    "lag_covariances",
    "normal_crps",
    "toeplitz",
]


class Stationary(Gaussian):
    """``N(0, Sigma)`` over windows of ``steps x columns`` z-scores, ``Sigma`` block Toeplitz.

    Posteriors are in the precision of ``C``, everything else in float64.
    """

    def __init__(self, C: Tensor, shrinkage: Shrinkage, node: Tensor | None = None):
        """``C`` (steps, columns, columns) raw lag covariances; ``node`` (columns,) each one's node, default its own."""
        self.C, self.shrinkage = C, shrinkage
        self.node = torch.arange(C.shape[1], device=C.device) if node is None else node

    @classmethod
    def of(cls, C: Tensor, by: Shrinkage, node: Tensor | None = None, dtype: torch.dtype = torch.float64) -> Stationary:
        """From lag covariances of any precision; posteriors are in ``dtype``."""
        return cls(C.to(dtype), by, node)

    def __repr__(self) -> str:
        steps, columns, _ = self.C.shape
        return f"Stationary({steps} steps of {columns} columns, {self.shrinkage})"

    __eq__, __hash__ = object.__eq__, object.__hash__  # by the eigenpairs it would be dear

    @cached_property
    def conditioning(self) -> Dense:
        dtype = torch.promote_types(self.C.dtype, torch.float32)
        Sigma, L = factored(self.C.double(), self.shrinkage, self.node, dtype)
        return Dense(*(each.to(self.C.dtype) for each in (Sigma, L, torch.cholesky_inverse(L))))

    @property
    def Sigma(self) -> Tensor:  # (d, d)
        return self.conditioning.Sigma

    @cached_property
    def _eigenpairs(self) -> tuple[Tensor, Tensor]:
        v, B = torch.linalg.eigh(covariance(self.C.double(), self.shrinkage, self.node))
        noise = max(self.shrinkage.noise, FLOOR)
        return torch.where(v[0] < noise / 2, v.clamp(min=noise), v), B.contiguous()  # as ``factored`` does

    @property
    def v(self) -> Tensor:  # type: ignore[override]  # (d,)
        return self._eigenpairs[0]

    @property
    def B(self) -> Tensor:  # (d, d)
        return self._eigenpairs[1]

    @property
    def by_modes(self) -> type[Gaussian]:
        return Gaussian

    @property
    def d(self) -> int:
        return self.C.shape[0] * self.C.shape[1]

    def scalar(self) -> Gaussian:  # type: ignore[override]
        return Gaussian(self.v, self.B).scalar()

    def to(self, device: torch.device | str) -> Stationary:
        return Stationary(self.C.to(device), self.shrinkage, self.node.to(device))

    def tensors(self) -> dict[str, Tensor]:
        """Lag covariances, and what is done with them: everything else is made again, bit for bit on one machine."""
        weights = torch.tensor(astuple(self.shrinkage), dtype=torch.float64, device=self.C.device)
        return {"C": self.C, "shrinkage": weights, "node": self.node}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Stationary:
        C, weights, node = (tensors[key] for key in ("C", "shrinkage", "node"))
        if (
            C.ndim != 3
            or C.shape[1] != C.shape[2]
            or node.shape != C.shape[1:2]
            or weights.shape != (len(fields(Shrinkage)),)
        ):
            raise ValueError("lag covariances, their nodes and their shrinkage have different sizes")
        return cls(C, Shrinkage(*weights.tolist()), node)


@dataclass(frozen=True)
class Trial:
    """Windows that a choice is made on, and lag covariances that were fitted without them."""

    C: Tensor  # (lags, columns, columns)
    z: Tensor  # (windows, lags columns)
    observed: Tensor  # (windows, lags columns)
    hidden: Tensor | None = None  # what of it to hide and to predict; None: judge by the likelihood of what is observed

    def cost(self, by: Shrinkage, node: Tensor | None) -> tuple[float, int]:
        """A sum over readings, and their number: CRPS of hidden ones given the rest, or the likelihood's loss."""
        reference = Stationary.of(self.C, by, node, self.z.dtype)
        if self.hidden is None:
            return -float(reference.posterior(self.z, self.observed).log_prob.sum()), int(self.observed.sum())
        posterior = reference.posterior(self.z, self.observed & ~self.hidden)
        scored = self.observed & self.hidden
        loss = normal_crps(self.z[scored], posterior.mean[scored], posterior.sd[scored])
        return float(loss.double().sum()), int(scored.sum())


def normal_crps(y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    """``sd (w (2 Phi(w) - 1) + 2 phi(w) - 1 / sqrt(pi))`` with ``w = (y - mean) / sd``."""
    w = (y - mean) / sd
    density = torch.exp(-0.5 * w.square()) / math.sqrt(2 * math.pi)
    return sd * (w * torch.special.erf(w / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))


def chosen_shrinkage(
    trials: Sequence[Trial],
    node: Tensor | None = None,
    start: Shrinkage | None = None,
    rounds: int = 2,
    weights: Sequence[str] | None = None,
) -> tuple[Shrinkage, dict[Shrinkage, float]]:
    """The shrinkage that costs least a reading over the trials, and what was tried: a walk along one weight at a time.

    One trial of validation windows, or several that leave out a stretch of training rows each. Covariances may have
    fewer lags than the reference will: weights hardly depend on it, and the cost falls with its cube. ``weights`` are
    those that may move, all by default.
    """
    tried: dict[Shrinkage, float] = {}

    def cost(by: Shrinkage) -> float:
        if by not in tried:
            total, count = map(sum, zip(*(trial.cost(by, node) for trial in trials), strict=True))
            tried[by] = total / count
        return tried[by]

    best = start or Shrinkage()
    for _ in range(rounds):
        before = best
        for weight in weights or WALK:
            for other in beside(best, weight):
                while other is not None and cost(other) < cost(best):
                    best, other = other, further(best, other)
        if best == before:
            break
    return best, tried


# How a weight moves: by factors or by steps, and where it stops.
WALK = {
    "local": (1.5, 0.0, 0.02, 2.0),
    "noise": (2.0, 0.0, 2e-3, 1.0),
    "separable": (1.0, 0.1, 0.0, 1.0),
    "nodes": (1.0, 0.1, 0.0, 1.0),
    "readings": (1.0, 0.1, 0.0, 1.0),
}


def beside(by: Shrinkage, weight: str) -> list[Shrinkage | None]:
    """One step up and one down along a weight, None beyond its ends."""
    factor, step, least, most = WALK[weight]
    value = getattr(by, weight)
    both = [replace(by, **{weight: round(each, 6)}) for each in (value * factor + step, value / factor - step)]
    return [e if least <= getattr(e, weight) <= most and e.replaced <= 1 else None for e in both]


def further(before: Shrinkage, now: Shrinkage) -> Shrinkage | None:
    """The next step in the direction of the last one."""
    weight = next(name for name in WALK if getattr(before, name) != getattr(now, name))
    up, down = beside(now, weight)
    return up if getattr(now, weight) > getattr(before, weight) else down
