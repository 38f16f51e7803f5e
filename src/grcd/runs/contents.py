"""What a run folder holds of a model: what it is and where it comes from as text, its numbers as tensors; and back.

The graph is saved with the model, so that a run needs nothing else. A spectral reference has the basis of the graph,
which comes from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..data.dataset import fingerprint
from ..data.normalizer import Normalizer
from ..data.quantiles import Quantiles
from ..graphs.graph import Graph
from ..references import REFERENCES, Reference

if TYPE_CHECKING:
    from ..model import GRCD

ORIGINS = ("origin", "one_way", "one_way_share")  # how the graph was made


def described(model: GRCD, x_train: np.ndarray, x_val: np.ndarray, moments: Normalizer, name: str) -> dict:
    """What is known before training: configuration, data, graph, node names, normaliser."""
    graph = model.graph
    return {
        "config": asdict(model.config),
        "data": {"name": name, "train": len(x_train), "val": len(x_val), "hash": fingerprint(x_train, x_val)},
        "graph": {"nodes": len(graph), "hash": graph.hash, **{key: getattr(graph, key) for key in ORIGINS}},
        "node_ids": list(graph.node_ids),
        "normalizer": moments.to_dict(),
    }


def tensors(model: GRCD) -> dict[str, Tensor]:
    """Network, graph, reference, and quantile maps if there are any."""
    W, reference = model.graph.weights, model.reference
    found = {f"network.{name}": value for name, value in model.network.state_dict().items()}
    found |= {f"graph.{part}": torch.from_numpy(getattr(W, part)) for part in ("indptr", "indices", "data")}
    if model.graph.coords is not None:
        found["graph.coords"] = torch.from_numpy(model.graph.coords)
    if isinstance(model.normalizer, Quantiles):
        found["normalizer.knots"] = torch.from_numpy(model.normalizer.knots)
    return found | {f"reference.{key}": value for key, value in reference.tensors().items()}


def parts(
    model: GRCD, manifest: dict, tensors: dict[str, Tensor]
) -> tuple[Normalizer | Quantiles, Reference, nn.Module]:
    """Normaliser, reference and network, of one size."""
    (normalizer, nodes), reference = _normalizer(model, manifest, tensors), _reference(model, tensors)
    if nodes | {len(reference.mean)} != {len(model.graph)}:
        raise ValueError("normaliser, reference and graph have different sizes")
    network = model.fresh_network().requires_grad_(False)
    network.load_state_dict({k.removeprefix("network."): t for k, t in tensors.items() if k.startswith("network.")})
    return normalizer, reference, network.eval()


def graph(manifest: dict, tensors: dict[str, Tensor]) -> Graph:
    """The graph that a run was trained on."""
    data, indices, indptr = (tensors[f"graph.{part}"].numpy() for part in ("data", "indices", "indptr"))
    nodes = len(manifest["node_ids"])
    coords = tensors["graph.coords"].numpy() if "graph.coords" in tensors else None
    W = sp.csr_array((data, indices, indptr), shape=(nodes, nodes))
    W.check_format(full_check=True)
    made = {key: manifest["graph"][key] for key in ORIGINS if key in manifest["graph"]}
    found = Graph(W, tuple(manifest["node_ids"]), coords, **made)
    if found.hash != manifest["graph"]["hash"]:
        raise ValueError("another graph than the run was trained on")
    return found


@contextmanager
def fitting(path: str | Path) -> Iterator[None]:
    """Whatever does not fit together in a run's files is one error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())  # in one line: it may be an error in three parts itself
        got = f"{path}, whose files do not fit together ({why})"
        raise InputError(got, "a whole run folder", "train again with --force") from None


def _reference(model: GRCD, tensors: dict[str, Tensor]) -> Reference:
    saved = {k.removeprefix("reference."): t.to(model.device) for k, t in tensors.items() if k.startswith("reference.")}
    return REFERENCES[model.method.reference].from_tensors(saved, model.process.U)


def _normalizer(model: GRCD, manifest: dict, tensors: dict) -> tuple[Normalizer | Quantiles, set[int]]:
    """What was saved, and of how many nodes it is."""
    if model.config.marginals == "quantile":
        knots = tensors["normalizer.knots"].numpy()
        return Quantiles(knots), {len(knots)}
    found = Normalizer.of(manifest["normalizer"])
    return found, {len(found.mean), len(found.std)}
