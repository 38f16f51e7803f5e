"""The covariance of signals, with gaps and without: against its formula, scikit-learn, and the truth."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from members import PROBLEM
from sklearn.covariance import ledoit_wolf as sklearn_ledoit_wolf

from grcd.references import covariance
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral

NODES = 7
many = examples(25)
ROOT = np.random.default_rng(0).standard_normal((NODES, NODES))


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
    close(ledoit_wolf(x), expected + 1e-6 * np.eye(nodes), rtol=1e-13)
    close(ledoit_wolf(x, eps_ref=0.25), expected + 0.25 * np.eye(nodes), rtol=1e-13)


@many
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(2, 60), nodes=st.integers(1, 12), spread=st.floats(0, 2))
def test_ledoit_wolf_is_scikit_learns(seed, samples, nodes, spread):
    x = np.random.default_rng(seed).standard_normal((samples, nodes)) * (1 + spread * np.arange(nodes)) + 5.0
    close(ledoit_wolf(x, 0.0), sklearn_ledoit_wolf(x)[0])


@pytest.mark.parametrize(("samples", "nodes"), [(30_000, 207), (300, 500), (744, 37)])
def test_ledoit_wolf_is_scikit_learns_at_the_sizes_of_real_data(samples, nodes):
    random = np.random.default_rng(0)
    x = random.standard_normal((samples, 5)) @ random.standard_normal((5, nodes)) + random.standard_normal(
        (samples, nodes)
    )
    close(ledoit_wolf(x, 0.0), sklearn_ledoit_wolf(x)[0])


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
    x = with_gaps(np.random.default_rng(1).standard_normal((50, NODES)) @ ROOT + 3.0, share)
    S, error = naive_pairwise(x)
    v, B = np.linalg.eigh(S)
    S = sum(value * np.outer(b, b) for value, b in zip(v, B.T, strict=True) if value > 0)
    m = np.trace(S) / NODES
    b = min(1.0, error / np.sum((S - m * np.eye(NODES)) ** 2))
    close(ledoit_wolf(x), (1 - b) * S + (b * m + 1e-6) * np.eye(NODES))
    assert (share < 0.8) or (v[0] < -0.01 and b < 1)  # the repair was at work


def test_pairs_never_observed_together_count_as_uncorrelated():
    x = np.random.default_rng(2).standard_normal((40, 1)) + 0.1 * np.random.default_rng(3).standard_normal((40, 3))
    x[:20, 0] = x[20:, 1] = np.nan  # nodes 0 and 1 take turns; both go with node 2
    S, _ = naive_pairwise(x)
    assert S[0, 1] == 0.0
    assert np.linalg.eigvalsh(S)[0] < -0.1  # no Gaussian has these correlations: 1 with node 2, 0 with each other
    shrunk = ledoit_wolf(x)
    assert np.linalg.eigvalsh(shrunk)[0] > 0
    v, B = np.linalg.eigh(S)
    nearest = (B * np.maximum(v, 0)) @ B.T
    assert nearest[0, 1] > 0.05 > S[0, 1]
    close(shrunk[0, 1] / shrunk[0, 2], nearest[0, 1] / nearest[0, 2])  # shrinking changes both alike


def test_with_nothing_missing_both_ways_to_the_covariance_are_one():
    x = np.random.default_rng(4).standard_normal((30, NODES)) @ ROOT
    (S, error), (other, same) = covariance._complete(x, x.mean(0)), covariance._pairwise(x, x.mean(0))
    close(other, S)
    close(same, error)


@pytest.mark.parametrize("samples", [4000, 64_000])
def test_with_30_percent_missing_the_reference_converges_to_the_true_variances(samples):
    """The error of ``v_i`` is ``sqrt(2 / n) v_i`` for complete Gaussian data; a pair is observed in 0.49 of ``n``."""
    spectrum = PROBLEM.graph.spectrum
    truth = spectral(PROBLEM.truth.C[1].numpy(), spectrum)
    x = truth.draw(torch.from_numpy(np.random.default_rng(5).standard_normal((samples, len(truth.v))))).numpy()
    v = spectral(ledoit_wolf(with_gaps(x, 0.3), 0.0), spectrum).v
    allowed = 5 * math.sqrt(2 / samples) / 0.7 * float(truth.v.max())  # errors of one mode leak into all
    assert (v - truth.v).abs().max() < allowed
    assert allowed < 0.4 * float(truth.v.max() - truth.v.min())


@many
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 9), error=st.floats(-0.1, 30))
def test_shrinking_is_the_same_for_arrays_and_tensors_and_never_goes_beyond_its_ends(seed, rows, error):
    x = np.random.default_rng(seed).standard_normal((rows, 4))
    S = x.T @ x
    shrunk = covariance.shrunk(S, error, np.eye(4), 0.5)
    tensor = torch.from_numpy
    close(
        covariance.shrunk(tensor(S), torch.tensor(error, dtype=torch.float64), tensor(np.eye(4)), 0.5), tensor(shrunk)
    )
    m = np.trace(S) / 4
    b = 1 - (shrunk - 0.5 * np.eye(4))[0, 1] / S[0, 1]
    close(b, min(1, max(0, error / np.square(S - m * np.eye(4)).sum())), 1e-9, size=1.0)
    close(np.trace(shrunk), np.trace(S) + 2.0)


def test_a_covariance_that_is_a_multiple_of_the_identity_already_stays():
    assert np.array_equal(covariance.shrunk(3.0 * np.eye(4), 1.0, np.eye(4)), 3.0 * np.eye(4))
