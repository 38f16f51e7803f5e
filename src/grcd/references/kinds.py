"""How a kind of reference is fitted and how it comes back: the columns of the table ``REFERENCES``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from ..core.progress import quiet, working
from ..core.streams import Stream
from ..graphs.graph import Graph, Spectrum
from ..graphs.kronecker import Basis
from . import projections, sparse_mixture_fit
from .covariance import ledoit_wolf
from .gaussian import Spectral, spectral
from .reference import Reference
from .sparse import Sparse
from .sparse_mixture import SparseMixture


class Filler(Protocol):
    """What gaps of signals are drawn from."""

    def completed(self, x: Tensor, noise: Tensor) -> Tensor: ...

    def whole(self, x: Tensor, random: Stream) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class TrainingSignals:
    """What a reference is fitted to: z-scored signals, and the paper's Gaussian of them, which fills their gaps."""

    train: Tensor  # (samples, d), NaN where missing, on the device
    val: Tensor
    spectrum: Spectrum
    basis: Basis  # the very object that the forward process has
    eps_ref: float
    seed: int
    graph: Graph | None = None

    @classmethod
    def of(
        cls,
        train: np.ndarray,
        val: np.ndarray,
        spectrum: Spectrum,
        basis: Basis,
        eps_ref: float,
        seed: int,
        graph: Graph | None = None,
    ) -> Self:
        """Signals (samples, d) on the device of ``basis``; a sparse reference asks for the ``graph``."""
        x_train, x_val = (torch.from_numpy(part).to(basis.device) for part in (train, val))
        return cls(x_train, x_val, spectrum, basis, eps_ref, seed, graph)

    @cached_property
    def spectral(self) -> Spectral:
        """The paper's Gaussian of the training signals."""
        train = self.train.cpu().numpy()
        if train.shape[1] > projections.LARGE:
            v = projections.spectral_by_projection(train, self.spectrum, self.eps_ref)
        else:
            v = spectral(ledoit_wolf(train, self.eps_ref), self.spectrum).v
        return Spectral(v.to(self.basis.device), self.basis)

    def filler(self, reference: Reference) -> Filler:
        """What gaps are drawn from: the paper's Gaussian, or a sparse reference itself, where there is no other."""
        return reference if isinstance(reference, Sparse | SparseMixture) else self.spectral

    def sparse(self) -> Sparse | SparseMixture:
        """A sparse reference of them, or several."""
        if self.graph is None or self.train.shape[1] != len(self.graph):
            raise ValueError("a sparse reference is of single moments on a graph")
        with working("fitting a sparse reference"), quiet():
            return sparse_mixture_fit.fit(self.train, self.val, self.graph, self.seed)

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
