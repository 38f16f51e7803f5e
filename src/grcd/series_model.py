"""A trained model of windows: series in, series out, in the units of the readings.

``GRCD`` holds one where there is a window, or where there are several channels. It converts between readings and
z-scores, by mean and spread of the calendar, and calls tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .core import memory
from .core.errors import InputError, whole_number
from .core.progress import bar
from .core.rows import BLOCK
from .core.streams import Stream
from .data.covariates import Covariates
from .data.normalizer import Normalizer, warn_of_units
from .data.series import Series
from .data.timeline import Timeline
from .diffusion.conditional import Conditional
from .evaluation import hiding
from .evaluation.contest import Contest, Process, Way, merged
from .graphs.space import SignalSpace
from .runs.series import TrainedSeries
from .tasks import context, moments, windows
from .tasks.columns import Columns
from .tasks.fill import refuse_unknown
from .tasks.guided import Guided
from .training.config import limits_of

COPIES = 3  # of what is drawn that are in memory at once
SAMPLED = 64  # windows at a time
EVALUATIONS, GUIDED = {"cpu": 2, "cuda": 4}, 8  # METR-LA has the same scores at 2, 4 and 8; guidance wants more


class SeriesModel:
    """What a trained model says of series of its nodes and channels.

    Arguments that several methods have:
    ``series``       rows in time, values (rows, nodes, channels) with NaN where missing
    ``n``            how many draws
    ``nfe``          network evaluations for each window of them; by default what fills gaps as well as more would
    ``posterior``    "diffusion", the model's own; "reference", that of the reference alone; or, of gaps, "auto": what
                     was nearest to hidden readings at the end of training, for each kind of gap (``contest``)
    ``covariates``   of all rows, those to come too, where some were kept in training; those of a series without times
                     begin with its first row
    """

    def __init__(self, trained: TrainedSeries):
        self.trained, self.model = trained, trained.model
        about = trained.facts["data"]
        self.channels: tuple[str, ...] = tuple(about["channels"])
        self.units: tuple[str, ...] = tuple(about["units"])
        self.timeline = Timeline.from_dict(about["timeline"])
        self.moments = Normalizer.of(trained.facts["normalizer"])
        self.lacking: list[int] = about["lacking"]  # columns of which training saw nothing
        config = trained.facts["config"]
        self.limits = limits_of(config["support"], config.get("integers", "no"), len(self.channels))

    @property
    def law(self) -> Conditional | Guided:
        """Of z-scored windows."""
        return self.model.law

    @property
    def space(self) -> SignalSpace:
        return self.law.space

    @property
    def covariates(self) -> tuple[str, ...]:
        """The names of those that were kept."""
        return self.model.mean.covariates

    @property
    def device(self) -> torch.device:
        return self.model.mean.table.mean.device

    @property
    def interval(self) -> np.timedelta64 | float | None:
        """Between rows."""
        return self.timeline.interval

    def budget(self, nfe: int | None) -> int:
        """Network evaluations for gaps and forecasts, where nobody says how many."""
        if nfe is not None:
            return nfe
        return GUIDED if isinstance(self.law, Guided) else EVALUATIONS[self.device.type]

    def fillings(
        self,
        series: Series,
        n: int = 100,
        nfe: int | None = None,
        seed: int = 0,
        posterior: str = "diffusion",
        covariates: Covariates | None = None,
        chunk: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some rows at a time: their numbers, and draws (n, rows, nodes, channels) that keep what was observed."""
        if posterior == "auto":
            return self._nearest(series, n, nfe, seed, covariates, chunk)
        return self._by((posterior, None), series, n, nfe, seed, covariates, chunk)

    @property
    def contest(self) -> Contest | None:
        """How our candidates and simple competitors filled hidden readings; None of a run that is older than that."""
        numbers = self.trained.result.get("contest")
        return None if numbers is None else Contest.from_dict(numbers)

    def _nearest(
        self, series: Series, n: int, nfe: int | None, seed: int, covariates: Covariates | None, chunk: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Every gap by the candidate that won at its kind."""
        kinds = hiding.families(series, self.space.steps)
        kinds.reshape(len(kinds), -1)[:, self.lacking] = -1
        contest = self.contest
        ways = {} if contest is None else contest.ways(kinds)
        if contest is not None:
            contest.warn(kinds)
        if len(ways) > 1:
            chunk = chunk or max(1, BLOCK // (n * kinds[0].size))
        ways = ways or {("diffusion", None): kinds >= 0}
        return merged({way: self._by(way, series, n, nfe, seed, covariates, chunk) for way in ways}, ways)

    def _by(
        self,
        way: Way,
        series: Series,
        n: int,
        nfe: int | None,
        seed: int,
        covariates: Covariates | None,
        chunk: int | None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        posterior, process = way
        if process is not None:
            return self.by_process(series, process, n, seed, covariates, chunk)
        z, about = self._scored(series, covariates)
        law, nfe = self._law(posterior), self.budget(nfe)
        parts = windows.fill(law, z, about[2], series.stretches, n, nfe, seed, chunk=chunk)
        return ((rows, self._filled(drawn, rows, about, series.values[rows])) for rows, drawn in parts)

    def by_process(
        self,
        series: Series,
        process: Process,
        n: int,
        seed: int = 0,
        covariates: Covariates | None = None,
        chunk: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As ``fillings``, every column or every row by itself."""
        whole_number("n", n)
        z, about = self._scored(series, covariates)
        parts = self._bound(process).draws(z, series.stretches, n, seed, chunk)
        return ((rows, self._filled(drawn, rows, about, series.values[rows])) for rows, drawn in parts)

    def of_process(
        self, series: Series, truth: Series, process: Process, covariates: Covariates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # three of (rows, nodes, channels)
        """The median of gaps by a process; on the scale of its readings how far from the truth that is, and the
        standard deviation."""
        z, about = self._scored(series, covariates, warn=False)
        mean, sd = self._bound(process).posterior(z, series.stretches)
        off = (self._scored(truth, covariates, warn=False)[0] - mean) * about[1]
        away, spread = (part.cpu().numpy().reshape(series.values.shape) for part in (off, sd * about[1]))
        return self._units(mean * about[1] + about[0]), away, spread

    @property
    def has_moments(self) -> bool:
        """Whether the law of single rows follows from the reference."""
        return self._moment is not None

    @cached_property
    def _moment(self) -> Tensor | None:  # (columns, columns)
        return moments.covariance(self.law.reference, self.space.d // self.space.steps)

    def _bound(self, process: Process) -> Columns | moments.MomentLaw:
        if isinstance(process, Columns):
            return process
        assert self._moment is not None
        return process.law(self._moment, self.space.channels)

    def forecast(
        self,
        series: Series,
        horizon: int,
        n: int = 100,
        nfe: int | None = None,
        seed: int = 0,
        posterior: str = "diffusion",
        covariates: Covariates | None = None,
    ) -> np.ndarray:  # (n, horizon, nodes, channels)
        """The rows after the last."""
        return next(self.forecasts(series, [len(series)], horizon, n, nfe, seed, posterior, covariates))

    def forecasts(
        self,
        series: Series,
        ends: Sequence[int],
        horizon: int,
        n: int = 100,
        nfe: int | None = None,
        seed: int = 0,
        posterior: str = "diffusion",
        covariates: Covariates | None = None,
    ) -> Iterator[np.ndarray]:  # each (n, horizon, nodes, channels)
        """Forecasts as if the series ended before each of the rows ``ends``."""
        whole_number("horizon", horizon)
        law, nfe = self._law(posterior), self.budget(nfe)
        for end in ends:
            stretch = next((s for s in series.stretches if s.start < end <= s.stop), slice(0, 0))
            first = max(stretch.start, end - self.space.steps)  # no window looks further back
            past = Series(series.values[first:end], None if series.times is None else series.times[first:end])
            z, _ = self._scored(past, covariates, first, warn=len(ends) == 1)
            ahead = self.timeline.ahead(past, horizon)
            times = None if past.times is None or ahead is None else np.concatenate([past.times, ahead])
            mean, spread, days = self.model.about(times, len(past) + horizon, covariates, first)
            if len(ends) > 1:
                drawn = windows.forecast(law, z, days, horizon, n, nfe, seed, end)
            else:
                with bar("forecasting", horizon) as advance:
                    drawn = windows.forecast(law, z, days, horizon, n, nfe, seed, 0, advance)
            rows = slice(len(past), None)
            yield self._units(drawn * spread[rows] + mean[rows])

    def ahead(self, series: Series, horizon: int) -> np.ndarray | None:  # (horizon,)
        """The times of the rows after the last, where rows have times."""
        return self.timeline.ahead(series, horizon)

    def sample(
        self,
        n: int,
        nfe: int = 4,
        seed: int = 0,
        start: Any = None,
        posterior: str = "diffusion",
        covariates: Covariates | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:  # (n, steps, nodes, channels), (n, steps)
        """Windows out of nothing, and their times: those of training windows by the seed, or from ``start`` on."""
        whole_number("n", n)
        steps, law = self.space.steps, self._law(posterior)
        memory.refuse_over(COPIES * 8 * n * self.space.d, f"n = {n:,} windows of {self.space.d:,} readings", "lower n")
        times: np.ndarray | None
        count = int(self.timeline.windows(steps).sum())
        number = Stream(seed, "sample start").integers(0, n, count).numpy()
        if start is not None:
            times = np.broadcast_to(self.timeline.starting(start, steps), (n, steps))
        else:
            times = self.timeline.times(number, steps)
        if times is None:
            parts = [self.model.about(None, steps, covariates, self.timeline.row(k, steps)) for k in number.tolist()]
            about = tuple(torch.cat(each) for each in zip(*parts, strict=True))
        else:
            about = self.model.about(times.ravel(), n * steps, covariates)
        mean, spread, days = (part.unflatten(0, (n, steps)) for part in about)
        z = law.sample(days, nfe, seed) if isinstance(law, Guided) else self._windows(law, days, nfe, seed)
        return self._units(z * spread + mean), times

    def _windows(self, law: Conditional, days: Tensor, nfe: int, seed: int) -> Tensor:
        parts = list[Tensor]()
        with bar("sampling", len(days)) as advance:
            for first, some in zip(range(0, len(days), SAMPLED), days.split(SAMPLED), strict=True):
                parts.append(windows.sample(law, some, nfe, seed, first))
                advance(first + len(some), "")
        return torch.cat(parts)

    def log_prob(self, series: Series, covariates: Covariates | None = None) -> np.ndarray:  # (rows,)
        """Of each row given all other rows of the window about it, in its units, under the reference."""
        z, about = self._scored(series, covariates)
        scores = context.of_rows(self.law.reference, self.space, z, series.stretches)
        slope = self._log_slope(series, about[1])
        return (scores + torch.where(z.isnan().cpu(), 0, slope).sum(1)).numpy()

    def node_log_prob(
        self, series: Series, covariates: Covariates | None = None
    ) -> np.ndarray:  # (rows, nodes, channels)
        """Of each reading given what the other nodes read in the window about it; NaN where there is none."""
        z, about = self._scored(series, covariates)
        scores = context.of_readings(self.law.reference, self.space, z, series.stretches)
        return (scores + self._log_slope(series, about[1])).numpy().reshape(series.values.shape)

    def augment(
        self,
        series: Series,
        strength: float,
        n: int = 1,
        nfe: int = 4,
        seed: int = 0,
        covariates: Covariates | None = None,
    ) -> np.ndarray:  # (n, rows, nodes, channels)
        """Variations of complete rows: at ``strength`` 0 themselves, at 1 any rows."""
        z, about = self._scored(series, covariates)
        z[:, self.lacking] = 0.0
        gaps = int(z.isnan().sum())
        if gaps:
            raise InputError(f"{gaps} missing readings in rows to vary", "complete rows", "fill them first (impute)")
        whole_number("n", n)
        what = f"n = {n:,} variations of {len(series):,} rows"
        memory.refuse_over(COPIES * 8 * n * series.values.size, what, "lower n, or vary fewer rows at a time")
        varied = np.repeat(series.values[None], n, axis=0)
        varied.reshape(n, len(series), -1)[:, :, self.lacking] = np.nan
        if strength != 0:
            for rows, drawn in windows.vary(self.law, z, about[2], series.stretches, strength, n, nfe, seed):
                varied[:, rows] = self._filled(drawn, rows, about)
        return varied

    # -- between readings and z-scores -----------------------------------------------------------------------------

    def _law(self, posterior: str) -> Conditional | Guided:
        refuse_unknown(posterior)
        return self.law if posterior == "diffusion" else self.law.alone

    def _scored(
        self, series: Series, covariates: Covariates | None, first: int = 0, warn: bool = True
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """z-scores (rows, columns), and mean, spread and calendar of the rows, the first of which is number ``first``
        among the covariates."""
        shape = (len(self.space.graph), self.space.channels)
        if series.values.shape[1:] != shape:
            raise InputError(
                f"rows of {series.values.shape[1:]} readings (nodes, channels)",
                f"{shape}",
                "give all nodes and channels",
            )
        self.timeline.refuse_other(series)
        x = series.values.reshape(len(series), -1).astype(np.float64)
        x[:, self.lacking] = np.nan
        if np.isinf(x).any():
            raise InputError("infinite readings", "finite numbers, or NaN where missing", "correct or drop them")
        if warn:
            warn_of_units(x, self.moments, self.space.graph, self.channels)
        about = self.model.about(series.times, len(series), covariates, first)
        return (torch.tensor(self.trained.scales.forward(x)).to(about[0]) - about[0]) / about[1], about

    def _log_slope(self, series: Series, spread: Tensor) -> Tensor:  # (rows, columns)
        """Of z-scores by readings: what makes their densities those of readings."""
        slope = self.trained.scales.log_slope(series.values.reshape(len(series), -1).astype(np.float64))
        return torch.from_numpy(slope) - spread.log().cpu()

    def _filled(
        self, z: Tensor, rows: np.ndarray, about: tuple[Tensor, Tensor, Tensor], observed: np.ndarray | None = None
    ) -> np.ndarray:  # (n, rows, nodes, channels)
        mean, spread = (part[torch.from_numpy(rows).to(part.device)] for part in about[:2])
        x = self._units(z * spread + mean)
        return x if observed is None else np.where(np.isnan(observed), x, observed)

    def _units(self, x: Tensor) -> np.ndarray:  # (..., columns) -> (..., nodes, channels)
        """From their scale into units, within limits; NaN for a channel that a node never had."""
        values = self.limits.kept(self.trained.scales.back(x.double().cpu().numpy()))
        values[..., self.lacking] = np.nan
        return values.reshape(*values.shape[:-1], len(self.space.graph), self.space.channels)
