"""Cells and their files: one of its own for each, and nothing else is taken for one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grcd.bench import cells as files
from grcd.bench import suites
from grcd.bench.cells import Baseline, Control, Filled, Floor, Generated


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "3", '"error"', "{}", '{"cell": 1, "scores": {"ammd": 1}}', "\0"]
)
def test_a_file_with_anything_else_in_it_is_no_cell(tmp_path, content):
    cell = Floor("tiny")
    files.write(cell, tmp_path, scores={"ammd": 0.5})
    assert files.done(cell, tmp_path)
    cell.path(tmp_path).write_text(content)
    assert files.read(cell, tmp_path) is None
    assert not files.done(cell, tmp_path)


def test_every_cell_has_a_file_of_its_own():
    owner = {}
    for suite in suites.SUITES:
        cells = suites.cells(suite)
        assert len(set(cells)) == len(cells)
        for cell in cells:
            assert owner.setdefault(cell.path(Path()), cell) == cell  # suites may share cells, and then their files
    choices = {"nfe": 8, "solver": "heun", "rho": 2.5, "grid": "log-snr", "kappa": 0.5, "symmetrize": "max", "seed": 1}
    plain = Generated("metr-la", "grcd", 0, 4)
    varied = [{key: value} for key, value in choices.items()]
    varied += [{"split": "val"}, {"support": "0,70"}, {"measure": "distances"}, {"measure": "time"}]
    paths = {replace(plain, **change).path(Path()) for change in varied}
    assert len(paths | {plain.path(Path())}) == len(varied) + 1


def test_the_file_says_the_cell_as_it_always_has(tmp_path):
    """The layout of published files: every key, and the reference alone as a solver of that name."""
    files.write(Filled("molene", "grcd", 1, mask="blocks", measure="time"), tmp_path, time={"filling": 1.0})
    content = json.loads((tmp_path / "cells/molene/grcd_s1_reference_blocks_timed.json").read_text())
    assert content["cell"] == {
        **{"setting": "molene", "method": "grcd", "seed": 1, "nfe": None, "solver": "reference", "rho": None},
        **{"grid": "power", "kappa": None, "symmetrize": None, "support": None, "split": "test", "mask": "blocks"},
        **{"distances": False, "timed": True},
    }
    chosen = Generated("molene", "grcd", 2, 8, rho=2.0, kappa=4.0, split="val", measure="distances")
    files.write(chosen, tmp_path, distances={}, p=0.5)
    content = json.loads((tmp_path / "cells/molene/grcd_s2_nfe8_rho2_kappa4_val_distances.json").read_text())
    assert content["cell"] == {
        **{"setting": "molene", "method": "grcd", "seed": 2, "nfe": 8, "solver": None, "rho": 2.0, "grid": "power"},
        **{"kappa": 4.0, "symmetrize": None, "support": None, "split": "val", "mask": None},
        **{"distances": True, "timed": False},
    }


def test_what_a_file_leaves_out_stands_for_what_every_cell_had_before_it(tmp_path):
    cell = Generated("tiny", "edm", 0, 4)
    files.write(cell, tmp_path, scores={"ammd": 0.5})
    content = json.loads(cell.path(tmp_path).read_text())
    for key in ("support", "mask", "distances"):
        del content["cell"][key]
    cell.path(tmp_path).write_text(json.dumps(content))
    assert files.done(cell, tmp_path)
    content["cell"]["solver"] = "heun"
    cell.path(tmp_path).write_text(json.dumps(content))
    assert not files.done(cell, tmp_path)


@pytest.mark.parametrize(
    ("cell", "revision"),
    [
        (Generated("metr-la", "edm", 0, 4), 2),
        (Generated("metr-la", "grcd-gnn", 0, 4), 2),
        (Generated("metr-la", "grcd", 0, 4), 1),
        (Generated("sbm-c4", "grcd", 0, 4), 3),
        (Generated("molene", "grcd", 0, 4), 3),
        (Control("sbm-c4", "control-full"), 2),
        (Control("molene", "control-full"), 1),
    ],
)
def test_what_was_measured_before_data_or_network_changed_is_measured_again(tmp_path, cell, revision):
    files.write(cell, tmp_path, scores={"ammd": 0.5})
    content = json.loads(cell.path(tmp_path).read_text())
    assert content["revision"] == revision
    assert files.done(cell, tmp_path)
    del content["revision"]  # as cells had it at first
    cell.path(tmp_path).write_text(json.dumps(content))
    assert files.done(cell, tmp_path) == (revision == 1)


def test_what_is_to_be_measured_again_is_shown_until_then_and_said(tmp_path):
    cells = [Control("sbm-c4", "control-full"), Control("molene", "control-full")]
    for cell in cells:
        files.write(cell, tmp_path, scores={"ammd": 0.5})
        content = json.loads(cell.path(tmp_path).read_text())
        del content["revision"]
        cell.path(tmp_path).write_text(json.dumps(content))
    assert [files.measured(cell, tmp_path)["scores"]["ammd"] for cell in cells] == [0.5, 0.5]
    assert files.earlier(cells, tmp_path) == 1
    files.write(cells[0], tmp_path, scores={"ammd": 0.4})
    assert files.earlier(cells, tmp_path) == 0


def test_what_lacks_sums_by_day_or_copies_is_measured_again_and_shown_until_then(tmp_path):
    """Its numbers are right: the data and the network are what they were."""
    days, distance = {"day": [1.0], "crps": [0.5], "readings": [1.0]}, {"value": 0.1}
    for cell, before, since in (
        (Baseline("molene", "fill-mean", mask="blocks"), {"filling": {"crps": 0.5}}, {"days": days}),
        (Filled("molene", "grcd", 0, 8, mask="blocks"), {"filling": {"crps": 0.5}}, {"days": None}),
        (Control("metr-la", "control-full", 0, "distances"), {"distances": {"energy": distance}}, None),
    ):
        since = {"distances": {"energy": distance, "copies": distance}} if since is None else since
        files.write(cell, tmp_path, **before)
        content = files.measured(cell, tmp_path)
        assert files.valid(cell, content)
        assert not files.done(cell, tmp_path)
        assert files.earlier([cell], tmp_path) == 1
        files.write(cell, tmp_path, **before | since)
        assert files.done(cell, tmp_path)
        assert files.earlier([cell], tmp_path) == 0
    timed = Baseline("molene", "fill-mean", mask="blocks", measure="time")
    files.write(timed, tmp_path, time={"filling": 1.0})
    assert files.done(timed, tmp_path)
