"""A Gaussian mixture as a reference: several regimes, each with a mean and a covariance, and still no network.

In conjugate coordinates the marginal of ``sum_k w_k N(m_k, Sigma_k)`` at noise level ``q`` is the same mixture with
``Sigma_k + q^2 I``, so with the posterior probabilities ``r_k`` of its components (softmax of ``log w_k + log N_k``)

    score               sum_k r_k(x~, q) s_k(x~ - m_k, q),      s_k the score of component k
    noise prediction    eps_ref = -q score

are exact. Its probability flow has no closed form: it is integrated by Runge-Kutta steps of order four, evenly spaced
in ``log q``. They ask nothing of the network, and there may be as many as one likes. With one component there is
nothing to integrate, and the Gaussian's own propagator is taken. How it is fitted is in ``mixture_fit``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor

from ..graphs.kronecker import Basis, dense
from .component import Component, stacked
from .gaussian import Gaussian, LowRank
from .observations import choose
from .propagator import Level
from .reference import Reference
from .separable import Separable
from .stationary import Stationary

SAVED: dict[str, type[Gaussian]] = {"C": Stationary, "time": Separable}  # by a tensor that they alone save


@dataclass(frozen=True)
class Mixture(Reference):
    """``sum_k weight_k N(mean_k, Sigma_k)``; the parts are Gaussians of any kind."""

    weights: Tensor  # (K,)
    means: Tensor  # (K, d)
    parts: tuple[Component, ...]  # K

    @cached_property
    def _stacks(self) -> list[tuple[Tensor, Component]]:
        return [*self._stacked()]

    def _stacked(self) -> Iterator[tuple[Tensor, Component]]:  # means (k, 1, d), and the parts as one
        """On a GPU neighbours of one kind share their products; on a processor, for the sake of its caches, none do."""
        kinds = [
            (type(part), part.B.shape) if part.B.is_cuda and isinstance(part.B, Tensor) else k
            for k, part in enumerate(self.parts)
        ]
        for _, run in groupby(range(len(kinds)), kinds.__getitem__):
            places = [*run]
            yield self.means[places, None], stacked([self.parts[k] for k in places])

    def to(self, device: torch.device | str) -> Self:
        return type(self)(self.weights.to(device), self.means.to(device), tuple(part.to(device) for part in self.parts))

    def tensors(self) -> dict[str, Tensor]:
        """Of parts of one kind: what they save themselves, or their eigenpairs."""
        own = tuple(SAVED.values())
        parts = [part.tensors() if isinstance(part, own) else {"v": part.v, "B": dense(part.B)} for part in self.parts]
        stacks = {key: torch.stack([part[key] for part in parts]) for key in parts[0]}
        return {"weights": self.weights, "means": self.means} | stacks

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Self:
        """A part with fewer modes than nodes is of low rank."""
        weights, means = tensors["weights"], tensors["means"]
        keys = [key for key in tensors if key not in ("weights", "means")]
        if any(len(tensors[key]) != len(weights) for key in (*keys, "means")):
            raise ValueError("weights, means and covariances of the mixture have different sizes")
        rows = [{key: tensors[key][k] for key in keys} for k in range(len(weights))]
        kind = next((kind for key, kind in SAVED.items() if key in keys), None)
        if kind is None:
            kind = Gaussian if tensors["B"].shape[1] == tensors["B"].shape[2] else LowRank
        mixture = cls(weights, means, tuple(kind.from_tensors(row, basis) for row in rows))
        if means.shape[1:] != (mixture.parts[0].d,):
            raise ValueError("means and covariances of the mixture have different sizes")
        return mixture

    def covariance(self, q: Level = 0.0) -> Tensor:
        """Of all components together, about their common mean."""
        centred = self.means - self.mean
        within = sum(w * part.covariance(q) for w, part in zip(self.weights, self.parts, strict=True))
        return within + (self.weights[:, None] * centred).T @ centred

    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """The spectra of all parts, which count as much as the parts weigh."""
        v, counts = zip(*(part.variances() for part in self.parts), strict=True)
        return np.concatenate(v), np.concatenate([float(w) * c for w, c in zip(self.weights, counts, strict=True)])

    def scalar(self) -> Self:
        eye = self.parts[0].identity()
        v = self.covariance().diagonal().mean().expand(len(eye))
        return type(self)(torch.ones_like(self.weights[:1]), self.mean[None], (Gaussian(v, eye),))

    def components(self, x: Tensor, q: Level) -> tuple[Tensor, list[Tensor]]:
        rows = x.reshape(-1, x.shape[-1])
        q = q.expand(*x.shape[:-1], 1).reshape(-1, 1) if isinstance(q, Tensor) else q
        scored = [parts.scored(rows - means, q) for means, parts in self._stacks]
        joint = torch.cat([log_prob for log_prob, _ in scored]).T + self.weights.log()
        return joint.view(*x.shape[:-1], -1), [score.view_as(x) for _, scores in scored for score in scores]

    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:
        joint, scores = self.components(x, q)
        responsible = joint.softmax(-1)
        score = sum(responsible[..., k, None] * score for k, score in enumerate(scores))
        return joint.logsumexp(-1), cast(Tensor, score)  # of one component at least

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor:
        return self.components(x, q)[0].logsumexp(-1)

    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:
        if u is None:
            if len(self.parts) > 1:
                raise ValueError("a mixture needs uniform numbers to choose components by")
            return self.means[0] + self.parts[0].draw(noise, q)
        drawn = torch.stack([mean + part.draw(noise, q) for mean, part in zip(self.means, self.parts, strict=True)])
        return drawn[choose(self.weights, u), torch.arange(len(noise), device=noise.device)]

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 8) -> Tensor:
        if len(self.parts) == 1:
            return self.means[0] + self.parts[0].carry(x - self.means[0], q1, q0, forcing)

        def slope(x: Tensor, q: float) -> Tensor:  # dx / d log q
            total = self.eps(x, q)
            for j, force in enumerate(forcing):
                total = total + (q - q0) ** j * force
            return q * total

        h = math.log(q1 / q0) / steps
        for step in range(steps):
            a = q0 * math.exp(step * h)
            b, c = a * math.exp(h / 2), a * math.exp(h)
            k1 = slope(x, a)
            k2 = slope(x + h / 2 * k1, b)
            k3 = slope(x + h / 2 * k2, b)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3, c))
        return x
