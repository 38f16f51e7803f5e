"""A Gaussian mixture whose score is known at every noise level: the oracle for score and solvers.

Data ``sum_k w_k N(m_k, C_k)`` have the marginal ``p_q = sum_k w_k N(m_k, C_k + q^2 I)`` in conjugate coordinates, so
``eps_hat = -q grad log p_q = q sum_k p(k | x~) (C_k + q^2 I)^-1 (x~ - m_k)``. Everything is float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.integrate import simpson, solve_ivp
from torch import Tensor

from grcd.diffusion.process import ConjugateProcess
from grcd.graphs.graph import Graph
from grcd.references.gaussian import Gaussian

torch.set_num_threads(1)  # on five nodes threads only wait for each other


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

    def solution(self, x: Tensor, q0: float, q1: float, forcing=()) -> Tensor:
        """``dx~/dq = eps_hat + sum_j forcing_j (q - q0)^j`` to ``q1``: eighth-order Runge-Kutta, error near 1e-12."""

        def velocity(q, flat):
            eps = self.eps_hat(torch.from_numpy(flat.reshape(x.shape)), float(q))
            return (eps + sum(c * (q - q0) ** j for j, c in enumerate(forcing))).numpy().ravel()

        end = solve_ivp(velocity, (q0, q1), x.numpy().ravel(), method="DOP853", rtol=1e-13, atol=1e-13)
        return torch.from_numpy(end.y[:, -1].reshape(x.shape))

    @cached_property
    def _eigenpairs(self) -> tuple[Tensor, Tensor]:  # (components, nodes), (components, nodes, nodes)
        return torch.linalg.eigh(self.C)

    def _terms(self, x: Tensor, q) -> tuple[Tensor, Tensor]:
        """``log w_k N(x~; m_k, V_k)`` and ``V_k^-1 (x~ - m_k)``, with ``V_k = C_k + q^2 I``."""
        v, B = self._eigenpairs
        variance = v + torch.as_tensor(q, dtype=torch.float64).reshape(-1, 1, 1) ** 2
        z = ((x[:, None, :] - self.m)[..., None, :] @ B)[..., 0, :]
        logs = self.w.log() - (z.square() / variance + torch.log(2 * math.pi * variance)).sum(-1) / 2
        return logs, ((z / variance)[..., None, :] @ B.mT)[..., 0, :]


class GraphCoordinates:
    """Appendices A.3 to A.5 as printed, for a mixture: one mode ``i`` and one time at a time, in graph coordinates.

    ``x`` is one signal, as its graph-Fourier coefficients.
    """

    def __init__(self, mixture: Mixture, process: ConjugateProcess, reference: Gaussian):
        self.mixture, self.kappa, self.sigma, self.N = mixture, process.kappa, process.sigma, len(process.mu)
        self.mu, self.v, self.U = process.mu.numpy(), reference.v.numpy(), process.U.numpy()

    def a(self, i, t):
        return (1 + self.mu[i] * (self.kappa * t) ** 2 / self.sigma**2) ** -0.5

    def c(self, i, t):
        return self.kappa * t * self.kappa / (self.sigma**2 + self.mu[i] * (self.kappa * t) ** 2)

    def gamma(self, i, t):
        return self.a(i, t) ** 2 * (self.v[i] + (self.kappa * t) ** 2)

    def eta(self, i, t):
        return self.kappa * t * self.a(i, t)

    def g2(self, i, t):
        return 2 * self.sigma**2 * self.c(i, t)

    def eps_modes(self, x_conjugate, q):
        """``U^T eps_hat`` of the mixture."""
        return (self.mixture.eps_hat(torch.from_numpy(self.U @ x_conjugate)[None], q).numpy() @ self.U)[0]

    def score(self, x, t):
        """``s_i = -E[eps_i | x] / eta_i``."""
        eps = self.eps_modes(np.array([x[i] / self.a(i, t) for i in range(self.N)]), self.kappa * t)
        return np.array([-eps[i] / self.eta(i, t) for i in range(self.N)])

    def residual(self, x, t):
        """``r_i = s_i - s_ref,i``."""
        s = self.score(x, t)
        return np.array([s[i] + x[i] / self.gamma(i, t) for i in range(self.N)])

    def velocity(self, x, t):
        """Eq. pf_ode_app."""
        s = self.score(x, t)
        return np.array([-self.mu[i] * self.c(i, t) * x[i] - self.g2(i, t) / 2 * s[i] for i in range(self.N)])

    def heun_step(self, x, t0, t1, correct):
        d0 = self.velocity(x, t0)
        predicted = x + (t1 - t0) * d0
        return x + (t1 - t0) * (d0 + self.velocity(predicted, t1)) / 2 if correct else predicted

    def exponential_step(self, x, t0, t1, correct):
        """Eqs. B_alpha_app to corrector_app: ``r0`` at both ends predicts, ``r0`` and ``r1`` correct."""
        tau = np.linspace(t0, t1, 65)
        alpha = (tau - t0) / (t1 - t0)
        carried, w0, w1 = np.zeros((3, self.N))
        for i in range(self.N):
            B = np.array([-np.sqrt(self.gamma(i, t1) / self.gamma(i, t)) * self.g2(i, t) / 2 for t in tau])
            w0[i], w1[i] = simpson(B * (1 - alpha), x=tau), simpson(B * alpha, x=tau)
            carried[i] = np.sqrt(self.gamma(i, t1) / self.gamma(i, t0)) * x[i]
        r0 = self.residual(x, t0)
        predicted = carried + (w0 + w1) * r0
        return carried + w0 * r0 + w1 * self.residual(predicted, t1) if correct else predicted

    def integrate(self, step, grid, x_max: Tensor, correct_last: bool) -> Tensor:
        """From conjugate coordinates at ``grid[0]`` to those at ``grid[-1]``, through graph coordinates."""
        times, rows = [q / self.kappa for q in grid], []
        for x in x_max.numpy() @ self.U:
            x = np.array([self.a(i, times[0]) * x[i] for i in range(self.N)])
            for j in range(len(times) - 1):
                x = step(x, times[j], times[j + 1], correct_last or j < len(times) - 2)
            rows.append(self.U @ [x[i] / self.a(i, times[-1]) for i in range(self.N)])
        return torch.from_numpy(np.array(rows))


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
