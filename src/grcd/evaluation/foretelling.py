"""The simplest ways to foretell rows: what a forecast has to beat. A point for every reading.

    last         the column's last reading
    yesterday    its reading at the same time of the day before; where there is none, of the day before that, and so on
    week         its reading at the same time a week before, or two, or more
    calendar     its mean by time of day and kind of day, over training rows
    neighbours   the mean of what followed on the stretches of training rows nearest to the past, gaps at the mean
    iterative    scikit-learn's IterativeImputer on windows of one column, the past and a future that is missing
    var          a vector autoregression

A column is one channel at one node; where none of its readings serves it is foretold by its mean. All but
``neighbours`` and ``iterative``, which see as many rows of the past as they foretell, look back as far as they like.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from ..core.rows import evenly
from ..data.series import Series
from . import competitors
from .autoregression import Autoregression
from .protocol import last_reading
from .windows import moments

DAY = np.timedelta64(1, "D")
DAYS, WEEKS = 7, 4  # how far back another one is looked for
NEIGHBOURS, STRETCHES = 10, 8000  # training stretches that are compared, evenly spaced
WINDOWS, ROUNDS = 20_000, 5  # of the iterative imputer, over all columns

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
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    mean, sd = moments(train)

    def windows(series: Series, starts: np.ndarray, steps: int) -> np.ndarray:  # (windows, columns, steps)
        z = ((series.values - mean) / sd).reshape(len(series), -1)
        return z[starts[:, None] + np.arange(steps)].transpose(0, 2, 1)

    def foretell(series: Series, ends: np.ndarray, horizon: int) -> np.ndarray:
        starts = train.starts(2 * horizon)
        learn = windows(train, starts[evenly(len(starts), max(1, WINDOWS // mean.size))], 2 * horizon)
        learn = learn.reshape(-1, 2 * horizon)
        gone = np.random.RandomState(0).random_sample(learn.shape) < 0.25  # it learns from gaps only
        imputer = IterativeImputer(max_iter=ROUNDS, random_state=0, tol=1e-2, keep_empty_features=True)
        guess = np.empty((len(ends), horizon, *mean.shape))
        with warnings.catch_warnings():  # what has not quite converged after its rounds is what it is
            warnings.simplefilter("ignore")
            imputer.fit(np.where(gone, np.nan, learn))
        for some in np.array_split(np.arange(len(ends)), -(-len(ends) // 500)):
            past = windows(series, ends[some] - horizon, horizon)
            rows = np.concatenate([past, np.full_like(past, np.nan)], axis=2).reshape(-1, 2 * horizon)
            ahead = imputer.transform(rows)[:, horizon:].reshape(len(some), -1, horizon).transpose(0, 2, 1)
            guess[some] = ahead.reshape(len(some), horizon, *mean.shape) * sd + mean
        return guess

    return foretell


NAMES: dict[str, Callable[[Series, Series], Foretell]] = {
    "last": _last,
    "yesterday": partial(_before, days=1, most=DAYS),
    "week": partial(_before, days=7, most=WEEKS),
    "calendar": _calendar,
    "neighbours": _neighbours,
    "iterative": _iterative,
    "var": lambda train, val: Autoregression.fit(train, val).foretell,
}
