"""When the rows of a series are: the interval between them, and stretches without a break; as a run keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import InputError
from .series import Series, readable

Time = np.datetime64 | float


@dataclass(frozen=True)
class Timeline:
    """Of rows with dates, with numbers as times, or without times (interval None)."""

    interval: np.timedelta64 | float | None
    starts: tuple[Time, ...]  # the first time of each stretch; row numbers where there are no times
    lengths: tuple[int, ...]  # rows of each

    @classmethod
    def of(cls, series: Series) -> Timeline:
        stretches = series.stretches
        first = [float(s.start) if series.times is None else series.times[s.start] for s in stretches]
        return cls(series.interval, tuple(first), tuple(s.stop - s.start for s in stretches))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Timeline:
        """From what ``to_dict`` made."""
        interval, starts, lengths = values["interval"], values["starts"], tuple(map(int, values["lengths"]))
        if values["dated"]:
            step = None if interval is None else np.timedelta64(int(interval), "ns")
            return cls(step, tuple(np.datetime64(int(start), "ns") for start in starts), lengths)
        return cls(None if interval is None else float(interval), tuple(map(float, starts)), lengths)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; dates in nanoseconds."""
        starts, interval = np.array(self.starts), self.interval
        if self.dated:
            starts = starts.astype("datetime64[ns]").astype(int)
        if isinstance(interval, np.timedelta64):
            interval = int(interval.astype("timedelta64[ns]").astype(int))
        step = interval if interval is None or isinstance(interval, int) else float(interval)
        return {"dated": self.dated, "interval": step, "starts": starts.tolist(), "lengths": [*self.lengths]}

    @property
    def dated(self) -> bool:
        return isinstance(self.starts[0], np.datetime64)

    def windows(self, steps: int) -> np.ndarray:  # (stretches,)
        """How many windows of so many steps each stretch has."""
        return np.maximum(0, np.array(self.lengths) - steps + 1)

    def times(self, number: np.ndarray, steps: int) -> np.ndarray | None:  # (windows,) -> (windows, steps)
        """Of windows by number, counted through all stretches; None without times."""
        if self.interval is None:
            return None
        ends = np.cumsum(self.windows(steps))
        stretch = np.searchsorted(ends, number, side="right")
        within = number - np.append(0, ends)[stretch]
        place = within[:, None] + np.arange(steps)
        return np.array(self.starts)[stretch][:, None] + place * self.interval

    def row(self, number: int, steps: int) -> int:
        """The first row of a window by number, where there are no times."""
        ends = np.cumsum(self.windows(steps))
        stretch = int(np.searchsorted(ends, number, side="right"))
        return int(float(self.starts[stretch])) + number - int(np.append(0, ends)[stretch])

    def starting(self, start: Any, steps: int) -> np.ndarray:  # (steps,)
        """The times of a window that starts then: a date, or a number where times are numbers."""
        try:
            if self.interval is None:
                raise ValueError
            first = np.datetime64(start, "ns") if self.dated else np.float64(start)
            if np.isnat(first) if self.dated else not np.isfinite(first):
                raise ValueError
        except (TypeError, ValueError):
            kind = "a date, as 2024-05-01 or 2024-05-01T08:00" if self.dated else "a number, as the times are"
            kind = "no start: the rows of this run have no times" if self.interval is None else kind
            raise InputError(
                f"start = {start!r}", kind, "leave it out: times are drawn from the training rows"
            ) from None
        return np.asarray(first) + np.arange(steps) * np.asarray(self.interval)

    def refuse_other(self, series: Series, where: str = "the rows") -> None:
        """Refuse rows that are further apart than those of this timeline, or nearer, or of another kind of time."""
        if self.interval is None:
            return
        if series.times is None:
            do = "give times: a column of dates, an index of dates, or times="
            raise InputError(
                f"{where} without times", f"times, as in training: a row every {readable(self.interval)}", do
            )
        if (series.times.dtype.kind == "M") != self.dated:
            expected = "dates" if self.dated else "numbers"
            raise InputError(f"{where} with times of another kind", f"{expected}, as in training", "write times alike")
        other = series.interval
        if other is not None and not _same(other, self.interval):
            do = f"--every {readable(self.interval)} puts rows on the clock of the run and leaves gaps"
            raise InputError(
                f"{where} with a row every {readable(other)}",
                f"one every {readable(self.interval)}, as in training",
                do,
            )

    def ahead(self, series: Series, horizon: int) -> np.ndarray | None:  # (horizon,)
        """The times of the rows after the last."""
        if series.times is None or self.interval is None:
            return None
        return series.times[-1] + np.arange(1, horizon + 1) * self.interval


def _same(a: np.timedelta64 | float, b: np.timedelta64 | float) -> bool:
    return bool(a == b) if isinstance(a, np.timedelta64) else bool(np.isclose(float(a), float(b), rtol=1e-6))
