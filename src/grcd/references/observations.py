"""Linear observations ``y = H x + noise``, and what they say of a signal under a Gaussian or mixture reference.

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

import torch
from torch import Tensor

from ..core.errors import InputError
from ..core.systems import Singular, solve
from .gaussian import Gaussian
from .mixture import Mixture

Noise = Callable[[str, tuple[int, ...]], Tensor]  # standard normal numbers by purpose and shape


@dataclass(frozen=True)
class Observations:
    """``y`` (batch, m) with NaN where nothing was observed; ``H`` (m, nodes), None for the entries themselves."""

    y: Tensor
    H: Tensor | None = None
    noise: Tensor | None = None  # (m,) variances; None: exact

    @property
    def seen(self) -> Tensor:  # (batch, m)
        return ~self.y.isnan()

    def of_signals(self, rows: Tensor) -> Observations:
        """Those of some signals."""
        return Observations(self.y[rows], self.H, self.noise)

    def of(self, x: Tensor) -> Tensor:  # (..., nodes) -> (..., m)
        """``H x``."""
        return x if self.H is None else x @ self.H.T

    def through(self, reference: Gaussian, gain: Tensor) -> tuple[Tensor, Tensor]:  # (m, nodes), (m, m)
        """``H C`` and ``S``, for the covariance that has these values on the reference's modes."""
        across = reference.filtered(_eye(reference) if self.H is None else self.H, gain)
        S = across if self.H is None else across @ self.H.T
        return across, S if self.noise is None else S + torch.diag(self.noise)

    def error(self, noise: Noise, n: int) -> Tensor | None:  # (batch, n, m)
        """``n`` draws of the noise for each signal; None where observations are exact."""
        return None if self.noise is None else noise("error", (len(self.y), n, self.y.shape[1])) * self.noise.sqrt()

    def update(
        self, reference: Gaussian, gain: Tensor, mean: Tensor, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, nodes), (batch, n)
        """Means ``m'`` and log-evidences of ``n`` means a signal; ``error`` (batch, n, m) is taken from ``y``."""
        across, S = self.through(reference, gain)
        target = self.y[:, None] if error is None else self.y[:, None] - error
        off = torch.where(self.seen[:, None], target - self.of(mean), 0.0)
        try:
            u, size = solve(S, self.seen, off)
        except Singular:
            raise _singular() from None
        count = self.seen.sum(1).double() * math.log(2 * math.pi)
        return mean + u @ across, -((u * off).sum(-1) + (size + count)[:, None]) / 2

    def left(self, reference: Gaussian, gain: Tensor) -> Tensor:  # (batch, nodes, nodes)
        """The covariance that is left, ``C'``."""
        across, S = self.through(reference, gain)
        given = torch.where(self.seen[:, None], across.T, 0.0)  # (batch, nodes, m)
        return reference.filtered(_eye(reference), gain) - solve(S, self.seen, given)[0] @ given.mT


@dataclass(frozen=True)
class Posterior:
    """What observations leave of a reference: a mixture for each signal, of as many components."""

    observations: Observations
    reference: Mixture
    weights: Tensor  # (batch, components)
    means: Tensor  # (batch, components, nodes)
    log_evidence: Tensor  # (batch,)

    @property
    def mean(self) -> Tensor:  # (batch, nodes)
        return (self.weights[..., None] * self.means).sum(1)

    def covariance(self) -> Tensor:  # (batch, nodes, nodes)
        """Within the components, and between them."""
        off = self.means - self.mean[:, None]
        within = [self.observations.left(part, part.v) for part in self.reference.parts]
        between = torch.einsum("bk,bki,bkj->bij", self.weights, off, off)
        return between + sum(w[:, None, None] * left for w, left in zip(self.weights.T, within, strict=True))

    def draw(self, n: int, noise: Noise, u: Tensor) -> Tensor:  # (batch, n) uniform -> (batch, n, nodes)
        """``n`` signals for each one observed."""
        seen, nodes = self.observations, self.means.shape[-1]
        chosen = _chosen(self.weights[:, None], u)
        prior, error = noise("prior", (len(u), n, nodes)), seen.error(noise, n)
        found = torch.empty_like(prior)
        for k, (mean, part) in enumerate(zip(self.reference.means, self.reference.parts, strict=True)):
            rows = (chosen == k).any(1).nonzero()[:, 0]  # most signals have draws of few components
            if not len(rows):
                continue
            off = None if error is None else error[rows]
            drawn, _ = seen.of_signals(rows).update(part, part.v, mean + part.draw(prior[rows]), off)
            found[rows] = torch.where((chosen[rows] == k)[..., None], drawn, found[rows])
        return found


def posterior(reference: Gaussian | Mixture, observations: Observations) -> Posterior:
    """The exact posterior of a reference."""
    mixture = as_mixture(reference)
    batch = len(observations.y)
    updated = [
        observations.update(part, part.v, mean.expand(batch, 1, -1))
        for mean, part in zip(mixture.means, mixture.parts, strict=True)
    ]
    means = torch.cat([mean for mean, _ in updated], 1)
    joint = torch.cat([evidence for _, evidence in updated], 1) + mixture.weights.log()
    return Posterior(observations, mixture, joint.softmax(-1), means, joint.logsumexp(-1))


def as_mixture(reference: Gaussian | Mixture) -> Mixture:
    """A Gaussian is a mixture of one."""
    if isinstance(reference, Mixture):
        return reference
    v = reference.v
    return Mixture(torch.ones_like(v[:1]), torch.zeros_like(reference.B[None, :, 0]), (reference,))


def guided(
    eps_hat: Callable[[Tensor, float], Tensor], reference: Gaussian | Mixture, observations: Observations
) -> Callable[[Tensor, float], Tensor]:
    """A noise prediction given observations, from one without: what a solver takes, and what it returns.

    At level ``q`` a component says ``x_0 | x~ ~ N(D_k, C_k)`` with ``D_k = x~ + q^2 score_k`` and
    ``C_k = v_k q^2 / (v_k + q^2)`` on its modes. The network says what they are off by together,
    ``d = D - sum_k r_k D_k``. Each component, moved by ``d``, is updated with the observations as above, and counts as
    much as it made them probable: the noise prediction is that of the mean that comes out, ``(x~ - D') / q``. With
    ``d = 0`` this is the reference's posterior score, exactly; there is no weight to choose. Exact observations hold of
    every ``D'``. The state is (batch times n, nodes): ``n`` signals in a row for each one observed.
    """
    mixture = as_mixture(reference)

    def eps(x: Tensor, q: float) -> Tensor:
        joint, scores = mixture._components(x, q)
        parts = [x + q**2 * score for score in scores]
        share = joint.softmax(-1)
        off = x - q * eps_hat(x, q) - sum(share[:, k, None] * part for k, part in enumerate(parts))
        batch, updated, evidence = len(observations.y), [], []
        for part, mean in zip(mixture.parts, parts, strict=True):
            gain = part.v * q**2 / part.variance(q)
            moved, probable = observations.update(part, gain, (mean + off).view(batch, -1, x.shape[1]))
            updated.append(moved.reshape(x.shape))
            evidence.append(probable.reshape(-1))
        share = (joint + torch.stack(evidence, -1)).softmax(-1)
        return (x - sum(share[:, k, None] * part for k, part in enumerate(updated))) / q

    return eps


def cleaned(
    reference: Gaussian | Mixture, observations: Observations, x: Tensor, q: float, noise: Noise, u: Tensor
) -> Tensor:  # (batch, n, nodes), (batch, n) -> (batch, n, nodes)
    """Signals ``x_0`` drawn given their noisy states ``x~`` at level ``q`` and the observations: exact under the
    reference. The noise of the last level is gone, and exact observations hold."""
    mixture, n = as_mixture(reference), x.shape[1]
    joint, scores = mixture._components(x, q)
    prior, error = noise("last", x.shape), observations.error(lambda _, shape: noise("last error", shape), n)
    drawn, evidence = [], []
    for part, score in zip(mixture.parts, scores, strict=True):
        gain, mean = part.v * q**2 / part.variance(q), x + q**2 * score
        evidence.append(observations.update(part, gain, mean)[1])
        drawn.append(observations.update(part, gain, mean + part.filtered(prior, gain.sqrt()), error)[0])
    chosen = _chosen((joint + torch.stack(evidence, -1)).softmax(-1), u)
    return torch.stack(drawn).gather(0, chosen[None, ..., None].expand(1, *x.shape))[0]


def _chosen(weights: Tensor, u: Tensor) -> Tensor:  # (..., components), uniform (...) -> (...)
    """Which component each uniform number stands for."""
    return (weights.cumsum(-1) <= u[..., None]).sum(-1).clamp(max=weights.shape[-1] - 1)


def _eye(reference: Gaussian) -> Tensor:
    return torch.eye(len(reference.B), dtype=reference.v.dtype, device=reference.v.device)


def _singular() -> InputError:
    return InputError(
        "exact observations of which some follow from the others",
        "rows of H that are independent, or some noise",
        "leave out rows that say the same, or give their noise",
    )
