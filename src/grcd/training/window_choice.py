"""Which reference of windows was chosen, by how much, and how that is said."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.errors import counted
from ..references.lags import Shrinkage


@dataclass(frozen=True)
class Choice:
    """A kind of reference, and why."""

    kind: str  # stationary, mixture, spectral, separable, low rank or sparse
    shrinkage: Shrinkage
    components: int = 1
    log_prob: dict[str, float] = field(default_factory=dict)  # nats a reading, by candidate
    judged: str = ""  # on what, in words
    memory: str = ""  # what did not fit, in words
    lags: int = 0  # of a sparse one: rows back
    modes: int = 0  # and modes that all readings share
    graph: float = 0.0  # how far lag covariances went towards what distance along the graph says, before they shrank

    def summary(self) -> dict[str, Any]:
        """For a file: what was chosen, how much it was shrunk, how probable every candidate made held-out readings."""
        rounded = {name: round(value, 4) for name, value in self.log_prob.items()}
        return {
            "kind": self.kind,
            "components": self.components,
            "shrinkage": asdict(self.shrinkage),
            "log_prob": rounded,
            "judged": self.judged,
            "memory": self.memory,
            "lags": self.lags,
            "modes": self.modes,
            "graph": self.graph,
            "words": self.words(),
        }

    @classmethod
    def of(cls, summary: dict[str, Any]) -> Choice:
        """The way back."""
        names = "kind", "components", "log_prob", "judged", "memory", "lags", "modes", "graph"
        own = {name: summary[name] for name in names if name in summary}  # older runs know fewer
        return cls(shrinkage=Shrinkage(**summary["shrinkage"]), **own)

    def words(self) -> str:
        """For a person."""
        by = self.shrinkage
        weights = {
            "to distance along the graph": self.graph if self.kind == "stationary" else 0.0,
            "to independent nodes": by.nodes,
            "to time (x) space": by.separable,
            "to independent readings": by.readings,
        }
        mixed = ", ".join(f"{value:.0%} {name}" for name, value in weights.items() if value > 0)
        if self.kind == "spectral":
            return "spectral (the paper's: diagonal in the basis of the product graph)"
        if self.kind == "sparse":
            text = f"sparse (neighbours {counted(self.lags, 'row')} back, {counted(self.modes, 'mode')} shared by all)"
            return f"{text}: {self.memory}" if self.memory else text
        regimes = f" in {self.components} regimes" if self.components > 1 else ""
        detail = f"noise {by.noise:.3g}" + (
            f", correlations under {by.local:.2g} taken for noise" if by.local > 0 else ""
        )
        text = f"{self.kind}{regimes} ({f'shrunk {mixed}; ' if mixed else ''}{detail})"
        return f"{text}: {self.memory}" if self.memory else text
