"""Which reference of windows a series gets, and how much it is shrunk: decided by likelihood, and by memory.

**Candidates**, from the smallest to the largest, judged by the joint likelihood of the observed readings of windows
that they were fitted without, in nats a reading:

    independent readings    what few rows can never be worse than: every reading its own mean and spread
    independent nodes       autocorrelations of their own
    spectral                the paper's, diagonal in the basis of the product graph
    separable               time (x) space (x) channels, shrunk
    stationary              lag covariances, shrunk towards all of these, by a walk along one weight at a time; and
                            towards what distance along the graph says, for as long as that gains
    low rank                leading modes; only where a window is too large for a covariance of its own
    sparse                  regressions on neighbours in space and time; only there, and on large graphs
    mixture                 regimes of stationary ones

The first five but one are all weights of one family (see ``references/lags``), which the walk may end at.

**Judged by** validation windows, fitted on training rows. Few validation rows say little (on AQI-36 eight windows chose
a reference that was worse by a fifth), so where they are fewer than ``ENOUGH`` windows one after the other, stretches
of training rows are judged as well, each by what was fitted to all others.

A column that was hardly read in the rows that a candidate is fitted to is not judged there (see ``means``).

**Short windows, then whole ones.** The walk is along short windows, for the cost falls with the cube of their length.
Whole windows have more to overfit and want more of everything (METR-LA, 24 rows: noise .0125 in place of .003, and a
quarter less error in long gaps), so a few steps upwards are then judged on whole windows. A mixture is taken if it
gains on both. It costs as many times more as it has regimes.

**Memory.** A stationary reference keeps three matrices of ``d^2`` numbers. Where they do not fit, the choice falls to
separable, low rank or sparse, whichever is most probable, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..core import device as devices
from ..core import memory
from ..core.rows import evenly
from ..graphs.space import SignalSpace
from ..references import low_rank_fit, regimes_fit
from ..references.conditioning import fits_densely
from ..references.gaussian import Spectral, spectral_of_lags
from ..references.lags import Shrinkage, correlations, lag_covariances
from ..references.nearness import path_lengths, towards
from ..references.probes import PROBES, STARTS, STEPS
from ..references.reference import Reference
from ..references.separable import Separable
from ..references.stationary import Stationary, Trial, beside, chosen_shrinkage
from . import sparse_references
from .means import often_read
from .pool import parted
from .window_choice import Choice

SMALL, LAGS, READINGS = 768, 4, 432  # readings of windows that are judged whole at once; steps, readings of short ones
JUDGED, WHOLE = 256, 64  # short windows that choices are made on, and whole ones, at most
UPWARDS = ("noise", "local"), ("separable",), ("noise",), ("local",)  # what whole windows may want more of
ENOUGH, PARTS = 40, 3  # validation windows one after the other; else so many stretches of training rows are judged too
SPECTRAL_NOISE = 0.01
SPARSE_LAGS = 2  # rows back
COMPONENTS = (2, 3, 4)  # regimes that are tried
GRAPH = (0.3, 0.6, 0.9)  # shares of the way to what distance along the graph says
NOTICEABLE, SHARE = 0.03, 0.1  # nats a reading that a further regime must bring, and what share of the second one's
CORNERS = {
    "independent readings": Shrinkage(0.0, 0.0, 0.3, 1e-3, 1.0),
    "independent nodes": Shrinkage(1.0, 0.0, 0.3, 0.01),
    "separable": Shrinkage(0.0, 1.0),
}
WITHIN_SEPARABLE = ("local", "noise")  # what is left to choose of a separable one


@dataclass(frozen=True, eq=False)
class _Held:
    """Windows that were left out, and what was not: a trial, and the rows that its covariances are from."""

    trial: Trial
    z: Tensor  # (rows, columns) by the mean of the rows that were not left out
    stretches: Sequence[slice]

    def cost(self, reference: Reference) -> tuple[float, int]:
        """Minus the log-likelihood of the windows, and how many readings that is of."""
        log_prob = reference.posterior(self.trial.z, self.trial.observed).log_prob
        return -float(log_prob.sum()), int(self.trial.observed.sum())


class WindowReferences:
    """References of windows of a space, fitted to stretches of rows.

    ``scored(stretches)``: z-scores (rows, columns) of all rows by the mean of these, NaN where missing.
    ``stretches``: training rows without a break.
    ``val_starts``: first rows of the validation windows, in the same table.
    """

    def __init__(
        self,
        space: SignalSpace,
        scored: Callable[[Sequence[slice]], Tensor],
        stretches: Sequence[slice],
        val_starts: np.ndarray,
    ):
        self.space, self.scored, self.stretches, self.val_starts = space, scored, stretches, val_starts
        self.columns = space.d // space.steps
        self.lags = space.steps if space.d <= SMALL else min(space.steps, max(LAGS, READINGS // self.columns))
        self._scores = dict[tuple[tuple[int, int], ...], Tensor]()  # by the rows whose mean they are about
        self._kept: Stationary | None = None  # of training rows, judged already: the same is not factored twice
        self._kept_cost = math.inf

    # -- choosing --------------------------------------------------------------------------------------------------

    def choose(self) -> Choice:
        """What makes held-out windows most probable, of what fits into memory."""
        held = self._held(self.lags, JUDGED)
        device, node = held[0].z.device, self.node(held[0].z.device)
        judged = f"{sum(len(each.trial.z) for each in held)} windows of {self.lags} rows"
        judged += " of validation" if len(held) == 1 else f" of validation and of {len(held) - 1} stretches of training"
        costs = {name: self._shrunk(held, by, node) for name, by in CORNERS.items()}
        costs["spectral"] = self._mean(held, self._spectral)
        if not fits_densely(self.space.d, torch.float32, device):
            return self._large(held, costs, judged, node)
        corner = min(CORNERS, key=lambda name: costs[name])
        trials, start = [each.trial for each in held], Shrinkage()
        start = CORNERS[corner] if costs[corner] < self._shrunk(held, start, node) else start
        best, tried = chosen_shrinkage(trials, node, start)
        best, graph, costs["stationary"] = self._towards_graph(held, best, tried[best], node)
        log_prob = {name: -cost for name, cost in costs.items()}
        whole = held if self.lags == self.space.steps else self._held(self.space.steps, WHOLE)
        near = [self._near(each, graph) for each in whole]
        choice = self._upwards(near, Choice("stationary", best, 1, log_prob, judged, graph=graph), node)
        choice = self._with_regimes(held, whole, choice, node)
        return self._or_spectral(whole, choice) if costs["spectral"] < costs["stationary"] else choice

    def _towards_graph(
        self, held: Sequence[_Held], best: Shrinkage, least: float, node: Tensor
    ) -> tuple[Shrinkage, float, float]:
        """How far to go towards what distance along the graph says, the shrinkage there, and its cost a reading."""
        graph = 0.0
        for weight in GRAPH:
            trials = [self._near(each, weight).trial for each in held]
            by, tried = chosen_shrinkage(trials, node, best)
            if not tried[by] < least:
                break
            best, graph, least = by, weight, tried[by]
        return best, graph, least

    def _near(self, each: _Held, weight: float) -> _Held:
        return replace(each, trial=replace(each.trial, C=towards(each.trial.C, self.distance, weight)))

    @cached_property
    def distance(self) -> np.ndarray:  # (nodes, nodes)
        """Along the graph."""
        return path_lengths(self.space.graph)

    def _or_spectral(self, whole: Sequence[_Held], choice: Choice) -> Choice:
        """The paper's, where whole windows are more probable by it than by the chosen one: few rows, a good graph."""
        long = -self._mean(whole, self._spectral)
        log_prob = choice.log_prob | {"spectral, whole windows": long}
        chosen = log_prob.get(f"{_named(choice.components)}, whole windows", -math.inf)
        return replace(choice, kind="spectral" if long > chosen else choice.kind, log_prob=log_prob)

    def _held(self, steps: int, most: int) -> list[_Held]:
        """Validation windows; and stretches of training rows where those are few."""
        groups = [(tuple(self.stretches), self.val_starts)]
        few = len(np.unique(self.val_starts // self.space.steps)) < ENOUGH
        parts = parted(self.stretches, PARTS) if few else []
        for part in parts if len(parts) > 1 else []:
            others = tuple(s for other in parts if other is not part for s in other)
            starts = [np.arange(s.start, s.stop - steps + 1) for s in part if s.stop - s.start >= steps]
            if starts:
                groups.append((others, np.concatenate(starts)))
        return [self._left_out(steps, stretches, starts, most // len(groups)) for stretches, starts in groups]

    def _left_out(self, steps: int, stretches: tuple[slice, ...], starts: np.ndarray, most: int) -> _Held:
        key = tuple((s.start, s.stop) for s in stretches)
        if key not in self._scores:
            self._scores[key] = self.scored(stretches)
        z = self._scores[key]
        windows = self._windows(z, starts[evenly(len(starts), most)], steps)
        observed = ~windows.isnan() & often_read(torch.cat([z[rows] for rows in stretches])).repeat(steps)
        trial = Trial(lag_covariances(z, steps, stretches), windows.nan_to_num().float(), observed)
        return _Held(trial, z, stretches)

    @staticmethod
    def _windows(z: Tensor, starts: np.ndarray, steps: int) -> Tensor:  # (windows, steps columns)
        return z[torch.from_numpy(starts[:, None] + np.arange(steps)).to(z.device)].flatten(1)

    def _upwards(self, whole: Sequence[_Held], choice: Choice, node: Tensor) -> Choice:
        """More noise, and more correlations taken for noise, for as long as whole windows become more probable."""
        best, least = choice.shrinkage, self._judged_whole(whole, choice.shrinkage, node)
        for move in UPWARDS if self.lags < self.space.steps else ():
            while (more := _more(best, move)) is not None:
                cost = self._judged_whole(whole, more, node)
                if not cost < least:
                    break
                best, least = more, cost
        log_prob = choice.log_prob | {"stationary, whole windows": -least}
        return replace(choice, shrinkage=best, log_prob=log_prob)

    def _judged_whole(self, whole: Sequence[_Held], by: Shrinkage, node: Tensor) -> float:
        """The cost a reading."""
        total, count = 0.0, 0
        for each in whole:
            reference = Stationary.of(each.trial.C, by, node, torch.float32)
            cost, number = each.cost(reference)
            total, count = total + cost, count + number
            if each is whole[0] and total < self._kept_cost:
                self._kept, self._kept_cost = reference, total
        return total / max(count, 1)

    def _shrunk(self, held: Sequence[_Held], by: Shrinkage, node: Tensor) -> float:
        return self._mean(held, lambda each: Stationary.of(each.trial.C, by, node, torch.float32))

    def _mean(self, held: Sequence[_Held], fit: Callable[[_Held], Reference]) -> float:
        """The cost a reading of what is fitted to each."""
        total, count = map(sum, zip(*(each.cost(fit(each)) for each in held), strict=True))
        return total / max(count, 1)

    def _spectral(self, each: _Held) -> Reference:
        return self._of_lags(each.trial.C)

    def _of_lags(self, C: Tensor) -> Spectral:  # (lags, columns, columns)
        return spectral_of_lags(C, replace(self.space, steps=len(C)).spectrum, SPECTRAL_NOISE)

    def _with_regimes(self, held: Sequence[_Held], whole: Sequence[_Held], choice: Choice, node: Tensor) -> Choice:
        """The same in regimes, where they gain on short windows and on whole ones."""
        best, least, log_prob = 1, NOTICEABLE, dict(choice.log_prob)
        near = [self._near(each, choice.graph) for each in held]
        log_prob["stationary"] = -self._shrunk(near, choice.shrinkage, node)
        for count in COMPONENTS:
            if not fits_densely(math.ceil(count**0.5 * self.space.d), torch.float32, node.device):
                break
            log_prob[_named(count)] = self._of_regimes(held, self.lags, count, choice.shrinkage)
            gain = (log_prob[_named(count)] - log_prob[_named(best)]) / (count - best)
            if not gain > least:
                break
            least, best = max(least, SHARE * gain), count
        if best > 1:
            long = f"{_named(best)}, whole windows"
            log_prob[long] = self._of_regimes(whole, self.space.steps, best, choice.shrinkage)
            if log_prob[long] - log_prob["stationary, whole windows"] > NOTICEABLE:
                return replace(choice, kind="mixture", components=best, log_prob=log_prob)
        return replace(choice, log_prob={name: value for name, value in log_prob.items() if math.isfinite(value)})

    def _of_regimes(self, held: Sequence[_Held], steps: int, count: int, by: Shrinkage) -> float:
        """The log-likelihood a reading of so many regimes; minus infinite where rows are too few for them."""
        total, readings = 0.0, 0
        for each in held:
            mixture = self._regimes(each.z, each.stretches, steps, count, by)
            if mixture is None:
                return -math.inf
            cost, number = each.cost(mixture)
            total, readings = total + cost, readings + number
        return -total / max(readings, 1)

    def _large(self, held: Sequence[_Held], costs: dict[str, float], judged: str, node: Tensor) -> Choice:
        """Separable, low rank or sparse."""
        trials = [each.trial for each in held]
        by, tried = chosen_shrinkage(trials, node, CORNERS["separable"], weights=WITHIN_SEPARABLE)
        costs["separable"] = tried[by]
        costs["low rank"] = self._mean(held, lambda each: self._low_rank(each.z, each.stretches, self.lags, by))
        sparse = Choice("sparse", by, lags=min(SPARSE_LAGS, self.lags - 1))
        short = replace(self.space, steps=self.lags)
        costs["sparse"] = self._mean(held, lambda each: sparse_references.fitted(sparse, each.z, each.stretches, short))
        kind = min(("separable", "low rank", "sparse"), key=costs.__getitem__)
        size = memory.readable_size(dense_bytes(self.space))
        why = f"a covariance of {self.space.d:,} readings a window takes {size}, which does not fit into memory"
        log_prob = {name: -cost for name, cost in costs.items()}
        return Choice(kind, by, 1, log_prob, judged, why, lags=sparse.lags)

    # -- fitting ---------------------------------------------------------------------------------------------------

    def node(self, device: torch.device) -> Tensor:  # (columns,)
        """Of every column."""
        return torch.arange(self.columns, device=device) // self.space.channels

    def fit(self, choice: Choice, z: Tensor, stretches: Sequence[slice]) -> Reference:
        """Of whole windows, from these rows of z-scores ``z`` (rows, columns)."""
        steps, by = self.space.steps, choice.shrinkage
        if choice.kind == "separable":
            return self._separable(z, stretches, steps, by)
        if choice.kind == "low rank":
            return self._low_rank(z, stretches, steps, by)
        if choice.kind == "sparse":
            return sparse_references.fitted(choice, z, stretches, self.space)
        if choice.kind == "spectral":
            return self._of_lags(lag_covariances(z, steps, stretches))
        if choice.kind == "mixture":
            mixture = self._regimes(z, stretches, steps, choice.components, by)
            if mixture is not None:
                return mixture
        if self._kept is not None and self._kept.shrinkage == by and list(stretches) == list(self.stretches):
            return self._kept
        C = towards(lag_covariances(z, steps, stretches), self.distance, choice.graph)
        return Stationary.of(C, by, self.node(z.device), torch.float32)

    def _separable(self, z: Tensor, stretches: Sequence[slice], steps: int, by: Shrinkage) -> Separable:
        C0 = lag_covariances(z, 1, stretches)[0]
        return Separable.of(C0, correlations(z, steps, stretches), by, self.space.channels)

    def _low_rank(self, z: Tensor, stretches: Sequence[slice], steps: int, by: Shrinkage) -> Reference:
        starts = [np.arange(s.start, s.stop - steps + 1) for s in stretches if s.stop - s.start >= steps]
        rows = np.concatenate(starts)
        windows = self._windows(z, rows[evenly(len(rows), low_rank_fit.WINDOWS)], steps)
        return low_rank_fit.fit(low_rank_fit.completed(windows, self._separable(z, stretches, steps, by)))

    def _regimes(
        self, z: Tensor, stretches: Sequence[slice], steps: int, count: int, by: Shrinkage
    ) -> Reference | None:
        return regimes_fit.fit(z, stretches, steps, self.lags, count, by, self.node(z.device))


def _more(by: Shrinkage | None, weights: Sequence[str]) -> Shrinkage | None:
    """One step up along these weights; None beyond their ends."""
    for weight in weights:
        by = by and beside(by, weight)[0]
    return by


def _named(components: int) -> str:
    return "stationary" if components == 1 else f"mixture of {components}"


def dense_bytes(space: SignalSpace) -> float:
    """What a stationary reference takes."""
    return 3.0 * 4 * space.d**2


def refuse_window(space: SignalSpace, device: torch.device) -> None:
    """Before anything is fitted: refuse windows for which even a separable reference is too large, and say how long
    they may be."""
    fixed, each = 8.0 * 4 * (space.d // space.steps) ** 2, 8.0 * (6 * PROBES + STARTS * STEPS)
    room = devices.room(device)
    most = int((room - fixed) // (each * (space.d // space.steps)))
    shorter = f"take a window of at most {most:,} rows" if most >= 1 else "take fewer nodes"
    memory.refuse_over(
        fixed + each * space.d,
        f"a window of {space.steps:,} rows, {space.d:,} readings",
        f"{shorter}; a window is as long as the past helps, see data inspect",
        room,
    )
