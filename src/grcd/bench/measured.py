"""What has been measured, put together from cells for tables and figures: by method and budget, each by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..core.errors import InputError
from ..training.methods import METHODS
from . import suites
from .cells import Cell, measured

LEAST = 1e-3  # of aMMD in ratios and on logarithmic axes; the draws of one control on the SBMs have an sd of half of it
SCALAR, FITTED = "clock", "clock+reference"


@dataclass(frozen=True)
class Entry:
    """One number of a table: its values by seed, how many cells failed, and what the paper prints."""

    values: dict[int, float]
    failed: int = 0
    paper: tuple[float, float | None] | None = None
    note: str = ""
    ranked: bool = True  # whether it competes for the best of its column

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values()))) if self.values else math.nan

    @property
    def sd(self) -> float:
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else math.nan


def scores(cells: Iterable[Cell], results: Path) -> dict[str, dict[int | None, Entry]]:
    """aMMD by method and budget, each by seed. What failed or is not there is left out."""
    found: dict[str, dict] = {}
    for cell in cells:
        known = measured(cell, results)
        if known:
            entry = found.setdefault(cell.method, {}).setdefault(cell.nfe, Entry({}))
            entry.values[cell.seed] = known["scores"]["ammd"]
    return found


def ratios(setting: str, seeds: Sequence[int], results: Path) -> dict[bool, dict[int, float]]:
    """Scalar over fitted terminal reference by seed: at kappa 2 (False), and near zero terminal SNR (True).

    Paired, because the two share a network, whose luck in training is not the reference's doing.
    """
    found: dict[bool, dict[int, float]] = {False: {}, True: {}}
    for cell in suites.cells("snr", [setting], seeds, [SCALAR]):
        pair = [measured(each, results) for each in (cell, replace(cell, method=FITTED))]
        both = [max(known["scores"]["ammd"], LEAST) for known in pair if known]
        if len(both) == 2:
            scalar, fitted = both
            found[cell.kappa is not None][cell.seed] = scalar / fitted
    return found


def deviations(seeds: Sequence[int], results: Path) -> tuple[int, dict[tuple[str, bool], np.ndarray]]:
    """The lowest seed with all four cells, and by terminal reference and regime the standard deviation a sensor."""
    for seed in sorted(seeds):
        cells = suites.cells("snr", ["metr-la"], [seed], [SCALAR, FITTED])
        known = {(cell.method, cell.kappa is not None): measured(cell, results) or {} for cell in cells}
        if all("node_std" in found for found in known.values()):
            return seed, {place: np.array(found["node_std"]) for place, found in known.items()}
    raise lacking("of both references in both regimes", "snr", ["metr-la"], seeds, results)


@dataclass(frozen=True)
class Cost:
    """What a budget takes, in seconds per 1,000 signals, all in all and for the network alone; and what it gives."""

    nfe: int
    seconds: float
    network: float
    quality: Entry


def costs(setting: str, seeds: Sequence[int], results: Path) -> dict[str, list[Cost]]:
    """By method, what each budget takes and gives."""
    cells = suites.cells("cost", [setting], seeds)
    quality = scores([cell for cell in cells if not cell.timed], results)
    found: dict[str, list[Cost]] = {}
    for cell in cells:
        known = measured(cell, results) if cell.timed else None
        if known and cell.nfe is not None and cell.nfe in quality.get(cell.method, {}):
            time = known["time"]
            cost = Cost(cell.nfe, time["sampling"], time["network"], quality[cell.method][cell.nfe])
            found.setdefault(cell.method, []).append(cost)
    if not found:
        raise lacking("with time and quality", "cost", [setting], seeds, results)
    return {name: found[name] for name in _distinct(found)}


def curves(setting: str, seeds: Sequence[int], results: Path) -> dict[str, dict[int, Entry]]:
    """aMMD by method and budget."""
    cells = [cell for cell in suites.cells("main", [setting], seeds) if cell.needs_network]
    found = scores(cells, results)
    if not found:
        raise lacking("with a network", "main", [setting], seeds, results)
    return {method: {nfe: entry for nfe, entry in each.items() if nfe is not None} for method, each in found.items()}


def levels(setting: str, results: Path) -> dict[str, float]:
    """What needs no network: the best of the controls, and the floor, as far as they are there."""
    means = {name: entry[None].mean for name, entry in scores(suites.beside([setting]), results).items()}
    floor = {"floor": means.pop("floor")} if "floor" in means else {}
    best = {name: means[name] for name in sorted(means, key=means.__getitem__)[:1]}
    return best | floor


def _distinct(methods: Iterable[str]) -> list[str]:
    """Without the ladder's second names for a method: two lines would lie on each other."""
    parts: dict = {}
    for name in methods:
        parts.setdefault(replace(METHODS[name], about=""), name)
    return list(parts.values())


def lacking(what: str, suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path) -> InputError:
    got = f"no cells {what} for {', '.join(settings)} in {results}"
    return InputError(got, "measured ones", command(suite, settings, seeds, results))


def command(suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path) -> str:
    chosen = f"--settings {','.join(settings)} --seeds {','.join(map(str, seeds))}"
    return f"grcd bench run {suite} {chosen} --results {results}"
