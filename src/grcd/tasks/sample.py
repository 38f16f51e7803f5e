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

import torch
from torch import Tensor, nn

from ..core import device as devices
from ..core.errors import unknown
from ..core.streams import Stream
from ..diffusion import solvers
from ..diffusion.diffusion import Diffusion
from ..networks.nothing import Nothing
from ..references.sparse import Sparse
from ..references.sparse_mixture import SparseMixture

PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16}  # tf32: products on a GPU
Choices = tuple[str, int, tuple[float, ...]]  # solver, network evaluations, levels


class Memory:
    """What was sampled last, and samplers captured for it by batch size."""

    def __init__(self) -> None:
        self.last: tuple = ()
        self.replays: dict[int, tuple[Tensor, Tensor, Callable]] = {}

    def again(self, *request: object) -> bool:
        """Whether the last request was the same: capturing costs as much as sampling four times."""
        again, self.last = request == self.last, request
        if not again:
            self.replays = {}
        return again


def sample(
    diffusion: Diffusion,
    n: int,
    purpose: str,
    seed: int,
    choices: Choices,
    batch: int | None = None,
    precision: str = "float32",
    memory: Memory | None = None,
    advance: Callable = lambda done, note: None,
) -> Tensor:  # (n, d), z-scored
    """Signals from the noise that this seed has for this purpose; with a memory, captured there or to be."""
    parts, done, q = [], 0, choices[2][0]
    with devices.arithmetic("high" if precision == "tf32" else "highest"), torch.inference_mode():
        noise = Stream(seed, purpose, diffusion.device).normal(0, n * diffusion.space.d).view(n, -1)
        u = Stream(seed, "component", diffusion.device).uniform(0, n)
        if isinstance(diffusion.network, Nothing):  # the reference alone, without noise and without steps
            return diffusion.reference.draw(noise, 0.0, u)
        for part in noise.split(batch or diffusion.batch):
            start = diffusion.start(part, q, u[done : done + len(part)])
            parts.append(_sampler(diffusion, start, precision, choices, (seed, done), memory)(start))
            done += len(part)
            advance(done, "")
        return torch.cat(parts)


def _sampler(
    diffusion: Diffusion, x_max: Tensor, precision: str, choices: Choices, place: tuple[int, int], memory: Memory | None
) -> Callable[[Tensor], Tensor]:
    """From a terminal draw to z-scored signals; captured on CUDA where there is a memory for it.

    ``place`` are the seed and the number of the first signal.
    """
    stochastic = solvers.find(choices[0]).stochastic
    here = isinstance(diffusion.reference, Sparse | SparseMixture)  # which is not on the device
    if diffusion.device.type != "cuda" or stochastic or here or memory is None:
        network = _cast(diffusion.network, precision)
        steps = _noise(*place, x_max) if stochastic else None
        return lambda x_max: _generated(diffusion, network, x_max, choices, steps)
    if len(x_max) not in memory.replays:
        network, source, sink = _cast(diffusion.network, precision), x_max.clone(), torch.empty_like(x_max)
        replay = devices.captured(lambda: sink.copy_(_generated(diffusion, network, source, choices)))
        memory.replays[len(x_max)] = (source, sink, replay)
    source, sink, replay = memory.replays[len(x_max)]

    def sampled(x_max: Tensor) -> Tensor:
        source.copy_(x_max)
        replay()
        return sink.clone()

    return sampled


def _generated(
    diffusion: Diffusion,
    network: nn.Module,
    x_max: Tensor,
    choices: Choices,
    steps: Callable[[int], Tensor] | None = None,
) -> Tensor:
    """The reverse process, and back to graph coordinates."""
    solver, nfe, levels = choices
    process, prediction = diffusion.process, diffusion.prediction(network)
    x = solvers.solve(solver, prediction, x_max, nfe, process, diffusion.reference, levels, noise=steps)
    return process.to_graph(x, levels[-1])


def _cast(network: nn.Module, precision: str) -> nn.Module:
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    kind = PRECISIONS[precision]
    return network if kind == torch.float32 else copy.deepcopy(network).to(kind)


def _noise(seed: int, start: int, like: Tensor) -> Callable[[int], Tensor]:
    """The noise of each step of a stochastic solver, for the signals from ``start`` on: the same for any batch size."""
    stream, nodes = Stream(seed, "steps", like.device), like.shape[1]
    return lambda step: stream.normal(step, (start + len(like)) * nodes).view(-1, nodes)[start:]


def network_alone(diffusion: Diffusion, n: int, evaluations: int) -> Callable[[], None]:
    """What sampling ``n`` signals asks of the network and of nothing else, to be timed; waits for the device."""
    x = torch.zeros(n, diffusion.space.d, device=diffusion.device)
    t = torch.full((), 0.5, device=diffusion.device)

    def work() -> None:
        for part in x.split(diffusion.batch):
            for _ in range(evaluations):
                diffusion.network(part, t)

    def timed() -> None:
        with devices.arithmetic(), torch.inference_mode():
            replay()
            if diffusion.device.type == "cuda":
                torch.cuda.synchronize(diffusion.device)

    with devices.arithmetic(), torch.inference_mode():
        replay = devices.captured(work) if diffusion.device.type == "cuda" else work
    return timed
