"""What is hidden of a window given what is observed: the reference's posterior, and what a network adds to it.

Under the reference, hidden readings given observed ones are ``N(m, P)``, exactly. In units of that posterior,
``u = (x - m) / sqrt(diag P)``, the reference is ``N(0, 1)`` for every reading, and a network (see
``networks/spacetime``) says what ``u`` is given a noised one at level ``q`` and everything observed: mean and variance.
Draws come from the reverse process of both, from the largest of some levels down to none:

    start       u~ = sqrt(1 + q^2) xi
    steps       from each level to the next, the last one to 0, which draws from the network's own law

A network that answers zero leaves every reading with its exact posterior, at any number of levels; how readings hang
together it has to learn. Without a network draws are joint ones of the whole posterior.

**Levels** were measured on METR-LA: from 8, which no posterior of z-scores reaches, to a last level that falls with the
number of evaluations. A start from joint draws at a smaller level was worse the smaller it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from ..core.errors import InputError, whole_number
from ..graphs.space import SignalSpace
from ..networks.spacetime import SpaceTimeNet, denoised, stepped
from ..references.reference import Reference

LEAST_SD = 0.02  # of a posterior; no reference is surer (its noise), up to rounding
FEATURES = 5  # numbers that the network is told of a reading
ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 27}  # activations (windows x readings x width) at a time

Noise = Callable[[str, tuple[int, int, int]], Tensor]  # a purpose, and a shape (windows, draws, d)


def spaced(most: float, least: float, count: int, power: float = 4.0) -> tuple[float, ...]:
    """So many levels from the largest to the smallest, evenly spaced in their root."""
    ends = most ** (1 / power), least ** (1 / power)
    return tuple((ends[0] + k / max(1, count - 1) * (ends[1] - ends[0])) ** power for k in range(count))


LEVELS = {1: (8.0,), 2: (8.0, 1.0), 4: spaced(8.0, 0.4, 4), 8: spaced(8.0, 0.1, 8)}


def features(mean: Tensor, sd: Tensor, hidden: Tensor) -> Tensor:  # three of (..., d) -> (..., d, FEATURES)
    """What the network is told of readings: their posterior, 0 spread where observed; and which of them it is to draw.

    A reading that is neither observed nor ``hidden`` was never recorded, and nobody asks for it.
    """
    observed = sd == 0
    return torch.stack([mean, sd, hidden.to(mean), observed.to(mean), torch.where(observed, mean, 0)], dim=-1)


def autocast(device: torch.device) -> torch.autocast:
    """The network's arithmetic: half of the bits on a GPU. Without a cache, so that it can be captured."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False)


@dataclass(frozen=True, eq=False)
class Conditional:
    """A reference of z-scored windows, and a network that knows what it leaves over; None: the reference alone."""

    space: SignalSpace
    reference: Reference
    network: SpaceTimeNet | None = None
    levels: dict[int, tuple[float, ...]] = field(default_factory=lambda: dict(LEVELS))  # by number of evaluations

    @torch.no_grad()
    def draw(self, z: Tensor, observed: Tensor, calendar: Tensor, n: int, nfe: int, noise: Noise) -> Tensor:
        """Draws (windows, n, d) of everything that is not observed; what is observed stays as it is, to the bit.

        ``z`` (windows, d) has anything where it is not ``observed`` (windows, d); ``calendar`` (windows, steps,
        features) is known of every step. ``noise`` (purpose, shape) is standard normal, by window and draw.
        """
        shape = (len(z), whole_number("n", n), self.space.d)
        levels = self._levels(nfe)
        if self.network is None:
            x = self._joint(z, observed, shape, noise)
        else:
            x = self._reversed(self.network, z, observed, calendar, shape, levels, noise)
        return torch.where(observed[:, None], z[:, None], x.to(z.dtype))

    def _levels(self, nfe: int) -> tuple[float, ...]:
        """Of the largest number of evaluations that the budget allows."""
        affordable = [count for count in self.levels if count <= whole_number("nfe", nfe)]
        if not affordable:
            raise InputError(f"nfe = {nfe}", f"at least {min(self.levels)}", "allow more evaluations of the network")
        return self.levels[max(affordable)]

    def _joint(self, z: Tensor, observed: Tensor, shape: tuple[int, int, int], noise: Noise) -> Tensor:
        """Of the whole posterior of the reference."""
        xi, parts = noise("posterior", shape), list[Tensor]()
        size = max(1, ENTRIES[z.device.type] // (shape[1] * shape[2]))
        for rows in torch.arange(len(z), device=z.device).split(size):
            draws = self.reference.posterior(z[rows], observed[rows], xi[rows]).draws
            assert draws is not None
            parts.append(draws)
        return torch.cat(parts) if parts else z.new_empty(shape)

    def _reversed(
        self,
        network: SpaceTimeNet,
        z: Tensor,
        observed: Tensor,
        calendar: Tensor,
        shape: tuple[int, int, int],
        levels: tuple[float, ...],
        noise: Noise,
    ) -> Tensor:
        """By the reverse process: all windows and draws level by level, as many at a time as memory allows."""
        posterior = self.reference.posterior(z, observed)
        mean, spread = posterior.mean.float(), posterior.sd.float().clamp(min=LEAST_SD)
        about, calendar = features(mean, posterior.sd.float(), ~observed), calendar.float()
        u = (1 + levels[0] ** 2) ** 0.5 * noise("start", shape).float().flatten(0, 1)
        size = max(1, ENTRIES[z.device.type] // (self.space.d * network.input.out_features))
        for number, (q, p) in enumerate(pairwise([*levels, 0.0])):
            xi = noise(f"step {number}", shape).float().flatten(0, 1)
            for rows in torch.arange(len(u), device=u.device).split(size):
                window = rows // shape[1]
                law = self._law(network, u[rows], q, ~observed[window], about[window], calendar[window])
                u[rows] = stepped(u[rows], q, p, *law, xi[rows])
        return mean[:, None] + spread[:, None] * u.view(shape)

    def _law(
        self, network: SpaceTimeNet, u: Tensor, q: float, hidden: Tensor, about: Tensor, calendar: Tensor
    ) -> tuple[Tensor, Tensor]:  # two of (rows, d)
        """Mean and variance of ``u`` (rows, d) given what it is at level ``q``."""
        level = torch.full((len(u),), q, device=u.device)
        grid = (self.space.steps, -1)
        with autocast(u.device):
            noised = torch.where(hidden, u, 0).unflatten(1, grid)
            raw, s = network(noised, level, about.unflatten(1, grid), calendar)
        return denoised(u, level[:, None], (raw.flatten(1), s.flatten(1)))
