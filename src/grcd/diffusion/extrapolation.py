"""What multistep solvers look ahead with: polynomials through the last evaluations, the newest last in ``past``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

History = Sequence[tuple[float, Tensor]]  # where, and what was found there


def polynomial(past: History) -> list[Tensor]:
    """Coefficients in powers of ``q - q0`` of the polynomial through ``past``, whose last level is ``q0``."""
    (q0, f0), *older = past[::-1]
    if not older:
        return [f0]
    (qa, fa), *oldest = older
    slope = (f0 - fa) / (q0 - qa)
    if not oldest:
        return [f0, slope]
    ((qb, fb),) = oldest
    bend = (slope - (fa - fb) / (qa - qb)) / (q0 - qb)
    return [f0, slope + (q0 - qa) * bend, bend]


def extrapolated(past: History, h: float, second: float) -> Tensor:
    """``int_0^h exp(s - h) D(l + s) ds`` with ``D`` extrapolated through ``past``; ``second`` is what its second
    difference counts."""
    phi1 = -math.expm1(-h)
    if len(past) < 3:
        return phi1 * middle(past, h)  # 2M takes the middle of the step for the integral
    (l0, D0), (l1, D1), (l2, D2) = past[::-1]
    slope = (D0 - D1) / (l0 - l1)
    bend = (slope - (D1 - D2) / (l1 - l2)) / (l0 - l2)  # half the second derivative
    phi2 = h - phi1  # int exp(s - h) s ds
    phi3 = h**2 - 2 * phi2  # int exp(s - h) s^2 ds
    return phi1 * D0 + phi2 * (slope + (l0 - l1) * bend) + second * phi3 * bend


def middle(past: History, h: float) -> Tensor:
    """``D`` in the middle of a step of length ``h`` in ``l``, through two evaluations; the first step has but one."""
    (l0, D0), *older = past[::-1]
    if not older:
        return D0
    ((l1, D1),) = older
    return D0 + h / 2 * (D0 - D1) / (l0 - l1)
