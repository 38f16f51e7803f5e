"""Functions of a covariance by shifted solves: sums of ``(Sigma + s I)^-1``, where no eigenbasis is at hand.

**Root.** ``A^-1/2 = (2 / pi) int_0^inf (A + t^2 I)^-1 dt``. With ``t = sqrt(m) sc(u)``, a Jacobi elliptic function of
modulus ``k'^2 = 1 - m / M`` for eigenvalues between ``m`` and ``M``, the midpoint rule in ``u`` converges geometrically
(Hale, Higham and Trefethen 2008, method 3): a dozen shifts for fourteen digits.

**Propagator.** ``phi(q1, q0) = B^1/2`` with ``B = (Sigma + q1^2) / (Sigma + q0^2)``: its eigenvalues lie between 1 and
its value at the smallest variance, however large the others are. With ``a = q1^2``, ``b = q0^2``

    B (B + t^2)^-1 = (I + (a - s) (Sigma + s I)^-1) / (1 + t^2),         s = (a + t^2 b) / (1 + t^2)

so that all shifts lie between the two levels.

**Moments** of the forcing (see ``propagator``) are functions of the variance with the same cut, from ``-q0^2`` to
``-q1^2``: the same shifts serve them. Their weights come from least squares on variances from the smallest on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ellipj, ellipk, ellipkm1

DIGITS = 15.0
GRID = 400  # variances that the weights of moments are fitted on


@dataclass(frozen=True)
class Rational:
    """``f(v) = constant + sum_j weights_j / (v + shifts_j)``."""

    constant: float
    weights: np.ndarray  # (shifts,)
    shifts: np.ndarray  # (shifts,)


def inverse_root(m: float, M: float) -> tuple[np.ndarray, np.ndarray]:  # two of (shifts,)
    """Weights ``w`` and shifts ``s`` with ``x^-1/2 = sum_j w_j / (x + s_j)`` for ``x`` from ``m`` to ``M``."""
    ratio = min(m / M, 1.0)
    K, other = float(ellipkm1(ratio)), float(ellipk(ratio))
    count = math.ceil(DIGITS * math.log(10) * K / (2 * math.pi * other)) + 1
    u = (np.arange(count) + 0.5) * K / count
    sn, cn, dn, _ = ellipj(u, 1 - ratio)
    return 2 / math.pi * K / count * math.sqrt(m) * dn / cn**2, m * (sn / cn) ** 2


def propagator(a: float, b: float, least: float) -> Rational:
    """``sqrt((v + a) / (v + b))`` for all ``v`` from ``least`` on."""
    end = (least + a) / (least + b)
    w, t2 = inverse_root(min(end, 1.0), max(end, 1.0))
    s, w = (a + t2 * b) / (1 + t2), w / (1 + t2)
    return Rational(float(w.sum()), w * (a - s), s)


def fitted(function: Callable[[np.ndarray], np.ndarray], limit: float, shifts: np.ndarray, least: float) -> Rational:
    """A function of ``v`` from ``least`` on that tends to ``limit``, with poles where it has its cut."""
    v = least + np.concatenate([[0.0], np.geomspace(1e-3 * least, 1e4 * max(shifts.max(), least), GRID)])
    size = 1 / (least + shifts)
    left = 1 / (v[:, None] + shifts) / size
    # Relative to how fast a single pole falls: what is left over is then small against the function's own decay.
    scale = (v + shifts.max())[:, None]
    weights = np.linalg.lstsq(left * scale, (function(v) - limit) * scale[:, 0], rcond=1e-14)[0]
    return Rational(limit, weights / size, shifts)
