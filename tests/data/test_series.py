"""Series and their windows: by hand on a few rows, and against loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.data.series import Series, interval_of, readable

HOUR = np.timedelta64(1, "h")


def hours(*ends):
    """Hourly times over half-open ranges."""
    return np.concatenate([np.datetime64("2024-03-01T00") + np.arange(a, b) * HOUR for a, b in ends])


def numbered(rows, nodes=2, channels=1):
    return np.arange(rows * nodes * channels, dtype=float).reshape(rows, nodes, channels)


def test_windows_cross_no_break_in_time_no_border_and_no_end():
    series = Series(numbered(10), hours((0, 4), (6, 12)), borders=(8,))
    assert series.interval == HOUR
    assert series.breaks.tolist() == [4, 8]
    assert series.starts(3).tolist() == [0, 1, 4, 5]
    assert series.starts(4).tolist() == [0, 4]
    assert series.starts(2, stride=2).tolist() == [0, 2, 4, 6, 8]
    assert series.starts(5).tolist() == []
    assert Series(numbered(4)).starts(3).tolist() == [0, 1]  # no times: equally far apart
    assert np.array_equal(series.windows(np.array([0, 5]), 3)[1], series.values[5:8])


def test_windows_one_after_the_other_cover_every_row_once():
    series = Series(numbered(15), hours((0, 7), (9, 12), (20, 25)))
    starts, new = series.covering(3)
    assert (starts.tolist(), np.diff(new)[:, 0].tolist()) == ([0, 3, 4, 7, 10, 12], [3, 3, 1, 3, 3, 2])
    assert new[:, 1].tolist() == [3] * 6
    rows = np.concatenate([s + np.arange(*own) for s, own in zip(starts, new, strict=True)])
    assert rows.tolist() == list(range(15))
    assert Series(numbered(2)).covering(3)[0].tolist() == []


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 4))
@examples(100)
def test_windows_with_margins_cover_every_row_once_and_know_what_lies_around(lengths, steps, margin):
    margin = min(margin, (steps - 1) // 2)
    ends = np.cumsum(lengths)
    series = Series(numbered(int(ends[-1])), borders=tuple(ends[:-1].tolist()))
    starts, new = series.covering(steps, margin)
    rows = np.concatenate([s + np.arange(*own) for s, own in zip(starts, new, strict=True)] or [np.empty(0, int)])
    long = [s for s in series.stretches if s.stop - s.start >= steps]
    assert rows.tolist() == [row for s in long for row in range(s.start, s.stop)]
    for start, (low, high) in zip(starts.tolist(), new.tolist(), strict=True):
        (own,) = (s for s in long if s.start <= start and start + steps <= s.stop)  # no window crosses a border
        assert low >= min(margin, start + low - own.start)
        assert steps - high >= min(margin, own.stop - start - high)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=30), st.integers(1, 5), st.integers(1, 3))
@examples(50)
def test_every_window_is_of_consecutive_times_and_none_is_left_out(steps, length, stride):
    times = np.cumsum(steps).astype(float)
    series = Series(numbered(len(times)), times)
    inside = [k for k in range(len(times) - length + 1) if (np.diff(times[k : k + length]) == series.interval).all()]
    assert series.starts(length).tolist() == inside
    assert set(series.starts(length, stride)) <= set(inside)


def test_irregular_times_are_refused_with_the_steps_there_are_and_put_on_a_clock():
    times = np.datetime64("2024-03-01T00:00") + np.array([0, 5, 9, 15, 16, 30]) * np.timedelta64(1, "m")
    series = Series(numbered(6, 1), times)
    with pytest.raises(grcd.InputError, match=r"(?s)irregular times in x\.csv.*5min.*--every"):
        series.refuse_irregular("x.csv")
    regular = series.regular(np.timedelta64(5, "m"))
    assert regular.times.tolist() == (times[0] + 5 * np.arange(7) * np.timedelta64(1, "m")).tolist()
    # 0, 5, 9 -> 10, 15 and 16 -> 15 (their mean), nothing at 20 and 25, 30
    assert np.array_equal(regular.values[:, 0, 0], [0, 1, 2, 3.5, np.nan, np.nan, 5], equal_nan=True)
    regular.refuse_irregular("x.csv")
    assert regular.breaks.tolist() == []
    with pytest.raises(grcd.InputError, match="without times"):
        Series(numbered(3)).regular(5.0)
    with pytest.raises(grcd.InputError, match="at most"):
        series.regular(np.timedelta64(1, "ns"))


def test_times_that_jitter_are_told_the_clock_that_they_are_near():
    hours = np.arange(200) * np.timedelta64(3600, "s")
    jitter = np.random.RandomState(0).randint(-90, 91, 200) * np.timedelta64(1, "s")
    times = np.datetime64("2024-03-01T00:00:00") + hours + jitter
    with pytest.raises(grcd.InputError, match="--every 1h puts readings on a clock"):
        Series(numbered(200), times).refuse_irregular("x.csv")
    odd = np.datetime64("2024-03-01T00:00:00") + np.cumsum(np.array([47, 47, 3] * 20)) * np.timedelta64(1, "m")
    with pytest.raises(grcd.InputError, match="--every 47min puts readings on a clock"):
        Series(numbered(60), odd).refuse_irregular("x.csv")


def test_months_are_told_what_to_do():
    months = np.arange("2020-01", "2022-01", dtype="datetime64[M]").astype("datetime64[ns]")
    with pytest.raises(grcd.InputError, match=r"(?s)31d \(13 times\).*number the rows"):
        Series(numbered(24), months).refuse_irregular("x.csv")


def test_rounding_makes_no_steps():
    series = Series(numbered(50), 1.7e9 + 0.1 * np.arange(50))
    series.refuse_irregular("x.csv")
    assert series.breaks.tolist() == []
    assert series.interval == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("text", "seconds"), [("5min", 300), ("1h", 3600), (" 2 d", 172_800), ("30s", 30), ("0.5h", 1800)]
)
def test_an_interval_in_words(text, seconds):
    assert interval_of(text, hours((0, 2))) == np.timedelta64(seconds, "s")
    assert readable(interval_of(text, None)).replace("30min", "0.5h") == text.replace(" ", "")
    assert interval_of("2.5", np.arange(3.0)) == 2.5


@pytest.mark.parametrize("text", ["", "0min", "-5min", "five", "5m", "1e9999h", "nan", "5", "1.2.3h"])
def test_an_interval_that_is_none_is_refused(text):
    with pytest.raises(grcd.InputError, match="5min"):
        interval_of(text, hours((0, 2)))
    with pytest.raises(grcd.InputError, match="a number, as the times are"):
        interval_of("5min", np.arange(3))


def test_a_few_breaks_are_no_irregularity():
    Series(numbered(40), hours((0, 20), (25, 45))).refuse_irregular("x.csv")
    Series(numbered(2), hours((0, 1), (5, 6))).refuse_irregular("x.csv")


def test_autocorrelation_is_over_pairs_that_were_observed_within_a_stretch():
    random = np.random.RandomState(0)
    values = random.standard_normal((60, 3, 2))
    values[random.random_sample(values.shape) < 0.3] = np.nan
    values[:, 2, 1] = np.nan  # a node that lacks a channel
    series = Series(values, hours((0, 25), (30, 65)))
    lags = series.autocorrelation(np.array([1, 7]))
    there = [(node, channel) for node in range(3) for channel in range(2) if (node, channel) != (2, 1)]
    z = np.full_like(values, np.nan)
    for node, channel in there:
        x = values[:, node, channel]
        z[:, node, channel] = (x - np.nanmean(x)) / np.nanstd(x)
    for k, lag in enumerate((1, 7)):
        for channel in range(2):
            means = []
            for node in range(3):
                pairs = [
                    z[t, node, channel] * z[t + lag, node, channel]
                    for t in range(60 - lag)
                    if (t < 25) == (t + lag < 25) and np.isfinite(z[[t, t + lag], node, channel]).all()
                ]
                means += [np.mean(pairs)] if pairs else []
            close(lags[k, channel], np.mean(means), 1e-12)
