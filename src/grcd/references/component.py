"""A Gaussian about zero in closed form: what references are made of (section 3.2, appendices A.2 and A.4).

In conjugate coordinates noise is isotropic, so ``N(0, Sigma)`` with ``Sigma = B diag(v) B^T`` has the marginal
``N(0, Sigma + q^2 I)`` at noise level ``q``, and everything about it is closed-form in its own eigenbasis ``B``,
whatever ``B`` is (the graph-Fourier basis for the paper's reference, the covariance's eigenvectors for a full one):

    score                 -(Sigma + q^2 I)^-1 x~
    noise prediction      eps_ref(x~, q) = q (Sigma + q^2 I)^-1 x~
    probability flow      dx~/dq = eps_ref(x~, q),   solved by   phi(q1, q0) = sqrt((v + q1^2) / (v + q0^2))
    draw at level q       (Sigma + q^2 I)^1/2 xi,    xi standard normal per node

The laws that tie them together: ``phi`` composes, ``phi`` solves the flow of the score, and ``phi`` carries a draw at
``q0`` to a draw at ``q1`` from the same ``xi``. The draw uses the symmetric square root, so that it depends neither on
eigenvector signs nor on node order.

**Forcing.** Samplers add a residual to the reference's flow, known as a polynomial over a step. By variation of
constants, ``dx~/dq = eps_ref(x~, q) + sum_j c_j (q - q0)^j`` ends at

    x~(q1) = phi(q1, q0) x~(q0) + sum_j M_j c_j,     M_j = int phi(q1, q) (q - q0)^j dq   from q0 to q1

with ``M_j`` per eigenmode by Gauss-Legendre in ``log q``, where the integrand is smooth: exact to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..graphs.space import Basis

Level = float | Tensor  # a noise level or a time: one number, or a tensor that broadcasts to (..., modes)
QUADRATURE = 32  # nodes of the forcing's integrals


@dataclass(frozen=True)
class Component:
    """``N(0, B diag(v) B^T)``, in float64. Signals are the last axis of ``x`` (..., d), whatever comes before it.

    ``B`` may be the basis of a product graph, an operator. Densities and scores of several components at once, of
    signals (k, batch, d), are those of ``stacked`` ones.
    """

    v: Tensor  # (modes,) strictly positive
    B: Basis  # (d, modes) orthonormal

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
        return type(self)(self.v.to(device), self.B.to(device))

    def modes(self, x: Tensor) -> Tensor:
        """Coefficients (..., modes) of signals in the eigenbasis."""
        return x @ self.B

    def nodes(self, z: Tensor) -> Tensor:
        """The signals with these coefficients."""
        return z @ self.B.mT

    def filtered(self, x: Tensor, gain: Tensor, z: Tensor | None = None) -> Tensor:
        """A function of the covariance applied to ``x``, by its values ``gain`` on the eigenmodes; ``z`` are the modes
        of ``x``, where somebody has them already."""
        return self.nodes((self.modes(x) if z is None else z) * gain)

    @property
    def multiplicity(self) -> Tensor:  # (modes,)
        """How many directions share each variance."""
        return torch.ones_like(self.v)

    def variances(self) -> tuple[np.ndarray, np.ndarray]:  # two of (modes,)
        """The spectrum ``v``, and how often each counts."""
        return self.v.cpu().numpy(), self.multiplicity.cpu().numpy()

    def variance(self, q: Level) -> Tensor:  # (..., modes)
        """``v + q^2``: marginal variance per eigenmode, in conjugate coordinates."""
        return self.v + q**2

    def cleaned_variance(self, q: float) -> Tensor:  # (modes,)
        """``v q^2 / (v + q^2)``: what is left per eigenmode once the noisy signal at level ``q`` is known."""
        return self.v * q**2 / self.variance(q)

    def identity(self) -> Tensor:  # (d, d)
        return torch.eye(len(self.B), dtype=self.v.dtype, device=self.v.device)

    def covariance(self, q: Level = 0.0) -> Tensor:  # (d, d)
        """``Sigma + q^2 I``."""
        return self.filtered(self.identity(), self.variance(q))

    def precision(self, q: Level = 0.0) -> Tensor:  # (d, d)
        """``(Sigma + q^2 I)^-1``."""
        return self.filtered(self.identity(), 1 / self.variance(q))

    def score(self, x: Tensor, q: Level) -> Tensor:
        """``-(Sigma + q^2 I)^-1 x~``."""
        return self.filtered(x, -1 / self.variance(q))

    def eps(self, x: Tensor, q: Level) -> Tensor:
        """The noise prediction ``-q`` times the score (first term of eq. score)."""
        return self.filtered(x, q / self.variance(q))

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor:  # (...)
        """Log-density of the marginal at level ``q``."""
        return self.scored(x, q)[0]

    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:  # (...), (..., d)
        """Log-density and score at once, for the price of the score."""
        variance, z = self.variance(q), self.modes(x)
        size = (self.multiplicity * variance.log()).sum(-1) + self.B.shape[-2] * math.log(2 * math.pi)
        return -(self._energy(x, variance, z) + size) / 2, self.filtered(x, -1 / variance, z)

    def _energy(self, x: Tensor, variance: Tensor, z: Tensor) -> Tensor:  # (...)
        """``x^T (Sigma + q^2 I)^-1 x``."""
        return (z.square() / variance).sum(-1)

    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:  # (batch, d) twice
        """Standard normal ``noise`` as draws of the marginal at level ``q``; ``u`` has nothing to choose here."""
        return self.filtered(noise, torch.sqrt(self.variance(q)))

    def phi(self, q1: Level, q0: Level) -> Tensor:  # (..., modes)
        """The exact propagator per eigenmode, from level ``q0`` to ``q1`` (eq. phi)."""
        return torch.sqrt(self.variance(q1) / self.variance(q0))

    def propagate(self, x: Tensor, q1: Level, q0: Level, steps: int = 1) -> Tensor:
        """Carry a state along the probability flow from ``q0`` to ``q1``. Exact, so it needs no sub-``steps``."""
        return self.filtered(x, self.phi(q1, q0))

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 1) -> Tensor:
        """The same with ``sum_j forcing_j (q - q0)^j`` added to the flow."""
        x = self.propagate(x, q1, q0)
        for force, moment in zip(forcing, self.moments(q1, q0, len(forcing)), strict=True):
            x = x + self.filtered(force, moment)
        return x

    def moments(self, q1: float, q0: float, count: int) -> list[Tensor]:  # each (modes,)
        """``M_j`` of the module's docstring for ``j`` below ``count``; in numbers, so nothing is copied to a device."""
        half, moments = math.log(q1 / q0) / 2, [torch.zeros_like(self.v) for _ in range(count)]
        for place, weight in zip(*(part.tolist() for part in np.polynomial.legendre.leggauss(QUADRATURE)), strict=True):
            q = q0 * math.exp(half * (1 + place))
            carried = self.phi(q1, q) * (half * weight * q)
            moments = [moment + carried * (q - q0) ** j for j, moment in enumerate(moments)]
        return moments


Kind = TypeVar("Kind", bound=Component)


def stacked(components: Sequence[Kind]) -> Kind:
    """Components of one kind and size as one: ``v`` (k, 1, modes), ``B`` (k, d, modes), which must be matrices."""
    v, B = (torch.stack([getattr(one, key) for one in components]) for key in ("v", "B"))
    return type(components[0])(v[:, None], B)
