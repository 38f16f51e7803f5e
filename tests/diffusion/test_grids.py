"""Noise grids against the formulas they are named after."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import each_close, examples
from scipy.optimize import brentq

from grcd.core.errors import InputError
from grcd.diffusion import grids

many = examples(50)
steps = st.integers(1, 64)
ends = st.tuples(st.floats(1e-3, 1.0), st.floats(1.5, 100.0))  # q_min, q_max


@many
@given(ends=ends, K=steps, rho=st.floats(0.5, 20))
def test_power_is_the_papers_law_step_by_step(ends, K, rho):
    low, high = ends
    grid = grids.power(high, low, K, rho)
    # The bracket of eq. grid as a weighted mean, which cancels nowhere.
    each_close(grid, [((1 - j / K) * high ** (1 / rho) + j / K * low ** (1 / rho)) ** rho for j in range(K + 1)])


@many
@given(ends=ends, K=steps, rho=st.floats(0.2, 100))
def test_grids_strictly_descend_between_ends_that_are_exact(ends, K, rho):
    low, high = ends
    of_modes = grids.entropy(high, low, K, np.array([0.0, 0.3, 10.0]), np.array([2.0, 1.0, 0.5]))
    for grid in (grids.power(high, low, K, rho), grids.log_snr(high, low, K), of_modes):
        assert len(grid) == K + 1
        assert grid[0] == high
        assert grid[-1] == low
        assert np.all(np.diff(grid) < 0)


@many
@given(ends=ends, K=steps)
def test_rho_one_is_uniform(ends, K):
    low, high = ends
    each_close(grids.power(high, low, K, 1), [((K - j) * high + j * low) / K for j in range(K + 1)])


@many
@given(ends=ends, K=steps)
def test_log_snr_is_uniform_in_minus_log_q(ends, K):
    low, high = ends
    grid = grids.log_snr(high, low, K)
    each_close(grid[1:] / grid[:-1], np.full(K, (low / high) ** (1 / K)), 1e-13)


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


# -- uniform in the entropy of a reference -----------------------------------------------------------------------------

modes = st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 10)), min_size=1, max_size=6)  # variance, weight


def entropy_of(q, v, weight):
    """``sum_i weight_i log(v_i + q^2)``, one mode at a time."""
    return sum(w * math.log(a + q**2) for a, w in zip(v, weight, strict=True))


def tabulated(low, high):
    """The relative error of a level.

    Between two of 4,096 levels, ``h`` apart in ``log q``, ``q`` is taken as linear in ``H``: wrong by a share of
    ``h^2 / 8 |1 - H'' / H'|`` at most, with derivatives by ``log q``, and ``H'' / H'`` is between 0 and 2.
    """
    return 1.01 * (math.log(high / low) / 4095) ** 2 / 8 + 1e-9


@many
@given(ends=st.tuples(st.floats(0.01, 1.0), st.floats(1.5, 100.0)), K=st.integers(1, 12), modes=modes)
def test_levels_are_where_a_root_finder_sees_the_entropy_fall_by_equal_steps(ends, K, modes):
    (low, high), (v, weight) = ends, zip(*modes, strict=True)
    top, bottom = (entropy_of(q, v, weight) for q in (high, low))
    expected = [high]
    for j in range(1, K):
        target = top + j / K * (bottom - top)
        found = brentq(lambda s, t=target: entropy_of(math.exp(s), v, weight) - t, math.log(low), math.log(high))
        expected.append(math.exp(found))
    each_close(grids.entropy(high, low, K, np.array(v), np.array(weight)), [*expected, low], rtol=tabulated(low, high))


@many
@given(ends=st.tuples(st.floats(0.01, 1.0), st.floats(1.5, 100.0)), K=steps, v=st.just(0.0) | st.floats(1e-6, 10))
def test_one_mode_has_its_levels_in_closed_form(ends, K, v):
    """``log(v + q^2)`` is evenly spaced, so ``v + q^2`` is a geometric sequence; without variance, log-SNR."""
    low, high = ends
    s = np.arange(1, K) / K
    inner = np.sqrt((v + high**2) ** (1 - s) * (v + low**2) ** s - v)
    one = grids.entropy(high, low, K, np.array([v]), np.array([1.0]))
    each_close(one, [high, *inner, low], rtol=tabulated(low, high))
    if v == 0:
        each_close(one, grids.log_snr(high, low, K), rtol=tabulated(low, high))


@many
@given(ends=ends, K=steps, modes=modes, scale=st.floats(1e-3, 1e3), data=st.data())
def test_only_the_shares_of_the_modes_count_and_not_their_order(ends, K, modes, scale, data):
    (low, high), (v, weight) = ends, map(np.array, zip(*modes, strict=True))
    grid = grids.entropy(high, low, K, v, weight)
    each_close(grids.entropy(high, low, K, v, scale * weight), grid, rtol=1e-7)
    order = data.draw(st.permutations(range(len(v))))
    each_close(grids.entropy(high, low, K, v[order], weight[order]), grid, rtol=1e-7)


@many
@given(ends=ends, K=steps, counts=st.lists(st.tuples(st.floats(0, 10), st.integers(1, 5)), min_size=1, max_size=4))
def test_a_variance_that_counts_several_times_is_as_many_modes(ends, K, counts):
    (low, high), (v, times) = ends, map(np.array, zip(*counts, strict=True))
    listed = np.repeat(v, times)
    found = grids.entropy(high, low, K, v, times)
    each_close(found, grids.entropy(high, low, K, listed, np.ones(len(listed))), rtol=1e-7)
    each_close(grids.Grid("entropy", variances=lambda: (v, times)).levels(high, low, K), found, rtol=0)


def test_levels_crowd_where_modes_emerge_from_the_noise():
    """All variances near ``0.3^2``: noise below changes nothing, so that few levels are left for it."""
    low, high, K = 0.01, 10.0, 20
    modes = np.full(5, 0.3**2), np.ones(5)
    below = [int((grid < 0.1).sum()) for grid in (grids.entropy(high, low, K, *modes), grids.log_snr(high, low, K))]
    assert below == [1, 7]


# -- by name ---------------------------------------------------------------------------------------------------------


def test_the_papers_defaults_by_hand():
    """``q`` from 2 to 0.04 in four steps: ``rho = 3`` is the default, and it makes cube roots equidistant."""
    roots = np.linspace(2 ** (1 / 3), 0.04 ** (1 / 3), 5)
    each_close(grids.Grid().levels(2.0, 0.04, 4), roots**3)
    each_close(grids.Grid(rho=1).levels(2.0, 0.04, 4), [2.0, 1.51, 1.02, 0.53, 0.04])
    each_close(grids.Grid("log-snr").levels(2.0, 0.02, 2), [2.0, 0.2, 0.02])


@pytest.mark.parametrize("levels", [[2, 1, 0.5], (2.0, 1.0, 0.5), np.array([2.0, 1.0, 0.5])])
def test_a_sequence_of_ones_own_is_taken_as_it_is(levels):
    for grid in (grids.checked(levels), grids.Grid(levels).levels(2.0, 0.5, 2)):
        np.testing.assert_array_equal(grid, [2.0, 1.0, 0.5])
        assert grid.dtype == np.float64


@pytest.mark.parametrize(
    "levels",
    [[0.5, 1, 2], [2, 1, 1], [2, 1, 0], [2, 1, -1], [2], [], [2, math.nan, 1], [math.inf, 1], [[2, 1], [1, 0.5]]],
    ids=["ascending", "repeated", "zero", "negative", "single", "empty", "nan", "infinite", "matrix"],
)
def test_a_sequence_that_is_no_grid_is_refused(levels):
    with pytest.raises(InputError, match=r"^got the grid[\s\S]*expected two or more positive[\s\S]*to fix: list them"):
        grids.checked(levels)


@pytest.mark.parametrize("K", [1, 3])
def test_a_sequence_has_to_fit_the_number_of_steps(K):
    with pytest.raises(InputError, match=f"got a grid of 3 levels\nexpected {K + 1} levels[\\s\\S]*change nfe"):
        grids.Grid([2, 1, 0.5]).levels(2.0, 0.5, K)


@pytest.mark.parametrize("levels", [[2.1, 1, 0.5], [2, 1, 0.4]], ids=["above", "below"])
def test_a_sequence_has_to_stay_where_the_network_was_trained(levels):
    with pytest.raises(
        InputError, match=r"got a grid from .*\nexpected noise levels .*, 2 to 0.5\nto fix: stay inside"
    ):
        grids.Grid(levels).levels(2.0, 0.5, 2)
    np.testing.assert_array_equal(grids.Grid([1.5, 1, 0.6]).levels(2.0, 0.5, 2), [1.5, 1, 0.6])


def test_an_unknown_grid_is_told_the_known_ones_and_the_nearest():
    with pytest.raises(
        InputError, match=r"got grid 'logsnr'\nexpected one of power, log-snr, entropy, noise levels.*\n.*'log-snr'"
    ):
        grids.Grid("logsnr").levels(2.0, 0.04, 4)


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf])
def test_an_impossible_rho_is_refused(rho):
    with pytest.raises(InputError, match=r"got rho = .*\nexpected a positive number\nto fix: use 3"):
        grids.Grid(rho=rho).levels(2.0, 0.04, 4)
