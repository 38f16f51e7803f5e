"""Calibration by family and by share missing: what intervals of 50 and 90 % cover, of one network a seed and of its
reference alone, whichever has been measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...report.pictures import DATA, INK, SAMPLES, label_axes
from .. import suites
from ..cells import done, measured
from ..measured import lacking
from .cells import BUDGETS, REFERENCE, Windowed
from .settings import BY_SHARE, SHARES

FAMILIES = {  # suite and setting, and what the figure calls them
    ("imputation", "metr-la-point"): "points",
    ("imputation", "metr-la-block"): "blocks",
    ("imputation", "metr-la-sensors"): "sensors",
    ("imputation", "metr-la-recent"): "last 2 h",
    ("forecast", "metr-la"): "forecast",
    ("imputation", "aqi36"): "AQI-36",
    ("imputation", "beijing"): "Beijing,\npoints",
    ("forecast", "beijing"): "Beijing,\nforecast",
}
LEVELS = {"cover50": 0.5, "cover90": 0.9}
SHADES = (0.3, 0.5, 0.75, 1.0)  # of BUDGETS
SHOWN = 4  # evaluations, by share missing
STYLES = {"points": "o-", "blocks": "s--", "sensors": "^:"}  # of BY_SHARE
APART = 0.15  # of two dots of one family

Covered = dict[tuple[str, str, str, int | None], dict[str, float]]  # suite, setting, method, evaluations


def covered(seeds: Sequence[int], results: Path) -> Covered:
    """Shares within intervals, means over seeds; of the network and of its reference alone."""
    values: dict[tuple[str, str, str, int | None], list[dict[str, float]]] = {}
    for suite in ("imputation", "forecast"):
        for cell in suites.cells(suite, seeds=seeds, methods=["grcd", REFERENCE]):
            assert isinstance(cell, Windowed)
            content = measured(cell, results) if done(cell, results) else None
            if content is not None:
                place = suite, cell.setting, cell.method, cell.nfe
                values.setdefault(place, []).append(content["windows"]["scores"][""])
    return {
        place: {name: float(np.mean([line[name] for line in lines])) for name in LEVELS}
        for place, lines in values.items()
    }


def calibration(seeds: Sequence[int], results: Path) -> Figure:
    """By share missing on the left, by family on the right."""
    values = covered(seeds, results)
    if not values:
        raise lacking("of windows", "imputation", ["metr-la-point"], seeds, results)
    figure = Figure(figsize=(11, 4.2), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, sharey=True)
    _by_share(left, values)
    _by_family(right, values)
    left.set_ylim(0, 1)
    for axis in (left, right):
        for level in LEVELS.values():
            axis.axhline(level, color=INK, linestyle="--", linewidth=1, zorder=1)
        axis.legend(frameon=False, loc="lower left")
    return figure


def _by_share(axis: Axes, values: Covered) -> None:
    for method, nfe, colour in (("grcd", SHOWN, SAMPLES), (REFERENCE, None, DATA)):
        for family, settings in BY_SHARE.items():
            places = [(share, ("imputation", setting, method, nfe)) for share, setting in settings.items()]
            for name in LEVELS:
                points = [(share, values[place][name]) for share, place in places if place in values]
                title = f"{method}, NFE {nfe}, {family}" if nfe else f"{method}, {family}"
                label = title if name == "cover90" and points else None
                axis.plot(*np.array(points).reshape(-1, 2).T, STYLES[family], color=colour, label=label)
    axis.set_xlim(0, 100)
    axis.set_xticks(SHARES)
    label_axes(axis, "readings missing, %", "share within intervals", "METR-LA, by share missing")


def _by_family(axis: Axes, values: Covered) -> None:
    families = [place for place in FAMILIES if any(key[:2] == place for key in values)]
    looks = zip(BUDGETS, (SAMPLES,) * len(BUDGETS), SHADES, strict=True)
    every = [(REFERENCE, None, DATA, 1.0), *(("grcd", *look) for look in looks)]
    rows = [row for row in every if any((*place, *row[:2]) in values for place in families)]
    for k, (method, nfe, colour, shade) in enumerate(rows):
        places = [(i, (*place, method, nfe)) for i, place in enumerate(families)]
        for name in LEVELS:
            points = [
                (i + APART * (k - (len(rows) - 1) / 2), values[place][name]) for i, place in places if place in values
            ]
            label = (f"{method}, NFE {nfe}" if nfe else method) if name == "cover90" else None
            axis.plot(*np.array(points).reshape(-1, 2).T, "o", color=colour, alpha=shade, label=label)
    axis.set_xticks(range(len(families)), [FAMILIES[place] for place in families])
    axis.set_xlim(-0.6, len(families) - 0.4)
    label_axes(axis, "", "", "By what is missing")
