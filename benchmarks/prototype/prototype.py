"""METR-LA imputation by the conditional model of windows: references, training on masks of all families, evaluation.

python prototype.py --data metr_la_speed.npz --out DIR --updates 14000 --compile --graph      train, choose, evaluate
python prototype.py --data ... --out DIR --evaluate DIR/weights.pt            evaluate only
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from protocol import QUANTILES, STEPS, hidden, interpolation, load, normal_quantiles, scores, windows
from torch import Tensor

from grcd.networks.spacetime import SpaceTimeNet, denoised, stepped
from grcd.references.calendar import CalendarMean
from grcd.references.stationary import Shrinkage, Stationary, beside, further, lag_covariances

FAMILIES = {"points": 0.42, "spells": 0.38, "sensors": 0.08, "future": 0.08, "nothing": 0.04}
LEAST_SD = 0.02
START = time.time()


def say(*words):
    print(f"[{time.time() - START:6.1f} s]", *words, flush=True)


# ---------------------------------------------------------------- data and references


class Table:
    """Readings on the device with their calendar, and one view of them a fold: mean, z-scores, covariance."""

    def __init__(self, path, device, columns=None, rows=None):
        values, slot, kind = load(path)
        self.hide = {name: hidden(values.shape, name)[:rows, :columns] for name in ("point", "block")}
        values = values[:rows, :columns]
        self.x = torch.tensor(values, device=device)
        self.slot, self.kind = (torch.tensor(each[:rows], device=device) for each in (slot, kind))
        self.rows, self.nodes, self.device = len(values), values.shape[1], device
        self.train, self.val = int(self.rows * 0.7), int(self.rows * 0.8)
        angle = 2 * math.pi * self.slot / 288
        waves = [f(k * angle) for k in (1, 2) for f in (torch.sin, torch.cos)]
        self.calendar = torch.stack([*waves, self.kind.float()], 1).float()  # (rows, 5)
        self.hide = {name: torch.tensor(each, device=device) for name, each in self.hide.items()}


class Fold:
    """What was learned from some stretches of training rows."""

    def __init__(self, table: Table, stretches: list[tuple[int, int]], by: Shrinkage, dtype=torch.float32, power=0.5):
        chosen = torch.cat([torch.arange(a, b, device=table.device) for a, b in stretches])
        self.mean = CalendarMean.fit(table.x[chosen], table.slot[chosen], table.kind[chosen], 288, 2, 2.0, power)
        self.z = self.mean.scores(table.x, table.slot, table.kind).float()
        self.C = lag_covariances(self.z, STEPS, [slice(a, b) for a, b in stretches])
        self.refer(by, dtype)
        mean, spread = self.mean.rows(table.slot, table.kind)
        self.centre, self.sd = mean.float(), spread.float()
        self.expected = ((mean - self.mean.mean) / self.mean.sd).float()

    def refer(self, by: Shrinkage, dtype):
        self.reference = Stationary.of(self.C.to(dtype), by, dtype=torch.float32)


def folds(table: Table, by: Shrinkage, count: int, dtype, power) -> tuple[Fold, list[Fold], list[tuple[int, int]]]:
    """The fold of all training rows, those that leave a stretch out, and the stretches."""
    edge = [round(table.train * k / count) for k in range(count + 1)]
    stretch = list(pairwise(edge))
    others = [[s for s in stretch if s != left] for left in stretch]
    return (
        Fold(table, [(0, table.train)], by, dtype, power),
        [Fold(table, o, by, dtype, power) for o in others],
        stretch,
    )


# ---------------------------------------------------------------- masks


def masks(family: str, count: int, nodes: int, generator, device) -> Tensor:  # (count, STEPS, nodes), hidden
    def uniform(*shape):
        return torch.rand(shape, generator=generator, device=device)

    if family == "points":
        return uniform(count, STEPS, nodes) < 0.05 + 0.55 * uniform(count, 1, 1)
    if family == "spells":
        silent = uniform(count, 1, nodes) < 0.02 + 0.23 * uniform(count, 1, 1)
        length = 12 + (36 * uniform(count, 1, nodes)).floor()
        first = (uniform(count, 1, nodes) * (STEPS + length - 1)).floor() - (length - 1)
        step = torch.arange(STEPS, device=device)[None, :, None]
        spell = silent & (step >= first) & (step < first + length)
        return spell | (uniform(count, STEPS, nodes) < 0.10 * uniform(count, 1, 1))
    if family == "sensors":
        whole = uniform(count, 1, nodes) < 0.02 + 0.5 * uniform(count, 1, 1)
        return whole | (uniform(count, STEPS, nodes) < 0.05)
    if family == "future":
        known = (uniform(count, 1, 1) * STEPS).floor()
        late = torch.arange(STEPS, device=device)[None, :, None] >= known
        return late.expand(count, STEPS, nodes).clone()
    return torch.ones(count, STEPS, nodes, dtype=torch.bool, device=device)


class Pool:
    """Pairs of a window and a mask, with the posterior of the fold that never saw the window."""

    def __init__(self, table: Table, of: list[Fold], stretch, size: int, generator, families=FAMILIES):
        device, nodes = table.device, table.nodes
        parts = []
        for f, (fold, (a, b)) in enumerate(zip(of, stretch, strict=True)):
            for family, share in families.items():
                count = max(1, round(size * share / len(of)))
                start = a + (torch.rand(count, generator=generator, device=device) * (b - a - STEPS)).long()
                mask = masks(family, count, nodes, generator, device)
                parts.append((fold, f, start, mask))
        rows = [self._part(table, *part) for part in parts]
        self.start, self.fold, self.target, self.mean, self.sd = (torch.cat(each) for each in zip(*rows, strict=True))
        self.z = torch.stack([fold.z for fold in of])
        self.expected = torch.stack([fold.expected for fold in of])
        self.scale = torch.stack([fold.sd for fold in of])
        self.calendar = table.calendar

    @staticmethod
    def _part(table, fold, f, start, mask):
        z = fold.z[start[:, None] + torch.arange(STEPS, device=table.device)]
        seen = ~z.isnan()
        posterior = fold.reference.posterior(z.flatten(1), (seen & ~mask).flatten(1))
        shape = z.shape
        return (
            start,
            torch.full_like(start, f),
            seen & mask,
            posterior.mean.reshape(shape).half(),
            posterior.sd.reshape(shape).half(),
        )

    def __len__(self):
        return len(self.start)

    def batch(self, chosen: Tensor) -> dict[str, Tensor]:
        rows = self.start[chosen, None] + torch.arange(STEPS, device=chosen.device)
        fold = self.fold[chosen, None]
        return conditioned(
            self.z[fold, rows],
            self.target[chosen],
            self.mean[chosen].float(),
            self.sd[chosen].float(),
            self.expected[fold, rows],
            self.calendar[rows],
            self.scale[fold, rows],
        )


def conditioned(z, target, mean, sd, expected, calendar, scale) -> dict[str, Tensor]:
    """What the network is told of windows, and what it is to learn."""
    spread = sd.clamp(min=LEAST_SD)
    observed = sd == 0
    seen = torch.where(observed, mean, 0)
    features = torch.stack([mean, sd, target.float(), observed.float(), seen, expected], -1)
    u = torch.where(target, (z.nan_to_num() - mean) / spread, 0)
    weight = target * spread * scale
    return {"u": u, "target": target, "features": features, "calendar": calendar, "weight": weight}


# ---------------------------------------------------------------- training


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are made orthogonal (Newton-Schulz), matrices of one shape at a time."""

    def __init__(self, matrices, lr, momentum=0.95, decay=0.01):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            shapes: dict = {}
            for p in group["params"]:
                shapes.setdefault(tuple(p.shape), []).append(p)
            lr = torch.as_tensor(group["lr"], dtype=torch.float32, device=group["params"][0].device)
            for shape, ps in shapes.items():
                grads = [p.grad for p in ps]
                kept = [self.state[p].setdefault("kept", torch.zeros_like(p)) for p in ps]
                torch._foreach_lerp_(kept, grads, 1 - group["momentum"])
                X = torch.stack(torch._foreach_lerp(grads, kept, group["momentum"]))  # Nesterov
                X = X.bfloat16() if X.is_cuda else X
                X = X.mT if shape[0] > shape[1] else X
                X = X / (X.norm(dim=(1, 2), keepdim=True) + 1e-7)
                for _ in range(5):
                    A = X @ X.mT
                    X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
                X = (X.mT if shape[0] > shape[1] else X).float() * (lr * 0.2 * math.sqrt(max(shape)))
                torch._foreach_mul_(ps, 1 - lr * group["decay"])
                torch._foreach_sub_(ps, list(X.unbind(0)))


def loss_of(net, batch, noise, q, share):
    noised = torch.where(batch["target"], batch["u"] + q[:, None, None] * noise, 0)
    raw, s = net(noised, q, batch["features"], batch["calendar"])
    variance = (q.square() / (1 + q.square()))[:, None, None]
    wanted = (batch["u"] - noised / (1 + q.square())[:, None, None]) / variance.sqrt()
    weight = batch["weight"]
    per_window = weight.sum((1, 2), keepdim=True)
    weight = weight / per_window.clamp(min=1e-6)
    # a large weight is cut at four times the mean, so that few readings do not rule
    weight = torch.minimum(weight, 4 / batch["target"].sum((1, 2), keepdim=True).clamp(min=1))
    error = (raw - wanted).square()
    s = s.clamp(-8, 4)
    spread = 0.5 * (s + error.detach() * (-s).exp())
    square, likelihood = (weight * error).sum((1, 2)).mean(), (weight * spread).sum((1, 2)).mean()
    return square + share * likelihood, square.detach()


class Step:
    """One update, whole: batch, noise, gradient, optimisers, average. On a GPU captured as a graph and replayed."""

    def __init__(self, net, pool: Pool, args, device):
        self.net, self.pool, self.args, self.device = net, pool, args, device
        matrices = [p for n, p in net.blocks.named_parameters() if p.dim() == 2 and "level" not in n]
        rest = [p for p in net.parameters() if all(p is not m for m in matrices)]
        gpu = device.type == "cuda"
        self.rate = torch.ones((), device=device)
        self.peaks = [args.lr * args.muon, args.lr] if args.muon else [args.lr]
        self.lr = [torch.tensor(peak, device=device) for peak in self.peaks]
        adam = {"weight_decay": 0.01, "betas": (0.9, 0.99), "fused": gpu, "capturable": gpu}
        if args.muon:
            self.optimizers = [
                Muon(matrices, self.lr[0]),
                torch.optim.AdamW(rest, self.lr[1] if gpu else self.peaks[1], **adam),
            ]
        else:
            self.optimizers = [torch.optim.AdamW([*matrices, *rest], self.lr[0] if gpu else self.peaks[0], **adam)]
        self.params = list(net.parameters())
        self.average = [p.detach().clone() for p in self.params]
        self.call = torch.compile(net, dynamic=False) if args.compile else net
        self.chosen = torch.zeros(args.batch, dtype=torch.long, device=device)
        self.total = torch.zeros((), device=device)
        self.graph = None
        self.side = torch.cuda.Stream() if gpu else None
        if self.side:
            self.side.wait_stream(torch.cuda.current_stream())

    def once(self):
        args, device = self.args, self.device
        batch = self.pool.batch(self.chosen)
        noise = torch.randn_like(batch["u"])
        # levels spread evenly over the batch: less noise in the gradient
        place = (torch.arange(args.batch, device=device) + torch.rand(args.batch, device=device)) / args.batch
        q = (args.level_mean + args.level_sd * torch.special.ndtri(place.clamp(1e-4, 1 - 1e-4))).exp()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            loss, square = loss_of(self.call, batch, noise, q, args.likelihood)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        torch._foreach_lerp_(self.average, self.params, 1 - args.average)
        self.total += square

    def capture(self):
        gc.collect()
        torch.cuda.synchronize()
        self.net.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.once()
        self.graph = graph

    def __call__(self, chosen, rate):
        if self.side and self.graph is None:
            torch.cuda.synchronize()
        self.chosen.copy_(chosen)
        for optimizer, lr, peak in zip(self.optimizers, self.lr, self.peaks, strict=True):
            lr.fill_(peak * rate)
            if self.side and self.graph is None:
                torch.cuda.synchronize()
            if self.device.type != "cuda":
                optimizer.param_groups[0]["lr"] = peak * rate
        if self.graph is None:
            with torch.cuda.stream(self.side) if self.side else nullcontext():
                self.once()
                self.net.zero_grad(set_to_none=True)
        else:
            self.graph.replay()


def validated(net, average, tasks, device):
    """Squared error of the averaged weights in validation windows, the same noise every time."""
    g = torch.Generator(device).manual_seed(5)
    weights = dict(zip((n for n, _ in net.named_parameters()), average, strict=True))
    results = []
    with torch.no_grad():
        for task in tasks.values():
            parts = []
            for some in torch.arange(len(task["z"]), device=device).split(48):
                batch = {k: task[k][some] for k in ("u", "target", "features", "calendar", "weight")}
                noise = torch.randn(batch["u"].shape, generator=g, device=device)
                q = (-0.3 + 1.3 * torch.randn(len(some), generator=g, device=device)).exp()
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    loss = loss_of(lambda *a: torch.func.functional_call(net, weights, a), batch, noise, q, 1.0)
                parts.append(torch.stack(loss) * len(some))
            results += [round(v, 4) for v in (torch.stack(parts).sum(0) / len(task["z"])).tolist()]
    return results


def trained(net, pool: Pool, args, table, generator, tasks=None):
    device, gpu = table.device, table.device.type == "cuda"
    step = Step(net, pool, args, device)
    order = torch.empty(0, dtype=torch.long, device=device)
    updates, done, history, since = args.updates, 0, [], 0
    while updates is None or done < updates:
        if len(order) < args.batch:
            order = torch.randperm(len(pool), generator=generator, device=device)
        chosen, order = order[: args.batch], order[args.batch :]
        progress = 0.0 if updates is None else done / updates
        step(chosen, min(1.0, (done + 1) / args.warmup) * 0.5 * (1 + math.cos(math.pi * progress)))
        done += 1
        if done == 10 and gpu and args.graph:
            try:
                step.capture()
                say("captured")
            except Exception as error:
                say("not captured:", repr(error)[:500])
        if done in (args.timing, 3 * args.timing) and updates is None:
            if gpu:
                torch.cuda.synchronize()
            if done == args.timing:
                first = time.time()
            else:
                pace = (time.time() - first) / (2 * args.timing)
                updates = done + int((args.seconds - (time.time() - args.began)) / pace)
                say(f"{1000 * pace:.2f} ms an update, {updates} updates in all")
        if updates and done == min(1000, updates // 5):  # the average forgets how it began
            torch._foreach_copy_(step.average, step.params)
        if done % args.every == 0:
            mean = float(step.total) / (done - since)
            step.total.zero_()
            since = done
            history.append((done, round(time.time() - args.began, 1), mean))
            if tasks is not None:
                history[-1] = (*history[-1], validated(net, step.average, tasks, device))
            say(f"update {done}: squared error {mean:.4f}", history[-1][3:])
    with torch.no_grad():
        torch._foreach_copy_(step.params, step.average)
    return history, done


# ---------------------------------------------------------------- sampling


def grid(most, least, count, rho):
    if count == 1:
        return [most]
    k = np.arange(count) / (count - 1)
    return list((most ** (1 / rho) + k * (least ** (1 / rho) - most ** (1 / rho))) ** rho)


def drawn(call, task, rows, start, plan, nfe, generator):
    """Draws of ``u`` (rows, STEPS, nodes) for rows of a task; ``start`` are joint draws of the reference, or None."""
    device = task["u"].device
    batch = {name: task[name][rows] for name in ("target", "features", "calendar")}
    shape = batch["target"].shape

    def normal():
        return torch.randn(shape, generator=generator, device=device)

    levels = grid(plan["most"], plan["least"], nfe, plan["rho"])
    u = (normal() if start is None else start) + levels[0] * normal()
    before = None
    for k, level in enumerate(levels):
        q = torch.full((shape[0],), level, device=device, dtype=torch.float32)
        u = torch.where(batch["target"], u, 0)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            answer = call(u, q, batch["features"], batch["calendar"])
        mean, variance = denoised(u, q[:, None, None], answer)
        if k == nfe - 1:
            return mean + plan["final"] * variance.sqrt() * normal()
        then = levels[k + 1]
        if plan["kind"] == "ancestral":
            u = stepped(u, level, then, mean, variance, normal())
        else:  # DPM++ 2M
            h = math.log(level / then)
            if before is None:
                pulled = mean
            else:
                ratio = before[1] / h
                pulled = mean + (mean - before[0]) / (2 * ratio)
            u = (then / level) * u + (1 - then / level) * pulled
            before = (mean, h)
    raise AssertionError


def task_of(table: Table, fold: Fold, name: str, first: int, last: int, stride=None, keep=1):
    """Windows over rows first .. last, hidden by the protocol's mask, with their posterior."""
    starts, counted = windows(last - first, stride=stride)
    starts, counted = starts[::keep], counted[::keep]
    rows = torch.tensor(starts[:, None] + np.arange(STEPS) + first, device=table.device)
    z, hide, seen = fold.z[rows], table.hide[name][rows], ~table.x[rows].isnan()
    observed = (seen & ~hide).flatten(1)
    posterior = fold.reference.posterior(z.flatten(1), observed)
    mean, sd = posterior.mean.reshape(z.shape), posterior.sd.reshape(z.shape)
    target = seen & hide
    task = conditioned(z, target, mean, sd, fold.expected[rows], table.calendar[rows], fold.sd[rows])
    scored = target & torch.tensor(counted, device=table.device)[..., None]
    return task | {
        "z": z,
        "observed": observed,
        "mean": mean,
        "spread": sd.clamp(min=LEAST_SD),
        "centre": fold.centre[rows],
        "scored": scored,
        "truth": table.x[rows],
        "sd": fold.sd[rows],
    }


def in_units(task, u, rows):
    return (task["centre"][rows] + task["sd"][rows] * (task["mean"][rows] + task["spread"][rows] * u)).clamp(0, 70)


def ensemble(call, task, fold, plan, nfe, draws, chunk, generator):
    """Draws in mph at the scored readings, (draws, scored), window after window."""
    count = len(task["z"])
    per = max(1, chunk // draws)
    parts = []
    for first in range(0, count, per):
        some = torch.arange(first, min(first + per, count), device=task["z"].device)
        start = None
        if plan["start"] == "joint":
            xi = torch.randn(len(some), draws, fold.reference.d, generator=generator, device=some.device)
            joint = fold.reference.posterior(task["z"][some].flatten(1), task["observed"][some], xi).draws
            joint = joint.reshape(len(some), draws, STEPS, -1)
            start = ((joint - task["mean"][some, None]) / task["spread"][some, None]).flatten(0, 1)
        rows = some.repeat_interleave(draws)
        missing = per * draws - len(rows)  # the compiled network wants one size
        rows = torch.cat([rows, rows[:1].expand(missing)]) if missing else rows
        if start is not None and missing:
            start = torch.cat([start, start[:1].expand(missing, -1, -1)])
        u = drawn(call, task, rows, start, plan, nfe, generator)[: len(some) * draws]
        x = in_units(task, u, rows[: len(some) * draws]).unflatten(0, (len(some), draws))
        parts.append(x.transpose(0, 1)[:, task["scored"][some]])
    return torch.cat(parts, 1)


def judged(x: Tensor, truth: Tensor) -> dict:
    """Scores of draws (draws, n): torch.quantile's quantiles for MAE and CRPS; intervals also by ranks p (n + 1)."""
    draws = len(x)
    ordered = x.sort(0).values

    def at(rank):
        rank = min(max(rank, 0.0), draws - 1.0)
        low = int(rank)
        return ordered[low] + (rank - low) * (ordered[min(low + 1, draws - 1)] - ordered[low])

    result = scores(torch.stack([at(p * (draws - 1)) for p in QUANTILES]).double(), truth.double())
    for name, p in (("rank50", 0.25), ("rank90", 0.05)):
        low, high = at(p * (draws + 1) - 1), at((1 - p) * (draws + 1) - 1)
        result[name] = float(((truth >= low) & (truth <= high)).double().mean())
    return result


def candidates(nfe):
    """Samplers to try: kind, start, largest and smallest level, power of the grid, share of the last variance drawn."""
    anc, ode = "ancestral", "ode"
    lists = {
        1: [
            (anc, "own", 8.0, 8.0, 1, 1.0),
            (anc, "own", 30.0, 30.0, 1, 1.0),
            (anc, "joint", 2.0, 2.0, 1, 1.0),
            (anc, "joint", 1.0, 1.0, 1, 1.0),
        ],
        2: [
            (kind, start, most, least, 1, 1.0)
            for kind in (anc, ode)
            for start, most, least in (("own", 8.0, 1.0), ("own", 8.0, 0.5), ("joint", 2.0, 0.7), ("joint", 1.0, 0.4))
        ],
        4: [
            (kind, start, most, least, rho, 1.0)
            for kind in (anc, ode)
            for start, most, least, rho in (
                ("own", 8.0, 0.4, 4),
                ("own", 8.0, 0.2, 4),
                ("joint", 3.0, 0.3, 3),
                ("joint", 1.5, 0.3, 3),
                ("joint", 1.5, 0.15, 3),
            )
        ]
        + [(ode, "own", 8.0, 0.03, 4, 0.0)],
        8: [
            (kind, start, most, 0.1, rho, 1.0)
            for kind in (anc, ode)
            for start, most, rho in (("own", 8.0, 4), ("joint", 2.0, 3))
        ]
        + [(ode, "own", 8.0, 0.03, 4, 0.0)],
    }
    names = ("kind", "start", "most", "least", "rho", "final")
    return [dict(zip(names, each, strict=True)) for each in lists[nfe]]


def energy(x: Tensor, truth: Tensor, counts: list[int]) -> float:
    """Energy score a window over the root of its scored readings, in mph, mean over windows."""
    parts = []
    for draws, y in zip(x.split(counts, 1), truth.split(counts), strict=True):
        if len(y):
            apart = torch.cdist(draws, draws).sum() / (len(draws) * (len(draws) - 1))
            parts.append(((draws - y).norm(dim=1).mean() - apart / 2) / len(y) ** 0.5)
    return float(torch.stack(parts).mean())


def reference_scores(task):
    sd = task["spread"]
    quantiles = normal_quantiles(task["mean"], sd)
    x = (task["centre"] + task["sd"] * quantiles).clamp(0, 70)[:, task["scored"]]
    truth = task["truth"][task["scored"]]
    return {"n": len(truth)} | scores(x.double(), truth.double())


def chosen(table, fold, by: Shrinkage) -> Shrinkage:
    """A walk by the reference's CRPS in validation windows, the likelihood beside it."""
    dtype = torch.float64 if table.device.type == "cuda" else torch.float32
    tried: dict = {}

    def cost(by):
        if by not in tried:
            fold.refer(by, dtype)
            r = {n: reference_scores(task_of(table, fold, n, table.train, table.val)) for n in ("point", "block")}
            starts, _ = windows(table.val - table.train)
            z = fold.z[torch.tensor(starts[:, None] + np.arange(STEPS) + table.train, device=table.device)].flatten(1)
            likelihood = float(fold.reference.posterior(z, ~z.isnan()).log_prob.sum() / (~z.isnan()).sum())
            tried[by] = sum(e["MAE"] for e in r.values()) / 2
            say(
                by,
                f"log-likelihood {likelihood:.4f}",
                " | ".join(f"{e['MAE']:.3f} {e['CRPS']:.4f} {e['cover50']:.3f} {e['cover90']:.3f}" for e in r.values()),
            )
        return tried[by]

    for _ in range(2):
        before = by
        for weight in ("local", "separable", "nodes", "noise"):
            for other in beside(by, weight):
                while other is not None and other.noise > 0.012 and cost(other) < 0.999 * cost(by):
                    by, other = other, further(by, other)
        if by == before:
            break
    return by


def shown(result):
    return " ".join(
        f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}" for name, value in result.items()
    )


def evaluated(net, table, fold, args, generator):
    net.eval()
    call = torch.compile(net, dynamic=False) if args.compile else net
    report: dict = {"reference": {}, "validation": {}, "test": {}}
    with torch.no_grad():
        val = {n: task_of(table, fold, n, table.train, table.val, keep=args.keep_val) for n in ("point", "block")}
        test = {n: task_of(table, fold, n, table.val, table.rows) for n in ("point", "block")}
        for name, task in test.items():
            report["reference"][name] = reference_scores(task)
            say("reference alone,", name, shown(report["reference"][name]))
        best = {}
        for nfe in args.nfe:
            tried = []
            for plan in candidates(nfe):
                r = {}
                for n in val:
                    x = ensemble(call, val[n], fold, plan, nfe, args.val_draws, args.chunk, generator)
                    truth = val[n]["truth"][val[n]["scored"]]
                    r[n] = judged(x, truth) | {"energy": energy(x, truth, val[n]["scored"].sum((1, 2)).tolist())}
                cost = sum(each["CRPS"] for each in r.values()) / 2
                off = max(max(abs(e["rank50"] - 0.5), abs(e["rank90"] - 0.9)) for e in r.values())
                tried.append((cost * (1 + max(0.0, off - 0.02)), plan, r))
                say(
                    f"val {nfe} {plan['kind']:9s} {plan['start']} {plan['most']} to {plan['least']}, {plan['final']}:",
                    " | ".join(
                        f"{e['MAE']:.3f} {e['CRPS']:.4f} {e['rank50']:.3f} {e['rank90']:.3f} {e['energy']:.3f}"
                        for e in r.values()
                    ),
                )
            tried.sort(key=lambda each: each[0])
            best[nfe] = tried[0][1]
            report["validation"][nfe] = [{"plan": plan, "scores": r} for _, plan, r in tried]
        for nfe in args.nfe:
            for name, task in test.items():
                began = time.time()
                draws = args.draws if nfe <= 4 else args.draws // 2
                x = ensemble(call, task, fold, best[nfe], nfe, draws, args.chunk, generator)
                r = {"n": x.shape[1], "draws": draws} | judged(x, task["truth"][task["scored"]])
                r["seconds"] = time.time() - began
                report["test"][f"{name} {nfe}"] = {"plan": best[nfe], "scores": r}
                say(f"TEST {name} nfe {nfe} {best[nfe]['kind']} {best[nfe]['start']} {best[nfe]['most']}:", shown(r))
                (Path(args.out) / "metrics.json").write_text(json.dumps(report, indent=1))
    return report


def build(table, args):
    torch.manual_seed(args.seed)
    columns = torch.arange(table.nodes)
    net = SpaceTimeNet(STEPS, columns, torch.zeros_like(columns), 6, 5, args.width, args.blocks, args.heads)
    return net.to(table.device)


def parsed():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default=".")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--columns", type=int)
    p.add_argument("--rows", type=int)
    p.add_argument("--seconds", type=float, default=450)
    p.add_argument("--updates", type=int)
    p.add_argument("--pool", type=int, default=40000)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--blocks", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--muon", type=float, default=1.5)
    p.add_argument("--warmup", type=int, default=200)
    p.add_argument("--likelihood", type=float, default=0.25)
    p.add_argument("--average", type=float, default=0.999)
    p.add_argument("--level-mean", type=float, default=-0.3)
    p.add_argument("--level-sd", type=float, default=1.3)
    p.add_argument("--shrinkage", default="0,.1,.2,.025")
    p.add_argument("--power", type=float, default=0.5)
    p.add_argument("--choose", action="store_true")
    p.add_argument("--folds", type=int, default=3)
    p.add_argument("--timing", type=int, default=50)
    p.add_argument("--every", type=int, default=1000)
    p.add_argument("--nfe", type=lambda s: [int(k) for k in s.split(",") if k], default=[1, 2, 4, 8])
    p.add_argument("--draws", type=int, default=100)
    p.add_argument("--val-draws", type=int, default=25)
    p.add_argument("--keep-val", type=int, default=5)
    p.add_argument("--chunk", type=int, default=800)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--graph", action="store_true")
    p.add_argument("--evaluate")
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def main():
    args = parsed()
    device = torch.device(args.device)
    generator = torch.Generator(device).manual_seed(args.seed)
    table = Table(args.data, device, args.columns, args.rows)
    for name, hide in table.hide.items():
        say(name, "line in time:", interpolation(table.x[table.val :].cpu().numpy(), hide[table.val :].cpu().numpy()))
    by = Shrinkage(*map(float, args.shrinkage.split(",")))
    if args.evaluate:
        kept = torch.load(args.evaluate, map_location=device, weights_only=True)
        by = Shrinkage(*kept["shrinkage"])
    whole, parts, stretch = folds(
        table, by, args.folds, torch.float64 if device.type == "cuda" else torch.float32, args.power
    )
    say("references fitted")
    if args.choose:
        by = chosen(table, whole, by)
        for fold in (whole, *parts):
            fold.refer(by, torch.float64 if device.type == "cuda" else torch.float32)
        say("chosen", by)
    net = build(table, args)
    say(f"{sum(p.numel() for p in net.parameters()):,} numbers to learn")
    if args.evaluate:
        net.load_state_dict(kept["weights"])
    else:
        pool = Pool(table, parts, stretch, args.pool, generator)
        if device.type == "cuda":
            torch.cuda.synchronize()
        say(f"{len(pool)} posteriors")
        args.began = time.time()
        tasks = {n: task_of(table, whole, n, table.train, table.val) for n in ("point", "block")}
        history, done = trained(net, pool, args, table, generator, tasks)
        say(f"trained: {done} updates, {time.time() - args.began:.0f} s")
        torch.save({"weights": net.state_dict(), "shrinkage": list(vars(by).values())}, Path(args.out) / "weights.pt")
        (Path(args.out) / "history.json").write_text(
            json.dumps({"args": {k: str(v) for k, v in vars(args).items()}, "history": history})
        )
        del pool
    if args.nfe:
        evaluated(net, table, whole, args, generator)
    say("done")


if __name__ == "__main__":
    main()
