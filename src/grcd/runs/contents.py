"""What a run folder holds of a model: what it is and where it comes from as text, its numbers as tensors; and back.

The graph is saved with the model, so that a run needs nothing else. A spectral reference has the basis of the graph,
which comes from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core.errors import InputError
from ..data import marginals
from ..data.dataset import fingerprint
from ..data.marginals import Marginals
from ..diffusion import plan
from ..diffusion.diffusion import Diffusion
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from ..networks.nothing import Nothing
from ..references import REFERENCES
from ..tasks.moments import Plain
from ..training import fit, methods
from ..training.config import Config
from ..training.window_config import WindowConfig

C = TypeVar("C", bound=Config | WindowConfig)
ORIGINS = ("origin", "one_way", "one_way_share")  # how the graph was made


@dataclass(frozen=True)
class Trained:
    """A trained diffusion, with the map to z-scores, what its run folder says of it, and how training went."""

    diffusion: Diffusion
    normalizer: Marginals
    facts: dict
    result: dict
    plain: Plain | None = None  # signals as they stand; None where there is no law of them beside the reference

    def tensors(self) -> dict[str, Tensor]:
        """All its numbers by name: network, graph, reference, and quantile maps if there are any."""
        diffusion = self.diffusion
        parts = {
            "network": diffusion.network.state_dict(),
            "graph": of_graph(diffusion.space.graph),
            "reference": diffusion.reference.tensors(),
            "normalizer": {key: torch.from_numpy(value) for key, value in self.normalizer.arrays().items()},
            "plain": {} if self.plain is None else self.plain.tensors(),
        }
        return named(parts)


def settled(config: C, facts: Mapping[str, Any]) -> C:
    """The configuration with what a budget of time decided, if it had to: nothing is left to the clock then."""
    return cast(C, config.changed({**facts.get("settled", {}), "minutes": 0})) if config.minutes else config


def named(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of all parts, by the names of both."""
    return {f"{part}.{key}": value for part, values in parts.items() for key, value in values.items()}


def of_graph(graph: Graph) -> dict[str, Tensor]:
    """Weights and, if there are any, positions."""
    tensors = {part: torch.from_numpy(getattr(graph.weights, part)) for part in ("indptr", "indices", "data")}
    return tensors if graph.coords is None else tensors | {"coords": torch.from_numpy(graph.coords)}


def described(
    space: SignalSpace,
    config: Config | WindowConfig,
    signals: Mapping[str, np.ndarray],
    moments: dict,
    name: str,
) -> dict:
    """What is known before training: configuration, data, graph, node names, normaliser."""
    graph = space.graph
    return {
        "config": config.to_dict(),
        "data": {"name": name, **{key: len(x) for key, x in signals.items()}, "hash": fingerprint(*signals.values())},
        "graph": {"nodes": len(graph), "hash": graph.hash, **{key: getattr(graph, key) for key in ORIGINS}},
        "node_ids": list(graph.node_ids),
        "normalizer": moments,
    }


def restored(
    space: SignalSpace, config: Config, device: torch.device, manifest: dict, tensors: dict[str, Tensor]
) -> Trained:
    """What was saved, if it is all of one size."""
    config = settled(config, manifest)
    normalizer = marginals.saved(config.marginals, manifest["normalizer"], arrays(tensors, "normalizer"))
    diffusion = restored_diffusion(space, config, device, manifest, tensors)
    if len(normalizer) != space.d:
        raise ValueError("normaliser and graph have different sizes")
    return Trained(diffusion, normalizer, manifest, manifest["result"], plain_of(tensors, space.d, device))


def plain_of(tensors: dict[str, Tensor], columns: int, device: torch.device) -> Plain | None:
    """Rows as they stand, if they were saved, of so many columns."""
    found = {name: each.to(device) for name, each in part(tensors, "plain").items()}
    if found and found["C0"].shape != (columns, columns):
        raise ValueError("the covariance of a row and others have different sizes")
    return Plain(**found) if found else None


def restored_diffusion(
    space: SignalSpace, config: Config, device: torch.device, manifest: dict, tensors: dict[str, Tensor]
) -> Diffusion:
    """Process, reference, network and plan."""
    process, method = fit.process_of(space, config, device), methods.on(config.method, space.graph)
    on_device = {key: value.to(device) for key, value in part(tensors, "reference").items()}
    reference = REFERENCES[method.reference].from_tensors(on_device, process.U)
    if len(reference.mean) != space.d:
        raise ValueError("reference and graph have different sizes")
    numbers = part(tensors, "network")
    network = fit.fresh_network(space, config, device).requires_grad_(False) if numbers else Nothing()
    network.load_state_dict(numbers)
    chosen = plan.of(manifest["result"].get("plan", {}))
    return fit.bound(space, config, process, reference, network.eval(), chosen)


def graph(manifest: dict, tensors: dict[str, Tensor]) -> Graph:
    """The graph that a run was trained on."""
    saved, nodes = arrays(tensors, "graph"), len(manifest["node_ids"])
    W = sp.csr_array((saved["data"], saved["indices"], saved["indptr"]), shape=(nodes, nodes))
    W.check_format(full_check=True)
    origins = {key: manifest["graph"][key] for key in ORIGINS if key in manifest["graph"]}
    graph = Graph(W, tuple(manifest["node_ids"]), saved.get("coords"), **origins)
    if graph.hash != manifest["graph"]["hash"]:
        raise ValueError("another graph than the run was trained on")
    return graph


@contextmanager
def fitting(path: str | Path) -> Iterator[None]:
    """Whatever does not fit together in a run's files is one error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())  # in one line: it may be an error in three parts itself
        got = f"{path}, whose files do not fit together ({why})"
        raise InputError(got, "a whole run folder", "train again with --force") from None


def part(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors of one part, by their names inside it."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


def arrays(tensors: dict[str, Tensor], name: str) -> dict[str, np.ndarray]:
    """The same as arrays."""
    return {key: value.numpy() for key, value in part(tensors, name).items()}
