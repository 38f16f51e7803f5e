"""What the network is for: the table that leads all others, a row for every task and dataset, measured or not.

Three numbers stand side by side: the reference alone, which needs no network; the network; and what either has to be
read against: the floor where signals are generated, the best simple competitor where gaps are filled or rows foretold.
Then comes what the network gains over the better of the other two, in per cent of it (where signals are generated: over
the reference), with its 95 % interval, and whether it pays: only if all of the interval is above zero. Where neither
weeks nor five seeds are to be had nothing is said of it. Cells that were measured before data or networks changed do
not count. Generated windows have no cells and no rows: of signals it is moments that are generated here.

    over weeks   a block bootstrap of test weeks (``evaluation/bootstrap``), of means over seeds, where cells have sums
                 by day and there are two weeks of them. The energy distance is ``2 E|x - y| - E|x - x'| - E|y - y'|``:
                 the difference of two methods' is linear in the test signals, the last term cancels, and sums by day of
                 ``E|x - y|`` are all that it takes
    over seeds   elsewhere Student's t of log ratios, paired by seed (what has no seeds is the same for all): what
                 another training would change, not what another week would. It takes five: of fewer nobody can tell

    generate     aMMD, and the energy distance, which a covariance cannot fool; 4 evaluations. The reference of grcd is
                 the mixture among the controls. Where it is at the floor there is nothing to gain
    fill         CRPS: of moments in the data's units at 8 evaluations, of windows normalised at 4
    forecast     CRPS, normalised, all leads, at 4 evaluations
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.tables import Lines
from ...evaluation.bootstrap import LEAST as DAYS
from ...evaluation.bootstrap import difference
from .. import suites
from ..cells import Baseline, Cell, Filled, done, measured, valid
from ..measured import LEAST, Entry, apart, by_method
from ..windows.cells import REFERENCE, REFERENCES, Windowed
from ..windows.settings import BY_SHARE, FEW, SETTINGS, VARIANTS

HEAD = ["task", "data", "reference alone", "network", "floor, or best simple competitor", "gain of the network", "pays"]
GENERATED, MOMENTS, WINDOWS = 4, 8, 4  # evaluations
MIXTURE = "control-mixture"
LEFT_OUT = {name for share, name in BY_SHARE["points"].items() if share not in FEW}  # nothing new in them, nor
LEFT_OUT |= {BY_SHARE[family][min(FEW)] for family in ("blocks", "sensors")}  # beside the public ones, metr-la-sensors
NOT_YET, FLOOR = ["-", "not measured yet"], ["none to be had: the reference is at the floor", "no"]
Days = dict[str, np.ndarray]  # sums by day
Gain = tuple[float, float, float]  # over another, as a share of it: a number and its interval


class Number(NamedTuple):
    """A score by seed; by day, the mean over seeds, where cells have it; and what does not depend on days."""

    by_seed: dict[int, float]
    days: Days | None = None
    constant: float = 0.0

    @property
    def mean(self) -> float:
        return Entry(self.by_seed).mean


def lines(seeds: Sequence[int] | None, results: Path) -> Lines:
    """The table with its head, from the cells that are there; without ``seeds`` those of each suite."""
    body = [*_generated(seeds, results), *_energies(seeds, results), *_moments(seeds, results)]
    body += [line for suite in SETTINGS for line in _windows(suite, seeds, results)]
    return [HEAD, *body]


def _generated(seeds: Sequence[int] | None, results: Path) -> Iterator[list[str]]:
    for setting in suites.SETTINGS:
        cells = suites.cells("main", [setting], seeds, ["grcd", MIXTURE, "floor"])
        entries = by_method([cell for cell in cells if done(cell, results)], results)
        places = ("grcd", GENERATED), (MIXTURE, None), ("floor", None)
        network, mixture, floor = (entries.get(name, {}).get(nfe) for name, nfe in places)
        alone, ours = (None if entry is None else Number(entry.values) for entry in (mixture, network))
        yield ["generate, aMMD", setting, *_beside(alone, ours, None if floor is None else floor.mean, LEAST)]


def _energies(seeds: Sequence[int] | None, results: Path) -> Iterator[list[str]]:
    for setting in suites.SETTINGS:
        contents = dict[str, dict[int, dict[str, Any]]]()
        for cell in suites.cells("distances", [setting], seeds, [MIXTURE, "grcd"]):
            content = _read(cell, results) if cell.budget in (None, GENERATED) else None
            if content is not None:
                contents.setdefault(cell.method, {})[cell.seed] = content
        alone, ours = (_energy(contents[name]) if name in contents else None for name in (MIXTURE, "grcd"))
        energies = [content["distances"]["energy"] for each in contents.values() for content in each.values()]
        floor, chance = (energies[0]["floor"], 2 * energies[0]["spread"]) if energies else (None, 0.0)
        yield ["generate, energy distance", setting, *_beside(alone, ours, floor, chance)]


def _energy(by_seed: dict[int, dict[str, Any]]) -> Number:
    """Of cells of distances: what is linear in the test signals by day, and the term that is not."""
    values = {seed: content["distances"]["energy"]["value"] for seed, content in by_seed.items()}
    if not all(content.get("days") for content in by_seed.values()):
        return Number(values)
    days = _mean([_days(content) for content in by_seed.values()])
    return Number(
        values,
        _per_day(days, 2 * days["apart"], "signals"),
        float(np.mean([c["within"] for c in by_seed.values()])),
    )


def _beside(alone: Number | None, ours: Number | None, floor: float | None, chance: float) -> list[str]:
    """Three numbers and the gain, if there is one to be had: the floor is known up to ``chance``."""
    texts = [_text(None if number is None else number.mean) for number in (alone, ours)] + [_text(floor)]
    if alone is None or floor is None:
        return texts + NOT_YET
    return texts + (FLOOR if alone.mean <= floor + chance else _gain(ours, alone))


def _moments(seeds: Sequence[int] | None, results: Path) -> Iterator[list[str]]:
    contents: dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]] = {}
    for cell in suites.cells("impute", seeds=seeds):
        assert isinstance(cell, Filled | Baseline)
        rows = contents.setdefault((cell.setting, cell.mask), {})
        content = _read(cell, results) if cell.measure == "filling" else None
        if content is not None:
            rows.setdefault(cell.row, {})[cell.seed] = content
    for (setting, mask), rows in contents.items():
        numbers = {row: _filled(each) for row, each in rows.items()}
        alone, ours = numbers.get("grcd, reference"), numbers.get(f"grcd, NFE {MOMENTS}")
        simple = {row: number for row, number in numbers.items() if not row.startswith("grcd")}
        yield ["fill moments, CRPS", f"{setting}, {mask}", *_against(alone, ours, simple)]


def _filled(by_seed: dict[int, dict[str, Any]]) -> Number:
    values = {seed: content["filling"]["crps"] for seed, content in by_seed.items()}
    if not all(content.get("days") for content in by_seed.values()):
        return Number(values)
    days = _mean([_days(content) for content in by_seed.values()])
    return Number(values, _per_day(days, days["crps"], "readings"))


def _windows(suite: str, seeds: Sequence[int] | None, results: Path) -> Iterator[list[str]]:
    task = {"imputation": "fill windows, CRPS", "forecast": "forecast, CRPS"}[suite]
    for setting in (name for name in SETTINGS[suite] if name not in LEFT_OUT):
        rows: dict[tuple[str, int | None], dict[int, Days]] = {}
        for cell in suites.cells(suite, [setting], seeds):
            assert isinstance(cell, Windowed)
            content = _read(cell, results)
            if content is not None:
                rows.setdefault((cell.method, cell.nfe), {})[cell.seed] = _days(content["windows"])
        numbers = {place: _in_time(each) for place, each in rows.items()}
        alone, ours = numbers.get((REFERENCE, None)), numbers.get(("grcd", WINDOWS))
        simple = {method: number for (method, _), number in numbers.items() if method not in (*REFERENCES, *VARIANTS)}
        yield [task, setting, *_against(alone, ours, simple)]


def _in_time(by_seed: dict[int, Days]) -> Number:
    values = {seed: float(days["loss"].sum() / days["size"].sum()) for seed, days in by_seed.items()}
    days = _mean(list(by_seed.values()))
    return Number(values, _per_day(days, days["loss"], "size"))


def _against(alone: Number | None, ours: Number | None, simple: dict[str, Number]) -> list[str]:
    """Three numbers, and the gain over the better of the reference and the best simple competitor."""
    best = min(simple, key=lambda name: simple[name].mean, default="")
    texts = [_text(None if number is None else number.mean) for number in (alone, ours)]
    texts.append(f"{_text(simple[best].mean)} ({best})" if simple else "-")
    others = [number for number in (alone, simple.get(best)) if number is not None]
    return texts + (_gain(ours, min(others, key=lambda number: number.mean)) if alone and simple else NOT_YET)


# -- the gain ----------------------------------------------------------------------------------------------------------


def _gain(ours: Number | None, other: Number) -> list[str]:
    """What the network gains over another, with its interval; and whether it pays."""
    if ours is None:
        return NOT_YET
    interval, over = _over_weeks(ours, other), "weeks"
    if interval is None:
        count = len(ours.by_seed)
        interval, over = _over_seeds(ours, other), f"{count} seed{'s' * (count > 1)}"
    if interval is None:
        return [f"{1 - ours.mean / other.mean:+.1%} ({over})", "too few seeds to tell"]
    value, low, high = interval
    pays = "yes" if low > 0 else "no" if high < 0 else "not clear"
    return [f"{value:+.1%} [{low:+.1%}, {high:+.1%}] over {over}", pays]


def _over_weeks(ours: Number, other: Number) -> Gain | None:
    """From sums by day, if both have them and there are weeks."""
    if ours.days is None or other.days is None or len(ours.days["below"]) < DAYS:
        return None
    one, two = ((days["above"], days["below"]) for days in (other.days, ours.days))
    constant, unit = other.constant - ours.constant, abs(other.mean)
    value, low, high = ((number - constant) / unit for number in difference(ours.days["day"], one, two))
    return value, low, high


def _over_seeds(ours: Number, other: Number) -> Gain | None:
    """From log ratios, if there are seeds enough."""
    by_seed = other.by_seed if len(other.by_seed) > 1 else dict.fromkeys(ours.by_seed, other.mean)
    found = apart(Entry(ours.by_seed), Entry(by_seed))
    if found is None:
        return None
    middle, half = found
    return -math.expm1(middle), -math.expm1(middle + half), -math.expm1(middle - half)


def _read(cell: Cell, results: Path) -> dict[str, Any] | None:
    """What was measured since data and networks are what they are, sums by day or none."""
    content = measured(cell, results)
    return content if content is not None and valid(cell, content) else None


def _days(content: dict[str, Any]) -> Days:
    return {name: np.array(values) for name, values in content["days"].items()}


def _per_day(days: Days, above: np.ndarray, below: str) -> Days:
    """What a ratio is taken of."""
    return {"day": days["day"], "above": above, "below": days[below]}


def _mean(days: list[Days]) -> Days:
    """Over seeds."""
    return {name: np.mean([each[name] for each in days], axis=0) for name in days[0]}


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}" if abs(value) < 1 else f"{value:.3f}"
