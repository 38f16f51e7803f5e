"""Times that are written as text, in a data frame's index or a table's column, and more of them in the same hand.

2024-03-01 00:05, 2024-03-01T00:05:00Z, 2024-03-01T00:05+01:00: the pattern is the one that writes the times of the
index as they stand there. Where none does (2024-3-1), or where it would lose something of other times, they are
written to the minute or as much finer as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.rows import evenly
from . import times as clock

if TYPE_CHECKING:
    from pandas import DatetimeIndex, Index

DATE = re.compile(r"\s*[0-9]{4}-[0-9]{1,2}(-[0-9]|\s*$)")
CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S.%3f", "%H")  # %3f: milliseconds
LOOKED_AT = 500  # labels of a long column: its hand shows in some of them
PATTERNS = ("%Y-%m-%d", "%Y-%m", *(f"%Y-%m-%d{mark}{form}" for mark in " T" for form in CLOCKS))


def are_written(index: Index | np.ndarray) -> bool:
    """Whether labels are dates as text: if the first one is, all have to be."""
    return len(index) > 0 and isinstance(index[0], str) and DATE.match(index[0]) is not None


@dataclass(frozen=True)
class Written:
    """How a time is written: the pattern, and the offset from UTC behind it."""

    pattern: str  # empty: to the minute, or as much finer as times are
    zone: str = ""  # "Z", "+01:00", ... as it stands there

    @classmethod
    def as_in(cls, labels: Sequence[str] | Index | np.ndarray) -> Written:
        """As the labels are, all of them alike."""
        import pandas

        labels = [labels[row] for row in evenly(len(labels), LOOKED_AT)]
        match = re.search(clock.OFFSET, labels[0].strip())
        zone = match[1] if match else ""
        if not all(label.strip().endswith(zone) for label in labels):  # Z here, +00:00 there
            return cls("")
        bare = [label.strip().removesuffix(zone) for label in labels]
        stamps = pandas.DatetimeIndex(pandas.to_datetime(pandas.Series(bare), format="ISO8601"))
        pattern = next((form for form in PATTERNS if list(_text(stamps, form)) == bare), "")
        return cls(pattern, zone)

    def text(self, times: np.ndarray) -> Any:  # (rows,) datetime64, of UTC where there is a zone
        """Each time as text."""
        import pandas

        if self.zone not in ("", "Z"):
            times = times + np.timedelta64(pandas.Timestamp(f"2024-01-01T00:00{self.zone}").utcoffset())
        index = pandas.DatetimeIndex(times)
        written = _text(index, self.pattern)
        if not self.pattern or (pandas.to_datetime(written, format=_plain(self.pattern)) != index).any():
            written = clock.as_text(times)
        return [f"{text}{self.zone}" for text in written]


@dataclass(frozen=True)
class TimeColumn:
    """A table's column of times: what it is called, and how they are written there, if they are dates as text; and what
    the others of a long table are called."""

    name: str = "time"
    written: Written | None = None
    node: str = "node"
    variable: str = "variable"
    value: str = "value"

    @classmethod
    def of(cls, name: str, cells: Any, **others: str) -> TimeColumn:
        """As a file has it."""
        return cls(name, Written.as_in(cells) if are_written(cells) else None, **others)

    def as_list(self) -> list[str] | None:
        """How times are written, for JSON."""
        return None if self.written is None else [self.written.pattern, self.written.zone]

    def column(self, times: np.ndarray) -> dict[str, Any]:
        """For a table: its name, and times as text."""
        return {self.name: self.text(times)}

    def text(self, times: np.ndarray) -> Any:
        """Times as they would stand there; numbers stay as they are."""
        if self.written is None or not np.issubdtype(np.asarray(times).dtype, np.datetime64):
            return clock.as_text(times)
        return self.written.text(times)


PLAIN = TimeColumn()  # where nothing else is known


def _text(index: DatetimeIndex, pattern: str) -> Index:
    """Dates by a pattern."""
    text = index.strftime(_plain(pattern))
    return text.str[:-3] if pattern.endswith("%3f") else text


def _plain(pattern: str) -> str:
    """As ``strftime`` knows it, which has no milliseconds."""
    return pattern.replace("%3f", "%f")
