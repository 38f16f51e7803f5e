"""What has been measured, put together from cells for tables and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ..core.errors import InputError
from ..training.methods import METHODS
from . import suites
from .cells import Cell, measured, read

SEEDS = 5  # that a tie, or a difference, takes
LEAST = 1e-3  # of aMMD in ratios and on logarithmic axes; the draws of one control on the SBMs have an sd of half of it
SCALAR, FITTED = "clock", "clock+reference"


@dataclass(frozen=True)
class Entry:
    """One number of a table: its values by seed, how many cells failed, and what the paper prints."""

    values: dict[int, float] = field(default_factory=dict)
    failed: int = 0
    paper: tuple[float, float | None] | None = None  # mean and sd
    note: str = ""
    ranked: bool = True  # whether it competes for the best of its column

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values()))) if self.values else math.nan

    @property
    def sd(self) -> float:
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else math.nan


def apart(one: Entry, other: Entry) -> tuple[float, float] | None:
    """Mean of the log ratios of one to the other, paired by seed, and half their 95 % interval (Student's t); None of
    fewer than ``SEEDS``: of few nobody knows."""
    seeds = sorted(set(one.values) & set(other.values))
    if len(seeds) < SEEDS:
        return None
    pairs = np.array([(other.values[seed], one.values[seed]) for seed in seeds])
    logs = np.diff(np.log(np.maximum(pairs, LEAST)), axis=1)[:, 0]
    half = stdtrit(len(logs) - 1, 0.975) * logs.std(ddof=1) / math.sqrt(len(logs))
    return float(logs.mean()), float(half)


class Statistic(NamedTuple):
    """Mean, sample standard deviation if there is more than one seed, how many there are, and the least value."""

    mean: float
    sd: float | None
    seeds: int
    least: float

    def text(self, digits: int) -> str:
        """Mean and standard deviation."""
        return f"{self.mean:.{digits}f}" + ("" if self.sd is None else f" +- {self.sd:.{digits}f}")

    def fields(self) -> list[object]:
        """Mean, standard deviation and seeds as a line of comma-separated values has them."""
        return [f"{self.mean:.6f}", "" if self.sd is None else f"{self.sd:.6f}", self.seeds]


def over_seeds(lines: Sequence[tuple]) -> dict[tuple, Statistic]:
    """From lines (*place, value), one a seed, the statistics of each place, in the order of their first lines."""
    frame = pd.DataFrame({"place": [line[:-1] for line in lines], "value": [line[-1] for line in lines]})
    groups = frame.groupby("place", sort=False)["value"].agg(["mean", "std", "count", "min"])
    return {
        place: Statistic(mean, None if pd.isna(sd) else sd, count, least)
        for place, mean, sd, count, least in groups.itertuples(name=None)
    }


def ammd_frame(cells: Iterable[Cell], results: Path, row: Callable[[Cell], str] = lambda cell: cell.row) -> Any:
    """A data frame with a line for each cell of aMMD, whether or not it was measured.

    Columns: setting, method, row, nfe (NaN beside the table), seed, split, ammd (NaN without), failed, content.
    """
    lines = []
    for cell in (cell for cell in cells if cell.measure == "ammd"):
        content = read(cell, results) or {}
        ammd, failed = content.get("scores", {}).get("ammd", math.nan), bool(content.get("error"))
        place = (cell.setting, cell.method, row(cell), cell.budget, cell.seed, cell.split)
        lines.append((*place, math.nan if failed else ammd, failed, content))
    columns = ["setting", "method", "row", "nfe", "seed", "split", "ammd", "failed", "content"]
    return pd.DataFrame(lines, columns=columns)


def by_place(frame: Any, *columns: str) -> dict[tuple, Any]:
    """The lines of a data frame grouped by some of its columns, in the order of their first lines: the others as lists.

    What is NaN among the keys, a budget, becomes None.
    """
    groups = frame.groupby(list(columns), sort=False, dropna=False).agg(list)
    keys = [
        tuple(None if pd.isna(key) else int(key) if isinstance(key, float) else key for key in keys)
        for keys in groups.index
    ]
    return dict(zip(keys, groups.itertuples(index=False), strict=True))


def values(lines: Any) -> dict[int, float]:
    """aMMD by seed, where it was measured."""
    return {seed: ammd for seed, ammd in zip(lines.seed, lines.ammd, strict=True) if not math.isnan(ammd)}


def by_method(cells: Iterable[Cell], results: Path) -> dict[str, dict[int | None, Entry]]:
    """aMMD by method and budget, each by seed. What failed or is not there is left out."""
    entries: dict[str, dict[int | None, Entry]] = {}
    frame = ammd_frame(cells, results).dropna(subset="ammd")
    for (method, nfe), lines in by_place(frame, "method", "nfe").items():
        entries.setdefault(method, {})[nfe] = Entry(values(lines))
    return entries


def ratios(setting: str, seeds: Sequence[int], results: Path) -> dict[bool, dict[int, float]]:
    """Scalar over fitted terminal reference by seed: at kappa 2 (False), and near zero terminal SNR (True).

    Paired, because the two share a network, whose luck in training is not the reference's doing.
    """
    cells = suites.generated("snr", [setting], seeds, [SCALAR, FITTED])
    frame = ammd_frame(cells, results).assign(near_zero=[cell.kappa is not None for cell in cells])
    wide = frame.pivot_table("ammd", ["near_zero", "seed"], "method", "first", dropna=False).clip(lower=LEAST)
    wide = wide.reindex(columns=[SCALAR, FITTED])
    gains = (wide[SCALAR] / wide[FITTED]).dropna()
    return {
        near_zero: {seed: gain for (regime, seed), gain in gains.items() if regime == near_zero}
        for near_zero in (False, True)
    }


def deviations(seeds: Sequence[int], results: Path) -> tuple[int, dict[tuple[str, bool], np.ndarray]]:
    """The lowest seed with all four cells, and by terminal reference and regime the standard deviation a sensor."""
    for seed in sorted(seeds):
        cells = suites.generated("snr", ["metr-la"], [seed], [SCALAR, FITTED])
        contents = {(cell.method, cell.kappa is not None): measured(cell, results) or {} for cell in cells}
        if all("node_std" in content for content in contents.values()):
            return seed, {place: np.array(content["node_std"]) for place, content in contents.items()}
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
    cells = suites.generated("cost", [setting], seeds)
    quality, by_name = by_method(cells, results), dict[str, list[Cost]]()
    for cell in (cell for cell in cells if cell.measure == "time"):
        content, entry = measured(cell, results), quality.get(cell.method, {}).get(cell.nfe)
        if content and entry:
            cost = Cost(cell.nfe, content["time"]["sampling"], content["time"]["network"], entry)
            by_name.setdefault(cell.method, []).append(cost)
    if not by_name:
        raise lacking("with time and quality", "cost", [setting], seeds, results)
    return {name: by_name[name] for name in _distinct(by_name)}


def curves(setting: str, seeds: Sequence[int], results: Path) -> dict[str, dict[int, Entry]]:
    """aMMD by method and budget."""
    entries = by_method(suites.generated("main", [setting], seeds), results)
    if not entries:
        raise lacking("with a network", "main", [setting], seeds, results)
    return {method: {nfe: entry for nfe, entry in each.items() if nfe is not None} for method, each in entries.items()}


def levels(setting: str, results: Path) -> dict[str, float]:
    """What needs no network: the best of the controls, and the floor, as far as they are there."""
    means = {name: entry[None].mean for name, entry in by_method(suites.beside([setting]), results).items()}
    floor = {"floor": means.pop("floor")} if "floor" in means else {}
    best = {name: means[name] for name in sorted(means, key=means.__getitem__)[:1]}
    return best | floor


def _distinct(methods: Iterable[str]) -> list[str]:
    """Without the ladder's second names for a method: two lines would lie on each other."""
    first: dict = {}
    for name in methods:
        first.setdefault(replace(METHODS[name], about=""), name)
    return list(first.values())


def lacking(what: str, suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path) -> InputError:
    """That cells a table or figure needs are not there."""
    got = f"no cells {what} for {', '.join(settings)} in {results}"
    return InputError(got, "measured ones", command(suite, settings, seeds, results))


def command(suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path) -> str:
    """The command that computes them."""
    chosen = f"--settings {','.join(settings)} --seeds {','.join(map(str, seeds))}"
    return f"grcd bench run {suite} {chosen} --results {results}"
