"""What claims are judged by: cells, times and facts under results/, and the paper's numbers beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from grcd.bench import bands, suites, tables
from grcd.bench.bands import SEEDS, beside_paper
from grcd.bench.cells import Generated, measured
from grcd.bench.measured import Cost, Entry, costs, ratios
from grcd.bench.tables.cost import cheapest
from grcd.core.errors import InputError

RESULTS = Path(__file__).parent.parent.parent / "results"
BUDGETS = (4, 8, 16, 64)
GRCD, EPSILON = "grcd-rho3", "grcd-epsilon-heun"
CONTROLS = ("isotropic-ve", "static-precond", "conjugate-precond")
COMPARATORS = ("edm", "gad", "wsd-scalar", "wsd-graph", *CONTROLS)
GAUSSIANS = ("control-diagonal", "control-full", "control-gmrf", "control-spectral")
SETTINGS = tuple(dict.fromkeys(setting for setting, _, _ in tables.printed("main")))  # the paper's
SBMS = SETTINGS[2:]
BY_SPREAD = "(sd)"  # behind a factor that is in its band for that alone
ALIASES = {"clock+reference": EPSILON, "clock+reference+residual+exponential": "grcd-rho1"}  # one method, two names


@dataclass(frozen=True)
class Claim:
    """A claim, the paper's number and ours as text, and which of its parts hold (None: not measured)."""

    key: str  # what benchmarks/reasons.md calls it
    says: str
    paper: str
    ours: str
    parts: Sequence[bool | None] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        return bands.verdict(self.parts)


# -- cells -------------------------------------------------------------------------------------------------------------


@cache
def paper_table(suite: str) -> dict[tables.Key, Entry]:
    """Every number of one of the paper's tables, ours beside it."""
    return beside_paper(suite, RESULTS)


@cache
def every_entry(suite: str) -> dict[tables.Key, Entry]:
    """All that was measured of a suite, printed by the paper or not."""
    try:
        return tables.collected(suite, suites.cells(suite, seeds=SEEDS), RESULTS)
    except InputError:  # nothing
        return {}


def entry(suite: str, setting: str, row: str, nfe: int | None) -> Entry:
    """One number of a suite: that of the paper's table, or else what was measured."""
    key = (setting, row, nfe)
    return paper_table(suite).get(key) or every_entry(suite).get(key, Entry())


def main(setting: str, row: str, nfe: int) -> Entry:
    return entry("main", setting, row, nfe)


def printed(of: Entry) -> float:
    """The paper's mean."""
    return math.nan if of.paper is None else of.paper[0]


def contents(setting: str, method: str, nfe: int, **choices) -> list[dict]:
    """The files of a cell, one a seed."""
    cells = [Generated(setting, method, seed, nfe, **choices) for seed in SEEDS]
    return [content for cell in cells if (content := measured(cell, RESULTS))]


def diagnostic(key: str, setting: str, method: str, nfe: int, **choices) -> list[float]:
    """Something beside aMMD that cells hold, by seed; its mean over nodes."""
    values = [content.get(key) for content in contents(setting, method, nfe, **choices)]
    return [float(np.mean(value)) for value in values if value is not None]


@cache
def gains(setting: str) -> dict[bool, list[float]]:
    """Scalar over fitted terminal reference by seed, at kappa 2 (False) and near zero terminal SNR (True)."""
    return {near_zero: list(by_seed.values()) for near_zero, by_seed in ratios(setting, SEEDS, RESULTS).items()}


@cache
def timed() -> dict[str, list[Cost]]:
    """What each budget of a method takes on METR-LA; nothing if it was not timed."""
    try:
        return costs("metr-la", SEEDS, RESULTS)
    except InputError:
        return {}


def at_cost(method: str, nfe: int) -> float:
    """Seconds per 1,000 signals."""
    points = timed().get(ALIASES.get(method, method), [])
    return next((point.seconds for point in points if point.nfe == nfe), math.nan)


def reaching(method: str, target: float) -> Cost | None:
    """The cheapest budget of a method with which it reaches a target."""
    return cheapest(timed().get(ALIASES.get(method, method), []), target)


@cache
def facts() -> dict:
    """What needs no training (benchmarks/facts.py)."""
    return json.loads((RESULTS / "facts.json").read_text())


@cache
def trainings() -> dict[str, dict[str, int]]:
    """The most updates of any network of a method, by setting; the paper's methods alone."""
    most: dict[str, dict[str, int]] = {}
    methods = {row for _, row, _ in tables.printed("main")} | {"clock", "clock+reference+residual"}
    near_zero = [cell for cell in suites.generated("snr", seeds=SEEDS) if cell.kappa is not None]
    matched = [*suites.generated("main", seeds=SEEDS), *suites.generated("ladder", seeds=SEEDS)]
    for cell in [cell for cell in matched if cell.nfe == 4] + near_zero:
        content = measured(cell, RESULTS) if cell.method in methods else None
        if content and "training" in content:
            of = most.setdefault(cell.setting, {})
            of[cell.method] = max(of.get(cell.method, 0), content["training"]["updates"])
    return most


# -- words -------------------------------------------------------------------------------------------------------------


def less(one: float, other: float) -> bool | None:
    """Whether a number is less than another; None if either was not measured."""
    return None if math.isnan(one) or math.isnan(other) else one < other


def near(ours: float, paper: float, band: bands.Band = bands.TIGHT, sd: float | None = None) -> bool | None:
    """Whether a number is in the paper's band; None if it was not measured."""
    return None if math.isnan(ours) else band.covers(ours, paper, sd)


def rounds_to(ours: float, paper: float, digits: int) -> bool | None:
    """Whether a number is the printed one to its last digit."""
    return None if math.isnan(ours) else f"{ours:.{digits}f}" == f"{paper:.{digits}f}"


def same(row: str, paper: str) -> bool | None:
    """Whether a row is the paper's; None if none was measured."""
    return None if row == "-" else row == paper


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return float(np.mean(values)) if values else math.nan


def number(value: float, digits: int = 4, sign: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.{digits}f}"


def times(of: bands.Factor, digits: int = 2) -> str:
    """A factor of ours; marked where it is in its band by the spread of the paper's numbers alone."""
    return number(of.ours, digits) + (f" {BY_SPREAD}" if of.by_spread() else "")


def listed(numbers: Iterable[float], digits: int = 4) -> str:
    return " / ".join(number(value, digits) for value in numbers)


def yes(holds: bool | None) -> str:
    return {None: "-", True: "yes", False: "no"}[holds]


def lowest(setting: str, rows: Iterable[str], nfe: int, of) -> tuple[str, float]:
    """Which row is lowest at a budget by ``of``, ours or the paper's mean; rows not measured are left out."""
    values = {row: of(main(setting, row, nfe)) for row in rows}
    values = {row: value for row, value in values.items() if not math.isnan(value)}
    best = min(values, key=values.__getitem__, default="-")
    return best, values.get(best, math.nan)


def ours(of: Entry) -> float:
    """Our mean."""
    return of.mean
