"""A trained model of signals by themselves: signals in, signals out, in their own units.

``GRCD`` holds one where there is no window. It converts between readings and z-scores, and calls tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .core import memory
from .core.errors import InputError, whole_number
from .core.progress import bar
from .core.rows import BLOCK, split
from .core.streams import Stream
from .data.limits import Limits
from .data.linear import Linear
from .data.marginals import ZScored
from .data.normalizer import Normalizer, check_signals, warn_of_empty, warn_of_units
from .data.series import Series
from .evaluation import hiding
from .evaluation.contest import Contest, Way, merged, ways
from .graphs.space import SignalSpace
from .references.nearness import path_lengths
from .references.observations import Observations
from .runs.contents import Trained
from .tasks import fill, likelihood, vary
from .tasks.columns import Columns, mirrored
from .tasks.moments import MomentLaw, Moments, Plain
from .tasks.sample import Memory, sample

STEPS = 12  # rows in a row that count as a window where there is none: by them gaps are told apart
COPIES = 3  # of generated signals that are in memory at once


@dataclass(frozen=True)
class SignalModel:
    """What a trained model says of signals; arguments are those of ``GRCD``'s methods."""

    trained: Trained
    limits: Limits  # of generated readings
    memory: Memory  # of what was sampled last

    @property
    def space(self) -> SignalSpace:
        return self.trained.diffusion.space

    @property
    def device(self) -> torch.device:
        return self.trained.diffusion.device

    def sample(
        self,
        n: int,
        nfe: int = 4,
        seed: int = 0,
        solver: str | None = None,
        rho: float | None = None,
        grid: str | Sequence[float] | None = None,
        batch: int | None = None,
        precision: str = "float32",
        start: float | None = None,
    ) -> np.ndarray:  # (n, nodes)
        """New signals (n, nodes), in the units of the training signals, with ``nfe`` network evaluations each.

        ``solver``, ``grid`` (name or levels), ``rho`` and ``start`` (share of the largest level) default to the plan's,
        or the method's. On a GPU ``precision`` "tf32" is faster, "bfloat16" more so. The first signals of a seed are
        the same for every ``n``.
        """
        diffusion = self.trained.diffusion
        batch = diffusion.batch if batch is None else batch
        whole_number("n", n), whole_number("batch", batch)
        what = f"n = {n:,} signals on {len(self.space.graph)} nodes"
        memory.refuse_over(COPIES * 8 * n * self.space.d, what, "lower n")
        choice = diffusion.choice(nfe, solver=solver, rho=rho, grid=grid, start=start)
        choices = (choice.solver, nfe, tuple(diffusion.levels(nfe, choice)))
        captured = self.memory if self.memory.again(n, batch, precision, choices) else None
        with bar("sampling", n) as advance:
            z = sample(diffusion, n, "terminal", seed, choices, batch, precision, captured, advance)
        return self.space.shaped(self.in_units(z))

    def sample_reference(self, n: int, seed: int = 0) -> np.ndarray:  # (n, nodes)
        """Signals of the reference alone, without the network."""
        diffusion = self.trained.diffusion
        noise = Stream(seed, "reference signal", self.device).normal(range(n), self.space.d)
        component = Stream(seed, "reference component", self.device).uniform(0, n)
        return self.space.shaped(self.in_units(diffusion.reference.draw(noise, 0.0, component)))

    def fillings(
        self,
        x: np.ndarray,  # (signals, nodes), checked
        n: int,
        nfe: int = 8,
        seed: int = 0,
        posterior: str = "diffusion",
        solver: str | None = None,
        batch: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Gaps of ``x`` filled, for some of the signals at a time: their rows, and their draws (n, rows, nodes).

        ``posterior`` "auto" fills every gap by the candidate that won at its kind at the end of training; "columns"
        fills each node by itself, whatever the others read.
        """
        fill.refuse_unknown(posterior, fill.OF_GAPS)
        if posterior in ("auto", "moments") or (posterior == "columns" and self.contest is not None):
            kinds = hiding.families(Series(x[:, :, None]), STEPS)[..., 0]
            by = ways(self.contest, posterior, kinds) or {("diffusion", None): np.isnan(x)}
            if len(by) > 1:
                batch = batch or max(1, fill.ENTRIES[self.device.type] // (n * self.space.d))
            return merged({way: self.by(way, x, n, nfe, seed, solver, batch) for way in by}, by)
        return self.by((posterior, None), x, n, nfe, seed, solver, batch)

    def by(
        self,
        way: Way,
        x: np.ndarray,
        n: int,
        nfe: int = 8,
        seed: int = 0,
        solver: str | None = None,
        batch: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As ``fillings``, all gaps in one way."""
        posterior, process = way
        z, gaps = ZScored(x, self.trained.normalizer, self.device), np.isnan(x).any(axis=1)
        whole_number("n", n), whole_number("batch", 1 if batch is None else batch)
        fill.refuse_heavy(n, self.space.d)
        warn_of_empty(x)
        warn_of_units(x, Normalizer.of(self.trained.facts["normalizer"]), self.space.graph)
        if isinstance(process, Moments):
            filled = self._row_by_row(process, x, np.flatnonzero(gaps), n, seed, batch)
        elif posterior == "columns":
            filled = self._by_themselves(process or Columns((0.0,), (1.0,)), np.flatnonzero(gaps), n, seed, batch)
        else:
            options = n, nfe, seed, posterior, solver, batch
            observed = lambda rows: Observations(z[rows])  # noqa: E731
            drawn = fill.fill(self.trained.diffusion, observed, np.flatnonzero(gaps), *options)
            filled = ((rows, self.in_units(draws)) for rows, draws in drawn)
        whole = split(np.flatnonzero(~gaps), BLOCK // (n * self.space.d))  # nothing to fill
        return chain(
            ((rows, np.broadcast_to(x[rows], (n, *x[rows].shape))) for rows in whole),
            ((rows, np.where(np.isnan(x[rows]), draws, x[rows])) for rows, draws in filled),
        )

    @property
    def contest(self) -> Contest | None:
        """How our candidates and simple competitors filled hidden readings; None of a run that is older than that."""
        numbers = self.trained.result.get("contest")
        return None if numbers is None else Contest.from_dict(numbers)

    def _by_themselves(
        self, process: Columns, rows: np.ndarray, n: int, seed: int, batch: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # each (rows,), (n, rows, d)
        """Every node by itself."""
        for some in split(rows, batch or fill.ENTRIES[self.device.type] // (n * self.space.d)):
            z = mirrored(Stream(seed, "columns", self.device), some, n, self.space.d)
            yield some, self.in_units(process.of_rows(z).transpose(0, 1))

    def _row_by_row(
        self, process: Moments, x: np.ndarray, rows: np.ndarray, n: int, seed: int, batch: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # each (rows,), (n, rows, d)
        """Every row by itself, as they stand."""
        plain, law = self.row_law(process)
        of_each = batch or fill.ENTRIES[self.device.type] // (n * self.space.d)
        for some in split(rows, of_each):
            drawn = law.drawn(plain.scored(x[some]), some, n, seed)
            yield some, self.limits.kept(plain.back(drawn).cpu().numpy())

    def row_law(self, process: Moments) -> tuple[Plain, MomentLaw]:
        """Rows as they stand, and their law."""
        plain = self.trained.plain
        assert plain is not None
        return plain, process.law(plain.C0, path_lengths(self.space.graph))

    def infer(
        self,
        y: ArrayLike,  # (signals, m) linear readings, NaN where there is none
        H: ArrayLike | sp.sparray,  # (m, nodes): what each of them is made of; dense or sparse
        noise: ArrayLike = 0.0,  # standard deviation of each, or of all
        n: int = 100,
        nfe: int = 8,
        seed: int = 0,
        posterior: str = "diffusion",
        solver: str | None = None,
    ) -> np.ndarray:  # (n, signals, nodes)
        """Draw signals ``x`` (n, signals, nodes) given sums, averages or other linear readings ``y = H x + noise``.

        ``y`` (signals, m) has NaN where there is no reading, ``H`` (m, nodes) may be sparse, and ``noise`` is the
        standard deviation of each of the ``m``, or of all. All in the signals' units.
        """
        if not isinstance(self.trained.normalizer, Normalizer):
            scale = self.trained.facts["config"]["marginals"]
            raise InputError(f"a model with marginals={scale}", "one on z-scores", "train with marginals=z-score")
        whole_number("n", n)
        fill.refuse_heavy(n, self.space.d)
        linear = Linear.checked(y, H, noise, self.space.d).z_scored(self.trained.normalizer).to(self.device)
        rows, ensemble = np.arange(len(linear.y)), np.empty((n, len(linear.y), self.space.d))

        def observed(rows: np.ndarray) -> Observations:
            return Observations(linear.y[rows], linear.H, linear.variance)

        for some, draws in fill.fill(self.trained.diffusion, observed, rows, n, nfe, seed, posterior, solver):
            ensemble[:, some] = self.in_units(draws)
        return self.space.shaped(ensemble)

    def augment(
        self, signals: ArrayLike, strength: float, n: int = 1, nfe: int = 4, seed: int = 0
    ) -> np.ndarray:  # (n, signals, nodes)
        """``n`` variations (n, signals, nodes) of ``signals``: at ``strength`` 0 the signal itself, at 1 any signal."""
        diffusion = self.trained.diffusion
        whole_number("n", n)
        x = self._familiar(signals, "signals to vary")
        what = f"n = {n:,} variations of {len(x)} signals on {len(self.space.graph)} nodes"
        memory.refuse_over(COPIES * 8 * n * x.size, what, "lower n, or vary fewer signals at a time")
        varied = np.repeat(x[None], n, axis=0).astype(np.float64)
        z = ZScored(x, self.trained.normalizer, self.device)
        for rows, variations in vary.vary(diffusion, z, strength, n, nfe, seed):
            varied[:, rows] = self.in_units(variations).swapaxes(0, 1)
        return self.space.shaped(varied)

    def log_prob(
        self, signals: ArrayLike, posterior: str = "diffusion", steps: int = 16, probes: int = 4, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:  # two of (signals,)
        """Log-likelihood of each of ``signals`` (signals, nodes) in nats, and half of its 95 % interval.

        Under the reference alone it is exact, and that of what was observed where there are gaps. Under the model more
        ``steps`` of its flow, and more ``probes`` of its divergence, make the interval narrower.
        """
        diffusion = self.trained.diffusion
        whole_number("steps", steps), whole_number("probes", probes)
        fill.refuse_unknown(posterior)
        x = self._familiar(signals, "signals to score", gaps=True)
        gaps = int(np.isnan(x).sum())
        if gaps and posterior != "reference":
            do = "take posterior='reference' (--posterior reference), which scores what is there, or fill them (impute)"
            raise InputError(f"{gaps} missing readings in signals to score", "complete signals", do)
        z = ZScored(x, self.trained.normalizer, self.device)
        scores, error = likelihood.of_signals(diffusion, z, posterior == "reference", steps, probes, seed)
        return scores + np.nansum(self._log_slope(x), axis=1), error

    def node_log_prob(self, signals: ArrayLike) -> np.ndarray:  # (signals, nodes)
        """How probable each reading is given all others of its signal, under the reference: low ones stand out.

        Log-densities (signals, nodes) of ``signals`` (signals, nodes); NaN where there is no reading.
        """
        diffusion = self.trained.diffusion
        x = self._familiar(signals, "signals to score", gaps=True)
        scores = likelihood.of_readings(diffusion, ZScored(x, self.trained.normalizer, self.device))
        return scores + self._log_slope(x)

    def in_units(self, z: Tensor) -> np.ndarray:  # (..., d) twice
        """z-scores as readings, within their limits."""
        x = self.trained.normalizer.undo(z.flatten(0, -2).cpu().numpy()).reshape(z.shape)
        return self.limits.kept(x)

    def _log_slope(self, x: np.ndarray) -> np.ndarray:  # (signals, nodes) twice
        """Densities are those of readings in standard deviations of their node, whatever their scale."""
        if isinstance(self.trained.normalizer, Normalizer):
            return np.zeros(x.shape)
        return self.trained.normalizer.log_slope(x) + np.log(Normalizer.of(self.trained.facts["normalizer"]).std)

    def _familiar(self, signals: ArrayLike, what: str, gaps: bool = False) -> np.ndarray:
        """Signals as an array, after a look at their units."""
        x = check_signals(signals, self.space, what, least=1, gaps=gaps)
        warn_of_units(x, Normalizer.of(self.trained.facts["normalizer"]), self.space.graph)
        return x
