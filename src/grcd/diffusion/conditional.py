"""What is hidden of a window given what is observed: the reference's posterior, and what a network adds to it.

Under the reference, hidden readings given observed ones are ``N(m, P)``, exactly. In units of that posterior,
``u = (x - m) / sqrt(diag P)``, the reference is ``N(0, 1)`` for every reading, and a network (see
``networks/spacetime``) says what ``u`` is given a noised one at level ``q`` and everything observed: mean and variance.
Draws come from the reverse process of both, from the largest of some levels down to none:

    start       u~ = u' + q xi, with u' a joint draw of the reference's posterior
    steps       from each level to the next, the last one to 0, which draws from the network's own law

A network that answers zero leaves every reading with its exact posterior, at any number of levels; how readings hang
together it has to learn. Without a network draws are joint ones of the whole posterior.

**Variations** of readings ``x`` start from those readings noised to a level that rises with their ``strength``,

    start       u~ = u + q xi,      q = strength / sqrt(1 - strength^2)

until that is the largest level; from there on ``u`` is blended with a joint draw, ``w u + sqrt(1 - w^2) u'``, until at
strength 1 nothing is left of it. Without a network ``x - m`` is blended with a joint draw from the beginning, ``w =
sqrt(1 - strength^2)`` (preconditioned Crank-Nicolson). Variations of draws are draws again, at any strength.

**Levels** were measured on METR-LA: from 8, far above any single reading's spread, to a last level that falls with the
number of evaluations. Readings that hang together are another matter: of a window of which nothing is observed the
first mode has a spread of thirty, which noise of 8 does not hide. So the start has the covariance of the reference's
posterior, and not only its variances. At a smaller largest level the reference's law would show: draws were worse the
smaller it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from ..core.device import arithmetic
from ..core.errors import InputError, whole_number
from ..graphs.space import SignalSpace
from ..networks.spacetime import Fused, Network, SpaceTimeNet, denoised, stepped
from ..references.reference import Reference

LEAST_SD = 0.02  # of a posterior; no reference is surer (its noise), up to rounding
FEATURES = 5  # numbers that the network is told of a reading
ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 27}  # activations (windows x readings x width) at a time
FUSED = 2 * 10**10  # activations (the same, over all evaluations) that are worth compiling the network for

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

    @property
    def alone(self) -> Conditional:
        """Its reference without the network."""
        return Conditional(self.space, self.reference, None, self.levels)

    @torch.no_grad()
    def draw(self, z: Tensor, observed: Tensor, calendar: Tensor, n: int, nfe: int, noise: Noise) -> Tensor:
        """Draws (windows, n, d) of everything that is not observed; what is observed stays as it is, to the bit.

        ``z`` (windows, d) has anything where it is not ``observed`` (windows, d); ``calendar`` (windows, steps,
        features) is known of every step. ``noise`` (purpose, shape) is standard normal, by window and draw.
        """
        return self._drawn(z, observed, calendar, None, 1.0, n, nfe, noise)

    @torch.no_grad()
    def vary(
        self, z: Tensor, observed: Tensor, calendar: Tensor, x: Tensor, strength: float, n: int, nfe: int, noise: Noise
    ) -> Tensor:
        """Draws (windows, n, d) as ``draw`` makes them, but near the readings ``x`` (windows, d), which are complete.

        ``strength``: 0 gives ``x`` itself, to the bit; 1 gives what ``draw`` does.
        """
        if not 0 <= strength <= 1:
            raise InputError(f"strength = {strength}", "a number from 0 (the readings) to 1 (new ones)", "choose one")
        if strength == 0:
            self._levels(nfe)
            return torch.where(observed, z, x)[:, None].expand(-1, whole_number("n", n), -1).clone()
        return self._drawn(z, observed, calendar, x, strength, n, nfe, noise)

    def _drawn(
        self,
        z: Tensor,
        observed: Tensor,
        calendar: Tensor,
        near: Tensor | None,
        strength: float,
        n: int,
        nfe: int,
        noise: Noise,
    ) -> Tensor:
        shape = (len(z), whole_number("n", n), self.space.d)
        levels = self._levels(nfe)
        keep = (1 - strength**2) ** 0.5
        if self.network is None and near is None:
            x = self._alone(z, observed, shape, noise)
            return torch.where(observed[:, None], z[:, None], x.to(z.dtype))
        mean, sd, joint = self._joint(z, observed, shape, noise)
        if self.network is None:
            assert near is not None
            x = mean[:, None] + keep * (near.to(joint) - mean)[:, None] + strength * (joint - mean[:, None])
        else:
            mean, spread = mean.float(), sd.float().clamp(min=LEAST_SD)
            start = (joint.float() - mean[:, None]) / spread[:, None]
            if near is not None:
                levels = _from(strength / keep if keep else levels[0], levels)
                weight = min(1.0, keep * (1 + levels[0] ** 2) ** 0.5)
                own = torch.where(observed, 0, (near.float() - mean) / spread)
                start = weight * own[:, None] + (1 - weight**2) ** 0.5 * start
            start = start + levels[0] * noise("start", shape).float()
            about = features(mean, sd.float(), ~observed)
            u = self._reversed(self.network, start, levels, ~observed, about, calendar.float(), noise)
            x = mean[:, None] + spread[:, None] * u
        return torch.where(observed[:, None], z[:, None], x.to(z.dtype))

    def _levels(self, nfe: int) -> tuple[float, ...]:
        """Of the largest number of evaluations that the budget allows."""
        affordable = [count for count in self.levels if count <= whole_number("nfe", nfe)]
        if not affordable:
            raise InputError(f"nfe = {nfe}", f"at least {min(self.levels)}", "allow more evaluations of the network")
        return self.levels[max(affordable)]

    def _alone(self, z: Tensor, observed: Tensor, shape: tuple[int, int, int], noise: Noise) -> Tensor:
        """Draws (windows, draws, d) of the whole posterior of the reference, and nothing else of it."""
        xi, size = noise("posterior", shape), max(1, ENTRIES[z.device.type] // (shape[1] * shape[2]))
        rows = torch.arange(len(z), device=z.device).split(size)
        with arithmetic():
            drawn = [self.reference.drawn(z[some], observed[some], xi[some]) for some in rows]
        return torch.cat(drawn) if drawn else z.new_empty(shape)

    def _joint(
        self, z: Tensor, observed: Tensor, shape: tuple[int, int, int], noise: Noise
    ) -> tuple[Tensor, Tensor, Tensor]:  # (windows, d), (windows, d), (windows, draws, d)
        """Mean, spread and draws of the whole posterior of the reference; in full precision, which factors of
        covariances want, whatever the network does."""
        xi, parts = noise("posterior", shape), list[tuple[Tensor, Tensor, Tensor]]()
        size = max(1, ENTRIES[z.device.type] // (shape[1] * shape[2]))
        with arithmetic():
            for rows in torch.arange(len(z), device=z.device).split(size):
                posterior = self.reference.posterior(z[rows], observed[rows], xi[rows])
                assert posterior.draws is not None
                parts.append((posterior.mean, posterior.sd, posterior.draws))
        if not parts:
            return z, z, z.new_empty(shape)
        mean, sd, draws = (torch.cat(each) for each in zip(*parts, strict=True))
        return mean, sd, draws

    def _reversed(
        self,
        network: SpaceTimeNet,
        start: Tensor,  # (windows, draws, d) at the first of the levels
        levels: tuple[float, ...],
        hidden: Tensor,
        about: Tensor,
        calendar: Tensor,
        noise: Noise,
    ) -> Tensor:  # (windows, draws, d)
        """By the reverse process: all windows and draws level by level, as many at a time as memory allows."""
        u = start.flatten(0, 1)
        width = self.space.d * network.input.out_features
        size = max(1, ENTRIES[u.device.type] // width)
        worth = u.is_cuda and len(u) >= size and len(levels) * len(u) * width >= FUSED
        call: Network = self._fused if worth else network
        for number, (q, p) in enumerate(pairwise([*levels, 0.0])):
            xi = noise(f"step {number}", (start.shape[0], start.shape[1], start.shape[2])).float().flatten(0, 1)
            for rows in torch.arange(len(u), device=u.device).split(size):
                more = rows[-1:].expand(size - len(rows) if worth else 0)  # a compiled network wants one size
                window = torch.cat([rows, more]) // start.shape[1]
                noised = torch.cat([u[rows], u[more]])
                mean, variance = self._law(call, noised, q, hidden[window], about[window], calendar[window])
                u[rows] = stepped(u[rows], q, p, mean[: len(rows)], variance[: len(rows)], xi[rows])
        return u.view_as(start)

    @cached_property
    def _fused(self) -> Fused:
        assert self.network is not None
        return Fused(self.network)

    def _law(
        self, network: Network, u: Tensor, q: float, hidden: Tensor, about: Tensor, calendar: Tensor
    ) -> tuple[Tensor, Tensor]:  # two of (rows, d)
        """Mean and variance of ``u`` (rows, d) given what it is at level ``q``."""
        level = torch.full((len(u),), q, device=u.device)
        grid = (self.space.steps, -1)
        with autocast(u.device):
            noised = torch.where(hidden, u, 0).unflatten(1, grid)
            raw, s = network(noised, level, about.unflatten(1, grid), calendar)
        return denoised(u, level[:, None], (raw.flatten(1), s.flatten(1)))


def _from(q: float, levels: tuple[float, ...]) -> tuple[float, ...]:
    """From a level on, at most the largest of them."""
    return (min(q, levels[0]), *(level for level in levels[1:] if level < q))
