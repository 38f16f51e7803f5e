"""Between the units of signals and the z-scores that all else sees: what maps share, and which there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from ..graphs.graph import Graph
from .normalizer import Normalizer
from .quantiles import Quantiles


class Marginals(Protocol):
    """A map of every reading of a node, fitted to training signals; ``len`` is the number of nodes."""

    @classmethod
    def fit(cls, train: np.ndarray, graph: Graph) -> Self:
        """From training signals (samples, nodes), NaN where missing."""
        ...

    def apply(self, signals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """z-scores (samples, nodes) of all signals, or of some rows."""
        ...

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        """Back into the signals' units, in float64."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save, by name."""
        ...

    @classmethod
    def saved(cls, moments: dict, arrays: Mapping[str, np.ndarray]) -> Self:
        """The way back."""
        ...

    def __len__(self) -> int: ...


MARGINALS: dict[str, type[Marginals]] = {"z-score": Normalizer, "quantile": Quantiles}


class ZScored:
    """Signals (rows, nodes) in their units, as z-scores on a device once they are looked at."""

    def __init__(self, signals: np.ndarray, marginals: Marginals, device: torch.device):
        self.signals, self.marginals, self.device = signals, marginals, device

    def __len__(self) -> int:
        return len(self.signals)

    def __getitem__(self, rows: Any) -> Tensor:  # (some rows, nodes), float64
        return torch.from_numpy(self.marginals.apply(self.signals[rows])).double().to(self.device)
