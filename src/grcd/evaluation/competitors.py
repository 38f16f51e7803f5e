"""The simplest ways to fill gaps in time and to foretell rows: what a model of windows has to beat.

    line         on a straight line between the column's readings before and after; beyond them, the nearest one
    last         the column's last reading before the gap
    calendar     the column's mean by time of day and kind of day, over training rows; where times are dates
    mean         the column's mean over training rows
    neighbours   scikit-learn's KNNImputer: the mean of the training rows that are nearest in what was read
    iterative    scikit-learn's IterativeImputer: every reading regressed on others of its row, the row before and after
    regression   the same on single rows, as it comes without settings
    iterative-column
                 the same on windows of one column: every reading regressed on the others of its window
    var          a vector autoregression: what the rows before say

A column is one channel at one node. Lines and last readings do not cross a break. Where a column has no reading in a
stretch they are its mean. ``last`` and the means foretell too: the future is a gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch

from ..core.rows import evenly
from ..data.clock import Clock
from ..data.series import Series
from ..references.calendar import CalendarMean
from . import baselines
from .autoregression import Autoregression
from .column_imputer import ColumnImputer
from .windows import moments

TITLES = {
    "line": "a line in time",
    "last": "the last value",
    "calendar": "the calendar's mean",
    "mean": "the column's mean",
    "neighbours": "the nearest rows",
    "iterative": "the iterative imputer",
    "regression": "iterative, single rows",
    "iterative-column": "the iterative imputer, windows of a column",
    "var": "a vector autoregression",
}
FORESEE = ("last", "calendar", "mean")  # those that a future can be asked of
SMOOTH = 1 / 144  # of a day: the kernel's standard deviation of the calendar's mean
ROWS = 2000  # of training, for scikit-learn's
NEIGHBOURS, FEATURES, ROUNDS = 10, 20, 5
WINDOW, MARGIN = 24, 2  # rows of a column that are filled together, and of them at either end for the next to answer
WINDOWS, HIDDEN, TURNS = 20_000, 0.1, 20  # of the imputer of columns: of a channel, what it is not shown, and rounds
COLUMN_WISE = {"line": baselines.straight, "last": baselines.latest}

Fill = Callable[[Series], np.ndarray]  # a series with gaps -> (rows, nodes, channels) without


def competitors(train: Series, imputers: bool = False) -> dict[str, Fill]:
    """By name (``TITLES``), fitted to training rows; with ``imputers`` those of scikit-learn too that look across
    columns, which take seconds on thirty columns and minutes on some hundreds."""
    clock = Clock.of(train)
    names = ["line", "last", *["calendar"] * (clock.slots * clock.kinds > 1), "mean"]
    return {name: fitted(name, train, train) for name in names + ["neighbours", "iterative", "regression"] * imputers}


def fitted(name: str, train: Series, val: Series) -> Fill:
    """One of ``TITLES``, fitted to training rows; validation rows choose where there is something to choose."""
    if name == "calendar":
        return _calendar(train, Clock.of(train))
    if name == "var":
        return Autoregression.fit(train, val).fill
    if name == "iterative-column":
        return _columns(train)
    mean, sd = moments(train)
    if name in COLUMN_WISE:
        return _along(COLUMN_WISE[name], mean)
    if name == "mean":
        return lambda series: _with_readings(mean, series)
    return {"neighbours": _neighbours, "iterative": _iterative, "regression": _regression}[name](train, mean, sd)


def _along(column_wise: Callable[[np.ndarray], np.ndarray], mean: np.ndarray) -> Fill:
    """Every stretch by itself, about the mean: what is filled with 0 is at the mean."""

    def fill(series: Series) -> np.ndarray:
        rows = (series.values - mean).reshape(len(series), -1)
        parts = [column_wise(rows[stretch]) for stretch in series.stretches]
        return _with_readings(np.concatenate(parts).reshape(series.values.shape) + mean, series)

    return fill


def _calendar(train: Series, clock: Clock) -> Fill:
    def when(times: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(clock.slot(times)), torch.from_numpy(clock.kind(times))

    assert train.times is not None
    x = torch.from_numpy(train.values.reshape(len(train), -1).astype(np.float64))
    table = CalendarMean.fit(x, *when(train.times), clock.slots, clock.kinds, SMOOTH * clock.slots)

    def fill(series: Series) -> np.ndarray:
        assert series.times is not None
        mean = table.rows(*when(series.times))[0].numpy().reshape(series.values.shape)
        return _with_readings(mean, series)

    return fill


def _neighbours(train: Series, mean: np.ndarray, sd: np.ndarray) -> Fill:
    from sklearn.impute import KNNImputer

    z = ((train.values - mean) / sd).reshape(len(train), -1)
    imputer = KNNImputer(n_neighbors=NEIGHBOURS, keep_empty_features=True).fit(z[evenly(len(z), ROWS)])

    def fill(series: Series) -> np.ndarray:
        rows = ((series.values - mean) / sd).reshape(len(series), -1)
        return _with_readings(imputer.transform(rows).reshape(series.values.shape) * sd + mean, series)

    return fill


def _iterative(train: Series, mean: np.ndarray, sd: np.ndarray) -> Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    z = _three_rows(((train.values - mean) / sd).reshape(len(train), -1), train)
    z = z[evenly(len(z), ROWS)]
    z = np.where(np.random.RandomState(0).random_sample(z.shape) < 0.25, np.nan, z)  # it learns from gaps only
    features = min(FEATURES, z.shape[1])
    imputer = IterativeImputer(
        max_iter=ROUNDS, n_nearest_features=features, random_state=0, tol=1e-2, keep_empty_features=True
    )
    with warnings.catch_warnings():  # what has not quite converged after its rounds is what it is
        warnings.simplefilter("ignore")
        imputer.fit(z)

    def fill(series: Series) -> np.ndarray:
        rows = _three_rows(((series.values - mean) / sd).reshape(len(series), -1), series)
        columns = rows.shape[1] // 3
        filled = imputer.transform(rows)[:, columns : 2 * columns].reshape(series.values.shape)
        return _with_readings(filled * sd + mean, series)

    return fill


def _regression(train: Series, mean: np.ndarray, sd: np.ndarray) -> Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    x = train.values.reshape(len(train), -1)
    imputer = IterativeImputer(random_state=0, keep_empty_features=True)
    with warnings.catch_warnings():  # as above
        warnings.simplefilter("ignore")
        imputer.fit(x[evenly(len(x), ROWS)])

    def fill(series: Series) -> np.ndarray:
        filled = imputer.transform(series.values.reshape(len(series), -1)).reshape(series.values.shape)
        return _with_readings(filled, series)

    return fill


def _columns(train: Series) -> Fill:
    """What it is not shown and how many rounds it has were chosen on validation rows of METR-LA and AQI-36: rounds
    begin with gaps at the mean, and long ones come away from there slowly."""

    def hide(random: np.random.RandomState, shape: tuple[int, int]) -> np.ndarray:
        return random.random_sample(shape) < HIDDEN

    imputer = ColumnImputer.fit(train, WINDOW, hide, WINDOWS, TURNS)
    return lambda series: _with_readings(imputer.fill(series, WINDOW, MARGIN), series)


def _three_rows(z: np.ndarray, series: Series) -> np.ndarray:  # (rows, 3 columns)
    """Each row between the one before and the one after, which are gaps at a break."""
    before, after = np.full_like(z, np.nan), np.full_like(z, np.nan)
    before[1:], after[:-1] = z[:-1], z[1:]
    before[series.breaks], after[series.breaks - 1] = np.nan, np.nan
    return np.concatenate([before, z, after], axis=1)


def _with_readings(filled: np.ndarray, series: Series) -> np.ndarray:
    """What was read stays as it was."""
    return np.where(np.isnan(series.values), filled, series.values)
