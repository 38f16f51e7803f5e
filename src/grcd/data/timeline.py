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
        refuse_interval(series, self.interval, where)

    def ahead(self, series: Series, horizon: int) -> np.ndarray | None:  # (horizon,)
        """The times of the rows after the last."""
        if series.times is None or self.interval is None:
            return None
        return series.times[-1] + np.arange(1, horizon + 1) * self.interval


def refuse_interval(series: Series, interval: np.timedelta64 | float | None, where: str) -> None:
    """Refuse rows that are not as far apart as those of training; None takes any."""
    if interval is None:
        return
    expected = f"rows every {readable(interval)}, as in training"
    if series.times is None:
        raise InputError(f"{where} without times", expected, "add a column `time`, an index of dates, or times=")
    dated = isinstance(interval, np.timedelta64)
    if (series.times.dtype.kind == "M") != dated:
        got, do = ("numbers", "dates") if dated else ("dates", "numbers")
        raise InputError(f"{where} with {got} as times", expected, f"write {do}, as in the training data")
    if series.interval is not None and not _same(series.interval, interval):
        raise InputError(
            f"{where} with rows every {readable(series.interval)}",
            expected,
            f"--every {readable(interval)} puts them on its clock and leaves gaps; or train a run on such rows",
        )


def _same(one: np.timedelta64 | float, other: np.timedelta64 | float) -> bool:
    return bool(one == other) if isinstance(one, np.timedelta64) else bool(np.isclose(one, other, rtol=1e-3, atol=0))
