"""Noise grids against the formulas they are named after."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grcd import grids
from grcd.errors import InputError

many = settings(max_examples=50, deadline=None)
steps = st.integers(1, 64)
ends = st.tuples(st.floats(1e-3, 1.0), st.floats(1.5, 100.0))  # q_min, q_max


def close(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=0)


@many
@given(ends=ends, K=steps, rho=st.floats(0.5, 20))
def test_power_is_the_papers_law_step_by_step(ends, K, rho):
    low, high = ends
    grid = grids.power(high, low, K, rho)
    # The bracket of eq. grid as a weighted mean, which cancels nowhere.
    close(grid, [((1 - j / K) * high ** (1 / rho) + j / K * low ** (1 / rho)) ** rho for j in range(K + 1)])


@many
@given(ends=ends, K=steps, rho=st.floats(0.2, 100))
def test_grids_strictly_descend_between_ends_that_are_exact(ends, K, rho):
    low, high = ends
    for grid in (grids.power(high, low, K, rho), grids.log_snr(high, low, K)):
        assert len(grid) == K + 1
        assert grid[0] == high
        assert grid[-1] == low
        assert np.all(np.diff(grid) < 0)


@many
@given(ends=ends, K=steps)
def test_rho_one_is_uniform(ends, K):
    low, high = ends
    close(grids.power(high, low, K, 1), [((K - j) * high + j * low) / K for j in range(K + 1)])


@many
@given(ends=ends, K=steps)
def test_log_snr_is_uniform_in_minus_log_q(ends, K):
    low, high = ends
    half_log_snr = -np.log(grids.log_snr(high, low, K))
    np.testing.assert_allclose(np.diff(half_log_snr), np.full(K, math.log(high / low) / K), rtol=0, atol=1e-13)


@many
@given(ends=ends, K=steps)
def test_the_power_law_tends_to_log_snr_as_rho_grows(ends, K):
    """The gap in ``log q`` falls like ``1/rho``: it is ``log^2(high/low) s (1 - s) / (2 rho)`` and terms beyond."""
    low, high = ends
    s = np.arange(K + 1) / K
    leading = np.log(high / low) ** 2 * s * (1 - s) / 2
    for rho in (1e3, 1e4, 1e5):
        gap = np.log(grids.power(high, low, K, rho) / grids.log_snr(high, low, K))
        # The next term is at most log(high/low) < 12 times smaller than rho; rounding is amplified by rho twice.
        np.testing.assert_allclose(gap * rho, leading, rtol=12 / rho, atol=1e-15 * rho**2)


def test_the_papers_defaults_by_hand():
    """``q`` from 2 to 0.04 in four steps: ``rho = 3`` is the default, and it makes cube roots equidistant."""
    roots = np.linspace(2 ** (1 / 3), 0.04 ** (1 / 3), 5)
    close(grids.make("power", 2.0, 0.04, 4), roots**3)
    close(grids.make("power", 2.0, 0.04, 4, rho=1), [2.0, 1.51, 1.02, 0.53, 0.04])
    close(grids.make("log-snr", 2.0, 0.02, 2), [2.0, 0.2, 0.02])


@pytest.mark.parametrize("levels", [[2, 1, 0.5], (2.0, 1.0, 0.5), np.array([2.0, 1.0, 0.5])])
def test_a_sequence_of_ones_own_is_taken_as_it_is(levels):
    for grid in (grids.given(levels), grids.make(levels, 2.0, 0.5, 2)):
        np.testing.assert_array_equal(grid, [2.0, 1.0, 0.5])
        assert grid.dtype == np.float64


@pytest.mark.parametrize(
    "levels",
    [[0.5, 1, 2], [2, 1, 1], [2, 1, 0], [2, 1, -1], [2], [], [2, math.nan, 1], [math.inf, 1], [[2, 1], [1, 0.5]]],
    ids=["ascending", "repeated", "zero", "negative", "single", "empty", "nan", "infinite", "matrix"],
)
def test_a_sequence_that_is_no_grid_is_refused(levels):
    with pytest.raises(InputError, match=r"^got the grid[\s\S]*expected two or more positive[\s\S]*to fix: list them"):
        grids.given(levels)


@pytest.mark.parametrize("K", [1, 3])
def test_a_sequence_has_to_fit_the_number_of_steps(K):
    with pytest.raises(InputError, match=f"got a grid of 3 levels\nexpected {K + 1} levels[\\s\\S]*change nfe"):
        grids.make([2, 1, 0.5], 2.0, 0.5, K)


@pytest.mark.parametrize("levels", [[2.1, 1, 0.5], [2, 1, 0.4]], ids=["above", "below"])
def test_a_sequence_has_to_stay_where_the_network_was_trained(levels):
    with pytest.raises(
        InputError, match=r"got a grid from .*\nexpected noise levels .*, 2 to 0.5\nto fix: stay inside"
    ):
        grids.make(levels, 2.0, 0.5, 2)
    np.testing.assert_array_equal(grids.make([1.5, 1, 0.6], 2.0, 0.5, 2), [1.5, 1, 0.6])


def test_an_unknown_grid_is_told_the_known_ones_and_the_nearest():
    with pytest.raises(
        InputError, match=r"got grid 'logsnr'\nexpected one of power, log-snr, noise levels.*\n.*'log-snr'"
    ):
        grids.make("logsnr", 2.0, 0.04, 4)


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf])
def test_an_impossible_rho_is_refused(rho):
    with pytest.raises(InputError, match=r"got rho = .*\nexpected a positive number\nto fix: use 3"):
        grids.make("power", 2.0, 0.04, 4, rho=rho)
