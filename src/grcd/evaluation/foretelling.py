"""The simplest ways to foretell rows: what a forecast has to beat. A point for every reading.

    last         the column's last reading
    yesterday    its reading at the same time of the day before; where there is none, of the day before that, and so on
    week         its reading at the same time a week before, or two, or more
    calendar     its mean by time of day and kind of day, over training rows
    neighbours   the mean of what followed on the stretches of training rows nearest to the past, gaps at the mean
    iterative    scikit-learn's IterativeImputer on windows of one column, the past and a future that is missing; it
                 learns from windows of whose future one reading is left: its rounds begin with gaps at the mean, and
                 a chain that leans on the readings beside each gap does not bring a whole future away from there
    ridge        ridge regressions of the future of a column on its past and that of the columns most like it
    var          a vector autoregression

A column is one channel at one node; where none of its readings serves it is foretold by its mean. ``neighbours``,
``iterative`` and ``ridge`` see as many rows of the past as they foretell; the others look back as far as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..core.rows import evenly, split
from ..data.series import Series
from . import competitors
from .autoregression import Autoregression
from .column_imputer import ColumnImputer, cut
from .protocol import last_reading
from .ridge import RidgeForecast
from .windows import moments

DAY = np.timedelta64(1, "D")
DAYS, WEEKS = 7, 4  # how far back another one is looked for
NEIGHBOURS, STRETCHES = 10, 8000  # training stretches that are compared, evenly spaced
WINDOWS, ROUNDS = 60_000, 2  # of the iterative imputer, of a channel: of a lead it learns from those that have it left

Foretell = Callable[
    [Series, np.ndarray, int], np.ndarray
]  # a series, ends, horizon -> (ends, horizon, nodes, channels)


def fitted(name: str, train: Series, val: Series) -> Foretell:
    """A member of ``NAMES``, fitted to training rows; validation rows choose where there is something to choose."""
    return NAMES[name](train, val)


def _last(train: Series, val: Series) -> Foretell:
    mean, _ = moments(train)

    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        last = last_reading(series.values.reshape(len(series), -1))[ends - 1].reshape(len(ends), 1, *mean.shape)
        return np.repeat(np.where(np.isnan(last), mean, last), horizon, axis=1)

    return foretell


def _before(train: Series, val: Series, days: int, most: int) -> Foretell:
    """The reading so many days ago, or a multiple of them."""
    mean, _ = moments(train)

    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        assert isinstance(series.interval, np.timedelta64)
        period, rows = round(days * DAY / series.interval), ends[:, None] + np.arange(horizon)
        guess = np.full((*rows.shape, *mean.shape), np.nan)
        for k in range(1, most + 1):
            back = rows - k * period
            usable = (back >= 0) & (back < ends[:, None])
            readings = np.where(usable[:, :, None, None], series.values[np.maximum(back, 0)], np.nan)
            guess = np.where(np.isnan(guess), readings, guess)
        return np.where(np.isnan(guess), mean, guess)

    return foretell


def _calendar(train: Series, val: Series) -> Foretell:
    fill = competitors.fitted("calendar", train, val)

    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        everywhere = fill(Series(np.full_like(series.values, np.nan), series.times, series.borders, series.every))
        return everywhere[ends[:, None] + np.arange(horizon)]

    return foretell


def _neighbours(train: Series, val: Series) -> Foretell:
    mean, sd = moments(train)

    def scored(series: Series) -> np.ndarray:  # (rows, columns), gaps at the mean
        return np.nan_to_num(((series.values - mean) / sd).reshape(len(series), -1)).astype(np.float32)

    known = scored(train)

    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        starts = train.starts(2 * horizon)
        starts = starts[evenly(len(starts), STRETCHES)][:, None]
        library = known[starts + np.arange(horizon)].reshape(len(starts), -1)
        squares, z = (library**2).sum(axis=1), scored(series)
        guess = np.empty((len(ends), horizon, *mean.shape))
        for some in np.array_split(np.arange(len(ends)), -(-len(ends) // 500)):
            past = z[ends[some][:, None] - horizon + np.arange(horizon)].reshape(len(some), -1)
            near = np.argpartition(squares - 2 * past @ library.T, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
            for each, chosen in zip(some.tolist(), near, strict=True):
                ahead = known[starts[chosen] + horizon + np.arange(horizon)].mean(axis=0)
                guess[each] = ahead.reshape(horizon, *mean.shape) * sd + mean
        return guess

    return foretell


def _iterative(train: Series, val: Series) -> Foretell:
    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        imputer = ColumnImputer.fit(train, 2 * horizon, _one_lead, WINDOWS, ROUNDS)
        z, guess = imputer.scored(series), np.empty((len(ends), horizon, *series.values.shape[1:]))
        for some in split(np.arange(len(ends)), 500):
            past = cut(series, z, ends[some] - horizon, ends[some] - 1, horizon)
            ahead = imputer.whole(np.concatenate([past, np.full_like(past, np.nan)], axis=1))[:, horizon:]
            guess[some] = ahead * imputer.sd + imputer.mean
        return guess

    return foretell


def _one_lead(random: np.random.RandomState, shape: tuple[int, int]) -> np.ndarray:  # (windows, steps) of bool
    """What the imputer is not shown: a tenth of the past, and of the future all but one reading."""
    horizon = shape[1] // 2
    lead = random.randint(horizon, size=(shape[0], 1))
    return np.concatenate([random.random_sample((shape[0], horizon)) < 0.1, np.arange(horizon) != lead], axis=1)


def _ridge(train: Series, val: Series) -> Foretell:
    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        return RidgeForecast.fit(train, val, horizon).foretell(series, ends)

    return foretell


NAMES: dict[str, Callable[[Series, Series], Foretell]] = {
    "last": _last,
    "yesterday": partial(_before, days=1, most=DAYS),
    "week": partial(_before, days=7, most=WEEKS),
    "calendar": _calendar,
    "neighbours": _neighbours,
    "iterative": _iterative,
    "ridge": _ridge,
    "var": lambda train, val: Autoregression.fit(train, val).foretell,
}
