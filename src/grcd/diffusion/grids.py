"""Noise grids: the levels ``q_max = q_0 > q_1 > ... > q_K = q_min`` a solver steps through (section 3.4, eq. grid).

power     q_j = [q_max^(1/rho) + j/K (q_min^(1/rho) - q_max^(1/rho))]^rho        rho = 1 is uniform in t
log-snr   uniform in the half-log-SNR  l = -log q                                the limit rho -> infinity
entropy   uniform in the entropy of the reference  H(q) = 1/2 sum_i log(v_i + q^2)

The last is derived from the reference's spectrum: noise above all ``v_i`` changes every mode alike and ``H`` goes like
``log q``; noise below all of them changes nothing. Levels are where modes emerge from the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError, unknown

Levels = Sequence[float] | np.ndarray
Variances = Callable[[], tuple[np.ndarray, np.ndarray]]  # of a reference, and how often each counts
GRIDS = ("power", "log-snr", "entropy")
FINE = 4096  # levels that the entropy is tabulated on


def power(q_max: float, q_min: float, K: int, rho: float = 3.0) -> np.ndarray:  # (K + 1,)
    """The power law of eq. grid."""
    if not (np.isfinite(rho) and rho > 0):
        raise InputError(f"rho = {rho}", "a positive number", "use 3 (the paper's choice) or 1 (uniform in t)")
    # Eq. grid with q_max^(1/rho) factored out and in logarithms, so that no rho over- or underflows.
    share = np.arange(K + 1) / K * np.expm1(np.log(q_min / q_max) / rho)
    with np.errstate(divide="ignore"):  # the last may round to zero; it is set exactly
        return _with_exact_ends(q_max * np.exp(rho * np.log1p(share)), q_max, q_min)


def log_snr(q_max: float, q_min: float, K: int) -> np.ndarray:  # (K + 1,)
    """Uniform in ``l = -log q``: a geometric sequence."""
    return _with_exact_ends(np.exp(np.linspace(np.log(q_max), np.log(q_min), K + 1)), q_max, q_min)


def entropy(q_max: float, q_min: float, K: int, v: np.ndarray, weight: np.ndarray) -> np.ndarray:  # (K + 1,)
    """Uniform in the entropy of a reference with variances ``v`` (modes,) that count ``weight`` times each."""
    q = np.exp(np.linspace(np.log(q_min), np.log(q_max), FINE))
    H = (weight * np.log(v + q[:, None] ** 2)).sum(axis=1)  # rises with q
    return _with_exact_ends(np.interp(np.linspace(H[-1], H[0], K + 1), H, q), q_max, q_min)


def checked(levels: Levels) -> np.ndarray:  # (K + 1,)
    """Any sequence of the user's own, once it is known to be a grid."""
    grid = np.asarray(levels, dtype=np.float64)
    if (
        grid.ndim != 1
        or len(grid) < 2
        or not np.all(np.isfinite(grid))
        or not np.all(np.diff(grid) < 0)
        or grid[-1] <= 0
    ):
        raise InputError(
            f"the grid {levels!r}",
            "two or more positive noise levels in descending order",
            "list them from the largest to the smallest, without repeats",
        )
    return grid


@dataclass(frozen=True)
class Grid:
    """A grid by name, or levels of one's own; ``variances`` are what "entropy" is made of."""

    kind: str | Levels = "power"
    rho: float = 3.0
    start: float = 1.0  # share of the largest level that a grid with a name begins at
    variances: Variances | None = None

    def begin(self, q_max: float, q_min: float) -> float:
        """The first level."""
        start, least = self.start, q_min / q_max
        if isinstance(start, bool) or not isinstance(start, int | float) or not least < start <= 1:
            expected = f"a share of the largest noise level, above {least:g} and at most 1"
            raise InputError(f"start = {start!r}", expected, "leave it out")
        return start * q_max if isinstance(self.kind, str) else q_max  # one's own begin where they begin

    def levels(self, q_max: float, q_min: float, K: int) -> np.ndarray:  # (K + 1,)
        """``K`` steps from ``start`` times ``q_max`` to ``q_min``."""
        kind, q_max = self.kind, self.begin(q_max, q_min)
        if not isinstance(kind, str):
            return _of_steps(checked(kind), q_max, q_min, K)
        if kind == "power":
            return power(q_max, q_min, K, self.rho)
        if kind == "log-snr":
            return log_snr(q_max, q_min, K)
        if kind == "entropy":
            assert self.variances is not None, "the grid 'entropy' is made of a reference's variances"
            return entropy(q_max, q_min, K, *self.variances())
        raise unknown("grid", kind, [*GRIDS, "noise levels as q0,q1,..."])


def _of_steps(grid: np.ndarray, q_max: float, q_min: float, K: int) -> np.ndarray:
    """Levels of one's own, if they are as many as it takes, and such as the network was trained on."""
    if len(grid) != K + 1:
        raise InputError(
            f"a grid of {len(grid)} levels",
            f"{K + 1} levels for this solver and budget",
            f"give {K + 1} levels or change nfe",
        )
    if grid[0] > q_max * (1 + 1e-9) or grid[-1] < q_min * (1 - 1e-9):
        raise InputError(
            f"a grid from {grid[0]:g} to {grid[-1]:g}",
            f"noise levels the network was trained on, {q_max:g} to {q_min:g}",
            "stay inside that range",
        )
    return grid


def _with_exact_ends(grid: np.ndarray, q_max: float, q_min: float) -> np.ndarray:
    grid[0], grid[-1] = q_max, q_min  # not one rounding away from the level the terminal draw was made at
    return grid
