"""How large a graph may be: seconds and peak memory of everything that needs no network, from 1,000 to 1,000,000 nodes.

Nodes are random places in a square, a graph of five nearest neighbours. The truth is known: a Matern-like field, of
precision ``tau (k + L)^2``, and eight wide waves that all nodes share; a share of the training readings is missing.
Measured are the graph, the fit of the sparse reference, 100 draws, 100 draws of one signal's posterior with a quarter
of its nodes missing, and one evaluation of the network; each size in a process of its own, whose peak is the kernel's.
Beside it how far the fit is from the truth: the log-likelihood of new signals a node, and the posterior's mean and
spread. Exponents of growth are those between neighbouring sizes.

    python benchmarks/scale.py --out results/scale.json                          all four sizes: 20 GB, half an hour
    python benchmarks/scale.py --nodes 1000 10000 --out results/scale.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

SEED, SIGNALS, VALIDATION, MISSING, DRAWS = 0, 2000, 100, 0.02, 100
WAVES = [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2)]
RANGE, HEIGHT = 0.05, 0.4  # of the field: k; of the waves
MOST = 50_000_000  # readings of the largest size; smaller ones have SIGNALS signals
WIDTH = 32  # of the network


def measured(nodes: int) -> dict:
    """All of one size."""
    import torch

    from grcd.graphs.graph import Graph
    from grcd.networks import nodenet
    from grcd.references import sparse_fit
    from grcd.references.observations import Observations

    seconds, peaks = {}, {"start": peak()}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds[name], peaks[name] = round(time.perf_counter() - began, 3), round(peak(), 1)

    random = np.random.default_rng([SEED, nodes])
    places = random.random((nodes, 2))
    with stage("graph"):
        graph = Graph.from_coordinates(places)
    truth = field(graph, places)
    count = SIGNALS if nodes <= 100_000 else MOST // nodes
    with stage("signals"):
        train, val = (drawn(truth, each, random) for each in (count, min(VALIDATION, count)))
        for rows in train:
            rows[torch.from_numpy(random.random(nodes) < MISSING)] = math.nan
    ranks = sparse_fit.RANKS if nodes <= 100_000 else (0,)
    with stage("fit"):
        reference = sparse_fit.fit(train, val, graph, SEED, ranks)
    del train, val
    draws = DRAWS if nodes <= 100_000 else 10
    noise = torch.from_numpy(random.standard_normal((draws, nodes)))
    with stage("draws"):
        x = reference.draw(noise)
    with stage("draws again"):
        reference.draw(noise)
    new = drawn(truth, 8, random).double()
    y = torch.where(torch.from_numpy(random.random(nodes) < 0.25), math.nan, new[:1])

    def normal(purpose: str, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.from_numpy(np.random.default_rng([SEED, len(purpose)]).standard_normal(shape))

    with stage("posterior"):
        posterior = reference.condition(Observations(y))
        filled = posterior.draw(draws, normal, torch.zeros(1, draws, dtype=torch.float64))
    hidden, exact = y[0].isnan(), truth.condition(Observations(y))
    spread = exact.draw(draws, normal, torch.zeros(1, draws, dtype=torch.float64))[0, :, hidden].std(0)
    with stage("level"):
        reference.score(new[:1], 0.5)
    network = nodenet.NodeNet(graph.spectrum, nodenet.Setting(width=WIDTH))
    with stage("network"), torch.inference_mode():
        network(new[:1], torch.tensor(0.5))
    roughness = [float(((graph.combinatorial @ each.numpy().T) * each.numpy().T).sum(0).mean()) for each in (x, new)]
    return {
        "nodes": nodes,
        "signals": count,
        "draws": draws,
        "rank": reference.modes.shape[1],
        "neighbours_in_precision": round(reference.precision.Q.nnz / nodes, 1),
        "seconds": seconds,
        "peak_mb": peaks,
        "log_likelihood_a_node": [round(float(each.log_prob(new).mean()) / nodes, 5) for each in (reference, truth)],
        "posterior_mean_off": round(float((posterior.mean - exact.mean)[0, hidden].square().mean().sqrt()), 4),
        "posterior_spread": [round(float(each), 4) for each in (filled[0, :, hidden].std(0).mean(), spread.mean())],
        "rmse_hidden": [
            round(float((each.mean - new[:1])[0, hidden].square().mean().sqrt()), 4) for each in (posterior, exact)
        ],
        "roughness": round(roughness[0] / roughness[1], 4),
    }


def field(graph, places: np.ndarray):
    """The truth."""
    import scipy.sparse as sp

    from grcd.references.precision import Given
    from grcd.references.sparse import Sparse

    K = sp.csr_array(RANGE * sp.eye_array(len(graph)) + graph.normalized)
    waves = np.stack([np.cos(np.pi * (places @ np.array(wave))) for wave in WAVES], 1)
    return Sparse(Given(sp.csr_array(8.0 * (K @ K))), HEIGHT * waves)


def drawn(truth, count: int, random: np.random.Generator):
    """Signals in float32, some at a time."""
    import torch

    step = max(1, (1 << 24) // truth.d)
    parts = [min(step, count - first) for first in range(0, count, step)]
    noise = (torch.from_numpy(random.standard_normal((size, truth.d))) for size in parts)
    return torch.cat([truth.draw(each).float() for each in noise])


def peak() -> float:
    """Peak resident memory of this process in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def exponents(sizes: list[dict]) -> list[dict]:
    """``log`` of seconds over ``log`` of nodes, between neighbouring sizes; a draw where their number differs."""
    growth = []
    for small, large in itertools.pairwise(sizes):
        ratio = math.log(large["nodes"] / small["nodes"])
        each = {"from": small["nodes"], "to": large["nodes"]}
        for name in small["seconds"]:
            per = [size["seconds"][name] / (size["draws"] if "draws" in name else 1) for size in (small, large)]
            each[name] = round(math.log(max(per[1], 1e-4) / max(per[0], 1e-4)) / ratio, 2)
        growth.append(each)
    return growth


def child(nodes: int) -> dict:
    command = [sys.executable, __file__, "--one", str(nodes)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ)).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    options.add_argument("--note", default="", help="what else was running")
    options.add_argument("--out", default="results/scale.json")
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.one:
        print(json.dumps(measured(args.one)))
        return
    sizes = []
    for nodes in args.nodes:
        sizes.append(child(nodes))
        print(json.dumps(sizes[-1], indent=1), flush=True)
    from provenance import provenance

    from grcd.core.files import write_json

    write_json(args.out, {**provenance("cpu"), "note": args.note, "sizes": sizes, "growth": exponents(sizes)})


if __name__ == "__main__":
    main()
