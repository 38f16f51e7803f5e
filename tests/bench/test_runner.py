"""Cells are computed once whatever happens in between, after one training a network."""

import errno
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from benches import Bench, sampling

import grcd
from grcd.bench import cells as files
from grcd.bench import runner, suites
from grcd.bench.cells import Control, Floor, Generated
from grcd.core.errors import InputError
from grcd.evaluation import evaluate
from grcd.evaluation.controls import draw
from grcd.training import loop
from grcd.training.methods import METHODS, Method

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
        Generated("tiny", "grcd", 0, 8),
        Generated("tiny", "edm", 0, 16),
        Control("tiny", "control-gmrf", 3),
        Floor("tiny"),
    )
    whole = edm_16.path(bench.results).read_text()
    grcd_8.path(bench.results).unlink()
    edm_16.path(bench.results).write_text(whole[: len(whole) // 2])
    control.path(bench.results).write_text(
        Control("tiny", "control-gmrf", 2).path(bench.results).read_text()
    )  # another's
    floors.path(bench.results).write_text(json.dumps({"cell": bench.read(floors)["cell"]}))  # no scores
    assert bench.run(quick) == (4, 0)
    assert trainings == ["grcd", "edm"]
    assert bench.scores(quick) == before
    changed = {path for path, time in bench.times().items() if time != kept[path]}
    assert changed == {cell.path(bench.results) for cell in (grcd_8, edm_16, control, floors)}


@pytest.mark.parametrize("where", ["sampling", "training"])
def test_an_interrupted_run_goes_on(tmp_path, on_tiny, monkeypatch, where):
    cells = [Generated("tiny", name, 0, nfe) for name in ("grcd-exponential", "grcd-rho3", "grcd") for nfe in (4, 8)]
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
@pytest.mark.parametrize("method", ["gad-native", "grcd-rho3"])
def test_a_killed_benchmark_goes_on_from_its_last_validation_elsewhere_too(tmp_path, on_tiny, monkeypatch, method):
    """Killed twice, between validations, each time carried to another folder: the same weights to the bit."""
    cells, length = [Generated("tiny", method, 0, nfe) for nfe in (4, 8)], {"max_updates": 50, "validate_every": 10}
    whole, done, update = Bench(tmp_path / "0"), [], loop.Update.__call__
    assert whole.run(cells, **length) == (2, 0)

    def counted(self, *drawn):
        done.append(self.state.update)
        if len(done) == 27:
            os.kill(os.getpid(), signal.SIGKILL)
        update(self, *drawn)

    monkeypatch.setattr(loop.Update, "__call__", counted)
    for k in (1, 2):
        child = os.fork()
        if child == 0:
            Bench(tmp_path / f"{k}").run(cells, **length)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        shutil.copytree(tmp_path / f"{k}", tmp_path / f"{k + 1}")
    carried = Bench(tmp_path / "3")
    assert carried.run(cells, **length) == (2, 0)
    assert done == list(range(40, 50))  # 26 updates and 20 validated, then 26 more and 40
    assert carried.scores(cells) == whole.scores(cells)
    weights = [next(side.runs.glob("*/model.safetensors")).read_bytes() for side in (whole, carried)]
    assert weights[0] == weights[1]


# -- one training a network --------------------------------------------------------------------------------------------


def test_methods_that_share_a_network_are_trained_once(tmp_path, on_tiny, trainings):
    edm, isotropic = Generated("tiny", "edm", 0, 4), Generated("tiny", "isotropic-ve", 0, 4)
    one, other = Bench(tmp_path / "one"), Bench(tmp_path / "other")
    assert (one.run([edm]), one.run([isotropic])) == ((1, 0), (1, 0))
    assert trainings == ["edm"]
    assert (other.run([isotropic]), other.run([edm])) == ((1, 0), (1, 0))
    assert trainings == ["edm", "edm"]
    assert one.scores([edm, isotropic]) == other.scores([edm, isotropic])
    assert one.read(edm)["scores"] != one.read(isotropic)["scores"]  # other noise levels
    assert sorted(path.name for path in one.runs.iterdir()) == ["tiny-ve-preconditioned-0"]
    assert sorted(path.name for path in other.runs.iterdir()) == ["tiny-ve-preconditioned-0"]


def test_controls_of_a_setting_are_fitted_once_and_the_mixture_only_if_asked_for(bench, tiny, monkeypatch):
    fits, fit = [], runner.controls
    monkeypatch.setattr(runner, "controls", lambda data, mixture: fits.append(mixture) or fit(data, mixture))
    plain = [Control("tiny", "control-full", 0), Floor("tiny")]
    mixed = [Control("tiny", "control-mixture", seed) for seed in range(3)]
    assert bench.run(plain) == (2, 0)
    assert bench.run([*plain, *mixed, Control("tiny", "control-gmrf", 1)]) == (4, 0)
    assert fits == [False, True]
    for cell in (plain[0], *mixed):
        control = fit(tiny, True)[cell.method]
        x = draw(control, tiny, len(tiny.test), cell.seed)
        assert bench.read(cell)["scores"]["ammd"] == evaluate(x, tiny).ammd
        assert "config" not in bench.read(cell)
    assert len({bench.read(cell)["scores"]["ammd"] for cell in mixed}) == 3


# -- whose network -----------------------------------------------------------------------------------------------------


def test_seeds_and_kappa_have_networks_of_their_own(bench, trainings):
    cells = [cell for cell in suites.cells("snr", ["tiny"], seeds=[0, 1]) if cell.needs_network]
    assert len(cells) == 8  # two methods, two values of kappa, two seeds
    assert bench.run(cells) == (8, 0)
    assert len(trainings) == 4
    assert sorted(bench.read(cell)["config"]["kappa"] for cell in cells) == [2.0] * 4 + [32.64] * 4
    assert all(bench.read(cell)["config"]["seed"] == cell.seed for cell in cells)
    assert len({bench.read(cell)["scores"]["ammd"] for cell in cells}) == 8


def test_the_whitened_comparators_have_the_near_zero_kappa_but_on_metr_la():
    def kappa(setting, method="wsd-graph", settings=None, **cell):
        return runner._chosen(Generated(setting, method, 0, 4, **cell), settings or {}).get("kappa", 2.0)

    assert [kappa(f"sbm-c{c}", f"wsd-{kind}") for c in (1, 4, 16) for kind in ("scalar", "graph")] == [32.64] * 6
    assert (kappa("molene"), kappa("metr-la"), kappa("sbm-c1", "clock")) == (32.64, 2.0, 2.0)
    assert (kappa("sbm-c1", settings={"kappa": 3.0}), kappa("sbm-c1", kappa=4.0)) == (3.0, 4.0)  # what is chosen wins


def test_the_symmetrizer_reaches_the_data(bench, monkeypatch, tiny):
    asked = []
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: asked.append((name, options)) or tiny)
    bench.run([Generated("tiny", "edm", 0, 4, symmetrize=how) for how in (None, "max")])
    assert asked == [("tiny", {}), ("tiny", {"symmetrize": "max"})]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_samples_that_are_not_finite_and_no_memory(bench, monkeypatch):
    cells = [Generated("tiny", name, 0, nfe) for name in ("grcd", "grcd-rho1", "edm") for nfe in (4, 8)]
    cells.append(Floor("tiny"))

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
    cells = [Generated("tiny", "edm", 0, 4), Generated("tiny", "edm", 0, 8), Control("tiny", "control-full", 1)]
    assert bench.run(cells, lr=1e30) == (3, 2)
    assert all("training diverged" in bench.read(cell)["error"] for cell in cells[:2])
    assert "error" not in bench.read(cells[2])
    assert "| failed | failed |" in bench.table("main", cells, "md")


def test_other_settings_for_a_network_that_was_begun(bench, tmp_path):
    first, second = Generated("tiny", "grcd", 0, 4), Generated("tiny", "grcd", 0, 8)
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
    network, control = Generated("tiny", "grcd-rho3", 0, 4), Control("tiny", "control-full")
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
    ours, papers = Generated("tiny", "grcd", 0, 4), Generated("tiny", "grcd-rho3", 0, 4)
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
    own = [
        Generated("tiny", "clock", 0, 4, kappa=30.0),
        Generated("tiny", "wide", 1, 4),
        Generated("tiny", "edm", 1, 4),
    ]
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
    cell = Generated("tiny", "edm", 0, 4)
    assert bench.run([cell], lr=1e30) == (1, 1)
    shutil.rmtree(bench.runs)
    assert bench.run([cell]) == (1, 0)


def test_a_cell_that_cannot_be_written_does_not_stop_the_others(bench, capsys):
    cells = [Generated("tiny", "edm", 0, nfe) for nfe in (4, 6, 8)] + [Floor("tiny")]
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
    cells, write = [Generated("tiny", "edm", 0, nfe) for nfe in (4, 6, 8)], files.write_json

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
        bench.run([Generated("tiny", "edm", 0, 4)])
    assert trainings == []


def test_what_is_wrong_for_all_cells_is_an_error(bench, monkeypatch, tiny):
    cells = [Floor("tiny"), Generated("tiny", "edm", 0, 4)]
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
    cells = [Control("sbm-c16", "control-spectral", 1), Generated("sbm-c16", "grcd", 0, 2)]
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
        Bench(tmp_path).run([Floor("nothing")], jobs=2)


def test_a_method_added_is_part_of_the_main_suite(bench, monkeypatch, trainings):
    monkeypatch.setitem(METHODS, "mine", Method("epsilon", "scalar", "heun", 2, "a composition of one's own"))
    cells = suites.cells("main", ["tiny"], [0], ["mine"])
    assert [cell.nfe for cell in cells] == [4, 6, 8, 12, 16, 32, 64]
    assert bench.run(cells) == (7, 0)
    assert trainings == ["grcd-epsilon-heun"]  # the first that has this network
    assert bench.read(cells[0])["spent"] == 4
    assert "| mine | **" in bench.table("main", cells, "md")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs a group of processes to interrupt")
def test_an_interrupt_ends_all_workers_at_once_and_without_a_word(tmp_path):
    """As a terminal sends it, to all processes: those at work, and those that have not begun."""
    (tmp_path / "program.py").write_text(
        """
import pathlib, sys, time
from grcd.core import interrupts


def work(group):
    pathlib.Path(group[0]).touch()
    time.sleep(600)


if __name__ == "__main__":
    interrupts.watch()
    from grcd.bench import runner
    try:
        list(runner._each(work, [["a"], ["b"], ["c"]], 2))
    except KeyboardInterrupt:
        sys.exit(interrupts.STATUS)
"""
    )
    program = subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "a").exists() and program.poll() is None:
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    said = program.communicate(timeout=300)[1]  # workers sleep for longer
    assert (program.returncode, said) == (130, "")
    assert not (tmp_path / "c").exists()
    for _ in range(600):  # nobody is left, but for who minds the semaphores, for a moment
        try:
            os.killpg(program.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a worker is left")
