"""Quantiles of an ensemble cover what they say, whatever the number of draws."""

import numpy as np
import pytest

from grcd.ensemble import quantiles


@pytest.mark.parametrize("n", [9, 19, 99])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_share_of_exchangeable_points_below_a_quantile_of_the_others_is_its_level(n, level):
    x = np.random.default_rng(n).standard_normal(n + 1)
    below = [x[i] < quantiles(np.delete(x, i), [level])[0] for i in range(n + 1)]
    assert sum(below) == round(level * (n + 1))


def test_between_order_statistics_it_is_linear_and_beyond_the_outermost_constant():
    x = np.array([[4.0], [0.0], [1.0]])  # sorted: levels 1/4, 1/2, 3/4
    assert quantiles(x, [0.1, 0.25, 0.375, 0.5, 0.625, 0.75, 0.99])[:, 0] == pytest.approx([0, 0, 0.5, 1, 2.5, 4, 4])
