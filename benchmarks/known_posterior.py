"""Gaps filled where the right answer is known: draws of three samplers beside draws of the exact posterior.

    python benchmarks/known_posterior.py --out results/known-posterior.json

One law at a time with ``--laws mixture``; what is computed is put beside what the file holds.

Two laws of 24 readings on a ring, of which some are hidden at random, others in every test signal:

    mixture   three Gaussians of 24 dimensions with means and covariances of their own. Given some readings it is a
              mixture again: weights by how probable each made them, components conditioned. 20 readings are hidden:
              in three of ten signals more than one component remains (of 12 hidden, in one of a hundred)
    heavy     x = sqrt(s) w + sqrt(r) e with w smooth on the ring, e independent, s and r inverse-gamma with 3 degrees
              of freedom: one quiet day, one wild one. Given (s, r) it is Gaussian, so the posterior is an integral
              over two numbers, which is taken on a grid of 61 x 61 of their logarithms. 12 readings are hidden

All learn from the same 8,000 signals (1,000 validate), in minutes on a CPU. One Gaussian is the reference, shrunk as
validation signals say: it is wrong here, and what a network is for is what a reference leaves over.

    conditional   our sampler: a network that was trained on masks, beside the posterior of that reference; kept
                  whatever it is worth (a model that is trained as usual keeps it only if it beats its reference)
    guidance      an unconditional network steered by the observations, with the same kind of reference (grcd-full);
                  with ``--guided grcd-full,grcd`` also the default, whose reference is a mixture
    reference     the posterior of the conditional model's reference alone

Against as many exact draws, in units of each reading's posterior spread (by its quartiles): sliced Wasserstein distance
(``floor``: that of two sets of exact draws), how far means are off, what intervals of 50 and 90 % cover. Levels of 16
evaluations and more, which the model has none of its own for, are spaced from 8 to 0.03. No setting was chosen by
these numbers, but for one: of 2,000 updates the conditional network was still improving, hence 6,000 for both.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import provenance

import grcd
from grcd.core.files import write_json
from grcd.core.streams import Stream
from grcd.core.tables import markdown
from grcd.data.series import Series
from grcd.diffusion.conditional import Conditional, spaced
from grcd.graphs.space import SignalSpace
from grcd.metrics.distances import sliced_wasserstein
from grcd.metrics.ensemble import covered
from grcd.references.reference import Reference
from grcd.training import conditional, windows
from grcd.training.mean import Terms
from grcd.training.means import Means
from grcd.training.pool import Fold, Pool, cross_fitted
from grcd.training.window_config import AS_THEY_ARE, WindowConfig
from grcd.training.windows import WindowModel

NODES = 24
BUDGETS = (1, 2, 4, 8, 16, 64)
FINE = {nfe: spaced(8.0, 0.03, nfe) for nfe in BUDGETS if nfe > 8}
BATCH = 32  # signals an update, of all networks
DOF, ROUGH = 3.0, 0.4  # of the heavy tails; spread of the independent part
QUARTILES = 1.349  # between those of a standard normal
GRID = np.linspace(-4, 6, 61)  # of log s and log r

Draw = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Law:
    """Signals, and exact draws of what is hidden of one."""

    name: str
    hidden: int  # readings of a test signal
    sample: Callable[[int, np.random.Generator], np.ndarray]  # (n, NODES)
    posterior: Draw  # a signal (NODES,), hidden (NODES,), n -> (n, hidden)


def ring() -> grcd.Graph:
    W = np.zeros((NODES, NODES))
    for i in range(NODES):
        W[i, (i + 1) % NODES] = W[(i + 1) % NODES, i] = 1.0
    return grcd.Graph.from_adjacency(W)


def smooth(length: float) -> np.ndarray:
    """A covariance that falls off exponentially with the distance on the ring, of variance 1."""
    apart = np.abs(np.subtract.outer(np.arange(NODES), np.arange(NODES)))
    apart = np.minimum(apart, NODES - apart)
    return np.exp(-apart / length)


def conditioned(cov: np.ndarray, hidden: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of hidden readings about their own mean given what is observed to be off, and the
    log-density of that."""
    oo, ho = cov[np.ix_(~hidden, ~hidden)], cov[np.ix_(hidden, ~hidden)]
    factor = np.linalg.cholesky(oo)
    gain = np.linalg.solve(oo, ho.T).T
    white = np.linalg.solve(factor, off)
    density = -0.5 * white @ white - np.log(np.diag(factor)).sum()
    return gain @ off, cov[np.ix_(hidden, hidden)] - gain @ ho.T, float(density)


def normal(cov: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:  # (n, d)
    v, B = np.linalg.eigh(cov)
    return rng.standard_normal((n, len(cov))) @ (B * np.sqrt(np.maximum(v, 0))).T


def chosen(logs: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:  # (n,)
    weights = np.exp(logs - logs.max())
    return rng.choice(len(logs), n, p=weights / weights.sum())


def mixture() -> Law:
    place = 2 * np.pi * np.arange(NODES) / NODES
    means = [1.5 * np.sin(place), 1.5 * np.cos(2 * place), -np.ones(NODES)]
    covs = [0.3 * smooth(2.0), 0.6 * smooth(4.0), 0.2 * smooth(1.0)]
    weights = np.array([0.5, 0.3, 0.2])

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        which = rng.choice(3, n, p=weights)
        return np.stack([means[k] + normal(covs[k], 1, rng)[0] for k in which])

    def posterior(x: np.ndarray, hidden: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        parts = [conditioned(cov, hidden, (x - mean)[~hidden]) for mean, cov in zip(means, covs, strict=True)]
        which = chosen(np.log(weights) + np.array([part[2] for part in parts]), n, rng)
        draws = np.stack([means[k][hidden] + parts[k][0] + normal(parts[k][1], n, rng) for k in range(3)])
        return draws[which, np.arange(n)]

    return Law("mixture", 20, sample, posterior)


def heavy() -> Law:
    K = smooth(3.0)

    def scales(n: int, rng: np.random.Generator) -> np.ndarray:  # inverse-gamma, so that a reading is Student's t
        return DOF / 2 / rng.gamma(DOF / 2, 1.0, n)

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        s, r = scales(n, rng), scales(n, rng)
        rough = ROUGH * np.sqrt(r)[:, None] * rng.standard_normal((n, NODES))
        return np.sqrt(s)[:, None] * normal(K, n, rng) + rough

    def prior(logs: np.ndarray) -> np.ndarray:  # of the logarithm of a scale
        return -DOF / 2 * logs - DOF / 2 * np.exp(-logs)

    s, r = (part.ravel() for part in np.meshgrid(GRID, GRID, indexing="ij"))

    def posterior(x: np.ndarray, hidden: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        v, B = np.linalg.eigh(K[np.ix_(~hidden, ~hidden)])
        var = np.exp(s)[:, None] * v + ROUGH**2 * np.exp(r)[:, None]  # of the observed, in their own basis
        logs = prior(s) + prior(r) - 0.5 * (np.log(var) + (B.T @ x[~hidden]) ** 2 / var).sum(axis=1)
        which, draws = chosen(logs, n, rng), np.empty((n, int(hidden.sum())))
        for k in np.unique(which):
            cov = np.exp(s[k]) * K + ROUGH**2 * np.exp(r[k]) * np.eye(NODES)
            mean, rest, _ = conditioned(cov, hidden, x[~hidden])
            draws[which == k] = mean + normal(rest, int((which == k).sum()), rng)
        return draws

    return Law("heavy", 12, sample, posterior)


LAWS = {"mixture": mixture, "heavy": heavy}


# -- what is compared --------------------------------------------------------------------------------------------------


def trained_conditional(graph: grcd.Graph, train: np.ndarray, val: np.ndarray, args: argparse.Namespace) -> WindowModel:
    """As ``training/windows`` does it, but for what validation would choose."""
    rows = (Series(part[:, :, None], borders=tuple(range(1, len(part)))) for part in (train, val))
    space, device, terms = SignalSpace(graph, 1, 1), torch.device("cpu"), Terms(False)
    config = WindowConfig.on(device, window=1, batch=BATCH, max_updates=args.updates, seed=args.seed)
    means = Means(space, *rows, device)
    table, stretches = windows._Table(means, terms), means.train.stretches
    references = table.references(config)
    choice = replace(references.choose(), kind="stationary", components=1)

    def learned(rows: Sequence[slice]) -> tuple[torch.Tensor, Reference, torch.Tensor]:
        z, spread = table.scored(rows)
        return z.float(), references.fit(choice, z, rows), spread.float()

    folds = cross_fitted(learned, table.features, stretches, 1, windows.FOLDS)
    z, reference, scale = learned(stretches)
    validation = Fold(z, table.features, torch.from_numpy(table.val_starts), reference, scale)
    network = conditional.fresh_network(space, table.features.shape[1], config)
    pool = Pool.drawn(space, folds, config.pool, config.seed, "training")
    outcome = conditional.train(space, network, pool, validation, config)
    network.load_state_dict(outcome.network.state_dict())
    say("conditional", outcome.summary)
    return WindowModel(Conditional(space, reference, network.eval()), means.fitted(terms, stretches))


def drawn(model: WindowModel, law: Conditional, x: np.ndarray, n: int, nfe: int, seed: int) -> np.ndarray:
    """(n, signals, NODES), of signals with gaps."""
    mean, spread, days = model.about(None, len(x))
    z = ((torch.from_numpy(x) - mean) / spread).float()

    def noise(purpose: str, shape: tuple[int, ...]) -> torch.Tensor:
        return Stream(seed, purpose).normal(range(shape[0]), shape[1] * shape[2]).view(shape)

    drawn = law.draw(z, ~z.isnan(), days[:, None], n, nfe, noise)
    return (drawn.double() * spread[:, None] + mean[:, None]).transpose(0, 1).numpy()


def scores(draws: np.ndarray, exact: np.ndarray, signals: np.ndarray, hidden: np.ndarray) -> dict[str, float]:
    """Of draws (n, signals, NODES) beside exact ones of the same shape."""
    distances, off, within = [], [], {50: list[np.ndarray](), 90: list[np.ndarray]()}
    for k, where in enumerate(hidden):
        mine, right = draws[:, k, where], exact[:, k, where]
        spread = np.subtract(*np.quantile(right, [0.75, 0.25], axis=0)) / QUARTILES  # tails do not rule it
        distances.append(sliced_wasserstein(mine / spread, right / spread))
        off.append(np.abs(mine.mean(axis=0) - right.mean(axis=0)) / spread)
        for share, inside in within.items():
            inside.append(covered(mine, signals[k, where], (0.5 - share / 200, 0.5 + share / 200)))
    cover = {f"cover {share}": float(np.concatenate(inside).mean()) for share, inside in within.items()}
    return {"sliced Wasserstein": float(np.mean(distances)), "mean off": float(np.concatenate(off).mean())} | cover


def compared(law: Law, args: argparse.Namespace) -> dict[str, Any]:
    rng, graph = np.random.default_rng(args.seed), ring()
    train, val, signals = (law.sample(n, rng) for n in (8000, 1000, args.signals))
    hidden = rng.random((args.signals, NODES)).argsort(axis=1) < law.hidden
    holed, n = np.where(hidden, np.nan, signals), args.draws
    exact, again = (np.full((n, *signals.shape), np.nan) for _ in range(2))
    for k, where in enumerate(hidden):
        exact[:, k, where], again[:, k, where] = (law.posterior(signals[k], where, n, rng) for _ in range(2))
    result: dict[str, Any] = {"floor": {"": scores(again, exact, signals, hidden)}, "seconds": {}}
    say(law.name, "floor", result["floor"][""])

    def note(name: str, nfe: int | str, draws: np.ndarray) -> None:
        result.setdefault(name, {})[str(nfe)] = scores(draws, exact, signals, hidden)
        say(law.name, name, nfe, result[name][str(nfe)])

    began = time.monotonic()
    model = trained_conditional(graph, train, val, args)
    result["seconds"]["conditional"] = round(time.monotonic() - began, 1)
    assert isinstance(model.law, Conditional)
    note("reference", "", drawn(model, model.law.alone, holed, n, 1, args.seed))
    fine = replace(model.law, levels=model.law.levels | FINE)
    for nfe in BUDGETS:
        note("conditional", nfe, drawn(model, fine, holed, n, nfe, args.seed))
    for method in args.guided.split(","):
        began = time.monotonic()
        guided = grcd.GRCD(graph, method, args.seed, "cpu", max_updates=args.updates, batch=BATCH, **AS_THEY_ARE)
        guided.fit(train, val)
        result["seconds"][f"guidance, {method}"] = round(time.monotonic() - began, 1)
        for nfe in BUDGETS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few evaluations make narrow intervals: that is what is measured
                note(f"guidance, {method}", nfe, guided.impute(holed, n, nfe, args.seed, "diffusion"))
    return result


# -- the page ----------------------------------------------------------------------------------------------------------


def page(result: dict[str, Any]) -> str:
    parts = [
        "# A posterior that is known\n",
        "Written by `benchmarks/known_posterior.py`, which says what is compared. Of 24 readings 20 (mixture) and 12"
        " (heavy) are hidden. Distances and means are in units of a reading's posterior spread; the floor is what two"
        " sets of exact draws differ by.\n",
    ]
    for name, law in result.items():
        methods, versions = law["methods"], ", ".join(f"{key} {version}" for key, version in law["versions"].items())
        about = f"seed {law['seed']}, {law['date']}, {law['hardware']} ({versions})"
        lines = [["", "NFE", "sliced Wasserstein", "mean off", "50 % covers", "90 % covers"]]
        for method, budgets in methods.items():
            if method != "seconds":
                lines += [[method, nfe, *(f"{value:.3f}" for value in each.values())] for nfe, each in budgets.items()]
        taken = ", ".join(f"{method} {seconds:.0f} s" for method, seconds in methods["seconds"].items())
        parts.append(
            f"## {name}\n\n`{law['command']}`, {about}. {law['draws']} draws of {law['signals']} signals. Training,"
            f" with other work on the machine: {taken}.\n\n{markdown(lines)}\n"
        )
    return "\n".join(parts)


BEGAN = time.monotonic()


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s]", *words, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/known-posterior.json"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=6000, help="at most, of every network")
    parser.add_argument("--signals", type=int, default=40)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--guided", default="grcd-full", help="methods whose network is guided: grcd-full,grcd")
    parser.add_argument("--laws", default="mixture,heavy", help="which of them; none: the page alone")
    args = parser.parse_args()
    about = provenance("cpu") | {"seed": args.seed, "signals": args.signals, "draws": args.draws}
    for name in filter(None, args.laws.split(",")):
        result = about | {"methods": compared(LAWS[name](), args)}
        write_json(args.out, (json.loads(args.out.read_text()) if args.out.exists() else {}) | {name: result})
    args.out.with_suffix(".md").write_text(page(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
