"""Rows by themselves: against the conditional law of a Gaussian, computed naively."""

import numpy as np
import pytest
import torch
from laws import close

from grcd.references.lags import lag_covariances
from grcd.references.nearness import towards
from grcd.tasks import moments
from grcd.tasks.moments import Moments, Plain

N = 5
FAR = np.abs(np.subtract.outer(np.arange(N), np.arange(N))).astype(float)  # nodes in a row


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
    mean, sd = Moments(0.0, 0.1, 1.5).law(C, FAR).posterior(z, [slice(0, len(z))])
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
    (mean,), _ = Moments(0.3, 0.0, 1.0).law(C, FAR[:2, :2]).posterior(z, [slice(0, 1)])
    close(mean[0], torch.tensor(0.3, dtype=torch.float64), 1e-7)  # two channels of one node
    close(mean[2], torch.tensor(0.15, dtype=torch.float64), 1e-7)  # rho^2 / (rho^2 + local^2) is a half


def test_draws_have_that_law_and_the_median_of_a_pair_is_its_mean():
    C, z = covariance(), rows()
    law = Moments(0.0, 0.05, 2.0).law(C, FAR)
    mean, sd = law.posterior(z, [slice(0, 6)])
    drawn = torch.cat([part for _, part in law.draws(z, [slice(0, 6)], 4000, seed=3)], dim=1)
    close(drawn.mean(0), mean, 1e-9)
    assert (drawn.std(0) - sd).abs().max() < 0.06 * sd.max()
    some = torch.cat([part for _, part in law.draws(z, [slice(0, 2), slice(2, 6)], 10, seed=3, chunk=1)], dim=1)
    close(some, torch.cat([part for _, part in law.draws(z, [slice(0, 6)], 10, seed=3)], dim=1), 1e-9)


def test_distance_along_the_graph_has_its_share_before_noise_is_added():
    C, z = covariance(), rows()
    mean, sd = Moments(0.0, 0.1, graph=0.4).law(C, FAR).posterior(z, [slice(0, len(z))])
    near = towards(C[None], FAR, 0.4)[0]
    assert (near - C).abs().max() > 0.01
    for k, row in enumerate(z):
        centre, spread = naive(near + 0.1 * torch.eye(N), row)
        close(mean[k][row.isnan()], centre, 1e-7)
        close(sd[k][row.isnan()], spread, 1e-7)


def test_without_gaps_it_is_the_covariance_of_the_rows():
    z = torch.from_numpy(np.random.RandomState(2).standard_normal((50, N)))
    close(moments.covariance(z), z.T @ z / 50, 1e-12)


def test_through_gaps_it_goes_where_the_likelihood_has_its_maximum():
    """Naive expectation maximisation, conditional covariances in place of draws; pairs alone are off by more."""
    random = np.random.RandomState(4)
    x = random.standard_normal((3000, N)) @ np.linalg.cholesky(covariance(5).numpy()).T
    lost = (random.random_sample(x.shape) < 0.9) & (np.abs(x[:, :1]) > 1)  # not by chance alone
    lost[:, 0] = False
    z = np.where(lost, np.nan, x)
    C = np.eye(N)
    for _ in range(60):
        total = np.zeros((N, N))
        for row in z:
            h = np.isnan(row)
            gain = C[np.ix_(h, ~h)] @ np.linalg.inv(C[np.ix_(~h, ~h)])
            full = np.where(h, 0, row)
            full[h] = gain @ row[~h]
            total += np.outer(full, full)
            total[np.ix_(h, h)] += C[np.ix_(h, h)] - gain @ C[np.ix_(~h, h)]
        C = total / len(z)
    found = moments.covariance(torch.from_numpy(z)).numpy()
    pairs = lag_covariances(torch.from_numpy(z), 1)[0].numpy()
    assert np.abs(pairs - C).max() > 0.1 * C.max()
    assert np.abs(found - C).max() < 0.25 * np.abs(pairs - C).max()


def test_plain_rows_have_the_moments_of_what_was_read_and_go_back():
    x = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan], [np.nan, 5.0, np.nan]])
    plain = Plain.of(x, torch.device("cpu"))
    assert plain.mean.tolist() == [2.0, 5.0, 0.0]  # a column that never changes, and one without a reading
    assert plain.sd.tolist() == [1.0, 1.0, 1.0]
    back = plain.back(plain.scored(x)).numpy()
    np.testing.assert_allclose(back, x, rtol=1e-12)


def test_numbers_come_back_from_a_file():
    assert Moments.of(Moments(0.1, 0.01, 1.2, 0.3, True).to_dict()) == Moments(0.1, 0.01, 1.2, 0.3, True)
    with pytest.raises(TypeError):
        Moments.of({"local": 0.1})
