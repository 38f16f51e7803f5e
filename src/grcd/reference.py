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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .graph import Spectrum

EPS_REF = 1e-6  # the paper's numerical shift


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


def ledoit_wolf(signals: np.ndarray, eps_ref: float = EPS_REF) -> np.ndarray:
    """Ledoit-Wolf shrinkage covariance of z-scored training signals, plus ``eps_ref I`` (eq. ref)."""
    from sklearn.covariance import ledoit_wolf as shrunk  # a second to import, so only when a reference is fitted

    covariance, _ = shrunk(signals, assume_centered=False)
    return covariance + eps_ref * np.eye(signals.shape[1])


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
