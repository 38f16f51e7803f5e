"""Quantiles of an ensemble cover what they say, whatever the number of draws; CRPS is its double sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.metrics.ensemble import covered, crps, energy, quantiles

law = examples(30)


@pytest.mark.parametrize("n", [1, 9, 20, 100])
def test_a_reading_falls_below_a_quantile_of_its_level_as_often_as_it_says(n):
    """Of uniform draws a quantile is that share, and linear in their order statistics, which average k / (n + 1)."""
    expected = np.arange(1, n + 1) / (n + 1)
    levels = np.linspace(1 / (n + 1), n / (n + 1), 13)
    assert quantiles(np.random.default_rng(n).permutation(expected), levels) == pytest.approx(levels, rel=1e-12)


def test_between_order_statistics_it_is_linear_and_beyond_the_outermost_constant():
    x = np.array([[4.0], [0.0], [1.0]])  # sorted: levels 1/4, 1/2, 3/4
    assert quantiles(x, [0.1, 0.25, 0.375, 0.5, 0.625, 0.75, 0.99])[:, 0] == pytest.approx([0, 0, 0.5, 1, 2.5, 4, 4])


@law
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 7))
def test_crps_is_its_naive_double_sum(seed, n):
    random = np.random.default_rng(seed)
    draws, readings = random.standard_normal((n, 6, 4)), random.standard_normal((6, 4))
    first = np.abs(draws - readings).mean(0)
    second = sum(np.abs(draws[i] - draws[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    close(crps(draws, readings), first - second / 2, 1e-14, size=first + second)


def test_a_point_has_its_absolute_error_and_covers_itself_alone():
    draw, readings = np.array([[1.0, 2.0, 3.0]]), np.array([0.5, 2.0, 7.0])
    assert crps(draw, readings).tolist() == [0.5, 0.0, 4.0]
    assert covered(draw, readings, (0.05, 0.95)).tolist() == [False, True, False]


def test_a_reading_between_two_quantiles_is_covered_ends_included():
    draws = np.array([[6.0], [1.0], [2.0]]) * np.ones(5)  # quartiles 1 and 6
    assert covered(draws, np.array([0.9, 1.0, 3.0, 6.0, 6.1]), (0.25, 0.75)).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_the_energy_score_is_that_of_all_pairs_and_in_one_dimension_the_crps():
    random = np.random.RandomState(0)
    draws, y = random.standard_normal((5, 3, 4)), random.standard_normal((3, 4))
    expected = []
    for k in range(3):
        away = np.mean([np.sqrt(((x[k] - y[k]) ** 2).sum()) for x in draws])
        pairs = [
            np.sqrt(((a[k] - b[k]) ** 2).sum()) for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j
        ]
        expected.append(away - np.mean(pairs) / 2)
    close(energy(draws, y), expected)
    close(energy(draws[..., :1], y[..., :1]), crps(draws[..., 0], y[..., 0]))
