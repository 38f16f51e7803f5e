"""How a sparse reference is fitted: exact where the truth is of its kind, near it where it is not."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from laws import close

from grcd.core import factors
from grcd.core.errors import InputError, InputWarning
from grcd.graphs import graph as graphs
from grcd.graphs.graph import Graph
from grcd.references import neighbours, sparse_fit, sparse_gaps
from grcd.references.observations import Observations
from grcd.references.precision import Given, Regressions
from grcd.references.sparse import Sparse

NODES = 150
PLACES = np.random.default_rng(0).random((NODES, 2))
GRAPH = Graph.from_coordinates(PLACES)


def with_moments(C, samples=400):
    """Signals whose second moments are exactly ``C``."""
    noise = np.linalg.qr(np.random.default_rng(0).standard_normal((samples, len(C))))[0]
    return np.sqrt(samples) * noise @ np.linalg.cholesky(C).T


def field(k=0.2, modes=0.0):
    """A smooth field on the graph, and modes that all nodes share; of unit variance about."""
    K = k * sp.eye_array(NODES) + GRAPH.normalized
    wide = np.stack([np.cos(np.pi * PLACES[:, 0]), np.cos(np.pi * PLACES[:, 1])], 1)
    return Sparse(Given(sp.csr_array(4 * (K @ K))), modes * wide)


def drawn(reference, count, seed):
    noise = torch.from_numpy(np.random.default_rng(seed).standard_normal((count, NODES)))
    return reference.draw(noise)


def likelihood(reference, x):
    """A node and signal."""
    return float(reference.log_prob(x).mean()) / NODES


def test_neighbours_that_come_later_are_the_nearest_first():
    order = factors.sweep(GRAPH.weights)
    parents, place = neighbours.later_neighbours(GRAPH.weights, order, 4), np.argsort(order)
    W = GRAPH.weights.toarray() / GRAPH.weights.max()
    for node in range(NODES):
        near = [other for other in np.flatnonzero(W[node]) if place[other] > place[node]]
        far = [other for other in np.flatnonzero((W @ W)[node]) if place[other] > place[node] and other not in near]
        ranked = sorted(near, key=lambda other: -W[node, other] - (W @ W)[node, other] / (1 + (W @ W).max()))
        ranked += sorted(far, key=lambda other: -(W @ W)[node, other])
        assert [*parents[node][parents[node] >= 0]] == ranked[:4]


def test_no_second_step_goes_through_a_hub():
    """Of a star, and of a ring around it: leaves are linked along the ring, not through the middle."""
    leaves = 3000
    ring, hub = np.arange(leaves), np.full(leaves, leaves)
    ends = np.concatenate([ring, ring]), np.concatenate([(ring + 1) % leaves, hub])
    pairs = sp.coo_array((np.r_[np.ones(leaves), np.full(leaves, 0.1)], ends), shape=(leaves + 1, leaves + 1))
    weights = sp.csr_array(pairs + pairs.T)
    parents = neighbours.later_neighbours(weights, factors.sweep(weights))
    apart = np.abs(parents - np.arange(leaves + 1)[:, None])
    linked = (parents >= 0) & (parents < leaves) & (np.arange(leaves + 1) < leaves)[:, None]
    assert 1 <= np.minimum(apart, leaves - apart)[linked].min() <= np.minimum(apart, leaves - apart)[linked].max() == 2


def test_a_polynomial_of_a_star_is_not_tried(monkeypatch):
    star = sp.csr_array((np.ones(5000), (np.zeros(5000, int), np.arange(1, 5001))), shape=(5001, 5001))
    monkeypatch.setattr(sparse_fit, "two_steps", lambda graph: pytest.fail("its square has 25 million entries"))
    assert not sparse_fit.has_square(Graph.from_adjacency(star + star.T))


def test_on_a_path_a_markov_chain_is_fitted_exactly(monkeypatch):
    """Each node depends on the next alone: the precision is the inverse of the second moments, but for the degrees of
    freedom that a coefficient takes."""
    monkeypatch.setattr(neighbours, "RIDGES", (0.0,))
    n, samples = 12, 400
    chain = 0.8 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    graph = Graph.from_edges([(str(i), str(i + 1)) for i in range(n - 1)])
    x = torch.from_numpy(with_moments(chain, samples))
    fitted = sparse_fit.fit(x, x[:50], graph, ranks=(0,)).precision
    assert isinstance(fitted, Regressions)
    parents = np.diff(fitted.A.indptr)
    exact = np.linalg.inv(chain)
    undone = Regressions(fitted.A, fitted.D * (samples - parents) / samples, fitted.order)
    close(undone.Q.toarray(), exact, 1e-5)  # signals are in float32


def test_modes_that_all_nodes_share_are_found_and_pay():
    truth = field(modes=1.0)
    train, val, test = (drawn(truth, count, seed) for count, seed in ((500, 1), (60, 2), (200, 3)))
    fitted = sparse_fit.fit(train, val, GRAPH, ranks=(0, 8))
    without = sparse_fit.fit(train, val, GRAPH, ranks=(0,))
    assert fitted.modes.shape[1] == 8
    gap, loss = (likelihood(truth, test) - likelihood(each, test) for each in (fitted, without))
    assert 0 < gap < loss
    assert gap < 0.1
    share = np.linalg.lstsq(fitted.modes, truth.modes, rcond=None)[1] / (truth.modes**2).sum(0)
    assert share.max() < 0.1  # nearly all of the true ones is in the space of those found


def test_signals_with_gaps_are_nearly_as_good():
    truth = field()
    train, val, test = (drawn(truth, count, seed) for count, seed in ((400, 1), (60, 2), (200, 3)))
    whole = sparse_fit.fit(train, val, GRAPH, ranks=(0,))
    holes = torch.from_numpy(np.random.default_rng(4).random(train.shape) < 0.25)
    patchy = sparse_fit.fit(torch.where(holes, torch.nan, train), val, GRAPH, ranks=(0,))
    filled = torch.where(holes, 0.0, train)
    naive = sparse_fit.fit(filled, val, GRAPH, ranks=(0,))
    best, one, other, bad = (likelihood(each, test) for each in (truth, whole, patchy, naive))
    assert best > one > other > bad
    assert best - other < 2 * (best - one)  # little more than half of the pairs are seen
    hidden = sparse_fit.fit(train, torch.where(holes[:60], torch.nan, val), GRAPH, ranks=(0,))
    assert best - likelihood(hidden, test) < 0.2


def test_gaps_are_drawn_signal_by_signal_with_the_mean_and_the_covariance_given_the_rest():
    """Both are linear: of the noise, and of what is seen."""
    precision = Regressions(sp.csr_array(np.triu(0.1 * np.ones((6, 6)), 1)), np.linspace(1, 2, 6), np.arange(6))
    Q, half = precision.Q, precision.half
    close(half.toarray() @ half.toarray().T, Q.toarray())
    random = np.random.default_rng(0)
    hidden = random.random((6, 4)) < 0.5
    hidden[:, 3] = False
    e = np.where(hidden, 0.0, random.standard_normal((6, 4)))
    mean = sparse_gaps._hidden(Q, half, hidden, e, np.zeros((6, 4)))
    for k, mask in enumerate(hidden.T):
        exact = np.zeros(6)
        exact[mask] = -np.linalg.solve(Q.toarray()[np.ix_(mask, mask)], (Q.toarray() @ e[:, k])[mask])
        close(mean[:, k], exact, 1e-2, size=np.append(exact, 1.0))
    each = np.repeat(hidden[:, :1], 6, axis=1)
    root = sparse_gaps._hidden(Q, half, each, np.zeros((6, 6)), np.eye(6))[hidden[:, 0]]
    close(root @ root.T, np.linalg.inv(Q.toarray()[np.ix_(hidden[:, 0], hidden[:, 0])]), 1e-2)


def test_a_first_guess_at_gaps_is_what_neighbours_have():
    x = np.array([[1.0, np.nan, 4.0, np.nan, np.nan, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]])
    weights = sp.csr_array(np.diag([1.0, 2.0, 1.0, 1.0, 0.0], 1) + np.diag([1.0, 2.0, 1.0, 1.0, 0.0], -1))
    close(sparse_gaps.neighbourly(x, weights, 1)[0], [1, 3, 4, 4, 0, 7])
    close(sparse_gaps.neighbourly(x, weights, 2)[0], [1, 3, 4, 4, 4, 7])
    assert np.array_equal(sparse_gaps.neighbourly(x, weights)[1], x[1])


def test_a_polynomial_has_the_numbers_of_its_field():
    for Q in (2.0 * (0.3 * sp.eye_array(NODES) + GRAPH.normalized), field().precision.Q):
        x = with_moments(np.linalg.inv(Q.toarray()))
        fitted = sparse_fit.polynomial(x[: sparse_fit.FEW * 2], GRAPH)
        assert isinstance(fitted, Given)
        if len(x) <= sparse_fit.FEW:
            close(fitted.Q.toarray(), Q.toarray(), 1e-3)
        else:
            np.testing.assert_allclose(fitted.Q.toarray(), Q.toarray(), atol=0.1 * abs(Q).max())


def test_few_signals_get_a_polynomial():
    truth = field()
    fitted = sparse_fit.fit(drawn(truth, 12, 1), drawn(truth, 6, 2), GRAPH)
    assert isinstance(fitted.precision, Given)
    assert likelihood(truth, drawn(truth, 100, 3)) - likelihood(fitted, drawn(truth, 100, 3)) < 0.02


def test_no_polynomial_is_tried_whose_square_would_not_fit(monkeypatch):
    truth, asked = field(), []
    monkeypatch.setattr(factors, "too_dear", lambda pattern: asked.append(pattern.nnz) or "too much")
    fitted = sparse_fit.fit(drawn(truth, 12, 1), drawn(truth, 6, 2), GRAPH)
    assert isinstance(fitted.precision, Regressions)
    L = GRAPH.normalized
    assert sp.csr_array(abs(L) @ abs(L)).nnz in asked


def test_isolated_nodes_are_by_themselves():
    W = sp.block_diag([GRAPH.weights, sp.csr_array((40, 40))])
    graph = Graph.from_adjacency(sp.csr_array(W))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((300, NODES + 40)))
    fitted = sparse_fit.fit(x, x[:50], graph, ranks=(0,)).precision
    assert not fitted.Q[NODES:, :NODES].nnz
    close(1 / fitted.D[NODES:], 1 / x[:, NODES:].square().mean(0), 1e-5)


def test_isolated_nodes_by_the_thousand():
    """Nothing is learned from each other; what is fitted and drawn are their own spreads."""
    nodes, random = 6000, np.random.default_rng(7)
    graph = Graph.from_adjacency(sp.csr_array((nodes, nodes)))
    x = torch.from_numpy(random.standard_normal((60, nodes)) * 2).float()
    with pytest.warns(InputWarning, match="falls into 6,000 parts, 6,000 of them single nodes"):
        fitted = sparse_fit.fit(x[:50], x[50:], graph)
    assert fitted.precision.Q.nnz == nodes
    drawn_from = fitted.draw(torch.from_numpy(random.standard_normal((200, nodes))))
    close(drawn_from.std(), 2.0, 0.02)
    y = torch.where(torch.arange(nodes) % 2 == 0, math.nan, x[:1].double())
    posterior = fitted.condition(Observations(y))
    assert fitted.modes.shape[1] == 0
    assert not posterior.mean[0, ::2].any()


def test_a_large_graph_in_parts_says_so(monkeypatch):
    monkeypatch.setattr(graphs, "LARGE", 50)
    W = sp.csr_array(sp.block_diag([GRAPH.weights, GRAPH.weights, sp.csr_array((40, 40))]))
    with pytest.warns(InputWarning, match="falls into 42 parts, 40 of them single nodes: .* wide modes alone"):
        sparse_fit.say_apart(Graph.from_adjacency(W))
    sparse_fit.say_apart(GRAPH)


def test_a_dense_graph_is_refused_with_its_count_of_pairs(monkeypatch):
    monkeypatch.setattr(sparse_fit, "NEIGHBOURS", 4)
    with pytest.raises(InputError, match=r"a graph of 150 nodes with \d+ pairs, 6 neighbours a node") as refusal:
        sparse_fit.fit(torch.zeros(10, NODES), torch.zeros(2, NODES), GRAPH)
    assert "nearest neighbours" in refusal.value.do
    assert "at the place of" not in refusal.value.do
    crowded = Graph.from_coordinates(np.concatenate([np.zeros((40, 2)), PLACES]))
    with pytest.raises(InputError, match="39 nodes are at the place of another one"):
        sparse_fit.refuse_dense(crowded)


def test_a_random_graph_is_fitted_and_drawn_from_without_a_factor(monkeypatch):
    """With few signals too, where polynomials would take fifteen: they are not tried."""
    random, nodes = np.random.default_rng(6), 300
    W = np.triu(random.random((nodes, nodes)) < 8 / nodes, 1).astype(float)
    graph = Graph.from_adjacency(sp.csr_array(W + W.T))
    truth = np.linalg.inv(0.3 * np.eye(nodes) + graph.normalized.toarray())
    x = torch.from_numpy(random.standard_normal((160, nodes)) @ np.linalg.cholesky(truth).T)
    usual = sparse_fit.fit(x[:120], x[120:], graph, ranks=(0,))
    assert isinstance(usual.precision, Given)  # two numbers are better than 16 a node, of 120 signals
    monkeypatch.setattr(factors, "SECONDS", 1e5)
    monkeypatch.setattr(factors, "ITERATIONS", 1)
    monkeypatch.setattr(factors, "Factor", None)
    fitted = sparse_fit.fit(x[:120], x[120:], graph, ranks=(0,))
    assert isinstance(fitted.precision, Regressions)
    drawn = fitted.draw(torch.from_numpy(random.standard_normal((4000, nodes))))
    close(drawn.square().mean(), fitted.covariance().diagonal().mean(), 0.02)
    with pytest.warns(InputWarning, match="300 readings .* conjugate gradients"):
        score = fitted.score(x, 0.7)
    close(score, -torch.linalg.solve(fitted.covariance(0.7), x.T).T, 1e-8)
