"""A sparse reference on a graph in several pieces: what it says is what the dense Gaussian with its covariance says."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core import factors
from grcd.core.errors import InputError, InputWarning
from grcd.core.streams import Stream
from grcd.graphs.graph import Graph
from grcd.references import gaussian, neighbours, sparse, sparse_conditioning
from grcd.references.guidance import cleaned, guided
from grcd.references.observations import Observations
from grcd.references.precision import Given, Regressions
from grcd.references.sparse import Sparse

NODES, BATCH = 30, 5


def patchy_graph(seed=0):
    """Nearest neighbours in two far places, and three nodes that nobody is linked with."""
    random = np.random.default_rng(seed)
    places = random.random((NODES - 3, 2)) + 50.0 * (np.arange(NODES - 3) % 2)[:, None]
    W = Graph.from_coordinates(places, k=3, bandwidth=0.5).weights
    return Graph.from_adjacency(sp.csr_array(sp.block_diag([W, sp.csr_array((3, 3))])))


def reference_of(seed=0, rank=3, graph=None):
    random, graph = np.random.default_rng(seed), graph or patchy_graph()
    order = factors.sweep(graph.weights)
    parents = neighbours.later_neighbours(graph.weights, order)
    rows, columns = np.nonzero(parents >= 0)
    A = sp.csr_array(
        (random.uniform(-0.4, 0.4, len(rows)), (rows, parents[rows, columns])), shape=(len(graph), len(graph))
    )
    D = random.uniform(0.2, 2.0, len(graph))
    return Sparse(Regressions(A, D, order), random.standard_normal((len(graph), rank)) / 2)


SPARSE = reference_of()
DENSE = gaussian.full(
    np.linalg.inv(np.eye(NODES) - SPARSE.precision.A.toarray())
    @ np.diag(SPARSE.precision.D)
    @ np.linalg.inv(np.eye(NODES) - SPARSE.precision.A.toarray()).T
    + SPARSE.modes @ SPARSE.modes.T
)


def signals(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((*shape, NODES)))


def readings(kind, seed):
    """Entries, exact or noisy or both; or sums. Two signals are observed alike."""
    x, random = signals(seed, BATCH), np.random.default_rng(seed)
    if kind == "sums":
        H = torch.from_numpy(random.standard_normal((4, NODES)))
        return Observations(x @ H.T, H, torch.tensor([0.0, 0.1, 0.5, 1.0]).double())
    holes = torch.from_numpy(random.random((BATCH, NODES)) < 0.5)
    holes[1] = holes[0]
    noise = {"entries": None, "noisy": torch.linspace(0.1, 0.9, NODES).double()}.get(kind)
    if kind == "some noisy":
        noise = torch.where(torch.arange(NODES) % 3 == 0, 0.4, 0.0).double()
    return Observations(torch.where(holes, torch.nan, x), noise=noise)


KINDS = ("entries", "noisy", "some noisy", "sums")


@pytest.mark.parametrize("kind", KINDS)
@examples(5)
@given(seed=st.integers(0, 2**31), q=st.none() | st.floats(0.05, 3.0))
def test_observations_move_means_as_they_move_the_dense_ones(kind, seed, q):
    observations, mean = readings(kind, seed), signals(seed + 1, BATCH, 3)
    error = None if observations.noise is None else torch.randn(BATCH, 3, observations.y.shape[1]).double() / 9
    moved, evidence = SPARSE.updated(observations, mean, q, error)
    expected, probable = DENSE.updated(observations, mean, q, error)
    close(moved, expected, 1e-8)
    close(evidence, probable, 1e-8)
    if q is None:
        close(SPARSE.left(observations), DENSE.left(observations), 1e-8)


@pytest.mark.parametrize("kind", ["entries", "noisy", "sums"])
def test_guided_predictions_and_last_draws_are_the_dense_ones(kind):
    observations, x = readings(kind, 3), signals(4, BATCH, 2)

    def residual(x, q):
        return 0.1 * x.flip(-1)

    for q in (0.1, 1.5):
        one, other = (guided(residual, each, observations)(x.flatten(0, 1), q) for each in (SPARSE, DENSE))
        close(one, other, 1e-8)

    def noise(purpose, shape):
        return Stream(0, purpose).normal(0, int(np.prod(shape))).view(shape)

    u = torch.full((BATCH, 2), 0.5).double()
    one, other = (cleaned(each, observations, x, 0.3, noise, u) for each in (SPARSE, DENSE))
    close(one, other, 1e-8)


@examples(5)
@given(seed=st.integers(0, 2**31))
def test_readings_given_all_others_are_the_dense_ones(seed):
    x = signals(seed, BATCH)
    for seen in (torch.ones(BATCH, NODES, dtype=torch.bool), ~readings("entries", seed).y.isnan()):
        for one, other in zip(SPARSE.leave_one_out(x, seen), DENSE.leave_one_out(x, seen), strict=True):
            at = seen if one.ndim == 2 else ...
            close(one[at], other[at], 1e-8)


def test_gaps_are_drawn_from_the_posterior():
    """Affine in the noise, with its mean and covariance; readings stay as they are."""
    x = readings("entries", 5).y
    kicks = torch.cat([torch.zeros(1, NODES), torch.eye(NODES)]).double()
    drawn = SPARSE.completed(x[:1].expand(len(kicks), -1), kicks)
    hole = x[0].isnan()
    assert torch.equal(drawn[:, ~hole], x[0][~hole].expand(len(kicks), -1))
    root = (drawn[1:] - drawn[0])[:, hole]
    left = DENSE.left(Observations(x[:1]))[0][hole][:, hole]
    close(root.T @ root, left, 1e-8)
    close(drawn[0], DENSE.condition(Observations(x[:1])).mean[0], 1e-8)
    assert torch.equal(SPARSE.whole(signals(1, 2), Stream(0, "")), signals(1, 2))


def test_many_hidden_entries_have_spreads_from_draws(monkeypatch):
    x, seen = signals(0, 2), torch.arange(NODES).expand(2, -1) % 3 == 0
    exact = SPARSE.posterior(x, seen).sd
    monkeypatch.setattr(sparse_conditioning, "SOLVES", 0)
    monkeypatch.setattr(sparse_conditioning, "PROBES", 4000)
    estimated = SPARSE.posterior(x, seen).sd
    assert torch.equal(estimated == 0, exact == 0)
    assert ((estimated / exact)[~seen] - 1).abs().max() < 0.06


def test_without_room_for_a_factor_it_is_conjugate_gradients_and_said(monkeypatch):
    monkeypatch.setattr(factors, "SHARE", 1e12)
    other, x, observations = reference_of(), signals(0, BATCH), readings("entries", 0)
    with pytest.warns(InputWarning, match="30 readings with .* conjugate gradients"):
        score = other.score(x, 0.5)
    close(score, SPARSE.score(x, 0.5), 1e-6)
    close(other.condition(observations).mean, SPARSE.condition(observations).mean, 1e-6)
    close(other.draw(x), SPARSE.draw(x))  # which needs no factor
    assert (other.log_prob(x, 0.5) - SPARSE.log_prob(x, 0.5)).abs().max() < 5.0


def test_factors_are_kept_as_long_as_there_is_room(monkeypatch):
    reference = reference_of()
    for q in (0.1, 0.2, 0.1):
        reference.score(signals(0, 1), q)
    assert [*reference._levels] == [0.2, 0.1]
    first = reference.at(0.1)
    assert reference.at(0.1) is first
    monkeypatch.setattr(sparse, "KEPT", 1e18)
    reference.score(signals(0, 1), 0.3)
    assert [*reference._levels] == [0.3]


def test_of_a_large_one_a_covariance_is_refused_and_traces_are_estimated(monkeypatch):
    v, counts = SPARSE.variances()
    scalar = float(SPARSE.scalar().covariance()[0, 0])
    monkeypatch.setattr(sparse, "DENSE", 10)
    monkeypatch.setattr(sparse, "TRACES", 4000)
    with pytest.raises(InputError, match="a whole covariance of 30 numbers"):
        SPARSE.covariance()
    estimated, weights = SPARSE.variances()
    close(weights.sum(), NODES)
    assert abs(weights @ np.log(estimated) / (counts @ np.log(v)) - 1) < 0.2
    monkeypatch.setattr(sparse, "DENSE", 10)
    again = SPARSE.scalar()
    monkeypatch.setattr(sparse, "DENSE", 100)
    assert abs(float(again.covariance()[0, 0]) / scalar - 1) < 0.05


def test_regressions_on_nodes_that_come_earlier_are_refused():
    tensors = SPARSE.tensors()
    with pytest.raises(ValueError, match="come earlier"):
        Sparse.from_tensors(tensors | {"order": tensors["order"].flip(0)}, None)


def test_on_two_thousand_nodes_sparse_factors_say_what_dense_matrices_say():
    """To a relative 1e-9: what is stated in the docs."""
    nodes, random = 2000, np.random.default_rng(0)
    graph = Graph.from_coordinates(random.random((nodes, 2)))
    K = 0.1 * sp.eye_array(nodes) + graph.normalized
    own = Sparse(Given(sp.csr_array(4 * (K @ K))), 0.3 * random.standard_normal((nodes, 4)))
    other = gaussian.full(own.covariance().numpy())
    x = torch.from_numpy(random.standard_normal((3, nodes)))
    for q in (0.0, 0.4):
        for one, dense in zip(own.scored(x, q), other.scored(x, q), strict=True):
            close(one, dense, 1e-9)
    seen = torch.from_numpy(random.random(nodes) < 0.75).expand(3, -1)
    one, dense = (each.condition(Observations(torch.where(seen, x, torch.nan))) for each in (own, other))
    close(one.mean, dense.mean, 1e-9)
    close(one.log_evidence, dense.log_evidence, 1e-9)
