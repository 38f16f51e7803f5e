"""aMMD: the mean MMD^2 over the three graph statistics, of generated signals against held-out ones.

A value means little alone: the **floor** is that of the training signals themselves against the held-out split.

**Gaps.** Where held-out entries are missing, generated ones are left out too: otherwise the statistics would differ for
that reason alone. Both sides are masked alike: signal ``k`` of ``n`` takes its own mask and that of the signal at the
same place among the ``m`` of the other side, number ``k m / n``, so that every mask serves about equally often. Two
signals that share a mask are more alike than others, and they meet across the sides only: for equal distributions the
estimate is below zero by up to its own spread, of order ``1 / n``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..core.errors import InputError
from ..core.rows import blocks, evenly
from ..core.tables import aligned
from ..data import Dataset
from ..data.normalizer import check_signals
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from ..metrics.mmd import mmd2
from ..metrics.statistics import STATISTICS, Mask
from .controls import controls as fitted
from .controls import draw


@dataclass(frozen=True)
class Scores:
    """aMMD, the three MMD^2 it averages, how many signals were compared, and the floor."""

    ammd: float
    quadratic_variation: float
    spectral_centroid: float
    degree_correlation: float
    n: int
    floor: Scores | None = None
    controls: dict[str, Scores] = field(default_factory=dict)  # by name, on request

    def __str__(self) -> str:
        """A small table: MMD^2 of each statistic, lower is better, with the floor and the controls beside."""
        columns = {"signals": self} | ({"floor": self.floor} if self.floor else {}) | self.controls
        rows = [
            [key.replace("_", " "), *(f"{getattr(scores, key):.4f}" for scores in columns.values())]
            for key in ("ammd", *STATISTICS)
        ]
        return aligned([["", *columns], *rows], max(len(name) for name in columns) + 2)

    def to_dict(self) -> dict[str, Any]:
        """As ``grcd evaluate --json`` prints it."""
        values = {key: getattr(self, key) for key in ("ammd", *STATISTICS, "n")}
        if self.floor is not None:
            values["floor"] = self.floor.to_dict()
        if self.controls:
            values["controls"] = {name: scores.to_dict() for name, scores in self.controls.items()}
        return values


def ammd(
    x: np.ndarray,
    y: np.ndarray,
    graph: Graph,
    device: torch.device | str = "cpu",
    observed: tuple[Mask, Mask] = (None, None),  # of x and of y: True where their entries count
) -> Scores:
    """aMMD of z-scored signals ``x`` (n, nodes) against held-out ``y`` (m, nodes)."""
    sides = ((x, _shared(*observed, len(x), len(y))), (y, _shared(*observed[::-1], len(y), len(x))))
    parts: dict[str, Any] = {}
    for name, statistic in STATISTICS.items():
        generated, held = (torch.from_numpy(_statistic(statistic, *side, graph)).to(device) for side in sides)
        parts[name] = mmd2(generated, held)
    return Scores(ammd=sum(parts.values()) / len(parts), **parts, n=len(x))


def _shared(own: Mask, other: Mask, n: int, m: int) -> Mask:
    """The masks of ``n`` signals, each with one of the other side's ``m`` taken into account."""
    if other is None:
        return own
    other = other[np.arange(n) * m // n]
    return other if own is None else own & other


def _statistic(statistic: Callable, signals: np.ndarray, observed: Mask, graph: Graph) -> np.ndarray:  # (samples,)
    return np.concatenate(
        [
            statistic(signals[rows].astype(np.float64), graph, None if observed is None else observed[rows])
            for rows in blocks(*signals.shape)
        ]
    )


def evaluate(
    signals: np.ndarray,
    data: Dataset,
    split: str = "test",
    device: torch.device | str = "cpu",
    observed_only: bool = False,
    controls: bool = False,
    support: tuple[float, float] | None = None,
) -> Scores:
    """``Scores`` of signals by themselves; arguments as those of ``held_out.evaluate``."""
    if not isinstance(data, Dataset):
        raise InputError(
            f"{type(data).__name__} to evaluate against",
            "a Dataset: it has the graph, the training statistics and the held-out signals",
            "load one with load_dataset, or make one: Dataset(name, graph, train, val, test)",
        )
    x = check_signals(signals, SignalSpace(data.graph), "generated signals")
    real, seen = held_out(data, split, observed_only)
    bounds = (-np.inf, np.inf) if support is None else support

    def compared(x: np.ndarray) -> Scores:
        return ammd(data.normalizer.apply(x), real, data.graph, device, (None, seen))

    known = fitted(data, mixture=True) if controls else {}
    beside = {name: compared(draw(control, data, len(x), 0).clip(*bounds)) for name, control in known.items()}
    return replace(compared(x), floor=floor(data, split, device, observed_only), controls=beside)


def floor(
    data: Dataset, split: str = "test", device: torch.device | str = "cpu", observed_only: bool = False
) -> Scores:
    """aMMD of training signals against the split: at most as many as the split has, evenly spaced."""
    (x, of_x), (y, of_y) = (held_out(data, name, observed_only) for name in ("train", split))
    rows = evenly(len(x), len(y))
    return ammd(x[rows], y, data.graph, device, (None if of_x is None else of_x[rows], of_y))


def held_out(data: Dataset, split: str, observed_only: bool) -> tuple[np.ndarray, Mask]:
    """The z-scored signals of a split of which anything counts, and what counts of them."""
    seen, signals = _seen(data, split, observed_only), data.split(split)
    if seen is None:
        return data.normalizer.apply(signals), None
    rows = np.flatnonzero(seen.any(axis=1))
    if len(rows) < 2:
        raise InputError(f"{len(rows)} {split} signals with a reading", "two or more", "evaluate on another split")
    return data.normalizer.apply(signals, rows), seen[rows]


def _seen(data: Dataset, split: str, observed_only: bool) -> Mask:
    """Where the entries of a split count: a reading that was filled does unless ``observed_only``, a gap never does."""
    signals = data.split(split)
    gaps = any(np.isnan(signals[rows]).any() for rows in blocks(*signals.shape))
    return data.observed(split) if observed_only or gaps else None
