"""What goes into a model comes out of it in its own form: data frames, labelled arrays; arrays are the oracle."""

import logging

import numpy as np
import pandas as pd
import pytest
from laws import close

import grcd
from grcd.core.errors import InputError, InputWarning

NODES, STEPS = 4, 4
NAMES = ["north", "south", "east", "west"]
ORDER = ["west", "north", "east", "south"]  # of the frames' columns
MOMENTS = {"width": 4, "max_updates": 2, "validate_every": 1, "device": "cpu"}
WINDOWS = {"width": 8, "blocks": 1, "heads": 2, "pool": 100, "max_updates": 4, "validate_every": 2, "device": "cpu"}
QUICK = {"nfe": 1, "posterior": "reference"}


def graph(**names):
    W = np.diag(np.ones(NODES - 1), 1)
    return grcd.Graph.from_adjacency(W + W.T, **names)


def values(rows, seed=0):
    """(rows, nodes): an autoregression with something in common."""
    random = np.random.RandomState(seed)
    x = np.zeros((rows, NODES))
    for t in range(1, rows):
        x[t] = 0.8 * x[t - 1] + random.standard_normal() + 0.5 * random.standard_normal(NODES)
    return 10 + x


def frame(rows, seed=0, gaps=False, text=False):
    """Columns in another order than the graph's nodes."""
    index = pd.date_range("2024-01-01", periods=rows, freq="h", name="time")
    index = index.strftime("%Y-%m-%d %H:%M").rename("time") if text else index
    table = pd.DataFrame(values(rows, seed), index, NAMES)[ORDER]
    return table.mask(np.random.RandomState(1).random_sample(table.shape) < 0.3) if gaps else table


def array(table):
    """In the graph's order."""
    return table[NAMES].to_numpy()


def labelled(table):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(table.to_numpy(), {"time": table.index, "node": list(table)}, ("time", "node"))


@pytest.fixture(scope="module")
def moments():
    """The same model, trained on a frame and on an array."""
    table = frame(90)
    return [grcd.GRCD(graph(node_ids=NAMES), **MOMENTS).fit(x) for x in (table, array(table))]


@pytest.fixture(scope="module")
def windows():
    table = frame(160)
    models = [grcd.GRCD(graph(node_ids=NAMES), window=STEPS, **WINDOWS) for _ in range(2)]
    with pytest.warns(InputWarning, match="reference is used alone"):
        return [models[0].fit(table), models[1].fit(array(table), times=table.index)]


# -- signals by themselves ---------------------------------------------------------------------------------------------


def test_a_frame_of_signals_comes_back_filled_with_its_index_columns_and_order(moments):
    own, plain = moments
    table = frame(9, seed=3, gaps=True).iloc[[4, 0, 8, 8, 1]]  # an index of any kind, in any order
    draws = plain.impute(array(table), **QUICK)
    filled = own.impute(table, **QUICK)
    pd.testing.assert_index_equal(filled.index, table.index)
    assert list(filled) == ORDER
    close(array(filled), np.median(draws, axis=0))
    pd.testing.assert_frame_equal(filled.where(table.notna()), table)
    np.testing.assert_array_equal(
        own.impute(table, n=7, **QUICK), plain.impute(array(table), n=7, **QUICK)[..., [3, 0, 2, 1]]
    )
    bands = own.impute(table, quantiles=[0.1, 0.9], **QUICK)
    assert list(bands) == [(name, level) for name in ORDER for level in (0.1, 0.9)]
    levels = plain.impute(array(table), quantiles=[0.1, 0.9], **QUICK)
    np.testing.assert_array_equal(bands.xs(0.9, axis=1, level="quantile")[NAMES], levels[1])


@pytest.mark.parametrize("levels", [0.5, "0.5", ["a"], [], [0.5, 1.0], [None], [0.1, float("nan")]])
def test_quantiles_that_are_no_levels_are_refused(moments, levels):
    with pytest.raises(InputError, match="a list of numbers between 0 and 1"):
        moments[0].impute(frame(4, gaps=True), quantiles=levels, **QUICK)


def test_samples_are_as_the_training_signals_were_and_so_they_are_from_a_run_folder(moments, tmp_path):
    own, plain = moments
    drawn = own.sample(6, seed=2)
    assert list(drawn) == ORDER
    assert drawn.index.name == "sample"
    np.testing.assert_array_equal(array(drawn), plain.sample(6, seed=2))
    own.save(tmp_path / "run")
    pd.testing.assert_frame_equal(grcd.load(tmp_path / "run").sample(6, seed=2), drawn)


@pytest.mark.filterwarnings("ignore:the network of this run adds nothing")
def test_likelihoods_and_variations_of_a_frame_are_frames(moments):
    own, plain = moments
    table = frame(5, seed=4).iloc[::-1]
    for one, other in zip(own.log_prob(table, steps=2), plain.log_prob(array(table), steps=2), strict=True):
        np.testing.assert_array_equal(one, other)
        pd.testing.assert_index_equal(one.index, table.index)
    each = own.node_log_prob(table)
    np.testing.assert_array_equal(array(each), plain.node_log_prob(array(table)))
    assert list(each) == ORDER
    varied = own.augment(table, 0.3, nfe=2)
    np.testing.assert_array_equal(array(varied), plain.augment(array(table), 0.3, nfe=2)[0])
    pd.testing.assert_index_equal(varied.index, table.index)
    assert own.augment(table, 0.3, n=2, nfe=2).shape == (2, 5, NODES)


def test_a_labelled_array_of_signals_comes_back_with_its_dimensions(moments):
    own, plain = moments
    table = frame(6, seed=3, gaps=True)
    draws = own.impute(labelled(table).transpose(), n=5, **QUICK)
    assert draws.dims == ("draw", "node", "time")
    expected = plain.impute(array(table), n=5, **QUICK)
    np.testing.assert_array_equal(draws.transpose("draw", "time", "node").sel(node=NAMES), expected)
    scores, _ = own.log_prob(labelled(table), "reference")
    np.testing.assert_array_equal(scores.time, table.index)


def test_a_node_without_a_column_is_filled_as_that_of_a_file_is(moments):
    own, plain = moments
    table = frame(6, seed=3)
    with pytest.warns(InputWarning, match="no column for north: all of their readings are gaps"):
        filled = own.impute(table.drop(columns="north"), **QUICK)
    assert list(filled) == ["west", "east", "south", "north"]
    holed = array(table.assign(north=np.nan))
    close(filled["north"].to_numpy(), np.median(plain.impute(holed, **QUICK), axis=0)[:, 0])
    with pytest.raises(InputError, match="without north"):
        own.log_prob(table.drop(columns="north"))


def test_a_graph_without_names_takes_those_of_the_frame_and_keeps_them(tmp_path):
    table = frame(90)
    with pytest.warns(InputWarning, match="the graph has no node names"):
        model = grcd.GRCD(graph(), **MOMENTS).fit(table)
    assert model.graph.node_ids == tuple(ORDER)
    model.save(tmp_path / "run")
    filled = grcd.load(tmp_path / "run").impute(frame(6, gaps=True)[NAMES], **QUICK)
    assert list(filled) == NAMES
    with pytest.raises(InputError, match="readings of 3 columns"):
        grcd.GRCD(graph(), **MOMENTS).fit(table.iloc[:, 1:])


def test_text_in_a_frame_is_located(moments, windows):
    table = frame(6).astype(object)
    table.iloc[2, 1] = "broken"
    for model in (moments[0], windows[0]):
        with pytest.raises(InputError, match=r"'broken' in row 3 \(2024-01-01 02:00:00\), column 'north'"):
            model.impute(table)


# -- in time -----------------------------------------------------------------------------------------------------------


def test_rows_in_any_order_with_their_times_as_text_come_back_so(windows):
    own, plain = windows
    table = frame(30, seed=5, gaps=True)
    mixed = frame(30, seed=5, gaps=True, text=True).sample(frac=1, random_state=0)
    draws = plain.impute(array(table), n=6, times=table.index, **QUICK)
    back = np.argsort(mixed.index.argsort())
    np.testing.assert_array_equal(own.impute(mixed, n=6, **QUICK), draws[:, back][..., [3, 0, 2, 1]])
    filled = own.impute(mixed, **QUICK)
    pd.testing.assert_index_equal(filled.index, mixed.index)
    assert list(filled) == ORDER
    ahead = own.forecast(mixed, horizon=3, **QUICK)
    assert list(ahead.index) == ["2024-01-02 06:00", "2024-01-02 07:00", "2024-01-02 08:00"]
    expected = plain.forecast(array(table), 3, n=100, times=table.index, **QUICK)
    close(array(ahead), np.median(expected, axis=0))
    scores, _ = own.log_prob(mixed)
    expected, _ = plain.log_prob(array(table), times=table.index)
    np.testing.assert_array_equal(scores, expected[back])


def test_windows_are_sampled_as_rows_by_sample_and_time(windows, tmp_path):
    own, plain = windows
    drawn, (rows, times) = own.sample(3, nfe=1), plain.series.sample(3, nfe=1)
    assert drawn.index.names == ["sample", "time"]
    assert list(drawn) == ORDER
    np.testing.assert_array_equal(array(drawn).reshape(3, STEPS, NODES), rows[..., 0])
    np.testing.assert_array_equal(drawn.index.get_level_values("time"), times.ravel())
    own.save(tmp_path / "run")
    pd.testing.assert_frame_equal(grcd.load(tmp_path / "run").sample(3, nfe=1), drawn)


def test_a_labelled_array_in_time_has_draws_first_and_its_rows_to_come(windows):
    own, plain = windows
    table = frame(12, seed=6, gaps=True)
    draws = own.impute(labelled(table), n=5, **QUICK)
    assert draws.dims == ("draw", "time", "node")
    expected = plain.impute(array(table), n=5, times=table.index, **QUICK)
    np.testing.assert_array_equal(draws.sel(node=NAMES), expected)
    ahead = own.forecast(labelled(table), 2, quantiles=[0.5], **QUICK)
    assert ahead.dims == ("quantile", "time", "node")
    np.testing.assert_array_equal(ahead.time, pd.date_range("2024-01-01 12:00", periods=2, freq="h"))


def test_a_model_fitted_to_a_labelled_array_samples_labelled_arrays(tmp_path):
    table = frame(90)
    model = grcd.GRCD(graph(node_ids=NAMES), **MOMENTS).fit(labelled(table))
    drawn = model.sample(3)
    assert drawn.dims == ("draw", "node")
    assert drawn.node.to_numpy().tolist() == ORDER
    plain = grcd.GRCD(graph(node_ids=NAMES), **MOMENTS).fit(array(table))
    np.testing.assert_array_equal(drawn.sel(node=NAMES), plain.sample(3))


# -- long frames -------------------------------------------------------------------------------------------------------


def long(table):
    melted = table.rename_axis(columns="sensor").stack(future_stack=True).rename("speed").reset_index()
    return melted.assign(note="ignored")


def test_a_long_frame_is_forecast_as_the_wide_one(windows):
    own, _ = windows
    table = frame(20, seed=7)
    predicted = own.predict_df(long(table), "sensor", "time", "speed", 3, [0.1, 0.9], **QUICK)
    assert list(predicted) == ["sensor", "time", "target_name", "predictions", "0.1", "0.9"]
    assert predicted["sensor"].drop_duplicates().tolist() == ORDER
    bands = own.forecast(table, 3, quantiles=[0.1, 0.5, 0.9], **QUICK)
    for column, level in (("predictions", 0.5), ("0.1", 0.1), ("0.9", 0.9)):
        wide = predicted.pivot(index="time", columns="sensor", values=column)[NAMES]
        np.testing.assert_array_equal(wide, bands.xs(level, axis=1, level="quantile")[NAMES])
        np.testing.assert_array_equal(wide.index, bands.index)
    assert len(own.predict_df(long(table), "sensor", "time", "speed", **QUICK)) == NODES * STEPS // 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda df: df.drop(columns="speed"),
            "columns time, sensor, note, without speed\nexpected the columns sensor, time, speed\nto fix: rename",
        ),
        (lambda df: pd.concat([df, df.iloc[:1]]), "several readings of west at 2024-01-01"),
        (lambda df: df[df["sensor"] != "east"], "without east"),
        (lambda df: df.assign(time=None), "without a node or a time"),
    ],
)
def test_long_frames_that_do_not_fit_are_refused(windows, change, words):
    with pytest.raises(InputError, match=words):
        windows[0].predict_df(change(long(frame(12))), "sensor", "time", "speed", 2, [0.5])


# -- progress ----------------------------------------------------------------------------------------------------------


def test_verbose_says_how_far_it_is_without_a_terminal(windows, moments, capsys, caplog):
    table = frame(12, gaps=True)
    windows[0].impute(table, **QUICK)
    assert capsys.readouterr().err == ""
    windows[0].impute(table, verbose=True, **QUICK)
    assert "grcd: filling 12 of 12" in capsys.readouterr().err
    windows[0].forecast(table, 3, verbose=True, **QUICK)
    assert "grcd: forecasting 3 of 3" in capsys.readouterr().err
    for model in (windows[0], moments[0]):
        model.sample(5, verbose=True)
        assert "grcd: sampling 5 of 5" in capsys.readouterr().err
    with caplog.at_level(logging.INFO, logger="grcd"):
        grcd.GRCD(graph(node_ids=NAMES), **MOMENTS).fit(frame(90))
    assert any(line.startswith("training 2 of 2, ") for line in caplog.messages)
