"""Signals at the border: checked once, z-scored per node with training statistics, and put back into their units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import InputError, some
from .graph import Graph


@dataclass(frozen=True)
class Normalizer:
    """``(x - mean) / std`` per node, with the mean and the population standard deviation of the training split."""

    mean: np.ndarray  # (nodes,)
    std: np.ndarray  # (nodes,)

    @classmethod
    def fit(cls, train: np.ndarray, graph: Graph) -> Normalizer:
        with np.errstate(over="ignore"):
            mean, std = train.mean(axis=0), train.std(axis=0)
        # Against the size of the readings: a node stuck at 0.1 has a spread of rounding, not of zero.
        if not np.isfinite(std).all():
            raise InputError("training signals too large to average", "values below about 1e150", "rescale the signals")
        constant = std <= 1e-12 * np.maximum(np.abs(train).max(axis=0), 1e-300)
        if constant.any():
            names = [graph.node_ids[i] for i in np.flatnonzero(constant)]
            raise InputError(
                f"{len(names)} nodes whose training signals never change: {some(names)}",
                "signals that vary at every node",
                "drop those nodes from the signals and from the graph",
            )
        return cls(mean, std)

    def apply(self, signals: np.ndarray) -> np.ndarray:
        return (signals - self.mean) / self.std

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        return normalized * self.std + self.mean


def check_signals(signals, graph: Graph, what: str = "signals", least: int = 2) -> np.ndarray:  # (samples, nodes)
    """Signals as a float64 array that fits the graph, or an error that says why not."""
    try:
        x = np.asarray(signals, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{what} that are not all numbers", "an array (samples, nodes) of numbers", "remove text and ragged rows"
        ) from None
    if x.ndim != 2 or x.shape[1] != len(graph):
        do = "pass one column per node of the graph, one row per sample"
        if x.ndim == 2 and x.shape[0] == len(graph):
            do = "transpose them: rows are samples, columns are nodes"
        raise InputError(f"{what} of shape {x.shape}", f"(samples, {len(graph)}), as the graph has nodes", do)
    if len(x) < least:
        raise InputError(
            f"{len(x)} sample{'s' * (len(x) != 1)} in {what}",
            f"{least} or more",
            "give more rows; a table of signals is split in time order, 70 / 10 / 20 % for train, val and test",
        )
    bad = ~np.isfinite(x)
    if bad.any():
        names, row = [graph.node_ids[i] for i in np.flatnonzero(bad.any(axis=0))], int(bad.any(axis=1).argmax())
        raise InputError(
            f"{int(bad.sum())} NaN or infinite values in {what}, the first in row {row}, at nodes {some(names)}",
            "finite numbers",
            "fill or drop the gaps before training",
        )
    return x
