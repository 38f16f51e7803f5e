"""Distances of whole signals: three points by hand, closed forms, invariances, and naive ones in the test."""

import json
import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.special import hyp1f1
from typer.testing import CliRunner

import grcd
from grcd.cli.commands import app
from grcd.core.streams import Stream
from grcd.data.formats.exported import write_dataset
from grcd.data.formats.writing import write_signals
from grcd.evaluation import Distance, ammd, distances, farther_test, floor, permutation_test
from grcd.evaluation.distances import METRICS, TITLES, bandwidths, frozen_ammd, table
from grcd.metrics import distances as metrics
from grcd.metrics import mmd

NAMES = ["frozen_ammd", *METRICS, "memorisation"]


def normal(n, nodes, seed, shift=0.0, scale=1.0):
    return shift + scale * np.random.RandomState(seed).standard_normal((n, nodes))


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


@pytest.fixture(params=[1, 50, 1 << 21])
def block(request, monkeypatch):
    """Rows, nodes and directions one at a time, a few at a time, and all at once."""
    monkeypatch.setattr(metrics, "BLOCK", request.param)


# -- energy distance -----------------------------------------------------------------------------------------------


def naive_energy(x, y):
    def mean(a, b, distinct):
        pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if i != j or not distinct]
        return np.mean([math.dist(a[i], b[j]) for i, j in pairs])

    return 2 * mean(x, y, False) - mean(x, x, True) - mean(y, y, True)


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


def chance(half):
    """Four standard errors of the accuracy that guessing has on two halves."""
    return 4 * 0.5 / math.sqrt(2 * half)


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


def test_memorisation_by_hand():
    train, real = column(0, 10), column(1, 12, -4)  # 1, 2 and 4 away
    assert metrics.memorisation(column(9, 4), real, train) == pytest.approx((1 + 4) / 2 / 2, rel=1e-12)
    assert math.isnan(metrics.memorisation(column(9, 4), column(10, 0, 3), train))


def test_copies_score_zero_and_fresh_signals_about_one(block):
    train, real = normal(300, 5, 0), normal(200, 5, 1)
    assert metrics.memorisation(train[::3], real, train) == 0.0
    assert metrics.memorisation(train[::3] + 1e-3, real, train) < 0.01
    fresh = [metrics.memorisation(normal(200, 5, seed), real, train) for seed in range(2, 12)]
    assert np.mean(fresh) == pytest.approx(1.0, abs=0.05)


def test_the_nearest_signal_is_that_of_the_naive_search(block):
    x, train = normal(30, 4, 0, 1e4), np.round(normal(70, 4, 1, 1e4), 1)
    expected = np.linalg.norm(x[:, None] - train, axis=2).min(axis=1)
    assert metrics.memorisation(train[::2], x, train) == 0.0
    assert metrics.nearest(torch.tensor(x), torch.tensor(train)).numpy() == pytest.approx(expected, rel=1e-12)


# -- aMMD with frozen bandwidths -----------------------------------------------------------------------------------


def test_mmd2_takes_the_bandwidth_it_is_given():
    def k(d, bandwidth):
        return sum(math.exp(-(d**2) / (2 * bandwidth**2 * 10.0**p)) for p in (-2, -1, 0, 1, 2))

    x, y = torch.tensor([0.0, 1.0]), torch.tensor([3.0, 7.0])
    for bandwidth in (0.2, 5.0):
        expected = sum(a * k(d, bandwidth) for a, d in [(1, 1), (1, 4), (-0.5, 3), (-0.5, 7), (-0.5, 2), (-0.5, 6)])
        assert mmd.mmd2(x, y, bandwidth) == pytest.approx(expected, rel=1e-12)
    assert mmd.mmd2(x, y, 3.5) == mmd.mmd2(x, y) == mmd.mmd2(x, y, 0.0)


def test_wild_numbers_have_no_say_in_a_frozen_bandwidth():
    x, y, wild = (torch.tensor(normal(20, 1, seed)[:, 0]) for seed in range(3))
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


def test_wild_signals_have_no_say_in_frozen_bandwidths(tiny, generated, found):
    wild = distances(np.vstack([generated, 1e6 * generated]), tiny)["frozen_ammd"]
    assert (wild.floor, wild.spread) == (found["frozen_ammd"].floor, found["frozen_ammd"].spread)
    train, y = (tiny.normalizer.apply(part) for part in (tiny.train[np.linspace(0, 59, 40).astype(int)], tiny.test))
    widths, x = bandwidths(tiny.graph, train, y), tiny.normalizer.apply(np.vstack([generated, 1e6 * generated]))
    assert wild.value == frozen_ammd(x, y, tiny.graph, widths) != ammd(x, y, tiny.graph).ammd


def test_with_bandwidths_of_its_own_signals_the_frozen_ammd_is_the_papers(tiny):
    x, y = (tiny.normalizer.apply(part) for part in (tiny.val, tiny.test))
    assert frozen_ammd(x, y, tiny.graph, bandwidths(tiny.graph, x, y)) == ammd(x, y, tiny.graph).ammd


# -- all of them, with floor and spread ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generated(tiny):
    return tiny.train.mean(axis=0) + tiny.train.std(axis=0) * normal(45, 6, 5, 0.2)


@pytest.fixture(scope="module")
def found(tiny, generated):
    return distances(generated, tiny)


def z_scored(data):
    mean, std = data.train.mean(axis=0), data.train.std(axis=0)
    return lambda signals: (signals - mean) / std


def test_values_and_floors_are_those_of_z_scored_signals(tiny, generated, found):
    z = z_scored(tiny)
    chosen, y = z(tiny.train[np.linspace(0, 59, 40).astype(int)]), z(tiny.test)
    assert list(found) == NAMES
    for name in METRICS:
        metric = getattr(metrics, name)
        assert found[name].value == pytest.approx(metric(z(generated), y), rel=1e-9), name
        assert found[name].floor == pytest.approx(metric(chosen, y), rel=1e-9), name
    assert found["memorisation"].value == pytest.approx(metrics.memorisation(z(generated), y, z(tiny.train)), rel=1e-9)
    assert metrics.memorisation(chosen, y, z(tiny.train)) == found["memorisation"].floor == 0.0
    assert found["frozen_ammd"].floor == pytest.approx(floor(tiny).ammd, rel=1e-12)
    widths = bandwidths(tiny.graph, chosen, y)
    expected = frozen_ammd(z(generated), y, tiny.graph, widths)
    assert found["frozen_ammd"].value == pytest.approx(expected, rel=1e-9)


def test_the_spread_is_that_of_five_disjoint_parts_over_the_root_of_five(tiny, found):
    z = z_scored(tiny)
    sides = [z(tiny.train[np.linspace(0, 59, 40).astype(int)]), z(tiny.test)]
    parts = [
        [side[sorted(order[k : k + 8])] for k in range(0, 40, 8)]
        for side, order in zip(sides, Stream(0, "floor parts").uniform(range(2), 40).argsort().tolist(), strict=True)
    ]
    for name in ("energy", "sliced_wasserstein", "kolmogorov_smirnov", "correlation_error", "tail_coverage"):
        values = [getattr(metrics, name)(a, b) for a, b in zip(*parts, strict=True)]
        assert found[name].spread == pytest.approx(np.std(values, ddof=1) / math.sqrt(5), rel=1e-9), name


def test_the_spread_is_about_that_of_floors_from_other_signals(tiny):
    def drawn(seed):
        return grcd.Dataset("drawn", tiny.graph, *(normal(200, 6, 10 * seed + k, 0.3 * k) for k in range(3)))

    found = [distances(drawn(seed).val, drawn(seed)) for seed in range(8)]
    for name in ("sliced_wasserstein", "kolmogorov_smirnov", "correlation_error", "tail_coverage"):
        floors, spreads = ([getattr(one[name], key) for one in found] for key in ("floor", "spread"))
        assert 1 / 3 < np.mean(spreads) / np.std(floors, ddof=1) < 3, name


def test_a_ratio_needs_a_floor_that_is_more_than_chance_and_an_ideal_of_zero():
    assert Distance(3.0, 1.5, 0.4).ratio == 2.0
    assert Distance(3.0, 1.5, 0.5).ratio is None
    assert Distance(3.0, -1.5, 0.1).ratio is None
    assert Distance(3.0, 0.0, 0.0).ratio is None
    assert Distance(0.9, 0.7, 0.01, ideal=0.5).ratio is None


def test_scored_against_another_split(tiny, generated):
    z, other = z_scored(tiny), distances(generated, tiny, "val")
    assert other["energy"].value == pytest.approx(metrics.energy(z(generated), z(tiny.val)), rel=1e-9)
    chosen = tiny.train[np.linspace(0, 59, 30).astype(int)]
    assert other["energy"].floor == pytest.approx(metrics.energy(z(chosen), z(tiny.val)), rel=1e-9)


def test_neither_the_order_of_signals_nor_that_of_nodes_counts(tiny, generated, found):
    nodes, rows = [3, 0, 5, 1, 4, 2], np.random.RandomState(0).permutation(45)
    parts = (part[:, nodes] for part in (tiny.train, tiny.val, tiny.test))
    moved = distances(generated[np.ix_(rows, nodes)], grcd.Dataset("moved", tiny.graph.permuted(nodes), *parts))
    for name in sorted(set(NAMES) - {"sliced_wasserstein", "classifier_accuracy"}):
        here, there = found[name].to_dict(), moved[name].to_dict()
        told = [key for key, value in here.items() if value is not None]
        assert told == [key for key, value in there.items() if value is not None], name
        assert [there[key] for key in told] == pytest.approx([here[key] for key in told], rel=1e-7), name
    z = z_scored(tiny)
    x, y = z(generated), z(tiny.test)
    assert metrics.sliced_wasserstein(x[rows], y) == pytest.approx(found["sliced_wasserstein"].value, rel=1e-12)
    # Its directions stay where they are: other nodes, other projections.
    assert moved["sliced_wasserstein"].value == pytest.approx(found["sliced_wasserstein"].value, rel=0.2)


def test_a_covariance_does_not_fool_them(tiny):
    """All nodes at 1 or all at -1, and some noise, against a Gaussian with the same mean and covariance."""

    def signals(n, seed, common=np.sign):
        return common(normal(n, 1, seed)) + 0.3 * normal(n, 6, 100 + seed)

    data = grcd.Dataset("two sides", tiny.graph, *(signals(n, n) for n in (300, 50, 280)))
    same, gaussian = distances(signals(280, 7), data), distances(signals(280, 8, np.array), data)
    for name in ("energy", "sliced_wasserstein", "kolmogorov_smirnov"):
        assert abs(same[name].value - same[name].floor) < 4 * same[name].spread, name
        assert gaussian[name].value - gaussian[name].floor > 4 * gaussian[name].spread, name
    assert gaussian["correlation_error"].value < 0.05
    assert abs(same["classifier_accuracy"].value - 0.5) < chance(140) < gaussian["classifier_accuracy"].value - 0.5


@pytest.mark.parametrize("split", ["test", "train"])
def test_gaps_are_refused(tiny, generated, split):
    parts = {name: tiny.split(name).copy() for name in ("train", "val", "test")}
    parts[split][3:5, 2] = np.nan
    with pytest.raises(
        grcd.InputError, match=f"(?s)got 2 missing readings in the {split}.*expected.*to fix: fill them"
    ):
        distances(generated, grcd.Dataset("gaps", tiny.graph, **parts))


def test_what_cannot_be_measured_is_refused(tiny, generated):
    with pytest.raises(grcd.InputError, match="1 sample in generated signals"):
        distances(generated[:1], tiny)
    with pytest.raises(grcd.InputError, match=r"(?s)9 test signals.*10 or more"):
        distances(generated, grcd.Dataset("few", tiny.graph, tiny.train, tiny.val, tiny.test[:9]))
    ten = grcd.Dataset("ten", tiny.graph, tiny.train, tiny.val, tiny.test[:10])
    assert all(math.isfinite(distance.spread) for distance in distances(generated[:2], ten).values())


# -- permutation test ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(6, 6), (4, 9)])
def test_the_p_value_counts_deals_that_are_at_least_as_far_apart(block, n, m):
    x, y = normal(n, 3, 0), normal(m, 3, 1, 0.7)
    pooled, far = np.vstack([x, y]), 0
    for places in Stream(3, "permutations").uniform(range(50), n + m).argsort(dim=1).numpy():
        far += naive_energy(pooled[places < n], pooled[places >= n]) >= naive_energy(x, y) - 1e-9
    assert 0 < far < 50
    assert permutation_test(x, y, 50, seed=3) == (1 + far) / 51


def test_a_deal_that_gives_the_same_two_sets_counts():
    deals = (Stream(0, "permutations").uniform(range(300), 4).argsort(dim=1) < 2).tolist()
    same = sum(deal in ([True, True, False, False], [False, False, True, True]) for deal in deals)
    assert 60 < same < 140  # every third
    x, y = np.array([[0.0, 0.1], [0.3, 0.7]]), np.array([[5.1, 4.9], [5.0, 4.3]])
    assert permutation_test(x, y, 300) == (1 + same) / 301


def test_p_values_are_uniform_for_equal_distributions():
    p = np.array([permutation_test(normal(9, 2, 2 * k), normal(7, 2, 2 * k + 1), 99, seed=k) for k in range(80)])
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01
    assert (p <= 0.1).sum() < 8 + 4 * math.sqrt(80 * 0.1 * 0.9)


def test_p_values_are_as_small_as_can_be_under_a_shift_and_large_for_copies():
    x, y = normal(40, 3, 0), normal(50, 3, 1, 1.5)
    assert permutation_test(x, y, 199) == 1 / 200
    assert permutation_test(x, x[::-1].copy(), 199) > 0.9
    # The same variance at every node, other tails.
    tails = np.sign(normal(150, 3, 2))
    assert permutation_test(normal(150, 3, 3), tails, 199) == 1 / 200


def test_the_p_value_against_the_floor_counts_deals_that_are_at_least_as_much_further(block):
    x, floor, real = normal(6, 3, 4), normal(9, 3, 1), normal(5, 3, 2)

    def further(one, other):
        return naive_energy(one, real) - naive_energy(other, real)

    pooled, far = np.vstack([x, floor]), 0
    for places in Stream(3, "permutations").uniform(range(50), 15).argsort(dim=1).numpy():
        far += further(pooled[places < 6], pooled[places >= 6]) >= further(x, floor) - 1e-9
    assert 0 < far < 50
    assert farther_test(x, floor, real, 50, seed=3) == (1 + far) / 51


def test_against_the_floor_only_further_is_told_and_equal_distributions_are_not():
    shifted, floor, real = normal(60, 3, 0, 1.5), normal(50, 3, 1), normal(40, 3, 2, 0.5)
    assert farther_test(shifted, floor, real, 199) == 1 / 200
    assert farther_test(floor, shifted, real, 199) == 1  # nearer is not further
    # Training and test signals differ, by a week say: generated ones can be told from these, and not from the floor.
    alike = normal(60, 3, 3)
    assert permutation_test(alike, real, 199) < 0.05
    assert farther_test(alike, floor, real, 199) > 0.05
    parts = [[normal(n, 2, 3 * k + j, 0.5 * (j == 2)) for j, n in enumerate((9, 7, 8))] for k in range(80)]
    p = np.array([farther_test(*part, 99, seed=k) for k, part in enumerate(parts)])
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


# -- command line --------------------------------------------------------------------------------------------------


def test_the_option_adds_a_table_and_a_key_and_changes_nothing_else(tmp_path, tiny, generated, found):
    write_dataset(tmp_path / "tiny.npz", tiny)
    write_signals(tmp_path / "x.npz", generated, tiny.graph.node_ids, "")

    def printed(*options):
        result = CliRunner().invoke(
            app, ["evaluate", str(tmp_path / "x.npz"), "--data", str(tmp_path / "tiny.npz"), *options]
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    plain, beside = printed().splitlines(), printed("--distances").splitlines()
    first = next(k for k, line in enumerate(beside) if not line)
    added = beside[first : first + len(NAMES) + 3]
    assert plain == beside[:first] + beside[first + len(added) :]
    assert [line[:22].strip() for line in added[2:-1]] == [TITLES[name] for name in NAMES]
    assert added[1:-1] == table(found).splitlines()
    without, scores = json.loads(printed("--json")), json.loads(printed("--distances", "--json"))
    assert {name: Distance(**pick(given)) for name, given in scores.pop("distances").items()} == found
    assert scores == without


def pick(given):
    return {key: given[key] for key in ("value", "floor", "spread", "ideal")}


def test_the_table_by_hand():
    rows = table({"energy": Distance(0.5, 0.25, 0.01), "memorisation": Distance(1.5, 0.0, 0.0, 1.0)}).splitlines()
    assert [row.split() for row in rows] == [
        ["value", "floor", "ratio", "ideal"],
        ["energy", "0.5000", "0.2500", "2.00", "0"],
        ["memorisation", "1.5000", "0.0000", "-", "1"],
    ]
    assert Distance(math.nan, 0.0, 0.0, 1.0).to_dict()["value"] is None
