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
eigenvector signs nor on node order. How states move along the flow is in ``propagator``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor

from ..core.systems import solve
from ..graphs.kronecker import Basis
from .conditioning import Conditioner, WindowPosterior, of_products
from .observations import Observations
from .propagator import Level, Propagator


@dataclass(frozen=True)
class Component(Propagator):
    """``N(0, B diag(v) B^T)``, in float64. Signals are the last axis of ``x`` (..., d), whatever comes before it.

    ``B`` may be the basis of a product graph, an operator. Densities and scores of several components at once, of
    signals (k, batch, d), are those of ``stacked`` ones.
    """

    v: Tensor  # (modes,) strictly positive
    B: Basis  # (d, modes) orthonormal

    @property
    def by_modes(self) -> Callable[[Tensor, Basis], Component]:
        """What makes the same of variances and a basis."""
        return type(self)

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

    @property
    def d(self) -> int:
        """How many numbers a signal is."""
        return self.B.shape[-2]

    @cached_property
    def conditioning(self) -> Conditioner:
        """What it is given some entries, by whichever way fits into memory."""
        return of_products(self, self.d)

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        """Signals ``z`` (signals, d) given the entries that are ``observed`` (signals, d); the rest is ignored.

        ``xi`` (signals, draws, d), standard normal: draws as well.
        """
        return self.conditioning.posterior(z, observed, xi)

    # -- observations ----------------------------------------------------------------------------------------------

    def updated(
        self, observations: Observations, mean: Tensor, q: float | None = None, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """Means and log-evidences of ``mean`` (batch, n, d) given observations: of itself, or of what is left of it
        once the noisy signal at level ``q`` is known."""
        return observations.update(self, self.v if q is None else self.cleaned_variance(q), mean, error)

    def left(self, observations: Observations) -> Tensor:  # (batch, d, d)
        """The covariance that observations leave."""
        return observations.left(self, self.v)

    def cleaned(self, noise: Tensor, q: float) -> Tensor:  # (..., d) twice
        """Draws about zero of what is left of it once the noisy signal at level ``q`` is known."""
        return self.filtered(noise, self.cleaned_variance(q).sqrt())

    def leave_one_out(self, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of what is ``seen`` of signals ``off`` (signals, d): log-density (signals,), precision times signal, and the
        diagonal of that precision, (signals, d) each."""
        if seen.all():  # one precision for all signals
            precision = self.precision()
            return self.log_prob(off), off @ precision, precision.diagonal().expand_as(off)
        eye = torch.eye(off.shape[1]).to(off)
        precision, size = solve(self.covariance(), seen, eye.expand(len(off), -1, -1))
        off = torch.where(seen, off, 0.0)
        moved = (precision @ off[..., None])[..., 0]
        count = seen.sum(1).double() * math.log(2 * math.pi)
        return -((moved * off).sum(-1) + size + count) / 2, moved, precision.diagonal(dim1=-2, dim2=-1)

    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:  # (batch, d) twice
        """Standard normal ``noise`` as draws of the marginal at level ``q``; ``u`` has nothing to choose here."""
        return self.filtered(noise, torch.sqrt(self.variance(q)))


def stacked(components: Sequence[Component]) -> Component:
    """Components of one kind and size as one: ``v`` (k, 1, modes), ``B`` (k, d, modes). An operator stays as it is, and
    must be alone."""
    v, B = torch.stack([one.v for one in components])[:, None], components[0].B
    kind = components[0].by_modes
    return kind(v, torch.stack([cast(Tensor, one.B) for one in components]) if isinstance(B, Tensor) else B)
