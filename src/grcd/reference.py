"""Gaussian references: the part of the score that needs no network (section 3.2, appendices A.2 and A.4).

In conjugate coordinates noise is isotropic, so a reference ``N(0, Sigma)`` with ``Sigma = B diag(v) B^T`` has marginal
``N(0, Sigma + q^2 I)`` at noise level ``q``, and everything about it is closed-form in its own eigenbasis ``B``,
whatever ``B`` is (the graph-Fourier basis for the paper's reference, the covariance's eigenvectors for a full one):

    score                 -(Sigma + q^2 I)^-1 x~
    noise prediction      eps_ref(x~, q) = q (Sigma + q^2 I)^-1 x~
    probability flow      dx~/dq = eps_ref(x~, q),   solved by   phi(q1, q0) = sqrt((v + q1^2) / (v + q0^2))
    draw at level q       (Sigma + q^2 I)^1/2 xi,    xi standard normal per node

The laws that tie them together: ``phi`` composes, ``phi`` solves the flow of the score, and ``phi`` carries a draw at
``q0`` to a draw at ``q1`` from the same ``xi``. A further reference (low rank, mixture) joins by keeping these laws.

The draw uses the symmetric square root, so that it depends neither on eigenvector signs nor on node order.

**Conditioning.** Where a signal is observed at the nodes ``o`` only, its missing entries ``m`` are drawn by correcting
a plain draw ``z`` (Matheron), with ``Lambda = Sigma^-1 = B diag(1/v) B^T``:

    x_m = z_m + Sigma_mo Sigma_oo^-1 (x_o - z_o) = z_m - Lambda_mm^-1 Lambda_mo (x_o - z_o)

Both sides are the same map: the first takes a system as large as what is observed, the second one as large as what is
missing, and each signal takes the smaller.

**Covariance.** With ``x`` centred at the mean of what was observed, ``n_ij`` the number of signals that observed both
``i`` and ``j``, and means over those signals,

    S_ij = mean_ij(x_i x_j)          Var S_ij = (mean_ij(x_i^2 x_j^2) - S_ij^2) / n_ij

and 0 for a pair never seen together. Means over different signals need not fit together: ``S`` may have negative
eigenvalues, which are set to zero, the nearest covariance in Frobenius norm. Ledoit-Wolf then mixes it with a multiple
of the identity, ``m = tr S / p``, as much as the error of ``S`` is of its distance from there:

    Sigma = (1 - b) S + b m I,       b = min(1, sum_ij Var S_ij / |S - m I|_F^2)

With nothing missing all ``n_ij`` are ``n``, and this is Ledoit and Wolf's estimate of 2004, scikit-learn's to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .graph import Spectrum
from .normalizer import observed_mean, parts

EPS_REF = 1e-6  # the paper's numerical shift
SYSTEMS = 1 << 26  # bytes of the linear systems solved together; indices, masks and factors take up to thrice as much


@dataclass(frozen=True)
class Gaussian:
    """``N(0, B diag(v) B^T)``. Tensors are float64; ``q`` is a float or a tensor that broadcasts to (..., modes)."""

    v: Tensor  # (modes,) strictly positive
    B: Tensor  # (nodes, modes) orthonormal

    def to(self, device) -> Gaussian:
        return Gaussian(self.v.to(device), self.B.to(device))

    def modes(self, x: Tensor) -> Tensor:
        return x @ self.B

    def nodes(self, z: Tensor) -> Tensor:
        return z @ self.B.T

    def variance(self, q) -> Tensor:
        """``v + q^2``: marginal variance per eigenmode, in conjugate coordinates."""
        return self.v + q**2

    def covariance(self, q=0.0) -> Tensor:
        """``Sigma + q^2 I``."""
        return self.nodes(self.variance(q) * self.B)

    def precision(self, q=0.0) -> Tensor:
        """``(Sigma + q^2 I)^-1``."""
        return self.nodes(self.B / self.variance(q))

    def score(self, x: Tensor, q) -> Tensor:
        """``-(Sigma + q^2 I)^-1 x~``."""
        return self.nodes(-self.modes(x) / self.variance(q))

    def eps(self, x: Tensor, q) -> Tensor:
        """The reference's noise prediction ``-q`` times its score (first term of eq. score)."""
        return self.nodes(self.modes(x) * (q / self.variance(q)))

    def phi(self, q1, q0) -> Tensor:
        """The exact propagator per eigenmode, from level ``q0`` to ``q1`` (eq. phi)."""
        return torch.sqrt(self.variance(q1) / self.variance(q0))

    def propagate(self, x: Tensor, q1, q0) -> Tensor:
        """Carry a state along the reference's own probability flow, exactly."""
        return self.nodes(self.modes(x) * self.phi(q1, q0))

    def draw(self, noise: Tensor, q=0.0) -> Tensor:
        """Turn standard normal ``noise`` (batch, nodes) into draws of the marginal at level ``q``."""
        return self.nodes(self.modes(noise) * torch.sqrt(self.variance(q)))

    def completed(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, nodes) each
        """Missing entries (NaN) drawn given the observed ones of their row, from standard normal ``noise``."""
        x, missing, drawn = x.double(), x.isnan(), self.draw(noise)
        off = torch.where(missing, 0.0, x - drawn)
        count = missing.sum(1)
        few = 2 * count <= x.shape[1]
        rows = (few & (count > 0)).nonzero()[:, 0]
        if len(rows):
            precision = self.precision()
            drawn[rows] -= _restricted(precision, missing[rows], off[rows] @ precision)
        rows = (~few & (count < x.shape[1])).nonzero()[:, 0]
        if len(rows):
            covariance = self.covariance()
            drawn[rows] += _restricted(covariance, ~missing[rows], off[rows]) @ covariance
        return torch.where(missing, drawn, x)

    # -- signal-to-noise ratios (section 3.2) ----------------------------------------------------------------------

    def snr(self, q) -> Tensor:
        """``v_i / q^2`` per mode (eq. snr_mode_main)."""
        return self.v / q**2

    def energy_snr(self, q) -> float:
        """The energy-weighted average of ``snr``."""
        return float((self.v / self.v.sum() * self.snr(q)).sum())

    def q_for_snr(self, snr: float) -> float:
        """The noise level with that energy-weighted SNR; divided by ``t_max`` it is the ``kappa`` to choose."""
        return float(torch.sqrt((self.v**2).sum() / self.v.sum() / snr))


def _restricted(A: Tensor, keep: Tensor, b: Tensor) -> Tensor:  # (nodes, nodes), (rows, nodes) twice
    """``u`` with ``(A u)_k = b_k`` on the kept nodes of each row and ``u = 0`` elsewhere, ``A`` positive definite."""
    size = int(keep.sum(1).max())
    nodes = keep.byte().argsort(dim=1, descending=True, stable=True)[:, :size]  # the kept ones first
    u = torch.zeros_like(b)
    for rows in torch.arange(len(b), device=b.device).split(max(1, SYSTEMS // (8 * size**2))):
        at = nodes[rows]
        real = keep[rows].gather(1, at)
        K = A[at[:, :, None], at[:, None, :]]
        K *= real[:, :, None] & real[:, None, :]
        K.diagonal(dim1=1, dim2=2)[~real] = 1.0  # rows with fewer kept nodes: the rest of the system says u = 0
        right = (b[rows].gather(1, at) * real)[..., None]
        u[rows[:, None], at] = torch.cholesky_solve(right, torch.linalg.cholesky(K))[..., 0]
    return u


def ledoit_wolf(signals: np.ndarray, eps_ref: float = EPS_REF) -> np.ndarray:
    """Ledoit-Wolf shrinkage covariance of z-scored training signals, plus ``eps_ref I`` (eq. ref); gaps are NaN."""
    count, mean = observed_mean(signals)
    S, error = _complete(signals, mean) if (count == len(signals)).all() else _pairwise(signals, mean)
    m, eye = np.trace(S) / len(S), np.eye(len(S))
    distance = np.square(S - m * eye).sum()
    b = min(error, distance) / distance if distance > 0 else 0.0
    return (1 - b) * S + (b * m + eps_ref) * eye


def _complete(signals: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, float]:
    """``S``, and ``sum_ij Var S_ij``, which needs no matrix here: ``sum_ij x_i^2 x_j^2`` is ``|x|^4``."""
    n, S, fourth = len(signals), np.zeros((len(mean), len(mean))), 0.0
    for x, _ in parts(signals):
        x = x - mean
        S += x.T @ x
        fourth += np.square(np.square(x).sum(axis=1)).sum()
    S /= n
    return S, (fourth / n - np.square(S).sum()) / n


def _pairwise(signals: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, float]:
    """The same from the pairs that were observed together, ``S`` without negative eigenvalues."""
    count, S, fourth = (np.zeros((len(mean), len(mean))) for _ in range(3))
    for x, seen in parts(signals):
        x, seen = np.where(seen, x - mean, 0.0), seen.astype(np.float64)
        square = np.square(x)
        for total, factor in ((count, seen), (S, x), (fourth, square)):
            total += factor.T @ factor
    n = np.maximum(count, 1)
    S /= n
    error = ((fourth / n - np.square(S)) / n).sum()
    v, B = np.linalg.eigh(S)
    return (B * np.maximum(v, 0.0)) @ B.T, error


def spectral(covariance: np.ndarray, spectrum: Spectrum) -> Gaussian:
    """The paper's reference: the diagonal ``v_i`` of the covariance in the graph-Fourier basis (eq. ref)."""
    v = spectrum.average(np.einsum("ni,nm,mi->i", spectrum.U, covariance, spectrum.U, optimize=True))
    return _gaussian(v, spectrum.U)


def scalar(reference: Gaussian) -> Gaussian:
    """One shared variance, the mean of ``v``: the comparison arm of section 4.2."""
    return Gaussian(reference.v.mean().expand_as(reference.v), reference.B)


def full(covariance: np.ndarray) -> Gaussian:
    """The whole covariance, in its own eigenbasis."""
    v, B = np.linalg.eigh(covariance)
    return _gaussian(v, B)


def diagonal(covariance: np.ndarray) -> Gaussian:
    """Per-node variances only."""
    return _gaussian(np.diag(covariance).copy(), np.eye(len(covariance)))


def gmrf(spectrum: Spectrum, delta: float = 0.05, sigma: float = 1.0) -> Gaussian:
    """``N(0, sigma^2 L_delta^-1)``: where every reference ends as terminal SNR goes to zero (eq. gmrf_limit_main)."""
    return _gaussian(sigma**2 / spectrum.scaled(delta), spectrum.U)


def off_diagonal_energy(covariance: np.ndarray, reference: Gaussian) -> float:
    """The share ``|Sigma - Sigma_ref|_F / |Sigma|_F`` of the covariance that the reference discards (appendix A.2)."""
    kept = reference.covariance().cpu().numpy()
    return float(np.linalg.norm(covariance - kept) / np.linalg.norm(covariance))


def _gaussian(v: np.ndarray, B: np.ndarray) -> Gaussian:
    return Gaussian(torch.from_numpy(np.ascontiguousarray(v)), torch.from_numpy(np.ascontiguousarray(B)))
