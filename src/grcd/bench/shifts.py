"""Systematic shifts: numbers that are all on one side of the paper's, inside a band or not.

A band asks of each number by itself whether it is near enough: four numbers at 0.75 of the paper's are within 30 %, and
together a shift. Two questions are asked, both of logarithms of ratios, ours over the paper's.

A row, that is one network at several budgets: is the mean of its log ratios further from zero than seeds explain? The
variance of a mean over n seeds is sd^2 / n, of its logarithm (sd / mean)^2 / n; ours and the paper's add up. Budgets
share their networks, so their errors are taken as one and the same: their mean, not divided by the root of how
many there are. Degrees of freedom are Welch's.

A group, that is several networks: is the mean over networks further from zero than their spread explains (Student's t)?
And how likely is it that all are on one side by chance (sign test)?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from .measured import LEAST, Entry

LEVEL = 0.05  # of both tests
SMALLEST = 0.05  # a shift below this share is not called one, however sure
PAPER_SEEDS = 3  # that the paper's means and sd are of


@dataclass(frozen=True)
class Shift:
    """The mean of log ratios, how sure it is, and between which ratios it lies."""

    log: float
    p: float  # that it is chance: Student's t
    sign: float  # the same by the sign test, two-sided
    least: float  # ratio
    most: float
    units: int  # that were counted: cells of a row, networks of a group

    @property
    def ratio(self) -> float:
        """The geometric mean of the ratios."""
        return math.exp(self.log)

    @property
    def one_side(self) -> bool:
        """Whether all ratios are above one, or all below."""
        return self.least > 1 or self.most < 1

    @property
    def called(self) -> bool:
        """Whether it is a shift: all on one side, large enough to matter, and more than chance explains."""
        return self.one_side and abs(self.ratio - 1) >= SMALLEST and self.p < LEVEL


def log_ratio(entry: Entry) -> float:
    """Ours over the paper's; an aMMD near or below zero counts as the least that can be told from it."""
    assert entry.paper is not None
    return math.log(max(entry.mean, LEAST) / entry.paper[0])


def of_row(entries: Sequence[Entry]) -> Shift | None:
    """Of one network at several budgets; None if a seed's spread is not known."""
    entries = [entry for entry in entries if entry.paper and len(entry.values) > 1]
    if not entries:
        return None
    logs = [log_ratio(entry) for entry in entries]
    ours = np.mean([entry.sd / max(entry.mean, LEAST) / math.sqrt(len(entry.values)) for entry in entries])
    theirs = np.mean([(sd or 0.0) / mean for mean, sd in (entry.paper for entry in entries if entry.paper)])
    theirs /= math.sqrt(PAPER_SEEDS)
    seeds = min(len(entry.values) for entry in entries)
    p = _student(float(np.mean(logs)), *_welch(float(ours), seeds, float(theirs), PAPER_SEEDS))
    return _shift(logs, float(np.mean(logs)), p)


def of_group(networks: Sequence[Sequence[Entry]]) -> Shift | None:
    """Of several networks, the entries of each; None if there are fewer than two."""
    measured = [[entry for entry in entries if entry.paper and entry.values] for entries in networks]
    logs = [float(np.mean([log_ratio(entry) for entry in entries])) for entries in measured if entries]
    if len(logs) < 2:
        return None
    mean = float(np.mean(logs))
    return _shift(logs, mean, _student(mean, float(np.std(logs, ddof=1)) / math.sqrt(len(logs)), len(logs) - 1))


def _welch(one: float, n: int, other: float, m: int) -> tuple[float, float]:
    """The standard error of a difference of two means from those of each, and its degrees of freedom."""
    square = one**2 + other**2
    spread = one**4 / (n - 1) + other**4 / (m - 1)
    return math.sqrt(square), square**2 / spread if spread else n + m - 2


def _student(mean: float, error: float, freedom: float) -> float:
    """The two-sided p value of a mean with this standard error."""
    return float(2 * stdtr(freedom, -abs(mean) / error)) if error else float(mean == 0)


def _shift(logs: Sequence[float], mean: float, p: float) -> Shift:
    from scipy.stats import binomtest  # which is slow to load

    above = sum(log > 0 for log in logs)
    sign = float(binomtest(above, len(logs)).pvalue)
    return Shift(mean, p, sign, math.exp(min(logs)), math.exp(max(logs)), len(logs))
