"""Intervals of scores over test weeks: a circular block bootstrap.

Errors of one day are alike, and so are those of one week; what differs from week to week is chance. So weeks are drawn,
not readings: blocks of ``length`` days in a row, which begin at any day, until as many days are drawn as there are (the
last block is cut off there), again and again. Blocks do not run from one stretch of days into the next, but after the
last day of a stretch comes its first, so that all days are drawn as often; a stretch shorter than a block is gone
through more than once. A score is a ratio of sums over days (errors over readings, losses over sizes), and is
taken of the drawn days; the difference of two methods is taken of the same days, since a hard week is hard for both.

Of blocks of one day the mean of a statistic has the sd of its days over the root of how many there are; of longer ones
the sd of the means of all blocks over the root of how many are drawn. Few days (METR-LA tests on 24) make for
rough intervals: three or four weeks are three or four numbers. Of fewer than two weeks (``LEAST`` days; Molene tests on
7) there are no intervals: weeks that differ are what they are made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.streams import Stream

WEEK, TIMES = 7, 2000
LEAST = 2 * WEEK  # days
DIGITS = 7  # of sums that are written down


class Interval(NamedTuple):
    """A number, and where 95 % of its bootstrapped ones lie."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether 0 lies outside."""
        return self.low > 0 or self.high < 0


def by_day(times: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Sums by day of ``values``, each (rows,), at ``times`` (rows,) that are dates; rounded, for a file."""
    days, number = np.unique(times.astype("datetime64[D]").astype(np.int64), return_inverse=True)
    sums = {name: np.bincount(number, each, len(days)) for name, each in values.items()}
    return {name: [rounded(total) for total in each.tolist()] for name, each in ({"day": days} | sums).items()}


def rounded(value: float) -> float:
    """As it is written down."""
    return float(f"{value:.{DIGITS}g}")


def drawn_days(
    days: np.ndarray, length: int = WEEK, times: int = TIMES, seed: int = 0
) -> np.ndarray:  # (days,) ascending -> (times, days)
    """Places of days among them, in blocks."""
    count = len(days)
    length = max(1, min(length, count))
    _, first, stretch, size = np.unique(
        np.cumsum(np.diff(days, prepend=days[:1]) > 1), return_index=True, return_inverse=True, return_counts=True
    )
    first, size = first[stretch], size[stretch]  # of each day's stretch
    blocks = -(-count // length)
    start = Stream(seed, "bootstrap").integers(0, times * blocks, count).view(times, blocks, 1).numpy()
    drawn = first[start] + (start - first[start] + np.arange(length)) % size[start]
    return drawn.reshape(times, -1)[:, :count]


def ratio(
    days: np.ndarray, above: np.ndarray, below: np.ndarray, length: int = WEEK, times: int = TIMES, seed: int = 0
) -> Interval:
    """Of ``sum(above) / sum(below)``, both (days,)."""
    drawn = drawn_days(days, length, times, seed)
    return _interval(above.sum() / below.sum(), above[drawn].sum(1) / below[drawn].sum(1))


def difference(
    days: np.ndarray,
    one: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    length: int = WEEK,
    times: int = TIMES,
    seed: int = 0,
) -> Interval:
    """Of two such ratios over the same days: the first less the second."""
    drawn = drawn_days(days, length, times, seed)
    values = (above[drawn].sum(1) / below[drawn].sum(1) for above, below in (one, other))
    apart = next(values) - next(values)
    return _interval(one[0].sum() / one[1].sum() - other[0].sum() / other[1].sum(), apart)


def _interval(value: float, bootstrapped: np.ndarray) -> Interval:
    low, high = np.quantile(bootstrapped, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))
