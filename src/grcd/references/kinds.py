"""How a kind of reference is fitted and how it comes back: the columns of the table ``REFERENCES``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..core.streams import Stream
from ..graphs.graph import Spectrum
from ..graphs.kronecker import Basis
from . import projections
from .covariance import ledoit_wolf
from .gaussian import Spectral, spectral
from .reference import Reference


@dataclass(frozen=True)
class TrainingSignals:
    """What a reference is fitted to: z-scored signals, and the paper's Gaussian of them, which fills their gaps."""

    train: Tensor  # (samples, d), NaN where missing, on the device
    val: Tensor
    spectral: Spectral
    seed: int

    @classmethod
    def of(
        cls, train: np.ndarray, val: np.ndarray, spectrum: Spectrum, basis: Basis, eps_ref: float, seed: int
    ) -> Self:
        """Signals (samples, d) on the device of ``basis``, the very object that the forward process has."""
        if train.shape[1] > projections.LARGE:
            v = projections.spectral_by_projection(train, spectrum, eps_ref)
        else:
            v = spectral(ledoit_wolf(train, eps_ref), spectrum).v
        x_train, x_val = (torch.from_numpy(part).to(basis.device) for part in (train, val))
        return cls(x_train, x_val, Spectral(v.to(basis.device), basis), seed)

    def complete_train(self) -> Tensor:  # (samples, d)
        """Training signals, gaps drawn given what was observed."""
        return self.spectral.whole(self.train, Stream(self.seed, "reference gaps", self.train.device))

    def complete_val(self) -> Tensor:  # (samples, d)
        return self.spectral.whole(self.val, Stream(self.seed, "reference validation gaps", self.val.device))


@dataclass(frozen=True)
class Kind:
    """A row of ``REFERENCES``."""

    fit: Callable[[TrainingSignals], Reference]
    from_tensors: Callable[[Mapping[str, Tensor], Basis], Reference]  # what it saved, and the process's basis
