"""Long data frames, a row a reading: made wide for a model, and forecasts made long again, as Chronos has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .core.errors import InputError, some

if TYPE_CHECKING:
    from pandas import DataFrame

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, eq=False)
class Long:
    """A long frame, and the columns of it that count."""

    df: DataFrame
    id_column: str
    timestamp_column: str
    target: str | Sequence[str]  # of several channels one a channel

    def __post_init__(self) -> None:
        columns = getattr(self.df, "columns", None)
        if columns is None:
            raise InputError(f"{type(self.df).__name__} in place of a data frame", "a long frame", "pass one")
        needed = [self.id_column, self.timestamp_column, *self.targets]
        if lacking := [name for name in needed if name not in columns]:
            got = f"a data frame with the columns {some(columns)}, without {some(lacking)}"
            do = "rename its columns, or say what they are called: id_column=, timestamp_column=, target="
            raise InputError(got, f"the columns {', '.join(needed)}", do)
        keys = self.df[[self.id_column, self.timestamp_column]]
        if keys.isna().any(axis=None):
            raise InputError("rows without a node or a time", "both in every row", "drop those rows")
        if keys.duplicated().any():
            node, time = keys[keys.duplicated()].iloc[0]
            raise InputError(f"several readings of {node} at {time}", "one a node and time", "merge those rows")

    @property
    def targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else [*self.target]

    def wide(self, channels: Sequence[str]) -> DataFrame:
        """A row a time; columns are nodes, or (node, channel)."""
        targets = self.targets
        if len(targets) != len(channels) or (len(channels) > 1 and {*targets} != {*channels}):
            expected = "one" if len(channels) == 1 else f"the channels {some(channels)}"
            raise InputError(f"target = {self.target!r}", expected, "name the columns of the readings so")
        values = targets[0] if len(channels) == 1 else targets
        table = self.df.pivot(index=self.timestamp_column, columns=self.id_column, values=values)
        if len(channels) > 1:
            table = table.swaplevel(axis=1)  # (node, channel)
        return table

    def predicted(self, bands: DataFrame, levels: Sequence[float]) -> DataFrame:
        """Forecasts at quantiles, columns (node[, channel], quantile), with a row a node, target and time."""
        import pandas

        parts, several = [], bands.columns.nlevels > 2
        for node in self.df[self.id_column].drop_duplicates():
            for target in self.targets:
                own = bands[node][target] if several else bands[node]  # columns are quantiles
                columns = {self.id_column: node, self.timestamp_column: own.index, "target_name": target}
                columns |= {"predictions": own[0.5].to_numpy()}
                columns |= {str(level): own[level].to_numpy() for level in levels}
                parts.append(pandas.DataFrame(columns))
        return pandas.concat(parts, ignore_index=True)
