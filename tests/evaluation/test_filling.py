"""Masks that hide readings, and the errors of what fills them, by hand and over parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.evaluation import filling
from grcd.evaluation.filling import errors
from grcd.metrics.ensemble import covered, crps

law = examples(30)


@pytest.mark.parametrize("kind", filling.MASKS)
def test_a_mask_hides_its_share_and_leaves_something_of_every_signal(kind):
    found = filling.hidden(kind, 960, 30)
    share = {"random-25": 0.25, "random-75": 0.75, "sensors": 0.1, "blocks": 0.25}[kind]
    runs = 24 if kind == "blocks" else 1
    assert found.mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) * runs / found.size))
    assert not found.all(axis=1).any()
    assert np.array_equal(found, filling.hidden(kind, 960, 30))
    if kind != "sensors":
        assert not np.array_equal(found, filling.hidden(kind, 960, 30, seed=1))


def test_silent_sensors_are_silent_throughout_and_blocks_for_a_day():
    silent = filling.hidden("sensors", 50, 30)
    assert (silent == silent[0]).all()
    assert silent[0].sum() == 3
    blocks = filling.hidden("blocks", 480, 30)
    for node in blocks.T:
        ends = np.flatnonzero(np.diff(node.astype(int)))
        assert (np.diff(ends) % filling.RUN == 0).all()  # whole runs, one after the other
    assert len({tuple(np.flatnonzero(np.diff(node.astype(int))) % filling.RUN) for node in blocks.T if node.any()}) > 3


def test_an_unknown_mask_is_told_the_known_ones():
    for kind in ("random-50", "block"):
        with pytest.raises(grcd.InputError, match="random-25, random-75, sensors, blocks"):
            filling.hidden(kind, 5, 5)


def test_scores_of_three_draws_by_hand():
    """Draws 1, 2, 6 of a reading 3: median 2, mean 3; E|x - y| = 2, E|x - x'| over pairs = (1 + 5 + 4) / 3."""
    draws = np.array([6.0, 1.0, 2.0]).reshape(3, 1, 1)
    found = errors([(np.array([0]), draws)], np.array([[3.0]]), np.array([[True]]))
    assert found["mae"] == 1.0
    assert found["rmse"] == 0.0
    assert found["crps"] == pytest.approx(2 - 10 / 3 / 2)
    # Levels 1/4, 1/2, 3/4: quartiles 1 and 6, so 3 is inside.
    assert (found["cover_50"], found["cover_90"], found["readings"]) == (1.0, 1.0, 1)
    low = errors([(np.array([0]), draws)], np.array([[0.9]]), np.array([[True]]))
    assert (low["cover_50"], low["cover_90"]) == (0.0, 0.0)


@law
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7))
def test_errors_add_up_over_parts_of_the_signals(seed, n):
    random = np.random.default_rng(seed)
    draws, truth = random.standard_normal((n, 6, 4)), random.standard_normal((6, 4))
    where = random.random((6, 4)) < 0.6
    where[0, 0] = True
    whole = errors([(np.arange(6), draws)], truth, where)
    parts = [(rows, draws[:, rows]) for rows in (np.array([4, 0, 2]), np.array([1, 5, 3]))]
    assert errors(parts, truth, where) == pytest.approx(whole, rel=0, abs=1e-14 * np.abs(draws - truth).max())
    assert whole["crps"] == pytest.approx(crps(draws, truth)[where].mean(), rel=1e-12)
    assert whole["cover_90"] == covered(draws, truth, (0.05, 0.95))[where].mean()
    assert whole["readings"] == where.sum()
    sums = filling.by_signal(parts, truth, where)
    np.testing.assert_array_equal(sums["readings"], where.sum(axis=1))
    expected = np.where(where, crps(draws, truth), 0).sum(axis=1)
    np.testing.assert_allclose(sums["crps"], expected, rtol=0, atol=1e-14 * np.abs(draws - truth).max() * 4)


def test_draws_from_the_truths_own_distribution_cover_as_they_should():
    random = np.random.default_rng(0)
    draws, truth = random.standard_normal((40, 4000, 5)), random.standard_normal((4000, 5))
    found = errors([(np.arange(4000), draws)], truth, np.ones_like(truth, dtype=bool))
    error = 5 * np.sqrt(0.25 / truth.size)
    assert found["cover_50"] == pytest.approx(0.5, abs=error)
    assert found["cover_90"] == pytest.approx(0.9, abs=error)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.02)


def test_silent_sensors_are_the_same_however_many_signals():
    assert (filling.hidden("sensors", 5, 30)[0] == filling.hidden("sensors", 5000, 30)[0]).all()
