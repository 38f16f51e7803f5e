"""What is attacked: a path of five nodes, some signals on it, and trained runs, all tiny; and what commands do with
them undisturbed, which is what they are compared with.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from . import traps
from .child import command, learn
from .verdict import End

NODES = ["a", "b", "c", "d", "é"]
DATA = ["--data", "signals.csv", "--graph", "graph.csv"]
SMALL = ["--max-updates", "6", "--set", "width=4", "--set", "blocks=1", "--set", "time_dim=4", "--set", "batch=8"]
SMALL += ["--set", "validate_every=2", "--device", "cpu"]
TRAIN = ["train", *DATA, "--out", "run", *SMALL, "--seed", "1"]
OTHER = [*TRAIN[:-1], "2"]
SAMPLE = ["sample", "run", "--out", "samples.csv", "-n", "12"]
IMPUTE = ["impute", "run", "--observed", "gaps.csv", "--out", "filled.csv", "-n", "4", "--nfe", "4"]
REPORT = ["report", "run", "-n", "20"]
SCORE = ["score", "run", "--signals", "signals.csv", "--out", "scores.csv", "--nodes"]
AUGMENT = ["augment", "run", "--signals", "signals.csv", "--out", "varied.csv"]
EXPORT = ["data", "export", "signals.csv", "--graph", "graph.csv", "--out", "export.npz"]
INSPECT = ["data", "inspect", "signals.csv", "--graph", "graph.csv"]
EVALUATE = ["evaluate", "signals.csv", *DATA]
MANIFEST, MODEL, METRICS, CHECKPOINT = "run.json", "model.safetensors", "metrics.jsonl", "checkpoint.safetensors"
FILES = (MANIFEST, MODEL, METRICS, CHECKPOINT)
TOLD = ("config", "data", "graph", "node_ids", "normalizer", "status")  # of a manifest, and its result


# What is interrupted and killed: on which run, which command.
SCENARIOS: dict[str, tuple[str | None, list[str]]] = {
    "train": (None, TRAIN),
    "resume": ("half", TRAIN),
    "train again": ("finished", TRAIN),
    "train --force": ("finished", [*TRAIN, "--force"]),
    "train --force over another seed": ("other-finished", [*TRAIN, "--force"]),
    "train --force over half of another seed": ("other-half", [*TRAIN, "--force"]),
    "sample": ("finished", SAMPLE),
    "sample .npz": ("finished", [*SAMPLE[:3], "samples.npz"]),
    "impute": ("finished", IMPUTE),
    "impute --ensemble .npz": ("finished", [*IMPUTE[:5], "filled.npz", "--ensemble", "-n", "4"]),
    "impute --ensemble .parquet": ("finished", [*IMPUTE[:5], "filled.parquet", "--ensemble", "-n", "4"]),
    "impute --ensemble .nc": ("finished", [*IMPUTE[:5], "filled.nc", "--ensemble", "-n", "4"]),
    "report": ("finished", REPORT),
    "score": ("finished", SCORE),
    "augment": ("finished", AUGMENT),
    "export": (None, EXPORT),
}


class Undisturbed(NamedTuple):
    """What a scenario does when nothing happens to it."""

    said: str
    left: dict[str, str]  # files and their sums
    operations: int  # on files
    calls: int  # of functions


class Stage:
    """The folder with data and runs: `finished` and `half` (killed while training) with seed 1, `other-` with 2."""

    def __init__(self, path: Path):
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        write_data(path)
        for args in (TRAIN, SAMPLE, IMPUTE, REPORT, SCORE, AUGMENT, EXPORT, INSPECT, EVALUATE):
            end = learn(args, path)
            if end.status != 0:
                raise SystemExit(f"undisturbed, and yet:\n{end}")
        for name in ("samples.csv", "filled.csv", "scores.csv", "varied.csv", "export.npz", "run/report.html"):
            (path / name).unlink()
        (path / "run").rename(path / "finished")
        for args, finished, half in ((TRAIN, None, "half"), (OTHER, "other-finished", "other-half")):
            if finished:
                command(args, path)
                (path / "run").rename(path / finished)
            self._killed(args, path / half)
        self.undisturbed = {name: self._undisturbed(name) for name in SCENARIOS}
        self.samples = [self._samples(run) for run in ("finished", "other-finished")]

    def _samples(self, run: str) -> str:
        folder = self.put(self.path / "undisturbed", run)
        command(SAMPLE, folder)
        found = summed(folder / "samples.csv")
        shutil.rmtree(folder)
        return found

    def _undisturbed(self, name: str) -> Undisturbed:
        logs = [self.path / "operations", self.path / "calls"]
        for log, noting in zip(logs, (traps.operations_into, traps.calls_into), strict=True):
            log.write_text("")
            folder = self.put(self.path / "undisturbed", SCENARIOS[name][0])
            end = command(SCENARIOS[name][1], folder, noting(log))
            if end.status != 0:
                raise SystemExit(f"undisturbed, and yet:\n{end}")
            left = look(folder)
            shutil.rmtree(folder)
        return Undisturbed(said(end), left, len(logs[0].read_text().splitlines()), int(logs[1].read_text()))

    def _killed(self, args: list[str], half: Path) -> None:
        """A run that was killed between its second and its third validation."""
        found = self.path / "run"
        for number in range(2, 12):
            shutil.rmtree(found, ignore_errors=True)
            command(args, self.path, traps.at_file(METRICS, number))
            lines = (found / METRICS).read_text().splitlines() if (found / METRICS).exists() else []
            if len(lines) == 2 and (found / CHECKPOINT).exists() and not (found / MODEL).exists():
                found.rename(half)
                return
        raise SystemExit("no way to kill a run after its second validation")

    def put(self, folder: Path, run: str | None = None) -> Path:
        """The data, and a run as `run`, in a folder; the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("signals.csv", "gaps.csv", "graph.csv"):
            shutil.copy(self.path / name, folder / name)
        if run is not None:
            shutil.copytree(self.path / run, folder / "run")
        return folder


def write_data(folder: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, len(NODES))).cumsum(axis=1)
    with_gaps = x[:6].copy()
    with_gaps[::2, 1] = np.nan
    for name, table in (("signals.csv", x), ("gaps.csv", with_gaps)):
        rows = [",".join("" if np.isnan(v) else f"{v:.4f}" for v in row) for row in table]
        (folder / name).write_text("\n".join([",".join(NODES), *rows]) + "\n")
    (folder / "graph.csv").write_text("source,target\na,b\nb,c\nc,d\nd,é\n")


# -- what is compared ------------------------------------------------------------------------------------------------


def said(end: End) -> str:
    """Standard output, but for how long it took."""
    return re.sub(r"\bin \d+ s\b", "", end.out)


def look(folder: Path) -> dict[str, str]:
    """Every file and folder by name, with a sum of what it says; seconds are left out."""
    return {str(path.relative_to(folder)): summed(path) for path in sorted(folder.rglob("*"))}


def summed(path: Path) -> str:
    try:
        return hashlib.sha256(told(path)).hexdigest()[:16]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"unreadable: {error}"


def told(path: Path) -> bytes:
    if not path.is_file():
        return b"a folder"
    if path.name == MANIFEST:
        manifest = json.loads(path.read_text())
        manifest["data"].get("made", {}).pop("command", None)  # says --force, or not
        result = {key: value for key, value in manifest.get("result", {}).items() if key != "seconds"}
        return repr([*(manifest.get(key) for key in TOLD), result]).encode()
    if path.name == METRICS:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return repr([{k: v for k, v in line.items() if k != "seconds"} for line in lines]).encode()
    if path.suffix == ".safetensors":
        return b"".join(f"{k} {v.dtype} {v.shape}".encode() + v.tobytes() for k, v in sorted(tensors(path).items()))
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return b"".join(name.encode() + arrays[name].tobytes() for name in arrays.files)
    return path.read_bytes()


def tensors(path: Path) -> dict[str, np.ndarray]:
    return load(path.read_bytes())
