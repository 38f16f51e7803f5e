"""Does time help? By how much windows make held-out readings more probable than single rows do.

Under a Gaussian reference, fitted to the training rows, validation windows of ``T`` rows have a joint density, about
the calendar's mean or about each column's own, whichever is larger. Their rows one by one have one too: about the
column's own mean, for single rows know neither the past nor what time it is. The difference of the logarithms, over the
number of readings, is what a reading gains by what it is told of other rows and of the calendar:

    gain = (log p(x_1, ..., x_T) - sum_t log p(x_t)) / readings

nats, below 0 where correlations in time were learned that do not hold later. A few rows and columns are enough to tell;
but three rows say nothing, so where validation has few windows, stretches of training rows are judged too, each by what
was fitted to all others. Both densities are those of the covariance, of a few that are shrunk more and more, that suits
them best: few rows know correlations in time that they could not learn beside all those in space.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..core.rows import evenly
from ..data.clock import Clock
from ..data.series import Series
from ..references.calendar import CalendarMean
from ..references.stationary import Shrinkage, Stationary, lag_covariances
from .pool import parted

ROWS = 4  # of a window that is looked at, at most
COLUMNS = 64  # nodes times channels, at most
WINDOWS = 256  # of validation rows, at most
COVARIANCES = Shrinkage(), Shrinkage(local=1.0, noise=0.05), Shrinkage(nodes=0.5, local=2.0, noise=0.2), Shrinkage(1.0)
ENOUGH, PARTS = 40, 3  # windows of validation one after the other; else so many stretches of training rows count too


def gain(train: Series, val: Series, steps: int) -> float:
    """Nats that a validation reading gains by the other rows of its window, and by the calendar; 0 where there is no
    such window."""
    rows, columns = min(steps, ROWS), _columns(train)
    if rows < 2 or not len(columns):
        return 0.0
    trials = [(train, val)]
    parts = parted(train.stretches, PARTS) if len(val.starts(rows, rows)) < ENOUGH else []
    for part in parts if len(parts) > 1 else []:
        others = [s for other in parts if other is not part for s in other]
        trials.append((train.picked(others), train.picked(part)))
    densities, counts = zip(*(_densities(*trial, columns, rows) for trial in trials), strict=True)
    *joint, alone = np.sum(densities, axis=0).max(axis=0)
    return float((max(joint) - alone) / max(sum(counts), 1))


def _densities(
    train: Series, held: Series, columns: np.ndarray, rows: int
) -> tuple[np.ndarray, int]:  # (covariances, 3), readings
    """The logarithms of the densities of all held-out windows, about the calendar's mean and about each column's own;
    and of their rows one by one, about the latter."""
    starts = held.starts(rows)
    chosen = torch.from_numpy(starts[evenly(len(starts), WINDOWS)][:, None] + np.arange(rows))
    sides, count = list[np.ndarray](), 0
    for by_calendar in (True, False):
        z, out, log_spread = _scored(train, held, columns, by_calendar)
        windows, C = out[chosen], lag_covariances(z, rows, train.stretches)  # (windows, rows, columns)
        seen = ~windows.isnan()
        count = int(seen.sum())
        if not count:
            return np.zeros((len(COVARIANCES), 3)), 0
        units = float(log_spread[chosen][seen].sum())
        shapes = [(C, windows.flatten(1))] + [(C[:1], windows.flatten(0, 1))] * (not by_calendar)
        sides += [np.array([_log_prob(*shape, by) for by in COVARIANCES]) - units for shape in shapes]
    return np.stack(sides, axis=1), count


def _columns(train: Series) -> np.ndarray:
    """Of nodes evenly chosen, those that vary."""
    nodes, channels = train.values.shape[1:]
    chosen = evenly(nodes, max(1, COLUMNS // channels))
    columns = (chosen[:, None] * channels + np.arange(channels)).ravel()
    x = train.values.reshape(len(train), -1)[:, columns]
    low, high = (each(np.where(np.isnan(x), end, x), axis=0) for each, end in ((np.min, np.inf), (np.max, -np.inf)))
    return columns[high > low]


def _scored(
    train: Series, held: Series, columns: np.ndarray, by_calendar: bool
) -> tuple[Tensor, Tensor, Tensor]:  # three of (rows, columns)
    """z-scores of training rows and of held-out ones; and the logarithm of what the latter were divided by."""
    clock = Clock.of(train)
    slot, kind, x = zip(*(_row_by_row(part, clock, columns) for part in (train, held)), strict=True)
    slots, kinds = (clock.slots, clock.kinds) if by_calendar else (1, 1)
    if not by_calendar:
        slot, kind = (tuple(torch.zeros_like(each) for each in part) for part in (slot, kind))
    width = max(0.5, slots / 144) if slots > 1 else 0.0
    mean = CalendarMean.fit(x[0], slot[0], kind[0], slots, kinds, width)
    centre, spread = mean.rows(slot[1], kind[1])
    return mean.scores(x[0], slot[0], kind[0]), (x[1] - centre) / spread, spread.log()


def _row_by_row(series: Series, clock: Clock, columns: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Slot of the day, kind of day, and readings."""
    x = torch.from_numpy(series.values.reshape(len(series), -1)[:, columns].astype(np.float64))
    if series.times is None:
        nothing = torch.zeros(len(series), dtype=torch.long)
        return nothing, nothing, x
    return torch.from_numpy(clock.slot(series.times)), torch.from_numpy(clock.kind(series.times)), x


def _log_prob(C: Tensor, windows: Tensor, by: Shrinkage) -> float:
    observed = ~windows.isnan()
    return float(Stationary.of(C, by).posterior(windows.nan_to_num(), observed).log_prob.sum())
