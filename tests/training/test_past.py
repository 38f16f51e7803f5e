"""Whether the past helps: against the closed form of an autoregression."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from grcd.data.series import Series
from grcd.references.stationary import Shrinkage, shrunk, toeplitz
from grcd.training import past

HOUR = np.timedelta64(1, "h")


def autoregression(rows, phi, nodes=3, seed=0):
    random = np.random.RandomState(seed)
    x = np.zeros((rows, nodes))
    for t in range(1, rows):
        x[t] = phi * x[t - 1] + math.sqrt(1 - phi**2) * random.standard_normal(nodes)
    return x[:, :, None] * 3.0 + 7.0


def test_the_gain_is_the_difference_of_two_densities():
    """Rows without times, so that the mean is each column's own; against scipy's densities."""
    train, val = (Series(autoregression(rows, 0.8, seed=seed)) for seed, rows in enumerate((300, 40)))
    x = train.values[:, :, 0]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    held = (val.values[:, :, 0] - x.mean(axis=0)) / x.std(axis=0)
    lags = [z[lag:].T @ z[: len(z) - lag] / (len(z) - lag) for lag in range(3)]
    Sigma = toeplitz(shrunk(past.torch.from_numpy(np.stack(lags)), Shrinkage())).numpy()
    windows = np.stack([held[t : t + 3].ravel() for t in range(38)])
    joint = multivariate_normal(np.zeros(9), Sigma).logpdf(windows).sum()
    alone = multivariate_normal(np.zeros(3), Sigma[:3, :3]).logpdf(windows.reshape(-1, 3)).sum()
    assert past.gain(train, val, 3) == pytest.approx(
        (joint - alone) / windows.size, rel=1e-6
    )  # the mean has a floor under its weights


@pytest.mark.parametrize("dated", [False, True])
def test_the_past_of_an_autoregression_helps_and_that_of_noise_does_not(dated):
    times = np.datetime64("2024-01-01", "ns") + np.arange(3000) * HOUR if dated else None

    def gained(phi):
        x = autoregression(3000, phi, seed=3)
        x[np.random.RandomState(1).random_sample(x.shape) < 0.1] = np.nan
        part = [Series(x[rows], None if times is None else times[rows]) for rows in (slice(0, 2400), slice(2400, 3000))]
        return past.gain(*part, 24)

    assert gained(0.9) > 0.3
    assert gained(0.0) < 1e-3


def test_where_there_is_nothing_to_tell_by_nothing_is_gained():
    train = Series(autoregression(50, 0.9))
    assert past.gain(train, Series(train.values[:1]), 3) == 0.0
    assert past.gain(train, Series(np.full((9, 3, 1), np.nan)), 3) == 0.0
    assert past.gain(Series(np.ones((50, 3, 1))), train, 3) == 0.0
    assert past.gain(train, train, 1) == 0.0
