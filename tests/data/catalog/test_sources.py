"""METR-LA and Molene from a server on this machine: small ones with their own pins, the real ones where they are."""

import os
import pickle
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import h5py
import numpy as np
import pytest
from scipy.io import savemat
from test_fetch import serving

from grcd.core.errors import InputError
from grcd.data import catalog
from grcd.data.catalog import fetch as fetch_module
from grcd.data.catalog import metr_la as of_metr_la
from grcd.data.catalog import molene as of_molene
from grcd.data.catalog.metr_la import COLUMN, GRAPH, H5, LOCATIONS, PICKLE, SPEED
from grcd.data.catalog.molene import MATLAB, MOLENE
from grcd.data.catalog.sources import Pin, sha256

REAL = os.environ.get("GRCD_DATA")
real = pytest.mark.skipif(not REAL, reason="GRCD_DATA does not name a folder with the data")
NOWHERE = "http://127.0.0.1:9"  # the port that discards; nothing listens


SOURCES = {name: catalog.source(name) for name in ("metr-la", "molene")}


def get(name, folder, own=(), mirror=None):
    return catalog.source(name).get(folder, own, mirror)


def verify(name, folder):
    return catalog.source(name).verify(folder)


def npz(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def pin(array, *decimals):
    return Pin(array.shape, array.dtype.str, {places: sha256(array, places) for places in (None, *decimals)})


def address(name, file):
    """The path of a raw file on any host."""
    source = SOURCES[name]
    return urlsplit(source.raw[source.kind(file)].url(file)).path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch_module, "PAUSE", 0.001)
    with serving() as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def contents(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def asked(server):
    return Counter(path.rpartition("/")[2] for path, _ in server.asked)


# -- METR-LA as it is published --------------------------------------------------------------------------------------


def columns(speed):
    """Each sensor's CSV file, made when it is asked for."""
    starts = [str(time).replace("T", " ") + "," for time in speed["timestamps"].astype("datetime64[s]")]
    texts = [repr(value) for value in speed["values"].tolist()]

    def column(place, name):
        codes = speed["codes"][:, place].tolist()
        rows = [start + texts[code] for start, code in zip(starts, codes, strict=True)]
        return f"timestamp,{name}\n" + "\n".join(rows) + "\n"

    return {
        COLUMN.format(name): lambda place=place, name=name: column(place, name).encode()
        for place, name in enumerate(speed["sensor_ids"])
    }


def published(speed, graph):
    """All raw files by name, but not metr-la.h5, which has no public home."""
    ids = [str(name) for name in graph["sensor_ids"]]
    rows = [
        f"{i},{name},{y!r},{x!r}" for i, (name, (y, x)) in enumerate(zip(ids, graph["coords"].tolist(), strict=True))
    ]
    triple = [ids, {name: i for i, name in enumerate(ids)}, graph["adjacency"]]
    return columns(speed) | {
        PICKLE: pickle.dumps(triple, 2),
        LOCATIONS: "\n".join(["index,sensor_id,latitude,longitude", *rows, ""]).encode(),
    }


def save_h5(path, speeds, ids, times):
    with h5py.File(path, "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = np.bytes_(b"frame")
        names = np.array([str(name).encode() for name in ids])
        group["axis0"] = group["block0_items"] = names
        group["axis1"] = times.astype("datetime64[ns]").view("i8")
        group["axis1"].attrs["kind"] = np.bytes_(b"datetime64")
        group["block0_values"] = speeds


@pytest.fixture
def small(monkeypatch):
    """Five sensors, forty times, pinned like the real ones."""
    random = np.random.RandomState(0)
    values = np.unique(np.r_[0.0, random.randint(1, 600, 30) / random.choice([1, 3, 7, 8, 9], 30)])
    ids = np.array(["773869", "767541", "717447", "717446", "716328"])
    times = np.arange("2012-03-01T00:00", "2012-03-01T03:20", 5, dtype="datetime64[m]")
    codes = random.randint(0, len(values), (len(times), len(ids))).astype(np.uint16)
    codes.flat[: len(values)] = np.arange(len(values))  # each occurs
    weights = np.eye(5, dtype=np.float32) + random.rand(5, 5).astype(np.float32) * (random.rand(5, 5) > 0.6)
    coords = np.round(np.array([34.1, -118.3]) + random.rand(5, 2), 5)
    arrays = {
        SPEED: {"codes": codes, "values": values, "sensor_ids": ids, "timestamps": times},
        GRAPH: {"adjacency": weights, "sensor_ids": ids, "coords": coords},
    }
    pins = {"speeds": pin(values[codes], 9), "timestamps": pin(times), "sensor_ids": pin(ids)}
    pins |= {"adjacency": pin(weights), "sensor coords": pin(coords, 5)}
    monkeypatch.setattr(of_metr_la, "PINS", pins)
    return arrays


@pytest.fixture
def metr_la(small, server):
    """The small METR-LA, on the server."""
    server.files = {address("metr-la", file): body for file, body in published(*small.values()).items()}
    return server


def assert_same(folder, arrays):
    """The files in the folder are these arrays, in value, type and name, and nothing else is there."""
    assert contents(folder) == sorted(arrays)
    for file, expected in arrays.items():
        found = npz(folder / file)
        assert sorted(found) == sorted(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype, name
            assert np.array_equal(found[name], array, equal_nan=array.dtype.kind == "f"), name


# -- getting METR-LA -------------------------------------------------------------------------------------------------


def test_metr_la_is_brought_assembled_and_left_alone_afterwards(metr_la, small, folder):
    paths = get("metr-la", folder, mirror=metr_la.url)
    assert paths == [folder / SPEED, folder / GRAPH] == verify("metr-la", folder)
    assert_same(folder, small)
    assert asked(metr_la) == Counter([file.rpartition("/")[2] for file in metr_la.files])
    assert get("metr-la", str(folder), mirror=NOWHERE) == paths  # nothing to be done: nobody is asked
    assert_same(folder, small)


@pytest.mark.parametrize("mirror", ["{}", "{}/"])
def test_a_mirror_replaces_the_host_only(metr_la, folder, mirror):
    get("metr-la", folder, mirror=mirror.format(metr_la.url))
    path = "/liyaguang/DCRNN/602afd9d767d3aa1c9b3eac51710d6aeee12c227/data/sensor_graph/adj_mx.pkl"
    assert path in {path for path, _ in metr_la.asked}
    assert SOURCES["metr-la"].raw[PICKLE].url(PICKLE) == f"https://raw.githubusercontent.com{path}"


@pytest.mark.parametrize("spelling", [H5, "METR-LA.h5"])
def test_an_h5_file_stands_in_for_the_columns(metr_la, small, folder, tmp_path, spelling):
    speed = small[SPEED]
    order = [3, 0, 4, 1, 2]  # columns are found by name
    speeds = speed["values"][speed["codes"]][:, order]
    save_h5(tmp_path / spelling, speeds, speed["sensor_ids"][order], speed["timestamps"])
    get("metr-la", folder, [tmp_path / spelling], metr_la.url)
    assert_same(folder, small)
    assert asked(metr_la) == {PICKLE: 1, LOCATIONS: 1}


def test_speeds_that_differ_in_the_last_bit_are_the_same_data(metr_la, small, folder, tmp_path):
    speed = small[SPEED]
    values = speed["values"].copy()
    values[1:] = np.nextafter(values[1:], np.inf)
    save_h5(tmp_path / H5, values[speed["codes"]], speed["sensor_ids"], speed["timestamps"])
    get("metr-la", folder, [tmp_path / H5], metr_la.url)
    assert np.array_equal(npz(folder / SPEED)["values"], values)  # kept as they came
    verify("metr-la", folder)
    values[1:] += 1e-6
    save_h5(tmp_path / H5, values[speed["codes"]], speed["sensor_ids"], speed["timestamps"])
    with pytest.raises(InputError, match="speeds"):
        get("metr-la", tmp_path / "other", [tmp_path / H5], metr_la.url)


def _write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in files.items():
        (folder / name).write_bytes(body() if callable(body) else body)


def test_with_everything_given_nobody_is_asked(small, folder, tmp_path):
    raw = published(*small.values())
    graph = {PICKLE: raw.pop(PICKLE), LOCATIONS: raw.pop(LOCATIONS)}
    _write(tmp_path / "speed", raw | {"prepare.py": b"other things may lie there too"})
    _write(tmp_path, graph)
    before = contents(tmp_path / "speed")
    get("metr-la", folder, [tmp_path / "speed", tmp_path / PICKLE, str(tmp_path / LOCATIONS)], NOWHERE)
    assert_same(folder, small)
    assert contents(tmp_path / "speed") == before


def test_windows_line_ends_do_not_matter(small, folder, tmp_path):
    raw = {name: body() if callable(body) else body for name, body in published(*small.values()).items()}
    _write(tmp_path, {name: body if name == PICKLE else body.replace(b"\n", b"\r\n") for name, body in raw.items()})
    get("metr-la", folder, [tmp_path], NOWHERE)
    assert_same(folder, small)


def test_only_what_is_not_given_is_downloaded(metr_la, small, folder, tmp_path):
    raw = published(*small.values())
    mine = [PICKLE, COLUMN.format("717447"), COLUMN.format("716328")]
    _write(tmp_path, {name: raw[name] for name in mine})
    get("metr-la", folder, [tmp_path / name for name in mine], metr_la.url)
    assert_same(folder, small)
    assert asked(metr_la) == Counter(sorted(set(raw) - set(mine)))


# -- what goes wrong -------------------------------------------------------------------------------------------------


def _digit(body):
    """One digit of one speed in the middle."""
    place = body.index(b",", len(body) // 2) + 1
    return body[:place] + (b"1" if body[place : place + 1] != b"1" else b"2") + body[place + 1 :]


def _last_row(body):
    return body[: body.rindex(b"\n", 0, -1) + 1]


DAMAGE = {
    "a digit": (COLUMN.format("717447"), _digit, "speeds in metr_la_speed"),
    "a row less": (COLUMN.format("717447"), _last_row, "times are not those of"),
    "a row less in the first": (COLUMN.format("773869"), _last_row, "times are not those of"),
    "another time": (COLUMN.format("717447"), lambda b: b.replace(b"00:05:00", b"00:06:00"), "times are not those"),
    "no time": (COLUMN.format("773869"), lambda b: b.replace(b"2012-03-01 00:05:00", b"later"), "cannot be used"),
    "no number": (
        COLUMN.format("773869"),
        lambda b: b.replace(b"\n2012-03-01 00:05:00,", b"\n2012,x"),
        "cannot be used",
    ),
    "another sensor": (COLUMN.format("717447"), lambda b: b.replace(b"717447", b"717448"), "timestamp,717448"),
    "an error page": (COLUMN.format("717447"), lambda b: b"<html>", "begins with '<html>"),
    "no text": (COLUMN.format("717447"), lambda b: b"\xff\xfe" + b, "cannot be used"),
    "an empty file": (COLUMN.format("717447"), lambda b: b"", "cannot be used"),
    "a weight": (PICKLE, lambda b: b.replace(b"\xc2\x80?", b"\xc2\x81?", 1), "adjacency in metr_la_graph"),
    "half a pickle": (PICKLE, lambda b: b[: len(b) // 2], "cannot be read as a pickle"),
    "a pickle that runs": (PICKLE, lambda b: b"cos\nsystem\n(S'true'\ntR.", "os.system"),
    "a pickle without names": (PICKLE, lambda b: pickle.dumps(np.eye(5, dtype="f4"), 2), "other sensors"),
    "a position": (LOCATIONS, lambda b: b.replace(b",34.", b",35.", 1), "coords in metr_la_graph"),
    "a sensor less": (LOCATIONS, _last_row, "lacks a sensor"),
    "a column less": (LOCATIONS, lambda b: b.replace(b"latitude", b"height"), "lacks a sensor or column"),
    "short rows": (LOCATIONS, lambda b: b.replace(b",-118", b"#-118"), "lacks a sensor or column"),
}


@pytest.mark.parametrize(("file", "damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_download_is_refused_removed_and_brought_again(metr_la, small, folder, file, damage, message):
    path = address("metr-la", file)
    whole = metr_la.files[path]() if callable(metr_la.files[path]) else metr_la.files[path]
    assert damage(whole) != whole
    metr_la.files[path] = damage(whole)
    with pytest.raises(InputError) as caught:
        get("metr-la", folder, mirror=metr_la.url)
    assert message in str(caught.value)
    assert "nothing was written" in str(caught.value)
    assert "have been removed" in str(caught.value)
    came, left = set(asked(metr_la)), set(contents(folder / "metr-la.parts"))
    # The one that is known to be at fault; where times disagree, both.
    other = COLUMN.format("773869" if file != COLUMN.format("773869") else "767541")
    faulty = {file, other} if "times are not those" in message else {file}
    assert left == (set() if message.endswith(("speed", "graph")) else came - faulty)
    metr_la.files[path] = whole
    metr_la.asked.clear()
    get("metr-la", folder, mirror=metr_la.url)
    assert_same(folder, small)
    assert asked(metr_la) == Counter({path.rpartition("/")[2] for path in metr_la.files} - left)


def test_damaged_given_files_are_left_where_they_are(metr_la, small, folder, tmp_path):
    raw = published(*small.values())
    name = COLUMN.format("717447")
    _write(tmp_path, {name: _digit(raw[name]())})
    before = (tmp_path / name).read_bytes()
    with pytest.raises(InputError, match=rf"(?s)speeds.*removed.*leave out, or replace, what was given \({name}\)"):
        get("metr-la", folder, [tmp_path / name], metr_la.url)
    assert (tmp_path / name).read_bytes() == before
    assert contents(folder) == []


def test_names_from_a_pickle_are_not_used_before_they_are_known(metr_la, folder):
    ids = ["773869", "767541", "../../../evil", "717446", "716328"]
    triple = (ids, {name: i for i, name in enumerate(ids)}, np.eye(5, dtype="f4"))
    metr_la.files[address("metr-la", PICKLE)] = pickle.dumps(triple, 2)
    with pytest.raises(InputError, match="other sensors"):
        get("metr-la", folder, mirror=metr_la.url)
    assert asked(metr_la) == {PICKLE: 1, LOCATIONS: 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ["773869", "767541", "717447", "717446", "1"]}, "without the sensors 716328"),
        ({"rows": 39}, "speeds"),
        ({"shift": np.timedelta64(5, "m")}, "timestamps"),
    ],
)
def test_an_h5_file_with_other_data_is_refused(metr_la, small, folder, tmp_path, change, message):
    speed, rows = small[SPEED], change.get("rows")
    times = speed["timestamps"][:rows] + change.get("shift", np.timedelta64(0, "m"))
    save_h5(tmp_path / H5, speed["values"][speed["codes"]][:rows], change.get("ids", speed["sensor_ids"]), times)
    with pytest.raises(InputError, match=message):
        get("metr-la", folder, [tmp_path / H5], metr_la.url)
    assert contents(folder) == (["metr-la.parts"] if "sensors" in message else [])  # the h5 file alone is at fault


def test_without_a_network_what_came_is_kept_and_the_rest_is_listed(metr_la, small, folder):
    graph = {path: body for path, body in metr_la.files.items() if path.endswith((PICKLE, LOCATIONS))}
    everything, metr_la.files = metr_la.files, graph
    with pytest.raises(InputError) as caught:
        get("metr-la", folder, mirror=metr_la.url)
    message = str(caught.value)
    assert "5 of 5 files are still to come" in message
    assert f"as {folder / 'metr-la.parts' / COLUMN.format('773869')}" in message
    assert "--from" in message
    assert H5 in message
    assert contents(folder / "metr-la.parts") == [PICKLE, LOCATIONS]
    metr_la.files = everything
    metr_la.asked.clear()
    get("metr-la", folder, mirror=metr_la.url)
    assert_same(folder, small)
    assert set(asked(metr_la)) == set(map(COLUMN.format, small[SPEED]["sensor_ids"]))


def test_a_file_put_where_the_message_says_is_taken(small, folder):
    _write(folder / "metr-la.parts", published(*small.values()))
    get("metr-la", folder, mirror=NOWHERE)
    assert_same(folder, small)


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(path.read_bytes()[:-100]), Path.unlink])
@pytest.mark.parametrize("file", [SPEED, GRAPH])
def test_a_damaged_result_is_noticed_and_mended(metr_la, small, folder, file, spoil):
    get("metr-la", folder, mirror=metr_la.url)
    spoil(folder / file)
    with pytest.raises(InputError, match=rf"(?s){file}.*grcd data get metr-la"):
        verify("metr-la", folder)
    get("metr-la", folder, mirror=metr_la.url)
    assert_same(folder, small)


@pytest.mark.parametrize(
    ("file", "name", "change"),
    [
        (SPEED, "codes", lambda a: np.roll(a, 1)),
        (SPEED, "codes", lambda a: a + np.uint16(1000)),
        (SPEED, "codes", lambda a: a.astype(float)),
        (SPEED, "values", lambda a: a * 1.609344),
        (SPEED, "timestamps", lambda a: a + np.timedelta64(60, "m")),
        (SPEED, "sensor_ids", lambda a: a[::-1]),
        (GRAPH, "sensor_ids", lambda a: a[::-1]),
        (GRAPH, "adjacency", lambda a: a.T),
        (GRAPH, "coords", lambda a: a[:, ::-1]),
        (GRAPH, "coords", lambda a: a[:-1]),
    ],
)
def test_every_array_is_verified(small, folder, file, name, change):
    folder.mkdir()
    for target, arrays in small.items():
        np.savez(folder / target, **(arrays | {name: change(arrays[name])} if target == file else arrays))
    with pytest.raises(InputError, match="not as published"):
        verify("metr-la", folder)


def test_given_files_are_recognised_by_name_or_refused(small, folder, tmp_path):
    (tmp_path / "speeds.h5").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    for path, message in {
        "absent.pkl": "not there",
        "speeds.h5": r"is no file of metr-la.*\n.*metr-la\.h5, adj_mx\.pkl, .*<sensor number>\.csv",
        "empty": "holds no file of metr-la",
        "long" * 100: "not there",
    }.items():
        with pytest.raises(InputError, match=message):
            get("metr-la", folder, [tmp_path / path], NOWHERE)
    with pytest.raises(InputError, match="did you mean 'molene'"):
        get("molen", folder)
    with pytest.raises(InputError, match="one of aqi36, beijing, metr-la, molene"):
        verify("sbm-c1", folder)
    assert not folder.exists()


def test_the_table_says_where_and_under_which_licence():
    assert "MIT" in SOURCES["metr-la"].licence
    assert "states none" in SOURCES["metr-la"].licence
    assert "Licence Ouverte" in SOURCES["molene"].licence
    assert "10.1109/EUSIPCO.2015.7362637" in SOURCES["molene"].licence
    for source in SOURCES.values():
        for home in filter(None, source.raw.values()):
            assert len(home.commit) == 40


# -- Molene ----------------------------------------------------------------------------------------------------------

HOURS, STATIONS = 24, 6


def cell(*entries):
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def save_v5(path, tree):
    savemat(path, tree)


def save_v73(path, tree):
    """As MATLAB does: HDF5 behind 512 bytes of its own, arrays transposed, cells as references."""

    def save(group, name, value):
        if isinstance(value, dict):
            for key, entry in value.items():
                save(group.require_group(name), key, entry)
        elif isinstance(value, str):
            group[name] = np.array([[ord(letter)] for letter in value], dtype=np.uint16)
            group[name].attrs["MATLAB_class"] = np.bytes_(b"char")
        elif value.dtype == object:
            references = []
            for entry in value:
                place = f"#refs#/{len(file['#refs#'])}"
                save(file, place, entry)
                references.append(file[place].ref)
            group.create_dataset(name, data=np.array([references], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
        else:
            group[name] = value.T

    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_group("#refs#")
        for name, value in tree.items():
            save(file, name, value)
    with path.open("rb+") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64")


SAVERS = pytest.mark.parametrize("save", [save_v5, save_v73], ids=["v5", "v7.3"])


@pytest.fixture
def stations(monkeypatch):
    """A small Molene: temperatures in degrees C, positions, altitude, distances, names."""
    random = np.random.RandomState(1)
    signals = np.round(8 + 4 * random.standard_normal((HOURS, STATIONS)), 2)
    signals[0, 0] = 0.0  # must not come out as -0.0
    coords = np.round(np.array([-3e5, 6e6]) + 1e5 * random.rand(STATIONS, 2), 3)
    distances = np.linalg.norm(coords[:, None] - coords, axis=-1)
    altitude = np.round(300 * random.rand(STATIONS))
    pins = {"signals": pin(signals), "coords": pin(coords, 0), "altitude": pin(altitude)}
    monkeypatch.setattr(of_molene, "PINS", pins | {"distances": pin(distances, 0)})
    names = np.array([f"STATION {letter}" for letter in "ABCDEF"])
    return {"signals": signals, "coords": coords, "altitude": altitude, "distances": distances, "station_names": names}


def kelvin(signals):
    return np.nextafter(signals + 273.15, 0.0)  # with floating-point noise, as in the source: 0.0 becomes -6e-14


def graphs(arrays, **fields):
    """The cell of three graphs; the other two have as many stations, other positions and other data."""
    other = np.random.RandomState(2).rand(*arrays["coords"].shape) * 1e5
    noise = np.random.RandomState(3).rand(*arrays["signals"].shape)
    wind = {"data_name": cell("wind", "gusts"), "data": cell(noise.T, 2 * noise.T), "coords": other}
    graph = {
        "data_name": cell("temperature", "maximal temperature"),
        "data": cell(kelvin(arrays["signals"]).T, kelvin(arrays["signals"]).T + 1.0),
        **fields,
    }
    return {"molene_graphs": cell(wind, graph, wind)}


LAYOUTS = {
    "gsp": lambda a: graphs(a, coords=a["coords"]),
    "grasp": lambda a: graphs(
        a,
        coordinates=np.column_stack([a["coords"], a["altitude"]]),
        distances=a["distances"],
        node_names=cell(*a["station_names"].tolist()),
    ),
    "sideways": lambda a: graphs(a, coords=a["coords"].T, altitude=a["altitude"][:, None]),
    "flat": lambda a: {"t": kelvin(a["signals"]), "positions": a["coords"], "alt": a["altitude"][None]},
    "elsewhere": lambda a: {"g": {"inner": {"t": kelvin(a["signals"])}}, "xy": a["coords"]},
    "alone": lambda a: {"t": cell(kelvin(a["signals"])), "xy": a["coords"]},
}
EXTRAS = {"grasp": {"altitude", "distances", "station_names"}, "sideways": {"altitude"}, "flat": {"altitude"}}


@SAVERS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_molene_is_found_wherever_it_is_in_the_file(server, stations, folder, tmp_path, save, layout):
    save(tmp_path / "made.mat", LAYOUTS[layout](stations))
    server.files[address("molene", MATLAB[0])] = (tmp_path / "made.mat").read_bytes()
    assert get("molene", folder, mirror=server.url) == [folder / MOLENE] == verify("molene", folder)
    kept = {"signals", "coords"} | EXTRAS.get(layout, set())
    assert_same(folder, {MOLENE: {name: array for name, array in stations.items() if name in kept}})
    assert not np.signbit(npz(folder / MOLENE)["signals"][0, 0])
    assert len(server.asked) == 1


@pytest.mark.parametrize("name", MATLAB)
def test_molene_from_a_given_file(stations, folder, tmp_path, name):
    save_v5(tmp_path / name, LAYOUTS["gsp"](stations))
    get("molene", folder, [tmp_path], NOWHERE)
    assert_same(folder, {MOLENE: {"signals": stations["signals"], "coords": stations["coords"]}})


@SAVERS
def test_positions_that_differ_by_rounding_are_accepted_as_they_are(stations, folder, tmp_path, save):
    near = stations["coords"] + 1e-7
    save(tmp_path / MATLAB[0], graphs(stations, coords=near))
    get("molene", folder, [tmp_path / MATLAB[0]], NOWHERE)
    assert np.array_equal(npz(folder / MOLENE)["coords"], near)
    verify("molene", folder)


WRONG = {
    "a temperature": (lambda a: graphs(a | {"signals": a["signals"] + 0.01 * np.eye(HOURS, STATIONS)}), "temperatures"),
    "celsius": (lambda a: {"t": a["signals"], "xy": a["coords"]}, "temperatures"),
    "no positions": (graphs, "positions"),
    "other positions": (lambda a: graphs(a, coords=a["coords"] + 2.0), "positions"),
    "stations in another order": (lambda a: graphs(a, coords=a["coords"][::-1]), "positions"),
    "nothing": (lambda a: {"x": np.ones((2, 2))}, "temperatures"),
}


@SAVERS
@pytest.mark.parametrize(("tree", "message"), WRONG.values(), ids=WRONG)
def test_other_matlab_files_are_refused_and_removed(server, stations, folder, tmp_path, save, tree, message):
    save(tmp_path / "made.mat", tree(stations))
    server.files[address("molene", MATLAB[0])] = (tmp_path / "made.mat").read_bytes()
    with pytest.raises(InputError, match=rf"(?s)without the pinned {message}.*have been removed"):
        get("molene", folder, mirror=server.url)
    assert contents(folder) == []


@SAVERS
@pytest.mark.parametrize("keep", [0, 3, 130, 700, -200])
def test_a_damaged_matlab_file_is_refused(stations, folder, tmp_path, save, keep):
    path = tmp_path / MATLAB[0]
    save(path, LAYOUTS["grasp"](stations))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="cannot be used"):
        get("molene", folder, [path], NOWHERE)
    assert contents(folder) == []


def test_references_in_a_circle_end(stations, folder, tmp_path):
    path = tmp_path / MATLAB[0]
    with h5py.File(path, "w") as file:
        loop = file.create_dataset("loop", (1,), dtype=h5py.ref_dtype)
        loop[0] = loop.ref
    with pytest.raises(InputError, match="nested too deeply"):
        get("molene", folder, [path], NOWHERE)


# -- the real ones ---------------------------------------------------------------------------------------------------


@real
@pytest.mark.parametrize("name", SOURCES)
def test_the_real_files_verify_and_are_left_alone(name):
    assert verify(name, REAL) == get(name, REAL, mirror=NOWHERE)


@real
def test_the_real_metr_la_comes_out_of_its_207_columns(server, folder):
    arrays = {file: npz(Path(REAL) / file) for file in SOURCES["metr-la"].files}
    server.files = {address("metr-la", file): body for file, body in published(*arrays.values()).items()}
    get("metr-la", folder, mirror=server.url)
    assert len(server.asked) == 209
    assert_same(folder, arrays)


@real
def test_the_real_metr_la_comes_out_of_an_h5_file_with_exact_fractions(server, folder, tmp_path):
    """A copy may have 7/3 where the columns have 2.333333333333333: the last bit apart, and recognised."""
    arrays = {file: npz(Path(REAL) / file) for file in SOURCES["metr-la"].files}
    speed = arrays[SPEED]
    tenths = np.arange(1, 11)
    fractions = np.round(speed["values"][:, None] * tenths) / tenths
    nearest = np.abs(fractions - speed["values"][:, None]).argmin(axis=1)
    exact = fractions[np.arange(len(nearest)), nearest]
    assert 0 < np.abs(exact - speed["values"]).max() < 1e-14
    save_h5(tmp_path / H5, exact[speed["codes"]], speed["sensor_ids"], speed["timestamps"])
    server.files = {address("metr-la", file): body for file, body in published(*arrays.values()).items()}
    get("metr-la", folder, [tmp_path / H5], server.url)
    assert len(server.asked) == 2
    arrays[SPEED]["values"] = exact
    assert_same(folder, arrays)
    verify("metr-la", folder)


@real
@SAVERS
def test_the_real_molene_comes_out_of_a_matlab_file(server, folder, tmp_path, save):
    arrays = npz(Path(REAL) / MOLENE)
    save(tmp_path / "made.mat", LAYOUTS["grasp"](arrays))
    server.files[address("molene", MATLAB[0])] = (tmp_path / "made.mat").read_bytes()
    get("molene", folder, mirror=server.url)
    kept = ("signals", "coords", "altitude", "distances", "station_names")
    assert_same(folder, {MOLENE: {name: arrays[name] for name in kept}})
