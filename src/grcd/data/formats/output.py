"""What is written of signals, whatever the format: readings, names, times, unit, and quantiles or all draws beside.

.csv, .parquet   times first, then a column a node, and behind it a column "NODE 5%" for each quantile. Of all draws
                 (.parquet only): one row for each draw of each signal, and its number in "draw". Of several channels,
                 or where a long table came in, a long one: time, node, variable, value, and a column "5%" a quantile;
                 without times rows are numbered, and what is no number has no row
.npz, .nc        signals (signals, nodes); quantiles (levels, signals, nodes) and levels, and ensemble (draws,
                 signals, nodes), if there are any; node_ids, and times and unit likewise. Of several channels .npz has
                 one more axis, the last, with `channels` and `units`; .nc has variables NAME, NAME_quantiles and
                 NAME_ensemble for each
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..written_times import PLAIN, TimeColumn

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Output:
    """Signals to be written; of a filled table the medians of all draws. With ``channels`` every array has their axis
    as its last."""

    signals: np.ndarray  # (signals, nodes[, channels])
    node_ids: tuple[str, ...]
    unit: str = ""
    times: np.ndarray | None = None  # (signals,)
    levels: tuple[float, ...] = ()
    quantiles: np.ndarray | None = None  # (levels, signals, nodes[, channels])
    ensemble: np.memmap | None = None  # (draws, signals, nodes[, channels]), in a file of its own
    channels: tuple[str, ...] = ()  # names; none for readings of one variable
    units: tuple[str, ...] = ()  # of the channels, "" where unknown
    long: bool = False  # a table with a row a reading; of several channels it is one anyway
    clock: TimeColumn = PLAIN  # what a table's column of times is called, and how they are written

    @property
    def row(self) -> str:
        """What a row is, as a dimension."""
        return "sample" if self.times is None else "time"

    def frame(self, signals: np.ndarray | None = None, text: bool = False) -> DataFrame:
        """The table: times first, quantiles behind what they are of; of other ``signals`` without quantiles.

        ``text``: times as text.
        """
        import pandas

        clock = self.clock.text(self.times) if text and self.times is not None else self.times
        if self.long or self.channels:
            return self._readings(signals, clock)
        columns = {} if clock is None else {self.clock.name: clock}
        for i, name in enumerate(self.node_ids):
            columns[name] = (self.signals if signals is None else signals)[:, i]
            if self.quantiles is not None and signals is None:
                columns |= {f"{name} {100 * q:g}%": self.quantiles[k, :, i] for k, q in enumerate(self.levels)}
        return pandas.DataFrame(columns)

    def _readings(self, signals: np.ndarray | None, clock: np.ndarray | None) -> DataFrame:
        """A row a reading."""
        import pandas

        values = self.signals if signals is None else signals
        rows, each = len(values), max(1, len(self.channels))
        names = np.repeat(np.array(self.node_ids, dtype=object), each)
        columns = {self.clock.name: np.repeat(np.arange(rows) if clock is None else clock, len(names))}
        columns[self.clock.node] = np.tile(names, rows)
        if self.channels:
            columns[self.clock.variable] = np.tile(np.array(self.channels, dtype=object), rows * len(self.node_ids))
        columns[self.clock.value] = values.ravel()
        if self.quantiles is not None and signals is None:
            columns |= {f"{100 * q:g}%": self.quantiles[k].ravel() for k, q in enumerate(self.levels)}
        frame = pandas.DataFrame(columns)
        return frame[~np.isnan(values.ravel())].reset_index(drop=True)


def without_points(frame: DataFrame, variables: str = "variable") -> DataFrame:
    """For text: a variable of which all readings are whole numbers, without decimal points; ``variables`` is the column
    that says which."""
    names = [name for name in frame.columns if name != "time" and frame[name].dtype.kind == "f"]
    values = frame[names].to_numpy()
    broken = (np.isfinite(values) & ((np.rint(values) != values) | (np.abs(values) >= 2**53))).any(axis=1)
    variable = frame[variables].to_numpy() if variables in frame else np.zeros(len(frame))
    whole = ~np.isin(variable, np.unique(variable[broken]))
    for name in names if whole.any() else ():
        if whole.all():
            frame[name] = frame[name].astype("Int64")
        else:
            cells = zip(frame[name].tolist(), (whole & frame[name].notna()).tolist(), strict=True)
            frame[name] = np.array([int(value) if yes else value for value, yes in cells], dtype=object)
    return frame
