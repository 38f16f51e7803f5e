"""What is written of signals, whatever the format: readings, names, times, unit, and quantiles or all draws beside.

.csv, .parquet   times first, then a column a node, and behind it a column "NODE 5%" for each quantile. Of all draws
                 (.parquet only): one row for each draw of each signal, and its number in "draw"
.npz, .nc        signals (signals, nodes); quantiles (levels, signals, nodes) and levels, and ensemble (draws,
                 signals, nodes), if there are any; node_ids, and times and unit likewise
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Output:
    """Signals to be written; of a filled table the medians of all draws."""

    signals: np.ndarray  # (signals, nodes)
    node_ids: tuple[str, ...]
    unit: str = ""
    times: np.ndarray | None = None  # (signals,)
    levels: tuple[float, ...] = ()
    quantiles: np.ndarray | None = None  # (levels, signals, nodes)
    ensemble: np.memmap | None = None  # (draws, signals, nodes), in a file of its own

    @property
    def row(self) -> str:
        """What a row is, as a dimension."""
        return "sample" if self.times is None else "time"

    def frame(self, signals: np.ndarray | None = None) -> DataFrame:
        """A column a node with its quantiles behind it, times first; of other ``signals`` without quantiles."""
        import pandas

        columns = {} if self.times is None else {"time": self.times}
        for i, name in enumerate(self.node_ids):
            columns[name] = (self.signals if signals is None else signals)[:, i]
            if self.quantiles is not None and signals is None:
                columns |= {f"{name} {100 * q:g}%": self.quantiles[k, :, i] for k, q in enumerate(self.levels)}
        return pandas.DataFrame(columns)
