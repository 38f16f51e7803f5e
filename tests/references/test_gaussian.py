"""Gaussian references: one contract of laws that every member keeps, then what is particular to each."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from laws import close, each_close, examples
from scipy.integrate import solve_ivp
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf as sklearn_ledoit_wolf

from grcd.core import systems
from grcd.diffusion.process import ConjugateProcess
from grcd.diffusion.solvers import exponential_weights
from grcd.graphs.graph import Graph
from grcd.references import gaussian as reference
from grcd.references.gaussian import Gaussian

NODES = 7
levels = st.floats(0.02, 40.0)
many = examples(25)
# The contract is inherited on purpose, and its fixture does not change between examples.
law = examples(25, suppress=(HealthCheck.differing_executors, HealthCheck.function_scoped_fixture))


def graph_of(upper):
    return Graph.from_adjacency(upper + upper.T)


RNG = np.random.default_rng(0)
UPPER = np.triu(RNG.random((NODES, NODES)), 1)
LINKED = np.arange(NODES) != 4
GRAPHS = {
    "random": graph_of(UPPER),  # no two eigenvalues alike
    "ring": graph_of(np.roll(np.eye(NODES), 1, axis=1)),  # eigenspaces of two dimensions
    "isolated-node": graph_of(UPPER * np.outer(LINKED, LINKED)),
}
NOISE = torch.from_numpy(RNG.standard_normal((4, NODES)))
ROOT = RNG.standard_normal((NODES, NODES + 3))
COVARIANCE = ROOT @ ROOT.T / NODES


SIGNAL = RNG.standard_normal(NODES)
FORCING = [torch.from_numpy(c) for c in RNG.standard_normal((3, 4, NODES))]


def gappy_signals(share, rows=40):
    """With rows that are complete, empty, and observed at one node only; and a noise for each."""
    random = np.random.default_rng(3)
    x, noise = random.standard_normal((2, rows, NODES))
    x[random.random(x.shape) < share] = math.nan
    x[0], x[1], x[2, 1:], x[3:7, 2] = SIGNAL, math.nan, math.nan, -0.0
    return torch.from_numpy(x), torch.from_numpy(noise)


class Contract:
    """What makes an object a Gaussian reference. A member says how it is fitted and what its covariance is, naively."""

    def fit(self, covariance: np.ndarray, graph: Graph) -> Gaussian:
        raise NotImplementedError

    def dense(self, covariance: np.ndarray, graph: Graph) -> np.ndarray:
        raise NotImplementedError

    @pytest.fixture(params=GRAPHS)
    def graph(self, request):
        return GRAPHS[request.param]

    @pytest.fixture
    def case(self, graph):  # the member, and its covariance as a dense matrix
        return self.fit(COVARIANCE, graph), self.dense(COVARIANCE, graph)

    @law
    @given(q=levels)
    def test_the_marginal_has_covariance_sigma_plus_q_squared(self, case, q):
        gaussian, sigma = case
        close(gaussian.covariance(), sigma)
        close(gaussian.covariance(q), sigma + q**2 * np.eye(NODES))
        variance = np.repeat(gaussian.variance(q), gaussian.multiplicity.long())
        close(np.sort(variance), np.linalg.eigvalsh(sigma) + q**2)
        v, times = gaussian.variances()
        close(np.sort(np.repeat(v, times.astype(int))), np.linalg.eigvalsh(sigma))

    @law
    @given(q=levels)
    def test_the_score_is_a_dense_solve_and_the_noise_prediction_follows_from_it(self, case, q):
        gaussian, sigma = case
        score = -np.linalg.solve(sigma + q**2 * np.eye(NODES), NOISE.T.numpy()).T
        close(gaussian.score(NOISE, q), score)
        close(gaussian.eps(NOISE, q), -q * score)

    @law
    @given(q=st.just(0.0) | levels)
    def test_the_log_density_is_scipys_and_the_score_its_gradient(self, case, q):
        gaussian, sigma = case
        x = NOISE.clone().requires_grad_()
        log_prob, score = gaussian.scored(x, q)
        (gradient,) = torch.autograd.grad(gaussian.log_prob(x, q).sum(), x)
        close(log_prob.detach(), multivariate_normal(np.zeros(NODES), sigma + q**2 * np.eye(NODES)).logpdf(NOISE))
        close(score.detach(), gradient)
        assert torch.equal(score, gaussian.score(x, q))
        assert torch.equal(log_prob, gaussian.log_prob(x, q))

    @law
    @given(q=st.just(0.0) | levels, gain=st.floats(-2, 2))
    def test_filtering_is_a_function_of_the_covariance(self, case, q, gain):
        """Any power of the variances is that power of the matrix; modes that are known already change nothing."""
        gaussian, sigma = case
        v, B = np.linalg.eigh(sigma)
        found = gaussian.filtered(NOISE, gaussian.variance(q) ** gain)
        close(found, NOISE @ (B * (v + q**2) ** gain) @ B.T)
        assert torch.equal(gaussian.filtered(NOISE, gaussian.variance(q) ** gain, gaussian.modes(NOISE)), found)

    @law
    @given(q=st.just(0.0) | levels)
    def test_a_draw_has_exactly_the_covariance_of_its_level(self, case, q):
        """The rows of ``draw(I)`` are the root ``R`` a draw multiplies its noise with: ``R^T R`` is its covariance."""
        gaussian, sigma = case
        root = gaussian.draw(torch.eye(NODES, dtype=torch.float64), q)
        close(root.T @ root, sigma + q**2 * np.eye(NODES))
        close(root, root.T)
        close(gaussian.draw(NOISE, q), NOISE @ root)

    @law
    @given(q0=levels, q1=levels, q2=levels)
    def test_propagation_composes_and_runs_backwards(self, case, q0, q1, q2):
        gaussian, _ = case
        there = gaussian.propagate(NOISE, q1, q0)
        close(gaussian.propagate(there, q2, q1), gaussian.propagate(NOISE, q2, q0))
        close(gaussian.propagate(there, q0, q1), NOISE)

    @law
    @given(q0=levels, q1=levels)
    def test_propagation_carries_a_draw_to_the_draw_from_the_same_noise(self, case, q0, q1):
        gaussian, _ = case
        close(gaussian.propagate(gaussian.draw(NOISE, q0), q1, q0), gaussian.draw(NOISE, q1))

    @pytest.mark.parametrize(("q0", "q1"), [(2.0, 0.5), (0.5, 2.0)])
    def test_propagation_solves_the_flow_of_the_noise_prediction(self, case, q0, q1):
        """Against 400 steps of RK4 on ``dx/dq = eps(x, q)``, whose own error sets the tolerance."""
        gaussian, _ = case
        x, h = NOISE, (q1 - q0) / 400
        for q in q0 + h * np.arange(400):
            k1 = gaussian.eps(x, q)
            k2 = gaussian.eps(x + h / 2 * k1, q + h / 2)
            k3 = gaussian.eps(x + h / 2 * k2, q + h / 2)
            k4 = gaussian.eps(x + h * k3, q + h)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        close(gaussian.propagate(NOISE, q1, q0), x, rtol=1e-10)

    @pytest.mark.parametrize(("q0", "q1", "count"), [(2.0, 0.05, 0), (0.3, 2.0, 1), (0.3, 2.0, 2), (2.0, 0.05, 3)])
    def test_carrying_solves_the_flow_with_a_polynomial_added(self, case, q0, q1, count):
        gaussian, sigma = case
        forcing, v = FORCING[:count], np.linalg.eigh(sigma)

        def velocity(q, flat):
            x = flat.reshape(4, NODES)
            eps = q * (x @ v[1] / (v[0] + q**2)) @ v[1].T
            return (eps + sum(c.numpy() * (q - q0) ** j for j, c in enumerate(forcing))).ravel()

        end = solve_ivp(velocity, (q0, q1), NOISE.numpy().ravel(), method="DOP853", rtol=1e-13, atol=1e-13)
        found = gaussian.carry(NOISE, q1, q0, forcing)
        close(found, end.y[:, -1].reshape(4, NODES), rtol=1e-10)  # the error of the integrator
        if not count:
            assert torch.equal(found, gaussian.propagate(NOISE, q1, q0))

    @law
    @given(q0=levels, q1=levels, q2=levels)
    def test_carrying_composes(self, case, q0, q1, q2):
        """A line about ``q0`` is the same line about ``q1``."""
        gaussian, _ = case
        a, b, _ = FORCING
        there = gaussian.carry(NOISE, q1, q0, [a, b])
        whole = gaussian.carry(NOISE, q2, q0, [a, b])
        size = (1 + max(q0, q1, q2) ** 2) * (1 + float(gaussian.phi(q2, q1).max()))
        close(gaussian.carry(there, q2, q1, [a + (q1 - q0) * b, b]), whole, size=size)

    @law
    @given(q0=st.floats(0.05, 40), ratio=st.floats(0.005, 0.95))
    def test_moments_are_the_closed_form_weights(self, case, q0, ratio):
        """Down to a two-hundredth of a level, and up again. ``w1`` is a difference: small steps round it more."""
        gaussian, _ = case
        for a, b in ((q0, q0 * ratio), (q0 * ratio, q0)):
            w0, w1 = exponential_weights(gaussian.v, a, b)
            M0, M1 = gaussian.moments(b, a, 2)
            each_close(M0, w0 + w1, rtol=1e-12)
            each_close(M1, w1 * (b - a), rtol=1e-12 / (1 - ratio))

    @law
    @given(seed=st.integers(0, 2**32 - 1), q=levels)
    def test_eigenvector_signs_do_not_matter(self, case, seed, q):
        gaussian, _ = case
        signs = torch.from_numpy(np.random.default_rng(seed).choice([-1.0, 1.0], gaussian.B.shape[1]))
        flipped = type(gaussian)(gaussian.v, gaussian.B * signs)
        for one, other in zip(self.everything(gaussian, NOISE, q), self.everything(flipped, NOISE, q), strict=True):
            close(one, other)

    @law
    @given(order=st.permutations(range(NODES)), q=levels)
    def test_listing_the_nodes_in_another_order_lists_the_results_in_that_order(self, graph, order, q):
        here = self.fit(COVARIANCE, graph)
        there = self.fit(COVARIANCE[np.ix_(order, order)], graph.permuted(order))
        for one, other in zip(self.everything(here, NOISE, q), self.everything(there, NOISE[:, order], q), strict=True):
            close(one[:, order], other)

    def test_a_level_for_every_signal_is_the_same_as_one_signal_at_a_time(self, case):
        gaussian, _ = case
        q = torch.tensor([[0.1], [0.5], [1.0], [2.0]], dtype=torch.float64)
        apart = [self.everything(gaussian, NOISE[[k]], float(q[k])) for k in range(4)]
        for together, rows in zip(self.everything(gaussian, NOISE, q), zip(*apart, strict=True), strict=True):
            close(together, torch.cat(rows))

    def test_completing_draws_the_missing_given_the_observed(self, case):
        """The affine map itself: with no noise the conditional mean; the noise enters by a root of the covariance."""
        gaussian, sigma = case
        for missing in ([2], [0, 3, 5], [0, 1, 2, 4, 5], [1, 2, 3, 4, 5, 6], list(range(NODES))):
            observed = np.setdiff1d(np.arange(NODES), missing)
            x = torch.from_numpy(SIGNAL).repeat(NODES + 1, 1)
            x[:, missing] = math.nan
            found = gaussian.completed(x, torch.cat([torch.zeros(1, NODES), torch.eye(NODES)]).double()).numpy()
            gain = np.linalg.solve(sigma[np.ix_(observed, observed)], sigma[np.ix_(observed, missing)])  # empty is fine
            left = sigma[np.ix_(missing, missing)] - sigma[np.ix_(missing, observed)] @ gain
            close(found[0, missing], SIGNAL[observed] @ gain, size=SIGNAL)
            root = found[1:, missing] - found[0, missing]
            close(root.T @ root, left)
            assert np.array_equal(found[:, observed], np.tile(SIGNAL[observed], (NODES + 1, 1)))

    # Systems solved one by one, some at a time, all together.
    @pytest.mark.parametrize(("share", "room"), [(0.2, 1), (0.5, 1000), (0.8, systems.BYTES)])
    def test_completing_is_a_draw_corrected_by_a_dense_solve_row_by_row(self, case, share, room, monkeypatch):
        gaussian, sigma = case
        monkeypatch.setattr(systems, "BYTES", room)
        x, noise = gappy_signals(share)
        for precision in (x, x.float()):
            found = gaussian.completed(precision, noise)
            for row, filled, drawn in zip(precision.double().numpy(), found, gaussian.draw(noise), strict=True):
                o, m, drawn = np.flatnonzero(row == row), np.flatnonzero(row != row), drawn.numpy()
                correction = sigma[np.ix_(m, o)] @ np.linalg.solve(sigma[np.ix_(o, o)], row[o] - drawn[o])
                close(filled[m], drawn[m] + correction)
                assert np.array_equal(filled[o].numpy().view(np.int64), row[o].view(np.int64))  # to the bit, -0.0 too

    def test_completing_one_signal_does_not_depend_on_the_others(self, case):
        gaussian, _ = case
        x, noise = gappy_signals(0.4)
        for k in range(len(x)):
            close(gaussian.completed(x[[k]], noise[[k]]), gaussian.completed(x, noise)[[k]])

    @law
    @given(q=levels, snr=st.floats(1e-4, 100))
    def test_ratios_of_energy_are_those_of_the_whole_covariance(self, case, q, snr):
        """``tr Sigma^2 / tr Sigma / q^2``, whichever way directions are grouped."""
        gaussian, sigma = case
        whole = reference.full(sigma)
        energy = np.trace(sigma @ sigma) / np.trace(sigma)
        each_close(gaussian.energy_snr(q), energy / q**2, rtol=1e-12)
        each_close(gaussian.energy_snr(q), whole.energy_snr(q), rtol=1e-12)
        each_close(gaussian.q_for_snr(snr), whole.q_for_snr(snr), rtol=1e-12)

    @staticmethod
    def everything(gaussian, x, q):
        holes = torch.where(x > 0.5, math.nan, x)  # travels with the order of nodes
        made = gaussian.draw(x, q), gaussian.score(x, q), gaussian.eps(x, q), gaussian.propagate(x, 0.3, q)
        log_prob = gaussian.log_prob(x, q)[:, None].expand_as(x)  # the same at all nodes
        return *made, log_prob, gaussian.completed(holes, x)


class OfNoGraph(Contract):
    """Members that never see the graph: on one of them they are as on all."""

    @pytest.fixture
    def graph(self):
        return GRAPHS["random"]


class TestSpectral(Contract):
    def fit(self, covariance, graph):
        return reference.spectral(covariance, graph.spectrum)

    def dense(self, covariance, graph):
        """Projected on each eigenspace of the Laplacian: ``sum_k P_k tr(P_k Sigma) / tr(P_k)``, without any basis."""
        lam, U = np.linalg.eigh(graph.normalized.toarray())
        projectors = [(columns := U[:, np.isclose(lam, value)]) @ columns.T for value in np.unique(lam.round(6))]
        return sum(P * np.trace(P @ covariance) / np.trace(P) for P in projectors)


class TestScalar(Contract):
    def fit(self, covariance, graph):
        return reference.scalar(reference.spectral(covariance, graph.spectrum))

    def dense(self, covariance, graph):
        return np.trace(covariance) / NODES * np.eye(NODES)


class TestFull(OfNoGraph):
    def fit(self, covariance, graph):
        return reference.full(covariance)

    def dense(self, covariance, graph):
        return covariance


class TestDiagonal(OfNoGraph):
    def fit(self, covariance, graph):
        return reference.diagonal(covariance)

    def dense(self, covariance, graph):
        return np.diag(np.diag(covariance))


class TestLowRank(OfNoGraph):
    def fit(self, covariance, graph):
        return reference.low_rank(covariance, 3)

    def dense(self, covariance, graph):
        """Three principal directions as they are, and the mean of the other four variances in all others."""
        v, B = np.linalg.eigh(covariance)
        leading = sum(v[i] * np.outer(B[:, i], B[:, i]) for i in (4, 5, 6))
        return leading + v[:4].mean() * (np.eye(NODES) - B[:, 4:] @ B[:, 4:].T)


class TestGmrf(Contract):
    def fit(self, covariance, graph):
        return reference.gmrf(graph.spectrum, delta=0.1, sigma=1.7)

    def dense(self, covariance, graph):
        L = graph.normalized.toarray()
        return 1.7**2 * np.linalg.inv(L / np.linalg.eigvalsh(L)[-1] + 0.1 * np.eye(NODES))


@pytest.mark.parametrize(("samples", "nodes", "spread"), [(60, 5, 1), (4, 9, 1), (4, 3, 0)])
def test_ledoit_wolf_is_the_2004_formula(samples, nodes, spread):
    """``b^2 = min(d^2, mean |x x^T - S|^2 / n)`` and ``d^2 = |S - m I|^2`` mix ``S`` with ``m I`` as ``b^2 : d^2``."""
    # More samples than nodes, fewer, and so few that b^2 is capped: nothing of S is left.
    x = np.random.default_rng(14).standard_normal((samples, nodes)) * (1 + spread * np.arange(nodes)) + 5.0
    centred = x - x.mean(axis=0)
    S = sum(np.outer(row, row) for row in centred) / samples
    m = np.trace(S) / nodes
    d2 = np.sum((S - m * np.eye(nodes)) ** 2)
    b2 = min(d2, sum(np.sum((np.outer(row, row) - S) ** 2) for row in centred) / samples**2)
    expected = b2 / d2 * m * np.eye(nodes) + (1 - b2 / d2) * S
    close(reference.ledoit_wolf(x), expected + 1e-6 * np.eye(nodes), rtol=1e-13)
    close(reference.ledoit_wolf(x, eps_ref=0.25), expected + 0.25 * np.eye(nodes), rtol=1e-13)


@many
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(2, 60), nodes=st.integers(1, 12), spread=st.floats(0, 2))
def test_ledoit_wolf_is_scikit_learns(seed, samples, nodes, spread):
    x = np.random.default_rng(seed).standard_normal((samples, nodes)) * (1 + spread * np.arange(nodes)) + 5.0
    close(reference.ledoit_wolf(x, 0.0), sklearn_ledoit_wolf(x)[0])


@pytest.mark.parametrize(("samples", "nodes"), [(30_000, 207), (300, 500), (744, 37)])
def test_ledoit_wolf_is_scikit_learns_at_the_sizes_of_real_data(samples, nodes):
    random = np.random.default_rng(0)
    x = random.standard_normal((samples, 5)) @ random.standard_normal((5, nodes)) + random.standard_normal(
        (samples, nodes)
    )
    close(reference.ledoit_wolf(x, 0.0), sklearn_ledoit_wolf(x)[0])


def naive_pairwise(x):
    """Covariances and the variances of their estimates over the signals that observed both nodes, pair by pair."""
    nodes = x.shape[1]
    x = x - np.nanmean(x, axis=0)
    S, error = np.zeros((nodes, nodes)), 0.0
    for i in range(nodes):
        for j in range(nodes):
            products = [row[i] * row[j] for row in x if not np.isnan(row[i] * row[j])]
            if products:
                S[i, j] = np.mean(products)
                error += (np.mean(np.square(products)) - S[i, j] ** 2) / len(products)
    return S, error


def with_gaps(x, share, seed=0):
    missing = np.random.default_rng(seed).random(x.shape) < share
    missing[:2] = False  # every node is observed
    return np.where(missing, np.nan, x)


@pytest.mark.parametrize("block", [1, 40, 1 << 22])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_covariance_of_signals_with_gaps_is_that_of_the_observed_pairs(share, block, monkeypatch):
    monkeypatch.setattr("grcd.core.rows.BLOCK", block)
    x = with_gaps(np.random.default_rng(1).standard_normal((50, NODES)) @ ROOT[:, :NODES] + 3.0, share)
    S, error = naive_pairwise(x)
    v, B = np.linalg.eigh(S)
    S = sum(value * np.outer(b, b) for value, b in zip(v, B.T, strict=True) if value > 0)
    m = np.trace(S) / NODES
    b = min(1.0, error / np.sum((S - m * np.eye(NODES)) ** 2))
    close(reference.ledoit_wolf(x), (1 - b) * S + (b * m + 1e-6) * np.eye(NODES))
    assert (share < 0.8) or (v[0] < -0.01 and b < 1)  # the repair was at work


def test_pairs_never_observed_together_count_as_uncorrelated():
    x = np.random.default_rng(2).standard_normal((40, 1)) + 0.1 * np.random.default_rng(3).standard_normal((40, 3))
    x[:20, 0] = x[20:, 1] = np.nan  # nodes 0 and 1 take turns; both go with node 2
    S, _ = naive_pairwise(x)
    assert S[0, 1] == 0.0
    assert np.linalg.eigvalsh(S)[0] < -0.1  # no Gaussian has these correlations: 1 with node 2, 0 with each other
    found = reference.ledoit_wolf(x)
    assert np.linalg.eigvalsh(found)[0] > 0
    v, B = np.linalg.eigh(S)
    nearest = (B * np.maximum(v, 0)) @ B.T
    assert nearest[0, 1] > 0.05 > S[0, 1]
    close(found[0, 1] / found[0, 2], nearest[0, 1] / nearest[0, 2])  # shrinking changes both alike


def test_with_nothing_missing_both_ways_to_the_covariance_are_one():
    x = np.random.default_rng(4).standard_normal((30, NODES)) @ ROOT[:, :NODES]
    (S, error), (other, same) = reference._complete(x, x.mean(0)), reference._pairwise(x, x.mean(0))
    close(other, S)
    close(same, error)


@pytest.mark.parametrize("samples", [4000, 64_000])
def test_with_30_percent_missing_the_reference_converges_to_the_true_variances(samples):
    """The error of ``v_i`` is ``sqrt(2 / n) v_i`` for complete Gaussian data; a pair is observed in 0.49 of ``n``."""
    spectrum = GRAPHS["random"].spectrum
    truth = reference.spectral(COVARIANCE, spectrum)
    x = truth.draw(torch.from_numpy(np.random.default_rng(5).standard_normal((samples, NODES)))).numpy()
    v = reference.spectral(reference.ledoit_wolf(with_gaps(x, 0.3), 0.0), spectrum).v
    allowed = 5 * math.sqrt(2 / samples) / 0.7 * float(truth.v.max())  # errors of one mode leak into all
    assert (v - truth.v).abs().max() < allowed
    assert allowed < 0.4 * float(truth.v.max() - truth.v.min())


def test_spectral_variances_are_the_diagonal_in_the_graph_fourier_basis():
    spectrum = GRAPHS["random"].spectrum
    U = spectrum.U
    v = [sum(U[n, i] * COVARIANCE[n, m] * U[m, i] for n in range(NODES) for m in range(NODES)) for i in range(NODES)]
    close(reference.spectral(COVARIANCE, spectrum).v, v, rtol=1e-12)


def test_a_low_rank_reference_keeps_the_trace_and_of_full_rank_is_the_covariance():
    for rank in range(NODES + 1):
        member = reference.low_rank(COVARIANCE, rank)
        close(torch.trace(member.covariance()), np.trace(COVARIANCE))
        assert int(member.multiplicity.sum()) == NODES
        assert (member.multiplicity[:-1] == 1).all()
    close(reference.low_rank(COVARIANCE, NODES).covariance(), COVARIANCE)
    close(reference.low_rank(COVARIANCE, NODES - 1).covariance(), COVARIANCE)
    close(reference.low_rank(COVARIANCE, 0).covariance(), np.trace(COVARIANCE) / NODES * np.eye(NODES))


def test_what_a_low_rank_reference_leaves_over_is_not_lost_beside_its_modes():
    """Variances nine orders apart: the energy left of a large signal is not taken as a difference of squares."""
    v, B = torch.tensor([1.0, 1e-9], dtype=torch.float64), torch.eye(2, dtype=torch.float64)[:, :1]
    x = torch.tensor([[1e3, 1e-4]], dtype=torch.float64)
    expected = -(1e6 + 1e-8 / 1e-9 + math.log(1e-9) + 2 * math.log(2 * math.pi)) / 2
    each_close(reference.LowRank(v, B).log_prob(x), [expected], rtol=1e-14)


@many
@given(v=st.lists(st.floats(1e-6, 100), min_size=1, max_size=8), q=levels, snr=st.floats(1e-4, 100))
def test_energy_weighted_snr_and_the_level_that_reaches_it(v, q, snr):
    gaussian = Gaussian(torch.tensor(v, dtype=torch.float64), torch.eye(len(v), dtype=torch.float64))
    each_close(gaussian.snr(q), [one / q**2 for one in v], rtol=1e-12)
    each_close(gaussian.energy_snr(q), sum(one / sum(v) * one / q**2 for one in v), rtol=1e-12)
    each_close(gaussian.energy_snr(gaussian.q_for_snr(snr)), snr, rtol=1e-12)
    each_close(gaussian.q_for_snr(gaussian.energy_snr(q)), q, rtol=1e-12)


def test_off_diagonal_energy_by_hand_on_two_nodes():
    """With ``U = [[1, 1], [1, -1]]/sqrt(2)`` the covariance ``[[a, b], [b, c]]`` has off-diagonal ``(a - c)/2``."""
    a, b, c = 3.0, 0.5, 1.0
    covariance = np.array([[a, b], [b, c]])
    pair = reference.spectral(covariance, Graph.from_adjacency([[0, 1], [1, 0]]).spectrum)
    share = math.sqrt(2) * (a - c) / 2 / math.sqrt(a**2 + 2 * b**2 + c**2)
    each_close(reference.off_diagonal_energy(covariance, pair), share, rtol=1e-14)


def test_off_diagonal_energy_is_what_the_basis_change_leaves_off_the_diagonal():
    spectrum = GRAPHS["random"].spectrum
    turned = spectrum.U.T @ COVARIANCE @ spectrum.U
    share = np.linalg.norm(turned - np.diag(np.diag(turned))) / np.linalg.norm(turned)
    close(reference.off_diagonal_energy(COVARIANCE, reference.spectral(COVARIANCE, spectrum)), share)
    close(reference.off_diagonal_energy(COVARIANCE, reference.full(COVARIANCE)), 0.0, 1e-13, size=1.0)  # a share


@many
@given(q0=levels, q1=levels, sigma=st.floats(0.5, 2))
def test_in_graph_coordinates_propagation_is_the_papers_propagator(q0, q1, sigma):
    """Eq. phi_explicit_app, which is ``sqrt(gamma(q1) / gamma(q0))``, with the graph's ``mu`` in it."""
    spectrum = GRAPHS["random"].spectrum
    process, gaussian = ConjugateProcess.on(spectrum, sigma=sigma), reference.spectral(COVARIANCE, spectrum)
    x1 = process.to_graph(gaussian.propagate(process.to_conjugate(NOISE, q0), q1, q0), q1)
    v, mu = gaussian.v, process.mu
    phi = ((v + q1**2) / (v + q0**2)) ** 0.5 * ((sigma**2 + mu * q0**2) / (sigma**2 + mu * q1**2)) ** 0.5
    close(process.modes(x1), phi * process.modes(NOISE))
    close(phi**2, process.gamma(v, q1) / process.gamma(v, q0))


def test_as_noise_grows_every_reference_becomes_the_gmrf_in_graph_coordinates():
    """In graph coordinates the marginal is ``A (Sigma + q^2 I) A``; the level is as high as its limit is exact."""
    spectrum = GRAPHS["random"].spectrum
    process, field = ConjugateProcess.on(spectrum, delta=0.1, sigma=1.7), reference.gmrf(spectrum, 0.1, 1.7)
    close(field.v, process.gamma_limit, rtol=1e-14)
    members = reference.spectral(COVARIANCE, spectrum), reference.full(COVARIANCE), reference.diagonal(COVARIANCE)
    for member in members:
        marginal = process.to_graph(process.to_graph(member.covariance(1e8), 1e8).T, 1e8)
        close(marginal, field.covariance())


@pytest.mark.parametrize("kind", [reference.full, lambda C: reference.low_rank(C, 3)], ids=["full", "low rank"])
@pytest.mark.parametrize(
    "q", [0.3, torch.tensor([[0.0], [0.1], [1.0], [9.0]], dtype=torch.float64)], ids=["one", "each"]
)
def test_stacked_references_have_the_densities_and_scores_of_each(kind, q):
    several = [kind(COVARIANCE + k * np.diag(np.arange(1.0, NODES + 1))) for k in range(3)]
    x = torch.stack([NOISE, 2 * NOISE, NOISE + 1])
    log_prob, scores = reference.stacked(several).scored(x, q)
    for k, one in enumerate(several):
        close(log_prob[k], one.scored(x[k], q)[0])
        close(scores[k], one.scored(x[k], q)[1])
