"""Readings in time as users hold them, through a model and back: data frames, and arrays with times beside them.

A data frame comes back as one, with its own index, columns and order; an array as an array, whose axis of channels is
there if it came with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .core import memory
from .core.errors import InputError, whole_number
from .data import times as clock
from .data.covariates import Covariates
from .data.frames import Frame
from .data.series import Series
from .metrics.ensemble import quantiles as of_draws
from .runs.series import Variables
from .series_model import SeriesModel

DRAWS = 100
WINDOWS = 4  # that validate, at the least
COPIES = 3  # of an ensemble in memory


@dataclass(frozen=True, eq=False)
class Readings:
    """What came in, as a series, and what it takes to give back the like."""

    series: Series
    frame: Frame | None  # None: an array
    wide: bool  # whether there is an axis of channels

    @classmethod
    def of(
        cls, x: Any, nodes: Sequence[str], channels: Sequence[str] | None = None, times: ArrayLike | None = None
    ) -> Readings:
        """From a data frame, an array (time, nodes[, channels]) or a ``Series``; ``channels`` None: as many as come."""
        if isinstance(x, Series):
            return cls(x, None, wide=True)
        if hasattr(x, "columns"):
            if times is not None:
                raise InputError("a data frame, and times", "times in its index", "leave times out")
            frame = Frame.of(x, nodes, _channels_of(x) if channels is None else channels)
            return cls(_regular(Series(frame.values, frame.times)), frame, frame.values.shape[2] > 1)
        values = _array(x, len(nodes), None if channels is None else len(channels))
        stamps = None if times is None else _times(times, len(values))
        wide = values.ndim == 3
        series = _regular(Series(values if wide else values[:, :, None], stamps))
        return cls(series, None, wide)

    def shaped(self, values: np.ndarray) -> np.ndarray:  # (..., nodes, channels)
        """As the array came."""
        return values if self.wide else values[..., 0]

    def table(self, values: np.ndarray, horizon: int | None = None) -> Any:
        """``values`` (rows, nodes, channels) as it came, of the same rows or of those to come."""
        if self.frame is None:
            return self.shaped(values)
        return self.frame.table(values, None if horizon is None else self.frame.ahead(horizon))

    def bands(self, values: np.ndarray, levels: Sequence[float], horizon: int | None = None) -> Any:
        """``values`` (levels, rows, nodes, channels) likewise; a data frame has a level of columns more."""
        if self.frame is None:
            return self.shaped(values)
        return self.frame.bands(values, levels, None if horizon is None else self.frame.ahead(horizon))


def known(covariates: Any) -> Covariates | None:
    """Covariates from a data frame, an array (rows, covariates), or as they are."""
    return covariates if covariates is None or isinstance(covariates, Covariates) else Covariates.of(covariates)


def in_channels(x: Any) -> bool:
    """Whether rows have several channels."""
    return np.ndim(x) == 3 or getattr(getattr(x, "columns", None), "nlevels", 1) > 1


def split(
    train: Any, val: Any, nodes: Sequence[str], window: int, times: ArrayLike | None
) -> tuple[dict[str, Series], Variables]:
    """Training and validation rows; without the latter, the last tenth of the rows, or a few windows, validate."""
    stamps = None if times is None else np.asarray(times)
    both = val is not None
    first = Readings.of(train, nodes, None, stamps[: len(train)] if both and stamps is not None else stamps)
    channels = tuple(_channels_of(train)) if first.frame is not None else tuple(_numbered(first.series))
    variables = Variables(channels, ("",) * len(channels))
    if both:
        second = Readings.of(val, nodes, channels, None if stamps is None else stamps[len(train) :])
        return {"train": first.series, "val": second.series}, variables
    rows = len(first.series)
    cut = rows - min(max(rows // 10, WINDOWS * window), rows // 3)
    return {"train": first.series.rows(slice(0, cut)), "val": first.series.rows(slice(cut, rows))}, variables


def _numbered(series: Series) -> list[str]:
    count = series.values.shape[2]
    return [""] if count == 1 else [f"channel {k}" for k in range(count)]


def impute(
    model: SeriesModel, readings: Readings, n: int | None, quantiles: Sequence[float] | None, **options: Any
) -> Any:
    """The table filled: by the median (a data frame), at quantiles, or ``n`` draws of it (which arrays are by default).

    Draws are taken some rows at a time, and only what was asked for is kept.
    """
    count, levels = _asked(readings, n, quantiles)
    x = readings.series.values
    kept = count if levels is None else len(levels)
    memory.refuse_over(COPIES * 8 * kept * x.size, f"{kept:,} tables of {x.size:,} readings", "ask for fewer draws")
    result = np.empty((kept, *x.shape))
    for rows, draws in model.fillings(readings.series, count, **options):
        result[:, rows] = draws if levels is None else of_draws(draws, levels)
    return _returned(readings, result, n, quantiles, None)


def forecast(
    model: SeriesModel,
    readings: Readings,
    horizon: int,
    n: int | None,
    quantiles: Sequence[float] | None,
    **options: Any,
) -> Any:
    """The rows to come, in the same ways."""
    horizon = whole_number("horizon", horizon)
    count, levels = _asked(readings, n, quantiles)
    draws = model.forecast(readings.series, horizon, count, **options)
    return _returned(readings, draws if levels is None else of_draws(draws, levels), n, quantiles, horizon)


def _asked(readings: Readings, n: int | None, quantiles: Sequence[float] | None) -> tuple[int, Sequence[float] | None]:
    """How many draws, and the levels to keep of them; None: all draws."""
    if quantiles is not None and not (len(quantiles) and all(0 < level < 1 for level in quantiles)):
        raise InputError(f"quantiles = {list(quantiles)}", "numbers between 0 and 1", "e.g. quantiles=[.05, .5, .95]")
    if quantiles is not None:
        return (DRAWS if n is None else n), tuple(quantiles)
    return (DRAWS if n is None else n), (0.5,) if n is None and readings.frame is not None else None


def _returned(
    readings: Readings, result: np.ndarray, n: int | None, quantiles: Sequence[float] | None, horizon: int | None
) -> Any:
    if quantiles is not None:
        return readings.bands(result, list(quantiles), horizon)
    if n is None and readings.frame is not None:
        return readings.table(result[0], horizon)
    return readings.shaped(result)


def _regular(series: Series) -> Series:
    if not len(series):
        raise InputError("no rows", "one or more", "give some rows")
    series.refuse_irregular("the rows")
    return series


def _array(x: Any, nodes: int, channels: int | None) -> np.ndarray:
    """(time, nodes) or (time, nodes, channels), float64."""
    try:
        values = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "rows that are not all numbers", "an array (time, nodes)", "remove text and ragged rows"
        ) from None
    shape = "(time, nodes)" if channels in (None, 1) else f"(time, nodes, {channels} channels)"
    fits = values.ndim in (2, 3) and values.shape[1] == nodes and 0 not in values.shape
    own = values.shape[2] if values.ndim == 3 else 1
    if not fits or channels not in (None, own):
        do = "pass one row a time, one column a node of the graph"
        raise InputError(f"rows of shape {np.shape(values)}", f"{shape} with {nodes} nodes", do)
    return values


def _times(times: ArrayLike, rows: int) -> np.ndarray:
    stamps = clock.parsed(np.asarray(times), "times")
    if len(stamps) != rows:
        raise InputError(f"{len(stamps)} times for {rows} rows", "a time a row", "give as many")
    if (stamps[1:] <= stamps[:-1]).any():
        raise InputError("times that do not rise", "each later than the one before", "sort the rows by time")
    return stamps


def _channels_of(frame: Any) -> list[str]:
    """The second level of columns, in order of appearance; one without a name where there is none."""
    if getattr(frame.columns, "nlevels", 1) < 2:
        return [""]
    return list(dict.fromkeys(str(name) for name in frame.columns.get_level_values(1)))
