"""Do two versions of the sources give the same numbers? Every method, trained for a few updates with the same seed, and
then all that a model does: signals, filled gaps, inferred ones, variations, log-likelihoods; and runs that the
older version saved, loaded by the newer one. To be run when code was moved and nothing else was meant to change.

    python benchmarks/unchanged.py COMMIT            # against the working tree; exit status 1 if anything differs

Differences are relative to the largest number compared: 0 is bit for bit, 1e-12 the order of a sum.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROUNDING = 1e-9
HERE = Path(__file__).parent.parent

# Run by both versions, so it keeps to what users touch.
WORK = """
import sys, warnings
import numpy as np, torch
import grcd
warnings.simplefilter("ignore")
torch.set_num_threads(1)
out, runs, older = sys.argv[1:4]
random = np.random.RandomState(0)
W = np.triu(random.uniform(0.2, 1, (9, 9)) * (random.uniform(size=(9, 9)) < 0.5), 1)
W[np.arange(8), np.arange(1, 9)] = 1.0
graph = grcd.Graph.from_adjacency(W + W.T)
x = random.standard_normal((300, 9)).cumsum(1) * (1 + 2 * (random.uniform(size=(300, 1)) < 0.3)) + np.arange(9)
train, val, test = x[:200], x[200:260], x[260:]
holed = np.where(random.uniform(size=train.shape) < 0.1, np.nan, train)
gaps = np.where(random.uniform(size=test.shape) < 0.3, np.nan, test)
H = np.vstack([np.ones(9) / 9, np.eye(9)[2]])
settings = dict(width=8, batch=16, max_updates=20, validate_every=10)
results = {}

def tried(name, model):
    calls = {
        "sample": lambda: model.sample(20, nfe=4, seed=1),
        "sample at 1": lambda: model.sample(7, nfe=1, seed=2),
        "impute": lambda: model.impute(gaps, n=5, nfe=4, seed=3),
        "impute by the reference": lambda: model.impute(gaps, n=5, seed=3, posterior="reference"),
        "infer": lambda: model.infer(test[:6] @ H.T, H, n=4, nfe=4, seed=4),
        "augment": lambda: model.augment(test[:6], 0.4, n=2, seed=5),
        "log_prob": lambda: np.stack(model.log_prob(test[:4], steps=8, seed=6)),
        "node_log_prob": lambda: model.node_log_prob(test[:4]),
    }
    for what, call in calls.items():
        try:
            results[f"{name}: {what}"] = call()
        except grcd.InputError:  # what a method cannot do
            results[f"{name}: {what}"] = np.zeros(0)

try:
    from grcd.training.methods import METHODS
except ImportError:  # before there were rooms
    from grcd.methods import METHODS
for name in METHODS:
    model = grcd.GRCD(graph, name, seed=3, device="cpu", **settings).fit(train, val)
    tried(name, model)
    model.save(f"{runs}/{name}")
    tried(f"{name}, loaded", grcd.load(f"{older}/{name}", device="cpu"))
tried("grcd on gaps", grcd.GRCD(graph, seed=3, device="cpu", **settings).fit(holed, val))
tried("grcd on quantiles", grcd.GRCD(graph, seed=3, device="cpu", marginals="quantile", **settings).fit(train, val))
np.savez(out, **results)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commit", help="the older version")
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as room:
        room = Path(room)
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=HERE, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", room], input=archive, check=True)
        then = worked(room / "src", room / "then.npz", room / "runs-then", room / "runs-then")
        now = worked(HERE / "src", room / "now.npz", room / "runs-now", room / "runs-then")
    sys.exit(compared(then, now))


def worked(sources: Path, out: Path, runs: Path, older: Path) -> dict[str, np.ndarray]:
    environment = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", WORK, out, runs, older], env=environment, check=True)
    with np.load(out) as file:
        return dict(file)


def compared(then: dict[str, np.ndarray], now: dict[str, np.ndarray]) -> int:
    """A line for all that is the same to the bit, one for each that is not; the number of real differences."""
    apart = {name: difference(then[name], now[name]) for name in then}
    same = sum(value == 0 for value in apart.values())
    print(f"{len(apart)} results, {same} the same bit for bit")
    for name, value in sorted(apart.items(), key=lambda each: -each[1]):
        if value > 0:
            print(f"{value:.1e}  {name}{'' if value <= ROUNDING else '   DIFFERS'}")
    return int(any(value > ROUNDING for value in apart.values()))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return float(np.nanmax(np.abs(a - b), initial=0.0) / max(np.nanmax(np.abs(a), initial=0.0), 1e-300))


if __name__ == "__main__":
    main()
