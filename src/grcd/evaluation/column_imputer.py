"""scikit-learn's IterativeImputer on windows of one column, whose steps are the features.

Every step is regressed on the others of its window, in turns: a gap is what the readings around it say. There is one
imputer for each channel, which learns from evenly spaced training windows of all its nodes, z-scored by column. It
learns from gaps only, so some readings are hidden from it, and they should be such as it will be asked for: its rounds
begin with every gap at the mean, and what it learned from readings beside each other does not bring a long gap away
from there.

A stretch that is shorter than a window has one, with a gap at its end. A column without a reading in a window is at its
mean there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.rows import evenly
from ..data.series import Series
from .windows import moments

TOLERANCE = 1e-3

Hide = Callable[[np.random.RandomState, tuple[int, int]], np.ndarray]  # (windows, steps) of bool


@dataclass(frozen=True, eq=False)
class ColumnImputer:
    """Of columns (nodes, channels) with a mean and a spread."""

    mean: np.ndarray  # (nodes, channels)
    sd: np.ndarray  # (nodes, channels)
    imputers: tuple[Any, ...]  # by channel; None where nothing was read

    @classmethod
    def fit(cls, train: Series, steps: int, hide: Hide, windows: int, rounds: int) -> ColumnImputer:
        """``hide``: what it is not shown; ``windows``: how many of a channel it learns from."""
        model = cls(*moments(train), ())
        starts = np.sort(np.append(train.starts(steps), [s.start for s in _short(train, steps)])).astype(int)
        starts = starts[evenly(len(starts), max(1, windows // len(model.mean)))]
        z = cut(train, model.scored(train), starts, starts, steps)
        imputers = [_fitted(_by_column(part), hide, rounds) for part in np.moveaxis(z, 3, 0)]
        return cls(model.mean, model.sd, tuple(imputers))

    def scored(self, series: Series) -> np.ndarray:  # (rows, nodes, channels)
        """z-scores."""
        return np.asarray((series.values - self.mean) / self.sd)

    def fill(self, series: Series, steps: int, margin: int) -> np.ndarray:  # (rows, nodes, channels)
        """Without gaps, window by window; ``margin``: see ``Series.covering``."""
        short = _short(series, steps)
        starts, new = series.covering(steps, margin)
        starts = np.append(starts, [s.start for s in short]).astype(int)
        parts = [*new.tolist(), *([0, s.stop - s.start] for s in short)]
        z = self.scored(series)
        filled = np.empty_like(z)
        whole = self.whole(cut(series, z, starts, starts, steps))
        for start, (first, stop), window in zip(starts.tolist(), parts, whole, strict=True):
            filled[start + first : start + stop] = window[first:stop]
        return filled * self.sd + self.mean

    def whole(self, z: np.ndarray) -> np.ndarray:  # (windows, steps, nodes, channels)
        """Windows of z-scores without their gaps."""
        parts = zip(np.moveaxis(z, 3, 0), self.imputers, strict=True)
        return np.stack([_channel(part, imputer) for part, imputer in parts], axis=3)


def cut(series: Series, z: np.ndarray, starts: np.ndarray, within: np.ndarray, steps: int) -> np.ndarray:
    """Rows ``z`` of a series from each of ``starts`` on (windows, steps, ...), NaN outside of the stretch in which the
    row ``within`` lies."""
    rows = starts[:, None] + np.arange(steps)
    stretch = np.searchsorted(series.breaks, rows, side="right")
    inside = (rows >= 0) & (rows < len(series))
    inside &= stretch == np.searchsorted(series.breaks, within, side="right")[:, None]
    z = z[np.clip(rows, 0, len(series) - 1)]
    z[~inside] = np.nan
    return z


def _short(series: Series, steps: int) -> list[slice]:
    return [s for s in series.stretches if s.stop - s.start < steps]


def _by_column(z: np.ndarray) -> np.ndarray:  # (windows, steps, nodes) -> (windows nodes, steps)
    return z.transpose(0, 2, 1).reshape(-1, z.shape[1])


def _channel(z: np.ndarray, imputer: Any) -> np.ndarray:  # (windows, steps, nodes)
    rows = _by_column(z)
    gap = np.isnan(rows)
    asked = gap.any(axis=1) & ~gap.all(axis=1)
    if imputer is not None and asked.any():
        rows[asked] = imputer.transform(rows[asked])
    return np.nan_to_num(rows).reshape(len(z), z.shape[2], z.shape[1]).transpose(0, 2, 1)


def _fitted(windows: np.ndarray, hide: Hide, rounds: int) -> Any:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    windows = windows[~np.isnan(windows).all(axis=1)]
    if not len(windows):
        return None
    holed = np.where(hide(np.random.RandomState(0), windows.shape), np.nan, windows)
    imputer = IterativeImputer(max_iter=rounds, random_state=0, tol=TOLERANCE, keep_empty_features=True)
    with warnings.catch_warnings():  # what has not quite converged after its rounds is what it is
        warnings.simplefilter("ignore")
        return imputer.fit(holed)
