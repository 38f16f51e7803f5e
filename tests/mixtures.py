"""A Gaussian mixture whose score is known at every noise level: the oracle for score and solvers.

Data ``sum_k w_k N(m_k, C_k)`` have the marginal ``p_q = sum_k w_k N(m_k, C_k + q^2 I)`` in conjugate coordinates, so
``eps_hat = -q grad log p_q = q sum_k p(k | x~) (C_k + q^2 I)^-1 (x~ - m_k)``. Everything is float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from grcd.graph import Graph
from grcd.process import ConjugateProcess


@dataclass(frozen=True)
class Mixture:
    w: Tensor  # (components,)
    m: Tensor  # (components, nodes)
    C: Tensor  # (components, nodes, nodes)

    def log_density(self, x: Tensor, q) -> Tensor:  # (batch, nodes), float or (batch, 1) -> (batch,)
        """``log p_q(x~)``."""
        return torch.logsumexp(self._terms(x, q)[0], -1)

    def eps_hat(self, x: Tensor, q) -> Tensor:  # (batch, nodes), float or (batch, 1) -> (batch, nodes)
        """``E[eps | x~]``, in closed form."""
        logs, solved = self._terms(x, q)
        return q * (torch.softmax(logs, -1)[..., None] * solved).sum(-2)

    def covariance(self) -> np.ndarray:
        """Of the data."""
        mean = self.w @ self.m
        second = (self.w[:, None, None] * (self.C + self.m[:, :, None] * self.m[:, None, :])).sum(0)
        return (second - torch.outer(mean, mean)).numpy()

    def solution(self, x: Tensor, q0: float, q1: float) -> Tensor:
        """``dx~/dq = eps_hat`` from ``q0`` to ``q1``: eighth-order Runge-Kutta, error near 1e-12."""

        def velocity(q, flat):
            return self.eps_hat(torch.from_numpy(flat.reshape(x.shape)), float(q)).numpy().ravel()

        end = solve_ivp(velocity, (q0, q1), x.numpy().ravel(), method="DOP853", rtol=1e-13, atol=1e-13)
        return torch.from_numpy(end.y[:, -1].reshape(x.shape))

    def _terms(self, x: Tensor, q) -> tuple[Tensor, Tensor]:
        """``log w_k N(x~; m_k, V_k)`` and ``V_k^-1 (x~ - m_k)``, with ``V_k = C_k + q^2 I``."""
        nodes = self.m.shape[1]
        q2 = torch.as_tensor(q, dtype=torch.float64).reshape(-1, 1, 1, 1) ** 2
        V = self.C + q2 * torch.eye(nodes, dtype=torch.float64)
        gap = x[:, None, :] - self.m
        solved = torch.linalg.solve(V, gap[..., None])[..., 0]
        quadratic = (gap * solved).sum(-1)
        return self.w.log() - (quadratic + torch.logdet(V) + nodes * math.log(2 * math.pi)) / 2, solved


def random_graph(nodes: int = 5, seed: int = 0) -> Graph:
    """Every pair linked, with unequal weights: no degenerate eigenvalue."""
    W = np.triu(np.random.default_rng(seed).uniform(0.2, 2.0, (nodes, nodes)), 1)
    return Graph.from_adjacency(W + W.T)


def random_mixture(nodes: int = 5, components: int = 3, seed: int = 0) -> Mixture:
    """Overlapping components with full covariances: smooth enough that few steps are asymptotic, far from Gaussian."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((components, nodes, nodes)) * 0.4
    w = rng.uniform(1, 2, components)
    return Mixture(
        torch.from_numpy(w / w.sum()),
        torch.from_numpy(rng.standard_normal((components, nodes))),
        torch.from_numpy(A @ A.transpose(0, 2, 1) + 0.3 * np.eye(nodes)),
    )


def random_process(**settings) -> ConjugateProcess:
    return ConjugateProcess.on(random_graph().spectrum, **settings)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))
