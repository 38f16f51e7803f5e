"""Sampling given observations: a noise prediction that knows of them, from one that does not.

At level ``q`` a component of the reference says ``x_0 | x~ ~ N(D_k, C_k)`` with ``D_k = x~ + q^2 score_k`` and
``C_k = v_k q^2 / (v_k + q^2)`` on its modes. The network's residual ``f`` says what they are off by together,
``d = -q f``. Each component, moved by ``d``, is updated with the observations (see ``observations``), and
counts as much as it made them probable: the noise prediction is that of the mean that comes out, ``(x~ - D') / q``.
With ``d = 0`` this is the reference's posterior score, exactly; there is no weight to choose. Exact observations hold
of every ``D'``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .observations import Noise, Observations, choose
from .reference import Reference

EpsHat = Callable[[Tensor, float], Tensor]  # a noise prediction, from a state (batch, d) and its level


def guided(residual: EpsHat, reference: Reference, observations: Observations) -> EpsHat:
    """A noise prediction given observations, from what a network adds to the reference without: what a solver takes.

    The state is (batch times n, d): ``n`` signals in a row for each one observed.
    """

    def eps(x: Tensor, q: float) -> Tensor:
        joint, scores = reference.components(x, q)
        denoised = [x + q**2 * score for score in scores]
        off = -q * residual(x, q)
        batch, updated, evidence = len(observations.y), [], []
        for part, mean in zip(reference.parts, denoised, strict=True):
            shifted = (mean + off).view(batch, -1, x.shape[1])
            moved, probable = part.updated(observations, shifted, q)
            updated.append(moved.reshape(x.shape))
            evidence.append(probable.reshape(-1))
        share = (joint + torch.stack(evidence, -1)).softmax(-1)
        return (x - sum(share[:, k, None] * mean for k, mean in enumerate(updated))) / q

    return eps


def cleaned(
    reference: Reference, observations: Observations, x: Tensor, q: float, noise: Noise, u: Tensor
) -> Tensor:  # (batch, n, d), (batch, n) -> (batch, n, d)
    """Signals ``x_0`` drawn given their noisy states ``x~`` at level ``q`` and the observations: exact under the
    reference. The noise of the last level is gone, and exact observations hold."""
    joint, scores = reference.components(x, q)
    prior, error = noise("last", x.shape), observations.error(lambda _, shape: noise("last error", shape), x.shape[1])
    draws, evidence = [], []
    for part, score in zip(reference.parts, scores, strict=True):
        mean = x + q**2 * score
        evidence.append(part.updated(observations, mean, q)[1])
        draws.append(part.updated(observations, mean + part.cleaned(prior, q), q, error)[0])
    chosen = choose((joint + torch.stack(evidence, -1)).softmax(-1), u)
    return torch.stack(draws).gather(0, chosen[None, ..., None].expand(1, *x.shape))[0]
