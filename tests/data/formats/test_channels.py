"""Several channels, however they are written: the same readings come out of all layouts."""

import numpy as np
import pandas as pd
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.data import load_series
from grcd.data.channels import Channels
from grcd.data.formats.channels import named, read_channels
from grcd.data.formats.table import Table

NODES, NAMES, UNITS = ["a", "b", "c"], ["temp", "wind"], ["degC", "m/s"]
TIMES = np.datetime64("2024-03-01T00:00", "ns") + np.arange(20) * np.timedelta64(1, "h")
W = np.ones((3, 3)) - np.eye(3)


def readings():
    random = np.random.RandomState(0)
    x = np.round(random.standard_normal((20, 3, 2)) + np.array([10.0, 3.0]), 3)
    x[random.random_sample(x.shape) < 0.2] = np.nan
    x[0] = (7.0, 1.0)
    x[:, 2, 1] = np.nan  # c has no wind
    return x


def frame(x, channel, nodes=slice(None)):
    return pd.DataFrame(x[:, nodes, channel], columns=np.array(NODES)[nodes], index=pd.Index(TIMES, name="time"))


def long(x):
    rows = [
        (t, n, c, x[i, j, k])
        for i, t in enumerate(TIMES)
        for j, n in enumerate(NODES)
        for k, c in enumerate(NAMES)
        if np.isfinite(x[i, j, k])
    ]
    return pd.DataFrame(rows, columns=["time", "station", "variable", "value"])


def save_files(folder, x):
    frame(x, 0).to_csv(folder / "a.csv")
    frame(x, 1, [1, 0]).to_csv(folder / "b.csv")  # without c, in another order
    return [f"temp={folder / 'a.csv'}", f"wind={folder / 'b.csv'}"]


def save_long(folder, x):
    long(x).sample(frac=1, random_state=0).sort_values("variable", kind="stable").to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def save_parquet(folder, x):
    long(x).to_parquet(folder / "x.parquet")
    return str(folder / "x.parquet")


def save_npz(folder, x):
    np.savez(folder / "x.npz", signals=x, node_ids=NODES, channels=NAMES, units=UNITS, timestamps=TIMES)
    return folder / "x.npz"


def save_nc(folder, x, engine):
    coords = {"time": TIMES, "node": NODES}
    arrays = {name: (("time", "node"), x[:, :, k], {"units": UNITS[k]}) for k, name in enumerate(NAMES)}
    arrays["wind"] = (("node", "time"), x[:, :, 1].T, {"units": "m/s"})  # sideways
    xarray.Dataset(arrays, coords).to_netcdf(folder / "x.nc", engine=engine)
    return folder / "x.nc"


def save_frames(folder, x):
    return {"temp": frame(x, 0), "wind": frame(x, 1, [0, 1])}


LAYOUTS = {
    "a file a channel": save_files,
    "long csv": save_long,
    "long parquet": save_parquet,
    "npz": save_npz,
    "netCDF-4": lambda folder, x: save_nc(folder, x, "h5netcdf"),
    "netCDF-3": lambda folder, x: save_nc(folder, x, "scipy"),
    "frames": save_frames,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_readings_come_out_of_every_layout(tmp_path, layout):
    x, graph = readings(), grcd.Graph.from_adjacency(W, ["b", "c", "a"])
    data = load_series(LAYOUTS[layout](tmp_path, x), graph, unit="degC, m/s")
    assert (data.channels, data.units, data.node_ids) == (("temp", "wind"), ("degC", "m/s"), ("b", "c", "a"))
    assert np.array_equal(data.series.times, TIMES)
    assert np.array_equal(data.series.values, x[:, [1, 2, 0]], equal_nan=True)
    assert data.splits == {"train": (slice(0, 14),), "val": (slice(14, 16),), "test": (slice(16, 20),)}
    assert data.series.breaks.tolist() == [14, 16]
    assert "1 node has no wind: c" in " ".join(data.notes)


def test_units_are_those_of_the_file(tmp_path):
    for save in (save_npz, LAYOUTS["netCDF-4"]):
        assert [table.unit for table in read_channels(save(tmp_path, readings())).values()] == UNITS


@pytest.mark.parametrize("layout", ["long csv", "long parquet", "npz", "netCDF-4"])
def test_where_one_channel_is_wanted_several_are_refused(tmp_path, layout):
    with pytest.raises(grcd.InputError, match=r"(?s)expected readings of one variable.*--window"):
        grcd.load_dataset(LAYOUTS[layout](tmp_path, readings()), W)


def test_a_file_of_one_channel_is_a_series_of_one(tmp_path):
    x = readings()
    frame(x, 0).to_csv(tmp_path / "x.csv")
    data = load_series(tmp_path / "x.csv", grcd.Graph.from_adjacency(W, NODES))
    assert (data.channels, data.series.values.shape) == (("value",), (20, 3, 1))
    assert load_series(f"temp={tmp_path / 'x.csv'}", grcd.Graph.from_adjacency(W, NODES)).channels == ("temp",)
    with pytest.warns(grcd.core.errors.InputWarning, match="1 node has no channel 1: 2"):
        array = load_series(x, W, times=TIMES)
    assert (array.channels, array.series.values.shape) == (("channel 0", "channel 1"), (20, 3, 2))


def test_an_equals_sign_in_the_name_of_a_file_is_no_channel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k=3.csv").touch()
    assert named("k=3.csv") == ("", "k=3.csv")
    assert named("temp=k=3.csv") == ("temp", "k=3.csv")
    assert named("runs/k=4.csv") == ("", "runs/k=4.csv")


@given(st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=3), st.integers(0, 2**31))
@examples(30)
def test_channels_meet_on_all_times_and_nodes_there_are(clocks, seed):
    """Against dictionaries."""
    random = np.random.RandomState(seed)
    tables, cells = {}, {}
    for k, clock in enumerate(clocks):
        times = np.array(sorted(clock))
        nodes = [NODES[i] for i in random.permutation(3)[: random.randint(1, 4)]]
        values = random.standard_normal((len(times), len(nodes)))
        tables[f"c{k}"] = Table(values, tuple(nodes), times)
        cells |= {(t, n, k): values[i, j] for i, t in enumerate(times) for j, n in enumerate(nodes)}
    merged = Channels.of(tables, "x")
    assert merged.times.tolist() == sorted({t for t, _, _ in cells})
    assert {*merged.node_ids} == {n for _, n, _ in cells}
    assert np.isfinite(merged.values).sum() == len(cells)
    for (t, n, k), value in cells.items():
        assert merged.values[merged.times.tolist().index(t), merged.node_ids.index(n), k] == value


BAD = {
    "no readings": (lambda f, x: {"temp": frame(x, 0), "wind": frame(np.nan * x, 1)}, "single reading of wind"),
    "twice": (lambda f, x: [save_files(f, x)[0]] * 2, "'temp' twice"),
    "without a name": (lambda f, x: [str(f / "a.csv"), save_files(f, x)[1]], "(?s)a.csv among several files.*NAME="),
    "several under one name": (lambda f, x: f"both={save_npz(f, x)}", "(?s)which holds temp, wind"),
    "times in one only": (lambda f, x: {"temp": frame(x, 0), "wind": x[:, :, 1]}, "only some of which are named"),
    "sizes": (lambda f, x: {"temp": x[:, :, 0], "wind": x[:4, :, 1]}, r"20 \(temp\), 4 \(wind\) rows, without times"),
    "absent": (lambda f, x: [f"temp={f / 'no.csv'}"], "no file"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), BAD.values(), ids=BAD)
def test_bad_channels_are_refused(tmp_path, source, message):
    with pytest.raises(grcd.InputError, match=message):
        load_series(source(tmp_path, readings()), W)


@pytest.mark.parametrize("layout", ["long csv", "long parquet", "npz", "netCDF-4", "netCDF-3"])
def test_a_damaged_file_is_tables_or_an_error(tmp_path, layout):
    path = LAYOUTS[layout](tmp_path, readings())
    with open(path, "rb") as file:
        body = file.read()
    for place in np.random.RandomState(0).randint(0, len(body), 40):
        with open(path, "wb") as file:
            file.write(body[:place] + bytes([body[place] ^ 255]) + body[place + 1 :] if place % 2 else body[:place])
        try:
            tables = read_channels(path)
        except grcd.InputError:
            continue
        assert all(table.values.ndim == 2 for table in tables.values())


def test_a_unit_for_each_channel_or_one_for_all(tmp_path):
    with pytest.raises(grcd.InputError, match=r"(?s)3 units.*one a channel"):
        load_series(save_npz(tmp_path, readings()), grcd.Graph.from_adjacency(W, NODES), unit="a,b,c")
