"""A Gaussian ``N(0, Sigma)`` given some entries of each signal: means, spreads, draws, likelihood, exactly.

Hidden entries ``h`` given observed ones ``o`` are ``N(m, P)``. With ``Q = Sigma^-1``

    P = (Q_hh)^-1               m = -P Q_ho x_o                            a factor as large as what is hidden
    P = Sigma_hh - G^T G        m = G^T L^-1 x_o,   G = L^-1 Sigma_oh     L L^T = Sigma_oo: as large as what is observed

Each signal takes the cheaper one; signals of about the same size are factored in one batch, padded with the identity,
and signals that all have one mask share its factor. Both want ``L^-1`` alone. With ``Q_hh = L L^T`` a draw is
``m + L^-T xi``. Otherwise Matheron's rule corrects a draw ``z`` of the whole signal,
``x_h = z_h + Sigma_ho Sigma_oo^-1 (x_o - z_o)``.

**Likelihood**, of what was observed, from the same factor: with ``x_h = m`` filled in,

    -2 log p(x_o) = x^T Q x + log det Sigma + log det Q_hh + (number observed) log 2 pi

**What is kept.** ``Dense`` has ``Sigma``, ``Q`` and the factor of ``Sigma``: three matrices. ``ByProducts`` has none of
them, only products with functions of ``Sigma``, and makes the rows that a mask asks for: ``d`` numbers for each entry
of the smaller one of what is hidden and what is observed. Where that is too much as well, see ``probes``.
A covariance of low rank needs neither (see ``few_modes``).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from ..core import device as devices
from . import probes

LEAF = {"cpu": 64, "cuda": 64}  # rows under which a factor is the library's
ELEMENTS = {"cpu": 2**20, "cuda": 2**31}  # numbers in one batch of factors
CROSSOVER = 0.4  # share observed under which the factor of what is observed is the cheaper one
MATRICES, SHARE = 3, 16  # of a dense reference; and of all memory, what one reference may take is one part in so many


@dataclass(frozen=True)
class WindowPosterior:
    """Signals given what was observed of them: everywhere a mean and a spread, and draws where they were asked for."""

    mean: Tensor  # (signals, d): what was observed, or the posterior mean
    sd: Tensor  # (signals, d): 0 where observed
    draws: Tensor | None  # (signals, draws, d) of the whole posterior
    log_prob: Tensor  # (signals,) of what was observed, float64


class Conditioner(Protocol):
    """``N(0, Sigma)``, of which some entries are observed."""

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior: ...


class Exact(abc.ABC):
    """What the rules above ask of a covariance."""

    like: Tensor  # of the precision and on the device that it works in
    d: int

    @abc.abstractmethod
    def draw(self, xi: Tensor) -> Tensor:  # (..., d) standard normal -> (..., d)
        """Whole signals."""

    @abc.abstractmethod
    def diagonal(self) -> Tensor:  # (d,)
        """Of ``Sigma``."""

    @abc.abstractmethod
    def log_determinant(self) -> float:
        """Of ``Sigma``."""

    @abc.abstractmethod
    def precise(self, x: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """``x Q``."""

    @abc.abstractmethod
    def rows(self, place: Tensor, real: Tensor) -> Tensor:  # (groups, most) twice -> (groups, most, d)
        """Of ``Sigma``, 0 in the padding."""

    @abc.abstractmethod
    def blocks(self, place: Tensor, real: Tensor, inverse: bool) -> Tensor:  # (groups, most, most)
        """Rows and columns of ``Sigma``, or of ``Q``, the identity in the padding."""

    @abc.abstractmethod
    def numbers(self, size: int, by_observed: bool) -> int:
        """That one mask of this size takes."""

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        """Signals ``z`` (signals, d) of which ``observed`` (signals, d) says what may be seen; the rest is ignored.

        ``xi`` (signals, draws, d), standard normal: draws from the whole posterior as well.
        """
        z = torch.where(observed, z, 0).to(self.like.dtype)
        groups = 1 if bool((observed == observed[:1]).all()) else len(z)  # one factor serves all members of a history
        wide, seen = z.view(groups, len(z) // groups, self.d), observed[:groups]
        mean, sd = torch.empty_like(wide), torch.empty_like(wide)
        log_prob = torch.empty(wide.shape[:2], dtype=torch.float64, device=z.device)
        noise = None if xi is None else xi.to(z.dtype).reshape(*wide.shape[:2], *xi.shape[1:])
        draws = None if noise is None else torch.empty_like(noise)
        for some, few_observed in self._batches(seen):
            share = None if noise is None else noise[some]
            by = self._by_observed if few_observed else self._by_hidden
            mean[some], sd[some], log_prob[some], draw = by(wide[some], seen[some], share)
            if draws is not None:
                draws[some] = draw
        drawn = None if draws is None else draws.flatten(0, 1)
        return WindowPosterior(mean.view_as(z), sd.expand_as(wide).reshape(z.shape), drawn, log_prob.flatten())

    def _batches(self, observed: Tensor) -> Iterator[tuple[Tensor, bool]]:
        """Masks of about the same cost, as many as memory allows, and whether to go by what is observed."""
        count = observed.sum(1)
        for few in (False, True):
            chosen = torch.nonzero((count < CROSSOVER * self.d) == few)[:, 0]
            size = count[chosen] if few else self.d - count[chosen]
            order = size.argsort(descending=True)
            chosen, sizes, first = chosen[order], size[order].tolist(), 0
            while first < len(sizes):
                last = first + max(1, ELEMENTS[self.like.device.type] // (3 * self.numbers(max(sizes[first], 1), few)))
                yield chosen[first:last], few
                first = last

    # Signals in groups of one mask each: z (groups, signals, d), observed (groups, d), xi (groups, signals, draws, d).

    def _by_hidden(self, z: Tensor, observed: Tensor, xi: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        place, real = places(~observed)
        root = inverse_factor(self.blocks(place, real, inverse=True))  # P = root^T root
        m = -(_taken(self.precise(z), place, real) @ root.mT) @ root
        mean = _put(z, place, real, m)
        sd = _put(torch.zeros_like(z[:, :1]), place, real, root.square().sum(1)[:, None].sqrt())
        quadratic = (self.precise(mean) * mean).double().sum(2)
        log_det = self.log_determinant() - 2 * root.diagonal(dim1=1, dim2=2).double().log().sum(1)
        log_prob = -0.5 * (quadratic + (log_det + observed.sum(1).double() * math.log(2 * math.pi))[:, None])
        if xi is None:
            return mean, sd, log_prob, mean
        spread = _put(torch.zeros_like(xi).flatten(1, 2), place, real, _taken(xi.flatten(1, 2), place, real) @ root)
        return mean, sd, log_prob, mean[:, :, None] + spread.view_as(xi)

    def _by_observed(self, z: Tensor, observed: Tensor, xi: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        place, real = places(observed)
        root = inverse_factor(self.blocks(place, real, inverse=False))
        G = root @ self.rows(place, real)  # (groups, o, d)
        y = _taken(z, place, real) @ root.mT
        mean = torch.where(observed[:, None], z, y @ G)
        sd = torch.where(observed, 0, (self.diagonal() - G.square().sum(1)).clamp(min=0).sqrt())[:, None]
        log_det = -2 * root.diagonal(dim1=1, dim2=2).double().log().sum(1)
        quadratic = y.double().square().sum(2)
        log_prob = -0.5 * (quadratic + (log_det + real.sum(1).double() * math.log(2 * math.pi))[:, None])
        if xi is None:
            return mean, sd, log_prob, mean
        whole = self.draw(xi)
        gap = _taken((z[:, :, None] - whole).flatten(1, 2), place, real) @ root.mT @ G
        return mean, sd, log_prob, torch.where(observed[:, None, None], z[:, :, None], whole + gap.view_as(xi))


class Dense(Exact):
    """By ``Sigma``, its lower Cholesky factor ``L``, and its inverse ``Q``, each (d, d)."""

    def __init__(self, Sigma: Tensor, L: Tensor, Q: Tensor):
        self.matrices = self.Sigma, self.L, self.Q = Sigma, L, Q
        self.like, self.d = Sigma, len(Sigma)

    def draw(self, xi: Tensor) -> Tensor:
        return xi @ self.L.T

    def diagonal(self) -> Tensor:
        return self.Sigma.diagonal()

    def log_determinant(self) -> float:
        return 2 * float(self.L.diagonal().double().log().sum())

    def precise(self, x: Tensor) -> Tensor:
        return x @ self.Q

    def rows(self, place: Tensor, real: Tensor) -> Tensor:
        return self.Sigma[place] * real[..., None]

    def blocks(self, place: Tensor, real: Tensor, inverse: bool) -> Tensor:
        return _identity_in_padding((self.Q if inverse else self.Sigma)[place[:, :, None], place[:, None, :]], real)

    def numbers(self, size: int, by_observed: bool) -> int:
        return size * (self.d if by_observed else size)


class ByProducts(Exact):
    """By products alone; masks whose rows do not fit into memory are left to probes."""

    def __init__(self, part: probes.Products, d: int):
        self.part, self.like, self.d = part, part.v, d

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        count = observed.sum(1)
        smaller = int(torch.where(count < CROSSOVER * self.d, count, self.d - count).max()) if len(z) else 0
        if smaller * self.d * self.like.itemsize * MATRICES > devices.room(self.like.device) / SHARE:
            return WindowPosterior(*probes.posterior(self.part, z, observed, xi))
        return super().posterior(z, observed, xi)

    def draw(self, xi: Tensor) -> Tensor:
        return self.part.filtered(xi, self.part.v.sqrt())

    @cached_property
    def _diagonal(self) -> Tensor:
        places = torch.arange(self.d, device=self.like.device)
        some = places.split(max(1, ELEMENTS["cpu"] // self.d))
        return torch.cat([self._made(each[None], self.part.v)[0].gather(1, each[:, None])[:, 0] for each in some])

    def diagonal(self) -> Tensor:
        return self._diagonal

    def log_determinant(self) -> float:
        return float((self.part.multiplicity * self.part.v.log()).sum())

    def precise(self, x: Tensor) -> Tensor:
        return self.part.filtered(x, 1 / self.part.v)

    def _made(self, place: Tensor, gain: Tensor) -> Tensor:  # (groups, most) -> (groups, most, d)
        """Rows of a function of the covariance."""
        unit = torch.zeros(*place.shape, self.d, dtype=self.like.dtype, device=place.device)
        return self.part.filtered(unit.scatter_(2, place[..., None], 1.0), gain)

    def rows(self, place: Tensor, real: Tensor) -> Tensor:
        return self._made(place, self.part.v) * real[..., None]

    def blocks(self, place: Tensor, real: Tensor, inverse: bool) -> Tensor:
        rows = self._made(place, 1 / self.part.v if inverse else self.part.v)
        return _identity_in_padding(rows.gather(2, place[:, None].expand(-1, place.shape[1], -1)), real)

    def numbers(self, size: int, by_observed: bool) -> int:
        return size * self.d


def of_products(part: probes.Products, d: int) -> Exact:
    """By three matrices where they fit into memory, and by products where they do not."""
    if not fits_densely(d, part.v.dtype, part.v.device):
        return ByProducts(part, d)
    eye = torch.eye(d, dtype=part.v.dtype, device=part.v.device)
    Sigma = part.filtered(eye, part.v)
    return Dense(Sigma, torch.linalg.cholesky(Sigma), part.filtered(eye, 1 / part.v))


def fits_densely(d: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether one reference of ``d`` numbers may keep its matrices; there may be several of them at once."""
    return MATRICES * dtype.itemsize * d**2 <= devices.room(device) / SHARE


def inverse_factor(A: Tensor) -> Tensor:  # (batch, n, n) -> (batch, n, n), lower
    """``L^-1`` of ``A = L L^T``, by halves, so that nearly all of it is matrix products: on a GPU a batch of Cholesky
    factors of some thousand rows each is many times slower."""
    n = A.shape[-1]
    if n <= LEAF[A.device.type]:
        L = torch.linalg.cholesky(A)
        return torch.linalg.solve_triangular(L, torch.eye(n, dtype=A.dtype, device=A.device), upper=False)
    half = n // 2
    first = inverse_factor(A[..., :half, :half])
    below = A[..., half:, :half] @ first.mT
    second = inverse_factor(A[..., half:, half:] - below @ below.mT)
    root = torch.zeros_like(A)
    root[..., :half, :half], root[..., half:, half:] = first, second
    root[..., half:, :half] = -(second @ below) @ first
    return root


def places(chosen: Tensor) -> tuple[Tensor, Tensor]:  # two of (windows, most)
    """Where each window's chosen entries are, padded to the longest, and which of the places are real."""
    most = max(int(chosen.sum(1).max()), 1)
    place = chosen.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
    return place, chosen.gather(1, place)


def _identity_in_padding(part: Tensor, real: Tensor) -> Tensor:  # (groups, most, most), (groups, most)
    """Rows and columns that are not real are those of the identity; changes ``part`` itself."""
    part *= real[:, :, None] & real[:, None, :]
    part.diagonal(dim1=1, dim2=2).add_((~real).to(part))
    return part


def _taken(z: Tensor, place: Tensor, real: Tensor) -> Tensor:  # (groups, rows, d) -> (groups, rows, most)
    """Each group's places of its rows, 0 in the padding."""
    return z.gather(2, place[:, None].expand(-1, z.shape[1], -1)) * real[:, None]


def _put(z: Tensor, place: Tensor, real: Tensor, values: Tensor) -> Tensor:  # (groups, rows, d)
    """``z`` with values (groups, rows, most) at each group's places."""
    place = place[:, None].expand(-1, z.shape[1], -1)
    return z.scatter(2, place, torch.where(real[:, None], values, z.gather(2, place)))
