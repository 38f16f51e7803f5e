"""Whether the past helps: against the closed form of an autoregression."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from grcd.data.series import Series
from grcd.references.lags import Shrinkage, shrunk, toeplitz
from grcd.training import past

HOUR = np.timedelta64(1, "h")


def autoregression(rows, phi, nodes=3, seed=0):
    random = np.random.RandomState(seed)
    x = np.zeros((rows, nodes))
    for t in range(1, rows):
        x[t] = phi * x[t - 1] + math.sqrt(1 - phi**2) * random.standard_normal(nodes)
    return x[:, :, None] * 3.0 + 7.0


def test_the_gain_is_the_difference_of_two_densities(monkeypatch):
    """Rows without times, so that the mean is each column's own; against scipy's densities."""
    monkeypatch.setattr(past, "COVARIANCES", (Shrinkage(),))
    train, val = (Series(autoregression(rows, 0.8, seed=seed)) for seed, rows in enumerate((300, 150)))
    x = train.values[:, :, 0]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    held = (val.values[:, :, 0] - x.mean(axis=0)) / x.std(axis=0)
    lags = [z[lag:].T @ z[: len(z) - lag] / (len(z) - lag) for lag in range(3)]
    Sigma = toeplitz(shrunk(past.torch.from_numpy(np.stack(lags)), Shrinkage())).numpy()
    windows = np.stack([held[t : t + 3].ravel() for t in range(148)])
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
    assert past.gain(Series(train.values[:2]), Series(train.values[:1]), 3) == 0.0
    assert past.gain(Series(np.full((50, 3, 1), np.nan)), train, 3) == 0.0
    assert past.gain(Series(np.ones((50, 3, 1))), train, 3) == 0.0
    assert past.gain(train, train, 1) == 0.0


def test_few_validation_rows_leave_it_to_stretches_of_training():
    """Each judged by the others: the mean over readings of what three trainings gain, and three rows change little."""
    x, few = autoregression(360, 0.9, seed=5), Series(autoregression(3, 0.9, seed=6))
    parts = [slice(0, 120), slice(120, 240), slice(240, 360)]
    rows = [np.r_[:360][part] for part in parts]
    densities, readings = 0.0, 0
    for part, own in zip(parts, rows, strict=True):
        joint = np.concatenate([each for each in rows if each is not own])
        borders = tuple(np.flatnonzero(np.diff(joint) != 1) + 1)
        found, count = past._densities(Series(x[joint], borders=borders), Series(x[part]), np.arange(3), 3)
        densities, readings = densities + found, readings + count
    found, count = past._densities(Series(x), few, np.arange(3), 3)
    *together, alone = (densities + found).max(axis=0)
    assert past.gain(Series(x), few, 3) == pytest.approx((max(together) - alone) / (readings + count), rel=1e-9)
    assert past.gain(Series(x), few, 3) > 0.3


def test_few_rows_know_of_time_what_they_could_not_learn_beside_all_of_space():
    """24 rows of 20 columns: their covariance at lags, not shrunk, makes held-out rows less probable than none does."""
    x = autoregression(24, 0.7, nodes=20, seed=1)
    assert past.gain(Series(x), Series(autoregression(3, 0.7, nodes=20, seed=2)), 3) > 0.05
    noise = autoregression(24, 0.0, nodes=20, seed=1)
    assert past.gain(Series(noise), Series(autoregression(3, 0.0, nodes=20, seed=2)), 3) < 0.01


def test_the_calendar_counts_for_rows_that_say_nothing_of_each_other():
    """Noise about a daily curve: a reading gains half the logarithm of what the curve takes off its variance."""
    random, hours = np.random.RandomState(0), np.arange(2400)
    x = 5 * np.sin(2 * np.pi * hours / 24)[:, None, None] + random.standard_normal((2400, 1, 1)) + np.zeros((1, 3, 1))
    x = x + np.sqrt(3.0) * random.standard_normal(x.shape)
    times = np.datetime64("2024-01-01", "ns") + hours * HOUR
    dated = [Series(x[rows], times[rows]) for rows in (slice(0, 1800), slice(1800, 2400))]
    curve = 25 / 2
    together, apart = (np.log(np.linalg.det(np.full((3, 3), 1.0 + more) + 3 * np.eye(3))) for more in (0.0, curve))
    assert past.gain(*dated, 4) == pytest.approx((apart - together) / 6, abs=0.05)
    plain = [Series(part.values) for part in dated]
    assert past.gain(*plain, 4) < past.gain(*dated, 4)  # the curve is seen as correlation in time, which is less
