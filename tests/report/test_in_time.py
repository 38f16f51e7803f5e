"""Facts of rows in time, against series of which they are known."""

import json

import numpy as np
import pandas as pd
import pytest
from laws import close

import grcd
from grcd.data.series import Series
from grcd.data.series_dataset import SeriesDataset
from grcd.graphs.graph import Graph
from grcd.report import in_time
from grcd.report.inspection import inspect
from grcd.report.window import Window

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00:00", "ns")
W = np.ones((3, 3)) - np.eye(3)


def series(rows, phi=0.0, day=0.0, seed=0):
    """An autoregression of variance 1 at three nodes, on a cosine of the day."""
    random = np.random.RandomState(seed)
    noise = random.standard_normal((rows, 3, 1))
    x = noise.copy()
    for t in range(1, rows):
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * noise[t]
    clock = day * np.sqrt(2) * np.cos(2 * np.pi * np.arange(rows) / 24)[:, None, None]
    return Series(x + clock, START + np.arange(rows) * HOUR)


def facts(s):
    return in_time.facts(s, ["x"], ["m"])


def test_autocorrelation_of_an_autoregression():
    f = facts(series(20_000, phi=0.8))
    assert [*f["autocorrelation"]] == ["1h", "6h", "1d", "1week"]
    close(np.array([*f["autocorrelation"].values()][:2]), np.array([0.8, 0.8**6]), 0.05)
    assert (f["interval"], f["breaks"], f["longest_stretch"]) == ("1h", 0, 20_000)


@pytest.mark.parametrize(("day", "share"), [(1.0, 0.5), (2.0, 0.8), (0.0, 0.0)])
def test_the_calendar_explains_its_share_of_the_variance(day, share):
    assert facts(series(20_000, day=day))["calendar_explains"] == pytest.approx(share, abs=0.02)


def test_a_window_as_long_as_the_past_helps():
    suggested = [facts(series(20_000, phi))["window_suggested"] for phi in (0.0, 0.2, 0.6, 0.9, 0.99)]
    assert suggested == [1, 2, 4, 16, 36]  # .6^2 = .36, .9^8 = .43 and .9^12 = .28
    assert facts(series(20_000, 0.0, day=2.0))["window_suggested"] == 4  # the calendar has it all: a short one knows it
    assert facts(series(100, 0.99))["window_suggested"] == 8  # ten of them in a hundred rows


def test_of_many_columns_no_window_is_tried_and_that_is_the_reason(monkeypatch):
    """Whatever a row says of the next one."""
    data = SeriesDataset(
        "x",
        series(400, 0.9),
        Graph.from_adjacency(W),
        ("x",),
        ("m",),
        {"train": (slice(0, 300),), "val": (slice(300, 400),)},
    )
    assert "gains" in Window.of(data).why
    monkeypatch.setattr(in_time, "MOST", 5)
    assert (Window.of(data).steps, Window.of(data).why.partition(" no ")[0]) == (1, "of so many columns")


def test_breaks_and_what_is_missing_by_channel():
    s = series(50, 0.9)
    values = np.concatenate([s.values, s.values + 5], axis=2)
    values[:10, :, 1] = np.nan
    times = s.times.copy()
    times[20:] += 3 * HOUR
    f = in_time.facts(Series(values, times), ["a", "b"], ["m", ""])
    assert (f["breaks"], f["longest_stretch"]) == (1, 30)
    assert (f["channels"]["a"]["missing"], f["channels"]["b"]["missing"]) == (0.0, 0.2)
    assert f["channels"]["b"]["range"] == [np.nanmin(values[..., 1]), np.nanmax(values[..., 1])]


def test_without_times_lags_are_rows_and_there_is_no_calendar():
    f = facts(Series(series(400, 0.9).values))
    assert [*f["autocorrelation"]] == ["1 row", "3 rows", "10 rows", "30 rows"]
    assert (f["interval"], f["calendar_explains"], f["window_suggested"] > 1) == (None, None, True)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_few_rows_are_no_reason_to_fail(rows):
    assert facts(series(rows))["window_suggested"] == 1
    assert in_time.lines(facts(series(rows)))


@pytest.fixture
def files(tmp_path):
    s = series(300, 0.9, day=1.0)
    for name in ("temp", "wind"):
        frame = pd.DataFrame(s.values[:, :, 0] + 9, columns=["a", "b", "c"], index=pd.Index(s.times, name="time"))
        frame.to_csv(tmp_path / f"{name}.csv")
    np.savez(tmp_path / "g.npz", adjacency=W, node_ids=["a", "b", "c"])
    return tmp_path


def test_several_channels_on_one_screen(files, here):
    sources = [f"{name}={files / f'{name}.csv'}" for name in ("temp", "wind")]
    shown = inspect(sources, files / "g.npz", unit="degC,m/s")
    assert shown.ready
    assert shown.signals["channels"] == ["temp", "wind"]
    assert shown.method["split"] == [210, 30, 60]
    text = str(shown)
    assert len(text.splitlines()) < 25
    for part in (
        "rows        300, every 1h",
        "sensors     3, 2 channels",
        "degC, 0.0% missing",
        "; no break",
        "after 6h",
        "window",
    ):
        assert part in text
    result = here("data", "inspect", *sources, "--graph", str(files / "g.npz"), "--json", cwd=files)
    assert json.loads(result.stdout)["time"]["window_suggested"] == shown.time["window_suggested"]
    assert "no graph was given" in str(inspect(sources))


def test_one_channel_shows_its_rows_in_time_and_says_where_they_are_irregular(files):
    shown = inspect(files / "temp.csv")
    assert shown.time["interval"] == "1h"
    assert "calendar" in str(shown)
    frame = pd.read_csv(files / "temp.csv")
    frame = frame[np.random.RandomState(0).random_sample(len(frame)) < 0.6]
    frame.to_csv(files / "holes.csv", index=False)
    holes = inspect(files / "holes.csv")
    assert any("irregular times" in what and "--every 1h" in do for what, do in holes.warnings)
    clocked = inspect(files / "holes.csv", every="1h")
    assert clocked.time["breaks"] == 0
    assert clocked.signals["missing"] == pytest.approx(1 - len(frame) / clocked.signals["samples"])


def test_signals_without_an_order_show_none():
    assert inspect(series(30).values[:, :, 0], W, split_by="random").time == {}
    with pytest.raises(grcd.InputError, match="5min"):
        inspect(series(30).values[:, :, 0], W, every="often")
