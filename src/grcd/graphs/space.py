"""The space that signals live in: readings at some steps in time, at the nodes of a graph, in some channels.

The one place that knows the shape of a signal. Outside a signal is an array ``(steps, nodes, channels)``, where an axis
of length one is left out (one step, one channel: a plain row of readings, one a node); inside everything sees rows of
``d = steps nodes channels`` numbers, in that order.

**Its basis** is the Fourier basis of a product graph. Time is a path, whose combinatorial Laplacian has the cosines
``Phi`` as eigenvectors; space is the sensor graph with its normalised Laplacian and ``U``; the operator does not couple
channels:

    lam_time = 2 - 2 cos(pi k / steps),     lam_space,     each divided by its largest
    lam = w_time lam_time + w_space lam_space,             basis Phi (x) U (x) I

never formed: see ``kronecker``. With one step and one channel it is the graph's own spectrum and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import InputError, whole_number
from .graph import Graph, Spectrum, fix_signs

if TYPE_CHECKING:
    from torch import Tensor

    from .kronecker import Kronecker


@dataclass(frozen=True, eq=False)
class SignalSpace:
    """Signals of ``steps`` moments in ``channels`` variables on a ``graph``; weights are those of time and space."""

    graph: Graph
    steps: int = 1
    channels: int = 1
    weights: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        whole_number("steps", self.steps), whole_number("channels", self.channels)

    @property
    def d(self) -> int:
        """How many numbers a signal is."""
        return self.steps * len(self.graph) * self.channels

    @property
    def axes(self) -> dict[str, int]:
        """The axes of a signal and their lengths, in order; those of length one are left out, but for nodes."""
        sizes = {"steps": self.steps, "nodes": len(self.graph), "channels": self.channels}
        return {name: size for name, size in sizes.items() if size > 1 or name == "nodes"}

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a signal, as it comes and goes."""
        return tuple(self.axes.values())

    def flat(self, signals: np.ndarray, what: str = "signals") -> np.ndarray:  # (samples, *shape) -> (samples, d)
        """Signals as rows of ``d`` numbers; an error says what they are and what fits."""
        if signals.shape[1:] != self.shape or signals.ndim == 0:
            sizes = ", ".join(map(str, self.shape))
            axes = f"as the graph has {'nodes' if len(self.shape) == 1 else 'nodes, and windows ' + self._described()}"
            do = "pass one column per node of the graph, one row per sample"
            if len(self.shape) == 1 and signals.ndim == 2 and len(signals) == self.d:
                do = "transpose them: rows are samples, columns are nodes"
            raise InputError(f"{what} of shape {signals.shape}", f"(samples, {sizes}), {axes}", do)
        return signals if signals.ndim == 2 else signals.reshape(len(signals), self.d)

    def _described(self) -> str:
        return " and ".join(f"{size} {name}" for name, size in self.axes.items() if name != "nodes")

    def shaped(self, rows: np.ndarray) -> np.ndarray:  # (..., d) -> (..., steps, nodes, channels)
        """The way back."""
        return rows.reshape(*rows.shape[:-1], *self.shape)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Frequencies and basis: the graph's own for a single moment of one variable."""
        if self.d == len(self.graph):
            return self.graph.spectrum
        time, space = path(self.steps).scaled(), self.graph.spectrum.scaled()
        lam = self.weights[0] * time[:, None] + self.weights[1] * space
        return ProductSpectrum(np.repeat(lam.ravel(), self.channels), self.graph.spectrum.U, self.steps, self.channels)

    @property
    def combinatorial(self) -> Tensor | Kronecker:  # (d, d)
        """The combinatorial Laplacian of the graph, at every moment and in every channel by itself."""
        import torch  # which reading a graph can do without

        from .kronecker import Kronecker

        laplacian, axes = torch.from_numpy(self.graph.combinatorial.toarray()), self.axes
        if len(axes) == 1:
            return laplacian
        return Kronecker(*(laplacian if name == "nodes" else size for name, size in axes.items()))


@dataclass(frozen=True)
class ProductSpectrum(Spectrum):
    """The spectrum of a product graph: ``lam`` (d,) in the order of the basis, ``U`` the graph's factor of it."""

    steps: int = 1
    channels: int = 1

    def diagonal(self, covariance: np.ndarray) -> np.ndarray:  # (d, d) -> (modes,)
        import torch

        return ((torch.from_numpy(covariance) @ self.basis).mT @ self.basis).diagonal().numpy()

    @cached_property
    def basis(self) -> Kronecker:
        import torch  # which reading a graph can do without

        from .kronecker import Kronecker

        time = () if self.steps == 1 else (torch.from_numpy(path(self.steps).U),)
        return Kronecker(*time, torch.from_numpy(self.U), *(() if self.channels == 1 else (self.channels,)))


def path(steps: int) -> Spectrum:
    """The spectrum of a path of so many steps: frequencies ``2 - 2 cos(pi k / steps)``, cosines as modes."""
    k, t = np.arange(steps), np.arange(steps) + 0.5
    cosines = np.cos(np.pi * np.outer(t, k) / steps)
    return Spectrum(2 - 2 * np.cos(np.pi * k / steps), fix_signs(cosines / np.linalg.norm(cosines, axis=0)))
