"""The benchmark: cells computed once whatever happens in between, one training a network, tables by hand."""

import csv
import errno
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import refused

import grcd
from grcd import evaluation
from grcd.bench import cells as files
from grcd.bench import cost, distances, runner, suites, tables
from grcd.bench.cells import Cell
from grcd.core.errors import InputError
from grcd.data.formats.exported import write_dataset
from grcd.diffusion.solvers import SOLVERS
from grcd.evaluation import evaluate, floor
from grcd.evaluation.controls import draw
from grcd.training import loop
from grcd.training.methods import METHODS, Method

SETTINGS = {"width": 8, "batch": 16, "max_updates": 20, "validate_every": 10}
ROOT = Path(__file__).parents[2]
# Suites whose table is one of scores: of distances and of fillings there are others.
SCORED = [name for name in suites.SUITES if any(cell.holds == "scores" for cell in suites.cells(name))]
# What may differ between two runs of a cell; of the training its seconds.
CLOCKS = ("seconds", "seconds_per_1000", "date", "training")


class Bench:
    """A benchmark on the tiny dataset, in a folder of its own."""

    def __init__(self, folder):
        self.results, self.runs = folder / "results", folder / "runs"

    def run(self, cells, jobs=1, **settings):
        return runner.run(cells, self.results, self.runs, "cpu", jobs, SETTINGS | settings)

    def read(self, cell):
        return json.loads(cell.path(self.results).read_text())

    def scores(self, cells):
        """Everything measured, without what depends on the clock."""
        found = {cell: self.read(cell) for cell in cells}
        return {cell: {key: value for key, value in of.items() if key not in CLOCKS} for cell, of in found.items()}

    def times(self):
        return {path: path.stat().st_mtime_ns for path in self.results.rglob("*.json")}

    def table(self, suite, cells, kind):
        return tables.render(tables.collected(suite, cells, self.results), kind)


@pytest.fixture
def on_tiny(monkeypatch, tiny):
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: tiny)
    monkeypatch.setattr(suites, "SETTINGS", (*suites.SETTINGS, "tiny"))


@pytest.fixture
def bench(tmp_path, on_tiny):
    return Bench(tmp_path)


@pytest.fixture
def trainings(monkeypatch):
    """The methods that were trained, in order. A run folder that has finished is not trained again."""
    begun, train = [], loop.train

    def counted(score, reference, network, x_train, x_val, config, **hooks):
        begun.append(config.method)
        return train(score, reference, network, x_train, x_val, config, **hooks)

    monkeypatch.setattr(loop, "train", counted)
    return begun


def sampling(monkeypatch, instead):
    """``instead(model, nfe, x)`` takes the place of what is sampled."""
    sample = grcd.GRCD.sample

    def changed(self, n, nfe=4, *args, **choices):
        return instead(self, nfe, sample(self, n, nfe, *args, **choices))

    monkeypatch.setattr(grcd.GRCD, "sample", changed)


# -- computed once -----------------------------------------------------------------------------------------------------


def test_what_is_there_is_not_computed_again(bench, trainings, monkeypatch):
    quick, fits, fit = suites.cells("quick", ["tiny"]), [], grcd.GRCD._fit
    with monkeypatch.context() as patch:
        patch.setattr(grcd.GRCD, "_fit", lambda self, *args, **more: fits.append(1) or fit(self, *args, **more))
        assert bench.run(quick) == (8 + 5 * 5 + 1, 0)
    assert (len(fits), trainings) == (2, ["grcd", "edm"])
    before, kept = bench.scores(quick), bench.times()
    assert bench.run(quick) == (0, 0)
    assert bench.times() == kept

    grcd_8, edm_16, control, floors = (
        Cell("tiny", "grcd", 0, 8),
        Cell("tiny", "edm", 0, 16),
        Cell("tiny", "control-gmrf", 3),
        Cell("tiny", "floor"),
    )
    whole = edm_16.path(bench.results).read_text()
    grcd_8.path(bench.results).unlink()
    edm_16.path(bench.results).write_text(whole[: len(whole) // 2])
    control.path(bench.results).write_text(Cell("tiny", "control-gmrf", 2).path(bench.results).read_text())  # another's
    floors.path(bench.results).write_text(json.dumps({"cell": bench.read(floors)["cell"]}))  # no scores
    assert bench.run(quick) == (4, 0)
    assert trainings == ["grcd", "edm"]
    assert bench.scores(quick) == before
    changed = {path for path, time in bench.times().items() if time != kept[path]}
    assert changed == {cell.path(bench.results) for cell in (grcd_8, edm_16, control, floors)}


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "3", '"error"', "{}", '{"cell": 1, "scores": {"ammd": 1}}', "\0"]
)
def test_a_file_with_anything_else_in_it_is_no_cell(tmp_path, content):
    cell = Cell("tiny", "floor")
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
    choices |= {"split": "val", "distances": True, "timed": True}
    plain = Cell("metr-la", "grcd")
    paths = {Cell("metr-la", "grcd", **{key: value}).path(Path()) for key, value in choices.items()}
    assert len(paths | {plain.path(Path())}) == len(choices) + 1


@pytest.mark.parametrize("where", ["sampling", "training"])
def test_an_interrupted_run_goes_on(tmp_path, on_tiny, monkeypatch, where):
    cells = [Cell("tiny", name, 0, nfe) for name in ("grcd-exponential", "grcd-rho3", "grcd") for nfe in (4, 8)]
    whole, stopped = Bench(tmp_path / "whole"), Bench(tmp_path / "stopped")
    assert whole.run(cells) == (6, 0)
    count, log = [0], grcd.runs.folder.Run.log

    def interrupted(self, state, record):  # the third validation is the first of the second network
        log(self, state, record)
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt

    def third(model, nfe, x):
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        return x

    with monkeypatch.context() as patch:
        if where == "sampling":
            sampling(patch, third)
        else:
            patch.setattr(grcd.runs.folder.Run, "log", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stopped.run(cells)
    kept = 2 if where == "sampling" else 4
    assert [files.done(cell, stopped.results) for cell in cells] == [True] * kept + [False] * (6 - kept)
    assert stopped.run(cells) == (6 - kept, 0)
    assert stopped.scores(cells) == whole.scores(cells)
    weights = [sorted(side.runs.glob("*/model.safetensors")) for side in (whole, stopped)]
    assert [path.read_bytes() for path in weights[0]] == [path.read_bytes() for path in weights[1]]


# -- one training a network --------------------------------------------------------------------------------------------


def test_methods_that_share_a_network_are_trained_once(tmp_path, on_tiny, trainings):
    edm, isotropic = Cell("tiny", "edm", 0, 4), Cell("tiny", "isotropic-ve", 0, 4)
    one, other = Bench(tmp_path / "one"), Bench(tmp_path / "other")
    assert (one.run([edm]), one.run([isotropic])) == ((1, 0), (1, 0))
    assert trainings == ["edm"]
    assert (other.run([isotropic]), other.run([edm])) == ((1, 0), (1, 0))
    assert trainings == ["edm", "edm"]
    assert one.scores([edm, isotropic]) == other.scores([edm, isotropic])
    assert one.read(edm)["scores"] != one.read(isotropic)["scores"]  # other noise levels
    assert sorted(path.name for path in one.runs.iterdir()) == ["tiny-ve-preconditioned-0"]
    assert sorted(path.name for path in other.runs.iterdir()) == ["tiny-ve-preconditioned-0"]


def by_hand(tiny, method, seed, **settings):
    """The network of a cell, without the benchmark: the paper's stopping rule is the benchmark's, but for methods
    that have one of their own."""
    chosen = {"stopping": "paper", **dict(METHODS[method].settings), **SETTINGS, **settings}
    return grcd.GRCD(tiny.graph, method, seed, "cpu", **chosen).fit(tiny.train, tiny.val)


def test_a_cell_holds_what_the_parts_give_by_hand(bench, tiny):
    cells = [Cell("tiny", "edm", 2, 4), Cell("tiny", "grcd-rho1", 2, 4), Cell("tiny", "floor")]
    solver = Cell("tiny", "grcd-rho3", 2, 8, solver="dpm++2m", grid="log-snr")
    assert bench.run([*cells, solver]) == (4, 0)
    edm, rho1, floors = map(bench.read, cells)
    assert (edm["spent"], rho1["spent"], bench.read(solver)["spent"]) == (3, 4, 8)
    model = by_hand(tiny, "edm", 2)
    x = model.sample(len(tiny.test), nfe=4, seed=2)
    scores = evaluate(x, tiny).to_dict()
    assert scores.pop("floor") == floor(tiny).to_dict() == floors["scores"]
    assert edm["scores"] == scores
    assert edm["dispersion"] == pytest.approx(np.median(x.std(axis=0) / tiny.test.std(axis=0)), rel=1e-12)
    assert edm["node_std"] == pytest.approx(x.std(axis=0) / tiny.train.std(axis=0), abs=5.1e-5)  # four digits
    assert "outside" not in edm  # nobody knows what is possible here
    assert (edm["config"]["width"], edm["config"]["seed"], edm["training"]["updates"]) == (8, 2, 20)

    model = by_hand(tiny, "grcd-rho1", 2)
    assert rho1["scores"]["ammd"] == evaluate(model.sample(len(tiny.test), nfe=4, seed=2), tiny).ammd
    x = model.sample(len(tiny.test), nfe=8, seed=2, solver="dpm++2m", grid="log-snr")
    assert bench.read(solver)["scores"]["ammd"] == evaluate(x, tiny).ammd


def test_without_choices_of_its_own_a_cell_is_sampled_by_the_plan(bench, tiny, sides, monkeypatch):
    """The grid of a cell is "power" unless it says otherwise, which is no choice: only an exponent makes it one."""
    two = grcd.Dataset("two", tiny.graph, *sides, tiny.test)
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: two)
    model = by_hand(two, "grcd-gnn", 0)
    assert model.plan[2] != grcd.diffusion.plan.Choice()
    for choices, told in (
        ({}, {}),
        ({"rho": 2.0}, {"rho": 2.0}),
        ({"grid": "log-snr"}, {"grid": "log-snr"}),
        ({"solver": "dpm++2m"}, {"solver": "dpm++2m"}),
    ):
        cell = Cell("tiny", "grcd-gnn", 0, 2, **choices)
        assert bench.run([cell]) == (1, 0)
        x = model.sample(len(two.test), nfe=2, seed=0, **told)
        assert bench.read(cell)["scores"]["ammd"] == evaluate(x, two).ammd
        assert bench.read(cell)["training"]["plan"] == grcd.diffusion.plan.to_dict(model.plan)


def test_diagnostics_by_hand():
    x = np.array([[0.0, 120.0, -0.5], [60.0, 121.0, 50.0], [120.0, -1e-9, 100.0], [60.0, 1.0, 50.5]])
    real = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 50.0]])  # standard deviations 0.5, 1 and 25
    z = np.array([[0.0, 0.0, 0.0], [2.0, 0.00014, 30.0], [0.0, 0.0, 0.0], [2.0, 0.00014, 30.0]])
    stds = np.sqrt([1800.0, np.var(x[:, 1]), np.var(x[:, 2])])
    ratios = sorted(stds / [0.5, 1.0, 25.0])
    found = runner.diagnostics(x, z, real, "metr-la")
    assert found["dispersion"] == pytest.approx(ratios[1], rel=1e-12)
    assert found["node_std"] == [1.0, 0.0001, 15.0]
    assert found["outside"] == 3 / 12  # 121, -1e-9 and -0.5; not 0 and 120 themselves
    assert runner.diagnostics(x, z, real, "molene") == {key: found[key] for key in ("dispersion", "node_std")}


def test_a_choice_is_made_on_validation_signals(bench, tiny, monkeypatch, trainings):
    test, val = (Cell("tiny", "grcd-rho3", 1, 4, rho=2.0, split=split) for split in ("test", "val"))
    assert bench.run([test, val]) == (2, 0)
    assert trainings == ["grcd-rho3"]
    model = by_hand(tiny, "grcd-rho3", 1)
    for cell, real in ((test, tiny.test), (val, tiny.val)):
        x, found = model.sample(len(real), nfe=4, seed=1, rho=2.0), bench.read(cell)
        assert found["scores"]["ammd"] == evaluate(x, tiny, cell.split).ammd
        assert found["scores"]["n"] == len(real)
        assert found["dispersion"] == pytest.approx(np.median(x.std(axis=0) / real.std(axis=0)), rel=1e-12)
    gaps = tiny.val.copy()
    gaps[2, 3] = np.nan
    holed = grcd.Dataset("holed", tiny.graph, tiny.train, gaps, tiny.test)
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: holed)
    other = Bench(bench.results.parent / "other")
    with pytest.raises(InputError, match="gaps in the val signals of tiny"):
        other.run([test, val])
    assert other.run([test]) == (1, 0)  # trained on what is there, and compared with test signals


def test_controls_of_a_setting_are_fitted_once_and_the_mixture_only_if_asked_for(bench, tiny, monkeypatch):
    fits, fit = [], runner.controls
    monkeypatch.setattr(runner, "controls", lambda data, mixture: fits.append(mixture) or fit(data, mixture))
    plain = [Cell("tiny", "control-full", 0), Cell("tiny", "floor")]
    mixed = [Cell("tiny", "control-mixture", seed) for seed in range(3)]
    assert bench.run(plain) == (2, 0)
    assert bench.run([*plain, *mixed, Cell("tiny", "control-gmrf", 1)]) == (4, 0)
    assert fits == [False, True]
    for cell in (plain[0], *mixed):
        control = fit(tiny, True)[cell.method]
        x = draw(control, tiny, len(tiny.test), cell.seed)
        assert bench.read(cell)["scores"]["ammd"] == evaluate(x, tiny).ammd
        assert "config" not in bench.read(cell)
    assert len({bench.read(cell)["scores"]["ammd"] for cell in mixed}) == 3


# -- time --------------------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only when told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=lambda: self.now, monotonic=lambda: self.now))

    def passes(self, seconds):
        self.now += seconds


def test_the_least_of_the_repetitions_counts_without_the_two_that_warm_up(monkeypatch):
    clock, durations = Clock(monkeypatch), [7.0, 0.5, 4.0, 3.0, 2.0, 6.0, 5.0, 1.0]
    seconds = iter(durations)
    assert runner._least(lambda: clock.passes(next(seconds)), repeats=5) == 2.0
    assert next(seconds) == 1.0  # seven calls, not eight


def test_seconds_for_a_thousand_signals_are_those_of_sampling_alone(bench, monkeypatch):
    clock, cell = Clock(monkeypatch), Cell("tiny", "edm", 0, 4)
    sampling(monkeypatch, lambda model, nfe, x: clock.passes(0.5) or x)
    score = runner.ammd
    monkeypatch.setattr(runner, "ammd", lambda *args: clock.passes(30.0) or score(*args))
    assert bench.run([cell]) == (1, 0)
    assert bench.read(cell)["seconds_per_1000"] == 12.5  # half a second for forty
    assert bench.read(cell)["seconds"] == 30.5


def test_a_timed_cell_holds_the_time_of_sampling_and_of_the_network_alone(bench, monkeypatch, trainings):
    clock, asked, sample, alone = Clock(monkeypatch), [], grcd.GRCD.sample, runner.network_alone

    def sampled(self, *args):
        asked.append(args)
        clock.passes(3.0 + (len(asked) == 5))
        return sample(self, *args)

    def network(self, *args):
        asked.append(args)
        work = alone(self, *args)
        return lambda: clock.passes(2.0) or asked.append("alone") or work()

    monkeypatch.setattr(grcd.GRCD, "sample", sampled)
    monkeypatch.setattr(runner, "network_alone", network)
    timed = Cell("tiny", "edm", 1, 6, rho=5.0, timed=True)
    assert bench.run([timed]) == (1, 0)
    found = bench.read(timed)
    assert found["time"] == {"sampling": 3.0, "network": 2.0}
    assert "scores" not in found
    assert (found["spent"], found["config"]["seed"]) == (5, 1)
    assert asked == [(1000, 5), *[(1000, 6, 1, None, 5.0, "power")] * 7, *["alone"] * 7]  # EDM spends 5 of 6
    assert timed.path(bench.results).name == "edm_s1_nfe6_rho5_timed.json"

    asked.clear()
    bench.run([Cell("tiny", "edm", 1, 6, timed=True)])
    assert asked[1:8] == [(1000, 6, 1, None, None, None)] * 7  # without choices, as the method would

    quality = replace(timed, timed=False)
    assert bench.run([timed, quality]) == (1, 0)  # what is timed is there already, and is no quality
    assert trainings == ["edm"]
    assert bench.read(timed) == found
    assert "time" not in bench.read(quality)
    files.write(timed, bench.results, scores={"ammd": 0.5})
    assert not files.done(timed, bench.results)
    files.write(quality, bench.results, time={"sampling": 1.0, "network": 1.0})
    assert not files.done(quality, bench.results)


# -- distances ---------------------------------------------------------------------------------------------------------


def test_a_cell_of_distances_holds_every_metric_with_its_floor_and_the_permutation_test(bench, tiny, trainings):
    cells = suites.cells("distances", ["tiny"], seeds=[1])
    assert bench.run(cells) == (6, 0)
    assert trainings == ["grcd", "grcd-rho3"]
    for cell in cells:
        found = bench.read(cell)
        if cell.needs_network:
            x = by_hand(tiny, cell.method, 1).sample(len(tiny.test), nfe=cell.nfe, seed=1)
            assert (found["spent"], found["config"]["method"]) == (cell.nfe, cell.method)
            assert cell.path(bench.results).name == f"{cell.method}_s1_nfe{cell.nfe}_distances.json"
        else:
            x = draw(evaluation.controls(tiny, mixture=True)[cell.method], tiny, len(tiny.test), 1)
        assert found["distances"] == {name: d.to_dict() for name, d in evaluation.distances(x, tiny).items()}
        assert list(found["distances"]) == list(distances.SHORT)  # each of them has its column
        given = tiny.train[np.linspace(0, len(tiny.train) - 1, len(tiny.test)).astype(int)]
        z = [(part - tiny.train.mean(axis=0)) / tiny.train.std(axis=0) for part in (x, given, tiny.test)]
        assert found["p"] == evaluation.permutation_test(z[0], z[2])
        assert found["p_floor"] == evaluation.farther_test(*z)
        assert "scores" not in found
    assert bench.run(cells) == (0, 0)
    lines = distances.table(["tiny"], [1], bench.results, "md").splitlines()
    names = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    drawn = ["control-full", "control-mixture"]
    assert names[2:] == ["floor", "grcd, NFE 4", "grcd, NFE 64", "grcd-rho3, NFE 4", "grcd-rho3, NFE 64", *drawn]
    energy = bench.read(cells[0])["distances"]["energy"]
    assert f"| {energy['floor']:.4f} |" in lines[6]
    assert f"| {energy['value']:.4f} |" in lines[7]


def test_distances_are_no_scores_and_scores_no_distances(bench, monkeypatch):
    cell = Cell("tiny", "edm", 0, 4)
    other = replace(cell, distances=True)
    assert (cell.holds, other.holds, replace(cell, timed=True).holds) == ("scores", "distances", "time")
    files.write(cell, bench.results, scores={"ammd": 0.5})
    assert not files.done(other, bench.results)
    files.write(other, bench.results, scores={"ammd": 0.5})
    assert not files.done(other, bench.results)
    files.write(other, bench.results, distances={}, p=0.5)
    assert files.done(other, bench.results)
    assert files.done(cell, bench.results)
    files.write(cell, bench.results, distances={}, p=0.5)
    assert not files.done(cell, bench.results)
    files.write(other, bench.results, error="RuntimeError: no memory")
    sampling(monkeypatch, lambda model, nfe, x: x * np.inf)
    assert bench.run([other]) == (1, 1)
    assert bench.read(other)["error"] == "ArithmeticError: 240 of 240 generated readings are not finite"


# -- whose network -----------------------------------------------------------------------------------------------------


def test_seeds_and_kappa_have_networks_of_their_own(bench, trainings):
    cells = [cell for cell in suites.cells("snr", ["tiny"], seeds=[0, 1]) if cell.needs_network]
    assert len(cells) == 8  # two methods, two values of kappa, two seeds
    assert bench.run(cells) == (8, 0)
    assert len(trainings) == 4
    assert sorted(bench.read(cell)["config"]["kappa"] for cell in cells) == [2.0] * 4 + [32.64] * 4
    assert all(bench.read(cell)["config"]["seed"] == cell.seed for cell in cells)
    assert len({bench.read(cell)["scores"]["ammd"] for cell in cells}) == 8


def test_the_symmetrizer_reaches_the_data(bench, monkeypatch, tiny):
    asked = []
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: asked.append((name, options)) or tiny)
    bench.run([Cell("tiny", "floor"), Cell("tiny", "floor", symmetrize="max")])
    assert asked == [("tiny", {}), ("tiny", {"symmetrize": "max"})]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_samples_that_are_not_finite_and_no_memory(bench, monkeypatch):
    cells = [Cell("tiny", name, 0, nfe) for name in ("grcd", "grcd-rho1", "edm") for nfe in (4, 8)]
    cells.append(Cell("tiny", "floor"))

    def broken(model, nfe, x):
        if model.method == METHODS["grcd-rho1"]:
            x[3, :2] = np.nan, np.inf
        if model.method == METHODS["edm"] and nfe == 4:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return x

    with monkeypatch.context() as patch:
        sampling(patch, broken)
        assert bench.run(cells) == (7, 3)
    errors = [bench.read(cell).get("error", "") for cell in cells]
    assert errors[2] == errors[3] == "ArithmeticError: 2 of 240 generated readings are not finite"
    assert errors[4] == "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB"
    assert errors[:2] + errors[5:] == [""] * 4
    assert all("scores" not in bench.read(cell) for cell in cells[2:5])
    markdown = bench.table("main", cells, "md")
    (rho1,), (edm,) = (re.findall(rf"^\| {name} \|(.*)\|$", markdown, re.MULTILINE) for name in ("grcd-rho1", "edm"))
    assert [part.strip() for part in rho1.split("|")] == ["failed", "failed"]
    assert edm.split("|")[0].strip() == "failed"
    assert "failed" not in edm.split("|")[1]
    assert bench.table("main", cells, "tex").count("failed") == 3
    assert "grcd-rho1" not in bench.table("main", cells, "csv")

    assert bench.run(cells) == (3, 0)  # failed ones are tried again, and nothing else
    assert "failed" not in bench.table("main", cells, "md")


def test_training_that_diverges(bench):
    cells = [Cell("tiny", "edm", 0, 4), Cell("tiny", "edm", 0, 8), Cell("tiny", "control-full", 1)]
    assert bench.run(cells, lr=1e30) == (3, 2)
    assert all("training diverged" in bench.read(cell)["error"] for cell in cells[:2])
    assert "error" not in bench.read(cells[2])
    assert "| failed | failed |" in bench.table("main", cells, "md")


def test_other_settings_for_a_network_that_was_begun(bench, tmp_path):
    first, second = Cell("tiny", "grcd", 0, 4), Cell("tiny", "grcd", 0, 8)
    assert bench.run([first]) == (1, 0)
    before, elsewhere = bench.times(), Bench(tmp_path)
    with pytest.raises(InputError) as error:
        bench.run([second, first], max_updates=10)
    got, expected, fix = str(error.value).splitlines()
    assert got == f"got {first.path(bench.results)}, trained with max_updates = 20"
    assert expected == "expected cells that are trained with max_updates = 10, as asked for"
    assert "--results and --runs" in fix
    assert bench.times() == before  # nothing was begun
    elsewhere.results = tmp_path / "elsewhere"  # other results, the same runs
    assert elsewhere.run([second], max_updates=10) == (1, 1)
    assert "max_updates is 20 there and 10 here" in elsewhere.read(second)["error"]


def test_the_papers_stopping_rule_is_the_default_and_another_one_needs_another_folder(bench, tmp_path):
    network, control = Cell("tiny", "grcd-rho3", 0, 4), Cell("tiny", "control-full")
    assert bench.run([network, control]) == (2, 0)
    assert bench.read(network)["config"]["stopping"] == "paper"
    with pytest.raises(InputError, match=r"(?s)trained with stopping = paper\nexpected .* stopping = gain"):
        bench.run([network, control], stopping="gain")
    assert bench.run([control], stopping="gain") == (0, 0)  # a control has no training
    gain = Bench(tmp_path / "gain")
    assert gain.run([network], stopping="gain") == (1, 0)
    assert gain.read(network)["config"] == bench.read(network)["config"] | {"stopping": "gain"}
    with pytest.raises(InputError, match=r"grcd-rho3_s0_nfe4\.json, trained with stopping = gain"):
        gain.run([network])


def test_a_methods_own_settings_win_over_the_protocol_and_what_is_asked_for_wins_over_both(bench, tmp_path):
    """Here the length of training is asked for (``SETTINGS``); the learning rate is the method's, the rule too."""
    ours, papers = Cell("tiny", "grcd", 0, 4), Cell("tiny", "grcd-rho3", 0, 4)
    assert bench.run([ours, papers]) == (2, 0)
    found = [bench.read(cell)["config"] for cell in (ours, papers)]
    assert [config["stopping"] for config in found] == ["gain", "paper"]
    assert [config["lr"] for config in found] == [1e-3, 3e-4]
    assert [config["backbone"] for config in found] == ["node", "gnn"]
    assert [config["max_updates"] for config in found] == [20, 20]
    assert bench.run([ours, papers]) == (0, 0)  # and they are no other settings when asked again
    other = Bench(tmp_path / "other")
    assert other.run([ours], stopping="paper", lr=0.01) == (1, 0)
    assert other.read(ours)["config"] == found[0] | {"stopping": "paper", "lr": 0.01}


def test_what_a_cell_chooses_itself_is_no_other_setting(bench, monkeypatch, trainings):
    monkeypatch.setitem(METHODS, "wide", replace(METHODS["edm"], settings=(("clip", 0.5),)))
    own = [Cell("tiny", "clock", 0, 4, kappa=30.0), Cell("tiny", "wide", 1, 4), Cell("tiny", "edm", 1, 4)]
    assert bench.run(own) == (3, 0)
    assert bench.run(own) == (0, 0)
    assert trainings == ["grcd-epsilon-heun", "wide", "edm"]
    assert [bench.read(cell)["config"]["kappa"] for cell in own] == [30.0, 2.0, 2.0]
    assert [bench.read(cell)["config"]["clip"] for cell in own] == [1.0, 0.5, 1.0]
    assert sorted(path.name for path in bench.runs.iterdir()) == [
        "tiny-conjugate-epsilon-30.0-0",
        "tiny-ve-preconditioned-1",
        "tiny-ve-preconditioned-clip0.5-1",
    ]
    for cell in own:
        with pytest.raises(InputError, match=f"{cell.path(bench.results).name}, trained with lr = 0.0003"):
            bench.run([cell], lr=1e-3)


def test_a_failed_cell_says_nothing_of_settings(bench):
    cell = Cell("tiny", "edm", 0, 4)
    assert bench.run([cell], lr=1e30) == (1, 1)
    shutil.rmtree(bench.runs)
    assert bench.run([cell]) == (1, 0)


def test_a_cell_that_cannot_be_written_does_not_stop_the_others(bench, capsys):
    cells = [Cell("tiny", "edm", 0, nfe) for nfe in (4, 6, 8)] + [Cell("tiny", "floor")]
    blocked = cells[1].path(bench.results)
    (blocked / "in the way").mkdir(parents=True)
    assert bench.run(cells) == (4, 1)
    assert [files.done(cell, bench.results) for cell in cells] == [True, False, True, True]
    told = capsys.readouterr().err
    assert told.count(f"while writing {blocked}") == 1
    assert "to fix: choose another place" in told
    shutil.rmtree(blocked)
    assert bench.run(cells) == (1, 0)


def test_a_failed_cell_that_cannot_be_written_failed_once(bench, monkeypatch, capsys):
    cells, write = [Cell("tiny", "edm", 0, nfe) for nfe in (4, 6, 8)], files.write_json

    def full(path, value):
        if "nfe6" in path.name:
            with grcd.core.files.whole(path):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, value)

    monkeypatch.setattr(files, "write_json", full)
    assert bench.run(cells, lr=1e30) == (3, 3)
    assert ["diverged" in (files.read(cell, bench.results) or {}).get("error", "") for cell in cells] == [1, 0, 1]
    assert "got a full disk (No space left on device) while writing" in capsys.readouterr().err
    assert sorted(path.name for path in bench.results.rglob("*.json")) == ["edm_s0_nfe4.json", "edm_s0_nfe8.json"]


def test_a_folder_that_cannot_be_written_at_all_is_an_error_before_anything_is_trained(tmp_path, on_tiny, trainings):
    bench = Bench(tmp_path)
    bench.results.write_text("a file")
    with pytest.raises(InputError, match=r"while writing .*results"):
        bench.run([Cell("tiny", "edm", 0, 4)])
    assert trainings == []


def test_what_is_wrong_for_all_cells_is_an_error(bench, monkeypatch, tiny):
    cells = [Cell("tiny", "floor"), Cell("tiny", "edm", 0, 4)]
    for settings, message in (({"widht": 8}, "widht"), ({"seed": 1}, "--seeds"), ({"method": "edm"}, "--methods")):
        with pytest.raises(InputError, match=message):
            bench.run(cells, **settings)
    with pytest.raises(InputError, match="jobs = 0"):
        bench.run(cells, jobs=0)
    assert not bench.results.exists()
    gaps = tiny.test.copy()
    gaps[2, 3] = np.nan
    holed = grcd.Dataset("holed", tiny.graph, tiny.train, tiny.val, gaps)
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: holed)
    with pytest.raises(InputError, match="gaps in the test signals of tiny"):
        bench.run(cells)
    assert list(bench.results.rglob("*.json")) == []


# -- side by side ------------------------------------------------------------------------------------------------------


def test_side_by_side_the_same_files(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: sums in another order would have other last digits
    cells = [Cell("sbm-c16", "control-spectral", 1), Cell("sbm-c16", "grcd", 0, 2)]
    one, two = Bench(tmp_path / "one"), Bench(tmp_path / "two")
    assert one.run(cells) == (2, 0)
    assert two.run(cells, jobs=2) == (2, 0)
    assert one.scores(cells) == two.scores(cells)
    trained = [side.read(cells[1])["training"] for side in (one, two)]
    assert trained[0] | {"seconds": 0} == trained[1] | {"seconds": 0}


def test_an_error_comes_whole_out_of_a_worker(tmp_path):
    message = str(InputError("dataset 'nothing'", "one of these", "choose"))
    assert str(pickle.loads(pickle.dumps(InputError("dataset 'nothing'", "one of these", "choose")))) == message
    with pytest.raises(InputError, match="dataset 'nothing'"):
        Bench(tmp_path).run([Cell("nothing", "floor")], jobs=2)


# -- tables ------------------------------------------------------------------------------------------------------------

BEST, TIED, APART = [0.0100, 0.0269, 0.0438], [0.0200, 0.0469, 0.0738], [0.0250, 0.0469, 0.0688]
MEASURED = {  # mean 0.0269, sd 0.0169; the others are above it by 0.02 on average
    Cell("metr-la", "grcd-rho3", 0, 4): BEST,
    Cell("metr-la", "grcd-rho1", 0, 4): TIED,  # by 0.01, 0.02, 0.03: half-width 4.3027 x 0.01 / sqrt 3 = 0.0248
    Cell("metr-la", "grcd", 0, 4): APART,  # by 0.015, 0.02, 0.025: half-width 0.0124
    Cell("metr-la", "edm", 0, 6): [0.5],
    Cell("metr-la", "control-full"): [0.1921, 0.1925, 0.1929],
    Cell("metr-la", "floor"): [-0.0001],
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Cells written by hand, and one that failed."""
    results, cells = tmp_path_factory.mktemp("measured"), []
    for cell, values in MEASURED.items():
        for seed, value in enumerate(values):
            cells.append(Cell(cell.setting, cell.method, seed, cell.nfe))
            files.write(cells[-1], results, scores={"ammd": value})
    cells.append(Cell("metr-la", "edm", 1, 6))
    files.write(cells[-1], results, error="RuntimeError: no memory")
    cells.append(Cell("metr-la", "gad", 0, 4))  # never computed
    return tables.collected("main", cells, results)


def test_markdown(measured):
    lines = tables.render(measured, "md").splitlines()
    assert lines[2:4] == ["### metr-la", ""]
    assert lines[4:] == [
        "| method | NFE 4 | NFE 6 |",
        "| --- | --- | --- |",
        "| grcd-rho3 | **0.0269** +- 0.0169 (0.0538, 0.50x) | - |",
        "| grcd-rho1 | 0.0469~ +- 0.0269 (0.5298, 0.09x) | - |",
        "| grcd | 0.0469 +- 0.0219 | - |",
        "| edm | - | **0.5000**, 1 failed |",
        "| gad | - | - |",
        "",
        "| without a network | aMMD |",
        "| --- | --- |",
        "| control-full | 0.1925 +- 0.0004 (0.1921, 1.00x) |",
        "| floor | -0.0001 |",
    ]


def test_csv(measured):
    text = tables.render(measured, "csv")
    assert text.splitlines()[0] == "setting,method,nfe,mean,sd,seeds,paper"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [tuple(row.values()) for row in rows] == [
        ("metr-la", "grcd-rho3", "4", "0.026900", "0.016900", "3", "0.0538"),
        ("metr-la", "grcd-rho1", "4", "0.046900", "0.026900", "3", "0.5298"),
        ("metr-la", "grcd", "4", "0.046900", "0.021900", "3", ""),
        ("metr-la", "edm", "6", "0.500000", "", "1", ""),
        ("metr-la", "control-full", "", "0.192500", "0.000400", "3", "0.1921"),
        ("metr-la", "floor", "", "-0.000100", "", "1", ""),
    ]


def test_latex(measured):
    text = tables.render(measured, "tex")
    assert text.splitlines() == [
        "% metr-la",
        r"\begin{tabular}{lcc}",
        r"method & NFE 4 & NFE 6 \\ \hline",
        r"grcd-rho3 & $\mathbf{0.0269} \pm 0.0169\;(0.0538)$ & -- \\",
        r"grcd-rho1 & $0.0469^{\sim} \pm 0.0269\;(0.5298)$ & -- \\",
        r"grcd & $0.0469 \pm 0.0219$ & -- \\",
        r"edm & -- & $\mathbf{0.5000}$ \\",
        r"gad & -- & -- \\",
        r"\hline",
        r"control-full & $0.1925 \pm 0.0004\;(0.1921)$ \\",
        r"floor & $-0.0001$ \\",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize("suite", SCORED)
def test_latex_is_well_formed_for_every_suite(tmp_path, suite):
    cells = suites.cells(suite)
    for k, cell in enumerate(cells):
        files.write(cell, tmp_path, scores={"ammd": 0.001 * (k % 97) + 0.01}, seconds_per_1000=0.5)
    text = tables.render(tables.collected(suite, cells, tmp_path), "tex")
    depth = list(accumulate((c == "{") - (c == "}") for c in text))
    assert (min(depth), depth[-1]) == (0, 0)
    for table in text.strip().split("\n\n"):
        first, columns, *lines, last = table.splitlines()
        assert first.startswith("% ")
        assert last == r"\end{tabular}"
        wide = columns.removeprefix(r"\begin{tabular}{").rstrip("}")
        for line in lines:
            assert line.count("&") < len(wide)
            assert line.count("$") % 2 == 0
            assert re.search(r"(?<!\\)[_#%]", line) is None  # special where text is expected
    names = {"floor", *suites.CONTROLS}
    for kind in ("md", "tex", "csv"):
        shown = tables.render(tables.collected(suite, cells, tmp_path), kind)
        assert [name for name in names if name not in shown] == []


def test_names_with_special_characters_are_escaped(tmp_path):
    cell = Cell("my_data", "50%_ve", 0, 4)
    files.write(cell, tmp_path, scores={"ammd": 0.5})
    text = tables.render(tables.collected("main", [cell], tmp_path), "tex")
    assert r"50\%\_ve & $\mathbf{0.5000}$ \\" in text


def test_one_seed_is_never_a_tie():
    assert not tables.tied(tables.Entry({0: 0.5}), tables.Entry({0: 0.5, 1: 0.4}))
    assert tables.tied(tables.Entry({1: 0.5, 2: 0.7, 7: 0.1}), tables.Entry({1: 0.6, 2: 0.6, 8: 9.0}))  # paired by seed


def test_nothing_measured_is_an_error(tmp_path):
    with pytest.raises(InputError, match="grcd bench run quick"):
        tables.collected("quick", suites.cells("quick"), tmp_path)
    files.write(suites.cells("quick")[0], tmp_path, error="RuntimeError: no memory")
    with pytest.raises(InputError, match="no cells of quick"):
        tables.collected("quick", suites.cells("quick"), tmp_path)


# -- the paper's numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "setting", "row", "nfe", "printed"),
    [
        ("main", "metr-la", "grcd-rho3", 4, (0.0538, 0.0037)),
        ("main", "sbm-c16", "edm", 64, (0.0204, 0.0049)),
        ("quick", "sbm-c16", "edm", 64, (0.0204, 0.0049)),
        ("controls", "metr-la", "control-full", None, (0.1921, 0.0014)),
        ("main", "metr-la", "control-full", None, (0.1921, 0.0014)),
        ("grid", "metr-la", "rho1", 4, (0.5298, 0.1303)),
        ("solvers", "metr-la", "dpm++2m-rho3", 4, (0.0523, 0.0010)),
        ("controls", "metr-la", "control-spectral", None, (0.4134, None)),
        ("main", "metr-la", "grcd-rho3", 6, None),
        ("main", "metr-la", "grcd", 4, None),
        ("main", "metr-la", "floor", None, None),
    ],
)
def test_the_papers_value(suite, setting, row, nfe, printed):
    assert tables.paper(suite, setting, row, nfe) == printed


def test_every_number_of_the_paper_has_its_place_in_a_table():
    text = (resources.files("grcd.bench") / "paper.csv").read_text()
    printed = [
        (row["suite"], row["setting"], row["method"], int(row["nfe"]) if row["nfe"] else None)
        for row in csv.DictReader(io.StringIO(text))
    ]
    assert len(set(printed)) == len(printed)
    produced = {
        (suite, cell.setting, tables.row_name(suite, cell), cell.nfe)
        for suite in suites.SUITES
        for cell in suites.cells(suite)
    }
    produced |= {  # what is timed has a row for each target
        ("cost", cell.setting, f"{cell.method} to {target:g}", cell.nfe)
        for cell in suites.cells("cost")
        for target in cost.TARGETS
        if cell.timed
    }
    assert set(printed) - produced == set()
    for suite in SCORED:  # one row name a choice: two choices under one name would be averaged
        cells = [cell for cell in networks(suites.cells(suite, seeds=[0])) if cell.holds == "scores"]
        assert len({(cell.setting, tables.row_name(suite, cell), cell.nfe) for cell in cells}) == len(cells)


# -- the border --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: suites.cells("qick"), ["suite 'qick'", ", ".join(suites.SUITES), "did you mean 'quick'?"]),
        (lambda: suites.cells("main", ["sbm-c2"]), ["setting 'sbm-c2'", ", ".join(suites.SETTINGS)]),
        (lambda: suites.cells("main", methods=["emd"]), ["method 'emd'", *METHODS, *suites.CONTROLS, "floor"]),
        (lambda: tables.render({}, "html"), ["format 'html'", "md, tex, csv"]),
    ],
)
def test_unknown_names_are_errors_that_list_the_known_ones(call, parts):
    with pytest.raises(InputError) as error:
        call()
    assert [part for part in parts if part not in str(error.value)] == []


def test_cells_are_chosen_by_setting_seed_and_method():
    cells = suites.cells("main", ["molene", "sbm-c1"], [3, 5], ["edm", "control-gmrf"])
    assert {(c.setting, c.method, c.seed, c.nfe) for c in cells} == {
        *((s, "edm", seed, nfe) for s in ("molene", "sbm-c1") for seed in (3, 5) for nfe in (4, 6, 8, 12, 16, 32, 64)),
        *((s, "control-gmrf", seed, None) for s in ("molene", "sbm-c1") for seed in range(5)),
    }


def networks(cells):
    """Without controls and floor, of which every suite has the same."""
    return [cell for cell in cells if cell.needs_network]


@pytest.mark.parametrize("suite", SCORED)
def test_controls_and_floor_are_part_of_every_suite_with_scores(suite):
    chosen = suites.cells(suite, ["molene", "sbm-c1"])
    beside = [cell for cell in chosen if not cell.needs_network]
    names = ("diagonal", "full", "gmrf", "spectral", "mixture")
    drawn = [Cell(s, f"control-{name}", seed) for s in ("molene", "sbm-c1") for name in names for seed in range(5)]
    assert {*beside} == {*drawn, Cell("molene", "floor"), Cell("sbm-c1", "floor")}
    assert len(beside) == 52


# Of the ablation three cells were never computed.
@pytest.mark.parametrize("suite", [name for name in suites.SUITES if name != "ablation"])
def test_a_suite_is_made_of_the_cells_that_were_published(suite):
    assert [cell for cell in suites.cells(suite) if not cell.path(ROOT / "results").exists()] == []


def test_every_published_cell_belongs_to_a_suite():
    """Else a suite has lost it, and nobody would compute it again."""
    known = {cell.path(ROOT / "results") for suite in suites.SUITES for cell in suites.cells(suite)}
    published = {*(ROOT / "results/cells").rglob("*.json")}
    assert len(published) > 2000
    assert published - known == set()


def test_an_ablation_takes_one_part_back_at_a_time():
    cells = networks(suites.cells("ablation", seeds=[0]))
    assert {cell.setting for cell in cells} == {"metr-la"}
    assert {cell.nfe for cell in cells} == {1, 2, 4, 8, 64}
    plain = Cell("metr-la", "grcd", 0)
    varied = {replace(cell, nfe=None) for cell in cells}
    assert len(cells) == 5 * len(varied)
    assert plain in varied
    for cell in varied - {plain}:  # one thing about a cell is another one
        assert sum(getattr(cell, key) != getattr(plain, key) for key in vars(plain)) == 1
    assert {cell.method for cell in varied} == {"grcd", "grcd-full", "grcd-spectral", "grcd-gnn", "grcd-rho3"}
    for cell in varied:
        if cell.solver:
            assert not SOLVERS[cell.solver].gaussian  # it has to serve a mixture


def test_a_cell_with_a_support_is_the_same_network_with_nothing_outside(bench, tiny, trainings):
    plain, bounded = Cell("tiny", "grcd", 1, 2), Cell("tiny", "grcd", 1, 2, support="8,20")
    assert bench.run([plain, bounded]) == (2, 0)
    assert trainings == ["grcd"]
    found = bench.read(bounded)
    x = by_hand(tiny, "grcd", 1).sample(len(tiny.test), nfe=2, seed=1)
    assert ((x < 8) | (x > 20)).mean() > 0.05
    z = [(part - tiny.train.mean(axis=0)) / tiny.train.std(axis=0) for part in (np.clip(x, 8, 20), tiny.test)]
    assert found["scores"] == evaluation.ammd(*z, tiny.graph).to_dict()
    assert (found["outside_support"], found["config"]["support"]) == (0, "")
    assert "outside_support" not in bench.read(plain)
    assert bounded.path(bench.results).name == "grcd_s1_nfe2_within8-20.json"
    assert bench.run([plain, bounded]) == (0, 0)


def test_the_main_table_has_the_default_at_one_and_two_evaluations_too():
    budgets = {}
    for cell in networks(suites.cells("main", ["molene"], [0])):
        budgets.setdefault(cell.method, []).append(cell.nfe)
    assert budgets.pop("grcd") == [1, 2, 4, 6, 8, 12, 16, 32, 64]
    assert set(map(tuple, budgets.values())) == {(4, 6, 8, 12, 16, 32, 64)}
    assert set(suites.PARTS) & set(budgets) == set()


def test_what_is_timed_has_its_quality_beside_it():
    cells = networks(suites.cells("cost", seeds=[2, 1]))
    quality, timed = ([cell for cell in cells if cell.timed is kind] for kind in (False, True))
    assert {*quality} == {*networks(suites.cells("main", ["metr-la"], [1, 2]))} | {
        *networks(suites.cells("ladder", seeds=[1, 2]))
    }
    assert {*timed} == {replace(cell, timed=True) for cell in quality if cell.seed == 1}  # one seed is enough
    assert len(timed) * 2 == len(quality) == len({*quality})


def test_gad_at_its_authors_size_is_a_suite_of_its_own():
    suite_of = {s: {cell.method for cell in suites.cells(s)} for s in suites.SUITES}
    assert [name for name, methods in suite_of.items() if "gad-native" in methods] == ["gad-native"]
    assert suite_of["main"] | suite_of["ladder"] | suite_of["gad-native"] | suite_of["ablation"] == {
        *METHODS,
        *suites.CONTROLS,
        "floor",
    }


def test_what_failed_is_told_with_its_reason(tmp_path, here):
    choices = ["--methods", "edm,floor", "--device", "cpu", "--set", "max_updates=20", "--set", "width=8"]
    result = here("bench", "run", "quick", *choices, "--set", "lr=1e30", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "5 cells, 5 computed now, 4 failed\nfailed: 4 cells: InputError: got a validation error of" in result.stdout


def test_networks_that_could_not_be_kept_are_refused_before_anything_is_computed(tmp_path, here):
    (tmp_path / "file").write_text("in the way")
    result = here("bench", "run", "quick", "--runs", "file/runs", cwd=tmp_path)
    assert "while writing file/runs" in refused(result)
    assert not (tmp_path / "runs/bench-results/cells").exists()


@pytest.mark.parametrize("what", ["table main", "figures"])
def test_a_file_in_place_of_results_is_called_one(what, tmp_path, here):
    (tmp_path / "file").write_text("no folder")
    message = refused(here("bench", *what.split(), "--results", "file", cwd=tmp_path))
    assert "a file as --results: file" in message


def test_on_the_command_line(tmp_path, here):
    choices = ["--methods", "edm,floor", "--device", "cpu", "--set", "max_updates=20", "--set", "width=8"]
    result = here("bench", "run", "quick", *choices, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "5 cells, 5 computed now, 0 failed" in result.stdout
    assert (tmp_path / "runs/bench/sbm-c16-ve-preconditioned-0/model.safetensors").exists()
    assert "5 cells, 0 computed now" in here("bench", "run", "quick", *choices, cwd=tmp_path).stdout
    result = here("bench", "table", "quick", "--format", "csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = [line.split(",") for line in result.stdout.splitlines()]
    assert rows[0] == ["setting", "method", "nfe", "mean", "sd", "seeds", "paper"]
    assert [row[:3] + row[5:] for row in rows[1:]] == [
        ["sbm-c16", "edm", "4", "1", "2.1231"],
        ["sbm-c16", "edm", "8", "1", "1.7378"],
        ["sbm-c16", "edm", "16", "1", "0.4586"],
        ["sbm-c16", "edm", "64", "1", "0.0204"],
        ["sbm-c16", "floor", "", "1", ""],
    ]
    known = json.loads((tmp_path / "runs/bench-results/cells/sbm-c16/edm_s0_nfe8.json").read_text())
    assert known["config"]["stopping"] == "paper"
    assert float(rows[2][3]) == pytest.approx(known["scores"]["ammd"], rel=1e-6)


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        ("run quick --seeds a", ["--seeds a", "whole numbers"]),
        ("table quick --seeds 0,,1", ["--seeds 0,,1"]),
        ("run qick", ["suite 'qick'", "did you mean 'quick'?"]),
        ("run quick --settings sbm", ["setting 'sbm'", "metr-la, molene, sbm-c1"]),
        ("run quick --methods edm,emd", ["method 'emd'", "did you mean"]),
        ("run quick --set seed=1", ["--set seed=1", "--seed 1"]),
        ("run quick --jobs 0", ["jobs = 0"]),
        ("table quick", ["no cells of quick", "grcd bench run quick"]),
    ],
)
def test_what_the_user_can_correct(tmp_path, here, args, parts):
    message = refused(here("bench", *args.split(), cwd=tmp_path))
    assert [part for part in parts if part not in message] == []
    assert list(tmp_path.iterdir()) == []


# -- what the page says ------------------------------------------------------------------------------------------------


def test_a_method_and_a_dataset_of_ones_own_as_the_page_shows(tmp_path, tiny):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/benchmark.md").read_text(), re.DOTALL)
    assert block.count("4000") == block.count("seeds=[0, 1, 2]") == 1
    write_dataset(tmp_path / "mine.npz", tiny)
    quick = block.replace("4000", "20").replace("seeds=[0, 1, 2]", "seeds=[0, 1]")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(
        [sys.executable, "-c", quick], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    for row in ("grcd-rho3", "grcd-heun", "control-full", "floor"):
        assert len(re.findall(rf"^\| {row} \| .*\d\.\d{{4}}", result.stdout, re.MULTILINE)) == 1
    assert "failed" not in result.stdout
    assert sorted(path.name for path in (tmp_path / "runs/bench").iterdir()) == [
        "mine.npz-conjugate-residual-0",
        "mine.npz-conjugate-residual-1",
    ]


def test_a_method_added_is_part_of_the_main_suite(bench, monkeypatch, trainings):
    monkeypatch.setitem(METHODS, "mine", Method("epsilon", "scalar", "heun", 2, "a composition of one's own"))
    cells = suites.cells("main", ["tiny"], [0], ["mine"])
    assert [cell.nfe for cell in cells] == [4, 6, 8, 12, 16, 32, 64]
    assert bench.run(cells) == (7, 0)
    assert trainings == ["grcd-epsilon-heun"]  # the first that has this network
    assert bench.read(cells[0])["spent"] == 4
    assert "| mine | **" in bench.table("main", cells, "md")
