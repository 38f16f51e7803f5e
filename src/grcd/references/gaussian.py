"""Gaussian references: one component about zero, by a covariance of whichever kind (section 3.2, appendix A.2).

    spectral      diagonal in the graph-Fourier basis: the paper's
    full          the whole covariance, in its own eigenbasis
    low rank      a few principal modes with variances of their own; all other directions share one
    diagonal      a variance a node
    gmrf          the graph's own field, where every reference ends as terminal SNR goes to zero

What is closed-form about them is in ``component``. With nodes in the thousands low rank makes a function of the
covariance cost two thin products: ``f(Sigma) x = f(rest) x + B (f(v) - f(rest)) B^T x``.

**Gaps.** Where a signal is observed at the nodes ``o`` only, its missing entries ``m`` are drawn by correcting a plain
draw ``z`` (Matheron), with ``Lambda = Sigma^-1 = B diag(1/v) B^T``:

    x_m = z_m + Sigma_mo Sigma_oo^-1 (x_o - z_o) = z_m - Lambda_mm^-1 Lambda_mo (x_o - z_o)

Both sides are the same map: the first takes a system as large as what is observed, the second one as large as what is
missing, and each signal takes the smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..core.streams import Stream
from ..core.systems import solve
from ..graphs.graph import Spectrum
from ..graphs.kronecker import Basis, dense
from ..graphs.space import path
from .component import Component
from .conditioning import fits_densely
from .few_modes import FewModes
from .propagator import Level
from .reference import Reference


@dataclass(frozen=True)
class Gaussian(Component, Reference):
    """``N(0, B diag(v) B^T)`` as a reference: its own only part."""

    gaussian, shared = True, False  # shared: whether the last of ``v`` is for all directions that ``B`` leaves out

    @property
    def weights(self) -> Tensor:  # (1,)
        return torch.ones_like(self.v[:1])

    @property
    def means(self) -> Tensor:  # (1, d)
        return self.v.new_zeros(1, len(self.B))

    @property
    def parts(self) -> tuple[Gaussian, ...]:
        return (self,)

    def components(self, x: Tensor, q: Level) -> tuple[Tensor, list[Tensor]]:  # (..., 1), one of (..., d)
        log_prob, score = self.scored(x, q)
        return log_prob[..., None], [score]

    def scalar(self) -> Self:
        """One shared variance, the mean of ``v``: the comparison arm of section 4.2."""
        mean = (self.multiplicity * self.v).sum() / self.multiplicity.sum()
        return type(self)(mean.expand_as(self.v), self.B)

    def tensors(self) -> dict[str, Tensor]:
        return {"v": self.v, "B": dense(self.B)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Self:
        return cls(tensors["v"], tensors["B"]).checked()

    def checked(self) -> Self:
        """Itself, once ``v`` and ``B`` are known to fit together."""
        modes = self.v.shape[0] - self.shared
        if self.B.shape[1] != modes or modes > len(self.B) or (modes < len(self.B) and not self.shared):
            raise ValueError("variances and basis of the reference have different sizes")
        return self

    # -- gaps ------------------------------------------------------------------------------------------------------

    def completed(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, d) each
        """Missing entries (NaN) drawn given the observed ones of their row, from standard normal ``noise``."""
        if not fits_densely(self.d, self.v.dtype, self.v.device):
            return torch.cat([self._drawn(*rows) for rows in zip(x.split(1), noise.split(1), strict=True)])
        x, missing, drawn = x.double(), x.isnan(), self.draw(noise)
        off = torch.where(missing, 0.0, x - drawn)
        count = missing.sum(1)
        few = 2 * count <= x.shape[1]
        rows = (few & (count > 0)).nonzero()[:, 0]
        if len(rows):
            precision = self.precision()
            drawn[rows] -= solve(precision, missing[rows], (off[rows] @ precision)[:, None])[0][:, 0]
        rows = (~few & (count < x.shape[1])).nonzero()[:, 0]
        if len(rows):
            covariance = self.covariance()
            drawn[rows] += solve(covariance, ~missing[rows], off[rows][:, None])[0][:, 0] @ covariance
        return torch.where(missing, drawn, x)

    def _drawn(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, d) each
        """The same without a matrix of ``d^2`` numbers."""
        draws = self.posterior(x.double(), ~x.isnan(), noise[:, None]).draws
        assert draws is not None
        return draws[:, 0]

    def whole(self, x: Tensor, random: Stream) -> Tensor:  # (batch, d) twice
        """Signals as they are if they have no gaps, and completed if they have."""
        return self.completed(x, random.normal(0, x.numel()).view_as(x)) if x.isnan().any() else x

    # -- signal-to-noise ratios (section 3.2) ----------------------------------------------------------------------

    def snr(self, q: Level) -> Tensor:  # (modes,)
        """``v_i / q^2`` per mode (eq. snr_mode_main)."""
        return self.v / q**2

    def energy_snr(self, q: Level) -> float:
        """The energy-weighted average of ``snr``."""
        energy = self.multiplicity * self.v
        return float((energy / energy.sum() * self.snr(q)).sum())

    def q_for_snr(self, snr: float) -> float:
        """The noise level with that energy-weighted SNR; divided by ``t_max`` it is the ``kappa`` to choose."""
        energy = self.multiplicity * self.v
        return float(torch.sqrt((energy * self.v).sum() / energy.sum() / snr))


@dataclass(frozen=True)
class Spectral(Gaussian):
    """In the very basis of the forward process, which is therefore not saved again."""

    def tensors(self) -> dict[str, Tensor]:
        return {"v": self.v}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis) -> Self:
        return cls(tensors["v"], basis).checked()


@dataclass(frozen=True)
class LowRank(Gaussian):
    """A few principal modes, and one variance, the last of ``v``, for all directions that ``B`` leaves out."""

    gaussian, shared = False, True  # its modes do not span all signals

    def filtered(self, x: Tensor, gain: Tensor, z: Tensor | None = None) -> Tensor:
        rest = gain[..., -1:]
        return x * rest + self.nodes((self.modes(x) if z is None else z) * (gain[..., :-1] - rest))

    @property
    def multiplicity(self) -> Tensor:
        nodes, rank = self.B.shape[-2:]
        return torch.cat([torch.ones_like(self.v[..., :-1]), torch.full_like(self.v[..., -1:], nodes - rank)], -1)

    @cached_property
    def conditioning(self) -> FewModes:
        return FewModes(self.v, dense(self.B))

    def _energy(self, x: Tensor, variance: Tensor, z: Tensor) -> Tensor:
        left = (x - self.nodes(z)).square().sum(-1)  # not |x|^2 - |z|^2, which cancels
        return (z.square() / variance[..., :-1]).sum(-1) + left / variance[..., -1]


def spectral(covariance: np.ndarray, spectrum: Spectrum) -> Spectral:
    """The paper's reference: the diagonal ``v_i`` of the covariance in the graph-Fourier basis (eq. ref)."""
    v = spectrum.average(spectrum.diagonal(covariance))
    return Spectral(torch.from_numpy(v), spectrum.basis.contiguous())


def spectral_of_lags(C: Tensor, spectrum: Spectrum, least: float) -> Spectral:
    """The paper's reference of windows, from lag covariances (steps, columns, columns) and without the covariance of
    windows: mode ``k`` of time and ``n`` of space has ``v = sum_l a_kl (U^T C_l U)_nn``, where ``a_kl`` is the sum of
    ``Phi_tk Phi_sk`` over steps that are ``l`` apart. No variance is below ``least``."""
    steps, columns, _ = C.shape
    nodes = len(spectrum.U)
    U, blocks = torch.from_numpy(spectrum.U).to(C), C.view(steps, nodes, columns // nodes, nodes, columns // nodes)
    blocks = blocks.diagonal(dim1=2, dim2=4)  # (steps, nodes, nodes, channels): the basis does not couple channels
    along = torch.einsum("in,lijc,jn->lnc", U, blocks, U)
    cosines = torch.from_numpy(path(steps).U).to(C)
    shifted = [(cosines[lag:] * cosines[: steps - lag]).sum(0) * (1 if lag == 0 else 2) for lag in range(steps)]
    v = torch.einsum("lk,lnc->knc", torch.stack(shifted), along).flatten().clamp(min=least)
    averaged = torch.from_numpy(spectrum.average(v.double().cpu().numpy())).to(v.device)
    return Spectral(averaged, spectrum.basis.contiguous().to(v.device))


def full(covariance: np.ndarray) -> Gaussian:
    """The whole covariance, in its own eigenbasis."""
    v, B = np.linalg.eigh(covariance)
    return Gaussian(torch.from_numpy(v), torch.from_numpy(np.ascontiguousarray(B)))


def low_rank(covariance: np.ndarray, rank: int) -> LowRank:
    """The leading principal modes of a covariance; the rest of its trace is spread over all other directions."""
    nodes = len(covariance)
    v, B = np.linalg.eigh(covariance)
    v, B = v[::-1], B[:, ::-1]
    rest = v[rank:].mean() if rank < nodes else v[-1]
    return LowRank(torch.from_numpy(np.append(v[:rank], rest)), torch.from_numpy(B[:, :rank].copy()))


def diagonal(covariance: np.ndarray) -> Gaussian:
    """Per-node variances only."""
    return Gaussian(torch.from_numpy(np.diag(covariance).copy()), torch.eye(len(covariance), dtype=torch.float64))


def gmrf(spectrum: Spectrum, delta: float = 0.05, sigma: float = 1.0) -> Spectral:
    """``N(0, sigma^2 L_delta^-1)``: where every reference ends as terminal SNR goes to zero (eq. gmrf_limit_main)."""
    return Spectral(torch.from_numpy(sigma**2 / spectrum.scaled(delta)), spectrum.basis.contiguous())


def off_diagonal_energy(covariance: np.ndarray, reference: Reference) -> float:
    """The share ``|Sigma - Sigma_ref|_F / |Sigma|_F`` of the covariance that the reference discards (appendix A.2)."""
    kept = reference.covariance().cpu().numpy()
    return float(np.linalg.norm(covariance - kept) / np.linalg.norm(covariance))
