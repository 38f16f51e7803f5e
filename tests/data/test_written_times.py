"""A column of times as text: others in the same hand, and nothing of them lost."""

import numpy as np
import pytest

from grcd.core.errors import InputWarning
from grcd.data.times import parsed
from grcd.data.written_times import TimeColumn

DAY = np.datetime64("2024-03-01", "ns")


@pytest.mark.parametrize(
    "written",
    [
        ["2024-03-01 00:00:00", "2024-03-02 00:00:00"],
        ["2024-03-01", "2024-03-02"],
        ["2024-03", "2024-04"],
        ["2024-03-01T05Z", "2024-03-01T06Z"],
        ["2024-03-01T00:00:00.250", "2024-03-01T00:00:00.500"],
        ["2024-03-01T00:00-00:00", "2024-03-02T00:00-00:00"],
    ],
)
def test_times_come_back_as_they_were(written):
    column = TimeColumn.of("date", np.array(written))
    assert column.column(parsed(written, "x")) == {"date": written}


def test_an_offset_comes_back_with_its_own_clock():
    written = ["2024-03-01 00:30+01:00", "2024-03-01 12:30+01:00"]
    with pytest.warns(InputWarning, match="kept as UTC"):
        times = parsed(written, "x")
    assert TimeColumn.of("time", np.array(written)).text(times) == written


def test_a_hand_that_is_too_coarse_is_left():
    days = TimeColumn.of("time", np.array(["2024-03-01", "2024-03-02"]))
    assert days.text(DAY + np.array([0, 90], "timedelta64[s]")) == ["2024-03-01 00:00:00", "2024-03-01 00:01:30"]


@pytest.mark.parametrize("written", [["2024-03-01T00:00Z", "2024-03-01T01:00+00:00"], ["2024-3-1", "2024-3-1 01:00"]])
def test_where_no_hand_writes_all_times_are_to_the_minute(written):
    times = DAY + np.arange(2) * np.timedelta64(1, "h")
    assert TimeColumn.of("time", np.array(written)).text(times) == ["2024-03-01 00:00", "2024-03-01 01:00"]


def test_numbers_stay_numbers():
    numbers = np.array([3, 5])
    for cells in (numbers, np.array(["3", "5"]), np.array(["2024-03-01"])):
        assert TimeColumn.of("time", cells).text(numbers).tolist() == [3, 5]
