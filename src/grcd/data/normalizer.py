"""Signals at the border: checked once, z-scored per node with training statistics, and put back into their units.

A missing reading is NaN, here and everywhere else. Signals may be as large as memory, so whatever looks at all of them
does so in blocks of rows, in float64, and leaves them in the precision they came in.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, InputWarning, counted, some
from ..core.rows import blocks, observed_mean, parts
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace

WILD = 20.0  # z-scores beyond which a reading is probably in another unit
OFF = 4.0  # z-scores that half of all readings are beyond only if all are in another unit


@dataclass(frozen=True)
class Normalizer:
    """``(x - mean) / std`` per node, with the mean and the population standard deviation of what training observed."""

    mean: np.ndarray  # (nodes,)
    std: np.ndarray  # (nodes,)

    @classmethod
    def fit(cls, train: np.ndarray, graph: Graph) -> Normalizer:
        with np.errstate(over="ignore", invalid="ignore"):
            count, mean = observed_mean(train)
            squares, low, high = np.zeros_like(mean), np.full_like(mean, np.inf), np.full_like(mean, -np.inf)
            for x, seen in parts(train):
                squares += np.where(seen, np.square(x - mean), 0.0).sum(axis=0)
                low = np.minimum(low, x.min(axis=0, where=seen, initial=np.inf))
                high = np.maximum(high, x.max(axis=0, where=seen, initial=-np.inf))
            std = np.sqrt(squares / np.maximum(count, 1))
        _refuse_nodes(count < 2, graph, "with fewer than two observed training signals", "two or more at every node")
        if not np.isfinite(std).all():
            raise InputError("training signals too large to average", "values below about 1e150", "rescale the signals")
        # By a few roundings, not by a share: a node stuck at 0.1 may vary by one of them, and 1e12 +- 1 does change.
        constant = (high - low <= 8 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))) | (std == 0)
        _refuse_nodes(constant, graph, "whose training signals never change", "signals that vary at every node")
        return cls(mean, std)

    @classmethod
    def of(cls, saved: dict) -> Normalizer:
        """From what ``to_dict`` made."""
        return cls(*(np.array(saved[part]) for part in ("mean", "std")))

    def to_dict(self) -> dict:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    def __len__(self) -> int:
        if len(self.mean) != len(self.std):
            raise ValueError("means and standard deviations of different nodes")
        return len(self.mean)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a run folder has to hold beyond mean and standard deviation, which it always does."""
        return {}

    def log_slope(self, signals: np.ndarray) -> np.ndarray:  # (samples, nodes) twice
        """``log dz/dx``."""
        return np.where(np.isnan(signals), np.nan, -np.log(self.std))

    def apply(self, signals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """z-scores in the precision of the signals; of all of them, or of the given rows."""
        rows = np.arange(len(signals)) if rows is None else rows
        z = np.empty((len(rows), *signals.shape[1:]), np.float32 if signals.dtype == np.float32 else np.float64)
        for part in blocks(len(z), math.prod(z.shape[1:])):
            z[part] = (signals[rows[part]] - self.mean) / self.std
        return z

    def undo(self, normalized: np.ndarray) -> np.ndarray:
        """Back into the signals' units, in float64."""
        signals = normalized * self.std
        signals += self.mean
        return signals


class UnusableNodes(InputError):
    """Nodes whose training signals cannot be normalised."""

    def __init__(self, got: str, expected: str, do: str, nodes: Sequence[str] = ()):
        super().__init__(got, expected, do)
        self.nodes = tuple(nodes)


def _refuse_nodes(which: np.ndarray, graph: Graph, what: str, expected: str) -> None:
    if which.any():
        names = [graph.node_ids[i] for i in np.flatnonzero(which)]
        got = f"{counted(len(names), 'node')} {what}: {some(names)}"
        raise UnusableNodes(got, expected, "leave those nodes out (--drop NAME)", names)


def check_signals(
    signals: ArrayLike, space: SignalSpace, what: str = "signals", least: int = 2, gaps: bool = False
) -> np.ndarray:  # (samples, d)
    """Signals as rows of the space that they live in, or an error that says why not.

    float32 and float64 arrays come back as they are, without a copy; anything else as float64. With ``gaps`` entries
    may be missing (NaN).
    """
    graph, signals = space.graph, _by_name(signals, space.graph, what)
    try:
        x = np.asarray(signals)
        if x.dtype not in (np.float32, np.float64):
            x = x.astype(np.float64)
        x = np.ascontiguousarray(x)  # so that sums do not depend on how the file was laid out
    except (TypeError, ValueError):
        raise InputError(
            f"{what} that are not all numbers", "an array (samples, nodes) of numbers", "remove text and ragged rows"
        ) from None
    x = space.flat(x, what)
    if len(x) < least:
        raise InputError(
            f"{len(x)} sample{'s' * (len(x) != 1)} in {what}",
            f"{least} or more",
            "give more rows; a table of signals is split in time order, 70 / 10 / 20 % for train, val and test",
        )
    _refuse_values(x, graph, what, gaps)
    return x


def warn_of_empty(x: np.ndarray) -> None:
    """Signals to fill (signals, nodes) of which nothing was observed: that can be done all the same."""
    empty = int(np.isnan(x).all(axis=1).sum())
    if empty:
        note = f"{empty} of {counted(len(x), 'signal')} without any reading:"
        warnings.warn(f"{note} drawn as if nothing were known", InputWarning, stacklevel=4)


def warn_of_units(x: np.ndarray, moments: Normalizer, graph: Graph, channels: Sequence[str] = ("",)) -> None:
    """Readings (rows, nodes x channels) far from where they were in training, each by itself or all together."""
    if len(channels) > 1:
        for k, channel in enumerate(channels):
            own = slice(k, None, len(channels))
            _warn_of_units(x[:, own], Normalizer(moments.mean[own], moments.std[own]), graph, f"{channel}: ")
    else:
        _warn_of_units(x, moments, graph)


def _warn_of_units(x: np.ndarray, moments: Normalizer, graph: Graph, where: str = "") -> None:
    z = np.abs((x - moments.mean) / moments.std)
    far = np.nanmax(z, axis=0, initial=0.0, where=~np.isnan(x)) > WILD
    if far.any():
        names = [name for name, wild in zip(graph.node_ids, far, strict=True) if wild]
        note = f"{where}readings more than {WILD:g} standard deviations from the training mean, at {some(names)}:"
        warnings.warn(f"{note} another unit, or a value that marks gaps (--missing)?", InputWarning, stacklevel=5)
    elif not np.isnan(x).all() and (typical := np.nanmedian(z)) > OFF:
        note = f"{where}half of all readings are more than {typical:.1f} standard deviations from the training mean:"
        warnings.warn(f"{note} another unit?", InputWarning, stacklevel=5)


def _by_name(signals: Any, graph: Graph, what: str) -> Any:
    """A data frame's columns in the graph's order, where both have names."""
    columns = getattr(signals, "columns", None)
    if columns is None or not graph.named:
        return signals
    absent = [name for name in graph.node_ids if name not in {str(column) for column in columns}]
    if absent or len(columns) != len(graph):
        raise InputError(
            f"{what} with {len(columns)} columns, {len(absent)} nodes among them missing: {some(absent)}",
            f"the graph's {len(graph)} node names",
            "rename or drop columns; times go into the index",
        )
    place = {str(column): i for i, column in enumerate(columns)}
    return signals.iloc[:, [place[name] for name in graph.node_ids]]


def _refuse_values(x: np.ndarray, graph: Graph, what: str, gaps: bool) -> None:
    count, first, nodes = 0, 0, np.zeros(x.shape[1], dtype=bool)
    for rows in blocks(*x.shape):
        bad = np.isinf(x[rows]) if gaps else ~np.isfinite(x[rows])
        if bad.any():
            count, nodes = count + int(bad.sum()), nodes | bad.any(axis=0)
            first = first or rows.start + int(bad.any(axis=1).argmax()) + 1
    if count:
        names = [graph.node_ids[i] for i in np.flatnonzero(nodes)]
        raise InputError(
            f"{count} {'' if gaps else 'NaN or '}infinite values in {what}, at nodes {some(names)}, "
            f"the first in signal {first}",
            "finite numbers, or NaN where nothing was observed" if gaps else "finite numbers",
            "correct or drop those values"
            if gaps
            else "fill gaps first (grcd impute), drop those rows, or make the signals again",
        )
