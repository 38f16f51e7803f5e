"""Sparse references of windows: an autoregression in time (x) space is of their kind, and is found."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from laws import close

from grcd.core import factors
from grcd.graphs.graph import Graph
from grcd.graphs.space import SignalSpace
from grcd.references import gaussian, neighbours, sparse_fit
from grcd.references.neighbours import Neighbours
from grcd.references.precision import Along
from grcd.references.sparse import Sparse

NODES, STEPS, PHI = 5, 4, 0.7
CHAIN = Graph.from_edges([(str(i), str(i + 1)) for i in range(NODES - 1)])
SPACE = SignalSpace(CHAIN, STEPS)


def toeplitz(rho, n):
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


SIGMA = np.kron(toeplitz(PHI, STEPS), toeplitz(0.8, NODES))  # Markov in time and in space


def with_moments(C, samples):
    """Signals whose second moments are exactly ``C``."""
    noise = np.linalg.qr(np.random.default_rng(0).standard_normal((samples, len(C))))[0]
    return np.sqrt(samples) * noise @ np.linalg.cholesky(C).T


@pytest.fixture
def fitted(monkeypatch):
    """From exact moments, without a ridge, and without the degrees of freedom that coefficients take."""
    monkeypatch.setattr(neighbours, "RIDGES", (0.0,))
    x = torch.from_numpy(with_moments(SIGMA, 20_000).T.astype(np.float32))
    nothing = torch.zeros(len(x), 0, dtype=torch.float64)
    precision = Neighbours(CHAIN.weights, STEPS, 1).regressed(x, x[:, :20].double(), nothing, nothing[:0])
    return Sparse(precision, nothing.numpy())


def test_an_autoregression_in_time_and_space_is_fitted_exactly(fitted):
    close(fitted.precision.Q.toarray(), np.linalg.inv(SIGMA), 2e-3)  # degrees of freedom: 10 of 20,000
    close(fitted.precision.log_det, -np.linalg.slogdet(SIGMA)[1], 2e-3)
    steps = fitted.precision.A.toarray().reshape(STEPS, NODES, STEPS, NODES)
    for t in range(2, STEPS):  # the same in all rows but the first
        assert np.array_equal(steps[t, :, t], steps[1, :, 1])
        assert np.array_equal(steps[t, :, t - 1], steps[1, :, 0])
        assert not steps[t, :, : t - 1].any()
        assert not steps[:t, :, t].any()


def test_rows_to_come_follow_their_regressions_and_need_no_factor(fitted, monkeypatch):
    monkeypatch.setattr(factors, "Factor", None)
    dense = gaussian.full(fitted.covariance().numpy())
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((2, SPACE.d)))
    for observed_rows in (0, 2):
        observed = (torch.arange(SPACE.d) < observed_rows * NODES).expand(2, -1)
        own, other = fitted.posterior(x, observed), dense.posterior(x, observed)
        close(own.mean, other.mean)
        close(own.sd, other.sd)
        close(own.log_prob, other.log_prob)
    past = np.arange(SPACE.d) < NODES
    assert isinstance(fitted.precision.free(~past), Along)
    assert fitted.precision.free(past) is None  # the rows after them depend on them


def test_how_many_rows_back_is_found_with_gaps_too():
    random = np.random.default_rng(3)
    x = torch.from_numpy(random.standard_normal((900, SPACE.d)) @ np.linalg.cholesky(SIGMA).T).float()
    x[torch.from_numpy(random.random(x.shape) < 0.15)] = torch.nan
    reference, lags, tried = sparse_fit.fit_windows(x[:700], x[700:], SPACE, ranks=(0,))
    assert lags == 1
    assert tried["1 rows back"] > tried["0 rows back"] + 0.1
    test = torch.from_numpy(random.standard_normal((500, SPACE.d)) @ np.linalg.cholesky(SIGMA).T)
    gap = gaussian.full(SIGMA).log_prob(test).mean() - reference.log_prob(test).mean()
    assert 0 < gap / SPACE.d < 0.03


def test_channels_of_a_node_are_linked():
    two = sparse_fit.of_columns(SignalSpace(CHAIN, 1, 2)).toarray()
    W = CHAIN.weights.toarray()
    for i, a, j, b in np.ndindex(NODES, 2, NODES, 2):
        assert two[2 * i + a, 2 * j + b] == (W[i, j] if a == b else W.max() * (i == j))


def test_a_part_may_have_a_factor_where_the_whole_has_none(fitted, monkeypatch):
    whole = fitted.precision.pattern.nnz
    monkeypatch.setattr(factors, "too_dear", lambda pattern: "too much" if pattern.nnz == whole else "")
    hidden = np.arange(SPACE.d) % 2 == 0
    part = fitted.precision.Q[hidden][:, hidden]
    system = fitted.system(part, hidden)
    assert isinstance(system, factors.Factor)
    close(system.solve(np.eye(hidden.sum())), np.linalg.inv(part.toarray()))
    with pytest.warns(Warning, match="conjugate gradients"):
        assert isinstance(fitted.system(sp.csr_array(fitted.precision.Q)), factors.Iterative)
