"""Graph Residual Conjugate Diffusion: generative models for signals on graphs.

import grcd
data = grcd.load_dataset("sbm-c16")
model = grcd.GRCD(data.graph, seed=0).fit(data.train, data.val)
x = model.sample(1000, nfe=4, seed=0)
print(grcd.evaluate(x, data))
model.save("run/")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.errors import InputError
    from .data import Dataset, load_dataset
    from .evaluation.held_out import evaluate
    from .graphs.graph import Graph
    from .model import GRCD, load, train
    from .training.config import Config

# Looked up when first used: `grcd --help` must not wait for torch.
_HOME = {
    "GRCD": "model",
    "load": "model",
    "train": "model",
    "Graph": "graphs.graph",
    "Config": "training.config",
    "Dataset": "data",
    "load_dataset": "data",
    "evaluate": "evaluation.held_out",
    "InputError": "core.errors",
}
__all__ = ["GRCD", "Config", "Dataset", "Graph", "InputError", "evaluate", "load", "load_dataset", "train"]


_MODULES = ("sklearn", "pypots")  # for users of those libraries


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .core.provenance import version  # not before: the command must soon be watching for interrupts

        return version("grcd")
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'grcd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
