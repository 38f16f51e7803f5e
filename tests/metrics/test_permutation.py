"""Permutation tests: deals counted one by one, and p values where they are known."""

import math

import numpy as np
import pytest
import scipy.stats
from samples import naive_energy, normal

from grcd.core.streams import Stream
from grcd.metrics import distances as metrics
from grcd.metrics.permutation import farther_test, permutation_test


@pytest.fixture(params=[1, 50, 1 << 21])
def block(request, monkeypatch):
    """Rows, nodes and directions one at a time, a few at a time, and all at once."""
    monkeypatch.setattr(metrics, "BLOCK", request.param)


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
