"""The inspection: its facts against hand counts, its warnings against data made to deserve them."""

import json

import numpy as np
import pandas as pd
import pytest

import grcd
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral
from grcd.report.inspection import inspect

W = np.array([[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]], dtype=float)
NAMES = ["a", "b", "c", "d"]


def readings(rows=100):
    return np.round(np.random.RandomState(0).standard_normal((rows, 4)) + 20.0, 3)


def save(folder, x, adjacency=W):
    pd.DataFrame(x, columns=NAMES).to_csv(folder / "x.csv", index=False)
    np.savez(folder / "g.npz", adjacency=adjacency, node_ids=NAMES)
    return folder / "x.csv", folder / "g.npz"


def warnings(inspection):
    return "\n".join(f"{what} -> {do}" for what, do in inspection.problems + inspection.warnings)


def test_facts_by_hand(tmp_path):
    x = readings()
    x[:7, 2] = np.nan
    x[50, 0] = 31.5
    found = inspect(*save(tmp_path, x), unit="mph")
    s, g, m = found.signals, found.graph, found.method
    assert (s["samples"], s["nodes"], s["unit"]) == (100, 4, "mph")
    assert s["missing"] == pytest.approx(7 / 400)
    assert s["missing_most_at"] == {"c": 0.07}
    assert s["range"] == [np.nanmin(x), 31.5]
    assert (g["pairs"], g["one_way"], g["components"], g["isolated_nodes"]) == (2, 0, 2, ["d"])
    assert g["neighbours_a_node"] == [0, 1.0, 2]
    assert g["weighted_degree"] == [0.0, 1.5, 3.0]
    assert m["split"] == [70, 10, 20]
    data = grcd.Dataset("x", grcd.Graph.from_adjacency(W, NAMES), x[:70], x[70:80], x[80:])
    reference = spectral(ledoit_wolf(data.normalizer.apply(data.train)), data.graph.spectrum)
    v = reference.v.numpy()
    assert m["snr_at_kappa_2"] == pytest.approx((v**2).sum() / v.sum() / 4)
    assert m["modes_sharing_energy"] == pytest.approx(v.sum() ** 2 / (v**2).sum())
    assert m["kappa_suggested"] == 2.0
    assert json.loads(json.dumps(found.to_dict()))["signals"] == s


def test_the_screen_fits_on_one(tmp_path):
    text = str(inspect(*save(tmp_path, readings())))
    assert len(text.splitlines()) < 25
    for part in ("rows        100, without times", "sensors     4,", "2 pairs", "kappa", "training"):
        assert part in text


def test_one_dominating_mode_asks_for_a_larger_kappa(tmp_path):
    common, own = (np.random.RandomState(k).standard_normal((9000, n)) for k, n in ((0, 1), (1, 40)))
    x, ring = common + 1e-3 * own, np.roll(np.eye(40), 1, axis=0)
    np.savez(tmp_path / "x.npz", signals=x, adjacency=ring + ring.T)
    found = inspect(tmp_path / "x.npz")
    assert found.method["snr_at_kappa_2"] == pytest.approx(40 / 4, rel=0.01)  # all variance in the constant mode
    assert found.method["kappa_suggested"] == pytest.approx(np.sqrt(40 / 7.2), abs=0.01)
    assert f"--set kappa={found.method['kappa_suggested']:g}" in warnings(found)
    assert found.method["kappa_suggested"] >= np.sqrt(found.method["snr_at_kappa_2"] * 4 / 7.2)


@pytest.mark.parametrize(
    ("change", "adjacency", "message"),
    [
        (lambda x: x.__setitem__((slice(None), 1), 5.0), W, "1 node never changes: b -> leave such nodes out"),
        (lambda x: x.__setitem__((slice(None), 1), np.nan), W, "1 node has no reading at all: b"),
        (lambda x: x.__setitem__((slice(0, 70), 1), np.nan), W, "without a reading among the training rows: b"),
        (lambda x: x.__setitem__((slice(0, 9), 1), 0.0), W, "--missing 0"),
        (lambda x: None, np.triu(W), "asymmetric.* -> .*--symmetrize half-sum"),
        (lambda x: None, 0 * W, "the graph has no edges"),
        (lambda x: None, W, "70 training rows -> 500 or more"),
        (lambda x: None, W, "1 node has no neighbour: d"),
        (lambda x: x.__setitem__((slice(0, 9), 1), -9999.0), W, "exactly -9999.* -> .*--missing -9999"),
    ],
)
def test_every_warning_has_its_remedy(tmp_path, change, adjacency, message):
    import re

    x = readings()
    change(x)
    found = inspect(*save(tmp_path, x, adjacency))
    assert re.search(message, warnings(found), re.DOTALL)
    assert all(f"! {what}\n    -> {do}" in str(found) and do for what, do in found.warnings)
    assert all(f"x {what}\n    -> {do}" in str(found) and do for what, do in found.problems)
    assert found.ready == ("ready to train" in str(found)) == (found.problems == [])


@pytest.mark.parametrize("window", [1, 4])
def test_a_node_without_a_neighbour_is_learned_from_readings(tmp_path, window):
    """As the inspection says: the reference has the covariances of all nodes, whatever the graph."""
    x = np.random.RandomState(0).standard_normal((400, 4))
    x[:, 3] = x[:, 0] + 0.1 * x[:, 3]  # d has no neighbour, and goes with a
    assert "learned from readings alone, without the graph" in warnings(inspect(*save(tmp_path, x)))
    model = grcd.GRCD(W, window=window, max_updates=0 if window > 1 else 1, width=8).fit(x[:300], x[300:350])
    later = x[350:].copy()
    later[::2, 3] = np.nan
    filled = np.median(model.impute(later, n=20, posterior="reference"), axis=0)
    assert np.abs(filled - x[350:])[::2, 3].mean() < 0.2 < 0.5 < np.abs(x[350::2, 3]).mean()


def _zeros(kind):
    """Rows of readings about 50, some of them 0 in ways that mean something else."""
    random = np.random.RandomState(1)
    x = 50 + 3 * random.standard_normal((400, 4))
    if kind == "silent":
        x[random.random_sample(x.shape) < 0.1] = 0
    if kind == "rare":
        x[:6, 1] = 0
    if kind == "rain":
        x = np.maximum(0, x - 50).round(2)
    if kind == "calm":  # readings that come near zero
        x = np.abs(x - 50) + 0.01
        x[3, 1] = 0
    return x


@pytest.mark.parametrize(
    ("kind", "marker", "support"),
    [("silent", True, False), ("rare", True, False), ("rain", False, False), ("calm", False, True)],
)
def test_zeros_are_remarked_on_once(tmp_path, kind, marker, support):
    """As gaps, perhaps, or as an end of the range that may be kept to; and never as both."""
    said = warnings(inspect(*save(tmp_path, _zeros(kind))))
    assert ("--missing 0; else they are learned as the readings they are" in said) == marker
    assert ("no reading is below 0, and the least is 0 -> " in said) == support


def test_what_is_dropped_is_not_counted(tmp_path):
    x = readings()
    x[:, 3], x[:50, 0] = 5.0, np.nan
    kept = inspect(*save(tmp_path, x), drop=["d"])
    assert kept.ready
    assert (kept.signals["nodes"], kept.signals["missing"]) == (3, pytest.approx(50 / 300))
    assert (kept.graph["isolated_nodes"], kept.graph["components"]) == ([], 1)
    assert not inspect(*save(tmp_path, x)).ready


@pytest.mark.parametrize("distances", [True, False], ids=["distances", "positions"])
def test_a_kernel_that_leaves_nodes_alone_is_named_by_its_options(tmp_path, distances):
    place = np.array([0.0, 1.0, 2.0, 90.0])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    if distances:
        rows = [(NAMES[i], NAMES[j], place[i] - place[j]) for i, j in pairs]
        graph = pd.DataFrame(rows, columns=["from", "to", "distance"])
    else:
        graph = pd.DataFrame({"node": NAMES, "x": place, "y": 0.0})
    graph.to_csv(tmp_path / "lying.csv", index=False)
    found = inspect(save(tmp_path, readings())[0], tmp_path / "lying.csv", bandwidth=1.5)
    assert found.graph["isolated_nodes"] == ["d"]
    said = next(do for what, do in found.warnings if "no neighbour: d" in what)
    assert "raise --bandwidth" in said
    assert ("lower --threshold" in said) == distances


def test_rows_in_time_are_spoken_of_as_windows(tmp_path):
    """Of a setting of single rows, and of gaps to fill before, there is no talk."""
    random = np.random.RandomState(0)
    x = np.abs(np.cumsum(random.standard_normal((400, 1)), axis=0)) + random.random_sample((400, 4))
    x[random.random_sample(x.shape) < 0.05] = np.nan
    frame = pd.DataFrame(x, columns=NAMES)
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=400, freq="h"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = inspect(tmp_path / "t.csv", save(tmp_path, readings())[1])
    text = str(found)
    assert "rows        400, every 1h, 2024-01-01 00:00 to 2024-01-17 15:00; no break" in text
    assert f"learns windows of {found.steps} rows" in text
    assert found.steps == found.time["window_suggested"] > 1
    assert "--fill" not in text
    assert "--set kappa" not in text
    assert "signals" not in text
    assert "--support 0 inf" in text
    order = [text.index(f"\n  {title} ") for title in ("rows", "sensors", "gaps", "past", "graph", "training", "kappa")]
    assert order == sorted(order)


def test_without_a_graph_only_the_signals_are_looked_at(tmp_path):
    signals, _ = save(tmp_path, readings())
    found = inspect(signals)
    assert (found.graph, found.method) == ({}, {})
    assert "--graph" in warnings(found)


def test_built_in_and_exported_data_can_be_inspected(tmp_path, tiny):
    from grcd.data.formats.exported import write_dataset

    write_dataset(tmp_path / "d.npz", tiny)
    assert inspect(tmp_path / "d.npz").method["split"] == [60, 30, 40]
    assert inspect("sbm-c16").signals["samples"] == 10_000


def test_the_picture_is_a_picture(tmp_path):
    signals, graph = save(tmp_path, readings())
    inspect(signals, graph, picture=tmp_path / "look.png")
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("broken", ["no graph", "constant node"])
def test_where_there_is_nothing_to_draw_the_screen_is_shown_all_the_same(tmp_path, broken):
    x = readings()
    x[:, 1] = 5.0 if broken == "constant node" else x[:, 1]
    signals, graph = save(tmp_path, x)
    found = inspect(signals, None if broken == "no graph" else graph, picture=tmp_path / "look.png")
    assert found.signals["samples"] == 100
    assert not (tmp_path / "look.png").exists()


def test_wrong_options_are_errors_and_not_warnings(tmp_path):
    with pytest.raises(grcd.InputError, match="fill policy 'foo'"):
        inspect(*save(tmp_path, readings()), fill="foo")


def test_exported_data_show_their_gaps(tmp_path):
    from grcd.data.formats.exported import write_dataset

    x = readings()
    x[:7, 2] = np.nan
    signals, graph = save(tmp_path, x)
    with pytest.warns(grcd.core.errors.InputWarning):
        write_dataset(tmp_path / "d.npz", grcd.load_dataset(signals, graph, fill="linear"))
    assert inspect(tmp_path / "d.npz").signals["missing"] == pytest.approx(7 / 400)
