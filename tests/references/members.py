"""Every kind of reference on one small problem, and what it is, naively: weights, means and dense covariances.

A new kind of reference gets a row in ``MEMBERS``; the contract then holds it to all laws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mixtures
import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from grcd.graphs.graph import Graph
from grcd.references import gaussian
from grcd.references.component import Component
from grcd.references.mixture import Mixture
from grcd.references.observations import Observations
from grcd.references.reference import Reference

NODES = 5
UPPER = np.triu(np.random.default_rng(0).random((NODES, NODES)), 1)
LINKED = np.arange(NODES) != 3


def graph_of(upper: np.ndarray) -> Graph:
    return Graph.from_adjacency(upper + upper.T)


GRAPHS = {
    "random": graph_of(UPPER),  # no two eigenvalues alike
    "ring": graph_of(np.roll(np.eye(NODES), 1, axis=1)),  # eigenspaces of two dimensions
    "isolated node": graph_of(UPPER * np.outer(LINKED, LINKED)),
}


@dataclass(frozen=True)
class Problem:
    """What references are fitted to: a graph, and components of which a Gaussian takes the first covariance alone."""

    graph: Graph
    truth: mixtures.Mixture

    def permuted(self, order: Sequence[int]) -> Problem:
        """The same with the nodes listed in another order."""
        w, m, C = self.truth.w, self.truth.m[:, order], self.truth.C[:, order][:, :, order]
        return Problem(self.graph.permuted(order), mixtures.Mixture(w, m, C))


# -- kinds of Gaussians: how each is fitted to a covariance, and its covariance by other means -------------------------


def dense_spectral(C: np.ndarray, graph: Graph) -> np.ndarray:
    """Projected on each eigenspace of the Laplacian: ``sum_k P_k tr(P_k Sigma) / tr(P_k)``, without any basis."""
    lam, U = np.linalg.eigh(graph.normalized.toarray())
    projectors = [(columns := U[:, np.isclose(lam, value)]) @ columns.T for value in np.unique(lam.round(6))]
    return sum(P * np.trace(P @ C) / np.trace(P) for P in projectors)


def dense_low_rank(C: np.ndarray, graph: Graph) -> np.ndarray:
    """Two principal directions as they are, and the mean of the other variances in all others."""
    v, B = np.linalg.eigh(C)
    leading = sum(v[i] * np.outer(B[:, i], B[:, i]) for i in (-2, -1))
    return leading + v[:-2].mean() * (np.eye(NODES) - B[:, -2:] @ B[:, -2:].T)


def dense_gmrf(C: np.ndarray, graph: Graph) -> np.ndarray:
    L = graph.normalized.toarray()
    return 1.7**2 * np.linalg.inv(L / np.linalg.eigvalsh(L)[-1] + 0.1 * np.eye(NODES))


Fit, Dense = Callable[[np.ndarray, Graph], Component], Callable[[np.ndarray, Graph], np.ndarray]
KINDS: dict[str, tuple[Fit, Dense]] = {
    "spectral": (lambda C, graph: gaussian.spectral(C, graph.spectrum), dense_spectral),
    "scalar": (
        lambda C, graph: gaussian.spectral(C, graph.spectrum).scalar(),
        lambda C, graph: np.trace(C) / NODES * np.eye(NODES),
    ),
    "full": (lambda C, graph: gaussian.full(C), lambda C, graph: C),
    "diagonal": (lambda C, graph: gaussian.diagonal(C), lambda C, graph: np.diag(np.diag(C))),
    "low rank": (lambda C, graph: gaussian.low_rank(C, 2), dense_low_rank),
    "gmrf": (lambda C, graph: gaussian.gmrf(graph.spectrum, delta=0.1, sigma=1.7), dense_gmrf),
}


@dataclass(frozen=True)
class Member:
    """A reference of a problem, and the mixture that it is."""

    reference: Reference
    truth: mixtures.Mixture
    problem: Problem
    rebuilt: Callable[[Problem], Member]

    @property
    def basis(self) -> Tensor:
        """What the forward process hands in when a reference comes back."""
        return torch.from_numpy(self.problem.graph.spectrum.U)

    @property
    def exact(self) -> bool:
        """Whether its flow has a closed form."""
        return len(self.truth.w) == 1

    def permuted(self, order: Sequence[int]) -> Member:
        return self.rebuilt(self.problem.permuted(order))


def one(kind: str) -> Callable[[Problem], Member]:
    """A Gaussian about zero."""
    fit, dense = KINDS[kind]

    def built(problem: Problem) -> Member:
        C = problem.truth.C[0].numpy()
        sigma = torch.from_numpy(dense(C, problem.graph))[None]
        truth = mixtures.Mixture(torch.ones(1).double(), torch.zeros(1, NODES).double(), sigma)
        return Member(fit(C, problem.graph), truth, problem, built)

    return built


def several(*kinds: str) -> Callable[[Problem], Member]:
    """A mixture with a component of each kind."""

    def built(problem: Problem) -> Member:
        w, m, Cs = problem.truth.w[: len(kinds)], problem.truth.m[: len(kinds)], problem.truth.C.numpy()
        pairs = [(KINDS[kind], C) for kind, C in zip(kinds, Cs, strict=False)]
        sigma = torch.from_numpy(np.array([dense(C, problem.graph) for (_, dense), C in pairs]))
        parts = tuple(fit(C, problem.graph) for (fit, _), C in pairs)
        w = w / w.sum()
        return Member(Mixture(w, m, parts), mixtures.Mixture(w, m, sigma), problem, built)

    return built


PROBLEM = Problem(GRAPHS["random"], mixtures.random_mixture(NODES))
OTHERS = {name: replace(PROBLEM, graph=GRAPHS[name]) for name in ("ring", "isolated node")}
MEMBERS: dict[str, Member] = {
    **{kind: one(kind)(PROBLEM) for kind in KINDS},
    **{f"{kind}, {name}": one(kind)(problem) for name, problem in OTHERS.items() for kind in ("spectral", "gmrf")},
    "mixture": several("spectral", "full", "diagonal")(PROBLEM),
    "mixture of low rank": several("low rank", "low rank", "low rank")(PROBLEM),
    "mixture of one": several("full")(PROBLEM),
}


# -- signals, and what may be observed of them -------------------------------------------------------------------------

BATCH = 6
X = 2 * mixtures.normal(BATCH, NODES, seed=1)
H = mixtures.normal(3, NODES, seed=2)
HOLES = mixtures.normal(BATCH, NODES, seed=3) > 0
HOLES[0], HOLES[1] = True, False
READINGS = {
    "entries": Observations(torch.where(HOLES, X, torch.nan)),
    "noisy entries": Observations(torch.where(HOLES, X, torch.nan), noise=torch.linspace(0.1, 0.5, NODES).double()),
    "sums": Observations(torch.where(HOLES[:, :3], X @ H.T, torch.nan), H, torch.tensor([0.0, 0.2, 0.7]).double()),
}


def conditioned(truth: mixtures.Mixture, readings: Observations, b: int) -> tuple:
    """Weights, means, covariances of the components given one signal's observations, and the log-evidence."""
    kept = ~torch.isnan(readings.y[b]).numpy()
    A = (np.eye(NODES) if readings.H is None else readings.H.numpy())[kept]
    R = np.diag((np.zeros(len(kept)) if readings.noise is None else readings.noise.numpy())[kept])
    y, terms, means, covariances = readings.y[b].numpy()[kept], [], [], []
    for w, m, C in zip(truth.w.numpy(), truth.m.numpy(), truth.C.numpy(), strict=True):
        S = A @ C @ A.T + R
        gain = C @ A.T @ np.linalg.inv(S)
        terms.append(w * (multivariate_normal(A @ m, S).pdf(y) if len(y) else 1.0))
        means.append(m + gain @ (y - A @ m))
        covariances.append(C - gain @ A @ C)
    return np.array(terms) / np.sum(terms), np.array(means), np.array(covariances), np.log(np.sum(terms))
