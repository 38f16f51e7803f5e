"""Datasets: signals, a graph, and the splits, under one contract."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .covariates import Covariates
    from .dataset import Dataset
    from .loading import load_dataset, load_series
    from .series_dataset import SeriesDataset

# Looked up when first used: the command line reads `options` before anything heavy is loaded.
_HOME = {
    "Covariates": "covariates",
    "Dataset": "dataset",
    "SeriesDataset": "series_dataset",
    "load_dataset": "loading",
    "load_series": "loading",
}
__all__ = ["Covariates", "Dataset", "SeriesDataset", "load_dataset", "load_series"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
