"""The mean of a window by the calendar: smooth over the clock, shrunk to a column's own mean where readings are few.

A reading of column ``i`` at clock slot ``s`` (five minutes of the day, an hour) on a kind of day ``g`` (working day or
weekend) has the mean

    mean_i + w_gsi (smooth_gsi - mean_i)        w = n / (n + k_i)

``smooth`` is a kernel mean round the clock, ``n`` the number of days behind it, and ``k_i`` the variance of a reading
about the smooth curve over the variance of the curve about the column's mean: the empirical Bayes weight of a mean of
``n`` days. A column that the clock does not explain has a large ``k`` and keeps its own mean.

Readings spread more at some hours than at others. Squared distances from the mean have a mean by the calendar too, and
a z-score divides by ``sd_i^(1 - p) sd_gsi^p``: ``p = 0`` is one spread a column, ``p = 1`` the clock's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class CalendarMean:
    """A table of means, and each column's own mean and spread about the table."""

    table: Tensor  # (kinds, slots, columns), float64
    mean: Tensor  # (columns,)
    sd: Tensor  # (columns,) of a reading about its table entry
    spread: Tensor  # (kinds, slots, columns), what a z-score divides by

    @classmethod
    def fit(
        cls, values: Tensor, slot: Tensor, kind: Tensor, slots: int, kinds: int, width: float, power: float = 0.0
    ) -> CalendarMean:
        """From readings ``values`` (rows, columns) with NaN where missing, and each row's ``slot`` and ``kind``.

        ``width`` is the kernel's standard deviation, in slots; 0 leaves every slot for itself. ``power`` is how much of
        the spread goes by the clock.
        """
        table, mean, sd = _smoothed(values.double(), slot, kind, slots, kinds, width)
        sd = torch.where(sd > 0, sd, 1.0)
        spread = sd.expand_as(table)
        if power > 0:
            squares = (values - table[kind, slot]).square()
            clock, _, _ = _smoothed(squares, slot, kind, slots, kinds, 3 * width)
            spread = sd ** (1 - power) * clock.clamp(min=1e-3 * sd.square()).sqrt() ** power
        return cls(table, mean, sd, spread)

    def rows(self, slot: Tensor, kind: Tensor) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """The mean of each row, and what its z-scores divide by."""
        return self.table[kind, slot], self.spread[kind, slot]

    def scores(self, values: Tensor, slot: Tensor, kind: Tensor) -> Tensor:  # (rows, columns)
        """Readings as z-scores about their mean; NaN stays NaN."""
        mean, spread = self.rows(slot, kind)
        return (values - mean) / spread


def _smoothed(
    values: Tensor, slot: Tensor, kind: Tensor, slots: int, kinds: int, width: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The table (kinds, slots, columns), each column's mean, and the spread of its readings about the table."""
    cell, seen = kind * slots + slot, ~values.isnan()
    filled = values.nan_to_num()
    mean = filled.sum(0) / seen.sum(0).clamp(min=1)
    centred = (filled - mean) * seen
    total = torch.zeros(kinds * slots, values.shape[1], dtype=values.dtype, device=values.device)
    sums = total.index_add(0, cell, centred).reshape(kinds, slots, -1)
    days = total.index_add(0, cell, seen.double()).reshape(kinds, slots, -1)
    kernel = _round_the_clock(slots, width).to(sums)
    weight = kernel @ days  # the kernel sums to one, so this is a number of days
    smooth = (kernel @ sums) / weight.clamp(min=1e-9)
    about = (centred - smooth.flatten(0, 1)[cell]) * seen
    within = about.square().sum(0) / seen.sum(0).clamp(min=1)
    between = ((days * smooth.square()).sum((0, 1)) / days.sum((0, 1)).clamp(min=1)).clamp(min=1e-12)
    shrunk = smooth * weight / (weight + within / between).clamp(min=1e-12)
    about = (centred - shrunk.flatten(0, 1)[cell]) * seen
    sd = (about.square().sum(0) / seen.sum(0).clamp(min=1)).sqrt()
    return mean + shrunk, mean, sd


def _round_the_clock(slots: int, width: float) -> Tensor:  # (slots, slots)
    """Gaussian weights by distance round the clock, each row summing to one."""
    place = torch.arange(slots, dtype=torch.float64)
    gap = (place[:, None] - place).abs()
    gap = torch.minimum(gap, slots - gap)
    weight = torch.exp(-0.5 * (gap / width) ** 2) if width > 0 else (gap == 0).double()
    return weight / weight.sum(1, keepdim=True) if math.isfinite(width) else torch.full_like(gap, 1 / slots)
