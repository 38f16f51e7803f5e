"""The simplest forecasts by hand, and a vector autoregression against the one that made the data."""

import numpy as np
import pytest
from laws import close

from grcd.data.series import Series
from grcd.evaluation import foretelling
from grcd.evaluation.autoregression import Autoregression

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00:00", "s")
NAN = np.nan


def series(values, borders=()):
    values = np.asarray(values, dtype=float)
    values = values[:, None, None] if values.ndim == 1 else values[:, :, None]
    return Series(values, START + np.arange(len(values)) * HOUR, borders)


def foretold(name, train, rows, ends, horizon):
    return foretelling.fitted(name, train, train)(rows, np.array(ends), horizon)[..., 0]


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_the_last_reading_and_the_mean_where_there_is_none():
    rows = series([NAN, NAN, 3.0, NAN, 5.0, 7.0])
    guess = foretold("last", series([1.0, 3.0]), rows, [2, 3, 4, 5], 2)
    assert guess[..., 0].tolist() == [[2, 2], [3, 3], [3, 3], [5, 5]]


def test_yesterday_and_a_week_ago_and_further_back_where_that_is_missing():
    hours = np.arange(24 * 15, dtype=float)
    rows = series(hours)
    assert foretold("yesterday", rows, rows, [30, 50], 2)[..., 0].tolist() == [[6, 7], [26, 27]]
    long = foretold("yesterday", rows, rows, [50], 30)[0, :, 0]  # nothing after the end serves
    np.testing.assert_array_equal(long, [*range(26, 50), *range(26, 32)])
    assert foretold("week", rows, rows, [180], 2)[..., 0].tolist() == [[12, 13]]
    rows.values[26] = NAN
    assert foretold("yesterday", rows, rows, [50], 2)[..., 0].tolist() == [[2, 27]]
    assert foretold("yesterday", series([4.0, 6.0]), rows, [2], 1)[..., 0].tolist() == [[5]]  # no day before: the mean


def test_the_calendar_by_the_time_that_is_foretold():
    day = np.where(np.arange(24) == 12, 24.0, 0.0)
    rows = series(np.tile(day, 14))
    guess = foretold("calendar", rows, rows, [24 * 7 + 10], 5)[0, :, 0]
    assert guess.argmax() == 2  # twelve o'clock


def test_what_followed_is_what_follows():
    """A wave of 12 rows, told from its last four: by stretches that were the same, and by regressions nearly."""
    wave = np.stack([np.sin(2 * np.pi * np.arange(600) / 12 + shift) for shift in (0, 1)], axis=1)
    rows, right = series(wave), np.stack([wave[500:504], wave[533:537]])
    guess = {
        name: foretold(name, series(wave[:400]), rows, [500, 533], 4) for name in ("last", "neighbours", "iterative")
    }
    close(guess["neighbours"], right, rtol=1e-6)
    assert np.abs(guess["iterative"] - right).mean() < 0.2 * np.abs(guess["last"] - right).mean()


@pytest.mark.parametrize("name", foretelling.NAMES)
def test_nothing_after_the_end_is_looked_at(name):
    random = np.random.RandomState(0)
    x = np.cumsum(random.standard_normal((500, 3)), axis=0)
    x[random.random_sample(x.shape) < 0.1] = NAN
    guess = foretelling.fitted(name, series(x[:300]), series(x[300:400]))
    ends, other = np.array([420, 440]), x.copy()
    other[440:] = 1e3
    close(guess(series(x), ends, 6)[1], guess(series(other), ends, 6)[1])


# -- a vector autoregression -------------------------------------------------------------------------------------------

A = np.array([[0.6, 0.3, 0.0], [-0.2, 0.5, 0.1], [0.0, 0.2, 0.7]])


@pytest.fixture(scope="module")
def made():
    random, x = np.random.RandomState(3), np.zeros((20_000, 3))
    for t in range(1, len(x)):
        x[t] = A @ x[t - 1] + random.standard_normal(3)
    return x


def test_it_is_the_one_that_made_the_data(made):
    model = Autoregression.fit(series(made[:16_000]), series(made[16_000:]))
    one = model.sd.ravel()
    first = (model.weights[:3] / one[:, None] * one).T  # of readings, not of z-scores
    assert np.abs(first - A).max() < 5 / 16_000**0.5
    rest = model.weights[3:]
    assert np.abs(rest).max(initial=0) < 5 / 16_000**0.5


def test_a_gap_is_what_the_rows_before_say_and_the_future_is_a_gap(made):
    model = Autoregression(np.zeros((3, 1)), np.ones((3, 1)), A.T)
    x = made[:40].copy()
    x[10:13, 1], x[20:] = NAN, NAN
    filled = model.fill(series(x))[:, :, 0]
    expected = x.copy()
    for t in range(1, 40):
        expected[t] = np.where(np.isnan(x[t]), A @ expected[t - 1], x[t])
    close(filled, expected)
    powers = np.stack([np.linalg.matrix_power(A, k) @ expected[19] for k in range(1, 21)])
    close(model.foretell(series(x), np.array([20]), 20)[0, :, :, 0], powers)
    broken = model.fill(series(x, borders=(10,)))[:, :, 0]
    assert broken[10, 1] == 0.0  # nothing is known before a border


def test_order_and_ridge_are_those_of_validation_rows(made):
    train, val = series(made[:2000]), series(made[2000:3000])
    model = Autoregression.fit(train, val)
    z = (made[2000:3000] - model.mean[:, 0]) / model.sd[:, 0]
    lags = np.concatenate(
        [z[model.order - k : -k or None][: 1000 - model.order] for k in range(1, model.order + 1)], axis=1
    )
    off = np.abs(lags @ model.weights - z[model.order :]).mean()
    assert model.error(val) == pytest.approx(off, rel=1e-9)
