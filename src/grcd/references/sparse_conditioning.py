"""What observations leave of a sparse reference, exactly, by sparse factors.

With the modes' ``f`` as unknowns of their own, ``(x, f)`` has the joint precision

    J = | Q + I / q^2   -Q V         |      without noise (1 / q^2 = 0) that of the reference itself; with it, that of
        | -V^T Q        I + V^T Q V  |      what is left of it once a noisy state at level q is known (see ``guidance``)

Readings without noise fix ``x_o``; those of variance ``r`` add ``1 / r`` to the diagonal. What is not fixed, ``h``, and
``f`` then solve

    (Q_hh + diag) u_h - (Q V)_h f = c,         c = readings / r - Q_ho u_o
    S = I + V^T Q V - (Q V)_h^T K (Q V)_h,     K = (Q_hh + diag)^-1
    f = S^-1 ((V^T Q)_o u_o + (Q V)_h^T K c),  u_h = K (c + (Q V)_h f)

for deviations ``u`` from any mean: a sparse factor, and a system as large as there are modes. The evidence is what the
joint energy comes to at that solution, and the determinants of both precisions. Draws by Matheron's rule, from draws of
the whole; spreads exactly up to ``SOLVES`` hidden entries, and from ``PROBES`` draws beyond.

Signals that are observed alike share one system. Rows other than entries (``H``) are few: their covariance is formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core import factors
from ..core.streams import Stream
from .conditioning import WindowPosterior
from .observations import Observations
from .precision import Precision

SOLVES = 4096  # hidden entries up to which their variances are exact
PROBES = 64  # draws that they are estimated from beyond: 9 % off
COLUMNS = 256  # right sides that are solved for together


class Joint(Protocol):
    """A sparse reference, as far as conditioning asks."""

    @property
    def d(self) -> int: ...

    precision: Precision
    modes: np.ndarray  # (d, r)

    @property
    def coupling(self) -> tuple[np.ndarray, np.ndarray]: ...

    def system(self, matrix: sp.sparray, nodes: np.ndarray | None = None) -> factors.System: ...

    def masked(self, fixed: np.ndarray, added: np.ndarray) -> Masked: ...

    def product(self, x: np.ndarray) -> np.ndarray: ...

    def precise(self, x: np.ndarray) -> np.ndarray: ...

    def covariance(self) -> Tensor: ...

    def draw(self, noise: Tensor) -> Tensor: ...


class Masked:
    """One way of being observed: entries that are ``fixed`` (d,), and precisions ``added`` (d,) to the others."""

    def __init__(self, reference: Joint, fixed: np.ndarray, added: np.ndarray):
        self.fixed, self.hidden, self.added = fixed, ~fixed, added
        Q, (QV, G) = reference.precision.Q, reference.coupling
        rows = sp.csr_array(Q[self.hidden])
        self.across, self.QV = sp.csr_array(rows[:, fixed]), QV
        free = None if added.any() else reference.precision.free(self.hidden)
        own = sp.csr_array(rows[:, self.hidden] + sp.diags_array(added[self.hidden]))
        self.system = reference.system(own, self.hidden) if free is None else free
        self.E = QV[self.hidden]
        self.KE = self.system.solve(self.E) if self.E.shape[1] else self.E
        self.S = G - self.E.T @ self.KE
        self.log_det = self.system.log_det + float(np.linalg.slogdet(self.S)[1])

    def solve(self, u: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (d, k) twice -> (d, k), (r, k)
        """Deviations everywhere and of the modes: ``u`` where it is fixed, from readings over their variance ``b``."""
        c = b[self.hidden] - self.across @ u[self.fixed]
        Kc = self.system.solve(c)
        f = np.linalg.solve(self.S, self.QV[self.fixed].T @ u[self.fixed] + self.E.T @ Kc)
        result = np.array(u)
        result[self.hidden] = Kc + self.KE @ f
        return result, f

    def variances(self) -> np.ndarray:  # (hidden,)
        """Of what is hidden."""
        n = int(self.hidden.sum())
        modes = ((self.KE @ np.linalg.inv(self.S)) * self.KE).sum(1)
        parts = [np.zeros(0)]
        for first in range(0, n, COLUMNS):
            places = np.arange(first, min(first + COLUMNS, n))
            unit = np.zeros((n, len(places)))
            unit[places, places - first] = 1.0
            parts.append(self.system.solve(unit)[places, places - first])
        return np.concatenate(parts) + modes


class Conditioned:
    """A reference, or what is left of it at a level ``q``, given readings of several signals."""

    def __init__(self, reference: Joint, observations: Observations, q: float | None):
        self.reference, self.observations, self.q = reference, observations, q

    @property
    def _precision(self) -> float:
        """``1 / q^2``."""
        return 0.0 if self.q is None else self.q**-2

    def _groups(self) -> Iterator[tuple[np.ndarray, Masked]]:
        """Signals that are observed alike, and their system; of readings of entries."""
        seen = self.observations.seen.cpu().numpy()
        noise = self.observations.noise
        r = np.zeros(seen.shape[1]) if noise is None else noise.cpu().numpy()
        _, group = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
        for number in range(int(group.max(initial=-1)) + 1):
            rows = np.flatnonzero(group == number)
            mask = seen[rows[0]]
            added = np.where(mask & (r > 0), 1 / np.where(r > 0, r, 1.0), 0.0) + self._precision
            yield rows, self.reference.masked(mask & (r == 0), added)

    def update(self, mean: Tensor, error: Tensor | None = None) -> tuple[Tensor, Tensor]:  # (batch, n, d), (batch, n)
        """As ``Observations.update``: new means and log-evidences, of ``n`` means a signal."""
        observations = self.observations
        if observations.H is not None:
            return observations.settled(*self._through(observations.H), mean, error)
        target = observations.y[:, None] if error is None else observations.y[:, None] - error
        off = torch.where(observations.seen[:, None], target - mean, 0.0).cpu().numpy()  # (batch, n, d)
        moved, evidence = np.array(mean.cpu().numpy()), np.zeros(off.shape[:2])
        r = None if observations.noise is None else observations.noise.cpu().numpy()
        prior, Q = self._prior, self.reference.precision.Q
        for rows, masked in self._groups():
            readings = off[rows].reshape(-1, off.shape[2]).T  # (d, k)
            noisy = masked.added - self._precision
            u, f = masked.solve(np.where(masked.fixed[:, None], readings, 0.0), noisy[:, None] * readings)
            e = u - self.reference.modes @ f
            energy = (e * (Q @ e)).sum(0) + (f**2).sum(0) + self._precision * (u**2).sum(0)
            energy += (noisy[:, None] * (readings - u) ** 2).sum(0)
            used = masked.fixed | (noisy > 0)
            size = masked.log_det - prior + used.sum() * math.log(2 * math.pi)
            size += 0.0 if r is None else float(np.log(r[noisy > 0]).sum())
            moved[rows] += u.T.reshape(len(rows), -1, off.shape[2])
            evidence[rows] = -0.5 * (energy + size).reshape(len(rows), -1)
        return torch.from_numpy(moved).to(mean.device), torch.from_numpy(evidence).to(mean.device)

    @property
    def _prior(self) -> float:
        """``log det J``."""
        if self.q is None:
            return self.reference.precision.log_det
        nothing = np.zeros(self.reference.d, dtype=bool)
        return Masked(self.reference, nothing, np.full(self.reference.d, self._precision)).log_det

    def _through(self, H: Tensor) -> tuple[Tensor, Tensor]:  # (m, d), (m, m)
        """``H C`` and ``S`` (see ``observations``)."""
        rows = H.double().cpu().numpy()
        if self.q is None:
            across = self.reference.product(rows.T).T
        else:
            nothing = np.zeros(self.reference.d, dtype=bool)
            free = Masked(self.reference, nothing, np.full(self.reference.d, self._precision))
            across = free.solve(np.zeros(rows.T.shape), rows.T)[0].T
        S = torch.from_numpy(across @ rows.T).to(H.device)
        noise = self.observations.noise
        return torch.from_numpy(np.ascontiguousarray(across)).to(H.device), S if noise is None else S + noise.diag()

    def covariance(self) -> Tensor:  # (batch, d, d)
        """What is left, as whole matrices."""
        observations, d = self.observations, self.reference.d
        if observations.H is not None:
            across, S = self._through(observations.H)
            return observations.remaining(across, S, self.reference.covariance())
        left = np.zeros((len(observations.y), d, d))
        for rows, masked in self._groups():
            unit = np.eye(d)[:, masked.hidden]
            left[np.ix_(rows, np.arange(d), np.flatnonzero(masked.hidden))] = masked.solve(np.zeros(unit.shape), unit)[
                0
            ]
        return torch.from_numpy(left).to(observations.y.device)

    @staticmethod
    def alone(reference: Joint, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of signals ``off`` (signals, d): log-density, precision times signal, and the diagonal of the precision, of
        what is ``seen`` (signals, d) of each."""
        readings = Observations(torch.where(seen, off, torch.nan))
        log_prob = torch.empty(len(off), dtype=torch.float64)
        weighted, precisions = torch.zeros(off.shape, dtype=torch.float64), torch.ones(off.shape, dtype=torch.float64)
        conditioned = Conditioned(reference, readings, None)
        mean, evidence = conditioned.update(torch.zeros_like(off, dtype=torch.float64)[:, None])
        log_prob[:] = evidence[:, 0].cpu()
        for rows, masked in conditioned._groups():
            x = mean[rows, 0].cpu().numpy().T  # the precision of what is seen acts on the whole signal, filled in
            # A signal that is filled in with its mean has no force on what is hidden: all of it is on what is seen.
            weighted[rows] = torch.from_numpy(reference.precise(x).T.copy())
            precisions[rows] = torch.from_numpy(_diagonal(reference, masked))
        return log_prob.to(off.device), weighted.to(off.device), precisions.to(off.device)


def _diagonal(reference: Joint, masked: Masked) -> np.ndarray:  # (d,)
    """Of the precision of what is fixed; 1 elsewhere.

    ``Q_oo - Q_oh K Q_ho`` less ``T S^-1 T^T`` with ``T = (Q V)_o - Q_oh K (Q V)_h``: columns of ``Q_ho`` are solved for
    only where there are any.
    """
    own = reference.precision.Q.diagonal()[masked.fixed].copy()
    by_node = sp.csc_array(masked.across)
    touched = np.flatnonzero(np.diff(by_node.indptr))
    for first in range(0, len(touched), COLUMNS):
        some = touched[first : first + COLUMNS]
        right = by_node[:, some].toarray()
        own[some] -= (right * masked.system.solve(right)).sum(0)
    T = masked.QV[masked.fixed] - masked.across.T @ masked.KE
    result = np.ones(len(masked.fixed))
    result[masked.fixed] = own - ((T @ np.linalg.inv(masked.S)) * T).sum(1)
    return result


def posterior(reference: Joint, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
    """As ``Reference.posterior``."""
    observations = Observations(torch.where(observed, z.double(), torch.nan))
    conditioned = Conditioned(reference, observations, None)
    mean, log_prob = conditioned.update(torch.zeros(len(z), 1, reference.d, dtype=torch.float64, device=z.device))
    mean = torch.where(observed, z.double(), mean[:, 0])
    sd = torch.zeros_like(mean)
    for rows, masked in conditioned._groups():
        some = np.ix_(rows, np.flatnonzero(masked.hidden))
        sd[some] = torch.from_numpy(np.sqrt(_spread(reference, masked))).to(sd.device)
    draws = None if xi is None else drawn(reference, z, observed, xi)
    return WindowPosterior(mean, sd, draws, log_prob[:, 0])


def drawn(reference: Joint, z: Tensor, observed: Tensor, xi: Tensor) -> Tensor:  # (signals, draws, d)
    """As ``Reference.drawn``."""
    readings = Conditioned(reference, Observations(torch.where(observed, z.double(), torch.nan)), None)
    whole = reference.draw(xi.double().flatten(0, 1)).view(xi.shape)
    return torch.where(observed[:, None], z.double()[:, None], readings.update(whole)[0])


def _spread(reference: Joint, masked: Masked) -> np.ndarray:  # (hidden,)
    """Variances of what is hidden."""
    if int(masked.hidden.sum()) <= SOLVES:
        return masked.variances()
    noise = Stream(0, "probes of a posterior").normal(0, PROBES * reference.d).view(PROBES, -1)
    whole = reference.draw(noise).numpy().T
    off = np.where(masked.fixed[:, None], -whole, 0.0)
    return np.square(whole + masked.solve(off, np.zeros(off.shape))[0])[masked.hidden].mean(1)


def completed(reference: Joint, x: Tensor, noise: Tensor) -> Tensor:  # (batch, d) each
    """Missing entries (NaN) drawn given the observed ones of their row."""
    x = x.double()
    gaps = x.isnan().any(1).nonzero()[:, 0]
    if not len(gaps):
        return x
    whole = reference.draw(noise[gaps])
    drawn = Conditioned(reference, Observations(x[gaps]), None).update(whole[:, None])[0][:, 0]
    result = x.clone()
    result[gaps] = torch.where(x[gaps].isnan(), drawn, x[gaps])
    return result
