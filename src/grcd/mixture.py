"""A Gaussian mixture as a reference: several regimes, each with a mean and a covariance, and still no network.

In conjugate coordinates the marginal of ``sum_k w_k N(m_k, Sigma_k)`` at noise level ``q`` is the same mixture with
``Sigma_k + q^2 I``, so with the posterior probabilities ``r_k`` of its components (softmax of ``log w_k + log N_k``)

    score               sum_k r_k(x~, q) s_k(x~ - m_k, q),      s_k the score of component k
    noise prediction    eps_ref = -q score

are exact. Its probability flow has no closed form: it is integrated by Runge-Kutta steps of order four, evenly spaced
in ``log q``. They ask nothing of the network, and there may be as many as one likes. With one component there is
nothing to integrate, and the Gaussian's own propagator is taken.

**Fitting** is expectation-maximisation from k-means in the leading principal coordinates, first on a part of the
signals, then on all. With ``n_k`` signals in a component its covariance is mixed with the one that all components
share, as if the latter had been seen on as many signals as there are nodes:

    Sigma_k = (n_k S_k + nodes S) / (n_k + nodes) + eps I,     S = sum_k n_k S_k / n

so that a component of few signals is never singular, and one of many is its own. How many components there are is
decided by the likelihood of validation signals: one more for as long as it rises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .data.splits import evenly
from .reference import EPS_REF, Conditioned, Gaussian, full, ledoit_wolf

COMPONENTS = (1, 2, 3, 4, 6, 8)  # tried in this order
WARM_UP = 5000  # signals of the first iterations
ITERATIONS, LAST = 40, 10  # on a part, on all
GAIN = 1e-3  # nats a signal: what an iteration must bring, and a component a hundred times over
CHUNK = 1 << 22  # entries held at a time


@dataclass(frozen=True)
class Mixture:
    """``sum_k weight_k N(mean_k, Sigma_k)``; the parts are Gaussian references of any kind."""

    weights: Tensor  # (components,)
    means: Tensor  # (components, nodes)
    parts: tuple[Gaussian, ...]

    def to(self, device) -> Mixture:
        return Mixture(self.weights.to(device), self.means.to(device), tuple(part.to(device) for part in self.parts))

    def tensors(self) -> dict[str, Tensor]:
        """What there is to save, for parts of full rank."""
        v, B = (torch.stack([getattr(part, key) for part in self.parts]) for key in ("v", "B"))
        return {"weights": self.weights, "means": self.means, "v": v, "B": B}

    @classmethod
    def of(cls, weights: Tensor, means: Tensor, v: Tensor, B: Tensor) -> Mixture:
        """From what was saved."""
        if not v.shape == means.shape == B.shape[:2] == (len(weights), B.shape[2]):
            raise ValueError("weights, means and covariances of the mixture have different sizes")
        return cls(weights, means, tuple(Gaussian(*part) for part in zip(v, B, strict=True)))

    def scored(self, x: Tensor, q) -> tuple[Tensor, Tensor]:  # (...), (..., nodes)
        """Log-density and score of the marginal at level ``q``."""
        joint, scores = self._components(x, q)
        responsible = joint.softmax(-1)
        score = sum(responsible[..., k, None] * score for k, score in enumerate(scores))
        return joint.logsumexp(-1), score

    def _components(self, x: Tensor, q) -> tuple[Tensor, list[Tensor]]:  # (..., components), components of (..., nodes)
        """``log w_k + log N_k``, and the scores of the components."""
        found = [part.scored(x - mean, q) for mean, part in zip(self.means, self.parts, strict=True)]
        joint = torch.stack([log_prob for log_prob, _ in found], -1) + self.weights.log()
        return joint, [score for _, score in found]

    def responsible(self, x: Tensor, q=0.0) -> Tensor:  # (..., components)
        """Posterior probabilities of the components."""
        return self._components(x, q)[0].softmax(-1)

    def log_prob(self, x: Tensor, q=0.0) -> Tensor:
        return self._components(x, q)[0].logsumexp(-1)

    def score(self, x: Tensor, q) -> Tensor:
        return self.scored(x, q)[1]

    def eps(self, x: Tensor, q) -> Tensor:
        """The noise prediction, ``-q`` times the score."""
        return -q * self.score(x, q)

    def draw(self, noise: Tensor, q=0.0, u: Tensor | None = None) -> Tensor:  # (batch, nodes), (batch,)
        """Draws of the marginal: ``u``, uniform on [0, 1), chooses the component; ``noise`` the rest."""
        if u is None:
            if len(self.parts) > 1:
                raise ValueError("a mixture needs uniform numbers to choose components by")
            return self.means[0] + self.parts[0].draw(noise, q)
        chosen = torch.searchsorted(self.weights.cumsum(0), u, right=True).clamp(max=len(self.parts) - 1)
        drawn = torch.stack([mean + part.draw(noise, q) for mean, part in zip(self.means, self.parts, strict=True)])
        return drawn[chosen, torch.arange(len(noise), device=noise.device)]

    def propagate(self, x: Tensor, q1: float, q0: float, steps: int = 8) -> Tensor:
        """Carry a state along the mixture's own probability flow."""
        return self.carry(x, q1, q0, (), steps)

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 8) -> Tensor:
        """The same with ``sum_j forcing_j (q - q0)^j`` added to the flow."""
        if len(self.parts) == 1:
            return self.means[0] + self.parts[0].carry(x - self.means[0], q1, q0, forcing)

        def slope(x: Tensor, q: float) -> Tensor:  # dx / d log q
            total = self.eps(x, q)
            for j, force in enumerate(forcing):
                total = total + (q - q0) ** j * force
            return q * total

        h = math.log(q1 / q0) / steps
        for step in range(steps):
            a = q0 * math.exp(step * h)
            b, c = a * math.exp(h / 2), a * math.exp(h)
            k1 = slope(x, a)
            k2 = slope(x + h / 2 * k1, b)
            k3 = slope(x + h / 2 * k2, b)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3, c))
        return x

    def conditioned(self, H: Tensor, y: Tensor, noise: Tensor, q=0.0) -> ConditionedMixture:
        """Given ``y = H x + noise``: each component's posterior, and how probable the observations make it."""
        given = zip(self.means, self.parts, strict=True)
        parts = [(mean, part.conditioned(H, y - H @ mean, noise, q)) for mean, part in given]
        joint = torch.stack([part.log_evidence for _, part in parts], -1) + self.weights.log()
        shifted = tuple(replace(part, mean=mean + part.mean) for mean, part in parts)
        return ConditionedMixture(joint.softmax(-1), shifted, joint.logsumexp(-1))


@dataclass(frozen=True)
class ConditionedMixture:
    """What observations leave of a mixture: probabilities of the components for each signal, and their posteriors."""

    weights: Tensor  # (batch, components)
    parts: tuple[Conditioned, ...]
    log_evidence: Tensor  # (batch,)

    @property
    def mean(self) -> Tensor:  # (batch, nodes)
        return sum(self.weights[:, k, None] * part.mean for k, part in enumerate(self.parts))

    def draw(self, noise: Tensor, u: Tensor) -> Tensor:  # (batch, nodes), (batch,)
        chosen = (self.weights.cumsum(-1) <= u[:, None]).sum(-1).clamp(max=len(self.parts) - 1)
        drawn = torch.stack([part.draw(noise) for part in self.parts])
        return drawn[chosen, torch.arange(len(noise), device=noise.device)]


# -- fitting -----------------------------------------------------------------------------------------------------------


def select(train: Tensor, val: Tensor, components: Sequence[int] = COMPONENTS) -> Mixture:  # (samples, nodes) each
    """The mixture with as many components as the likelihood of validation signals wants."""
    best, best_likelihood = None, -math.inf
    for count in components:
        if count > 1 and len(train) < 4 * count:
            break
        found = fit(train, count)
        likelihood = mean_log_prob(found, val)
        if likelihood <= best_likelihood + 100 * GAIN:
            break
        best, best_likelihood = found, likelihood
    return best


def fit(z: Tensor, components: int) -> Mixture:  # (samples, nodes), complete
    """Expectation-maximisation, full covariances."""
    z = z.double()
    if components == 1:
        covariance = full(ledoit_wolf(z.cpu().numpy())).to(z.device)
        return Mixture(torch.ones(1).to(z), torch.zeros(1, z.shape[1]).to(z), (covariance,))
    part = z[torch.from_numpy(np.asarray(evenly(len(z), WARM_UP))).to(z.device)]
    found = maximised(part, torch.nn.functional.one_hot(_grouped(part, components), components).to(z))
    found = _improved(found, part, ITERATIONS)
    return found if len(part) == len(z) else _improved(found, z, LAST)


def _grouped(z: Tensor, components: int) -> Tensor:  # (samples,)
    """Groups to start from: k-means in the leading principal coordinates."""
    from sklearn.cluster import KMeans

    basis = torch.linalg.eigh(z.T @ z)[1][:, -16:]
    labels = KMeans(components, n_init=4, random_state=0).fit_predict((z @ basis).cpu().numpy())
    return torch.from_numpy(labels).long().to(z.device)


def _improved(found: Mixture, z: Tensor, iterations: int) -> Mixture:
    """Iterate for as long as the likelihood rises noticeably; the shared covariance can make it fall by a little."""
    best, before = found, -math.inf
    for _ in range(iterations):
        joint = torch.cat([found._components(rows, 0.0)[0] for rows in _chunks(z, len(found.parts))])
        likelihood = float(joint.logsumexp(-1).mean())
        best = found if likelihood > before else best
        if likelihood - before < GAIN:
            break
        before, found = likelihood, maximised(z, joint.softmax(-1))
    return best


def maximised(z: Tensor, responsible: Tensor) -> Mixture:  # (samples, nodes), (samples, components)
    """The mixture that fits best if signals belong to components as they are said to (the M step)."""
    count, nodes = responsible.sum(0).clamp(min=1e-9), z.shape[1]
    means = (responsible.T @ z) / count[:, None]
    scatter = [((z - m) * r[:, None]).T @ (z - m) for m, r in zip(means, responsible.T, strict=True)]  # n_k S_k
    shared = sum(scatter) / len(z)
    ridge = EPS_REF * torch.eye(nodes).to(z)
    covariances = [(s + nodes * shared) / (n + nodes) + ridge for s, n in zip(scatter, count, strict=True)]
    return Mixture(count / count.sum(), means, tuple(_eigen(C) for C in covariances))


def _eigen(covariance: Tensor) -> Gaussian:
    v, B = torch.linalg.eigh(covariance)
    return Gaussian(v, B.contiguous())  # as it will be when it is loaded: products are then the same to the bit


def mean_log_prob(found: Mixture, z: Tensor) -> float:
    return float(torch.cat([found.log_prob(rows) for rows in _chunks(z.double(), len(found.parts))]).mean())


def _chunks(z: Tensor, components: int) -> Sequence[Tensor]:
    return z.split(max(1, CHUNK // (components * z.shape[1])))
