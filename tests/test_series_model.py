"""Rows in time through a trained model: data frames, arrays, several channels, run folders."""

import warnings

import numpy as np
import pandas as pd
import pytest
from laws import close

import grcd
from grcd import contests
from grcd.core.errors import InputError, InputWarning
from grcd.data.series import Series

NODES, STEPS, ROWS = 5, 8, 900
NAMES = [f"s{i}" for i in range(NODES)]
QUICK = {"width": 16, "blocks": 1, "heads": 2, "pool": 300, "max_updates": 30, "validate_every": 15}


def graph():
    W = np.diag(np.ones(NODES - 1), 1)
    return grcd.Graph.from_adjacency(W + W.T, node_ids=NAMES)


def readings(rows=ROWS, channels=1, seed=0):
    """(rows, nodes, channels): an autoregression about a daily curve."""
    random = np.random.RandomState(seed)
    count = NODES * channels
    x, root = np.zeros((rows, count)), np.linalg.cholesky(0.2 * np.eye(count) + 1.0)
    for t in range(1, rows):
        x[t] = 0.85 * x[t - 1] + root @ random.standard_normal(count)
    x += 10 + 3 * np.sin(2 * np.pi * np.arange(rows) / 24)[:, None]
    return x.reshape(rows, NODES, channels) * 10.0 ** np.arange(channels)


def frame(values, start="2024-01-01"):
    """One column a node, or (node, channel)."""
    index = pd.date_range(start, periods=len(values), freq="h", name="time")
    channels = values.shape[2]
    columns = NAMES if channels == 1 else pd.MultiIndex.from_product([NAMES, ["temp", "wind"]])
    return pd.DataFrame(values.reshape(len(values), -1), index, columns)


def with_gaps(table, share=0.2, seed=1):
    return table.mask(np.random.RandomState(seed).random_sample(table.shape) < share)


@pytest.fixture(scope="module", params=[1, 2], ids=["one channel", "two channels"])
def case(request):
    """A trained model, and a table with gaps that it has not seen."""
    channels = request.param
    with pytest.warns(InputWarning, match="reference is used alone"):
        model = grcd.GRCD(graph(), window=STEPS, **QUICK).fit(with_gaps(frame(readings(channels=channels))))
    return model, with_gaps(frame(readings(60, channels, seed=2), "2024-03-01"))


def test_a_frame_comes_back_filled_with_its_own_index_columns_and_order(case):
    model, table = case
    mixed = table.sample(frac=1, random_state=0).sample(frac=1, axis=1, random_state=0)
    filled, straight = model.impute(mixed, seed=3), model.impute(table, seed=3)
    assert not filled.isna().any(axis=None)
    pd.testing.assert_index_equal(filled.index, mixed.index)
    pd.testing.assert_index_equal(filled.columns, mixed.columns)
    pd.testing.assert_frame_equal(filled.loc[table.index, table.columns], straight, check_freq=False)
    pd.testing.assert_frame_equal(filled.where(mixed.notna()), mixed)  # what was observed is as it was


def test_the_median_and_the_quantiles_are_those_of_the_draws(case):
    model, table = case
    draws = model.impute(table, n=100, seed=3)
    assert draws.shape == (100, len(table), *model.space.shape[1:])
    flat = draws.reshape(100, len(table), -1)
    close(model.impute(table, seed=3).to_numpy(), np.median(flat, axis=0))
    bands = model.impute(table, quantiles=[0.1, 0.5, 0.9], seed=3)
    for k, level in enumerate([0.1, 0.5, 0.9]):
        found = bands.xs(level, axis=1, level="quantile").to_numpy()
        close(found, np.quantile(flat, [0.1, 0.5, 0.9], axis=0, method="weibull")[k])


def test_arrays_with_times_are_filled_like_frames(case):
    model, table = case
    values = table.to_numpy().reshape(len(table), *model.space.shape[1:])
    draws = model.impute(values, n=10, times=table.index, seed=5)
    np.testing.assert_array_equal(draws, model.impute(table, n=10, seed=5))


def test_filling_some_rows_at_a_time_gives_the_same_draws(case):
    model, table = case
    series = Series(table.to_numpy().reshape(len(table), NODES, -1), table.index.to_numpy())
    whole = np.concatenate([draws for _, draws in model.series.fillings(series, 5)], axis=1)
    for chunk in (1, 7, 1000):
        parts = [draws for _, draws in model.series.fillings(series, 5, chunk=chunk)]
        assert all(part.shape[1] <= chunk for part in parts)
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_a_forecast_has_the_times_to_come_and_never_sees_the_future(case):
    model, table = case
    bands = model.forecast(table.iloc[:40], horizon=20, quantiles=[0.05, 0.95])
    assert list(bands.index) == list(pd.date_range(table.index[39], periods=21, freq="h")[1:])
    series = Series(table.to_numpy().reshape(len(table), NODES, -1), table.index.to_numpy())
    changed = Series(np.where(np.arange(len(table))[:, None, None] < 40, series.values, -99.0), series.times)
    for one, other in zip(*(model.series.forecasts(s, [20, 40], 9, n=4) for s in (series, changed)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_folder_brings_the_same_model_again_to_the_bit(case, tmp_path):
    model, table = case
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.impute(table), model.impute(table))
    np.testing.assert_array_equal(again.sample(3), model.sample(3))
    assert again.result == model.result
    assert again.series.channels == model.series.channels


def test_windows_start_at_training_times_or_where_they_are_told(case):
    model, _ = case
    windows, times = model.series.sample(4, seed=1)
    assert windows.shape == (4, STEPS, NODES, model.space.channels)
    hours = (times - np.datetime64("2024-01-01")) / np.timedelta64(1, "h")
    assert (np.diff(hours, axis=1) == 1).all()
    assert (hours >= 0).all()
    assert (hours < ROWS).all()
    _, told = model.series.sample(2, start="2024-07-01T05:00")
    assert (told[:, 0] == np.datetime64("2024-07-01T05:00")).all()
    pd.testing.assert_frame_equal(model.sample(4, seed=1), model.sample(6, seed=1).loc[:3])


def test_windows_out_of_nothing_have_the_mean_and_the_spread_of_the_readings(case):
    model, _ = case
    drawn = model.sample(400, seed=2).to_numpy().reshape(400 * STEPS, NODES, -1)
    real = readings(ROWS, model.space.channels)
    np.testing.assert_allclose(drawn.mean(axis=0), real.mean(axis=0), atol=0.4 * real.std(axis=0).min())
    np.testing.assert_allclose(drawn.std(axis=0), real.std(axis=0), rtol=0.25)


def test_a_sensor_that_is_stuck_stands_out(case):
    model, _ = case
    values = readings(200, model.space.channels, seed=3)
    stuck = values.copy()
    stuck[80:140, 2] = stuck[80, 2]
    scores = model.node_log_prob(frame(stuck)).to_numpy().reshape(200, NODES, -1)
    before = model.node_log_prob(frame(values)).to_numpy().reshape(200, NODES, -1)
    fall = (before - scores)[80:140].mean(axis=(0, 2))
    assert fall.argmax() == 2
    assert fall[2] > 3 * np.abs(np.delete(fall, 2)).max()


def test_log_probabilities_of_rows_are_those_of_conditional_gaussians(case):
    """By hand: one window, each row given the other seven."""
    model, _ = case
    rows = frame(readings(STEPS, model.space.channels, seed=4), "2024-03-01").iloc[:STEPS]
    z, (_, spread, _) = model.series._scored(
        Series(rows.to_numpy().reshape(STEPS, NODES, -1), rows.index.to_numpy()), None
    )
    z, columns = z.double().numpy().ravel(), NODES * model.space.channels
    Sigma = model.series.law.reference.Sigma.double().numpy()
    expected = []
    for t in range(STEPS):
        h = np.arange(STEPS * columns) // columns == t
        gain = Sigma[h][:, ~h] @ np.linalg.inv(Sigma[~h][:, ~h])
        left, away = Sigma[h][:, h] - gain @ Sigma[~h][:, h], z[h] - gain @ z[~h]
        quadratic = away @ np.linalg.solve(left, away)
        log_det = np.linalg.slogdet(2 * np.pi * left)[1]
        expected.append(-0.5 * (quadratic + log_det) - np.log(spread[t].numpy()).sum())
    readings_given_others = model.node_log_prob(rows).to_numpy()
    column = np.arange(STEPS * columns) % columns
    for t, i in ((0, 0), (3, columns - 1), (STEPS - 1, 1)):
        own = column // model.space.channels == i // model.space.channels
        gain = Sigma[t * columns + i, ~own] @ np.linalg.inv(Sigma[~own][:, ~own])
        left = Sigma[t * columns + i, t * columns + i] - gain @ Sigma[~own, t * columns + i]
        away = z[t * columns + i] - gain @ z[~own]
        density = -0.5 * (away**2 / left + np.log(2 * np.pi * left)) - np.log(float(spread[t, i]))
        np.testing.assert_allclose(readings_given_others[t, i], density, rtol=1e-3)
    got, error = model.log_prob(rows)
    np.testing.assert_allclose(got, expected, rtol=1e-3)  # the reference is kept in single precision
    assert not error.any()


def test_variations_are_the_rows_themselves_at_strength_zero_and_depart_with_it(case):
    model, _ = case
    rows = frame(readings(30, model.space.channels, seed=5), "2024-03-01")
    x = rows.to_numpy().reshape(30, *model.space.shape[1:])
    pd.testing.assert_frame_equal(model.augment(rows, 0.0), rows)
    np.testing.assert_array_equal(model.augment(rows, 0.0, n=1)[0], x)
    away = [np.abs(model.augment(rows, strength, n=3) - x).mean() for strength in (0.05, 0.3, 1.0)]
    assert away[0] < away[1] < away[2]
    with pytest.raises(InputError, match="missing readings"):
        model.augment(with_gaps(rows), 0.2)


def test_a_window_of_one_step_is_the_model_of_signals_by_themselves():
    x = readings(120)[:, :, 0]
    one, other = (grcd.GRCD(graph(), max_updates=20, width=8, **own).fit(x) for own in ({}, {"window": 1}))
    np.testing.assert_array_equal(one.sample(5), other.sample(5))
    assert not other.in_time
    with pytest.raises(InputError, match="window of 2 or more"):
        other.forecast(x, 3)


def test_several_channels_without_a_window_are_filled_across_channels():
    values = readings(600, 2)
    with pytest.warns(InputWarning, match="reference is used alone"):
        model = grcd.GRCD(graph(), channels=2, **QUICK).fit(values)
    assert model.window == 1
    assert model.in_time
    hidden = values[:50].copy()
    hidden[:, :, 1] = np.nan
    filled = np.median(model.impute(hidden, n=60), axis=0)
    np.testing.assert_array_equal(filled[:, :, 0], values[:50, :, 0])
    off = np.abs(filled - values[:50])[:, :, 1].mean()
    assert off < 0.7 * np.abs(values[:50, :, 1] - values[:, :, 1].mean(axis=0)).mean()


@pytest.mark.filterwarnings("ignore:the network of this run adds nothing")
@pytest.mark.parametrize("method", ["grcd-rho3", "edm", "grcd-full"])
def test_the_papers_methods_take_a_window_on_the_product_graph(method, tmp_path):
    table = with_gaps(frame(readings(300)))
    model = grcd.GRCD(graph(), method=method, window=3, max_updates=20, width=8).fit(table)
    assert model.sample(4).shape == (12, NODES)  # rows of four windows
    filled = model.impute(table.iloc[:10], n=3)
    assert np.isfinite(filled).all()
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(grcd.load(tmp_path / "run").sample(4), model.sample(4))


def test_a_node_may_lack_a_channel():
    values = readings(400, 2)
    values[:, 3, 1] = np.nan
    with pytest.warns(InputWarning):
        model = grcd.GRCD(graph(), window=4, **QUICK).fit(values)
    varied = model.augment(readings(20, 2), 0.5)
    assert np.isnan(varied[:, :, 3, 1]).all()
    draws = model.impute(values[:20], n=3)
    assert np.isnan(draws[:, :, 3, 1]).all()  # nobody knows what it would read
    assert np.isfinite(np.delete(draws.reshape(3, 20, -1), 7, axis=2)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop(columns=["s3"]).assign(s9=1.0), "does not know: s9"),
        (lambda table: table.iloc[::2], "every 2h"),
        (lambda table: table.set_axis(range(len(table))), "without times"),
        (lambda table: pd.concat([table, table.iloc[-1:]]), "occur twice"),
        (lambda table: table.assign(s0="text"), "'text' in row 1 .*, column 's0'"),
        (lambda table: table.assign(s0=np.inf), "infinite"),
    ],
)
def test_tables_that_do_not_fit_are_refused_with_what_to_do(case, change, words):
    model, table = case
    if model.space.channels > 1:
        pytest.skip("one channel says it")
    with pytest.raises(InputError, match=words):
        model.impute(change(table))


def test_fewer_rows_than_a_window_and_unknown_settings_are_refused():
    with pytest.raises(InputError, match="--window"):
        grcd.GRCD(graph(), window=40, **QUICK).fit(frame(readings(60)))
    with pytest.raises(InputError, match="setting of windows 'widht"):
        grcd.GRCD(graph(), window=4, widht=3)
    with pytest.raises(InputError, match="calendar"):
        grcd.GRCD(graph(), window=4, calendar="lunar")
    with pytest.raises(InputError, match="window = 0"):
        grcd.GRCD(graph(), window=0)


def test_a_covariate_that_counts_is_kept_asked_for_and_used_for_the_rows_to_come(tmp_path):
    random = np.random.RandomState(0)
    weather = pd.DataFrame({"rain": np.sin(np.arange(700) / 17), "dice": random.standard_normal(700)})
    weather.index = pd.date_range("2024-01-01", periods=700, freq="h")
    table = frame(readings(660)) + 8 * weather[["rain"]].iloc[:660].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # whether its network is used is another matter
        model = grcd.GRCD(graph(), window=STEPS, **QUICK).fit(table.iloc[:600], covariates=weather)
    assert model.result["covariates"] == ["rain"]
    ahead = model.forecast(table.iloc[:620], 40, covariates=weather)
    off = np.abs(ahead - table.iloc[620:660]).to_numpy().mean()
    moved = weather.assign(rain=np.where(np.arange(700) < 620, weather["rain"], 0.5))
    other = model.forecast(table.iloc[:620], 40, covariates=moved)
    close((other - ahead).to_numpy(), 8 * (moved - weather)[["rain"]].to_numpy()[620:660] * np.ones(NODES), rtol=0.2)
    assert off < 5
    with pytest.raises(InputError, match="no covariates"):
        model.forecast(table, 4)
    with pytest.raises(InputError, match="forecast fewer rows"):
        model.forecast(table, 60, covariates=weather)
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run").forecast(table.iloc[:620], 40, covariates=weather)
    pd.testing.assert_frame_equal(again, ahead)


def test_without_a_network_all_rows_that_train_and_validate_teach_in_the_end(monkeypatch, tmp_path):
    """But for what is decided before, the contest among it."""
    x, seen = readings(200)[:, :, 0], []

    def mean(trained):
        return trained.model.mean.table.mean.flatten().numpy()

    monkeypatch.setattr(contests, "of_series", lambda trained, *_: seen.append(mean(trained)))
    options = {"window": 2, "calendar": "none", "max_updates": 0}
    model = grcd.GRCD(graph(), **options).fit(x[:180], x[180:], run=tmp_path / "run")
    close(seen[0], x[:180].mean(axis=0), 1e-9)
    close(mean(model.series.trained), x.mean(axis=0), 1e-9)
    assert model.result["fitted_again"] == 200
    again = grcd.load(tmp_path / "run").series.trained
    assert np.array_equal(mean(again), mean(model.series.trained))
    assert (again.model.law.reference.C == model.series.trained.model.law.reference.C).all()
