"""Lag covariances of a series, shrunk towards smaller models, and the covariance of windows that they make.

A window is a row of ``steps x columns`` z-scores, one step after the other; a column is a node, or a channel of one.

``C_l = E[z_(t+l) z_t^T]``, entry by entry over the pairs of readings that were both observed. Raw, they overfit badly
(METR-LA: 49,704 readings a column for 207 x 24 numbers), so they are mixed with smaller models,

    C'_l = w * [(1 - a - b - c) C_l + a (C_l within a node, 0 between nodes) + b r_l C_0 + c [l = 0] diag C_0]
           + noise [l = 0] I
    w_ij = rho_ij^2 / (rho_ij^2 + local^2) between nodes, 1 within

with ``r_l = tr C_l / tr C_0``: independent nodes with autocorrelations of their own (``a``), time (x) space (``b``),
and independent readings (``c``). ``w`` (entry by entry; ``rho`` the correlation at lag 0) takes weak correlations for
noise and leaves strong ones alone, as if correlations were estimated from ``1 / local^2`` independent moments. The
window's covariance is the block Toeplitz matrix ``Sigma[(t, i), (s, j)] = C'_(t-s)[i, j]``, ``C'_-l = C'_l^T``. Such
matrices need not be positive definite: eigenvalues below the noise are raised to it (raised to a small floor they are
directions known for sure, and AQI-36's MAE is 18 in place of 14).

**Large windows.** Eigenvalues of ``steps x columns`` readings cost the cube of that. Of more than ``EIGEN`` the lags
are mended instead, before the noise is added: around the circle ``0, ..., T - 1, -(T - 1), ..., -1`` their spectrum is

    S_f = sum_l C'_l exp(-2 pi i f l / (2 T - 1)),      f = 0, ..., 2 T - 2

Hermitian matrices of one column a row, whose negative eigenvalues are set to 0. A window is a part of that circle, so
its covariance then is positive semidefinite, at the cost of ``T`` small eigenproblems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

FLOOR = 1e-3  # least noise, in z-scores
EIGEN = {"cpu": 2048, "cuda": 16384}  # readings of a window above which no eigenvalues of its covariance are raised


@dataclass(frozen=True)
class Shrinkage:
    """How much of a covariance goes to independent nodes, how much to time (x) space, the correlation that counts for
    half, what is added as noise, and how much goes to independent readings."""

    nodes: float = 0.0
    separable: float = 0.3
    local: float = 0.3
    noise: float = 0.05
    readings: float = 0.0

    @property
    def replaced(self) -> float:
        """How much of the covariance is replaced by smaller models."""
        return round(self.nodes + self.separable + self.readings, 9)


def lag_covariances(
    z: Tensor, lags: int, runs: Sequence[slice] | None = None, weight: Tensor | None = None
) -> Tensor:  # (lags, columns, columns)
    """``C_l = E[z_(t+l) z_t^T]`` over the pairs both observed, 0 for a pair never seen together.

    ``z`` (rows, columns) has NaN where missing; ``runs`` are stretches of rows without a break (default: all of them);
    ``weight`` (rows,) is how much a row counts, a pair of rows as the product of their roots (default: all alike).
    """
    columns = z.shape[1]
    total = torch.zeros(lags, columns, columns, dtype=torch.float64, device=z.device)
    count = torch.zeros_like(total)
    for run in runs or [slice(None)]:
        seen = ~z[run].isnan()
        filled, seen = z[run].nan_to_num(), seen.to(z.dtype)
        if weight is not None:
            filled, seen = (each * weight[run, None].sqrt() for each in (filled, seen))
        for lag in range(min(lags, len(filled))):
            early = slice(0, len(filled) - lag)
            total[lag] += filled[lag:].T @ filled[early]
            count[lag] += seen[lag:].T @ seen[early]
    return total / count.clamp(min=torch.finfo(count.dtype).tiny if weight is not None else 1)


def correlations(z: Tensor, lags: int, runs: Sequence[slice]) -> Tensor:  # (lags,)
    """``r_l = tr C_l / tr C_0`` of the lag covariances, without them: a column at a time."""
    total = torch.zeros(lags, z.shape[1], dtype=torch.float64, device=z.device)
    count = torch.zeros_like(total)
    for run in runs:
        seen, filled = (~z[run].isnan()).double(), z[run].nan_to_num().double()
        for lag in range(min(lags, len(filled))):
            early = slice(0, len(filled) - lag)
            total[lag] += (filled[lag:] * filled[early]).sum(0)
            count[lag] += (seen[lag:] * seen[early]).sum(0)
    traces = (total / count.clamp(min=1)).sum(1)
    return traces / traces[0].clamp(min=1e-12)


def shrunk(C: Tensor, by: Shrinkage, node: Tensor | None = None) -> Tensor:  # (lags, columns, columns)
    """Lag covariances mixed with smaller models; ``node`` (columns,) is each one's node (default: one a column)."""
    node = torch.arange(C.shape[1], device=C.device) if node is None else node
    within = node[:, None] == node
    correlation = C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace()
    mixed = (1 - by.nodes - by.separable - by.readings) * C + by.nodes * C * within
    mixed += by.separable * correlation[:, None, None] * C[0]
    mixed[0] += by.readings * C[0].diagonal().diag()
    if by.local > 0:
        sd = C[0].diagonal().clamp(min=1e-12).sqrt()
        rho2 = (C[0] / (sd[:, None] * sd)).square()
        mixed *= torch.where(within, 1, rho2 / (rho2 + by.local**2))
    mixed[0] += by.noise * torch.eye(len(within), dtype=C.dtype, device=C.device)
    return mixed


def toeplitz(C: Tensor) -> Tensor:  # (lags, columns, columns) -> (lags columns, lags columns)
    """The covariance of a window of as many steps as there are lags."""
    steps, columns, _ = C.shape
    Sigma = C.new_empty(steps, columns, steps, columns)
    for lag in range(steps):
        later = torch.arange(lag, steps, device=C.device)
        Sigma[later, :, later - lag] = C[lag] if lag else (C[0] + C[0].T) / 2
        Sigma[later - lag, :, later] = C[lag].T if lag else (C[0] + C[0].T) / 2
    return Sigma.reshape(steps * columns, steps * columns)


def definite(Sigma: Tensor, noise: float) -> bool:
    """Whether half of the noise is left over in every direction of a covariance."""
    shift = max(noise, FLOOR) / 2 * torch.eye(len(Sigma), dtype=Sigma.dtype, device=Sigma.device)
    return not bool(torch.linalg.cholesky_ex(Sigma - shift)[1])


def projected(C: Tensor) -> Tensor:  # (lags, columns, columns) twice
    """Lags whose spectrum around the circle has no negative eigenvalues: those of a window are not negative then."""
    circle = torch.cat([(C[:1] + C[:1].mT) / 2, C[1:], C[1:].flip(0).mT])
    v, B = torch.linalg.eigh(torch.fft.fft(circle, dim=0))
    S = (B * v.clamp(min=0)[:, None]) @ B.mH
    return torch.fft.ifft(S, dim=0).real[: len(C)].contiguous()


def covariance(C: Tensor, by: Shrinkage, node: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:  # (d, d)
    """Of windows with these lags, shrunk; of a large window by mended ones, where it has to be."""
    Sigma = toeplitz(shrunk(C, by, node).to(dtype))
    if len(Sigma) <= EIGEN.get(Sigma.device.type, len(Sigma)) or definite(Sigma, by.noise):
        return Sigma
    mended = projected(shrunk(C, replace(by, noise=0.0), node))
    mended[0] += max(by.noise, FLOOR) * torch.eye(C.shape[1], dtype=C.dtype, device=C.device)
    return toeplitz(mended.to(dtype))


def factored(C: Tensor, by: Shrinkage, node: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:  # two of (d, d)
    """The covariance of windows, eigenvalues raised to the noise where they are much below it, so that no direction is
    known for sure; and its lower Cholesky factor."""
    Sigma = covariance(C, by, node, dtype)
    if not definite(Sigma, by.noise):
        v, B = torch.linalg.eigh(Sigma)
        Sigma = (B * v.clamp(min=max(by.noise, FLOOR))) @ B.T
        Sigma = (Sigma + Sigma.T) / 2
    return Sigma, torch.linalg.cholesky(Sigma)
