"""Every kind of reference on one small problem, and what it is, naively: weights, means and dense covariances.

A new kind of reference gets a row in ``MEMBERS``; the contract then holds it to all laws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mixtures
import numpy as np
import scipy.sparse as sp
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from grcd.graphs.graph import Graph
from grcd.graphs.kronecker import Basis
from grcd.graphs.space import SignalSpace
from grcd.references import gaussian
from grcd.references.component import Component
from grcd.references.lags import Shrinkage
from grcd.references.mixture import Mixture
from grcd.references.observations import Observations
from grcd.references.precision import Given, Regressions
from grcd.references.reference import Reference
from grcd.references.separable import Separable
from grcd.references.sparse import Sparse
from grcd.references.sparse_mixture import SparseMixture
from grcd.references.stationary import Stationary

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
        nodes = len(self.graph)
        flat = [step * nodes + node for step in range(self.truth.m.shape[1] // nodes) for node in order]
        w, m, C = self.truth.w, self.truth.m[:, flat], self.truth.C[:, flat][:, :, flat]
        return Problem(self.graph.permuted(order), mixtures.Mixture(w, m, C))


# -- kinds of Gaussians: how each is fitted to a covariance, and its covariance by other means -------------------------


def dense_spectral(C: np.ndarray, graph: Graph) -> np.ndarray:
    return projected(C, graph.normalized.toarray())


def projected(C: np.ndarray, laplacian: np.ndarray) -> np.ndarray:
    """On each eigenspace of a Laplacian: ``sum_k P_k tr(P_k Sigma) / tr(P_k)``, without any basis."""
    lam, U = np.linalg.eigh(laplacian)
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


def wide(C: np.ndarray) -> np.ndarray:  # (nodes, 2)
    """Modes that all nodes share."""
    v, B = np.linalg.eigh(C)
    return B[:, -2:] * np.sqrt(v[-2:] / 2)


def fit_regressions(C: np.ndarray, graph: Graph) -> Sparse:
    """Each node on its neighbours with a larger variance, with coefficients that are not small."""
    order = np.argsort(np.diag(C))
    A, W = np.zeros_like(C), graph.weights.toarray()
    for place, j in enumerate(order):
        later = order[place + 1 :][W[j, order[place + 1 :]] > 0]
        A[j, later] = C[j, later] / (1 + np.abs(C[j, later]).sum())
    return Sparse(Regressions(sp.csr_array(A), np.diag(C) / 2, order), wide(C))


def dense_regressions(C: np.ndarray, graph: Graph) -> np.ndarray:
    local = np.linalg.inv(np.eye(len(C)) - fit_regressions(C, graph).precision.A.toarray())
    return local @ np.diag(np.diag(C) / 2) @ local.T + wide(C) @ wide(C).T


def fit_polynomial(C: np.ndarray, graph: Graph) -> Sparse:
    L = graph.normalized
    return Sparse(Given(sp.csr_array(0.3 * sp.eye_array(len(C)) + L + 0.2 * (L @ L))), np.zeros((len(C), 0)))


def dense_polynomial(C: np.ndarray, graph: Graph) -> np.ndarray:
    lam, U = np.linalg.eigh(graph.normalized.toarray())
    return (U / (0.3 + lam + 0.2 * lam**2)) @ U.T


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
    "sparse": (fit_regressions, dense_regressions),
    "sparse, a polynomial": (fit_polynomial, dense_polynomial),
}


@dataclass(frozen=True)
class Member:
    """A reference of a problem, and the mixture that it is."""

    reference: Reference
    truth: mixtures.Mixture
    problem: Problem
    rebuilt: Callable[[Problem], Member]
    steps: int = 1

    @property
    def basis(self) -> Basis:
        """What the forward process hands in when a reference comes back."""
        return SignalSpace(self.problem.graph, self.steps).spectrum.basis

    @property
    def d(self) -> int:
        return self.truth.m.shape[1]

    @property
    def nodes(self) -> int:
        return self.d // self.steps

    @property
    def x(self) -> Tensor:  # (BATCH, d)
        """Signals."""
        return SIGNALS[:, : self.d]

    def readings(self, name: str) -> Observations:
        """What is observed of them."""
        return observed(name, self.d)

    def order(self, nodes: Sequence[int]) -> list[int]:  # (d,)
        """Where the entries of a signal come from if nodes are listed so."""
        return [step * self.nodes + node for step in range(self.steps) for node in nodes]

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


def several(*kinds: str, mixture: type[Mixture] = Mixture) -> Callable[[Problem], Member]:
    """A mixture with a component of each kind."""

    def built(problem: Problem) -> Member:
        w, m, Cs = problem.truth.w[: len(kinds)], problem.truth.m[: len(kinds)], problem.truth.C.numpy()
        pairs = [(KINDS[kind], C) for kind, C in zip(kinds, Cs, strict=False)]
        sigma = torch.from_numpy(np.array([dense(C, problem.graph) for (_, dense), C in pairs]))
        parts = tuple(fit(C, problem.graph) for (fit, _), C in pairs)
        w = w / w.sum()
        return Member(mixture(w, m, parts), mixtures.Mixture(w, m, sigma), problem, built)

    return built


# -- windows: two steps of three nodes, their covariances entry by entry -----------------------------------------------

STEPS, FEW = 2, 3
WEAK = Shrinkage(nodes=0.1, separable=0.2, local=0.3, noise=0.05, readings=0.1)


def lagged(C: np.ndarray) -> np.ndarray:  # (d, d) -> (STEPS, FEW, FEW)
    """Lag covariances that belong to a window's covariance: means along its diagonals of blocks."""
    C = C.reshape(STEPS, FEW, STEPS, FEW)
    return np.array([np.mean([C[t, :, t - lag] for t in range(lag, STEPS)], axis=0) for lag in range(STEPS)])


def dense_stationary(C: np.ndarray) -> np.ndarray:
    lags, by, sigma = lagged(C), WEAK, np.zeros((STEPS, FEW, STEPS, FEW))
    for t, i, s, j in np.ndindex(sigma.shape):
        c = lags[t - s][i, j] if t >= s else lags[s - t][j, i]
        r = np.trace(lags[abs(t - s)]) / np.trace(lags[0])
        value = (1 - by.nodes - by.separable - by.readings) * c + by.separable * r * lags[0][i, j]
        value += (by.nodes * c) * (i == j) + (by.readings * lags[0][i, i] + by.noise) * (i == j and t == s)
        rho = lags[0][i, j] ** 2 / (lags[0][i, i] * lags[0][j, j])
        sigma[t, i, s, j] = value if i == j else value * rho / (rho + by.local**2)
    return sigma.reshape(STEPS * FEW, -1)


def dense_separable(C: np.ndarray) -> np.ndarray:
    lags, by, sigma = lagged(C), WEAK, np.zeros((STEPS, FEW, STEPS, FEW))
    for t, i, s, j in np.ndindex(sigma.shape):
        r = np.trace(lags[abs(t - s)]) / np.trace(lags[0]) * (1 if t == s else 1 - by.readings)
        rho = lags[0][i, j] ** 2 / (lags[0][i, i] * lags[0][j, j])
        weak = 1 if i == j else rho / (rho + by.local**2) * (1 - by.nodes - by.readings)
        sigma[t, i, s, j] = r * weak * lags[0][i, j] + by.noise * (i == j and t == s)
    return sigma.reshape(STEPS * FEW, -1)


def fit_separable(C: np.ndarray) -> Separable:
    lags = torch.from_numpy(lagged(C))
    return Separable.of(lags[0], lags.diagonal(dim1=1, dim2=2).sum(1) / lags[0].trace(), WEAK)


def regressions_in_time(C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (d, d), (d,), (d,)
    """Coefficients, variances and order: each reading on those of its row with a larger variance, and on the row
    before; the last row first."""
    nodes = np.argsort(np.diag(lagged(C)[0]))
    order = np.concatenate([step * FEW + nodes for step in reversed(range(STEPS))])
    A = np.zeros_like(C)
    for place, j in enumerate(order):
        later = order[place + 1 :]
        A[j, later] = C[j, later] / (1 + np.abs(C[j, later]).sum())
    return A, np.diag(C) / 2, order


def fit_sparse(C: np.ndarray) -> Sparse:
    A, D, order = regressions_in_time(C)
    return Sparse(Regressions(sp.csr_array(A), D, order), wide(C))


def dense_sparse(C: np.ndarray) -> np.ndarray:
    A, D, _ = regressions_in_time(C)
    local = np.linalg.inv(np.eye(len(C)) - A)
    return local @ np.diag(D) @ local.T + wide(C) @ wide(C).T


IN_TIME: dict[str, tuple[Callable[[np.ndarray], Component], Callable[[np.ndarray], np.ndarray]]] = {
    "stationary": (lambda C: Stationary.of(torch.from_numpy(lagged(C)), WEAK), dense_stationary),
    "separable": (fit_separable, dense_separable),
    "sparse": (fit_sparse, dense_sparse),
}


def of_windows(kind: str, count: int = 1) -> Callable[[Problem], Member]:
    """One Gaussian about zero over windows, or a mixture of several."""
    fit, dense = IN_TIME[kind]

    def built(problem: Problem) -> Member:
        w, m, Cs = (part[:count] for part in (problem.truth.w, problem.truth.m, problem.truth.C.numpy()))
        w, m = w / w.sum(), m if count > 1 else torch.zeros_like(m)
        sigma, parts = torch.from_numpy(np.array([dense(C) for C in Cs])), tuple(fit(C) for C in Cs)
        reference = Mixture(w, m, parts) if count > 1 else parts[0]
        return Member(reference, mixtures.Mixture(w, m, sigma), problem, built, STEPS)

    return built


def on_product(problem: Problem) -> Member:
    """The paper's, on the product graph, by the eigenspaces of its Laplacian."""
    C, eye = problem.truth.C[0].numpy(), np.eye(STEPS)
    L = problem.graph.normalized.toarray()
    path = np.array([[1.0, -1.0], [-1.0, 1.0]])
    product = np.kron(path / 2, np.eye(FEW)) + np.kron(eye, L / np.linalg.eigvalsh(L)[-1])
    sigma = torch.from_numpy(projected(C, product))[None]
    truth = mixtures.Mixture(torch.ones(1).double(), torch.zeros(1, len(C)).double(), sigma)
    fitted = gaussian.spectral(C, SignalSpace(problem.graph, STEPS).spectrum)
    return Member(fitted, truth, problem, on_product, STEPS)


PROBLEM = Problem(GRAPHS["random"], mixtures.random_mixture(NODES))
WINDOWS = Problem(graph_of(UPPER[:FEW, :FEW]), mixtures.random_mixture(STEPS * FEW, seed=5))
OTHERS = {name: replace(PROBLEM, graph=GRAPHS[name]) for name in ("ring", "isolated node")}
MEMBERS: dict[str, Member] = {
    **{kind: one(kind)(PROBLEM) for kind in KINDS},
    **{f"{kind}, {name}": one(kind)(problem) for name, problem in OTHERS.items() for kind in ("spectral", "gmrf")},
    "sparse, isolated node": one("sparse")(OTHERS["isolated node"]),
    "mixture": several("spectral", "full", "diagonal")(PROBLEM),
    "mixture of low rank": several("low rank", "low rank", "low rank")(PROBLEM),
    "mixture of one": several("full")(PROBLEM),
    "mixture of one sparse": several("sparse", mixture=SparseMixture)(PROBLEM),
    "mixture of two sparse": several("sparse", "sparse", mixture=SparseMixture)(PROBLEM),
    "mixture of three sparse": several("sparse", "sparse", "sparse", mixture=SparseMixture)(PROBLEM),
}
WINDOWED: dict[str, Member] = {
    "stationary": of_windows("stationary")(WINDOWS),
    "separable": of_windows("separable")(WINDOWS),
    "sparse, of windows": of_windows("sparse")(WINDOWS),
    "spectral on a product": on_product(WINDOWS),
    "mixture of stationary": of_windows("stationary", 2)(WINDOWS),
    "mixture of separable": of_windows("separable", 3)(WINDOWS),
}


# -- signals, and what may be observed of them -------------------------------------------------------------------------

BATCH, MOST = 6, STEPS * FEW
SIGNALS = 2 * mixtures.normal(BATCH, MOST, seed=1)
SUMS = mixtures.normal(3, MOST, seed=2)
HOLES = mixtures.normal(BATCH, MOST, seed=3) > 0
HOLES[0], HOLES[1] = True, False


def observed(name: str, d: int) -> Observations:
    """Readings of the signals, of which every signal misses others."""
    x, sums, holes = SIGNALS[:, :d], SUMS[:, :d], HOLES[:, :d]
    if name == "sums":
        noise = torch.tensor([0.0, 0.2, 0.7]).double()
        return Observations(torch.where(holes[:, :3], x @ sums.T, torch.nan), sums, noise)
    noise = torch.linspace(0.1, 0.5, d).double() if name == "noisy entries" else None
    return Observations(torch.where(holes, x, torch.nan), noise=noise)


X, H = SIGNALS[:, :NODES], SUMS[:, :NODES]
READINGS = {name: observed(name, NODES) for name in ("entries", "noisy entries", "sums")}


def conditioned(truth: mixtures.Mixture, readings: Observations, b: int) -> tuple:
    """Weights, means, covariances of the components given one signal's observations, and the log-evidence."""
    kept = ~torch.isnan(readings.y[b]).numpy()
    A = (np.eye(truth.m.shape[1]) if readings.H is None else readings.H.numpy())[kept]
    R = np.diag((np.zeros(len(kept)) if readings.noise is None else readings.noise.numpy())[kept])
    y, terms, means, covariances = readings.y[b].numpy()[kept], [], [], []
    for w, m, C in zip(truth.w.numpy(), truth.m.numpy(), truth.C.numpy(), strict=True):
        S = A @ C @ A.T + R
        gain = C @ A.T @ np.linalg.inv(S)
        terms.append(w * (multivariate_normal(A @ m, S).pdf(y) if len(y) else 1.0))
        means.append(m + gain @ (y - A @ m))
        covariances.append(C - gain @ A @ C)
    return np.array(terms) / np.sum(terms), np.array(means), np.array(covariances), np.log(np.sum(terms))
