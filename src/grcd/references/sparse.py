"""A Gaussian on a large graph: ``N(0, Q^-1 + V V^T)``, a sparse precision and some network-wide modes.

``Q`` (see ``precision``) says what neighbours have to do with each other, ``V`` (d, r) what all nodes do together:
``x = e + V f`` with ``e ~ N(0, Q^-1)`` and ``f`` standard normal. Nothing of size d x d is formed. At noise level ``q``

    M = (Q^-1 + q^2 I)^-1 = Q (I + q^2 Q)^-1                                    a sparse system
    (Sigma + q^2 I)^-1 = M - M V (I + V^T M V)^-1 V^T M                         Woodbury
    log det (Sigma + q^2 I) = log det (I + q^2 Q) - log det Q + log det (I + V^T M V)

exactly. The order of elimination is made once and serves all levels. Where a factor would not fit (see
``core.factors``) the systems are solved by conjugate gradients, which is said.

**Draws** without noise need no factor but ``Q``'s own: with ``F F^T = Q^-1``, ``W = F^-1 V`` and ``I + W C W^T`` the
root of ``I + W W^T``, it is ``F (I + W C W^T) xi``. With noise it is the symmetric root, by shifted solves
(``rational``), and so is the propagator. What is observed is in ``sparse_conditioning``.
"""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core import factors, memory
from ..core.errors import InputError, InputWarning
from ..core.streams import Stream
from ..graphs.kronecker import Basis
from . import rational
from .conditioning import WindowPosterior
from .observations import Observations
from .precision import Precision, Regressions, from_tensors
from .propagator import Level, moments
from .reference import Reference
from .sparse_conditioning import Conditioned, Masked, completed, drawn, posterior

DENSE = 4096  # numbers of a signal up to which a whole covariance may be asked for
KEPT = 8  # of all memory, what factors that are kept may take is one part in so many
LEVELS = 1024  # that are kept, however small they are
TRACES = 64  # draws that a trace is estimated from


class AtLevel:
    """``Sigma + s I`` for one ``s = q^2``: solves and determinant."""

    def __init__(self, reference: Sparse, s: float):
        self.Q, self.s, self.V = reference.precision.Q, s, reference.modes
        self.system = None if s == 0 else reference.system(sp.eye_array(reference.d) + s * self.Q)
        self.MV = self._local(self.V)
        self.inner = np.eye(self.V.shape[1]) + self.V.T @ self.MV
        self.precision = reference.precision

    @cached_property
    def log_det(self) -> float:
        """Of ``Sigma + s I``."""
        own = 0.0 if self.system is None else self.system.log_det
        return own - self.precision.log_det + float(np.linalg.slogdet(self.inner)[1])

    def _local(self, x: np.ndarray) -> np.ndarray:  # (d, k) twice
        """``M x``."""
        return self.Q @ (x if self.system is None else self.system.solve(x))

    def solve(self, x: np.ndarray) -> np.ndarray:  # (d, k) twice
        """``(Sigma + s I)^-1 x``."""
        y = self._local(x)
        return y - self.MV @ np.linalg.solve(self.inner, self.V.T @ y) if self.V.shape[1] else y

    @property
    def size(self) -> int:
        """Bytes, about."""
        return 16 * getattr(self.system, "nonzeros", 0) + 16 * self.MV.size


class Sparse(Reference):
    """``N(0, Q^-1 + V V^T)``: a ``precision``, and ``V`` (d, r). It lives in main memory, whatever the device."""

    gaussian = False  # there are no modes to go by

    def __init__(self, precision: Precision, V: np.ndarray, device: torch.device | str = "cpu"):
        self.precision, self.device = precision, torch.device(device)
        self.modes = np.asfortranarray(V)  # as it will be when it is loaded: products are then the same to the bit
        self._levels: OrderedDict[float, AtLevel] = OrderedDict()
        self._kept = 0  # bytes of them
        self._masked: tuple[tuple[bytes, bytes], Masked] | None = None
        self._said = False

    def __repr__(self) -> str:
        return f"Sparse({self.d:,} nodes, {self.precision.Q.nnz:,} precisions, {self.modes.shape[1]} modes)"

    # -- systems ---------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> np.ndarray | None:  # (d,)
        """Of elimination; None where a factor would not fit."""
        return None if self._dear else self.precision.elimination

    @cached_property
    def _dear(self) -> str:
        return factors.too_dear(self.precision.pattern)

    def system(self, matrix: sp.sparray, nodes: np.ndarray | None = None) -> factors.System:
        """On the pattern of ``Q``, or of the part of it at some ``nodes`` (d,), a mask; in the order of all. Where a
        factor of all would not fit, that of the part may; or else conjugate gradients have to do."""
        order = self.order
        if order is None:
            part = factors.without_diagonal(matrix)
            if nodes is not None and not nodes.all() and not factors.too_dear(part):
                return factors.Factor(matrix, factors.elimination(part))
            self._say_dear()
            return factors.Iterative(matrix)
        if nodes is not None:
            place = np.cumsum(nodes) - 1
            order = place[order[nodes[order]]]
        return factors.Factor(matrix, order)

    def _say_dear(self) -> None:
        """Once."""
        if not self._said:
            what = f"{self.d:,} readings with {self.precision.pattern.nnz // 2:,} pairs would take {self._dear}"
            warnings.warn(f"{what}: they are solved by conjugate gradients", InputWarning, stacklevel=2)
            self._said = True

    def masked(self, fixed: np.ndarray, added: np.ndarray) -> Masked:
        """One way of being observed; the last one is kept: means and draws of a signal share its system."""
        key = fixed.tobytes(), added.tobytes()
        if self._masked is None or self._masked[0] != key:
            self._masked = None  # two factors take twice the memory
            self._masked = key, Masked(self, fixed, added)
        return self._masked[1]

    def at(self, q: float, keep: bool = True) -> AtLevel:
        """The marginal at a level, kept for the next time as long as there is room."""
        if q in self._levels:
            self._levels.move_to_end(q)
            return self._levels[q]
        level = AtLevel(self, q**2)
        if keep:
            self._levels[q] = level
            self._kept += level.size
            while len(self._levels) > 1 and (self._kept > memory.total() / KEPT or len(self._levels) > LEVELS):
                self._kept -= self._levels.popitem(last=False)[1].size
        return level

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Tensor:  # (1,)
        return torch.ones(1, dtype=torch.float64, device=self.device)

    @property
    def means(self) -> Tensor:  # (1, d)
        return torch.zeros(1, self.d, dtype=torch.float64, device=self.device)

    @property
    def parts(self) -> tuple[Sparse, ...]:
        return (self,)

    @property
    def d(self) -> int:
        return self.precision.d

    def covariance(self, q: Level = 0.0) -> Tensor:  # (d, d)
        if self.d > DENSE:
            do = "ask for draws, or for products with it"
            raise InputError(f"a whole covariance of {self.d:,} numbers", f"up to {DENSE:,}", do)
        Sigma = self.precision.correlated(np.eye(self.d)) + self.modes @ self.modes.T
        return torch.from_numpy((Sigma + Sigma.T) / 2 + float(q) ** 2 * np.eye(self.d)).to(self.device)

    def product(self, x: np.ndarray) -> np.ndarray:  # (d, k) twice
        """``Sigma x``."""
        return self.precision.correlated(x) + self.modes @ (self.modes.T @ x)

    def precise(self, x: np.ndarray) -> np.ndarray:  # (d, k) twice
        """``Sigma^-1 x``."""
        return self.at(0.0).solve(x)

    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact up to some thousand nodes; beyond, where they are by Lanczos quadrature."""
        if self.d <= DENSE:
            return np.linalg.eigvalsh(self.covariance().cpu().numpy()), np.ones(self.d)
        v, share = factors.spectral_measure(self.product, self.d)
        return np.maximum(v, 1 / self.precision.largest), self.d * share

    @cached_property
    def mean_variance(self) -> float:
        """Of an entry; of large ones that of some draws."""
        if self.d <= DENSE:
            return float(self.covariance().diagonal().mean())
        noise = Stream(0, "traces of a covariance").normal(0, TRACES * self.d).view(TRACES, self.d)
        return float(self.draw(noise).square().mean())

    def scalar(self) -> Sparse:
        return self.alike(self.d, self.mean_variance, self.device)

    @classmethod
    def alike(cls, d: int, v: float, device: torch.device | str) -> Sparse:
        """The same variance in all directions."""
        return cls(Regressions(sp.csr_array((d, d)), np.full(d, v), np.arange(d)), np.zeros((d, 0)), device)

    # -- densities -------------------------------------------------------------------------------------------------

    def _rows(self, x: Tensor, q: Level) -> list[tuple[Tensor | slice, float]]:
        """Signals by their level, of ``x`` (signals, d)."""
        if not isinstance(q, Tensor) or q.numel() == 1:
            return [(slice(None), float(q))]
        levels = q.expand(len(x), 1)[:, 0]
        return [((levels == level).nonzero()[:, 0], float(level)) for level in levels.unique()]

    def _by_level(self, x: Tensor, q: Level, function: Callable[[Tensor, float], Tensor]) -> Tensor:
        """A function of signals (signals, d) and one level, for signals of any shape and level."""
        if x.device.type == "meta":
            return torch.empty_like(x)
        rows = x.reshape(-1, x.shape[-1])
        q = q.expand(*x.shape[:-1], 1).reshape(-1, 1) if isinstance(q, Tensor) else q
        parts = self._rows(rows, q)
        if len(parts) == 1:
            return function(rows, parts[0][1]).view(x.shape)
        result = torch.empty_like(rows)
        for some, level in parts:
            result = result.index_copy(0, some, function(rows[some], level))  # type: ignore[arg-type]
        return result.view(x.shape)

    def score(self, x: Tensor, q: Level) -> Tensor:
        return self._by_level(x, q, lambda rows, level: -_Symmetric.apply(rows, self.at(level).solve))

    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:
        score = self.score(x, q)
        if x.device.type == "meta":
            return torch.empty_like(x[..., 0]), score
        levels = q.expand(*x.shape[:-1], 1).flatten().tolist() if isinstance(q, Tensor) else [q]
        sizes = torch.tensor([self.at(float(each)).log_det for each in levels], dtype=torch.float64, device=x.device)
        size = sizes.expand(x[..., 0].numel()).view(x.shape[:-1]) + self.d * math.log(2 * math.pi)
        return ((x * score).sum(-1) - size) / 2, score

    def components(self, x: Tensor, q: Level) -> tuple[Tensor, list[Tensor]]:
        log_prob, score = self.scored(x, q)
        return log_prob[..., None], [score]

    # -- functions of the covariance -------------------------------------------------------------------------------

    @cached_property
    def _root(self) -> tuple[np.ndarray, np.ndarray]:  # (d, r), (r, r)
        """``W`` and ``C``: ``I + W C W^T`` is the symmetric root of ``I + W W^T``."""
        W = self.precision.whitened(self.modes)
        values, vectors = np.linalg.eigh(W.T @ W)
        gain = 1 / (1 + np.sqrt(1 + np.maximum(values, 0.0)))  # (sqrt(1 + v) - 1) / v
        return W, (vectors * gain) @ vectors.T

    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:  # (batch, d) twice
        return self._by_level(noise, q, lambda rows, level: _applied(rows, lambda xi: self._drawn(xi, level)))

    def _drawn(self, xi: np.ndarray, q: float) -> np.ndarray:  # (d, k) twice
        if q == 0:
            W, C = self._root
            return self.precision.coloured(xi + W @ (C @ (W.T @ xi)))
        # (Sigma + q^2)^1/2 = (Sigma + q^2) (Sigma + q^2)^-1/2, whose shifts are all beyond q^2
        weights, shifts = rational.inverse_root(self._least + q**2, self._most + q**2)
        total = np.zeros_like(xi)
        for w, s in zip(weights, shifts, strict=True):
            total += w * (xi - s * self.at(math.sqrt(s + q**2), keep=self.d <= DENSE).solve(xi))
        return total

    @cached_property
    def _least(self) -> float:
        """No variance is smaller."""
        return 1 / self.precision.largest

    @cached_property
    def _most(self) -> float:
        """No variance is larger: twice what some iterations with the covariance come to."""
        x = np.random.default_rng(0).standard_normal((self.d, 4))
        for _ in range(30):
            x = self.product(x / np.linalg.norm(x, axis=0))
        return 2 * float(np.linalg.norm(x, axis=0).max())

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 8) -> Tensor:
        if x.device.type == "meta":
            return torch.empty_like(x)
        own = rational.propagator(q1**2, q0**2, self._least)
        functions = [own]
        for j in range(len(forcing)):

            def moment(v: np.ndarray, j: int = j) -> np.ndarray:
                return moments(torch.from_numpy(v), q1, q0, j + 1)[j].numpy()

            functions.append(rational.fitted(moment, (q1 - q0) ** (j + 1) / (j + 1), own.shifts, self._least))
        terms = [x, *forcing]
        total = [f.constant * _columns(each) for f, each in zip(functions, terms, strict=True)]
        result = sum(total[1:], total[0])
        for k, s in enumerate(own.shifts):
            right = sum(f.weights[k] * _columns(each) for f, each in zip(functions, terms, strict=True))
            result = result + self.at(math.sqrt(s), keep=self.d <= DENSE).solve(right)
        return torch.from_numpy(np.ascontiguousarray(result.T)).to(x.device)

    # -- what is observed ------------------------------------------------------------------------------------------

    @cached_property
    def coupling(self) -> tuple[np.ndarray, np.ndarray]:  # (d, r), (r, r)
        """``Q V`` and ``I + V^T Q V``."""
        QV = self.precision.Q @ self.modes
        return QV, np.eye(self.modes.shape[1]) + self.modes.T @ QV

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (d, samples) -> (r, samples), (r, r)
        """Mean and covariance of ``f`` given whole signals."""
        QV, G = self.coupling
        right = (torch.from_numpy(QV).to(x).T @ x).double()
        return torch.linalg.solve(torch.from_numpy(G), right), torch.from_numpy(np.linalg.inv(G))

    def updated(
        self, observations: Observations, mean: Tensor, q: float | None = None, error: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """As ``Component.updated``."""
        return Conditioned(self, observations, q).update(mean, error)

    def left(self, observations: Observations) -> Tensor:  # (batch, d, d)
        """As ``Component.left``, of few nodes."""
        return Conditioned(self, observations, None).covariance()

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        return posterior(self, z, observed, xi)

    def drawn(self, z: Tensor, observed: Tensor, xi: Tensor) -> Tensor:  # (signals, draws, d)
        return drawn(self, z, observed, xi)

    def completed(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, d) each
        """Missing entries (NaN) drawn given the observed ones of their row, from standard normal ``noise``."""
        return completed(self, x, noise)

    def whole(self, x: Tensor, random: Stream) -> Tensor:  # (batch, d) twice
        """Signals as they are if they have no gaps, and completed if they have."""
        return self.completed(x, random.normal(0, x.numel()).view_as(x)) if x.isnan().any() else x

    def cleaned(self, noise: Tensor, q: float) -> Tensor:  # (..., d) twice
        """Draws about zero of ``(Sigma^-1 + I / q^2)^-1``, by its symmetric root ``q Sigma^1/2 (Sigma + q^2)^-1/2``."""
        root = rational.propagator(0.0, q**2, self._least)
        total = root.constant * _columns(noise.reshape(-1, self.d))
        for w, s in zip(root.weights, root.shifts, strict=True):
            total = total + w * self.at(math.sqrt(s), keep=self.d <= DENSE).solve(_columns(noise.reshape(-1, self.d)))
        return q * torch.from_numpy(np.ascontiguousarray(total.T)).to(noise.device).view(noise.shape)

    def leave_one_out(self, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As ``Component.leave_one_out``."""
        return Conditioned.alone(self, off, seen)

    # -- saving ----------------------------------------------------------------------------------------------------

    def to(self, device: torch.device | str) -> Self:
        return type(self)(self.precision, self.modes, device)

    def tensors(self) -> dict[str, Tensor]:
        tensors = self.precision.tensors() | {"modes": torch.from_numpy(np.ascontiguousarray(self.modes.T))}
        return {name: value.to(self.device) for name, value in tensors.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis | None = None) -> Self:
        precision, modes = from_tensors(tensors), tensors["modes"]
        if modes.shape[1] != precision.d:
            raise ValueError("precision and modes of the reference have different sizes")
        return cls(precision, modes.cpu().numpy().T, modes.device)


class _Symmetric(torch.autograd.Function):
    """A symmetric matrix times signals (signals, d), which gradients go through too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, solve: Callable[[np.ndarray], np.ndarray]) -> Tensor:
        ctx.solve = solve
        return _applied(x, solve)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _applied(gradients[0], ctx.solve), None


def _columns(x: Tensor) -> np.ndarray:  # (signals, d) -> (d, signals)
    return x.detach().double().cpu().numpy().T


def _applied(x: Tensor, function: Callable[[np.ndarray], np.ndarray]) -> Tensor:  # (signals, d) twice
    return torch.from_numpy(np.ascontiguousarray(function(_columns(x)).T)).to(x.device)
