"""What is particular to Gaussian references: functions of their covariance, gaps, ratios, and each kind's own."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, each_close, examples
from members import MEMBERS, NODES, PROBLEM

from grcd.core import systems
from grcd.diffusion.process import ConjugateProcess
from grcd.diffusion.solvers import exponential_weights
from grcd.graphs.graph import Graph
from grcd.graphs.space import SignalSpace
from grcd.references import gaussian as reference
from grcd.references.component import stacked
from grcd.references.gaussian import Gaussian
from grcd.references.observations import Observations

levels = st.floats(0.02, 40.0)
many = examples(25)
RNG = np.random.default_rng(0)
NOISE, SIGNAL = torch.from_numpy(RNG.standard_normal((4, NODES))), RNG.standard_normal(NODES)
COVARIANCE, SPECTRUM = PROBLEM.truth.C[0].numpy(), PROBLEM.graph.spectrum
CASES = {  # a Gaussian, and its covariance as a dense matrix
    name: (member.reference, member.truth.C[0].numpy())
    for name, member in MEMBERS.items()
    if isinstance(member.reference, Gaussian)
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def gappy_signals(share, rows=40):
    """With rows that are complete, empty, and observed at one node only; and a noise for each."""
    random = np.random.default_rng(3)
    x, noise = random.standard_normal((2, rows, NODES))
    x[random.random(x.shape) < share] = math.nan
    x[0], x[1], x[2, 1:], x[3:7, 2] = SIGNAL, math.nan, math.nan, -0.0
    return torch.from_numpy(x), torch.from_numpy(noise)


@each
@many
@given(q=st.just(0.0) | levels, power=st.floats(-2, 2))
def test_filtering_is_a_function_of_the_covariance(case, q, power):
    """Any power of the variances is that power of the matrix; modes that are known already change nothing."""
    gaussian, sigma = case
    v, B = np.linalg.eigh(sigma)
    filtered = gaussian.filtered(NOISE, gaussian.variance(q) ** power)
    close(filtered, NOISE @ (B * (v + q**2) ** power) @ B.T)
    assert torch.equal(gaussian.filtered(NOISE, gaussian.variance(q) ** power, gaussian.modes(NOISE)), filtered)
    close(gaussian.precision(q), np.linalg.inv(sigma + q**2 * np.eye(NODES)))


@each
@many
@given(q0=levels, q1=levels, q2=levels)
def test_propagation_composes_over_all_levels_and_carries_a_draw_to_the_draw_from_the_same_noise(case, q0, q1, q2):
    gaussian, _ = case
    there = gaussian.propagate(NOISE, q1, q0)
    close(gaussian.propagate(there, q2, q1), gaussian.propagate(NOISE, q2, q0))
    close(gaussian.propagate(there, q0, q1), NOISE)
    close(gaussian.propagate(gaussian.draw(NOISE, q0), q1, q0), gaussian.draw(NOISE, q1))


@each
@examples(10)
@given(q0=st.floats(0.05, 40), ratio=st.floats(0.005, 0.95))
def test_moments_are_the_closed_form_weights(case, q0, ratio):
    """Down to a two-hundredth of a level, and up again. ``w1`` is a difference: small steps round it more."""
    gaussian, _ = case
    for a, b in ((q0, q0 * ratio), (q0 * ratio, q0)):
        w0, w1 = exponential_weights(gaussian.v, a, b)
        M0, M1 = gaussian.moments(b, a, 2)
        each_close(M0, w0 + w1, rtol=1e-12)
        each_close(M1, w1 * (b - a), rtol=1e-12 / (1 - ratio))


# -- gaps --------------------------------------------------------------------------------------------------------------


@each
def test_completing_draws_the_missing_given_the_observed(case):
    """The affine map itself: with no noise the conditional mean; the noise enters by a root of the covariance."""
    gaussian, sigma = case
    for missing in ([2], [0, 3], [0, 1, 2, 4], [1, 2, 3, 4], list(range(NODES))):
        observed = np.setdiff1d(np.arange(NODES), missing)
        x = torch.from_numpy(SIGNAL).repeat(NODES + 1, 1)
        x[:, missing] = math.nan
        filled = gaussian.completed(x, torch.cat([torch.zeros(1, NODES), torch.eye(NODES)]).double()).numpy()
        gain = np.linalg.solve(sigma[np.ix_(observed, observed)], sigma[np.ix_(observed, missing)])  # empty is fine
        left = sigma[np.ix_(missing, missing)] - sigma[np.ix_(missing, observed)] @ gain
        close(filled[0, missing], SIGNAL[observed] @ gain, size=SIGNAL)
        root = filled[1:, missing] - filled[0, missing]
        close(root.T @ root, left)
        assert np.array_equal(filled[:, observed], np.tile(SIGNAL[observed], (NODES + 1, 1)))


# Systems solved one by one, some at a time, all together.
@each
@pytest.mark.parametrize(("share", "room"), [(0.2, 1), (0.5, 1000), (0.8, systems.BYTES)])
def test_completing_is_a_draw_corrected_by_a_dense_solve_row_by_row(case, share, room, monkeypatch):
    gaussian, sigma = case
    monkeypatch.setattr(systems, "BYTES", room)
    x, noise = gappy_signals(share)
    for precision in (x, x.float()):
        completed = gaussian.completed(precision, noise)
        for row, filled, drawn in zip(precision.double().numpy(), completed, gaussian.draw(noise), strict=True):
            o, m, drawn = np.flatnonzero(row == row), np.flatnonzero(row != row), drawn.numpy()
            correction = sigma[np.ix_(m, o)] @ np.linalg.solve(sigma[np.ix_(o, o)], row[o] - drawn[o])
            close(filled[m], drawn[m] + correction)
            assert np.array_equal(filled[o].numpy().view(np.int64), row[o].view(np.int64))  # to the bit, -0.0 too


@each
def test_completing_one_signal_does_not_depend_on_the_others_nor_on_the_order_of_nodes(case):
    gaussian, _ = case
    x, noise = gappy_signals(0.4)
    completed = gaussian.completed(x, noise)
    for k in range(len(x)):
        close(gaussian.completed(x[[k]], noise[[k]]), completed[[k]])
    order = [3, 0, 4, 1, 2]
    close(type(gaussian)(gaussian.v, gaussian.B[order]).completed(x[:, order], noise[:, order]), completed[:, order])


# -- signal-to-noise ratios --------------------------------------------------------------------------------------------


@each
@many
@given(q=levels, snr=st.floats(1e-4, 100))
def test_ratios_of_energy_are_those_of_the_whole_covariance(case, q, snr):
    """``tr Sigma^2 / tr Sigma / q^2``, whichever way directions are grouped."""
    gaussian, sigma = case
    energy = np.trace(sigma @ sigma) / np.trace(sigma)
    each_close(gaussian.energy_snr(q), energy / q**2, rtol=1e-12)
    each_close(gaussian.q_for_snr(snr), math.sqrt(energy / snr), rtol=1e-12)


@many
@given(v=st.lists(st.floats(1e-6, 100), min_size=1, max_size=8), q=levels, snr=st.floats(1e-4, 100))
def test_energy_weighted_snr_and_the_level_that_reaches_it(v, q, snr):
    gaussian = Gaussian(torch.tensor(v, dtype=torch.float64), torch.eye(len(v), dtype=torch.float64))
    each_close(gaussian.snr(q), [one / q**2 for one in v], rtol=1e-12)
    each_close(gaussian.energy_snr(q), sum(one / sum(v) * one / q**2 for one in v), rtol=1e-12)
    each_close(gaussian.energy_snr(gaussian.q_for_snr(snr)), snr, rtol=1e-12)
    each_close(gaussian.q_for_snr(gaussian.energy_snr(q)), q, rtol=1e-12)


# -- each kind's own ---------------------------------------------------------------------------------------------------


def test_spectral_variances_are_the_diagonal_in_the_graph_fourier_basis():
    U = SPECTRUM.U
    v = [sum(U[n, i] * COVARIANCE[n, m] * U[m, i] for n in range(NODES) for m in range(NODES)) for i in range(NODES)]
    close(reference.spectral(COVARIANCE, SPECTRUM).v, v, rtol=1e-12)


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


def test_off_diagonal_energy_by_hand_on_two_nodes():
    """With ``U = [[1, 1], [1, -1]]/sqrt(2)`` the covariance ``[[a, b], [b, c]]`` has off-diagonal ``(a - c)/2``."""
    a, b, c = 3.0, 0.5, 1.0
    covariance = np.array([[a, b], [b, c]])
    pair = reference.spectral(covariance, Graph.from_adjacency([[0, 1], [1, 0]]).spectrum)
    share = math.sqrt(2) * (a - c) / 2 / math.sqrt(a**2 + 2 * b**2 + c**2)
    each_close(reference.off_diagonal_energy(covariance, pair), share, rtol=1e-14)


def test_off_diagonal_energy_is_what_the_basis_change_leaves_off_the_diagonal():
    turned = SPECTRUM.U.T @ COVARIANCE @ SPECTRUM.U
    share = np.linalg.norm(turned - np.diag(np.diag(turned))) / np.linalg.norm(turned)
    close(reference.off_diagonal_energy(COVARIANCE, reference.spectral(COVARIANCE, SPECTRUM)), share)
    close(reference.off_diagonal_energy(COVARIANCE, reference.full(COVARIANCE)), 0.0, 1e-13, size=1.0)  # a share


@many
@given(q0=levels, q1=levels, sigma=st.floats(0.5, 2))
def test_in_graph_coordinates_propagation_is_the_papers_propagator(q0, q1, sigma):
    """Eq. phi_explicit_app, which is ``sqrt(gamma(q1) / gamma(q0))``, with the graph's ``mu`` in it."""
    process, gaussian = ConjugateProcess.on(SPECTRUM, sigma=sigma), reference.spectral(COVARIANCE, SPECTRUM)
    x1 = process.to_graph(gaussian.propagate(process.to_conjugate(NOISE, q0), q1, q0), q1)
    v, mu = gaussian.v, process.mu
    phi = ((v + q1**2) / (v + q0**2)) ** 0.5 * ((sigma**2 + mu * q0**2) / (sigma**2 + mu * q1**2)) ** 0.5
    close(process.modes(x1), phi * process.modes(NOISE))
    close(phi**2, process.gamma(v, q1) / process.gamma(v, q0))


def test_as_noise_grows_every_reference_becomes_the_gmrf_in_graph_coordinates():
    """In graph coordinates the marginal is ``A (Sigma + q^2 I) A``; the level is as high as its limit is exact."""
    process, field = ConjugateProcess.on(SPECTRUM, delta=0.1, sigma=1.7), reference.gmrf(SPECTRUM, 0.1, 1.7)
    close(field.v, process.gamma_limit, rtol=1e-14)
    members = reference.spectral(COVARIANCE, SPECTRUM), reference.full(COVARIANCE), reference.diagonal(COVARIANCE)
    for member in members:
        marginal = process.to_graph(process.to_graph(member.covariance(1e8), 1e8).T, 1e8)
        close(marginal, field.covariance())


@pytest.mark.parametrize(("steps", "channels"), [(4, 1), (1, 2), (3, 2)])
def test_on_a_product_graph_a_gaussian_is_the_one_with_the_whole_matrix_as_its_basis(steps, channels):
    space = SignalSpace(PROBLEM.graph, steps, channels)
    root, q = RNG.standard_normal((space.d, space.d)), 0.7
    x, covariance = torch.from_numpy(RNG.standard_normal((3, space.d))), root @ root.T / space.d
    product = reference.spectral(covariance, space.spectrum)
    assert not isinstance(product.B, torch.Tensor)
    U = product.B.whole().numpy()
    close(product.v, space.spectrum.average(np.diag(U.T @ covariance @ U)))
    whole = type(product).from_tensors(product.tensors(), product.B.whole())
    close(reference.gmrf(space.spectrum).covariance(), np.linalg.inv((U * space.spectrum.scaled(0.05)) @ U.T))
    observed = Observations(torch.where(x > 0, x, torch.nan))
    for one, other in zip(
        *(
            (
                *(g.covariance(q), g.precision(), g.draw(x, q), g.log_prob(x, q), g.score(x, q), g.eps(x, q)),
                *(g.propagate(x, 0.1, q), g.carry(x, 0.1, q, [x, x]), g.completed(observed.y, x)),
                *(g.condition(observed).mean, g.scalar().covariance(), *g.components(x, q)[1]),
                Gaussian(g.v, g.B).tensors()["B"],
            )
            for g in (product, whole)
        ),
        strict=True,
    ):
        close(one, other, 1e-10)


@pytest.mark.parametrize("kind", [reference.full, lambda C: reference.low_rank(C, 3)], ids=["full", "low rank"])
@pytest.mark.parametrize(
    "q", [0.3, torch.tensor([[0.0], [0.1], [1.0], [9.0]], dtype=torch.float64)], ids=["one", "each"]
)
def test_stacked_references_have_the_densities_and_scores_of_each(kind, q):
    several = [kind(COVARIANCE + k * np.diag(np.arange(1.0, NODES + 1))) for k in range(3)]
    x = torch.stack([NOISE, 2 * NOISE, NOISE + 1])
    log_prob, scores = stacked(several).scored(x, q)
    for k, one in enumerate(several):
        close(log_prob[k], one.scored(x[k], q)[0])
        close(scores[k], one.scored(x[k], q)[1])
