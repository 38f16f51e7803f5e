"""Times that are written as text in a data frame's index, and more of them in the same hand.

2024-03-01 00:05, 2024-03-01T00:05:00Z, 2024-03-01T00:05+01:00: the pattern is the one that writes the times of the
index as they stand there. Where none does (milliseconds), times are written to the minute or as much finer as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import times as clock

if TYPE_CHECKING:
    from pandas import Index

DATE = re.compile(r"\s*[0-9]{4}-[0-9]{1,2}(-[0-9]|\s*$)")
CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H")
PATTERNS = ("%Y-%m-%d", "%Y-%m", *(f"%Y-%m-%d{mark}{form}" for mark in " T" for form in CLOCKS))


def are_written(index: Index) -> bool:
    """Whether labels are dates as text: if the first one is, all have to be."""
    return len(index) > 0 and isinstance(index[0], str) and DATE.match(index[0]) is not None


@dataclass(frozen=True)
class Written:
    """How a time is written: the pattern, and the offset from UTC behind it."""

    pattern: str  # empty: to the minute, or as much finer as times are
    zone: str = ""  # "Z", "+01:00", ... as it stands there

    @classmethod
    def as_in(cls, labels: Sequence[str] | Index) -> Written:
        """As the labels are, all of them alike."""
        import pandas

        match = re.search(clock.OFFSET, labels[0].strip())
        zone = match[1] if match else ""
        bare = [label.strip().removesuffix(zone) for label in labels]
        stamps = pandas.DatetimeIndex(pandas.to_datetime(pandas.Series(bare), format="ISO8601"))
        pattern = next((form for form in PATTERNS if list(stamps.strftime(form)) == bare), "")
        return cls(pattern, zone)

    def text(self, times: np.ndarray) -> Any:  # (rows,) datetime64, of UTC where there is a zone
        """Each time as text."""
        import pandas

        if self.zone not in ("", "Z"):
            times = times + np.timedelta64(pandas.Timestamp(f"2024-01-01T00:00{self.zone}").utcoffset())
        if not self.pattern:
            return [f"{text}{self.zone}" for text in clock.as_text(times)]
        return [f"{text}{self.zone}" for text in pandas.DatetimeIndex(times).strftime(self.pattern)]
