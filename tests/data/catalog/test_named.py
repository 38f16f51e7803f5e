"""METR-LA and Molene are the paper's: each figure that it prints about the data themselves, where they are present."""

import math
import os

import numpy as np
import pytest

import grcd
from grcd.data import catalog
from grcd.data.catalog.sources import cache as cache_folder
from grcd.evaluation import ammd, controls
from grcd.evaluation.controls import draw
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import off_diagonal_energy, spectral

present = pytest.mark.skipif(not os.environ.get("GRCD_DATA"), reason="GRCD_DATA does not name a folder with the data")


@pytest.fixture(scope="module")
def metr_la():
    return grcd.load_dataset("metr-la")


@pytest.fixture(scope="module")
def molene():
    return grcd.load_dataset("molene")


def reference(data):
    covariance = ledoit_wolf(data.normalizer.apply(data.train))
    return covariance, spectral(covariance, data.graph.spectrum)


@present
def test_metr_la_is_split_and_capped_like_the_papers():
    whole = grcd.load_dataset("metr-la", cap=(10**6,))
    assert [len(whole.split(split)) for split in ("train", "val", "test")] == [23_990, 3_427, 6_855]
    data = grcd.load_dataset("metr-la")
    assert [data.split(split).shape for split in ("train", "val", "test")] == [
        (20_000, 207),
        (3_000, 207),
        (5_000, 207),
    ]
    assert np.array_equal(data.test[1], whole.test[int(6854 / 4999)])
    assert (data.unit, str(data.times["train"][0])[:16]) == ("mph", "2012-03-01T00:00")


@present
def test_metr_las_graph_is_mostly_one_way(metr_la):
    graph = metr_la.graph
    assert (len(graph), graph.pairs, graph.one_way) == (207, 1_313, 1_111)
    assert f"{graph.one_way_share:.1%}" == "75.0%"
    assert (graph.components, int((graph.degree == 0).sum())) == (2, 1)
    longitude, latitude = graph.coords.T  # as drawn: Los Angeles
    assert (longitude < -118).all()
    assert ((latitude > 33.9) & (latitude < 34.4)).all()


@present
def test_metr_las_reference_to_the_last_printed_digit(metr_la):
    covariance, fitted = reference(metr_la)
    assert f"{off_diagonal_energy(covariance, fitted):.4f}" == "0.6677"
    assert f"{fitted.energy_snr(2.0):.3f}" == "2.663"
    assert f"{fitted.q_for_snr(0.010):.4f}" == "32.6356"


@present
def test_metr_las_zeros_are_gaps_filled_forward_then_backward(metr_la):
    assert f"{metr_la.origin.missing:.3%}" == "8.109%"
    raw = grcd.load_dataset("metr-la", fill="none", cap=(10**6,))
    assert sum(raw.split(s).shape[0] for s in ("train", "val", "test")) == 34_272 - 2_148  # outages everywhere
    filled = metr_la.filled["train"]
    assert filled.mean() == pytest.approx(0.081, abs=0.01)
    assert (metr_la.train[~filled] > 0).all()


def agree(data, control, mean, sd):
    """Ours and the paper's means over five draws, within three standard deviations of their difference."""
    held_out = data.normalizer.apply(data.test)
    scores = [
        ammd(data.normalizer.apply(draw(control, data, len(data.test), seed)), held_out, data.graph).ammd
        for seed in range(5)
    ]
    own = np.std(scores, ddof=1)
    spread = math.sqrt((own**2 + (own if sd is None else sd) ** 2) / 5)
    assert abs(np.mean(scores) - mean) < 3 * spread


@present
def test_metr_las_gaussian_controls(metr_la):
    fitted = controls(metr_la)
    agree(metr_la, fitted["control-full"], 0.1921, 0.0014)
    agree(metr_la, fitted["control-spectral"], 0.4134, None)


@present
def test_molene(molene):
    assert [len(molene.split(split)) for split in ("train", "val", "test")] == [520, 74, 150]
    assert (len(molene.graph), molene.graph.components, molene.unit) == (37, 1, "degrees C")
    assert "5 nearest neighbours" in molene.graph.origin
    assert np.concatenate([molene.train, molene.val, molene.test]).mean() == pytest.approx(8.1589, abs=5e-5)
    agree(molene, controls(molene)["control-spectral"], 0.1822, 0.0242)


@present
def test_terminal_snr_near_zero_has_the_printed_range(metr_la, molene):
    sets = [molene, *(grcd.load_dataset(f"sbm-c{c}") for c in (1, 4, 16))]
    found = [reference(data)[1].energy_snr(32.64) for data in sets]
    assert (f"{min(found):.3f}", f"{max(found):.3f}") == ("0.003", "0.026")  # the paper: 0.003 to 0.027


def test_data_are_looked_for_where_the_user_says_first(tmp_path, monkeypatch):
    named, variable, cache = (tmp_path / name for name in ("named", "variable", "cache"))
    for folder in (named, variable, cache / "grcd"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("GRCD_DATA", str(variable))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with pytest.raises(grcd.InputError, match="grcd data get molene"):
        grcd.load_dataset("molene", data_dir=named)
    find = catalog.source("molene").folder
    (cache_folder() / "molene.npz").touch()
    assert find(named) == cache_folder()
    (variable / "molene.npz").touch()
    assert find(named) == variable
    (named / "molene.npz").touch()
    assert find(named) == named


@present
def test_other_numbers_under_the_right_names_are_refused(tmp_path):
    with np.load(os.path.join(os.environ["GRCD_DATA"], "molene.npz")) as file:
        arrays = dict(file)
    arrays["signals"] = arrays["signals"] + 0.01
    np.savez(tmp_path / "molene.npz", **arrays)
    with pytest.raises(grcd.InputError, match="not as published"):
        grcd.load_dataset("molene", data_dir=tmp_path)


@present
def test_a_recipe_is_only_defaults():
    data = grcd.load_dataset("metr-la", missing=(), cap=())
    assert (len(data.train), data.origin.markers, (data.train == 0).mean() > 0.05) == (23_990, [], True)


def toy():
    graph = grcd.Graph.from_edges([("a", "b"), ("b", "c")])
    x = np.random.default_rng(0).normal(size=(3, 20, 3))
    return grcd.Dataset("toy", graph, *x)


def test_one_module_is_all_a_named_dataset_takes(tmp_path, monkeypatch):
    """Put into the folder, or here beside it: its row in every table comes with it."""
    (tmp_path / "toy_dataset.py").write_text(
        "from grcd.data.catalog.named import Generated, Setting\n"
        "from test_named import toy\n"
        "DATASETS = [Generated(name='toy', about='three nodes', setting=Setting(bounds='-1,1'), make=toy)]\n"
    )
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(tmp_path)])
    listed, settings = catalog.discovered()
    assert [*listed] == ["city", "sbm-c1", "sbm-c4", "sbm-c16", "toy", "aqi36", "beijing", "metr-la", "molene"]
    assert [*settings] == ["metr-la", "molene", "sbm-c1", "sbm-c4", "sbm-c16", "toy"]
    monkeypatch.setattr(catalog, "DATASETS", listed)
    assert np.array_equal(grcd.load_dataset("toy").train, toy().train)
    with pytest.raises(grcd.InputError, match="--fill for the built-in toy"):
        grcd.load_dataset("toy", fill="mean")
    with pytest.raises(grcd.InputError, match="one of aqi36, beijing, metr-la, molene"):
        catalog.source("toy")
