"""References of windows, against a vector autoregression whose covariances are known."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.references import conditioning
from grcd.references.stationary import Shrinkage, Stationary, Trial, chosen_shrinkage, inverse_factor, lag_covariances

AS_IT_IS = Shrinkage(nodes=0.0, separable=0.0, local=0.0, noise=0.0)


def autoregression(seed: int, columns: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``z_(t+1) = A z_t + noise`` of unit variance: ``A``, and ``C_l = A^l C_0`` where ``C_0 = A C_0 A' + I``."""
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(columns, columns, generator=g, dtype=torch.float64)
    A *= 0.7 / torch.linalg.matrix_norm(A, 2)
    C0 = sum(torch.linalg.matrix_power(A, k) @ torch.linalg.matrix_power(A, k).T for k in range(200))
    return A, torch.stack([torch.linalg.matrix_power(A, lag) @ C0 for lag in range(steps)])


@given(seed=st.integers(0, 10**6), columns=st.integers(1, 4), steps=st.integers(1, 5))
@examples(30)
def test_posterior_and_likelihood_are_those_of_the_conditioned_gaussian(seed, columns, steps):
    _, C = autoregression(seed, columns, steps)
    reference, d = Stationary.of(C, AS_IT_IS), columns * steps
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(6, d, generator=g, dtype=torch.float64)
    observed = torch.rand(6, d, generator=g) < torch.linspace(0, 1, 6)[:, None]
    posterior = reference.posterior(z, observed)
    for row, o in enumerate(observed):
        S = reference.Sigma
        gain = S[~o][:, o] @ torch.linalg.inv(S[o][:, o])
        close(posterior.mean[row][~o], gain @ z[row][o], 1e-9, size=z)
        close(posterior.mean[row][o], z[row][o])
        close(posterior.sd[row][~o].square(), (S[~o][:, ~o] - gain @ S[o][:, ~o]).diagonal(), 1e-9, size=S)
        quadratic = z[row][o] @ torch.linalg.solve(S[o][:, o], z[row][o])
        log_prob = -0.5 * (quadratic + torch.logdet(S[o][:, o]) + int(o.sum()) * math.log(2 * math.pi))
        close(posterior.log_prob[row], log_prob, 1e-9, size=d)


@pytest.mark.parametrize("crossover", [0.0, 1.1])  # by what is hidden, by what is observed
def test_the_future_of_an_autoregression_is_its_powers_times_the_last_row(monkeypatch, crossover):
    monkeypatch.setattr(conditioning, "CROSSOVER", crossover)
    A, C = autoregression(3, 4, 6)
    reference = Stationary.of(C, AS_IT_IS)
    z = torch.randn(5, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    observed = (torch.arange(6) < 3)[:, None].expand(6, 4).reshape(1, -1).expand(5, -1)
    posterior = reference.posterior(z.flatten(1), observed)
    for ahead in (1, 2, 3):
        forecast = z[:, 2] @ torch.linalg.matrix_power(A, ahead).T
        close(posterior.mean.reshape(5, 6, 4)[:, 2 + ahead], forecast, 1e-9)
        spread = sum(torch.linalg.matrix_power(A, k) @ torch.linalg.matrix_power(A, k).T for k in range(ahead))
        close(posterior.sd.reshape(5, 6, 4)[0, 2 + ahead].square(), spread.diagonal(), 1e-9)


@pytest.mark.parametrize("crossover", [0.0, 1.1])
def test_draws_have_the_whole_covariance_of_the_posterior(monkeypatch, crossover):
    monkeypatch.setattr(conditioning, "CROSSOVER", crossover)
    _, C = autoregression(5, 3, 4)
    reference = Stationary.of(C, AS_IT_IS)
    g = torch.Generator().manual_seed(1)
    z, observed = torch.randn(1, 12, generator=g, dtype=torch.float64), torch.rand(1, 12, generator=g) < 0.5
    # Draws are affine in their noise: the images of unit vectors give mean and covariance exactly.
    unit = torch.cat([torch.zeros(1, 12), torch.eye(12)]).double()[None]
    images = reference.posterior(z, observed, unit).draws[0]
    spread = images[1:] - images[0]
    hidden = ~observed[0]
    S = reference.Sigma
    gain = S[hidden][:, ~hidden] @ torch.linalg.inv(S[~hidden][:, ~hidden])
    close(images[0][hidden], gain @ z[0][~hidden], 1e-9, size=z)
    close((spread.T @ spread)[hidden][:, hidden], S[hidden][:, hidden] - gain @ S[~hidden][:, hidden], 1e-9)
    close(images[:, ~hidden], z[0][~hidden].expand(13, -1))


@pytest.mark.parametrize("crossover", [0.0, 1.1])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_windows_of_one_mask_are_as_they_are_alone(monkeypatch, crossover, share):
    monkeypatch.setattr(conditioning, "CROSSOVER", crossover)
    _, C = autoregression(5, 3, 4)
    reference, g = Stationary.of(C, AS_IT_IS), torch.Generator().manual_seed(2)
    z, xi = (torch.randn(*shape, 12, generator=g, dtype=torch.float64) for shape in ((5,), (5, 3)))
    observed = (torch.rand(1, 12, generator=g) < share).expand(5, -1)
    together = reference.posterior(z, observed, xi)
    alone = [reference.posterior(z[k : k + 1], observed[:1], xi[k : k + 1]) for k in range(5)]
    for name in ("mean", "sd", "draws", "log_prob"):
        close(getattr(together, name), torch.cat([getattr(each, name) for each in alone]), 1e-10, size=xi)


def test_a_factor_by_halves_is_the_factor(monkeypatch):
    monkeypatch.setitem(conditioning.LEAF, "cpu", 3)
    A = torch.randn(2, 17, 17, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    A = A @ A.mT + torch.eye(17)
    close(inverse_factor(A), torch.linalg.inv(torch.linalg.cholesky(A)), 1e-10)


def test_lag_covariances_are_means_over_pairs_that_were_seen_and_never_cross_a_break():
    g = torch.Generator().manual_seed(0)
    z = torch.randn(30, 3, generator=g, dtype=torch.float64)
    z[torch.rand(30, 3, generator=g) < 0.3] = torch.nan
    runs = [slice(0, 12), slice(12, 30)]
    C = lag_covariances(z, 4, runs)
    for lag in range(4):
        pairs = [(t + lag, t) for run in runs for t in range(run.start, run.stop - lag)]
        late, early = (z[[pair[k] for pair in pairs]] for k in (0, 1))
        close(C[lag], (late[:, :, None] * early[:, None, :]).nanmean(0))


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.01, 0.1]))
@examples(20)
def test_no_direction_is_surer_than_half_of_the_noise(seed, noise):
    """Lag covariances of few rows with gaps, weak correlations cut: far from positive definite."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(25, 4, generator=g, dtype=torch.float64).cumsum(0)
    z[torch.rand(25, 4, generator=g) < 0.4] = torch.nan
    reference = Stationary.of(lag_covariances(z / 3, 5), Shrinkage(0.0, 0.1, 0.3, noise))
    assert torch.linalg.eigvalsh(reference.Sigma)[0] >= 0.499 * noise
    close(reference.conditioning.Q @ reference.Sigma, torch.eye(20, dtype=torch.float64), 1e-8)


def test_the_chosen_shrinkage_is_the_cheapest_tried_and_beats_none():
    """Independent columns, few rows: raw correlations between them are noise."""
    g = torch.Generator().manual_seed(0)
    z = torch.randn(120, 6, generator=g, dtype=torch.float64)
    windows = z[60:].reshape(20, 18)
    seen = torch.ones_like(windows, dtype=torch.bool)
    trial = Trial(lag_covariances(z[:60], 3), windows, seen)
    best, costs = chosen_shrinkage([trial])
    assert costs[best] == min(costs.values())
    assert costs[best] < trial.cost(Shrinkage(0.0, 0.0, 0.0, best.noise), None)[0] / 360
