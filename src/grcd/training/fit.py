"""From signals to a diffusion: a method's parts by name, fitted one after the other and bound together.

process             from the settings and the graph
reference           fitted to training signals; validation signals decide how large it is
parameterisation    says what the network is trained on beside that reference
network             trained until validation stops improving (see ``loop``)
plan                what brings sampled signals nearest to validation signals, for a method that has one
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import networks
from ..core import device as devices
from ..core import memory
from ..core.errors import InputWarning, counted
from ..core.progress import bar, working
from ..core.rows import evenly
from ..core.streams import Stream
from ..diffusion import parameterisation, plan
from ..diffusion.diffusion import Diffusion
from ..diffusion.process import PROCESSES, Process
from ..graphs.space import SignalSpace
from ..metrics import distances
from ..networks.nothing import Nothing
from ..references import REFERENCES, Reference, TrainingSignals
from ..tasks.sample import sample
from . import budget, large, loop, methods
from .config import Config

LEAST = 8  # validation signals that can tell whether a network helps
JUDGED = 1 << 20  # readings that a reference alone is judged by
NOTABLE = 30.0  # seconds
BATCH_ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 25}  # activations (signals x nodes x width) sampled at a time


def fit(
    space: SignalSpace,
    config: Config,
    device: torch.device,
    z_train: np.ndarray,
    z_val: np.ndarray,
    settle: budget.Settle = budget.anew,
    began: float | None = None,
    **hooks: Any,
) -> tuple[Diffusion, dict]:
    """A diffusion, and how training went.

    ``z_train`` and ``z_val`` are z-scored signals (samples, d), NaN where missing; ``hooks`` are ``loop.train``'s.
    ``settle`` remembers what a budget of time decided, which counts from ``began``.
    """
    began = time.monotonic() if began is None else began
    method, process = methods.on(config.method, space.graph), process_of(space, config, device)
    signals = TrainingSignals.of(z_train, z_val, space.spectrum, process.U, config.eps_ref, config.seed, space.graph)
    reference = REFERENCES[method.reference].fit(signals)
    filler = signals.filler(reference)
    how = parameterisation.make(method.parameterisation, process, reference)
    until = began + 60 * config.minutes if config.minutes else math.inf

    def seconds(settings: Mapping[str, Any]) -> float:
        own = config.changed(settings)
        with devices.arithmetic("high"):
            return loop.timed(how, filler, fresh_network(space, own, device), signals.train, own)

    reason = large.NOT_WANTED if config.backbone == "none" else few(method, len(z_val))
    if not reason and (space.graph.large or config.minutes):
        with working("timing a few updates"):
            decided = settle(lambda: _decided(space, config, device, method, seconds, budget.left(until)))
        reason = no_time(config, space) if decided.get("backbone") == "none" else ""
        config = config.changed(decided)
    if reason:
        diffusion = bound(space, config, process, reference, Nothing(), {})
        return diffusion, _reference_alone(diffusion, signals, reason, began)
    if math.isinf(until) and device.type == "cpu" and config.max_updates >= budget.LEAST and not space.graph.large:
        with working("timing a few updates"):
            update = seconds({})
        budget.warn_long(config.max_updates * update)
    network = fresh_network(space, config, device)
    with devices.arithmetic("high"):
        outcome = loop.train(
            how,
            reference,
            network,
            signals.train,
            signals.val,
            config,
            filler=filler,
            until=until,
            certain=method.certain,
            **hooks,
        )
    diffusion = bound(space, config, process, reference, outcome.network.eval(), {})
    if method.planned:
        diffusion = replace(diffusion, plan=_planned(diffusion, signals, config.seed))
        outcome.summary["plan"] = plan.to_dict(diffusion.plan)
    return diffusion, outcome.summary


def _decided(
    space: SignalSpace,
    config: Config,
    device: torch.device,
    method: methods.Method,
    seconds: Callable[[Mapping[str, Any]], float],
    left: Callable[[], float],
) -> dict[str, Any]:
    """What a network gets on a large graph, or within a budget of time."""
    if space.graph.large:
        return large.decided(space, config, device, seconds, left)
    return budget.of_moments(config.to_dict(), seconds, left, alone=method.certain)


def reference_alone(
    space: SignalSpace, config: Config, device: torch.device, z_train: np.ndarray, z_val: np.ndarray
) -> Diffusion:
    """The diffusion of a method with its reference, fitted to z-scored signals (samples, d), and no network."""
    method, process = methods.on(config.method, space.graph), process_of(space, config, device)
    signals = TrainingSignals.of(z_train, z_val, space.spectrum, process.U, config.eps_ref, config.seed, space.graph)
    return bound(space, config, process, REFERENCES[method.reference].fit(signals), Nothing(), {})


def alone(space: SignalSpace, config: Config, device: torch.device) -> bool:
    """Whether it is certain beforehand that there will be no network: nobody wants one, or it would take too long."""
    if config.backbone == "none":
        return True
    left = 60 * config.minutes if config.minutes else math.inf
    return space.graph.large and large.hopeless(space, config, device, left)


def no_time(config: Config, space: SignalSpace) -> str:
    """That there will be no network for want of time."""
    time = f"{config.minutes:g} minutes" if config.minutes else "an hour"
    return (
        f"a network on {space.d:,} nodes cannot be trained in {time} here (with more --minutes, or on a GPU, it may be)"
    )


def few(method: methods.Method, validating: int) -> str:
    """Why there will be no network, where a method keeps it only beyond chance and nothing could tell."""
    if not method.certain or validating >= LEAST:
        return ""
    return f"{counted(validating, 'validation signal')}, too few to tell whether a network helps"


def _reference_alone(diffusion: Diffusion, signals: TrainingSignals, reason: str, began: float) -> dict:
    """How training went that was none; where that was not asked for, it is said, and how long the reference took."""
    took = time.monotonic() - began
    if reason != large.NOT_WANTED:
        long = f", which took {took / 60:.1f} minutes" if took > NOTABLE else ""
        warnings.warn(f"{reason}: the model is its reference alone{long}", InputWarning, stacklevel=3)
    count = max(4, min(256, JUDGED // diffusion.space.d))
    x = signals.val[evenly(len(signals.val), count)].double()
    x = signals.filler(diffusion.reference).whole(x, Stream(signals.seed, "validation gaps", x.device))
    noise = Stream(signals.seed, "validation", x.device).normal(0, x.numel()).view_as(x)
    levels = diffusion.process.training_level((torch.arange(4, device=x.device).double() + 0.5) / 4)
    how, reference = diffusion.parameterisation, diffusion.reference
    with working("the reference's validation error"):
        error = float(torch.stack([how.baseline(reference, x, noise, q).mean() for q in levels]).mean())
    seconds = round(time.monotonic() - began, 1)
    summary = {"updates": 0, "best_update": 0, "val": error, "val_reference_alone": error, "seconds": seconds}
    return summary | {"stopped": f"{reason}, the reference alone"}


def process_of(space: SignalSpace, config: Config, device: torch.device) -> Process:
    """The forward process of a method, with the settings that concern it."""
    method = methods.on(config.method, space.graph)
    return PROCESSES[method.process].of(space, config.process | {"levels": method.levels}).to(device)


def fresh_network(space: SignalSpace, config: Config, device: torch.device) -> nn.Module:
    """The network before training: its weights depend on the seed alone, and nothing on them."""
    refuse_too_large(space, config, device, training=False)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.seed)
        return networks.make(config.backbone, space.spectrum, config.network).to(device)


def bound(
    space: SignalSpace, config: Config, process: Process, reference: Reference, network: nn.Module, chosen: plan.Plan
) -> Diffusion:
    """The parts of the method ``config.method``, as one diffusion."""
    method = methods.on(config.method, space.graph)
    return Diffusion(
        space,
        process,
        reference,
        parameterisation.make(method.parameterisation, process, reference),
        network,
        default=plan.Choice(rho=method.rho, solver=method.solver),
        plan=chosen,
        method=config.method,
        terminal=method.terminal,
        batch=max(1, BATCH_ENTRIES[process.U.device.type] // config.network.layer(space.d)),
    )


def sampled_as(diffusion: Diffusion, name: str) -> Diffusion:
    """The same network, sampled as another method would."""
    method = methods.find(name)
    process = diffusion.process.between(method.levels)
    return replace(
        diffusion,
        process=process,
        parameterisation=parameterisation.make(method.parameterisation, process, diffusion.reference),
        default=plan.Choice(rho=method.rho, solver=method.solver),
        plan=diffusion.plan if method.planned else {},
        method=name,
        terminal=method.terminal,
    )


def refuse_too_large(space: SignalSpace, config: Config, device: torch.device, training: bool) -> None:
    """Before memory is asked for."""
    if training and space.graph.large:
        config = replace(config, batch=large.batch(space, config, device))
    numbers = config.network.size(space.d)
    needs = loop.footprint(numbers, space.d, config) if training else 4.0 * numbers
    what = f"a network ({config.network}) on {space.d:,} nodes"
    what += f", trained with a batch of {config.batch:,}" if training else ""
    memory.refuse_over(needs, what, "lower the settings of the network, or the batch", devices.room(device))


def _planned(diffusion: Diffusion, signals: TrainingSignals, seed: int) -> plan.Plan:
    """How to sample: what brings signals nearest to validation signals."""
    if len(signals.val) < plan.LEAST:
        return {nfe: plan.Choice() for nfe in plan.BUDGETS}
    z = signals.val[evenly(len(signals.val), plan.SIGNALS)]
    real, energies = signals.spectral.whole(z, Stream(seed, "plan gaps", z.device)), list[float]()
    with bar("choosing a sampler", plan.count()) as advance:

        def distance(choice: plan.Choice, nfe: int) -> float:
            choices = choice.solver, nfe, tuple(diffusion.levels(nfe, choice))
            x = sample(diffusion, plan.SIGNALS, "plan", seed, choices)
            energies.append(distances.energy(x, real, diffusion.device))
            advance(len(energies), f"{choice.solver}, NFE {nfe}")
            return energies[-1]

        return plan.choose(distance)
