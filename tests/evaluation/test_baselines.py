"""Baselines that fill gaps, by hand and against naive ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import grcd
from grcd.evaluation import baselines
from grcd.references.covariance import ledoit_wolf

POINT = ("fill-mean", "fill-iterative")


@pytest.fixture(scope="module")
def holes(tiny):
    x = np.where(np.random.RandomState(3).random_sample(tiny.test.shape) < 0.3, np.nan, tiny.test)
    x[:2, 0] = np.nan  # nothing before it
    return x


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_every_baseline_fills_every_gap_and_touches_nothing_else(tiny, holes, name):
    rows, found = zip(*baselines.fitted(name, tiny)(holes, 3, 0), strict=True)
    assert np.concatenate(rows).tolist() == list(range(len(holes)))
    found = np.concatenate(found, axis=1)
    seen = ~np.isnan(holes)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, seen], np.broadcast_to(holes[seen], (len(found), seen.sum())), rtol=1e-9)


def test_mean_and_last_by_hand(tiny):
    z = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan], [3.0, 4.0]])
    assert (baselines.mean(tiny)(z) == [[0, 1], [2, 0], [0, 0], [3, 4]]).all()
    assert (baselines.last(tiny)(z) == [[0, 1], [2, 1], [2, 1], [3, 4]]).all()
    assert (baselines.linear(tiny)(z) == [[2, 1], [2, 2], [2.5, 3], [3, 4]]).all()
    assert (baselines.linear(tiny)(np.full((3, 2), np.nan)) == 0).all()


def test_neighbours_are_the_nearest_that_have_a_reading(tiny, monkeypatch):
    monkeypatch.setattr(baselines, "NEIGHBOURS", (2,))
    z = np.arange(6.0)[None] * 10
    z[0, [0, 1]] = np.nan
    # Node 0 hangs on 5 (weight 1.3) and 1 (1.0, a gap); two hops away are 2 and 4, whose weight to it is zero,
    # hence the first of them. The neighbours of node 1 are 2 (0.5) and 4 (0.4).
    found = baselines.neighbours(tiny)(z)
    assert found[0, 0] == pytest.approx((50 + 20) / 2)
    assert found[0, 1] == pytest.approx((20 + 40) / 2)


def test_tikhonov_solves_its_equations(tiny, monkeypatch):
    monkeypatch.setattr(baselines, "WEIGHTS", (0.7,))
    z = np.array([[1.0, np.nan, -2.0, np.nan, 0.5, np.nan]])
    L = tiny.graph.combinatorial.toarray() / tiny.graph.degree.mean()
    seen = np.diag((~np.isnan(z[0])).astype(float))
    expected = np.linalg.solve(seen + 0.7 * L + 0.7 * np.eye(6), seen @ np.nan_to_num(z[0]))
    found = baselines.tikhonov(tiny)(z)
    assert found[0, [1, 3, 5]] == pytest.approx(expected[[1, 3, 5]])


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_no_baseline_looks_at_test_signals(tiny, holes, name):
    found, expected = (
        [drawn for _, drawn in baselines.fitted(name, data)(holes, 2, 0)]
        for data in (replace(tiny, test=np.full_like(tiny.test, 1e3)), tiny)
    )
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_has_the_least_error_on_real_validation_readings_is_chosen(tiny):
    made_up = np.zeros(tiny.val.shape, dtype=bool)
    made_up[:, 3:] = True
    data = replace(tiny, filled={"val": made_up})
    truth = tiny.normalizer.apply(tiny.val)

    def off(left, right):
        """Off by so much at the first three nodes, and at the others."""
        return lambda z: np.where(np.isnan(z), truth + np.repeat([left, right], 3), z)

    fills = [off(0.3, 0.0), off(0.2, 9.0), off(-0.4, 0.0)]
    assert baselines._best(data, fills) is fills[1]
    assert baselines._best(tiny, fills) is fills[0]


def test_tikhonov_and_neighbours_take_the_better_of_two(tiny, holes, monkeypatch):
    for name, key, values in (("tikhonov", "WEIGHTS", (0.1, 100.0)), ("neighbours", "NEIGHBOURS", (1, 5))):
        fits = []
        monkeypatch.setattr(baselines, "_best", lambda data, fills, fits=fits: fits.extend(fills) or fills[0])
        monkeypatch.setattr(baselines, key, values)
        getattr(baselines, name)(tiny)
        assert len(fits) == len(values) ** (2 if name == "tikhonov" else 1)
        assert len({fit(tiny.normalizer.apply(holes)).tobytes() for fit in fits}) == len(fits)  # no two are alike


def test_the_imputer_learns_how_nodes_hang_together(sides):
    train, test = sides
    data = grcd.Dataset("sides", grcd.Graph.from_adjacency(1 - np.eye(6)), train, test[:20], test[20:])
    x = data.test.copy()
    x[:, 2] = np.nan
    off = {name: np.abs(next(baselines.fitted(name, data)(x, 1, 0))[1][0] - data.test)[:, 2].mean() for name in POINT}
    assert off["fill-iterative"] < 0.5 * off["fill-mean"]


def test_the_gaussian_draws_from_its_exact_posterior(tiny, holes):
    n, x = 3000, holes[[5]]
    ((_, found),) = baselines.fitted("fill-gaussian", tiny)(x, n, 0)
    z, C = tiny.normalizer.apply(found[:, 0]), ledoit_wolf(tiny.normalizer.apply(tiny.train))
    o = ~np.isnan(x[0])
    gain = C[np.ix_(~o, o)] @ np.linalg.inv(C[np.ix_(o, o)])
    mean, left = gain @ tiny.normalizer.apply(x)[0, o], C[np.ix_(~o, ~o)] - gain @ C[np.ix_(o, ~o)]
    assert multivariate_normal(mean, left).logpdf(z[:, ~o]).mean() == pytest.approx(
        -(len(mean) * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(left)[1]) / 2, abs=5 * np.sqrt(len(mean) / 2 / n)
    )
