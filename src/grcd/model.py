"""What users touch: a model that is fitted to signals on a graph and generates new ones, in the signals' own units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from . import device as devices
from . import methods, mixture, process, score, solvers
from .config import Config
from .data.dataset import fingerprint
from .data.splits import evenly
from .errors import InputError, unknown
from .graph import Graph
from .mixture import Mixture
from .networks import NETWORKS
from .normalizer import Normalizer, blocks, check_signals
from .progress import bar
from .reference import Gaussian, ledoit_wolf, scalar, spectral
from .run import Run, read
from .streams import Stream
from .training import VALIDATION_MOST, timed, train

BATCH_ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 25}  # activations (signals x nodes x width) sampled at a time
Reference = Gaussian | Mixture
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class GRCD:
    """Graph Residual Conjugate Diffusion: graph + method + settings, then ``fit``, then ``sample``.

    ``settings`` are the fields of ``grcd.Config`` (``width=64``, ``lr=1e-3``, ``max_updates=5000``, ...).
    """

    def __init__(self, graph: Graph, method: str = "grcd", seed: int = 0, device: str = "auto", **settings):
        self.graph = graph if isinstance(graph, Graph) else Graph.from_adjacency(graph)
        self.method = methods.find(method)
        self.config = c = Config.make(**{"method": method, "seed": seed, **dict(self.method.settings), **settings})
        self.device = devices.find(device)
        self.process = process.make(self.method.process, self.graph.spectrum, c, self.method.levels).to(self.device)
        self.normalizer: Normalizer | None = None
        self.reference: Reference | None = None
        self.network: nn.Module | None = None
        self.result: dict = {}  # how training went
        self._facts: dict = {}  # what a run folder says of it
        self._asked: tuple = ()  # what was sampled last
        self._replays: dict = {}  # captured samplers for that, by batch size

    # -- training --------------------------------------------------------------------------------------------------

    def fit(
        self,
        train,  # (samples, nodes) in their own units
        val=None,
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
        x_train, x_val = self._checked(train, val)
        normalizer = Normalizer.fit(x_train, self.graph)
        used, missing = _observed(x_train, "training signals")
        facts = self._described(x_train, x_val, normalizer, name)
        facts["data"] |= {"missing": missing, "dropped": len(x_train) - len(used), "made": about or {}}
        folder = None if run is None else Run(run, facts, force)
        if folder is not None and folder.finished:
            return self._restored(folder.path, *read(folder.path))
        validating, _ = _observed(x_val, "validation signals")
        validating = validating[evenly(len(validating), VALIDATION_MOST)]
        z_train, z_val = normalizer.apply(x_train, used), normalizer.apply(x_val, validating)
        gaussian = self._spectral(z_train)
        reference = self._reference(gaussian, z_train, z_val)
        outcome = self._trained(reference, gaussian, (z_train, z_val), folder)
        self._asked = ()
        self.normalizer, self.reference, self._facts = normalizer, reference, facts
        self.network, self.result = outcome.network.eval(), outcome.summary
        if folder is not None:
            folder.finish(self._tensors(), self.result)
        return self

    def _checked(self, train, val) -> tuple[np.ndarray, np.ndarray]:
        x_train = check_signals(train, self.graph, "training signals", gaps=True)
        if val is None:
            cut = max(1, len(x_train) // 10)
            x_train, val = x_train[:-cut], x_train[-cut:]
            check_signals(x_train, self.graph, "training signals left after a tenth was kept for validation", gaps=True)
        return x_train, check_signals(val, self.graph, "validation signals", least=1, gaps=True)

    def _trained(self, reference: Reference, filler: Gaussian, z: Sequence[np.ndarray], folder: Run | None):
        hooks = {} if folder is None else {"log": folder.log, "resume": folder.resume}
        x_train, x_val = (torch.from_numpy(part).to(self.device) for part in z)
        score, network = self._score(reference), self._network()
        with devices.arithmetic("high"):
            return train(score, reference, network, x_train, x_val, self.config, filler=filler, **hooks)

    def _reference(self, gaussian: Gaussian, z_train: np.ndarray, z_val: np.ndarray) -> Reference:
        """What the method starts from: the spectral Gaussian, or a mixture, which validation signals choose."""
        if self.method.reference == "spectral":
            return gaussian
        gaps = (Stream(self.config.seed, purpose, self.device) for purpose in ("reference gaps", "reference val gaps"))
        on_device = (torch.from_numpy(z).to(self.device) for z in (z_train, z_val))
        return mixture.select(*(gaussian.whole(z, random) for z, random in zip(on_device, gaps, strict=True)))

    def _spectral(self, z: np.ndarray) -> Gaussian:
        """The paper's reference, in the very basis of the process."""
        v = spectral(ledoit_wolf(z, self.config.eps_ref), self.graph.spectrum).v
        return Gaussian(v.to(self.device), self.process.U)

    def _score(self, reference: Reference) -> score.Epsilon:
        return score.make(self.method.parameterisation, self.process, reference)

    def _network(self) -> nn.Module:
        c = self.config
        with torch.random.fork_rng(devices=[]):  # initial weights depend on the seed alone, and nothing on them
            torch.default_generator.manual_seed(c.seed)
            return NETWORKS[c.backbone](self.graph.spectrum, c.width, c.blocks, c.taps, c.time_dim).to(self.device)

    def seconds_per_update(self, train) -> float:
        """How long an update takes here, on signals like these: measured on a few."""
        x = check_signals(train, self.graph, "training signals", gaps=True)
        z = Normalizer.fit(x, self.graph).apply(x, evenly(len(x), 1000))
        gaussian, on_device = self._spectral(z), torch.from_numpy(z).to(self.device)
        score = self._score(self._reference(gaussian, z, z))
        with devices.arithmetic("high"):
            return timed(score, gaussian, self._network(), on_device, self.config)

    @property
    def unit(self) -> str:
        """The unit of the signals, if it is known."""
        return self._facts.get("data", {}).get("made", {}).get("unit", "")

    # -- sampling --------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int,
        nfe: int = 4,
        seed: int = 0,
        solver: str | None = None,
        rho: float | None = None,
        grid: str | Sequence[float] = "power",
        batch: int | None = None,
        precision: str = "float32",
    ) -> np.ndarray:  # (n, nodes)
        """New signals, in the units of the training signals, with ``nfe`` network evaluations each.

        Solver and ``rho`` default to the method's. The first ``k`` signals of a seed are the same for every ``n``.
        ``precision`` is the network's: "bfloat16" is faster on a GPU.
        """
        self._refuse_unfitted()
        batch = self._batch() if batch is None else batch
        _refuse_uncountable(n=n, batch=batch)
        solver = self.method.solver if solver is None else solver
        self._refuse_solver(solver)
        levels = solvers.levels(solver, nfe, self.process, grid, self.method.rho if rho is None else rho)
        choices, parts, done = (solver, nfe, tuple(levels)), [], 0
        again = self._again(n, batch, precision, choices)
        with devices.arithmetic(), torch.inference_mode(), bar("sampling", n) as advance:
            noise = Stream(seed, "terminal", self.device).normal(0, n * len(self.graph)).view(n, -1)
            for part in noise.split(batch):
                start = self._terminal(part, levels[0], (seed, done))
                parts.append(self._sampler(start, precision, choices, (seed, done), again)(start))
                done += len(part)
                advance(done, "")
            return self.normalizer.undo(torch.cat(parts).cpu().numpy())

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
        model.method, model._asked, model._replays = other, (), {}
        if other.process == "ve":  # the same noise, sampled over another range; the basis stays the very same tensor
            model.process = replace(self.process, q_min=other.levels[0], q_max=other.levels[1])
        return model

    def spends(self, nfe: int, solver: str | None = None) -> int:
        """Network evaluations that a budget comes to: EDM's last step leaves one out."""
        return solvers.find(solver or self.method.solver).spends(nfe)

    def network_alone(self, n: int, evaluations: int) -> Callable[[], None]:
        """What sampling ``n`` signals asks of the network and of nothing else, to be timed; waits for the device."""
        x = torch.zeros(n, len(self.graph), device=self.device)
        t = torch.full((), 0.5, device=self.device)

        def work() -> None:
            for part in x.split(self._batch()):
                for _ in range(evaluations):
                    self.network(part, t)

        def timed() -> None:
            with devices.arithmetic(), torch.inference_mode():
                replay()
                if self.device.type == "cuda":
                    torch.cuda.synchronize(self.device)

        with devices.arithmetic(), torch.inference_mode():
            replay = devices.captured(work) if self.device.type == "cuda" else work
        return timed

    def _sampler(
        self, x_max: Tensor, precision: str, choices: tuple, place: tuple[int, int], again: bool
    ) -> Callable[[Tensor], Tensor]:
        """From a terminal draw to z-scored signals; on CUDA, what is asked for again is a captured graph."""
        stochastic = solvers.find(choices[0]).stochastic
        if self.device.type != "cuda" or stochastic or not again:
            network = self._cast(precision)
            steps = _noise(*place, x_max) if stochastic else None
            return lambda x_max: self._generated(network, x_max, *choices, steps)
        if len(x_max) not in self._replays:
            network, source, sink = self._cast(precision), x_max.clone(), torch.empty_like(x_max)
            replay = devices.captured(lambda: sink.copy_(self._generated(network, source, *choices)))
            self._replays[len(x_max)] = (source, sink, replay, network)  # the graph reads its weights, but owns none
        source, sink, replay, _ = self._replays[len(x_max)]

        def sampled(x_max: Tensor) -> Tensor:
            source.copy_(x_max)
            replay()
            return sink.clone()

        return sampled

    def _again(self, *asked) -> bool:
        """Whether this was asked for last time too: capturing costs as much as sampling four times."""
        again, self._asked = asked == self._asked, asked
        if not again:
            self._replays = {}
        return again

    def _generated(
        self, network, x_max: Tensor, solver: str, nfe: int, levels: tuple[float, ...], steps: Callable | None = None
    ) -> Tensor:
        """The reverse process, and back to graph coordinates (section 3)."""
        score, process = self._score(self.reference), self.process
        known = score.graph_score(network) if self.method.process == "heat" else score.eps_hat(network)
        x = solvers.solve(solver, known, x_max, nfe, process, self.reference, levels, noise=steps)
        return x if self.method.process == "heat" else process.to_graph(x, levels[-1])

    def _terminal(self, noise: Tensor, q: float, place: tuple[int, int] = (0, 0)) -> Tensor:
        """What the sampler starts from; ``place`` are the seed and the number of the first signal."""
        if self.method.terminal == "noise":
            return q * noise
        if self.method.terminal == "stationary":
            return self.process.nodes(self.process.modes(noise) * self.process.variance(q).sqrt())
        if isinstance(self.reference, Mixture):
            seed, start = place
            u = Stream(seed, "component", noise.device).uniform(0, start + len(noise))[start:]
            return self.reference.draw(noise, q, u)
        terminal = scalar(self.reference) if self.method.terminal == "scalar" else self.reference
        return terminal.draw(noise, q)

    def _cast(self, precision: str) -> nn.Module:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        return self.network if precision == "float32" else copy.deepcopy(self.network).to(PRECISIONS[precision])

    def _batch(self) -> int:
        return max(1, BATCH_ENTRIES[self.device.type] // (len(self.graph) * self.config.width))

    def _refuse_solver(self, name: str) -> None:
        solver, kind = solvers.find(name), self.method.process
        wrong = solver.process not in (None, kind) or (kind == "heat" and solver.process is None)
        if wrong or (solver.gaussian and self.method.reference == "mixture"):
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
        folder = Run(path, self._facts, force)
        if not folder.finished:
            folder.finish(self._tensors(), self.result)

    def _described(self, x_train: np.ndarray, x_val: np.ndarray, normalizer: Normalizer, name: str) -> dict:
        return {
            "config": asdict(self.config),
            "data": {"name": name, "train": len(x_train), "val": len(x_val), "hash": fingerprint(x_train, x_val)},
            "graph": {
                "nodes": len(self.graph),
                "hash": self.graph.hash,
                "origin": self.graph.origin,
                "one_way": self.graph.one_way,
                "one_way_share": self.graph.one_way_share,
            },
            "node_ids": list(self.graph.node_ids),
            "normalizer": {"mean": normalizer.mean.tolist(), "std": normalizer.std.tolist()},
        }

    def _tensors(self) -> dict[str, Tensor]:
        W = self.graph.weights
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"graph.{part}": torch.from_numpy(getattr(W, part)) for part in ("indptr", "indices", "data")}
        if self.graph.coords is not None:
            tensors["graph.coords"] = torch.from_numpy(self.graph.coords)
        known = self.reference.tensors() if isinstance(self.reference, Mixture) else {"v": self.reference.v}
        return tensors | {f"reference.{key}": value for key, value in known.items()}

    def _restored_reference(self, tensors: dict[str, Tensor]) -> Reference:
        """A spectral one has the basis of the graph, which comes from there."""
        if self.method.reference == "spectral":
            return Gaussian(tensors["reference.v"].to(self.device), self.process.U)
        return Mixture.of(*(tensors[f"reference.{key}"].to(self.device) for key in ("weights", "means", "v", "B")))

    def _restored(self, path: Path, manifest: dict, tensors: dict[str, Tensor]) -> GRCD:
        """Take over what a finished run holds, once it is known to fit together."""
        try:
            normalizer = Normalizer(*(np.array(manifest["normalizer"][part]) for part in ("mean", "std")))
            reference, network = self._restored_reference(tensors), self._network().requires_grad_(False)
            sizes = {len(normalizer.mean), len(normalizer.std), tensors["reference.v"].shape[-1]}
            if sizes != {len(self.graph)}:
                raise ValueError("normaliser, reference and graph have different sizes")
            weights = {k.removeprefix("network."): t for k, t in tensors.items() if k.startswith("network.")}
            network.load_state_dict(weights)
            result = manifest["result"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise _unfit(path, error) from None
        self._asked = ()
        self.normalizer, self.reference = normalizer, reference
        self.network, self.result, self._facts = network.eval(), result, manifest
        return self


def load(path: str | Path, device: str = "auto") -> GRCD:
    """A model from a finished run folder."""
    manifest, tensors = read(path)
    try:
        data, indices, indptr = (tensors[f"graph.{part}"].numpy() for part in ("data", "indices", "indptr"))
        nodes = len(manifest["node_ids"])
        coords = tensors["graph.coords"].numpy() if "graph.coords" in tensors else None
        W = sp.csr_array((data, indices, indptr), shape=(nodes, nodes))
        made = {
            key: manifest["graph"][key] for key in ("origin", "one_way", "one_way_share") if key in manifest["graph"]
        }
        graph = Graph(W, tuple(manifest["node_ids"]), coords, **made)
        if graph.hash != manifest["graph"]["hash"]:
            raise ValueError("another graph than the run was trained on")
        config = Config.make(**manifest["config"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _unfit(path, error) from None
    return GRCD(graph, device=device, **asdict(config))._restored(Path(path), manifest, tensors)


def _observed(signals: np.ndarray, what: str) -> tuple[np.ndarray, float]:
    """The rows in which anything was observed, and the share of all entries that was not."""
    count = np.concatenate([np.isnan(signals[rows]).sum(axis=1) for rows in blocks(*signals.shape)])
    rows = np.flatnonzero(count < signals.shape[1])
    if len(rows) == 0:
        raise InputError(f"{what} in which nothing was observed", "some readings", "give other signals, or fill these")
    return rows, float(count.sum() / signals.size)


def _noise(seed: int, start: int, like: Tensor) -> Callable[[int], Tensor]:
    """The noise of each step of a stochastic solver, for the signals from ``start`` on: the same for any batch size."""
    stream, nodes = Stream(seed, "steps", like.device), like.shape[1]
    return lambda step: stream.normal(step, (start + len(like)) * nodes).view(-1, nodes)[start:]


def _unfit(path: str | Path, error: Exception) -> InputError:
    return InputError(
        f"{path}, whose files do not fit together ({error})", "a whole run folder", "train again with --force"
    )


def _refuse_uncountable(**numbers) -> None:
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{key} = {value!r}", "a whole number of signals from 1 up", "try 1000")
