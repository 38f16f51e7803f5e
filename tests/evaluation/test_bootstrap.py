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
    return values[drawn_days(np.arange(len(values)), length, TIMES)].mean(axis=1).std()


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
    days = drawn_days(np.arange(100, 124), 7, TIMES)
    assert days.shape == (TIMES, 24)  # three weeks, and three days of a fourth
    for block in np.split(days, [7, 14, 21], axis=1):
        np.testing.assert_array_equal(np.diff(block, axis=1) % 24, 1)
    counts = np.bincount(days.ravel(), minlength=24)
    assert np.abs(counts / counts.mean() - 1).max() < 5 * (24 / (4 * TIMES)) ** 0.5
    assert drawn_days(np.arange(3), 7, 5).shape == (5, 3)  # less than a week is a week


def test_of_days_that_are_no_whole_weeks_no_more_are_drawn_than_there_are():
    """Three blocks of seven and one of three: by the variances of sums of so many days in a row."""
    days = np.random.RandomState(3).standard_normal(24).cumsum()
    sums = {k: np.stack([np.roll(days, -shift) for shift in range(k)]).sum(axis=0) for k in (3, 7)}
    expected = (3 * sums[7].var() + sums[3].var()) ** 0.5 / 24
    assert spread(days, 7) == pytest.approx(expected, rel=4 / (2 * TIMES) ** 0.5)


def test_blocks_stay_in_their_stretch_of_days():
    """Two months with one between them: a block of the first goes on with its own first day."""
    days = np.r_[10:30, 60:91]
    drawn = drawn_days(days, 7, TIMES)
    assert drawn.shape == (TIMES, 51)
    blocks = np.stack(np.split(drawn[:, :49], 7, axis=1)).reshape(-1, 7)
    first = blocks[:, 0] < 20
    assert ((blocks < 20) == first[:, None]).all()
    np.testing.assert_array_equal(np.diff(blocks[first], axis=1) % 20, 1)
    np.testing.assert_array_equal(np.diff(blocks[~first] - 20, axis=1) % 31, 1)
    counts = np.bincount(drawn.ravel(), minlength=51)
    assert np.abs(counts / counts.mean() - 1).max() < 5 * (51 / (8 * TIMES)) ** 0.5
    # what differs between stretches only is drawn as whole blocks are: seven of seven days and one of two
    month = np.where(np.arange(51) < 20, 1.0, 0.0)
    share = 20 / 51
    expected = (share * (1 - share) * (7 * 49 + 4)) ** 0.5 / 51
    assert month[drawn].mean(axis=1).std() == pytest.approx(expected, rel=4 / (2 * TIMES) ** 0.5)


def test_an_interval_of_a_ratio_holds_the_middle_of_a_normal():
    """The mean of many days with the same count is nearly normal: 1.96 of its sd to either side."""
    random = np.random.RandomState(1)
    above, below = 50 + random.standard_normal(400), np.full(400, 10.0)
    interval = ratio(np.arange(400), above, below, length=1, times=TIMES)
    half = 1.96 * above.std() / 20 / 10
    assert interval.value == pytest.approx(above.mean() / 10)
    close([interval.low, interval.high], [interval.value - half, interval.value + half], rtol=5e-4)


def test_a_difference_is_of_the_same_days():
    """What a hard day adds to both does not matter; what one is always ahead by is clear."""
    random = np.random.RandomState(2)
    hard, count = 100 * random.random_sample(28), np.full(28, 5.0)
    interval = difference(np.arange(28), (hard + 2.0, count), (hard, count))
    close(interval, [0.4, 0.4, 0.4], rtol=1e-9)
    assert interval.clear
    apart = difference(np.arange(28), (random.permutation(hard), count), (hard, count))
    assert apart.low < 0 < apart.high
    assert not apart.clear
    assert Interval(-1.0, -2.0, -0.5).clear


def test_sums_by_day_by_hand():
    """Two readings of one day with another's between them, and a day of which nothing is known is not there."""
    times = np.array(["1970-01-02T23:59", "1970-01-04T00:00", "1970-01-02T00:00"], dtype="datetime64[ns]")
    values = {"loss": np.array([1.0, 2.0, 1 / 3]), "size": np.array([1, 1, 1])}
    assert by_day(times, values) == {"day": [1.0, 3.0], "loss": [1.333333, 2.0], "size": [2.0, 1.0]}
