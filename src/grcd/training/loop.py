"""One training protocol for every method (appendix A.6.2): Adam, EMA, validation of the EMA weights, early stopping.

What an update draws (batch, noise, times) is keyed by the seed and the number of the update, so a run that was
interrupted goes on as if it had not been, and all methods with one seed see the same draws. On CUDA the whole update is
captured once in a graph and replayed. Several processes share the rows of every update, and do the rest alike (see
``core/parallel``); the messages between them are not captured, so then no update is.

**Gaps.** Of a signal with missing entries (NaN) the network has to see something everywhere. Every time it is drawn,
what is missing is drawn too, given what was observed, from the Gaussian reference; and the objective asks about
observed entries only,

    mean over signals and nodes of   weight * (f_theta - f*)^2,     weight = observed / (share of entries observed)

which is the mean square over what was observed. If the data are the reference, completed signals are data too.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.device import captured
from ..core.errors import InputError
from ..core.parallel import team
from ..core.progress import bar
from ..core.rows import blocks, evenly
from ..core.streams import Stream
from ..diffusion.parameterisation import Parameterisation
from ..metrics.chance import chance
from ..references.kinds import Filler
from ..references.reference import Reference
from ..references.sparse import Sparse
from ..references.sparse_mixture import SparseMixture
from .config import Config
from .stopping import Plateau

CHUNK = 16  # updates whose random numbers are drawn together
VALIDATION_DRAWS = 1024  # at least; small validation splits are used several times, with other noise
VALIDATION_MOST = 5000  # signals; of larger splits so many, evenly spaced
GROUPS = 20  # of validation signals
LEVELS = 8  # at which the paper's rule validates every signal: the middles of eighths of the training distribution


class Training:
    """Everything that training changes. Tensors are restored in place, so that a captured graph stays valid."""

    def __init__(self, network: nn.Module, optimizers: dict[str, torch.optim.Optimizer], plateau: Plateau):
        self.network, self.ema = network, copy.deepcopy(network).requires_grad_(False)
        self.parameters = list(network.parameters())
        self.best = copy.deepcopy(self.ema)
        self.optimizers, self.plateau = optimizers, plateau
        self.update = 0
        self.seconds = 0.0
        self.late = False  # whether its time is up

    def tensors(self) -> dict[str, Tensor]:
        """All of them by name, as views: to be saved, or to be copied into."""
        named: dict[str, Tensor] = {}
        for part in ("network", "ema", "best"):
            named |= {f"{part}.{name}": p.data for name, p in getattr(self, part).named_parameters()}
        for (name, _), p in zip(self.network.named_parameters(), self.parameters, strict=True):
            for label, optimizer in self.optimizers.items():
                named |= {f"{label}.{key}.{name}": value for key, value in optimizer.state.get(p, {}).items()}
        return named

    def restore(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in self.tensors().items():
                tensor.copy_(tensors[name])

    def follow(self) -> None:
        """Of several processes all go on with the state of the first, which alone reads checkpoints."""
        team().follow(self.tensors().values())
        own = self.update, self.seconds, self.late, self.plateau
        self.update, self.seconds, self.late, self.plateau = team().from_first(lambda: own)

    def sum_gradients(self) -> None:
        """Over all processes, each of which has that of its rows."""
        team().add([p.grad for p in self.parameters if p.grad is not None])

    def captured(self, step: Callable[[], None], total: Tensor) -> Callable[[], None]:
        """An update, as a CUDA graph where that can be; what capturing changed, ``total`` of the losses included, is
        put back."""
        if not self.parameters[0].is_cuda or team().size > 1:
            return step
        before = {name: tensor.clone() for name, tensor in self.tensors().items()}
        replay = captured(step)
        self.restore(before)
        total.zero_()
        return replay


class State(Training):
    """Of a network trained by Adam."""

    def __init__(self, network: nn.Module, config: Config, baseline: float):
        parameters = list(network.parameters())
        cuda = parameters[0].is_cuda
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        self.optimizer = kind(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=True, capturable=cuda)
        begin_adam(self.optimizer, parameters)
        plateau = Plateau(baseline, config.stopping, config.patience, config.tolerance)
        super().__init__(network, {"adam": self.optimizer}, plateau)


def begin_adam(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
    """What Adam creates at its first step: a captured graph needs it before."""
    for p in parameters:
        optimizer.state[p] = {
            "step": torch.zeros((), device=p.device),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.zeros_like(p),
        }


def draws(
    config: Config,
    samples: int,
    nodes: int,
    start: int,
    device: torch.device | str = "cpu",
    rows: slice | None = None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """What each update draws, from update ``start`` on: (batch indices, noise, uniform numbers for the times).

    ``rows`` of the batch, or all.
    """
    first, count = (0, config.batch) if rows is None else (rows.start, rows.stop - rows.start)
    batch, time, noise = (Stream(config.seed, purpose, device) for purpose in ("batch", "time", "noise"))
    while True:
        chunk = range(start, start + CHUNK)
        yield from zip(
            batch.integers(chunk, count, samples, first),
            noise.normal(chunk, count * nodes, first * nodes).unflatten(-1, (count, nodes)),
            time.uniform(chunk, count, first).unsqueeze(-1),
            strict=True,
        )
        start += CHUNK


class Signals:
    """Signals by index, complete and in float64, with the weight of their entries in the loss."""

    def __init__(self, x: Tensor, filler: Filler | None, random: Stream):
        self.x, self.filler, self.random = x, filler, random
        missing = sum(int(x[rows].isnan().sum()) for rows in blocks(*x.shape))
        self.share, self.gaps = 1 - missing / x.numel(), missing > 0

    def __call__(self, index: Tensor | slice, number: int = 0, first: int = 0) -> tuple[Tensor, Tensor | None]:
        """(batch, nodes) each; gaps are drawn from the noise of that ``number``, of which the batch has the rows from
        ``first`` on. No weight where there are none."""
        x = self.x[index].double()
        if not self.gaps:
            return x, None
        noise = self.random.normal(number, x.numel(), first * x.shape[1]).view_as(x)
        assert self.filler is not None, "signals with gaps need a Gaussian to fill them from"
        return self.filler.completed(x, noise), x.isfinite().double() / self.share


class Update:
    """One optimiser step on buffers that ``__call__`` fills; on CUDA a captured graph.

    Of several processes each has its ``rows`` of the batch.

    The signals may be float32; ``filler`` is the Gaussian that their gaps are drawn from, if they have any.
    """

    def __init__(
        self,
        state: State,
        parameterisation: Parameterisation,
        x_train: Tensor,
        config: Config,
        filler: Filler | None = None,
    ):
        self.state, self.parameterisation, self.config = state, parameterisation, config
        device, self.rows = x_train.device, team().rows(config.batch)
        count = self.rows.stop - self.rows.start
        self.share = count / config.batch
        self.signals = Signals(x_train, filler, Stream(config.seed, "gaps", device))
        self.x0, self.noise, weight = (
            torch.zeros(count, x_train.shape[1], dtype=torch.float64, device=device) for _ in range(3)
        )
        self.weight = weight if self.signals.gaps else None
        self.u = torch.zeros(count, 1, dtype=torch.float64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)  # training loss since it was last read
        # A sparse reference is not on the device: what asks it cannot be captured.
        whole = not isinstance(getattr(parameterisation, "reference", None), Sparse | SparseMixture)
        self.replay = state.captured(self._step, self.total) if whole else self._step

    def __call__(self, index: Tensor, noise: Tensor, u: Tensor) -> None:
        x0, weight = self.signals(index, self.state.update, self.rows.start)
        for buffer, value in ((self.x0, x0), (self.weight, weight), (self.noise, noise), (self.u, u)):
            if buffer is not None and value is not None:
                buffer.copy_(value)
        self.replay()

    def _step(self) -> None:
        state, config = self.state, self.config
        q = self.parameterisation.process.training_level(self.u)
        loss = self.parameterisation.losses(state.network, self.x0, self.noise, q, self.weight).mean() * self.share
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.sum_gradients()
        nn.utils.clip_grad_norm_(state.parameters, config.clip)
        state.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(state.ema.parameters()), [*state.parameters], 1 - config.ema)
            self.total += loss


class Validation:
    """The denoising error: of a network, and of the reference alone (the ``baseline``).

    It is the loss, each signal at a level of its own; under the stopping rule "paper" the squared error of the denoised
    signal, each at eight levels. The draws are the same every time. Gaps are filled once. Signals near each other may
    be alike: for what chance makes of a gain they count in ``GROUPS`` groups, one after the other.
    """

    def __init__(self, parameterisation: Parameterisation, x_val: Tensor, config: Config, filler: Filler | None = None):
        self.parameterisation, self.config = parameterisation, config
        self.of_signal = config.stopping == "paper"
        x = x_val[evenly(len(x_val), VALIDATION_MOST)]
        group = np.arange(len(x)) * min(GROUPS, len(x)) // len(x)
        times = 1 if self.of_signal else -(-VALIDATION_DRAWS // len(x))
        x, self.group = x.repeat(times, 1), np.tile(group, times)
        self.x, self.weight = Signals(x, filler, Stream(config.seed, "validation gaps", x.device))(slice(None))
        self.random = Stream(config.seed, "validation", x.device)

    def draws(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Noise and noise levels for every signal, as often as it is looked at."""
        n, level = len(self.x), self.parameterisation.process.training_level
        if self.of_signal:
            for k in range(LEVELS):
                u = torch.full((n, 1), (k + 0.5) / LEVELS, dtype=self.x.dtype, device=self.x.device)
                yield self.random.normal(k, self.x.numel()).view_as(self.x), level(u)
        else:
            # Stratified: every stretch of the time axis is looked at, in random order over the signals.
            u = (self.random.uniform(1, n).argsort() + self.random.uniform(2, n)) / n
            yield self.random.normal(0, self.x.numel()).view_as(self.x), level(u)[:, None]

    @torch.no_grad()
    def __call__(self, network: nn.Module) -> float:
        return float(torch.stack([self._errors(network, *drawn).mean() for drawn in self.draws()]).mean())

    def _errors(self, network: nn.Module, noise: Tensor, q: Tensor) -> Tensor:  # (signals,)
        how, size = self.parameterisation, self.config.batch

        def of_batch(number: int) -> tuple[Tensor]:
            rows = slice(number * size, (number + 1) * size)
            drawn, weight = (self.x[rows], noise[rows], q[rows]), None if self.weight is None else self.weight[rows]
            if self.of_signal:
                return (_weighted(how.signal_error(network, *drawn), weight).mean(-1),)
            return (how.losses(network, *drawn, weight),)

        return torch.cat([part for (part,) in team().each(-(-len(self.x) // size), of_batch)])

    @torch.no_grad()
    def certain(self, network: nn.Module, start: nn.Module) -> bool:
        """Whether a network is better than another one by more than chance."""
        gains = [self._errors(start, *drawn) - self._errors(network, *drawn) for drawn in self.draws()]
        gain = torch.stack(gains).mean(0).double().cpu().numpy()
        return bool(gain.mean() > chance(gain, self.group))

    def baseline(self, reference: Reference) -> float:
        """The same error of what the reference alone predicts."""
        square = self.parameterisation.signal_error if self.of_signal else self.parameterisation.baseline
        errors = [_weighted(square(reference, self.x, *drawn), self.weight).mean() for drawn in self.draws()]
        return float(torch.stack(errors).mean())


def _weighted(square: Tensor, weight: Tensor | None) -> Tensor:
    return square if weight is None else weight * square


class Outcome:
    """What training ends with: the EMA weights of the best validation (rule "none": the last), and how it went; or the
    network as it ``start``ed, if that is to be kept."""

    def __init__(self, state: Training, start: nn.Module | None = None):
        plateau = state.plateau
        self.network = state.best if start is None else start
        self.summary = {
            "updates": state.update,
            "best_update": plateau.best_update if start is None else 0,
            "val": plateau.best_loss if start is None else plateau.baseline,
            "val_reference_alone": plateau.baseline,
            "seconds": round(state.seconds, 1),
            "stopped": _stopped(plateau, state.update, state.late),
        }


def _stopped(plateau: Plateau, update: int, late: bool = False) -> str:
    if plateau.reached:
        return "validation stopped improving"
    what = "its time was up" if late else "max_updates reached"
    improving = plateau.best_update == update and plateau.rule != "none"
    return f"{what}{', still improving' if improving else ''}"


def train(
    parameterisation: Parameterisation,
    reference: Reference,
    network: nn.Module,
    x_train: Tensor,  # (samples, nodes) z-scored, float32 or float64, NaN where missing, on the device
    x_val: Tensor,
    config: Config,
    filler: Filler | None = None,
    log: Callable[[State, dict], None] = lambda state, record: None,
    resume: Callable[[State], None] = lambda state: None,
    until: float = math.inf,
    certain: bool = False,
) -> Outcome:
    """Train until validation stops improving, or ``until`` (see ``repeat``). ``log`` gets every validation, ``resume``
    may restore a state.

    Gaps are drawn from ``filler``, a Gaussian; without gaps none is needed. With ``certain`` a network that starts as
    its reference is kept so, unless what it learned gains by more than chance.
    """
    start = copy.deepcopy(network) if getattr(network, "starts_at_zero", False) else None
    validation = Validation(parameterisation, x_val, config, filler)
    state = State(network, config, validation.baseline(reference))
    update = Update(state, parameterisation, x_train, config, filler)
    resume(state)
    state.follow()
    if state.update == 0 and start is not None:  # the reference itself is the one to beat
        state.plateau.begin(validation(state.ema))
    drawn = draws(config, len(x_train), x_train.shape[1], state.update, x_train.device, update.rows)
    repeat(
        state,
        lambda: update(*next(drawn)),
        lambda: validation(state.ema),
        update.total,
        config.validate_every,
        config.max_updates,
        log,
        until,
    )
    learned = state.plateau.best_update > 0
    doubtful = certain and learned and start is not None and not validation.certain(state.best, start)
    return Outcome(state, start if doubtful else None)


def repeat(
    state: Training,
    step: Callable[[], None],
    validated: Callable[[], float],
    total: Tensor,  # the training loss since it was last read, which ``step`` adds to
    every: int,
    most: int,
    log: Callable[[Any, dict], None],
    until: float = math.inf,
) -> None:
    """Updates until validation, ``every`` so many, stops improving, ``most`` of them; ``log`` hears of validations.

    The validation that ends after ``until``, by ``time.monotonic``, is the last one.
    """
    began, note = time.monotonic() - state.seconds, ""
    with bar("training", most, state.update) as advance:
        while not state.plateau.reached and state.update < most and not state.late:
            step()
            state.update += 1
            advance(state.update, note)
            if state.update % every == 0 or state.update == most:
                loss = validated()
                if not math.isfinite(loss):
                    raise InputError(
                        f"a validation error of {loss} at update {state.update}: training diverged",
                        "a finite one",
                        "lower the learning rate (lr), and look for wild values in the signals",
                    )
                if state.plateau.observe(loss, state.update):
                    state.best.load_state_dict(state.ema.state_dict())
                state.seconds, state.late = time.monotonic() - began, time.monotonic() > until
                steps = (state.update - 1) % every + 1
                team().add([total])
                record = {"update": state.update, "train": float(total) / steps, "val": loss}
                total.zero_()
                note = f"loss {record['train']:.4f} val {loss:.4f}"
                log(state, record)
                state.follow()  # machines that differ may round differently: here they come together again


def footprint(numbers: int, nodes: int, config: Config) -> float:
    """Bytes that training a network of so many numbers takes at least.

    Its numbers six times over (gradients, Adam's two, the average and the best weights beside them), and what its
    blocks keep of a batch for their gradients.
    """
    return 4.0 * (6 * numbers + config.batch * config.network.kept(nodes))


def timed(
    parameterisation: Parameterisation,
    filler: Filler | None,
    network: nn.Module,
    x_train: Tensor,
    config: Config,
    updates: int = 3,
) -> float:
    """Seconds an update takes, after a first one that warms up."""
    state = State(network, config, baseline=1.0)
    update = Update(state, parameterisation, x_train, config, filler)
    drawn, began = draws(config, len(x_train), x_train.shape[1], 0, x_train.device, update.rows), 0.0
    for k in range(updates + 1):
        if k == 1:
            float(update.total)  # waits for the device
            began = time.monotonic()
        update(*next(drawn))
    float(update.total)
    return (time.monotonic() - began) / updates
