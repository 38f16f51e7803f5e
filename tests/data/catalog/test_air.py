"""AQI-36 and Beijing: from raw files as they are published, small ones and the real ones; and the protocols."""

import os

import numpy as np
import pytest
from test_fetch import serving
from test_sources import NOWHERE, assert_same, pin

import grcd
from grcd.core.errors import InputError
from grcd.data import catalog, load_series
from grcd.data.catalog import aqi36, beijing
from grcd.data.catalog import fetch as fetch_module
from grcd.data.catalog.aqi36 import AQI, GROUND, PLACES, SHOWN
from grcd.data.catalog.beijing import BEIJING, FILE, STATIONS, UNITS

REAL = os.environ.get("GRCD_DATA")
real = pytest.mark.skipif(not REAL, reason="GRCD_DATA does not name a folder with the data")
MODULES = {"aqi36": aqi36, "beijing": beijing}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch_module, "PAUSE", 0.001)
    with serving() as server:
        yield server


def text(number, gap):
    return gap if np.isnan(number) else repr(float(np.format_float_positional(number)))


def raw_aqi36(arrays):
    stamps = [str(time).replace("-", "/").replace("T", " ") for time in arrays["timestamps"].astype("datetime64[s]")]
    shown = np.where(arrays["hidden"], np.nan, arrays["pm25"])
    header = "datetime," + ",".join(arrays["station_ids"])
    tables = {}
    for name, values in ((GROUND, arrays["pm25"]), (SHOWN, shown)):
        rows = [",".join([stamp, *(text(x, "") for x in row)]) for stamp, row in zip(stamps, values, strict=True)]
        tables[name] = "\n".join([header, *rows, ""]).encode()
    places = zip(arrays["station_ids"], arrays["latitude"].tolist(), arrays["longitude"].tolist(), strict=True)
    rows = [f"{name},{y!r},{x!r}" for name, y, x in places]
    return tables | {PLACES: "\n".join(["sensor_id,latitude,longitude", *rows, ""]).encode()}


def raw_beijing(arrays):
    files = {}
    for i, name in enumerate(arrays["station_ids"]):
        rows = ["No,year,month,day,hour,PM2.5,PM10,SO2,NO2,CO,O3,TEMP,PRES,DEWP,RAIN,wd,WSPM,station,lat,long"]
        for k, (time, values) in enumerate(zip(arrays["timestamps"], arrays["values"][:, i], strict=True)):
            moment = time.item()
            cells = [text(value, "NA") for value in values]
            clock = f"{k + 1},{moment.year},{moment.month},{moment.day},{moment.hour}"
            rows.append(",".join([clock, *cells[:10], "NNW", cells[10], name, "23.97", "120.98"]))
        files[FILE.format(name)] = "\n".join([*rows, ""]).encode()
    places = zip(arrays["station_ids"], arrays["latitude"], arrays["longitude"], strict=True)
    table = ["station,latitude,longitude", *(f"{name},{y!r},{x!r}" for name, y, x in places)]
    return files | {beijing.PLACES: "\n".join(table).replace("np.float64(", "").replace(")", "").encode()}


RAW = {"aqi36": raw_aqi36, "beijing": raw_beijing}


def hours(count):
    return np.datetime64("2014-05-01T01:00") + np.arange(count) * np.timedelta64(60, "m")


@pytest.fixture
def small(monkeypatch):
    """Thirty hours of either, pinned like the real ones."""
    random = np.random.RandomState(0)
    pm25 = random.randint(1, 900, (30, 4)).astype(np.float32)
    pm25[random.rand(30, 4) < 0.2] = np.nan
    air = {
        "pm25": pm25,
        "hidden": ~np.isnan(pm25) & (random.rand(30, 4) < 0.3),
        "station_ids": np.array(["001001", "001002", "001003", "001004"]),
        "latitude": 39.9 + np.round(random.rand(4), 6),
        "longitude": 116.3 + np.round(random.rand(4), 6),
        "timestamps": hours(30),
    }
    values = np.round(random.standard_normal((30, 12, 11)) * 100, 1).astype(np.float32)
    values[random.rand(*values.shape) < 0.1] = np.nan
    places = np.round(random.uniform((39.9, 116.3), (40.9, 117.3), (12, 2)), 3)
    many = {
        "values": values,
        "channels": np.array(list(UNITS)),
        "units": np.array(list(UNITS.values())),
        "station_ids": np.array(STATIONS),
        "latitude": places[:, 0],
        "longitude": places[:, 1],
        "timestamps": hours(30),
    }
    arrays = {"aqi36": {AQI: air}, "beijing": {BEIJING: many}}
    for name, files in arrays.items():
        pins = {key: pin(array) for file in files.values() for key, array in file.items()}
        monkeypatch.setattr(MODULES[name], "PINS", pins)
    return arrays


@pytest.mark.parametrize("name", MODULES)
def test_it_comes_out_of_the_files_as_published(server, small, tmp_path, name):
    (arrays,) = small[name].values()
    source, raw = catalog.source(name), RAW[name](arrays)
    published = {file: body for file, body in raw.items() if source.raw[file] is not None}
    server.files = {_path(source, file): body for file, body in published.items()}
    own = tmp_path / "own"
    own.mkdir()
    for file in raw.keys() - published:  # that nobody publishes
        (own / file).write_bytes(raw[file])
    assert source.get(tmp_path / "data", [*own.iterdir()], server.url) == source.verify(tmp_path / "data")
    assert_same(tmp_path / "data", small[name])
    assert len(server.asked) == len(published)


def _path(source, file):
    return "/" + "/".join([source.raw[file].repository, source.raw[file].commit, source.raw[file].folder, file])


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:-40], "not as published|cannot be used"),
        (lambda x: x.replace(b"1", b"x"), "cannot be used|not as"),
    ],
)
def test_damaged_files_are_refused(small, tmp_path, name, change, message):
    (arrays,) = small[name].values()
    for place, (file, body) in enumerate(RAW[name](arrays).items()):
        (tmp_path / file).write_bytes(body if place else change(body))
    with pytest.raises(InputError, match=message):
        catalog.source(name).get(tmp_path / "data", [tmp_path], NOWHERE)


@real
@pytest.mark.parametrize("name", MODULES)
def test_the_real_ones_verify_and_are_left_alone(name):
    assert catalog.source(name).verify(REAL) == catalog.source(name).get(REAL, mirror=NOWHERE)


# -- the protocols ---------------------------------------------------------------------------------------------------


def line(x, hide):
    """Absolute errors of straight lines in time through what is shown, at what is hidden."""
    errors = []
    for column, h in zip(x.T, hide.T, strict=True):
        seen, scored = ~np.isnan(column) & ~h, ~np.isnan(column) & h
        errors.append(np.interp(np.flatnonzero(scored), np.flatnonzero(seen), column[seen]) - column[scored])
    return errors


@real
def test_aqi36_is_split_by_its_months_and_scored_like_everybodys():
    data = load_series("aqi36")
    assert (data.channels, data.units, data.series.values.shape) == (("PM2.5",), ("ug/m3",), (8759, 36, 1))
    months = data.series.times.astype("datetime64[M]").astype(int) % 12 + 1
    assert {*months[data.rows("test")]} == {3, 6, 9, 12}
    assert {*months[data.rows("val")]} == {2, 5, 8, 11}
    assert len(data.rows("test")) == (31 + 30 + 30 + 31) * 24
    assert [part.stop - part.start for part in data.splits["val"]] == [75, 75, 72, 68]  # a tenth of each month
    rows = np.concatenate([data.rows(split) for split in data.splits])
    assert np.array_equal(np.sort(rows), np.arange(8759))
    test = data.rows("test")
    scored = data.hidden & ~np.isnan(data.series.values)
    assert scored[test].sum() == 20_434
    whole = np.full(data.series.values.shape[:2], np.nan)
    for node, (errors, hide) in enumerate(
        zip(line(data.series.values[..., 0], data.hidden[..., 0]), scored[..., 0].T, strict=True)
    ):
        whole[hide, node] = errors
    assert np.abs(whole[test][scored[test, :, 0]]).mean() == pytest.approx(14.68, abs=0.005)
    assert np.isnan(data.part("test", hide=True).values[data.hidden[test]]).all()
    _, new = data.part("test").covering(36)
    assert np.diff(new).sum() == len(test)


@real
def test_windows_cross_no_border_of_a_split():
    data = load_series("aqi36")
    split = np.empty(len(data.series), dtype=object)
    for name in data.splits:
        split[data.rows(name)] = name
    starts = data.series.starts(36)
    assert all(len({*split[start : start + 36]}) == 1 for start in starts)
    assert len(starts) == sum(len(data.part(name).starts(36)) for name in data.splits)


@real
def test_beijing_has_eleven_channels_and_the_usual_shares():
    data = load_series("beijing")
    assert (len(data.series), len(data.graph), data.channels, data.units) == (
        35_064,
        12,
        tuple(UNITS),
        tuple(UNITS.values()),
    )
    assert {split: (part[0].start, part[0].stop) for split, part in data.splits.items()} == {
        "train": (0, 24_544),
        "val": (24_544, 28_050),
        "test": (28_050, 35_064),
    }
    missing = dict(zip(data.channels, np.isnan(data.series.values).mean(axis=(0, 1)), strict=True))
    assert (f"{missing['PM2.5']:.1%}", f"{missing['CO']:.1%}", f"{missing['TEMP']:.1%}") == ("2.1%", "4.9%", "0.1%")
    assert data.hidden is None
    assert "great-circle" in data.graph.origin


@real
def test_metr_la_and_molene_in_time_are_uncapped_and_unfilled():
    data = load_series("metr-la")
    assert (data.series.values.shape, data.channels, data.units) == ((34_272, 207, 1), ("speed",), ("mph",))
    assert f"{np.isnan(data.series.values).mean():.3%}" == "8.109%"
    assert [len(data.rows(split)) for split in data.splits] == [23_990, 3_427, 6_855]
    assert [len(load_series("molene").rows(split)) for split in data.splits] == [520, 74, 150]
    with pytest.raises(InputError, match="--fill linear for molene in time"):
        load_series("molene", fill="linear")


@real
def test_as_moments_they_are_rows_of_pm25():
    data = grcd.load_dataset("aqi36")
    assert {*(data.times["test"].astype("datetime64[M]").astype(int) % 12 + 1)} == {3, 6, 9, 12}
    assert data.origin.split_by == "months"
    other = grcd.load_dataset("aqi36", split_by="chronological")
    assert other.times["train"][-1] < other.times["val"][0] < other.times["test"][0]
    assert np.nanmax(grcd.load_dataset("beijing").train) <= 999


def test_built_in_signals_have_no_order():
    with pytest.raises(InputError, match="sbm-c1 in time"):
        load_series("sbm-c1")
    with pytest.raises(InputError, match="did you mean 'aqi36'"):
        load_series("aqi-36")
