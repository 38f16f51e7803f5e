"""Generated signals beside those of the run's own reference: does the network bring them near, or did that?

Held-out rows are cut into a few parts, one after the other, and both are compared with each. What the network gains is
the difference of their aMMD over all rows; what chance makes of it is the spread of the differences between parts, by
Student's t. Fewer than ``LEAST`` held-out rows say nothing. A run without a network has nothing to be put beside its
reference, which is all it has: that is said, and the floor is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ..data import Dataset
from ..data.series_dataset import SeriesDataset
from ..graphs.space import SignalSpace
from ..metrics.chance import chance
from . import windows
from .ammd import Scores, ammd, held_out

LEAST, PART, PARTS = 20, 10, 8  # held-out signals, those of a part, and parts at most


def alone(rows: int, what: str) -> str:
    """Of a run without a network, in words."""
    text = "This run uses no network: what it generates is its reference's, and only the floor is beside it"
    few = f"; {rows:,} held-out {what}: nothing can be said of how near generated ones are."
    return f"{text}, against {rows:,} held-out {what}." if rows >= LEAST else text + few


@dataclass(frozen=True)
class Beside:
    """The scores of the reference's signals, and by how much others are nearer."""

    scores: Scores
    gain: float
    noise: float  # infinite where nothing can be said
    rows: int  # held out
    what: str = "signals"

    @property
    def ahead(self) -> int:
        """1 where generated signals are nearer by more than chance, -1 where the reference's are, else 0."""
        return 0 if abs(self.gain) <= self.noise else int(np.sign(self.gain))

    @property
    def silent(self) -> bool:
        """Whether there are too few rows to say anything."""
        return not math.isfinite(self.noise)

    def words(self) -> str:
        """In a sentence."""
        held = f"{self.rows:,} held-out {self.what}"
        if self.silent:
            return f"{held}: nothing can be said of how near generated ones are."
        if self.ahead:
            which = "Nearer to" if self.ahead > 0 else "Further from"
            return f"{which} {held} than those of this run's own reference, which has no network."
        return f"As near to {held} as those of this run's own reference, which has no network, as far as can be told."

    def to_dict(self) -> dict[str, Any]:
        """For JSON; no noise where nothing can be said."""
        known = {"gain": self.gain, "noise": None if self.silent else self.noise, "held_out": self.rows}
        return self.scores.to_dict() | known


def of_signals(
    signals: np.ndarray, reference: np.ndarray, data: Dataset, split: str = "test", device: torch.device | str = "cpu"
) -> Beside:
    """Of signals and of the reference's (samples, nodes), both in the data's units, against a split."""
    y, seen = held_out(data, split, False)

    def score(x: np.ndarray, rows: slice) -> Scores:
        mask = None if seen is None else seen[rows]
        return ammd(data.normalizer.apply(x), y[rows], data.graph, device, (None, mask))

    return _compared(signals, reference, len(y), score, "signals")


def of_windows(
    generated: np.ndarray,
    reference: np.ndarray,
    data: SeriesDataset,
    split: str = "test",
    device: torch.device | str = "cpu",
) -> Beside:
    """The same of windows (samples, steps, nodes[, channels]), against those of a split that do not overlap."""
    x, other = (windows.checked(each, data) for each in (generated, reference))
    space = SignalSpace(data.graph, x.shape[1], len(data.channels))
    graph, y = windows.product(space), windows.held_out(data, split, space.steps)

    def score(x: np.ndarray, rows: slice) -> Scores:
        z = windows.scored(x, data)
        return ammd(z, y[rows], graph, device, (~np.isnan(z), ~np.isnan(y[rows])))

    return _compared(x, other, len(y), score, "windows")


def _compared(
    x: np.ndarray, reference: np.ndarray, rows: int, score: Callable[[np.ndarray, slice], Scores], what: str
) -> Beside:
    everything = slice(0, rows)
    own = score(reference, everything)
    gain = own.ammd - score(x, everything).ammd
    count = min(PARTS, rows // PART)
    if rows < LEAST:
        return Beside(own, gain, math.inf, rows, what)
    edges = np.linspace(0, rows, count + 1).astype(int).tolist()
    parts = [slice(a, b) for a, b in pairwise(edges)]
    gains = [score(reference, part).ammd - score(x, part).ammd for part in parts]
    return Beside(own, gain, chance(np.array(gains), np.arange(count)), rows, what)
