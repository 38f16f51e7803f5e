"""The calendar of rows: against Python's own, and by hand."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import each_close, examples

from grcd.data.clock import Clock
from grcd.data.series import Series


def series(start, step, rows):
    times = np.datetime64(start, "ns") + np.arange(rows) * step
    return Series(np.zeros((rows, 1, 1)), times)


MINUTE, HOUR, DAY = (np.timedelta64(1, unit) for unit in "mhD")


@pytest.mark.parametrize(
    ("step", "slots", "kinds"),
    [
        (5 * MINUTE, 288, 2),
        (1 * MINUTE, 288, 2),
        (np.timedelta64(7, "s"), 288, 2),
        (1 * HOUR, 24, 2),
        (6 * HOUR, 4, 2),
        (7 * HOUR, 24, 2),
        (36 * HOUR, 2, 2),
        (1 * DAY, 1, 2),
        (7 * DAY, 1, 1),
    ],
)
def test_slots_are_those_of_the_interval(step, slots, kinds):
    rows = series("2024-03-01", step, 60)
    clock = Clock.of(rows)
    assert (clock.slots, clock.kinds, clock.yearly) == (slots, kinds, False)
    assert clock.slot(rows.times).max() < slots
    assert clock.features(rows.times).shape == (60, len(clock.names))


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)))
@examples(100)
def test_it_is_pythons_calendar(moment):
    times = np.array([moment], dtype="datetime64[us]").astype("datetime64[ns]")
    clock = Clock(24, 2, True)
    weekend = int(moment.weekday() >= 5)
    assert (clock.slot(times)[0], clock.kind(times)[0], clock.day(times)[0]) == (
        moment.hour,
        weekend,
        moment.weekday(),
    )
    day = (moment - datetime(moment.year, moment.month, moment.day)).total_seconds() / 86_400
    length = datetime(moment.year + 1, 1, 1) - datetime(moment.year, 1, 1)
    year = (moment - datetime(moment.year, 1, 1)) / length
    waves = [wave(2 * math.pi * turn) for turn in (day, 2 * day) for wave in (math.sin, math.cos)]
    expected = [*waves, weekend, math.sin(2 * math.pi * year), math.cos(2 * math.pi * year)]
    each_close(clock.features(times)[0] + 2.0, np.array(expected) + 2.0, 1e-6)
    waves = [wave(2 * math.pi * k * year) for k in (1, 2, 3) for wave in (math.sin, math.cos)]
    each_close(clock.year(times)[0] + 2.0, np.array(waves) + 2.0, 1e-9)


def test_the_year_counts_where_there_are_years():
    assert not Clock.of(series("2014-05-01", DAY, 365)).yearly
    assert Clock.of(series("2013-03-01", DAY, 4 * 365)).yearly
    assert Clock.of(series("2013-03-01", DAY, 4 * 365)).names == ("weekend", "sin year", "cos year")


def test_without_dates_nothing_is_known():
    for times in (None, np.arange(5.0)):
        clock = Clock.of(Series(np.zeros((5, 1, 1)), times))
        assert clock == Clock()
        rows = np.arange(5)
        assert clock.features(rows).shape == (5, 0)
        assert not clock.slot(rows).any()
        assert not clock.kind(rows).any()


def test_it_comes_back_from_a_run():
    clock = Clock.of(series("2013-03-01", HOUR, 3 * 24 * 365))
    assert Clock.from_dict(clock.to_dict()) == clock == Clock(24, 2, True)
