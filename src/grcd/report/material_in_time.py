"""What a report on a run of windows shows: hidden readings filled, rows foretold, windows made up, and the truth.

Held-out rows are looked at in **pieces** of a few windows each, evenly spaced, as many as the work of drawing allows;
every piece is filled with readings hidden by four families (see ``evaluation/hiding``). Forecasts end at rows evenly
spaced over all held-out ones. Generated windows begin when training windows did.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse.csgraph as csgraph

from ..core.errors import InputError, InputWarning
from ..core.progress import bar, quiet
from ..core.rows import evenly
from ..data.dataset import fingerprint
from ..data.series import Series
from ..data.series_dataset import SeriesDataset
from ..evaluation import Scores, guesses, hiding, windows
from ..evaluation.competitors import FORESEE, competitors
from ..evaluation.guesses import Filler, Forecaster, Guesses, filler, forecaster
from ..graphs.graph import Graph
from ..model import GRCD
from ..runs.folder import read_log

OURS, REFERENCE = "grcd", "reference"  # what they are called among the methods
PIECE = 4  # windows in a piece
MOST_ROWS, MOST_ENDS, MOST_WINDOWS = 1000, 40, 1000
MOST_CHANNELS = 3  # that are drawn
MOST_IMPUTED = 60  # columns that scikit-learn's imputers are asked for
DRAWS = {True: 20, False: 100}  # with a network, and without
WORK = {"cpu": 1.5e6, "cuda": 2e8, "reference": 5e7}  # readings that are drawn for a family, evaluations counted
DAY = np.timedelta64(1, "D")
NEARLY, LIVELY, DAYS = 0.9, 0.75, 8  # as many readings; of days that are less lively; that are made up
SPAN = 96  # rows of a day that is none: without dates, or with rows further apart


@dataclass(frozen=True, eq=False)
class Day:
    """A day of the network, or a stretch of rows that stands for it: as it was, and as it might have been."""

    rows: np.ndarray  # (rows,) of the table
    real: np.ndarray  # (rows, nodes, channels)
    generated: np.ndarray  # (rows, nodes, channels)
    whole: bool  # whether it is a day


@dataclass(frozen=True, eq=False)
class SeriesMaterial:
    """All of it."""

    model: GRCD
    data: SeriesDataset
    held: np.ndarray  # (rows,) of the table that are filled
    pieces: Series  # those rows
    gaps: dict[str, Guesses]  # by family; rows are those of ``pieces``
    ahead: Guesses | None  # forecasts; rows are those of the test split
    horizon: int
    generated: np.ndarray  # (n, steps, nodes, channels)
    how: str  # where they come from
    scores: Scores | None  # None where too few windows are held out
    day: Day
    draws: int
    nfe: int
    curve: list[dict] = field(default_factory=list)  # one record a validation
    same_data: bool = True  # as the run was trained on
    command: str = ""

    @classmethod
    def of(
        cls,
        model: GRCD,
        data: SeriesDataset,
        samples: np.ndarray | None = None,
        run: Path | None = None,
        n: int = 200,
        nfe: int = 4,
        seed: int = 0,
        command: str = "",
        covariates: Any = None,
    ) -> SeriesMaterial:
        """Gather it.

        samples     (n, steps, nodes[, channels]) in the data's units; without them ``n`` are generated
        run         the run's folder, for its training curve
        command     what the page says it was written by
        covariates  of all rows, where the run was trained with some
        """
        if data.graph.hash != model.graph.hash:
            raise InputError(
                f"data on another graph than the run's ({data.graph.hash[:12]}, not {model.graph.hash[:12]})",
                "the data that the run was trained on",
                "name them and their graph as for grcd train",
            )
        own = None if samples is None else windows.checked(samples, data)
        gathering = _Gathering(model, data, nfe, seed, {} if covariates is None else {"covariates": covariates})
        held = gathering.held()
        pieces = _picked(data, held)
        kinds = (*hiding.FAMILIES, hiding.OUTAGES)
        with bar("filling and foretelling", len(kinds) + 3) as advance, quiet():
            gaps = {}
            for done, family in enumerate(kinds):
                gaps[family] = gathering.filled(pieces, family)
                advance(done + 1, family)
            ahead = gathering.foretold()
            advance(len(kinds) + 1, "forecasts")
            x = gathering.generated(n) if own is None else own[evenly(len(own), MOST_WINDOWS)]
            advance(len(kinds) + 2, "windows")
            day = gathering.day()
            advance(len(kinds) + 3, "a day")
        made = f"{nfe} network evaluations" if model.result.get("network", True) else "from the reference"
        how = f"{made}, seed {seed}" if own is None else "as they came"
        return cls(
            model,
            data,
            held,
            pieces,
            {family: each for family, each in gaps.items() if len(each)},
            ahead,
            gathering.horizon,
            x,
            how=f"{len(x):,} windows, {how}",
            scores=_scores(x, data),
            day=day,
            draws=gathering.draws,
            nfe=nfe,
            curve=read_log(run) if run is not None else [],
            same_data=_same(model, data),
            command=command,
        )

    @property
    def steps(self) -> int:
        """Rows of a window."""
        return self.model.series.space.steps

    @cached_property
    def test(self) -> Series:
        """Held-out rows, all of them."""
        return self.data.part("test")

    @cached_property
    def held_out(self) -> np.ndarray:  # (windows, steps, nodes, channels)
        """Held-out windows that do not overlap."""
        return windows.cut(self.test, self.steps)

    @cached_property
    def shown(self) -> list[int]:
        """The channels that are drawn: the first that have a reading among held-out rows."""
        there = np.flatnonzero(~np.isnan(self.test.values).all(axis=(0, 1)))
        return [int(channel) for channel in there[:MOST_CHANNELS]]

    @cached_property
    def autocorrelations(self) -> dict[str, np.ndarray]:  # each (steps, channels)
        """Within held-out stretches, within those of training (the floor) and within generated windows."""
        lags = np.arange(self.steps)
        sides = {"held-out": self.test, "training": self.data.part("train")}
        real = {name: series.autocorrelation(lags) for name, series in sides.items()}
        return real | {"generated": windows.autocorrelation(self.generated)}

    def unit(self, channel: int) -> str:
        """As it stands behind a number: " mph", or nothing."""
        unit = self.data.units[channel]
        return f" {unit}" if unit else ""

    def named(self, channel: int) -> str:
        """The channel's name, where there are several."""
        return self.data.channels[channel] if len(self.data.channels) > 1 else ""


class _Gathering:
    """A model that is asked for fillings, forecasts and windows, with as many draws as the machine allows."""

    def __init__(self, model: GRCD, data: SeriesDataset, nfe: int, seed: int, more: dict[str, Any]):
        self.series, self.data, self.nfe, self.seed, self.more = model.series, data, nfe, seed, more
        self.network, where = bool(model.result.get("network", True)), model.device.type
        self.steps, self.columns = self.series.space.steps, len(data.graph) * len(data.channels)
        self.horizon, self.draws = max(1, self.steps // 2), DRAWS[self.network and where == "cpu"]
        work = WORK[where if self.network else "reference"]
        self.rows = work / (2 * self.columns * self.draws * nfe)  # windows overlap: a row is drawn about twice
        self.simple = competitors(data.part("train"), imputers=self.columns <= MOST_IMPUTED)

    def held(self) -> np.ndarray:  # (rows,) of the table
        """Pieces of a few windows, one after the other within stretches of the test rows, evenly chosen."""
        length, table = PIECE * self.steps, self.data.rows("test")
        pieces = list[np.ndarray]()
        for s in self.data.part("test").stretches:
            starts = range(s.start, max(s.start + 1, s.stop - length + 1), length)
            pieces += [table[start : min(start + length, s.stop)] for start in starts]
        many = max(1, int(min(self.rows, MOST_ROWS) // length))
        seen = [piece for piece in pieces if not np.isnan(self.data.series.values[piece]).all()] or pieces
        return np.concatenate([seen[k] for k in evenly(len(seen), many)])

    def filled(self, pieces: Series, family: str) -> Guesses:
        """One family of hidden readings, by the model and by all competitors."""

        def by(posterior: str) -> Filler:
            how: dict[str, Any] = {"n": self.draws, "nfe": self.nfe, "seed": self.seed, "posterior": posterior}
            return lambda series: self.series.fillings(series, **how, **self.more)

        methods = {OURS: by("auto")} | ({REFERENCE: by("reference")} if self.network else {})
        methods |= {name: filler(fill) for name, fill in self.simple.items()}
        hidden = hiding.hidden(family, pieces, self.steps, self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # who is ahead is what the page says
            return guesses.gaps(pieces, hidden, methods, self.steps)

    def foretold(self) -> Guesses | None:
        """Forecasts by the model and by what can foretell; None where no stretch is long enough."""
        test = self.data.part("test")
        many = int(np.clip(self.rows / self.steps, 4, MOST_ENDS))
        ends = hiding.ends(test, self.steps, self.horizon, many)
        if self.steps == 1 or not len(ends):
            return None

        def by(posterior: str) -> Forecaster:
            how: dict[str, Any] = {"n": self.draws, "nfe": self.nfe, "seed": self.seed, "posterior": posterior}
            return lambda series, ends, horizon: self.series.forecasts(series, ends, horizon, **how, **self.more)

        methods = {OURS: by("auto")} | ({REFERENCE: by("reference")} if self.network else {})
        methods |= {name: forecaster(fill) for name, fill in self.simple.items() if name in FORESEE}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            foretold = guesses.forecasts(test, ends, self.horizon, methods)
        return foretold if len(foretold) else None

    def generated(self, n: int) -> np.ndarray:
        """Windows; fewer than asked for where they would take long."""
        n = int(np.clip(self.rows * self.draws / self.steps, 20, min(n, MOST_WINDOWS)))
        return self.series.sample(n, nfe=self.nfe, seed=self.seed, **self.more)[0]

    def day(self) -> Day:
        """A held-out day (``a_day``), and one made up at the same times, as lively among others: a table of gaps,
        filled ``DAYS`` times."""
        rows, whole = a_day(self.data)
        real = self.data.series.values[rows]
        times = None if self.data.series.times is None else self.data.series.times[rows]
        empty = Series(np.full(real.shape, np.nan), times)
        made = np.full((DAYS, *real.shape), np.nan)
        for some, draws in self.series.fillings(empty, n=DAYS, nfe=self.nfe, seed=self.seed, **self.more):
            made[:, some] = draws
        return Day(rows, real, made[lively(self.data, list(made))], whole)


def a_day(data: SeriesDataset) -> tuple[np.ndarray, bool]:
    """Rows of a held-out day, from midnight on: of those with nearly as many readings as any, one than which at
    most a quarter are livelier. And whether there is any: else the longest stretch stands for it, ``SPAN`` rows."""
    test, table = data.part("test"), data.rows("test")
    interval = test.interval
    days = list[slice]()
    if isinstance(interval, np.timedelta64) and interval < DAY and DAY % interval == np.timedelta64(0):
        length = int(DAY / interval)
        for s in test.stretches:
            assert test.times is not None
            of_day = test.times[s] - test.times[s].astype("datetime64[D]")
            first = s.start + np.flatnonzero(of_day < interval)
            days += [slice(start, start + length) for start in first.tolist() if start + length <= s.stop]
    if days:
        counts = [int((~np.isnan(test.values[day])).sum()) for day in days]
        full = [day for day, count in zip(days, counts, strict=True) if count >= NEARLY * max(counts)]
        return table[full[lively(data, [test.values[day] for day in full])]], True
    longest = max(test.stretches, key=lambda s: s.stop - s.start)
    return table[longest][:SPAN], False


def lively(data: SeriesDataset, days: Sequence[np.ndarray]) -> int:
    """Which of some days, each (rows, nodes, channels), at most a quarter are livelier than: their readings are
    further from their columns' means."""
    mean, sd = windows.moments(data.part("train"))
    off = [np.square((day - mean) / sd) for day in days]
    means = [float(np.nansum(each) / max(1, np.isfinite(each).sum())) for each in off]
    return int(np.argsort(means, kind="stable")[int(LIVELY * len(days) - 1e-9)])


def along(graph: Graph) -> np.ndarray:  # (nodes,)
    """Nodes in an order in which neighbours are near each other: by the Fiedler vector of each component of the graph,
    the largest component first."""
    count, component = csgraph.connected_components(graph.weights, directed=False)
    order = list[int]()
    for part in sorted(range(count), key=lambda k: -int((component == k).sum())):
        nodes = np.flatnonzero(component == part)
        if len(nodes) > 2:
            fiedler = np.linalg.eigh(graph.combinatorial[nodes][:, nodes].toarray())[1][:, 1]
            nodes = nodes[np.argsort(fiedler * (1 if fiedler[0] <= 0 else -1), kind="stable")]
        order += nodes.tolist()
    return np.array(order)


def _picked(data: SeriesDataset, rows: np.ndarray) -> Series:
    """Those rows of the table, with borders where they do not follow each other."""
    times = None if data.series.times is None else data.series.times[rows]
    borders = np.flatnonzero((np.diff(rows) != 1) | np.isin(rows[1:], data.series.borders)) + 1
    return Series(data.series.values[rows], times, tuple(borders.tolist()))


def _scores(x: np.ndarray, data: SeriesDataset) -> Scores | None:
    """None where too few windows are held out."""
    many = [len(windows.cut(data.part(split), x.shape[1])) for split in ("train", "test")]
    return windows.evaluate(x, data) if min(many) >= 2 else None


def _same(model: GRCD, data: SeriesDataset) -> bool:
    train, val = (part.values.reshape(len(part), -1) for part in (data.part("train"), data.part("val")))
    return bool(model.facts["data"]["hash"] == fingerprint(train, val))
