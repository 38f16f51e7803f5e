"""Parameterisations: with the best possible network they give the true score, and their targets are the paper's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from mixtures import GraphCoordinates, normal, random_graph, random_mixture, random_process

from grcd.diffusion import parameterisation as score
from grcd.diffusion.process import HeatProcess, VEProcess
from grcd.graphs.space import SignalSpace
from grcd.references import gaussian as reference

MIXTURE = random_mixture()
PROCESS = random_process(kappa=3.0, sigma=0.7)  # neither at its default, so that neither can be forgotten unnoticed
SPECTRAL = reference.spectral(MIXTURE.covariance(), random_graph().spectrum)
FULL = reference.full(MIXTURE.covariance())
PAPER = GraphCoordinates(MIXTURE, PROCESS, SPECTRAL)
EPSILON = score.Epsilon(PROCESS)
PARAMETERISATIONS = {
    "epsilon": EPSILON,
    "residual, spectral": score.Residual(PROCESS, SPECTRAL),
    "residual, scalar": score.Residual(PROCESS, SPECTRAL.scalar()),
    "residual, full": score.Residual(PROCESS, FULL),
}
X0, EPS = normal(4, 5, seed=1), normal(4, 5, seed=2)
LEVELS = torch.tensor([[0.06], [0.5], [1.7], [3.0]], dtype=torch.float64)  # one per signal, q_min to q_max
ROUNDING = 1e-12  # products of 5 x 5 matrices, condition numbers below 100

every_parameterisation = pytest.mark.parametrize("p", PARAMETERISATIONS.values(), ids=PARAMETERISATIONS)
every_level = pytest.mark.parametrize("q", [0.06, 0.5, 3.0, LEVELS], ids=["low", "middle", "high", "one per signal"])


def a(t):  # A_t as a matrix per time, from the Laplacian and not from its eigenvectors
    L = random_graph().normalized.toarray()
    L_delta = L / np.linalg.eigvalsh(L).max() + 0.05 * np.eye(5)
    values, B = np.linalg.eigh(np.eye(5) + (3.0 * t) ** 2 / 0.7**2 * L_delta)
    return torch.from_numpy(B * values**-0.5 @ B.T)


class BestNetwork:
    """``f_opt = E[f* | x]`` for the mixture, from what a network gets to see: graph coordinates and the time."""

    def __init__(self, gaussian=None):
        self.gaussian = gaussian

    def __call__(self, x, t):
        rows = []
        for row, time in zip(x, t.expand(len(x), 1).flatten(), strict=True):
            q = 3.0 * float(time)
            conjugate = torch.linalg.solve(a(float(time)), row)
            best = MIXTURE.eps_hat(conjugate[None], q)[0]
            if self.gaussian is not None:
                V = self.gaussian.covariance() + q**2 * torch.eye(5, dtype=torch.float64)
                best = best - q * torch.linalg.solve(V, conjugate)
            rows.append(best)
        return torch.stack(rows)


def best_network(p):
    return BestNetwork(getattr(p, "reference", None))


def test_the_oracle_itself_is_the_gradient_of_a_library_density():
    distribution = torch.distributions
    x = (2 * X0).requires_grad_()
    q = 0.7
    components = distribution.MultivariateNormal(MIXTURE.m, MIXTURE.C + q**2 * torch.eye(5, dtype=torch.float64))
    mixture = distribution.MixtureSameFamily(distribution.Categorical(MIXTURE.w), components)
    close(MIXTURE.log_density(x, q), mixture.log_prob(x), ROUNDING)
    (gradient,) = torch.autograd.grad(mixture.log_prob(x).sum(), x)
    close(MIXTURE.eps_hat(x, q), -q * gradient, ROUNDING)


@every_level
@every_parameterisation
def test_the_best_network_gives_the_noise_prediction_of_the_mixture(p, q):
    close(p.prediction(best_network(p))(X0, q), MIXTURE.eps_hat(X0, q), ROUNDING)


@pytest.mark.parametrize("t", [0.02, 0.3, 1.0])
@every_parameterisation
def test_the_best_network_gives_the_score_of_the_marginal_in_graph_coordinates(p, t):
    q, x = 3.0 * t, (X0 @ a(t)).requires_grad_()
    # log density of A_t x~ at x, up to log det A_t, which has no gradient
    (gradient,) = torch.autograd.grad(MIXTURE.log_density(torch.linalg.solve(a(t), x.T).T, q).sum(), x)
    eps = p.prediction(best_network(p))(X0, q)
    # 1/eta is 17 at the lowest level and multiplies rounding
    close(PROCESS.graph_score(eps, q), gradient, 1e-11)


@pytest.mark.parametrize("t", [0.02, 0.3, 1.0])
def test_the_noise_prediction_is_the_papers_split_of_the_score_mode_by_mode(t):
    network, q = (lambda x, t: torch.sin(x) + t), 3.0 * t
    eps = PARAMETERISATIONS["residual, spectral"].prediction(network)(X0, q)
    s = PROCESS.graph_score(eps, q).numpy() @ PAPER.U
    x = X0.numpy() @ a(t).numpy() @ PAPER.U  # graph coordinates, graph-Fourier coefficients
    f = (np.sin(X0.numpy() @ a(t).numpy()) + t) @ PAPER.U
    expected = np.zeros((4, 5))
    for n in range(4):
        for i in range(5):
            expected[n, i] = -x[n, i] / PAPER.gamma(i, t) - f[n, i] / PAPER.eta(i, t)  # eq. score
    close(s, expected, 1e-11)


def test_the_residual_target_is_the_papers_mode_by_mode():
    target = PARAMETERISATIONS["residual, spectral"].target(X0 + LEVELS * EPS, EPS, LEVELS).numpy() @ PAPER.U
    x0, eps = X0.numpy() @ PAPER.U, EPS.numpy() @ PAPER.U
    expected = np.zeros((4, 5))
    for n in range(4):
        t = float(LEVELS[n]) / 3.0
        for i in range(5):
            x = PAPER.a(i, t) * x0[n, i] + PAPER.eta(i, t) * eps[n, i]  # eq. forward
            expected[n, i] = eps[n, i] - PAPER.eta(i, t) * x / PAPER.gamma(i, t)
    close(target, expected)


def test_the_epsilon_target_is_the_noise_itself():
    assert torch.equal(EPSILON.target(X0 + LEVELS * EPS, EPS, LEVELS), EPS)


def regression_on_x(p, q, covariance):
    """Matrix of the linear regression of the target on ``x~``, where data have this covariance: closed form."""
    eye, zero = torch.eye(5, dtype=torch.float64), torch.zeros(5, 5, dtype=torch.float64)
    by_x, by_eps = p.target(eye, zero, q), p.target(zero, eye, q)  # the target is linear in both
    V = covariance + q**2 * eye  # Cov(x~, x~); and Cov(x~, eps) = q I
    return torch.linalg.solve(V, V @ by_x + q * by_eps)


@pytest.mark.parametrize("q", [0.06, 0.5, 3.0])
@pytest.mark.parametrize("gaussian", [SPECTRAL, FULL], ids=["spectral", "full"])
def test_nothing_is_left_to_learn_where_the_reference_is_the_data(gaussian, q):
    left = regression_on_x(score.Residual(PROCESS, gaussian), q, gaussian.covariance())
    close(left, torch.zeros_like(left), ROUNDING, size=q * gaussian.covariance(q).inverse())


@pytest.mark.parametrize("q", [0.06, 0.5, 3.0])
def test_what_is_left_to_learn_is_the_reference_minus_the_data(q):
    V = torch.from_numpy(MIXTURE.covariance()) + q**2 * torch.eye(5, dtype=torch.float64)
    expected = q * (torch.linalg.inv(V) - torch.linalg.inv(SPECTRAL.covariance(q)))
    left = regression_on_x(PARAMETERISATIONS["residual, spectral"], q, torch.from_numpy(MIXTURE.covariance()))
    close(left, expected, ROUNDING)
    close(regression_on_x(EPSILON, q, SPECTRAL.covariance()), q * SPECTRAL.covariance(q).inverse(), ROUNDING)


@every_parameterisation
def test_losses_are_the_mean_square_over_modes_and_over_nodes(p):
    def network(x, t):
        return torch.cos(x) * t

    losses = p.losses(network, X0, EPS, LEVELS)
    for n in range(4):
        q = float(LEVELS[n])
        x = X0[n] + q * EPS[n]
        output = torch.cos(a(q / 3.0) @ x) * q / 3.0
        target = EPS[n]
        if p is not EPSILON:
            target = target - q * torch.linalg.solve(p.reference.covariance(q), x)
        for error in (output - target, (output - target) @ PROCESS.U):  # nodes, modes
            assert losses[n].item() == pytest.approx(sum(float(e) ** 2 for e in error) / 5, rel=1e-11)


@every_parameterisation
def test_weights_say_what_each_node_counts(p):
    """Zeros and ones over the share of ones: the mean square over what is marked, of all signals together."""
    marked = torch.tensor([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]).double()
    losses = p.losses(torch.mul, X0, EPS, LEVELS, marked / marked.mean())
    x = X0 + LEVELS * EPS
    error = p.output(torch.mul, x, LEVELS) - p.target(x, EPS, LEVELS)
    assert losses.mean().item() == pytest.approx(np.mean([float(e) ** 2 for e in error[marked > 0]]), rel=1e-12)
    assert losses[3] == 0
    assert torch.equal(p.losses(torch.mul, X0, EPS, LEVELS, torch.ones(4, 5)), p.losses(torch.mul, X0, EPS, LEVELS))


@examples(15)
@given(seed=st.integers(0, 2**16), share=st.floats(0, 1))
def test_every_parameterisation_has_the_same_irreducible_error_signal_by_signal(seed, share):
    """The known part cancels between output and target: they all ask for the same ``eps``."""
    x0, eps = normal(2, 5, seed=seed), normal(2, 5, seed=seed + 1)
    q = torch.full((2, 1), PROCESS.q_min + share * (PROCESS.q_max - PROCESS.q_min), dtype=torch.float64)
    expected = (MIXTURE.eps_hat(x0 + q * eps, q) - eps).square().mean(-1)
    for p in PARAMETERISATIONS.values():
        close(p.losses(best_network(p), x0, eps, q), expected, 1e-11, size=eps.square())


def test_a_network_in_single_precision_leaves_the_known_part_in_double():
    p = PARAMETERISATIONS["residual, spectral"]
    eps = p.prediction(lambda x, t: torch.zeros_like(x, dtype=torch.float32))(X0, 0.5)
    assert eps.dtype == torch.float64
    close(eps, 0.5 * torch.linalg.solve(SPECTRAL.covariance(0.5), X0.T).T, ROUNDING)


def test_make_composes_what_the_name_says():
    assert type(score.make("epsilon", PROCESS, SPECTRAL)) is score.Epsilon
    made = score.make("residual", PROCESS, SPECTRAL)
    assert torch.equal(made.decoded(X0, torch.zeros_like(X0), 0.5), SPECTRAL.eps(X0, 0.5))
    for name in ("whitened-scalar", "whitened-graph"):
        v = score.make(name, PROCESS, SPECTRAL).reference.v
        assert torch.equal(v, SPECTRAL.v if name.endswith("graph") else SPECTRAL.v.mean().expand(5))


# -- the comparators' parameterisations --------------------------------------------------------------------------------

VE = VEProcess(PROCESS.mu, PROCESS.U)
AFFINE = {
    **PARAMETERISATIONS,
    "whitened": score.Whitened(PROCESS, SPECTRAL),
    "preconditioned": score.Preconditioned(VE),
    "preconditioned, static": score.StaticPreconditioned(VE),
    "preconditioned, conjugate": score.ConjugatePreconditioned(VE),
}


@pytest.mark.parametrize("p", AFFINE.values(), ids=AFFINE)
@every_level
def test_a_target_decodes_to_the_noise_it_stands_for(p, q):
    x = X0 + q * EPS
    close(p.decoded(x, p.target(x, EPS, q), q), EPS, 1e-10)


@pytest.mark.parametrize("p", AFFINE.values(), ids=AFFINE)
def test_the_baseline_is_the_loss_of_a_network_that_predicts_what_the_reference_does(p):
    x = X0 + LEVELS * EPS
    best = p.target(x, SPECTRAL.eps(x, LEVELS), LEVELS)
    losses = p.losses(lambda seen, t: best, X0, EPS, LEVELS)
    close(p.baseline(SPECTRAL, X0, EPS, LEVELS).mean(-1), losses, rtol=1e-10)


@every_level
def test_the_whitened_score_is_the_score_times_the_references_covariance(q):
    """In graph coordinates, written with matrices: ``A (Sigma + q^2) A`` times ``-A^-1 eps / q``."""
    for row, level in zip(EPS, torch.as_tensor(q, dtype=torch.float64).expand(4, 1).flatten(), strict=True):
        A, level = a(float(level) / 3.0), float(level)
        marginal = A @ (SPECTRAL.covariance() + level**2 * torch.eye(5, dtype=torch.float64)) @ A
        expected = marginal @ torch.linalg.solve(A, -row / level)
        found = score.Whitened(PROCESS, SPECTRAL).target(X0[:1], row[None], level)[0]
        close(found, expected, 1e-9)


@pytest.mark.parametrize("q", [0.02, 0.5, 30.0])
def test_edms_preconditioning_has_unit_input_and_target_for_unit_data(q):
    """Karras et al.'s requirements, from the coefficients of independent unit data and noise."""
    p, one, zero = (
        score.Preconditioned(VE),
        torch.ones(1, 5, dtype=torch.float64),
        torch.zeros(1, 5, dtype=torch.float64),
    )
    of_data, of_noise = p.seen(one, q), p.seen(q * one, q)
    close(of_data**2 + of_noise**2, one)
    of_data, of_noise = p.target(one, zero, q), p.target(q * one, one, q)
    close(of_data**2 + of_noise**2, one)
    assert float(VE.t(q)) == pytest.approx(np.log(q) / 4)


@pytest.mark.parametrize("q", [0.02, 0.5, 30.0])
def test_conjugate_preconditioning_shows_the_network_what_grcd_does(q):
    a = (1 + VE.mu * q**2) ** -0.5
    expected = (X0 @ VE.U * a) @ VE.U.T
    close(score.ConjugatePreconditioned(VE).seen(X0, q), expected)
    static = (X0 @ VE.U * (1 + VE.mu) ** -0.5) @ VE.U.T / np.sqrt(1 + q**2)
    close(score.StaticPreconditioned(VE).seen(X0, q), static)


def test_gads_score_is_the_true_one_where_its_network_knows_the_posterior_mean():
    heat = HeatProcess.of(SignalSpace(random_graph()), {})
    p, t, v = score.Denoised(heat), 0.6, SPECTRAL.v
    s = 0.1 * t + 6.9 * t**5
    a, noise = torch.exp(-heat.lam * s), (1 - torch.exp(-2 * heat.lam * s)) / heat.lam
    marginal = v * a**2 + noise

    def posterior_mean(x, t):
        return (x @ heat.U * (v * a / marginal)) @ heat.U.T

    expected = -(X0 @ heat.U / marginal) @ heat.U.T
    close(p.prediction(posterior_mean)(X0, t), expected, 1e-10)
    losses = p.losses(posterior_mean, X0, EPS, torch.full((4, 1), t, dtype=torch.float64))
    baseline = p.baseline(SPECTRAL, X0, EPS, torch.full((4, 1), t, dtype=torch.float64)).mean(-1)
    x = heat.nodes(heat.modes(X0) * a + heat.modes(EPS) * noise.sqrt())
    close(p.target(x, EPS, t), X0, 1e-10)  # the signal that became x by this noise
    W, x0_hat = random_graph().weights.toarray(), posterior_mean(x, None)
    variation = [
        sum(W[i, j] * (row[i] - row[j]) ** 2 for i in range(len(W)) for j in range(i)) for row in x0_hat.tolist()
    ]
    close(losses, baseline + 5e-3 * torch.tensor(variation, dtype=torch.float64), rtol=1e-9)
    error = p.signal_error(posterior_mean, X0, EPS, torch.full((4, 1), t, dtype=torch.float64))
    close(error, (x0_hat - X0) ** 2, rtol=1e-9)
    close(p.signal_error(SPECTRAL, X0, EPS, t), error, rtol=1e-9)


def test_the_total_variation_of_a_window_is_that_of_its_moments():
    graph = random_graph()
    space = SignalSpace(graph, steps=3, channels=2)
    x = torch.from_numpy(np.random.RandomState(0).standard_normal((4, space.d)))
    moments = x.view(4, 3, len(graph), 2).permute(0, 1, 3, 2).reshape(-1, len(graph))
    one, whole = (HeatProcess.of(s, {}).variation for s in (SignalSpace(graph), space))
    close(whole(x), one(moments).view(4, -1).sum(-1), rtol=1e-12)
