"""Data frames in and out, against pandas' own arithmetic of labels."""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError, InputWarning
from grcd.data.frames import Frame

NODES = ("a", "b", "c")


def frame(index, columns=NODES, seed=0):
    values = np.random.RandomState(seed).standard_normal((len(index), len(columns)))
    values[values > 1] = np.nan
    return pandas.DataFrame(values, index, columns)


def hours(count, start="2024-03-30", **options):
    return pandas.date_range(start, periods=count, freq="h", **options)


@given(rows=st.permutations(range(6)), columns=st.permutations(NODES), zone=st.sampled_from([None, "Europe/Paris"]))
@examples(30)
def test_what_comes_out_is_what_went_in_and_rows_between_are_in_order(rows, columns, zone):
    ordered = frame(hours(6, tz=zone, name="when"))
    shuffled = ordered.iloc[list(rows)][list(columns)]
    shuffled.columns.name = "station"
    inside = Frame.of(shuffled, NODES)
    np.testing.assert_array_equal(inside.values[:, :, 0], ordered.to_numpy())
    clock = ordered.index if zone is None else ordered.index.tz_convert("UTC").tz_localize(None)
    np.testing.assert_array_equal(inside.times, clock.to_numpy())
    pandas.testing.assert_frame_equal(inside.table(inside.values), shuffled, check_freq=False)


@given(rows=st.permutations(range(6)), columns=st.permutations(NODES))
@examples(10)
def test_quantiles_stand_beside_each_other_under_their_column(rows, columns):
    shuffled = frame(hours(6)).iloc[list(rows)][list(columns)]
    inside, levels = Frame.of(shuffled, NODES), [0.05, 0.5, 0.95]
    bands = inside.bands(np.stack([inside.values + shift for shift in (-1, 0, 1)]), levels)
    assert list(bands.columns) == [(node, level) for node in columns for level in levels]
    assert bands.columns.names == [None, "quantile"]
    assert bands.index.equals(shuffled.index)
    for node in columns:
        for shift, level in zip((-1, 0, 1), levels, strict=True):
            np.testing.assert_array_equal(bands[node, level], shuffled[node] + shift)


def test_channels_are_the_second_level_and_a_node_may_lack_one():
    pairs = [("b", "wind"), ("a", "temp"), ("b", "temp")]
    columns = pandas.MultiIndex.from_tuples(pairs, names=["node", "channel"])
    readings = frame(hours(5), columns)
    inside = Frame.of(readings, ("a", "b"), ("temp", "wind"))
    assert np.isnan(inside.values[:, 0, 1]).all()
    for node, channel in pairs:
        cells = inside.values[:, ("a", "b").index(node), ("temp", "wind").index(channel)]
        np.testing.assert_array_equal(cells, readings[node, channel])
    pandas.testing.assert_frame_equal(inside.table(inside.values), readings)
    bands = inside.bands(inside.values[None], [0.5])
    assert bands.columns.names == ["node", "channel", "quantile"]
    np.testing.assert_array_equal(bands["b", "wind", 0.5], readings["b", "wind"])


@pytest.mark.parametrize(
    "index",
    [
        hours(30),
        hours(30, tz="Europe/Paris"),  # summer time begins in it
        hours(30, tz="Europe/Paris").tz_convert("Asia/Kolkata").as_unit("ns"),
        pandas.date_range("2024-01-31", periods=30, freq="ME", name="month"),
        pandas.period_range("2024-01", periods=30, freq="M"),
        pandas.RangeIndex(30),
        pandas.RangeIndex(100, 160, 2),
    ],
)
def test_an_index_goes_on_as_it_began(index):
    begun = Frame.of(frame(index[:20]), NODES)
    ahead = begun.ahead(10)
    pandas.testing.assert_index_equal(ahead, index[20:])
    values = np.random.RandomState(1).standard_normal((10, 3, 1))
    np.testing.assert_array_equal(begun.table(values, ahead).to_numpy(), values[:, :, 0])


def test_dates_without_a_frequency_go_on_by_their_commonest_step():
    index = hours(30)
    gone = index[[0, 1, 2, 3, 7, 8, 9]]
    assert gone.freq is None
    assert Frame.of(frame(gone[::-1]), NODES).ahead(3).equals(index[10:13])
    assert Frame.of(frame(index[9::-1]), NODES).ahead(3).equals(index[10:13])
    assert list(Frame.of(frame(["x", "y"]), NODES).ahead(2)) == [2, 3]
    with pytest.raises(InputError, match="a single row"):
        Frame.of(frame(pandas.DatetimeIndex(["2024-01-01"])), NODES).ahead(1)


def test_names_are_compared_as_text_and_gaps_may_be_of_any_kind():
    readings = pandas.DataFrame({7: [1, None], 8: [2, 3]}, dtype="Float64")
    inside = Frame.of(readings, ("8", "7"))
    np.testing.assert_array_equal(inside.values[:, :, 0], [[2, 1], [3, np.nan]])
    assert list(inside.table(inside.values).columns) == [7, 8]
    assert inside.times is None


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        (frame(hours(3), ["a", "b", "d"]), "does not know: d"),
        (frame(hours(3), ["a", "b"]), "without c"),
        (frame(hours(3), ["a", "b", "c", "a"]), "come twice: a"),
        (frame(hours(3)).assign(c=[1.5, "x", "z"]), r"'x' in row 2 \(2024-03-30 01:00:00\), column 'c'"),
        (frame(hours(3)[[0, 1, 1]]), "occur twice in the index"),
        (frame(pandas.DatetimeIndex(["2024-01-01", pandas.NaT])), "row 2 of the index"),
    ],
)
def test_frames_that_do_not_fit_are_refused(readings, words):
    with pytest.raises(InputError, match=words):
        Frame.of(readings, NODES)


STYLES = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.000Z"]


@given(rows=st.permutations(range(6)), style=st.sampled_from(STYLES))
@examples(20)
def test_dates_that_are_written_as_text_are_times_and_come_back_as_they_were(rows, style):
    dates = hours(9)
    text = frame(dates[:6].strftime(style).astype(object)).iloc[list(rows)]
    inside = Frame.of(text, NODES)
    np.testing.assert_array_equal(inside.times, dates[:6].to_numpy())
    pandas.testing.assert_frame_equal(inside.table(inside.values), text)
    assert list(inside.ahead(3)) == list(dates[6:].strftime(style))


def test_text_with_an_offset_goes_on_with_it():
    text = [f"2024-03-30T0{hour}:00+01:00" for hour in range(3)]
    with pytest.warns(InputWarning, match="kept as UTC"):
        inside = Frame.of(frame(text), NODES)
    assert inside.times[0] == np.datetime64("2024-03-29T23:00")
    assert list(inside.ahead(2)) == ["2024-03-30T03:00+01:00", "2024-03-30T04:00+01:00"]


def test_days_as_text_and_dates_as_objects_are_times():
    days = pandas.date_range("2024-02-27", periods=5)
    assert list(Frame.of(frame(days[:3].strftime("%Y-%m-%d")), NODES).ahead(2)) == ["2024-03-01", "2024-03-02"]
    objects = Frame.of(frame(pandas.Index([day.date() for day in days], dtype=object)), NODES)
    np.testing.assert_array_equal(objects.times, days.to_numpy())
    assert Frame.of(frame(["s1", "s2"]), NODES).times is None
    with pytest.raises(InputError, match="'soon' as time in row 2 of the index"):
        Frame.of(frame(["2024-02-27", "soon"]), NODES)


@given(columns=st.permutations(NODES), rows=st.permutations(range(4)))
@examples(10)
def test_draws_are_in_the_order_of_the_frame(columns, rows):
    mixed = frame(hours(4)).iloc[list(rows)][list(columns)]
    inside = Frame.of(mixed, NODES)
    np.testing.assert_array_equal(inside.draws(inside.values[None])[0], mixed.to_numpy())
    np.testing.assert_array_equal(inside.scores(inside.values[:, 1, 0], "b"), mixed["b"])


def test_a_node_without_a_column_is_a_gap_where_that_may_be_and_comes_back_last():
    known = frame(hours(3), ["c", "a"])
    known.columns.name = "station"
    with pytest.warns(InputWarning, match="no column for b: all of their readings are gaps"):
        inside = Frame.of(known, NODES, absent=True)
    assert np.isnan(inside.values[:, 1]).all()
    back = inside.table(inside.values)
    assert list(back) == ["c", "a", "b"]
    assert back.columns.name == "station"
    pandas.testing.assert_frame_equal(back[["c", "a"]], known)
    with pytest.warns(InputWarning, match="no column for 7"):
        assert list(Frame.of(frame(hours(3), [8]), ("7", "8"), absent=True).columns) == [8, 7]
    with pytest.raises(InputError, match="does not know"):
        Frame.of(frame(hours(3), ["x", "y"]), NODES, absent=True)


def test_a_channel_without_a_column_is_a_gap_too_unless_nothing_is_known_of_it():
    pairs = pandas.MultiIndex.from_tuples([("b", "wind"), ("a", "temp")], names=["node", "channel"])
    known = frame(hours(3), pairs)
    with pytest.warns(InputWarning, match=r"no column for c, temp of b: all of their readings are gaps"):
        inside = Frame.of(known, NODES, ("temp", "wind"), absent=True, lacking={("a", "wind")})
    back = inside.table(inside.values)
    assert list(back) == [*pairs, ("b", "temp"), ("c", "temp"), ("c", "wind")]
    pandas.testing.assert_frame_equal(back[[*pairs]], known)


def test_rows_that_are_not_in_time_stay_as_they_are():
    mixed = frame(hours(4)).iloc[[2, 2, 0]]  # one of them twice
    inside = Frame.of(mixed, NODES, timed=False)
    np.testing.assert_array_equal(inside.values[..., 0], mixed.to_numpy())
    pandas.testing.assert_frame_equal(inside.table(inside.values), mixed)
