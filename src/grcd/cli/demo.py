"""The demo: a simulated city with gaps, filled, foretold and made up, in under three minutes on two cores.

    city  ->  train, windows of four hours  ->  hide held-out readings, fill them  ->  foretell two hours
          ->  make up the held-out days from nothing  ->  one table, one page

Beside every number the simplest methods have theirs, and the model's own reference, which has no network. Which gaps
are scored, and how, is the report's choice (``report/material_in_time``). Generated days are scored window by window,
as many histories of the held-out days as ``HISTORIES``; **the floor** is what the training days themselves score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import report
from ..core.files import make_folder
from ..core.tables import aligned
from ..data import SeriesDataset, load_series
from ..data.formats.output import Output
from ..data.formats.writing import write
from ..data.series import Series
from ..evaluation import Scores, windows
from ..evaluation.competitors import TITLES
from ..model import GRCD, train
from ..report import first_look, pictures
from ..report.material_in_time import OURS, REFERENCE

DATASET, WINDOW = "city", 16
# A larger learning rate than usual, for fewer updates: two cores are to be done in time.
SETTINGS: dict[str, Any] = {"max_updates": 1_400, "validate_every": 350, "lr": 6e-3, "support": "0,130"}
HISTORIES, NFE = 2, 4
FLOOR = "floor: training days"
COLUMNS = {"points": "scattered", "spells": "spells", "sensors": "silent", "outages": "outages"}
COLUMNS |= {"future": "two hours"}


def demo(out: str | Path = "demo", seed: int = 0) -> list[list[str]]:
    """Do the main jobs end to end; returns the table. Leaves a run folder, readings, a picture and a report."""
    out = make_folder(out)
    data = load_series(DATASET)
    missing = np.isnan(data.series.values).mean()
    print(f"{DATASET}: a simulated city, {len(data.graph)} sensors, {len(data.series):,} rows, {missing:.1%} missing")
    print(f"Training on {len(data.rows('train')):,} of them, windows of {WINDOW} rows ...")
    model = GRCD(data.graph, seed=seed, device="cpu", window=WINDOW, **SETTINGS)
    train(model, data, out / "run", force=True)
    print("Filling, foretelling and making up held-out rows ...")
    made = {OURS: histories(model, data, seed)}
    if model.result["network"]:
        made[REFERENCE] = histories(model, data, seed, "reference")
    scores = {name: windows.evaluate(days, data) for name, days in made.items()}
    material = report.SeriesMaterial.of(model, data, made[OURS], out / "run", nfe=NFE, seed=seed, command="grcd demo")
    lines = table(material, scores)
    print(f"\n{aligned(lines, 11)}")
    print("\n".join(verdict(material, scores)))
    times, unit = data.series.times, data.units[0]
    write(out / "readings.csv", Output(data.series.values[:, :, 0], data.node_ids, unit, times))
    pictures.save(first_look.together(material), out / "first-look.png")
    report.write(out / "report.html", material)
    print(f"\nLeft in {out}/: run/ (the model), readings.csv (with its gaps), first-look.png")
    print(f"Look at it: {out}/report.html opens in any browser")
    print(f"Next: grcd impute {out}/run --observed {out}/readings.csv --out {out}/filled.csv --quantiles 0.05,0.95")
    return lines


def histories(
    model: GRCD, data: SeriesDataset, seed: int, posterior: str = "diffusion"
) -> np.ndarray:  # (windows, steps, nodes, channels)
    """The held-out days, made up from nothing: a table of gaps, filled ``HISTORIES`` times and cut into windows."""
    test = data.part("test")
    empty = Series(np.full_like(test.values, np.nan), test.times, test.borders)
    made = np.empty((HISTORIES, *empty.values.shape))
    for rows, draws in model.series.fillings(empty, HISTORIES, NFE, seed, posterior):
        made[:, rows] = draws
    return np.concatenate([windows.cut(Series(days, test.times, test.borders), WINDOW) for days in made])


def table(material: report.SeriesMaterial, days: dict[str, Scores]) -> list[list[str]]:
    """A line a method: mean absolute errors of what was hidden, by how, and aMMD of generated days."""
    hidden = _hidden(material)
    unit = material.data.units[0]
    lines = [[f"{unit}, and aMMD", *(COLUMNS[family] for family in hidden), "days"]]
    for method in material.gaps["points"].draws:
        errors = [_error(guesses, method) for guesses in hidden.values()]
        lines.append([named(method), *errors, f"{days[method].ammd:.3f}" if method in days else "-"])
    floor = days[OURS].floor
    assert floor is not None
    return [*lines, [FLOOR, *["-"] * len(hidden), f"{floor.ammd:.3f}"]]


def _hidden(material: report.SeriesMaterial) -> dict[str, Any]:
    """What was hidden, by family, in the order of the table."""
    hidden = material.gaps | ({"future": material.ahead} if material.ahead is not None else {})
    return {family: hidden[family] for family in COLUMNS if family in hidden}


def named(method: str) -> str:
    """A method in words."""
    return {OURS: "GRCD", REFERENCE: "its reference alone"}.get(method) or TITLES[method]


def _error(guesses: Any, method: str) -> str:
    return f"{guesses.off(method).mean():.2f}" if method in guesses.draws else "-"


def verdict(material: report.SeriesMaterial, days: dict[str, Scores]) -> list[str]:
    """How to read it, and whether the network was worth its while."""
    hidden = _hidden(material)
    inside = ", ".join(f"{guesses.covered(OURS, 0.9)[0]:.0%}" for guesses in hidden.values())
    lines = [
        "scattered, spells, silent, outages: held-out readings that were hidden and filled, here and there, for hours,",
        "always, all at once; two hours: the next eight rows; days: made up from nothing, against held-out ones. Lower",
        "is better; one seed.",
        f"90 % intervals of GRCD hold {inside} of these readings, in this order.",
    ]
    if not material.model.result["network"]:
        return [*lines, "The network did not pay here: the reference is used alone, and GRCD is the reference."]
    told: dict[str, list[str]] = {"The network pays": [], "It cannot be told": [], "The reference alone is nearer": []}
    for family, guesses in hidden.items():
        gain, noise = guesses.ahead(OURS, REFERENCE)
        place = 1 if abs(gain) <= 2 * noise else 0 if gain > 0 else 2
        [*told.values()][place].append(f"{COLUMNS[family]} ({gain:+.2f} +- {2 * noise:.2f})")
    lines.append("By how many km/h it is nearer than its reference, +- two standard errors (days have no such number):")
    lines += [f"{words}: {', '.join(where)}." for words, where in told.items() if where]
    if days[OURS].ammd > days[REFERENCE].ammd:
        lines.append("Not in days from nothing, by aMMD: there the reference alone is nearer to held-out ones.")
    return lines
