"""DataFrames in HDF5, in the layout pandas writes through pytables, made by hand with h5py."""

import h5py
import numpy as np
import pytest

from grcd.core.errors import InputError
from grcd.data.formats import refusals
from grcd.data.formats.hdf5 import read_frame
from grcd.data.formats.matlab import read_matlab
from grcd.data.formats.signals import read_signals

NANOSECONDS = np.arange("2012-03-01T00:00", "2012-03-01T00:50", 5, dtype="datetime64[m]").astype("datetime64[ns]")
STORED = NANOSECONDS.view("i8")
NAMES = ["773869", "767541", "717447"]
VALUES = np.random.RandomState(0).standard_normal((len(NANOSECONDS), 3))


def pandas_type(node, kind, **attributes):
    node.attrs["CLASS"] = np.bytes_(b"GROUP")
    node.attrs["pandas_type"] = np.bytes_(kind.encode())
    node.attrs["pandas_version"] = np.bytes_(b"0.15.2")
    for name, value in attributes.items():
        node.attrs[name] = value


def axis(group, name, values, kind):
    node = group.create_dataset(name, data=values)
    node.attrs["kind"] = np.bytes_(kind.encode())
    node.attrs["name"] = np.bytes_(b"N.")  # a pickled None
    node.attrs["transposed"] = np.True_
    return node


def text(names):
    return np.array([name.encode() for name in names])


def frame(file, key="df", blocks=((NAMES, VALUES),), columns=NAMES, times=STORED, kind="datetime64"):
    """One frame as `to_hdf(..., format="fixed")` lays it out."""
    group = file.create_group(key)
    pandas_type(group, "frame", ndim=2, nblocks=len(blocks), axis0_variety=b"regular", axis1_variety=b"regular")
    axis(group, "axis0", text(columns), "string")
    axis(group, "axis1", times, kind)
    for i, (items, values) in enumerate(blocks):
        axis(group, f"block{i}_items", text(items), "string")
        group.create_dataset(f"block{i}_values", data=values).attrs["transposed"] = np.True_
    return group


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metr-la.h5"


@pytest.fixture
def file(path):
    with h5py.File(path, "w") as file:
        yield file


def test_values_names_and_times_come_out_to_the_bit(path, file):
    frame(file)
    file.flush()
    values, columns, times = read_frame(path)
    assert values.dtype == np.float64
    assert np.array_equal(values, VALUES)
    assert columns == NAMES
    assert times.dtype == "datetime64[ns]"
    assert np.array_equal(times, NANOSECONDS)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_are_the_same_times(path, file, unit):
    frame(file, times=NANOSECONDS.astype(f"datetime64[{unit}]").view("i8"), kind=f"datetime64[{unit}]")
    file.flush()
    assert np.array_equal(read_frame(path)[2], NANOSECONDS)


def test_blocks_of_several_types_fall_into_their_columns(path, file):
    whole = np.arange(len(VALUES)).reshape(-1, 1)
    blocks = [(["b", "d"], VALUES[:, :2]), (["c"], whole.astype("i8")), (["a"], (2 * whole).astype("f4"))]
    frame(file, blocks=blocks, columns=["a", "b", "c", "d"])
    file.flush()
    values, columns, _ = read_frame(path)
    assert columns == ["a", "b", "c", "d"]
    expected = {"a": 2.0 * whole[:, 0], "b": VALUES[:, 0], "c": whole[:, 0], "d": VALUES[:, 1]}
    for name, column in zip(columns, values.T, strict=True):
        assert np.array_equal(column, expected[name])


def test_rows_may_be_numbered_and_columns_named_by_numbers(path, file):
    group = frame(file, times=np.arange(len(VALUES)), kind="integer")
    for name in ("axis0", "block0_items"):
        del group[name]
        axis(group, name, np.array([773869, 767541, 717447]), "integer")
    file.flush()
    values, columns, times = read_frame(path)
    assert columns == NAMES
    assert np.array_equal(values, VALUES)
    assert times is None


def test_float32_stays_float32_and_large_frames_become_it(path, file, monkeypatch):
    frame(file, "small", blocks=[(NAMES, VALUES.astype("f4"))])
    frame(file, "mixed", blocks=[(NAMES[:1], VALUES[:, :1].astype("f4")), (NAMES[1:], VALUES[:, 1:])])
    file.flush()
    assert read_frame(path, "small")[0].dtype == np.float32
    assert read_frame(path, "mixed")[0].dtype == np.float64
    monkeypatch.setattr("grcd.data.formats.table.LARGE", VALUES.size - 1)
    assert read_frame(path, "mixed")[0].dtype == np.float32


def test_a_compressed_frame_reads_the_same(path, file):
    group = frame(file)
    del group["block0_values"]
    group.create_dataset("block0_values", data=VALUES, chunks=(4, 2), compression="gzip")
    file.flush()
    assert np.array_equal(read_frame(path)[0], VALUES)


def test_one_of_several_frames_is_chosen_by_its_key(path, file):
    frame(file, "speed")
    frame(file, "deep/flow", blocks=[(NAMES, 2 * VALUES)])
    file.flush()
    with pytest.raises(InputError, match=r"(?s)2 frames: deep/flow, speed.*a file of its own"):
        read_frame(path)
    assert np.array_equal(read_frame(path, "/deep/flow")[0], 2 * VALUES)
    assert np.array_equal(read_frame(path, "speed")[0], VALUES)
    with pytest.raises(InputError, match="did you mean 'speed'"):
        read_frame(path, "sped")


# -- what is refused -------------------------------------------------------------------------------------------------


def _table(file):
    pandas_type(file.create_group("df"), "frame_table")


def _series(file):
    pandas_type(file.create_group("df"), "series")


def _replaced(name, **new):
    def spoil(file):
        group = frame(file)
        del group[name]
        if new:
            group.create_dataset(name, **new)

    return spoil


def _dates(file):
    frame(file, blocks=[(NAMES, VALUES.astype("i8"))])["block0_values"].attrs["value_type"] = b"datetime64"


NAT = np.iinfo(np.int64).min  # how "no time" is stored
PICKLED = {"shape": (1,), "dtype": h5py.vlen_dtype(np.uint8)}  # how pytables keeps objects


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: None, "no DataFrame"),
        (lambda file: file.create_dataset("x", data=VALUES), "no DataFrame"),
        (_series, "no DataFrame"),
        (_table, 'format "table"'),
        (_dates, "not numbers"),
        (_replaced("block0_values", **PICKLED), "not numbers"),
        (_replaced("axis0", **PICKLED), "neither text nor numbers"),
        (_replaced("block0_values"), f"without values for {NAMES[0]}"),
        (_replaced("block0_items"), "cannot be read"),
        (_replaced("axis1"), "cannot be read"),
        (_replaced("block0_values", data=VALUES.T), "axes say"),
        (_replaced("block0_values", data=VALUES[:-1]), "axes say"),
        (_replaced("block0_items", data=text(["773869", "767541", "stranger"])), "cannot be read"),
        (_replaced("axis0", data=np.array([b"\xff", b"a", b"b"])), "cannot be read"),
        (lambda file: frame(file, kind="datetime64[fortnight]"), "fortnight"),
        (lambda file: frame(file, times=np.r_[STORED[:4], NAT, STORED[5:]]), "'NaT' as time in row 5"),
        (lambda file: frame(file, times=NAT * np.ones(10, "i8"), kind="datetime64[s]"), "'NaT' as time in row 1"),
        (lambda file: frame(file, times=np.arange(10) + 1, kind="integer"), "an index of kind integer"),
        (lambda file: frame(file, times=text("abcdefghij"), kind="string"), "an index of kind string"),
        (lambda file: frame(file, times=np.arange(10.0)), "stored as float64"),
        (lambda file: frame(file, blocks=[(NAMES[:2], VALUES[:, :2])]), "without values for 717447"),
        (lambda file: frame(file, blocks=[(NAMES, VALUES), (NAMES[:1], VALUES[:, :1])]), "without values for 773869"),
        (lambda file: frame(file, columns=["a", "a", "b"], blocks=[(["a", "b"], VALUES[:, :2])]), "each column once"),
        (lambda file: frame(file, times=np.zeros(0, "i8"), blocks=[(NAMES, VALUES[:0])]), "0 rows"),
    ],
)
def test_what_cannot_be_read_is_said(path, file, spoil, message):
    spoil(file)
    file.flush()
    with pytest.raises(InputError, match=message) as caught:
        read_frame(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("keep", [0, 7, 100, 600, 2_000, -1])
def test_a_truncated_file_is_an_input_error(path, keep):
    with h5py.File(path, "w") as file:
        frame(file)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"metr-la\.h5"):
        read_frame(path)


def test_every_damaged_byte_is_an_input_error_or_a_frame(path):
    """Flip bytes all over the file: h5py may read it or fail, but only with our error."""
    with h5py.File(path, "w") as file:
        frame(file)
    whole = path.read_bytes()
    for place in np.random.RandomState(1).choice(len(whole), 150, replace=False):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            values, columns, _ = read_frame(path)
        except InputError:
            continue
        assert values.shape == (len(VALUES), len(columns))


def test_a_file_that_is_not_there_and_one_of_another_kind_say_so(tmp_path):
    with pytest.raises(InputError, match=r"absent\.h5"):
        read_frame(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("timestamp,1\n")
    with pytest.raises(InputError, match="cannot be read as HDF5"):
        read_frame(tmp_path / "text.h5")


# -- what leads out of the file, and what it claims ------------------------------------------------------------------


def _linked(group, other):
    group["block0_values"] = h5py.ExternalLink(other, "/df/block0_values")


def _raw(group, other):
    group.create_dataset("block0_values", VALUES.shape, "f8", external=[(other, 0, VALUES.nbytes)])


def _virtual(group, other):
    layout = h5py.VirtualLayout(VALUES.shape, "f8")
    layout[:] = h5py.VirtualSource(other, "df/block0_values", VALUES.shape)
    group.create_virtual_dataset("block0_values", layout)


READ = {"x.h5": read_frame, "x.mat": read_matlab, "x.nc": read_signals}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("point", [_linked, _raw, _virtual])
def test_values_of_another_file_are_not_read_out(tmp_path, name, point):
    other = str(tmp_path / "other.h5")
    with h5py.File(other, "w") as file:
        frame(file)
    with h5py.File(tmp_path / name, "w") as file:
        group = frame(file)
        del group["block0_values"]
        point(group, other)
    with pytest.raises(InputError, match=r"(?s)block0_values.*other files?,.*write the values themselves"):
        READ[name](tmp_path / name)


def test_a_reference_of_a_matlab_file_leads_nowhere_else(tmp_path):
    (tmp_path / "other").write_bytes(VALUES.tobytes())
    with h5py.File(tmp_path / "x.mat", "w") as file:
        space, kind = h5py.h5s.create_simple((3,)), h5py.h5t.IEEE_F64LE
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_external(str(tmp_path / "other").encode(), 0, 24)
        hidden = h5py.Dataset(h5py.h5d.create(file.id, None, kind, space, settings))  # no group has a link to it
        file.create_dataset("cell", data=np.array([hidden.ref], dtype=h5py.ref_dtype))
        file.flush()
        with pytest.raises(InputError, match="whose values are in other files"):
            read_matlab(tmp_path / "x.mat")


def test_a_link_within_the_file_is_followed(path, file):
    group = frame(file)
    file.move("df/block0_values", "elsewhere")
    group["block0_values"] = h5py.SoftLink("/elsewhere")
    file.flush()
    assert np.array_equal(read_frame(path)[0], VALUES)


@pytest.mark.parametrize("name", READ)
def test_what_is_claimed_is_compared_with_what_is_stored(tmp_path, name):
    rows = 10**8
    with h5py.File(tmp_path / name, "w") as file:
        group = frame(file)
        for part, shape in {"block0_values": (rows, 3), "axis1": (rows,)}.items():
            del group[part]
            group.create_dataset(part, shape, "i8", chunks=(1000, *shape[1:]), fillvalue=1)
    assert (tmp_path / name).stat().st_size < 10_000
    with pytest.raises(InputError, match=r"claims 3\.2 GB and stores [0-9]+ bytes"):
        READ[name](tmp_path / name)


def test_many_small_claims_are_one_large_claim(path, file, monkeypatch):
    frame(file)
    monkeypatch.setattr(refusals, "MOST", 5)
    monkeypatch.setattr(refusals, "SMALL", 0)
    for part in range(3):
        file.create_dataset(f"{part}", VALUES.shape, "f8")
    file.flush()
    assert np.array_equal(read_frame(path)[0], VALUES)
    for part in range(3, 6):
        file.create_dataset(f"{part}", VALUES.shape, "f8")
    file.flush()
    with pytest.raises(InputError, match=r"claims 1\.8 kB and stores 356 bytes"):
        read_frame(path)


def test_the_densest_compression_there_is_passes(path, file, monkeypatch):
    monkeypatch.setattr(refusals, "SMALL", 0)
    node = file.create_dataset("x", data=np.zeros(10**6), chunks=(10**6,), compression="gzip", compression_opts=9)
    file.flush()
    assert 8e6 / node.id.get_storage_size() > 1000
    refusals.refuse_datasets([node], path)
    with pytest.raises(InputError, match=r"claims 16\.0 MB and stores"):
        refusals.refuse_datasets([node, file.create_dataset("y", (10**6,), "f8")], path)


def test_more_than_the_machine_has_is_refused_before_it_is_asked_for(path, file, monkeypatch):
    frame(file)
    file.flush()
    monkeypatch.setattr("grcd.core.memory.total", lambda: 100.0)
    with pytest.raises(InputError, match="expected what fits into memory, 100 bytes"):
        read_frame(path)
