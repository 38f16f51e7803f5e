"""Quantile maps and supports: readings of any shape, which come back where they were and never leave their range."""

import json

import numpy as np
import pytest
from folders import edit_tensors
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from laws import close, examples
from scipy.stats import norm

import grcd
from grcd.data import quantiles
from grcd.data.quantiles import Quantiles
from grcd.training.config import Config

law = examples(50)
THREE = grcd.Graph.from_adjacency(np.array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]]), node_ids=["a", "b", "c"])


def column(x):
    """The map of one node's readings; the other two nodes are there for the graph."""
    x = np.asarray(x, dtype=np.float64)
    return Quantiles.fit(np.stack([x, np.arange(len(x)), x**2 + np.arange(len(x))], axis=1), THREE)


def there(found, x):
    return found.apply(np.stack([x] * 3, axis=1))[:, 0]


def back(found, z):
    return found.undo(np.stack([z] * 3, axis=1))[:, 0]


def test_four_readings_by_hand():
    """Levels 1/8, 3/8, 5/8, 7/8; between them on straight lines, beyond them the outermost readings."""
    found = column([4.0, 1.0, 2.0, 8.0])
    assert there(found, [1.0, 2.0, 3.0, 8.0]) == pytest.approx(norm.ppf([1 / 8, 3 / 8, 1 / 2, 7 / 8]))
    assert there(found, [-5.0, 100.0]) == pytest.approx(norm.ppf([1 / 8, 7 / 8]))
    assert back(found, norm.ppf([1 / 8, 1 / 4, 1 / 2, 7 / 8])) == pytest.approx([1.0, 1.5, 3.0, 8.0])
    assert back(found, [-40.0, 40.0]) == pytest.approx([1.0, 8.0])


def test_equal_readings_share_the_middle_of_their_levels_and_take_up_all_of_them():
    """A sensor that saturates at 70: half of all readings."""
    found = column([10.0, 30.0, 50.0, 60.0, 70.0, 70.0, 70.0, 70.0])
    assert there(found, [70.0]) == pytest.approx(norm.ppf([0.75]))  # levels from 1/2 to 1
    assert (back(found, norm.ppf(np.linspace(9 / 16, 0.999, 50))) == 70.0).all()
    assert back(found, norm.ppf([7 / 16])) == pytest.approx([60.0])


@law
@given(x=arrays.arrays(np.float64, 30, elements=st.floats(-1e3, 1e3), unique=True))
def test_training_readings_come_back_and_are_normal_on_the_way(x):
    found = column(x)
    z = there(found, x)
    close(np.sort(z), norm.ppf((np.arange(30) + 0.5) / 30), 1e-12)
    assert (np.argsort(z) == np.argsort(x)).all()
    close(back(found, z), x, 1e-12)


@law
@given(z=arrays.arrays(np.float64, 20, elements=st.floats(-1e3, 1e3)), seed=st.integers(0, 1000))
def test_nothing_leaves_the_range_of_the_training_readings_and_order_is_kept(z, seed):
    x = np.random.default_rng(seed).standard_exponential(40)
    found = back(column(x), np.sort(z))
    assert (found >= x.min()).all()
    assert (found <= x.max()).all()
    assert (np.diff(found) >= 0).all()


def test_gaps_stay_gaps_and_are_left_out_of_the_levels():
    x = np.random.default_rng(0).standard_normal((50, 3))
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.2, np.nan, x)
    found = Quantiles.fit(holes, THREE)
    least = int((~np.isnan(holes)).sum(axis=0).min())
    for node in range(3):
        seen = holes[~np.isnan(holes[:, node]), node]
        expected = np.quantile(seen, (np.arange(least) + 0.5) / least, method="hazen")
        assert found.knots[node] == pytest.approx(expected)
    z = found.apply(holes)
    assert (np.isnan(z) == np.isnan(holes)).all()


def test_many_readings_are_kept_as_so_many_levels(monkeypatch):
    monkeypatch.setattr(quantiles, "LEVELS", 11)
    x = np.random.default_rng(0).standard_normal((500, 3))
    knots = Quantiles.fit(x, THREE).knots
    assert knots == pytest.approx(np.quantile(x, (np.arange(11) + 0.5) / 11, axis=0, method="hazen").T)


def test_rows_may_be_chosen_and_single_precision_stays():
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    found, rows = Quantiles.fit(x, THREE), np.array([7, 3])
    assert found.apply(x, rows).dtype == np.float32
    assert (found.apply(x, rows) == found.apply(x)[rows]).all()


def test_a_node_that_never_changes_is_refused():
    with pytest.raises(grcd.InputError, match="never change: b"):
        Quantiles.fit(np.array([[1.0, 5.0, 2.0], [2.0, 5.0, 3.0]]), THREE)


# -- in a model --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skewed(tiny):
    """Readings that pile up at 20: training and validation."""
    return [np.minimum(part, 20.0) for part in (tiny.train, tiny.val)]


@pytest.mark.parametrize("method", ["grcd", "grcd-rho3"])
def test_a_model_with_quantile_maps_stays_in_range_and_comes_back_to_the_bit(tiny, skewed, quick, tmp_path, method):
    model = grcd.GRCD(tiny.graph, method, 3, "cpu", marginals="quantile", **quick).fit(*skewed, run=tmp_path / "run")
    x = model.sample(200, nfe=2, seed=1)
    assert (x >= skewed[0].min(axis=0)).all()
    assert (x <= skewed[0].max(axis=0)).all()
    assert ((x == 20.0).any(axis=0) == (skewed[0] == 20.0).any(axis=0)).all()  # as real sensors do
    assert np.array_equal(grcd.load(tmp_path / "run", device="cpu").sample(200, nfe=2, seed=1), x)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["marginals"] == "quantile"


def test_a_run_that_lost_its_quantiles_is_refused(tiny, skewed, quick, tmp_path):
    grcd.GRCD(tiny.graph, "grcd-rho3", 3, "cpu", marginals="quantile", **quick).fit(*skewed, run=tmp_path / "run")
    edit_tensors(tmp_path / "run", lambda tensors: tensors.pop("normalizer.knots"))
    with pytest.raises(grcd.InputError, match="do not fit together"):
        grcd.load(tmp_path / "run")


def test_a_support_changes_nothing_but_readings_outside_it(tiny, quick):
    free = grcd.GRCD(tiny.graph, "grcd", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    low, high = tiny.train.min(), tiny.train.max()
    held = grcd.GRCD(tiny.graph, "grcd", 3, "cpu", support=(low, high), **quick).fit(tiny.train, tiny.val)
    x = free.sample(2000, nfe=2, seed=1)
    assert ((x < low) | (x > high)).any()
    assert np.array_equal(held.sample(2000, nfe=2, seed=1), np.clip(x, low, high))


def test_training_readings_outside_the_support_are_refused(tiny, quick):
    outside = int((tiny.train > 20).sum())
    model = grcd.GRCD(tiny.graph, "grcd-rho3", 3, "cpu", support="-100,20", **quick)
    with pytest.raises(grcd.InputError, match=f"{outside} training readings outside -100 to 20"):
        model.fit(tiny.train, tiny.val)


@pytest.mark.parametrize("given", ["0,70", "0.0,70", (0, 70), [0.0, 70.0], "0,7e1"])
def test_a_support_has_one_spelling(given):
    config = Config.make(support=given)
    assert (config.support, config.limits().bounds) == ("0.0,70.0", ((0.0, 70.0),))
    assert Config.make(support=config.support) == config


def test_a_support_may_have_one_end_or_none():
    assert Config.make(support="0,inf").limits().bounds == ((0.0, np.inf),)
    assert Config.make(support=("-inf", 5)).limits().bounds == ((-np.inf, 5.0),)
    assert Config.make(support=(-np.inf, np.inf)) == Config.make()


@pytest.mark.parametrize("wrong", ["70,0", "0", "0,1,2", "a,b", "inf,inf", "-inf,-inf", "nan,1", "0,nan", "5,5"])
def test_a_support_that_is_none_is_refused(wrong):
    with pytest.raises(grcd.InputError, match="two numbers, the lower one first"):
        Config.make(support=wrong)
    assert Config.make().limits().bounds == ((-np.inf, np.inf),)


def test_marginals_are_told_the_known_ones():
    with pytest.raises(grcd.InputError, match="z-score, quantile"):
        Config.make(marginals="quantiles")
