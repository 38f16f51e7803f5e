"""aMMD: the mean MMD^2 over the three graph statistics, of generated signals against held-out ones.

A score means little alone: the **floor** is what the training signals themselves score against the held-out split.

**Gaps.** Where held-out entries are missing, generated ones are left out too: otherwise the statistics would differ for
that reason alone. Both sides are masked alike: signal ``k`` of ``n`` takes its own mask and that of the signal at the
same place among the ``m`` of the other side, number ``k m / n``, so that every mask serves about equally often. Two
signals that share a mask are more alike than others, and they meet across the sides only: for equal distributions the
estimate is below zero by up to its own spread, of order ``1 / n``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch

from ..data import Dataset
from ..graph import Graph
from ..normalizer import blocks, check_signals
from .mmd import mmd2
from .statistics import STATISTICS, Mask


@dataclass(frozen=True)
class Scores:
    """aMMD, the three MMD^2 it averages, how many signals were scored, and the floor."""

    ammd: float
    quadratic_variation: float
    spectral_centroid: float
    degree_correlation: float
    n: int
    floor: Scores | None = None

    def __str__(self) -> str:
        """A small table: MMD^2 of each statistic, lower is better, with the floor beside."""
        lines = [f"{'':22}{'signals':>10}{'floor':>10}" if self.floor else f"{'':22}{'signals':>10}"]
        for key in ("ammd", *STATISTICS):
            floor = f"{getattr(self.floor, key):>10.4f}" if self.floor else ""
            lines.append(f"{key.replace('_', ' '):22}{getattr(self, key):>10.4f}{floor}")
        return "\n".join(lines)

    def to_dict(self) -> dict:
        values = asdict(self)
        if self.floor is None:
            del values["floor"]
        else:
            values["floor"] = self.floor.to_dict()
        return values


def ammd(
    x: np.ndarray,
    y: np.ndarray,
    graph: Graph,
    device: str = "cpu",
    observed: tuple[Mask, Mask] = (None, None),  # of x and of y: True where their entries count
) -> Scores:
    """Compare z-scored signals ``x`` (n, nodes) with held-out ``y`` (m, nodes)."""
    sides = ((x, _shared(*observed, len(x), len(y))), (y, _shared(*observed[::-1], len(y), len(x))))
    parts = {}
    for name, statistic in STATISTICS.items():
        parts[name] = mmd2(*(torch.from_numpy(_statistic(statistic, *side, graph)).to(device) for side in sides))
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
    signals: np.ndarray, data: Dataset, split: str = "test", device: str = "cpu", observed_only: bool = False
) -> Scores:
    """Score signals in the data's units against a split; z-scored with training statistics, the floor beside.

    With ``observed_only`` entries that were missing in the data, filled or not, are left out on both sides; where the
    data still have gaps there is no other way.
    """
    x = check_signals(signals, data.graph, "generated signals")
    z, seen = data.normalizer.apply, _seen(data, split, observed_only)
    scores = ammd(z(x), z(data.split(split)), data.graph, device, (None, seen))
    return Scores(**{**asdict(scores), "floor": floor(data, split, device, observed_only)})


def floor(data: Dataset, split: str = "test", device: str = "cpu", observed_only: bool = False) -> Scores:
    """Training signals against the split, at most as many as the split has, evenly spaced."""
    rows = np.linspace(0, len(data.train) - 1, min(len(data.train), len(data.split(split)))).astype(int)
    z, of_train = data.normalizer.apply, _seen(data, "train", observed_only)
    masks = None if of_train is None else of_train[rows], _seen(data, split, observed_only)
    return ammd(z(data.train, rows), z(data.split(split)), data.graph, device, masks)


def _seen(data: Dataset, split: str, observed_only: bool) -> Mask:
    """Where the entries of a split count: a reading that was filled does unless told otherwise, a gap never does."""
    signals = data.split(split)
    gaps = any(np.isnan(signals[rows]).any() for rows in blocks(*signals.shape))
    return data.observed(split) if observed_only or gaps else None
