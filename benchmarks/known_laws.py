"""Two laws of signals on a ring whose posterior is known: what is hidden of a signal given what is observed of it.

    mixture   three Gaussians of 24 dimensions with means and covariances of their own. Given some readings it is a
              mixture again: weights by how probable each made them, components conditioned. 20 readings are hidden:
              in three of ten signals more than one component remains (of 12 hidden, in one of a hundred)
    heavy     x = sqrt(s) w + sqrt(r) e with w smooth on the ring, e independent, s and r inverse-gamma with 3 degrees
              of freedom: one quiet day, one wild one. Given (s, r) it is Gaussian, so the posterior is an integral
              over two numbers, which is taken on a grid of 61 x 61 of their logarithms. 12 readings are hidden

So both posteriors are finite mixtures of Gaussians, whose mean and spread need no draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import grcd

NODES = 24
DOF, ROUGH = 3.0, 0.4  # of the heavy tails; spread of the independent part
GRID = np.linspace(-4, 6, 61)  # of log s and log r


@dataclass(frozen=True, eq=False)
class Posterior:
    """A mixture of Gaussians."""

    weights: np.ndarray  # (components,)
    means: np.ndarray  # (components, hidden)
    covs: np.ndarray  # (components, hidden, hidden)

    @cached_property
    def mean(self) -> np.ndarray:  # (hidden,)
        return self.weights @ self.means

    @cached_property
    def sd(self) -> np.ndarray:  # (hidden,)
        within = np.diagonal(self.covs, axis1=1, axis2=2)
        return np.sqrt(self.weights @ (within + (self.means - self.mean) ** 2))

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:  # (n, hidden)
        which, drawn = rng.choice(len(self.weights), n, p=self.weights), np.empty((n, len(self.mean)))
        for k in np.unique(which):
            drawn[which == k] = self.means[k] + normal(self.covs[k], int((which == k).sum()), rng)
        return drawn


@dataclass(frozen=True)
class Law:
    """Signals, and the exact posterior of what is hidden of one."""

    name: str
    hidden: int  # readings of a test signal
    sample: Callable[[int, np.random.Generator], np.ndarray]  # (n, NODES)
    posterior: Callable[[np.ndarray, np.ndarray], Posterior]  # a signal (NODES,), hidden (NODES,)


def ring() -> grcd.Graph:
    W = np.zeros((NODES, NODES))
    for i in range(NODES):
        W[i, (i + 1) % NODES] = W[(i + 1) % NODES, i] = 1.0
    return grcd.Graph.from_adjacency(W)


def smooth(length: float) -> np.ndarray:
    """A covariance that falls off exponentially with the distance on the ring, of variance 1."""
    apart = np.abs(np.subtract.outer(np.arange(NODES), np.arange(NODES)))
    apart = np.minimum(apart, NODES - apart)
    return np.exp(-apart / length)


def normal(cov: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:  # (n, d)
    v, B = np.linalg.eigh(cov)
    return rng.standard_normal((n, len(cov))) @ (B * np.sqrt(np.maximum(v, 0))).T


def weighed(logs: np.ndarray) -> np.ndarray:
    """Weights from logarithms of what they are proportional to."""
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


# -- three Gaussians ---------------------------------------------------------------------------------------------------


def conditioned(cov: np.ndarray, hidden: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of hidden readings about their own mean given what is observed to be off, and the
    log-density of that."""
    oo, ho = cov[np.ix_(~hidden, ~hidden)], cov[np.ix_(hidden, ~hidden)]
    factor = np.linalg.cholesky(oo)
    gain = np.linalg.solve(oo, ho.T).T
    white = np.linalg.solve(factor, off)
    density = -0.5 * white @ white - np.log(np.diag(factor)).sum()
    return gain @ off, cov[np.ix_(hidden, hidden)] - gain @ ho.T, float(density)


def of_mixture(
    x: np.ndarray, hidden: np.ndarray, weights: np.ndarray, means: Sequence[np.ndarray], covs: Sequence[np.ndarray]
) -> Posterior:
    """Of a signal (nodes,) of Gaussians with these weights, where ``hidden`` (nodes,)."""
    parts = [conditioned(cov, hidden, (x - mean)[~hidden]) for mean, cov in zip(means, covs, strict=True)]
    logs = np.log(weights) + np.array([part[2] for part in parts])
    centres = np.stack([mean[hidden] + part[0] for mean, part in zip(means, parts, strict=True)])
    return Posterior(weighed(logs), centres, np.stack([part[1] for part in parts]))


def mixture() -> Law:
    place = 2 * np.pi * np.arange(NODES) / NODES
    means = [1.5 * np.sin(place), 1.5 * np.cos(2 * place), -np.ones(NODES)]
    covs = [0.3 * smooth(2.0), 0.6 * smooth(4.0), 0.2 * smooth(1.0)]
    weights = np.array([0.5, 0.3, 0.2])

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        which = rng.choice(3, n, p=weights)
        return np.stack([means[k] + normal(covs[k], 1, rng)[0] for k in which])

    return Law("mixture", 20, sample, lambda x, hidden: of_mixture(x, hidden, weights, means, covs))


# -- heavy tails -------------------------------------------------------------------------------------------------------


def of_scales(x: np.ndarray, hidden: np.ndarray, K: np.ndarray, grid: np.ndarray = GRID) -> Posterior:
    """Of a signal (nodes,) of heavy tails whose smooth part has the covariance ``s K``: one Gaussian a pair (s, r).

    All pairs have the eigenvectors of the observed ``K`` in common: with ``K_oo = B diag(v) B^T`` and ``b = B^T x_o``
    the observed are independent there, of variance ``s v + ROUGH^2 r``.
    """
    s, r = (np.exp(part.ravel()) for part in np.meshgrid(grid, grid, indexing="ij"))
    v, B = np.linalg.eigh(K[np.ix_(~hidden, ~hidden)])
    b, across = B.T @ x[~hidden], K[np.ix_(hidden, ~hidden)] @ B
    var = s[:, None] * v + ROUGH**2 * r[:, None]
    prior = sum(-DOF / 2 * np.log(scale) - DOF / 2 / scale for scale in (s, r))  # of the logarithm of a scale
    logs = prior - 0.5 * (np.log(var) + b**2 / var).sum(axis=1)
    own = K[np.ix_(hidden, hidden)], np.eye(int(hidden.sum()))
    covs = s[:, None, None] * own[0] + ROUGH**2 * r[:, None, None] * own[1]
    known = (across * (s[:, None] ** 2 / var)[:, None]) @ across.T
    return Posterior(weighed(logs), s[:, None] * (b / var) @ across.T, covs - known)


def heavy() -> Law:
    K = smooth(3.0)

    def scales(n: int, rng: np.random.Generator) -> np.ndarray:  # inverse-gamma, so that a reading is Student's t
        return DOF / 2 / rng.gamma(DOF / 2, 1.0, n)

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        s, r = scales(n, rng), scales(n, rng)
        rough = ROUGH * np.sqrt(r)[:, None] * rng.standard_normal((n, NODES))
        return np.sqrt(s)[:, None] * normal(K, n, rng) + rough

    return Law("heavy", 12, sample, lambda x, hidden: of_scales(x, hidden, K))


LAWS = {"mixture": mixture, "heavy": heavy}
