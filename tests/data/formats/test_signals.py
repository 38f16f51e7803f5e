"""Tables of readings: every format gives the same table, and what cannot be read says where and why."""

import io
import itertools
import sys
import warnings
import zipfile
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from laws import examples

import grcd
from grcd.data import times
from grcd.data.formats import signals
from grcd.data.formats import table as table_module
from grcd.data.formats.filled import Filled
from grcd.data.formats.signals import READERS, read_signals
from grcd.data.formats.table import Table
from grcd.data.formats.writing import check_writable_ending, write_signals

TIMES = np.array(["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T03:00"], dtype="datetime64[ns]")
NAMES = ("north", "007", "NA", "Brest-Guipavas")
VALUES = np.array([[1.5, -2.0, 3.25, 0.1], [np.nan, 5.0, 1e-9, 7.0], [4.0, 0.0, 123456.789, np.nan]])


def frame():
    return pd.DataFrame(VALUES, columns=NAMES)


def same(table: Table, times=True, names=NAMES):
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.node_ids == names
    assert table.times is None if not times else np.array_equal(table.times, TIMES)


def _hdf5(path):
    import h5py

    text = h5py.string_dtype("ascii", 20)
    with h5py.File(path, "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = np.bytes_("frame")
        names = np.array(NAMES, dtype="S20")
        group.create_dataset("axis0", data=names, dtype=text).attrs["kind"] = np.bytes_("string")
        axis = group.create_dataset("axis1", data=TIMES.astype(np.int64))
        axis.attrs["kind"] = np.bytes_("datetime64")
        group.create_dataset("block0_items", data=names, dtype=text).attrs["kind"] = np.bytes_("string")
        group.create_dataset("block0_values", data=VALUES)
        group.attrs["nblocks"], group.attrs["ndim"] = 1, 2


def _netcdf(path):
    import xarray

    array = xarray.DataArray(VALUES, dims=("time", "node"), coords={"time": TIMES, "node": list(NAMES)})
    array.to_dataset(name="signals").to_netcdf(path, engine="scipy")


def _netcdf_4(path):
    import xarray

    array = xarray.DataArray(VALUES.T, dims=("node", "time"), coords={"time": TIMES, "node": list(NAMES)})
    array.to_dataset(name="speed").to_netcdf(path, engine="h5netcdf")


def _long(shuffle):
    rows = [(TIMES[i], NAMES[j], VALUES[i, j]) for i in range(3) for j in range(4) if not np.isnan(VALUES[i, j])]
    long = pd.DataFrame(rows, columns=["time", "node", "value"])
    return long.sample(frac=1, random_state=3) if shuffle else long


WRITTEN = {
    "wide.csv": lambda p: frame().assign(time=TIMES)[["time", *NAMES]].to_csv(p, index=False),
    "last.csv": lambda p: frame().assign(Timestamp=TIMES).to_csv(p, index=False),
    "index.csv": lambda p: frame().set_index(TIMES).to_csv(p),
    "semicolon.csv": lambda p: frame().set_index(TIMES).to_csv(p, sep=";", index_label="date"),
    "tab.csv": lambda p: frame().set_index(TIMES).to_csv(p, sep="\t", index_label="time"),
    "bom.csv": lambda p: frame().set_index(TIMES).to_csv(p, index_label="time", encoding="utf-8-sig"),
    "zone.csv": lambda p: (
        frame().assign(time=[f"{t}+00:00" for t in TIMES.astype("datetime64[s]")]).to_csv(p, index=False)
    ),
    "long.csv": lambda p: _long(False).to_csv(p, index=False),
    "index.parquet": lambda p: frame().set_index(pd.DatetimeIndex(TIMES)).to_parquet(p),
    "column.parquet": lambda p: frame().assign(time=TIMES).to_parquet(p),
    "long.parquet": lambda p: _long(False).to_parquet(p),
    "all.npz": lambda p: np.savez(p, signals=VALUES, node_ids=NAMES, timestamps=TIMES),
    "compressed.npz": lambda p: np.savez_compressed(p, signals=VALUES, sensor_ids=NAMES, times=TIMES),
    "fortran.npz": lambda p: np.savez(p, signals=np.asfortranarray(VALUES), node_ids=NAMES, timestamps=TIMES),
    "pandas.h5": _hdf5,
    "xarray.nc": _netcdf,
    "netcdf4.nc": _netcdf_4,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_format_gives_the_same_table(tmp_path, name):
    WRITTEN[name](tmp_path / name)
    same(read_signals(tmp_path / name))


def test_a_long_table_may_come_in_any_order_and_says_so_in_nothing_but_columns(tmp_path):
    _long(True).to_csv(tmp_path / "x.csv", index=False)
    table = read_signals(tmp_path / "x.csv")
    order = [table.node_ids.index(name) for name in NAMES]
    np.testing.assert_array_equal(table.values[:, order], VALUES)
    assert np.array_equal(table.times, TIMES)


def test_unsorted_times_are_sorted_with_a_note(tmp_path):
    frame().set_index(TIMES).iloc[[2, 0, 1]].to_csv(tmp_path / "x.csv", index_label="time")
    table = read_signals(tmp_path / "x.csv")
    same(table)
    assert "not in the order of their times: sorted" in table.notes[0]


def test_an_index_of_row_numbers_is_left_out_with_a_note(tmp_path):
    frame().to_csv(tmp_path / "x.csv")
    table = read_signals(tmp_path / "x.csv")
    same(table, times=False)
    assert "numbers the rows" in table.notes[0]


def test_numbers_are_times_too(tmp_path):
    (tmp_path / "x.csv").write_text("time,a,b\n10,1,2\n2,3,4\n")
    table = read_signals(tmp_path / "x.csv")
    assert table.times.tolist() == [2.0, 10.0]
    assert table.values.tolist() == [[3, 4], [1, 2]]


@pytest.mark.parametrize(
    "text",
    [
        "007,012\n64,60\n,50.1\n",
        "0,1,2\n3,4,5\n",
        "1,2,3\n3,4,5\n",
        "timestamp,773869,767541\n1,64,60\n",
        "773869,time,767541\n64,1,60\n",
        ",773869,767541\n0,64,60\n1,2,3\n",
    ],
)
def test_whole_numbers_that_name_nodes_are_a_header(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    table = read_signals(tmp_path / "x.csv")
    assert table.node_ids == tuple(name for name in text.split("\n")[0].split(",") if name.isdigit())
    assert len(table.values) == text.count("\n") - 1


def test_numbers_that_a_graph_has_as_names_are_a_header(tmp_path):
    (tmp_path / "x.csv").write_text("773869,767541,1\n64,60,1\n61,50,2\n")
    with pytest.raises(grcd.InputError, match="numbers in its first row"):
        read_signals(tmp_path / "x.csv", nodes=("north", "1"))
    (tmp_path / "y.csv").write_text("4,5,6,7\n64.375,60.1,2.5,0.5\n")
    with pytest.raises(grcd.InputError, match="numbers in its first row"):
        read_signals(tmp_path / "y.csv")
    table = read_signals(tmp_path / "x.csv", nodes=("717447", "773869", "767541"))
    assert table.node_ids == ("773869", "767541", "1")
    np.testing.assert_array_equal(table.values, [[64, 60, 1], [61, 50, 2]])


@pytest.mark.parametrize("head", ["", "Unnamed: 0"])
@pytest.mark.parametrize("index", [[0, 1, 2], [7, 9, 11], [4, 4, 4]])
def test_an_unnamed_index_beside_a_column_of_times_is_left_out(tmp_path, head, index):
    frame().assign(time=TIMES).set_index(pd.Index(index)).to_csv(tmp_path / "x.csv", index_label=head)
    table = read_signals(tmp_path / "x.csv")
    same(table)
    assert table.notes == ("the first column of x.csv has no name: left out",)
    _long(False).to_csv(tmp_path / "long.csv", index_label=head)
    same(read_signals(tmp_path / "long.csv"))


def test_row_numbers_may_start_again_where_tables_were_put_together(tmp_path):
    pd.concat([frame(), frame().iloc[:2]]).to_csv(tmp_path / "x.csv")
    table = read_signals(tmp_path / "x.csv")
    np.testing.assert_array_equal(table.values, VALUES[[0, 1, 2, 0, 1]])
    assert table.times is None


def test_minus_nan_is_a_gap(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,-nan\n4,5\n")
    np.testing.assert_array_equal(read_signals(tmp_path / "x.csv").values, [[1, np.nan], [4, 5]])


def test_names_that_start_like_formulas_are_told_of_and_left_as_they_are(tmp_path):
    names = ("=SUM(A1)", "+49", "@home", "-5 degrees", "plain=")
    said = r"csv start like formulas \(=SUM\(A1\), \+49, @home and 1 more\)"
    with pytest.warns(grcd.core.errors.InputWarning, match=said):
        write_signals(tmp_path / "x.csv", np.ones((3, 5)), names)
    with pytest.warns(grcd.core.errors.InputWarning, match=said):
        Filled(names, None, ()).write(tmp_path / "y.csv", [(np.arange(3), np.ones((2, 3, 5)))], (2, 3, 5))
    assert read_signals(tmp_path / "x.csv").node_ids == read_signals(tmp_path / "y.csv").node_ids == names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_signals(tmp_path / "x.npz", np.ones((3, 5)), names)
        write_signals(tmp_path / "z.csv", np.ones((3, 2)), ("a=", "b"))


def test_the_unit_travels(tmp_path):
    for ending in ("npz", "nc"):
        write_signals(tmp_path / f"x.{ending}", np.nan_to_num(VALUES), NAMES, "mph")
        assert read_signals(tmp_path / f"x.{ending}").unit == "mph"


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet", "nc"])
@examples(25)
@given(
    x=hnp.arrays(np.float64, (3, 2), elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
)
def test_what_is_written_comes_back_to_the_bit(tmp_path_factory, ending, x):
    path = tmp_path_factory.mktemp("x") / f"x.{ending}"
    write_signals(path, x, ("a", "b"))
    table = read_signals(path)
    assert table.node_ids == ("a", "b")
    np.testing.assert_array_equal(table.values, x)


def test_float32_stays_float32_and_large_tables_become_it(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", signals=VALUES.astype(np.float32))
    frame().astype(np.float32).to_parquet(tmp_path / "x.parquet")
    for name in ("x.npz", "x.parquet"):
        table = read_signals(tmp_path / name)
        assert table.values.dtype == np.float32
        np.testing.assert_array_equal(table.values, VALUES.astype(np.float32))
    np.save(tmp_path / "x.npy", VALUES)
    assert read_signals(tmp_path / "x.npy").values.dtype == np.float64
    monkeypatch.setattr("grcd.data.formats.table.LARGE", 11)
    np.testing.assert_array_equal(read_signals(tmp_path / "x.npy").values, VALUES.astype(np.float32))


@pytest.mark.parametrize("block", [1, 5, 100])
def test_streaming_in_blocks_changes_nothing(tmp_path, monkeypatch, block):
    monkeypatch.setattr("grcd.data.formats.npz.BLOCK", block)
    x = np.random.RandomState(0).standard_normal((13, 4))
    for name, array in {"c": x, "f": np.asfortranarray(x), "i": (100 * x).astype(np.int16)}.items():
        np.save(tmp_path / f"{name}.npy", array)
        np.testing.assert_array_equal(read_signals(tmp_path / f"{name}.npy").values, array)


def test_every_float64_comes_out_of_a_csv_file_to_the_bit(tmp_path, recwarn):
    bits = np.random.default_rng(0).integers(0, 2**64, 11_000, dtype=np.uint64).view(np.float64)
    x = bits[np.isfinite(bits)][:10_000].reshape(-1, 2)
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in x.tolist()))
    np.testing.assert_array_equal(read_signals(tmp_path / "x.csv").values.view(np.int64), x.view(np.int64))
    assert not recwarn.list  # nothing of pandas that is going away


def test_whole_numbers_of_any_size_are_readings(tmp_path):
    (tmp_path / "x.csv").write_text(f"a,b,c\n{10**30},{2**64 - 1},1\n2,-5,2\n,,3\n")
    table = read_signals(tmp_path / "x.csv")
    np.testing.assert_array_equal(table.values, [[1e30, 2.0**64, 1], [2, -5, 2], [np.nan, np.nan, 3]])
    assert (table.node_ids, table.times) == (("a", "b", "c"), None)


# -- times and names -------------------------------------------------------------------------------------------------

UTC = ["2024-01-02T00:00Z", "2024-01-02 01:00+00", "2024-01-02 02:00:00 +0000", "2024-01-02T03:00:00-00:00"]
ZONES = ["+01", "+0100", "+01:00", " +01", " +0100", " +01:00", "Z", " Z", "", "-02"]


def test_every_spelling_of_utc_is_one_zone():
    expected = np.datetime64("2024-01-02") + np.arange(4) * np.timedelta64(1, "h")
    np.testing.assert_array_equal(times.parsed(UTC, "x"), expected)
    np.testing.assert_array_equal(times.parsed(["2024-01-02", "2024-01-03 04:00"], "x")[0], expected[0])


@pytest.mark.parametrize("clock", ["2024-01-02T{}:00:00", "2024-01-02 {}:00", "20240102T{}00"])
def test_zones_are_the_same_or_refused_however_they_are_written(clock):
    hours = {"": None, "Z": 0, "-02": -2}
    for one, other in itertools.product(ZONES, ZONES):
        here, there = (hours.get(zone.strip(), 1) for zone in (one, other))
        cells = [clock.format("03") + one, clock.format("04") + other]
        if here != there:
            with pytest.raises(grcd.InputError, match="several offsets"):
                times.parsed(cells, "x")
        else:
            first = np.datetime64("2024-01-02T03:00") - np.timedelta64(here or 0, "h")
            with pytest.warns(grcd.core.errors.InputWarning, match="kept as UTC") if here else nullcontext():
                parsed = times.parsed(cells, "x")
            np.testing.assert_array_equal(parsed, [first, first + np.timedelta64(1, "h")], str(cells))


@pytest.mark.parametrize(
    "cell", ["now", "today", " Now", "NaT", "-2024-01-01", "inf", "\u0662\u0660\u0662\u0664-01-01"]
)
def test_only_what_begins_with_a_digit_is_a_time(cell):
    with pytest.raises(grcd.InputError, match=f"{cell.strip()!r} as time in row 2"):
        times.parsed(["2024-01-01", cell], "x")


NANOSECONDS = 1_704_067_200_000_000_000 + np.arange(4)


@pytest.mark.parametrize(
    "stamps", [NANOSECONDS, NANOSECONDS.astype(np.uint64), NANOSECONDS.astype(str), NANOSECONDS.astype("S")]
)
def test_nanoseconds_keep_their_digits(tmp_path, stamps):
    np.savez(tmp_path / "x.npz", signals=np.eye(4), timestamps=stamps[::-1])
    table = read_signals(tmp_path / "x.npz")
    np.testing.assert_array_equal(table.times, NANOSECONDS)
    np.testing.assert_array_equal(table.values, np.eye(4)[::-1])


def test_names_and_unit_may_be_bytes(tmp_path):
    for unit in (b"mph", "mph", np.array(["mph"]), np.array([b"mph"])):
        np.savez(tmp_path / "x.npz", signals=VALUES, node_ids=np.char.encode(NAMES), unit=unit, fold=[b"train"] * 3)
        table = read_signals(tmp_path / "x.npz", "fold")
        assert (table.node_ids, table.unit, list(table.labels)) == (NAMES, "mph", ["train"] * 3)


def test_netcdf_names_may_be_bytes_and_what_has_no_coordinate_has_no_names(tmp_path):
    import xarray

    array = xarray.DataArray(VALUES, dims=("time", "node"), attrs={"units": b"mph"})
    array.to_dataset(name="signals").to_netcdf(tmp_path / "bare.nc", engine="scipy")
    table = read_signals(tmp_path / "bare.nc")
    assert (table.node_ids, table.times, table.unit) == (None, None, "mph")
    named = array.assign_coords(node=np.char.encode(NAMES))
    named.to_dataset(name="signals").to_netcdf(tmp_path / "named.nc", engine="scipy")
    assert read_signals(tmp_path / "named.nc").node_ids == NAMES


def test_a_netcdf_4_file_without_its_engine_names_the_package(tmp_path, monkeypatch):
    _netcdf_4(tmp_path / "x.nc")
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    with pytest.raises(grcd.InputError, match=r'no h5netcdf .*(?s:.)*pip install "grcd\[netcdf\]"'):
        read_signals(tmp_path / "x.nc")
    with pytest.raises(grcd.InputError, match="no h5netcdf"):
        check_writable_ending(tmp_path / "y.nc")
    _netcdf(tmp_path / "z.nc")
    same(read_signals(tmp_path / "z.nc"))  # netCDF-3 needs none


@pytest.mark.parametrize("dated", [True, False])
def test_what_is_written_as_netcdf_is_version_4_and_comes_back_with_times_names_and_unit(tmp_path, dated):
    import h5py
    import xarray

    x, times = np.nan_to_num(VALUES), TIMES if dated else None
    write_signals(tmp_path / "x.nc", x, NAMES, "degrees C", times)
    assert h5py.is_hdf5(tmp_path / "x.nc")
    table = read_signals(tmp_path / "x.nc")
    np.testing.assert_array_equal(table.values, x)
    assert (table.node_ids, table.unit) == (NAMES, "degrees C")
    assert np.array_equal(table.times, TIMES) if dated else table.times is None
    with xarray.open_dataset(tmp_path / "x.nc", engine="h5netcdf") as file:
        assert file["signals"].dims == ("time" if dated else "sample", "node")
        file.load()
    older = tmp_path / "older.nc"
    file.to_netcdf(older, engine="scipy", format="NETCDF3_64BIT")
    assert older.read_bytes()[:3] == b"CDF"
    again = read_signals(older)
    np.testing.assert_array_equal(again.values, x)
    assert (again.node_ids, again.unit) == (NAMES, "degrees C")
    assert np.array_equal(again.times, TIMES) if dated else again.times is None


# -- parquet ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        TIMES.astype("datetime64[s]").astype(str),
        pd.DatetimeIndex(TIMES, name="when"),
        pd.DatetimeIndex(TIMES).tz_localize("UTC"),
    ],
    ids=["text", "named", "zone"],
)
def test_a_parquet_index_of_times_is_the_time(tmp_path, index):
    frame().set_index(index).to_parquet(tmp_path / "x.parquet")
    table = read_signals(tmp_path / "x.parquet")
    same(table)
    assert table.notes == ()


def test_a_parquet_index_of_anything_else_is_left_out_with_a_note(tmp_path):
    frame().set_index(pd.Index(["x", "y", "z"], name="run")).to_parquet(tmp_path / "x.parquet")
    table = read_signals(tmp_path / "x.parquet")
    same(table, times=False)
    assert table.notes == ("the index 'run' of x.parquet is no time: left out",)


@pytest.mark.parametrize("cells", [TIMES, TIMES.astype("datetime64[s]").astype(str)], ids=["dates", "text"])
def test_a_first_parquet_column_of_times_is_taken_and_named(tmp_path, cells):
    frame().assign(born=cells)[["born", *NAMES]].to_parquet(tmp_path / "x.parquet")
    table = read_signals(tmp_path / "x.parquet")
    same(table)
    assert table.notes == ("column 'born' of x.parquet is taken as the time",)


@pytest.mark.parametrize("ids", [[7, 8, 7, 8], [7.0, 8.0, 7.0, 8.0], pd.Categorical(["7", "8", "7", "8"])])
def test_whole_numbers_name_parquet_nodes_without_a_point(tmp_path, ids):
    long = pd.DataFrame({"time": [1, 1, 2, 2], "node": ids, "value": [1.0, 2.0, 3.0, 4.0]})
    long.iloc[[3, 0, 1, 2]].to_parquet(tmp_path / "x.parquet")  # with an index of its own
    table = read_signals(tmp_path / "x.parquet")
    assert sorted(table.node_ids) == ["7", "8"]
    assert table.values[:, table.node_ids.index("7")].tolist() == [1, 3]


def _text(text):
    return lambda path: path.write_text(text)


def _frame(**columns):
    return lambda path: pd.DataFrame(columns).to_parquet(path)


def _npz(**arrays):
    return lambda path: np.savez(path, signals=np.ones((4, 2)), **arrays)


def _bytes(data):
    return lambda path: path.write_bytes(data)


def _truncated(write, keep):
    def make(path):
        write(path)
        path.write_bytes(path.read_bytes()[:keep])

    return make


def _header(shape, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _zipped(method=zipfile.ZIP_STORED, **arrays):
    def make(path):
        with zipfile.ZipFile(path, "w", method) as file:
            for name, content in arrays.items():
                file.writestr(f"{name}.npy", content)

    return make


BAD = {
    "empty": ("x.csv", _text(""), "empty"),
    "header only": ("x.csv", _text("time,a,b\n"), "no rows"),
    "ragged, short": ("x.csv", _text("a,b,c\n1,2,3\n4,5\n"), "2 cells in row 2 .*\nexpected 3 cells"),
    "ragged, long": ("x.csv", _text("a,b\n1,2\n4,5,6\n"), "3 cells in row 2"),
    "all rows long": ("x.csv", _text("a,b\n1,2,3\n4,5,6\n"), "3 cells in row 1"),
    "text": ("x.csv", _text("a,b\n1,2\n4,five\n"), "'five' in row 2, column 'b'"),
    "long, otherwise called": (
        "x.csv",
        _text("when,dock,count\n1,North,2\n1,South,3\n2,North,4\n2,South,5\n3,North,6\n"),
        "'North' in row 1, column 'dock' .*\n.*\n.*call the columns time, node and value",
    ),
    "decimal commas": ("x.csv", _text("a;b\n1,5;2\n4;5\n"), "'1,5' in row 1, column 'a'.*\n.*\n.*decimal points"),
    "decimal commas, points between": (
        "x.csv",
        _text("a;b\n1;2\n4;1.234,5\n"),
        "'1.234,5' in row 2.*\n.*\n.*decimal points",
    ),
    "underscores": ("x.csv", _text("a,b\n1,1_000\n4,5\n"), "'1_000' in row 1.*\n.*\n.*write it plainly: 1000$"),
    "thin spaces": ("x.csv", _text("a,b\n1,2\n4,1\u2009000.5\n"), "row 2, column 'b'.*\n.*\n.*plainly: 1000.5$"),
    "a long minus": ("x.csv", _text("a,b\n1,2\n4,\u22125\n"), "row 2, column 'b'.*\n.*\n.*plainly: -5$"),
    "booleans": ("x.csv", _text("a,b\nTrue,2\nFalse,5\n"), "'True' in row 1, column 'a'"),
    "duplicate names": ("x.csv", _text("a,b,a\n1,2,3\n4,5,6\n"), "occur twice: 'a'"),
    "wrong delimiter": ("x.csv", _text("a|b|c\n1|2|3\n"), "one column in its first row, 'a|b|c'"),
    "a line above": ("x.csv", _text("# from the logger\na,b\n1,2\n"), "without lines above the header"),
    "no header, zeros": ("x.csv", _text("0.0,1.0,0.0\n1.0,0.0,2.0\n"), "numbers in its first row"),
    "forgotten split": ("x.csv", _text("a,b,fold\n1,2,train\n4,5,test\n"), "--split-by fold"),
    "dates of another kind": (
        "x.csv",
        _text("Datum,b\n01.05.2023,2\n02.05.2023,5\n"),
        "write it like 2024-03-01 00:05",
    ),
    "no header": ("x.csv", _text("1.5,2.5\n3.5,4.5\n"), "numbers in its first row.*\n.*\n.*add a first row with names"),
    "no header, counts": ("x.csv", _text("12,5,7\n13,4,8\n"), "numbers in its first row"),
    "no header, counts and halves": ("x.csv", _text("12,5\n13.5,4\n"), "numbers in its first row"),
    "no header, below zero": ("x.csv", _text("-5,3\n2.5,2.5\n"), "numbers in its first row"),
    "no header, same reading": ("x.csv", _text("5,5\n2.5,2.5\n"), "numbers in its first row"),
    "no header, a gap": ("x.csv", _text("5,NA,3\n2.5,2.5,1.5\n"), "numbers in its first row"),
    "no header, a gap first": ("x.csv", _text(",3.1,2.9\n1.2,3.2,2.7\n"), "numbers in its first row"),
    "no header, two counts": ("x.csv", _text("0,1\n3,4\n"), "numbers in its first row"),
    "no header, dates": ("x.csv", _text("2024-01-01 00:00,3.1\n2024-01-01 01:00,3.2\n"), "a date in its first row"),
    "no header, days": ("x.csv", _text("01.05.2023;a\n02.05.2023;3.2\n"), "a date in its first row"),
    "no header, hours": ("x.csv", _text("00:05,3.1\n00:10,3.2\n"), "a date in its first row"),
    "binary": ("x.csv", _bytes(b"PK\x03\x04\xff\xfe\x00"), "not UTF-8|cannot be read"),
    "open quote": ("x.csv", _text('a,b\n1,"2\n3,4\n'), "cannot be read"),
    "twice the same time": ("x.csv", _text("time,a,b\n2024-01-01,1,2\n2024-01-01,3,4\n"), "occur twice"),
    "not a time": ("x.csv", _text("time,a,b\n2024-01-01,1,2\nyesterday,3,4\n"), "'yesterday' as time in row 2"),
    "day first": ("x.csv", _text("time,a,b\n13/01/2024,1,2\n14/01/2024,3,4\n"), "'13/01/2024' as time"),
    "no time": ("x.csv", _text("time,a,b\n2024-01-01,1,2\n,3,4\n"), "no 'time' in row 2"),
    "mixed zones": (
        "x.csv",
        _text("time,a\n2024-01-01T00:00+01:00,1\n2024-01-01T02:00+02:00,2\n"),
        r"several offsets from UTC.*\+0100, \+0200",
    ),
    "zone and none": ("x.csv", _text("time,a\n2024-01-01T00:00Z,1\n2024-01-01T02:00,2\n"), "several offsets"),
    "two clocks": ("x.csv", _text("time,date,a\n2024-01-01,2024-01-01,1\n"), "several time columns"),
    "long, twice": ("x.csv", _text("time,node,value\n1,a,1\n2,a,1\n1,a,3\n"), "node 'a' twice .* row 3"),
    "long, no node": ("x.csv", _text("time,node,value\n1,a,1\n1,,3\n"), "no 'node' in row 2"),
    "long, text": ("x.csv", _text("time,node,value\n1,a,1\n1,b,x\n"), "'x' in row 2, column 'value'"),
    "long, and more": (
        "x.csv",
        _text("time,node,value,flag\n1,a,1,0\n"),
        "'flag'\nexpected .*exactly time, node and value",
    ),
    "clock": ("x.csv", _text("time,a,b\nnow,1,2\n2024-01-01,3,4\n"), "'now' as time in row 1"),
    "parquet, no node": ("x.parquet", _frame(time=[1, 1], node=["a", None], value=[1.0, 2]), "no 'node' in row 2"),
    "parquet, no id": ("x.parquet", _frame(time=[1, 1], node=[7, None], value=[1.0, 2]), "no 'node' in row 2"),
    "parquet, halves": ("x.parquet", _frame(time=[1, 1], node=[1.5, 2], value=[1.0, 2]), "'node' of shape .* float64"),
    "parquet, no category": (
        "x.parquet",
        _frame(time=[1, 1, 1], node=pd.Categorical(["a", None, "b"]), value=[1.0, 2, 3]),
        "no 'node' in row 2",
    ),
    "parquet, no time": ("x.parquet", _frame(time=[5, 6, None], a=[1.0, 2, 3]), "'nan' as time in row 3"),
    "parquet, two dates": ("x.parquet", _frame(a=[1.0], born=TIMES[:1]), "'born' .*holds timestamps"),
    "parquet, more": ("x.parquet", _frame(time=[1], sensor=["a"], reading=[1.0], flag=[0]), "exactly time, node"),
    "npz fields": ("x.npz", _npz(timestamps=np.zeros(4, [("a", int)])), "times of type"),
    "npz complex": ("x.npz", _npz(timestamps=np.arange(4) * 1j), "times of type complex128"),
    "npz truths": ("x.npz", _npz(timestamps=np.ones(4, bool)), "times of type bool"),
    "npz no time": ("x.npz", _npz(timestamps=[1.0, 2.0, np.nan, 3.0]), "'nan' as time in row 3"),
    "npz no date": ("x.npz", _npz(timestamps=np.array(["2024", "NaT", "2025", "2026"], "M8[s]")), "'NaT' as .* row 2"),
    "npz latin": ("x.npz", _npz(node_ids=[b"\xe9", b"a"]), "node names of shape"),
    "npz units": ("x.npz", _npz(unit=["mph", "km"]), "2 units"),
    "long name": ("long" * 100 + ".csv", lambda p: None, "no file"),
    "no signals": ("x.npz", lambda p: np.savez(p, other=np.ones(3)), "an array `signals`"),
    "npz cut": ("x.npz", _truncated(lambda p: np.savez(p, signals=np.ones((100, 3))), 200), "cannot be read"),
    "npz objects": ("x.npz", lambda p: np.savez(p, signals=np.array([[{}]], dtype=object)), "Python objects"),
    "npz names": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 3)), node_ids=["a", "b"]), "2 node names for 3"),
    "npz same names": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 2)), node_ids=["a", "a"]), "twice: a"),
    "npz times": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 2)), timestamps=[1, 2]), "times for 4 rows"),
    "npz of text": ("x.npz", lambda p: np.savez(p, signals=np.array([["a"]])), "of type <U1"),
    "npy cut": ("x.npy", _truncated(lambda p: np.save(p, np.ones((100, 3))), 300), "ends too early"),
    "npy claims": ("x.npy", _bytes(_header((10**15, 2)) + bytes(32)), "ends too early"),
    "npz claims": ("x.npz", _zipped(signals=_header((10**15, 2)) + bytes(32)), "ends too early"),
    "npz names claim": (
        "x.npz",
        _zipped(signals=_header((2, 2)) + bytes(32), node_ids=_header((2,), "<U500000000") + bytes(8)),
        "ends too early",
    ),
    "npy objects": ("x.npy", lambda p: np.save(p, np.array([{}], dtype=object)), "Python objects"),
    "npy flat": ("x.npy", lambda p: np.save(p, np.ones(5)), r"shape \(5,\)"),
    "npy no rows": ("x.npy", lambda p: np.save(p, np.ones((0, 5))), r"shape \(0, 5\)"),
    "npy no nodes": ("x.npy", lambda p: np.save(p, np.ones((5, 0))), r"shape \(5, 0\)"),
    "npy complex": ("x.npy", lambda p: np.save(p, np.ones((5, 2), dtype=complex)), "complex"),
    "csv as npz": ("x.npz", _text("a,b\n1,2\n"), "cannot be read"),
    "csv as parquet": ("x.parquet", _text("a,b\n1,2\n"), "cannot be read"),
    "csv as netcdf": ("x.nc", _text("a,b\n1,2\n"), "cannot be read"),
    "csv as hdf5": ("x.h5", _text("a,b\n1,2\n"), "to fix"),
    "parquet text": ("x.parquet", lambda p: pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet(p), "column 'b'.*string"),
    "unknown ending": ("x.xlsx", _text("no"), r"expected one of \.csv, \.parquet"),
    "no file": ("x.csv", lambda p: None, "no file"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_says_where_and_why(tmp_path, case):
    name, make, message = BAD[case]
    make(tmp_path / name)
    with pytest.raises(grcd.InputError, match=message) as caught:
        read_signals(tmp_path / name)
    assert all(part in str(caught.value) for part in ("got ", "\nexpected ", "\nto fix: "))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("x.npz", _zipped(zipfile.ZIP_LZMA, signals=_header((100_000, 2)) + bytes(1_600_000))),
        ("x.parquet", _frame(a=np.zeros(200_000))),
    ],
)
def test_a_few_bytes_that_claim_many_are_refused_and_small_claims_are_not(tmp_path, monkeypatch, name, make):
    make(tmp_path / name)
    assert len(read_signals(tmp_path / name).values) >= 100_000
    monkeypatch.setattr("grcd.data.formats.refusals.SMALL", 10**6)
    monkeypatch.setattr("grcd.data.formats.refusals.MOST", 100)
    with pytest.raises(grcd.InputError, match=r"claims 1\.6 MB and stores [0-9.]+ (kB|bytes)"):
        read_signals(tmp_path / name)


def check_table(path):
    """A valid table, or an error that says what to do; nothing else."""
    try:
        table = read_signals(path)
    except grcd.InputError:
        return
    rows, nodes = table.values.shape
    assert min(rows, nodes) > 0
    assert table.node_ids is None or len(set(table.node_ids)) == nodes
    if table.times is not None:
        assert (table.times[1:] > table.times[:-1]).all()


CELL = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(
        ["", "NA", "nan", "x", "1,5", "2024-01-01", "2024-01-01T00:00+01:00", '"', "time", "a", "1e999", "-"]
    ),
    st.text(max_size=4),
)


@examples(300)
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=5),
    separator=st.sampled_from([",", ";", "\t"]),
    head=st.sampled_from([None, "time", "time,node,value", "a,b,c"]),
)
def test_any_text_is_a_table_or_an_error(tmp_path_factory, rows, separator, head):
    path = tmp_path_factory.mktemp("x") / "x.csv"
    lines = [head.replace(",", separator)] if head else []
    path.write_text("\n".join(lines + [separator.join(row) for row in rows]), encoding="utf-8", errors="replace")
    check_table(path)


@pytest.mark.parametrize("name", [name for name in WRITTEN if not name.endswith(".nc")])
@examples(40)
@given(data=st.data())
def test_a_damaged_file_is_a_table_or_an_error(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("x") / name
    WRITTEN[name](path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    check_table(path)


def test_a_long_table_of_hardly_anything_is_refused_before_it_is_made_wide(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("time,node,value\n" + "".join(f"{i},n{i},1\n" for i in range(500)))
    assert read_signals(path).values.shape == (500, 500)
    monkeypatch.setattr(table_module, "SPARSE", 1000)
    with pytest.raises(grcd.InputError, match=r"500 times and 500 nodes, but only 500 rows .* most would be gaps"):
        read_signals(path)


def test_each_reader_has_its_example():
    assert all(ending in signals.__doc__ for ending in READERS)


def test_times_as_text_are_as_fine_as_they_have_to_be():
    hours, seconds = (np.array([f"2024-01-01T01:{end}"], "datetime64[ns]") for end in ("30", "30:05"))
    assert times.as_text(hours).tolist() == ["2024-01-01 01:30"]
    assert times.as_text(np.append(hours, seconds)).tolist() == ["2024-01-01 01:30:00", "2024-01-01 01:30:05"]
    assert times.as_text(hours + np.timedelta64(250, "ms")).tolist() == ["2024-01-01 01:30:00.250000"]
    assert times.as_text(np.array([3, 5])).tolist() == [3, 5]
