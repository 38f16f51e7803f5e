"""Which scale readings have (see ``data.scales``): the one on which held-out readings are foretold best, in units.

A scale is judged by what it is for. Readings of a few nodes are hidden in held-out rows: single ones, whole nodes, or
all of them; a Gaussian reference fitted on the scale draws them, about a mean by the clock where that helps; the draws
come back into the readings' units, within their limits and as whole numbers if they are such; and what counts is their
CRPS there. Densities would not do: of a reading that is exactly zero half of the time there is none.

Held-out are the validation rows, and each third of the training rows, for which the scale too is fitted to the others.
**Z-scores are taken unless another scale wins for certain**: its gain over them, summed over blocks of time, has to be
larger than chance would make it once in twenty times, by Student's t, for all scales that were tried at once, and a
hundredth of what they cost; and in no kind of gap may it lose twice that. Where roots or logarithms have won so,
quantile maps, which have a thousand numbers a node, have to win over them in turn. But where many readings are the same
(zeros, a cap) quantile maps are taken unless they lose, and of few rows anyway: only they draw as many of those as
there are, and about their median. Rows by themselves have a mixture of Gaussians as their reference, which makes up for
much of the shape: there the winner has to win beside one, too.

Limits and whole numbers are no matter of choice: what the training readings are (see ``data.kinds``).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from ..core.rows import evenly
from ..core.streams import Stream
from ..data.kinds import Kind, of_channels
from ..data.limits import Limits, in_words
from ..data.scales import SCALES, Scale
from ..data.series import Series
from ..graphs.space import SignalSpace
from ..metrics import ensemble
from ..references import mixture_fit
from ..references.lags import Shrinkage, lag_covariances
from ..references.reference import Reference
from ..references.stationary import Stationary
from .config import AUTO, Config
from .mean import Terms
from .means import Means
from .pool import parted
from .window_config import WindowConfig

C = TypeVar("C", bound=Config | WindowConfig)

FOLDS = 3
LAGS, NODES = 4, 16  # of the windows that judge, at most
WINDOWS, DRAWS = 90, 24  # of a part, and of each of them
MOST, PIECE = 6000, 100  # training rows that are looked at, in pieces of so many that follow each other
LEARN = 2000  # of them, for a mixture
BLOCKS = 10  # of a part's windows: few windows are in blocks too, for one is like the next
CHANCE, LEAST = 0.05, 0.01  # of a scale that gains nothing; and the share of the cost that one has to gain
LOSS = 0.02  # of the cost in any kind of gap that it may not exceed
SKEW, TAILS = 0.25, 0.75  # third and fourth moments of z-scores, off a Gaussian's, from which a scale is looked for
ROWS = 60  # of training, from which a scale can be told
FEW = 20  # of training, from which quantiles are taken untold where many readings are the same
COVARIANCES = Shrinkage(noise=0.05), Shrinkage(nodes=0.5, local=2.0, noise=0.2)  # many rows, few


@dataclass(frozen=True)
class Verdict:
    """The scale of one variable, and what held-out readings said of those that were tried: CRPS, in their units."""

    scale: str
    kind: Kind
    crps: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"scale": self.scale, "crps": self.crps}

    def __str__(self) -> str:
        """As "square roots (CRPS 1.2 in held-out rows, by z-scores 1.4)"."""
        name = WORDS[self.scale]
        if not self.crps:
            return name
        if self.scale == "z-score":
            return f"{name} (no other gains for certain)"
        return f"{name} (CRPS {self.crps[self.scale]:.3g} in held-out rows, by z-scores {self.crps['z-score']:.3g})"


WORDS = {"z-score": "z-scores", "root": "square roots", "log": "logarithms", "quantile": "each node's own quantiles"}


def choose(
    space: SignalSpace, train: Series, val: Series, calendar: str = "auto", mixture: bool = False
) -> list[Verdict]:
    """One a channel, of series (rows, nodes, channels)."""
    verdicts = []
    for k in range(train.values.shape[2]):
        learn, held = (replace(part, values=part.values[:, :, k : k + 1]) for part in (train, val))
        verdicts.append(_chosen(space, learn, held, calendar, mixture))
    return verdicts


def _chosen(space: SignalSpace, train: Series, val: Series, calendar: str, mixture: bool) -> Verdict:
    kind, names = Kind.of(train.values[:, :, 0]), ["z-score", "quantile"]
    if not min(np.nanmin(part.values, initial=np.inf) for part in (train, val)) < 0:
        names += ["root", "log"]
    if len(train) < ROWS:
        return Verdict("quantile" if kind.crowded and len(train) >= FEW else "z-score", kind, {})
    if not (kind.special or _shaped(train.values[:, :, 0])):
        return Verdict("z-score", kind, {})
    trials = _Trials(space, train, val, calendar, Limits((kind.bounds,), (kind.whole,)))
    costs = {name: trials.best(name) for name in names}
    best = _preferred(costs, kind.crowded)
    if mixture and best != "z-score":
        again = {name: trials.best(name, mixture=True) for name in ("z-score", best)}
        best, costs = _preferred(again, kind.crowded), costs | again
    crps = {name: float(cost.total / cost.readings) for name, cost in costs.items()}
    return Verdict(best, kind, crps)


def _preferred(costs: dict[str, Cost], crowded: bool) -> str:
    """Of scales by name, z-scores among them."""
    plain, quantile, tests = costs["z-score"], costs.get("quantile"), len(costs) - 1
    if crowded and quantile is not None and quantile.total <= plain.total and not quantile.loses(plain):
        return "quantile"
    sure = [name for name, cost in costs.items() if name != "quantile" and cost.beats(plain, tests)]
    best = min(sure, key=lambda name: costs[name].total, default="z-score")
    return "quantile" if quantile is not None and quantile.beats(costs[best], tests) else best


def _shaped(x: np.ndarray) -> bool:  # (rows, nodes)
    """Whether readings are skewed, or have tails or humps, at most nodes: else there is nothing to gain."""
    few = x[evenly(len(x), LEARN)][:, evenly(x.shape[1], NODES)].astype(np.float64)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of nodes without any reading
        z = (few - np.nanmean(few, axis=0)) / np.nanstd(few, axis=0)
        skew, tails = (abs(np.nanmedian(np.nanmean(z**power, axis=0)) - usual) for power, usual in ((3, 0), (4, 3)))
    return bool(skew > SKEW or tails > TAILS)


@dataclass(frozen=True)
class Cost:
    """CRPS summed over blocks of windows, and over those of each kind of gap, and of how many readings."""

    blocks: np.ndarray  # (blocks,)
    gaps: np.ndarray  # (3,)
    readings: int

    @property
    def total(self) -> float:
        return float(self.blocks.sum())

    def loses(self, other: Cost) -> bool:
        """In any kind of gap."""
        return bool((self.gaps > (1 + LOSS) * other.gaps).any())

    def beats(self, other: Cost, tests: int) -> bool:
        """Beyond doubt, for so many that are tried, and without a loss in any kind of gap."""
        gain, n = other.blocks - self.blocks, len(self.blocks)
        if n < 2 or not np.isfinite(gain).all() or self.loses(other):
            return False
        noise = np.std(gain, ddof=1) * np.sqrt(n) * stdtrit(n - 1, 1 - CHANCE / tests)
        return bool(gain.sum() > max(noise, LEAST * other.total))


class _Trials:
    """Training and validation rows of a few nodes, and which of them learn and which judge."""

    def __init__(self, space: SignalSpace, train: Series, val: Series, calendar: str, limits: Limits):
        nodes = evenly(train.values.shape[1], NODES)
        train, val = (_thinned(replace(part, values=part.values[:, nodes])) for part in (train, val))
        self.means = Means(space, train, val, torch.device("cpu"), calendar=calendar)
        self.x, self.limits = self.means.x.numpy(), limits
        clock = self.means.clock
        by_clock = [Terms(clock=True)] if calendar != "none" and max(clock.slots, clock.kinds) > 1 else []
        self.terms = [Terms(), *by_clock]
        parts = parted(train.stretches, FOLDS)
        held = [slice(s.start + len(train), s.stop + len(train)) for s in val.stretches]
        apart = [([s for other in parts if other is not part for s in other], part) for part in parts if len(parts) > 1]
        self.trials = [*apart, (list(train.stretches), held)]
        longest = min(max(s.stop - s.start for s in part) for _, part in self.trials)
        self.lags = max(1, min(LAGS, space.steps, longest // 4))
        self.scaled = cache(self._scaled)

    def best(self, name: str, mixture: bool = False) -> Cost:
        """Of a scale, with the mean and the covariance that suit it best."""
        ways = [(terms, by) for terms in self.terms for by in (COVARIANCES[:1] if mixture else COVARIANCES)]
        return min((self._cost(name, terms, by, mixture) for terms, by in ways), key=lambda cost: cost.total)

    def _cost(self, name: str, terms: Terms, by: Shrinkage, mixture: bool) -> Cost:
        parts = [self._trial(name, terms, by, mixture, k) for k in range(len(self.trials))]
        blocks, gaps = np.concatenate([part.blocks for part in parts]), sum(part.gaps for part in parts)
        return Cost(blocks, np.asarray(gaps), sum(part.readings for part in parts))

    def _scaled(self, name: str, k: int) -> tuple[Scale, Tensor]:
        """A scale learned in trial ``k``, and all rows on it."""
        scale = SCALES[name].of(self.x[_numbers(self.trials[k][0])])
        return scale, torch.from_numpy(scale.forward(self.x))

    def _trial(self, name: str, terms: Terms, by: Shrinkage, mixture: bool, k: int) -> Cost:
        learn, held = self.trials[k]
        starts = np.concatenate([np.arange(s.start, s.stop - self.lags + 1, self.lags) for s in held])
        if not len(starts):
            return Cost(np.zeros(0), np.zeros(3), 0)
        rows = starts[evenly(len(starts), WINDOWS)][:, None] + np.arange(self.lags)  # (windows, lags)
        chosen, (scale, y) = _numbers(learn), self.scaled(name, k)
        table = self.means._table(y, terms, torch.from_numpy(chosen))
        z, spread = self.means._scored(y, terms, table)
        usual = z[chosen].square().nanmean(0).sqrt().clamp_min(1e-9)  # so that the noise is a share of it
        z, spread = z / usual, spread * usual
        reference: Reference = Stationary.of(lag_covariances(z, self.lags, learn), by, torch.arange(z.shape[1]))
        if mixture:
            reference = _mixture(reference, z[chosen[evenly(len(chosen), LEARN)]])
        windows = z[rows].flatten(1)
        seen = ~windows.isnan()
        hidden = _hidden(k, len(rows), self.lags, self.x.shape[1])
        xi = Stream(0, "scale draws").normal(range(k << 20, (k << 20) + len(rows)), DRAWS * windows.shape[1])
        posterior = reference.posterior(windows.nan_to_num(), seen & ~hidden, xi.unflatten(1, (DRAWS, -1)))
        assert posterior.draws is not None
        centre = (y - z * spread)[rows].flatten(1)
        return self._scored(scale, posterior.draws, centre, spread[rows].flatten(1), rows, (seen & hidden).numpy())

    def _scored(
        self, scale: Scale, draws: Tensor, centre: Tensor, spread: Tensor, rows: np.ndarray, scored: np.ndarray
    ) -> Cost:
        """CRPS in the readings' units, in blocks of windows."""
        drawn = (draws * spread[:, None] + centre[:, None]).nan_to_num().numpy()  # (windows, draws, lags nodes)
        drawn = drawn.reshape(len(rows), DRAWS, self.lags, -1)
        with np.errstate(over="ignore", invalid="ignore"):
            back = self.limits.kept(np.array(scale.back(drawn)))
            loss = ensemble.crps(back.swapaxes(0, 1), np.nan_to_num(self.x[rows]))
        loss = np.where(np.isfinite(loss), loss, np.inf).reshape(scored.shape)
        sums = np.where(scored, loss, 0.0).sum(1)
        parts = np.array_split(sums, max(1, min(BLOCKS, round(np.sqrt(len(sums))))))
        gaps = np.array([sums[turn::3].sum() for turn in range(3)])
        return Cost(np.array([part.sum() for part in parts]), gaps, int(scored.sum()))


def _numbers(stretches: Sequence[slice]) -> np.ndarray:  # (rows,)
    return np.concatenate([np.arange(s.start, s.stop) for s in stretches])


def _thinned(series: Series) -> Series:
    """Of many rows a few thousand, in pieces that are evenly spaced."""
    pieces = [slice(row, min(row + PIECE, s.stop)) for s in series.stretches for row in range(s.start, s.stop, PIECE)]
    if len(pieces) <= MOST // PIECE:
        return series
    pieces = [pieces[k] for k in evenly(len(pieces), MOST // PIECE)]
    rows = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
    borders = np.cumsum([piece.stop - piece.start for piece in pieces])[:-1]
    times = None if series.times is None else series.times[rows]
    return Series(series.values[rows], times, tuple(borders.tolist()), series.interval)


def _hidden(k: int, windows: int, lags: int, nodes: int) -> Tensor:  # (windows, lags nodes) of bool
    """By turns: half of the readings, half of the nodes, all."""
    index = range(k << 20, (k << 20) + windows)
    single = Stream(0, "scale readings").uniform(index, lags * nodes) < 0.5
    whole = (Stream(0, "scale nodes").uniform(index, nodes) < 0.5).repeat(1, lags)
    turn = torch.arange(windows)[:, None] % 3
    return torch.where(turn == 0, single, torch.where(turn == 1, whole, torch.ones_like(single)))


def _mixture(gaussian: Reference, z: Tensor) -> Reference:
    """Of rows by themselves, gaps filled by what a Gaussian expects of them; a tenth of them says how many parts."""
    seen = ~z.isnan()
    full = gaussian.posterior(z.nan_to_num(), seen).mean
    val = torch.arange(len(full)) % 10 == 0
    return mixture_fit.select(full[~val], full[val])


def settled(
    config: C, space: SignalSpace, train: Series, val: Series, mixture: bool = False
) -> tuple[C, list[Verdict]]:
    """The configuration with nothing left to the data, and what was decided of each channel; nothing if nothing was."""
    asked = {name: getattr(config, name) for name in ("marginals", "integers", "support")}
    if AUTO not in asked.values():
        return config, []
    if asked["marginals"] == AUTO:
        verdicts = choose(space, train, val, config.calendar, mixture)
    else:
        names, kinds = asked["marginals"].split(","), of_channels(train.values)
        verdicts = [Verdict(names[k % len(names)], kind, {}) for k, kind in enumerate(kinds)]
    found = {
        "marginals": _one([each.scale for each in verdicts], ","),
        "integers": _one(["yes" if each.kind.whole else "no" for each in verdicts], ","),
        "support": _one(["{!r},{!r}".format(*each.kind.bounds) for each in verdicts], ";"),
    }
    changes = {name: found[name] for name, value in asked.items() if value == AUTO}
    return cast(C, config.changed(changes)), verdicts


def words(verdicts: Sequence[Verdict], limits: Limits, channels: Sequence[str]) -> list[str]:
    """What there is to say of readings that are not just any numbers, and of what is drawn."""
    lines = list[str]()
    for verdict, channel, ends, whole in zip(verdicts, channels, limits.bounds, limits.whole, strict=False):
        of, kept = f"{channel}: " if len(channels) > 1 else "", in_words(ends, whole)
        if str(verdict.kind) or verdict.scale != "z-score":
            lines += [f"{of}readings: {verdict.kind}"] * bool(str(verdict.kind))
            lines.append(f"{of}scale: {verdict}" + (f"; drawn: {kept}" if kept else ""))
    return lines


def _one(words: list[str], comma: str) -> str:
    """One for all, if they are all alike."""
    return words[0] if len({*words}) == 1 else comma.join(words)
