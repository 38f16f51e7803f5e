"""Run folders: interrupted anywhere and gone on with to the bit; refused where they are not what they should be."""

import copy
import errno
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import edit, edit_tensors, record, unsealed
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import grcd
from grcd.core import files
from grcd.core.errors import InputWarning
from grcd.metrics import distances as metrics
from grcd.runs import folder as run
from grcd.runs import lock, seal
from grcd.training import loop as training

# What a machine does that is switched off in the middle. It waits there, after its second validation.
TRAIN_SLOWLY = """
import sys, time, conftest, grcd
from grcd.training.loop import Update
fast, left = Update.__call__, [*46 * [0], *14 * [600]]
Update.__call__ = lambda *given: (time.sleep(left.pop(0)), fast(*given))[1]
graph = conftest.six_nodes()
train, val = (conftest.signals(graph, n, seed) for n, seed in ((60, 0), (30, 1)))
grcd.GRCD(graph, seed=3, device="cpu", **conftest.SETTINGS | {"lr": 0.3}).fit(train, val, run=sys.argv[1])
"""


@pytest.fixture(scope="module")
def fit(tiny, quick):
    """The default method, which is what users get; in leaps, so that it is better than its reference after a few."""

    def fit(folder, force=False, **changes):
        settings = {**quick, "seed": 3, "lr": 0.3, **changes}
        return grcd.GRCD(tiny.graph, device="cpu", **settings).fit(tiny.train, tiny.val, run=folder, force=force)

    return fit


@pytest.fixture(scope="module")
def whole(fit, tmp_path_factory):
    """The folder of a run that nobody interrupted. Read-only."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert fit(folder).result["best_update"] == 40  # neither what it began with nor what it ended with is kept
    return folder


@pytest.fixture(scope="module")
def without_folder(fit):
    """The same model, trained in memory. Read-only."""
    return fit(None)


@pytest.fixture
def copied(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "copied"))


@pytest.fixture
def half(fit, tmp_path, monkeypatch):
    """A run that was interrupted between its second validation, at update 40, and its third."""
    raise_at_call(monkeypatch, training.Update, "__call__", 47)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "half")
    monkeypatch.undo()
    return tmp_path / "half"


def raise_at_call(monkeypatch, owner, name, number, error=KeyboardInterrupt, after=False):
    """Let the ``number``-th call of a function fail, before it does anything or once it is done."""
    original, calls = getattr(owner, name), []

    def interrupted(*args, **kwargs):
        calls.append(1)
        result = original(*args, **kwargs) if after or len(calls) != number else None
        if len(calls) == number:
            raise error
        return result

    monkeypatch.setattr(owner, name, interrupted)


def lines(folder):
    """The log, without what may differ: seconds."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def manifest(folder):
    """Without what may differ: seconds, and the seals of what holds them."""
    found = json.loads((folder / "run.json").read_text())
    found.get("result", {}).pop("seconds", None)
    return {key: value for key, value in found.items() if key not in ("sha256", "log")}


def assert_same_run(folder, whole):
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert lines(folder) == lines(whole)
    assert manifest(folder) == manifest(whole)
    assert sorted(p.name for p in folder.iterdir()) == ["metrics.jsonl", "model.safetensors", "run.json"]


# -- interrupted and resumed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "name", "number", "after"),
    [
        pytest.param(training.Update, "__call__", 5, False, id="before the first validation"),
        pytest.param(training.Update, "__call__", 33, False, id="between two validations"),
        pytest.param(run, "save_file", 1, False, id="between the first line of the log and the first checkpoint"),
        pytest.param(run, "save_file", 2, False, id="between a line of the log and its checkpoint"),
        pytest.param(run.Run, "log", 2, True, id="right after a checkpoint"),
        pytest.param(run.Run, "log", 3, True, id="after the last validation"),
        pytest.param(metrics, "energy", 8, False, id="while the plan is chosen"),
        pytest.param(run, "save_file", 4, False, id="before the model is written"),
        pytest.param(run.manifest, "write_json", 2, False, id="between the model and the word that it is there"),
    ],
)
def test_an_interrupted_run_ends_as_if_it_had_not_been(fit, whole, tmp_path, monkeypatch, owner, name, number, after):
    folder = tmp_path / "run"
    raise_at_call(monkeypatch, owner, name, number, after=after)
    with pytest.raises(KeyboardInterrupt):
        fit(folder)
    monkeypatch.undo()
    assert manifest(folder)["status"] == "training"
    fit(folder)
    assert_same_run(folder, whole)


def test_a_run_interrupted_twice_ends_as_if_it_had_not_been(fit, half, whole, monkeypatch):
    raise_at_call(monkeypatch, training.Update, "__call__", 15)
    with pytest.raises(KeyboardInterrupt):
        fit(half)
    monkeypatch.undo()
    fit(half)
    assert_same_run(half, whole)


def test_resuming_repeats_no_update_before_the_checkpoint(fit, half, monkeypatch):
    calls, step = [], training.Update.__call__
    monkeypatch.setattr(training.Update, "__call__", lambda *given: (calls.append(1), step(*given))[1])
    fit(half)
    assert len(calls) == 20


def test_a_process_that_is_killed_leaves_a_run_that_ends_as_if_it_had_not_been(fit, whole, tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", TRAIN_SLOWLY, folder], cwd=Path(__file__).parents[1])
    try:
        while process.poll() is None and not (
            (folder / "metrics.jsonl").exists() and len((folder / "metrics.jsonl").read_text().splitlines()) >= 2
        ):
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    assert manifest(folder)["status"] == "training"
    fit(folder)
    for left in folder.glob(".*"):  # at most a file that was being written
        left.unlink()
    assert_same_run(folder, whole)


def test_the_log_is_cut_back_to_the_checkpoint(fit, half, whole):
    with (half / "metrics.jsonl").open("a") as log:
        log.write('{"update": 60, "train": 0.0, "val": 0.0, "seconds": 9.9}\n')  # killed before its checkpoint
    fit(half)
    assert lines(half) == lines(whole)


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log + b'{"update": 60, "tra',
        lambda log: log + b'{"update": 60, "train": 0.0, "val": 0.0}\n{"upd',
        lambda log: log + b"\xff\xfe\n",
        lambda log: log + b"3\n",
        lambda log: log + b'{"update": "x", "train": 0.0, "val": 0.0}\n',
        lambda log: log + b"[" * 200_000,
        lambda log: log.replace(b'"val": 0', b'"val": 9', 1),
        lambda log: log[:-5],
        lambda log: b"",
    ],
)
def test_a_damaged_log_is_written_again_from_the_checkpoint_with_a_note(fit, half, whole, damage):
    path = half / "metrics.jsonl"
    assert path.read_bytes() != damage(path.read_bytes())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(InputWarning, match=r"metrics\.jsonl had been damaged"):
        fit(half)
    assert_same_run(half, whole)


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_truncated_checkpoint_is_refused_by_name(fit, half, kept):
    checkpoint = half / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:kept])
    with pytest.raises(grcd.InputError, match=r"(?s)checkpoint\.safetensors.*damaged.*--force"):
        fit(half)


def spoil_checkpoint(folder, change):
    """Alter tensors and state of a checkpoint and seal it again."""
    path = folder / "checkpoint.safetensors"
    tensors, about = run.read_checkpoint(path)
    change(tensors, about)
    text = json.dumps(about | {"tensors": seal.of_tensors(tensors)})
    save_file(tensors, path, {"state": text, "sha256": seal.of_bytes(text.encode())})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t, about: t.pop("ema.output"), "other tensors than expected"),
        (lambda t, about: t.update({"ema.input": torch.ones(1)}), "ema.input has another shape"),
        (lambda t, about: t.update({"ema.input": t["ema.input"].double()}), "ema.input has another shape or type"),
        (lambda t, about: t["ema.input"].fill_(torch.nan), "ema.input is not finite"),
        (lambda t, about: about.update(update=10**9), "update 1000000000 of 60"),
        (lambda t, about: about.update(update=40.0), "update 40.0 of 60"),
        (lambda t, about: about.update(update=25), "update 25 of 60"),
        (lambda t, about: about.update(seconds=-1), "after -1 seconds"),
        (lambda t, about: about.update(plateau=None), "the state of no stopping rule"),
        (lambda t, about: about["plateau"].update(stale=None), "stale is None"),
        (lambda t, about: about["plateau"].update(patience=1), "another stopping rule: patience is 1, not 8"),
        (lambda t, about: about.update(log=[3]), "lines that are no validations"),
        (lambda t, about: about.pop("update"), "'update'"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_name(fit, half, change, why):
    spoil_checkpoint(half, change)
    with pytest.raises(grcd.InputError, match=rf"(?s)checkpoint\.safetensors.*{re.escape(why)}"):
        fit(half)


def test_a_checkpoint_of_another_run_is_not_gone_on_with(fit, half, whole, tmp_path, monkeypatch):
    raise_at_call(monkeypatch, training.Update, "__call__", 30)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "other", seed=4)
    monkeypatch.undo()
    shutil.copy(tmp_path / "other" / "checkpoint.safetensors", half)
    with pytest.warns(InputWarning, match="is of another run"):
        fit(half)
    assert_same_run(half, whole)


# -- finished ------------------------------------------------------------------------------------------------------


def test_a_finished_run_is_read_and_not_trained_again(fit, whole, without_folder, monkeypatch):
    monkeypatch.setattr(training, "train", None)
    before = {path: path.read_bytes() for path in whole.iterdir()}
    again = fit(whole)
    assert (again.sample(5, seed=2) == without_folder.sample(5, seed=2)).all()
    assert again.result["updates"] == 60
    assert {path: path.read_bytes() for path in whole.iterdir()} == before


def test_a_run_from_before_a_setting_existed_goes_on_with_its_default(fit, half, whole):
    edit(half, lambda told: told["config"].pop("weight_decay"))
    fit(half)
    assert json.loads((half / "metrics.jsonl").read_text().splitlines()[-1])["update"] == lines(whole)[-1]["update"]
    edit(half, lambda told: told["config"].pop("seed"))  # 3 here, 0 by default
    with pytest.raises(grcd.InputError, match="seed is 0 there and 3 here"):
        fit(half)


def test_a_run_folder_changes_nothing_about_what_is_trained(whole, without_folder):
    loaded = grcd.load(whole)
    assert (loaded.sample(5, seed=2) == without_folder.sample(5, seed=2)).all()
    assert loaded.result | {"seconds": 0} == without_folder.result | {"seconds": 0}


# -- refused -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["copied", "half"])
def test_another_configuration_is_refused_with_its_differences(fit, request, state):
    folder = request.getfixturevalue(state)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(grcd.InputError) as caught:
        fit(folder, width=4, lr=0.1)
    for part in (str(folder), "width is 8 there and 4 here", "lr is 0.3 there and 0.1 here", "--force"):
        assert part in str(caught.value)
    assert "batch" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_other_data_and_another_graph_are_refused(tiny, quick, copied):
    with pytest.raises(grcd.InputError, match=r"data is [0-9a-f]{12} there and [0-9a-f]{12} here"):
        grcd.GRCD(tiny.graph, seed=3, **quick | {"lr": 0.3}).fit(tiny.train[1:], tiny.val, run=copied)
    with pytest.raises(grcd.InputError, match=r"data is [0-9a-f]{12} there") as caught:
        grcd.GRCD(tiny.graph, seed=3, **quick | {"lr": 0.3}).fit(tiny.train, tiny.val + 1e-9, run=copied)
    assert "graph" not in str(caught.value)
    heavier = grcd.Graph.from_adjacency(2 * tiny.graph.weights, tiny.graph.node_ids)
    with pytest.raises(grcd.InputError, match=r"graph is [0-9a-f]{12} there"):
        grcd.GRCD(heavier, seed=3, **quick | {"lr": 0.3}).fit(tiny.train, tiny.val, run=copied)


@pytest.mark.parametrize("state", ["copied", "half"])
def test_force_replaces_a_run(fit, request, tmp_path, state):
    folder = request.getfixturevalue(state)
    fit(folder, force=True, max_updates=20)
    fit(tmp_path / "anew", max_updates=20)
    assert_same_run(folder, tmp_path / "anew")


def test_force_replaces_a_run_and_leaves_other_files_where_they_are(fit, copied, whole):
    (copied / "notes.txt").write_text("mine")
    fit(copied, force=True)
    assert (copied / "notes.txt").read_text() == "mine"
    assert (copied / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_no_run_is_refused_and_left_alone(fit, tmp_path, force):
    (tmp_path / "thesis.tex").write_text("years of work")
    for path in (tmp_path, tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "run"):
        with pytest.raises(grcd.InputError) as caught:
            fit(path, force=force)
        assert str(path) in str(caught.value)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("thesis.tex", "years of work")]


def test_a_name_that_is_too_long_is_refused(fit, tmp_path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(grcd.InputError, match="File name too long"):
        fit(path)
    with pytest.raises(grcd.InputError, match="not a run folder"):
        grcd.load(path)
    assert not run.is_finished(path)


def test_an_empty_folder_is_taken(fit, tmp_path):
    (tmp_path / "empty").mkdir()
    fit(tmp_path / "empty", max_updates=20)
    assert grcd.load(tmp_path / "empty").result["updates"] == 20


def test_a_run_killed_while_its_first_file_was_being_written_can_be_started_again(fit, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.x1y2z3.json").write_text('{"form')  # as files.whole names them
    model = fit(tmp_path / "run", max_updates=20)
    assert grcd.load(tmp_path / "run").result == model.result
    assert model.result["updates"] == 20


@pytest.mark.parametrize("tensor", ["reference.v", "reference.means", "network.output"])
def test_a_finished_run_that_lacks_a_tensor_is_refused_by_fit(fit, copied, tensor):
    tensors = load_file(copied / "model.safetensors")
    del tensors[tensor]
    save_file(tensors, copied / "model.safetensors")
    with pytest.raises(grcd.InputError, match="copied"):
        fit(copied)


# -- sealed ------------------------------------------------------------------------------------------------------------


def flipped(path, place):
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 4
    path.write_bytes(data)


def refusal(folder, work, expected):
    """What is said of a folder that is not as it was; None if it gives what is expected."""
    try:
        assert np.array_equal(work(), expected)
    except grcd.InputError as error:
        return str(error)


def test_a_flipped_bit_anywhere_in_a_finished_run_is_refused_by_name_or_changes_nothing(copied, whole):
    saved = {name: (whole / name).read_bytes() for name in ("model.safetensors", "run.json", "metrics.jsonl")}
    expected = grcd.load(whole).sample(2, nfe=1)
    for name, data in saved.items():
        for place in np.linspace(0, 0.9999, 40):
            flipped(copied / name, place)
            message = refusal(copied, lambda: (run.read_log(copied), grcd.load(copied).sample(2, nfe=1))[1], expected)
            if message is None:
                assert manifest(copied) == manifest(whole)  # white space
            else:
                assert name in message or "update grcd" in message
            (copied / name).write_bytes(data)


def test_a_flipped_bit_anywhere_in_a_checkpoint_is_refused_by_name(fit, half):
    path = half / "checkpoint.safetensors"
    data = path.read_bytes()
    for place in np.linspace(0, 0.9999, 40):
        flipped(path, place)
        with pytest.raises(grcd.InputError, match=r"checkpoint\.safetensors"):
            run.read_checkpoint(path)
        path.write_bytes(data)


def test_tensors_of_another_run_are_refused_by_name(fit, copied, tmp_path):
    fit(tmp_path / "other", seed=4)
    shutil.copy(tmp_path / "other" / "model.safetensors", copied)
    with pytest.raises(grcd.InputError, match=r"model\.safetensors.*is not what was written"):
        grcd.load(copied)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_even_if_sealed(copied, value):
    edit_tensors(copied, lambda t: t["network.input"].view(-1)[:1].fill_(value))
    with pytest.raises(grcd.InputError, match=r"model\.safetensors.*network.input is not finite"):
        grcd.load(copied)


def test_a_run_of_format_1_is_read_with_a_note(copied, whole):
    unsealed(copied)
    with pytest.warns(InputWarning, match="without checksums"):
        old = grcd.load(copied)
    assert np.array_equal(old.sample(3), grcd.load(whole).sample(3))


def test_a_run_of_format_1_goes_on_and_is_sealed_in_the_end(fit, half, whole):
    path = half / "checkpoint.safetensors"
    tensors, about = run.read_checkpoint(path)
    save_file(tensors, path, {"state": json.dumps({key: about[key] for key in ("update", "seconds", "plateau")})})
    unsealed(half)
    with pytest.warns(InputWarning, match="without checksums"):
        fit(half)
    assert_same_run(half, whole)


def paths(entry, above=()):
    """To every entry of nested ones."""
    for key, inner in entry.items():
        yield (*above, key)
        if isinstance(inner, dict):
            yield from paths(inner, (*above, key))


@pytest.mark.filterwarnings("ignore:.*without checksums")
def test_wrong_types_anywhere_in_a_manifest_without_seals_are_errors_in_three_parts_or_change_nothing(copied, whole):
    unsealed(copied)
    told, expected = record(copied), grcd.load(whole).sample(2, nfe=4)
    refused = set()
    for path in paths(told):
        for value in (None, "x", -1.5, [], 10**400):
            changed = copy.deepcopy(told)
            functools.reduce(dict.__getitem__, path[:-1], changed)[path[-1]] = value
            (copied / "run.json").write_text(json.dumps(changed))
            message = refusal(copied, lambda: grcd.load(copied).sample(2, nfe=4), expected)
            if message is not None:
                assert re.fullmatch(r"got .*\nexpected .*\nto fix: .*", message), (path, value)
                refused.add((*path, str(value)))
    for path in (("status", "x"), ("config", "width", "-1.5"), ("normalizer", "mean", "[]"), ("node_ids", "None")):
        assert path in refused
    assert ("result", "plan", "4", "solver", "[]") in refused


def test_a_checkpoint_that_does_not_say_whose_it_is_belongs_to_a_run_of_format_1_only(fit, half, whole):
    path = half / "checkpoint.safetensors"
    tensors, about = run.read_checkpoint(path)
    save_file(tensors, path, {"state": json.dumps({key: about[key] for key in ("update", "seconds", "plateau")})})
    with pytest.warns(InputWarning, match="is of another run"):
        fit(half)
    assert_same_run(half, whole)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, '{"format": Infinity}', '{"format": 1e999}', "", "null"]
)
def test_a_manifest_that_is_no_record_is_refused_by_name(copied, text):
    (copied / "run.json").write_text(text)
    with pytest.raises(grcd.InputError, match=r"run\.json, which is damaged"):
        grcd.load(copied)


# -- one process at a time ---------------------------------------------------------------------------------------------


def test_a_second_process_in_a_run_folder_is_told_who_holds_it(fit, half, whole):
    with run.Run(half, record(half)):
        before = (half / "metrics.jsonl").read_bytes()
        for force in (False, True):
            with pytest.raises(grcd.InputError, match=rf"another process is at work \(process {os.getpid()} on "):
                fit(half, force=force)
        assert (half / "metrics.jsonl").read_bytes() == before
    fit(half)
    assert_same_run(half, whole)


def test_a_lock_dies_with_its_process(tmp_path):
    code = """
import sys, time
from pathlib import Path
from grcd.runs.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(grcd.InputError, match=f"process {holder.pid} on "):
            lock.Lock(tmp_path)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    lock.Lock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


# -- killed while it replaces a run ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["copied", "half"])
@pytest.mark.parametrize("number", range(1, 4))
def test_a_force_that_is_killed_leaves_a_folder_that_can_be_used_again(
    fit, request, tmp_path, monkeypatch, state, number
):
    folder = request.getfixturevalue(state)
    raise_at_call(monkeypatch, Path, "unlink", number, KeyboardInterrupt)
    with suppress(KeyboardInterrupt):
        fit(folder, force=True, seed=4, max_updates=20)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of a checkpoint that is another run's
        fit(folder, seed=4, max_updates=20)
    fit(tmp_path / "anew", seed=4, max_updates=20)
    assert_same_run(folder, tmp_path / "anew")


def test_what_a_killed_process_left_in_a_finished_run_is_removed_when_it_is_found(fit, copied, whole):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in ("checkpoint.safetensors", lock.NAME, f".run.json.{dead.pid}-{files._machine()}-x1.json"):
        (copied / name).write_text("")
    fit(copied)
    assert_same_run(copied, whole)


def test_a_log_that_is_gone_is_missed(copied, whole):
    assert [line["update"] for line in run.read_log(whole)] == [20, 40, 60]
    (copied / "metrics.jsonl").unlink()
    with pytest.warns(InputWarning, match=r"metrics\.jsonl is gone"):
        assert run.read_log(copied) == []


def test_what_a_run_without_its_manifest_left_is_replaced_on_request_only(fit, copied, whole):
    (copied / "run.json").unlink()
    with pytest.raises(grcd.InputError, match=r"(?s)lacks its run\.json.*--force"):
        fit(copied)
    fit(copied, force=True)
    assert_same_run(copied, whole)


# -- a full disk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 4], ids=["at a checkpoint", "at the model"])
def test_a_disk_that_is_full_is_an_input_error_and_the_run_can_go_on(fit, whole, tmp_path, monkeypatch, number):
    full = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    raise_at_call(monkeypatch, run, "save_file", number, error=full)
    with pytest.raises(grcd.InputError, match="No space left"):
        fit(tmp_path / "run")
    monkeypatch.undo()
    fit(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole)


def test_a_disk_that_is_full_when_the_log_is_written_is_an_input_error(fit, tmp_path, monkeypatch):
    real = Path.open

    def full(path, mode="r", *args, **kwargs):
        if path.name == "metrics.jsonl" and mode == "a":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(grcd.InputError, match=r"metrics\.jsonl"):
        fit(tmp_path / "run")
