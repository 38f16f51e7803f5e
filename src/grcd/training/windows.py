"""From a series to a conditional model of its windows: a mean by the calendar, a stationary reference, a network.

What is decided by validation windows, and noted in the summary:

    calendar     whether readings have a mean, and a spread, by the time of day, the day of the week and the year, or
                 one a column; and which covariates count: what makes held-out readings more probable (see ``means``)
    reference    which covariance, and how much of it goes to smaller models (see ``window_references``)
    network      whether it is better than the reference alone (see ``conditional``)

Any method but ``grcd`` and ``grcd-sparse`` is the paper's: trained on windows by themselves, on the product graph.

References of folds, which the network trains beside, are fitted without the stretch of time they are for. Where no
network is used in the end, mean and reference are fitted once more, to training and validation rows together: of few
rows a tenth is worth having. The law of single rows always is: no network is bound to it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import InputWarning
from ..core.progress import quiet, working
from ..core.rows import evenly
from ..data.covariates import Covariates
from ..data.notes import warn
from ..data.series import Series
from ..diffusion.conditional import Conditional
from ..graphs.space import SignalSpace
from ..references.reference import Reference
from ..tasks import moments
from ..tasks.guided import Guided
from . import budget, conditional
from . import fit as plain
from .config import Config
from .mean import Mean, Terms
from .means import Means
from .pool import Fold, cross_fitted
from .sparse_references import SparseReferences
from .window_choice import Choice
from .window_config import WindowConfig
from .window_references import WindowReferences

FOLDS = 3
LEAST = 4  # validation windows that do not overlap: of fewer no gain is more than chance
WINDOWS, MOST_NUMBERS = 20_000, 1 << 28  # that a method on the product graph trains on, at most


@dataclass(frozen=True, eq=False)
class WindowModel:
    """A law of z-scored windows, and the map between readings and z-scores: mean and spread by the calendar."""

    law: Conditional | Guided
    mean: Mean
    C0: Tensor | None = None  # (columns, columns) covariance of the z-scores of a row; None where it is too large

    def about(
        self, times: np.ndarray | None, rows: int, covariates: Covariates | np.ndarray | None = None, first: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, spread (rows, columns) and what the network is told (rows, features) of rows at these times, with
        these covariates: see ``Mean.rows``."""
        return self.mean.rows(times, rows, covariates, first)


def fit(
    space: SignalSpace,
    train: Series,
    val: Series,
    config: Config | WindowConfig,
    device: torch.device,
    log: Callable[[Any, dict], None] = lambda state, record: None,
    resume: Callable[[Any], None] = lambda state: None,
    covariates: Covariates | None = None,
    settle: budget.Settle = budget.anew,
) -> tuple[WindowModel, dict]:
    """A model of windows of ``space`` from two series (rows, nodes, channels), and how training went.

    ``settle`` remembers what a budget of time decided. Of the summary, ``seconds`` are those of updates, in all calls
    that it took; ``preparation`` all others, in this one.
    """
    before = [0.0]

    def resumed(state: Any) -> None:
        resume(state)
        before[0] = state.seconds

    hooks = _Hooks(log, resumed, settle, time.monotonic())
    means = Means(space, train, val, device, covariates, config.calendar)
    with working("choosing a mean"):
        terms, kept = means.chosen()
    warn(means.notes)
    table = _Table(means, terms)
    law: Conditional | Guided
    if isinstance(config, WindowConfig):
        law, summary = _conditional(table, config, hooks)
    else:
        diffusion, summary = plain.fit(
            space, config, device, *table.windows(), log=log, resume=resumed, settle=settle, began=hooks.began
        )
        law = Guided(diffusion)
    model = WindowModel(law, means.fitted(terms, train.stretches), _of_rows(table, train.stretches))
    preparation = time.monotonic() - hooks.began - (summary.get("seconds", 0.0) - before[0])
    return model, summary | kept | {"preparation": round(preparation, 1)}


def may_fit_again(model: WindowModel, summary: dict[str, Any]) -> bool:
    """Whether mean and reference stand alone, and take little time: a network knows those that it was trained by."""
    small = isinstance(model.law, Conditional) and summary["reference"]["kind"] != "sparse"
    return small and not summary["network"] and not model.law.space.graph.large


def fit_again(
    model: WindowModel,
    summary: dict[str, Any],
    train: Series,
    val: Series,
    stretches: Sequence[slice],
    covariates: Covariates | None = None,
) -> WindowModel:
    """The mean and the reference of a conditional model as they would be of some of its training rows, by the choices
    that were made of all; without a network."""
    assert isinstance(model.law, Conditional)
    means = Means(model.law.space, train, val, model.mean.table.mean.device, covariates)
    mean = means.fitted(model.mean.terms, stretches)
    table = _Table(means, model.mean.terms)
    references = WindowReferences(table.space, lambda rows: table.scored(rows)[0], stretches, table.val_starts)
    reference = references.fit(Choice.of(summary["reference"]), table.scored(stretches)[0], stretches)
    law, mean = Conditional(model.law.space, reference), replace(mean, by_calendar=model.mean.by_calendar)
    return WindowModel(law, mean, _of_rows(table, stretches))


def rows_again(model: WindowModel, parts: Sequence[Series], covariates: Covariates | None = None) -> WindowModel:
    """The law of single rows from all of these, training and validation: no network is bound to it."""
    if model.C0 is None or (model.mean.covariates and parts[0].times is None):
        return model
    z = list[Tensor]()
    for part in parts:
        mean, spread, _ = model.about(part.times, len(part), covariates)
        z.append((torch.from_numpy(part.values.reshape(len(part), -1)).to(mean) - mean) / spread)
    return replace(model, C0=moments.covariance(torch.cat(z)))


def _of_rows(table: _Table, stretches: Sequence[slice]) -> Tensor | None:  # (columns, columns)
    """The covariance of the z-scores of these rows, as it is: what the law of single rows is made of."""
    space = table.space
    if space.graph.large or space.d // space.steps > moments.MOST:
        return None
    z = table.scored(stretches)[0]
    return moments.covariance(torch.cat([z[rows] for rows in stretches]))


@dataclass(frozen=True)
class _Hooks:
    """What training is watched by, and when it began."""

    log: Callable[[Any, dict], None]
    resume: Callable[[Any], None]
    settle: budget.Settle
    began: float

    def until(self, minutes: float) -> float:
        """By ``time.monotonic``."""
        return self.began + 60 * minutes if minutes else math.inf


def _conditional(table: _Table, config: WindowConfig, hooks: _Hooks) -> tuple[Conditional, dict]:
    """The conditional model: a network beside references that never saw its windows."""
    space, stretches, references = table.space, table.train.stretches, table.references(config)
    with working("choosing a reference"):
        choice = references.choose()
    if config.max_updates and (why := _no_network(table)):
        warnings.warn(f"{why}: the model is its reference alone", InputWarning, stacklevel=2)
        config = config.changed({"max_updates": 0})

    def learned(rows: Sequence[slice]) -> tuple[Tensor, Reference, Tensor]:
        z, spread = table.scored(rows)
        return z.float(), references.fit(choice, z, rows), spread.float()

    with working("fitting the reference"):
        z, reference, scale = learned(stretches)
    starts = torch.from_numpy(table.val_starts).to(z.device)
    validation = Fold(z, table.features, starts, reference, scale)
    if not config.max_updates:
        model, summary = conditional.fit(space, [], validation, config)
        return model, summary | {"reference": choice.summary()}
    with working("references of parts of the rows"):
        folds = cross_fitted(learned, table.features, stretches, space.steps, FOLDS)
    until = hooks.until(config.minutes)

    def settled() -> dict[str, Any]:
        with working("timing a few updates"), quiet():
            paces = conditional.paces(space, folds, validation, config)
            windows = sum(len(fold.starts) for fold in folds)
            return budget.of_windows(config.to_dict(), paces, budget.left(until), windows)

    if config.minutes:
        config = config.changed(hooks.settle(settled))
    elif z.device.type == "cpu" and config.max_updates >= budget.LEAST:
        with working("timing a few updates"), quiet():
            pace = conditional.paces(space, folds, validation, config)(config.width)
        budget.warn_long(pace.total(config.max_updates, config.pool, config.validate_every))
    model, summary = conditional.fit(space, folds, validation, config, hooks.log, hooks.resume, until)
    return model, summary | {"reference": choice.summary()}


def _no_network(table: _Table) -> str:
    """Why none can be had, where none can."""
    space = table.space
    if space.graph.large:
        return f"there is no network of windows on {len(space.graph):,} nodes"
    apart = len(np.unique(table.val_starts // space.steps))
    windows = f"{apart} window{'s' * (apart != 1)} of {space.steps} rows that do not overlap"
    return f"validation rows make {windows}, too few to tell whether a network helps" if apart < LEAST else ""


class _Table:
    """Training and validation rows one after the other on a device, and what can be learned from some of them."""

    def __init__(self, means: Means, terms: Terms):
        self.means, self.terms, self.space, self.train = means, terms, means.space, means.train
        steps, train, val = self.space.steps, means.train, means.val
        self.features = means.told(terms)
        self.train_starts, self.val_starts = train.starts(steps), val.starts(steps) + len(train)

    def scored(self, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """z-scores of all rows, by the mean of these rows; and the spread that they were divided by."""
        return self.means.scored(self.means.fitted(self.terms, stretches))

    def references(self, config: WindowConfig) -> WindowReferences | SparseReferences:
        """Of windows of z-scores."""
        kind = SparseReferences if config.sparse or self.space.graph.large else WindowReferences
        return kind(self.space, lambda rows: self.scored(rows)[0], self.train.stretches, self.val_starts)

    def windows(self) -> tuple[np.ndarray, np.ndarray]:  # two of (windows, d)
        """Training and validation windows by themselves, z-scored, evenly spaced where they are many."""
        z = self.scored(self.train.stretches)[0].cpu().numpy()
        most, steps = min(WINDOWS, MOST_NUMBERS // self.space.d), np.arange(self.space.steps)
        chosen = (starts[evenly(len(starts), most)] for starts in (self.train_starts, self.val_starts))
        train, val = (z[starts[:, None] + steps].reshape(-1, self.space.d) for starts in chosen)
        return train[~np.isnan(train).all(axis=1)], val[~np.isnan(val).all(axis=1)]
