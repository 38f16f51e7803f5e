"""What the network is for: the table that leads all others, a row for every task and dataset.

Three numbers stand side by side: the reference alone, which needs no network; the network; and what either has to be
read against: the floor where signals are generated, the best simple competitor where gaps are filled or rows foretold.
The last column is what the network gains over the better of the other two, in per cent of it (where signals are
generated: over the reference), and whether that is more than chance: in brackets the 95 % interval over test weeks, a
block bootstrap (``evaluation/bootstrap``), where scores were kept by day; elsewhere the sd over seeds. Rows without
cells are left out.

    generate    aMMD, and the energy distance, which a covariance cannot fool; 4 evaluations. The reference of grcd is
                the mixture among the controls
    fill        CRPS: of moments in the data's units at 8 evaluations, of windows normalised at 4
    forecast    CRPS, normalised, all leads, at 4 evaluations
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.tables import Lines
from ...evaluation.bootstrap import difference
from .. import suites
from ..cells import Baseline, Filled, measured
from ..measured import LEAST, Entry, by_method
from ..windows.cells import REFERENCE, Windowed
from ..windows.settings import SETTINGS, VARIANTS

HEAD = ["task", "data", "reference alone", "network", "floor, or best simple competitor", "gain of the network"]
GENERATED, MOMENTS, WINDOWS = 4, 8, 4  # evaluations
MIXTURE = "control-mixture"
Days = dict[str, np.ndarray]  # sums by day


def lines(seeds: Sequence[int], results: Path) -> Lines:
    """The table with its head, from the cells that are there."""
    body = [*_generated(seeds, results), *_energies(seeds, results), *_moments(seeds, results)]
    body += [line for suite in SETTINGS for line in _windows(suite, seeds, results)]
    return [HEAD, *body]


def _generated(seeds: Sequence[int], results: Path) -> Iterator[list[str]]:
    for setting in suites.SETTINGS:
        entries = by_method(suites.cells("main", [setting], seeds, ["grcd", MIXTURE, "floor"]), results)
        ours = entries.get("grcd", {}).get(GENERATED)
        alone, floor = (entries.get(name, {}).get(None) for name in (MIXTURE, "floor"))
        if ours and alone and floor:
            yield ["generate, aMMD", setting, *_beside(alone, ours, floor.mean, LEAST)]


def _energies(seeds: Sequence[int], results: Path) -> Iterator[list[str]]:
    for setting in suites.SETTINGS:
        values, floor, spread = {MIXTURE: dict[int, float](), "grcd": dict[int, float]()}, 0.0, 0.0
        for cell in suites.cells("distances", [setting], seeds, [MIXTURE, "grcd"]):
            content = measured(cell, results) if cell.budget in (None, GENERATED) else None
            if content is not None:
                energy = content["distances"]["energy"]
                values[cell.method][cell.seed], floor, spread = energy["value"], energy["floor"], energy["spread"]
        alone, ours = Entry(values[MIXTURE]), Entry(values["grcd"])
        if alone.values and ours.values:
            yield ["generate, energy distance", setting, *_beside(alone, ours, floor, 2 * spread)]


def _beside(alone: Entry, ours: Entry, floor: float, chance: float) -> list[str]:
    """Three numbers and the gain, if there is one to be had: the floor is known up to ``chance``."""
    gain = f"{_gain(1 - ours.mean / alone.mean)} (sd over seeds {ours.sd / abs(alone.mean):.0%})"
    gain = "none to be had: the reference is at the floor" if alone.mean <= floor + chance else gain
    return [*(_number(value) for value in (alone.mean, ours.mean, floor)), gain]


def _moments(seeds: Sequence[int], results: Path) -> Iterator[list[str]]:
    values: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for cell in suites.cells("impute", seeds=seeds):
        assert isinstance(cell, Filled | Baseline)
        content = measured(cell, results) if cell.measure == "filling" else None
        if content is not None:
            row = values.setdefault((cell.setting, cell.mask), {}).setdefault(cell.row, {})
            row[cell.seed] = content["filling"]["crps"]
    for (setting, mask), rows in values.items():
        entries = {row: Entry(each) for row, each in rows.items()}
        alone, ours = entries.get("grcd, reference"), entries.get(f"grcd, NFE {MOMENTS}")
        simple = {row: entry for row, entry in entries.items() if not row.startswith("grcd")}
        if alone and ours and simple:
            best = min(simple, key=lambda row: simple[row].mean)
            other = min(alone.mean, simple[best].mean)
            gain = f"{_gain(1 - ours.mean / other)} (sd over seeds {ours.sd / other:.1%})"
            against = f"{_number(simple[best].mean)} ({best})"
            yield ["fill moments, CRPS", f"{setting}, {mask}", _number(alone.mean), _number(ours.mean), against, gain]


def _windows(suite: str, seeds: Sequence[int], results: Path) -> Iterator[list[str]]:
    task = {"imputation": "fill windows, CRPS", "forecast": "forecast, CRPS"}[suite]
    for setting in SETTINGS[suite]:
        rows: dict[tuple[str, int | None], list[Days]] = {}
        for cell in suites.cells(suite, [setting], seeds):
            assert isinstance(cell, Windowed)
            content = measured(cell, results)
            if content is not None:
                rows.setdefault((cell.method, cell.nfe), []).append(_days(content))
        means = {place: _mean(each) for place, each in rows.items()}
        alone, ours = means.get((REFERENCE, None)), means.get(("grcd", WINDOWS))
        simple = {method: days for (method, _), days in means.items() if method not in (REFERENCE, *VARIANTS)}
        if simple and (alone or ours):
            best = min(simple, key=lambda method: _crps(simple[method]))
            numbers = ["-" if days is None else _number(_crps(days)) for days in (alone, ours)]
            against = f"{_number(_crps(simple[best]))} ({best})"
            others = [simple[best], *([alone] if alone else [])]
            yield [task, setting, *numbers, against, _interval(ours, min(others, key=_crps)) if ours else "-"]


def _days(content: dict[str, Any]) -> Days:
    return {name: np.array(values) for name, values in content["windows"]["days"].items()}


def _mean(days: list[Days]) -> Days:
    """Over seeds."""
    return {name: np.mean([each[name] for each in days], axis=0) for name in days[0]}


def _crps(days: Days) -> float:
    return float(days["loss"].sum() / days["size"].sum())


def _interval(ours: Days, other: Days) -> str:
    apart = difference((other["loss"], other["size"]), (ours["loss"], ours["size"]))
    value, low, high = (_gain(number / _crps(other)) for number in apart)
    return f"{value} [{low}, {high}]" + ("" if apart.clear else ", not clear")


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.3f}"


def _gain(share: float) -> str:
    return f"{share:+.1%}"
