"""Training on two processes against training on one: torchrun once, for all that is asked of it."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import two_processes
from laws import close
from safetensors.torch import load_file
from two_processes import MOMENTS, WINDOWS

NODES = ["a", "b", "c", "d"]


def table(rows, seed, missing=0.0):
    random = np.random.RandomState(seed)
    x = random.standard_normal((rows, 4)) @ random.standard_normal((4, 4)) + 3.0 * random.standard_normal((rows, 1))
    x = np.cumsum(x, axis=0) * 0.2 + x
    x[random.random_sample(x.shape) < missing] = np.nan
    times = pd.Series(np.datetime64("2024-01-01", "ns") + np.arange(rows) * np.timedelta64(1, "h"), name="time")
    return pd.concat([times, pd.DataFrame(x.round(3), columns=NODES)], axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two processes have done here what `two_processes` says, and one process the same."""
    path = tmp_path_factory.mktemp("parallel")
    pd.DataFrame(zip(NODES, NODES[1:] + NODES[:1], strict=True), columns=["source", "target"]).to_csv(
        path / "g.csv", index=False
    )
    for name, (seed, missing) in {"gaps": (0, 0.05), "rows": (1, 0.03), "other-0": (0, 0), "other-1": (2, 0)}.items():
        table(120, seed, missing).to_csv(path / f"{name}.csv", index=False)
    alone(path, *MOMENTS, "--out", "begun", last=two_processes.LAST)
    script = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", two_processes.__file__, path]
    job = subprocess.run(script, capture_output=True, text=True, timeout=120, env=os.environ | {"OMP_NUM_THREADS": "1"})
    (path / "job").write_text(f"{job.returncode}\n{job.stderr}")
    alone(path, *MOMENTS, "--out", "one")
    alone(path, *WINDOWS, "--out", "windows-one")
    return path


def alone(path, *args, last=None):
    """A command in this process, which keeps the states of its training; interrupted after the ``last`` update."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(path)
        patch.setattr(sys, "argv", [])
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        warnings.simplefilter("ignore")
        two_processes.keep_states(path, patch.setattr)
        if last is not None:
            two_processes.stop_after(last, two_processes.interrupted, patch.setattr)
        assert two_processes.command(*args) == (0 if last is None else 130)


def said(folder, rank):
    """What a process said, command by command."""
    return Path(folder / f"said-{rank}").read_text().split("status ")


def logged(folder, run):
    return [json.loads(line) for line in (folder / run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("one", "two", "updates"), [("one", "two", 15), ("windows-one", "windows-two", 8)])
def test_two_processes_end_with_the_weights_of_one(folder, one, two, updates):
    """In all that training changes: weights, averages, moments of the optimisers; and the losses are those of one."""
    expected, actual = (load_file(folder / f"{run}-{updates}.safetensors") for run in (one, two))
    assert {*actual} == {*expected}
    for name in expected:
        close(actual[name], expected[name], 1e-5)
    first = load_file(folder / f"{one}-{updates // 3 if updates == 15 else 4}.safetensors")
    assert any((first[name] - expected[name]).abs().max() > 1e-3 for name in expected if name.startswith("network"))
    for key in ("train", "val"):
        close([record[key] for record in logged(folder, two)], [record[key] for record in logged(folder, one)], 1e-6)


def test_the_first_process_speaks_for_both_and_a_finished_run_is_found_by_both(folder):
    first, second = said(folder, 0), said(folder, 1)
    assert "two: finished" in first[0]
    assert "two: has finished already" in first[2]
    assert [part[0] for part in first[1:4]] == [part[0] for part in second[1:4]] == ["0", "0", "0"]
    assert "finished" not in "".join(second[:3])
    assert "note" not in "".join(second[:3])


def test_processes_with_different_data_are_refused_by_both(folder):
    for rank in (0, 1):
        text = said(folder, rank)[3]
        assert "got processes 0 and 1 of a training that have different data" in text
        assert all(part in text for part in ("\nexpected the same data", "\nto fix: give every machine the same files"))
        assert said(folder, rank)[4].startswith("2")
    assert not (folder / "other").exists()


def test_a_batch_with_fewer_rows_than_processes_is_refused(folder):
    assert "got 2 processes for a batch of 1" in said(folder, 0)[4]
    assert said(folder, 0)[5].startswith("2")


def test_two_processes_go_on_where_one_was(folder):
    assert said(folder, 0)[6].startswith("0")
    assert [record["update"] for record in logged(folder, "begun")] == [5, 10, 15]
    same_state(folder, "begun")


def test_what_a_budget_of_time_decides_is_decided_by_the_first_process(folder):
    assert [said(folder, rank)[7][0] for rank in (0, 1)] == ["0", "0"]
    assert "for 0.03 minutes on this machine" in said(folder, 0)[6]


def same_state(folder, run):
    expected, actual = (load_file(folder / f"{name}-15.safetensors") for name in ("one", run))
    for name in expected:
        close(actual[name], expected[name], 1e-5)


def test_a_killed_process_ends_the_job_and_one_process_goes_on_where_two_were(folder):
    status, _, errors = (folder / "job").read_text().partition("\n")
    assert int(status) != 0, errors
    assert "SIGKILL" in errors
    assert "of which another one has ended" in said(folder, 0)[7]
    assert [record["update"] for record in logged(folder, "killed")] == [5]  # of 15, and 7 were done
    assert sorted(path.name for path in (folder / "killed").iterdir()) == [
        "checkpoint.safetensors",
        "metrics.jsonl",
        "run.json",
    ]
    alone(folder, *MOMENTS, "--out", "killed")
    assert [record["update"] for record in logged(folder, "killed")] == [5, 10, 15]
    same_state(folder, "killed")
