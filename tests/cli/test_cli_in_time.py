"""Rows in time on the command line: trained, filled, forecast, sampled, scored; every layout, and what is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray
from commands import refused

import grcd
from grcd.data import load_series
from grcd.data.formats.channels import read_channels
from grcd.data.formats.windows import read_windows
from grcd.data.series import Series
from grcd.diffusion.diffusion import Diffusion
from grcd.metrics.ensemble import quantiles
from grcd.report.inspection import inspect
from grcd.series_model import SeriesModel
from grcd.training import past

NODES, NAMES = ["a", "b", "c", "d"], ["temp", "wind"]
ROWS, HOUR = 240, np.timedelta64(1, "h")
TIMES = np.datetime64("2024-01-01", "ns") + np.arange(ROWS) * HOUR
SMALL = ["--graph", "g.csv", "--device", "cpu", "--max-updates", 4, "--set", "width=8", "--set", "blocks=1"]


def readings(phi=0.9, seed=0):
    """An autoregression that its nodes share in part, in two channels; a few gaps."""
    random = np.random.RandomState(seed)
    noise = random.standard_normal((ROWS, 4, 2)) + random.standard_normal((ROWS, 1, 2))
    x = noise.copy()
    for t in range(1, ROWS):
        x[t] = phi * x[t - 1] + noise[t]
    x = np.round(x * [1.0, 3.0] + [10.0, 50.0], 2)
    x[random.random_sample(x.shape) < 0.03] = np.nan
    return x


X = readings()


def wide(x, times=TIMES, nodes=NODES):
    frame = pd.DataFrame({name: x[:, NODES.index(name)] for name in nodes})
    return frame if times is None else pd.concat([pd.Series(times, name="time"), frame], axis=1)


def long(x, times=TIMES):
    index = pd.MultiIndex.from_product([times, NODES, NAMES], names=["time", "node", "variable"])
    return pd.Series(x.ravel(), index, name="value").dropna().reset_index()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of every layout, and three runs: windows of one channel and of two, and moments."""
    path = tmp_path_factory.mktemp("time")
    edges = pd.DataFrame([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], columns=["source", "target"])
    edges.to_csv(path / "g.csv", index=False)
    wide(X[..., 0]).to_csv(path / "temp.csv", index=False)
    wide(X[..., 1], nodes=["d", "a", "c", "b"]).to_csv(path / "wind.csv", index=False)
    long(X).to_csv(path / "long.csv", index=False)
    long(X).to_parquet(path / "long.parquet")
    np.savez(path / "both.npz", signals=X, node_ids=NODES, channels=NAMES, units=["degC", "m/s"], times=TIMES)
    arrays = {name: (("time", "node"), X[..., k]) for k, name in enumerate(NAMES)}
    xarray.Dataset(arrays, {"time": TIMES, "node": NODES}).to_netcdf(path / "both.nc", engine="h5netcdf")
    with pytest.MonkeyPatch.context() as patch:
        trainings = {
            "one": ["--data", "temp.csv", "--unit", "degC", "--window", 4],
            "two": ["--data", "temp=temp.csv", "--data", "wind=wind.csv", "--unit", "degC,m/s", "--window", 3],
            "moments": ["--data", "temp.csv", "--window", 1],
        }
        for run, what in trainings.items():
            done = _run(patch, path, "train", *what, *SMALL, "--out", run)
            assert done == 0, run
    return path


def _run(patch, path, *args):
    """A command of a fixture, which has no output of its own to look at."""
    import sys

    from grcd.cli import main

    patch.chdir(path)
    patch.setattr(sys, "argv", ["grcd", *map(str, args)])
    patch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(SystemExit) as stopped:
            main()
    return stopped.value.code


@pytest.fixture
def grcd_here(folder, here):
    """A command there that must succeed; returns what it printed."""

    def run(*args):
        done = here(*args, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def series_of(folder, run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return grcd.load(folder / run, device="cpu").series


def median(series, x, n=6, **settings):
    """Of the draws of each row, in Python."""
    filled = np.empty_like(x)
    for rows, draws in series.fillings(Series(x, TIMES), n, 2, 0, **settings):
        filled[rows] = np.median(draws, axis=0)
    return filled


DRAWS = ["-n", 6, "--nfe", 2, "--force"]


# -- training ----------------------------------------------------------------------------------------------------------


def test_training_says_what_it_kept_and_chose(folder, grcd_here):
    said = grcd_here("train", "--data", "temp.csv", "--unit", "degC", "--window", 4, *SMALL, "--out", "one")
    model = grcd.load(folder / "one", device="cpu")
    assert model.window == 4
    assert "one: has finished already" in said
    assert "window: 4 rows (4h)" in said
    for what in ("calendar: ", "reference: ", "the network is "):
        assert what in said, said
    assert "grcd impute one" in said


def test_by_default_a_window_is_taken_where_the_past_helps(folder, here):
    done = here("train", "--data", "temp.csv", *SMALL, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "window: " in done.stderr
    steps = int(done.stderr.split("window: ")[1].split()[0])
    assert steps > 1
    assert grcd.load(folder / f"runs/temp-grcd-w{steps}-s0", device="cpu").window == steps
    found = inspect(folder / "temp.csv", folder / "g.csv")
    assert (found.steps, found.time["window_suggested"]) == (steps, steps)
    assert found.time["window_why"] in done.stderr
    assert f"window      {steps} rows: {found.time['window_why']}\n" in str(found)


@pytest.mark.parametrize("why", ["noise", "no times", "filled", "irregular", "settings"])
def test_where_it_does_not_help_or_nobody_knows_rows_are_single_moments(folder, here, why):
    """And the run is that of `--window 1`, bit for bit."""
    x, times, more = X[..., 0], TIMES, []
    if why == "noise":
        x = readings(0.0)[..., 0]
    elif why == "no times":
        times = None
    elif why == "filled":
        more = ["--fill", "linear"]
    elif why == "settings":
        more = ["--set", "kappa=2.5"]
    else:
        times = TIMES + np.cumsum(np.arange(ROWS) % 7) * HOUR
    wide(x, times).to_csv(folder / "m.csv", index=False)
    runs = []
    for out, window in (("default", []), ("asked", ["--window", 1])):
        done = here("train", "--data", "m.csv", *SMALL[:-2], *more, *window, "--out", out, "--force", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert ("window: 1 row, for " in done.stderr) == (why in ("noise", "settings") and not window)
        assert ("irregular times" in done.stderr) == (why == "irregular" and not window)
        runs.append((folder / out / "model.safetensors").read_bytes())
    assert runs[0] == runs[1]
    found = inspect(folder / "m.csv", folder / "g.csv", fill="linear" if why == "filled" else None)
    assert found.steps == 1 or why == "settings"  # which the inspection does not know


def test_a_window_that_validation_rows_do_not_gain_by_is_neither_taken_nor_suggested(folder, here, monkeypatch):
    """Whatever correlations among training rows suggest."""
    assert inspect(folder / "temp.csv", folder / "g.csv").steps > 1
    monkeypatch.setattr(past, "gain", lambda *args: -0.01)
    found = inspect(folder / "temp.csv", folder / "g.csv")
    done = here("train", "--data", "temp.csv", *SMALL[:-2], "--out", "changed", "--force", cwd=folder)
    assert found.steps == 1
    assert found.time["window_why"] == "validation rows gain nothing by the past or the calendar"
    assert f"window: 1 row, for {found.time['window_why']}" in done.stderr
    assert "learns rows by themselves" in str(found)


def test_other_methods_have_windows_too(folder, grcd_here):
    said = grcd_here(
        "train", "--data", "temp.csv", "--window", 3, "--method", "grcd-rho3", *SMALL[:-2], "--out", "rho3"
    )
    assert "window: 3 rows (3h)" in said
    grcd_here("sample", "rho3", "-n", 2, "--out", "rho3.npz", "--force")
    assert read_windows(folder / "rho3.npz").signals.shape == (2, 3, 4, 1)


# -- filling -----------------------------------------------------------------------------------------------------------


def test_gaps_are_filled_by_the_median_of_the_models_draws(folder, grcd_here):
    said = grcd_here("impute", "one", "--observed", "temp.csv", "--out", "f.csv", *DRAWS, "--quantiles", "0.2,0.8")
    gaps = int(np.isnan(X[..., 0]).sum())
    assert f"f.csv: {gaps} gaps in 240 rows of 4 nodes filled, 6 draws each" in said
    frame, series = pd.read_csv(folder / "f.csv"), series_of(folder, "one")
    assert frame.columns.tolist() == ["time", *(f"{node}{q}" for node in NODES for q in ("", " 20%", " 80%"))]
    assert pd.to_datetime(frame["time"]).to_numpy().astype("datetime64[ns]").tolist() == TIMES.tolist()
    assert np.allclose(frame[NODES], median(series, X[..., :1])[..., 0], rtol=1e-6)
    observed = ~np.isnan(X[..., 0])
    assert np.array_equal(frame[NODES].to_numpy()[observed], X[..., 0][observed])


LAYOUTS = {
    "long.csv": ["long.csv"],
    "long.parquet": ["long.parquet"],
    "npz": ["both.npz"],
    "netCDF": ["both.nc"],
    "a file a channel": ["wind=wind.csv", "temp=temp.csv"],
}


@pytest.mark.parametrize(
    ("layout", "ending"),
    [
        ("long.csv", ".csv"),
        ("long.parquet", ".parquet"),
        ("npz", ".npz"),
        ("netCDF", ".nc"),
        ("a file a channel", ".csv"),
        ("a file a channel", ".nc"),
        ("npz", ".parquet"),
    ],
)
def test_every_layout_is_filled_alike_into_every_format(folder, grcd_here, layout, ending):
    files = [part for file in LAYOUTS[layout] for part in ("--observed", file)]
    said = grcd_here("impute", "two", *files, "--out", f"f{ending}", *DRAWS)
    assert "240 rows of 4 nodes and 2 channels filled" in said
    expected, tables = median(series_of(folder, "two"), X), read_channels(folder / f"f{ending}")
    assert {*tables} == {*NAMES}
    for name, table in tables.items():
        order = [table.node_ids.index(node) for node in NODES]
        assert np.allclose(table.values[:, order], expected[..., NAMES.index(name)], rtol=1e-6)
        assert np.array_equal(table.times, TIMES)
        assert ending in (".csv", ".parquet") or table.unit == {"temp": "degC", "wind": "m/s"}[name]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_long_table_keeps_the_names_of_its_columns(folder, grcd_here, ending):
    names = {"time": "Date", "node": "station", "variable": "parameter", "value": "reading"}
    table = long(X).rename(columns=names)
    table.to_csv(folder / "called.csv", index=False) if ending == ".csv" else table.to_parquet(
        folder / "called.parquet"
    )
    grcd_here("impute", "two", "--observed", f"called{ending}", "--out", f"f{ending}", *DRAWS)
    grcd_here("impute", "two", "--observed", f"long{ending}", "--out", f"plain{ending}", *DRAWS)
    read = pd.read_csv if ending == ".csv" else pd.read_parquet
    filled, expected = read(folder / f"f{ending}"), read(folder / f"plain{ending}")
    pd.testing.assert_frame_equal(filled, expected.rename(columns=names))


def test_a_channel_and_a_node_that_are_not_there_are_gaps(folder, here):
    wide(X[..., 1], nodes=["b", "a", "c"]).to_csv(folder / "less.csv", index=False)
    done = here("impute", "two", "--observed", "wind=less.csv", "--out", "f.csv", *DRAWS, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "less.csv has no temp: all of their readings are gaps" in done.stderr
    assert "no column for d: all of their readings are gaps" in done.stderr
    x = np.where([True, False], np.nan, X)
    x[:, 3] = np.nan
    tables = read_channels(folder / "f.csv")
    assert [*tables] == ["wind", "temp"]
    expected = median(series_of(folder, "two"), x)
    for name, table in tables.items():
        assert table.node_ids == ("b", "a", "c", "d")
        assert np.allclose(table.values, expected[:, [1, 0, 2, 3], NAMES.index(name)], rtol=1e-6)


def test_a_node_without_a_channel_stays_without(folder, here):
    """From training to filled gaps and windows; what it never had is no gap."""
    wide(X[:, :, 1], nodes=["a", "b"]).to_csv(folder / "few.csv", index=False)
    files = [part for file in ("temp=temp.csv", "wind=few.csv") for part in ("--data", file)]
    for args in (
        ["train", *files, *SMALL, "--window", 2, "--out", "few"],
        ["impute", "few", *(part.replace("data", "observed") for part in files), "--out", "f.csv", *DRAWS],
        ["sample", "few", "-n", 3, "--out", "s.csv", "--force"],
    ):
        done = here(*args, cwd=folder)
        assert done.returncode == 0, done.stderr
        if args[0] == "train":
            assert "2 nodes have no wind: c, d" in done.stderr
        if args[0] == "impute":
            assert f"{np.isnan(X[..., 0]).sum() + np.isnan(X[:, :2, 1]).sum()} gaps" in done.stdout
    tables, windows = read_channels(folder / "f.csv"), read_windows(folder / "s.csv")
    assert tables["wind"].node_ids == ("a", "b")
    assert np.isfinite(tables["wind"].values).all()
    assert tables["temp"].node_ids == ("a", "b", "c", "d")
    empty = np.isnan(windows.signals).all(axis=(0, 1))
    assert {windows.node_ids[i] for i in np.flatnonzero(empty[:, windows.channels.index("wind")])} == {"c", "d"}
    assert np.isfinite(windows.signals[..., windows.channels.index("temp")]).all()


def test_all_draws_and_rows_that_are_put_on_the_clock(folder, grcd_here):
    late = TIMES + np.where(np.arange(ROWS) % 5 == 1, 7, 0) * np.timedelta64(1, "m")
    wide(X[..., 0], late).to_csv(folder / "late.csv", index=False)
    grcd_here(
        *("impute", "one", "--observed", "late.csv", "--every", "1h", "--out", "e.npz", "--ensemble", *DRAWS),
        *("--quantiles", "0.2,0.8"),
    )
    with np.load(folder / "e.npz") as file:
        assert np.array_equal(file["times"], TIMES)
        assert np.allclose(np.median(file["ensemble"], axis=0), median(series_of(folder, "one"), X[..., :1])[..., 0])
        assert np.allclose(file["quantiles"], quantiles(file["ensemble"], [0.2, 0.8]))
        assert str(file["unit"]) == "degC"


# -- forecasts, windows, scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 7])
def test_a_forecast_is_the_rows_after_the_last_with_their_times(folder, grcd_here, horizon):
    said = grcd_here(
        *("forecast", "one", "--observed", "temp.csv", "--horizon", horizon, "--out", "f.csv", *DRAWS),
        *("--quantiles", "0.2,0.8"),
    )
    assert f"{horizon} row" in said
    assert "to come, 2024-01-11 00:00 to" in said
    frame = pd.read_csv(folder / "f.csv", parse_dates=["time"])
    assert (
        frame["time"].to_numpy().astype("datetime64[h]").tolist()
        == (TIMES[-1] + np.arange(1, horizon + 1) * HOUR).astype("datetime64[h]").tolist()
    )
    draws = series_of(folder, "one").forecast(Series(X[..., :1], TIMES), horizon, 6, 2)[..., 0]
    assert np.allclose(frame[NODES], np.median(draws, axis=0), rtol=1e-6)
    assert np.allclose(frame[[f"{node} 80%" for node in NODES]], quantiles(draws, [0.8])[0], rtol=1e-6)


def test_a_forecast_of_channels_is_laid_out_as_they_came(folder, grcd_here):
    expected = np.median(series_of(folder, "two").forecast(Series(X, TIMES), 5, 6, 2), axis=0)
    for file, out in (("both.npz", "f.npz"), ("long.csv", "f.csv"), ("both.nc", "f.nc")):
        grcd_here("forecast", "two", "--observed", file, "--horizon", 5, "--out", out, *DRAWS)
        for k, table in enumerate(read_channels(folder / out).values()):
            assert np.allclose(table.values, expected[..., k], rtol=1e-6)
            assert np.array_equal(table.times, TIMES[-1] + np.arange(1, 6) * HOUR)


@pytest.mark.parametrize(
    ("run", "ending"), [("one", ".csv"), ("two", ".npz"), ("one", ".nc"), ("two", ".parquet"), ("two", ".csv")]
)
def test_windows_are_sampled_with_their_times(folder, grcd_here, run, ending):
    said = grcd_here("sample", run, "-n", 5, "--nfe", 2, "--seed", 3, "--out", f"s{ending}", "--force")
    series, windows = series_of(folder, run), read_windows(folder / f"s{ending}")
    assert f"5 windows of {series.space.steps} rows on 4 nodes" in said
    signals, times = series.sample(5, 2, 3)
    order = [windows.node_ids.index(node) for node in series.space.graph.node_ids]
    assert np.allclose(windows.signals[:, :, order], signals, rtol=1e-6)
    assert np.array_equal(windows.times, times)
    assert run == "one" or windows.channels == tuple(NAMES)


def test_windows_may_start_at_a_time(folder, grcd_here):
    grcd_here("sample", "one", "-n", 2, "--out", "s.npz", "--start", "2024-03-05 06:00", "--force")
    first = np.datetime64("2024-03-05T06:00", "ns")
    assert np.array_equal(read_windows(folder / "s.npz").times, np.tile(first + np.arange(4) * HOUR, (2, 1)))


@pytest.mark.parametrize(("run", "files"), [("one", ["temp.csv"]), ("two", ["temp=temp.csv", "wind=wind.csv"])])
def test_rows_are_scored_in_their_context(folder, grcd_here, run, files):
    given = [part for file in files for part in ("--observed", file)]
    said = grcd_here("score", run, *given, "--nodes", "--out", "scores.csv", "--force")
    frame, series, x = pd.read_csv(folder / "scores.csv"), series_of(folder, run), X[..., : len(files)]
    assert np.allclose(frame["log_likelihood"], series.log_prob(Series(x, TIMES)), rtol=1e-5)
    each = series.node_log_prob(Series(x, TIMES))
    for i, node in enumerate(NODES):
        for k in range(len(files)):
            column = node if run == "one" else f"{node} {NAMES[k]}"
            assert np.allclose(frame[column], each[:, i, k], rtol=1e-5, equal_nan=True)
    worst, reading = frame["log_likelihood"].argmin(), np.unravel_index(np.nanargmin(each), each.shape)
    assert str(TIMES[worst].astype("datetime64[m]")).replace("T", " ") in said.split("the least probable:")[1]
    last = said.split("the least probable readings, given the other nodes")[1].splitlines()[2]
    assert str(TIMES[reading[0]].astype("datetime64[m]")).replace("T", " ") in last
    assert json.loads(grcd_here("score", run, *given, "--json")).keys() == {"time", "log_likelihood", "readings"}


def test_variations_keep_the_layout(folder, grcd_here):
    for run, files in (("one", ["temp.csv"]), ("two", ["wind=wind.csv", "temp=temp.csv"])):
        given = [part for file in files for part in ("--observed", file)]
        grcd_here("impute", run, *given, "--out", "whole.csv", *DRAWS)
        grcd_here("augment", run, "--signals", "whole.csv", "--strength", 0, "--out", "v.csv", "--force")
        assert pd.read_csv(folder / "v.csv").equals(pd.read_csv(folder / "whole.csv"))
        grcd_here("augment", run, "--signals", "whole.csv", "--strength", 0, "-n", 2, "--out", "v.npz", "--force")
        for name, table in read_channels(folder / "whole.csv").items():
            twice = read_channels(folder / "v.npz")[name].values
            assert np.array_equal(twice, np.concatenate([table.values] * 2))


def test_evaluation_takes_data_and_options_from_the_run(folder, grcd_here, monkeypatch):
    monkeypatch.setattr(Diffusion, "adds_nothing", False)  # as of a network that was kept
    grcd_here("sample", "moments", "-n", 30, "--out", "m.npz", "--force")
    asked = grcd_here("evaluate", "m.npz", "--data", "temp.csv", "--graph", "g.csv", "--json")
    by_run = json.loads(grcd_here("evaluate", "m.npz", "--run", "moments", "--json"))
    assert by_run.pop("reference")["held_out"] == 48  # a run has its own reference beside
    assert by_run == json.loads(asked)


@pytest.mark.parametrize(("run", "step"), [("one", "h"), ("moments", "D")])
@pytest.mark.filterwarnings("ignore:the network of this run adds nothing")
def test_a_table_keeps_the_name_and_the_writing_of_its_times(folder, grcd_here, run, step):
    """Days without a midnight, too."""
    frame = wide(X[:48, :, 0], times=None)
    frame.insert(0, "Date", pd.date_range("2024-01-01", periods=48, freq=step).astype(str))
    frame["Date"] = frame["Date"].str.removesuffix(":00")
    frame.to_csv(folder / "dated.csv", index=False)
    grcd_here("impute", run, "--observed", "dated.csv", "--out", "f.csv", *DRAWS)
    filled = pd.read_csv(folder / "f.csv")
    assert filled.columns.equals(frame.columns)
    assert filled["Date"].tolist() == frame["Date"].tolist()
    frame.assign(Date=pd.to_datetime(frame["Date"])).set_index("Date").to_parquet(folder / "dated.parquet")
    grcd_here("impute", run, "--observed", "dated.parquet", "--out", "f.parquet", *DRAWS)
    assert pd.read_parquet(folder / "f.parquet").columns.equals(frame.columns)


STYLES = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S.000Z"]


@pytest.mark.parametrize("style", STYLES)
def test_times_go_out_in_the_hand_in_which_they_came_in(folder, grcd_here, style):
    dates = pd.date_range("2024-02-01", periods=26, freq="h")
    written = list(dates.strftime(style))
    frame = wide(X[:24, :, 0], times=None)
    frame.insert(0, "time", written[:24])
    frame.to_csv(folder / "hand.csv", index=False)
    frame.melt("time", var_name="node").to_csv(folder / "long-hand.csv", index=False)

    def times(command, *args, file="hand.csv"):
        flag = "--signals" if command == "score" else "--observed"
        grcd_here(command, "one", flag, file, "--out", "hand-out.csv", "--force", *args)
        return list(dict.fromkeys(pd.read_csv(folder / "hand-out.csv", dtype=str)["time"]))

    assert times("impute", *DRAWS) == times("impute", *DRAWS, file="long-hand.csv") == written[:24]
    assert times("forecast", "--horizon", 2, *DRAWS) == written[24:]
    assert times("score") == written[:24]


def test_generated_windows_have_their_times_in_the_hand_of_the_training_data(folder, grcd_here):
    """`temp.csv` has seconds; of a window that begins at midnight, too."""
    grcd_here("sample", "one", "-n", 1, "--start", "2024-03-05", "--out", "hand.csv", "--force")
    hours = [f"2024-03-05 0{hour}:00:00" for hour in range(4)]
    assert pd.read_csv(folder / "hand.csv", dtype=str)["time"].tolist() == hours


@pytest.fixture(scope="module")
def settled(folder):
    """A run without a network whose data have markers, a node to leave out, splits of their own and limits."""
    x = np.where(np.isnan(X[..., 0]), -99.0, X[..., 0])
    part = np.where(np.arange(ROWS) % 60 < 40, "train", np.where(np.arange(ROWS) % 60 < 50, "val", "test"))
    (folder / "marked").mkdir()
    wide(x).assign(part=part).to_csv(folder / "marked" / "rows.csv", index=False)
    wide(x).to_csv(folder / "marked" / "later.csv", index=False)
    options = {"missing": [-99], "drop": ["d"], "split_by": "part"}
    given = ["--missing", -99, "--drop", "d", "--split-by", "part", "--support", -20, 40, "--graph", "../g.csv"]
    with pytest.MonkeyPatch.context() as patch:
        for name, window, network in (("w", 4, "max_updates=0"), ("m", 1, "backbone=none")):
            how = ["--window", window, "--set", network, "--device", "cpu", "--out", f"../settled-{name}"]
            assert _run(patch, folder / "marked", "train", "--data", "rows.csv", *given, *how) == 0
    return options


@pytest.mark.filterwarnings("ignore:4.44% of the readings are missing")
def test_a_run_brings_its_data_with_their_options_from_wherever_it_is_asked(folder, grcd_here, settled):
    from grcd.data import load_dataset

    source = folder / "marked" / "rows.csv", folder / "g.csv"
    grcd_here("sample", "settled-w", "-n", 20, "--out", "w.npz", "--force")
    windows = read_windows(folder / "w.npz").signals
    expected = grcd.evaluate(windows, load_series(*source, **settled)).to_dict()
    found = json.loads(grcd_here("evaluate", "w.npz", "--run", "settled-w", "--json"))
    assert {key: found[key] for key in expected} == expected
    grcd_here("sample", "settled-m", "-n", 60, "--out", "m.npz", "--force")
    signals = np.load(folder / "m.npz")["signals"]
    data = load_dataset(*source, **settled)
    expected = grcd.evaluate(signals, data, controls=True, support=(-20, 40)).to_dict()
    found = json.loads(grcd_here("evaluate", "m.npz", "--run", "settled-m", "--controls", "--json"))
    assert {key: found[key] for key in expected} == expected
    assert expected != grcd.evaluate(signals, data, controls=True, support=(9, 11)).to_dict()


@pytest.mark.parametrize("file", ["rows.csv", "later.csv"], ids=["splits", "no splits"])
@pytest.mark.parametrize("run", ["settled-w", "settled-m"])
def test_what_training_dropped_is_taken_and_left_out(folder, here, settled, run, file):
    done = here("impute", run, "--observed", f"marked/{file}", "--out", "f.csv", *DRAWS, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "d was left out of the training" in done.stderr
    filled = pd.read_csv(folder / "f.csv")
    assert [*filled.columns[1:4]] == ["a", "b", "c"]
    assert "d" not in filled
    assert filled[["a", "b", "c"]].min().min() >= -20  # no marker is left
    seen = ~np.isnan(X[:, :3, 0])
    np.testing.assert_array_equal(filled[["a", "b", "c"]].to_numpy()[seen], X[:, :3, 0][seen])
    assert here("score", run, "--signals", f"marked/{file}", "--posterior", "reference", cwd=folder).returncode == 0


@pytest.mark.parametrize("run", ["one", "two"])
def test_windows_are_evaluated_against_the_data_of_the_run(folder, grcd_here, run):
    from grcd.evaluation.windows import evaluate

    grcd_here("sample", run, "-n", 30, "--out", "w.csv", "--force")
    model, windows = grcd.load(folder / run, device="cpu"), read_windows(folder / "w.csv")
    files = "temp.csv" if run == "one" else ["temp=temp.csv", "wind=wind.csv"]
    data = load_series(files, "g.csv")  # the command has changed the folder
    order = [windows.node_ids.index(node) for node in model.graph.node_ids]
    expected = evaluate(windows.signals[:, :, order], data).to_dict()
    found = json.loads(grcd_here("evaluate", "w.csv", "--run", run, "--json"))
    assert found == expected | {"network": False}  # there is nothing to put beside its reference
    said = grcd_here("evaluate", "w.csv", "--run", run)
    assert "This run uses no network" in said
    assert "own reference" not in said
    assert f"{expected['ammd']:.4f}" in said


def test_windows_of_a_network_have_the_runs_reference_beside_them(folder, grcd_here, capsys):
    from grcd.cli.windows import evaluate

    grcd_here("sample", "one", "-n", 30, "--out", "w.csv", "--force")
    model, source = grcd.load(folder / "one", device="cpu"), {"source": "temp.csv", "graph": "g.csv"}
    model.result["network"] = True
    evaluate(folder / "w.csv", model, source, "test", False, True, [])
    beside = json.loads(capsys.readouterr().out)["reference"]
    assert beside["noise"] is None  # too few windows are held out
    evaluate(folder / "w.csv", model, source, "test", False, False, [])
    assert f"{beside['held_out']} held-out windows: nothing can be said" in capsys.readouterr().out


def test_moments_of_a_run_without_a_network_are_not_put_beside_themselves(folder, grcd_here):
    grcd_here("sample", "moments", "-n", 30, "--out", "m.csv", "--force")
    found = json.loads(grcd_here("evaluate", "m.csv", "--run", "moments", "--json"))
    assert found["network"] is False
    assert "reference" not in found
    said = grcd_here("evaluate", "m.csv", "--run", "moments", "--controls")
    assert "This run uses no network" in said
    assert "own reference" not in said
    assert "control-" in said


@pytest.mark.filterwarnings("ignore:the network of this run adds nothing")
def test_moments_are_filled_sampled_and_scored_as_ever(folder, grcd_here):
    model = grcd.load(folder / "moments", device="cpu")
    grcd_here("impute", "moments", "--observed", "temp.csv", "--out", "f.csv", *DRAWS)
    order = [NODES.index(node) for node in model.graph.node_ids]
    expected = np.median(model.impute(X[:, order, 0], 6, 2), axis=0)
    assert np.allclose(pd.read_csv(folder / "f.csv")[[*model.graph.node_ids]], expected, rtol=1e-6)
    grcd_here("sample", "moments", "-n", 4, "--start", 0.5, "--out", "s.npz", "--force")
    with np.load(folder / "s.npz") as file:
        assert np.allclose(file["signals"], model.sample(4, start=0.5), rtol=1e-6)


# -- covariates --------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(folder, monkeypatch):
    """The run of one channel as if it had kept a covariate; and what its methods were told of it."""
    calls = {}

    def recording(name):
        real = getattr(SeriesModel, name)

        def call(self, *args, covariates=None, **settings):
            calls[name] = covariates
            return real(self, *args, **settings)

        return call

    monkeypatch.setattr(SeriesModel, "covariates", ("holiday",), raising=False)
    for name in ("fillings", "forecast", "sample", "log_prob", "node_log_prob", "augment"):
        monkeypatch.setattr(SeriesModel, name, recording(name))
    days = TIMES[0] + np.arange(12) * np.timedelta64(1, "D")
    pd.DataFrame({"time": days, "holiday": np.arange(12) % 7 == 0}).astype({"holiday": int}).to_csv(
        folder / "days.csv", index=False
    )
    return calls


def test_covariates_are_passed_on_and_asked_for_where_a_run_has_kept_some(folder, here, grcd_here, told):
    series = ["--observed", "temp.csv"]
    commands = {
        "fillings": ["impute", "one", *series, "--out", "f.csv", *DRAWS],
        "forecast": ["forecast", "one", *series, "--horizon", 2, "--out", "f.csv", *DRAWS],
        "sample": ["sample", "one", "-n", 2, "--out", "s.npz", "--force"],
        "node_log_prob": ["score", "one", *series, "--nodes"],
        "augment": ["augment", "one", "--signals", "whole1.csv", "--out", "f.csv", "--force"],
    }
    grcd_here("impute", "one", *series, "--out", "whole1.csv", "--covariates", "days.csv", *DRAWS)
    for name, command in commands.items():
        told.clear()
        grcd_here(*command, "--covariates", "days.csv")
        assert told[name].names == ("holiday",), name
        assert told[name].at(TIMES[:30], 30)[:, 0].tolist() == [1.0] * 24 + [0.0] * 6
        message = refused(here(*command, cwd=folder))
        assert "no covariates for a run that has kept holiday" in message
        assert "--covariates FILE" in message


def test_a_training_keeps_the_covariate_that_counts_and_forecasts_by_it(folder, here, grcd_here):
    wave = np.round(np.sin(np.arange(ROWS + 6)), 3)
    times = TIMES[0] + np.arange(ROWS + 6) * HOUR
    tide = pd.DataFrame({"time": times, "tide": wave, "dice": np.random.RandomState(5).standard_normal(ROWS + 6)})
    tide.to_csv(folder / "tide.csv", index=False)
    wide(np.round(X[..., 0] + 30 * wave[:ROWS, None], 2)).to_csv(folder / "tidal.csv", index=False)
    what = ["--data", "tidal.csv", "--covariates", "tide.csv", "--window", 4]
    assert "covariates kept: tide\n" in grcd_here("train", *what, *SMALL, "--out", "tidal")
    ask = ["forecast", "tidal", "--observed", "tidal.csv", "--covariates", "tide.csv", "--out", "t.csv", *DRAWS]
    grcd_here(*ask, "--horizon", 6)
    ahead = pd.read_csv(folder / "t.csv")[NODES].mean(axis=1)
    level = np.nanmean(X[..., 0])
    assert np.abs(ahead - level - 30 * wave[ROWS:]).max() < 12  # the readings about it have a spread of three
    late = ["--horizon", 9, "--out", "u.csv"]
    message = refused(here(*ask[:6], *late, cwd=folder))
    assert "2024-01-11 05:00" in message  # where it ends
    assert "forecast fewer rows" in message
    assert not (folder / "u.csv").exists()


def test_a_window_that_no_memory_holds_is_refused_with_one_that_fits(folder, here, monkeypatch):
    from grcd.training import window_references

    monkeypatch.setattr(window_references.devices, "room", lambda device: 60_000.0)
    args = ["train", "--data", "temp.csv", "--window", 20, *SMALL, "--out", "large"]
    message = refused(here(*args, cwd=folder))
    assert "a window of 20 rows, 80 readings" in message
    assert "take a window of at most" in message
    assert not (folder / "large").exists()


# -- what is refused ---------------------------------------------------------------------------------------------------

TRAIN = "train --graph g.csv --out new --data"
BAD = {
    f"{TRAIN} temp.csv --window 0": ["--window 0", "from 1 up, or auto"],
    f"{TRAIN} temp.csv --window abc": ["--window abc", "--window 24"],
    f"{TRAIN} temp.csv --window 2.5": ["--window 2.5"],
    f"{TRAIN} temp.csv --calendar weekly": ["calendar 'weekly'", "auto, none"],
    f"{TRAIN} temp.csv --window 100": ["a window of 100 rows", "--window 24 or less"],
    f"{TRAIN} irregular.csv --window 4": ["irregular times", "steps of", "--every 1h"],
    f"{TRAIN} twice.csv --window 4": ["times that occur twice"],
    f"{TRAIN} temp=temp.csv --data wind=empty.csv": ["without a single reading of wind", "leave it out"],
    f"{TRAIN} temp=temp.csv --data wind.csv": ["wind.csv among several files", "NAME=FILE"],
    f"{TRAIN} temp.csv --window 4 --fill linear": ["--fill linear", "leave --fill out"],
    f"{TRAIN} temp.csv --window 1 --covariates temp.csv": ["--covariates temp.csv for single moments"],
    "impute one --observed hours2.csv --out x.csv": ["rows every 2h", "rows every 1h", "--every 1h"],
    "impute one --observed irregular.csv --out x.csv": ["irregular times", "--every 1h"],
    "impute one --observed numbered.csv --out x.csv": ["without times", "add a column"],
    "impute one --observed temp.csv --out x.csv --posterior columns": ["that did not try it", "take auto"],
    "impute one --observed temp.csv --out x.csv --posterior rows": ["auto, diffusion, reference, columns, moments"],
    "impute one --observed twice.csv --out x.csv": ["times that occur twice"],
    "impute one --observed wind=temp.csv --out tmp.txt": ["'.txt'"],
    "impute one --observed temp.csv --covariates temp.csv --out x.csv": ["has kept none", "leave --covariates out"],
    "impute one --observed temp.csv --every 1x --out x.csv": ["--every 1x", "5min"],
    "impute one --observed long.csv --out x.csv": ["channels that do not match", "2 unknown (temp, wind)"],
    "impute two --observed temp.csv --out x.csv": ["does not say what was measured", "temp=FILE"],
    "impute two --observed rain=temp.csv --out x.csv": ["1 unknown (rain)", "the channels temp, wind"],
    "impute moments --observed long.csv --out x.csv": ["several variables"],
    "impute moments --observed a=temp.csv --out x.csv": ["for a run of single moments", "one file"],
    "impute moments --observed temp.csv --every 1h --out x.csv": ["--every for a run of single moments"],
    "impute moments --observed temp.csv --covariates temp.csv --out x.csv": ["--covariates for a run of single"],
    "forecast one --observed less.csv --horizon 3 --out x.csv": ["1 missing (d)"],
    "forecast two --observed temp=temp.csv --horizon 3 --out x.csv": ["1 missing (wind)"],
    "forecast one --observed temp.csv --horizon 0 --out x.csv": ["horizon = 0"],
    "forecast one --observed temp.csv --horizon 999999999999 --out x.csv": ["999,999,999,999 rows", "lower -n"],
    "forecast one --observed temp.csv --out x.csv": ["--horizon"],
    "forecast moments --observed temp.csv --horizon 3 --out x.csv": ["single moments", "--window"],
    "forecast one --observed temp.csv --horizon 3 --out x.csv --ensemble": ["an ensemble as .csv"],
    "sample one --out x.npz --start soon": ["'soon' as time"],
    "sample one --out x.npz --solver heun": ["--solver for a run with a window"],
    "sample moments --out x.npz --start 2024-01-01": ["--start 2024-01-01", "share of the largest noise level"],
    "sample one --out x.npz -n 0": ["n = 0"],
    "score two --signals temp=temp.csv": ["1 missing (wind)"],
    "augment one --signals temp.csv --out x.csv": ["missing readings", "complete rows"],
    "evaluate temp.csv": ["no data to compare with"],
    "evaluate temp.csv --data temp.csv --run one": ["--data and --run"],
    "evaluate temp.csv --run one --graph g.csv": ["--graph without --data"],
    "evaluate temp.csv --run one": ["sample, step"],
    "evaluate temp.csv --run one --controls": ["--controls for windows"],
}  # fmt: skip


@pytest.fixture(scope="module")
def wrong(folder):
    """Tables with something wrong in each."""
    x = X[..., 0]
    tables = {
        "irregular": wide(x, TIMES + np.cumsum(np.arange(ROWS) % 4 == 0) * HOUR),
        "twice": wide(x, np.where(np.arange(ROWS) == 9, TIMES[8], TIMES)),
        "empty": wide(np.full_like(x, np.nan)),
        "hours2": wide(x, TIMES[0] + np.arange(ROWS) * 2 * HOUR),
        "numbered": wide(x, None),
        "less": wide(x, nodes=["b", "a", "c"]),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(("args", "parts"), BAD.items())
def test_what_the_user_can_correct(wrong, here, args, parts):
    before = sorted(path.relative_to(wrong) for path in wrong.rglob("*"))
    message = refused(here(*args.split(), cwd=wrong))
    assert [part for part in parts if part not in message] == []
    assert sorted(path.relative_to(wrong) for path in wrong.rglob("*")) == before


def test_readings_in_another_unit_are_noticed_channel_by_channel(folder, here):
    wide(X[..., 0] * 1.8 + 320).to_csv(folder / "fahrenheit.csv", index=False)
    files = ["--observed", "temp=fahrenheit.csv", "--observed", "wind=wind.csv"]
    done = here("impute", "two", *files, "--out", "f.csv", *DRAWS, cwd=folder)
    assert done.returncode == 0, done.stderr
    note = next(line for line in done.stderr.splitlines() if "another unit" in line)
    assert "temp" in note
    assert "wind" not in note


def test_a_variable_that_a_node_never_had_stays_open_and_that_is_said(folder, grcd_here):
    x = X.copy()
    x[:, 1, 1] = np.nan
    table = long(x)
    table.to_csv(folder / "never.csv", index=False)
    how = ["--window", 3, "--max-updates", 0, "--graph", "g.csv", "--device", "cpu"]
    grcd_here("train", "--data", "never.csv", *how, "--out", "never")
    said = grcd_here("impute", "never", "--observed", "never.csv", "--out", "f.csv", *DRAWS)
    assert "; 1 column without any reading, in training or here, left open, and out of a long table" in said
    filled = pd.read_csv(folder / "f.csv")
    assert len(filled) == x[:, :, 0].size + x[:, :, 1].size - len(x)


def test_no_updates_are_the_reference_alone_of_single_rows_too(folder, grcd_here):
    how = ["--window", 1, "--max-updates", 0, "--graph", "g.csv", "--device", "cpu"]
    assert "no network was asked for" in grcd_here("train", "--data", "temp.csv", *how, "--out", "alone")
    assert grcd.load(folder / "alone").config.backbone == "none"
