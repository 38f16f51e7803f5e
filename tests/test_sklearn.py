"""GraphImputer keeps scikit-learn's contract, and fills as the model does."""

import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import grcd
from grcd.core.errors import InputWarning

SETTINGS = {"max_updates": 1, "width": 4, "validate_every": 1}
SKIPPED = {"check_array_api_input": "scikit-learn itself skips it, unless SCIPY_ARRAY_API is set: arrays are numpy's"}


def imputer(**options):
    return grcd.sklearn.GraphImputer(settings=SETTINGS, n_draws=9, posterior="reference", device="cpu", **options)


def signals(rows=90, gaps=0.2, seed=0):
    random = np.random.RandomState(seed)
    x = random.standard_normal((rows, 1)) + 0.3 * random.standard_normal((rows, 4))
    return np.where(random.random_sample(x.shape) < gaps, np.nan, x)


def test_it_passes_the_checks_of_scikit_learn():
    skipped = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # that a network of one update adds nothing, and the like
        for estimator, check in estimator_checks_generator(imputer()):
            name = check.func.__name__
            try:
                check(estimator)
            except SkipTest as reason:
                skipped[name] = str(reason)
    assert {*skipped} <= {*SKIPPED}, skipped


def test_it_fills_as_the_model_does_and_keeps_what_was_observed():
    W, x = np.ones((4, 4)) - np.eye(4), signals()
    filled = imputer(graph=W, random_state=3).fit_transform(x)
    model = grcd.GRCD(W, seed=3, device="cpu", **SETTINGS).fit(x)
    np.testing.assert_array_equal(filled, model.impute(x, n=9, seed=3, posterior="reference", quantiles=[0.5])[0])
    np.testing.assert_array_equal(filled[~np.isnan(x)], x[~np.isnan(x)])


def test_frames_are_matched_to_the_graph_by_name_and_come_back_as_asked_for():
    names = ["d", "a", "c", "b"]
    edges = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
    table = pd.DataFrame(signals(), pd.date_range("2024-01-01", periods=90, freq="h"), names)
    model = imputer(graph=edges).set_output(transform="pandas").fit(table)
    filled = model.transform(table)
    pd.testing.assert_index_equal(filled.index, table.index)
    assert list(filled) == names
    assert model.model_.graph.node_ids == ("a", "b", "c", "d")
    straight = imputer(graph=edges).fit(table[["a", "b", "c", "d"]]).transform(table[["a", "b", "c", "d"]])
    np.testing.assert_array_equal(filled[["a", "b", "c", "d"]], straight)


def test_it_works_in_a_pipeline_and_can_be_cloned():
    x, y = signals(), signals(gaps=0)[:, 0]
    pipeline = make_pipeline(StandardScaler(), imputer(graph=np.ones((4, 4)) - np.eye(4)), Ridge())
    first = pipeline.fit(x, y).predict(x)
    np.testing.assert_array_equal(clone(pipeline).fit(x, y).predict(x), first)
    assert not hasattr(clone(pipeline)[1], "model_")
    assert np.corrcoef(first, y)[0, 1] > 0.8


def test_with_a_window_the_rows_before_and_after_count():
    t = np.arange(300)
    x = np.sin(t / 3)[:, None] * [1.0, 0.9, 1.1] + 0.05 * np.random.RandomState(0).standard_normal((300, 3))
    holed = x.copy()
    holed[100:102] = np.nan  # whole rows: only time can tell
    filled = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        for window in (1, 6):
            filled[window] = imputer(window=window, random_state=0).fit(holed).transform(holed)[100:102]
    off = {window: np.abs(rows - x[100:102]).mean() for window, rows in filled.items()}
    assert off[6] < 0.5 * off[1]


def test_without_a_graph_nodes_are_called_as_the_columns_of_a_frame_and_its_times_count():
    table = pd.DataFrame(signals(), pd.date_range("2024-01-01", periods=90, freq="h"), ["d", "a", "c", "b"])
    named, plain = imputer().fit(table), imputer().fit(table.to_numpy())
    assert named.model_.graph.node_ids == ("d", "a", "c", "b")
    np.testing.assert_array_equal(named.transform(table), plain.transform(table.to_numpy()))
    in_time = grcd.sklearn.GraphImputer(window=4, settings={"max_updates": 0}, device="cpu").fit(table)
    assert in_time.model_.series.interval == np.timedelta64(1, "h")
