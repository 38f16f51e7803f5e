"""Windows and series of channels in files: what is read is what was written, in every format and layout."""

import numpy as np
import pandas as pd
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.core.errors import InputWarning
from grcd.data.formats.channels import read_channels
from grcd.data.formats.filled import Filled
from grcd.data.formats.output import Output
from grcd.data.formats.windows import FORMATS, Windows, read_windows, write_windows
from grcd.data.formats.writing import WRITERS, write
from grcd.metrics.ensemble import quantiles

NODES, NAMES, UNITS = ("b", "a", "c 3"), ("temp", "PM2.5"), ("degC", "ug/m^3")
START, HOUR = np.datetime64("2024-03-01T00:00", "ns"), np.timedelta64(1, "h")


def windows(n=5, steps=4, channels=2, times="dates", seed=0):
    random = np.random.RandomState(seed)
    signals = random.standard_normal((n, steps, 3, channels)) * 10.0 ** random.randint(-3, 4)
    first = random.randint(0, 500, size=(n, 1)) + np.arange(steps)
    stamps = {"dates": START + first * HOUR, "numbers": first, "none": None}[times]
    names, units = (NAMES, UNITS) if channels > 1 else (("",), ("mph",))
    return Windows(signals, NODES, names, units, stamps)


@pytest.mark.parametrize("ending", FORMATS)
@given(
    n=st.integers(1, 4),
    steps=st.integers(1, 4),
    channels=st.sampled_from([1, 2]),
    times=st.sampled_from(["dates", "numbers", "none"]),
    seed=st.integers(0, 99),
)
@examples(8)
def test_windows_that_are_read_are_those_that_were_written(tmp_path_factory, ending, n, steps, channels, times, seed):
    path, x = tmp_path_factory.mktemp("windows") / f"x{ending}", windows(n, steps, channels, times, seed)
    write_windows(path, x)
    again = read_windows(path)
    assert np.array_equal(again.signals, x.signals)
    assert (again.times is None) == (x.times is None)
    assert x.times is None or np.array_equal(again.times, x.times)
    assert (again.node_ids, again.channels) == (x.node_ids, x.channels)
    assert ending in (".csv", ".parquet") or again.units == x.units


def test_the_layouts_are_those_that_are_promised(tmp_path):
    one, two = windows(channels=1), windows()
    for name, x in {"one": one, "two": two}.items():
        for ending in FORMATS:
            write_windows(tmp_path / f"{name}{ending}", x)
    wide, long = pd.read_csv(tmp_path / "one.csv"), pd.read_csv(tmp_path / "two.csv")
    assert wide.columns.tolist() == ["sample", "step", *NODES, "time"]
    assert wide[["sample", "step"]].to_numpy().tolist() == [[i, t] for i in range(5) for t in range(4)]
    assert np.array_equal(wide[[*NODES]], one.signals.reshape(20, 3))
    assert long.columns.tolist() == ["sample", "step", "time", "node", "variable", "value"]
    assert pd.read_parquet(tmp_path / "one.parquet").columns.tolist() == wide.columns.tolist()
    with np.load(tmp_path / "one.npz") as file:
        assert np.array_equal(file["signals"], one.signals[..., 0])
        assert file["times"].shape == (5, 4)
    with np.load(tmp_path / "two.npz") as file:
        assert np.array_equal(file["signals"], two.signals)
        assert file["channels"].tolist() == list(NAMES)
    with xarray.open_dataset(tmp_path / "two.nc") as file:
        assert np.array_equal(file["PM2.5"], two.signals[..., 1])
        assert file["temp"].attrs["units"] == "degC"


def test_rows_of_windows_in_any_order_and_windows_that_lack_some(tmp_path):
    x = windows()
    write_windows(tmp_path / "x.csv", x)
    frame = pd.read_csv(tmp_path / "x.csv")
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "y.csv", index=False)
    again = read_windows(tmp_path / "y.csv")
    order = [again.node_ids.index(name) for name in NODES], [again.channels.index(name) for name in NAMES]
    assert np.array_equal(again.signals[:, :, order[0]][..., order[1]], x.signals)
    frame[1:].to_csv(tmp_path / "z.csv", index=False)
    with pytest.raises(grcd.InputError, match="119 rows for 5 samples of 4 steps"):
        read_windows(tmp_path / "z.csv")
    frame.drop(columns="step").to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(grcd.InputError, match=r"(?s)sample, time, node.*expected sample, step"):
        read_windows(tmp_path / "v.csv")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_damaged_file_of_windows_is_windows_or_an_error(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_windows(path, windows())
    body = path.read_bytes()
    for place in np.random.RandomState(0).randint(0, len(body), 30):
        path.write_bytes(body[:place] + bytes([body[place] ^ 255]) + body[place + 1 :] if place % 2 else body[:place])
        try:
            assert read_windows(path).signals.ndim == 4
        except grcd.InputError:
            continue


BAD = {
    ".csv": (Windows(np.ones((2, 3, 2, 1)), ("step", "a")), "step as a column"),
    ".parquet": (Windows(np.ones((2, 3, 2, 1)), ("b", "Time")), "Time as a column"),
    ".nc": (Windows(np.ones((2, 3, 1, 2)), ("a",), ("node", "x/y")), "node, x/y as a variable"),
    ".npz": (Windows(np.full((2, 3, 1, 1), np.nan), ("a",)), "6 of 6 numbers .* not finite"),
    ".txt": (Windows(np.ones((2, 3, 1, 1)), ("a",)), "'.txt'"),
}


@pytest.mark.parametrize("ending", BAD)
def test_windows_that_cannot_be_written_leave_nothing(tmp_path, ending):
    x, message = BAD[ending]
    with pytest.raises(grcd.InputError, match=message):
        write_windows(tmp_path / f"x{ending}", x)
    assert list(tmp_path.iterdir()) == []


# -- series of channels ------------------------------------------------------------------------------------------------


def draws(n=7, rows=6, channels=2):
    return np.random.RandomState(1).standard_normal((n, rows, 3, channels))


def filled(path, x, times, levels=(), **settings):
    """Written in two parts, as draws come."""
    parts = [(rows, x[:, rows]) for rows in (np.arange(4), np.arange(4, x.shape[1]))]
    about = {"channels": NAMES, "units": UNITS} if x.ndim == 4 else {"unit": "mph"}
    Filled(NODES, times, levels, **about, **settings).write(path, parts, x.shape, ensemble=path.suffix != ".csv")


@pytest.mark.parametrize("times", [START + np.arange(6) * HOUR, np.arange(6) * 0.5, None], ids=["dates", "numbers", ""])
@pytest.mark.parametrize("ending", [".csv", ".npz", ".nc"])
def test_the_medians_of_channels_are_read_as_they_were_written(tmp_path, ending, times):
    x = draws()
    filled(tmp_path / f"x{ending}", x, times)
    tables = read_channels(tmp_path / f"x{ending}")
    assert [*tables] == [*NAMES]
    for k, table in enumerate(tables.values()):
        assert np.array_equal(table.values, np.median(x, axis=0)[:, :, k])
        assert table.node_ids == NODES
        assert table.unit == ("" if ending == ".csv" else UNITS[k])
        clock = np.arange(6) if times is None and ending == ".csv" else times
        assert (clock is None and table.times is None) or np.array_equal(table.times, clock)


def test_quantiles_and_draws_of_channels(tmp_path):
    x, levels = draws(), (0.25, 0.75)
    for ending in (".npz", ".nc"):
        filled(tmp_path / f"x{ending}", x, None, levels)
    with np.load(tmp_path / "x.npz") as file:
        assert np.array_equal(file["ensemble"], x)
        assert np.array_equal(file["quantiles"], quantiles(x, levels))
    with xarray.open_dataset(tmp_path / "x.nc", engine="scipy") as file:
        for k, name in enumerate(NAMES):
            assert np.array_equal(file[f"{name}_ensemble"], x[..., k])
            assert np.array_equal(file[f"{name}_quantiles"], quantiles(x, levels)[..., k])
            assert file[f"{name}_ensemble"].attrs["units"] == UNITS[k]
    with pytest.warns(InputWarning, match="without quantiles"):
        filled(tmp_path / "x.parquet", x, None, levels)
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert frame.columns.tolist() == ["draw", "time", "node", "variable", "value"]
    assert np.array_equal(frame["value"], x.ravel())
    assert np.array_equal(frame["draw"], np.repeat(np.arange(7), 36))
    filled(tmp_path / "x.csv", x, None, levels)
    table = pd.read_csv(tmp_path / "x.csv")
    assert np.array_equal(table[["25%", "75%"]].T.to_numpy(), quantiles(x, levels).reshape(2, -1))


def test_a_long_table_of_one_channel_stays_one(tmp_path):
    x, times = draws(channels=1)[..., 0], START + np.arange(6) * HOUR
    filled(tmp_path / "x.csv", x, times, long=True)
    frame = pd.read_csv(tmp_path / "x.csv")
    assert frame.columns.tolist() == ["time", "node", "value"]
    assert frame["time"][0] == "2024-03-01 00:00"
    assert np.array_equal(read_channels(tmp_path / "x.csv")[""].values, np.median(x, axis=0))


def test_what_a_node_lacks_has_no_row_in_a_long_table(tmp_path):
    x = draws()[0]
    x[:, 1, 0] = np.nan
    for ending in WRITERS:
        write(tmp_path / f"x{ending}", Output(x, NODES, channels=NAMES, times=np.arange(6)))
        temp, pm = read_channels(tmp_path / f"x{ending}").values()
        assert np.array_equal(pm.values, x[..., 1])
        columns = [NODES.index(name) for name in temp.node_ids]
        assert len(columns) == (2 if ending in (".csv", ".parquet") else 3)
        assert np.array_equal(temp.values, x[:, columns, 0], equal_nan=True)


def test_a_channel_that_a_variable_cannot_be_called_is_refused(tmp_path):
    with pytest.raises(grcd.InputError, match=r"signals as a variable of .*x.nc"):
        write(tmp_path / "x.nc", Output(draws()[0], NODES, channels=("signals", "b")))
    assert list(tmp_path.iterdir()) == []
