"""Intervals over test weeks: spreads against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.evaluation.bootstrap import Interval, by_day, difference, drawn_days, ratio

TIMES = 20_000


def spread(values, length):
    """The sd of the bootstrapped mean."""
    return values[drawn_days(len(values), length, TIMES)].mean(axis=1).std()


def test_of_independent_weeks_the_mean_has_their_sd_over_the_root_of_their_number():
    weeks = np.random.RandomState(0).standard_normal(30)
    assert spread(weeks, 1) == pytest.approx(weeks.std() / 30**0.5, rel=4 / (2 * TIMES) ** 0.5)


@given(st.integers(2, 9), st.integers(0, 99))
@examples(10)
def test_of_longer_blocks_it_is_that_of_their_means(length, seed):
    days = np.random.RandomState(seed).standard_normal(4 * length).cumsum()
    means = np.stack([np.roll(days, k) for k in range(length)]).mean(axis=0)
    assert spread(days, length) == pytest.approx(means.std() / 4**0.5, rel=4 / (2 * TIMES) ** 0.5)


def test_blocks_are_days_in_a_row_and_all_days_are_alike():
    days = drawn_days(24, 7, TIMES)
    assert days.shape == (TIMES, 28)
    np.testing.assert_array_equal(np.diff(days.reshape(-1, 7), axis=1) % 24, 1)
    counts = np.bincount(days.ravel(), minlength=24)
    assert np.abs(counts / counts.mean() - 1).max() < 5 * (24 / (4 * TIMES)) ** 0.5
    assert drawn_days(3, 7, 5).shape == (5, 3)  # less than a week is a week


def test_an_interval_of_a_ratio_holds_the_middle_of_a_normal():
    """The mean of many days with the same count is nearly normal: 1.96 of its sd to either side."""
    random = np.random.RandomState(1)
    above, below = 50 + random.standard_normal(400), np.full(400, 10.0)
    interval = ratio(above, below, length=1, times=TIMES)
    half = 1.96 * above.std() / 20 / 10
    assert interval.value == pytest.approx(above.mean() / 10)
    close([interval.low, interval.high], [interval.value - half, interval.value + half], rtol=5e-4)


def test_a_difference_is_of_the_same_days():
    """What a hard day adds to both does not matter; what one is always ahead by is clear."""
    random = np.random.RandomState(2)
    hard, count = 100 * random.random_sample(28), np.full(28, 5.0)
    interval = difference((hard + 2.0, count), (hard, count))
    close(interval, [0.4, 0.4, 0.4], rtol=1e-9)
    assert interval.clear
    apart = difference((random.permutation(hard), count), (hard, count))
    assert apart.low < 0 < apart.high
    assert not apart.clear
    assert Interval(-1.0, -2.0, -0.5).clear


def test_sums_by_day_by_hand():
    """Two readings of one day with another's between them, and a day of which nothing is known is not there."""
    times = np.array(["1970-01-02T23:59", "1970-01-04T00:00", "1970-01-02T00:00"], dtype="datetime64[ns]")
    values = {"loss": np.array([1.0, 2.0, 1 / 3]), "size": np.array([1, 1, 1])}
    assert by_day(times, values) == {"day": [1.0, 3.0], "loss": [1.333333, 2.0], "size": [2.0, 1.0]}
