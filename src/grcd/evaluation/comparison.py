"""Generated signals compared with held-out ones by every distance, each with its floor and the spread of the floor.

The distances are those of ``metrics.distances``, and with them **aMMD with frozen bandwidths**: the paper takes its
bandwidths from the pooled sample, so that signals gone wild widen the kernels until all others look alike. Here the
median is over real signals only, those of the floor: training signals, evenly spaced, as many as the split has, and the
split itself. Hence the floor of the frozen aMMD is the paper's own.

**Floor**: how far those training signals are from the split. **Spread**: how much of the floor is chance. Both sides
are dealt at random into five disjoint parts; the sample standard deviation of the five floors, over ``sqrt(5)``, is
that of a mean over five times as many signals. Disjoint, because parts that share signals vary too little. At random,
not by the calendar: consecutive parts are other weeks, and the distance between weeks is the floor, not its error. For
unbiased metrics near zero, which settle like ``1 / n``, this is too large by a factor of two: on the safe side.

**Ratio**: value over floor, given only where the floor is more than three times its spread, and only for metrics whose
ideal is zero: half the share of readings in the tails is not half as bad. The others are read against their ideal.
Wasserstein, Kolmogorov-Smirnov and correlations come out the larger the fewer signals there are: compare as many
as the split has, or their ratio says so too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from ..core.errors import InputError
from ..core.rows import blocks, evenly
from ..core.streams import Stream
from ..core.tables import aligned
from ..data import Dataset
from ..data.normalizer import check_signals
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from ..metrics import distances as metrics
from ..metrics.mmd import median_distance, mmd2
from ..metrics.statistics import STATISTICS

METRICS = {  # of generated and real signals; with what equal distributions have
    "energy": (metrics.energy, 0.0),
    "sliced_wasserstein": (metrics.sliced_wasserstein, 0.0),
    "kolmogorov_smirnov": (metrics.kolmogorov_smirnov, 0.0),
    "correlation_error": (metrics.correlation_error, 0.0),
    "tail_coverage": (metrics.tail_coverage, 0.02),
    "classifier_accuracy": (metrics.classifier_accuracy, 0.5),
}
TITLES = {
    "frozen_ammd": "aMMD, frozen",
    "energy": "energy",
    "sliced_wasserstein": "sliced Wasserstein",
    "kolmogorov_smirnov": "Kolmogorov-Smirnov",
    "correlation_error": "correlation error",
    "tail_coverage": "tail coverage",
    "classifier_accuracy": "classifier accuracy",
    "copies": "memorisation",
}
IDEALS = {name: ideal for name, (_, ideal) in METRICS.items()} | {"copies": metrics.NEAR}
PARTS = 5  # that the floor's signals are dealt into


@dataclass(frozen=True)
class Distance:
    """A metric of generated signals, of training signals (the floor), and what chance makes of the latter."""

    value: float
    floor: float
    spread: float  # of the floor: one standard deviation
    ideal: float = 0.0  # what signals of the same distribution have

    @property
    def ratio(self) -> float | None:
        """Value over floor; None where the floor may be chance, or the ideal is not zero."""
        return self.value / self.floor if self.ideal == 0.0 and self.floor > 3 * self.spread else None

    def to_dict(self) -> dict[str, float | None]:
        numbers = {key: getattr(self, key) for key in ("value", "floor", "spread", "ideal", "ratio")}
        return {key: number if number is None or math.isfinite(number) else None for key, number in numbers.items()}


def distances(
    signals: np.ndarray, data: Dataset, split: str = "test", device: torch.device | str = "cpu"
) -> dict[str, Distance]:
    """Compare signals with a split, both z-scored with training statistics.

    signals     (samples, nodes), in the data's units
    data        graph, training signals and the split, none of them with gaps
    returns     by name (``TITLES``) the distance, its floor and the floor's spread
    """
    x = data.normalizer.apply(check_signals(signals, SignalSpace(data.graph), "generated signals"))
    y, train = (_whole(data, name) for name in (split, "train"))
    near = train[evenly(len(train), len(y))]  # the floor's
    parts = [(near[a], y[b]) for a, b in zip(_dealt(len(near), 0), _dealt(len(y), 1), strict=True)]
    frozen = partial(frozen_ammd, graph=data.graph, bandwidths=bandwidths(data.graph, near, y))
    compared = {}
    for name, (metric, ideal) in ({"frozen_ammd": (frozen, 0.0)} | METRICS).items():
        spread = np.std([metric(*part, device=device) for part in parts], ddof=1) / PARTS**0.5
        compared[name] = Distance(metric(x, y, device=device), metric(near, y, device=device), float(spread), ideal)
    # Training signals copy themselves.
    copying = Distance(metrics.copies(x, y, train, device), 1.0, 0.0, IDEALS["copies"])
    return compared | {"copies": copying}


def table(compared: dict[str, Distance]) -> str:
    """One line a metric: value, floor, their ratio where it means something, and the ideal."""
    lines = [["", "value", "floor", "ratio", "ideal"]]
    for name, distance in compared.items():
        ratio = "-" if distance.ratio is None else f"{distance.ratio:.2f}"
        lines.append([TITLES[name], f"{distance.value:.4f}", f"{distance.floor:.4f}", ratio, f"{distance.ideal:g}"])
    return aligned(lines, 10)


def bandwidths(graph: Graph, *real: np.ndarray) -> dict[str, float]:
    """Of each statistic: the median of the positive distances between its values on real signals."""
    pooled = np.concatenate(real)
    return {name: median_distance(_values(name, pooled, graph, "cpu")) for name in STATISTICS}


def frozen_ammd(
    x: np.ndarray, y: np.ndarray, graph: Graph, bandwidths: dict[str, float], device: torch.device | str = "cpu"
) -> float:
    """aMMD of z-scored signals with these bandwidths: what is judged has no say in how."""
    pairs = {name: [_values(name, z, graph, device) for z in (x, y)] for name in STATISTICS}
    return sum(mmd2(x, y, bandwidths[name]) for name, (x, y) in pairs.items()) / len(STATISTICS)


def _values(name: str, signals: np.ndarray, graph: Graph, device: torch.device | str) -> torch.Tensor:  # (samples,)
    return torch.from_numpy(STATISTICS[name](signals.astype(np.float64), graph)).to(device)


def _dealt(n: int, index: int) -> list[np.ndarray]:
    """Rows in random parts, in order within a part."""
    order = Stream(0, "floor parts").uniform(index, n).argsort().numpy()
    return [np.sort(part) for part in np.array_split(order, PARTS)]


def _whole(data: Dataset, split: str) -> np.ndarray:  # (samples, nodes)
    """The z-scored signals of a split, which has to have all its readings, and enough for a spread."""
    signals = data.split(split)
    gaps = sum(int(np.isnan(signals[rows]).sum()) for rows in blocks(*signals.shape))
    if gaps:
        raise InputError(
            f"{gaps} missing readings in the {split} signals of {data.name}",
            "none: distances compare whole signals",
            "go without distances, or compare with data whose gaps are filled: --data FILE --fill linear, in place of a"
            " run (load_dataset(..., fill='linear'))",
        )
    if len(signals) < 2 * PARTS:
        raise InputError(
            f"{len(signals)} {split} signals of {data.name}",
            f"{2 * PARTS} or more: the floor's spread is taken from {PARTS} parts of them",
            "give more signals, or go without distances",
        )
    return data.normalizer.apply(signals)
