"""From signals to a diffusion: a method's parts by name, fitted one after the other and bound together.

process             from the settings and the graph
reference           fitted to training signals; validation signals decide how large it is
parameterisation    says what the network is trained on beside that reference
network             trained until validation stops improving (see ``loop``)
plan                what brings sampled signals nearest to validation signals, for a method that has one
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import networks
from ..core import device as devices
from ..core import memory
from ..core.progress import bar
from ..core.rows import evenly
from ..core.streams import Stream
from ..diffusion import parameterisation, plan
from ..diffusion.diffusion import Diffusion
from ..diffusion.process import PROCESSES, Process
from ..graphs.space import SignalSpace
from ..metrics import distances
from ..references import REFERENCES, Reference, TrainingSignals
from ..tasks.sample import sample
from . import loop, methods
from .config import Config

BATCH_ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 25}  # activations (signals x nodes x width) sampled at a time


def fit(
    space: SignalSpace, config: Config, device: torch.device, z_train: np.ndarray, z_val: np.ndarray, **hooks: Any
) -> tuple[Diffusion, dict]:
    """A diffusion, and how training went.

    ``z_train`` and ``z_val`` are z-scored signals (samples, d), NaN where missing; ``hooks`` are ``loop.train``'s.
    """
    method, process = methods.find(config.method), process_of(space, config, device)
    signals = TrainingSignals.of(z_train, z_val, space.spectrum, process.U, config.eps_ref, config.seed)
    reference = REFERENCES[method.reference].fit(signals)
    how = parameterisation.make(method.parameterisation, process, reference)
    network = fresh_network(space, config, device)
    with devices.arithmetic("high"):
        outcome = loop.train(
            how, reference, network, signals.train, signals.val, config, filler=signals.spectral, **hooks
        )
    diffusion = bound(space, config, process, reference, outcome.network.eval(), {})
    if method.planned:
        diffusion = replace(diffusion, plan=_planned(diffusion, signals, config.seed))
        outcome.summary["plan"] = plan.to_dict(diffusion.plan)
    return diffusion, outcome.summary


def process_of(space: SignalSpace, config: Config, device: torch.device) -> Process:
    """The forward process of a method, with the settings that concern it."""
    method = methods.find(config.method)
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
    method = methods.find(config.method)
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
    numbers = config.network.size(space.d)
    needs = loop.footprint(numbers, space.d, config) if training else 4.0 * numbers
    what = f"a network ({config.network}) on {space.d:,} nodes"
    what += f", trained with a batch of {config.batch:,}" if training else ""
    memory.refuse_over(needs, what, "lower the settings of the network, or the batch", devices.room(device))


def seconds_per_update(space: SignalSpace, config: Config, device: torch.device, z: np.ndarray) -> float:
    """How long an update takes here, measured on a few z-scored signals (samples, d)."""
    method, process = methods.find(config.method), process_of(space, config, device)
    signals = TrainingSignals.of(z, z, space.spectrum, process.U, config.eps_ref, config.seed)
    how = parameterisation.make(method.parameterisation, process, REFERENCES[method.reference].fit(signals))
    with devices.arithmetic("high"):
        return loop.timed(how, signals.spectral, fresh_network(space, config, device), signals.train, config)


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
