"""Signals at the border: z-scores against naive statistics, and every refusal with the reason and the remedy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grcd.errors import InputError
from grcd.graph import Graph
from grcd.normalizer import Normalizer, check_signals

many = settings(max_examples=40, deadline=None)
NAMES = ["north", "east", "south", "west"]
GRAPH = Graph.from_adjacency(np.ones((4, 4)), NAMES)
seeds = st.integers(0, 2**32 - 1)
samples = st.integers(2, 20)


def signals(seed, rows, scale=1.0, offset=0.0):
    return offset + scale * np.random.default_rng(seed).standard_normal((rows, 4))


def close(actual, expected, rtol=1e-12, atol=0.0):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


@many
@given(seed=seeds, rows=samples)
def test_statistics_are_the_mean_and_the_population_deviation_of_each_node(seed, rows):
    x = signals(seed, rows)
    normalizer = Normalizer.fit(x, GRAPH)
    for node in range(4):
        column = x[:, node].tolist()
        mean = math.fsum(column) / rows
        close(normalizer.mean[node], mean, atol=1e-15)
        close(normalizer.std[node], math.sqrt(math.fsum((value - mean) ** 2 for value in column) / rows), atol=1e-15)


def test_statistics_by_hand():
    """Divided by n and not by n - 1: of 1 and 3 the deviation is 1."""
    normalizer = Normalizer.fit(np.array([[1.0, 0, 0, 0], [3.0, 4, 6, 8]]), GRAPH)
    np.testing.assert_array_equal(normalizer.mean, [2, 2, 3, 4])
    np.testing.assert_array_equal(normalizer.std, [1, 2, 3, 4])
    np.testing.assert_array_equal(normalizer.apply(np.array([[4.0, 0, 0, 0]])), [[2, -1, -1, -1]])


@many
@given(seed=seeds, rows=samples, scale=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_training_signals_come_out_with_mean_zero_and_deviation_one_and_go_back(seed, rows, scale, offset):
    x, other = signals(seed, rows, scale, offset), signals(seed + 1, 5, scale, offset)
    normalizer = Normalizer.fit(x, GRAPH)
    size = (1 + np.abs(x).max() / normalizer.std.min()) * 1e-14  # rounding of the readings, in deviations
    close(normalizer.apply(x).mean(axis=0), np.zeros(4), atol=size)
    close(normalizer.apply(x).std(axis=0), np.ones(4), rtol=size)
    close(normalizer.undo(normalizer.apply(other)), other, atol=1e-14 * np.abs(other).max())


@many
@given(seed=seeds, scale=st.floats(1e-3, 1e3), offset=st.floats(-1e2, 1e2))
def test_normalised_signals_have_no_units(seed, scale, offset):
    """Degrees Fahrenheit or Celsius: the same z-scores."""
    x = signals(seed, 8)
    y = scale * x + offset
    size = (1 + np.abs(y).max() / scale) * 1e-13
    close(Normalizer.fit(y, GRAPH).apply(y), Normalizer.fit(x, GRAPH).apply(x), rtol=0, atol=size / x.std(axis=0).min())


@pytest.mark.parametrize("stuck", [0.0, 0.1, -7.3, 1e9])
def test_a_node_that_never_changes_is_refused_by_name(stuck):
    """Of a reading stuck at 0.1 the deviation is not zero but rounding: that must not pass for a signal."""
    x = signals(0, 1001)
    x[:, [1, 3]] = stuck
    with pytest.raises(InputError, match=r"^got 2 nodes .* never change: east, west\nexpected .*\nto fix: drop those"):
        Normalizer.fit(x, GRAPH)


def test_a_node_that_changes_little_is_kept():
    """One part in a million on a large offset is a signal, and so is anything around zero."""
    x = signals(0, 100) * [1e-3, 1e-9, 1.0, 1.0] + [1e3, 0.0, 0.0, 0.0]
    close(Normalizer.fit(x, GRAPH).apply(x).std(axis=0), np.ones(4), rtol=1e-9)  # the offset costs six digits


@pytest.mark.parametrize("x", [[[1, 2, 3, 4], [5, 6, 7, 9]], np.array([[1, 2, 3, 4], [5, 6, 7, 9]], dtype=np.float32)])
def test_good_signals_come_back_as_float64_with_the_same_values(x):
    checked = check_signals(x, GRAPH)
    assert checked.dtype == np.float64
    np.testing.assert_array_equal(checked, [[1, 2, 3, 4], [5, 6, 7, 9]])


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
        ([[1, math.nan, 3, math.nan], [1, math.nan, 3, 4]], "3 NaN or infinite values|nodes east, west\n"),
        ([[1, 2, 3, -math.inf], [1, 2, 3, 4]], "1 NaN or infinite values|nodes west\n"),
    ],
    ids=["transposed", "columns", "vector", "3-d", "one", "none", "text", "ragged", "nan", "infinite"],
)
def test_bad_signals_are_refused_with_the_reason_and_the_remedy(x, words):
    with pytest.raises(InputError) as error:
        check_signals(x, GRAPH, "validation signals")
    got, expected, fix = str(error.value).split("\n")
    assert (got[:4], expected[:9], fix[:8]) == ("got ", "expected ", "to fix: ")
    assert "validation signals" in got
    assert all(part in str(error.value) for part in words.split("|"))


def test_how_few_signals_are_enough_is_the_callers_choice():
    np.testing.assert_array_equal(check_signals([[1, 2, 3, 4]], GRAPH, least=1), [[1, 2, 3, 4]])
    with pytest.raises(InputError, match="got 2 samples in signals\nexpected 3 or more"):
        check_signals(np.zeros((2, 4)), GRAPH, least=3)


def test_as_many_samples_as_nodes_are_not_taken_for_transposed():
    square = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(check_signals(square, GRAPH), square)
