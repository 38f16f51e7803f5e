"""Rows by themselves: against the conditional law of a Gaussian, computed naively."""

import numpy as np
import pytest
import torch
from laws import close

from grcd.references.lags import Shrinkage
from grcd.references.mixture import Mixture
from grcd.references.stationary import Stationary
from grcd.tasks import moments
from grcd.tasks.moments import Moments

N = 5


def covariance(seed=0):
    root = np.random.RandomState(seed).standard_normal((N, 2 * N))
    return torch.from_numpy(root @ root.T / (2 * N))


def rows(count=6, seed=1):
    random = np.random.RandomState(seed)
    z = random.standard_normal((count, N))
    z[random.random_sample(z.shape) < 0.4] = np.nan
    z[0], z[1, :] = np.nan, 0.3  # nothing is known, and everything
    return torch.from_numpy(z)


def naive(C, z):
    """Mean and standard deviation of what is missing of one row."""
    h = z.isnan()
    gain = C[h][:, ~h] @ torch.linalg.inv(C[~h][:, ~h])
    return gain @ z[~h], (C[h][:, h] - gain @ C[~h][:, h]).diagonal().sqrt()


def test_it_is_the_conditional_law_with_spreads_as_large_as_they_are_said_to_be():
    C, z = covariance(), rows()
    mean, sd = Moments(0.0, 0.1, 1.5).law(C).posterior(z, [slice(0, len(z))])
    for k, row in enumerate(z):
        centre, spread = naive(C + 0.1 * torch.eye(N), row)
        close(mean[k][row.isnan()], centre, 1e-7)
        close(sd[k][row.isnan()], 1.5 * spread, 1e-7)
        assert torch.equal(mean[k][~row.isnan()], row[~row.isnan()])
        assert not sd[k][~row.isnan()].any()


def test_weak_correlations_are_taken_for_noise_between_nodes_not_between_their_channels():
    C = torch.eye(4, dtype=torch.float64)
    C[0, 1] = C[1, 0] = C[1, 2] = C[2, 1] = 0.3
    z = torch.tensor([[float("nan"), 1.0, float("nan"), 0.0]], dtype=torch.float64)
    (mean,), _ = Moments(0.3, 0.0, 1.0).law(C, 2).posterior(z, [slice(0, 1)])
    close(mean[0], torch.tensor(0.3, dtype=torch.float64), 1e-7)  # two channels of one node
    close(mean[2], torch.tensor(0.15, dtype=torch.float64), 1e-7)  # rho^2 / (rho^2 + local^2) is a half


def test_draws_have_that_law_and_the_median_of_a_pair_is_its_mean():
    C, z = covariance(), rows()
    law = Moments(0.0, 0.05, 2.0).law(C)
    mean, sd = law.posterior(z, [slice(0, 6)])
    drawn = torch.cat([part for _, part in law.draws(z, [slice(0, 6)], 4000, seed=3)], dim=1)
    close(drawn.mean(0), mean, 1e-9)
    assert (drawn.std(0) - sd).abs().max() < 0.06 * sd.max()
    some = torch.cat([part for _, part in law.draws(z, [slice(0, 2), slice(2, 6)], 10, seed=3, chunk=1)], dim=1)
    close(some, torch.cat([part for _, part in law.draws(z, [slice(0, 6)], 10, seed=3)], dim=1), 1e-9)


def test_the_covariance_of_a_mixture_is_that_of_its_draws():
    lags = [torch.stack([covariance(seed), 0.5 * covariance(seed)]) for seed in (1, 2)]
    parts = tuple(Stationary.of(C, Shrinkage(0, 0, 0, 0)) for C in lags)
    means = torch.from_numpy(np.random.RandomState(3).standard_normal((2, 2 * N)))
    mixture = Mixture(torch.tensor([0.3, 0.7]).double(), means, parts)
    close(moments.covariance(parts[0], N), lags[0][0], 1e-12)
    x = mixture.draw(torch.randn(200_000, 2 * N, generator=torch.Generator().manual_seed(0)).double(), 0.0,
                     torch.rand(200_000, generator=torch.Generator().manual_seed(1)).double())  # fmt: skip
    found = sum(part.T @ part / len(part) for part in x.view(-1, 2, N).unbind(1)) / 2
    assert (moments.covariance(mixture, N) - found).abs().max() < 0.03 * found.max()
    assert moments.covariance(parts[0].scalar(), N) is None


def test_numbers_come_back_from_a_file():
    assert Moments.of(Moments(0.1, 0.01, 1.2).to_dict()) == Moments(0.1, 0.01, 1.2)
    with pytest.raises(TypeError):
        Moments.of({"local": 0.1})
