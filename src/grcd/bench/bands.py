"""Our numbers beside the paper's, and when they count as the same.

The band of a number is the paper's alone: a share of what it prints, or two of the standard deviations that it prints,
whichever is wider. Our own spread never widens it: a method that varies more here than there is not thereby nearer.
A factor between two printed numbers has a band of its own: the relative variances of both add up, as if they were
independent, and two of their roots are taken in logarithms, for a factor is as far from its half as from its double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import InputError
from . import suites
from .measured import Entry
from .tables.ammd import Key, collected, printed

SEEDS = tuple(range(10))  # that are looked for: what was measured counts, however many seeds that are
REPRODUCED, DIFFERS, OPEN = "reproduced", "differs", "not measured"


@dataclass(frozen=True)
class Band:
    """What counts as the same number: within a share of the paper's, or so many of its sd, whichever is wider."""

    share: float
    sds: float = 2.0

    def around(self, mean: float, sd: float | None) -> tuple[float, float]:
        """Its two ends about a printed mean and standard deviation."""
        half = max(self.share * abs(mean), self.sds * (sd or 0.0))
        return mean - half, mean + half

    def holds(self, entry: Entry) -> bool | None:
        """Whether our mean is in the paper's band; None if either number is not there."""
        if entry.paper is None or not entry.values:
            return None
        low, high = self.around(*entry.paper)
        return low <= entry.mean <= high

    def covers(self, ours: float, mean: float, sd: float | None = None) -> bool:
        """Whether a number of ours is in the band about a printed one."""
        low, high = self.around(mean, sd)
        return low <= ours <= high


TIGHT, WIDE = Band(0.2), Band(0.3)


@dataclass(frozen=True)
class Factor:
    """How many times one number another is: ours, the paper's, and the standard deviation of the latter's logarithm."""

    ours: float
    paper: float
    spread: float = 0.0

    def holds(self, band: Band = TIGHT) -> bool | None:
        """Whether ours is in the band of the paper's; None without ours."""
        if math.isnan(self.ours):
            return None
        wide = math.exp(band.sds * self.spread)
        low, high = band.around(self.paper, None)
        return min(low, self.paper / wide) <= self.ours <= max(high, self.paper * wide)

    def by_spread(self, band: Band = TIGHT) -> bool:
        """Whether ours is in the band for the sd of what the paper prints alone: it is out of the share."""
        return self.holds(band) is True and not band.covers(self.ours, self.paper)


def factor(above: Entry, below: Entry) -> Factor:
    """Of two entries that the paper prints; ours is NaN if one was not measured."""
    if above.paper is None or below.paper is None:
        raise InputError("a factor of numbers that the paper does not print", "two that it does", "choose its rows")
    (top, top_sd), (bottom, bottom_sd) = above.paper, below.paper
    spread = math.hypot((top_sd or 0.0) / top, (bottom_sd or 0.0) / bottom)
    return Factor(above.mean / below.mean, top / bottom, spread)


def verdict(parts: Sequence[bool | None]) -> str:
    """Of a claim in parts, each of which holds, does not, or was not measured."""
    known = [part for part in parts if part is not None]
    if not known:
        return OPEN
    held = sum(known)
    text = REPRODUCED if held == len(known) else DIFFERS if held == 0 else f"in part, {held} of {len(known)}"
    return text if len(known) == len(parts) else f"{text}; {len(parts) - len(known)} {OPEN}"


def beside_paper(suite: str, results: Path, seeds: Sequence[int] = SEEDS) -> dict[Key, Entry]:
    """Every number of the paper that belongs to a suite, ours beside it: none if it was not measured."""
    settings = tuple(dict.fromkeys(setting for setting, _, _ in printed(suite)))
    try:
        ours = collected(suite, suites.cells(suite, settings, seeds), results)
    except InputError:  # nothing of the suite was measured
        ours = {}
    return {key: ours.get(key, Entry(paper=value)) for key, value in printed(suite).items()}
