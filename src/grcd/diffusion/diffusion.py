"""A diffusion: the separable parts of a method, bound together and frozen. A run folder holds one, tasks take one.

space              the shape of a signal, and the basis of its graph
process            how noise comes in
reference          what is known of signals without a network
parameterisation   what the network's output stands for
network            what training has learned
plan               how to sample, by budget, where validation signals chose; ``default`` where they did not
terminal           what a sampler starts from
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..graphs.space import SignalSpace
from ..references.reference import Reference
from . import solvers
from .parameterisation import Parameterisation, Prediction
from .plan import Choice, Plan, at
from .process import HeatProcess, Process

Terminal = Callable[[Process, Reference, Tensor, float, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Diffusion:
    """All of it on one device; signals are rows of ``space.d`` z-scores."""

    space: SignalSpace
    process: Process
    reference: Reference
    parameterisation: Parameterisation
    network: nn.Module
    default: Choice
    plan: Plan
    method: str = "grcd"  # its name, for messages
    terminal: str = "fitted"  # a row of TERMINALS
    batch: int = 1 << 10  # signals that the network looks at together

    @property
    def device(self) -> torch.device:
        return self.process.U.device

    @property
    def adds_nothing(self) -> bool:
        """Whether no update of the network was clearly better than the reference alone, which is then all there is."""
        return self.parameterisation.adds and getattr(self.network, "is_zero", False)

    def prediction(self, network: nn.Module | None = None) -> Prediction:
        """What solvers take: of the network, or of another one in its place."""
        return self.parameterisation.prediction(self.network if network is None else network)

    def start(self, noise: Tensor, q: float, u: Tensor) -> Tensor:  # (batch, d), (batch,) -> (batch, d)
        """What a sampler starts from at its first level: of normal ``noise``, and uniform ``u`` for components."""
        return TERMINALS[self.terminal](self.process, self.reference, noise, q, u)

    def choice(self, nfe: int, **own: Any) -> Choice:
        """How to sample with a budget: one's ``own`` choices, and for the rest what the plan says, or the default."""
        planned = at(self.plan, nfe) if isinstance(nfe, int | np.integer) else None
        own = {key: value for key, value in own.items() if value is not None}
        if "rho" in own:  # the exponent of a power law
            own = {"grid": "power"} | own
        choice = replace(planned or self.default, **own)
        if not solvers.find(choice.solver).serves(self.process, self.reference):
            raise InputError(
                f"the solver {choice.solver!r} for the method {self.method!r}",
                "a solver for its forward process and reference",
                f"leave it out: {self.default.solver!r} is the method's own",
            )
        return choice

    def levels(self, nfe: int, choice: Choice) -> np.ndarray:
        """The noise levels that a sampler steps through."""
        where = choice.grid, choice.rho, self.reference, choice.start
        return solvers.levels(choice.solver, nfe, self.process, *where)


def _stationary(process: Process, reference: Reference, noise: Tensor, q: float, u: Tensor) -> Tensor:
    assert isinstance(process, HeatProcess), "only a heat process has a stationary law"
    return process.stationary(noise, q)


TERMINALS: dict[str, Terminal] = {
    "fitted": lambda process, reference, noise, q, u: reference.draw(noise, q, u),
    "scalar": lambda process, reference, noise, q, u: reference.scalar().draw(noise, q),
    "noise": lambda process, reference, noise, q, u: q * noise,
    "stationary": _stationary,
}
