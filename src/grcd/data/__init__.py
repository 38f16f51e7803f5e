"""Datasets: signals, a graph, and the splits, under one contract."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dataset import Dataset
    from .loading import load_dataset

# Looked up when first used: the command line reads `options` before anything heavy is loaded.
_HOME = {"Dataset": "dataset", "load_dataset": "loading"}
__all__ = ["Dataset", "load_dataset"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
