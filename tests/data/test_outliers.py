"""Readings that stand alone: known by hand, not seen in ordinary data with heavy tails, and told by every command."""

import sys

import numpy as np
import pandas as pd
import pytest

import grcd
from grcd import cli
from grcd.core import rows
from grcd.core.errors import InputWarning
from grcd.data import outliers
from grcd.report.inspection import inspect

ROWS, NODES = 2000, 20


def random(seed=0):
    return np.random.default_rng(seed)


def places(found):
    return [(each.node, each.row, each.value) for each in found]


def spiked(x, row=7, node=3, value=1e9):
    x = x.copy()
    x[row, node] = value
    return x


def test_one_reading_of_a_billion_among_2_to_17_is_named_with_its_robust_score():
    x = spiked(random().uniform(2, 17, size=(200, 5)))
    (found,) = outliers.find(x)
    column = x[:, 3]
    spread = 1.4826 * np.median(np.abs(column - np.median(column)))
    assert (found.node, found.row, found.value) == (3, 7, 1e9)
    assert found.z == pytest.approx((1e9 - np.median(column)) / spread, rel=1e-12)


ORDINARY = {
    "normal": lambda r, shape: r.normal(size=shape),
    "three degrees of freedom": lambda r, shape: r.standard_t(3, size=shape),
    "lognormal": lambda r, shape: np.exp(r.normal(size=shape)),
    "rain": lambda r, shape: (r.random(shape) < 0.1) * np.exp(r.normal(size=shape)),
    "counts, mostly zero": lambda r, shape: r.poisson(0.05, size=shape).astype(float),
    "counts in bursts": lambda r, shape: r.negative_binomial(0.1, 0.02, size=shape).astype(float),
    "a switch, mostly off": lambda r, shape: (r.random(shape) < 0.003).astype(float),
    "rounded": lambda r, shape: np.round(70 - r.exponential(2.0, size=shape)),
    "far from zero": lambda r, shape: 1e9 + r.normal(size=shape),
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_readings_are_not_named_and_a_wild_one_among_them_is(kind):
    x = ORDINARY[kind](random(1), (ROWS, NODES))
    assert outliers.find(x) == []
    assert places(outliers.find(spiked(x, value=-1e12))) == [(3, 7, -1e12)]


def test_several_on_all_scales_do_not_hide_each_other_and_the_farthest_comes_first():
    x = random(2).uniform(2, 17, size=(300, 5))
    for row, node, value in ((10, 2, 1e5), (11, 2, 1e9), (12, 4, -999.0)):
        x[row, node] = value
    assert places(outliers.find(x)) == [(2, 11, 1e9), (2, 10, 1e5), (4, 12, -999.0)]


def test_a_moment_at_which_all_went_wrong_is_named_at_every_node():
    x = random(3).normal(size=(100, 6))
    x[40] = 1e7
    assert sorted(places(outliers.find(x))) == [(node, 40, 1e7) for node in range(6)]


def test_a_node_that_hardly_ever_moves_is_measured_by_the_others():
    x = random(4).normal(size=(100, 3))
    x[:, 1] = 5.0
    assert outliers.find(spiked(x, 9, 1, 8.0)) == []
    assert places(outliers.find(spiked(x, 9, 1, 500.0))) == [(1, 9, 500.0)]
    assert outliers.find(np.tile(5.0, (20, 3))) == []  # nobody moves


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gaps_and_blocks_make_no_difference(kind, monkeypatch):
    x = spiked(random(5).uniform(2, 17, size=(400, 6)), value=2.0**30).astype(kind)
    x[random(6).random(x.shape) < 0.5] = np.nan
    x[7, 3], x[:, 5] = 2.0**30, np.nan
    assert places(outliers.find(x)) == [(3, 7, 2.0**30)]
    for module in (rows, outliers):
        monkeypatch.setattr(module, "BLOCK", 6 * 50)
    assert places(outliers.find(x)) == [(3, 7, 2.0**30)]


def test_the_note_names_the_worst_counts_the_rest_and_its_remedy_works():
    x, names = random(7).uniform(2, 17, size=(200, 6)), list("abcdef")
    for node in range(5):
        x[10 * node, node] = 10.0 ** (5 + node)
    (note,) = outliers.notes(x, names)
    assert "5 readings are far" in note
    assert "1e+09 at node e, signal 41, robust z-score" in note
    assert "; and 2 more)" in note
    assert "node b" not in note
    one = spiked(random(7).uniform(2, 17, size=(200, 6)), value=0.1 + 2e9)
    (note,) = outliers.notes(one, names, np.arange(200) + 5000)
    assert "2e+09 at node d, time 5007" in note
    marker = float(note.split("--missing ")[1].split(")")[0])
    with pytest.warns(InputWarning, match="missing"):
        data = grcd.load_dataset(one, graph=ring(6), missing=[marker])
    assert not any("far from all others" in told for told in data.notes)


# -- told by commands --------------------------------------------------------------------------------------------------


def ring(nodes):
    step = np.roll(np.eye(nodes), 1, axis=0)
    return step + step.T


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Hourly readings with one that cannot be: at node c, on the second day at 7."""
    folder = tmp_path_factory.mktemp("wild")
    x = pd.DataFrame(spiked(random(8).uniform(2, 17, size=(120, 4)), 31, 2), columns=list("abcd"))
    x.insert(0, "time", pd.date_range("2024-01-01", periods=120, freq="h"))
    x.to_csv(folder / "x.csv", index=False)
    np.savez(folder / "g.npz", adjacency=ring(4), node_ids=list("abcd"))
    return folder


METHOD = "grcd-rho3"  # without a plan to make
TOLD = "1e+09 at node c, time 2024-01-02 07:00, robust z-score"


def test_inspect_names_it_with_a_graph_and_without(files, monkeypatch):
    for graph in (files / "g.npz", None):
        found = inspect(files / "x.csv", graph)
        ((what, do),) = [each for each in found.warnings if "far from all others" in each[0]]
        assert TOLD in what
        assert "--missing 1000000000.0" in do


def test_train_says_once_what_it_is_and_what_to_do(files, monkeypatch):
    given = ["--data", files / "x.csv", "--graph", files / "g.npz", "--out", files / "run", "--device", "cpu"]
    with pytest.warns(InputWarning) as said:
        assert command(monkeypatch, "train", *given, "--method", METHOD, "--max-updates", 1) == 0
    (note,) = [str(each.message) for each in said if "far from all others" in str(each.message)]
    assert TOLD in note
    assert "--missing 1000000000.0" in note


def command(monkeypatch, *args):
    monkeypatch.setattr(sys, "argv", ["grcd", *map(str, args)])
    monkeypatch.setattr(cli, "_say_warnings", lambda: None)  # they are looked at here
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


@pytest.mark.parametrize("where", ["training", "validation"])
def test_fit_warns_of_it_by_the_number_of_the_signal(where, tiny):
    parts = {"training": tiny.train, "validation": tiny.val}
    parts[where] = spiked(parts[where], 11, 2)
    with pytest.warns(InputWarning, match=rf"1e\+09 at node station 2, {where} signal 12, robust"):
        grcd.GRCD(tiny.graph, METHOD, device="cpu", width=8, max_updates=1).fit(*parts.values())


def test_an_exported_dataset_names_it_too(files, tmp_path):
    from grcd.data.formats.exported import write_dataset

    with pytest.warns(InputWarning, match="far from all others"):
        data = grcd.load_dataset(files / "x.csv", graph=files / "g.npz")
    write_dataset(tmp_path / "d.npz", data)
    with pytest.warns(InputWarning, match="1e.09 at node c, time 2024-01-02 07:00"):
        grcd.load_dataset(tmp_path / "d.npz")
