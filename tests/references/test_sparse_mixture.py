"""Regimes on a large graph: found where there are some, and only there."""

import numpy as np
import scipy.sparse as sp
import torch
from laws import close

from grcd.graphs.graph import Graph
from grcd.references import gaussian, sparse_mixture_fit
from grcd.references.mixture import Mixture
from grcd.references.observations import Observations
from grcd.references.precision import Given
from grcd.references.sparse import LEVELS, Sparse
from grcd.references.sparse_mixture import SparseMixture, from_tensors, mixed

NODES = 120
PLACES = np.random.default_rng(0).random((NODES, 2))
GRAPH = Graph.from_coordinates(PLACES)


def field(k):
    K = k * sp.eye_array(NODES) + GRAPH.normalized
    return Sparse(Given(sp.csr_array(4 * (K @ K))), np.zeros((NODES, 0)))


def drawn(truth, count, seed):
    random = np.random.default_rng(seed)
    noise, u = (torch.from_numpy(each) for each in (random.standard_normal((count, NODES)), random.random(count)))
    return truth.draw(noise, 0.0, u)


def test_two_regimes_are_found_with_their_means_and_gaps_drawn_within_them():
    wide = np.cos(np.pi * PLACES[:, 0])
    truth = mixed(np.array([0.7, 0.3]), np.stack([-0.6 * wide, 1.4 * wide]), [field(0.4), field(0.2)])
    train, val, test = (drawn(truth, count, seed) for count, seed in ((600, 1), (100, 2), (300, 3)))
    fitted = sparse_mixture_fit.fit(train, val, GRAPH, ranks=(0, 8))
    assert isinstance(fitted, SparseMixture)
    assert len(fitted.parts) == 2
    order = fitted.weights.argsort(descending=True)
    assert abs(float(fitted.weights[order[0]]) - 0.7) < 0.06
    assert (fitted.means[order] - truth.means).square().mean().sqrt() < 0.1
    one = sparse_mixture_fit.Task.of(GRAPH, val).fitted(train.numpy(), (0, 8), 0)[0]
    best, several, single = (float(each.log_prob(test).mean()) for each in (truth, fitted, one))
    assert best > several > single
    assert best - several < 0.06 * NODES
    again = from_tensors(fitted.tensors())
    assert torch.equal(again.log_prob(test), fitted.log_prob(test))
    hidden = torch.from_numpy(np.random.default_rng(4).random(test.shape) < 0.5)
    filled = fitted.completed(torch.where(hidden, torch.nan, test), torch.zeros_like(test))
    assert torch.equal(filled[~hidden], test[~hidden])
    assert (filled - test)[hidden].square().mean() < 0.8 * test[hidden].square().mean()


def test_one_regime_stays_one():
    truth = field(0.2)
    train, val = drawn(truth, 500, 1), drawn(truth, 100, 2)
    assert isinstance(sparse_mixture_fit.fit(train, val, GRAPH, ranks=(0,)), Sparse)


def test_it_says_what_the_mixture_of_the_dense_parts_says():
    random = np.random.default_rng(5)
    own = mixed(np.array([0.6, 0.4]), 0.2 * random.standard_normal((2, NODES)), [field(0.4), field(0.3)])
    dense = Mixture(own.weights, own.means, tuple(gaussian.full(part.covariance().numpy()) for part in own.parts))
    x = torch.from_numpy(random.standard_normal((4, NODES)))
    for q in (0.0, 0.5):
        for one, other in zip(own.scored(x, q), dense.scored(x, q), strict=True):
            close(one, other, 1e-9)
    seen = torch.from_numpy(random.random((4, NODES)) < 0.2)
    readings = Observations(torch.where(seen, x, torch.nan))
    close(own.condition(readings).mean, dense.condition(readings).mean, 1e-9)
    close(own.condition(readings).log_evidence, dense.condition(readings).log_evidence, 1e-9)
    xi = torch.from_numpy(random.standard_normal((4, 5, NODES)))
    assert torch.equal(own.drawn(x, seen, xi), own.posterior(x, seen, xi).draws)
    forcing = [torch.from_numpy(random.standard_normal((4, NODES))) for _ in range(2)]
    close(own.carry(x, 0.05, 2.0, forcing, 12), dense.carry(x, 0.05, 2.0, forcing, 12), 1e-9)


def test_levels_are_kept_as_many_as_serve_a_sampler_and_no_more():
    one = field(0.3)
    x = torch.ones(1, NODES, dtype=torch.float64)
    for k in range(LEVELS + 3):
        one.score(x, 0.1 + k)
    assert len(one._levels) == LEVELS
    assert min(one._levels) == 3.1
