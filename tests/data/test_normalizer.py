"""Signals at the border: z-scores against naive statistics, and every refusal with the reason and the remedy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core.errors import InputError
from grcd.data.normalizer import Normalizer, check_signals
from grcd.graphs.graph import Graph
from grcd.graphs.space import SignalSpace

many = examples(40)
NAMES = ["north", "east", "south", "west"]
GRAPH = Graph.from_adjacency(np.ones((4, 4)), NAMES)
SPACE = SignalSpace(GRAPH)
seeds = st.integers(0, 2**32 - 1)
samples = st.integers(2, 20)


def signals(seed, rows, scale=1.0, offset=0.0):
    return offset + scale * np.random.default_rng(seed).standard_normal((rows, 4))


@many
@given(seed=seeds, rows=samples)
def test_statistics_are_the_mean_and_the_population_deviation_of_each_node(seed, rows):
    x = signals(seed, rows)
    found = Normalizer.fit(x, GRAPH)
    for node in range(4):
        column = x[:, node].tolist()
        mean = math.fsum(column) / rows
        close(found.mean[node], mean, 1e-15, size=column)
        close(found.std[node], math.sqrt(math.fsum((value - mean) ** 2 for value in column) / rows), 1e-15, size=column)


def test_statistics_by_hand():
    """Divided by n and not by n - 1: of 1 and 3 the deviation is 1."""
    found = Normalizer.fit(np.array([[1.0, 0, 0, 0], [3.0, 4, 6, 8]]), GRAPH)
    np.testing.assert_array_equal(found.mean, [2, 2, 3, 4])
    np.testing.assert_array_equal(found.std, [1, 2, 3, 4])
    np.testing.assert_array_equal(found.apply(np.array([[4.0, 0, 0, 0]])), [[2, -1, -1, -1]])


@many
@given(seed=seeds, rows=samples, scale=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_training_signals_come_out_with_mean_zero_and_deviation_one_and_go_back(seed, rows, scale, offset):
    x, other = signals(seed, rows, scale, offset), signals(seed + 1, 5, scale, offset)
    found = Normalizer.fit(x, GRAPH)
    size = 1 + np.abs(x).max() / found.std.min()  # of the readings, in deviations
    close(found.apply(x).mean(axis=0), np.zeros(4), 1e-14, size=size)
    close(found.apply(x).std(axis=0), np.ones(4), 1e-14, size=size)
    close(found.undo(found.apply(other)), other, 1e-14)


@many
@given(seed=seeds, scale=st.floats(1e-3, 1e3), offset=st.floats(-1e2, 1e2))
def test_normalised_signals_have_no_units(seed, scale, offset):
    """Degrees Fahrenheit or Celsius: the same z-scores."""
    x = signals(seed, 8)
    y = scale * x + offset
    size = (1 + np.abs(y).max() / scale) / x.std(axis=0).min()
    close(Normalizer.fit(y, GRAPH).apply(y), Normalizer.fit(x, GRAPH).apply(x), 1e-13, size=size)


def test_what_changes_little_beside_its_size_does_change():
    x = np.random.RandomState(0).standard_normal((50, len(GRAPH)))
    x[:, 1] = 1e12 + np.tile([-1.0, 1.0], 25)
    moments = Normalizer.fit(x, GRAPH)
    assert moments.std[1] == pytest.approx(1.0, rel=1e-3)
    x[:, 1] = 0.1 + np.tile([0.0, 2**-56], 25)  # one rounding
    with pytest.raises(InputError, match="never change"):
        Normalizer.fit(x, GRAPH)


@pytest.mark.parametrize("stuck", [0.0, 0.1, -7.3, 1e9])
def test_a_node_that_never_changes_is_refused_by_name(stuck):
    """Of a reading stuck at 0.1 the deviation is not zero but rounding: that must not pass for a signal."""
    x = signals(0, 1001)
    x[:, [1, 3]] = stuck
    with pytest.raises(InputError, match=r"^got 2 nodes .* never change: east, west\nexpected .*\nto fix: leave those"):
        Normalizer.fit(x, GRAPH)


def test_a_node_that_changes_little_is_kept():
    """One part in a million on a large offset is a signal, and so is anything around zero."""
    x = signals(0, 100) * [1e-3, 1e-9, 1.0, 1.0] + [1e3, 0.0, 0.0, 0.0]
    close(Normalizer.fit(x, GRAPH).apply(x).std(axis=0), np.ones(4), rtol=1e-9)  # the offset costs six digits


# -- gaps and size -------------------------------------------------------------------------------------------------


def gappy(seed, rows, share=0.3, dtype=np.float64):
    """Every node is observed twice at least."""
    random = np.random.default_rng(seed)
    x = (5.0 + random.standard_normal((rows, 4)) * [1, 2, 3, 4]).astype(dtype)
    missing = random.random(x.shape) < share
    missing[:2] = False
    return np.where(missing, np.array(np.nan, dtype), x)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("grcd.core.rows.BLOCK", 12)  # three rows


@many
@given(seed=seeds, rows=st.integers(2, 40), dtype=st.sampled_from([np.float32, np.float64]))
def test_statistics_with_gaps_are_those_of_what_was_observed(seed, rows, dtype):
    x = gappy(seed, rows, dtype=dtype)
    found = Normalizer.fit(x, GRAPH)
    for node in range(4):
        column = [float(value) for value in x[:, node] if value == value]
        mean = math.fsum(column) / len(column)
        close(found.mean[node], mean, 1e-14, size=column)
        close(found.std[node], math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column)), 1e-14, size=column)


@pytest.mark.parametrize("rows", [2, 3, 4, 100])
def test_blocks_change_nothing_but_rounding(rows, small_blocks):
    x = gappy(1, rows)
    found = Normalizer.fit(x, GRAPH)
    close(found.mean, np.nanmean(x, axis=0))
    close(found.std, np.nanstd(x, axis=0))
    np.testing.assert_array_equal(found.apply(x), (x - found.mean) / found.std)


def test_many_readings_far_from_zero_keep_their_digits():
    """Sums of squares less squares of sums would keep four of them."""
    x = 1e4 + 0.01 * np.random.default_rng(0).standard_normal((200_000, 4))
    found = Normalizer.fit(x, GRAPH)
    exact = [math.fsum(column) / len(x) for column in x.T.tolist()]
    close(found.mean, exact, rtol=1e-13)  # rounding of 200,000 additions
    deviations = [math.fsum((v - m) ** 2 for v in column) for m, column in zip(exact, x.T.tolist(), strict=True)]
    close(found.std, np.sqrt(np.array(deviations) / len(x)), rtol=1e-12)


@pytest.mark.parametrize("rows", [None, np.array([7, 0, 0, 9])])
def test_z_scores_are_rounded_once_to_the_precision_of_the_signals(rows, small_blocks):
    x = gappy(2, 10, dtype=np.float32)
    found = Normalizer.fit(x, GRAPH)
    exact = (x.astype(np.float64) - found.mean) / found.std
    z = found.apply(x, rows)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z, (exact if rows is None else exact[rows]).astype(np.float32))
    assert found.undo(z).dtype == np.float64
    close(found.undo(z), x if rows is None else x[rows], rtol=1e-6)


@pytest.mark.parametrize("left", [0, 1])
def test_nodes_observed_less_than_twice_are_refused_by_name(left):
    x = signals(0, 9)
    x[left:, [0, 2]] = np.nan
    with pytest.raises(InputError, match=r"^got 2 nodes with fewer than two observed .*: north, south\nexpected two"):
        Normalizer.fit(x, GRAPH)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signals_in_floating_point_are_not_copied(dtype):
    x = np.array([[1, 2, 3, np.nan], [5, 6, 7, 9]], dtype=dtype)
    assert check_signals(x, SPACE, gaps=True) is x


@pytest.mark.parametrize("x", [[[1, 2, 3, 4], [5, 6, 7, 9]], np.array([[1, 2, 3, 4], [5, 6, 7, 9]], dtype=np.int8)])
def test_other_numbers_come_back_as_float64_with_the_same_values(x):
    checked = check_signals(x, SPACE)
    assert checked.dtype == np.float64
    np.testing.assert_array_equal(checked, [[1, 2, 3, 4], [5, 6, 7, 9]])


def test_gaps_do_not_excuse_infinite_values(small_blocks):
    """Counted over all blocks; the row is that of the signals, not of the block."""
    x = gappy(3, 20)
    x[7, 1], x[13, 3], x[13, 1] = np.inf, -np.inf, np.inf
    with pytest.raises(
        InputError, match=r"^got 3 infinite values in signals, at nodes east, west, the first in signal 8\n"
    ):
        check_signals(x, SPACE, gaps=True)
    with pytest.raises(
        InputError, match=f"(?s)^got {np.isnan(x).sum() + 3} NaN or infinite values .*make the signals again"
    ):
        check_signals(x, SPACE)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros((4, 9)), "shape (4, 9)|(samples, 4)|transpose them"),
        (np.zeros((9, 5)), "shape (9, 5)|(samples, 4)|one column per node"),
        (np.zeros(4), "shape (4,)|one column per node"),
        (np.zeros((3, 4, 1)), "shape (3, 4, 1)|one column per node"),
        (np.zeros((1, 4)), "1 sample in|2 or more"),
        (np.zeros((0, 4)), "0 samples in|2 or more"),
        ([["a", "b", "c", "d"]] * 2, "not all numbers|remove text"),
        ([[1, 2, 3, 4], [1, 2]], "not all numbers|ragged rows"),
        ([[1, math.nan, 3, math.nan], [1, math.nan, 3, 4]], "3 NaN or infinite values|nodes east, west, the first"),
        ([[1, 2, 3, -math.inf], [1, 2, 3, 4]], "1 NaN or infinite values|nodes west, the first"),
    ],
    ids=["transposed", "columns", "vector", "3-d", "one", "none", "text", "ragged", "nan", "infinite"],
)
def test_bad_signals_are_refused_with_the_reason_and_the_remedy(x, words):
    with pytest.raises(InputError) as error:
        check_signals(x, SPACE, "validation signals")
    got, expected, fix = str(error.value).split("\n")
    assert (got[:4], expected[:9], fix[:8]) == ("got ", "expected ", "to fix: ")
    assert "validation signals" in got
    assert all(part in str(error.value) for part in words.split("|"))


def test_how_few_signals_are_enough_is_the_callers_choice():
    np.testing.assert_array_equal(check_signals([[1, 2, 3, 4]], SPACE, least=1), [[1, 2, 3, 4]])
    with pytest.raises(InputError, match="got 2 samples in signals\nexpected 3 or more"):
        check_signals(np.zeros((2, 4)), SPACE, least=3)


def test_as_many_samples_as_nodes_are_not_taken_for_transposed():
    square = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(check_signals(square, SPACE), square)
