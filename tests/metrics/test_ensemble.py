"""Quantiles of an ensemble cover what they say, whatever the number of draws."""

import numpy as np
import pytest

from grcd.metrics.ensemble import quantiles


@pytest.mark.parametrize("n", [1, 9, 20, 100])
def test_a_reading_falls_below_a_quantile_of_its_level_as_often_as_it_says(n):
    """Of uniform draws a quantile is that share, and linear in their order statistics, which average k / (n + 1)."""
    expected = np.arange(1, n + 1) / (n + 1)
    levels = np.linspace(1 / (n + 1), n / (n + 1), 13)
    assert quantiles(np.random.default_rng(n).permutation(expected), levels) == pytest.approx(levels, rel=1e-12)


def test_between_order_statistics_it_is_linear_and_beyond_the_outermost_constant():
    x = np.array([[4.0], [0.0], [1.0]])  # sorted: levels 1/4, 1/2, 3/4
    assert quantiles(x, [0.1, 0.25, 0.375, 0.5, 0.625, 0.75, 0.99])[:, 0] == pytest.approx([0, 0, 0.5, 1, 2.5, 4, 4])
