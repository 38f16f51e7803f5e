"""The tutorial works as it stands, from a fresh folder, with a few dozen updates in place of its thousands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/tutorial.md").read_text()
QUICK = {"2000": "40", "1000": "50"}


def blocks(kind):
    found = re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)
    for long, short in QUICK.items():
        assert long in TEXT
        found = [block.replace(long, short) for block in found]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the two files, and a `grcd` command that is this one."""
    path = tmp_path_factory.mktemp("tutorial")
    (path / "examples").symlink_to(ROOT / "examples")
    (path / "bin").mkdir()
    command = path / "bin/grcd"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from grcd.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    return path


def run(folder, *command):
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_every_command(folder):
    results = [run(folder, "sh", "-ec", block) for block in blocks("sh")]
    assert [result.stderr for result in results if result.returncode] == []
    assert len(results) == 4
    inspected, trained, _, evaluated = (result.stdout for result in results)
    assert "5 nearest neighbours of positions (great-circle" in inspected
    assert (folder / "look.png").read_bytes().startswith(b"\x89PNG")
    assert "finished" in trained
    assert "trained on what is there" in results[1].stderr
    assert "floor" in evaluated
    samples, readings = pd.read_csv(folder / "new.csv"), pd.read_csv(ROOT / "examples/readings.csv").iloc[:, 1:]
    assert sorted(samples.columns) == sorted(readings.columns)
    assert np.isfinite(samples).all(axis=None)
    assert abs(samples.mean() - readings[:1008].mean()).max() < 2.0  # degrees


def test_the_python_of_it(folder):
    (block,) = blocks("python")
    result = run(folder, sys.executable, "-W", "ignore::UserWarning", "-c", block)
    assert result.returncode == 0, result.stderr
    assert "ammd" in result.stdout
    assert "great-circle" in result.stdout


def test_the_examples_are_what_their_script_makes(tmp_path, monkeypatch):
    source = (ROOT / "examples/make.py").read_text()
    namespace = {"__file__": str(tmp_path / "make.py"), "__name__": "made"}
    exec(compile(source, "make.py", "exec"), namespace)
    namespace["main"]()
    for name in ("readings.csv", "stations.csv"):
        made, kept = pd.read_csv(tmp_path / name), pd.read_csv(ROOT / "examples" / name)
        assert made.columns.tolist() == kept.columns.tolist()
        assert made.iloc[:, 0].tolist() == kept.iloc[:, 0].tolist()
        assert np.allclose(
            made.iloc[:, 1:], kept.iloc[:, 1:], atol=0.11, equal_nan=True
        )  # a tenth: rounding of libraries
