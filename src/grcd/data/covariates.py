"""Covariates: numbers that are known of every row, of those to come too. Holidays, the weather forecast, prices.

A file of covariates is a table like one of readings: one column a covariate, and a column of times if there is one. All
nodes have the same; what differs between them goes into a column each.

Which number a row has:

- with times: the last one at or before the time of the row, as long as it holds. A number holds until the next, and for
  one interval of the table at most: numbers by day serve rows of 5 minutes, and the last day lasts for 24 hours. Months
  and years, which are not equally long, hold for the longest of them.
- without times: the one in the same place. The first row of the table belongs to the first row that was trained on.

A number that is missing inside, and a row that falls into a hole between times, is not known: it counts as the mean, so
that it says nothing. Before a covariate's first number and after its last nothing may be asked. A number beyond those
of the training rows counts as the nearest of them: what lies further was never seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, some
from . import times as clock
from .formats.signals import read_signals
from .frames import dates_of
from .notes import Note
from .series import REGULAR, SHOWN, readable

if TYPE_CHECKING:
    from pandas import DataFrame

ALIKE = 0.12  # how much steps of one length may differ from their median: February among months
ROUNDING = 1e-6  # of an interval, by which times that are numbers may be off


@dataclass(frozen=True, eq=False)
class Covariates:
    """A table of covariates, rows in the order of time."""

    names: tuple[str, ...]
    times: np.ndarray | None  # (rows,) datetime64[ns] or numbers, ascending
    values: np.ndarray  # (rows, covariates) float64, NaN where not known
    where: str = "the covariates"  # a file, for messages
    notes: tuple[Note, ...] = ()  # what was done on reading that the user should know

    def __post_init__(self) -> None:
        self._refuse_values()
        _ = self.holds  # refuses irregular times

    @classmethod
    def read(cls, file: str | Path) -> Covariates:
        """From a file of any format that readings may have."""
        table = read_signals(file)
        names = table.node_ids or _numbered(table.values.shape[1])
        return cls(names, table.times, table.values.astype(np.float64), str(file), table.notes)._noted()

    @classmethod
    def of(
        cls,
        table: DataFrame | ArrayLike,
        names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        where: str = "the covariates",
    ) -> Covariates:
        """From a data frame, whose index has the times if it has dates, or from an array (rows, covariates)."""
        index, columns = getattr(table, "index", None), getattr(table, "columns", None)
        try:
            values = np.array(table, dtype=np.float64)
        except (TypeError, ValueError):
            do = "times go into the index; write 0 and 1 for no and yes"
            raise InputError(f"{where} with cells that are not numbers", "numbers, or gaps", do) from None
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise InputError(f"{where} of shape {values.shape}", "(rows, covariates)", "one column a covariate")
        if names is None:
            names = _numbered(values.shape[1]) if columns is None else [str(name) for name in columns]
        stamps = clock.parsed(times, where) if times is not None else None if index is None else dates_of(index)
        if stamps is not None:
            if stamps.shape != (len(values),):
                raise InputError(f"{stamps.shape} times for {len(values)} rows of {where}", "one a row", "add them")
            order, stamps = clock.in_order(stamps, where)
            values = values if order is None else values[order]
        return cls(tuple(names), stamps, values, where)._noted()

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def holds(self) -> np.timedelta64 | float | None:
        """For how long a number holds at most; None without times."""
        if self.times is None:
            return None
        if len(self.times) < 2:
            raise InputError(f"{self.where} at a single time", "two rows at the least", "give a row for every interval")
        steps = np.diff(self.times)
        kinds, counts = np.unique(steps, return_counts=True)
        middle = np.median(steps) if steps.dtype.kind == "f" else np.sort(steps)[len(steps) // 2]
        if (np.abs(steps - middle) <= ALIKE * middle).all():
            return steps.max()
        if counts.max() < REGULAR * counts.sum():
            common = [f"{readable(kinds[k])} ({counts[k]:,} times)" for k in np.argsort(-counts)[:SHOWN]]
            raise InputError(
                f"irregular times in {self.where}: steps of {', '.join(common)}",
                "rows that are equally far apart, but for holes",
                f"write a row for every {readable(kinds[counts.argmax()])}, also where a covariate is 0",
            )
        return kinds[counts.argmax()]

    def named(self, names: Sequence[str]) -> Covariates:
        """These covariates alone, in this order."""
        if absent := [name for name in names if name not in self.names]:
            raise InputError(
                f"{self.where} without {some(absent)}", f"the covariates {some(names)}", "add a column for each"
            )
        places = [self.names.index(name) for name in names]
        return replace(self, names=tuple(names), values=self.values[:, places], notes=())

    def at(self, times: np.ndarray | None, rows: int, first: int = 0) -> np.ndarray:  # (rows, covariates)
        """The covariates of ``rows`` rows at these times, or from row ``first`` on where one of both has no times; NaN
        where not known inside."""
        if self.times is None:
            return self._by_number(rows, first)
        if times is None:
            raise InputError(
                f"{self.where} with times, for rows without",
                "times in both, or one row of covariates for every row in turn",
                "give the readings their times, or leave out those of the covariates",
            )
        if (times.dtype.kind == "M") != (self.times.dtype.kind == "M"):
            dates, numbers = ("the rows", self.where) if times.dtype.kind == "M" else (self.where, "the rows")
            raise InputError(
                f"dates in {dates} and numbers in {numbers}", "dates in both, or numbers in both", "write them alike"
            )
        return self._by_time(times)

    def _by_number(self, rows: int, first: int) -> np.ndarray:
        known = self._known
        for name, start, stop in zip(self.names, *known, strict=True):
            if first < start or first + rows > stop:
                raise InputError(
                    f"{name!r} in {self.where} from row {start + 1:,} to row {stop:,}",
                    f"a number from row {first + 1:,} to row {first + rows:,}",
                    "give it further, or forecast fewer rows" if first >= start else "give it from there on",
                )
        return self.values[first : first + rows]

    def _by_time(self, times: np.ndarray) -> np.ndarray:
        assert self.times is not None
        assert self.holds is not None
        slack = self.holds * ROUNDING if self.times.dtype.kind == "f" or times.dtype.kind == "f" else self.holds * 0
        place = np.searchsorted(self.times, times + slack, side="right") - 1  # the last at or before
        if len(times):
            self._refuse_outside(times, slack)
        place = place.clip(min=0)
        fresh = times - self.times[place] < self.holds
        return np.where(fresh[:, None], self.values[place], np.nan)

    def _refuse_outside(self, times: np.ndarray, slack: np.timedelta64 | float) -> None:
        """Rows before a covariate's first number, or after its last one has ceased to hold."""
        assert self.times is not None
        assert self.holds is not None
        begin, end = times.min(), times.max()
        for name, start, stop in zip(self.names, *self._known, strict=True):
            low, high = self.times[start], self.times[stop - 1]
            if begin + slack < low:
                raise InputError(
                    f"{name!r} in {self.where} from {_text(low)} on",
                    f"a number from {_text(begin)} on, where the rows begin",
                    "give it from there on, or leave out the rows before",
                )
            if end >= high + self.holds:
                raise InputError(
                    f"{name!r} in {self.where} to {_text(high)}, by {readable(self.holds)}",
                    f"a number to {_text(end)}, where the rows end",
                    "give it further, or forecast fewer rows",
                )

    @cached_property
    def _known(self) -> tuple[np.ndarray, np.ndarray]:  # two of (covariates,)
        """The row of the first number of each covariate, and the one after its last."""
        seen = ~np.isnan(self.values)
        return seen.argmax(axis=0), len(seen) - seen[::-1].argmax(axis=0)

    def _refuse_values(self) -> None:
        rows, count = self.values.shape
        if not rows or not count:
            raise InputError(f"{rows} rows of {count} covariates in {self.where}", "one or more of each", "add them")
        if len(self.names) != count or len({*self.names}) < count:
            raise InputError(
                f"names {some(self.names)} for {count} columns of {self.where}", "one a column, each once", "rename"
            )
        if np.isinf(self.values).any():
            column = self.names[int(np.isinf(self.values).any(axis=0).argmax())]
            raise InputError(f"infinite numbers in {column!r} of {self.where}", "finite ones", "correct them")
        if (empty := np.isnan(self.values).all(axis=0)).any():
            names = [name for name, none in zip(self.names, empty, strict=True) if none]
            raise InputError(f"no number at all in {some(names)} of {self.where}", "some numbers", "leave it out")

    def _noted(self) -> Covariates:
        """With a note for every covariate that is not known throughout."""
        gaps = [
            f"{name} ({count:,})"
            for name, column, start, stop in zip(self.names, self.values.T, *self._known, strict=True)
            if (count := int(np.isnan(column[start:stop]).sum()))
        ]
        if not gaps:
            return self
        note = Note(
            f"numbers missing in {self.where}: {some(gaps)}", "there a covariate says nothing; write 0 if 0 is meant"
        )
        return replace(self, notes=(*self.notes, note))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"covariate {k + 1}" for k in range(count))


def _text(time: np.generic) -> str:
    return str(clock.as_text(np.array([time]))[0])
