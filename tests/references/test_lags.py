"""Lag covariances: what they become with more rows, with weights, and in the basis of the product graph."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from test_stationary import autoregression

import grcd
from grcd.graphs.space import SignalSpace
from grcd.references import lags
from grcd.references.gaussian import spectral_of_lags
from grcd.references.lags import (
    Shrinkage,
    correlations,
    definite,
    factored,
    lag_covariances,
    projected,
    shrunk,
    toeplitz,
)
from grcd.references.stationary import Stationary


def simulated(seed, rows, columns=3, missing=0.3):
    """Rows of the autoregression of ``test_stationary``, with gaps; and its lag covariances."""
    A, C = autoregression(7, columns, 4)
    random = np.random.RandomState(seed)
    z, steps = np.zeros((rows, columns)), random.standard_normal((rows, columns))
    z[0] = np.linalg.cholesky(C[0].numpy()) @ steps[0]
    for t in range(1, rows):
        z[t] = A.numpy() @ z[t - 1] + steps[t]
    z[random.random_sample(z.shape) < missing] = np.nan
    return torch.from_numpy(z), C


def test_covariances_of_longer_series_with_gaps_come_nearer_as_the_root_of_their_length():
    def off(rows):
        """Root mean square over some series."""
        errors = [lag_covariances(z, 4) - C for z, C in (simulated(seed, rows) for seed in range(12))]
        return float(torch.stack(errors).square().mean().sqrt())

    ratio = off(250) / off(4000)
    assert 4 / 1.35 < ratio < 4 * 1.35


def test_forecasts_of_a_fitted_reference_come_nearer_to_the_true_ones_at_the_same_rate():
    z, _ = simulated(99, 6, missing=0.0)
    observed = (torch.arange(4) < 2)[:, None].expand(4, 3).reshape(1, -1)
    window = z[:4].reshape(1, -1)
    as_it_is = Shrinkage(0.0, 0.0, 0.0, 0.0)
    _, C = autoregression(7, 3, 4)
    truth = Stationary.of(C, as_it_is).posterior(window, observed)

    def off(rows):
        fits = [Stationary.of(lag_covariances(simulated(seed, rows)[0], 4), as_it_is) for seed in range(12)]
        means = torch.stack([fit.posterior(window, observed).mean - truth.mean for fit in fits])
        return float(means.square().mean().sqrt())

    assert 4 / 1.5 < off(500) / off(8000) < 4 * 1.5


def test_rows_that_count_nothing_are_not_there_and_those_that_count_alike_are_all():
    z, _ = simulated(0, 60)
    weight = torch.ones(60, dtype=torch.float64)
    close(lag_covariances(z, 3, weight=0.5 * weight), lag_covariances(z, 3))
    weight[20:] = 0
    close(lag_covariances(z, 3, weight=weight), lag_covariances(z[:20], 3))


def test_correlations_are_the_traces_of_the_covariances():
    z, _ = simulated(0, 60)
    runs = [slice(0, 25), slice(25, 60)]
    C = lag_covariances(z, 5, runs)
    close(correlations(z, 5, runs), C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace())


def test_all_weight_on_a_smaller_model_is_that_model():
    _, C = autoregression(3, 4, 3)
    node = torch.tensor([0, 0, 1, 1])
    readings = shrunk(C, Shrinkage(0, 0, 0, 0, readings=1), node)
    close(toeplitz(readings), C[0].diagonal().repeat(3).diag())
    own = shrunk(C, Shrinkage(nodes=1, separable=0, local=0.3, noise=0), node)
    close(own, torch.where(node[:, None] == node, C, 0), size=C)
    correlation = C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace()
    close(shrunk(C, Shrinkage(0, 1, 0, 0), node), correlation[:, None, None] * C[0])


def test_the_papers_variances_need_no_covariance_of_windows():
    """Against the diagonal of the block Toeplitz matrix in the basis of the product graph."""
    W = np.triu(np.random.RandomState(0).random_sample((3, 3)), 1)
    space = SignalSpace(grcd.Graph.from_adjacency(W + W.T), steps=4, channels=2)
    _, C = autoregression(3, 6, 4)
    expected = space.spectrum.average(space.spectrum.diagonal(toeplitz(C).numpy()))
    close(spectral_of_lags(C, space.spectrum, 0.0).v, expected, 1e-10)
    least = spectral_of_lags(C, space.spectrum, 1.0).v
    assert least.min() >= 1.0


@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_mended_lags_make_a_covariance_and_those_that_do_stay_as_they_are(seed):
    random = np.random.RandomState(seed)
    C = torch.from_numpy(random.standard_normal((5, 3, 3)))
    C[0] = C[0] @ C[0].T + 0.1 * torch.eye(3)
    mended = projected(C)
    least = torch.linalg.eigvalsh(toeplitz(mended))[0]
    assert least > -1e-9 * float(C.abs().max())
    close(projected(mended), mended, 1e-9)
    kept = 0.9 ** torch.arange(5).double()[:, None, None] * C[0]  # a process of the first order, on a circle too
    close(projected(kept), kept, 1e-9)


def test_large_windows_are_mended_by_their_lags(monkeypatch):
    """Nearer to the lags than raising the noise until it suffices, and with the noise in every direction."""
    z = simulated(3, 30)[0]
    C, by, node = lag_covariances(z, 12), Shrinkage(0, 0, 0, 0.01), torch.arange(z.shape[1])
    raw = toeplitz(shrunk(C, by, node))
    assert not definite(raw, by.noise)
    raised, _ = factored(C, by, node, torch.float64)
    monkeypatch.setitem(lags.EIGEN, "cpu", 4)
    Sigma, L = factored(C, by, node, torch.float64)
    assert torch.linalg.eigvalsh(Sigma)[0] > 0.99 * by.noise
    close(L @ L.T, Sigma, 1e-12)
    off, bound = (torch.linalg.matrix_norm(each - raw) for each in (Sigma, raised))
    assert off < 4 * bound
    reference = Stationary.of(C, by)
    close(reference.B @ reference.v.diag() @ reference.B.T, Sigma, 1e-9)
