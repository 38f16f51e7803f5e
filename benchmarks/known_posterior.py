"""Gaps filled where the right answer is known: draws of three samplers beside draws of the exact posterior.

    python benchmarks/known_posterior.py --out results/known-posterior.json

Signals have 24 readings on a ring, of which some are hidden at random, others in every test signal: a mixture of
Gaussians, and heavy tails (``known_laws``). Three seeds, each with signals to learn from, test signals and networks of
its own. The same command goes on where it was stopped: what the file has of a law, a seed and a method is not computed
again. ``--laws mixture``, ``--seeds 0``: some of it.

All learn from the same 8,000 signals (1,000 validate), in minutes on a CPU. One Gaussian is the reference, shrunk as
validation signals say: it is wrong here, and what a network is for is what a reference leaves over.

    conditional   our sampler: a network that was trained on masks, beside the posterior of that reference; kept
                  whatever it is worth (a model that is trained as usual keeps it only if it beats its reference)
    conditional, masks to 95 %
                  the same, but that the points which its training masks hide are up to 95 % of a signal, not up to
                  60 %; of ``mixture``, where 20 of 24 readings are hidden
    guidance      an unconditional network steered by the observations, with the same kind of reference (grcd-full);
                  with ``--guided grcd-full,grcd`` also the default, whose reference is a mixture
    reference     the posterior of the conditional model's reference alone

In units of each reading's posterior spread, which is exact as the posterior mean is:

    sliced Wasserstein    between draws and as many exact ones (``floor``: between two sets of exact draws)
    mean error            the root of the mean over readings and signals of

                              (mean of the draws - posterior mean)^2 - variance of the draws / their number

                          so what chance adds to a mean of finitely many draws is taken off, and of exact draws nothing
                          remains but what chance leaves of that difference; 0 where it is negative
    signed                the mean of the draws less the posterior mean, the mean over readings and signals
    50 % and 90 % covers  how many hidden readings intervals of draws hold

Levels of 16 evaluations and more, which the model has none of its own for, are spaced from 8 to 0.03. No setting was
chosen by these numbers, but for one: of 2,000 updates the conditional network was still improving, hence 6,000 for all.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from known_laws import LAWS, Law, Posterior, ring
from known_posterior_page import WIDE, page
from provenance import provenance

import grcd
from grcd.core.files import write_json
from grcd.core.streams import Stream
from grcd.data.series import Series
from grcd.diffusion.conditional import Conditional, spaced
from grcd.graphs.space import SignalSpace
from grcd.metrics.distances import sliced_wasserstein
from grcd.metrics.ensemble import covered
from grcd.references.reference import Reference
from grcd.training import conditional, windows
from grcd.training.masks import FAMILIES, masks
from grcd.training.mean import Terms
from grcd.training.means import Means
from grcd.training.pool import Fold, Pool, cross_fitted
from grcd.training.window_config import AS_THEY_ARE, WindowConfig
from grcd.training.windows import WindowModel

BUDGETS = (1, 2, 4, 8, 16, 32, 64)
FINE = {nfe: spaced(8.0, 0.03, nfe) for nfe in BUDGETS if nfe > 8}
BATCH = 32  # signals an update, of all networks
TRAIN, VALIDATE = 8000, 1000
COUNTED = 12_000  # masks, as many as the conditional network learns from


# -- what is compared --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """What all methods are given of a law and a seed, and what they are compared with."""

    law: Law
    seed: int
    train: np.ndarray  # (TRAIN, NODES)
    val: np.ndarray  # (VALIDATE, NODES)
    signals: np.ndarray  # (signals, NODES)
    hidden: np.ndarray  # (signals, NODES) of bool
    posteriors: list[Posterior]  # of each signal
    exact: list[np.ndarray]  # draws (n, hidden) of each
    again: list[np.ndarray]  # others

    @classmethod
    def drawn(cls, law: Law, seed: int, signals: int, n: int) -> Case:
        rng = np.random.default_rng(seed)
        train, val, test = (law.sample(count, rng) for count in (TRAIN, VALIDATE, signals))
        hidden = rng.random(test.shape).argsort(axis=1) < law.hidden
        posteriors = [law.posterior(x, where) for x, where in zip(test, hidden, strict=True)]
        exact, again = ([each.draws(n, rng) for each in posteriors] for _ in range(2))
        return cls(law, seed, train, val, test, hidden, posteriors, exact, again)

    @property
    def holed(self) -> np.ndarray:
        """The signals as methods see them."""
        return np.where(self.hidden, np.nan, self.signals)

    def scores(self, draws: Sequence[np.ndarray]) -> dict[str, float]:
        """Of draws (n, hidden) of each signal."""
        distances, squared, signed, within = [], [], [], {50: list[np.ndarray](), 90: list[np.ndarray]()}
        for k, (mine, right) in enumerate(zip(draws, self.posteriors, strict=True)):
            distances.append(sliced_wasserstein(mine / right.sd, self.exact[k] / right.sd))
            errors = mean_errors(mine, right.mean, right.sd)
            squared.append(errors[0])
            signed.append(errors[1])
            for share, inside in within.items():
                levels = (0.5 - share / 200, 0.5 + share / 200)
                inside.append(covered(mine, self.signals[k, self.hidden[k]], levels))
        return {
            "sliced Wasserstein": float(np.mean(distances)),
            "squared mean error": float(np.concatenate(squared).mean()),
            "signed mean error": float(np.concatenate(signed).mean()),
        } | {f"cover {share}": float(np.concatenate(inside).mean()) for share, inside in within.items()}

    def of_hidden(self, draws: np.ndarray) -> list[np.ndarray]:
        """From draws (n, signals, NODES) those of hidden readings of each signal."""
        return [draws[:, k, where] for k, where in enumerate(self.hidden)]


def mean_errors(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of draws (n, readings) of a law that should have this mean and spread (readings,): the squared error of its mean,
    free of what chance adds to that of the draws, in expectation; and the difference. In units of the spread."""
    off = draws.mean(axis=0) - mean
    return (off**2 - draws.var(axis=0, ddof=1) / len(draws)) / sd**2, off / sd


# -- the methods -------------------------------------------------------------------------------------------------------

Fills = dict[str, dict[str, Callable[[], np.ndarray]]]  # by name and evaluations: draws (n, signals, NODES)


def by_conditional(case: Case, name: str, args: argparse.Namespace) -> Fills:
    points = FAMILIES["points"]._replace(hidden=lambda u: u.readings < 0.05 + 0.9 * u.windows[0])
    with patch.dict(FAMILIES, points=points) if name == WIDE else nullcontext():
        model = trained_conditional(case, args.updates)
    assert isinstance(model.law, Conditional)
    law = replace(model.law, levels=model.law.levels | FINE)
    fills: Fills = {} if name == WIDE else {"reference": {"": partial(drawn, model, law.alone, case, args.draws, 1)}}
    return fills | {name: {str(nfe): partial(drawn, model, law, case, args.draws, nfe) for nfe in BUDGETS}}


def trained_conditional(case: Case, updates: int) -> WindowModel:
    """As ``training/windows`` does it, but for what validation would choose."""
    rows = (Series(part[:, :, None], borders=tuple(range(1, len(part)))) for part in (case.train, case.val))
    space, device, terms = SignalSpace(ring(), 1, 1), torch.device("cpu"), Terms(False)
    config = WindowConfig.on(device, window=1, batch=BATCH, max_updates=updates, seed=case.seed)
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


def drawn(model: WindowModel, law: Conditional, case: Case, n: int, nfe: int) -> np.ndarray:
    """(n, signals, NODES), of the signals with gaps."""
    mean, spread, days = model.about(None, len(case.holed))
    z = ((torch.from_numpy(case.holed) - mean) / spread).float()

    def noise(purpose: str, shape: tuple[int, ...]) -> torch.Tensor:
        return Stream(case.seed, purpose).normal(range(shape[0]), shape[1] * shape[2]).view(shape)

    drawn = law.draw(z, ~z.isnan(), days[:, None], n, nfe, noise)
    return (drawn.double() * spread[:, None] + mean[:, None]).transpose(0, 1).numpy()


def by_guidance(case: Case, name: str, args: argparse.Namespace) -> Fills:
    settings: dict[str, Any] = {"max_updates": args.updates, "batch": BATCH, **AS_THEY_ARE}
    model = grcd.GRCD(ring(), name.removeprefix("guidance, "), case.seed, "cpu", **settings)
    model.fit(case.train, case.val)

    def filled(nfe: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few evaluations make narrow intervals: that is what is measured
            return model.impute(case.holed, args.draws, nfe, case.seed, "diffusion")

    return {name: {str(nfe): partial(filled, nfe) for nfe in BUDGETS}}


def methods_of(law: str, guided: str) -> dict[str, Callable[[Case, str, argparse.Namespace], Fills]]:
    """What is trained for a law, by name."""
    own = {"conditional": by_conditional} | ({WIDE: by_conditional} if law == "mixture" else {})
    return own | {f"guidance, {method}": by_guidance for method in guided.split(",")}


def masks_as_sparse(hidden: int) -> float:
    """The share of training masks of the conditional network that hide so many readings or more, but not all."""
    space = SignalSpace(ring(), 1, 1)
    recorded = torch.ones(COUNTED, space.d, dtype=torch.bool)
    count = masks(Stream(0, "training masks"), 0, space, recorded).sum(1)
    return float(((count >= hidden) & (count < space.d)).double().mean())


# -- what was measured -------------------------------------------------------------------------------------------------


def measured(case: Case, name: str, method: Callable[..., Fills], args: argparse.Namespace) -> dict[str, Any]:
    """The scores of a method by name and evaluations, and what its training took."""
    began = time.process_time()
    fills = method(case, name, args)
    found: dict[str, Any] = {"seconds": {name: round(time.process_time() - began, 1)}, "methods": {}}
    for key, budgets in fills.items():
        for nfe, fill in budgets.items():
            scores = case.scores(case.of_hidden(fill()))
            found["methods"].setdefault(key, {})[nfe] = scores
            say(case.law.name, f"seed {case.seed}", key, nfe, scores)
    return found


def held(path: Path, setting: dict[str, int]) -> dict[str, Any]:
    """What a file has, which must have been measured with the same setting."""
    result = json.loads(path.read_text()) if path.exists() else {}
    for name, law in result.items():
        if (found := law.get("setting")) != setting:
            raise SystemExit(f"{path} has {name} with {found}, this is {setting}: choose another --out, or delete it")
    return result


def add(path: Path, setting: dict[str, int], law: Law, seed: int, found: dict[str, Any]) -> None:
    """Puts what was found of a law and a seed beside what the file has by now."""
    result = held(path, setting)
    entry = result.setdefault(law.name, {"setting": setting, "hidden": law.hidden, "seeds": {}})
    entry.setdefault("masks as sparse", masks_as_sparse(law.hidden))
    seeds = entry["seeds"]
    own = seeds.setdefault(str(seed), provenance("cpu") | {"seconds": {}, "methods": {}})
    for key, values in found.items():
        own[key] |= values
    write_json(path, result)


BEGAN = time.monotonic()


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s]", *words, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/known-posterior.json"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--updates", type=int, default=6000, help="at most, of every network")
    parser.add_argument("--signals", type=int, default=40)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--guided", default="grcd-full", help="methods whose network is guided: grcd-full,grcd")
    parser.add_argument("--laws", default="mixture,heavy", help="which of them; none: the page alone")
    args = parser.parse_args()
    setting = {"signals": args.signals, "draws": args.draws, "updates": args.updates}
    for seed in map(int, args.seeds.split(",")):
        for law in (LAWS[name]() for name in filter(None, args.laws.split(","))):
            case = Case.drawn(law, seed, args.signals, args.draws)
            done = held(args.out, setting).get(law.name, {"seeds": {}})["seeds"].get(str(seed), {"methods": {}})
            if "floor" not in done["methods"]:
                add(args.out, setting, law, seed, {"methods": {"floor": {"": case.scores(case.again)}}})
            for name, method in methods_of(law.name, args.guided).items():
                if name not in done["methods"]:
                    add(args.out, setting, law, seed, measured(case, name, method, args))
    args.out.with_suffix(".md").write_text(page(held(args.out, setting)))


if __name__ == "__main__":
    main()
