"""From a series to a conditional model of its windows: a clock, the calendar's mean, a stationary reference, a network.

What is decided by validation windows, and noted in the summary:

    calendar     whether readings have a mean, and a spread, by the time of day and the kind of day, or one a column:
                 what makes the validation readings most probable, in their own units
    reference    which covariance, and how much of it goes to smaller models (see ``window_references``)
    network      whether it is better than the reference alone (see ``conditional``)

Any method but ``grcd`` is the paper's: trained on windows by themselves, on the product graph.

References of folds, which the network trains beside, are fitted without the stretch of time they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.rows import evenly
from ..data.clock import Clock
from ..data.series import Series
from ..diffusion.conditional import Conditional
from ..graphs.space import SignalSpace
from ..references.calendar import CalendarMean
from ..references.reference import Reference
from ..references.stationary import Shrinkage, Trial, lag_covariances
from ..tasks.guided import Guided
from . import conditional
from . import fit as plain
from .config import Config
from .pool import Fold, cross_fitted
from .window_config import WindowConfig
from .window_references import WindowReferences, refuse_window

FOLDS = 3
SMOOTH = 2.0 / 288  # of a day: the kernel's standard deviation
LAGS = 6  # of the covariances that shrinkage is chosen on, at most: weights hardly depend on it
WINDOWS, MOST_NUMBERS = 20_000, 1 << 28  # that a method on the product graph trains on, at most
JUDGED = 256  # validation windows that choices are made on, at most
CALENDARS = {"none": None, "mean": 0.0, "mean and spread": 0.5}  # how much of the spread goes by the clock


@dataclass(frozen=True, eq=False)
class WindowModel:
    """A law of z-scored windows, and the map between readings and z-scores: mean and spread by the calendar."""

    law: Conditional | Guided
    clock: Clock
    mean: CalendarMean
    calendar: str  # a name of CALENDARS

    def about(self, times: np.ndarray | None, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, spread (rows, columns) and what the network is told (rows, features) of rows at these times."""
        slot, kind, features = _calendar(self.clock, times, rows, self.mean.table.device)
        by_clock = self.calendar != "none"
        return *self.mean.rows(slot * by_clock, kind * by_clock), features


def fit(
    space: SignalSpace,
    train: Series,
    val: Series,
    config: Config | WindowConfig,
    device: torch.device,
    log: Callable[[Any, dict], None] = lambda state, record: None,
    resume: Callable[[Any], None] = lambda state: None,
) -> tuple[WindowModel, dict]:
    """A model of windows of ``space`` from two series (rows, nodes, channels), and how training went."""
    refuse_window(space, device)
    table = _Table(space, train, val, device)
    name = max(CALENDARS, key=table.log_prob) if config.calendar == "auto" else "none"
    law: Conditional | Guided
    if isinstance(config, WindowConfig):
        law, summary = _conditional(table, name, config, log, resume)
    else:
        diffusion, summary = plain.fit(space, config, device, *table.windows(name), log=log, resume=resume)
        law = Guided(diffusion)
    mean = table.mean(name, train.stretches)
    return WindowModel(law, table.clock, mean, name), summary | {"calendar": name}


def _conditional(
    table: _Table, name: str, config: WindowConfig, log: Callable[[Any, dict], None], resume: Callable[[Any], None]
) -> tuple[Conditional, dict]:
    """The conditional model: a network beside references that never saw its windows."""
    space, stretches, references = table.space, table.train.stretches, table.references(name)
    choice = references.choose()

    def learned(rows: Sequence[slice]) -> tuple[Tensor, Reference, Tensor]:
        z, spread = table.scored(name, rows)
        return z.float(), references.fit(choice, z, rows), spread.float()

    folds = cross_fitted(learned, table.features, stretches, space.steps, FOLDS)
    z, reference, scale = learned(stretches)
    starts = torch.from_numpy(table.val_starts).to(z.device)
    validation = Fold(z, table.features, starts, reference, scale)
    model, summary = conditional.fit(space, folds, validation, config, log, resume)
    return model, summary | {"reference": choice.summary()}


class _Table:
    """Training and validation rows one after the other on a device, and what can be learned from some of them."""

    def __init__(self, space: SignalSpace, train: Series, val: Series, device: torch.device):
        self.space, self.train, self.clock = space, train, Clock.of(train)
        rows = np.concatenate([part.values.reshape(len(part), -1) for part in (train, val)])
        self.x = torch.from_numpy(rows).to(device, torch.float64)
        parts = [_calendar(self.clock, part.times, len(part), device) for part in (train, val)]
        self.slot, self.kind, self.features = (torch.cat(both) for both in zip(*parts, strict=True))
        self.train_starts, self.val_starts = train.starts(space.steps), val.starts(space.steps) + len(train)
        self.node = torch.arange(rows.shape[1], device=device) // space.channels

    def mean(self, calendar: str, stretches: Sequence[slice]) -> CalendarMean:
        """Fitted to these rows."""
        chosen, power = (
            torch.cat([torch.arange(s.start, s.stop) for s in stretches]).to(self.x.device),
            CALENDARS[calendar],
        )
        slot, kind, slots, kinds = self.slot[chosen], self.kind[chosen], self.clock.slots, self.clock.kinds
        if power is None:
            return CalendarMean.fit(self.x[chosen], 0 * slot, 0 * kind, 1, 1, 0.0)
        return CalendarMean.fit(self.x[chosen], slot, kind, slots, kinds, SMOOTH * slots, power)

    def scored(self, calendar: str, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """z-scores of all rows, by the mean of these rows; and the spread that they were divided by."""
        by_clock = calendar != "none"
        mean, spread = self.mean(calendar, stretches).rows(self.slot * by_clock, self.kind * by_clock)
        return (self.x - mean) / spread, spread

    def references(self, calendar: str) -> WindowReferences:
        """Of windows of z-scores by a calendar."""
        return WindowReferences(
            self.space, lambda rows: self.scored(calendar, rows)[0], self.train.stretches, self.val_starts
        )

    def windows(self, calendar: str) -> tuple[np.ndarray, np.ndarray]:  # two of (windows, d)
        """Training and validation windows by themselves, z-scored, evenly spaced where they are many."""
        z = self.scored(calendar, self.train.stretches)[0].cpu().numpy()
        most, steps = min(WINDOWS, MOST_NUMBERS // self.space.d), np.arange(self.space.steps)
        chosen = (starts[evenly(len(starts), most)] for starts in (self.train_starts, self.val_starts))
        train, val = (z[starts[:, None] + steps].reshape(-1, self.space.d) for starts in chosen)
        return train[~np.isnan(train).all(axis=1)], val[~np.isnan(val).all(axis=1)]

    def trial(self, calendar: str) -> tuple[Trial, Tensor]:
        """Short windows of validation rows with the lag covariances of training rows; and what spread they have."""
        z, spread = self.scored(calendar, self.train.stretches)
        lags = min(LAGS, self.space.steps)
        starts = self.val_starts[evenly(len(self.val_starts), JUDGED)]
        rows = torch.from_numpy(starts[:, None] + np.arange(lags)).to(z.device)
        windows = z[rows].flatten(1)
        observed = ~windows.isnan()
        trial = Trial(lag_covariances(z, lags, self.train.stretches), windows.nan_to_num(), observed)
        return trial, (spread[rows].flatten(1).log() * observed).sum()

    def log_prob(self, calendar: str) -> float:
        """Of the validation readings in their own units, under a calendar and the usual shrinkage; a fixed calendar
        has nothing to choose from where times say nothing."""
        if calendar != "none" and self.clock == Clock():
            return -np.inf
        trial, spread = self.trial(calendar)
        return -trial.cost(Shrinkage(), self.node)[0] - float(spread)


def _calendar(
    clock: Clock, times: np.ndarray | None, rows: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:  # (rows,), (rows,), (rows, features)
    """Slot, kind of day and features of rows."""
    if times is None or clock == Clock():
        nothing = torch.zeros(rows, dtype=torch.long, device=device)
        return nothing, nothing, torch.zeros(rows, 0, device=device)
    parts = clock.slot(times), clock.kind(times), clock.features(times)
    slot, kind, features = (torch.from_numpy(part).to(device) for part in parts)
    return slot, kind, features
