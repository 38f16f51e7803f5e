"""Which reading of the paper's stopping rule gives the paper's numbers?

    python benchmarks/stopping.py train --device cuda --out runs/stopping-a.npz
    python benchmarks/stopping.py read runs/stopping-*.npz --out results/stopping.json      (and stopping.md beside it)

The rule (appendix A.6.2): "validation denoising error is evaluated every 250 updates using EMA weights, and training
stops after eight consecutive evaluations without a relative improvement greater than 0.2 %". It does not say what the
error is of, on which draws, against which earlier evaluation, or which weights are kept. One training answers for all
readings: it goes on to the end, and at every validation errors of many kinds are written down; some of the snapshots
are sampled and scored. Which update a reading would have stopped at, and the aMMD there, is then arithmetic (``read``).

The reading that comes nearest is ``CHOSEN``, which the package has as ``stopping="paper"``. It was picked by test aMMD
that the *paper* prints; METR-LA and epsilon-Heun, in one or two seeds only, had no part in it and stand beside.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np
import torch
from provenance import provenance
from stopping_page import page
from torch import Tensor, nn

import grcd
from grcd.core import device as devices
from grcd.core.files import write_json
from grcd.core.streams import Stream
from grcd.data.dataset import Dataset
from grcd.diffusion.diffusion import Diffusion
from grcd.graphs.graph import Graph
from grcd.metrics.mmd import mmd2
from grcd.metrics.statistics import STATISTICS
from grcd.references import REFERENCES, TrainingSignals
from grcd.tasks.sample import Memory, sample
from grcd.training import fit
from grcd.training.loop import train

METRICS = ("loss", "eps", "x0", "edm-weighted", "score", "graph")
REALISATIONS, LEVELS, BATCH = 4, 8, 256
ROWS = {  # what is sampled from a network: method and budgets
    "grcd-rho3": {"grcd-rho3": (4, 8, 16, 64), "grcd-rho1": (4, 8, 16)},
    "edm": {"edm": (4, 8, 16, 64), "isotropic-ve": (16, 64)},
    "grcd-epsilon-heun": {"grcd-epsilon-heun": (4, 8, 16)},
    "wsd-scalar": {"wsd-scalar": (4, 8, 16, 64)},
    "wsd-graph": {"wsd-graph": (4, 8, 16, 64)},
}


# -- validation --------------------------------------------------------------------------------------------------------


class Draws:
    """Named draws of (signals, noise, uniform numbers for the levels), of which "fresh" ones change every time."""

    def __init__(self, x_val: Tensor, seed: int):
        self.x, self.seed, self.device = x_val.double(), seed, x_val.device
        kinds = [f"iid-{k}" for k in range(REALISATIONS)] + ["stratified"] + [f"level-{k}" for k in range(LEVELS)]
        self.names = [f"{noise}/{kind}" for noise, kind in product(("fixed", "fresh"), kinds)]
        self.kept = self._made("fixed", kinds, 0)
        self.kinds = kinds

    def _made(self, noise: str, kinds: list[str], number: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        batches = []
        for kind in kinds:
            random = Stream(self.seed, f"stopping {noise} {kind}", self.device)
            x = self.x.repeat(-(-1024 // len(self.x)), 1) if kind == "stratified" else self.x
            eps = random.normal(3 * number, x.numel()).view_as(x)
            u = random.uniform(3 * number + 1, len(x))
            if kind == "stratified":
                u = (u.argsort() + random.uniform(3 * number + 2, len(x))) / len(x)
            elif kind.startswith("level"):
                u = torch.full_like(u, (int(kind[6:]) + 0.5) / LEVELS)
            batches.append((x, eps, u[:, None]))
        return batches

    def __call__(self, number: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        return self.kept + self._made("fresh", self.kinds, number)


@torch.no_grad()
def errors(score, network: nn.Module, x0: Tensor, eps: Tensor, u: Tensor) -> Tensor:  # (signals, metrics)
    """The denoising error of each signal in the senses of ``METRICS``, mean over nodes."""
    process = score.process
    q = process.training_level(u)
    x = x0 + q * eps
    F = score.output(network, x, q)
    loss = (F - score.target(x, eps, q)).square().mean(-1)
    miss = process.modes(score.decoded(x, F, q) - eps).square()  # of the noise, mode by mode
    a2 = process.a(q).square() if hasattr(process, "a") else torch.ones_like(q)
    noise, level = miss.mean(-1), q.square().squeeze(-1)
    score_error, graph = (miss / (a2 * q**2)).mean(-1), (miss * a2 * q**2).mean(-1)
    return torch.stack([loss, noise, noise * level, noise * (1 + level), score_error, graph], dim=-1)


def validated(score, network: nn.Module, draws: list, most: int) -> Tensor:  # (draws, 2 sizes, metrics)
    """Means over each draw: of all its signals, and of its first batch."""
    lengths = [len(x) for x, _, _ in draws]
    together = [torch.cat(part).split(most) for part in zip(*draws, strict=True)]
    every = torch.cat([errors(score, network, *batch) for batch in zip(*together, strict=True)])
    parts = every.split(lengths)
    return torch.stack([torch.stack([part.mean(0), part[:BATCH].mean(0)]) for part in parts])


# -- scores ------------------------------------------------------------------------------------------------------------


def statistics(x: np.ndarray, graph: Graph, device) -> Tensor:  # (3, signals)
    return torch.from_numpy(np.stack([f(x, graph) for f in STATISTICS.values()])).to(device)


def medians(values: Tensor) -> Tensor:  # (rows, n) -> (rows,)
    """Median pairwise distance of each row, by bisection (``mmd.median_distance`` to eleven digits)."""
    v, n = values.sort(dim=-1).values, values.shape[-1]
    low, high = torch.zeros_like(v[:, :1]), v[:, -1:] - v[:, :1]
    for _ in range(45):
        middle = (low + high) / 2
        within = torch.searchsorted(v, v + middle, right=True).sum(-1, keepdim=True) - n * (n + 1) // 2
        few = 2 * within <= n * (n - 1) // 2
        low, high = torch.where(few, middle, low), torch.where(few, high, middle)
    return high[:, 0]


def ammd(x: Tensor, held_out: Tensor) -> float:
    """As ``evaluation.ammd``, from the statistics of both sides."""
    widths = medians(torch.cat([x, held_out], dim=-1)).tolist()
    return sum(mmd2(*pair) for pair in zip(x, held_out, widths, strict=True)) / len(x)


def compared_rows(
    diffusion: Diffusion, snapshots: list[list[Tensor]], data: Dataset, seed: int
) -> tuple[list[str], np.ndarray]:
    """aMMD of every row at every snapshot, against as many test signals."""
    z = data.normalizer.apply(data.test)
    held_out, names, table = statistics(z, data.graph, diffusion.device), [], []
    for name, budgets in ROWS[diffusion.method].items():
        for nfe in budgets:
            as_row, memory = fit.sampled_as(diffusion, name), Memory()
            choice = as_row.choice(nfe)
            choices, values = (choice.solver, nfe, tuple(as_row.levels(nfe, choice))), []
            for weights in snapshots:
                _load(diffusion.network, weights)
                x = sample(as_row, len(z), "terminal", seed, choices, memory=memory)
                finite = bool(x.isfinite().all())
                values.append(
                    ammd(statistics(x.cpu().numpy(), data.graph, diffusion.device), held_out) if finite else np.nan
                )
            names.append(f"{name}/{nfe}")
            table.append(values)
    return names, np.array(table)


def _load(network: nn.Module, weights: list[Tensor]) -> None:
    with torch.no_grad():
        for p, w in zip(network.parameters(), weights, strict=True):
            p.copy_(w)


# -- one training ------------------------------------------------------------------------------------------------------


def arm(setting: str, method: str, seed: int, args) -> dict:
    """Train to the end, with errors of all kinds at every validation, and score some snapshots."""
    data, began = grcd.load_dataset(setting), time.monotonic()
    kappa = {} if args.kappa is None else {"kappa": args.kappa}
    model = grcd.GRCD(
        data.graph,
        method,
        seed,
        args.device,
        max_updates=args.updates,
        validate_every=args.every,
        stopping="none",
        **kappa,
    )
    z = [data.normalizer.apply(part) for part in (data.train, data.val)]
    place = model.space, model.config, model.device
    process = fit.process_of(*place)
    signals = TrainingSignals.of(*z, model.space.spectrum, process.U, model.config.eps_ref, seed)
    reference = REFERENCES["spectral"].fit(signals)
    diffusion = fit.bound(model.space, model.config, process, reference, fit.fresh_network(*place), {})
    score, draws = diffusion.parameterisation, Draws(signals.val, seed)
    network = fit.fresh_network(*place)
    seen, snapshots, updates, losses, by_validation = [], [], [], [], []
    most = max(256, (1 << 28) // model.config.network.layer(len(data.graph)))

    def log(state, record: dict) -> None:
        number = state.update // args.every
        drawn_now = draws(number)
        by_validation.append(
            torch.stack([validated(score, net, drawn_now, most) for net in (state.ema, state.network)])
        )
        seen.append(state.update)
        losses.append(record["train"])
        coarse = args.score * (1 if state.update <= args.updates * 0.4 else 2)
        if state.update % coarse == 0 or state.update == args.updates:
            snapshots.append([p.detach().clone() for p in state.ema.parameters()])
            updates.append(state.update)

    with devices.arithmetic("high"):
        train(score, reference, network, signals.train, signals.val, model.config, log=log)
    trained = time.monotonic() - began
    names, table = compared_rows(diffusion, snapshots, data, seed)
    seconds = time.monotonic() - began
    last = " ".join(f"{name} {value:.4f}" for name, value in zip(names, table[:, -1], strict=True))
    print(f"{setting} {method} {seed}: {trained:.1f} s + {seconds - trained:.1f} s; {last}", flush=True)
    return {
        "validated": np.array(seen),
        "errors": torch.stack(by_validation).cpu().numpy().astype(np.float64),
        "train": np.array(losses),
        "draws": np.array(draws.names),
        "updates": np.array(updates),
        "rows": np.array(names),
        "ammd": table,
        "seconds": np.array([trained, seconds - trained]),
    }


def main_train(args) -> None:
    began, done, longest = time.monotonic(), {}, {}
    for seed, place in product(args.seeds, [(s, m) for s in args.settings for m in args.methods]):
        kind = (place[0].split("-")[0], place[1])
        if time.monotonic() - began + longest.get(kind, 0.0) > args.seconds:
            print(f"out of time: {place} {seed} left out", flush=True)
            continue
        started_at = time.monotonic()
        tag = "" if args.kappa is None else f"/kappa{args.kappa}"
        for key, value in arm(*place, seed, args).items():
            done[f"{place[0]}/{place[1]}/{seed}{tag}|{key}"] = value
        longest[kind] = max(longest.get(kind, 0.0), time.monotonic() - started_at)
        Path(args.out).parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(args.out, **done)


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """One way to understand the rule. ``against``: what an error has to undercut by 0.2 %."""

    noise: str  # "fixed": the same at every validation; "fresh": its own
    kind: str  # "iid" levels, "stratified" ones (1,024 draws or more), "levels": eight for every signal
    size: str  # "all" validation signals, or a batch of "256"
    metric: str  # see METRICS
    against: str  # "milestone": the last error that counted as an improvement; "best": the lowest so far; "previous"
    kept: str  # weights "stop": at the stop; "best": of the lowest error; "milestone": of the last improvement
    weights: str = "ema"  # of the network that is validated; EMA weights are what is sampled
    power: str = "mse"

    def __str__(self) -> str:
        return " ".join(
            [self.weights, self.noise, self.kind, self.size, self.metric, self.power, self.against, self.kept]
        )


CHOSEN = Reading("fixed", "levels", "all", "x0", "milestone", "best")
OTHERS = {  # what of it, one thing at a time, was read another way
    "weights at the stop": replace(CHOSEN, kept="stop"),
    "levels drawn evenly over the training distribution, one a signal": replace(CHOSEN, kind="stratified"),
    "levels drawn independently, one a signal": replace(CHOSEN, kind="iid"),
    "a batch of 256 validation signals": replace(CHOSEN, size="256"),
    "improvement against the best so far": replace(CHOSEN, against="best"),
    "fresh noise": replace(CHOSEN, noise="fresh"),
    "error of the noise": replace(CHOSEN, metric="eps"),
    "the training loss": replace(CHOSEN, metric="loss"),
    "the training loss, levels drawn evenly": replace(CHOSEN, metric="loss", kind="stratified"),
    "the training loss, fresh noise, weights at the stop": replace(CHOSEN, metric="loss", noise="fresh", kept="stop"),
}


def arms(paths: list[str]) -> dict[str, dict[str, np.ndarray]]:
    """What ``train`` wrote, by "setting/method/seed" and what was not as usual."""
    arms: dict[str, dict] = {}
    for path in paths:
        with np.load(path) as written:
            for key in written.files:
                name, part = key.split("|")
                arms.setdefault(name, {})[part] = written[key]
    return arms


def series(arm: dict, reading: Reading) -> list[np.ndarray]:
    """The validation errors of a training, once for each realisation of the draws."""
    place = 0 if reading.weights == "ema" else 1, slice(None), 0 if reading.size == "all" else 1
    e = arm["errors"][:, *place, METRICS.index(reading.metric)]
    e = np.sqrt(e) if reading.power == "rmse" else e
    of = {name: e[:, k] for k, name in enumerate(arm["draws"])}
    if reading.kind == "iid":
        return [of[f"{reading.noise}/iid-{k}"] for k in range(REALISATIONS)]
    if reading.kind == "levels":
        return [np.mean([of[f"{reading.noise}/level-{k}"] for k in range(LEVELS)], axis=0)]
    return [of[f"{reading.noise}/{reading.kind}"]]


def stopped(errors: np.ndarray, against: str, patience: int = 8, tolerance: float = 0.002) -> dict[str, int]:
    """Which validations were the last one ("stop"), the lowest, and the last that counted as an improvement."""
    last = {"milestone": np.inf, "best": np.inf, "previous": np.inf}
    at, stale = {"stop": 0, "best": 0, "milestone": 0}, 0
    for number, error in enumerate(errors):
        if error < (1 - tolerance) * last[against]:
            last["milestone"], at["milestone"], stale = error, number, 0
        else:
            stale += 1
        if error < last["best"]:
            last["best"], at["best"] = error, number
        last["previous"], at["stop"] = error, number
        if stale >= patience:
            break
    return at


def picked(arm: dict, reading: Reading) -> tuple[list[int], np.ndarray]:  # updates at the stop, (realisations, rows)
    """Where a reading stops a training, and the aMMD of the weights it keeps: between snapshots interpolated."""
    stops, scores = [], []
    for errors in series(arm, reading):
        at = stopped(errors, reading.against)
        stops.append(int(arm["validated"][at["stop"]]))
        scores.append([np.interp(arm["validated"][at[reading.kept]], arm["updates"], row) for row in arm["ammd"]])
    return stops, np.array(scores)


def compared(arms: dict, choose: Callable[[dict], tuple[list[int], np.ndarray]]) -> dict:
    """Means over seeds and realisations beside the paper, and how many are in its band (30 % or two of its sd)."""
    paper, groups = published(), {}
    for name, arm in arms.items():
        groups.setdefault(tuple(name.split("/")[:2]), []).append(arm)
    rows, inside, misfit, total = {}, 0, 0.0, 0
    for (setting, method), group in groups.items():
        chosen = [choose(arm) for arm in group]
        updates = np.concatenate([stops for stops, _ in chosen])
        means = np.mean([scores.mean(axis=0) for _, scores in chosen], axis=0)
        cells = {}
        for row, mean in zip(group[0]["rows"], means, strict=True):
            value, sd = paper[setting, *str(row).split("/")]
            near = abs(mean - value) <= max(0.3 * value, 2 * sd)
            # squared log ratio in units of 15 % and the paper's sd, at most 25
            misfit += min((np.log(max(mean, 1e-3) / value) / np.hypot(0.15, sd / value)) ** 2, 25.0)
            inside, total = inside + near, total + 1
            cells[str(row)] = [round(float(mean), 4), value, bool(near)]
        rows[f"{setting}/{method}"] = {
            "updates": [int(updates.min()), round(float(updates.mean())), int(updates.max())],
            "cells": cells,
        }
    return {"in_band": int(inside), "of": total, "misfit": round(float(misfit / total), 2), "arms": rows}


def published() -> dict[tuple[str, str, str], tuple[float, float]]:
    with resources.files("grcd.bench").joinpath("paper.csv").open() as file:
        return {
            (row["setting"], row["method"], row["nfe"]): (float(row["mean"]), float(row["sd"]))
            for row in csv.DictReader(file)
            if row["suite"] == "main"
        }


def plain() -> list[Reading]:
    """The readings that somebody who implements the sentence would come to."""
    places = product(("fixed", "fresh"), ("iid", "stratified", "levels"), ("all", "256"), ("loss", "eps", "x0"))
    readings = [
        Reading(*p, a, k) for p in places for a, k in product(("milestone", "best"), ("stop", "best", "milestone"))
    ]
    return [r for r in readings if (r.kind, r.size) != ("stratified", "256")]


def fixed_number(updates: int) -> Callable[[dict], tuple[list[int], np.ndarray]]:
    """No rule at all: as many updates for every arm."""
    return lambda arm: ([updates], np.array([[np.interp(updates, arm["updates"], row) for row in arm["ammd"]]]))


def main_read(args) -> None:
    every = arms(args.files)
    usual = {name: arm for name, arm in every.items() if name.count("/") == 2}
    used = {name: arm for name, arm in usual.items() if not _beside(name)}
    beside = {name: arm for name, arm in usual.items() if _beside(name)}
    readings = {}
    for reading in plain():
        readings[str(reading)] = {
            "searched": compared(used, partial(picked, reading=reading)),
            "beside": compared(beside, partial(picked, reading=reading)),
        }
    readings = dict(sorted(readings.items(), key=lambda item: item[1]["searched"]["misfit"]))
    for reading in set(readings) - {str(CHOSEN)}:  # of the others the totals only
        for part in readings[reading].values():
            part["arms"] = {name: {"updates": arm["updates"]} for name, arm in part["arms"].items()}
    numbers = {
        str(n): {k: {x: v[x] for x in ("in_band", "of", "misfit")} for k, v in parts.items()}
        for n in range(3000, 25_001, 1000)
        for parts in [{"searched": compared(used, fixed_number(n)), "beside": compared(beside, fixed_number(n))}]
    }
    curves = {
        name: {
            "updates": arm["updates"].tolist(),
            "ammd": {str(row): np.round(v, 4).tolist() for row, v in zip(arm["rows"], arm["ammd"], strict=True)},
        }
        for name, arm in every.items()
    }
    seconds = round(sum(float(arm["seconds"].sum()) for arm in usual.values()))
    about = {**provenance("cpu"), "trained": args.trained, "seconds": seconds, "trainings": sorted(usual)}
    study = {**about, "chosen": str(CHOSEN), "readings": readings, "fixed_numbers": numbers, "curves": curves}
    write_json(args.out, study)
    Path(args.out).with_suffix(".md").write_text(page(study, {name: str(reading) for name, reading in OTHERS.items()}))


def _beside(name: str) -> bool:
    """Arms that came in one or two seeds only: a check on what the others choose, not part of the choice."""
    return name.startswith("metr-la/") or "/grcd-epsilon-heun/" in name


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = options.add_subparsers(required=True)
    train_options, read_options = parts.add_parser("train"), parts.add_parser("read")
    train_options.set_defaults(work=main_train)
    train_options.add_argument("--settings", nargs="+", default=["sbm-c16", "sbm-c1", "molene", "sbm-c4"])
    train_options.add_argument("--methods", nargs="+", default=["grcd-rho3", "edm"])
    train_options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    train_options.add_argument("--kappa", type=float)
    train_options.add_argument("--updates", type=int, default=25_000)
    train_options.add_argument("--every", type=int, default=250)
    train_options.add_argument("--score", type=int, default=500, help="updates between snapshots; twice as many later")
    train_options.add_argument("--seconds", type=float, default=1e9, help="begin no training that would end later")
    train_options.add_argument("--device", default="cpu")
    train_options.add_argument("--out", default="runs/stopping.npz")
    read_options.set_defaults(work=main_read)
    read_options.add_argument("files", nargs="+")
    read_options.add_argument("--trained", default="NVIDIA H200, 2026-11-16", help="on what, and when")
    read_options.add_argument("--out", default="results/stopping.json")
    args = options.parse_args()
    args.work(args)


if __name__ == "__main__":
    main()
