"""The table of methods: a name, and the four separable parts it is composed of (section 4.3 calls them rungs).

Forward process and backbone are the same for all of these; they differ in the parameterisation the network is trained
with, the Gaussian the sampler starts from, the solver, and its grid. Methods with the same ``network`` share one
training: ``grcd-rho1`` and ``grcd-rho3`` differ in their grid only, ``clock`` and ``clock+reference`` in their
terminal draw only.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import unknown


@dataclass(frozen=True)
class Method:
    """Four parts by name, and the exponent of the sampling grid."""

    parameterisation: str  # "residual" or "epsilon"
    terminal: str  # what the sampler starts from: "fitted" or "scalar" reference
    solver: str
    rho: float
    about: str

    @property
    def network(self) -> str:
        """What training depends on."""
        return self.parameterisation


METHODS: dict[str, Method] = {
    "grcd": Method("residual", "fitted", "exponential", 3, "our default: GRCD with closed-form exponential weights"),
    "grcd-rho3": Method("residual", "fitted", "exponential-paper", 3, "the paper's GRCD"),
    "grcd-rho1": Method("residual", "fitted", "exponential-paper", 1, "the paper's GRCD on the uniform grid"),
    "grcd-epsilon-heun": Method("epsilon", "fitted", "heun-paper", 1, "GRCD without residual score"),
    "clock": Method("epsilon", "scalar", "heun-paper", 1, "ladder: mode-dependent clock, scalar terminal reference"),
    "clock+reference": Method("epsilon", "fitted", "heun-paper", 1, "ladder: + fitted terminal reference"),
    "clock+reference+residual": Method("residual", "fitted", "heun-paper", 1, "ladder: + residual score"),
    "clock+reference+residual+exponential": Method(
        "residual", "fitted", "exponential-paper", 1, "ladder: + exponential solver"
    ),
}


def find(name: str) -> Method:
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
