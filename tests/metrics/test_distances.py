"""Distances of whole signals: three points by hand, closed forms, invariances, and naive ones in the test."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from samples import chance, column, naive_energy, normal
from scipy.special import hyp1f1

from grcd.core.streams import Stream
from grcd.metrics import distances as metrics


@pytest.fixture(params=[1, 50, 1 << 21])
def block(request, monkeypatch):
    """Rows, nodes and directions one at a time, a few at a time, and all at once."""
    monkeypatch.setattr(metrics, "BLOCK", request.param)


# -- energy distance -----------------------------------------------------------------------------------------------


def test_energy_by_hand():
    # Two points 3 apart, and twice the corner that makes a 3-4-5 triangle of them: 2 (4 + 5)/2 - 3 - 0.
    x, y = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 4.0], [0.0, 4.0]])
    assert metrics.energy(x, y) == pytest.approx(6.0, rel=1e-8)
    # {0, 3} and {1, 5}: 2 (1 + 5 + 2 + 2)/4 - 3 - 4. Unbiased, it may be negative.
    assert metrics.energy(column(0, 3), column(1, 5)) == pytest.approx(-2.0, rel=1e-8)


@pytest.mark.parametrize("sizes", [(2, 2), (17, 30), (40, 9)])
def test_energy_equals_the_naive_one(block, sizes):
    x, y = normal(sizes[0], 4, 0), np.round(normal(sizes[1], 4, 1, 0.5, 2.0))
    close(metrics.energy(x, y), naive_energy(x, y), 1e-8, size=[*x.flat, *y.flat])
    assert metrics.energy(torch.tensor(x), torch.tensor(y)) == metrics.energy(x, y)
    close(metrics.energy(y, x), metrics.energy(x, y), 1e-14, size=[*x.flat, *y.flat])


def mean_distance(shift, nodes):
    """``E|N(shift, 2 I)|``: the mean of a noncentral chi."""
    return 2 * math.gamma((nodes + 1) / 2) / math.gamma(nodes / 2) * hyp1f1(-0.5, nodes / 2, -(shift**2) / 4)


@pytest.mark.parametrize(("shift", "nodes"), [(0.0, 3), (1.5, 1), (1.0, 6)])
def test_energy_of_shifted_gaussians_has_its_closed_form_as_mean(shift, nodes):
    if nodes == 1:  # the folded normal
        folded = 2 / math.sqrt(math.pi) * math.exp(-(shift**2) / 4) + shift * math.erf(shift / 2)
        assert mean_distance(shift, 1) == pytest.approx(folded, rel=1e-12)
    expected = 2 * mean_distance(shift, nodes) - 2 * mean_distance(0.0, nodes)
    apart = np.eye(nodes)[0] * shift
    found = [metrics.energy(normal(60, nodes, k), normal(50, nodes, 1000 + k) + apart) for k in range(60)]
    assert abs(np.mean(found) - expected) < 4 * np.std(found, ddof=1) / math.sqrt(60)


# -- sliced Wasserstein --------------------------------------------------------------------------------------------


def test_wasserstein_by_hand():
    # In one dimension every direction is the axis. {0, 1} and {0, 0, 3}: 0 up to 1/2, then 1 up to 2/3, then 2.
    assert metrics.sliced_wasserstein(column(0, 1), column(0, 3, 0)) == pytest.approx(1 / 6 + 2 / 3, rel=1e-14)
    assert metrics.sliced_wasserstein(column(1, 0), column(0, 0)) == pytest.approx(1 / 2, rel=1e-14)
    # Twice each: the same distribution.
    assert metrics.sliced_wasserstein(column(4, 1, 7), column(1, 1, 4, 4, 7, 7)) == pytest.approx(0.0, abs=1e-16 * 7)


@examples(30)
@given(*(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12) for _ in "xy"))
def test_wasserstein_in_one_dimension_equals_scipys(x, y):
    expected = scipy.stats.wasserstein_distance(x, y)
    close(metrics.sliced_wasserstein(column(*x), column(*y)), expected, 1e-14, size=[*x, *y])


@pytest.mark.parametrize("sizes", [(20, 20), (12, 31)])
def test_sliced_wasserstein_equals_the_naive_one(block, sizes):
    x, y = normal(sizes[0], 3, 0), normal(sizes[1], 3, 1, 0.4) ** 3
    u = Stream(0, "directions").normal(range(500), 3).numpy()
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    expected = np.mean([scipy.stats.wasserstein_distance(x @ one, y @ one) for one in u])
    assert metrics.sliced_wasserstein(x, y) == pytest.approx(expected, rel=1e-12)
    assert metrics.sliced_wasserstein(x, y, seed=1) != metrics.sliced_wasserstein(x, y)


def mean_projection(nodes):
    """``E|u_1|`` of a random unit vector."""
    return math.gamma(nodes / 2) / (math.sqrt(math.pi) * math.gamma((nodes + 1) / 2))


def test_a_shift_moves_all_quantiles_alike():
    shift, nodes = np.array([1.0, -2.0, 0.5, 0.0, 3.0]), 5
    size, x = np.linalg.norm(shift), normal(30, nodes, 0)
    error = size * math.sqrt((1 / nodes - mean_projection(nodes) ** 2) / 500)
    assert abs(metrics.sliced_wasserstein(x, x + shift) - size * mean_projection(nodes)) < 4 * error


def test_sliced_wasserstein_of_shifted_gaussians_approaches_its_closed_form():
    # Other signals on both sides: the largest error is where the projected shift is small, of order 1/sqrt(n).
    x, y = normal(4000, 4, 0), normal(3000, 4, 1) + np.array([2.0, 0.0, 0.0, 0.0])
    error = 2 * math.sqrt((1 / 4 - mean_projection(4) ** 2) / 500)
    assert abs(metrics.sliced_wasserstein(x, y) - 2 * mean_projection(4)) < 4 * error


# -- Kolmogorov-Smirnov --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 3, 20, 25])
def test_ks_of_uniform_grids(steps):
    x = np.arange(1.0, 21.0)[:, None]
    assert metrics.kolmogorov_smirnov(x, x + steps) == pytest.approx(min(steps / 20, 1.0), abs=1e-15)
    # Uniform on (0, 20] and on (0, 40]: furthest apart at 20, and by a half.
    twice = np.arange(1.0, 81.0)[:, None] / 2
    assert metrics.node_kolmogorov_smirnov(x, twice).tolist() == [0.5]


def test_ks_with_ties_by_hand():
    # F and G after 0: 3/4 and 1/3; after 1: 3/4 and 1; after 2: 1 and 1.
    found = metrics.kolmogorov_smirnov(column(0, 0, 2, 0), column(1, 0, 1))
    assert found == pytest.approx(3 / 4 - 1 / 3, rel=1e-14)


def test_ks_equals_scipys_at_every_node(block):
    x, y = np.round(normal(31, 7, 0), 1), np.round(normal(44, 7, 1, 0.3, 1.5), 1)
    expected = [scipy.stats.ks_2samp(x[:, k], y[:, k]).statistic for k in range(7)]
    assert metrics.node_kolmogorov_smirnov(x, y).numpy() == pytest.approx(np.array(expected), rel=1e-12)
    assert metrics.kolmogorov_smirnov(x, y) == pytest.approx(np.mean(expected), rel=1e-12)


# -- correlations --------------------------------------------------------------------------------------------------


def test_correlation_error_of_known_matrices():
    up, down = np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 6.0]]), np.array([[0.0, 5.0], [1.0, 4.0]])
    assert metrics.correlation_error(up, down) == pytest.approx(math.sqrt((0 + 4 + 4 + 0) / 4), rel=1e-12)
    stuck = np.array([[0.0, 0.1], [1.0, 0.1], [5.0, 0.1]])  # [[1, 0], [0, 0]] against all ones
    assert metrics.correlation_error(stuck, up) == pytest.approx(math.sqrt(3 / 4), rel=1e-12)
    assert metrics.correlation_error(stuck, stuck[::-1] - 3.0) == 0.0


def test_correlation_error_equals_the_naive_one_and_ignores_units():
    mix = np.random.RandomState(5).standard_normal((6, 6))
    x, y = normal(50, 6, 0) @ mix, normal(35, 6, 1)
    expected = np.sqrt(np.mean((np.corrcoef(x.T) - np.corrcoef(y.T)) ** 2))
    assert metrics.correlation_error(x, y) == pytest.approx(expected, rel=1e-12)
    assert metrics.correlation_error(1e3 + 7.0 * x, y * np.arange(1, 7)) == pytest.approx(expected, rel=1e-9)


# -- tails ---------------------------------------------------------------------------------------------------------


def test_tail_coverage_by_hand():
    x = np.arange(101.0)[::-1, None]  # the 1 % and 99 % quantiles are 1 and 99, which are inside
    assert metrics.tail_coverage(x, column(0.9, 1, 50, 99, 99.1)) == 2 / 5
    assert metrics.tail_coverage(np.hstack([x, x]), np.array([[0.0, 50.0], [50.0, 1.0]])) == 1 / 4


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5])
def test_tail_coverage_of_gaussians_has_its_closed_form(block, scale):
    z = scipy.stats.norm.ppf((np.arange(3000)[:, None] + 0.5) / 3000) * [[1.0, -1.0, 5.0]]  # samples without chance
    expected = 2 * scipy.stats.norm.cdf(scale * scipy.stats.norm.ppf(0.01))
    assert metrics.tail_coverage(scale * z, z[::3]) == pytest.approx(expected, abs=2e-3)


# -- classifier ----------------------------------------------------------------------------------------------------


def test_what_is_alike_is_told_apart_by_chance_and_what_is_not_always():
    x = normal(400, 3, 0)
    assert abs(metrics.classifier_accuracy(x, normal(400, 3, 1)) - 0.5) < chance(200)
    assert metrics.classifier_accuracy(x, normal(400, 3, 2, 6.0)) == 1.0
    # Three signals of one side for each of the other: always to guess the larger side would be right in 3/4.
    assert abs(metrics.classifier_accuracy(x, normal(133, 3, 3)) - 0.5) < chance(66)


def test_the_accuracy_of_the_best_guess_for_two_shifted_gaussians_is_not_exceeded_and_nearly_reached():
    best = scipy.stats.norm.cdf(1.0)  # sign of x_1 against means of -1 and 1
    apart = np.array([1.0, 0.0])
    found = metrics.classifier_accuracy(normal(2000, 2, 0) - apart, normal(2000, 2, 1) + apart)
    assert best - 0.05 < found < best + chance(1000)


def test_rounded_readings_do_not_give_themselves_away(monkeypatch):
    x, y = normal(600, 3, 0), np.round(normal(600, 3, 1), 1)
    assert abs(metrics.classifier_accuracy(x, y) - 0.5) < chance(300)
    monkeypatch.setattr(metrics, "BLUR", 0.0)
    assert metrics.classifier_accuracy(x, y) > 0.5 + 2 * chance(300)


def test_a_signal_is_not_known_by_its_neighbour_in_time():
    x, y = normal(600, 3, 0), np.repeat(normal(150, 3, 1), 4, axis=0)  # each recorded four times in a row
    assert abs(metrics.classifier_accuracy(x, y) - 0.5) < chance(300)
    shuffled = y[np.random.RandomState(0).permutation(600)]
    assert metrics.classifier_accuracy(x, shuffled) > 0.5 + chance(300)


# -- memorisation --------------------------------------------------------------------------------------------------


def test_copies_by_hand():
    """Of 199 real signals 2 to 200 away, the 1 % quantile by ranks is the second: 3 away."""
    train, real = column(0), column(*range(2, 201))
    assert metrics.copies(column(1, -2.9, 3, 3.1, 50), real, train) == pytest.approx(2 / 5, rel=1e-12)
    assert metrics.copies(column(1, 5), column(4, 8), train) == pytest.approx(1 / 2, rel=1e-12)  # of few, the nearest
    assert math.isnan(metrics.copies(column(9, 4), column(0, 3), train))  # a real one is a copy


def test_so_many_verbatim_copies_are_so_many_copies_and_fresh_signals_one_in_a_hundred(block):
    train, real, fresh = normal(600, 5, 0), normal(4000, 5, 1), normal(4000, 5, 2)
    mixed = np.concatenate([np.repeat(train, 2, axis=0), fresh[:2800]])  # 30 % of them
    assert metrics.copies(train, real, train) == 1.0
    assert abs(metrics.copies(fresh, real, train) - 0.01) < 4 * (2 * 0.01 / 4000) ** 0.5  # both sides are samples
    assert abs(metrics.copies(mixed, real, train) - 0.307) < 4 * (2 * 0.01 / 2800) ** 0.5


def test_the_nearest_signal_is_that_of_the_naive_search(block):
    x, train = normal(30, 4, 0, 1e4), np.round(normal(70, 4, 1, 1e4), 1)
    expected = np.linalg.norm(x[:, None] - train, axis=2).min(axis=1)
    assert metrics.copies(train[::2], x, train) == 1.0
    assert metrics.nearest(torch.tensor(x), torch.tensor(train)).numpy() == pytest.approx(expected, rel=1e-12)
