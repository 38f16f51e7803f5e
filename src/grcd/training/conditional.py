"""Training the conditional model of windows: a network learns what the posterior of its reference leaves over.

**Objective.** Hidden readings of a pair (see ``pool``) are noised to a level ``q``, ``log q`` normal and spread evenly
over a batch. The network answers ``F`` and ``s`` (see ``networks/spacetime``); were ``F*`` the right answer, it costs

    error + share / 2 (s + error exp(-s)),      error = (F - F*)^2

over hidden readings, weighted by the spread of their posterior in units. ``s`` learns the error, and ``F`` nothing from
``s``: the error in the second term is a number.

**Updates.** Muon for the matrices of blocks, AdamW for the rest, a rate that falls by a cosine, an average of weights
that forgets how it began. What an update draws is keyed by the seed and its number. On CUDA it is captured once and
replayed. Several processes share its pairs (see ``core/parallel``); then nothing is captured.

**What is kept** are the averaged weights of the lowest validation error; and they are kept only if their draws have a
lower CRPS than the reference's posterior in validation windows, by more than chance (windows that overlap count once),
and no higher energy score, which sees how readings hang together: else the reference stands alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..core import device as devices
from ..core.device import arithmetic
from ..core.errors import InputError, InputWarning
from ..core.parallel import team
from ..core.progress import working
from ..core.rows import evenly
from ..core.settings import Settings, ranged
from ..core.streams import SEED_MOST, Stream
from ..diffusion.conditional import FEATURES, FUSED, Conditional, autocast
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from ..metrics.chance import chance
from ..metrics.ensemble import crps, energy
from ..networks.spacetime import LOG_VARIANCE, Fused, Network, SpaceTimeNet
from ..references.stationary import normal_crps
from .budget import Pace
from .loop import Outcome, Training, begin_adam, repeat
from .masks import masks
from .muon import Muon
from .pool import Batch, Fold, Pool
from .stopping import Plateau

VALIDATION_MOST = 512  # windows, evenly spaced
JUDGED = 96  # of them with draws, at the end
JUDGED_DRAWS, JUDGED_NFE = 16, 4
BETAS = (0.9, 0.99)
TIMED_UPDATES = 4  # by which the time of all others is told, the first of them warms up
COMPILED_GAIN, COMPILING = 2.0, 31.0  # on a GPU: times quicker, and seconds that it takes (results/space-time.md)


@dataclass(frozen=True)
class Setting(Settings):
    """What decides how the network is made and trained; defaults are for a GPU."""

    seed: int = ranged(0, 0, SEED_MOST)
    # the network
    width: int = 128
    blocks: int = 4
    heads: int = 4
    # what it learns from
    pool: int = 40_000  # pairs of a window and a mask
    level_mean: float = ranged(-0.3, -10, 10)  # of log q
    level_sd: float = ranged(1.3, 0, 10)
    likelihood: float = ranged(0.25, 0)  # share of the variance's term in the loss
    # training
    batch: int = ranged(32, most=1 << 20)
    max_updates: int = ranged(13_000, 0)  # none: the reference alone
    minutes: float = ranged(0, 0, 1e5)  # that training may take: decides how large a network is; 0: no matter
    lr: float = ranged(1e-3, 1e-30, 1e30)
    muon: float = ranged(1.5, 0)  # its rate is so many times lr
    weight_decay: float = ranged(0.01, 0, 1e3)
    warmup: int = 200  # updates, at most a tenth of all
    clip: float = 1.0
    ema: float = ranged(0.999, 0, 1)
    validate_every: int = 500
    patience: int = 8
    tolerance: float = ranged(0.002, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            got = f"width = {self.width}, heads = {self.heads}"
            raise InputError(got, "a width that heads divide", f"choose a width of {self.heads} times something")

    @classmethod
    def on(cls, device: torch.device, **settings: Any) -> Setting:
        """Defaults for a device, but for ``settings``: a CPU trains a small network, in minutes."""
        small: dict[str, Any] = {"width": 32, "blocks": 3, "pool": 12_000, "batch": 8, "lr": 2e-3}
        small |= {"max_updates": 2_400, "validate_every": 200}
        return cls(**(({} if device.type == "cuda" else small) | settings))


def fit(
    space: SignalSpace,
    folds: Sequence[Fold],  # of training rows
    validation: Fold,  # its reference, of all training rows, is the one that is kept
    setting: Setting,
    log: Callable[[Any, dict], None] = lambda state, record: None,
    resume: Callable[[Any], None] = lambda state: None,
    until: float = math.inf,
) -> tuple[Conditional, dict]:
    """A conditional model of windows, and how training went.

    ``log`` is told of every validation, ``resume`` may restore a state; ``until``: see ``loop.repeat``.
    """
    if not setting.max_updates:
        summary = {"updates": 0, "best_update": 0, "seconds": 0.0, "stopped": "no network", "network": False}
        return Conditional(space, validation.reference), summary
    network = fresh_network(space, validation.calendar.shape[1], setting).to(validation.z.device)
    with arithmetic("high"):
        pairs = min(setting.pool, setting.max_updates * setting.batch)
        pool = Pool.drawn(space, folds, pairs, setting.seed, "training")
        outcome = train(space, network, pool, validation, setting, log, resume, until)
    network.load_state_dict(outcome.network.state_dict())
    conditional = Conditional(space, validation.reference, network.eval())
    return judged(conditional, validation, setting.seed, outcome.summary)


def fresh_network(space: SignalSpace, calendar: int, setting: Setting) -> SpaceTimeNet:
    """The network before training, told so many numbers of a step: its weights depend on the seed alone."""
    columns = torch.arange(len(space.graph) * space.channels)
    node, channel = columns // space.channels, columns % space.channels
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")  # without a calendar
        torch.default_generator.manual_seed(setting.seed)
        size = setting.width, setting.blocks, setting.heads
        return SpaceTimeNet(space.steps, neighbourhood(space.graph), node, channel, FEATURES, calendar, *size)


def neighbourhood(graph: Graph) -> Tensor:  # (nodes, nodes)
    """Its weights over the roots of both degrees, ``I - L``; an isolated node hears nothing."""
    degree = graph.weights.sum(axis=1)
    root = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    return torch.from_numpy(root[:, None] * graph.weights.toarray() * root)


def losses(network: Network, batch: Batch, noise: Tensor, q: Tensor, likelihood: float, steps: int) -> Tensor:
    """The objective a window (batch,), with ``noise`` (batch, d) at levels ``q`` (batch,)."""
    hidden, level = batch.weight > 0, q[:, None]
    noised = torch.where(hidden, batch.u + level * noise, 0)
    right = (batch.u - noised / (1 + level**2)) * (1 + level**2).sqrt() / level
    with autocast(noise.device):
        grid = (steps, -1)
        raw, s = network(noised.unflatten(1, grid), q, batch.features.unflatten(1, grid), batch.calendar)
    return _objective((raw.flatten(1) - right).square(), s.flatten(1).clamp(*LOG_VARIANCE), batch.weight, likelihood)


def _objective(error: Tensor, s: Tensor, weight: Tensor, likelihood: float) -> Tensor:
    spread = 0.5 * (s + error.detach() * (-s).exp())
    return (weight * (error + likelihood * spread)).sum(1) / (weight > 0).sum(1).clamp(min=1)


def levels(u: Tensor, setting: Setting) -> Tensor:
    """From uniform numbers to levels."""
    return (setting.level_mean + setting.level_sd * torch.special.ndtri(u.clamp(1e-4, 1 - 1e-4))).exp().float()


class State(Training):
    """Of a network trained by Muon and AdamW, whose rates are tensors: a captured update sees them change."""

    def __init__(self, network: SpaceTimeNet, setting: Setting, baseline: float):
        named = [(name, p) for name, p in network.blocks.named_parameters() if p.dim() == 2 and "level" not in name]
        matrices = [p for _, p in named]
        rest = [p for p in network.parameters() if all(p is not matrix for matrix in matrices)]
        device = rest[0].device
        self.rate, self.muon_rate, self.blend = (torch.zeros((), device=device) for _ in range(3))
        adam = torch.optim.AdamW(
            rest, self.rate, BETAS, weight_decay=setting.weight_decay, fused=True, capturable=device.type == "cuda"
        )
        begin_adam(adam, rest)
        plateau = Plateau(baseline, "gain", setting.patience, setting.tolerance)
        super().__init__(
            network, {"muon": Muon(matrices, self.muon_rate, decay=setting.weight_decay), "adam": adam}, plateau
        )
        self.setting, self.average = setting, list[Tensor](self.ema.parameters())

    def schedule(self) -> None:
        """The rates of the update to come, and how much of its weights the average takes."""
        setting, k = self.setting, self.update
        warmup = max(1, min(setting.warmup, setting.max_updates // 10))
        rate = setting.lr * min(1.0, (k + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * k / setting.max_updates))
        self.rate.fill_(rate)
        self.muon_rate.fill_(setting.muon * rate)
        self.blend.fill_(1 - min(setting.ema, (1 + k) / (10 + k)))


class Update:
    """One update on buffers that ``__call__`` fills; on CUDA a captured graph. Of several processes each has its
    ``rows`` of the batch."""

    def __init__(self, state: State, pool: Pool, setting: Setting, steps: int):
        self.state, self.pool, self.setting, self.steps = state, pool, setting, steps
        device, d, self.rows = pool.u.device, pool.u.shape[1], team().rows(setting.batch)
        count = self.rows.stop - self.rows.start
        self.share = count / setting.batch
        self.streams = [Stream(setting.seed, purpose, device) for purpose in ("pair", "noise", "level")]
        self.index = torch.zeros(count, dtype=torch.long, device=device)
        self.noise = torch.zeros(count, d, device=device)
        self.q = torch.ones(count, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)  # training loss since it was last read
        work = setting.max_updates * setting.batch * d * setting.width
        self.network: Network = Fused(state.network) if device.type == "cuda" and work >= FUSED else state.network
        self.replay = state.captured(self._step, self.total)

    def __call__(self) -> None:
        number, first, count = self.state.update, self.rows.start, len(self.q)
        pair, noise, level = self.streams
        self.index.copy_(pair.integers(number, count, len(self.pool), first))
        shape = self.noise.shape
        self.noise.copy_(noise.normal(number, self.noise.numel(), first * shape[1]).view(shape))
        place = torch.arange(first, first + count, device=self.q.device)  # levels spread evenly: a quieter gradient
        self.q.copy_(levels((place + level.uniform(number, count, first)) / self.setting.batch, self.setting))
        self.state.schedule()
        self.replay()

    def forward(self) -> Tensor:
        """The share that what lies in the buffers has in the loss of a batch."""
        batch, likelihood = self.pool.batch(self.index), self.setting.likelihood
        return losses(self.network, batch, self.noise, self.q, likelihood, self.steps).mean() * self.share

    def _step(self) -> None:
        state, setting = self.state, self.setting
        loss = self.forward()
        state.network.zero_grad(set_to_none=True)
        loss.backward()
        state.sum_gradients()
        nn.utils.clip_grad_norm_(state.parameters, setting.clip)
        for optimizer in state.optimizers.values():
            optimizer.step()
        with torch.no_grad():
            ahead = list(torch._foreach_sub([*state.parameters], state.average))
            torch._foreach_mul_(ahead, state.blend)
            torch._foreach_add_(state.average, ahead)
            self.total += loss


class Validation:
    """The objective in validation windows, with the same masks, noise and levels every time."""

    def __init__(self, space: SignalSpace, fold: Fold, setting: Setting):
        self.setting, self.steps = setting, space.steps
        self.pool = Pool.evenly(space, fold, VALIDATION_MOST, setting.seed, "validation")
        noise, level = (Stream(setting.seed, f"validation {what}", fold.z.device) for what in ("noise", "level"))
        self.noise = noise.normal(range(len(self.pool)), space.d).float()
        u = (level.uniform(0, len(self.pool)).argsort() + level.uniform(1, len(self.pool))) / len(self.pool)
        self.q = levels(u, setting)

    @torch.no_grad()
    def __call__(self, network: nn.Module) -> float:
        batches = torch.arange(len(self.pool), device=self.q.device).split(self.setting.batch)

        def some(number: int) -> tuple[Tensor]:
            rows = batches[number]
            batch = self.pool.batch(rows), self.noise[rows], self.q[rows]
            return (losses(network, *batch, self.setting.likelihood, self.steps),)

        return float(torch.cat([part for (part,) in team().each(len(batches), some)]).double().mean())


def train(
    space: SignalSpace,
    network: SpaceTimeNet,
    pool: Pool,
    fold: Fold,  # of validation rows
    setting: Setting,
    log: Callable[[Any, dict], None] = lambda state, record: None,
    resume: Callable[[Any], None] = lambda state: None,
    until: float = math.inf,
) -> Outcome:
    """Train until validation stops improving, or the rate is down; ``network`` is fresh, so it is its reference."""
    validation = Validation(space, fold, setting)
    baseline = validation(network)
    state = State(network, setting, baseline)
    state.plateau.begin(baseline)
    update = Update(state, pool, setting, space.steps)
    resume(state)
    state.follow()
    every, most = setting.validate_every, setting.max_updates
    repeat(state, update, lambda: validation(state.ema), update.total, every, most, log, until)
    return Outcome(state)


def paces(space: SignalSpace, folds: Sequence[Fold], fold: Fold, setting: Setting) -> Callable[[int], Pace]:
    """How long things take here by the width of a network, each measured once; ``fold`` is that of validation rows."""
    with arithmetic("high"):
        Pool.drawn(space, folds, 1, setting.seed, "warming up")  # factors what is only factored once
        began = time.monotonic()
        pool = Pool.drawn(space, folds, setting.batch, setting.seed, "timing")
        devices.wait(fold.z.device)
        pair = (time.monotonic() - began) / len(pool)
    windows = min(VALIDATION_MOST, len(fold.starts))

    def pace(width: int) -> Pace:
        few = replace(setting, width=width, max_updates=TIMED_UPDATES)
        network = fresh_network(space, fold.calendar.shape[1], few).to(fold.z.device)
        with arithmetic("high"):
            update = Update(State(network, few, 1.0), pool, few, space.steps)
            step, forward = (_seconds(work, fold.z.device) for work in (update, lambda: update.forward()))
        draws = min(JUDGED, windows) * JUDGED_DRAWS * JUDGED_NFE
        compiled = fold.z.is_cuda and setting.max_updates * setting.batch * space.d * width >= FUSED
        step, forward = (seconds / (COMPILED_GAIN if compiled else 1.0) for seconds in (step, forward))
        forward /= setting.batch  # of a window
        after = (windows + min(JUDGED, windows)) * pair + draws * forward + COMPILING * compiled
        return Pace(pair, step, windows * forward, after)

    return pace


def _seconds(work: Callable[[], Any], device: torch.device) -> float:
    """That it takes, after a first time that warms up."""
    work()
    devices.wait(device)
    began = time.monotonic()
    for _ in range(TIMED_UPDATES - 1):
        work()
    devices.wait(device)
    return (time.monotonic() - began) / (TIMED_UPDATES - 1)


def judged(conditional: Conditional, fold: Fold, seed: int, summary: dict) -> tuple[Conditional, dict]:
    """The model, or its reference alone where the network's draws are no nearer to hidden readings; and which it is."""
    summary = summary | {"network": summary["best_update"] > 0}
    if summary["network"]:
        with working("comparing the network with its reference"):
            scores = scores_of(conditional, fold, seed)
        summary |= {name: float(score.mean()) for name, score in scores._asdict().items() if name != "group"}
        # As shares: windows of which nothing is known would outweigh all filled gaps.
        gain, joint = 1 - scores.crps / scores.crps_reference_alone, 1 - scores.energy / scores.energy_reference_alone
        needed = chance(gain.cpu().numpy(), scores.group.cpu().numpy())
        summary["network"] = bool(gain.mean() > needed and joint.mean() > 0)
    if summary["network"]:
        return conditional, summary
    warnings.warn(
        "the network does not clearly beat its reference in validation windows: the reference is used alone",
        InputWarning,
        stacklevel=2,
    )
    return Conditional(conditional.space, conditional.reference), summary


class Scores(NamedTuple):
    """Of hidden readings in validation windows, in units, lower is better: (windows,) each."""

    crps: Tensor  # the mean over readings
    crps_reference_alone: Tensor
    energy: Tensor  # of all hidden readings of a window together: how they hang together counts
    energy_reference_alone: Tensor
    group: Tensor  # of windows that overlap, or nearly


def scores_of(conditional: Conditional, fold: Fold, seed: int) -> Scores:
    """Of the model's draws, and of its reference's posterior."""
    space, device = conditional.space, fold.z.device
    starts = fold.starts[evenly(len(fold.starts), JUDGED)]
    rows = fold.windows(starts, space.steps)
    z = fold.z[rows].flatten(1)
    hidden = masks(Stream(seed, "judged masks", device), 0, space, ~z.isnan(), fold.gaps(space.steps))
    observed = ~z.isnan() & ~hidden

    def noise(purpose: str, shape: tuple[int, int, int]) -> Tensor:
        stream = Stream(seed, f"judged {purpose}", device)
        return stream.normal(range(shape[0]), shape[1] * shape[2]).view(shape)

    options = z, observed, fold.calendar[rows], JUDGED_DRAWS, JUDGED_NFE, noise
    x, alone = (each.draw(*options).transpose(0, 1).double() for each in (conditional, conditional.alone))
    posterior = conditional.reference.posterior(z, observed)
    weight = (hidden * (1.0 if fold.scale is None else fold.scale[rows].flatten(1))).double()
    ours = torch.from_numpy(crps(x.cpu().numpy(), z.double().cpu().numpy())).to(device)
    theirs = normal_crps(z.to(posterior.mean), posterior.mean, posterior.sd)
    scored, count = hidden.any(1), hidden.sum(1)
    means = (torch.where(hidden, each.double() * weight, 0).sum(1) / count for each in (ours, theirs))
    truth = z.double().nan_to_num() * weight
    joint = (energy((draws.nan_to_num() * weight).cpu().numpy(), truth.cpu().numpy()) for draws in (x, alone))
    parts = *means, *(torch.from_numpy(each).to(device) for each in joint), starts // space.steps
    return Scores(*(part[scored] for part in parts))
