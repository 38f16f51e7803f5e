"""Forward processes: the formulas by hand, the kernel against its own SDE, and the operators against dense matrices."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, each_close, examples
from mixtures import random_graph

from grcd.diffusion.process import ConjugateProcess, HeatProcess, SharedClock, VEProcess
from grcd.graphs.graph import Graph

many = examples(40)
times = st.floats(0.02, 1.0)
levels = st.floats(0.04, 33.0)
eigenvalues = st.lists(st.integers(5, 105), min_size=2, max_size=6, unique=True).map(lambda mu: np.sort(mu) / 100)


def graph(seed, n=6):
    upper = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    return Graph.from_adjacency(upper + upper.T)


@st.composite
def processes(draw):
    settings = {"kappa": draw(st.floats(0.5, 33)), "sigma": draw(st.floats(0.5, 2))}
    return ConjugateProcess.on(graph(draw(st.integers(0, 999))).spectrum, draw(st.floats(0.01, 0.5)), **settings)


def slope(function, at):
    """The derivative of a function of one number, exact to rounding."""
    return torch.autograd.functional.jacobian(function, torch.tensor(at, dtype=torch.float64))


@many
@given(process=processes(), t=times)
def test_coefficients_are_the_papers_formulas_mode_by_mode(process, t):
    kappa, sigma, q = process.kappa, process.sigma, process.kappa * t
    each_close(process.q(t), q)
    each_close(process.t(q), t)
    for i, mu in enumerate(process.mu.tolist()):
        a = 1 / math.sqrt(1 + mu * q * q / sigma**2)
        each_close(process.a(q)[i], a)
        each_close(process.eta(q)[i], q * a)
        each_close(process.c(t)[i], q * kappa / (sigma**2 + mu * q * q))
        each_close(process.C(t)[i], math.log1p(mu * q * q / sigma**2) / (2 * mu))
        each_close(process.gamma(0.7, q)[i], sigma**2 * (0.7 + q * q) / (sigma**2 + mu * q * q))


@many
@given(process=processes(), q=levels)
def test_conditional_snr_is_the_same_for_every_mode(process, q):
    each_close(process.conditional_snr(q), np.full(len(process.mu), 1 / q**2))


@many
@given(seed=st.integers(0, 999), delta=st.floats(0, 1))
def test_the_process_on_a_graph_diffuses_with_its_shifted_normalised_laplacian(seed, delta):
    L = graph(seed).normalized.toarray()
    process = ConjugateProcess.on(graph(seed).spectrum, delta)
    dense = L / np.linalg.eigvalsh(L)[-1] + delta * np.eye(6)
    close(process.nodes(process.mu * process.U), dense, 1e-13)


@many
@given(process=processes(), u=st.floats(0, 1, exclude_max=True), w=st.floats(0, 1, exclude_max=True))
def test_training_levels_are_uniform_in_time_between_the_ends(process, u, w):
    assert process.training_level(0.0) == process.q_min == process.kappa * process.t_min
    each_close(process.training_level(1.0), process.q_max)
    assert process.q_min <= process.training_level(u) <= process.q_max
    # equal stretches of u are equal stretches of t
    gap = process.t(process.training_level(u)) - process.t(process.training_level(w))
    close(gap, (process.t_max - process.t_min) * (u - w), 1e-14, size=process.t_max)


def test_moving_to_a_device_keeps_every_setting():
    process = ConjugateProcess.on(graph(0).spectrum, kappa=3.0, sigma=1.5, t_min=0.1, t_max=0.9)
    moved = process.to("cpu")
    for field in dataclasses.fields(process):
        np.testing.assert_array_equal(getattr(moved, field.name), getattr(process, field.name))


@many
@given(process=processes(), t=times)
def test_the_signal_decays_with_the_drift(process, t):
    """``da/dt = -mu c a`` from ``a(0) = 1``."""
    each_close(slope(lambda t: process.a(process.q(t)), t), process.b(t) * process.a(process.q(t)), rtol=1e-11)
    each_close(process.b(t), -process.mu * process.c(t))
    each_close(process.a(0.0), np.ones(6))


@many
@given(process=processes(), t=times, v=st.floats(0, 20))
def test_variances_obey_the_linear_variance_equation(process, t, v):
    """``d gamma/dt = 2 b gamma + g^2`` from ``gamma(0) = v``; ``v = 0`` is the conditional variance ``eta^2``."""

    def gamma(t):
        return process.gamma(v, process.q(t))

    def eta2(t):
        return process.eta(process.q(t)) ** 2

    for variance, start in ((gamma, v), (eta2, 0.0)):
        decay, growth = 2 * process.b(t) * variance(t), process.g2(t)
        # Near the limit the two terms cancel, so the tolerance is relative to the terms and not to their sum.
        close(slope(variance, t), decay + growth, rtol=1e-11, size=growth - decay)
        each_close(variance(0.0), np.full(6, start))


@many
@given(process=processes(), t=times)
def test_the_clock_rate_is_the_derivative_of_the_integrated_clock(process, t):
    each_close(slope(process.C, t), process.c(t), rtol=1e-11)
    each_close(process.C(0.0), np.zeros(6))
    each_close(process.g2(t), 2 * process.sigma**2 * process.c(t))


@many
@given(seed=st.integers(0, 999), sigma=st.floats(0.5, 2), q=levels)
def test_to_graph_is_the_dense_inverse_square_root(seed, sigma, q):
    process = ConjugateProcess.on(graph(seed).spectrum, 0.05, sigma=sigma)
    L = graph(seed).normalized.toarray()
    L_delta = L / np.linalg.eigvalsh(L)[-1] + 0.05 * np.eye(6)
    A = np.linalg.inv(scipy.linalg.sqrtm(np.eye(6) + q**2 / sigma**2 * L_delta))
    x = torch.from_numpy(np.random.default_rng(seed).standard_normal((3, 6)))
    close(process.to_graph(x, q), x.numpy() @ A.T, 1e-11)
    close(process.to_conjugate(x, q), np.linalg.solve(A, x.numpy().T).T, 1e-11)
    close(process.to_conjugate(process.to_graph(x, q), q), x, 1e-11)
    close(process.to_graph(process.to_conjugate(x, q), q), x, 1e-11)


@many
@given(process=processes(), q=levels)
def test_conjugate_coordinates_have_the_same_noise_in_every_direction(process, q):
    """The covariance of the noise in graph coordinates, pushed through ``A^-1``, is ``q^2 I``."""
    noise = process.nodes(process.eta(q) ** 2 * process.U)
    pushed = process.to_conjugate(process.to_conjugate(noise, q).T, q)
    close(pushed / q**2, np.eye(6), 1e-11)


@many
@given(process=processes(), q=levels, seed=st.integers(0, 999))
def test_a_noise_prediction_is_the_score_of_the_forward_kernel_in_graph_coordinates(process, q, seed):
    """At ``x = A (x_0 + q eps)`` the kernel ``N(A x_0, q^2 A^2)`` has the score ``-(q^2 A^2)^-1 (x - A x_0)``."""
    x0, eps = torch.from_numpy(np.random.default_rng(seed).standard_normal((2, 3, 6)))
    A = process.to_graph(torch.eye(6, dtype=torch.float64), q)
    x = (x0 + q * eps) @ A
    expected = -np.linalg.solve((q**2 * A @ A).numpy(), (x - x0 @ A).T.numpy()).T
    close(process.graph_score(eps, q), expected, 1e-11)


def test_a_level_for_every_signal_is_the_same_as_one_signal_at_a_time():
    process = ConjugateProcess.on(graph(1).spectrum)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 6)))
    q = torch.tensor([[0.1], [1.0], [2.0]], dtype=torch.float64)
    for function in (process.to_graph, process.to_conjugate, process.graph_score):
        close(function(x, q), torch.cat([function(x[[k]], float(q[k])) for k in range(3)]), 1e-11)


@many
@given(process=processes(), v=st.floats(1e-6, 50), q=levels)
def test_every_reference_ends_in_the_same_random_field(process, v, q):
    """``gamma -> sigma^2/mu`` whatever ``v``; on the way the ratio of the two is ``(v + q^2) / (sigma^2/mu + q^2)``."""
    limit = process.sigma**2 / process.mu
    each_close(process.gamma_limit, limit)
    each_close(process.gamma(v, q), limit * (v + q**2) / (limit + q**2))
    each_close(process.gamma(v, 1e9), limit)


@many
@given(mu=eigenvalues, sigma=st.floats(0.5, 2), C=st.floats(0.01, 3))
def test_the_shared_clock_obeys_its_own_sde(mu, sigma, C):
    """With the integrated clock as time: ``da/dC = -mu a``, ``dV/dC = -2 mu V + 2 sigma^2``, ``V(0) = 0``."""
    shared = SharedClock(torch.from_numpy(mu), sigma)
    each_close(slope(shared.a, C), -shared.mu * shared.a(C))
    each_close(slope(shared.variance, C), -2 * shared.mu * shared.variance(C) + 2 * sigma**2, rtol=1e-11)
    each_close(shared.a(0.0), np.ones(len(mu)))
    each_close(shared.variance(0.0), np.zeros(len(mu)))
    each_close(shared.conjugate_variance(C), shared.variance(C) / shared.a(C) ** 2, rtol=1e-11)


@many
@given(mu=eigenvalues, sigma=st.floats(0.5, 2), q=levels, C=st.floats(0.01, 3))
def test_no_shared_clock_serves_two_modes(mu, sigma, q, C):
    shared = SharedClock(torch.from_numpy(mu), sigma)
    clocks = shared.matching_clock(q)
    # each mode reaches q^2 at its own clock, the faster the larger mu ...
    each_close(shared.conjugate_variance(clocks), np.full(len(mu), q**2), rtol=1e-11)
    assert np.all(np.diff(clocks) < 0)
    # ... and at any one clock the variances all differ, so that at most one of them can be q^2.
    assert np.all(np.diff(shared.conjugate_variance(C)) > 0)
    at_first = shared.conjugate_variance(clocks[0])
    assert np.all(at_first[1:].numpy() > q**2 * (1 + 1e-9))


@many
@given(process=processes(), t=times)
def test_the_conjugate_process_runs_every_mode_on_the_clock_it_needs(process, t):
    shared = SharedClock(process.mu, process.sigma)
    each_close(process.C(t), shared.matching_clock(process.q(t)), rtol=1e-14)
    each_close(shared.a(process.C(t)), process.a(process.q(t)))
    each_close(shared.variance(process.C(t)), process.eta(process.q(t)) ** 2)
    each_close(shared.conjugate_variance(process.C(t)), np.full(6, process.q(t) ** 2), rtol=1e-11)


@pytest.mark.parametrize("mu", [1e-12, 1e-9])
def test_slow_modes_keep_their_digits(mu):
    """``exp(x) - 1`` and ``log(1 + x)``, written so, lose all digits here. Expected: the first two terms in ``mu``."""
    shared = SharedClock(torch.tensor([mu], dtype=torch.float64), 2.0)
    each_close(shared.variance(0.5), [4.0 * (1 - mu / 2)])
    each_close(shared.conjugate_variance(0.5), [4.0 * (1 + mu / 2)])
    each_close(shared.matching_clock(2.0), [0.5 * (1 - mu / 2)])


# -- the comparators' processes ----------------------------------------------------------------------------------------

HEAT = HeatProcess.on(random_graph().spectrum)


def test_heat_composes_and_ends_in_its_stationary_law():
    early, late = 0.6, 0.9
    between = HEAT.heat(late) - HEAT.heat(early)
    a, noise = torch.exp(-HEAT.lam * between), (1 - torch.exp(-2 * HEAT.lam * between)) / HEAT.lam
    torch.testing.assert_close(a * HEAT.a(early), HEAT.a(late))
    torch.testing.assert_close(a**2 * HEAT.variance(early) + noise, HEAT.variance(late))
    torch.testing.assert_close(HEAT.variance(2.0), 1 / HEAT.lam)
    torch.testing.assert_close(HEAT.lam, torch.from_numpy(random_graph().spectrum.lam) + 0.8)


def test_heat_time_is_the_integral_of_its_clock():
    t = torch.linspace(0, 1, 200_001, dtype=torch.float64)
    spent = torch.cumulative_trapezoid(HEAT.c(t), t)
    close(HEAT.heat(t[1:]), spent, 1e-9)
    assert HEAT.heat(1.0) == pytest.approx(7.0, rel=1e-14)


@pytest.mark.parametrize("s", [0.0, 0.01, 0.05, 0.1, 1.0, 3.0, 6.5, 7.0])
def test_gads_times_are_two_newton_steps_from_the_share_of_heat_time(s):
    """By hand: t - (0.1 t + 6.9 t^5 - s) / (0.1 + 34.5 t^4), twice, each time back into [0, 1]."""
    t = s / 7
    for _ in range(2):
        t = min(max(t - (0.1 * t + 6.9 * t**5 - s) / (0.1 + 34.5 * t**4), 0), 1)
    assert HEAT.newton(s) == pytest.approx(t, rel=1e-12)
    torch.testing.assert_close(HEAT.newton(torch.tensor([s], dtype=torch.float64)).item(), t, rtol=1e-12, atol=0)


def test_gads_newton_steps_are_exact_at_the_ends_and_far_off_in_between():
    """The paper's dispersion ratios 166 and 15 come from here: see docs/paper.md."""
    assert (HEAT.newton(0.0), HEAT.newton(7.0)) == (0.0, 1.0)
    assert HEAT.heat(HEAT.newton(0.01)) == pytest.approx(0.01, rel=0.01)
    assert HEAT.newton(0.1) > 0.78
    assert HEAT.heat(HEAT.newton(0.1)) > 2
    times = HEAT.newton(torch.linspace(0, 7, 5001, dtype=torch.float64))
    assert bool((times.diff() > 0).all())


def test_ve_levels_are_log_normal():
    process = VEProcess(HEAT.lam, HEAT.U)
    u = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    logs = process.training_level(u).log()
    assert float(logs.mean()) == pytest.approx(-1.2, abs=1e-6)
    assert float(logs.std()) == pytest.approx(1.2, rel=1e-3)
    assert torch.isfinite(process.training_level(torch.tensor([0.0, 1 - 2.0**-53], dtype=torch.float64)).log()).all()
