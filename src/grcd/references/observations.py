"""Linear observations ``y = H x + noise``, and what they leave of a Gaussian or of a mixture of them.

One object holds them: entries of the signal (``H`` the identity), sums or averages over nodes, any rows; independent
noise of known variance ``r``, zero allowed; and NaN in ``y`` where a signal was not observed. So every signal of a
batch may be observed in its own way.

**The update.** If ``x`` is Gaussian with mean ``m`` and covariance ``C``, observing ``y`` moves it to

    m' = m + C H^T S^-1 (y - H m)        C' = C - C H^T S^-1 H C        S = H C H^T + diag(r)
    log p(y) = -1/2 [(y - H m)^T S^-1 (y - H m) + log det S + (number of observations) log 2 pi]

on the observed rows only; the systems are solved by Cholesky (see ``systems``), never inverted. **Draws** come from
prior ones, by Matheron's rule: update a prior draw with ``y`` minus a draw of the noise in place of ``y``. A mixture is
updated component by component, and its weights by how probable each makes the observations.

All of it in float64, in z-scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..core.errors import InputError
from ..core.systems import Singular, solve
from .conditioning import WindowPosterior
from .propagator import Level

Noise = Callable[[str, tuple[int, ...]], Tensor]  # standard normal numbers by purpose and shape


class Modal(Protocol):
    """A Gaussian about zero by functions of its covariance."""

    def filtered(self, x: Tensor, gain: Tensor) -> Tensor: ...

    def identity(self) -> Tensor: ...


class Part(Protocol):
    """A Gaussian about zero as references are made of it: what is asked of one, whatever it is kept as."""

    def covariance(self, q: Level = 0.0) -> Tensor: ...

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor: ...

    def draw(self, noise: Tensor, q: Level = 0.0) -> Tensor: ...

    def propagate(self, x: Tensor, q1: float, q0: float) -> Tensor: ...

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior: ...

    def updated(
        self, observations: Observations, mean: Tensor, q: float | None = None, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """``Observations.update`` of ``mean`` (batch, n, d): of itself, or of what is left of it at level ``q``."""

    def left(self, observations: Observations) -> Tensor:  # (batch, d, d)
        """The covariance that observations leave."""

    def cleaned(self, noise: Tensor, q: float) -> Tensor:  # (..., d) twice
        """Draws about zero of what is left of it once the noisy signal at level ``q`` is known."""

    def leave_one_out(self, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (signals,), two (signals, d)
        """Of what is ``seen`` of signals ``off`` (signals, d): log-density, precision times signal, its diagonal."""


@dataclass(frozen=True)
class Observations:
    """Readings ``y = H x + noise`` of a batch of signals; each signal may miss others of them."""

    y: Tensor  # (batch, m), NaN where nothing was observed
    H: Tensor | None = None  # (m, d); None: the entries of the signal themselves
    noise: Tensor | None = None  # (m,) variances; None: exact

    @property
    def seen(self) -> Tensor:  # (batch, m)
        """Where there is a reading."""
        return ~self.y.isnan()

    def of_signals(self, rows: Tensor) -> Observations:
        """Those of some signals."""
        return Observations(self.y[rows], self.H, self.noise)

    def of(self, x: Tensor) -> Tensor:  # (..., d) -> (..., m)
        """``H x``."""
        return x if self.H is None else x @ self.H.T

    def through(self, part: Modal, gain: Tensor) -> tuple[Tensor, Tensor]:  # (m, d), (m, m)
        """``H C`` and ``S``, for the covariance that has the values ``gain`` on the modes of ``part``."""
        across = part.filtered(part.identity() if self.H is None else self.H, gain)
        S = across if self.H is None else across @ self.H.T
        return across, S if self.noise is None else S + torch.diag(self.noise)

    def error(self, noise: Noise, n: int) -> Tensor | None:  # (batch, n, m)
        """``n`` draws of the noise for each signal; None where observations are exact."""
        return None if self.noise is None else noise("error", (len(self.y), n, self.y.shape[1])) * self.noise.sqrt()

    def update(
        self, part: Modal, gain: Tensor, mean: Tensor, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """Means ``m'`` and log-evidences of ``n`` means a signal; ``error`` (batch, n, m) is taken from ``y``."""
        return self.settled(*self.through(part, gain), mean, error)

    def settled(
        self, across: Tensor, S: Tensor, mean: Tensor, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """The same, once ``H C`` (m, d) and ``S`` (m, m) are known."""
        target = self.y[:, None] if error is None else self.y[:, None] - error
        off = torch.where(self.seen[:, None], target - self.of(mean), 0.0)
        try:
            u, size = solve(S, self.seen, off)
        except Singular:
            raise InputError(
                "exact observations of which some follow from the others",
                "rows of H that are independent, or some noise",
                "leave out rows that say the same, or give their noise",
            ) from None
        count = self.seen.sum(1).double() * math.log(2 * math.pi)
        return mean + u @ across, -((u * off).sum(-1) + (size + count)[:, None]) / 2

    def left(self, part: Modal, gain: Tensor) -> Tensor:  # (batch, d, d)
        """The covariance that is left, ``C'``."""
        return self.remaining(*self.through(part, gain), part.filtered(part.identity(), gain))

    def remaining(self, across: Tensor, S: Tensor, C: Tensor) -> Tensor:  # (batch, d, d)
        """The same, once ``H C`` (m, d), ``S`` (m, m) and ``C`` (d, d) are known."""
        across = torch.where(self.seen[:, None], across.T, 0.0)  # (batch, d, m)
        return C - solve(S, self.seen, across)[0] @ across.mT


@dataclass(frozen=True)
class Posterior:
    """What observations leave of a mixture: a mixture for each signal, of as many components."""

    observations: Observations
    priors: Tensor  # (K, d) means before anything was observed
    parts: tuple[Part, ...]  # K
    weights: Tensor  # (batch, K)
    means: Tensor  # (batch, K, d)
    log_evidence: Tensor  # (batch,)

    @classmethod
    def of(cls, weights: Tensor, means: Tensor, parts: tuple[Part, ...], observations: Observations) -> Posterior:
        """The exact posterior of ``sum_k weights_k N(means_k, parts_k)``."""
        batch = len(observations.y)
        updated = [
            part.updated(observations, mean.expand(batch, 1, -1)) for mean, part in zip(means, parts, strict=True)
        ]
        joint = torch.cat([evidence for _, evidence in updated], 1) + weights.log()
        moved = torch.cat([mean for mean, _ in updated], 1)
        return cls(observations, means, parts, joint.softmax(-1), moved, joint.logsumexp(-1))

    @property
    def mean(self) -> Tensor:  # (batch, d)
        return (self.weights[..., None] * self.means).sum(1)

    def covariance(self) -> Tensor:  # (batch, d, d)
        """Within the components, and between them."""
        off = self.means - self.mean[:, None]
        within = [part.left(self.observations) for part in self.parts]
        between = torch.einsum("bk,bki,bkj->bij", self.weights, off, off)
        return between + sum(w[:, None, None] * left for w, left in zip(self.weights.T, within, strict=True))

    def draw(self, n: int, noise: Noise, u: Tensor) -> Tensor:  # (batch, n) uniform -> (batch, n, d)
        """``n`` signals for each one observed."""
        chosen = choose(self.weights[:, None], u)
        prior, error = noise("prior", (len(u), n, self.means.shape[-1])), self.observations.error(noise, n)
        draws = torch.empty_like(prior)
        for k, (mean, part) in enumerate(zip(self.priors, self.parts, strict=True)):
            rows = (chosen == k).any(1).nonzero()[:, 0]  # most signals have draws of few components
            if not len(rows):
                continue
            off = None if error is None else error[rows]
            updated, _ = part.updated(self.observations.of_signals(rows), mean + part.draw(prior[rows]), None, off)
            draws[rows] = torch.where((chosen[rows] == k)[..., None], updated, draws[rows])
        return draws


def choose(weights: Tensor, u: Tensor) -> Tensor:  # (..., K), uniform (...) -> (...)
    """The number of the component that each uniform number stands for."""
    return (weights.cumsum(-1) <= u[..., None]).sum(-1).clamp(max=weights.shape[-1] - 1)
