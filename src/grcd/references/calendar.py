"""The mean of a window by the calendar and by features of a row: smooth over the clock, shrunk where readings are few.

A reading of column ``i`` at clock slot ``s`` (five minutes of the day, an hour) on a kind of day ``g`` has the mean

    mean_i + sum_l w_l,si smooth_l,si + (f - f_gs)^T B_i

**Levels.** The first ``l`` is the curve over the clock of all days, the second what working days and weekends add to
it, the third what a day of the week adds to those. Each is a kernel mean round the clock of what the levels before it
leave over, shrunk by its empirical Bayes weight. With ``n`` days behind a slot, readings of variance ``sigma^2`` about
the smooth curve, and neighbouring slots of a day counted as one piece of evidence,

    w = tau^2 / (tau^2 + sigma^2 / n)           tau^2 = (mean of smooth^2 - mean of sigma^2 / n)_+

over the slots, weighted by their readings: a level that its column does not show is left out. So shrunk are, by
themselves, the mean of all columns in units of their spread, and how each column differs from it: what columns have in
common they know better together, and what is common in their noise does not hide how they differ.

**Features** ``f`` of a row (waves of the year, covariates) count by how far they are from what they usually are at that
slot, ``f_gs``: then the coefficients ``B`` are those of a joint fit, and the table stays as it is (Frisch, Waugh and
Lovell). How they are shrunk: ``coefficients``.

**Spread.** Readings spread more at some hours than at others. Squared distances from the mean have a mean by the
calendar too, and a z-score divides by ``sd_i^(1 - p) sd_gsi^p``: ``p = 0`` is one spread a column, ``p = 1`` the
clock's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from .coefficients import coefficients

LEAST = 1e-3  # spread about the mean, of a column's whole spread
WEEK = 7


@dataclass(frozen=True, eq=False)
class CalendarMean:
    """A table of means, coefficients of features, and each column's own mean and spread about them; in float64."""

    table: Tensor  # (kinds, slots, columns)
    mean: Tensor  # (columns,)
    sd: Tensor  # (columns,) of a reading about its mean
    spread: Tensor  # (kinds, slots, columns), what a z-score divides by
    usual: Tensor  # (kinds, slots, features), what features are at a slot
    weights: Tensor  # (features, columns), what one more of a feature adds

    @classmethod
    def fit(
        cls,
        values: Tensor,
        slot: Tensor,
        kind: Tensor,
        slots: int,
        kinds: int,
        width: float,
        power: float = 0.0,
        features: Tensor | None = None,
    ) -> CalendarMean:
        """From readings ``values`` (rows, columns), in the order of time, with NaN where missing; each row's ``slot``
        and ``kind``; and ``features`` (rows, features) without gaps.

        Seven kinds are days of the week, from Monday on. ``width`` is the kernel's standard deviation, in slots; 0
        leaves every slot for itself. ``power`` is how much of the spread goes by the clock.
        """
        values, cell = values.double(), kind * slots + slot
        f = values.new_zeros(len(values), 0) if features is None else features.double()
        table, mean, sd, whole = _smoothed(values, cell, slots, kinds, width)
        usual = _smoothed(f, cell, slots, kinds, width)[0]
        rest, weights = values - table.flatten(0, 1)[cell], f.new_zeros(f.shape[1], values.shape[1])
        if f.shape[1]:
            about = f - usual.flatten(0, 1)[cell]
            weights = coefficients(rest, about)
            rest = rest - about @ weights
            sd = _rms(rest)
        sd = torch.maximum(sd, LEAST * whole)
        sd = torch.where(sd > 0, sd, 1.0)
        spread = sd.expand_as(table)
        if power > 0:
            clock = _smoothed(rest.square(), cell, slots, kinds, 3 * width, False)[0]
            spread = sd ** (1 - power) * clock.clamp(min=LEAST * sd.square()).sqrt() ** power
        return cls(table, mean, sd, spread.clone(), usual, weights)

    def rows(
        self, slot: Tensor, kind: Tensor, features: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """The mean of each row, and what its z-scores divide by."""
        mean = self.table[kind, slot]
        if features is not None and features.shape[1]:
            mean = mean + (features - self.usual[kind, slot]) @ self.weights
        return mean, self.spread[kind, slot]

    def scores(
        self, values: Tensor, slot: Tensor, kind: Tensor, features: Tensor | None = None
    ) -> Tensor:  # (rows, columns)
        """Readings as z-scores about their mean; NaN stays NaN."""
        mean, spread = self.rows(slot, kind, features)
        return (values - mean) / spread

    def tensors(self) -> dict[str, Tensor]:
        """What it takes to make it again: ``CalendarMean(**tensors)``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def map(self, change: Callable[[Tensor], Tensor]) -> CalendarMean:
        """With every tensor changed: moved to a device."""
        moved: Mapping[str, Tensor] = {name: change(tensor) for name, tensor in self.tensors().items()}
        return CalendarMean(**moved)


def _levels(kinds: int, device: torch.device) -> list[Tensor]:  # each (kinds,)
    """Which group each kind of day is in, from all days in one to every kind by itself."""
    kind = torch.arange(kinds, device=device)
    weekend = [(kind >= 5).long()] if kinds == WEEK else []
    return [0 * kind, *weekend, kind] if kinds > 1 else [0 * kind]


def _smoothed(
    values: Tensor, cell: Tensor, slots: int, kinds: int, width: float, together_too: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The table (kinds, slots, columns) of readings of which each has a cell of it; each column's mean, the spread of
    its readings about the table, and about the mean."""
    seen = ~values.isnan()
    n = seen.sum(0).clamp(min=1)
    mean = values.nan_to_num().sum(0) / n
    whole = _rms(values - mean)
    whole = torch.where(whole > 1e-12 * mean.abs(), whole, 0.0)  # the mean of equal numbers is rounded
    z = (values - mean) / torch.where(whole > 0, whole, 1.0)
    together = z.nanmean(1, keepdim=True)
    parts = (together, z - together) if together_too else (z,)
    table = whole * sum((_levelled(part, cell, slots, kinds, width) for part in parts), torch.zeros(()).to(z))
    return mean + table, mean, _rms(values - mean - table.flatten(0, 1)[cell]), whole


def _levelled(values: Tensor, cell: Tensor, slots: int, kinds: int, width: float) -> Tensor:  # (kinds, slots, columns)
    """The sum of all levels, each shrunk; of values about 0."""
    seen = (~values.isnan()).double()
    n, squares = seen.sum(0), values.nan_to_num().square().sum(0)
    none = values.new_zeros(kinds * slots, values.shape[1])
    sums = none.index_add(0, cell, values.nan_to_num()).view(kinds, slots, -1)
    days = none.index_add(0, cell, seen).view(kinds, slots, -1)
    kernel, table = _round_the_clock(slots, width).to(sums), torch.zeros_like(sums)
    for level in _levels(kinds, values.device):
        group = torch.zeros_like(sums[: int(level.max()) + 1])
        rest, count = group.index_add(0, level, sums - days * table), group.index_add(0, level, days)
        weight = (kernel @ count).clamp(min=1e-9)  # the kernel sums to one, so this is a number of days
        smooth = (kernel @ rest) / weight
        free = n - (count * kernel.diagonal()[:, None] / weight).sum((0, 1))
        left = _about(squares, sums, days, table + smooth[level]) / free.clamp(min=1)
        noise = torch.where(free >= 1, left, torch.inf) / weight
        table = table + (smooth * shrinkage(smooth, noise, count))[level]
    return table


def shrinkage(estimate: Tensor, noise: Tensor, weight: Tensor) -> Tensor:  # (groups, slots, columns)
    """Empirical Bayes weights ``tau^2 / (tau^2 + noise)`` of estimates with these variances; ``tau^2`` is a column's
    mean of ``estimate^2 - noise``, weighted, or 0."""
    total = weight.sum((0, 1)).clamp(min=1e-9)
    beyond = torch.where(weight > 0, weight * (estimate.square() - noise), 0.0)
    tau2 = (beyond.sum((0, 1)) / total).clamp(min=0).nan_to_num(posinf=0.0)
    return torch.where(tau2 > 0, tau2 / (tau2 + noise), 0.0)


def _about(squares: Tensor, sums: Tensor, days: Tensor, table: Tensor) -> Tensor:  # (columns,)
    """The sum of squares about a table, from the sum of squares about 0 and the sums and counts of cells."""
    return (squares - 2 * (sums * table).sum((0, 1)) + (days * table.square()).sum((0, 1))).clamp(min=0)


def _rms(values: Tensor) -> Tensor:  # (columns,)
    return (values.nan_to_num().square().sum(0) / (~values.isnan()).sum(0).clamp(min=1)).sqrt()


def _round_the_clock(slots: int, width: float) -> Tensor:  # (slots, slots)
    """Gaussian weights by distance round the clock, each row summing to one."""
    place = torch.arange(slots, dtype=torch.float64)
    gap = (place[:, None] - place).abs()
    gap = torch.minimum(gap, slots - gap)
    weight = torch.exp(-0.5 * (gap / width) ** 2) if width > 0 else (gap == 0).double()
    return weight / weight.sum(1, keepdim=True) if math.isfinite(width) else torch.full_like(gap, 1 / slots)
