"""Past one process: training on two processes against one, and filling by two Dask workers against one.

Signals are made here: an autoregression of smooth fields on a graph of positions, with wide modes. Every command runs
by itself, each process with one thread, turn by turn as often as `--repeats` says; the quickest of each counts. Of
training it is the time of its updates and validations, as the run logs it, beside that of the whole command, which
chooses a reference and compares with simple competitors at the end, in one process. Of filling it is the time of the
whole command, start of the workers included, and also from the first file to the last: the paper's network fills a few
hours, and the other two runs weeks, by their reference where so few updates were too few to beat it (`network` says
so). That both ways end with the same is looked at too: weights to rounding, files to the byte. Needs the cores for
itself, about an hour of two.

What is measured is written at once, and not measured again with the same sources: the same command goes on.

    python benchmarks/cluster.py --out results/cluster.json
    python benchmarks/cluster.py --small --out small.json                        to see that it works
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

SEED, INTERVAL = 0, np.timedelta64(5, "m")
ONE = [sys.executable, "-m", "grcd"]
TWO = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "grcd"]
SIZES = {  # nodes (more than scikit-learn's imputers are asked for), rows, updates by kind, rows of a partition by kind
    False: {
        "nodes": 260,
        "rows": 6000,
        "updates": {"moments": 80, "paper": 80, "windows": 200},
        "partitions": 12,
        "rows_each": {"moments": 2016, "paper": 12, "windows": 2016},
    },
    True: {
        "nodes": 40,
        "rows": 1200,
        "updates": {"moments": 60, "paper": 20, "windows": 20},
        "partitions": 4,
        "rows_each": {"moments": 60, "paper": 20, "windows": 60},
    },
}
TRAININGS = {  # `grcd train` on single moments, by the paper's network, and on windows
    "moments": ["--window", "1", "--set", "validate_every=100000"],
    "paper": ["--window", "1", "--method", "grcd-rho3", "--set", "validate_every=100000"],
    "windows": ["--window", "12", "--calendar", "none", "--set", "validate_every=50"],
}
DRAWS = ["-n", "20", "--nfe", "8", "--posterior", "diffusion"]  # whatever won the contest: work for the workers


# -- data --------------------------------------------------------------------------------------------------------------


def write_data(folder: Path, nodes: int, rows: int, partitions: int, lengths: set[int]) -> None:
    """Positions, a table in time, and partitions by the rows of each, of which a fifth is missing."""
    random = np.random.default_rng(SEED)
    places = random.uniform(size=(nodes, 2))
    names = [f"n{i}" for i in range(nodes)]
    pd.DataFrame({"node": names, "x": places[:, 0], "y": places[:, 1]}).to_csv(folder / "nodes.csv", index=False)
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    root = np.linalg.cholesky(np.exp(-distance / 0.3) + 1e-6 * np.eye(nodes))
    x = np.zeros((rows + partitions * max(lengths), nodes))
    for t in range(1, len(x)):
        x[t] = 0.9 * x[t - 1] + root @ random.standard_normal(nodes)
    x = np.sinh(0.25 * x) + 20.0  # skewed tails: a network has something to learn
    times = np.datetime64("2024-01-01", "ns") + np.arange(len(x)) * INTERVAL

    def frame(some: slice, missing: float) -> pd.DataFrame:
        values = np.where(random.uniform(size=x[some].shape) < missing, np.nan, x[some])
        return pd.concat([pd.Series(times[some], name="time"), pd.DataFrame(values, columns=names)], axis=1)

    frame(slice(0, rows), 0.0).to_parquet(folder / "rows.parquet")
    for each in sorted(lengths):
        (folder / f"parts-{each}").mkdir()
        for k in range(partitions):
            some = frame(slice(rows + k * each, rows + (k + 1) * each), 0.2)
            some.to_parquet(folder / f"parts-{each}/part-{k:03d}.parquet")


# -- commands ----------------------------------------------------------------------------------------------------------


def timed(command: list[str], folder: Path) -> float:
    """Seconds that a command takes, all of it, with a thread a process."""
    began = time.perf_counter()
    subprocess.run(command, check=True, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=sys.stderr)
    return time.perf_counter() - began


def training(kind: str, updates: int) -> list[str]:
    """The command, but for how it is started and where it writes."""
    common = ["train", "--data", "rows.parquet", "--graph", "nodes.csv", "--device", "cpu", "--force", *TRAININGS[kind]]
    return [*common, "--max-updates", str(updates), "--set", f"patience={updates}", "--seed", str(SEED)]


def trainings(folder: Path, kind: str, updates: int, repeats: int) -> dict:
    """One process against two."""
    common = training(kind, updates)
    seconds: dict[str, list[float]] = {"one": [], "two": []}
    whole: dict[str, list[float]] = {"one": [], "two": []}
    for _ in range(repeats):
        for name, start in (("one", ONE), ("two", TWO)):
            run = f"{kind}-{name}"
            whole[name].append(timed([*start, *common, "--out", run], folder))
            seconds[name].append(json.loads((folder / run / "run.json").read_text())["result"]["seconds"])
    losses = [(folder / f"{kind}-{name}" / "metrics.jsonl").read_text().splitlines()[-1] for name in seconds]
    val = [json.loads(line)["val"] for line in losses]
    return {
        "updates": updates,
        "seconds": {name: min(each) for name, each in seconds.items()},
        "ratio": round(min(seconds["one"]) / min(seconds["two"]), 3),
        "command_seconds": {name: round(min(each), 1) for name, each in whole.items()},
        "command_ratio": round(min(whole["one"]) / min(whole["two"]), 3),
        "validation_error": val,
        "validation_error_differs_by": abs(val[1] / val[0] - 1),
    }


def fillings(folder: Path, run: str, each: int, repeats: int) -> dict:
    """This process, one worker, two workers."""
    kinds = {"in-process": [], "one worker": ["--workers", "1"], "two workers": ["--workers", "2"]}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    between: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, where in kinds.items():
            out = folder / f"{run}-{name.replace(' ', '-')}"
            command = [*ONE, "impute", run, "--observed", f"parts-{each}", *DRAWS, "--device", "cpu", "--force", *where]
            seconds[name].append(timed([*command, "--out", str(out)], folder))
            ends = sorted(path.stat().st_mtime for path in out.glob("*.parquet"))
            between[name].append(ends[-1] - ends[0])
    files = [
        {path.name: path.read_bytes() for path in (folder / f"{run}-{name.replace(' ', '-')}").glob("*.parquet")}
        for name in kinds
    ]
    result = json.loads((folder / run / "run.json").read_text())["result"]
    return {
        "network": bool(result.get("network", result["best_update"] > 0)),
        "partitions": len(files[0]),
        "rows_each": each,
        "draws": DRAWS,
        "command_seconds": {name: round(min(spent), 1) for name, spent in seconds.items()},
        "command_ratio": round(min(seconds["one worker"]) / min(seconds["two workers"]), 3),
        "seconds_first_to_last": {name: round(min(spent), 1) for name, spent in between.items()},
        "files_alike_to_the_byte": files[0] == files[1] == files[2],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default="results/cluster.json")
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--small", action="store_true", help="to see that it works")
    options.add_argument("--note", default="", help="what else was running")
    args = options.parse_args()
    from provenance import provenance
    from scale import sources

    from grcd.core.files import write_json

    size = SIZES[args.small]
    about = {"nodes": size["nodes"], "rows": size["rows"], "seed": SEED, "repeats": args.repeats, "threads": 1}
    where = provenance("cpu") | about | {"note": args.note, "sources": sources()}
    done: dict[str, dict] = {"training": {}, "filling": {}}
    with suppress(OSError, ValueError, KeyError):
        before = json.loads(Path(args.out).read_text())
        if all(before[key] == where[key] for key in ("sources", "hardware", *about)):
            done = {part: before[part] for part in done}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, size["nodes"], size["rows"], size["partitions"], set(size["rows_each"].values()))
        for kind, updates in size["updates"].items():
            if kind not in done["training"]:
                done["training"][kind] = trainings(folder, kind, updates, args.repeats)
                write_json(args.out, where | done)
        for kind, rows in size["rows_each"].items():
            run = f"{kind}-one"
            if kind not in done["filling"]:
                if not (folder / run).exists():
                    timed([*ONE, *training(kind, size["updates"][kind]), "--out", run], folder)
                done["filling"][kind] = fillings(folder, run, rows, args.repeats)
                write_json(args.out, where | done)
    print(json.dumps(done, indent=1))


if __name__ == "__main__":
    main()
