"""Large graphs: seconds and memory of graph, reference and network by the number of nodes, and how near the truth.

Positions are random in the unit square, their graph near-planar (5 nearest neighbours). Signals are a Matern-like
field, ``Q = 8 (k + L)^2``, with eight cosine waves across the square that all nodes share; of training readings 2 % are
missing. The truth is known, so everything is held against it. Measured are the graph, the fit of the sparse reference
(of 10^6 nodes without modes), draws of it, posterior draws of one signal of which a quarter is missing, the reference
at one noise level, and one evaluation of the network; each size in a process of its own. Beside it what a user calls up
to 100,000 nodes: `fit` without a network, of readings in their own unit with gaps in validation signals too, `sample`
and `impute`. Peak memory is that of each
stage (where the system lets it be set back; otherwise the largest so far), signals included.

Beside it how far the fit is from the truth: the log-likelihood of new signals a node, and the posterior's mean and
spread, each with the truth's own.

10^6 nodes have few signals (50), no modes and 10 draws: 2,000 signals would not fit. So that growth can be told,
smaller sizes are measured with as few too, and exponents are those between neighbouring sizes of the same work. Draws
are timed twice: the first time makes what they need, a factor of the precision where it is a polynomial.

With `--device cuda` the network is evaluated there (once before it counts); graph and reference live in main memory.

Real: METR-LA in windows of 24 x 207, as in the public table of imputation (a quarter of the readings hidden at random,
or spells of silence): MAE of the median and CRPS of 100 draws of the sparse reference and of the one that is chosen
without it, no network, with the seconds that fitting and filling take.

What is measured is written at once, and not measured again with the same sources: the same command goes on. Where there
are many cores parts may be measured side by side (`--jobs`), the largest first; the seconds are then upper bounds.

    python benchmarks/scale.py --out results/scale.json                          all of it: 20 GB, 40 minutes
    OMP_NUM_THREADS=4 python benchmarks/scale.py --device cuda --jobs 10 --out results/scale-gpu.json        with a GPU
    python benchmarks/scale.py --nodes 1000 10000 --out results/scale.json       some of it
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

import numpy as np

SEED, SIGNALS, VALIDATION, MISSING, DRAWS = 0, 2000, 100, 0.02, 100
WAVES = [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2)]
RANGE, HEIGHT = 0.05, 0.4  # of the field: k; of the waves
FEW, FEW_DRAWS = 50, 10  # signals and draws of the largest size, and of smaller ones beside it
BESIDE = 10_000  # the smallest size that is measured with few as well
WIDTH, WINDOW = 32, 24  # of the network; rows of METR-LA


def measured(nodes: int, few: bool, device: str) -> dict:
    """All of one size; with ``few`` signals and draws, and no modes."""
    import torch

    from grcd.core.device import wait
    from grcd.graphs.graph import Graph
    from grcd.networks import nodenet
    from grcd.references import sparse_fit, sparse_mixture_fit
    from grcd.references.observations import Observations

    seconds, peaks = {}, {"start": round(peak(), 1)}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        set_back()
        began = time.perf_counter()
        yield
        seconds[name], peaks[name] = round(time.perf_counter() - began, 3), round(peak(), 1)

    random = np.random.default_rng([SEED, nodes])
    places = random.random((nodes, 2))
    with stage("graph"):
        graph = Graph.from_coordinates(places)
    truth = field(graph, places)
    count = FEW if few else SIGNALS
    with stage("signals"):
        train, val = (drawn(truth, each, random) for each in (count, min(VALIDATION, count)))
        for rows in train:
            rows[torch.from_numpy(random.random(nodes) < MISSING)] = math.nan
    ranks = (0,) if few else sparse_fit.RANKS
    with stage("fit"):
        reference = sparse_mixture_fit.fit(train, val, graph, SEED, ranks)
    del train, val
    draws = FEW_DRAWS if few else DRAWS
    noise, u = torch.from_numpy(random.standard_normal((draws, nodes))), torch.from_numpy(random.random(draws))
    with stage("draws"):
        x = reference.draw(noise, 0.0, u)
    with stage("draws again"):
        reference.draw(noise, 0.0, u)
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
    where = torch.device(device)
    network = nodenet.NodeNet(graph.spectrum, nodenet.Setting(width=WIDTH)).to(where)
    one, level = new[:1].to(where), torch.tensor(0.5, device=where)
    with torch.inference_mode():
        if where.type == "cuda":
            network(one, level)
            wait(where)
        with stage("network"):
            network(one, level)
            wait(where)
    roughness = [float(((graph.combinatorial @ each.numpy().T) * each.numpy().T).sum(0).mean()) for each in (x, new)]
    return {
        "nodes": nodes,
        "few": few,
        "signals": count,
        "draws": draws,
        "components": len(reference.parts),
        "rank": reference.parts[0].modes.shape[1],
        "neighbours_in_precision": round(reference.parts[0].precision.Q.nnz / nodes, 1),
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


def model(nodes: int) -> dict:
    """What a user calls, in Python: readings of their own unit, gaps in validation signals too, no network."""
    from grcd.graphs.graph import Graph
    from grcd.model import GRCD

    seconds, peaks, random = {}, {}, np.random.default_rng([SEED, nodes])
    places = random.random((nodes, 2))
    graph = Graph.from_coordinates(places)
    x = drawn(field(graph, places), SIGNALS + VALIDATION, random).mul_(3.0).add_(20.0).numpy()
    for row in x:
        row[random.random(nodes) < MISSING] = math.nan
    train, val, holed = x[:SIGNALS], x[SIGNALS:], np.where(random.random(nodes) < 0.25, math.nan, x[-1:])
    fitted = GRCD(graph, device="cpu", backbone="none")

    def timed(name: str, work) -> None:
        set_back()
        began = time.perf_counter()
        work()
        seconds[name], peaks[name] = round(time.perf_counter() - began, 3), round(peak(), 1)

    timed("fit", lambda: fitted.fit(train, val))
    timed("sample", lambda: fitted.sample(DRAWS))
    timed("impute", lambda: fitted.impute(holed, n=DRAWS))
    return {"model": nodes, "signals": SIGNALS, "draws": DRAWS, "seconds": seconds, "peak_mb": peaks}


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


def set_back() -> None:
    """Let the kernel count the peak of this process from here on, where it does so."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """Peak resident memory of this process in MB."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


# -- METR-LA -----------------------------------------------------------------------------------------------------------


def real(method: str, device: str) -> dict:
    """Windows of METR-LA by the reference of a method alone."""
    import torch

    from grcd.bench.windows.measuring import Network
    from grcd.bench.windows.settings import SETTINGS, load
    from grcd.bench.windows.settings import VARIANTS as variants
    from grcd.evaluation.protocol import draw_quantiles, quantile_scores
    from grcd.model import GRCD, train

    about = {kind: SETTINGS["imputation"][f"metr-la-{kind}"] for kind in ("point", "block")}
    data = load("metr-la", variants["grcd"])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        model = train(GRCD(data.graph, method, SEED, device, window=WINDOW, max_updates=0), data, f"{folder}/run")
    result = {"method": method, "fit_seconds": round(time.perf_counter() - began, 1)}
    answer, result["reference"] = Network(model, data, None).answer(None, DRAWS), model.result["reference"]["words"]
    for kind, setting in about.items():
        pieces, began, quantiles, truth = setting.pieces(data), time.perf_counter(), [], []
        for some in np.array_split(np.arange(len(pieces)), max(1, len(pieces) // 4)):
            where = torch.from_numpy(pieces.scored(some))
            quantiles.append(draw_quantiles(answer(pieces, some)[:, where]))
            truth.append(torch.from_numpy(pieces.truth(some))[where])
        scores = quantile_scores(torch.cat(quantiles, 1), torch.cat(truth))
        rounded = {name: round(value, 4) for name, value in scores.items()}
        result[kind] = rounded | {"seconds": round(time.perf_counter() - began, 1), "readings": len(torch.cat(truth))}
    return result | {"peak_mb": round(peak(), 1)}


# -- all of it ---------------------------------------------------------------------------------------------------------


def exponents(sizes: list[dict]) -> list[dict]:
    """``log`` of seconds over ``log`` of nodes, between neighbouring sizes with as many signals and draws, and between
    the smallest and the largest."""
    growth = []
    for work in sorted({(size["signals"], size["draws"]) for size in sizes}, reverse=True):
        alike = sorted(
            (size for size in sizes if (size["signals"], size["draws"]) == work), key=lambda size: size["nodes"]
        )
        over = [(alike[0], alike[-1])] if len(alike) > 2 else []
        for small, large in [*itertools.pairwise(alike), *over]:
            ratio = math.log(large["nodes"] / small["nodes"])
            each = {"from": small["nodes"], "to": large["nodes"], "of_signals": work[0], "of_draws": work[1]}
            for name, seconds in small["seconds"].items():
                each[name] = round(math.log(max(large["seconds"][name], 1e-4) / max(seconds, 1e-4)) / ratio, 2)
            growth.append(each)
    return growth


def whats(nodes: list[int]) -> list[str]:
    """Each size, by its parts and as a user calls it, and those that are compared with the largest once more."""
    usual = [f"{n}" for n in nodes if n <= 100_000] + [f"{n} model" for n in nodes if 10_000 <= n <= 100_000]
    return usual + [f"{n} few" for n in nodes if n > 100_000 or (n >= BESIDE and max(nodes) > 100_000)]


def orderings() -> str:
    """Which library finds the order of elimination, for the time of factors depends on it."""
    with suppress(metadata.PackageNotFoundError):
        return f"pymetis {metadata.version('pymetis')}"
    return f"minimum degree of scipy {metadata.version('scipy')}"


def sources() -> str:
    """What was measured: a sum over the package and this recipe."""
    files = [*sorted((Path(__file__).parents[1] / "src").rglob("*.py")), Path(__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def child(what: str, device: str) -> dict:
    """What one process measures."""
    command = [sys.executable, __file__, "--one", what, "--device", device]
    environment = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ  # as the command has it
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return json.loads(output.splitlines()[-1])


def named(each: dict) -> str:
    """As it was asked for."""
    if "model" in each:
        return f"{each['model']} model"
    return each["method"] if "method" in each else f"{each['nodes']}{' few' if each['few'] else ''}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    options.add_argument("--methods", nargs="*", default=["grcd-sparse", "grcd"], help="on METR-LA")
    options.add_argument("--note", default="", help="what else was running")
    options.add_argument("--out", default="results/scale.json")
    options.add_argument("--device", default="cpu", help="of the network")
    options.add_argument("--jobs", type=int, default=1, help="sizes side by side")
    options.add_argument("--one", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.one:
        nodes, *kind = args.one.split()
        if not nodes.isdigit():
            print(json.dumps(real(args.one, args.device)))
        else:
            of = model(int(nodes)) if kind == ["model"] else measured(int(nodes), bool(kind), args.device)
            print(json.dumps(of))
        return
    from provenance import provenance

    from grcd.core.files import write_json

    where = provenance(args.device) | {"note": args.note, "sources": sources(), "orderings": orderings()}
    known = dict[str, dict]()
    with suppress(OSError, ValueError, KeyError):
        before = json.loads(Path(args.out).read_text())
        if (before["sources"], before["hardware"]) == (where["sources"], where["hardware"]):
            known = {named(each): each for each in before["sizes"] + before["models"] + before["metr_la"]}
    wanted = [what for what in (*whats(args.nodes), *args.methods) if what not in known]
    if args.jobs > 1:
        wanted.sort(key=lambda what: -int(what.split()[0]) if what[0].isdigit() else 0)
    with ThreadPoolExecutor(args.jobs) as pool:
        parts = {pool.submit(child, what, args.device): what for what in wanted}
        for part in as_completed(parts):
            try:
                known[parts[part]] = part.result()
            except subprocess.CalledProcessError as error:
                print(f"{parts[part]}: ended with status {error.returncode}, left out", file=sys.stderr)
                continue
            print(json.dumps(known[parts[part]], indent=1), flush=True)
            write_json(args.out, where | content(known))


def content(known: dict[str, dict]) -> dict:
    """What the file holds of all that is known by now."""
    sizes = sorted((each for each in known.values() if "nodes" in each), key=lambda each: (each["few"], each["nodes"]))
    metr_la, models = ([each for each in known.values() if key in each] for key in ("method", "model"))
    return {"sizes": sizes, "growth": exponents(sizes), "models": models, "metr_la": metr_la}


if __name__ == "__main__":
    main()
