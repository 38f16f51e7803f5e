"""The contest at the end of a training: a model's candidates and simple competitors fill readings that were hidden.

**Held-out rows** are those of validation (see ``evaluation/held_rows``). Few rows say little, and three nothing: where
they are few, stretches of training rows are filled as well, each by what was fitted to all others, with the choices
that were made of all. No network is trained for that: it is compared on validation rows alone.

All of it is bounded: rows by what drawing them costs, scikit-learn's imputers by the number of columns. **On a large
graph** nothing is fitted again, competitors learn from the last rows, and a contest is held where the reference is all
there is and so many rows can be filled that two groups of them can be told apart: up to some 20,000 nodes. There is
none of windows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .core.errors import InputError, InputWarning
from .core.progress import bar, quiet, working
from .data import marginals
from .data.covariates import Covariates
from .data.normalizer import Normalizer
from .data.series import Series
from .diffusion.conditional import Conditional
from .evaluation import competitors, guesses, held_rows, hiding
from .evaluation.contest import COLUMNS, MOMENTS, NETWORK, REFERENCE, SIMPLE, Contest, Found, Process
from .evaluation.guesses import Filler, Guesses, filler
from .evaluation.hiding import OUTAGES
from .evaluation.windows import moments
from .evaluation.winners import decided, foretold
from .runs.contents import Trained
from .runs.series import TrainedSeries, plain_rows
from .series_model import SeriesModel
from .signal_model import STEPS, SignalModel
from .tasks import tails
from .tasks.columns import LINE, Columns
from .tasks.moments import Moments, Plain
from .tasks.sample import Memory
from .training import fit
from .training.config import Config
from .training.windows import fit_again

DRAWS = 40
PIECE = 3  # windows in a piece
MOST_LEARNED = 20_000  # of training, that competitors learn from
AGAIN = 2_000  # training rows above which nothing is fitted again
WORK = {"cpu": 7e5, "cuda": 2e8, "reference": 2e7}  # readings that are drawn for a family, evaluations counted
MOST_COLUMNS = {"neighbours": 250, "iterative": 250, "regression": 60}  # that scikit-learn's imputers are asked for
NEARLY = 0.999  # a line, and far from its ends as wide as any reading
RHO = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, LINE)
FUTURE = "future"  # a family of its own
IN_TIME = ("mean", "calendar", "line")  # who foretells, and fills rows of which nothing was read
LEAST = 40  # training rows, and one a column, without which no law of single rows stands beside the reference
WEIGHTS: dict[str, tuple] = {  # of single rows
    "plain": (False, True),
    "graph": (0.0, 0.1, 0.3, 0.6, 0.9),
    "noise": (3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
    "local": (0.0, 0.1, 0.3),
}
NOTICEABLE = 0.01  # of an error: by less a weight is not changed
ROUNDS = 2  # that the weights of single rows are gone through, one after the other


@dataclass(frozen=True, eq=False)
class Held:
    """Rows that a model was fitted without, and those that it was fitted to."""

    model: Any  # SeriesModel, or Alone
    train: Series
    rows: Series  # several times one after the other, where they are few: each time something else is hidden
    times: int
    network: bool
    inside: np.ndarray  # (rows,) of bool: others are what is read around them, as it is in a table with a gap


def of_series(trained: TrainedSeries, parts: dict[str, Series], covariates: Covariates | None = None) -> dict | None:
    """``Contest.to_dict`` of a model of windows; None on a large graph, and with covariates of rows without times."""
    model, train, val = SeriesModel(trained), parts["train"], parts["val"]
    if model.space.graph.large or (model.covariates and val.times is None):
        return None
    network = bool(trained.result.get("network", True)) and trained.result["updates"] > 0
    columns, steps = model.space.d // model.space.steps, hiding.span(model.space.steps)
    length, most = PIECE * steps, _most("reference", 2 * columns)
    by_network = _most(model.device.type, 2 * columns * model.budget(None)) if network else 0
    held = [Held(model, train, *each) for each in held_rows.of_validation(val, length, most, by_network)]
    dense = isinstance(trained.model.law, Conditional) and trained.result["reference"]["kind"] != "sparse"
    if dense and len(train) <= AGAIN and held_rows.few(val, model.space.steps):
        scaled, later = (replace(each, values=_scaled(trained, each.values)) for each in (train, val))
        for part, others, inside in held_rows.stretches(train, steps):
            again = fit_again(trained.model, trained.result, scaled, later, others, covariates)
            learned = train.picked(others)
            plain = plain_rows(again, learned.values.reshape(len(learned), -1))
            of_part = SeriesModel(replace(trained, model=again, plain=plain))
            held.append(Held(of_part, learned, *held_rows.around(train, part, inside, length)))
    unit = model.units[0] if len(model.units) == 1 else "sd"
    return _contest(held, steps, unit, hiding.lengths(train, steps), covariates)


def _scaled(trained: TrainedSeries, values: np.ndarray) -> np.ndarray:  # (rows, nodes, channels) twice
    return trained.scales.forward(values.reshape(len(values), -1)).reshape(values.shape)


def of_signals(trained: Trained, config: Config, parts: dict[str, Series], unit: str) -> dict | None:
    """``Contest.to_dict`` of a model of signals by themselves; None where it would say nothing. Times are there for
    competitors: the model knows of none."""
    space, device, large = trained.diffusion.space, trained.diffusion.device, trained.diffusion.space.graph.large
    network = not trained.diffusion.adds_nothing
    most = _most("reference", space.d)
    by_network = _most(device.type, 8 * space.d) if network else 0
    train, val = _in_doubles(parts["train"], parts["val"])
    if large:
        if network or min(most, len(val)) < 2 * STEPS:
            return None
        train, val = train.rows(slice(-int(WORK["reference"] / space.d), None)), val.rows(slice(-held_rows.MOST, None))
    own = Alone(SignalModel(trained, config.limits(), Memory()))
    held = [Held(own, train, *each) for each in held_rows.of_validation(val, PIECE * STEPS, most, by_network)]
    if not large and len(train) <= AGAIN and len(val) < held_rows.ENOUGH * STEPS:
        for part, others, inside in held_rows.stretches(train, STEPS):
            learned = train.picked(others)
            x, y = (each.values[:, :, 0][~np.isnan(each.values).all(axis=(1, 2))] for each in (learned, val))
            try:
                normalizer = marginals.fitted(config.marginals, x, space.graph)
            except InputError:  # a node that says nothing, or always the same, in all others
                continue
            z = (normalizer.apply(each) for each in (x, y))
            diffusion = fit.reference_alone(space, config, device, *z)
            plain = trained.plain and Plain.of(x, device)
            again = replace(trained, diffusion=diffusion, normalizer=normalizer, plain=plain)
            around = held_rows.around(train, part, inside, PIECE * STEPS)
            held.append(Held(Alone(SignalModel(again, config.limits(), Memory())), learned, *around))
    return _contest(held, STEPS, unit, hiding.lengths(train, STEPS), None)


def _in_doubles(*parts: Series) -> Iterator[Series]:
    """With the times that they have if all have some."""
    timed = all(part.times is not None for part in parts)
    for part in parts:
        x = part.values.astype(np.float64, copy=False)
        yield replace(part, values=x) if timed else Series(x)


@dataclass(frozen=True)
class Alone:
    """A model of signals by themselves, asked as one of series."""

    model: SignalModel

    @property
    def has_moments(self) -> bool:
        return self.model.trained.plain is not None

    def fillings(self, series: Series, n: int, posterior: str, **_: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        parts = self.model.fillings(series.values[:, :, 0], n, posterior=posterior)
        return ((rows, drawn[..., None]) for rows, drawn in parts)

    def by_process(self, series: Series, process: Process, n: int, **_: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        way = MOMENTS if isinstance(process, Moments) else COLUMNS
        return ((rows, drawn[..., None]) for rows, drawn in self.model.by((way, process), series.values[:, :, 0], n))

    def of_process(
        self, series: Series, truth: Series, process: Process, **_: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # three of (rows, nodes, 1)
        """As that of ``SeriesModel``."""
        found = self._of_rows(series, truth, process) if isinstance(process, Moments) else self._of_nodes(truth)
        return tuple(x[:, :, None] for x in found)  # type: ignore[return-value]

    def _of_rows(self, series: Series, truth: Series, process: Moments) -> list[np.ndarray]:
        plain, law = self.model.row_law(process)
        mean, sd = law.posterior(plain.scored(series.values[:, :, 0]), series.stretches)
        median, sd = plain.back(mean), sd * plain.sd
        away = truth.values[:, :, 0] - median.cpu().numpy()
        return [self.model.limits.kept(median.cpu().numpy()), away, sd.cpu().numpy()]

    def _of_nodes(self, truth: Series) -> list[np.ndarray]:
        """z-scores about 0."""
        x, trained = truth.values[:, :, 0], self.model.trained
        std = Normalizer.of(trained.facts["normalizer"]).std
        median = self.model.in_units(torch.zeros(1, len(std), device=self.model.device))
        return [np.broadcast_to(median, x.shape), trained.normalizer.apply(x) * std, np.broadcast_to(std, x.shape)]


def _most(kind: str, readings: int) -> int:
    """Rows that are filled, by what drawing one costs: readings, evaluations counted."""
    return int(min(held_rows.MOST, WORK[kind] / (DRAWS * readings)))


def _contest(
    held: list[Held], steps: int, unit: str, lengths: dict[str, np.ndarray], covariates: Covariates | None
) -> dict | None:
    found = dict[str, Found]()
    columns, known = held[0].train.values[0].size, {} if covariates is None else {"covariates": covariates}
    names = [name for name in SIMPLE if columns <= MOST_COLUMNS.get(name, columns)]
    single = isinstance(held[0].model, Alone)
    kinds = hiding.FAMILIES if held[0].train.values.shape[2] == 1 else hiding.OF_SEVERAL
    kinds = kinds if single else (*kinds, OUTAGES)
    with (
        bar("comparing with simple competitors", len(kinds) + len(held)) as advance,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", InputWarning)  # of rows without a reading, and the like
        simple = list[dict[str, Filler]]()
        for each in held:
            simple.append(_simple(each.train, names))
            advance(len(simple), "competitors")
        in_time = [{name: each[name] for name in IN_TIME if name in each} for each in simple]
        for done, family in enumerate(kinds):
            asked = in_time if family == OUTAGES else simple
            with quiet():
                guessed = _guessed(held, asked, family, steps, lengths, known, _settled(family, found))
            advance(len(held) + done + 1, family)
            if guessed is not None:
                found[family] = guessed
    if not found:
        return None
    families, ahead = decided(found), None
    if not single:
        with working("comparing forecasts"), quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            ahead = _guessed(held, in_time, FUTURE, steps, {}, known)
    rows, of_unit = sum(int(each.inside.sum()) // each.times for each in held), f" {unit}" if unit else ""
    stretches = sum(each.model is not held[0].model for each in held)
    future = None if ahead is None else foretold(ahead)
    names = list(getattr(held[0].model, "channels", ()))
    return Contest(families, rows, stretches, of_unit, names, future, _horizon(steps), single).to_dict()


def _simple(train: Series, names: Sequence[str]) -> dict[str, Filler]:
    """Competitors, fitted to no more rows than they need."""
    some = train if len(train) <= MOST_LEARNED else train.rows(slice(len(train) - MOST_LEARNED, None))
    dated = train.times is not None and train.times.dtype.kind == "M"
    return {name: filler(competitors.fitted(name, some, some)) for name in names if dated or name != "calendar"}


def _guessed(
    held: list[Held],
    simple: list[dict[str, Filler]],
    family: str,
    steps: int,
    lengths: dict[str, np.ndarray],
    known: dict[str, Any],
    settled: tuple[float, ...] = (),
) -> Found | None:
    """Of one family, on all held-out rows, and on those of validation with the network; and the processes, that of
    columns with correlations in time that are ``settled``, if any are."""
    hidden = [_hidden(family, each, steps, lengths, held_rows.MOST * k) for k, each in enumerate(held)]
    if not hidden[0].any():
        return None
    processes: dict[str, Process] = {COLUMNS: _columns(held, hidden, known, settled)}
    enough = len(held[0].train) >= max(LEAST, held[0].train.values[0].size)
    if enough and family not in (FUTURE, OUTAGES) and all(each.model.has_moments for each in held):
        tuned = (held, hidden) if family != "sensors" else _each_in_turn(held)
        processes[MOMENTS] = _moments(*tuned, known)
    sd = _units(held[0].train)
    parts = list[Guesses]()
    for each, mask, others in zip(held, hidden, simple, strict=True):
        ways = [REFERENCE, NETWORK] if each.network else [REFERENCE]
        own = {way: _by(each.model.fillings, posterior=way, **known) for way in ways}
        own |= {name: _by(each.model.by_process, process=process, **known) for name, process in processes.items()}
        found = guesses.gaps(each.rows, mask, own | others, steps).over(sd)
        found = found.of(each.inside[found.row])
        group = found.node if family in hiding.SILENT else found.row % (len(each.rows) // each.times) // steps
        parts.append(replace(found, group=group))
    return guesses.joined(parts), parts[0], processes


def _settled(family: str, found: dict[str, Found]) -> tuple[float, ...]:
    """What is silent throughout says nothing of correlations in time, so those of spells serve: long gaps have ends."""
    if family not in hiding.SILENT or "spells" not in found:
        return ()
    process = found["spells"][2][COLUMNS]
    assert isinstance(process, Columns)
    return tuple(min(rho, NEARLY) for rho in process.rho)


def _hidden(family: str, held: Held, steps: int, lengths: dict[str, np.ndarray], first: int) -> np.ndarray:
    """Every stretch has something else hidden, by seeds from ``first`` on; of the future its last rows. What is silent
    throughout is silent around a stretch too, all else is read there."""
    rows = held.rows
    if family == FUTURE:
        ends = np.zeros(len(rows), dtype=bool)
        for s in rows.stretches:
            last = s.start + int(np.flatnonzero(held.inside[s]).max(initial=-1)) + 1
            ends[max(s.start + 1, last - _horizon(steps)) : s.stop] = True
        return ends[:, None, None] & ~np.isnan(rows.values)
    own = lengths.get(family)
    parts = enumerate(rows.rows(s) for s in rows.stretches)
    hidden = np.concatenate([hiding.hidden(family, part, steps, first + k, own) for k, part in parts])
    return hidden if family in hiding.SILENT else hidden & held.inside[:, None, None]


def _horizon(steps: int) -> int:
    """How many rows are foretold: half a window, which sees as much again."""
    return max(1, steps // 2)


def _by(fillings: Callable[..., Any], **options: Any) -> Filler:
    return lambda series: fillings(series, n=DRAWS, **options)


def _columns(
    held: list[Held], hidden: list[np.ndarray], known: dict[str, Any], settled: tuple[float, ...] = ()
) -> Columns:
    """The process of columns that is nearest to hidden readings, by channel; that of the mean, unless another is nearer
    by more than a standard error (of few rows chance finds one); or with correlations that are ``settled``. Rows by
    themselves have no neighbours."""
    channels, best = held[0].rows.values.shape[2], list[tuple[float, ...]]()
    rhos = RHO[:1] if isinstance(held[0].model, Alone) else RHO
    seen = [mask & ~_silent(each.rows, mask) for each, mask in zip(held, hidden, strict=True)]
    hidden = seen if any(mask.any() for mask in seen) else hidden  # what has no end says nothing of how far from one
    for channel in range(channels):
        where = [mask & (np.arange(channels) == channel) for mask in hidden]
        of_channel = settled[channel : channel + 1] or rhos
        tried = {rho: _off(held, where, Columns((rho,) * channels, (1.0,) * channels), known) for rho in of_channel}
        rho = min(tried, key=lambda rho: (_mean(tried[rho]), rho))
        if not settled and not _surer(tried[rho], tried[0.0], max(each.times for each in held)):
            rho = 0.0
        best.append((rho, *_width(tried[rho])))
    return Columns(*map(tuple, zip(*best, strict=True)))


def _silent(rows: Series, hidden: np.ndarray) -> np.ndarray:  # (rows, nodes, channels) of bool, twice
    """Columns that have no reading left in their stretch."""
    gap = hidden | np.isnan(rows.values)
    return np.concatenate([np.broadcast_to(gap[s].all(axis=0), gap[s].shape) for s in rows.stretches])


def _each_in_turn(held: list[Held]) -> tuple[list[Held], list[np.ndarray]]:
    """The same rows several times, until every node was silent once: few say little of what is best for all."""
    nodes = held[0].rows.values.shape[1]
    share = max(1, round(hiding.SENSORS * nodes))
    order = np.random.RandomState(0).permutation(nodes)
    times = [(each, order[first : first + share]) for each in held for first in range(0, nodes, share)]
    there = [~np.isnan(each.rows.values) for each, _ in times]
    silent = [seen & np.isin(np.arange(nodes), some)[:, None] for seen, (_, some) in zip(there, times, strict=True)]
    return [each for each, _ in times], silent


def _moments(held: list[Held], hidden: list[np.ndarray], known: dict[str, Any]) -> Moments:
    """The law of single rows that is nearest to hidden readings, by a walk along one weight at a time; it begins with
    hardly any shrinkage, for what gains a little between rows that were seen may lose much beyond them."""
    alone = isinstance(held[0].model, Alone)  # it has rows as they stand and no others
    best = Moments(0.0, 0.003, plain=alone)
    tried = {best: _off(held, hidden, best, known)}
    for weight, numbers in ROUNDS * [each for each in WEIGHTS.items() if not (alone and each[0] == "plain")]:
        for each in (replace(best, **{weight: number}) for number in numbers):
            if each not in tried:
                tried[each] = _off(held, hidden, each, known)
        nearest = min(tried, key=lambda each: _mean(tried[each]))
        best = nearest if _mean(tried[nearest]) < (1 - NOTICEABLE) * _mean(tried[best]) else best
    spread, tail, shift = _width(tried[best])
    return replace(best, spread=spread, tail=tail, shift=shift)


def _off(held: list[Held], where: list[np.ndarray], process: Process, known: dict[str, Any]) -> Tensor:  # (3, readings)
    """How far a process is from hidden readings, in units of each channel's spread if there are several; how far on
    their scale; and its standard deviations there."""
    parts = list[np.ndarray]()
    for each, mask in zip(held, where, strict=True):
        holed = replace(each.rows, values=np.where(mask, np.nan, each.rows.values))
        median, away, sd = each.model.of_process(holed, each.rows, process, **known)
        off = (each.rows.values - median) / _units(held[0].train)
        scored = mask & each.inside[:, None, None]
        parts.append(np.stack([x[scored] for x in (off, away, sd)]))
    found = torch.from_numpy(np.concatenate(parts, axis=1))
    return found[:, found[0].isfinite() & (found[2] > 0)]


def _mean(off: Tensor) -> float:
    """The mean absolute error."""
    return float(off[0].abs().mean()) if off.shape[1] else 0.0


def _surer(off: Tensor, other: Tensor, times: int) -> bool:
    """Whether errors are smaller than others of the same readings by more than a standard error; rows that are there
    several times do not say more for it."""
    if off.shape != other.shape or off.shape[1] < 2:
        return _mean(off) < _mean(other)
    gain = other[0].abs() - off[0].abs()
    return bool(gain.mean() > gain.std() * (times / len(gain)) ** 0.5)


def _width(off: Tensor) -> tuple[float, float, float]:
    """Spread, tail and shift."""
    return tails.fitted(off[1], off[2]) if off.shape[1] else (1.0, 0.0, 0.0)


def _units(train: Series) -> np.ndarray:  # (channels,)
    """What errors of several channels are divided by to be added up."""
    return moments(train)[1].mean(axis=0) if train.values.shape[2] > 1 else np.ones(1)
