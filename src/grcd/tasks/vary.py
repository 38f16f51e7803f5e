"""Variations of given signals: noise is added up to some level, and the reverse process takes it away again.

The more noise, the less is left of the signal. ``strength`` in [0, 1] says how much, by the level

    q = q_max strength / (1 - strength)

0 adds none and returns the signal; one half goes to the largest level the network was trained on; beyond that the
reference's own flow leads back to it; and 1 forgets the signal, for at infinite noise nothing is left of it but a draw
of the reference. So strength turns smoothly from the signal itself to an unconditional sample.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..core import device as devices
from ..core.errors import InputError
from ..core.progress import bar
from ..core.streams import Stream
from ..diffusion import solvers
from ..diffusion.process import ConjugateProcess

if TYPE_CHECKING:
    from ..model import GRCD

SUBSTEPS = 64  # of a mixture's flow from beyond the largest level


def augment(model: GRCD, x: np.ndarray, strength: Any, n: int, nfe: int, seed: int) -> np.ndarray:
    """``n`` variations of each of the signals (signals, nodes), in their units: (n, signals, nodes)."""
    if not isinstance(strength, Real) or not 0 <= float(strength) <= 1:
        raise InputError(f"strength = {strength!r}", "a number from 0 (the signal) to 1 (any signal)", "try 0.2")
    if not isinstance(model.process, ConjugateProcess):
        raise InputError(f"the method {model.config.method!r}", "one on the conjugate process", "train grcd")
    found = np.repeat(x[None], n, axis=0).astype(np.float64)
    if strength == 0:
        return found
    rows = max(1, model.batch() // n)
    with devices.arithmetic(), torch.inference_mode(), bar("varying", len(x)) as advance:
        for start in range(0, len(x), rows):
            index = range(start, min(start + rows, len(x)))
            z = torch.from_numpy(model.normalizer.apply(x[start : start + rows])).double().to(model.device)
            varied = _varied(model, model.process, z, index, float(strength), n, nfe, seed)
            units = model.within(model.normalizer.undo(varied.flatten(0, 1).cpu().numpy()))
            found[:, start : start + rows] = units.reshape(len(index), n, -1).swapaxes(0, 1)
            advance(index.stop, "")
    return found


def _varied(
    model: GRCD, process: ConjugateProcess, z: Tensor, index: range, strength: float, n: int, nfe: int, seed: int
) -> Tensor:
    """Z-scored variations (signals, n, nodes)."""
    reference, shape = model.reference, (len(z), n, z.shape[1])
    xi = Stream(seed, "augment", z.device).normal(index, n * z.shape[1]).view(-1, z.shape[1])
    signal, q = z[:, None].expand(shape).reshape(xi.shape), process.q_max
    if strength == 1:
        u = Stream(seed, "augment component", z.device).uniform(index, n).flatten()
        x = reference.draw(xi, q, u)
    else:
        level = q * strength / (1 - strength)
        x = signal + level * xi
        if level <= process.q_min:  # less noise than the network has ever seen
            return x.view(shape)
        if level > q:
            x = reference.propagate(x, q, level, SUBSTEPS)
        q = min(level, q)
    choice = model.choice(nfe, start=q / process.q_max)
    levels = model.levels(nfe, choice)

    def noise(step: int) -> Tensor:  # of a stochastic solver
        return Stream(seed, f"augment step {step}", z.device).normal(index, n * z.shape[1]).view_as(x)

    x = solvers.solve(choice.solver, model.noise_prediction(), x, nfe, process, reference, levels, noise=noise)
    return process.to_graph(x, levels[-1]).view(shape)
