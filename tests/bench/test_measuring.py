"""What a cell holds, by hand: signals, distances, time."""

from dataclasses import replace

import numpy as np
import pytest
from benches import Bench, Clock, by_hand, sampling

import grcd
from grcd import evaluation
from grcd.bench import cells as files
from grcd.bench import measuring, runner, suites, tables
from grcd.bench.cells import Floor, Generated
from grcd.core.errors import InputError
from grcd.evaluation import evaluate, floor
from grcd.evaluation.controls import draw


def test_a_cell_holds_what_the_parts_give_by_hand(bench, tiny):
    cells = [Generated("tiny", "edm", 2, 4), Generated("tiny", "grcd-rho1", 2, 4), Floor("tiny")]
    solver = Generated("tiny", "grcd-rho3", 2, 8, solver="dpm++2m", grid="log-snr")
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
        cell = Generated("tiny", "grcd-gnn", 0, 2, **choices)
        assert bench.run([cell]) == (1, 0)
        x = model.sample(len(two.test), nfe=2, seed=0, **told)
        assert bench.read(cell)["scores"]["ammd"] == evaluate(x, two).ammd
        assert bench.read(cell)["training"]["plan"] == grcd.diffusion.plan.to_dict(model.plan)


def test_many_evaluations_are_faster_ones_and_a_cell_says_so(bench, monkeypatch):
    told, sample = [], grcd.GRCD.sample
    monkeypatch.setattr(
        grcd.GRCD, "sample", lambda self, *args, **how: told.append(how["precision"]) or sample(self, *args, **how)
    )
    cells = [Generated("tiny", "edm", 0, nfe) for nfe in (4, measuring.LONG - 1, measuring.LONG)]
    assert bench.run(cells) == (3, 0)
    assert told == [bench.read(cell)["precision"] for cell in cells] == ["float32", "float32", "tf32"]


def test_diagnostics_by_hand():
    x = np.array([[0.0, 120.0, -0.5], [60.0, 121.0, 50.0], [120.0, -1e-9, 100.0], [60.0, 1.0, 50.5]])
    real = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 50.0]])  # standard deviations 0.5, 1 and 25
    z = np.array([[0.0, 0.0, 0.0], [2.0, 0.00014, 30.0], [0.0, 0.0, 0.0], [2.0, 0.00014, 30.0]])
    stds = np.sqrt([1800.0, np.var(x[:, 1]), np.var(x[:, 2])])
    ratios = sorted(stds / [0.5, 1.0, 25.0])
    found = measuring.diagnostics(x, z, real, "metr-la")
    assert found["dispersion"] == pytest.approx(ratios[1], rel=1e-12)
    assert found["node_std"] == [1.0, 0.0001, 15.0]
    assert found["outside"] == 3 / 12  # 121, -1e-9 and -0.5; not 0 and 120 themselves
    assert measuring.diagnostics(x, z, real, "molene") == {key: found[key] for key in ("dispersion", "node_std")}


def test_a_choice_is_made_on_validation_signals(bench, tiny, monkeypatch, trainings):
    test, val = (Generated("tiny", "grcd-rho3", 1, 4, rho=2.0, split=split) for split in ("test", "val"))
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


def test_a_cell_with_a_support_is_the_same_network_with_nothing_outside(bench, tiny, trainings):
    plain, bounded = Generated("tiny", "grcd", 1, 2), Generated("tiny", "grcd", 1, 2, support="8,20")
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


# -- time --------------------------------------------------------------------------------------------------------------


def test_the_least_of_the_repetitions_counts_without_the_two_that_warm_up(monkeypatch):
    clock, durations = Clock(monkeypatch), [7.0, 0.5, 4.0, 3.0, 2.0, 6.0, 5.0, 1.0]
    seconds = iter(durations)
    assert measuring._least(lambda: clock.passes(next(seconds)), repeats=5) == 2.0
    assert next(seconds) == 1.0  # seven calls, not eight


def test_seconds_for_a_thousand_signals_are_those_of_sampling_alone(bench, monkeypatch):
    clock, cell = Clock(monkeypatch), Generated("tiny", "edm", 0, 4)
    sampling(monkeypatch, lambda model, nfe, x: clock.passes(0.5) or x)
    score = measuring.ammd
    monkeypatch.setattr(measuring, "ammd", lambda *args: clock.passes(30.0) or score(*args))
    assert bench.run([cell]) == (1, 0)
    assert bench.read(cell)["seconds_per_1000"] == 12.5  # half a second for forty
    assert bench.read(cell)["seconds"] == 30.5


def test_a_timed_cell_holds_the_time_of_sampling_and_of_the_network_alone(bench, monkeypatch, trainings):
    clock, asked, sample, alone = Clock(monkeypatch), [], grcd.GRCD.sample, measuring.network_alone

    def sampled(self, *args, **how):
        asked.append(args)
        clock.passes(3.0 + (len(asked) == 5))
        return sample(self, *args, **how)

    def network(self, *args):
        asked.append(args)
        work = alone(self, *args)
        return lambda: clock.passes(2.0) or asked.append("alone") or work()

    monkeypatch.setattr(grcd.GRCD, "sample", sampled)
    monkeypatch.setattr(measuring, "network_alone", network)
    timed = Generated("tiny", "edm", 1, 6, rho=5.0, measure="time")
    assert bench.run([timed]) == (1, 0)
    found = bench.read(timed)
    assert found["time"] == {"sampling": 3.0, "network": 2.0}
    assert "scores" not in found
    assert (found["spent"], found["config"]["seed"]) == (5, 1)
    assert found["training"]["updates"] == runner.TIMED < found["config"]["max_updates"]
    assert asked == [(1000, 5), *[(1000, 6, 1, None, 5.0, "power")] * 7, *["alone"] * 7]  # EDM spends 5 of 6
    assert timed.path(bench.results).name == "edm_s1_nfe6_rho5_timed.json"

    asked.clear()
    bench.run([Generated("tiny", "edm", 1, 6, measure="time")])
    assert asked[1:8] == [(1000, 6, 1, None, None, None)] * 7  # without choices, as the method would

    quality = replace(timed, measure="ammd")
    assert bench.run([timed, quality]) == (1, 0)  # what is timed is there already, and is no quality
    assert trainings == ["edm"] * 3  # twice for its time alone, hardly and not in a folder
    assert bench.read(timed) == found
    assert bench.read(quality)["training"]["updates"] > runner.TIMED
    bench.run([replace(timed, nfe=8)])  # the trained one is there now
    assert bench.read(replace(timed, nfe=8))["training"] == bench.read(quality)["training"]
    assert len(trainings) == 3
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
        assert list(found["distances"]) == list(tables.distances.SHORT)  # each of them has its column
        given = tiny.train[np.linspace(0, len(tiny.train) - 1, len(tiny.test)).astype(int)]
        z = [(part - tiny.train.mean(axis=0)) / tiny.train.std(axis=0) for part in (x, given, tiny.test)]
        assert found["p"] == evaluation.permutation_test(z[0], z[2])
        assert found["p_floor"] == evaluation.farther_test(*z)
        assert "scores" not in found
    assert bench.run(cells) == (0, 0)
    lines = tables.distances.table(["tiny"], [1], bench.results, "md").splitlines()
    names = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    drawn = ["control-full", "control-mixture"]
    assert names[2:] == ["floor", "grcd, NFE 4", "grcd, NFE 64", "grcd-rho3, NFE 4", "grcd-rho3, NFE 64", *drawn]
    energy = bench.read(cells[0])["distances"]["energy"]
    assert f"| {energy['floor']:.4f} |" in lines[6]
    assert f"| {energy['value']:.4f} |" in lines[7]


def test_distances_are_no_scores_and_scores_no_distances(bench, monkeypatch):
    cell = Generated("tiny", "edm", 0, 4)
    other = replace(cell, measure="distances")
    assert (cell.key, other.key, replace(cell, measure="time").key) == ("scores", "distances", "time")
    files.write(cell, bench.results, scores={"ammd": 0.5})
    assert not files.done(other, bench.results)
    files.write(other, bench.results, scores={"ammd": 0.5})
    assert not files.done(other, bench.results)
    files.write(other, bench.results, distances={"copies": {}}, p=0.5)
    assert files.done(other, bench.results)
    assert files.done(cell, bench.results)
    files.write(cell, bench.results, distances={}, p=0.5)
    assert not files.done(cell, bench.results)
    files.write(other, bench.results, error="RuntimeError: no memory")
    sampling(monkeypatch, lambda model, nfe, x: x * np.inf)
    assert bench.run([other]) == (1, 1)
    assert bench.read(other)["error"] == "ArithmeticError: 240 of 240 generated readings are not finite"
