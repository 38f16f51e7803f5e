"""Scales: there and back to rounding, slopes that are derivatives, densities that hold one unit of probability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from laws import close, each_close, examples
from scipy.special import ndtr

import grcd
from grcd.data import marginals
from grcd.data.limits import Limits
from grcd.data.scales import SCALES, Log, Root, Scales

GRAPH = grcd.Graph.from_adjacency(np.ones((3, 3)) - np.eye(3), node_ids=["a", "b", "c"])
POSITIVE = arrays.arrays(np.float64, (40, 3), elements=st.floats(1e-3, 1e4))


def skewed(seed=0, rows=400):
    return np.exp(np.random.default_rng(seed).standard_normal((rows, 3)))


@examples(50)
@given(POSITIVE, st.sampled_from(["z-score", "root", "log"]))
def test_there_and_back(x, name):
    scale = SCALES[name].of(x)
    each_close(scale.back(scale.forward(x)), x, 1e-12)
    z = scale.forward(np.sort(x, axis=0))
    assert (np.diff(z, axis=0) >= 0).all()


@pytest.mark.parametrize("name", SCALES)
def test_gaps_stay_gaps_and_zeros_come_back(name):
    x = np.random.default_rng(0).poisson(1.5, (500, 3)).astype(float)
    x[::9, 1] = np.nan
    scale = SCALES[name].of(x)
    close(scale.back(scale.forward(x))[~np.isnan(x)], x[~np.isnan(x)], 1e-12)
    for part in (scale.forward(x), scale.log_slope(x)):
        assert np.array_equal(np.isnan(part), np.isnan(x))


@pytest.mark.parametrize("name", SCALES)
def test_the_slope_is_the_derivative(name):
    scale = SCALES[name].of(skewed())
    # between two knots of a quantile map, and away from the ends
    points = np.quantile(skewed(), np.linspace(0.051, 0.949, 60), axis=0)
    step = 1e-7 * points
    numerical = (scale.forward(points + step) - scale.forward(points - step)) / (2 * step)
    knots = getattr(scale, "knots", np.full((3, 1), -1.0))
    near = np.array([[np.abs(knots[k] - v).min() < 2e-7 * v for k, v in enumerate(row)] for row in points])
    each_close(np.exp(scale.log_slope(points))[~near], numerical[~near], 1e-5)


@pytest.mark.parametrize("name", ["root", "log", "quantile"])
def test_a_density_through_a_slope_is_a_density(name):
    """The integral over the units is what the normal law has between the ends of the scale."""
    scale = SCALES[name].of(skewed())
    x = np.exp(np.linspace(*np.log([skewed().min(axis=0).max(), skewed().max(axis=0).min()]), 400_001))
    density = np.exp(-0.5 * scale.forward(np.stack([x] * 3, 1)) ** 2 + scale.log_slope(np.stack([x] * 3, 1)))
    z = scale.forward(x[[0, -1], None] * np.ones(3))
    expected = ndtr(z[1]) - ndtr(z[0])
    close(np.trapezoid(density, x, axis=0) / np.sqrt(2 * np.pi), expected, 2e-3)


def test_roots_and_logarithms_are_what_they_are_called():
    x = np.array([[0.0, 4.0], [9.0, 0.25]])
    assert np.array_equal(Root.of(x).forward(x), np.sqrt(x))
    assert np.array_equal(Log.of(x).forward(x), np.log(x + 0.25))  # the least above zero
    assert np.array_equal(Log.of(x + 1).forward(x + 1), np.log(x + 1))


def test_below_zero_there_is_nothing():
    x = np.array([[0.0, 4.0], [9.0, 0.25]])
    for name in ("root", "log"):
        scale = SCALES[name].of(x)
        assert (scale.back(np.full((1, 2), -50.0)) == 0).all()
        assert np.isfinite(scale.forward(np.full((1, 2), -3.0))).all()
        with pytest.raises(grcd.InputError, match=f"1 negative readings for marginals={name}"):
            SCALES[name].of(x - 0.1)


@pytest.mark.parametrize("name", SCALES)
def test_z_scores_of_a_scale_have_the_moments_of_z_scores(name):
    x = skewed(rows=900)
    found = marginals.fitted(name, x, GRAPH)
    z = found.apply(x)
    close(z.mean(axis=0), np.zeros(3), 1e-3 if name == "quantile" else 1e-12, size=1.0)
    close(z.std(axis=0), np.ones(3), 1e-2 if name == "quantile" else 1e-12)
    close(found.undo(z), x, 1e-12)
    again = marginals.saved(name, {"mean": x.mean(axis=0), "std": x.std(axis=0)}, found.arrays())
    assert np.array_equal(again.apply(x), z)


def test_each_channel_has_its_own_scale_and_all_come_back_from_their_arrays():
    names, x = ["log", "z-score", "quantile", "root"], np.exp(np.random.default_rng(1).standard_normal((300, 8)))
    scales = Scales.of(names, x)
    for k, name in enumerate(names):
        own = x[:, k::4]
        assert np.array_equal(scales.forward(x)[:, k::4], SCALES[name].of(own).forward(own))
        assert np.array_equal(scales.log_slope(x)[:, k::4], SCALES[name].of(own).log_slope(own))
    again = Scales.saved(names, scales.arrays())
    assert np.array_equal(again.back(scales.forward(x)), scales.back(scales.forward(x)))


def test_columns_without_readings_or_changes_do_no_harm_to_quantiles():
    x = skewed()
    x[:, 1], x[:, 2] = np.nan, 7.0
    scale = SCALES["quantile"].of(x)
    assert (scale.back(np.linspace(-3, 3, 9)[:, None] * np.ones(3))[:, 2] == 7).all()
    close(scale.back(scale.forward(x))[:, 0], x[:, 0], 1e-12)


@examples(60)
@given(
    arrays.arrays(np.float64, (7, 6), elements=st.floats(-1e6, 1e6)),
    st.sampled_from([(0.0, np.inf), (-np.inf, 5.0), (0.0, 100.0), (-np.inf, np.inf)]),
    st.booleans(),
)
def test_what_is_kept_to_limits_is_within_whole_and_nearest(x, ends, whole):
    limits = Limits.of([ends, (-np.inf, np.inf)], [whole, False], 2)
    kept = limits.kept(x.copy())
    assert np.array_equal(kept[:, 1::2], x[:, 1::2])  # the other channel
    own = kept[:, 0::2]
    assert ((own >= ends[0]) & (own <= ends[1])).all()
    assert not whole or np.array_equal(own, np.rint(own))
    assert (np.abs(own - np.clip(x[:, 0::2], *ends)) <= 0.5 * whole).all()
    assert np.array_equal(limits.kept(kept.copy()), kept)


def test_readings_outside_the_limits_of_their_channel_are_counted():
    x = np.array([[1.0, -1.0], [2.0, -5.0]])
    Limits.of([(0, np.inf), (-np.inf, 0)], [False], 2).refuse_outside(x)
    with pytest.raises(grcd.InputError, match="2 training readings outside 0 to inf"):
        Limits.of([(0, np.inf)], [False], 2).refuse_outside(x)
