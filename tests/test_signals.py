"""Tables of readings: every format gives the same table, and what cannot be read says where and why."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import grcd
from grcd.data.signals import READERS, Table, read_signals
from grcd.data.writing import write_signals

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


def test_the_unit_travels(tmp_path):
    for ending in ("npz", "nc"):
        write_signals(tmp_path / f"x.{ending}", VALUES, NAMES, "mph")
        assert read_signals(tmp_path / f"x.{ending}").unit == "mph"


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet", "nc"])
@settings(max_examples=25, deadline=None)
@given(x=hnp.arrays(np.float64, (3, 2), elements=st.floats(allow_infinity=False, allow_subnormal=False)))
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
    monkeypatch.setattr("grcd.data.arrays.LARGE", 11)
    np.testing.assert_array_equal(read_signals(tmp_path / "x.npy").values, VALUES.astype(np.float32))


@pytest.mark.parametrize("block", [1, 5, 100])
def test_streaming_in_blocks_changes_nothing(tmp_path, monkeypatch, block):
    monkeypatch.setattr("grcd.data.arrays.BLOCK", block)
    x = np.random.RandomState(0).standard_normal((13, 4))
    for name, array in {"c": x, "f": np.asfortranarray(x), "i": (100 * x).astype(np.int16)}.items():
        np.save(tmp_path / f"{name}.npy", array)
        np.testing.assert_array_equal(read_signals(tmp_path / f"{name}.npy").values, array)


def _text(text):
    return lambda path: path.write_text(text)


def _bytes(data):
    return lambda path: path.write_bytes(data)


def _truncated(write, keep):
    def make(path):
        write(path)
        path.write_bytes(path.read_bytes()[:keep])

    return make


BAD = {
    "empty": ("x.csv", _text(""), "empty"),
    "header only": ("x.csv", _text("time,a,b\n"), "no rows"),
    "ragged, short": ("x.csv", _text("a,b,c\n1,2,3\n4,5\n"), "2 cells in row 2 .*\nexpected 3 cells"),
    "ragged, long": ("x.csv", _text("a,b\n1,2\n4,5,6\n"), "3 cells in row 2"),
    "all rows long": ("x.csv", _text("a,b\n1,2,3\n4,5,6\n"), "3 cells in row 1"),
    "text": ("x.csv", _text("a,b\n1,2\n4,five\n"), "'five' in row 2, column 'b'"),
    "decimal commas": ("x.csv", _text("a;b\n1,5;2\n4;5\n"), "'1,5' in row 1, column 'a'.*\n.*\n.*decimal points"),
    "booleans": ("x.csv", _text("a,b\nTrue,2\nFalse,5\n"), "'True' in row 1, column 'a'"),
    "duplicate names": ("x.csv", _text("a,b,a\n1,2,3\n4,5,6\n"), "occur twice: 'a'"),
    "wrong delimiter": ("x.csv", _text("a|b|c\n1|2|3\n"), "one column, 'a|b|c'"),
    "no header": ("x.csv", _text("1.5,2.5\n3.5,4.5\n"), "numbers in its first row"),
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
    "no signals": ("x.npz", lambda p: np.savez(p, other=np.ones(3)), "an array `signals`"),
    "npz cut": ("x.npz", _truncated(lambda p: np.savez(p, signals=np.ones((100, 3))), 200), "cannot be read"),
    "npz objects": ("x.npz", lambda p: np.savez(p, signals=np.array([[{}]], dtype=object)), "Python objects"),
    "npz names": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 3)), node_ids=["a", "b"]), "2 node names for 3"),
    "npz same names": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 2)), node_ids=["a", "a"]), "twice: a"),
    "npz times": ("x.npz", lambda p: np.savez(p, signals=np.ones((4, 2)), timestamps=[1, 2]), "times for 4 rows"),
    "npz of text": ("x.npz", lambda p: np.savez(p, signals=np.array([["a"]])), "of type <U1"),
    "npy cut": ("x.npy", _truncated(lambda p: np.save(p, np.ones((100, 3))), 300), "ends too early"),
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


@settings(max_examples=300, deadline=None)
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
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_a_table_or_an_error(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("x") / name
    WRITTEN[name](path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    check_table(path)


def test_each_reader_has_its_example():
    from grcd.data import signals

    assert all(ending in signals.__doc__ for ending in READERS)
