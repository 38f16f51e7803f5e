"""Covariates: which number a row has, by a search of one row at a time; and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError
from grcd.data.covariates import Covariates

MINUTE, HOUR, DAY = (np.timedelta64(1, unit).astype("timedelta64[ns]") for unit in "mhD")
START = np.datetime64("2024-01-01", "ns")


def daily(values, **more):
    return Covariates.of(np.array(values, float), times=START + np.arange(len(values)) * DAY, **more)


@given(st.integers(14, 40), st.integers(1, 12), st.lists(st.integers(0, 45 * 24), min_size=1, max_size=20).map(sorted))
@examples(100)
def test_a_row_has_the_last_number_at_or_before_it_while_that_holds(count, hole, hours):
    days = [day for day in range(2, count) if day != hole + 2]
    values = np.arange(len(days)) + 1.0
    covariates = Covariates.of(values, times=START + np.array(days) * DAY)
    holds = covariates.holds / DAY
    times = START + np.array(hours) * HOUR
    if hours[0] < 24 * days[0] or hours[-1] >= 24 * (days[-1] + holds):
        with pytest.raises(InputError):
            covariates.at(times, len(times))
        return
    for hour, number in zip(hours, covariates.at(times, len(times))[:, 0], strict=True):
        before = [k for k, day in enumerate(days) if 24 * day <= hour]
        expected = values[before[-1]] if before and hour - 24 * days[before[-1]] < 24 * holds else np.nan
        np.testing.assert_equal(number, expected)


def test_a_day_serves_its_rows_of_five_minutes_to_the_last_and_no_further():
    covariates = daily([1, 0, 5])
    times = START + np.arange(3 * 288) * 5 * MINUTE
    np.testing.assert_array_equal(covariates.at(times, 864)[:, 0], np.repeat([1.0, 0, 5], 288))
    with pytest.raises(InputError) as error:
        covariates.at(times + 5 * MINUTE, 864)
    assert error.value.got == "'covariate 1' in the covariates to 2024-01-03 00:00, by 1d"
    assert error.value.expected == "a number to 2024-01-04 00:00, where the rows end"
    assert error.value.do == "give it further, or forecast fewer rows"
    with pytest.raises(InputError, match="from 2024-01-01 00:00 on"):
        covariates.at(times - 5 * MINUTE, 864)


def test_months_hold_until_the_next():
    covariates = Covariates.of(
        pd.DataFrame({"rate": [1.0, 2, 3, 4]}, pd.date_range("2024-01-01", periods=4, freq="MS"))
    )
    days = np.arange("2024-01-01", "2024-05-02", dtype="datetime64[D]").astype("datetime64[ns]")
    expected = days.astype("datetime64[M]").astype(int) - 648 + 1
    np.testing.assert_array_equal(covariates.at(days[:-1], len(days) - 1)[:, 0], expected[:-1])
    with pytest.raises(InputError, match="forecast fewer rows"):
        covariates.at(days + DAY, len(days))


def test_by_number_where_there_are_no_times():
    covariates = Covariates.of(np.arange(10.0)[:, None] * [1, 10], names=["a", "b"])
    np.testing.assert_array_equal(covariates.at(None, 3, 4), [[4, 40], [5, 50], [6, 60]])
    np.testing.assert_array_equal(covariates.at(START + np.arange(3) * DAY, 3, 7)[:, 0], [7, 8, 9])
    with pytest.raises(InputError, match=r"from row 1 to row 10(.|\n)*from row 9 to row 11(.|\n)*fewer rows"):
        covariates.at(None, 3, 8)
    with pytest.raises(InputError, match="for rows without"):
        daily([1, 2, 3]).at(None, 3)


def test_what_is_missing_inside_is_not_known_and_said_and_an_early_end_is_refused():
    covariates = Covariates.of(pd.DataFrame({"a": [1, np.nan, 3, 4], "b": [1.0, 2, 3, np.nan]}))
    assert [str(note) for note in covariates.notes] == [
        "numbers missing in the covariates: a (1): there a covariate says nothing; write 0 if 0 is meant"
    ]
    np.testing.assert_array_equal(covariates.at(None, 3), [[1, 1], [np.nan, 2], [3, 3]])
    with pytest.raises(InputError, match="'b' in the covariates from row 1 to row 3"):
        covariates.at(None, 4)
    np.testing.assert_array_equal(covariates.named(["a"]).at(None, 4)[:, 0], [1, np.nan, 3, 4])
    with pytest.raises(InputError, match="without c"):
        covariates.named(["a", "c"])


def test_files_of_any_format(tmp_path):
    times = START + np.arange(5) * HOUR
    frame = pd.DataFrame({"holiday": [0, 0, 1, 1, 0], "price": [1.5, 2, 2.5, 3, 1]}, times)
    frame[::-1].to_csv(tmp_path / "known.csv", index_label="time")
    frame.to_parquet(tmp_path / "known.parquet")
    np.savez(tmp_path / "known.npz", signals=frame.to_numpy(float), node_ids=list(frame), timestamps=times)
    for file in sorted(tmp_path.iterdir()):
        covariates = Covariates.read(file)
        assert covariates.names == ("holiday", "price")
        np.testing.assert_array_equal(covariates.at(times[1:4], 3), frame.to_numpy(float)[1:4])
        np.testing.assert_array_equal(covariates.named(["price"]).at(times, 5)[:, 0], frame["price"])


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("time,a\n2024-01-01,1\n2024-01-01,2\n", "times that occur twice"),
        ("time,a\n2024-01-01,1\n2024-01-03,2\n2024-01-09,2\n2024-02-09,2\n", "irregular times in .*: steps of 2d"),
        ("time,a\n2024-01-01,1\n2024-01-02,sunny\n", "'sunny' in row 2, column 'a'"),
        ("time,a\n2024-01-01,1\n2024-01-02,inf\n", "infinite numbers in 'a'"),
        ("time,a,b\n2024-01-01,1,\n2024-01-02,2,\n", "no number at all in b"),
        ("time,a\n2024-01-01,1\n", "at a single time"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, got):
    file = tmp_path / "known.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=got):
        Covariates.read(file)


def test_bad_arrays_are_refused():
    with pytest.raises(InputError, match="cells that are not numbers"):
        Covariates.of(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(InputError, match="one a row"):
        Covariates.of(np.zeros((3, 1)), times=START + np.arange(2) * DAY)
    with pytest.raises(InputError, match="each once"):
        Covariates.of(np.zeros((3, 2)), names=["a", "a"])
    with pytest.raises(InputError, match="dates in the rows and numbers in the covariates"):
        Covariates.of(np.zeros(3), times=[1, 2, 3]).at(START + np.arange(2) * DAY, 2)
