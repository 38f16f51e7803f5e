"""New signals: a terminal draw at the largest level, and the reverse process that leads back from it (section 3).

The terminal draw is the reference's own marginal (GRCD), or what a method puts in its place: noise alone, the
stationary law of a heat process, a scalar variance. Signal ``i`` of a seed has random numbers of its own, so it is the
same whatever comes before it or after it.

On a GPU a small network waits for the launches of its kernels more than for the kernels. What is asked for twice in a
row is therefore captured as a CUDA graph, and replayed from then on; ``Memory`` knows what was asked for last.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..core import device as devices
from ..core.errors import unknown
from ..core.streams import Stream
from ..diffusion import solvers
from ..diffusion.parameterisation import Denoised
from ..diffusion.process import HeatProcess

if TYPE_CHECKING:
    from ..model import GRCD

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Choices = tuple[str, int, tuple[float, ...]]  # solver, network evaluations, levels


class Memory:
    """What was sampled last, and samplers captured for it by batch size."""

    def __init__(self) -> None:
        self.asked: tuple = ()
        self.replays: dict[int, tuple[Tensor, Tensor, Callable]] = {}

    def again(self, *asked: object) -> bool:
        """Whether this was asked for last time too: capturing costs as much as sampling four times."""
        again, self.asked = asked == self.asked, asked
        if not again:
            self.replays = {}
        return again


def drawn(
    model: GRCD,
    n: int,
    purpose: str,
    seed: int,
    choices: Choices,
    batch: int | None = None,
    precision: str = "float32",
    memory: Memory | None = None,
    advance: Callable = lambda done, note: None,
) -> Tensor:  # (n, nodes), z-scored
    """Signals from the noise that this seed has for this purpose; with a memory, captured there or to be."""
    parts, done, q = [], 0, choices[2][0]
    with devices.arithmetic(), torch.inference_mode():
        noise = Stream(seed, purpose, model.device).normal(0, n * len(model.graph)).view(n, -1)
        for part in noise.split(batch or model.batch()):
            start = terminal(model, part, q, (seed, done))
            parts.append(sampler(model, start, precision, choices, (seed, done), memory)(start))
            done += len(part)
            advance(done, "")
        return torch.cat(parts)


def terminal(model: GRCD, noise: Tensor, q: float, place: tuple[int, int] = (0, 0)) -> Tensor:
    """What the sampler starts from; ``place`` are the seed and the number of the first signal."""
    kind, process, reference = model.method.terminal, model.process, model.reference
    if kind == "noise":
        return q * noise
    if kind == "stationary":
        assert isinstance(process, HeatProcess)
        return process.nodes(process.modes(noise) * process.variance(q).sqrt())
    seed, start = place
    u = Stream(seed, "component", noise.device).uniform(0, start + len(noise))[start:]
    return (reference.scalar() if kind == "scalar" else reference).draw(noise, q, u)


def sampler(
    model: GRCD, x_max: Tensor, precision: str, choices: Choices, place: tuple[int, int], memory: Memory | None
) -> Callable[[Tensor], Tensor]:
    """From a terminal draw to z-scored signals; captured on CUDA where there is a memory for it."""
    stochastic = solvers.find(choices[0]).stochastic
    if model.device.type != "cuda" or stochastic or memory is None:
        network = _cast(model.network, precision)
        steps = _noise(*place, x_max) if stochastic else None
        return lambda x_max: _generated(model, network, x_max, choices, steps)
    if len(x_max) not in memory.replays:
        network, source, sink = _cast(model.network, precision), x_max.clone(), torch.empty_like(x_max)
        replay = devices.captured(lambda: sink.copy_(_generated(model, network, source, choices)))
        memory.replays[len(x_max)] = (source, sink, replay)
    source, sink, replay = memory.replays[len(x_max)]

    def sampled(x_max: Tensor) -> Tensor:
        source.copy_(x_max)
        replay()
        return sink.clone()

    return sampled


def _generated(
    model: GRCD,
    network: nn.Module,
    x_max: Tensor,
    choices: Choices,
    steps: Callable[[int], Tensor] | None = None,
) -> Tensor:
    """The reverse process, and back to graph coordinates."""
    solver, nfe, levels = choices
    process, reference, how = model.process, model.reference, model.parameterised(model.reference)
    known = how.graph_score(network) if isinstance(how, Denoised) else how.eps_hat(network)
    x = solvers.solve(solver, known, x_max, nfe, process, reference, levels, noise=steps)
    return process.to_graph(x, levels[-1])


def _cast(network: nn.Module, precision: str) -> nn.Module:
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    return network if precision == "float32" else copy.deepcopy(network).to(PRECISIONS[precision])


def _noise(seed: int, start: int, like: Tensor) -> Callable[[int], Tensor]:
    """The noise of each step of a stochastic solver, for the signals from ``start`` on: the same for any batch size."""
    stream, nodes = Stream(seed, "steps", like.device), like.shape[1]
    return lambda step: stream.normal(step, (start + len(like)) * nodes).view(-1, nodes)[start:]


def network_alone(model: GRCD, n: int, evaluations: int) -> Callable[[], None]:
    """What sampling ``n`` signals asks of the network and of nothing else, to be timed; waits for the device."""
    x = torch.zeros(n, len(model.graph), device=model.device)
    t = torch.full((), 0.5, device=model.device)

    def work() -> None:
        for part in x.split(model.batch()):
            for _ in range(evaluations):
                model.network(part, t)

    def timed() -> None:
        with devices.arithmetic(), torch.inference_mode():
            replay()
            if model.device.type == "cuda":
                torch.cuda.synchronize(model.device)

    with devices.arithmetic(), torch.inference_mode():
        replay = devices.captured(work) if model.device.type == "cuda" else work
    return timed
