"""Every column by itself, about its mean: between that mean and a straight line in time.

What few rows can always bear: a column's z-scores are a stationary process of the first order with correlation ``rho``
from one row to the next, and know nothing of other columns. With the nearest readings ``l``, ``a`` rows before, and
``r``, ``b`` rows after,

    mean = (rho^a (1 - rho^2b) l + rho^b (1 - rho^2a) r) / (1 - rho^(2a + 2b))
    variance = (1 - rho^2a) (1 - rho^2b) / (1 - rho^(2a + 2b))

and a side without a reading is infinitely far. At ``rho = 0`` that is the mean, with its spread; as ``rho`` goes to 1,
the straight line between two readings, constant beyond the last one. Deviations are ``spread`` times as large and have
tails, both of which are fitted (see ``tails``): no column is quite such a process. Near a line ``spread`` is large, and
where a column has no reading at all it would make nonsense: no deviation is larger than ``WIDEST`` then.

Draws are joint: a process of the first order given what it was a row before and what it will be at the next reading is
one of the first order again. They come in pairs, the second the mirror image of the first about the mean: so the median
of an even number is the mean, without noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.rows import BLOCK, split
from ..core.streams import Stream
from .tails import stretched

LINE = 1 - 1e-6  # the correlation at which it is a straight line, but for rounding
LEAST = 1e-12
NEAR, WIDEST = 0.99, 3.0  # from that correlation on, standard deviations are at most so many of the column's
TINY = 1e-30  # in place of no standard deviation, where nothing is drawn


@dataclass(frozen=True)
class Columns:
    """The process of columns, by channel: correlation from a row to the next, what spreads are multiplied by, how heavy
    the tails are and where the median is; if nothing is said, as of a Gaussian."""

    rho: tuple[float, ...]
    spread: tuple[float, ...]
    tail: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, list[float]]:
        return {key: list(numbers) for key, numbers in vars(self).items()}

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> Columns:
        """The way back."""
        return cls(**{key: tuple(map(float, each)) for key, each in numbers.items()})

    def of_rows(self, u: Tensor) -> Tensor:  # (..., columns) twice
        """Rows by themselves, of which nothing is near: z-scores of standard normal numbers."""
        _, spread, tail, shift = self._of_columns(u)
        return shift + spread * stretched(u, tail)

    def posterior(self, z: Tensor, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """Median, and standard deviation but for the tails, of z-scores (rows, columns), NaN where missing, given those
        that are there."""
        mean, sd = self._law(z, stretches)
        return mean, self._widened(sd)

    def _law(self, z: Tensor, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """Median, and standard deviation as if it were such a process."""
        before, after = _nearest(z, stretches)
        log_rho, _, _, shift = self._of_columns(z)
        near = [(rows * log_rho).exp() for rows, _ in (before, after)]
        gone = [-torch.expm1(2 * rows * log_rho) for rows, _ in (before, after)]  # of the variance, by a side alone
        whole = -torch.expm1(2 * (before[0] + after[0]) * log_rho)
        mean = (near[0] * gone[1] * before[1] + near[1] * gone[0] * after[1]) / whole
        sd = (gone[0] * gone[1] / whole).sqrt()
        return torch.where(z.isnan(), mean + shift * sd, z), torch.where(z.isnan(), sd, 0.0)

    def _widened(self, sd: Tensor) -> Tensor:  # (rows, columns) twice
        """As large as they are."""
        log_rho, spread, _, _ = self._of_columns(sd)
        wide = spread * sd
        return torch.where(log_rho.exp() > NEAR, wide.clamp(max=WIDEST), wide)

    def draws(
        self, z: Tensor, stretches: Sequence[slice], n: int, seed: int, chunk: int | None = None
    ) -> Iterator[tuple[np.ndarray, Tensor]]:  # each (rows,), (n, rows, columns)
        """``n`` draws of z-scores given those that are there, some rows at a time, in the order of the stretches."""
        mean, alone = self._law(z, stretches)
        wide, (_, (after, _)) = self._widened(alone), _nearest(z, stretches)
        log_rho, _, tail, _ = self._of_columns(z)
        first = {s.start for s in stretches}
        rows = np.concatenate([np.arange(s.start, s.stop) for s in stretches])
        stream, off = Stream(seed, "columns", z.device), z.new_zeros(n, z.shape[1])
        for some in split(rows, chunk or BLOCK // (n * z.shape[1])):
            drawn = mean[some].expand(n, -1, -1).clone()
            xi = mirrored(stream, some, n, z.shape[1]).to(z)
            for k, row in enumerate(some.tolist()):
                gone = -torch.expm1(2 * after[row] * log_rho)
                if row in first:
                    off = gone.sqrt() * xi[k]
                else:
                    whole = -torch.expm1(2 * (after[row] + 1) * log_rho)
                    sd = (-torch.expm1(2 * log_rho) * gone / whole).sqrt()
                    off = log_rho.exp() * gone / whole * off + sd * xi[k]
                off = torch.where(z[row].isnan(), off, 0.0)
                drawn[:, k] += wide[row] * stretched(off / alone[row].clamp(min=TINY), tail)
            yield some, drawn

    def _of_columns(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # four of (columns,)
        """The logarithm of the correlation, the spread, the tail and the shift."""
        each, none = z.shape[-1] // len(self.rho), (0.0,) * len(self.rho)
        numbers = self.rho, self.spread, self.tail or none, self.shift or none
        rho, spread, tail, shift = (z.new_tensor(of_channels).repeat(each) for of_channels in numbers)
        return rho.clamp(LEAST, LINE).log(), spread, tail, shift


def mirrored(stream: Stream, rows: np.ndarray, n: int, columns: int) -> Tensor:  # (rows, n, columns)
    """Standard normal numbers in pairs: each second one is minus the first."""
    xi = stream.normal(rows, (n + 1) // 2 * columns).view(len(rows), -1, 1, columns)
    return torch.cat([xi, -xi], dim=2).flatten(1, 2)[:, :n]


def _nearest(z: Tensor, stretches: Sequence[slice]) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Of every row and column, how far the reading before is, and what it is; and so for the one after: infinitely far,
    and 0, where there is none in the stretch."""
    sides = []
    for backwards in (False, True):
        far, value = torch.full_like(z, torch.inf), torch.zeros_like(z)
        for s in stretches:
            part = z[s].flip(0) if backwards else z[s]
            row = torch.arange(len(part), device=z.device)[:, None]
            last = torch.where(part.isnan(), -1, row).cummax(0).values
            there = last >= 0
            of_part = torch.where(there, (row - last).to(z), torch.inf)
            reading = torch.where(there, part.nan_to_num().gather(0, last.clamp(min=0)), 0.0)
            far[s], value[s] = (each.flip(0) if backwards else each for each in (of_part, reading))
        sides.append((far, value))
    return sides[0], sides[1]
