"""A trained model of windows: series in, series out, in the units of the readings.

``GRCD`` holds one where there is a window, or where there are several channels. It converts between readings and
z-scores, by mean and spread of the calendar, and calls tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from .evaluation.contest import Contest, Process, Way, merged, ways
from .graphs.space import SignalSpace
from .references.nearness import path_lengths
from .runs.series import TrainedSeries
from .tasks import context, windows
from .tasks.columns import Columns
from .tasks.fill import OF_GAPS, OF_ROWS, POSTERIORS, refuse_unknown
from .tasks.guided import Guided
from .tasks.moments import MomentLaw, Moments, Plain
from .training.config import limits_of

COPIES = 3  # of what is drawn that are in memory at once
SAMPLED = 64  # windows at a time
EVALUATIONS, GUIDED = {"cpu": 2, "cuda": 4}, 8  # METR-LA has the same scores at 2, 4 and 8; guidance wants more


@dataclass(frozen=True, eq=False)
class _Stand:
    """Rows as a process sees them: z-scores, what they are about and in units of, and the way back to readings."""

    z: Tensor  # (rows, columns)
    mean: Tensor  # (rows, columns)
    spread: Tensor  # (rows, columns)
    units: Callable[[Tensor], np.ndarray]

    def back(self, z: Tensor, rows: np.ndarray | slice = slice(None)) -> np.ndarray:  # (..., rows, nodes, channels)
        at = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(z.device)
        return self.units(z * self.spread[at] + self.mean[at])


def _beyond(process: Process, z: Tensor, horizon: int, n: int, seed: int) -> Tensor:  # (n, horizon, columns)
    """z-scores of the rows after these (rows, columns), every node by itself."""
    assert isinstance(process, Columns)
    rows = torch.cat([z, z.new_full((horizon, z.shape[1]), torch.nan)])
    drawn = [part for _, part in process.draws(rows, [slice(0, len(rows))], n, seed)]
    return torch.cat(drawn, dim=1)[:, len(z) :]


def _kept(x: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """What was observed stays as it was."""
    return np.where(np.isnan(observed), x, observed)


class SeriesModel:
    """What a trained model says of series of its nodes and channels.

    Arguments that several methods have:
    ``series``       rows in time, values (rows, nodes, channels) with NaN where missing
    ``n``            how many draws
    ``nfe``          network evaluations for each window of them; by default what fills gaps as well as more would
    ``posterior``    "diffusion", the model's own; "reference", that of the reference alone; or, of gaps and rows to
                     come, "auto": what was nearest to hidden readings at the end of training, for each kind of gap
                     (``contest``); of gaps "columns", every node by itself, and "moments", every row by itself
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
        refuse_unknown(posterior, OF_GAPS)
        whole_number("n", n)
        if posterior in POSTERIORS:
            return self._by((posterior, None), series, n, nfe, seed, covariates, chunk)
        by = self._ways(posterior, series)
        if len(by) > 1:
            chunk = chunk or max(1, BLOCK // (n * series.values[0].size))
        return merged({way: self._by(way, series, n, nfe, seed, covariates, chunk) for way in by}, by)

    @property
    def contest(self) -> Contest | None:
        """How our candidates and simple competitors filled hidden readings; None of a run that is older than that."""
        numbers = self.trained.result.get("contest")
        return None if numbers is None else Contest.from_dict(numbers)

    def _ways(self, posterior: str, series: Series) -> dict[Way, np.ndarray]:
        """What gaps are filled by, and where: each by the candidate that won at its kind, or all by the one named."""
        kinds = hiding.families(series, hiding.span(self.space.steps))
        kinds.reshape(len(kinds), -1)[:, self.lacking] = -1
        return ways(self.contest, posterior, kinds) or {("diffusion", None): kinds >= 0}

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
        stand = self._stand(process, series, covariates)
        parts = self._bound(process).draws(stand.z, series.stretches, n, seed, chunk)
        return ((rows, _kept(stand.back(drawn, rows), series.values[rows])) for rows, drawn in parts)

    def of_process(
        self, series: Series, truth: Series, process: Process, covariates: Covariates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # three of (rows, nodes, channels)
        """The median of gaps by a process; on the scale of its readings how far from the truth that is, and the
        standard deviation."""
        stand, true = (self._stand(process, each, covariates, warn=False) for each in (series, truth))
        mean, sd = self._bound(process).posterior(stand.z, series.stretches)
        off = (true.z - mean) * stand.spread
        away, spread = (part.cpu().numpy().reshape(series.values.shape) for part in (off, sd * stand.spread))
        return stand.back(mean), away, spread

    def _stand(self, process: Process, series: Series, covariates: Covariates | None, warn: bool = True) -> _Stand:
        """Rows as a process sees them."""
        z, (mean, spread, _) = self._scored(series, covariates, warn=warn)
        if not isinstance(process, Moments) or not process.plain:
            return _Stand(z, mean, spread, self._units)
        plain = self._law_of_rows[1]
        z = torch.where(z.isnan(), torch.nan, plain.scored(series.values.reshape(len(series), -1)))
        mean, spread = (each.expand_as(z) for each in (plain.mean, plain.sd))
        return _Stand(z, mean, spread, lambda x: self._shaped(x.cpu().numpy()))

    @property
    def has_moments(self) -> bool:
        """Whether there is a law of single rows."""
        return self.model.C0 is not None

    @property
    def _law_of_rows(self) -> tuple[Tensor, Plain]:
        """The covariance of a row on its scale, and rows as they stand."""
        if self.model.C0 is None or self.trained.plain is None:
            got = "a run that filled rows by themselves, without their covariance"
            raise InputError(got, "one of this version", "train again, or take posterior='reference'")
        return self.model.C0.double(), self.trained.plain

    def _bound(self, process: Process) -> Columns | MomentLaw:
        if isinstance(process, Columns):
            return process
        C0, plain = self._law_of_rows
        return process.law(plain.C0 if process.plain else C0, path_lengths(self.space.graph))

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
        whole_number("n", n)
        refuse_unknown(posterior, OF_ROWS)
        process = None
        if posterior == "auto":
            posterior, process = ("diffusion", None) if self.contest is None else self.contest.outlook(horizon)
        law, nfe = self._law("reference" if process else posterior), self.budget(nfe)
        for end in ends:
            stretch = next((s for s in series.stretches if s.start < end <= s.stop), slice(0, 0))
            first = max(stretch.start, end - self.space.steps)  # no window looks further back
            past = Series(series.values[first:end], None if series.times is None else series.times[first:end])
            z, _ = self._scored(past, covariates, first, warn=len(ends) == 1)
            ahead = self.timeline.ahead(past, horizon)
            times = None if past.times is None or ahead is None else np.concatenate([past.times, ahead])
            mean, spread, days = self.model.about(times, len(past) + horizon, covariates, first)
            if process is not None:
                drawn = _beyond(process, z, horizon, n, seed + end)
            elif len(ends) > 1:
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
        return x if observed is None else _kept(x, observed)

    def _units(self, x: Tensor) -> np.ndarray:  # (..., columns) -> (..., nodes, channels)
        """From their scale into units."""
        return self._shaped(self.trained.scales.back(x.double().cpu().numpy()))

    def _shaped(self, x: np.ndarray) -> np.ndarray:  # (..., columns) -> (..., nodes, channels)
        """Within limits; NaN for a channel that a node never had."""
        values = self.limits.kept(x)
        values[..., self.lacking] = np.nan
        return values.reshape(*values.shape[:-1], len(self.space.graph), self.space.channels)
