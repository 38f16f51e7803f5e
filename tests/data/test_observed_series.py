"""Rows in time for a trained model: matched by name on every axis, laid out again as they came."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.core.errors import InputWarning
from grcd.data.observed_series import Wanted, read_observed_series

NODES, NAMES = ("b", "a", "c"), ("temp", "wind")
GRAPH = grcd.Graph.from_adjacency(np.ones((3, 3)) - np.eye(3), node_ids=NODES)
HOUR = np.timedelta64(1, "h")
TIMES = np.datetime64("2024-03-01", "ns") + np.arange(8) * HOUR
WANTED = Wanted(GRAPH, NAMES, ("degC", "m/s"), HOUR)
ONE = Wanted(GRAPH, ("value",), ("",), HOUR)


def readings(channels=2):
    x = np.random.RandomState(0).standard_normal((8, 3, channels)).round(3)
    x[2, 1, 0] = np.nan
    return x


def wide(path, x, nodes=NODES, times=TIMES):
    columns = {} if times is None else {"time": times}
    pd.DataFrame(columns | {name: x[:, NODES.index(name)] for name in nodes}).to_csv(path, index=False)
    return path


def long(path, x, nodes=NODES, channels=NAMES, times=TIMES):
    rows = [
        (times[t], node, name, x[t, NODES.index(node), NAMES.index(name)])
        for t in range(len(x))
        for node in nodes
        for name in channels
    ]
    pd.DataFrame(rows, columns=["time", "node", "variable", "value"]).to_csv(path, index=False)
    return path


@given(st.permutations(NODES), st.permutations(NAMES))
@examples(6)
def test_nodes_and_channels_in_any_order_come_out_as_they_went_in(tmp_path_factory, nodes, channels):
    path, x = tmp_path_factory.mktemp("observed"), readings()
    table = read_observed_series([long(path / "x.csv", x, nodes, channels)], WANTED)
    assert np.array_equal(table.series.values, x, equal_nan=True)
    assert (table.node_ids, table.variables, table.long) == (list(nodes), tuple(channels), True)
    back = x[:, [NODES.index(name) for name in nodes]][..., [NAMES.index(name) for name in channels]]
    assert np.array_equal(table.laid_out(x), back, equal_nan=True)
    assert table.units == tuple({"temp": "degC", "wind": "m/s"}[name] for name in channels)
    assert table.shape == (3, 2)
    files = [f"{name}={wide(path / f'{name}.csv', x[..., NAMES.index(name)], nodes)}" for name in channels]
    again = read_observed_series(files, WANTED)
    assert np.array_equal(again.series.values, x, equal_nan=True)
    assert (again.node_ids, again.variables, again.long) == (list(nodes), tuple(channels), True)


def test_one_channel_needs_no_name(tmp_path):
    x = readings(1)
    for wanted, name in [(ONE, ""), (ONE, "temp="), (Wanted(GRAPH, ("",), (), HOUR), ""), (WANTED_TEMP, "temp=")]:
        table = read_observed_series([f"{name}{wide(tmp_path / 'x.csv', x[..., 0])}"], wanted)
        assert np.array_equal(table.series.values, x, equal_nan=True)
        assert (table.variables, table.long, table.shape) == ((), False, (3,))
        assert np.array_equal(table.laid_out(x), x[..., 0], equal_nan=True)


WANTED_TEMP = Wanted(GRAPH, ("temp",), ("degC",), HOUR)


def test_what_is_absent_is_a_gap_where_gaps_are_filled_and_refused_elsewhere(tmp_path):
    x = readings()
    file = f"wind={wide(tmp_path / 'x.csv', x[..., 1], ('c', 'b'))}"
    with pytest.warns(InputWarning) as notes:
        table = read_observed_series([file], WANTED, absent=True)
    assert [str(note.message).partition(" has ")[2] for note in notes] == [
        "no temp: all of their readings are gaps",
        "no column for a: all of their readings are gaps",
    ]
    expected = np.full_like(x, np.nan)
    expected[:, [0, 2], 1] = x[:, [0, 2], 1]
    assert np.array_equal(table.series.values, expected, equal_nan=True)
    assert (table.node_ids, table.variables) == (["c", "b", "a"], ("wind", "temp"))
    with pytest.raises(grcd.InputError, match=r"1 missing \(temp\)"):
        read_observed_series([file], WANTED)
    with pytest.raises(grcd.InputError, match=r"1 missing \(a\)"):
        read_observed_series([wide(tmp_path / "y.csv", x[..., 1], ("c", "b"))], ONE)


def test_what_the_model_does_not_know_is_dropped_on_request(tmp_path):
    x, few = readings(), Wanted(GRAPH.permuted([0, 2]), ("temp",), (), HOUR)
    path = long(tmp_path / "x.csv", x)
    with pytest.raises(grcd.InputError, match=r"(?s)1 unknown \(wind\).*--common"):
        read_observed_series([path], few)
    with pytest.warns(InputWarning, match=r"dropped"):
        table = read_observed_series([path], few, common=True)
    assert np.array_equal(table.series.values[..., 0], x[:, [0, 2], 0], equal_nan=True)


def test_rows_are_put_on_the_runs_clock(tmp_path):
    x = readings(1)[..., 0]
    late = TIMES.copy()
    late[3:] += np.timedelta64(7, "m")
    table = read_observed_series([wide(tmp_path / "x.csv", x, times=late)], ONE, every="1h")
    assert np.array_equal(table.series.times, TIMES)
    assert np.array_equal(table.series.values[..., 0], x, equal_nan=True)


def test_markers_are_gaps_and_another_unit_is_said(tmp_path):
    x = readings()
    x[4, 2, 1] = -99.0
    np.savez(tmp_path / "x.npz", signals=x, node_ids=NODES, channels=NAMES, units=["degC", "knots"], times=TIMES)
    with pytest.warns(InputWarning, match="has wind in knots, the run in m/s"):
        table = read_observed_series([tmp_path / "x.npz"], WANTED, missing=(-99.0,))
    assert np.isnan(table.series.values[4, 2, 1])
    assert (table.variables, table.long) == (NAMES, False)


def bad(path, **changes):
    x = readings()
    return {
        "another interval": lambda: ([wide(path, x[::2, :, 0], times=TIMES[::2])], ONE),
        "irregular": lambda: (
            [wide(path, x[..., 0], times=TIMES + np.array([0, 1, 5, 9, 3, 2, 1, 7]) * HOUR * 9)],
            ONE,
        ),
        "no times": lambda: ([wide(path, x[..., 0], times=None)], ONE),
        "numbers": lambda: ([wide(path, x[..., 0], times=np.arange(8))], ONE),
        "dates": lambda: ([wide(path, x[..., 0])], Wanted(GRAPH, ("value",), (), 1.0)),
        "twice": lambda: ([wide(path, x[..., 0], times=TIMES[[0, 1, 2, 2, 3, 4, 5, 6]])], ONE),
        "nameless": lambda: ([wide(path, x[..., 0])], WANTED),
        "another channel": lambda: ([f"rain={wide(path, x[..., 0])}"], WANTED_TEMP),
        "infinite": lambda: ([wide(path, np.where(x > 1, np.inf, x)[..., 0])], ONE),
    }


@pytest.mark.parametrize(
    ("which", "message"),
    {
        "another interval": r"(?s)rows every 2h.*rows every 1h, as in training.*--every 1h",
        "irregular": r"(?s)every 1h",
        "no times": r"(?s)without times.*add a column",
        "numbers": r"(?s)with numbers as times.*write dates",
        "dates": r"(?s)with dates as times.*every 1, as",
        "twice": r"times that occur twice",
        "nameless": r"(?s)does not say what was measured.*temp, wind.*temp=FILE",
        "another channel": r"(?s)1 missing \(temp\), 1 unknown \(rain\)",
        "infinite": r"infinite values",
    }.items(),
)
def test_what_does_not_fit_is_refused(tmp_path, which, message):
    files, wanted = bad(tmp_path / "x.csv")[which]()
    with pytest.raises(grcd.InputError, match=message):
        read_observed_series(files, wanted)
