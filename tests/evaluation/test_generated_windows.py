"""Scores of windows on the product graph, and their autocorrelation, against naive ones and against moments."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.data.series import Series
from grcd.data.series_dataset import SeriesDataset
from grcd.evaluation import windows
from grcd.graphs import graph as graphs
from grcd.graphs.graph import Graph
from grcd.graphs.space import SignalSpace
from grcd.metrics.mmd import mmd2

PARTS = ("quadratic_variation", "spectral_centroid", "degree_correlation")


def dataset(graph, rows=(120, 40, 60), channels=1, gaps=0.0, seed=0):
    random = np.random.RandomState(seed)
    values = np.cumsum(random.standard_normal((sum(rows), len(graph), channels)), axis=0) * 0.3
    values += random.standard_normal((1, len(graph), channels)) * 5
    values[random.random_sample(values.shape) < gaps] = np.nan
    edges = np.cumsum([0, *rows]).tolist()
    splits = {name: (slice(*edges[k : k + 2]),) for k, name in enumerate(("train", "val", "test"))}
    names = tuple("abcdef"[:channels])
    series = Series(values, borders=tuple(edges[1:-1]))
    return SeriesDataset("made up", series, graph, names, ("",) * channels, splits)


def naive(x, y, data, steps):
    """Windows as long vectors; an edge of time joins a reading with the next, one of space two of the same step."""
    nodes, channels = len(data.graph), len(data.channels)
    W = data.graph.weights.toarray()
    top = np.linalg.eigvalsh(np.diag(W.sum(1)) - W).max()
    product = np.zeros((steps, nodes, channels, steps, nodes, channels))
    for c in range(channels):
        for t in range(steps):
            product[t, :, c, t, :, c] = W / top
            for i in range(nodes):
                if t + 1 < steps:
                    product[t, i, c, t + 1, i, c] = product[t + 1, i, c, t, i, c] = 1 / (
                        2 - 2 * np.cos(np.pi * (steps - 1) / steps)
                    )
    product = product.reshape(steps * nodes * channels, -1)
    L = np.diag(product.sum(1)) - product
    train = data.part("train").values
    mean, sd = np.nanmean(train, axis=0), np.nanstd(train, axis=0)

    def statistics(part):
        rows = ((part - mean) / sd).reshape(len(part), -1)
        variation = np.array([row @ L @ row for row in rows])
        correlation = np.array([np.corrcoef(row, product.sum(1))[0, 1] for row in rows])
        return dict(zip(PARTS, (variation, variation / (rows**2).sum(1), correlation), strict=True))

    of_x, of_y = statistics(x), statistics(y)
    parts = {name: mmd2(torch.tensor(of_x[name]), torch.tensor(of_y[name])) for name in PARTS}
    return {"ammd": np.mean(list(parts.values())), **parts, "n": len(x)}


@pytest.mark.parametrize("channels", [1, 2])
def test_scores_and_floor_equal_the_naive_ones(tiny, channels):
    data = dataset(tiny.graph, channels=channels)
    x = np.random.RandomState(1).standard_normal((9, 5, 6, channels))
    test = data.part("test").values.reshape(12, 5, 6, channels)
    train = data.part("train").values.reshape(24, 5, 6, channels)
    scores = windows.evaluate(x if channels > 1 else x[..., 0], data).to_dict()
    evenly = np.linspace(0, 23, 12).astype(int)
    assert scores.pop("floor") == pytest.approx(naive(train[evenly], test, data, 5), rel=1e-8)
    assert scores == pytest.approx(naive(x, test, data, 5), rel=1e-8)


def test_windows_of_one_step_have_the_scores_of_moments(tiny):
    edges = {"train": slice(0, 60), "val": slice(60, 90), "test": slice(90, 130)}
    series = Series(np.concatenate([tiny.train, tiny.val, tiny.test])[..., None], borders=(60, 90))
    data = SeriesDataset("tiny", series, tiny.graph, ("",), ("",), {name: (rows,) for name, rows in edges.items()})
    x = np.random.RandomState(0).standard_normal((25, 6)) * 3 + 12
    moments, ours = grcd.evaluate(x, tiny).to_dict(), windows.evaluate(x[:, None], data).to_dict()
    assert ours.pop("floor") == pytest.approx(moments.pop("floor"), rel=1e-8)
    assert ours == pytest.approx(moments, rel=1e-8)


def test_what_is_missing_in_held_out_windows_is_left_out_of_generated_ones(tiny):
    data = dataset(tiny.graph, gaps=0.2)
    x = np.random.RandomState(1).standard_normal((12, 5, 6, 1))
    held = np.isnan(windows.cut(data.part("test"), 5))
    wild = np.where(held, 1e6, x)  # twelve of each: number k meets number k
    assert np.isfinite(windows.evaluate(x, data).ammd)
    assert windows.evaluate(wild, data).ammd == pytest.approx(windows.evaluate(x, data).ammd, rel=1e-9)


def test_windows_do_not_overlap_nor_cross_a_break():
    values = np.arange(23.0)[:, None, None]
    cut = windows.cut(Series(values, borders=(9,)), 4)[..., 0, 0]
    assert cut.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [9, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]]


@examples(40)
@given(steps=st.integers(1, 40), minutes=st.sampled_from([5, 60, 90, 360, 24 * 60]))
def test_windows_begin_at_all_times_of_the_day(steps, minutes):
    rows = 24 * 60 // minutes
    interval = np.timedelta64(minutes, "m")
    times = np.datetime64("2024-01-01T00:00", "s") + np.arange(60 * (steps + 6) * max(rows // 8, 1)) * interval
    first = windows.cut(Series(np.arange(len(times), dtype=float)[:, None, None], times), steps)[:, 0, 0, 0]
    assert len({int(row) % rows for row in first}) == min(rows, len(first))
    assert (np.diff(first) >= steps).all()
    assert (np.diff(first) <= steps + 6).all()


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 5), channels=st.integers(1, 2), gaps=st.booleans())
def test_autocorrelation_equals_a_loop_over_pairs(seed, steps, channels, gaps):
    random = np.random.RandomState(seed)
    x = random.standard_normal((4, steps, 3, channels)) + 3
    if gaps:
        x[random.random_sample(x.shape) < 0.3] = np.nan
    expected = np.full((steps, channels), np.nan)
    for lag in range(steps):
        for c in range(channels):
            each = []
            for i in range(3):
                readings = x[:, :, i, c]
                z = readings - np.nanmean(readings) if not np.isnan(readings).all() else readings
                pairs = [z[w, t] * z[w, t + lag] for w in range(4) for t in range(steps - lag)]
                pairs = [pair for pair in pairs if pair == pair]
                if pairs and np.nanvar(readings) > 0:
                    each.append(np.mean(pairs) / np.nanmean(z**2))
            expected[lag, c] = np.mean(each) if each else np.nan
    actual = windows.autocorrelation(x)
    assert np.array_equal(np.isnan(actual), np.isnan(expected))
    close(np.nan_to_num(actual), np.nan_to_num(expected), 1e-10, size=1.0)


def test_what_cannot_be_compared_is_refused(tiny):
    data = dataset(tiny.graph)
    x = np.zeros((4, 5, 6))
    for wrong in (x[..., :5], x[:1], x[0], np.full_like(x, np.nan)):
        with pytest.raises(grcd.InputError):
            windows.evaluate(wrong, data)
    with pytest.raises(grcd.InputError, match="1 test windows"):
        windows.evaluate(np.zeros((4, 31, 6)), data)
    with pytest.raises(grcd.InputError, match="SeriesDataset"):
        windows.evaluate(x, tiny)
    with pytest.raises(grcd.InputError, match="controls"):
        grcd.evaluate(x, data, controls=True)


def test_the_function_users_call_tells_rows_in_time_from_signals(tiny):
    data, x = dataset(tiny.graph), np.random.RandomState(2).standard_normal((8, 4, 6))
    assert grcd.evaluate(x, data, "val") == windows.evaluate(x, data, "val")


def test_a_column_without_readings_is_at_its_mean_of_zero(tiny):
    data = dataset(tiny.graph, channels=2)
    data.series.values[:, 1, 0] = np.nan  # a node that lacks a channel
    mean, sd = windows.moments(data.part("train"))
    assert (mean[1, 0], sd[1, 0]) == (0.0, 1.0)
    close(mean[2], data.part("train").values[:, 2].mean(axis=0))
    close(sd[2], data.part("train").values[:, 2].std(axis=0))
    assert np.isfinite(windows.evaluate(np.random.RandomState(0).standard_normal((8, 5, 6, 2)), data).ammd)


def test_the_product_graph_has_the_eigenvalues_of_time_and_space_summed(tiny):
    space = SignalSpace(tiny.graph, 4, 2)
    L = windows.product(space).combinatorial.toarray()
    time, graph = 2 - 2 * np.cos(np.pi * np.arange(4) / 4), np.linalg.eigvalsh(tiny.graph.combinatorial.toarray())
    lam = (time / time.max())[:, None] + graph / graph.max()
    close(np.linalg.eigvalsh(L), np.sort(np.repeat(lam.ravel(), 2)), 1e-10)


def test_on_a_large_graph_it_is_the_same_without_a_dense_matrix(tiny, monkeypatch):
    dense = windows.product(SignalSpace(tiny.graph, 4)).weights
    monkeypatch.setattr(graphs, "LARGE", 5)
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda *_: pytest.fail("all eigenvalues"))
    graph = Graph(tiny.graph.weights, tiny.graph.node_ids)
    assert graph.large
    close(windows.product(SignalSpace(graph, 4)).weights.toarray(), dense.toarray(), 1e-7)
