"""``Reference``: the part of the score that needs no network, and what everybody may ask of it.

A reference is a law of signals whose marginals at all noise levels are known in closed form: a mixture of Gaussians,
``sum_k w_k N(m_k, Sigma_k)``, of one about zero in the simplest case. In conjugate coordinates the marginal at level
``q`` is the same with ``Sigma_k + q^2 I``. Nothing outside asks which kind it is; a new one is a file with a subclass,
and a row in ``REFERENCES``.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ..graphs.kronecker import Basis
from . import regimes
from .conditioning import WindowPosterior
from .observations import Observations, Part, Posterior
from .propagator import Level


class Reference(abc.ABC):
    """The contract. Signals are rows of ``d`` numbers, in float64 and in conjugate coordinates; ``x`` is (..., d).

    Laws that hold of every member, and that ``tests/references/test_contract.py`` asks of it: ``score`` is the gradient
    of ``log_prob``, ``eps = -q score``, draws have the mean and the covariance that are stated, ``carry`` solves
    ``dx~/dq = eps(x~, q) + forcing``, ``condition`` is Bayes' rule, ``posterior`` is the same entry by entry, and
    ``from_tensors(tensors())`` is the same to the last bit. A level ``q`` is a number, or (..., 1) for a level a
    signal.
    """

    gaussian: ClassVar[bool] = False  # one Gaussian about zero with d modes: what solvers that go mode by mode need

    if TYPE_CHECKING:  # where it runs, a property here would stand in the way of a field in a dataclass

        @property
        def weights(self) -> Tensor:  # (K,)
            """Of the Gaussians that it is made of."""

        @property
        def means(self) -> Tensor:  # (K, d)
            """Their means."""

        @property
        def parts(self) -> tuple[Part, ...]:  # K
            """Themselves, each about zero."""

    @property
    def mean(self) -> Tensor:  # (d,)
        return self.weights @ self.means

    @abc.abstractmethod
    def covariance(self, q: Level = 0.0) -> Tensor:  # (d, d)
        """Of the marginal at level ``q``, about ``mean``."""

    @abc.abstractmethod
    def variances(self) -> tuple[np.ndarray, np.ndarray]:  # two of (modes of all parts,)
        """Variances of the eigenmodes, and how much each counts: ``d`` in all."""

    @abc.abstractmethod
    def scalar(self) -> Reference:
        """One Gaussian with the same mean and the same variance in all directions, the mean one (section 4.2)."""

    @abc.abstractmethod
    def components(self, x: Tensor, q: Level) -> tuple[Tensor, list[Tensor]]:  # (..., K), K of (..., d)
        """``log w_k + log N_k(x~)``, and the scores of the components."""

    @abc.abstractmethod
    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:  # (...), (..., d)
        """Log-density and score of the marginal at level ``q``, for the price of the score."""

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor:  # (...)
        return self.scored(x, q)[0]

    def score(self, x: Tensor, q: Level) -> Tensor:  # (..., d)
        return self.scored(x, q)[1]

    def eps(self, x: Tensor, q: Level) -> Tensor:  # (..., d)
        """The noise prediction, ``-q`` times the score."""
        return -q * self.score(x, q)

    @abc.abstractmethod
    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:  # (batch, d) twice
        """Draws of the marginal: ``u`` (batch,), uniform on [0, 1), chooses components, where there are several, and
        standard normal ``noise`` does the rest."""

    def propagate(self, x: Tensor, q1: float, q0: float, steps: int = 8) -> Tensor:  # (batch, d) twice
        """Carry a state along the reference's own probability flow from ``q0`` to ``q1``: ``carry`` unforced."""
        return self.carry(x, q1, q0, (), steps)

    @abc.abstractmethod
    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 8) -> Tensor:
        """The same with ``sum_j forcing_j (q - q0)^j`` added to the flow; in ``steps`` if it has no closed form."""

    def condition(self, observations: Observations) -> Posterior:
        """What observations leave of it: the exact posterior."""
        return Posterior.of(self.weights, self.means, self.parts, observations)

    @property
    def d(self) -> int:
        """How many numbers a signal is."""
        return self.means.shape[1]

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        """Signals ``z`` (signals, d) given the entries that are ``observed`` (signals, d); the rest is ignored.

        The same law as ``condition``'s, entry by entry, for many signals of many entries. ``xi`` (signals, draws, d),
        standard normal: draws as well.
        """
        return regimes.posterior(self.weights, self.means, self.parts, z, observed, xi)

    def drawn(self, z: Tensor, observed: Tensor, xi: Tensor) -> Tensor:  # (signals, draws, d)
        """The draws of ``posterior`` alone."""
        draws = self.posterior(z, observed, xi).draws
        assert draws is not None
        return draws

    @abc.abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""

    @abc.abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What there is to save, by name."""

    @classmethod
    @abc.abstractmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Self:
        """The way back; ``basis`` (d, modes) is the forward process's, which is saved elsewhere.

        Raises ``KeyError`` or ``ValueError`` where tensors are missing or do not fit together.
        """
