"""Gaussian references: the part of the score that needs no network (section 3.2, appendices A.2 and A.4).

In conjugate coordinates noise is isotropic, so a reference ``N(0, Sigma)`` with ``Sigma = B diag(v) B^T`` has marginal
``N(0, Sigma + q^2 I)`` at noise level ``q``, and everything about it is closed-form in its own eigenbasis ``B``,
whatever ``B`` is (the graph-Fourier basis for the paper's reference, the covariance's eigenvectors for a full one):

    score                 -(Sigma + q^2 I)^-1 x~
    noise prediction      eps_ref(x~, q) = q (Sigma + q^2 I)^-1 x~
    probability flow      dx~/dq = eps_ref(x~, q),   solved by   phi(q1, q0) = sqrt((v + q1^2) / (v + q0^2))
    draw at level q       (Sigma + q^2 I)^1/2 xi,    xi standard normal per node

The laws that tie them together: ``phi`` composes, ``phi`` solves the flow of the score, and ``phi`` carries a draw at
``q0`` to a draw at ``q1`` from the same ``xi``. A mixture of such references (mixture.py) keeps the laws that it can.

The draw uses the symmetric square root, so that it depends neither on eigenvector signs nor on node order.

**Low rank.** For nodes in the thousands a few principal modes have variances of their own, all other directions share
one, and a function of the covariance costs two thin products: ``f(Sigma) x = f(rest) x + B (f(v) - f(rest)) B^T x``.

**Forcing.** Samplers add a residual to the reference's flow, known as a polynomial over a step. By variation of
constants, ``dx~/dq = eps_ref(x~, q) + sum_j c_j (q - q0)^j`` ends at

    x~(q1) = phi(q1, q0) x~(q0) + sum_j M_j c_j,     M_j = int phi(q1, q) (q - q0)^j dq   from q0 to q1

with ``M_j`` per eigenmode by Gauss-Legendre in ``log q``, where the integrand is smooth: exact to rounding.

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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core.rows import observed_mean, parts
from ..core.streams import Stream
from ..core.systems import solve
from ..diffusion.process import Level
from ..graphs.graph import Spectrum

EPS_REF = 1e-6  # the paper's numerical shift
QUADRATURE = 32  # nodes of the forcing's integrals


@dataclass(frozen=True)
class Gaussian:
    """``N(0, B diag(v) B^T)``. Tensors are float64; ``q`` is a float or a tensor that broadcasts to (..., modes).

    Densities and scores of several references at once, of signals (k, batch, nodes), are those of ``stacked`` ones.
    """

    v: Tensor  # (modes,) strictly positive
    B: Tensor  # (nodes, modes) orthonormal

    def to(self, device: torch.device | str) -> Gaussian:
        return type(self)(self.v.to(device), self.B.to(device))

    def modes(self, x: Tensor) -> Tensor:
        return x @ self.B

    def nodes(self, z: Tensor) -> Tensor:
        return z @ self.B.mT

    def filtered(self, x: Tensor, gain: Tensor, z: Tensor | None = None) -> Tensor:
        """A function of the covariance applied to ``x``, by its values on the eigenmodes; ``z`` are the modes of ``x``,
        if they are known."""
        return self.nodes((self.modes(x) if z is None else z) * gain)

    @property
    def multiplicity(self) -> Tensor:  # (modes,)
        """How many directions share each variance."""
        return torch.ones_like(self.v)

    def variances(self) -> tuple[np.ndarray, np.ndarray]:  # two of (modes,)
        """The spectrum ``v``, and how often each counts."""
        return self.v.cpu().numpy(), self.multiplicity.cpu().numpy()

    def variance(self, q: Level) -> Tensor:
        """``v + q^2``: marginal variance per eigenmode, in conjugate coordinates."""
        return self.v + q**2

    def covariance(self, q: Level = 0.0) -> Tensor:
        """``Sigma + q^2 I``."""
        return self.filtered(self._identity(), self.variance(q))

    def precision(self, q: Level = 0.0) -> Tensor:
        """``(Sigma + q^2 I)^-1``."""
        return self.filtered(self._identity(), 1 / self.variance(q))

    def _identity(self) -> Tensor:
        return torch.eye(len(self.B), dtype=self.v.dtype, device=self.v.device)

    def score(self, x: Tensor, q: Level) -> Tensor:
        """``-(Sigma + q^2 I)^-1 x~``."""
        return self.filtered(x, -1 / self.variance(q))

    def eps(self, x: Tensor, q: Level) -> Tensor:
        """The reference's noise prediction ``-q`` times its score (first term of eq. score)."""
        return self.filtered(x, q / self.variance(q))

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor:  # (...)
        """Log-density of the marginal at level ``q``."""
        return self.scored(x, q)[0]

    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:  # (...), (..., nodes)
        """Log-density and score at once, for the price of the score."""
        variance, z = self.variance(q), self.modes(x)
        size = (self.multiplicity * variance.log()).sum(-1) + self.B.shape[-2] * math.log(2 * math.pi)
        return -(self._energy(x, variance, z) + size) / 2, self.filtered(x, -1 / variance, z)

    def _energy(self, x: Tensor, variance: Tensor, z: Tensor) -> Tensor:
        """``x^T (Sigma + q^2 I)^-1 x``."""
        return (z.square() / variance).sum(-1)

    def phi(self, q1: Level, q0: Level) -> Tensor:
        """The exact propagator per eigenmode, from level ``q0`` to ``q1`` (eq. phi)."""
        return torch.sqrt(self.variance(q1) / self.variance(q0))

    def propagate(self, x: Tensor, q1: Level, q0: Level) -> Tensor:
        """Carry a state along the reference's own probability flow, exactly."""
        return self.filtered(x, self.phi(q1, q0))

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 1) -> Tensor:
        """The same with ``sum_j forcing_j (q - q0)^j`` added to the flow. Exact, so it needs no sub-``steps``."""
        x = self.propagate(x, q1, q0)
        for force, moment in zip(forcing, self.moments(q1, q0, len(forcing)), strict=True):
            x = x + self.filtered(force, moment)
        return x

    def moments(self, q1: float, q0: float, count: int) -> list[Tensor]:  # each (modes,)
        """``M_j`` of the module's docstring for ``j`` below ``count``; in numbers, so nothing is copied to a device."""
        half, found = math.log(q1 / q0) / 2, [torch.zeros_like(self.v) for _ in range(count)]
        for place, weight in zip(*(part.tolist() for part in np.polynomial.legendre.leggauss(QUADRATURE)), strict=True):
            q = q0 * math.exp(half * (1 + place))
            carried = self.phi(q1, q) * (half * weight * q)
            found = [moment + carried * (q - q0) ** j for j, moment in enumerate(found)]
        return found

    def draw(self, noise: Tensor, q: Level = 0.0) -> Tensor:
        """Turn standard normal ``noise`` (batch, nodes) into draws of the marginal at level ``q``."""
        return self.filtered(noise, torch.sqrt(self.variance(q)))

    def completed(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, nodes) each
        """Missing entries (NaN) drawn given the observed ones of their row, from standard normal ``noise``."""
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

    def whole(self, x: Tensor, random: Stream) -> Tensor:
        """Signals as they are if they have no gaps, and completed if they have."""
        return self.completed(x, random.normal(0, x.numel()).view_as(x)) if x.isnan().any() else x

    # -- signal-to-noise ratios (section 3.2) ----------------------------------------------------------------------

    def snr(self, q: Level) -> Tensor:
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
class LowRank(Gaussian):
    """A few principal modes, and one variance, the last of ``v``, for all directions that ``B`` leaves out."""

    def filtered(self, x: Tensor, gain: Tensor, z: Tensor | None = None) -> Tensor:
        rest = gain[..., -1:]
        return x * rest + self.nodes((self.modes(x) if z is None else z) * (gain[..., :-1] - rest))

    @property
    def multiplicity(self) -> Tensor:
        nodes, rank = self.B.shape[-2:]
        return torch.cat([torch.ones_like(self.v[..., :-1]), torch.full_like(self.v[..., -1:], nodes - rank)], -1)

    def _energy(self, x: Tensor, variance: Tensor, z: Tensor) -> Tensor:
        left = (x - self.nodes(z)).square().sum(-1)  # not |x|^2 - |z|^2, which cancels
        return (z.square() / variance[..., :-1]).sum(-1) + left / variance[..., -1]


def stacked(references: Sequence[Gaussian]) -> Gaussian:
    """References of one kind and size as one: ``v`` (k, 1, modes), ``B`` (k, nodes, modes)."""
    v, B = (torch.stack([getattr(one, key) for one in references]) for key in ("v", "B"))
    return type(references[0])(v[:, None], B)


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
    mean = (reference.multiplicity * reference.v).sum() / reference.multiplicity.sum()
    return type(reference)(mean.expand_as(reference.v), reference.B)


def full(covariance: np.ndarray) -> Gaussian:
    """The whole covariance, in its own eigenbasis."""
    v, B = np.linalg.eigh(covariance)
    return _gaussian(v, B)


def low_rank(covariance: np.ndarray, rank: int) -> LowRank:
    """The leading principal modes of a covariance; the rest of its trace is spread over all other directions."""
    nodes = len(covariance)
    v, B = np.linalg.eigh(covariance)
    v, B = v[::-1], B[:, ::-1]
    rest = v[rank:].mean() if rank < nodes else v[-1]
    return LowRank(torch.from_numpy(np.append(v[:rank], rest)), torch.from_numpy(B[:, :rank].copy()))


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
