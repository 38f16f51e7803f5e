"""What users touch: a model that is fitted to signals on a graph and generates new ones, in the signals' own units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from .core import device as devices
from .core import memory
from .core.errors import InputError, whole_number
from .core.progress import bar
from .core.rows import blocks, evenly
from .core.streams import Stream
from .data import outliers
from .data.normalizer import Normalizer, check_signals, warn_of_units
from .data.origin import Origin
from .data.quantiles import Quantiles
from .diffusion import parameterisation as score
from .diffusion import plan, process, solvers
from .graphs.graph import Graph
from .networks import NETWORKS
from .references import mixture
from .references.gaussian import Gaussian, ledoit_wolf, spectral
from .references.mixture import Mixture, Reference
from .runs import contents as saving
from .runs.folder import Run, read
from .tasks import fill as imputation
from .tasks import likelihood
from .tasks import sample as sampling
from .tasks import vary as augmentation
from .training import methods
from .training.config import Config
from .training.loop import VALIDATION_MOST, Outcome, footprint, timed, train

COPIES = 3  # of generated signals that are in memory at once
BATCH_ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 25}  # activations (signals x nodes x width) sampled at a time


class GRCD:
    """Graph Residual Conjugate Diffusion: graph + method + settings, then ``fit``, then ``sample``.

    ``settings`` are the fields of ``grcd.Config`` (``width=64``, ``lr=1e-3``, ``max_updates=5000``, ...).
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
        self.method = methods.find(method)
        self.config = c = Config.make(**{"method": method, "seed": seed, **dict(self.method.settings), **settings})
        self.device = devices.find(device)
        self.process = process.make(self.method.process, self.graph.spectrum, c, self.method.levels).to(self.device)
        self.normalizer: Normalizer | Quantiles = None  # type: ignore[assignment]  # until it is fitted, which all
        self.reference: Reference = None  # type: ignore[assignment]  # that use one of these three ask first, by
        self.network: nn.Module = None  # type: ignore[assignment]  # ``_refuse_unfitted``
        self.plan: plan.Plan = {}  # how to sample, by budget, where validation signals chose
        self.result: dict = {}  # how training went
        self.facts: dict = {}  # what a run folder says of it
        self._memory = sampling.Memory()

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
        """Fit the reference and train the network.

        A missing reading is NaN: the model trains on what is there. Without ``val`` the last tenth of ``train``
        validates. With ``run`` the training lives in that folder: it can be interrupted anywhere, and the same call
        goes on where it was; ``name`` and ``about`` (``Dataset.facts``) say there where the signals came from.
        """
        self._refuse_too_large(training=True)
        x_train, x_val = self._checked(train, val)
        self._refuse_outside(x_train)
        if about is None:  # of signals from files it was said when they were read
            outliers.warn(self.graph.node_ids, training=x_train, validation=x_val)
        moments = Normalizer.fit(x_train, self.graph)
        normalizer = Quantiles.fit(x_train, self.graph) if self.config.marginals == "quantile" else moments
        used, missing = _observed(x_train, "training signals")
        facts = saving.described(self, x_train, x_val, moments, name)
        facts["data"] |= {"missing": missing, "dropped": len(x_train) - len(used), "made": about or {}}
        with nullcontext() if run is None else Run(run, facts, force) as folder:
            if folder is not None and folder.finished:
                return self._restored(folder.path, *read(folder.path))
            validating, _ = _observed(x_val, "validation signals")
            validating = validating[evenly(len(validating), VALIDATION_MOST)]
            z = normalizer.apply(x_train, used), normalizer.apply(x_val, validating)
            return self._fitted(z, normalizer, facts, folder)

    def _fitted(
        self, z: Sequence[np.ndarray], normalizer: Normalizer | Quantiles, facts: dict, folder: Run | None
    ) -> GRCD:
        """Reference, network and plan, from z-scored training and validation signals."""
        gaussian = self._spectral(z[0])
        reference = self._reference(gaussian, *z)
        outcome = self._trained(reference, gaussian, z, folder)
        self._memory = sampling.Memory()
        self.normalizer, self.reference, self.facts = normalizer, reference, facts
        self.network, self.result = outcome.network.eval(), outcome.summary
        if self.method.planned:
            self.plan = self._planned(gaussian, z[1])
            self.result["plan"] = plan.to_dict(self.plan)
        if folder is not None:
            folder.finish(saving.tensors(self), self.result)
        return self

    def _checked(self, train: ArrayLike, val: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        x_train = check_signals(train, self.graph, "training signals", gaps=True)
        if val is None:
            cut = max(1, len(x_train) // 10)
            x_train, val = x_train[:-cut], x_train[-cut:]
            check_signals(x_train, self.graph, "training signals left after a tenth was kept for validation", gaps=True)
        return x_train, check_signals(val, self.graph, "validation signals", least=1, gaps=True)

    def _refuse_outside(self, x: np.ndarray) -> None:
        if self.config.bounds is None:
            return
        low, high = self.config.bounds
        outside = sum(int(((x[rows] < low) | (x[rows] > high)).sum()) for rows in blocks(*x.shape))
        if outside:
            raise InputError(
                f"{outside} training readings outside {low:g} to {high:g}",
                "all of them in the support",
                "widen --support, or mark what cannot be as missing (--missing)",
            )

    def _trained(self, reference: Reference, filler: Gaussian, z: Sequence[np.ndarray], folder: Run | None) -> Outcome:
        hooks: dict[str, Any] = {} if folder is None else {"log": folder.log, "resume": folder.resume}
        x_train, x_val = (torch.from_numpy(part).to(self.device) for part in z)
        score, network = self.parameterised(reference), self.fresh_network()
        with devices.arithmetic("high"):
            return train(score, reference, network, x_train, x_val, self.config, filler=filler, **hooks)

    def _reference(self, gaussian: Gaussian, *z: np.ndarray) -> Reference:
        """What the method starts from: the spectral Gaussian, one with its whole covariance, or a mixture.

        The latter two are fitted to the first of these signals; the second ones decide how many components there are.
        """
        if self.method.reference == "spectral":
            return gaussian
        gaps = (self._stream(purpose) for purpose in ("reference gaps", "reference validation gaps"))
        on_device = (torch.from_numpy(part).to(self.device) for part in z)
        train, val = (gaussian.whole(part, random) for part, random in zip(on_device, gaps, strict=True))
        return mixture.select(train, val) if self.method.reference == "mixture" else mixture.fit(train, 1)

    def _stream(self, purpose: str) -> Stream:
        return Stream(self.config.seed, purpose, self.device)

    def _planned(self, gaussian: Gaussian, z_val: np.ndarray) -> plan.Plan:
        """How to sample: what brings signals nearest to validation signals."""
        from .metrics.distances import energy

        if len(z_val) < plan.LEAST:
            return {nfe: plan.Choice() for nfe in plan.BUDGETS}
        z = torch.from_numpy(z_val[evenly(len(z_val), plan.SIGNALS)]).to(self.device)
        real, done = gaussian.whole(z, self._stream("plan gaps")), []
        with bar("choosing a sampler", plan.count()) as advance:

            def distance(choice: plan.Choice, nfe: int) -> float:
                levels = self.levels(nfe, choice)
                chosen = choice.solver, nfe, tuple(levels)
                x = sampling.drawn(self, plan.SIGNALS, "plan", self.config.seed, chosen)
                done.append(energy(x, real, self.device))
                advance(len(done), f"{choice.solver}, NFE {nfe}")
                return done[-1]

            return plan.choose(distance)

    def _spectral(self, z: np.ndarray) -> Gaussian:
        """The paper's reference, in the very basis of the process."""
        v = spectral(ledoit_wolf(z, self.config.eps_ref), self.graph.spectrum).v
        return Gaussian(v.to(self.device), self.process.U)

    def parameterised(self, reference: Reference) -> score.Epsilon:
        """How a network output becomes a noise prediction beside this reference."""
        return score.make(self.method.parameterisation, self.process, reference)

    def fresh_network(self) -> nn.Module:
        self._refuse_too_large(training=False)
        with torch.random.fork_rng(devices=[]):  # initial weights depend on the seed alone, and nothing on them
            torch.default_generator.manual_seed(self.config.seed)
            return NETWORKS[self.config.backbone](self.graph.spectrum, *self.config.sizes).to(self.device)

    def _refuse_too_large(self, training: bool) -> None:
        """Before memory is asked for."""
        c, nodes = self.config, len(self.graph)
        numbers = NETWORKS[c.backbone].size(nodes, *c.sizes)
        needs = footprint(numbers, nodes, c) if training else 4.0 * numbers
        what = f"a network of width {c.width:,} and {c.blocks:,} blocks on {nodes:,} nodes"
        what += f", trained with a batch of {c.batch:,}" if training else ""
        memory.refuse_over(needs, what, "lower width, blocks or batch", devices.room(self.device))

    def seconds_per_update(self, train: ArrayLike) -> float:
        """How long an update takes here, on signals like these: measured on a few."""
        x = check_signals(train, self.graph, "training signals", gaps=True)
        z = Normalizer.fit(x, self.graph).apply(x, evenly(len(x), 1000))
        gaussian, on_device = self._spectral(z), torch.from_numpy(z).to(self.device)
        score = self.parameterised(self._reference(gaussian, z, z))
        with devices.arithmetic("high"):
            return timed(score, gaussian, self.fresh_network(), on_device, self.config)

    @property
    def adds_nothing(self) -> bool:
        """Whether no update of the network was better than the reference alone, which is then all there is."""
        return self.method.parameterisation == "residual" and getattr(self.network, "is_zero", False)

    @property
    def unit(self) -> str:
        """The unit of the signals, if it is known."""
        return Origin.of_run(self.facts).unit or ""

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
        """New signals, in the units of the training signals, with ``nfe`` network evaluations each.

        Solver, grid, its exponent ``rho`` and where it starts default to the plan's, or the method's. The first ``k``
        signals of a seed are the same for every ``n``. ``precision`` is the network's: "bfloat16" is faster on a GPU.
        """
        self._refuse_unfitted()
        batch = self.batch() if batch is None else batch
        whole_number("n", n), whole_number("batch", batch)
        memory.refuse_over(COPIES * 8 * n * len(self.graph), f"n = {n:,} signals on {len(self.graph)} nodes", "lower n")
        choice = self.choice(nfe, solver=solver, rho=rho, grid=grid, start=start)
        choices = (choice.solver, nfe, tuple(self.levels(nfe, choice)))
        captured = self._memory if self._memory.again(n, batch, precision, choices) else None
        with bar("sampling", n) as advance:
            x = sampling.drawn(self, n, "terminal", seed, choices, batch, precision, captured, advance)
        return self.within(self.normalizer.undo(x.cpu().numpy()))

    def within(self, x: np.ndarray) -> np.ndarray:
        """Readings beyond an end of the support are set to it, as a sensor that saturates does."""
        return x if self.config.bounds is None else np.clip(x, *self.config.bounds, out=x)

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
        """Fill gaps ``n`` times over, given what was observed, which comes out as it went in.

        ``posterior="reference"`` takes the fitted reference alone, whose posterior is exact and needs no network.
        """
        x = check_signals(signals, self.graph, "signals to fill", least=1, gaps=True)
        parts = self.fillings(x, n, nfe, seed, posterior, solver, batch)
        found = np.empty((n, *x.shape))
        for rows, drawn in parts:
            found[:, rows] = drawn
        return found

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
        """``impute`` for some signals at a time: their rows, and their draws (n, rows, nodes)."""
        self._refuse_unfitted()
        whole_number("n", n), whole_number("batch", 1 if batch is None else batch)
        imputation.refuse_heavy(n, len(self.graph))
        return imputation.fillings(self, x, n, nfe, seed, posterior, solver, batch)

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
        """Draw signals given sums, averages or other linear readings ``y = H x + noise``, in the signals' units."""
        self._refuse_unfitted()
        whole_number("n", n)
        imputation.refuse_heavy(n, len(self.graph))
        return imputation.inferred(self, y, H, noise, n, nfe, seed, posterior, solver)

    def augment(
        self, signals: ArrayLike, strength: float, n: int = 1, nfe: int = 4, seed: int = 0
    ) -> np.ndarray:  # (n, signals, nodes)
        """``n`` variations of each signal: at strength 0 the signal itself, at 1 any signal (see ``augmentation``)."""
        self._refuse_unfitted()
        whole_number("n", n)
        x = self._given(signals, "signals to vary")
        what = f"n = {n:,} variations of {len(x)} signals on {len(self.graph)} nodes"
        memory.refuse_over(COPIES * 8 * n * x.size, what, "lower n, or vary fewer signals at a time")
        return augmentation.augment(self, x, strength, n, nfe, seed)

    def log_prob(
        self, signals: ArrayLike, posterior: str = "diffusion", steps: int = 16, probes: int = 4, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:  # two of (signals,)
        """Log-likelihood of each signal in nats, and half of its 95 % interval; under the reference alone it is exact.

        Signals with gaps have a likelihood under the reference only: that of what was observed.
        """
        self._refuse_unfitted()
        whole_number("steps", steps), whole_number("probes", probes)
        exact = imputation.known(posterior) == "reference"
        x = self._given(signals, "signals to score", gaps=True)
        gaps = int(np.isnan(x).sum())
        if gaps and not exact:
            do = "take posterior='reference' (--posterior reference), which scores what is there, or fill them (impute)"
            raise InputError(f"{gaps} missing readings in signals to score", "complete signals", do)
        return likelihood.of_signals(self, x, exact, steps, probes, seed)

    def node_log_prob(self, signals: ArrayLike) -> np.ndarray:  # (signals, nodes)
        """How probable each reading is given all others of its signal, under the reference: low ones stand out.

        NaN where there is no reading.
        """
        self._refuse_unfitted()
        return likelihood.of_readings(self, self._given(signals, "signals to score", gaps=True))

    def _given(self, signals: ArrayLike, what: str, gaps: bool = False) -> np.ndarray:
        """Signals as an array, after a look at their units."""
        x = check_signals(signals, self.graph, what, least=1, gaps=gaps)
        warn_of_units(x, Normalizer.of(self.facts["normalizer"]), self.graph)
        return x

    def noise_prediction(self, network: nn.Module | None = None) -> Callable[[Tensor, float], Tensor]:
        """``eps_hat``, as solvers take it."""
        return self.parameterised(self.reference).eps_hat(self.network if network is None else network)

    def choice(self, nfe: int, **given: Any) -> plan.Choice:
        """What is given, and for the rest what the plan says of this budget, or the method."""
        method = plan.Choice(rho=self.method.rho, solver=self.method.solver)
        known = plan.at(self.plan, nfe) if isinstance(nfe, int | np.integer) else None
        given = {key: value for key, value in given.items() if value is not None}
        if "rho" in given:  # the exponent of a power law
            given = {"grid": "power"} | given
        found = replace(known or method, **given)
        self._refuse_solver(found.solver)
        return found

    def levels(self, nfe: int, choice: plan.Choice) -> np.ndarray:
        where = choice.grid, choice.rho, self.reference, choice.start
        return solvers.levels(choice.solver, nfe, self.process, *where)

    def as_method(self, name: str) -> GRCD:
        """The same network, sampled as another method would: one that shares its training."""
        other = methods.find(name)
        if other.network != self.method.network:
            raise InputError(
                f"a network of {self.config.method!r} for the method {name!r}",
                f"one that is trained alike: {', '.join(methods.sharing(self.method))}",
                "train that method",
            )
        model = copy.copy(self)
        model.method, model._memory = other, sampling.Memory()
        model.plan = self.plan if other.planned else {}
        if isinstance(self.process, process.VEProcess):
            # The same noise, sampled over another range; the basis stays the very same tensor.
            model.process = replace(self.process, q_min=other.levels[0], q_max=other.levels[1])
        return model

    def spends(self, nfe: int, solver: str | None = None) -> int:
        """Network evaluations that a budget comes to: EDM's last step leaves one out."""
        return solvers.find(solver or self.method.solver).spends(nfe)

    def batch(self) -> int:
        """How many signals are sampled at a time."""
        return max(1, BATCH_ENTRIES[self.device.type] // (len(self.graph) * self.config.width))

    def _refuse_solver(self, name: str) -> None:
        solver, kind = solvers.find(name), self.method.process
        wrong = solver.process not in (None, kind) or (kind == "heat" and solver.process is None)
        if wrong or (solver.gaussian and isinstance(self.reference, Mixture)):
            raise InputError(
                f"the solver {name!r} for the method {self.config.method!r}",
                "a solver for its forward process and reference",
                f"leave it out: {self.method.solver!r} is the method's own",
            )

    def _refuse_unfitted(self) -> None:
        if self.network is None:
            raise InputError("a model that has not been fitted", "a fitted one", "call fit, or load a run")

    # -- saving ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the model as a finished run folder."""
        self._refuse_unfitted()
        with Run(path, self.facts, force) as folder:
            if not folder.finished:
                folder.finish(saving.tensors(self), self.result)

    def _restored(self, path: Path, manifest: dict, tensors: dict[str, Tensor]) -> GRCD:
        """Take over what a finished run holds, once it is known to fit together."""
        with saving.fitting(path):
            found = saving.parts(self, manifest, tensors)
            chosen = plan.of(manifest["result"].get("plan", {}))
        self._memory = sampling.Memory()
        self.normalizer, self.reference, self.network = found
        self.result, self.facts, self.plan = manifest["result"], manifest, chosen
        return self


def load(path: str | Path, device: str = "auto") -> GRCD:
    """A model from a finished run folder."""
    manifest, tensors = read(path)
    with saving.fitting(path):
        graph, config = saving.graph(manifest, tensors), Config.make(**manifest["config"])
    return GRCD(graph, device=device, **asdict(config))._restored(Path(path), manifest, tensors)


def _observed(signals: np.ndarray, what: str) -> tuple[np.ndarray, float]:
    """The rows in which anything was observed, and the share of all entries that was not."""
    count = np.concatenate([np.isnan(signals[rows]).sum(axis=1) for rows in blocks(*signals.shape)])
    rows = np.flatnonzero(count < signals.shape[1])
    if len(rows) == 0:
        raise InputError(f"{what} in which nothing was observed", "some readings", "give other signals, or fill these")
    return rows, float(count.sum() / signals.size)
