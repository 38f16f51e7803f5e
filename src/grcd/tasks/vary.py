"""Variations of given signals: noise is added up to some level, and the reverse process takes it away again.

The more noise, the less is left of the signal. ``strength`` in [0, 1] says how much, by the level

    q = q_max strength / (1 - strength)

0 adds none and returns the signal; one half goes to the largest level the network was trained on; beyond that the
reference's own flow leads back to it; and 1 forgets the signal, for at infinite noise nothing is left of it but a draw
of the reference. So strength turns smoothly from the signal itself to an unconditional sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from ..core import device as devices
from ..core.errors import InputError
from ..core.progress import bar
from ..core.rows import Rows
from ..core.streams import Stream
from ..diffusion import solvers
from ..diffusion.diffusion import Diffusion
from ..diffusion.process import ConjugateProcess

SUBSTEPS = 64  # of a flow without closed form, from beyond the largest level


def vary(
    diffusion: Diffusion, z: Rows, strength: Any, n: int, nfe: int, seed: int
) -> Iterator[tuple[slice, Tensor]]:  # each (rows, n, d)
    """``n`` variations of each of the z-scored signals (signals, d), some signals at a time; none at strength 0."""
    if not isinstance(strength, Real) or not 0 <= float(strength) <= 1:
        raise InputError(f"strength = {strength!r}", "a number from 0 (the signal) to 1 (any signal)", "try 0.2")
    process = diffusion.process
    if not isinstance(process, ConjugateProcess):
        raise InputError(f"the method {diffusion.method!r}", "one on the conjugate process", "train grcd")
    return _some_at_a_time(diffusion, process, z, float(strength), n, nfe, seed)


def _some_at_a_time(
    diffusion: Diffusion, process: ConjugateProcess, z: Rows, strength: float, n: int, nfe: int, seed: int
) -> Iterator[tuple[slice, Tensor]]:
    rows = max(1, diffusion.batch // n)
    with bar("varying", len(z)) as advance:
        for start in range(0, len(z) if strength else 0, rows):
            index = range(start, min(start + rows, len(z)))
            batch = slice(index.start, index.stop)
            with devices.arithmetic(), torch.inference_mode():
                varied = _varied(diffusion, process, z[batch], index, strength, n, nfe, seed)
            yield batch, varied
            advance(index.stop, "")


def _varied(
    diffusion: Diffusion,
    process: ConjugateProcess,
    z: Tensor,
    index: range,
    strength: float,
    n: int,
    nfe: int,
    seed: int,
) -> Tensor:
    """Z-scored variations (signals, n, d)."""
    reference, shape = diffusion.reference, (len(z), n, z.shape[1])
    xi = Stream(seed, "augment", z.device).normal(index, n * z.shape[1]).view(-1, z.shape[1])
    signal, q = z[:, None].expand(shape).reshape(xi.shape), process.q_max
    if strength == 1:
        x = reference.draw(xi, q, Stream(seed, "augment component", z.device).uniform(index, n).flatten())
    else:
        level = q * strength / (1 - strength)
        x = signal + level * xi
        if level <= process.q_min:  # less noise than the network has ever seen
            return x.view(shape)
        if level > q:
            x = reference.propagate(x, q, level, SUBSTEPS)
        q = min(level, q)
    choice = diffusion.choice(nfe, start=q / process.q_max)
    levels = diffusion.levels(nfe, choice)

    def noise(step: int) -> Tensor:  # of a stochastic solver
        return Stream(seed, f"augment step {step}", z.device).normal(index, n * z.shape[1]).view_as(x)

    x = solvers.solve(choice.solver, diffusion.prediction(), x, nfe, process, reference, levels, noise=noise)
    return process.to_graph(x, levels[-1]).view(shape)
