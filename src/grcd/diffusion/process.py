"""Forward processes, diagonal in the graph-Fourier basis (section 3.1, appendix A.1).

**Conjugate process.** The clock of mode ``i`` is chosen such that ``x~ = A_t^-1 x`` is plain isotropic noise,
``x~_t = x_0 + q(t) eps``, with ``q(t) = kappa t``. Matching the coefficients of

    dx_i = -mu_i c_i x_i dt + sqrt(2 sigma^2 c_i) dW_i          (eq. sde)

with those of ``a_i x~_i`` gives ``a_i' = -mu_i c_i a_i`` and ``sigma^2 c_i = a_i^2 q q'``, whose solution is

    a_i = (1 + mu_i q^2 / sigma^2)^-1/2                         (Prop. 1)
    c_i = q q' / (sigma^2 + mu_i q^2)                           (Cor. 1, eq. Mode-dependent_clock)
    C_i = log(1 + mu_i q^2 / sigma^2) / (2 mu_i)                (eq. integrated_clock_app)

Every mode then has noise variance ``q^2`` in conjugate coordinates and conditional SNR ``1/q^2``.

**Variance exploding** (EDM and the preconditioning controls). The same isotropic corruption without the graph,
``x = x_0 + q eps``, with log-normal levels in training, down to zero noise in sampling.

**Heat** (GAD, arXiv 2510.05036). One clock for all modes, ``dx = -L_gamma x ds + sqrt(2) sigma dW`` in heat time ``s``
with ``L_gamma = L + gamma I``, so that ``x = H x_0 + sqrt(Sigma) eps`` with ``H = exp(-s L_gamma)`` and
``Sigma = sigma^2 (I - H^2) L_gamma^-1``. Heat time runs as ``s(t) = int c`` with ``c(t) = c_min + k (t/T)^alpha`` and
``s(T) = S``. Training and sampling choose heat times and map them to ``t`` by two Newton steps from ``s/S``, kept in
[0, 1]. Those do not converge: nearly all of heat time, from ``s`` = 0.1 up, ends at ``t`` above 0.78, where ``s(t)`` is
above 2. The process itself stays exact, because everything is a function of ``t``, but little is ever seen below, and
a sampler's last step is a leap. This is what the paper's figures show (docs/paper.md).

**Shared clock** (appendix A.1.2). One clock for all modes, as in graph heat diffusion, cannot do that: its variance in
coordinates with the attenuation undone is ``sigma^2/mu_i (exp(2 mu_i C) - 1)``, which depends on ``mu_i``.

Times and noise levels are floats or tensors; per-mode results broadcast as ``(..., modes)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self, overload

import numpy as np
import torch
from torch import Tensor

from ..graphs.graph import LargeSpectrum, Spectrum
from ..graphs.kronecker import Basis
from ..graphs.polynomials import Polynomials, refuse
from ..graphs.space import SignalSpace
from ..references.propagator import Level
from .grids import Grid

LEVELS = 32  # of training on a large graph


class Process(ABC):
    """A forward process: how noise comes in, which levels there are, and what the network is told of them."""

    U: Basis  # (d, modes), the graph-Fourier basis

    @classmethod
    @abstractmethod
    def of(cls, space: SignalSpace, settings: dict[str, Any]) -> Self:
        """On a graph, with those of the settings (``Config.process``, and ``levels``) that concern it."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Self: ...

    @abstractmethod
    def t(self, q: Level) -> Level:
        """What the network is told of a level."""

    @abstractmethod
    def training_level(self, u: Tensor) -> Tensor:
        """The level of a training draw, for ``u`` uniform on [0, 1)."""

    @abstractmethod
    def levels(self, steps: int, grid: Grid, to_zero: bool) -> np.ndarray:  # (steps + 1,)
        """The levels that a sampler steps through, the largest first; ``to_zero`` adds a last one without noise."""

    def between(self, levels: tuple[float, float]) -> Self:
        """The same process, sampled between other levels; only where noise is the same over any range."""
        return self

    def modes(self, x: Tensor) -> Tensor:
        """Graph-Fourier coefficients ``U^T x`` of signals in the rows of ``x``."""
        return x @ self.U

    def nodes(self, z: Tensor) -> Tensor:
        return z @ self.U.T

    def to_graph(self, x: Tensor, q: Level) -> Tensor:
        """From the coordinates of the sampler to the graph's, the same but for a process that says otherwise."""
        return x


class Isotropic(Process):
    """Plain noise ``x~ = x_0 + q eps`` in some coordinates, from ``q_min`` to ``q_max``: what a reference, guidance and
    all solvers but GAD's are made for."""

    @property
    @abstractmethod
    def q_min(self) -> float: ...

    @property
    @abstractmethod
    def q_max(self) -> float: ...

    def levels(self, steps: int, grid: Grid, to_zero: bool) -> np.ndarray:  # (steps + 1,)
        if not to_zero:
            return grid.levels(self.q_max, self.q_min, steps)
        # EDM's: the levels but the last follow the grid.
        first = grid.levels(self.q_max, self.q_min, steps - 1) if steps > 1 else [grid.begin(self.q_max, self.q_min)]
        return np.append(first, 0.0)


@dataclass(frozen=True)
class ConjugateProcess(Isotropic):
    """``x_t = A_t (x_0 + q(t) eps)`` with ``A_t = (I + q^2/sigma^2 L_delta)^-1/2``."""

    mu: Tensor  # (modes,) eigenvalues of L_delta, float64
    U: Basis  # (nodes, modes) their eigenvectors
    kappa: float = 2.0
    sigma: float = 1.0
    t_min: float = 0.02
    t_max: float = 1.0

    @classmethod
    def of(cls, space: SignalSpace, settings: dict[str, Any]) -> ConjugateProcess:
        return cls.on(space.spectrum, **{key: value for key, value in settings.items() if key != "levels"})

    @classmethod
    def on(cls, spectrum: Spectrum, delta: float = 0.05, **settings: float) -> ConjugateProcess:
        if isinstance(spectrum, LargeSpectrum):
            return LargeConjugateProcess(torch.tensor([delta], dtype=torch.float64), spectrum.basis, **settings)
        return cls(torch.from_numpy(spectrum.scaled(delta)), spectrum.basis, **settings)

    def to(self, device: torch.device | str) -> ConjugateProcess:
        return replace(self, mu=self.mu.to(device), U=self.U.to(device))

    # -- the scalar clock ------------------------------------------------------------------------------------------

    @overload
    def q(self, t: float) -> float: ...
    @overload
    def q(self, t: Tensor) -> Tensor: ...
    def q(self, t: Level) -> Level:
        """Noise level ``q(t) = kappa t``."""
        return self.kappa * t

    def t(self, q: Level) -> Level:
        """Its inverse: the time the network is told."""
        return q / self.kappa

    @property
    def q_min(self) -> float:
        return self.q(self.t_min)

    @property
    def q_max(self) -> float:
        return self.q(self.t_max)

    def training_level(self, u: Tensor) -> Tensor:
        """The noise level of a training draw: ``t`` uniform on [t_min, t_max], for ``u`` uniform on [0, 1)."""
        return self.q(self.t_min + (self.t_max - self.t_min) * u)

    # -- per mode --------------------------------------------------------------------------------------------------

    def a(self, q: Level) -> Tensor:
        """Signal coefficient ``a_i = (1 + mu_i q^2/sigma^2)^-1/2`` (Prop. 1)."""
        return (1 + self.mu * q**2 / self.sigma**2) ** -0.5

    def eta(self, q: Level) -> Tensor:
        """Conditional standard deviation ``eta_i = q a_i`` (section 3.3); tends to ``sigma / sqrt(mu_i)``."""
        return q * self.a(q)

    def conditional_snr(self, q: Level) -> Tensor:
        """``a_i^2 / eta_i^2 = 1/q^2``, the same for every mode (eq. snr_conditional)."""
        return self.a(q) ** 2 / self.eta(q) ** 2

    def c(self, t: Level) -> Tensor:
        """Clock rate ``c_i = q q' / (sigma^2 + mu_i q^2)`` (Cor. 1)."""
        q = self.q(t)
        return q * self.kappa / (self.sigma**2 + self.mu * q**2)

    def C(self, t: Level) -> Tensor:
        """Integrated clock ``C_i = log(1 + mu_i q^2/sigma^2) / (2 mu_i)`` (eq. integrated_clock_app)."""
        return torch.log1p(self.mu * self.q(t) ** 2 / self.sigma**2) / (2 * self.mu)

    def b(self, t: Level) -> Tensor:
        """Drift coefficient ``b_i = -mu_i c_i``."""
        return -self.mu * self.c(t)

    def g2(self, t: Level) -> Tensor:
        """Squared diffusion coefficient ``g_i^2 = 2 sigma^2 c_i``."""
        return 2 * self.sigma**2 * self.c(t)

    def gamma(self, v: Level, q: Level) -> Tensor:
        """Variance of a reference with spectral variances ``v``: ``gamma_i = a_i^2 (v_i + q^2)`` (eq. gamma)."""
        return self.a(q) ** 2 * (v + q**2)

    @property
    def gamma_limit(self) -> Tensor:
        """``sigma^2 / mu_i``: what ``gamma_i`` tends to as ``q`` grows, whatever ``v`` (eq. gmrf_limit_main)."""
        return self.sigma**2 / self.mu

    # -- coordinates -----------------------------------------------------------------------------------------------

    def to_graph(self, x: Tensor, q: Level) -> Tensor:
        """``x = A_t x~``: from conjugate to graph coordinates, where the network looks at the signal."""
        return self.nodes(self.modes(x) * self.a(q))

    def to_conjugate(self, x: Tensor, q: Level) -> Tensor:
        """``x~ = A_t^-1 x``."""
        return self.nodes(self.modes(x) / self.a(q))

    def graph_score(self, eps: Tensor, q: Level) -> Tensor:
        """The score in graph coordinates that a noise prediction stands for, ``s_i = -eps_i / eta_i`` (eq. score)."""
        return -self.nodes(self.modes(eps) / self.eta(q))


@dataclass(frozen=True)
class LargeConjugateProcess(ConjugateProcess):
    """The same on a graph too large for a basis: filters by sparse products; ``mu`` holds ``delta`` alone.

    Every level of training takes factors of its own in a sparse reference: there are ``LEVELS``.
    """

    U: Polynomials

    def to(self, device: torch.device | str) -> LargeConjugateProcess:
        return replace(self, mu=self.mu.to(device), U=self.U.to(device))

    def training_level(self, u: Tensor) -> Tensor:
        return super().training_level((torch.floor(u * LEVELS) + 0.5) / LEVELS)

    def modes(self, x: Tensor) -> NoReturn:
        refuse(len(self.U))

    def nodes(self, z: Tensor) -> NoReturn:
        refuse(len(self.U))

    def _filtered(self, x: Tensor, q: Level, power: float) -> Tensor:
        """``(I + q^2 / sigma^2 L_delta)^power x``."""
        scale = torch.as_tensor(q, dtype=torch.float64, device=x.device) ** 2 / self.sigma**2
        if scale.numel() > 1:  # a level a signal
            scale = scale.expand(*x.shape[:-1], 1).reshape(-1, 1)
        return self.U.filtered(x, lambda s: (1 + (s + self.mu) * scale) ** power)

    def to_graph(self, x: Tensor, q: Level) -> Tensor:
        return self._filtered(x, q, -0.5)

    def to_conjugate(self, x: Tensor, q: Level) -> Tensor:
        return self._filtered(x, q, 0.5)

    def graph_score(self, eps: Tensor, q: Level) -> Tensor:
        return -self._filtered(eps, q, 0.5) / q


@dataclass(frozen=True)
class VEProcess(Isotropic):
    """``x_q = x_0 + q eps``. The basis is there for preconditioners that are shaped by the graph."""

    mu: Tensor  # (modes,) eigenvalues of L_delta
    U: Basis  # (nodes, modes)
    q_min: float = 0.02
    q_max: float = 32.64
    mean: float = -1.2  # of log q in training
    spread: float = 1.2

    @classmethod
    def of(cls, space: SignalSpace, settings: dict[str, Any]) -> VEProcess:
        spectrum = space.spectrum
        return cls(torch.from_numpy(spectrum.scaled(settings["delta"])), spectrum.basis, *settings["levels"])

    def to(self, device: torch.device | str) -> VEProcess:
        return replace(self, mu=self.mu.to(device), U=self.U.to(device))

    def between(self, levels: tuple[float, float]) -> VEProcess:
        return replace(self, q_min=levels[0], q_max=levels[1])  # the basis stays the very same tensor

    def t(self, q: Level) -> Level:
        """What the network is told: ``log(q) / 4``."""
        return q.log() / 4 if isinstance(q, Tensor) else math.log(q) / 4

    def training_level(self, u: Tensor) -> Tensor:
        """Log-normal, for ``u`` uniform on [0, 1)."""
        return torch.exp(self.mean + self.spread * torch.special.ndtri(u.clamp(1e-12, 1 - 1e-12)))


@dataclass(frozen=True)
class HeatProcess(Process):
    """GAD's forward process, by its time ``t``; the defaults are those of table app_hparams."""

    lam: Tensor  # (modes,) eigenvalues of L_gamma = L + gamma I, L the symmetric normalised Laplacian
    U: Basis  # (nodes, modes)
    sigma: float = 1.0
    S: float = 7.0
    alpha: float = 4.0
    c_min: float = 0.1
    draw: float = 0.65  # exponent of the training draw
    laplacian: Basis | None = None  # (nodes, nodes) combinatorial: what its objective asks for beside

    @classmethod
    def of(cls, space: SignalSpace, settings: dict[str, Any]) -> HeatProcess:
        return replace(cls.on(space.spectrum), laplacian=space.combinatorial)

    @classmethod
    def on(cls, spectrum: Spectrum, gamma: float = 0.8) -> HeatProcess:
        return cls(torch.from_numpy(spectrum.lam + gamma), spectrum.basis)

    def to(self, device: torch.device | str) -> HeatProcess:
        laplacian = None if self.laplacian is None else self.laplacian.to(device)
        return replace(self, lam=self.lam.to(device), U=self.U.to(device), laplacian=laplacian)

    def variation(self, x: Tensor) -> Tensor:  # (batch, nodes) -> (batch,)
        """Total variation ``x' L x`` with the combinatorial Laplacian."""
        assert self.laplacian is not None, "a process on a spectrum alone knows no total variation"
        return ((x @ self.laplacian) * x).sum(-1)

    @property
    def k(self) -> float:
        return (self.S - self.c_min) * (self.alpha + 1)

    def c(self, t: Level) -> Level:
        """The clock's rate, for T = 1."""
        return self.c_min + self.k * t**self.alpha

    def heat(self, t: Level) -> Level:
        """Heat time ``s(t)``, the integral of the clock."""
        return self.c_min * t + self.k / (self.alpha + 1) * t ** (self.alpha + 1)

    @overload
    def newton(self, s: float) -> float: ...
    @overload
    def newton(self, s: Tensor) -> Tensor: ...
    def newton(self, s: Level) -> Level:
        """Roughly the time at which heat time is ``s``: GAD's two steps."""
        t = s / self.S
        for _ in range(2):
            t = t - (self.heat(t) - s) / self.c(t)
            t = t.clamp(0, 1) if isinstance(t, Tensor) else min(max(t, 0.0), 1.0)
        return t

    def t(self, t: Level) -> Level:
        """What the network is told: the time itself."""
        return t

    def training_level(self, u: Tensor) -> Tensor:
        return self.newton(self.S * u**self.draw)

    def levels(self, steps: int, grid: Grid, to_zero: bool) -> np.ndarray:  # (steps + 1,)
        """Times that are evenly spaced in heat time, whatever the grid."""
        grid.begin(self.S, 0.0)  # refuses what is no share
        return np.array([self.newton(s) for s in np.linspace(self.S, 0.0, steps + 1)])

    def stationary(self, noise: Tensor, t: Level) -> Tensor:
        """Draws of the law that all signals end in."""
        return self.nodes(self.modes(noise) * self.variance(t).sqrt())

    def a(self, t: Level) -> Tensor:
        """``H = exp(-s lam)``."""
        return torch.exp(-self.lam * self.heat(t))

    def variance(self, t: Level) -> Tensor:
        """``Sigma = sigma^2 (1 - H^2) / lam``."""
        return -(self.sigma**2) / self.lam * torch.expm1(-2 * self.lam * self.heat(t))


@dataclass(frozen=True)
class SharedClock:
    """Graph heat diffusion: one integrated clock ``C`` for every mode (appendix A.1.2)."""

    mu: Tensor  # (modes,)
    sigma: float = 1.0

    def a(self, C: Level) -> Tensor:
        """Attenuation ``exp(-mu_i C)``."""
        return torch.exp(-self.mu * C)

    def variance(self, C: Level) -> Tensor:
        """Conditional variance in graph coordinates (eq. shared_native_variance_app)."""
        return -(self.sigma**2) / self.mu * torch.expm1(-2 * self.mu * C)

    def conjugate_variance(self, C: Level) -> Tensor:
        """Conditional variance with the attenuation undone (eq. shared_conjugate_variance_app)."""
        return self.sigma**2 / self.mu * torch.expm1(2 * self.mu * C)

    def matching_clock(self, q: Level) -> Tensor:
        """``C_i*`` at which mode ``i`` alone would reach variance ``q^2``: strictly decreasing in ``mu_i``."""
        return torch.log1p(self.mu * q**2 / self.sigma**2) / (2 * self.mu)


PROCESSES: dict[str, type[Process]] = {"conjugate": ConjugateProcess, "ve": VEProcess, "heat": HeatProcess}
