"""The table of methods: a name, and the separable parts it is composed of (section 4.3 calls them rungs).

``grcd`` is ours, and what goes beyond the paper; the methods below it take one part of it back. From ``grcd-rho3`` on
the backbone is the same for all, the paper's; they differ in the forward process, the parameterisation the network is
trained with, the Gaussian the sampler starts from, the solver, and its grid. Methods with the same ``network`` share
one training: ``grcd-rho1`` and ``grcd-rho3`` differ in their grid only, ``clock`` and ``clock+reference`` in their
terminal draw only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.errors import InputError, unknown
from ..graphs.graph import LARGE, Graph

EDM_RANGE, VE_RANGE = (0.002, 80.0), (0.02, 32.64)


@dataclass(frozen=True)
class Method:
    """Parts by name, and the exponent of the sampling grid."""

    parameterisation: str  # of diffusion/parameterisation
    terminal: str  # where the sampler starts: "fitted" or "scalar" reference, "noise" alone, the "stationary" law
    solver: str
    rho: float
    about: str
    process: str = "conjugate"  # of PROCESSES in diffusion/process
    levels: tuple[float, float] = VE_RANGE  # smallest and largest noise of a "ve" process
    reference: str = "spectral"  # of REFERENCES: or "full", one Gaussian with its whole covariance, or "mixture"
    planned: bool = False  # whether validation signals choose start, grid and solver (diffusion/plan)
    certain: bool = False  # whether a network that starts as its reference is kept only if it gains more than chance
    settings: tuple[tuple[str, float | str], ...] = ()  # of training, where they are not the common ones

    @property
    def network(self) -> tuple[str, ...]:
        """What training depends on."""
        reference = () if self.reference == "spectral" else (self.reference,)
        return self.process, self.parameterisation, *reference, *(f"{key}{value}" for key, value in self.settings)


def _ve(parameterisation: str, about: str, levels: tuple[float, float] = VE_RANGE) -> Method:
    return Method(parameterisation, "noise", "heun-edm", 7, about, "ve", levels)


_GAD = Method("denoised", "stationary", "euler-maruyama-heat", 1, "GAD: graph heat diffusion, its sampler", "heat")
_NATIVE = (
    *(("width", 24), ("shift", "unscaled"), ("optimizer", "adamw"), ("lr", 1e-4), ("batch", 128), ("ema", 0.0)),
    *(("stopping", "none"), ("max_updates", 785_000), ("validate_every", 2500)),
)
_LENGTH = (("lr", 1e-3), ("stopping", "gain"), ("max_updates", 12_000))
_OURS = Method(
    "residual",
    "fitted",
    "residual-2m",
    3,
    "our default: residual to a Gaussian mixture, a network that knows its nodes, a plan",
    reference="mixture",
    planned=True,
    certain=True,
    settings=(("backbone", "node"), *_LENGTH),
)

METHODS: dict[str, Method] = {
    "grcd": _OURS,
    "grcd-full": replace(_OURS, about="grcd with one Gaussian in place of the mixture", reference="full"),
    "grcd-spectral": replace(_OURS, about="grcd with the paper's reference", reference="spectral"),
    "grcd-sparse": replace(_OURS, about="grcd with the sparse reference of large graphs", reference="sparse"),
    "grcd-gnn": replace(_OURS, about="grcd with the paper's backbone", settings=_LENGTH),
    "grcd-rho3": Method("residual", "fitted", "exponential-paper", 3, "the paper's GRCD"),
    "grcd-rho1": Method("residual", "fitted", "exponential-paper", 1, "the paper's GRCD on the uniform grid"),
    "grcd-exponential": Method("residual", "fitted", "exponential", 3, "the paper's GRCD, weights in closed form"),
    "grcd-epsilon-heun": Method("epsilon", "fitted", "heun-paper", 1, "GRCD without residual score"),
    "edm": _ve("preconditioned", "EDM: isotropic noise, published preconditioning", EDM_RANGE),
    "gad": _GAD,
    "wsd-scalar": Method("whitened-scalar", "scalar", "euler-maruyama", 1, "whitened score, scalar variance"),
    "wsd-graph": Method("whitened-graph", "fitted", "euler-maruyama", 1, "whitened score, graph-spectral covariance"),
    "isotropic-ve": _ve("preconditioned", "control: isotropic preconditioning"),
    "static-precond": _ve("preconditioned-static", "control: static graph preconditioning"),
    "conjugate-precond": _ve("preconditioned-conjugate", "control: dynamic conjugate preconditioning"),
    "clock": Method("epsilon", "scalar", "heun-paper", 1, "ladder: mode-dependent clock, scalar terminal reference"),
    "clock+reference": Method("epsilon", "fitted", "heun-paper", 1, "ladder: + fitted terminal reference"),
    "clock+reference+residual": Method("residual", "fitted", "heun-paper", 1, "ladder: + residual score"),
    "clock+reference+residual+exponential": Method(
        "residual", "fitted", "exponential-paper", 1, "ladder: + exponential solver"
    ),
    "gad-native": replace(
        _GAD, about="GAD at its authors' own size and length of training, without early stopping", settings=_NATIVE
    ),
}


def find(name: str) -> Method:
    """A method by name; an unknown one is an error that lists the known ones."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def on(name: str, graph: Graph) -> Method:
    """A method by name on a graph: on a large one its reference is sparse, and its sampler needs factors only."""
    method = find(name)
    if not graph.large:
        return method
    if method.process != "conjugate" or method.parameterisation != "residual" or not method.planned:
        raise InputError(
            f"the method {name!r} on a graph of {len(graph):,} nodes, which asks for all its frequencies",
            f"up to {LARGE:,} nodes, or a method that does without: grcd, grcd-gnn",
            "take the method grcd, or fewer nodes",
        )
    return replace(method, reference="sparse", solver="ancestral-2m", planned=False)


def sharing(method: Method) -> list[str]:
    """The methods that one training serves."""
    return [name for name, other in METHODS.items() if other.network == method.network]
