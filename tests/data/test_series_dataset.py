"""Series as datasets: splits, borders, clocks, files of their own; and what is refused, with a way out."""

import numpy as np
import pandas as pd
import pytest

import grcd
from grcd.data import load_series

HOUR = np.timedelta64(1, "h")
TIMES = np.datetime64("2024-03-01T00:00", "ns") + np.arange(40) * HOUR
W = np.ones((3, 3)) - np.eye(3)
GRAPH = grcd.Graph.from_adjacency(W, ["a", "b", "c"])
X = np.round(np.random.RandomState(0).standard_normal((60, 3)) + 10, 2)


def frame(rows=slice(0, 40), times=TIMES, columns=("a", "b", "c")):
    places = ["abc".index(name) for name in columns]
    return pd.DataFrame(X[rows][:, places], columns=list(columns), index=pd.Index(times, name="time"))


def test_splits_are_stretches_of_rows_and_borders_lie_between_them():
    data = load_series(frame(), GRAPH)
    assert data.splits == {"train": (slice(0, 28),), "val": (slice(28, 32),), "test": (slice(32, 40),)}
    assert data.series.borders == (28, 32)
    assert data.series.starts(4).max() == 36
    assert np.array_equal(data.part("val").values[:, :, 0], X[28:32])
    assert data.part("test").times.tolist() == TIMES[32:].tolist()
    assert data.origin.to_dict()["channels"] == ["value"]
    assert repr(data).splitlines()[:2] == ["SeriesDataset series: 28 / 4 / 8 rows (train / val / test)", "  value"]


def test_a_column_of_splits_cuts_wherever_it_changes(tmp_path):
    labels = ["train"] * 10 + ["test"] * 5 + ["train"] * 15 + ["val"] * 10
    frame().assign(fold=labels).to_csv(tmp_path / "x.csv")
    data = load_series(tmp_path / "x.csv", GRAPH, split_by="fold")
    assert data.splits == {
        "train": (slice(0, 10), slice(15, 30)),
        "val": (slice(30, 40),),
        "test": (slice(10, 15),),
    }
    assert data.series.breaks.tolist() == [10, 15, 30]
    assert data.part("train").breaks.tolist() == [10]
    assert data.part("train").starts(12).tolist() == [10, 11, 12, 13]


def test_files_of_their_own_begin_behind_a_border(tmp_path):
    frame().to_csv(tmp_path / "x.csv")
    later = TIMES[-1] + (1 + np.arange(20)) * HOUR  # goes on where the other ends: a border all the same
    frame(slice(40, 60), later, "cab").to_csv(tmp_path / "t.csv")
    data = load_series(tmp_path / "x.csv", GRAPH, test=tmp_path / "t.csv")
    assert data.splits == {"train": (slice(0, 35),), "val": (slice(35, 40),), "test": (slice(40, 60),)}
    assert np.array_equal(data.series.values[:, :, 0], X)
    assert data.series.breaks.tolist() == [35, 40]


def test_nodes_are_matched_dropped_and_hidden_with_them():
    data = load_series(frame(columns="cba"), GRAPH, drop=["b"])
    assert data.node_ids == ("a", "c")
    assert np.array_equal(data.series.values[:, :, 0], X[:40][:, [0, 2]])


def test_markers_are_gaps_before_readings_meet_on_a_clock():
    x = frame(slice(0, 4), TIMES[0] + np.array([0, 60, 64, 240]) * np.timedelta64(1, "m"))
    x.iloc[2, 0] = -1.0
    series = pd.concat([x, frame(slice(4, 30), TIMES[0] + (5 + np.arange(26)) * HOUR)])
    data = load_series(series, GRAPH, missing=[-1.0], every="1h")
    assert len(data.series) == 31
    assert data.series.values[1, 0, 0] == X[1, 0]  # the marker beside it is no reading
    assert data.series.values[1, 1, 0] == pytest.approx((X[1, 1] + X[2, 1]) / 2)
    assert np.isnan(data.series.values[2:4]).all()
    assert (data.series.breaks.tolist(), data.origin.every) == ([21, 24], "1h")


def test_markers_are_gaps_in_every_channel():
    x = np.stack([X[:40], X[:40] + 5], axis=2)
    x[3, 1, 0] = x[4, 2, 1] = -9999.0
    frames = {name: pd.DataFrame(x[:, :, k], TIMES, ["a", "b", "c"]) for k, name in enumerate(("temp", "wind"))}
    data = load_series(frames, GRAPH.permuted([2, 0, 1]), missing=[-9999.0])
    assert np.argwhere(np.isnan(data.series.values)).tolist() == [[3, 2, 0], [4, 0, 1]]  # b, c -> places 2, 0


def irregular(rows=40):
    gaps = np.random.RandomState(1).randint(1, 5, rows)
    return frame(slice(0, rows), TIMES[0] + np.cumsum(gaps) * np.timedelta64(5, "m"))


def never(column):
    x = frame()
    x[column] = np.nan
    return x


BAD = {
    "irregular": (irregular(), {}, r"(?s)irregular times in series: steps of .*5min.*\(\d+ times\).*--every \d+min"),
    "duplicates": (frame(times=np.r_[TIMES[:20], TIMES[:20]]), {}, "times that occur twice in the index"),
    "every without times": (X, {"every": "1h"}, "rows without times"),
    "every in words": (frame(), {"every": "often"}, "(?s)--every often.*5min"),
    "filled": (frame(), {"fill": "linear"}, "(?s)--fill linear.*leave --fill out"),
    "capped": (frame(), {"cap": [10]}, "--cap for series in time"),
    "random": (frame(), {"split_by": "random"}, "a random split of series"),
    "a node never read": (never("b"), {}, "1 node without a reading among the training rows: b"),
    "a node that is not there": (frame(columns="ab"), {}, r"1 missing \(c\)"),
    "nothing at all": (never(["a", "b", "c"]), {}, "without a single reading of value"),
    "columns": (X[:, :2], {}, r"(?s)2 nodes without names.*3, as the graph has"),
}


@pytest.mark.parametrize(("source", "options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_a_way_out(source, options, message):
    with pytest.raises(grcd.InputError, match=message):
        load_series(source, GRAPH, **options)


@pytest.mark.filterwarnings("ignore")
def test_the_way_out_of_irregular_times_is_one():
    data = load_series(irregular(), GRAPH, every="5min")
    assert data.series.interval == np.timedelta64(5, "m")
    assert np.isfinite(data.series.values).sum() == 40 * 3


def test_fewer_rows_than_a_window():
    data = load_series(frame(), GRAPH)
    data.refuse_short(4)
    with pytest.raises(grcd.InputError, match=r"(?s)of 5 rows, and 4 validation rows at most.*--window 4 or less"):
        data.refuse_short(5)
    with pytest.raises(grcd.InputError, match="and 28 training rows at most"):
        data.refuse_short(30)
    data.refuse_short(8, ["test"])


def test_times_that_do_not_fit_the_rows():
    with pytest.raises(grcd.InputError, match=r"\(39,\) times for 40 rows"):
        load_series(X[:40], GRAPH, times=TIMES[:39])
    with pytest.raises(grcd.InputError, match="without a graph"):
        load_series(X[:40])
    with pytest.raises(grcd.InputError, match="option 'windw'"):
        load_series(X[:40], GRAPH, windw=3)


def test_another_file_has_to_have_the_channels(tmp_path):
    frame().to_csv(tmp_path / "a.csv")
    with pytest.raises(grcd.InputError, match=r"without temp"):
        load_series(f"temp={tmp_path / 'a.csv'}", GRAPH, test=f"wind={tmp_path / 'a.csv'}")


def test_a_part_has_the_interval_of_the_whole_and_breaks_at_every_other_step(tmp_path):
    hours = np.arange(40)
    hours[29:] += np.minimum(np.arange(1, 12), 3)  # rows that validate are two hours apart
    times = TIMES[0] + hours * HOUR
    val = load_series(frame(times=times), GRAPH).part("val")
    assert val.interval == HOUR
    assert val.breaks.tolist() == [1, 2, 3]
    assert val.rows(slice(0, 3)).breaks.tolist() == [1, 2]
    frame().to_csv(tmp_path / "x.csv")
    frame(slice(40, 60), TIMES[-1] + (1 + np.arange(20)) * 24 * HOUR).to_csv(tmp_path / "daily.csv")
    with pytest.raises(grcd.InputError, match="every 1d"):
        load_series(tmp_path / "x.csv", GRAPH, val=tmp_path / "daily.csv")
