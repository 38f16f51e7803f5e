"""Several Gaussians given some entries of each signal: the posterior of a mixture.

Each component is conditioned on its own (see ``conditioning``) and weighs as much as it makes the observed entries
probable, ``r_k ~ w_k p_k(x_o)``:

    mean    sum_k r_k m_k       variance    sum_k r_k (sd_k^2 + (m_k - mean)^2)     log p = log sum_k w_k p_k(x_o)

**Draws** choose a component by ``r`` and then draw from it. Standard normal noise is all there is to choose by: the
first number of it is as good as a uniform one, ``u = Phi(xi)``, which says the component, and where ``u`` lies between
the ends of that component's interval is uniform again, whichever component it is: a standard normal number to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from .conditioning import WindowPosterior

TINY = 1e-15  # how near to 0 and 1 a uniform number comes


class Part(Protocol):
    """A Gaussian about zero."""

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior: ...


def posterior(
    weights: Tensor, means: Tensor, parts: Sequence[Part], z: Tensor, observed: Tensor, xi: Tensor | None = None
) -> WindowPosterior:
    """Of ``sum_k weights_k N(means_k, parts_k)``: ``weights`` (K,), ``means`` (K, d), ``z`` and ``observed``
    (signals, d), ``xi`` (signals, draws, d) standard normal."""
    each = [
        _moved(part, mean, z, observed, xi if len(parts) == 1 else None)
        for part, mean in zip(parts, means, strict=True)
    ]
    if len(parts) == 1:
        return each[0]
    joint = torch.stack([one.log_prob for one in each], 1) + weights.double().log()
    share = joint.softmax(1)
    mean, second = torch.zeros_like(each[0].mean), torch.zeros_like(each[0].mean)
    for one, r in zip(each, share.T[..., None].to(mean), strict=True):
        mean = mean + r * one.mean
    for one, r in zip(each, share.T[..., None].to(mean), strict=True):
        second = second + r * (one.sd.square() + (one.mean - mean).square())
    mean = torch.where(observed, each[0].mean, mean)
    sd = torch.where(observed, 0, second.sqrt())
    draws = None if xi is None else _drawn(share, means, parts, z, observed, xi.to(mean))
    return WindowPosterior(mean, sd, draws, joint.logsumexp(1))


def _moved(part: Part, mean: Tensor, z: Tensor, observed: Tensor, xi: Tensor | None) -> WindowPosterior:
    """Of a component about its mean."""
    off = part.posterior(z - mean, observed, xi)
    about, known = mean.to(off.mean), z.to(off.mean)
    draws = None if off.draws is None else torch.where(observed[:, None], known[:, None], off.draws + about)
    return WindowPosterior(torch.where(observed, known, off.mean + about), off.sd, draws, off.log_prob)


def _drawn(
    share: Tensor, means: Tensor, parts: Sequence[Part], z: Tensor, observed: Tensor, xi: Tensor
) -> Tensor:  # (signals, draws, d)
    """A component for every draw by its share (signals, K), and a draw from it."""
    chosen, first = chosen_by(share[:, None], xi[..., 0])
    xi = torch.cat([first[..., None].to(xi), xi[..., 1:]], dim=-1)
    draws = torch.empty_like(xi)
    for k, (part, mean) in enumerate(zip(parts, means, strict=True)):
        rows = (chosen == k).any(1).nonzero()[:, 0]  # most signals have draws of few components
        if len(rows):
            own = _moved(part, mean, z[rows], observed[rows], xi[rows]).draws
            assert own is not None
            draws[rows] = torch.where((chosen[rows] == k)[..., None], own, draws[rows])
    return draws


def chosen_by(share: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:  # (..., K), (...) -> two of (...)
    """The component that a standard normal number chooses, and another standard normal number, independent of it."""
    u = torch.special.ndtr(noise.double())
    ends = share.cumsum(-1)
    chosen = (ends <= u[..., None]).sum(-1).clamp(max=share.shape[-1] - 1)
    share, ends = (each.expand(*u.shape, -1).gather(-1, chosen[..., None])[..., 0] for each in (share, ends))
    within = (u - (ends - share)) / share.clamp(min=TINY)
    return chosen, torch.special.ndtri(within.clamp(TINY, 1 - TINY))
