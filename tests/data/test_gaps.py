"""Gaps: filled as named, from nothing that lies in a later split, and counted."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from laws import examples

import grcd
from grcd.data import gaps, splits

NAN = np.nan
NODES = ["a", "b"]
SERIES = np.array([[NAN, 1.0], [2.0, NAN], [NAN, NAN], [6.0, 4.0], [NAN, 5.0]])


def filled(values, policy, rows=None, nodes=NODES):
    values = values.copy()
    rows = [slice(0, len(values)), *[slice(len(values), len(values))] * 2] if rows is None else rows
    return values, gaps.fill(values, policy, rows, nodes)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("forward-backward", [[2, 1], [2, 1], [2, 1], [6, 4], [6, 5]]),
        ("linear", [[2, 1], [2, 2], [4, 3], [6, 4], [6, 5]]),
        ("mean", [[4, 1], [2, 10 / 3], [4, 10 / 3], [6, 4], [4, 5]]),
    ],
)
def test_policies_by_hand(policy, expected):
    values, mask = filled(SERIES, policy)
    assert values == pytest.approx(np.array(expected, dtype=float))
    assert np.array_equal(mask, np.isnan(SERIES))


def test_none_leaves_gaps_open():
    values, mask = filled(SERIES, "none")
    np.testing.assert_array_equal(values, SERIES)
    assert mask is None


def test_complete_signals_are_left_alone_by_every_policy():
    whole = np.arange(8.0).reshape(4, 2)
    for policy in gaps.POLICIES:
        values, mask = filled(whole, policy)
        assert np.array_equal(values, whole)
        assert mask is None


TABLES = hnp.arrays(np.float64, (20, 2), elements=st.one_of(st.floats(-9, 9), st.just(NAN)))
CUTS = list(splits.cut(20).values())


@examples(100)
@given(TABLES)
def test_forward_backward_is_what_pandas_does_on_the_whole_series(x):
    x[0] = 1.0  # every node has a training reading
    values, _ = filled(x, "forward-backward", CUTS)
    np.testing.assert_array_equal(values, pd.DataFrame(x).ffill().bfill().to_numpy())


@pytest.mark.parametrize("policy", ["forward-backward", "linear", "mean"])
@pytest.mark.parametrize("rows", [CUTS, list(splits.drawn(20, 5).values())], ids=["chronological", "random"])
@examples(50)
@given(x=TABLES, y=TABLES)
def test_nothing_flows_from_a_later_split_to_an_earlier_one(policy, rows, x, y):
    x[rows[0][:1] if isinstance(rows[0], np.ndarray) else 0] = 1.0
    one, _ = filled(x, policy, rows)
    for later, kept in ((rows[2], rows[:2]), (np.r_[tuple(rows[1:])], rows[:1])):
        changed = x.copy()
        changed[later] = y[later]
        other, _ = filled(changed, policy, rows)
        for part in kept:
            np.testing.assert_array_equal(other[part], one[part])


def test_a_node_without_training_readings_is_named():
    x = np.ones((20, 2))
    x[:14, 1] = NAN
    for policy in gaps.POLICIES:
        with pytest.raises(grcd.InputError, match="1 node without a reading among the training rows: b"):
            filled(x, policy, CUTS)


def test_an_unknown_policy_lists_the_known_ones():
    with pytest.raises(grcd.InputError, match="forward-backward, linear, mean, none"):
        filled(SERIES, "spline")


def test_markers_become_gaps_and_are_counted_by_node():
    x = np.array([[0.0, 1.0], [-1.0, 0.0], [NAN, 0.0]])
    gaps.mark(x, [0.0, -1.0])
    np.testing.assert_array_equal(x, [[NAN, 1.0], [NAN, NAN], [NAN, NAN]])
    assert gaps.missing(x).tolist() == [3, 2]
    assert gaps.any_reading(x).tolist() == [True, False, False]


def test_files_of_their_own_are_filled_from_themselves():
    x = np.array([[1.0, 1.0], [2.0, NAN], [NAN, 7.0], [9.0, NAN]])
    values = x.copy()
    mask = gaps.fill(values, "forward-backward", [slice(0, 2)], NODES, apart=[slice(2, 4)])
    np.testing.assert_array_equal(values, [[1, 1], [2, 1], [9, 7], [9, 7]])
    assert np.array_equal(mask, np.isnan(x))
    values = x.copy()
    values[2:, 1] = NAN  # nothing to fill from: stays open, and is not said to be filled
    mask = gaps.fill(values, "linear", [slice(0, 2)], NODES, apart=[slice(2, 4)])
    assert np.isnan(values[2:, 1]).all()
    assert not mask[2:, 1].any()


@pytest.mark.parametrize(
    ("value", "count", "found"), [(-9999.0, 3, True), (999.0, 3, True), (-9999.0, 1, False), (4.0, 3, False)]
)
def test_a_far_value_that_comes_again_looks_like_a_marker(value, count, found):
    x = np.random.RandomState(0).standard_normal((200, 3))
    x[:count, 0] = value
    assert gaps.far_constant(x) == (value if found else None)


def test_one_spell_of_a_marker_is_found_in_a_long_table():
    x = np.random.RandomState(0).standard_normal((4000, 30))
    x[100:130, 4] = -9999.0
    assert gaps.far_constant(x) == -9999.0


@pytest.mark.parametrize("law", ["rush hours", "rare", "rain", "sun", "switch"])
def test_zeros_that_are_values_are_not_called_gaps(law):
    random, rows = np.random.default_rng(0), (2000, 5)
    hour = np.arange(2000)[:, None] % 24
    x = {
        "rush hours": random.poisson(30 * np.exp(-(((hour - 8) / 2) ** 2)), rows),
        "rare": random.poisson(4, rows),  # 2 % zeros
        "rain": np.where(random.random(rows) < 0.2, random.gamma(0.6, 2, rows), 0.0),
        "sun": np.maximum(0, np.sin((hour - 6) / 12 * np.pi)) * random.uniform(0.2, 1, rows),
        "switch": random.random(rows) < 0.7,
    }[law]
    assert ((x == 0).mean(axis=0) > 0.01).all()
    assert gaps.silent_zeros(x.astype(float)) is None


@examples(30)
@given(st.integers(0, 2**32), st.floats(0.05, 0.4), st.floats(5, 50))
def test_a_sensor_that_falls_silent_is_found_in_any_unit(seed, share, mean):
    random = np.random.default_rng(seed)
    x = mean + random.standard_normal((400, 4)).clip(-4, 4)
    start = random.integers(0, 200)
    x[start : start + int(share * 400), 1] = 0.0
    silent = gaps.silent_zeros(x)
    assert (silent.nodes, silent.share) == (1, (x == 0).sum() / x.size)
    assert silent.usual == np.median(x[x[:, 1] != 0, 1])
    other = gaps.silent_zeros(3 * x)
    assert (other.nodes, other.share, other.usual) == (1, silent.share, pytest.approx(3 * silent.usual, rel=1e-12))


def test_negative_readings_have_zeros_like_any_other():
    x = np.where(np.arange(300)[:, None] % 10 < 2, 0.0, 60.0 + np.arange(300)[:, None] % 7)
    assert gaps.silent_zeros(x).nodes == 1
    x[5] = -1.0
    assert gaps.silent_zeros(x) is None
