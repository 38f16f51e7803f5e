"""The sparse reference of windows: on a large graph, or where it is asked for (the method ``grcd-sparse``).

It answers where ``WindowReferences`` does, with one kind to choose: how many rows the regressions go back, and how many
modes there are, which validation windows decide (see ``references.sparse_fit``). Nothing of columns by columns is
formed. Of windows as many are looked at as have ``READINGS`` readings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..core import memory
from ..core.rows import evenly
from ..graphs.space import SignalSpace
from ..references import sparse_fit
from ..references.lags import Shrinkage
from ..references.sparse import Sparse
from .window_choice import Choice

READINGS = 1 << 27  # of training windows, at most; an eighth of validation windows
COPIES = (
    8  # of all rows, in float64, that are in memory at once: readings, means, spreads, z-scores, some of them twice
)


class SparseReferences:
    """Sparse references of windows of a space, fitted to stretches of rows; arguments as ``WindowReferences``'."""

    def __init__(
        self,
        space: SignalSpace,
        scored: Callable[[Sequence[slice]], Tensor],
        stretches: Sequence[slice],
        val_starts: np.ndarray,
    ):
        self.space, self.scored, self.stretches, self.val_starts = space, scored, stretches, val_starts
        self._kept: Sparse | None = None  # of all training rows: what was chosen

    def choose(self) -> Choice:
        """How many rows back, and how many modes."""
        z = self.scored(self.stretches)
        val = windows(z, self.val_starts, self.space.steps, READINGS // 8)
        train = windows(z, starts(self.stretches, self.space.steps), self.space.steps, READINGS)
        self._kept, lags, tried = sparse_fit.fit_windows(train, val, self.space)
        judged = f"{len(val)} windows of {self.space.steps} rows of validation"
        return Choice("sparse", Shrinkage(), 1, tried, judged, lags=lags, modes=self._kept.modes.shape[1])

    def fit(self, choice: Choice, z: Tensor, stretches: Sequence[slice]) -> Sparse:
        """Of whole windows, from these rows of z-scores ``z`` (rows, columns)."""
        if self._kept is not None and list(stretches) == list(self.stretches):
            return self._kept
        return fitted(choice, z, stretches, self.space)


def fitted(choice: Choice, z: Tensor, stretches: Sequence[slice], space: SignalSpace) -> Sparse:
    """As many rows back and modes as were chosen; the ridge is judged by some of the windows themselves."""
    train = windows(z, starts(stretches, space.steps), space.steps, READINGS)
    few = train[evenly(len(train), sparse_fit.GAPPY)]
    return sparse_fit.fit_windows(train, few, space, 0, (choice.lags,), (choice.modes,))[0]


def starts(stretches: Sequence[slice], steps: int) -> np.ndarray:  # (windows,)
    """First rows of all windows in stretches without a break."""
    return np.concatenate([np.arange(s.start, max(s.start, s.stop - steps + 1)) for s in stretches])


def windows(z: Tensor, first: np.ndarray, steps: int, readings: int) -> Tensor:  # (windows, steps columns) float32
    """Evenly spaced ones, as many as have so many readings."""
    most = max(sparse_fit.GAPPY, min(sparse_fit.SIGNALS, readings // (steps * z.shape[1])))
    rows = torch.from_numpy(first[evenly(len(first), most)][:, None] + np.arange(steps))
    return z.cpu().float()[rows].flatten(1)


def refuse_rows(space: SignalSpace, rows: int) -> None:
    """Before anything is fitted: rows of a large graph that do not fit into memory."""
    size = 8.0 * COPIES * rows * (space.d // space.steps)
    what = f"{rows:,} rows of {space.d // space.steps:,} readings in windows of {space.steps:,}"
    memory.refuse_over(size, what, "take fewer rows, or single rows (--window 1)")
