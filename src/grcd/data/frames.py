"""Data frames in and out: rows by their index, columns by their names, and back in the order they came in.

A column is a node, or with several channels a pair (node, channel); a pair that is not there is a gap throughout. An
index of dates, or of dates written as text (ISO 8601), orders the rows, with a time zone by UTC; any other index is a
label, and rows are in order as they are. What comes out has the index and the columns that went in; quantiles are one
level more of the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InputError, some
from . import times as clock
from .notes import Note, warn
from .series import Series
from .written_times import Written, are_written

if TYPE_CHECKING:
    from pandas import DataFrame, Index
    from pandas import Series as Column


@dataclass(frozen=True, eq=False)
class Frame:
    """Readings of a data frame in the model's order, and what it takes to make one like it."""

    values: np.ndarray  # (rows, nodes, channels) float64, in the order of time, NaN where missing
    times: np.ndarray | None  # (rows,) datetime64[ns], ascending; None where the index has no dates
    index: Index  # as it came
    columns: Index  # as they came, and those that were lacking
    order: np.ndarray  # (rows,) which row of the frame each row is
    place: np.ndarray  # (columns,) each column's place among nodes x channels

    filled = True  # it comes back as one table, unless draws are asked for

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        nodes: Sequence[str],
        channels: Sequence[str] = ("",),
        absent: bool = False,
        timed: bool = True,
        lacking: Container[tuple[str, str]] = (),
    ) -> Frame:
        """A frame with a column for every node, or for pairs (node, channel) where there are several channels.

        ``absent``   a node, or one of several channels of it, without a column has a gap everywhere, and a column in
                     what comes out; but for those ``lacking`` (node, channel), of which nothing is known
        ``timed``    whether an index of dates orders the rows
        """
        frame = _with_gaps(frame, nodes, channels, lacking) if absent else frame
        place, cells = places(frame.columns, nodes, channels), _numbers(frame)
        times, order = dates_of(frame.index) if timed else None, None
        if times is not None:
            order, times = clock.in_order(times, "the index")
        order = np.arange(len(cells)) if order is None else order
        values = np.full((len(cells), len(nodes) * len(channels)), np.nan)
        values[:, place] = cells[order]
        shape = (len(cells), len(nodes), len(channels))
        return cls(values.reshape(shape), times, frame.index, frame.columns, order, place)

    def table(self, values: np.ndarray, index: Index | None = None) -> DataFrame:
        """``values`` (rows, nodes, channels) as a frame like the one that came: its rows, or those of another index."""
        import pandas

        return pandas.DataFrame(self._columns(values, index), self.index if index is None else index, self.columns)

    def bands(self, values: np.ndarray, levels: Sequence[float], index: Index | None = None) -> DataFrame:
        """``values`` (levels, rows, nodes, channels) as a frame whose columns are (node, quantile) or (node, channel,
        quantile), the quantiles of a column side by side."""
        import pandas

        cells = np.stack([self._columns(level, index) for level in values], axis=2)  # (rows, columns, levels)
        keys = [(*_pair(name), level) for name in self.columns for level in levels]
        columns = pandas.MultiIndex.from_tuples(keys, names=[*self.columns.names, "quantile"])
        return pandas.DataFrame(cells.reshape(len(cells), -1), self.index if index is None else index, columns)

    def draws(self, values: np.ndarray, index: Index | None = None) -> np.ndarray:
        """``values`` (draws, rows, nodes, channels) as an array, in the frame's order of rows, nodes and channels; one
        channel has no axis."""
        count = values.shape[3]
        nodes, channels = (list(dict.fromkeys(part.tolist())) for part in (self.place // count, self.place % count))
        ordered = values if index is not None else values[:, np.argsort(self.order)]
        ordered = ordered[:, :, nodes]
        return ordered[..., 0] if count == 1 else ordered[..., channels]

    def scores(self, values: np.ndarray, name: str) -> Column:  # (rows,)
        """A number a row."""
        import pandas

        return pandas.Series(values[np.argsort(self.order)], self.index, name=name)

    def ahead(self, horizon: int) -> Index:
        """The index of so many rows to come: dates go on by the commonest step, or by the index's own frequency (months
        are not equally long), written as they were; whole numbers go on; other labels become numbers of rows."""
        import pandas

        name, rows = self.index.name, len(self.index)
        if self.times is None:
            whole = rows > 0 and pandas.api.types.is_integer_dtype(self.index.dtype)
            first, step = (int(self.index[-1]), _step(self.index)) if whole else (rows - 1, 1)
            return pandas.RangeIndex(first + step, first + step * (horizon + 1), step, name=name)
        if isinstance(self.index, pandas.PeriodIndex):
            return pandas.period_range(self.index[self.order[-1]] + 1, periods=horizon, name=name)
        dated = isinstance(self.index, pandas.DatetimeIndex)
        own = self.index.freq if dated and self.index.is_monotonic_increasing else None  # in reverse it is negative
        every = own or Series(self.values, self.times).interval
        if every is None:
            raise InputError("a frame of a single row", "two rows at the least", "tell how far apart rows are by two")
        if not dated:
            stamps = self.times[-1] + np.arange(1, horizon + 1) * every
            text = are_written(self.index)
            return pandas.Index(Written.as_in(self.index).text(stamps) if text else stamps, name=name)
        every = pandas.Timedelta(every) if own is None else every
        dates = pandas.date_range(self.index[self.order[-1]], periods=horizon + 1, freq=every, name=name)
        return dates[1:].as_unit(self.index.unit)

    def _columns(self, values: np.ndarray, index: Index | None) -> np.ndarray:  # (rows, columns)
        """Those of the frame, in its order."""
        cells = values.reshape(len(values), -1)[:, self.place]
        return cells if index is not None else cells[np.argsort(self.order)]


def is_frame(x: Any) -> bool:
    """Whether it has named columns and an index."""
    return hasattr(x, "columns") and hasattr(x, "index")


def channels_of(columns: Index) -> list[str]:
    """The second level of columns, in order of appearance; one without a name where there is none."""
    if columns.nlevels < 2:
        return [""]
    return list(dict.fromkeys(str(name) for name in columns.get_level_values(1)))


def _pair(name: object) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)


def _numbers(frame: DataFrame) -> np.ndarray:  # (rows, columns) float64
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise _text(frame) from None


def _text(frame: DataFrame) -> InputError:
    """Where the first cell is that is no number."""
    import pandas

    for column, name in enumerate(frame.columns):
        cells = frame.iloc[:, column]
        bad = (pandas.to_numeric(cells.astype(str), errors="coerce").isna() & cells.notna()).to_numpy()
        if bad.any():
            row = int(bad.argmax())
            label = "" if isinstance(frame.index, pandas.RangeIndex) else f" ({frame.index[row]})"
            got = f"{str(cells.iloc[row])[:60]!r} in row {row + 1}{label}, column {name!r} of the data frame"
            do = f"correct it, or make it a gap; {int(bad.sum())} such cells there. Times go into the index"
            return InputError(got, "a number a cell, or a gap", do)
    return InputError("a data frame with cells that are not numbers", "a number a cell, or a gap", "correct them")


def _with_gaps(
    frame: DataFrame, nodes: Sequence[str], channels: Sequence[str], lacking: Container[tuple[str, str]]
) -> DataFrame:
    """An empty column for each node, or channel of it, that has none, if some have one, and nothing else has."""
    import pandas

    several = len(channels) > 1
    named = {tuple(map(str, _pair(name)[: 1 + several])) for name in frame.columns}
    known = [(node, channel)[: 1 + several] for node in nodes for channel in channels if (node, channel) not in lacking]
    absent: list[Any] = [key for key in known if key not in named]
    if not absent or not {name[0] for name in named} <= {*nodes}:
        return frame
    warn([Note(f"the data frame has no column for {_in_words(absent, known)}", "all of their readings are gaps")], 7)
    if not several:
        whole = pandas.api.types.is_integer_dtype(frame.columns.dtype)
        absent = [int(node) if whole and node.isdigit() else node for (node,) in absent]
    empty = pandas.DataFrame(np.nan, frame.index, pandas.Index(absent, tupleize_cols=several))
    filled = pandas.concat([frame, empty], axis=1)
    filled.columns.names = frame.columns.names
    return filled


def _in_words(absent: Sequence[tuple[str, ...]], known: Sequence[tuple[str, ...]]) -> str:
    """Nodes of which all columns are absent by their names, single channels as "level of W03"."""
    count, every = Counter(key[0] for key in absent), Counter(key[0] for key in known)
    gone = [node for node in count if count[node] == every[node]]
    return some([*gone, *(f"{key[1]} of {key[0]}" for key in absent if key[0] not in gone)])


def places(columns: Index, nodes: Sequence[str], channels: Sequence[str]) -> np.ndarray:  # (columns,)
    """Each column's place among nodes x channels; refuses columns of none, columns that come twice, nodes without."""
    several, names = len(channels) > 1, [tuple(str(part) for part in _pair(name)) for name in columns]
    if not several and columns.nlevels == 2 and {name[1] for name in names} == {*channels}:
        names = [name[:1] for name in names]
    keys: list[tuple[str, ...]] = [(node, channel)[: 1 + several] for node in nodes for channel in channels]
    place = {key: number for number, key in enumerate(keys)}
    expected = f"columns (node, channel) of the channels {some(channels)}" if several else "one column a node"
    strange = [", ".join(name) for name in names if name not in place]
    if strange:
        do = "rename or drop columns; times go into the index"
        raise InputError(f"columns that the model does not know: {some(strange)}", expected, do)
    if len({*names}) < len(names):
        twice = [", ".join(name) for name, count in Counter(names).items() if count > 1]
        raise InputError(f"columns that come twice: {some(twice)}", expected, "drop one of them")
    absent = [node for node in nodes if node not in {name[0] for name in names}]
    if absent:
        do = "add a column for each, empty where nothing was read"
        raise InputError(f"a data frame without {some(absent)}", expected, do)
    return np.array([place[name] for name in names], dtype=int)


def dates_of(index: Index) -> np.ndarray | None:  # (rows,) datetime64[ns]
    """The dates of an index, if they are dates, or dates written as text."""
    import pandas

    if isinstance(index, pandas.PeriodIndex):
        index = index.to_timestamp()
    if are_written(index):
        return clock.parsed(index.to_numpy(dtype=object), "the index")
    if index.inferred_type in ("datetime", "date"):  # objects, one by one
        index = pandas.DatetimeIndex(index)
    if not isinstance(index, pandas.DatetimeIndex):
        return None
    return clock.parsed(
        (index if index.tz is None else index.tz_convert("UTC").tz_localize(None)).to_numpy(), "the index"
    )


def _step(index: Index) -> int:
    """The commonest step of whole numbers, 1 where there is none."""
    steps, counts = np.unique(np.diff(index.to_numpy()), return_counts=True)
    step = int(steps[counts.argmax()]) if len(steps) else 1
    return step or 1
