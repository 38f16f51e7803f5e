"""Between the units of signals and the z-scores that all else sees: what maps share, and which there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..graphs.graph import Graph
from .normalizer import Normalizer
from .quantiles import Quantiles
from .scales import SCALES, Scale


class Marginals(Protocol):
    """A map of every reading of a node, fitted to training signals; ``len`` is the number of nodes."""

    def apply(self, signals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """z-scores (samples, nodes) of all signals, or of some rows."""
        ...

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        """Back into the signals' units, in float64."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save, by name."""
        ...

    def log_slope(self, signals: np.ndarray) -> np.ndarray:  # (samples, nodes) twice
        """``log dz/dx`` of readings."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Scaled:
    """z-scores of readings on a scale."""

    scale: Scale
    moments: Normalizer  # of the scaled readings

    def apply(self, signals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        z = self.moments.apply(self.scale.forward(signals if rows is None else signals[rows]))
        return z.astype(np.float32) if signals.dtype == np.float32 else z

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        return self.scale.back(self.moments.undo(np.asarray(normalized, np.float64)))

    def log_slope(self, signals: np.ndarray) -> np.ndarray:
        return self.scale.log_slope(signals) - np.log(self.moments.std)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"mean": self.moments.mean, "std": self.moments.std} | self.scale.arrays()

    def __len__(self) -> int:
        return len(self.moments)


def fitted(name: str, train: np.ndarray, graph: Graph) -> Marginals:
    """From training signals (samples, nodes), NaN where missing."""
    moments = Normalizer.fit(train, graph)  # refuses nodes that never change, or were hardly observed
    if name == "z-score":
        return moments
    if name == "quantile":
        return Quantiles.fit(train, graph)
    scale = SCALES[name].of(train)
    return Scaled(scale, Normalizer.fit(scale.forward(train), graph))


def saved(name: str, moments: dict, arrays: Mapping[str, np.ndarray]) -> Marginals:
    """The way back, from mean and standard deviation of the readings and the arrays."""
    if name == "z-score":
        return Normalizer.of(moments)
    if name == "quantile":
        return Quantiles.saved(arrays)
    return Scaled(SCALES[name].saved(arrays), Normalizer(arrays["mean"], arrays["std"]))


class ZScored:
    """Signals (rows, nodes) in their units, as z-scores on a device once they are looked at."""

    def __init__(self, signals: np.ndarray, marginals: Marginals, device: torch.device):
        self.signals, self.marginals, self.device = signals, marginals, device

    def __len__(self) -> int:
        return len(self.signals)

    def __getitem__(self, rows: Any) -> Tensor:  # (some rows, nodes), float64
        return torch.from_numpy(self.marginals.apply(self.signals[rows])).double().to(self.device)
