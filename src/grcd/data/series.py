"""A series: rows of readings in the order of time, and the windows that can be cut from it.

The **interval** is the commonest step between two times. A step of any other length is a break, and so is the border of
a file or of a split; a window never crosses one. Rows without times are as far apart as each other. Times of which many
steps differ are no series, but can be made one: ``regular`` puts every reading on the nearest tick of a clock, and
leaves gaps where there was none.

Windows **one after the other** cover every row of a stretch: what is left over at its end gets a window of its own that
ends with the stretch, of which only the last rows are new.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..core.errors import InputError, counted

REGULAR = 0.9  # share of all steps that are of one length, or else the times are irregular
MOST_ROWS = 10**8  # of a regular series
SHOWN = 4  # intervals in a message
MONTH = np.timedelta64(28, "D"), np.timedelta64(31, "D")
UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}  # of intervals, in seconds
CLOCK = (*(k * 60 for k in (1, 2, 5, 10, 15, 20, 30)), *(k * 3600 for k in (1, 2, 3, 4, 6, 8, 12, 24, 168)))
NEAR = 0.1  # of an interval of a clock


@dataclass(frozen=True, eq=False)
class Series:
    """Readings of nodes and channels at ascending times; ``borders`` are rows at which a file or a split begins."""

    values: np.ndarray  # (rows, nodes, channels), NaN where missing
    times: np.ndarray | None = None  # (rows,) datetime64 or numbers, ascending
    borders: tuple[int, ...] = ()
    every: np.timedelta64 | float | None = None  # the interval, where it is known from elsewhere

    @classmethod
    def of_signals(cls, x: np.ndarray, times: np.ndarray | None = None) -> Series:
        """Signals (rows, nodes) one after the other, at their times if those are a series."""
        timed = cls(x[:, :, None], times)
        ascending = times is not None and bool((times[1:] > times[:-1]).all())
        return timed if ascending and timed.regularity >= REGULAR else cls(timed.values)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def interval(self) -> np.timedelta64 | float | None:
        """The commonest step between times; None without times, or with one."""
        if self.every is not None:
            return self.every
        if self.times is None or len(self.times) < 2:
            return None
        steps, counts = np.unique(self.steps, return_counts=True)
        return steps[counts.argmax()]

    @cached_property
    def steps(self) -> np.ndarray:  # (rows - 1,)
        """From each time to the next; of numbers, without what rounding makes of them."""
        assert self.times is not None
        steps = np.diff(self.times)
        middle = np.median(np.abs(steps)) if steps.dtype.kind == "f" else 0.0
        return np.round(steps, 4 - math.floor(math.log10(middle))) if middle > 0 else steps

    @cached_property
    def breaks(self) -> np.ndarray:  # (breaks,)
        """Rows before which time does not go on as usual, borders included."""
        rows = np.array(self.borders, dtype=int)
        if self.interval is not None and self.times is not None:
            rows = np.append(rows, np.flatnonzero(self.steps != self.interval) + 1)
        return np.unique(rows[(rows > 0) & (rows < len(self))])

    @property
    def stretches(self) -> list[slice]:
        """Rows between breaks."""
        ends = [0, *self.breaks.tolist(), len(self)]
        return [slice(start, stop) for start, stop in pairwise(ends)]

    @property
    def regularity(self) -> float:
        """The share of all steps that are of one length."""
        if self.times is None or len(self.times) < 2:
            return 1.0
        counts = np.unique(self.steps, return_counts=True)[1]
        return counts.max() / counts.sum()

    def rows(self, part: slice) -> Series:
        """Some of the rows by themselves."""
        first, stop, _ = part.indices(len(self))
        borders = tuple(row - first for row in self.borders if first < row < stop)
        return Series(self.values[part], None if self.times is None else self.times[part], borders, self.interval)

    def picked(self, parts: Sequence[slice]) -> Series:
        """Some of the rows, part after part, with borders between parts that do not follow each other."""
        rows = np.concatenate([np.arange(len(self))[part] for part in parts])
        cut = (np.diff(rows) != 1) | np.isin(rows[1:], self.borders)
        times = None if self.times is None else self.times[rows]
        return Series(self.values[rows], times, tuple((np.flatnonzero(cut) + 1).tolist()), self.interval)

    def refuse_short(self, steps: int, which: str) -> None:
        """Refuse windows of so many steps, where no stretch is as long; ``which`` rows these are, for the message."""
        longest = max((s.stop - s.start for s in self.stretches), default=0)
        if longest < steps:
            most = counted(longest, f"{which} row")
            raise InputError(
                f"a window of {counted(steps, 'row')}, and {most} at most between two breaks",
                f"windows of up to {longest} rows" if longest > 1 else "several rows without a break",
                (f"--window {longest} or less, or more rows" if longest > 1 else "give more rows")
                + "; breaks in the times go with --every",
            )

    def refuse_irregular(self, where: str) -> None:
        """Refuse times that are no series."""
        if self.times is None or len(self.times) < 3:
            return
        if self.regularity < REGULAR:
            steps, counts = np.unique(self.steps, return_counts=True)
            common = [f"{readable(steps[k])} ({counts[k]:,} times)" for k in np.argsort(-counts)[:SHOWN]]
            raise InputError(
                f"irregular times in {where}: steps of {', '.join(common)}",
                "rows that are equally far apart, but for breaks",
                "number the rows in place of their dates: months are of several lengths"
                if steps.dtype.kind == "m" and (steps >= MONTH[0]).all() and (steps <= MONTH[1]).all()
                else f"--every {readable(_on_clock(self.steps))} puts readings on a clock and leaves gaps",
            )

    def starts(self, steps: int, stride: int = 1) -> np.ndarray:  # (windows,)
        """The first rows of all windows of so many steps, every ``stride`` rows."""
        rows = [np.arange(s.start, s.stop - steps + 1, stride) for s in self.stretches]
        return np.concatenate(rows).astype(int)

    def covering(self, steps: int, margin: int = 0) -> tuple[np.ndarray, np.ndarray]:  # (windows,), (windows, 2)
        """First rows of windows that cover every row, and which rows of each are new: from the first of two numbers to
        before the second.

        New rows follow each other, and have ``margin`` rows of their window before and behind them, but at the ends of
        a stretch; its last window ends with it. A stretch that is shorter than a window has none.
        """
        starts, new = list[int](), list[tuple[int, int]]()
        for s in self.stretches:
            done = s.start
            while done < s.stop and s.start + steps <= s.stop:
                start = min(max(done - margin, s.start), s.stop - steps)
                stop = start + steps - (margin if start + steps < s.stop else 0)
                starts, new = [*starts, start], [*new, (done - start, stop - start)]
                done = stop
        return np.array(starts, dtype=int), np.array(new, dtype=int).reshape(-1, 2)

    def windows(self, starts: np.ndarray, steps: int) -> np.ndarray:  # (windows, steps, nodes, channels)
        """The windows that begin at these rows."""
        return self.values[starts[:, None] + np.arange(steps)]

    def regular(self, every: np.timedelta64 | float) -> Series:
        """On a clock that ticks ``every`` so often, from the first time on: each reading at the nearest tick, the mean
        where there are several; gaps where there is none."""
        if self.times is None:
            raise InputError("rows without times", "times to put on a clock", "leave --every out")
        ticks = np.rint((self.times - self.times[0]) / every).astype(int)
        if not len(ticks) > 0 or ticks[-1] >= MOST_ROWS:
            do = "choose a longer interval"
            raise InputError(f"{ticks[-1] + 1:,} rows with one every {readable(every)}", f"at most {MOST_ROWS:,}", do)
        shape = (ticks[-1] + 1, *self.values.shape[1:])
        total, count, seen = np.zeros(shape), np.zeros(shape), ~np.isnan(self.values)
        np.add.at(total, ticks, np.where(seen, self.values, 0.0))
        np.add.at(count, ticks, seen)
        with np.errstate(invalid="ignore"):
            values = np.where(count > 0, total / count, np.nan)
        borders = tuple(int(ticks[row]) for row in self.borders if row < len(ticks))
        return Series(values, self.times[0] + np.arange(len(values)) * every, borders)

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:  # (lags,) -> (lags, channels)
        """Of readings that many rows apart, within stretches, over what was observed; the mean over nodes."""
        seen = (~np.isnan(self.values)).astype(float)
        count, x = np.maximum(seen.sum(axis=0), 1), np.where(seen > 0, self.values, 0.0)
        z = seen * (x - x.sum(axis=0) / count)
        variance = (z**2).sum(axis=0) / count
        stretch = np.searchsorted(self.breaks, np.arange(len(self)), side="right")
        correlations = []
        for lag in lags.tolist():
            early, late = slice(0, len(self) - lag), slice(lag, None)
            same = (stretch[late] == stretch[early])[:, None, None]
            pairs = (same * seen[late] * seen[early]).sum(axis=0)  # (nodes, channels)
            known = (pairs > 0) & (variance > 0)
            product = (same * z[late] * z[early]).sum(axis=0) / np.where(known, pairs * variance, np.inf)
            correlations.append(product.sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan))
        return np.clip(correlations, -1, 1)  # of few pairs they may come out beyond


def _on_clock(steps: np.ndarray) -> np.timedelta64 | float:
    """The commonest step; of dates that jitter, the interval of a clock that most of them are near."""
    values, counts = np.unique(steps, return_counts=True)
    if steps.dtype.kind == "m":
        seconds = steps / np.timedelta64(1, "s")
        near = [float((np.abs(seconds / each - 1) < NEAR).mean()) for each in CLOCK]
        if max(near) > max(0.5, counts.max() / len(steps)):
            return np.timedelta64(CLOCK[int(np.argmax(near))], "s")
    return values[counts.argmax()]


def readable(step: np.timedelta64 | float) -> str:
    """As ``5min``, ``1h``, ``1d``, or a number."""
    if not isinstance(step, np.timedelta64):
        return f"{step:g}"
    seconds = step / np.timedelta64(1, "s")
    unit, size = next(((u, s) for u, s in UNITS.items() if seconds >= s and seconds % s == 0), ("s", 1))
    return f"{seconds / size:g}{unit}"


def interval_of(text: str, times: np.ndarray | None) -> np.timedelta64 | float:
    """The interval ``5min``, ``1h``, ``1d``, ``30s`` between dates, or a number between numbers."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(text))
    try:
        number = float(match[1]) if match else 0.0
    except ValueError:
        number = 0.0
    dated = times is None or times.dtype.kind == "M"
    unit = match[2] if match else ""
    if not 0 < number < float("inf") or unit not in (UNITS if dated else [""]):
        expected = "a number and d, h, min or s: 5min" if dated else "a number, as the times are"
        raise InputError(f"--every {text}", expected, "give the interval between two rows so")
    return np.timedelta64(round(number * UNITS[unit] * 10**9), "ns") if dated else number
