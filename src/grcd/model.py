"""What users touch: a model that is fitted to signals on a graph and generates new ones, in the signals' own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from . import device as devices
from . import methods, score, solvers
from .backbone import DenoiserGNN
from .config import Config
from .data.dataset import fingerprint
from .errors import InputError
from .graph import Graph
from .normalizer import Normalizer, check_signals
from .process import ConjugateProcess
from .progress import bar
from .reference import Gaussian, ledoit_wolf, scalar, spectral
from .run import Run, read
from .streams import stream
from .training import Outcome, train

BATCH_ENTRIES = {"cpu": 1 << 21, "cuda": 1 << 25}  # activations (signals x nodes x width) sampled at a time


class GRCD:
    """Graph Residual Conjugate Diffusion: graph + method + settings, then ``fit``, then ``sample``.

    ``settings`` are the fields of ``grcd.Config`` (``width=64``, ``lr=1e-3``, ``max_updates=5000``, ...).
    """

    def __init__(self, graph: Graph, method: str = "grcd", seed: int = 0, device: str = "auto", **settings):
        self.graph = graph if isinstance(graph, Graph) else Graph.from_adjacency(graph)
        self.config = Config.make(method=method, seed=seed, **settings)
        self.method = methods.find(method)
        self.device = devices.find(device)
        c = self.config
        self.process = ConjugateProcess.on(
            self.graph.spectrum, c.delta, kappa=c.kappa, sigma=c.sigma, t_min=c.t_min, t_max=c.t_max
        ).to(self.device)
        self.normalizer: Normalizer | None = None
        self.reference: Gaussian | None = None
        self.network: DenoiserGNN | None = None
        self.result: dict = {}

    # -- training --------------------------------------------------------------------------------------------------

    def fit(self, train, val=None, run: str | Path | None = None, force: bool = False, name: str = "signals") -> GRCD:
        """Fit the reference and train the network on signals (samples, nodes) in their own units.

        Without ``val`` the last tenth of ``train`` validates. With ``run`` the training lives in that folder: it can be
        interrupted anywhere, and the same call goes on where it was.
        """
        x_train, x_val = self._checked(train, val)
        self.normalizer = Normalizer.fit(x_train, self.graph)
        manifest = self._manifest(x_train, x_val, name)
        folder = None if run is None else Run(run, manifest, force)
        if folder is not None and folder.finished:
            return self._restore(*read(folder.path))
        with devices.arithmetic():
            outcome = self._train(x_train, x_val, folder)
        self.network, self.result = outcome.network.eval(), outcome.summary
        self._facts = manifest
        if folder is not None:
            folder.finish(self._tensors(), self.result)
        return self

    def _checked(self, train, val) -> tuple[np.ndarray, np.ndarray]:
        x_train = check_signals(train, self.graph, "training signals")
        if val is None:
            cut = max(1, len(x_train) // 10)
            x_train, val = x_train[:-cut], x_train[-cut:]
            check_signals(x_train, self.graph, "training signals left after a tenth was kept for validation")
        return x_train, check_signals(val, self.graph, "validation signals", least=1)

    def _train(self, x_train: np.ndarray, x_val: np.ndarray, folder: Run | None) -> Outcome:
        z_train, z_val = (self.normalizer.apply(x) for x in (x_train, x_val))
        self.reference = spectral(ledoit_wolf(z_train, self.config.eps_ref), self.graph.spectrum).to(self.device)
        hooks = {} if folder is None else {"log": folder.log, "resume": folder.resume}
        on_device = (torch.from_numpy(z).to(self.device) for z in (z_train, z_val))
        return train(self._score(), self.reference, self._network(), *on_device, self.config, **hooks)

    def _score(self) -> score.Epsilon:
        return score.make(self.method.parameterisation, self.process, self.reference)

    def _network(self) -> DenoiserGNN:
        c = self.config
        with torch.random.fork_rng(devices=[]):  # initial weights depend on the seed alone, and nothing on them
            torch.manual_seed(c.seed)
            return DenoiserGNN(self.graph.spectrum, c.width, c.blocks, c.taps, c.time_dim).to(self.device)

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
    ) -> np.ndarray:  # (n, nodes)
        """New signals, in the units of the training signals, with ``nfe`` network evaluations each.

        Solver and ``rho`` default to the method's. The first ``k`` signals of a seed are the same for every ``n``.
        """
        self._refuse_unfitted()
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InputError(f"n = {n!r}", "a whole number of signals from 1 up", "try 1000")
        solver = self.method.solver if solver is None else solver
        rho = self.method.rho if rho is None else rho
        terminal = scalar(self.reference) if self.method.terminal == "scalar" else self.reference
        eps_hat = self._score().eps_hat(self.network)
        noise = torch.from_numpy(stream(seed, "terminal").standard_normal((n, len(self.graph))))
        parts, done = [], 0
        with devices.arithmetic(), torch.inference_mode(), bar("sampling", n, rate="signals") as advance:
            for part in noise.split(batch or self._batch()):
                x_max = terminal.draw(part.to(self.device), self.process.q_max)
                x = solvers.solve(solver, eps_hat, x_max, nfe, self.process, self.reference, grid, rho)
                parts.append(self.process.to_graph(x, self.process.q_min))
                done += len(part)
                advance(done, "")
        return self.normalizer.undo(torch.cat(parts).cpu().numpy())

    def _batch(self) -> int:
        return max(1, BATCH_ENTRIES[self.device.type] // (len(self.graph) * self.config.width))

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

    def _manifest(self, x_train: np.ndarray, x_val: np.ndarray, name: str) -> dict:
        return {
            "config": asdict(self.config),
            "data": {"name": name, "train": len(x_train), "val": len(x_val), "hash": fingerprint(x_train, x_val)},
            "graph": {"nodes": len(self.graph), "hash": self.graph.hash, "origin": self.graph.origin},
            "node_ids": list(self.graph.node_ids),
            "normalizer": {"mean": self.normalizer.mean.tolist(), "std": self.normalizer.std.tolist()},
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        W = self.graph.weights
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"graph.{part}": torch.from_numpy(getattr(W, part)) for part in ("indptr", "indices", "data")}
        if self.graph.coords is not None:
            tensors["graph.coords"] = torch.from_numpy(np.asarray(self.graph.coords, dtype=np.float64))
        return tensors | {"reference.v": self.reference.v}

    def _restore(self, manifest: dict, tensors: dict[str, torch.Tensor]) -> GRCD:
        n = manifest["normalizer"]
        self.normalizer = Normalizer(np.array(n["mean"]), np.array(n["std"]))
        self.reference = Gaussian(tensors["reference.v"], self.process.U.cpu()).to(self.device)
        network = self._network().requires_grad_(False)
        network.load_state_dict({k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")})
        self.network, self.result, self._facts = network.eval(), manifest["result"], manifest
        return self


def load(path: str | Path, device: str = "auto") -> GRCD:
    """A model from a finished run folder."""
    manifest, tensors = read(path)
    try:
        data, indices, indptr = (tensors[f"graph.{part}"].numpy() for part in ("data", "indices", "indptr"))
        nodes = len(manifest["node_ids"])
        coords = tensors["graph.coords"].numpy() if "graph.coords" in tensors else None
        graph = Graph(
            sp.csr_array((data, indices, indptr), shape=(nodes, nodes)),
            tuple(manifest["node_ids"]),
            coords,
            manifest["graph"]["origin"],
        )
        return GRCD(graph, device=device, **manifest["config"])._restore(manifest, tensors)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{path}, whose files do not fit together ({error})", "a whole run folder", "train again with --force"
        ) from None
