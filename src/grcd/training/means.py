"""Which mean a series has: what of the calendar and of the covariates makes held-out readings more probable.

From a mean a column on, of the steps that gain beyond doubt the largest is taken, as long as there is one:

    time of day     a curve over the clock, and what working days and weekends add to it
    day of week     what each day of the week adds
    spread          a spread by the clock too, half of the way
    year            waves of the time of year, where rows span a year and a half
    covariates      the first 1, 2, 4, ... of those that explain most, or all; one for twenty training rows at most

**Held-out** are the validation rows, judged by a mean and a covariance of the training rows, and each third of the
training rows, judged by those of the other two: with few validation rows alone the choice would be chance. The order of
covariates, too, is taken without the rows that judge. What is judged is the probability of a few steps spread over a
window, of a few dozen columns at most, in units of the readings, under a stationary Gaussian. Its shrinkage is what
suits a mean a column best; its noise is the same for all means in units of the readings, or a mean would gain by tuning
it. A column that was hardly read in the rows that its mean is learned from is not judged: that mean is chance, and its
error would outweigh all others.

**A gain must exceed its own noise.** Gains of windows are summed over blocks of time, and their sum has to be larger
than chance would make it once in twenty times, by Student's t, for all steps that were tried at once (Bonferroni), and
than a thousandth of a nat a reading. So covariates that say nothing are left out: they cannot hurt.

The calendar is that of the times as they stand, the user's clock (see ``data.clock``).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from ..core.errors import some
from ..core.rows import evenly
from ..data.clock import Clock
from ..data.covariates import Covariates
from ..data.notes import Note
from ..data.series import Series
from ..graphs.space import SignalSpace
from ..references.calendar import WEEK, CalendarMean
from ..references.coefficients import order
from ..references.lags import Shrinkage, lag_covariances
from ..references.stationary import Stationary
from .config import refuse_calendar
from .mean import Mean, RowCalendar, Terms, scored
from .pool import parted

SMOOTH = 2.0 / 288  # of a day: the kernel's standard deviation
POWER = 0.5  # how much of the spread goes by the clock
FOLDS = 3
LAGS = 6  # steps of the windows that judge, at most
COLUMNS = 40  # that judge, about
JUDGED = 200  # windows of a part that judge, at most
BLOCKS = 10  # of a part's windows, at most: few windows are in blocks too, for one is like the next
CHANCE = 0.05  # of a step that gains nothing
LEAST = 1e-3  # nats a reading that a step has to gain: for less it is not worth its numbers
ROWS = 20  # of training, at least, for a covariate
HARDLY = 0.25  # of the readings that a column usually has
SIMPLER = "time of day, weekend"
COVARIANCES = (  # under which readings are judged: from strong correlations and many rows to weak ones and few
    Shrinkage(noise=0.005),
    Shrinkage(noise=0.05),
    Shrinkage(local=1.0, noise=0.05),
    Shrinkage(nodes=0.5, local=2.0, noise=0.2),
)


class Means:
    """Training and validation rows one after the other on a device, and the means that they may have."""

    def __init__(
        self,
        space: SignalSpace,
        train: Series,
        val: Series,
        device: torch.device,
        covariates: Covariates | None = None,
        calendar: str = "auto",
    ):
        """``covariates`` without times begin with the first training row, and go on with the validation rows."""
        refuse_calendar(calendar)
        self.space, self.train, self.val, self.calendar = space, train, val, calendar
        self.clock = Clock.of(train)
        rows = np.concatenate([part.values.reshape(len(part), -1) for part in (train, val)])
        self.x = torch.from_numpy(rows).to(device, torch.float64)
        times = None if train.times is None or val.times is None else np.concatenate([train.times, val.times])
        self.of_rows = RowCalendar.of(self.clock, times, len(rows), device)
        self.names, self.notes = tuple[str, ...](), tuple[Note, ...]()
        self.usual = np.zeros((4, 0))
        self.known = self.x.new_zeros(len(rows), 0)  # z-scores of covariates, 0 where not known
        self.orders = dict[Any, list[int]]()  # of covariates, by terms and rows
        if covariates is not None:
            self._take(covariates)

    def _take(self, covariates: Covariates) -> None:
        """Those covariates that vary over the training rows."""
        train = covariates.at(self.train.times, len(self.train))
        val = covariates.at(self.val.times, len(self.val), len(self.train))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a covariate that training rows know nothing of
            usual = np.stack([fold(train, axis=0) for fold in (np.nanmean, np.nanstd, np.nanmin, np.nanmax)])
        varies = usual[1] > 1e-9 * np.abs(usual[0])
        if not varies.all():
            constant = [name for name, yes in zip(covariates.names, varies, strict=True) if not yes]
            self.notes = (Note(f"covariates that are the same in all training rows: {some(constant)}", "left out"),)
        self.names = tuple(name for name, yes in zip(covariates.names, varies, strict=True) if yes)
        self.usual = usual[:, varies]
        self.known = torch.from_numpy(scored(np.concatenate([train, val])[:, varies], self.usual)).to(self.x)

    # -- a mean of some rows -----------------------------------------------------------------------------------------

    def fitted(self, terms: Terms, stretches: Sequence[slice]) -> Mean:
        """Made of ``terms``, learned from these rows."""
        table = self._table(self.x, terms, _numbers(stretches, self.x.device))
        usual = self.usual[:, self._places(terms)]
        return Mean(self.clock, terms, self.calendar != "none", usual, table)

    def scored(self, mean: Mean) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """z-scores of all rows by a mean, and the spread that they were divided by."""
        return self._scored(self.x, mean.terms, mean.table)

    def told(self, terms: Terms) -> Tensor:  # (rows, features) float32
        """What the network is told of all rows."""
        return self.of_rows.told(terms, self.calendar != "none", self.known[:, self._places(terms)])

    def _places(self, terms: Terms) -> list[int]:
        return [self.names.index(name) for name in terms.covariates]

    def _table(self, values: Tensor, terms: Terms, rows: Tensor) -> CalendarMean:
        """Of values (all rows, columns), learned from these rows."""
        calendar, known = self.of_rows[rows], self.known[rows][:, self._places(terms)]
        slots, kinds = (self.clock.slots, self.clock.kinds) if terms.clock else (1, 1)
        return CalendarMean.fit(
            values[rows],
            *calendar.cell(terms),
            slots,
            WEEK if terms.week else kinds,
            SMOOTH * slots if slots > 1 else 0.0,
            POWER * terms.spread,
            calendar.features(terms, known),
        )

    def _scored(self, values: Tensor, terms: Terms, table: CalendarMean) -> tuple[Tensor, Tensor]:
        known = self.known[:, self._places(terms)]
        mean, spread = table.rows(*self.of_rows.cell(terms), self.of_rows.features(terms, known))
        return (values - mean) / spread, spread

    # -- which terms -------------------------------------------------------------------------------------------------

    def chosen(self) -> tuple[Terms, dict[str, Any]]:
        """The terms that make held-out readings more probable; and what to say of it: ``calendar`` and ``covariates``
        that were kept, and of every step that was ``tried`` what it gained and had to gain, a reading."""
        judge = Judge(self)
        candidate, tried = Candidate(Terms()), list[dict[str, Any]]()
        while steps := self._steps(candidate):
            gains = {name: judge.gain(candidate, step, len(steps)) for name, step in steps.items()}
            sure = {name: gain for name, (gain, needed) in gains.items() if gain > needed}
            if SIMPLER in sure:
                sure.pop("day of week", None)  # it has to gain beside the time of day
            best = max(sure, key=lambda name: sure[name]) if sure else None
            best = self._fewest(judge, steps, list(sure), best) if best is not None else None
            tried += [
                {"step": name, "gain": gain, "needed": needed if np.isfinite(needed) else None, "kept": name == best}
                for name, (gain, needed) in gains.items()
            ]
            if best is None:
                break
            candidate = steps[best]
        terms = self.with_covariates(candidate, _numbers(self.train.stretches, self.x.device))
        kept = {"calendar": terms.calendar, "covariates": list(terms.covariates), "tried": tried}
        return terms, kept | {"notes": [str(note) for note in self.notes]}

    @staticmethod
    def _fewest(judge: Judge, steps: dict[str, Candidate], sure: list[str], best: str) -> str:
        """Of covariates the fewest: more of them have to gain beyond doubt over fewer."""
        fewer = [name for name in sure if 0 < steps[name].covariates < steps[best].covariates]
        for name in fewer:  # ascending
            gain, needed = judge.gain(steps[name], steps[best], len(fewer))
            if steps[name].terms == steps[best].terms and not gain > needed:
                return name
        return best

    def _steps(self, now: Candidate) -> dict[str, Candidate]:
        """What may be added, by name."""
        terms, steps = now.terms, dict[str, Terms]()
        if self.calendar != "none":
            if not terms.clock and max(self.clock.slots, self.clock.kinds) > 1:
                steps[SIMPLER] = replace(terms, clock=True)
            if not terms.week and self.clock.kinds > 1:
                steps["day of week"] = replace(terms, clock=True, week=True)
            if terms.clock and not terms.spread:
                steps["spread"] = replace(terms, spread=True)
            if self.clock.yearly and not terms.year:
                steps["year"] = replace(terms, year=True)
        most = min(len(self.names), max(1, len(self.train) // ROWS))
        counts = sorted({*(2**k for k in range(20) if 2**k < most), most})
        more = {_covariates(n, len(self.names)): Candidate(terms, n) for n in counts if n > now.covariates}
        return {name: Candidate(step, now.covariates) for name, step in steps.items()} | more

    def with_covariates(self, candidate: Candidate, rows: Tensor) -> Terms:
        """Its terms with those covariates that explain most of these rows beside them."""
        if candidate.covariates in (0, len(self.names)):
            return replace(candidate.terms, covariates=self.names[: candidate.covariates])
        key = candidate.terms, int(rows[0]), int(rows.sum())
        if key not in self.orders:
            self.orders[key] = self._order(candidate.terms, rows)
        kept = sorted(self.orders[key][: candidate.covariates])
        return replace(candidate.terms, covariates=tuple(self.names[k] for k in kept))

    def _order(self, terms: Terms, rows: Tensor) -> list[int]:
        """Covariates from what explains most of these rows on, beside what the calendar does."""
        rest, about = (
            values[rows] - self._table(values, terms, rows).rows(*self._at(terms, rows))[0]
            for values in (self.x, self.known)
        )
        return order(rest, about, len(self.names) - 1)

    def _at(self, terms: Terms, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        calendar = self.of_rows[rows]
        return *calendar.cell(terms), calendar.features(terms, self.known[rows][:, :0])


@dataclass(frozen=True)
class Candidate:
    """Terms of the calendar, and how many covariates beside them: which, is learned with the mean."""

    terms: Terms
    covariates: int = 0


class Judge:
    """Held-out windows of a few dozen columns, and how probable they are under a mean."""

    def __init__(self, means: Means):
        self.means, space = means, means.space
        nodes = evenly(len(space.graph), max(2, COLUMNS // space.channels))
        columns = (nodes[:, None] * space.channels + np.arange(space.channels)).ravel()
        self.x = means.x[:, torch.from_numpy(columns).to(means.x.device)]
        self.node = torch.from_numpy(np.repeat(np.arange(len(nodes)), space.channels)).to(means.x.device)
        rows = len(means.train)
        parts = parted(means.train.stretches, FOLDS)
        held = [slice(s.start + rows, s.stop + rows) for s in means.val.stretches]
        self.trials = [(_but(parts, part), part) for part in parts if len(parts) > 1] + [(means.train.stretches, held)]
        longest = min((max(s.stop - s.start for s in part) for _, part in self.trials if part), default=1)
        self.lags = max(1, min(LAGS, space.steps, longest // 4))
        self.stride = max(1, min(space.steps, longest // 4) // self.lags)
        self.log_prob = cache(self._log_prob)
        self.shrinkage = max(COVARIANCES, key=self._suits)

    def _suits(self, shrinkage: Shrinkage) -> float:
        self.shrinkage = shrinkage
        return float(sum(log_prob.sum() for log_prob, _ in self._log_prob(Candidate(Terms()))))

    def gain(self, before: Candidate, after: Candidate, tests: int) -> tuple[float, float]:
        """What the second gains over the first, in nats a reading, and what chance gains by itself at times."""
        blocks, readings = list[np.ndarray](), 0
        for (old, _), (new, count) in zip(self.log_prob(before), self.log_prob(after), strict=True):
            parts = np.array_split(new - old, max(1, min(BLOCKS, round(np.sqrt(len(new))))))
            blocks += [np.sum(part) for part in parts if len(part)]
            readings += count
        n = len(blocks)
        if n < 2 or not readings:
            return 0.0, np.inf
        noise = np.std(blocks, ddof=1) * np.sqrt(n) * stdtrit(n - 1, 1 - CHANCE / tests)
        return float(np.sum(blocks) / readings), max(LEAST, float(noise / readings))

    def _log_prob(self, candidate: Candidate) -> list[tuple[np.ndarray, int]]:
        """Of the windows (windows,) of every trial, and how many readings they have."""
        return [self._trial(candidate, list(learn), list(held)) for learn, held in self.trials]

    def _trial(self, candidate: Candidate, learn: list[slice], held: list[slice]) -> tuple[np.ndarray, int]:
        means = self.means
        span = (self.lags - 1) * self.stride + 1
        starts = np.concatenate([np.arange(s.start, s.stop - span + 1, self.lags) for s in held])
        if not len(starts):
            return np.zeros(0), 0
        starts = starts[evenly(len(starts), JUDGED)]
        rows = torch.from_numpy(starts[:, None] + np.arange(0, span, self.stride)).to(self.x.device)
        chosen = _numbers(learn, self.x.device)
        terms = means.with_covariates(candidate, chosen)
        table = means._table(self.x, terms, chosen)
        z, spread = means._scored(self.x, terms, table)
        share = table.sd / means._table(self.x, Terms(), chosen).sd
        z, spread = z * share, spread / share
        runs = [slice(s.start + k, s.stop, self.stride) for s in learn for k in range(self.stride)]
        reference = Stationary.of(lag_covariances(z, self.lags, runs), self.shrinkage, self.node)
        windows = z[rows].flatten(1)
        observed = ~windows.isnan() & often_read(self.x[chosen]).repeat(self.lags)
        log_prob = reference.posterior(windows.nan_to_num(), observed).log_prob
        log_prob = log_prob - (spread[rows].flatten(1).log() * observed).sum(1)
        return log_prob.cpu().numpy(), int(observed.sum())


def often_read(x: Tensor) -> Tensor:  # (rows, columns), NaN where missing -> (columns,) of bool
    """Columns with readings enough for a mean of their own; others say nothing of what is learned from these rows."""
    read = (~x.isnan()).sum(0)
    return read >= HARDLY * read.median()


def _covariates(count: int, all_of_them: int) -> str:
    return f"{'all ' if count == all_of_them > 1 else ''}{count} covariate{'s' * (count > 1)}"


def _but(parts: Sequence[list[slice]], part: list[slice]) -> list[slice]:
    return [s for other in parts if other is not part for s in other]


def _numbers(stretches: Sequence[slice], device: torch.device) -> Tensor:  # (rows,)
    """The numbers of rows."""
    return torch.cat([torch.arange(s.start, s.stop) for s in stretches]).to(device)
