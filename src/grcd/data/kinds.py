"""What kind of numbers readings are: whole ones, many of them zero, rounded, with an end that many of them share.

Said of all nodes of a variable together, for nodes are read by the same sensors:

    whole       every reading is a whole number: counts, display units
    decimals    every reading is rounded to so many decimals, and many are therefore the same
    zeros       the share that is exactly zero
    low, high   an end of the range that is a limit of the readings, and no accident: one in a hundred readings or more
                is there, and it is zero (counts, rain), or there are far fewer just inside it (a share of 100 %, a
                sensor that saturates), or a handful of different values are all there are (a switch, a grade)
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..core.rows import BLOCK, blocks, evenly

MANY, PLENTY = 0.01, 0.1  # shares of the readings that are no accident at an end, and in the midst of others
CROWD = 0.2  # a share at an end that makes a shape of its own
BESIDE, FEWER = 3, 3.0  # values just inside an end, and how many times fewer there are of each
HANDFUL = 10  # values that are all there are,
THIN = 0.5  # if there are so many of the last as of the one before: counts thin out
ENOUGH = 50  # readings from which any of this can be told
REPEATED = 4  # readings a value, from which rounding shows
DECIMALS = 2


@dataclass(frozen=True)
class Kind:
    """Of the readings of one variable; nothing is special about them by default."""

    whole: bool = False
    decimals: int | None = None
    zeros: float = 0.0
    negative: bool = True
    low: float | None = None
    low_share: float = 0.0
    high: float | None = None
    high_share: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray) -> Kind:  # (rows, nodes), NaN where missing
        """What can be told of readings."""
        sample = values[evenly(len(values), max(1, BLOCK // max(1, values[0].size)))] if len(values) else values
        sample = sample[np.isfinite(sample)]
        if sample.size < ENOUGH:
            return cls()
        distinct, counts = np.unique(sample, return_counts=True)
        if len(distinct) < 2:
            return cls()
        shares = counts / sample.size
        rounded = REPEATED * len(distinct) <= sample.size
        decimals = next((d for d in range(DECIMALS + 1) if _rounded(distinct, d)), None) if rounded else None
        low = _limit(distinct, shares)
        high = _limit(-distinct[::-1], shares[::-1])
        zero = np.searchsorted(distinct, 0.0)
        return cls(
            whole=all(_rounded(values[rows], 0) for rows in blocks(len(values), values[0].size)),
            decimals=decimals,
            zeros=float(shares[zero]) if zero < len(distinct) and distinct[zero] == 0 else 0.0,
            negative=bool(distinct[0] < 0),
            low=low,
            low_share=0.0 if low is None else float(shares[0]),
            high=None if high is None else -high,
            high_share=0.0 if high is None else float(shares[-1]),
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The limits, infinite where there is none."""
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def special(self) -> bool:
        """Whether drawn readings have to keep to it."""
        return self.whole or self.low is not None or self.high is not None

    @property
    def crowded(self) -> bool:
        """Whether many readings are at an end."""
        return max(self.low_share, self.high_share) >= CROWD

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """In words: "whole numbers, none negative, 41% exactly 0"."""
        words = ["whole numbers"] if self.whole else []
        if self.decimals is not None and not self.whole:
            words.append(f"rounded to {self.decimals} decimal{'s' * (self.decimals != 1)}")
        if not self.negative:
            words.append("none negative")
        if self.zeros >= (PLENTY if self.negative else MANY):
            words.append(f"{self.zeros:.0%} exactly 0")
        if self.low:
            words.append(f"{self.low_share:.0%} at exactly {self.low:g}, the least")
        if self.high is not None:
            words.append(f"{self.high_share:.0%} at exactly {self.high:g}, the most")
        return ", ".join(words)


def of_channels(values: np.ndarray) -> list[Kind]:  # (rows, nodes, channels)
    """One a channel."""
    return [Kind.of(values[:, :, k]) for k in range(values.shape[2])]


def _rounded(x: np.ndarray, decimals: int) -> bool:
    """Whether every number has so many decimals, in the precision that it is held in."""
    scaled = x[np.isfinite(x)] * 10.0**decimals
    tolerance = 0.0 if decimals == 0 else 4 * np.finfo(x.dtype).eps
    return bool((np.abs(scaled - np.rint(scaled)) <= tolerance * np.abs(scaled)).all())


def _limit(distinct: np.ndarray, shares: np.ndarray) -> float | None:
    """The least of the distinct values, ascending, if it is a limit."""
    inside = shares[1 : 1 + BESIDE].max()
    of_few = len(distinct) <= HANDFUL and (len(distinct) == 2 or shares[0] >= THIN * shares[1])
    apart = distinct[0] == 0 or shares[0] >= FEWER * inside or of_few
    return float(distinct[0]) if shares[0] >= MANY and apart else None
