"""Windows of a diffusion on the product graph, drawn given what is observed of them: by guidance (see ``fill``).

So the paper's methods fill tables and forecast like the conditional model of windows does, and can be compared with it.
Guidance approximates: with a wrong reference it does not become exact with more evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core.streams import Stream
from ..diffusion.diffusion import Diffusion
from ..graphs.space import SignalSpace
from ..references import Reference
from ..references.observations import Noise, Observations
from .fill import drawn_from
from .sample import sample


@dataclass(frozen=True, eq=False)
class Guided:
    """A diffusion of windows as the tasks on series take it (``windows.WindowLaw``)."""

    diffusion: Diffusion
    posterior: str = "diffusion"  # or "reference"

    @property
    def space(self) -> SignalSpace:
        return self.diffusion.space

    @property
    def reference(self) -> Reference:
        return self.diffusion.reference

    @property
    def alone(self) -> Guided:
        """Its reference without the network."""
        return replace(self, posterior="reference")

    def draw(self, z: Tensor, observed: Tensor, calendar: Tensor, n: int, nfe: int, noise: Noise) -> Tensor:
        """(windows, n, d) as ``windows.WindowLaw`` says; the calendar is in the mean alone."""

        def uniform(purpose: str, shape: tuple[int, int]) -> Tensor:
            return torch.special.ndtr(noise(purpose, (*shape, 1)))[..., 0]

        draws = drawn_from(self.diffusion, n, nfe, self.posterior, None)
        x = draws(Observations(torch.where(observed, z, math.nan).double()), noise, uniform)
        return torch.where(observed[:, None], z[:, None], x.to(z.dtype))

    def sample(self, calendar: Tensor, nfe: int, seed: int) -> Tensor:  # (windows, steps, columns)
        """Windows out of nothing, as the method samples; one for each ``calendar`` (windows, steps, features)."""
        diffusion, n = self.diffusion, len(calendar)
        if self.posterior == "reference":
            x = diffusion.reference.draw(*_numbers(diffusion, n, seed))
        else:
            choice = diffusion.choice(nfe)
            x = sample(diffusion, n, "terminal", seed, (choice.solver, nfe, tuple(diffusion.levels(nfe, choice))))
        return x.view(n, self.space.steps, -1)

    def vary(
        self, z: Tensor, observed: Tensor, calendar: Tensor, x: Tensor, strength: float, n: int, nfe: int, noise: Noise
    ) -> Tensor:  # (windows, n, d)
        """Between ``x`` (windows, d) and draws, about the reference's mean: a share of each that leaves the variance as
        it is."""
        drawn = self.draw(z, observed, calendar, n, nfe, noise)
        seen = Observations(torch.where(observed, z, math.nan).double())
        mean = self.reference.condition(seen).mean[:, None].to(drawn)
        varied = mean + math.sqrt(1 - strength**2) * (x[:, None] - mean) + strength * (drawn - mean)
        return torch.where(observed[:, None], z[:, None], varied)


def _numbers(diffusion: Diffusion, n: int, seed: int) -> tuple[Tensor, float, Tensor]:
    noise = Stream(seed, "reference window", diffusion.device).normal(range(n), diffusion.space.d)
    return noise, 0.0, Stream(seed, "reference component", diffusion.device).uniform(0, n)
