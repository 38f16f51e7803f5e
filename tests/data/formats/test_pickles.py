"""Pickles are read, never run: what numpy would rebuild comes out to the bit, everything else is refused and named."""

import copyreg
import os
import pickle
import struct
from collections import OrderedDict
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError
from grcd.data.formats.pickles import adjacency, load

IDS = ["773869", "767541", "717447"]
INDEX = {name: place for place, name in enumerate(IDS)}
WEIGHTS = np.array([[1.0, 0.3333333, 0.0], [0.0, 1.0, 0.9], [0.1, 0.0, 1.0]], dtype=np.float32)


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "adj_mx.pkl"
        path.write_bytes(data)
        return path

    return write


def python2(text):
    """DCRNN's triple as Python 2 wrote it; ``text`` writes a byte string."""
    dtype = b"cnumpy\ndtype\n(" + text(b"f4") + b"I0\nI1\ntR(I3\n" + text(b"<") + b"NNNI-1\nI-1\nI0\ntb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt" + text(b"b") + b"tR"
    array += b"(I1\n(I3\nI3\nt" + dtype + b"I00\n" + text(WEIGHTS.tobytes()) + b"tb"
    names = b"(l" + b"".join(text(name.encode()) + b"a" for name in IDS)
    index = b"(d" + b"".join(text(name.encode()) + b"I%d\ns" % place for name, place in INDEX.items())
    return b"(l" + names + b"a" + index + b"a" + array + b"a."


def old_text(data):  # protocol 0
    return b"S" + repr(data)[1:].encode() + b"\n"


def binary_text(data):  # protocols 1 and 2
    return b"U" + bytes([len(data)]) + data if len(data) < 256 else b"T" + struct.pack("<i", len(data)) + data


# -- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [python2(old_text), b"\x80\x02" + python2(binary_text)], ids=["protocol 0", "2"])
def test_the_python_2_pickle_comes_out_to_the_bit(write, data):
    ids, weights = adjacency(write(data))
    assert ids == IDS
    assert weights.dtype == np.float32
    assert weights.tobytes() == WEIGHTS.tobytes()
    theirs = pickle.loads(data, encoding="latin1")  # the hand-written pickle is what numpy reads too
    assert theirs[:2] == [IDS, INDEX]
    assert np.array_equal(theirs[2], WEIGHTS)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("core", [b"numpy._core", b"numpy.core"])
def test_python_3_pickles_come_out_to_the_bit(write, protocol, core):
    data = pickle.dumps((IDS, INDEX, WEIGHTS), protocol)
    if protocol < 4:  # names are lines there, without a length before them
        data = data.replace(b"numpy._core", core)
    ids, weights = adjacency(write(data))
    assert ids == IDS
    assert weights.tobytes() == WEIGHTS.tobytes()
    weights[0, 0] = 2.0  # ours to write to


ARRAYS = [
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(6, dtype=">i2").reshape(2, 3),
    np.array([[True, False]]),
    np.arange(24, dtype=np.uint8).reshape(2, 3, 4)[:, ::2],
    np.array(3.5),
    np.array([np.nan, -0.0, np.inf, 5e-324]),
]


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_arrays_of_any_order_and_type_come_back(write, array, protocol):
    value = load(write(pickle.dumps({"array": array, "rest": [1, -2.5, None, True, "ä", b"\xff", ()]}, protocol)))
    assert value["rest"] == [1, -2.5, None, True, "ä", b"\xff", ()]
    assert value["array"].shape == array.shape
    assert value["array"].dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(value["array"], array, equal_nan=array.dtype.kind == "f")


def test_what_is_shared_stays_shared_and_what_holds_itself_ends(write):
    twice = [WEIGHTS]
    loop = [twice, twice]
    loop.append(loop)
    value = load(write(pickle.dumps(loop)))
    assert value[0] is value[1]
    assert value[2] is value
    many = ()
    for _ in range(60):  # 2^60 leaves, if sharing were lost
        many = (many, many)
    value = load(write(pickle.dumps(many)))
    for _ in range(60):
        assert value[0] is value[1]
        value = value[0]
    assert value == ()


def test_a_lone_square_array_has_no_names(write):
    ids, weights = adjacency(write(pickle.dumps(WEIGHTS, 2)))
    assert ids is None
    assert np.array_equal(weights, WEIGHTS)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "NoneType"),
        ([IDS, INDEX], "holds a list"),
        ((INDEX, IDS, WEIGHTS), r"\(dict, list, ndarray\)"),
        ((IDS, INDEX, WEIGHTS[:2]), "not square"),
        ((IDS, INDEX, WEIGHTS * np.float32(np.nan)), "not finite"),
        ((IDS[:2], {"773869": 0, "767541": 1}, WEIGHTS), "2 names"),
        ((IDS, INDEX | {"773869": 1}, WEIGHTS), "do not number the rows"),
        ((IDS, INDEX | {"773869": WEIGHTS}, WEIGHTS), "do not number the rows"),
        ((IDS[:2] * 2, INDEX, np.ones((4, 4))), "do not number the rows"),
        (np.ones(3), "not square"),
    ],
)
def test_other_things_than_an_adjacency_are_described(write, value, message):
    with pytest.raises(InputError, match=message):
        adjacency(write(pickle.dumps(value)))


# -- what is refused -------------------------------------------------------------------------------------------------


class Calls:
    """Pickles into a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def touch(path):
    return b"touch '" + os.fsencode(path) + b"'"


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_is_named_and_not_run(write, tmp_path, protocol):
    data = pickle.dumps([IDS, Calls(os.system, touch(tmp_path / "ran").decode())], protocol)
    with pytest.raises(InputError, match=r"asks for (posix|nt)\.system"):
        load(write(data))
    assert not (tmp_path / "ran").exists()
    pickle.loads(data)  # the charge is live: the standard library would have run it
    assert (tmp_path / "ran").exists()


RUN = b"__import__('pathlib').Path('%s').touch()"
CODE = {
    "REDUCE": (b"cbuiltins\neval\n(S\"RUN\"\ntR.", "builtins.eval"),
    "Python 2 name": (b"c__builtin__\neval\n(S\"RUN\"\ntR.", "__builtin__.eval"),
    "STACK_GLOBAL": (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93(S\"RUN\"\ntR.", "builtins.eval"),
    "INST": (b"(S\"RUN\"\nibuiltins\neval\n.", "builtins.eval"),
    "OBJ": (b"(cbuiltins\neval\nS\"RUN\"\no.", "builtins.eval"),
    "OBJ of a name that is allowed": (b"(cnumpy\ndtype\nS'f4'\no.", "OBJ"),
    "NEWOBJ": (b"\x80\x02cnumpy\nndarray\n(I1\nt\x81.", "NEWOBJ"),
    "NEWOBJ_EX": (b"\x80\x04cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX"),
    "copyreg": (b"ccopyreg\n_reconstructor\n(cbuiltins\nobject\ncbuiltins\nobject\nNtR.", "copyreg._reconstructor"),
    "numpy's own way in": (b"cnumpy.testing._private.utils\nrunstring\n(S\"RUN\"\n}tR.", "runstring"),
    "attributes": (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__call__\x93.", "numpy.dtype.__call__"),
    "getattr": (b"cbuiltins\ngetattr\n(cnumpy\ndtype\nS'mro'\ntR.", "builtins.getattr"),
    "scalar": (b"cnumpy.core.multiarray\nscalar\n.", "numpy.core.multiarray.scalar"),
    "persistent id": (b"Pabc\n.", "PERSID"),
    "binary persistent id": (b"S'abc'\nQ.", "BINPERSID"),
    "EXT1": (b"\x82\x01.", "EXT1"),
    "EXT2": (b"\x83\x01\x00.", "EXT2"),
    "EXT4": (b"\x84\x01\x00\x00\x00.", "EXT4"),
    "set": (b"\x80\x04\x8f.", "EMPTY_SET"),
    "buffer": (b"\x80\x05\x97.", "NEXT_BUFFER"),
    "call of a string": (b"S'eval'\n(S'1'\ntR.", "call of a str"),
    "call of a list's method": (b"(l(tR.", "call of a list"),
    "state for a name": (b"cnumpy\ndtype\n}S'call'\nNsb.", "change to a _Name"),
    "state for a name's slot": (b"cnumpy\ndtype\n(N}S'call'\nNstb.", "change to a _Name"),
    "state for a list": (b"(l}b.", "change to a list"),
    "for a name": (b"cnumpy\ndtype\n.", "for a name"),
    "a type on its own": (b"cnumpy\ndtype\n(S'f4'\ntR.", "for a dtype"),
    "an array without state": (b"cnumpy\nndarray\n(tR.", "for an array"),
    "encoding": (b"c_codecs\nencode\n(S'abc'\nS'rot13'\ntR.", "encoding 'rot13'"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "asked"), CODE.values(), ids=CODE)
def test_nothing_is_run_and_what_was_asked_for_is_named(write, tmp_path, data, asked):
    ran = tmp_path / "ran"
    with pytest.raises(InputError) as caught:
        load(write(data.replace(b"RUN", RUN % os.fsencode(ran))))
    assert asked in str(caught.value).splitlines()[0]
    assert "asks for" in str(caught.value)
    assert not ran.exists()


def test_a_registered_extension_is_refused_too(write, tmp_path):
    copyreg.add_extension("os", "system", 0x33)
    try:
        data = (
            b"\x80\x02\x82\x33(X%b%bt"
            % (
                struct.pack("<i", len(touch(tmp_path / "ran"))),
                touch(tmp_path / "ran"),
            )
            + b"R."
        )
        pickle.loads(b"\x80\x02\x82\x33.")  # now it is in the cache, which find_class would not see
        with pytest.raises(InputError, match="EXT1"):
            load(write(data))
    finally:
        copyreg.remove_extension("os", "system", 0x33)
        copyreg._extension_cache.clear()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (np.array([{}, "x"], dtype=object), "type 'O8'"),
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), "type 'V12'"),
        (np.array(["a"]), "type 'U1'"),
        (np.array(["2012-03-01"], dtype="M8[D]"), "type 'M8'"),
        (np.float32(1.0), "scalar"),
        (Fraction(1, 2), "fractions.Fraction"),
        (OrderedDict(a=1), "collections.OrderedDict"),
        (np.ma.masked_array([1.0], [True]), "numpy.ma"),
        (1j, "complex"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_are_refused(write, value, asked, protocol):
    with pytest.raises(InputError) as caught:
        load(write(pickle.dumps([value], protocol)))
    assert asked in str(caught.value)


def _built(shape=b"(I2\nt", dtype=b"S'f4'\n", data=b"S'12345678'\n", order=b"S'<'\n"):
    dtype = b"cnumpy\ndtype\n(" + dtype + b"I0\nI1\ntR(I3\n" + order + b"NNNI-1\nI-1\nI0\ntb"
    return b"cnumpy\nndarray\n(tR(I1\n" + shape + dtype + b"I00\n" + data + b"tb."


def test_the_builder_below_builds(write):
    assert load(write(_built())).tobytes() == b"12345678"


@pytest.mark.parametrize(
    "parts",
    [
        {"shape": b"(I3\nt"},
        {"shape": b"(I-1\nI-2\nt"},
        {"shape": b"(I9223372036854775807\nI9223372036854775807\nt"},
        {"shape": b"(I0\nI4611686018427387904\nt"},
        {"shape": b"(F2.0\nt"},
        {"shape": b"N"},
        {"data": b"N"},
        {"data": b"I8\n"},
        {"data": b"V\\u20ac2345678\n"},
        {"data": b"(lI1\naI2\naI3\naI4\naI5\naI6\naI7\naI8\na"},
        {"order": b"S'?'\n"},
        {"order": b"N"},
        {"dtype": b"N"},
        {"dtype": b"S'O8'\n"},
    ],
    ids=str,
)
def test_arrays_whose_parts_do_not_fit_are_refused(write, parts):
    with pytest.raises(InputError):
        load(write(_built(**parts)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"no pickle",
        pickle.dumps((IDS, INDEX, WEIGHTS))[:-40],
        b"(" * 100_000 + b"t" * 99_999 + b".",  # deeper than any recursion
        b"I" + b"9" * 5_000 + b"\n.",
        b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc.",  # claims a terabyte
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.",
        b"\x80\xff.",
        b"(l(dt}]s.",
        b"h\x05.",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_damaged_files_are_input_errors(write, data):
    with pytest.raises(InputError):
        load(write(data))


def test_a_small_file_cannot_ask_for_much_memory(write):
    """One text of 100 kB, encoded a thousand times over."""
    data = b"\x80\x02c_codecs\nencode\nq\x000X" + struct.pack("<i", 100_000) + b"a" * 100_000 + b"q\x010(l"
    data += b"h\x00h\x01X\x06\x00\x00\x00latin1\x86Ra" * 1_000 + b"."
    with pytest.raises(InputError, match="more memory"):
        load(write(data))
    huge = b"\x80\x02Nr" + struct.pack("<I", 2**32 - 1) + b"."  # a memo index that the C machine would make room for
    assert load(write(huge)) is None


def _shared(kind, depth):
    """As many leaves as 2^depth, in a file of a few hundred bytes."""
    value = kind(["leaf"])
    for _ in range(depth):
        value = kind([value, value])
    return value


NAMELESS = [_shared(list, 60), _shared(tuple, 60), None, 1.5, True, 10**5000, WEIGHTS]


@pytest.mark.parametrize("place", range(len(NAMELESS)))
def test_names_are_text_or_whole_numbers(write, place):
    kind = type(NAMELESS[place]).__name__
    with pytest.raises(InputError, match=f"a {kind} as a sensor's name"):
        adjacency(write(pickle.dumps(([*IDS[:2], NAMELESS[place]], INDEX, WEIGHTS), 2)))


def test_whole_numbers_and_bytes_are_names(write):
    names = [773869, b"767541", "717447"]
    index = {name: place for place, name in enumerate(names)}
    assert adjacency(write(pickle.dumps((names, index, WEIGHTS))))[0] == IDS


@pytest.mark.parametrize(
    "data",
    [
        b"(%sI0\nd.",  # DICT
        b"}%sI0\ns.",  # SETITEM
        b"}(%sI0\nu.",  # SETITEMS
        b"cnumpy\ndtype\n(%sI0\nI1\ntR.",
        b"c_codecs\nencode\n(S'a'\n%stR.",
    ],
)
def test_what_is_shared_is_neither_hashed_nor_spelt_out(write, data):
    nested = b"(t" + b"p0\ng0\n\x86" * 60  # 2^60 leaves: their hash would not be done today
    with pytest.raises(InputError, match=r"a tuple as a key|no known type|without a name"):
        load(write(b"\x80\x02" + data.replace(b"%s", nested)))


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(InputError, match=r"absent\.pkl"):
        load(tmp_path / "absent.pkl")
    with pytest.raises(InputError, match=str(tmp_path)):
        load(tmp_path)


# -- fuzzing ---------------------------------------------------------------------------------------------------------

VALID = [pickle.dumps((IDS, INDEX, WEIGHTS), protocol) for protocol in (0, 2, 4, 5)] + [python2(old_text)]
PIECES = [bytes([code]) for code in range(256)] + [
    b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"c_codecs\nencode\n", b"cnumpy.core.numeric\n_frombuffer\n",
    b"cos\nsystem\n", b"S'f4'\n", b"I8\n", b"S'12345678'\n", b"(I2\nt", b"(I3\nS'<'\nNNNI-1\nI-1\nI0\nt", b"K\x01",
    b"h\x00", b"q\x00", b"}", b"]", b")", b"N",
]  # fmt: skip


def _value_or_input_error(path, data):
    path.write_bytes(data)
    for read in (load, adjacency):
        with suppress(InputError):
            read(path)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "x.pkl"


@given(data=st.binary(max_size=200))
@examples(300)
def test_random_bytes_are_a_value_or_an_input_error(scratch, data):
    _value_or_input_error(scratch, data)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30))
@examples(400)
def test_random_programs_are_a_value_or_an_input_error(scratch, pieces):
    _value_or_input_error(scratch, b"".join(pieces) + b".")


@given(
    data=st.sampled_from(VALID),
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=4),
)
@examples(400)
def test_damaged_pickles_are_a_value_or_an_input_error(scratch, data, edits):
    for place, new, drop in edits:
        place %= len(data) + 1
        data = data[:place] + new + data[place + drop :]
    _value_or_input_error(scratch, data)
