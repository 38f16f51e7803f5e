"""Solvers against a Gaussian mixture with known score: orders, exactness, and the formulas written out naively."""

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from mixtures import GraphCoordinates, normal, random_graph, random_mixture, random_process
from scipy.integrate import quad, solve_ivp

from grcd.core.errors import InputError
from grcd.diffusion import grids, solvers
from grcd.diffusion.extrapolation import polynomial
from grcd.diffusion.process import HeatProcess
from grcd.references import gaussian as reference
from grcd.references.mixture import Mixture

MIXTURE = random_mixture()
PROCESS = random_process(kappa=2.0, sigma=0.8)  # sigma other than 1, so that it cannot be forgotten unnoticed
SPECTRAL = reference.spectral(MIXTURE.covariance(), random_graph().spectrum)
FULL = reference.full(MIXTURE.covariance())
LOW_RANK = reference.low_rank(MIXTURE.covariance(), 2)
TWO = random_mixture(components=2, seed=7)  # another one than the data's: there is a residual
BLEND = Mixture(TWO.w, TWO.m, (reference.full(TWO.C[0].numpy()), reference.low_rank(TWO.C[1].numpy(), 3)))
REFERENCES = {"spectral": SPECTRAL, "low-rank": LOW_RANK, "mixture": BLEND}
RESIDUAL = {"residual-2m": 2, "residual-3m": 3}  # evaluations that a step looks back on
Q0, Q1 = PROCESS.q_max, PROCESS.q_min
X = 2 * normal(3, 5, seed=1)
PARTS = {"process": PROCESS, "reference": SPECTRAL}
FLOW = [name for name, row in solvers.SOLVERS.items() if not (row.to_zero or row.stochastic)]
TWO_EVALUATIONS = [name for name in FLOW if solvers.SOLVERS[name].evaluations == 2]
ROUNDING = 1e-12  # a few dozen float64 operations on numbers of order one


def needs(name):
    return {need: PARTS[need] for need in solvers.SOLVERS[name].needs}


def power_grid(K, rho=3.0, first=0):  # eq. grid; a negative first level is above it
    return [(Q0 ** (1 / rho) + j / K * (Q1 ** (1 / rho) - Q0 ** (1 / rho))) ** rho for j in range(first, K + 1)]


def measured_order(error_of, steps=(32, 64, 128, 256)):
    """Slope of log error over halving steps; these K are asymptotic (the local slopes differ by less than 0.1)."""
    errors = [error_of(K) for K in steps]
    assert min(errors) > 1e-8  # a thousand times above the error of the oracle, so the slope is the solver's own
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


# -- orders --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solution():
    return MIXTURE.solution(X, Q0, Q1)


@pytest.mark.parametrize("name", FLOW)
def test_the_error_falls_with_the_order_the_table_states(name, solution):
    row = solvers.SOLVERS[name]

    def error(K):
        return float((row.function(MIXTURE.eps_hat, power_grid(K), X, **needs(name)) - solution).norm())

    assert abs(measured_order(error) - row.order) < 0.15


@pytest.mark.parametrize("name", TWO_EVALUATIONS)
def test_a_predictor_as_the_last_step_costs_no_order(name, solution):
    row = solvers.SOLVERS[name]

    def error(K):
        x = row.function(MIXTURE.eps_hat, power_grid(K), X, correct_last=False, **needs(name))
        return float((x - solution).norm())

    assert abs(measured_order(error) - row.order) < 0.25  # two terms of second order add up: less asymptotic


@pytest.mark.parametrize(("function", "order"), [(solvers.dpm3m, 3), (solvers.dpm3m_halved, 2)])
def test_dpm_3m_is_of_third_order_from_exact_starting_values_and_of_second_if_halved(function, order, solution):
    def error(K):
        ratio = (Q0 / Q1) ** (1 / K)
        history = []
        for q in (Q0 * ratio**2, Q0 * ratio):
            x = MIXTURE.solution(X, Q0, q)
            history.append((q, x - q * MIXTURE.eps_hat(x, q)))
        grid = [Q0 / ratio**j for j in range(K + 1)]
        return float((function(MIXTURE.eps_hat, grid, X, history=history) - solution).norm())

    assert abs(measured_order(error, (32, 64, 128)) - order) < 0.15


@pytest.mark.parametrize("name", RESIDUAL)
def test_residual_multistep_has_the_order_of_the_table_with_other_references_too(name, solution):
    row = solvers.SOLVERS[name]
    for other in (LOW_RANK, BLEND):

        def error(K, other=other):
            return float((row.function(MIXTURE.eps_hat, power_grid(K), X, other) - solution).norm())

        assert abs(measured_order(error) - row.order) < 0.15


@pytest.mark.parametrize(("name", "order"), RESIDUAL.items())
@pytest.mark.parametrize("other", REFERENCES.values(), ids=REFERENCES)
def test_residual_multistep_has_its_full_order_from_exact_starting_values(name, order, other, solution):
    def error(K):
        levels, history = power_grid(K, first=1 - order), []
        for q in levels[: order - 1]:
            x = MIXTURE.solution(X, Q0, q)
            history.append((q, MIXTURE.eps_hat(x, q) - other.eps(x, q)))
        found = solvers.SOLVERS[name].function(MIXTURE.eps_hat, power_grid(K), X, other, history=history)
        return float((found - solution).norm())

    assert abs(measured_order(error) - order) < 0.15


# -- exactness in the reference, and the closed-form weights -------------------------------------------------------


@pytest.mark.parametrize("correct_last", [True, False])
@pytest.mark.parametrize("K", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("name", "gaussian"), [("exponential", SPECTRAL), ("exponential", FULL), ("exponential-paper", SPECTRAL)]
)
def test_exponential_solvers_are_exact_where_the_reference_is_the_whole_score(name, gaussian, K, correct_last):
    parts = {**needs(name), "reference": gaussian}
    x = solvers.SOLVERS[name].function(gaussian.eps, power_grid(K), X, correct_last=correct_last, **parts)
    v, B = np.linalg.eigh(gaussian.covariance().numpy())  # the propagator from the covariance alone
    exact = X.numpy() @ (B * np.sqrt((v + Q1**2) / (v + Q0**2))) @ B.T
    close(x, exact, ROUNDING)


@pytest.mark.parametrize("K", [1, 2, 3, 7])
@pytest.mark.parametrize("gaussian", [SPECTRAL, FULL, LOW_RANK], ids=["spectral", "full", "low-rank"])
@pytest.mark.parametrize("name", RESIDUAL)
def test_residual_multistep_is_exact_where_the_reference_is_the_whole_score(name, gaussian, K):
    x = solvers.SOLVERS[name].function(gaussian.eps, power_grid(K), X, gaussian)
    v, B = np.linalg.eigh(gaussian.covariance().numpy())
    exact = X.numpy() @ (B * np.sqrt((v + Q1**2) / (v + Q0**2))) @ B.T
    close(x, exact, ROUNDING)


@pytest.mark.parametrize(("K", "sub"), [(1, 16), (3, 6), (7, 3), (8, 2), (16, 1), (20, 1)])
@pytest.mark.parametrize("name", RESIDUAL)
def test_without_a_residual_a_mixture_is_carried_along_its_own_flow(name, K, sub):
    """In at least sixteen sub-steps over the grid, and one a step."""
    x = X
    for q0, q1 in pairwise(power_grid(K)):
        x = BLEND.propagate(x, q1, q0, sub)
    found = solvers.SOLVERS[name].function(BLEND.eps, power_grid(K), X, BLEND)
    close(found, x, ROUNDING)


@examples(25)
@given(ratios=st.lists(st.floats(0.3, 0.9), min_size=3, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_residual_multistep_is_exact_for_residuals_that_are_polynomials_in_the_level(ratios, seed):
    """Of degree 1 (2M) and 2 (3M), the same wherever the state is: then the first levels are all it has to know."""
    levels, c = np.cumprod([3.0, *ratios]).tolist(), normal(3, 3, 5, seed=seed)
    for name, order in RESIDUAL.items():

        def f(q, order=order):
            return sum(c[j] * q**j for j in range(order))

        known = order - 1
        q0, q1 = levels[known], levels[-1]
        about = [f(q0), c[1] + (2 * q0 * c[2] if order == 3 else 0.0), c[2]][:order]  # Taylor's coefficients at q0
        history = [(q, f(q)) for q in levels[:known]]
        found = solvers.SOLVERS[name].function(
            lambda x, q, f=f: FULL.eps(x, q) + f(q), levels[known:], X, FULL, history=history
        )
        close(found, FULL.carry(X, q1, q0, about), 1e-11)


@examples(40)
@given(
    levels=st.lists(st.floats(0.05, 3), min_size=1, max_size=3, unique_by=lambda q: round(q, 1)),
    q=st.floats(0.05, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_polynomial_through_past_residuals_is_the_one_of_their_number(levels, q, seed):
    c = normal(3, 4, seed=seed)

    def f(q):
        return sum(c[j] * q**j for j in range(len(levels)))

    found = polynomial([(level, f(level)) for level in levels])
    assert len(found) == len(levels)
    value = sum(a * (q - levels[-1]) ** j for j, a in enumerate(found))
    near = min([abs(a - b) for a in levels for b in levels if a != b], default=1.0)  # differences divided by this
    close(value, f(q), 1e-13 / near**2, size=9 * c)


def defining_integrals(v, q0, q1):
    """The two integrals over ``sqrt((v + q1^2)/(v + q^2))`` that make ``f``, linear in ``q``, exact."""

    def kernel(q, share):
        return math.sqrt((v + q1**2) / (v + q**2)) * share((q - q0) / (q1 - q0))

    shares = (lambda alpha: 1 - alpha), (lambda alpha: alpha)
    return [quad(kernel, q0, q1, args=(share,), epsrel=1e-11, epsabs=0, limit=200)[0] for share in shares]


def design_formulas(v, q0, q1):
    """DESIGN section 1 to fifty digits, where its cancellations do not matter."""
    with localcontext(prec=50):
        v, q0, q1 = Decimal(v), Decimal(q0), Decimal(q1)
        s0, s1 = (v + q0**2).sqrt(), (v + q1**2).sqrt()
        J0 = s1 * ((q1 + s1).ln() - (q0 + s0).ln())  # asinh(q/sqrt(v)) = ln((q + s)/sqrt(v))
        J1 = s1 * (s1 - s0)
        w1 = (J1 - q0 * J0) / (q1 - q0)
        return float(J0 - w1), float(w1)


VARIANCES = st.floats(-6, 3).map(lambda e: 10.0**e) | st.just(0.0)


@examples(40)
@given(v=VARIANCES, q0=st.floats(0.05, 50), ratio=st.floats(0.01, 0.99))
def test_exponential_weights_are_the_integrals_they_stand_for(v, q0, ratio):
    q1 = q0 * ratio
    w = [float(w) for w in solvers.exponential_weights(torch.tensor(v, dtype=torch.float64), q0, q1)]
    np.testing.assert_allclose(w, defining_integrals(v, q0, q1), rtol=1e-10)  # the quadrature's tolerance
    # w1 is a difference of numbers q0/(q0 - q1) times as large, which multiplies their rounding
    np.testing.assert_allclose(w, design_formulas(v, q0, q1), rtol=5e-15 / (1 - ratio))


def test_exponential_weights_without_variance_are_those_of_pure_noise():
    w0, w1 = solvers.exponential_weights(torch.zeros(1, dtype=torch.float64), 2.0, 0.5)
    J0 = 0.5 * math.log(0.5 / 2.0)  # int q1/q dq
    expected = (0.5 * (0.5 - 2.0) - 2.0 * J0) / (0.5 - 2.0)
    np.testing.assert_allclose([w0.item(), w1.item()], [J0 - expected, expected], rtol=1e-14)


# -- naive implementations -----------------------------------------------------------------------------------------

GRAPH = GraphCoordinates(MIXTURE, PROCESS, SPECTRAL)


def heun_naive(grid, x, correct_last):
    for j in range(len(grid) - 1):
        h = grid[j + 1] - grid[j]
        d0 = MIXTURE.eps_hat(x, grid[j])
        d1 = MIXTURE.eps_hat(x + h * d0, grid[j + 1])
        x = x + h * d0 if j == len(grid) - 2 and not correct_last else x + h * (d0 + d1) / 2
    return x


def exponential_naive(grid, x, correct_last):
    v, B = SPECTRAL.v.numpy(), SPECTRAL.B.numpy()
    rows = []
    for z in x.numpy() @ B:
        for j in range(len(grid) - 1):
            q0, q1 = grid[j], grid[j + 1]
            phi = np.sqrt((v + q1**2) / (v + q0**2))
            w0, w1 = np.array([defining_integrals(vi, q0, q1) for vi in v]).T
            f0 = GRAPH.eps_modes(z, q0) - q0 * z / (v + q0**2)
            predicted = phi * z + (w0 + w1) * f0
            f1 = GRAPH.eps_modes(predicted, q1) - q1 * predicted / (v + q1**2)
            z = predicted if j == len(grid) - 2 and not correct_last else phi * z + w0 * f0 + w1 * f1
        rows.append(B @ z)
    return torch.from_numpy(np.array(rows))


NAIVE = {
    "exponential": exponential_naive,
    "exponential-paper": lambda *args: GRAPH.integrate(GRAPH.exponential_step, *args),
    "heun": heun_naive,
    "heun-paper": lambda *args: GRAPH.integrate(GRAPH.heun_step, *args),
}


@pytest.mark.parametrize("nfe", [1, 2, 5, 6])
@pytest.mark.parametrize("name", TWO_EVALUATIONS)
def test_predictor_corrector_solvers_equal_their_equations_and_odd_budgets_end_on_a_predictor(name, nfe):
    x = solvers.solve(name, MIXTURE.eps_hat, X, nfe, PROCESS, SPECTRAL)
    naive = NAIVE[name](power_grid((nfe + 1) // 2), X, nfe % 2 == 0)
    close(x, naive, ROUNDING)


def dpm_naive(order, grid, x, history, halved=False):
    """DPM-Solver++ as printed, with ``r`` the ratios of steps in ``l = -log q``.

    The third-order term is ``phi_3`` times the second derivative ``2 (D1_0 - D1_1)/(r0 + r1)``. The released code
    lacks the 2 in its multistep form (not in its single-step form): ``halved``.
    """
    levels, D = [q for q, _ in history], [d for _, d in history]
    for q0, q1 in pairwise(grid):
        levels.append(q0)
        D.append(x - q0 * MIXTURE.eps_hat(x, q0))
        h, phi_1 = math.log(q0) - math.log(q1), math.exp(math.log(q1) - math.log(q0)) - 1
        known = min(order, len(D))
        past = [math.log(levels[-k - 1]) - math.log(levels[-k]) for k in range(1, known)]  # steps before this one
        if known == 1:
            x = q1 / q0 * x - phi_1 * D[-1]
        elif known == 2:
            r = past[0] / h
            x = q1 / q0 * x - phi_1 * ((1 + 1 / (2 * r)) * D[-1] - 1 / (2 * r) * D[-2])
        else:
            r0, r1 = past[0] / h, past[1] / h
            D1_0, D1_1 = (D[-1] - D[-2]) / r0, (D[-2] - D[-3]) / r1
            D1, D2 = D1_0 + r0 / (r0 + r1) * (D1_0 - D1_1), (1 if halved else 2) * (D1_0 - D1_1) / (r0 + r1)
            phi_2 = phi_1 / h + 1
            x = q1 / q0 * x - phi_1 * D[-1] + phi_2 * D1 - (phi_2 / h - 0.5) * D2
    return x


@examples(25)
@given(ratios=st.lists(st.floats(0.3, 0.9), min_size=1, max_size=6), known=st.integers(0, 2))
def test_dpm_multistep_equals_the_printed_updates_on_any_grid(ratios, known):
    levels = np.cumprod([3.0, *ratios]).tolist()
    known = min(known, len(ratios) - 1)  # the first levels are history
    history = [(q, X - q * MIXTURE.eps_hat(X, q)) for q in levels[:known]]
    for order, function in ((2, solvers.dpm2m), (3, solvers.dpm3m), (3, solvers.dpm3m_halved)):
        x = function(MIXTURE.eps_hat, levels[known:], X, history=history)
        naive = dpm_naive(order, levels[known:], X, history, halved=function is solvers.dpm3m_halved)
        # phi_3 in the printed form loses 1/h^2 digits, up to two of them here, and extrapolation a few more
        close(x, naive, 1e-11)


def residual_naive(order, grid, x, other):
    """Every step with Lagrange's polynomial through the last residuals, integrated by eighth-order Runge-Kutta."""
    levels, past = [], []
    for q0, q1 in pairwise(grid):
        levels, past = [*levels, q0][-order:], [*past, MIXTURE.eps_hat(x, q0) - other.eps(x, q0)][-order:]

        def velocity(q, flat, levels=levels, past=past):
            total = other.eps(torch.from_numpy(flat.reshape(X.shape)), float(q))
            for a, f in zip(levels, past, strict=True):
                total = total + f * math.prod((q - b) / (a - b) for b in levels if b != a)
            return total.numpy().ravel()

        end = solve_ivp(velocity, (q0, q1), x.numpy().ravel(), method="DOP853", rtol=1e-12, atol=1e-12)
        x = torch.from_numpy(end.y[:, -1].reshape(x.shape))
    return x


@pytest.mark.parametrize("other", REFERENCES.values(), ids=REFERENCES)
@pytest.mark.parametrize(("name", "order"), RESIDUAL.items())
def test_residual_multistep_equals_its_equations(name, order, other, monkeypatch):
    monkeypatch.setattr(solvers, "SUBSTEPS", 2000)  # a mixture's own flow to the accuracy of the oracle
    found = solvers.solve(name, MIXTURE.eps_hat, X, 5, PROCESS, other)
    close(found, residual_naive(order, power_grid(5), X, other), 1e-9)


# -- budgets, borders, batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", ["power", "log-snr", "entropy"])
@pytest.mark.parametrize("name", FLOW)
def test_every_budget_is_spent_exactly_at_levels_inside_the_range(name, grid):
    for nfe in range(1, 10):
        seen = []

        def eps_hat(x, q, seen=seen):
            seen.append(q)
            return MIXTURE.eps_hat(x, q)

        x = solvers.solve(name, eps_hat, X, nfe, PROCESS, SPECTRAL, grid)
        assert len(seen) == nfe
        assert seen[0] == Q0 and min(seen) >= Q1  # noqa: PT018
        assert torch.isfinite(x).all()


@pytest.mark.parametrize("nfe", [0, -1, 2.5, True, "4"])
def test_a_budget_that_is_no_positive_whole_number_is_refused(nfe):
    with pytest.raises(InputError, match=r"(?s)got nfe = .*expected a whole number"):
        solvers.solve("heun", MIXTURE.eps_hat, X, nfe, PROCESS, SPECTRAL)


def test_an_unknown_solver_is_refused_with_the_known_ones_and_the_nearest():
    with pytest.raises(InputError, match=r"(?s)got solver 'huen'.*expected one of .*dpm\+\+3m.*did you mean 'heun'"):
        solvers.solve("huen", MIXTURE.eps_hat, X, 4, PROCESS, SPECTRAL)


def test_the_papers_solver_refuses_a_reference_outside_the_graph_fourier_basis():
    with pytest.raises(InputError, match=r"(?s)got .*not diagonal.*expected a spectral.*'exponential'"):
        solvers.solve("exponential-paper", MIXTURE.eps_hat, X, 4, PROCESS, FULL)


@pytest.mark.parametrize("name", FLOW)
def test_signals_do_not_know_of_each_other(name):
    together = solvers.solve(name, MIXTURE.eps_hat, X, 5, PROCESS, SPECTRAL)
    apart = [solvers.solve(name, MIXTURE.eps_hat, x[None], 5, PROCESS, SPECTRAL) for x in X]
    close(together, torch.cat(apart), ROUNDING)


# -- where the levels lie ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [*REFERENCES.values(), FULL], ids=[*REFERENCES, "full"])
@pytest.mark.parametrize("start", [1.0, 0.3])
def test_on_the_grid_entropy_the_entropy_of_the_reference_falls_by_equal_steps(other, start):
    """``log det`` of the covariance at a level, twice the entropy up to a constant; a mixture's parts as they weigh."""
    weights, parts = (other.weights, other.parts) if isinstance(other, Mixture) else ([1.0], [other])

    def entropy(q):
        return sum(float(w) * np.linalg.slogdet(part.covariance(q))[1] for w, part in zip(weights, parts, strict=True))

    grid = solvers.levels("residual-2m", 7, PROCESS, "entropy", reference=other, start=start)
    assert (len(grid), grid[0], grid[-1]) == (8, start * Q0, Q1)
    falls = -np.diff([entropy(q) for q in grid])
    close(falls, np.full(7, (entropy(start * Q0) - entropy(Q1)) / 7), 1e-5)


@pytest.mark.parametrize("name", ["heun", "residual-2m", "euler-maruyama"])
@pytest.mark.parametrize(("grid", "rho"), [("power", 3.0), ("power", 1.0), ("log-snr", 3.0), ("entropy", 3.0)])
@pytest.mark.parametrize("start", [1.0, 0.5, 0.0201])
def test_levels_begin_at_a_share_of_the_largest_and_follow_the_same_law_from_there(name, grid, rho, start):
    steps = -(-5 // solvers.SOLVERS[name].evaluations)
    expected = grids.Grid(grid, rho, start, SPECTRAL.variances).levels(Q0, Q1, steps)
    assert np.array_equal(solvers.levels(name, 5, PROCESS, grid, rho, SPECTRAL, start), expected)


@pytest.mark.parametrize("start", [Q1 / Q0, 0.0, -0.5, 1.0001, math.nan, math.inf])
def test_a_start_outside_of_the_levels_trained_on_is_refused(start):
    with pytest.raises(InputError, match=r"got start = .*\nexpected .*above 0\.02 and at most 1\nto fix: leave it out"):
        solvers.levels("residual-2m", 4, PROCESS, start=start)


# -- EDM's Heun, down to zero --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nfe", range(1, 9))
def test_edms_heun_steps_over_its_levels_and_then_to_zero(nfe):
    """The published algorithm, written out: K levels of the power law, zero, no correction at the end."""
    steps = math.ceil(nfe / 2)
    levels = [Q0] if steps == 1 else power_grid(steps - 1, 7.0)
    x, calls = X, 0
    for q, below in pairwise([*levels, 0.0]):
        slope, calls = MIXTURE.eps_hat(x, q), calls + 1
        after = x + (below - q) * slope
        if below > 0:
            after, calls = x + (below - q) * (slope + MIXTURE.eps_hat(after, below)) / 2, calls + 1
        x = after
    counted = solvers.Counted(MIXTURE.eps_hat)
    found = solvers.solve("heun-edm", counted, X, nfe, PROCESS, SPECTRAL, rho=7.0)
    close(found, x, 1e-12)
    assert counted.nfe == calls == solvers.SOLVERS["heun-edm"].spends(nfe) == 2 * steps - 1


# -- Euler-Maruyama --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nfe", [1, 2, 5])
def test_euler_maruyama_is_the_reverse_equation_step_by_step(nfe):
    """``dx = -g^2 score dtau + g dW`` backwards in time, in conjugate coordinates: ``g^2 dtau = d(q^2) = 2 q dq``."""
    noise, x = [normal(3, 5, seed=10 + k) for k in range(nfe)], X
    for k, (q0, q1) in enumerate(pairwise(power_grid(nfe, 2.0))):
        score = -MIXTURE.eps_hat(x, q0) / q0
        x = x + 2 * q0 * (q0 - q1) * score + math.sqrt(2 * q0 * (q0 - q1)) * noise[k]
    counted = solvers.Counted(MIXTURE.eps_hat)
    found = solvers.solve("euler-maruyama", counted, X, nfe, PROCESS, SPECTRAL, rho=2.0, noise=lambda step: noise[step])
    close(found, x, ROUNDING)
    assert counted.nfe == nfe == solvers.SOLVERS["euler-maruyama"].spends(nfe)


def test_euler_maruyama_converges_to_the_data_with_weak_order_one():
    """With a linear score the variance of each mode can be carried along exactly: no sampling error."""
    row, modes = solvers.SOLVERS["euler-maruyama"], SPECTRAL.B.T.contiguous()  # one signal a mode

    def error(K):
        variance = SPECTRAL.v + Q0**2
        for q0, q1 in pairwise(power_grid(K)):
            still = row.function(SPECTRAL.eps, [q0, q1], modes, noise=lambda step: torch.zeros_like(modes))
            moved = row.function(SPECTRAL.eps, [q0, q1], torch.zeros_like(modes), noise=lambda step: modes)
            factor, kick = (torch.diagonal(x @ SPECTRAL.B) for x in (still, moved))
            variance = factor**2 * variance + kick**2
        return float((variance - SPECTRAL.v - Q1**2).norm())

    assert abs(measured_order(error, (400, 800, 1600)) - row.order) < 0.1


@pytest.mark.parametrize("nfe", [1, 2, 5])
def test_the_ancestral_solver_draws_from_what_a_noisier_state_and_the_data_say_of_the_next(nfe):
    """Between x0 = D and x at q0, the state at q1 is Gaussian: precisions add up, written out for each step."""
    noise, x, before = [normal(3, 5, seed=10 + k) for k in range(nfe)], X, None
    for k, (q0, q1) in enumerate(pairwise(power_grid(nfe, 2.0))):
        D = x - q0 * MIXTURE.eps_hat(x, q0)
        middle = D if before is None else D + (D - before[1]) / math.log(before[0] / q0) * math.log(q0 / q1) / 2
        from_data, from_state = 1 / q1**2, 1 / (q0**2 - q1**2)
        mean = (from_data * middle + from_state * x) / (from_data + from_state)
        x, before = mean + noise[k] / math.sqrt(from_data + from_state), (q0, D)
    counted = solvers.Counted(MIXTURE.eps_hat)
    found = solvers.solve("ancestral-2m", counted, X, nfe, PROCESS, SPECTRAL, rho=2.0, noise=lambda step: noise[step])
    close(found, x, 1e-12)
    assert counted.nfe == nfe == solvers.SOLVERS["ancestral-2m"].spends(nfe)


def test_the_ancestral_solver_converges_to_the_data_with_weak_order_two():
    """With a linear score the end is linear in the start and in each step's noise: one signal for each of them."""
    row, ones = solvers.SOLVERS["ancestral-2m"], SPECTRAL.B.sum(dim=1)  # the same on every mode

    def error(K):
        start, kicks = torch.zeros(K + 1, len(ones)).double(), torch.eye(K + 1, K).roll(1, 0).double()
        start[0] = ones
        x = row.function(SPECTRAL.eps, power_grid(K), start, noise=lambda step: kicks[:, [step]] * ones)
        factors = (x @ SPECTRAL.B) ** 2
        variance = factors[0] * (SPECTRAL.v + Q0**2) + factors[1:].sum(dim=0)
        return float((variance - SPECTRAL.v - Q1**2).norm())

    assert abs(measured_order(error, (100, 200, 400)) - row.order) < 0.1


HEAT = HeatProcess.on(random_graph().spectrum)


def gaussian_score(x, t):
    """The exact score where data are the spectral reference."""
    a = torch.exp(-HEAT.lam * (0.1 * t + 6.9 * t**5))
    variance = a**2 * SPECTRAL.v + (1 - a**2) / HEAT.lam
    return -(x @ HEAT.U / variance) @ HEAT.U.T


def test_euler_maruyama_on_the_heat_process_is_gads_sampler_step_by_step():
    noise = [normal(3, 5, seed=10 + k) for k in range(4)]
    L = (HEAT.U * HEAT.lam) @ HEAT.U.T
    x, times = X, [HEAT.newton(s) for s in (7.0, 5.25, 3.5, 1.75, 0.0)]
    for k in range(4):
        h = (0.1 + 34.5 * times[k] ** 4) * (times[k] - times[k + 1])
        x = x + h * (x @ L + 2 * gaussian_score(x, times[k])) + math.sqrt(2 * h) * noise[k]
    found = solvers.solve("euler-maruyama-heat", gaussian_score, X, 4, HEAT, SPECTRAL, noise=noise.__getitem__)
    close(found, x, 1e-11)


def test_euler_maruyama_on_the_heat_process_converges_to_the_data_with_weak_order_one():
    eye = HEAT.U.T.contiguous()  # one signal a mode

    def error(K):
        variance, grid = HEAT.variance(1.0), np.linspace(1.0, 0.0, K + 1)
        for t0, t1 in pairwise(grid):
            still = solvers.euler_maruyama_heat(gaussian_score, [t0, t1], eye, HEAT, lambda step: torch.zeros_like(eye))
            factor = torch.diagonal(still @ HEAT.U)
            variance = factor**2 * variance + 2 * (0.1 + 34.5 * t0**4) * (t0 - t1)
        return float((variance - SPECTRAL.v).norm())

    assert abs(measured_order(error, (400, 800, 1600)) - 1) < 0.1


@pytest.mark.parametrize("start", [0.0, 0.02, 7.0, -1.0, math.nan, "half", True, None])
@pytest.mark.parametrize("name", ["residual-2m", "heun-edm", "euler-maruyama-heat"])
def test_a_start_that_is_no_share_of_the_largest_level_is_refused_by_every_solver(name, start):
    if (name, start) == ("euler-maruyama-heat", 0.02):
        pytest.skip("times have no smallest level")
    process = HEAT if name == "euler-maruyama-heat" else PROCESS
    with pytest.raises(InputError, match="a share of the largest noise level"):
        solvers.levels(name, 4, process, start=start)


def test_edms_solver_takes_the_grid_of_the_references_entropy_and_another_start():
    levels = solvers.levels("heun-edm", 8, PROCESS, "entropy", reference=SPECTRAL, start=0.5)
    expected = solvers.levels("dpm++2m", 3, PROCESS, "entropy", reference=SPECTRAL, start=0.5)
    assert levels.tolist() == [*expected, 0.0]
    assert levels[0] == 0.5 * PROCESS.q_max
