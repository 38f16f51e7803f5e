"""When rows are: intervals, stretches, windows by number, the times to come."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError
from grcd.data.series import Series
from grcd.data.timeline import Timeline

HOUR = np.timedelta64(3_600_000_000_000, "ns")
DAY = np.datetime64("2024-02-28T22:00", "ns")


def rows(times):
    return Series(np.zeros((len(times), 1, 1)), np.asarray(times))


def dated(*hours):
    return rows(DAY + np.array(hours) * HOUR)


def numbered(*numbers):
    return rows(np.array(numbers, dtype=float))


def without(count):
    return Series(np.zeros((count, 1, 1)))


BROKEN = 0, 1, 2, 3, 7, 8, 9, 20, 21


@pytest.mark.parametrize("series", [dated(*BROKEN), numbered(*BROKEN), without(9), dated(0)])
def test_a_timeline_comes_back_from_json(series):
    timeline = Timeline.of(series)
    assert Timeline.from_dict(json.loads(json.dumps(timeline.to_dict()))) == timeline


@given(steps=st.integers(1, 5), gaps=st.lists(st.integers(1, 3), min_size=1, max_size=12))
@examples(50)
def test_windows_by_number_are_those_of_the_series_in_order(steps, gaps):
    """Hours that are mostly one apart."""
    hours = np.cumsum([0, 1, 1, 1, 1, *gaps])
    series = dated(*hours)
    timeline, starts = Timeline.of(series), series.starts(steps)
    assert timeline.windows(steps).sum() == len(starts)
    if series.interval == HOUR and len(starts):
        expected = series.times[starts[:, None] + np.arange(steps)]
        np.testing.assert_array_equal(timeline.times(np.arange(len(starts)), steps), expected)


def test_rows_without_times_have_windows_without_times():
    timeline = Timeline.of(without(9))
    assert timeline.windows(4).tolist() == [6]
    assert timeline.times(np.arange(6), 4) is None
    assert timeline.ahead(without(9), 3) is None


def test_the_rows_to_come_go_on_by_the_interval_of_training():
    timeline = Timeline.of(dated(*BROKEN))
    np.testing.assert_array_equal(timeline.ahead(dated(30), 2), DAY + np.array([31, 32]) * HOUR)
    np.testing.assert_array_equal(Timeline.of(numbered(0, 0.5, 1.0)).ahead(numbered(7), 2), [7.5, 8.0])


def test_a_window_starts_when_it_is_told():
    timeline = Timeline.of(dated(*BROKEN))
    start = np.datetime64("2030-01-01T05:00")
    np.testing.assert_array_equal(timeline.starting("2030-01-01T05:00", 3), start + np.arange(3) * HOUR)
    np.testing.assert_array_equal(Timeline.of(numbered(0, 2, 4)).starting("6", 3), [6, 8, 10])


@pytest.mark.parametrize(
    ("series", "start", "words"),
    [
        (dated(0, 1, 2), "soon", "a date"),
        (numbered(0, 1, 2), "soon", "a number"),
        (without(3), "2024-01-01", "no times"),
    ],
)
def test_a_start_that_is_none_is_refused(series, start, words):
    with pytest.raises(InputError, match=words):
        Timeline.of(series).starting(start, 2)


@pytest.mark.parametrize(
    ("trained", "other", "words"),
    [
        (dated(0, 1, 2), dated(0, 2, 4), "every 2h"),
        (dated(0, 1, 2), without(3), "without times"),
        (dated(0, 1, 2), numbered(0, 1, 2), "numbers as times"),
        (numbered(0, 1, 2), dated(0, 1, 2), "dates as times"),
        (numbered(0, 1, 2), numbered(0, 1.5, 3), "every 1.5"),
    ],
)
def test_rows_of_another_clock_are_refused(trained, other, words):
    with pytest.raises(InputError, match=words):
        Timeline.of(trained).refuse_other(other)


def test_rows_of_the_same_clock_are_taken_and_a_single_row_has_any():
    Timeline.of(dated(0, 1, 2)).refuse_other(dated(100, 101, 107))
    Timeline.of(dated(0, 1, 2)).refuse_other(dated(5))
    Timeline.of(numbered(0, 0.1, 0.2)).refuse_other(numbered(0.3, 0.4, 0.5))
    Timeline.of(without(3)).refuse_other(dated(0, 1))
