"""The propagator of a Gaussian: how a state moves along its probability flow, exactly (eq. phi, appendix A.4).

With variance ``v`` on an eigenmode the flow ``dx~/dq = q x~ / (v + q^2)`` is solved by

    x~(q1) = phi(q1, q0) x~(q0),        phi(q1, q0) = sqrt((v + q1^2) / (v + q0^2))

**Forcing.** Samplers add a residual to the reference's flow, known as a polynomial over a step. By variation of
constants, ``dx~/dq = eps_ref(x~, q) + sum_j c_j (q - q0)^j`` ends at

    x~(q1) = phi(q1, q0) x~(q0) + sum_j M_j c_j,     M_j = int phi(q1, q) (q - q0)^j dq   from q0 to q1

with ``M_j`` per eigenmode by Gauss-Legendre in ``log q``, where the integrand is smooth: exact to rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

Level = float | Tensor  # a noise level or a time: one number, or a tensor that broadcasts to (..., modes)
QUADRATURE = 32  # nodes of the forcing's integrals


class Propagator(ABC):
    """Of a Gaussian about zero, by its variances on eigenmodes; ``filtered`` takes modes to signals and back."""

    v: Tensor  # (modes,) strictly positive

    @abstractmethod
    def filtered(self, x: Tensor, gain: Tensor) -> Tensor:
        """A function of the covariance applied to ``x`` (..., d), by its values ``gain`` on the eigenmodes."""

    def variance(self, q: Level) -> Tensor:  # (..., modes)
        """``v + q^2``: marginal variance per eigenmode, in conjugate coordinates."""
        return self.v + q**2

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
        return moments(self.v, q1, q0, count)


def moments(v: Tensor, q1: float, q0: float, count: int) -> list[Tensor]:  # each like v
    """``M_j`` of the module's docstring for ``j`` below ``count``, at variances ``v``."""
    half, moments = math.log(q1 / q0) / 2, [torch.zeros_like(v) for _ in range(count)]
    for place, weight in zip(*(part.tolist() for part in np.polynomial.legendre.leggauss(QUADRATURE)), strict=True):
        q = q0 * math.exp(half * (1 + place))
        carried = torch.sqrt((v + q1**2) / (v + q**2)) * (half * weight * q)
        moments = [moment + carried * (q - q0) ** j for j, moment in enumerate(moments)]
    return moments
