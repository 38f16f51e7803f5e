"""What a report shows: a model, its data, generated signals beside held-out ones, and their scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from ..core.errors import InputError, InputWarning
from ..core.rows import evenly
from ..data import Dataset
from ..data.dataset import fingerprint
from ..data.normalizer import check_signals
from ..evaluation import Distance, Scores, baselines, beside, distances, evaluate
from ..evaluation.beside import Beside
from ..graphs.space import SignalSpace
from ..metrics.distances import node_kolmogorov_smirnov
from ..metrics.ensemble import quantiles
from ..model import GRCD
from ..runs.folder import read_log

MOST = 2000  # generated signals that are scored
FEW = 10  # signals of which distances say nothing
HIDDEN = 3  # nodes whose readings are hidden and filled
SPAN = 48  # signals in a row that they are hidden in
DRAWS = 50
OURS = "grcd"  # among the ways to fill
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Bands:
    """Readings of a few nodes, hidden in some signals in a row, and quantiles of what they were filled with."""

    nodes: list[int]
    first: int  # of the test signals
    truth: np.ndarray  # (signals, nodes)
    quantiles: np.ndarray  # (levels, signals, nodes)
    others: dict[str, np.ndarray] = field(default_factory=dict)  # by baseline (signals, nodes)

    def errors(self) -> dict[str, float]:
        """The mean absolute error of the median, and of every baseline."""
        guesses = {OURS: self.quantiles[LEVELS.index(0.5)], **self.others}
        return {name: float(np.nanmean(np.abs(guess - self.truth))) for name, guess in guesses.items()}

    def covered(self) -> tuple[float, float]:
        """The share of hidden readings in the middle 50 % and 90 % of their draws."""
        low, below, _, above, high = self.quantiles
        present = ~np.isnan(self.truth)
        inside = ((a <= self.truth) & (self.truth <= b) for a, b in ((below, above), (low, high)))
        half, most = (float(share[present].mean()) if present.any() else np.nan for share in inside)
        return half, most


@dataclass(frozen=True)
class Material:
    """All of it."""

    model: GRCD
    data: Dataset
    samples: np.ndarray  # (n, nodes)
    how: str  # where the samples come from
    scores: Scores
    distances: dict[str, Distance]
    curve: list[dict] = field(default_factory=list)  # one record a validation
    bands: Bands | None = None
    same_data: bool = True  # as the run was trained on
    command: str = ""
    beside: Beside | None = None  # the run's own reference; None without a network, which it is then

    @classmethod
    def of(
        cls,
        model: GRCD,
        data: Dataset,
        samples: np.ndarray | None = None,
        run: Path | None = None,
        n: int = 1000,
        nfe: int = 4,
        seed: int = 0,
        filled: bool = False,
        command: str = "",
    ) -> Material:
        """Gather it.

        samples     (samples, nodes) in the data's units; without them ``n`` are generated with ``nfe`` and ``seed``
        run         the run's folder, for its training curve
        filled      whether readings are hidden and filled too
        command     what the page says it was written by
        """
        if data.graph.hash != model.graph.hash:
            raise InputError(
                f"data on another graph than the run's ({data.graph.hash[:12]}, not {model.graph.hash[:12]})",
                "the data that the run was trained on",
                "name them and their graph as for grcd train",
            )
        space = SignalSpace(data.graph)
        x = model.signals.sample(n, nfe, seed) if samples is None else check_signals(samples, space, "samples")
        x = x[evenly(len(x), MOST)]
        by = "from the reference, without a network" if model.diffusion.adds_nothing else f"{nfe} network evaluations"
        how = f"{by}, seed {seed}"
        return cls(
            model,
            data,
            x,
            how=f"{len(x):,} signals, {how}" if samples is None else f"{len(x):,} signals as given",
            scores=evaluate(x, data, controls=True),
            distances=_distances(x, data),
            curve=read_log(run) if run is not None else [],
            bands=_hidden(model, data, seed) if filled else None,
            same_data=model.facts["data"]["hash"] == fingerprint(data.train, data.val),
            command=command,
            beside=None if model.diffusion.adds_nothing else _beside(model, data, x, seed),
        )

    @cached_property
    def real(self) -> np.ndarray:  # (test signals, nodes)
        """Held-out readings, NaN where there was none: what was filled in is not compared with."""
        return observed(self.data)

    def worst(self, count: int) -> list[tuple[int, float]]:
        """Nodes whose generated readings are least like held-out ones: number, and Kolmogorov-Smirnov distance."""
        z = self.data.normalizer.apply
        distances = []
        for node, (of_x, of_y) in enumerate(zip(z(self.samples).T, z(self.real).T, strict=True)):
            of_y = of_y[~np.isnan(of_y)]
            distance = node_kolmogorov_smirnov(of_x[:, None], of_y[:, None]) if len(of_y) else [0.0]
            distances.append((node, float(distance[0])))
        return sorted(distances, key=lambda each: -each[1])[:count]


def observed(data: Dataset) -> np.ndarray:
    """Test signals without what was filled in."""
    seen = data.observed("test")
    return data.test if seen is None else np.where(seen, data.test, np.nan)


def _distances(x: np.ndarray, data: Dataset) -> dict[str, Distance]:
    """Against as many test signals, for some distances depend on the number; none of data with gaps, or of few."""
    if np.isnan(data.test).any() or np.isnan(data.train).any() or min(len(x), len(data.test)) < FEW:
        return {}
    test = data.test[evenly(len(data.test), len(x))]
    return distances(x, Dataset(data.name, data.graph, data.train, data.val, test))


def _beside(model: GRCD, data: Dataset, x: np.ndarray, seed: int) -> Beside:
    return beside.of_signals(x, model.signals.sample_reference(len(x), seed), data)


def _hidden(model: GRCD, data: Dataset, seed: int) -> Bands:
    """Hide the liveliest of the nodes, in the middle of the test signals or where more was read, and fill them."""
    real, middle = observed(data), max(0, (len(data.test) - SPAN) // 2)
    starts = sorted(range(middle % SPAN, max(1, len(real) - SPAN + 1), SPAN), key=lambda start: abs(start - middle))
    first = max(starts or [middle], key=lambda start: (~np.isnan(real[start : start + SPAN])).mean())
    truth = real[first : first + SPAN].astype(np.float64)
    present = ~np.isnan(truth)
    spread = np.nanstd(np.where(present.any(axis=0), truth, 0.0), axis=0)
    moves = spread / data.normalizer.std * present.mean(axis=0)
    nodes = [int(node) for node in np.argsort(-moves, kind="stable")[:HIDDEN]]
    holed = truth.copy()
    holed[:, nodes] = np.nan
    with warnings.catch_warnings():  # of signals without any reading: there is no more to be done about them here
        warnings.simplefilter("ignore", InputWarning)
        draws = model.impute(holed, n=DRAWS, seed=seed)[:, :, nodes]
    return Bands(nodes, first, truth[:, nodes], quantiles(draws, LEVELS), _baselines(data, holed, nodes, seed))


def _baselines(data: Dataset, holed: np.ndarray, nodes: list[int], seed: int) -> dict[str, np.ndarray]:
    """What needs no network, nor readings of a node that has none; nothing on large graphs."""
    if data.graph.large:
        return {}
    filled = {}
    for name in ("fill-mean", "fill-neighbours", "fill-gaussian"):
        (_, draws), *_ = baselines.fitted(name, data)(holed, DRAWS, seed)
        filled[name] = np.median(draws, axis=0)[:, nodes]
    return filled
