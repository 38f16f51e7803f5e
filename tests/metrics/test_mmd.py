"""MMD^2 against a naive implementation with five exponentials, and the median of distances against numpy's."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from laws import close, examples

from grcd.metrics import mmd

KERNEL = 5.0  # of two equal values: MMD^2 is a difference of means of such, and rounds as they do
POWER = 1e-12  # the narrowest kernel is the 10,000th power of the widest, and so is its rounding


def naive_median(values):
    distances = [abs(a - b) for i, a in enumerate(values) for b in values[:i]]
    positive = [d for d in distances if d > 0]
    return float(np.median(positive)) if positive else 0.0


def naive_mmd2(x, y):
    """The definition: five exponentials a pair, the diagonals left out of the means within a sample."""
    median = naive_median(np.concatenate([x, y]))

    def k(a, b):
        return sum(math.exp(-((a - b) ** 2) / (2 * (10.0**e * median) ** 2)) for e in (-1, -0.5, 0, 0.5, 1))

    within_x = np.mean([k(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j])
    within_y = np.mean([k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    return within_x + within_y - 2 * np.mean([k(a, b) for a in x for b in y])


def mmd2(x, y):
    return mmd.mmd2(torch.tensor(np.asarray(x, dtype=np.float64)), torch.tensor(np.asarray(y, dtype=np.float64)))


def median_distance(values):
    return mmd.median_distance(torch.tensor(values, dtype=torch.float64))


def normal(n, seed, loc=0.0, scale=1.0):
    return np.random.RandomState(seed).normal(loc, scale, n)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        pytest.param(normal(20, 0), normal(20, 1), id="equal sizes"),
        pytest.param(normal(9, 0), normal(28, 1, 1.0, 2.0), id="different sizes, an even number of pairs"),
        pytest.param(normal(5, 0), normal(13, 1, 3.0), id="different sizes, an odd number of pairs"),
        pytest.param(normal(2, 0), normal(2, 1), id="the smallest samples"),
        pytest.param(np.round(normal(25, 0)), np.round(normal(22, 1, 1.0)), id="ties within and across"),
        pytest.param(np.repeat(normal(6, 0), 4), np.repeat(normal(5, 0), 3), id="duplicates"),
        pytest.param(np.zeros(12), np.r_[np.zeros(11), 1.0], id="one value stands out"),
        pytest.param(normal(20, 0, 1e6), normal(17, 1, 1e6 + 1), id="a large offset"),
        pytest.param(normal(20, 0, 0.0, 1e-9), normal(17, 1, 0.0, 3e-9), id="tiny values"),
        pytest.param(normal(20, 0, 0.0, 1e9), normal(17, 1, 0.0, 3e9), id="huge values"),
        pytest.param(normal(20, 0) ** 5, np.exp(2 * normal(17, 1)), id="heavy tails"),
    ],
)
def test_mmd2_equals_the_naive_implementation(x, y):
    assert mmd2(x, y) == pytest.approx(naive_mmd2(x, y), rel=0, abs=1e-11 * KERNEL)


numbers = st.one_of(st.integers(-64_000, 64_000).map(lambda i: i / 64), st.integers(-3, 3).map(float))
samples = st.lists(numbers, min_size=2, max_size=14)


@examples(60)
@given(samples, samples)
def test_mmd2_equals_the_naive_implementation_whatever_the_samples(x, y):
    expected = 0.0 if naive_median(x + y) == 0.0 else naive_mmd2(x, y)
    assert mmd2(x, y) == pytest.approx(expected, rel=0, abs=1e-11 * KERNEL)


def test_mmd2_of_three_points_by_hand():
    # x = {0, 1}, y = {0, 0}: six pairs, three of them apart by 1 (the one of x, and 1 against both zeros), so the
    # median is 1. Within x: k(1). Within y: k(0) = 5. Across: the mean of k(0), k(0), k(1), k(1).
    k1 = math.exp(-50) + math.exp(-5) + math.exp(-0.5) + math.exp(-0.05) + math.exp(-0.005)
    assert mmd2([0.0, 1.0], [0.0, 0.0]) == pytest.approx(k1 + 5 - 2 * (10 + 2 * k1) / 4, rel=0, abs=POWER * KERNEL)


def test_mmd2_takes_the_median_over_the_pooled_sample():
    # x = {0, 1}, y = {3, 7}: distances 1, 2, 3, 4, 6, 7, so the median is 3.5 (within x alone it would be 1).
    def k(d):
        return sum(math.exp(-(d**2) / (2 * 3.5**2 * 10.0**p)) for p in (-2, -1, 0, 1, 2))

    expected = k(1) + k(4) - (k(3) + k(7) + k(2) + k(6)) / 2
    assert mmd2([0.0, 1.0], [3.0, 7.0]) == pytest.approx(expected, rel=0, abs=POWER * KERNEL)


@pytest.mark.parametrize("block", [1, 7, 16, 17, 33, 10**6])
def test_blocks_do_not_change_the_sum_of_kernels(monkeypatch, block):
    x, y = normal(23, 2), normal(16, 3, 0.5)
    widest = 4.0
    expected = sum(
        math.exp(-((a - b) ** 2) / (2 * (widest * 10.0**e) ** 2)) for a in x for b in y for e in (-2, -1.5, -1, -0.5, 0)
    )
    monkeypatch.setitem(mmd.BLOCK, "cpu", block)
    assert mmd.kernel_sum(torch.tensor(x), torch.tensor(y), widest) == pytest.approx(expected, rel=1e-12)


def test_mmd2_is_unbiased_and_so_falls_below_zero_about_as_often_as_above_for_equal_distributions():
    values = np.array([mmd2(normal(30, 2 * k), normal(25, 2 * k + 1)) for k in range(60)])
    assert (values < 0).any()
    assert (values > 0).any()
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(len(values))


def test_mmd2_tells_different_distributions_apart():
    assert mmd2(normal(200, 0), normal(200, 1, 1.0)) > 0.2


def test_mmd2_of_a_sample_with_itself_is_the_known_bias():
    # The mean over all pairs, the diagonal counted, is larger than the mean without it: never above zero.
    x = normal(10, 4)
    assert mmd2(x, x) == pytest.approx(naive_mmd2(x, x), rel=0, abs=POWER * KERNEL)
    assert mmd2(x, x) < 0


@examples(30)
@given(samples, samples)
@example([0.0, 1 / 64, -605 / 64, -1.0, -1.0], [14.1875, 0.0])
def test_mmd2_is_symmetric_in_its_samples(x, y):
    assert mmd2(x, y) == pytest.approx(mmd2(y, x), rel=0, abs=POWER * KERNEL)


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from([-64.0, 0.25, 1.0, 1024.0]), st.integers(-1000, 1000))
def test_mmd2_does_not_change_with_offset_and_scale(seed, scale, shift):
    x, y = normal(11, seed), normal(14, seed + 1, 0.7)
    assert mmd2(scale * x + shift, scale * y + shift) == pytest.approx(mmd2(x, y), rel=0, abs=1e-11 * KERNEL)


@examples(20)
@given(st.randoms(use_true_random=False), samples, samples)
def test_mmd2_does_not_depend_on_the_order_of_the_samples(random, x, y):
    shuffled = random.sample(x, len(x))
    assert mmd2(shuffled, y) == pytest.approx(mmd2(x, y), rel=0, abs=POWER * KERNEL)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e7])
def test_samples_that_are_one_number_are_at_distance_zero(value):
    assert mmd2(np.full(7, value), np.full(4, value)) == 0.0


def test_mmd2_of_float32_samples_is_computed_in_float64():
    x, y = normal(15, 0).astype(np.float32), normal(12, 1).astype(np.float32)
    assert mmd.mmd2(torch.tensor(x), torch.tensor(y)) == mmd2(x, y)


def test_mmd2_keeps_its_digits_at_a_very_large_offset():
    x, y = 1e8 + np.round(normal(40, 0), 2), 1e8 + np.round(normal(31, 1, 0.3), 2)
    assert mmd2(x, y) == pytest.approx(naive_mmd2(x, y), rel=0, abs=POWER * KERNEL)


# -- the median of distances ---------------------------------------------------------------------------------------


@examples(100)
@given(st.lists(numbers, min_size=2, max_size=40))
def test_median_distance_equals_numpys(values):
    assert median_distance(values) == pytest.approx(naive_median(values), rel=1e-12)


@examples(100)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40))
@example([-1.0, -1.0, -0.3])
def test_median_distance_equals_numpys_for_any_floats(values):
    close(median_distance(values), naive_median(values), 1e-15, size=values)


def test_mmd2_of_samples_with_two_values_between_them_equals_the_naive_implementation():
    x, y = [-1.0, -1.0, -0.3], [-0.3, -0.3]
    assert mmd2(x, y) == pytest.approx(naive_mmd2(x, y), rel=0, abs=POWER * KERNEL)


@examples(60)
@given(st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=60))
def test_median_distance_is_exact_on_ties(values):
    assert median_distance(values) == naive_median(values)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 10, 11, 150, 151])
def test_median_distance_is_exact_for_odd_and_even_numbers_of_pairs(n):
    values = normal(n, n)
    assert median_distance(values) == pytest.approx(naive_median(values), rel=1e-14)


def test_median_distance_of_three_points_by_hand():
    # Distances 1, 3 and 4.
    assert median_distance([4.0, 0.0, 1.0]) == 3.0
    # Of {0, 0, 2} only two are positive, both 2; of {0, 0, 2, 5} there are 2, 2, 3, 5, 5.
    assert median_distance([0.0, 2.0, 0.0]) == 2.0
    assert median_distance([5.0, 0.0, 2.0, 0.0]) == 3.0


def test_median_distance_leaves_its_argument_as_it_was():
    values = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    mmd.median_distance(values)
    assert values.tolist() == [3.0, 1.0, 2.0]


def test_mmd2_takes_the_bandwidth_it_is_given():
    def k(d, bandwidth):
        return sum(math.exp(-(d**2) / (2 * bandwidth**2 * 10.0**p)) for p in (-2, -1, 0, 1, 2))

    x, y = torch.tensor([0.0, 1.0]), torch.tensor([3.0, 7.0])
    for bandwidth in (0.2, 5.0):
        expected = sum(a * k(d, bandwidth) for a, d in [(1, 1), (1, 4), (-0.5, 3), (-0.5, 7), (-0.5, 2), (-0.5, 6)])
        assert mmd.mmd2(x, y, bandwidth) == pytest.approx(expected, rel=1e-12)
    assert mmd.mmd2(x, y, 3.5) == mmd.mmd2(x, y) == mmd.mmd2(x, y, 0.0)


def test_wild_numbers_have_no_say_in_a_frozen_bandwidth():
    x, y, wild = (torch.tensor(normal(20, seed)) for seed in range(3))
    bandwidth = mmd.median_distance(torch.cat([x, y]))

    def k(a, b):
        return mmd.kernel_sum(a, b, 10 * bandwidth)

    # Far from everything and from each other, they add to the number of pairs, and nothing to the kernels.
    within, between = (k(x, x) - 5 * 20) / (40 * 39), k(x, y) / (40 * 20)
    expected = within + (k(y, y) - 5 * 20) / (20 * 19) - 2 * between
    with_wild, shifted = torch.cat([x, 1e6 * wild]), torch.cat([x + 3.0, 1e6 * wild])
    assert mmd.mmd2(with_wild, y, bandwidth) == pytest.approx(expected, rel=1e-12)
    # By the pooled median all others are one point: whether they are right is no longer seen.
    assert mmd.mmd2(shifted, y) == pytest.approx(mmd.mmd2(with_wild, y), rel=1e-3)
    assert mmd.mmd2(shifted, y, bandwidth) > mmd.mmd2(with_wild, y, bandwidth) + 0.5
