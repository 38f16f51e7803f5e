"""The benchmark on the command line, and as its page shows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import refused

from grcd.data.formats.exported import write_dataset

ROOT = Path(__file__).parents[2]


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
    assert "3 cells, 0 computed now" in here("bench", "run", "quick", *choices, "--nfe", "8,16", cwd=tmp_path).stdout
    assert "--nfe few" in refused(here("bench", "run", "quick", "--nfe", "few", cwd=tmp_path))
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
