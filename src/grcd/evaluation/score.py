"""aMMD: the mean MMD^2 over the three graph statistics, of generated signals against held-out ones.

A score means little alone: the **floor** is what the training signals themselves score against the held-out split.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch

from ..data import Dataset
from ..graph import Graph
from ..normalizer import check_signals
from .mmd import mmd2
from .statistics import STATISTICS


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


def ammd(x: np.ndarray, y: np.ndarray, graph: Graph, device: str = "cpu") -> Scores:
    """Compare z-scored signals ``x`` (n, nodes) with held-out ``y`` (m, nodes)."""
    parts = {}
    for name, statistic in STATISTICS.items():
        sx, sy = (torch.from_numpy(statistic(signals, graph)).to(device) for signals in (x, y))
        parts[name] = mmd2(sx, sy)
    return Scores(ammd=sum(parts.values()) / len(parts), **parts, n=len(x))


def evaluate(signals: np.ndarray, data: Dataset, split: str = "test", device: str = "cpu") -> Scores:
    """Score signals in the data's units against a split; z-scored with training statistics, the floor beside."""
    x = check_signals(signals, data.graph, "generated signals")
    held_out = data.normalizer.apply(data.split(split))
    scores = ammd(data.normalizer.apply(x), held_out, data.graph, device)
    return Scores(**{**asdict(scores), "floor": floor(data, split, device)})


def floor(data: Dataset, split: str = "test", device: str = "cpu") -> Scores:
    """Training signals against the split, at most as many as the split has, evenly spaced."""
    n = min(len(data.train), len(data.split(split)))
    chosen = data.train[np.linspace(0, len(data.train) - 1, n).astype(int)]
    return ammd(data.normalizer.apply(chosen), data.normalizer.apply(data.split(split)), data.graph, device)
