"""Pieces of a series of which some readings are hidden, to be filled or foretold, and scored.

A piece is a stretch of rows. Hidden are readings of the series here and there (``hidden``), or the last rows of every
piece (``future``), whatever was read then. Scored is what is hidden, was recorded, lies in one of the ``new`` rows of
its piece, and is of the channel in question.

    covering     windows over the test rows, one after the other, or such that rows at their ends, of which less is
                 known, are answered by the next one
    ends         the series as it was at some moments: every piece ends there, with hidden readings of its own
    ahead        windows whose last rows are to be foretold
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.series import Series


@dataclass(frozen=True, eq=False)
class Pieces:
    """What is asked of a method."""

    series: Series  # with what is hidden in it; a method sees ``holed`` or ``seen``
    rows: np.ndarray  # (pieces, length) of the series
    hidden: np.ndarray | None = None  # (rows, nodes, channels) of bool
    future: int = 0
    new: np.ndarray | None = None  # (pieces, 2): the first of them, and that behind the last
    channel: int | None = None  # the one that is scored; None: all

    @classmethod
    def covering(
        cls, series: Series, hidden: np.ndarray, steps: int, margin: int = 0, channel: int | None = None
    ) -> Pieces:
        """Windows of so many steps over a series; ``hidden`` (rows, nodes, channels); ``margin``: see
        ``Series.covering``."""
        starts, new = series.covering(steps, margin)
        return cls(series, starts[:, None] + np.arange(steps), hidden, new=new, channel=channel)

    @classmethod
    def ends(cls, series: Series, stops: np.ndarray, length: int, hidden: np.ndarray) -> Pieces:
        """The ``length`` rows before each of ``stops``; ``hidden`` (pieces, length, nodes, channels)."""
        rows = stops[:, None] - length + np.arange(length)
        times = None if series.times is None else series.times[rows].ravel()
        borders = tuple(range(length, rows.size, length))
        apart = Series(series.values[rows.ravel()], times, borders, series.interval)
        return cls(apart, np.arange(rows.size).reshape(rows.shape), hidden.reshape(apart.values.shape))

    @classmethod
    def ahead(cls, series: Series, rows: np.ndarray, horizon: int, channel: int | None = None) -> Pieces:
        """Windows ``rows`` (windows, length) of a series, the last ``horizon`` of which are to be foretold."""
        whole = Series(series.values, series.times, every=series.interval)  # splits are no borders: all of it is past
        return cls(whole, rows, future=horizon, channel=channel)

    def every(self, count: int) -> Pieces:
        """One piece of so many, evenly spaced; a method is still given the whole series."""
        new = None if self.new is None else self.new[::count]
        return replace(self, rows=self.rows[::count], new=new)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def length(self) -> int:
        """Rows of a piece."""
        return int(self.rows.shape[1])

    @property
    def holed(self) -> Series:
        """The whole series without what is hidden here and there."""
        values = self.series.values if self.hidden is None else np.where(self.hidden, np.nan, self.series.values)
        return Series(values, self.series.times, self.series.borders, self.series.interval)

    def truth(self, some: np.ndarray) -> np.ndarray:  # (some pieces, length, nodes, channels)
        """What was read, NaN where nothing was."""
        return self.series.values[self.rows[some]]

    def seen(self, some: np.ndarray) -> np.ndarray:  # (some pieces, length, nodes, channels)
        """What a method may see of some pieces, NaN elsewhere."""
        values = self.truth(some)
        if self.hidden is not None:
            values = np.where(self.hidden[self.rows[some]], np.nan, values)
        if self.future:
            values[:, -self.future :] = np.nan
        return values

    def scored(self, some: np.ndarray) -> np.ndarray:  # (some pieces, length, nodes, channels) of bool
        """Where a reading is scored."""
        where = np.isnan(self.seen(some)) & ~np.isnan(self.truth(some))
        if self.new is not None:
            first, stop = self.new[some].T[..., None]  # (some, 1) each
            row = np.arange(self.length)
            where &= ((row >= first) & (row < stop))[:, :, None, None]
        if self.channel is not None:
            where &= np.arange(where.shape[3]) == self.channel
        return where

    def days(self) -> np.ndarray:  # (rows,) whole numbers
        """The day of every row of the series; without dates the row itself."""
        times = self.series.times
        if times is None or times.dtype.kind != "M":
            return np.arange(len(self.series))
        return times.astype("datetime64[D]").astype(np.int64)
