"""The calendar of a row, from its time: slot of the day, kind of day, and smooth features of both and of the year.

Times are taken as they stand in the data: the user's clock. There are no time zones here and no summer time; where the
clock was put forward or back, an hour is skipped or stands for two. What follows local habits (traffic, demand) wants
local times, what follows the sun rather the same time throughout.

A slot is as long as the interval between rows, five minutes at least (288 a day); rows that are a day or more apart
have one. Where an interval does not divide a day, slots are the longest that divide both. The kind of day is 0 from
Monday to Friday and 1 on Saturday and Sunday. The time of year counts only where rows span a year and a half or more:
of a single year, season and trend are one. Of times that are numbers, or absent, nothing is known: one slot, one kind,
no features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .series import Series

DAY, WEEK = 86_400, 7 * 86_400  # seconds
MOST_SLOTS = 288
YEARS = 1.5  # from which on the time of year counts
HARMONICS = 2  # of the day
YEARLY = 3  # harmonics of a mean over the year


@dataclass(frozen=True)
class Clock:
    """What can be told of a row by its time."""

    slots: int = 1  # of a day
    kinds: int = 1  # of days
    yearly: bool = False

    @classmethod
    def of(cls, series: Series) -> Clock:
        """The clock of a series, from its interval and how long it lasts."""
        if series.times is None or not isinstance(series.interval, np.timedelta64):
            return cls()
        second = np.timedelta64(1, "s")
        interval, span = float(series.interval / second), float((series.times.max() - series.times.min()) / second)
        common = math.gcd(max(1, round(interval)), DAY)
        slots = min(MOST_SLOTS, DAY // common) if interval < DAY or interval % DAY else 1
        return cls(slots, 1 if interval % WEEK == 0 else 2, span >= YEARS * 365.25 * DAY)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Clock:
        """From what ``to_dict`` made."""
        return cls(int(values["slots"]), int(values["kinds"]), bool(values["yearly"]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def slot(self, times: np.ndarray) -> np.ndarray:  # (rows,) from 0 up
        """The slot of the day."""
        return np.zeros(len(times), dtype=np.int64) if self.slots == 1 else (_day(times) * self.slots).astype(np.int64)

    def kind(self, times: np.ndarray) -> np.ndarray:  # (rows,) 0 or 1
        """Whether the day is a working day, or of a weekend."""
        if self.kinds == 1:
            return np.zeros(len(times), dtype=np.int64)
        return (self.day(times) >= 5).astype(np.int64)

    def day(self, times: np.ndarray) -> np.ndarray:  # (rows,) 0 to 6
        """The day of the week, Monday is 0; 0 throughout where rows are weeks apart."""
        if self.kinds == 1:
            return np.zeros(len(times), dtype=np.int64)
        return (times.astype("datetime64[D]").astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday

    def year(self, times: np.ndarray) -> np.ndarray:  # (rows, 2 YEARLY)
        """Waves of the time of year, nothing where it does not count."""
        if not self.yearly:
            return np.zeros((len(times), 0))
        return np.stack([wave for k in range(1, YEARLY + 1) for wave in _waves(k * _year(times))], axis=1)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        daily = (
            [f"{wave} {k} day" for k in range(1, HARMONICS + 1) for wave in ("sin", "cos")] if self.slots > 1 else []
        )
        return (*daily, *["weekend"] * (self.kinds > 1), *["sin year", "cos year"] * self.yearly)

    def features(self, times: np.ndarray) -> np.ndarray:  # (rows, features) float32, each from -1 to 1
        """Sines of the time of day, the weekend, and sines of the time of year, as far as they count."""
        columns = list[np.ndarray]()
        if self.slots > 1:
            columns += [wave for k in range(1, HARMONICS + 1) for wave in _waves(k * _day(times))]
        if self.kinds > 1:
            columns.append(self.kind(times))
        if self.yearly:
            columns += _waves(_year(times))
        return np.stack(columns, axis=1).astype(np.float32) if columns else np.zeros((len(times), 0), dtype=np.float32)


def _waves(turns: np.ndarray) -> list[np.ndarray]:
    return [np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)]


def _day(times: np.ndarray) -> np.ndarray:
    """The time of day, from 0 to 1, without 1."""
    return (times - times.astype("datetime64[D]")) / np.timedelta64(DAY, "s")


def _year(times: np.ndarray) -> np.ndarray:
    """The time of year, from 0 to 1, without 1; a leap year is as long as another."""
    start = times.astype("datetime64[Y]")
    return (times - start) / ((start + 1).astype("datetime64[s]") - start.astype("datetime64[s]"))
