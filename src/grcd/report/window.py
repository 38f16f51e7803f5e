"""How many rows a window has that a training takes, if nobody says: the inspection says what the training will decide.

What correlations among the training rows suggest (see ``in_time``) is taken if validation rows gain by it (see
``training/past``); else every row is taken by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data.series_dataset import SeriesDataset
from ..training import past
from . import in_time

READINGS = 1 << 18  # of a window, at most


@dataclass(frozen=True)
class Window:
    """Rows of a window, and why."""

    steps: int
    tried: int  # what training rows suggest
    gain: float  # nats that a validation reading gains by it
    wide: bool = False  # whether two rows are more readings than are tried

    @classmethod
    def of(cls, data: SeriesDataset) -> Window:
        """As a training of these data decides."""
        train, val = data.part("train"), data.part("val")
        most = READINGS // (len(data.graph) * len(data.channels))
        most = min(most, max((s.stop - s.start for s in val.stretches), default=1))
        tried = max(1, min(in_time.suggested(train), most))
        gain = past.gain(train, val, tried) if tried > 1 else 0.0
        wide = 2 * len(data.graph) * len(data.channels) > in_time.MOST
        return cls(tried if gain > 0 else 1, tried, gain, wide)

    @property
    def why(self) -> str:
        """In words."""
        if self.steps > 1:
            return f"a validation reading gains {self.gain:.2f} nats by time"
        if self.wide:
            return "of so many columns no window is tried by itself; --window T takes one"
        if self.tried > 1:
            return "validation rows gain nothing by the past or the calendar"
        return "a row says little of the next one"
