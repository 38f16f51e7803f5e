"""The command line, as a user meets it: in a process of its own, by exit status, output and files."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from commands import QUICK, refused, run

import grcd
from grcd.data.formats.exported import write_dataset
from grcd.data.formats.signals import read_signals


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny):
    """A dataset file and a run trained on it."""
    path = tmp_path_factory.mktemp("cli")
    write_dataset(path / "tiny.npz", tiny)
    result = run("train", "--data", "tiny.npz", "--max-updates", 40, "--seed", 5, *QUICK, cwd=path)
    assert result.returncode == 0, result.stderr
    return path


def test_help_needs_no_torch():
    code = "import sys, grcd.cli.commands; print('torch' in sys.modules, 'numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.stdout == "False False\n"
    said = run("--help").stdout
    for command in ("demo", "data", "train", "sample", "evaluate"):
        assert command in said


def test_a_command_loads_nothing_slow_that_it_does_not_use():
    """A compiler and statistics take longer to load than most commands work."""
    code = """
import sys, torch, grcd.model
from grcd.core.device import arithmetic
with arithmetic():
    print(torch.are_deterministic_algorithms_enabled())
slow = {"scipy.stats", "scipy.optimize", "sklearn", "pandas", "matplotlib"}
slow |= set() if torch.cuda.is_available() else {"torch._inductor", "torch._dynamo"}  # a GPU's kernels are compiled
print(sorted(slow & set(sys.modules)), torch.are_deterministic_algorithms_enabled())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.stdout == "True\n[] False\n", result.stderr


@pytest.mark.parametrize(("setting", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_the_command_lets_threads_sleep_and_an_import_changes_no_environment(setting, policy):
    code = """
import os, grcd
grcd.InputError
print(os.environ.get("OMP_WAIT_POLICY"))
from grcd import __main__, cli
cli.main = lambda: print(os.environ["OMP_WAIT_POLICY"])
__main__.main()
"""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"} | setting
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.split() == [str(setting.get("OMP_WAIT_POLICY")), policy]


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_closed_streams_are_no_reason_to_fail(tmp_path, closed):
    command = f"{sys.executable} -m grcd data export sbm-c1 --out x.npz {closed}"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "x.npz").exists()


def test_train_sample_evaluate_in_the_datas_own_units(folder, here, tiny):
    assert (folder / "runs/tiny-grcd-s5/model.safetensors").exists()
    result = run("sample", "runs/tiny-grcd-s5", "-n", 30, "--nfe", 3, "--seed", 2, "--out", "new/x.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    values, ids = (table := read_signals(folder / "new/x.csv")).values, table.node_ids
    model = grcd.load(folder / "runs/tiny-grcd-s5", device="cpu")
    assert tuple(ids) == tiny.graph.node_ids
    assert values == pytest.approx(model.sample(30, nfe=3, seed=2), rel=1e-6)  # another process, other threads

    result = run("evaluate", "new/x.csv", "--data", "tiny.npz", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    scores = json.loads(result.stdout)
    assert scores == grcd.evaluate(values, tiny).to_dict()
    assert set(scores) == {"ammd", "quadratic_variation", "spectral_centroid", "degree_correlation", "n", "floor"}
    assert set(scores["floor"]) == set(scores) - {"floor"}

    table = here("evaluate", "new/x.csv", "--data", "tiny.npz", "--split", "val", cwd=folder).stdout
    assert f"{grcd.evaluate(values, tiny, 'val').ammd:.4f}" in table


def test_how_to_sample_can_be_told_and_is_the_plans_choice_otherwise(folder, here):
    model = grcd.load(folder / "runs/tiny-grcd-s5", device="cpu")
    assert set(model.plan) == {1, 2, 4}
    told = [{}, {"solver": "heun", "start": 0.6, "grid": "entropy"}, {"solver": "heun", "rho": 2.0}]
    for choices in told:
        given = [part for key, value in choices.items() for part in (f"--{key}", value)]
        result = here("sample", "runs/tiny-grcd-s5", "-n", 9, "--nfe", 4, "--out", "told.npz", *given, cwd=folder)
        assert result.returncode == 0, result.stderr
        with np.load(folder / "told.npz") as file:
            found = file["signals"]
        (folder / "told.npz").unlink()
        assert found == pytest.approx(model.sample(9, nfe=4, **choices), rel=1e-6)
        for left_out in choices:  # each of them matters
            others = {key: value for key, value in choices.items() if key != left_out}
            assert np.abs(found - model.sample(9, nfe=4, **others)).max() > 1e-3


def test_a_finished_run_says_so_and_is_left_alone(folder, here):
    before = (folder / "runs/tiny-grcd-s5/model.safetensors").stat().st_mtime_ns
    result = here("train", "--data", "tiny.npz", "--max-updates", 40, "--seed", 5, *QUICK, cwd=folder)
    assert (result.returncode, "finished already" in result.stdout) == (0, True)
    assert (folder / "runs/tiny-grcd-s5/model.safetensors").stat().st_mtime_ns == before
    message = refused(here("train", "--data", "tiny.npz", "--max-updates", 60, "--seed", 5, *QUICK, cwd=folder))
    assert "max_updates is 40 there and 60 here" in message


# It waits in the middle, after its second validation: else it might end before the interrupt comes.
WAITING = """
import time
from grcd.__main__ import main
from grcd.training.loop import Update
fast, left = Update.__call__, [*46 * [0], *99 * [600]]
Update.__call__ = lambda *given: (time.sleep(left.pop(0)), fast(*given))[1]
main()
"""


def test_an_interrupt_leaves_with_130_and_the_same_command_goes_on(folder, tmp_path):
    command = ["train", "--data", folder / "tiny.npz", "--method", "grcd-rho3", "--max-updates", 100]
    command = [*map(str, command), "--set", "patience=1000", *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, *command, "--out", "stopped"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    log = tmp_path / "stopped/metrics.jsonl"
    while not (log.exists() and log.read_text().count("\n") >= 2):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "The same command goes on from here" in stderr
    assert "Traceback" not in stderr
    assert run(*command, "--out", "stopped", cwd=tmp_path).returncode == 0
    assert run(*command, "--out", "whole", cwd=tmp_path).returncode == 0
    stopped, whole = (tmp_path / name / "model.safetensors" for name in ("stopped", "whole"))
    assert stopped.read_bytes() == whole.read_bytes()


def test_own_files_with_gaps_from_inspection_to_score(tmp_path, here, tiny):
    frame = pd.DataFrame(np.concatenate([tiny.train, tiny.test]), columns=tiny.graph.node_ids).clip(lower=1.0)
    frame.iloc[5:9, 2] = 0.0
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=len(frame), freq="h"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    edges = [
        (tiny.graph.node_ids[i], tiny.graph.node_ids[j]) for i, j in zip(*tiny.graph.weights.nonzero(), strict=True)
    ]
    pd.DataFrame(edges, columns=["source", "target"]).to_csv(tmp_path / "g.csv", index=False)
    where = ["x.csv", "--graph", "g.csv", "--missing", 0, "--unit", "mph"]
    found = json.loads(here("data", "inspect", *where, "--json", cwd=tmp_path).stdout)
    assert found["signals"]["missing"] == pytest.approx(4 / 600)
    assert found["graph"]["pairs"] == 7
    moments = ["--window", 1, "--max-updates", 20]
    trained = here("train", "--data", *where, *moments, "--out", "run", *QUICK, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "note: 0.67% of the readings are missing" in trained.stderr
    assert json.loads((tmp_path / "run/run.json").read_text())["data"]["made"]["markers"] == [0.0]
    filled = here("impute", "run", "--observed", "x.csv", "--out", "f.csv", "-n", 3, cwd=tmp_path)
    assert "f.csv: 4 gaps in 100 signals" in filled.stdout, filled.stderr  # a marker of training marks gaps here too
    scored = here("score", "run", "--signals", "x.csv", cwd=tmp_path)
    assert "4 missing readings" in refused(scored)
    assert here("sample", "run", "-n", 20, "--out", "y.npz", cwd=tmp_path).returncode == 0
    with np.load(tmp_path / "y.npz") as file:
        assert str(file["unit"]) == "mph"
    result = here("evaluate", "y.npz", "--data", *where, "--fill", "linear", "--observed-only", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["n"] == 20


def test_exported_built_in_data_are_the_data(tmp_path, here):
    assert here("data", "export", "sbm-c4", "--out", "d.npz", cwd=tmp_path).returncode == 0
    data = grcd.load_dataset("sbm-c4")
    with np.load(tmp_path / "d.npz") as file:
        assert np.array_equal(file["test"], data.test)
        assert np.array_equal(file["adjacency"], data.graph.weights.toarray())
    assert "exists already" in refused(here("data", "export", "sbm-c4", "--out", "d.npz", cwd=tmp_path))
    listed = here("data", "list", cwd=tmp_path).stdout
    assert all(name in listed for name in ("sbm-c1", "sbm-c4", "sbm-c16"))


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        ("trian", ["command 'trian'", "demo, train, sample", "did you mean 'train'?"]),
        ("train --dta x", ["option '--dta'", "--max-updates", "did you mean '--data'?"]),
        ("train --data sbm-c61", ["dataset 'sbm-c61'", "sbm-c1, sbm-c4, sbm-c16", "did you mean"]),
        ("train --data sbm-c16 --method grdc", ["method 'grdc'", "grcd-rho3", "did you mean 'grcd'?"]),
        ("train --data sbm-c16 --set widht=4", ["setting 'widht'", "did you mean 'width'?"]),
        ("train --data sbm-c16 --set width", ["--set width", "key=value"]),
        ("train --data sbm-c16 --set width=wide", ["width = 'wide'", "a whole number"]),
        ("train --data sbm-c16 --device tpu", ["device 'tpu'", "cpu"]),
        ("train --data sbm-c16 --max-updates many", ["--max-updates"]),
        ("train --data sbm-c16 --graph tiny.npz", ["built-in"]),
        ("train --data nowhere.csv", ["nowhere.csv"]),
        ("train", ["--data"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --solver huen", ["solver 'huen'", "did you mean 'heun'?"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --nfe 0", ["nfe = 0"]),
        ("sample runs/tiny-grcd-s5 --out x.npz -n 0", ["n = 0"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --rho -1", ["rho = -1"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --grid 2,1,3", ["descending"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --grid cosine", ["grid 'cosine'", "power, log-snr, entropy"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --start 2", ["start = 2.0", "above 0.02 and at most 1"]),
        ("sample runs/tiny-grcd-s5 --out x.npz --precision half", ["precision 'half'", "float32, tf32, bfloat16"]),
        ("sample runs/tiny-grcd-s5 --out x.txt", ["'.txt'", ".npz, .csv"]),
        ("sample runs/tiny-grcd-s5 --out tiny.npz", ["exists already", "--force"]),
        ("sample runs/tiny-grcd-s5 --out tiny.npz/x.npz", ["tiny.npz"]),
        ("sample runs/nothing --out x.npz", ["runs/nothing", "not a run folder", "runs/tiny-grcd-s5"]),
        ("evaluate tiny.npz --data sbm-c16", ["`signals`"]),
        ("evaluate other.npy --data tiny.npz", ["shape (4, 9)", "(samples, 6)"]),
        ("evaluate gaps.npy --data tiny.npz", ["1 NaN or infinite"]),
        ("evaluate one.npy --data tiny.npz", ["1 sample "]),
        ("evaluate good.npy --data tiny.npz --split tset", ["split 'tset'", "did you mean 'test'?"]),
        ("train --data good.npy", ["without a graph", "--graph"]),
        ("train --data good.npy --graph tiny.npz --fill spline", ["fill policy 'spline'", "forward-backward, linear"]),
        ("train --data gaps.csv --graph tiny.npz --cap many", ["--cap many", "20000,3000,5000"]),
        ("train --data gaps.csv --graph tiny.npz --missing none", ["--missing"]),
        ("train --data gaps.csv --graph tiny.npz --neighbours 3", ["k"]),
        ("train --data text.csv --graph tiny.npz", ["'x' in row 1, column 'b'"]),
        ("train --data metr-la --data-dir .", ["grcd data get metr-la"]),
        ("data get metr-al", ["'metr-al'", "did you mean 'metr-la'?"]),
        ("data get molene --data-dir new --from nothing.mat", ["nothing.mat"]),
        ("data inspect nothing.csv", ["nothing.csv"]),
        ("data inspect good.npy gaps.csv --picture x.png", ["--picture for 2 files"]),
        ("data inspect good.npy --graph tiny.npz --picture tiny.npz", ["exists already"]),
        ("data export good.npy --graph tiny.npz --out x.csv", ["ends in .npz"]),
        ("train --data still.npy --graph tiny.npz", ["never change"]),
    ],
)
def test_what_the_user_can_correct(folder, here, monkeypatch, args, parts):
    x = np.random.RandomState(1).standard_normal((40, 6))
    for name, values in {
        "good": x,
        "other": np.ones((4, 9)),
        "gaps": np.where(np.arange(240).reshape(40, 6) == 7, np.nan, x),
        "one": x[:1],
        "still": np.where(np.arange(6) == 2, 1.0, x),
    }.items():
        np.save(folder / f"{name}.npy", values)
    (folder / "text.csv").write_text("a,b\n1,x\n2,3\n")
    (folder / "gaps.csv").write_text("a,b\n1,\n2,3\n")
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    monkeypatch.setenv("GRCD_DATA", "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "nowhere")
    message = refused(here(*args.split(), cwd=folder))
    assert [part for part in parts if part not in message] == []
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before  # nothing half-written


@pytest.mark.parametrize("args", ["trian", "evaluate other.npy --data tiny.npz"], ids=["parsing", "at work"])
def test_a_process_of_its_own_says_the_same_and_exits_with_2(folder, here, args):
    np.save(folder / "other.npy", np.ones((4, 9)))
    alone, inside = run(*args.split(), cwd=folder), here(*args.split(), cwd=folder)
    assert refused(alone) == refused(inside)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(folder, here, tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refused(here("sample", "runs/tiny-grcd-s5", "--out", tmp_path / "x.npz", cwd=folder))


def test_nan_marks_a_gap_anyway_and_infinity_marks_none(folder, here):
    assert "a finite number" in refused(here("train", "--data", "tiny.npz", "--missing", "inf", cwd=folder))
    np.savetxt(folder / "nan.csv", [[1, 2], [3, 4], [5, 1], [0, 3]], delimiter=",", header="a,b", comments="")
    done = here("data", "inspect", "nan.csv", "--missing", "nan", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "")  # for there is no graph
    assert "x no graph was given" in done.stdout


def test_a_name_that_standard_output_cannot_show_never_ends_a_command(tmp_path):
    (tmp_path / "größe.csv").write_text("time,Ελλάδα,b\n1,,2\n2,3,4\n3,5,1\n", encoding="utf-8")
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    plain = run("data", "inspect", "größe.csv", cwd=tmp_path, env=ascii_only)
    assert (plain.returncode, plain.stderr) == (2, "")  # for there is no graph
    assert r"most at \u0395\u03bb" in plain.stdout
    found = json.loads(run("data", "inspect", "größe.csv", "--json", cwd=tmp_path, env=ascii_only).stdout)
    assert found["signals"]["missing_most_at"] == {"Ελλάδα": pytest.approx(1 / 3)}
    assert "er.csv, which is no file" in refused(run("data", "inspect", "größer.csv", cwd=tmp_path, env=ascii_only))
