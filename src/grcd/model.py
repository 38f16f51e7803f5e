"""What users touch: a model that is fitted to signals on a graph and generates new ones, in the signals' own units.

It checks what comes in, holds one trained ``Diffusion``, converts between units and z-scores, and calls tasks.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from torch import Tensor, nn

from .core import device as devices
from .core import memory
from .core.errors import InputError, whole_number
from .core.progress import bar
from .core.rows import BLOCK, evenly, split
from .data.dataset import Dataset
from .data.linear import Linear
from .data.marginals import Marginals, ZScored
from .data.normalizer import Normalizer, check_signals, warn_of_empty, warn_of_units
from .data.origin import Origin
from .diffusion import solvers
from .diffusion.diffusion import Diffusion
from .diffusion.plan import Choice, Plan
from .diffusion.process import Process
from .graphs.graph import Graph
from .graphs.space import SignalSpace
from .references import Reference
from .references.observations import Observations
from .runs import contents
from .runs import train as runs
from .runs.contents import Trained
from .runs.folder import Run, read
from .tasks import fill, likelihood, vary
from .tasks.sample import Memory, sample
from .training import fit, methods
from .training.config import Config

COPIES = 3  # of generated signals that are in memory at once


class GRCD:
    """Graph Residual Conjugate Diffusion: graph + method + settings, then ``fit``, then ``sample``.

    ``graph``       a ``Graph``, or its weights (nodes, nodes), dense or sparse
    ``method``      a name from the table in ``training/methods.py``
    ``seed``        decides all that is random in training; that of a method below, all that is random there
    ``device``      "auto", "cpu" or "cuda"
    ``settings``    fields of ``grcd.Config`` (``width=64``, ``lr=1e-3``, ``max_updates=5000``, ...)

    Arguments that several methods have:
    ``n``           how many signals, or draws of each signal
    ``nfe``         network evaluations for each of them
    ``posterior``   "diffusion", the model's own, or "reference": that of the reference alone, exact and without network
    ``solver``      a name from the table in ``diffusion/solvers.py``, where the usual one is not wanted
    ``batch``       how many signals are worked on at a time
    """

    def __init__(
        self,
        graph: Graph | ArrayLike | sp.sparray,
        method: str = "grcd",
        seed: int = 0,
        device: str = "auto",
        **settings: Any,
    ):
        self.graph = graph if isinstance(graph, Graph) else Graph.from_adjacency(graph)
        self.space = SignalSpace(self.graph)
        self.method = methods.find(method)
        self.config = Config.make(**{"method": method, "seed": seed, **dict(self.method.settings), **settings})
        self.device = devices.find(device)
        self._trained: Trained | None = None
        self._memory = Memory()

    def __repr__(self) -> str:
        state = "not fitted yet"
        if self._trained is not None:
            data, result = self.facts["data"], self.result
            state = f"trained on {data['train']:,} signals ({data['name']}), {result['updates']:,} updates"
        return f"GRCD(method={self.config.method!r}, nodes={len(self.graph)}, device={str(self.device)!r})\n  {state}"

    # -- what was trained ------------------------------------------------------------------------------------------

    @property
    def trained(self) -> Trained:
        """All that training has brought; an error before that."""
        if self._trained is None:
            raise InputError("a model that has not been fitted", "a fitted one", "call fit, or load a run")
        return self._trained

    @property
    def diffusion(self) -> Diffusion:
        """The parts of the method, trained and bound together: what tasks take."""
        return self.trained.diffusion

    @property
    def process(self) -> Process:
        """The forward process: how noise comes in."""
        return self.diffusion.process

    @property
    def reference(self) -> Reference:
        """The fitted law of signals that needs no network, of z-scores."""
        return self.diffusion.reference

    @property
    def network(self) -> nn.Module:
        """The trained network."""
        return self.diffusion.network

    @property
    def plan(self) -> Plan:
        """How to sample, by budget, where validation signals chose."""
        return self.diffusion.plan

    @property
    def normalizer(self) -> Marginals:
        """The map between the signals' units and z-scores."""
        return self.trained.normalizer

    @property
    def result(self) -> dict:
        """How training went."""
        return self.trained.result

    @property
    def facts(self) -> dict:
        """What a run folder says of it."""
        return self.trained.facts

    @property
    def unit(self) -> str:
        """The unit of the signals, if it is known."""
        return "" if self._trained is None else Origin.of_run(self.facts).unit or ""

    # -- training --------------------------------------------------------------------------------------------------

    def fit(
        self,
        train: ArrayLike,  # (samples, nodes) in their own units
        val: ArrayLike | None = None,
        run: str | Path | None = None,
        force: bool = False,
        name: str = "signals",
        about: dict | None = None,
    ) -> GRCD:
        """Fit the reference and train the network; returns the model itself.

        ``train``   training signals (samples, nodes), NaN where a reading is missing
        ``val``     validation signals; without them the last tenth of ``train`` validates
        ``run``, ``force``, ``name`` and ``about`` are deprecated: ``grcd.train`` trains in a run folder.
        """
        if run is not None or force or name != "signals" or about is not None:
            warnings.warn("fit(run=...) is deprecated: call grcd.train", DeprecationWarning, stacklevel=2)
        return self._fit(train, val, run, force, name, None if about is None else Origin.of(about))

    def _fit(self, train: ArrayLike, val: ArrayLike | None, *folder: Any) -> GRCD:
        x_train = check_signals(train, self.space, "training signals", gaps=True)
        if val is None:
            cut = max(1, len(x_train) // 10)
            x_train, val = x_train[:-cut], x_train[-cut:]
            check_signals(x_train, self.space, "training signals left after a tenth was kept for validation", gaps=True)
        x_val = check_signals(val, self.space, "validation signals", least=1, gaps=True)
        self._trained = runs.train(self.space, self.config, self.device, x_train, x_val, *folder)
        self._memory = Memory()
        return self

    def fresh_network(self) -> nn.Module:
        """The network before training."""
        return fit.fresh_network(self.space, self.config, self.device)

    def seconds_per_update(self, train: ArrayLike) -> float:
        """Seconds that an update takes here, measured on a few of the signals ``train`` (samples, nodes)."""
        x = check_signals(train, self.space, "training signals", gaps=True)
        z = Normalizer.fit(x, self.graph).apply(x, evenly(len(x), 1000))
        return fit.seconds_per_update(self.space, self.config, self.device, z)

    # -- sampling --------------------------------------------------------------------------------------------------

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
        or the method's. ``precision`` "bfloat16" is faster. The first signals of a seed are the same for every ``n``.
        """
        diffusion = self.diffusion
        batch = diffusion.batch if batch is None else batch
        whole_number("n", n), whole_number("batch", batch)
        memory.refuse_over(COPIES * 8 * n * self.space.d, f"n = {n:,} signals on {len(self.graph)} nodes", "lower n")
        choice = diffusion.choice(nfe, solver=solver, rho=rho, grid=grid, start=start)
        choices = (choice.solver, nfe, tuple(diffusion.levels(nfe, choice)))
        captured = self._memory if self._memory.again(n, batch, precision, choices) else None
        with bar("sampling", n) as advance:
            z = sample(diffusion, n, "terminal", seed, choices, batch, precision, captured, advance)
        return self.space.shaped(self._in_units(z))

    def impute(
        self,
        signals: ArrayLike,  # (signals, nodes) in their own units, NaN where missing
        n: int = 100,
        nfe: int = 8,
        seed: int = 0,
        posterior: str = "diffusion",
        solver: str | None = None,
        batch: int | None = None,
    ) -> np.ndarray:  # (n, signals, nodes)
        """Fill the gaps (NaN) of ``signals`` (signals, nodes) ``n`` times over: (n, signals, nodes).

        What was observed comes out as it went in.
        """
        x = check_signals(signals, self.space, "signals to fill", least=1, gaps=True)
        parts = self.fillings(x, n, nfe, seed, posterior, solver, batch)
        ensemble = np.empty((n, *x.shape))
        for rows, draws in parts:
            ensemble[:, rows] = draws
        return self.space.shaped(ensemble)

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
        """``impute`` for some of the signals ``x`` at a time: their rows, and their draws (n, rows, nodes)."""
        z, gaps = ZScored(x, self.normalizer, self.device), np.isnan(x).any(axis=1)
        whole_number("n", n), whole_number("batch", 1 if batch is None else batch)
        fill.refuse_heavy(n, self.space.d)
        warn_of_empty(x)
        warn_of_units(x, Normalizer.of(self.facts["normalizer"]), self.graph)
        options = n, nfe, seed, posterior, solver, batch
        filled = fill.fill(self.diffusion, lambda rows: Observations(z[rows]), np.flatnonzero(gaps), *options)
        whole = split(np.flatnonzero(~gaps), BLOCK // (n * self.space.d))  # nothing to fill
        return chain(
            ((rows, np.broadcast_to(x[rows], (n, *x[rows].shape))) for rows in whole),
            ((rows, np.where(np.isnan(x[rows]), self._in_units(draws), x[rows])) for rows, draws in filled),
        )

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
        if not isinstance(self.normalizer, Normalizer):
            raise InputError("a model with marginals=quantile", "one on z-scores", "train without marginals=quantile")
        whole_number("n", n)
        fill.refuse_heavy(n, self.space.d)
        linear = Linear.checked(y, H, noise, self.space.d).z_scored(self.normalizer).to(self.device)
        rows, ensemble = np.arange(len(linear.y)), np.empty((n, len(linear.y), self.space.d))

        def observed(rows: np.ndarray) -> Observations:
            return Observations(linear.y[rows], linear.H, linear.variance)

        for some, draws in fill.fill(self.diffusion, observed, rows, n, nfe, seed, posterior, solver):
            ensemble[:, some] = self._in_units(draws)
        return self.space.shaped(ensemble)

    def augment(
        self, signals: ArrayLike, strength: float, n: int = 1, nfe: int = 4, seed: int = 0
    ) -> np.ndarray:  # (n, signals, nodes)
        """``n`` variations (n, signals, nodes) of ``signals``: at ``strength`` 0 the signal itself, at 1 any signal."""
        diffusion = self.diffusion
        whole_number("n", n)
        x = self._familiar(signals, "signals to vary")
        what = f"n = {n:,} variations of {len(x)} signals on {len(self.graph)} nodes"
        memory.refuse_over(COPIES * 8 * n * x.size, what, "lower n, or vary fewer signals at a time")
        varied = np.repeat(x[None], n, axis=0).astype(np.float64)
        z = ZScored(x, self.normalizer, self.device)
        for rows, variations in vary.vary(diffusion, z, strength, n, nfe, seed):
            varied[:, rows] = self._in_units(variations).swapaxes(0, 1)
        return self.space.shaped(varied)

    def log_prob(
        self, signals: ArrayLike, posterior: str = "diffusion", steps: int = 16, probes: int = 4, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:  # two of (signals,)
        """Log-likelihood of each of ``signals`` (signals, nodes) in nats, and half of its 95 % interval.

        Under the reference alone it is exact, and that of what was observed where there are gaps. Under the model more
        ``steps`` of its flow, and more ``probes`` of its divergence, make the interval narrower.
        """
        diffusion = self.diffusion
        whole_number("steps", steps), whole_number("probes", probes)
        fill.refuse_unknown(posterior)
        x = self._familiar(signals, "signals to score", gaps=True)
        gaps = int(np.isnan(x).sum())
        if gaps and posterior != "reference":
            do = "take posterior='reference' (--posterior reference), which scores what is there, or fill them (impute)"
            raise InputError(f"{gaps} missing readings in signals to score", "complete signals", do)
        z = ZScored(x, self.normalizer, self.device)
        return likelihood.of_signals(diffusion, z, posterior == "reference", steps, probes, seed)

    def node_log_prob(self, signals: ArrayLike) -> np.ndarray:  # (signals, nodes)
        """How probable each reading is given all others of its signal, under the reference: low ones stand out.

        Log-densities (signals, nodes) of ``signals`` (signals, nodes); NaN where there is no reading.
        """
        diffusion = self.diffusion
        x = self._familiar(signals, "signals to score", gaps=True)
        return likelihood.of_readings(diffusion, ZScored(x, self.normalizer, self.device))

    def _in_units(self, z: Tensor) -> np.ndarray:  # (..., d) twice
        """z-scores as readings; those beyond an end of the support are set to it, as a sensor that saturates does."""
        x = self.normalizer.undo(z.flatten(0, -2).cpu().numpy()).reshape(z.shape)
        return x if self.config.bounds is None else np.clip(x, *self.config.bounds, out=x)

    def _familiar(self, signals: ArrayLike, what: str, gaps: bool = False) -> np.ndarray:
        """Signals as an array, after a look at their units."""
        x = check_signals(signals, self.space, what, least=1, gaps=gaps)
        warn_of_units(x, Normalizer.of(self.facts["normalizer"]), self.graph)
        return x

    def choice(self, nfe: int, **own: Any) -> Choice:
        """How to sample with a budget of ``nfe``: one's ``own`` choices, else the plan's, or the method's."""
        return self.diffusion.choice(nfe, **own)

    def as_method(self, name: str) -> GRCD:
        """The same network, sampled as the method ``name`` would: one that shares its training."""
        other = methods.find(name)
        if other.network != self.method.network:
            raise InputError(
                f"a network of {self.config.method!r} for the method {name!r}",
                f"one that is trained alike: {', '.join(methods.sharing(self.method))}",
                "train that method",
            )
        model = copy.copy(self)
        model.method, model._memory = other, Memory()
        model._trained = replace(self.trained, diffusion=fit.sampled_as(self.diffusion, name))
        return model

    def spends(self, nfe: int, solver: str | None = None) -> int:
        """Network evaluations that a budget of ``nfe`` comes to with a ``solver``: EDM's last step leaves one out."""
        return solvers.find(solver or self.method.solver).spends(nfe)

    # -- saving ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the model to ``path`` as a finished run folder; ``force`` replaces another run that is there."""
        trained = self.trained
        with Run(path, trained.facts, force) as folder:
            if not folder.finished:
                folder.finish(trained.tensors(), trained.result)


def train(model: GRCD, data: Dataset, run: str | Path, force: bool = False) -> GRCD:
    """Train a ``model`` in a run folder; interrupted anywhere, the same call goes on where it was. Returns the model.

    ``data``    its training and validation signals are used, and where they came from is noted in the folder
    ``run``     the folder; ``force`` begins anew where there is another run
    """
    if not isinstance(data, Dataset):
        raise InputError(f"data of type {type(data).__name__}", "a Dataset", "make one with grcd.load_dataset, or fit")
    return model._fit(data.train, data.val, run, force, data.name, data.origin)


def load(path: str | Path, device: str = "auto") -> GRCD:
    """A model from the finished run folder ``path``, on ``device``: "auto", "cpu" or "cuda"."""
    manifest, tensors = read(path)
    with contents.fitting(path):
        graph, config = contents.graph(manifest, tensors), Config.make(**manifest["config"])
    model = GRCD(graph, device=device, **config.to_dict())
    with contents.fitting(path):
        model._trained = contents.restored(model.space, config, model.device, manifest, tensors)
    return model
