"""Solvers of the probability flow, as pure functions over ``(eps_hat, grid, x_max)`` (section 3.4, appendix A.5).

In conjugate coordinates the flow is ``dx~/dq = eps_hat(x~, q)``. Every solver starts from ``x_max`` at ``grid[0]``,
returns ``x~`` at ``grid[-1]`` and calls ``eps_hat(x~, q)``, or asks it for what it adds to the reference, exactly as
often as its table row says: two evaluations a step for the predictor-corrector ones (one less with
``correct_last=False``: an odd budget ends on a predictor), one for the multistep ones.

**Exponential** (ours). Split ``eps_hat = q (Sigma + q^2 I)^-1 x~ + f``. The first part has the exact propagator
``phi``; with ``f`` linear in ``q`` over a step, variation of constants leaves two elementary integrals per eigenmode
(``s = sqrt(v + q^2)``), written without cancellation:

    J0 = int s1/s dq   = s1 asinh((q1^2 - q0^2) / (q1 s0 + q0 s1))
    J1 = int s1 q/s dq = s1 (s1 - s0) = s1 (q1^2 - q0^2) / (s1 + s0)
    w1 = (J1 - q0 J0) / (q1 - q0),   w0 = J0 - w1
    predictor  phi z + J0 f0         corrector  phi z + w0 f0 + w1 f1

**Exponential, as in the paper.** There ``r = -f / eta`` is linear in ``t``, so that
``W0 = -int phi(q1, q) eta (1 - alpha) dq`` and ``W1 = -int phi(q1, q) eta alpha dq``, by composite Simpson on 65 nodes
(eq. residual_weights_app, divided by ``a(t1)`` to live in conjugate coordinates: ``g^2/(2a) dt = eta dq``).

**DPM-Solver++ multistep.** Exponential in ``l = -log q`` for the data prediction ``D = x~ - q eps_hat``, which is
extrapolated through the last two (2M) or three (3M) evaluations. 3M starts with one first-order and one second-order
step; the first alone leaves an error of second order, so its global order is 2. From exact starting values
(``history``) it is 3. Widespread code for 3M halves the second difference (``dpm++3m-halved``, for the paper's table):
that term is then wrong by a third power of the step, every step, and the order is 2 from wherever it starts.

**Ancestral 2M.** If the data prediction ``D`` did not change over a step, the reverse equation could be integrated:
with ``r = (q1 / q0)^2``, ``x~`` at ``q1`` is normal with mean ``r x~ + (1 - r) D`` and variance ``q1^2 (1 - r)``. ``D``
is extrapolated to the middle of the step through the last two evaluations, as by 2M. Fresh noise at every step forgets
the error of earlier ones; moments converge with order 2.

**Residual multistep** (ours, one evaluation a step, any reference). The residual ``f = eps_hat - eps_ref`` is
extrapolated as a polynomial in ``q`` through the last two (2M) or three (3M) evaluations, and the reference carries the
state under that forcing: a Gaussian in closed form, a mixture by sub-steps that cost no network evaluation. It starts
with one first-order step, so its global order is 2, and 3 from exact starting values, as for DPM-Solver++.

**EDM's Heun** goes on to zero noise: ``K`` steps over ``K`` levels of the power law and a last one to 0, which is left
uncorrected, so it spends ``2K - 1`` evaluations, one fewer than an even budget.

**Euler-Maruyama** takes the reverse equation in place of the flow, twice the drift and fresh noise at every step: in
conjugate coordinates ``dx~ = 2 eps_hat dq + sqrt(2 q) dW``, and on GAD's heat process as GAD samples, with times that
are evenly spaced in heat time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import InputError, unknown, whole_number
from ..references.gaussian import Gaussian
from ..references.reference import Reference
from .extrapolation import History, extrapolated, middle, polynomial
from .grids import Grid, Levels
from .parameterisation import EpsHat, Prediction
from .process import ConjugateProcess, HeatProcess, Isotropic, Process

SUBSTEPS = 16  # of a mixture's own flow, over the whole grid; at least one a step
SIMPSON_NODES = 65
EVALUATIONS = 100_000  # at the most: twenty times what the longest published sampler takes


def heun(eps_hat: EpsHat, grid: Levels, x_max: Tensor, correct_last: bool = True) -> Tensor:
    """Heun on ``dx~/dq = eps_hat``: Euler predictor, trapezoidal corrector."""
    x = x_max
    for q0, q1, correct in _steps(grid, correct_last):
        d0 = eps_hat(x, q0)
        predicted = x + (q1 - q0) * d0
        x = x + (q1 - q0) / 2 * (d0 + eps_hat(predicted, q1)) if correct else predicted
    return x


def euler_maruyama(eps_hat: EpsHat, grid: Levels, x_max: Tensor, noise: Callable[[int], Tensor]) -> Tensor:
    """The reverse equation in conjugate coordinates."""
    x = x_max
    for step, (q0, q1) in enumerate(pairwise(float(q) for q in grid)):
        x = x + 2 * (q1 - q0) * eps_hat(x, q0) + math.sqrt(2 * q0 * (q0 - q1)) * noise(step)
    return x


def ancestral2m(eps_hat: EpsHat, grid: Levels, x_max: Tensor, noise: Callable[[int], Tensor]) -> Tensor:
    """The reverse equation with the data prediction held over a step, at the value extrapolated to its middle."""
    x, past = x_max, list[tuple[float, Tensor]]()
    for step, (q0, q1) in enumerate(pairwise(float(q) for q in grid)):
        past = [*past, (-math.log(q0), x - q0 * eps_hat(x, q0))][-2:]
        kept = (q1 / q0) ** 2
        x = kept * x + (1 - kept) * middle(past, math.log(q0 / q1)) + q1 * math.sqrt(1 - kept) * noise(step)
    return x


def euler_maruyama_heat(
    score: EpsHat, grid: Levels, x_max: Tensor, process: HeatProcess, noise: Callable[[int], Tensor]
) -> Tensor:
    """GAD's sampler: the reverse equation ``dx = c(t) (L_gamma x + 2 sigma^2 score) dt + sqrt(2 c(t)) sigma dW``."""
    x = x_max
    for step, (t0, t1) in enumerate(pairwise(float(t) for t in grid)):
        drift = process.nodes(process.modes(x) * process.lam) + 2 * process.sigma**2 * score(x, t0)
        h = process.c(t0) * (t0 - t1)
        x = x + h * drift + process.sigma * math.sqrt(2 * h) * noise(step)
    return x


def heun_paper(
    eps_hat: EpsHat, grid: Levels, x_max: Tensor, process: ConjugateProcess, correct_last: bool = True
) -> Tensor:
    """Heun on the flow in graph coordinates and in ``t``: ``dx/dt = b x - g^2/2 s`` (eq. pf_ode_app)."""

    def velocity(x: Tensor, q: float) -> Tensor:
        t = process.t(q)
        score = process.graph_score(eps_hat(process.to_conjugate(x, q), q), q)
        return process.nodes(process.b(t) * process.modes(x) - process.g2(t) / 2 * process.modes(score))

    x = process.to_graph(x_max, grid[0])
    for q0, q1, correct in _steps(grid, correct_last):
        h = process.t(q1) - process.t(q0)
        d0 = velocity(x, q0)
        predicted = x + h * d0
        x = x + h / 2 * (d0 + velocity(predicted, q1)) if correct else predicted
    return process.to_conjugate(x, grid[-1])


def exponential(eps_hat: EpsHat, grid: Levels, x_max: Tensor, reference: Gaussian, correct_last: bool = True) -> Tensor:
    """Exact in the reference, ``f`` linear in ``q`` over a step."""

    def weights(q0: float, q1: float) -> tuple[Tensor, Tensor, Tensor]:
        w0, w1 = exponential_weights(reference.v, q0, q1)
        return w0 + w1, w0, w1

    return _exponential(eps_hat, grid, x_max, reference, weights, correct_last)


def exponential_weights(v: Tensor, q0: float, q1: float) -> tuple[Tensor, Tensor]:  # two of (modes,)
    """``w0, w1`` of the module's docstring; their sum is ``J0``."""
    s0, s1 = torch.sqrt(v + q0**2), torch.sqrt(v + q1**2)
    J0 = s1 * torch.asinh((q1**2 - q0**2) / (q1 * s0 + q0 * s1))
    J1 = s1 * (q1**2 - q0**2) / (s1 + s0)
    w1 = (J1 - q0 * J0) / (q1 - q0)
    return J0 - w1, w1


def exponential_paper(
    eps_hat: EpsHat,
    grid: Levels,
    x_max: Tensor,
    reference: Gaussian,
    process: ConjugateProcess,
    correct_last: bool = True,
) -> Tensor:
    """The paper's exponential-residual solver: ``r = -f/eta`` linear in ``t``, Simpson quadrature (appendix A.5)."""
    B, U = reference.B, process.U
    if B is not U and not (isinstance(B, Tensor) and isinstance(U, Tensor) and torch.equal(B, U)):
        raise InputError(
            "the solver 'exponential-paper' with a reference that is not diagonal in the graph-Fourier basis",
            "a spectral or scalar reference",
            "use the solver 'exponential', which takes any Gaussian reference",
        )

    def weights(q0: float, q1: float) -> tuple[Tensor, Tensor, Tensor]:
        W0, W1 = simpson_weights(reference, process, q0, q1)
        eta0, eta1 = process.eta(q0), process.eta(q1)  # to multiply f, and not r = -f/eta
        return -(W0 + W1) / eta0, -W0 / eta0, -W1 / eta1

    return _exponential(eps_hat, grid, x_max, reference, weights, correct_last)


def simpson_weights(reference: Gaussian, process: ConjugateProcess, q0: float, q1: float) -> tuple[Tensor, Tensor]:
    """``W0, W1`` of the module's docstring: the weights of ``r0`` and ``r1`` in conjugate coordinates."""
    alpha = torch.linspace(0, 1, SIMPSON_NODES, dtype=reference.v.dtype, device=reference.v.device)[:, None]
    q = q0 + alpha * (q1 - q0)
    rule = torch.full_like(alpha, 2.0)
    rule[1::2], rule[0], rule[-1] = 4.0, 1.0, 1.0
    rule = rule * (q1 - q0) / (3 * (SIMPSON_NODES - 1))
    integrand = -reference.phi(q1, q) * process.eta(q) * rule
    return (integrand * (1 - alpha)).sum(0), (integrand * alpha).sum(0)


def dpm2m(eps_hat: EpsHat, grid: Levels, x_max: Tensor, history: History = ()) -> Tensor:
    """DPM-Solver++ 2M. ``history`` are earlier (level, data prediction) pairs, if there are any."""
    return _multistep(eps_hat, grid, x_max, 2, history)


def dpm3m(eps_hat: EpsHat, grid: Levels, x_max: Tensor, history: History = ()) -> Tensor:
    """DPM-Solver++ 3M."""
    return _multistep(eps_hat, grid, x_max, 3, history)


def dpm3m_halved(eps_hat: EpsHat, grid: Levels, x_max: Tensor, history: History = ()) -> Tensor:
    """DPM-Solver++ 3M in its widespread form, with half the second difference."""
    return _multistep(eps_hat, grid, x_max, 3, history, 0.5)


def residual2m(eps_hat: EpsHat, grid: Levels, x_max: Tensor, reference: Reference, history: History = ()) -> Tensor:
    """``f`` linear in ``q`` through the last two evaluations. ``history`` are earlier (level, f) pairs, if any."""
    return _residual_multistep(eps_hat, grid, x_max, reference, 2, history)


def residual3m(eps_hat: EpsHat, grid: Levels, x_max: Tensor, reference: Reference, history: History = ()) -> Tensor:
    """``f`` quadratic in ``q`` through the last three evaluations."""
    return _residual_multistep(eps_hat, grid, x_max, reference, 3, history)


# -- what the solvers share ----------------------------------------------------------------------------------------


def _steps(grid: Levels, correct_last: bool) -> Iterator[tuple[float, float, bool]]:
    """(from, to, whether to correct) for every step."""
    last = len(grid) - 2
    for j, (q0, q1) in enumerate(pairwise(float(q) for q in grid)):
        yield q0, q1, correct_last or j < last


def _exponential(
    eps_hat: EpsHat,
    grid: Levels,
    x_max: Tensor,
    reference: Gaussian,
    weights: Callable[[float, float], tuple[Tensor, Tensor, Tensor]],
    correct_last: bool,
) -> Tensor:
    """``weights(q0, q1)`` are those of ``f0`` in the predictor, and of ``f0`` and ``f1`` in the corrector."""

    def f(z: Tensor, q: float) -> Tensor:
        return reference.modes(_residual(eps_hat, reference.nodes(z), q, reference))

    z = reference.modes(x_max)
    for q0, q1, correct in _steps(grid, correct_last):
        w, w0, w1 = weights(q0, q1)
        f0, carried = f(z, q0), reference.phi(q1, q0) * z
        predicted = carried + w * f0
        z = carried + w0 * f0 + w1 * f(predicted, q1) if correct else predicted
    return reference.nodes(z)


def _residual_multistep(
    eps_hat: EpsHat, grid: Levels, x_max: Tensor, reference: Reference, order: int, history: History
) -> Tensor:
    x, past = x_max, list(history)
    sub = -(-SUBSTEPS // (len(grid) - 1))
    for q0, q1 in pairwise(float(q) for q in grid):
        past = [*past, (q0, _residual(eps_hat, x, q0, reference))][-order:]
        x = reference.carry(x, q1, q0, polynomial(past), sub)
    return x


def _residual(eps_hat: EpsHat, x: Tensor, q: float, reference: Reference) -> Tensor:
    """What a prediction adds to the reference: it may know that by itself."""
    prediction = eps_hat if isinstance(eps_hat, Prediction | Counted) else Prediction(eps_hat)
    return prediction.residual(x, q, reference)


def _multistep(
    eps_hat: EpsHat, grid: Levels, x_max: Tensor, order: int, history: History, second: float = 1.0
) -> Tensor:
    x, past = x_max, [(-math.log(q), D) for q, D in history]
    for q0, q1 in pairwise(float(q) for q in grid):
        past = [*past, (-math.log(q0), x - q0 * eps_hat(x, q0))][-order:]
        x = q1 / q0 * x + extrapolated(past, math.log(q0 / q1), second)
    return x


@dataclass(frozen=True)
class Solver:
    """A row of the table: what to call, what it costs, and how the error falls with the step."""

    function: Callable[..., Tensor]
    order: int
    evaluations: int  # network evaluations a step
    needs: tuple[str, ...] = ()
    process: type[Any] = Isotropic  # what it is for
    gaussian: bool = False  # whether the reference has to be one
    to_zero: bool = False  # a last, uncorrected step to zero noise, as EDM's

    @property
    def stochastic(self) -> bool:
        return "noise" in self.needs

    def serves(self, process: Process, reference: Reference) -> bool:
        """Whether it can integrate this flow."""
        return isinstance(process, self.process) and (reference.gaussian or not self.gaussian)

    def spends(self, nfe: int) -> int:
        """Evaluations used of a budget: all, but for the correction that EDM's last step leaves out."""
        return nfe - 1 if self.to_zero and nfe % 2 == 0 else nfe


SOLVERS: dict[str, Solver] = {
    "exponential": Solver(exponential, 2, 2, ("reference",), gaussian=True),
    "exponential-paper": Solver(exponential_paper, 2, 2, ("reference", "process"), ConjugateProcess, gaussian=True),
    "heun": Solver(heun, 2, 2),
    "heun-paper": Solver(heun_paper, 2, 2, ("process",), ConjugateProcess),
    "heun-edm": Solver(heun, 2, 2, to_zero=True),
    "euler-maruyama": Solver(euler_maruyama, 1, 1, ("noise",)),
    "ancestral-2m": Solver(ancestral2m, 2, 1, ("noise",)),
    "euler-maruyama-heat": Solver(euler_maruyama_heat, 1, 1, ("process", "noise"), HeatProcess),
    "residual-2m": Solver(residual2m, 2, 1, ("reference",)),
    "residual-3m": Solver(residual3m, 2, 1, ("reference",)),  # 3 from exact starting values
    "dpm++2m": Solver(dpm2m, 2, 1),
    "dpm++3m": Solver(dpm3m, 2, 1),  # 3 from exact starting values
    "dpm++3m-halved": Solver(dpm3m_halved, 2, 1),
}


def find(name: str) -> Solver:
    if name not in SOLVERS:
        raise unknown("solver", name, SOLVERS)
    return SOLVERS[name]


class Counted:
    """``eps_hat`` that counts its own calls: the network evaluations, where they happen."""

    def __init__(self, eps_hat: EpsHat):
        self.eps_hat, self.nfe = eps_hat, 0

    def __call__(self, x: Tensor, q: float) -> Tensor:
        self.nfe += 1
        return self.eps_hat(x, q)

    def residual(self, x: Tensor, q: float, reference: Reference) -> Tensor:
        self.nfe += 1
        return _residual(self.eps_hat, x, q, reference)


def levels(
    name: str,
    nfe: int,
    process: Process,
    grid: str | Levels = "power",
    rho: float = 3.0,
    reference: Reference | None = None,
    start: float = 1.0,
) -> np.ndarray:  # (K + 1,)
    """The noise levels that a budget of ``nfe`` evaluations buys with this solver; times, for GAD's.

    They begin at ``start`` times the largest level; the grid "entropy" comes from the ``reference``.
    """
    nfe = whole_number("nfe", nfe, 1, EVALUATIONS)
    solver = find(name)
    steps = -(-nfe // solver.evaluations)
    variances = None if reference is None else reference.variances
    return process.levels(steps, Grid(grid, rho, start, variances), solver.to_zero)


def solve(
    name: str,
    eps_hat: EpsHat,
    x_max: Tensor,
    nfe: int,
    process: Process,
    reference: Reference,
    grid: str | Levels = "power",
    rho: float = 3.0,
    noise: Callable[[int], Tensor] | None = None,
) -> Tensor:
    """Integrate along a grid with a budget of ``nfe`` evaluations of ``eps_hat``; a stochastic solver needs noise."""
    solver, counted = find(name), Counted(eps_hat)
    q = levels(name, nfe, process, grid, rho, reference) if isinstance(grid, str) else grid
    available = {"process": process, "reference": reference, "noise": noise}
    settings: dict[str, object] = {need: available[need] for need in solver.needs}
    if solver.evaluations == 2:
        settings["correct_last"] = nfe % 2 == 0 and not solver.to_zero
    x = solver.function(counted, q, x_max, **settings)
    assert counted.nfe == solver.spends(nfe), f"{name} spent {counted.nfe} evaluations of {nfe}"
    return x
