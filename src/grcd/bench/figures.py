"""Figures from cells: each is drawn from what has been measured, and left out if that is nothing.

paper.png            the cells of the paper's main tables, its aMMD against ours
terminal-snr.png     what fitting the terminal reference gains, at kappa 2 and near zero terminal SNR
sensor-std.png       the standard deviation of METR-LA's sensors in generated signals, on the map
cost-SETTING.png     quality against time
nfe-SETTING.png      quality against network evaluations
calibration.png      what intervals of filled windows and forecasts cover, by share missing and by family

aMMD is unbiased, so a good method's may be zero or less,
which no logarithmic axis shows: values below ``LEAST``, where chance decides, are drawn there, and the axes say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from ..core.errors import InputError
from ..data import load_dataset
from ..report.pictures import DATA, GRID, INK, SAMPLES, label_axes, literal, save
from . import suites
from .bands import WIDE, beside_paper
from .measured import FITTED, LEAST, SCALAR, Entry, command, costs, curves, deviations, lacking, levels, ratios
from .tables.cost import TARGETS
from .windows.calibration import calibration

AMMD = f"aMMD (drawn at {LEAST:g} if below)"
STYLES = {  # colour, marker and its size; GRCD's in full colours, large below small where they coincide, others muted
    "grcd": ("#b3123f", "o", 9),
    "grcd-exponential": ("#d98a9e", "8", 6),
    "grcd-rho3": ("#e08e0b", "s", 7),
    "grcd-rho1": ("#1b6ca8", "^", 6),
    "grcd-epsilon-heun": ("#2e8b57", "D", 5),
    "edm": ("#4d4d4d", "v", 5),
    "gad": ("#8a8a8a", "X", 5),
    "wsd-scalar": ("#b79fd6", "<", 5),
    "wsd-graph": ("#5b3f86", ">", 5),
    "isotropic-ve": ("#d1a679", "p", 5),
    "static-precond": ("#7a4a25", "h", 5),
    "conjugate-precond": ("#5f9ea8", "P", 5),
    "clock": ("#6c8fd1", "d", 5),
    "clock+reference+residual": ("#93a86b", "*", 6),
}
OTHER = ("#777777", ".", 5)  # a method of one's own
PLACES = {"metr-la": "o", "molene": "s", "sbm-c1": "D", "sbm-c4": "^", "sbm-c16": "v"}  # markers of settings
VIVID = {  # ten methods told apart by colour alone, where lines do not help
    "grcd-rho3": "#d7191c",
    "grcd-rho1": "#fd8d3c",
    "grcd-epsilon-heun": "#f4c20d",
    "edm": "#222222",
    "gad": "#9e9e9e",
    "wsd-scalar": "#c51b8a",
    "wsd-graph": "#7a0177",
    "isotropic-ve": "#2c7fb8",
    "static-precond": "#41b6c4",
    "conjugate-precond": "#1a9850",
}
Seeds = Mapping[str, Sequence[int]]  # by setting


def draw(
    results: Path, out: Path, settings: Sequence[str] = (), seeds: Sequence[int] | None = None
) -> tuple[list[Path], dict[str, InputError]]:
    """Draw what there are cells for. Returns the files, and for each figure left out what it lacks."""
    settings = list(dict.fromkeys(cell.setting for cell in suites.cells("main", settings, seeds)))  # none unknown
    written, without = [], {}
    of = {setting: tuple(seeds or suites.seeds_of("main", setting)) for setting in settings}
    for name, make in _figures(of, results).items():
        try:
            figure = make()
        except InputError as error:
            without[name] = error
            continue
        save(figure, out / name)
        written.append(out / name)
    if not written:
        raise InputError(
            f"nothing to draw in {results}",
            "measured cells of main, snr or cost",
            command("main", settings, _all(of), results),
        )
    return written, without


def _figures(of: Seeds, results: Path) -> dict[str, Callable[[], Figure]]:
    drawings: dict[str, Callable[[], Figure]] = {"paper.png": partial(_paper, list(of), _all(of), results)}
    drawings["terminal-snr.png"] = partial(_terminal_snr, of, results)
    if "metr-la" in of:
        drawings["sensor-std.png"] = partial(_sensor_std, of["metr-la"], results)
        drawings["calibration.png"] = partial(calibration, of["metr-la"], results)
    drawings |= {f"cost-{s}.png": partial(_cost, s, seeds, results) for s, seeds in of.items()}
    return drawings | {f"nfe-{s}.png": partial(_nfe, s, seeds, results) for s, seeds in of.items()}


def _all(of: Seeds) -> list[int]:
    return sorted(set().union(*of.values()))


# -- drawing -----------------------------------------------------------------------------------------------------------


def _paper(settings: Sequence[str], seeds: Sequence[int], results: Path) -> Figure:
    """Filled: within 30 % or two of the paper's sd. The strip is the 30 %: sd differ from number to number."""
    every = {key: entry for key, entry in beside_paper("main", results, seeds).items() if key[0] in settings}
    table = {key: entry for key, entry in every.items() if entry.values and entry.paper}
    if not table:
        raise lacking("of the paper's main tables", "main", settings, seeds, results)
    figure = Figure(figsize=(6.8, 4.6), layout="constrained", dpi=150)
    axis = figure.subplots()
    printed = np.array([entry.paper[0] for entry in every.values() if entry.paper])
    means = np.maximum([entry.mean for entry in table.values()], LEAST)
    ends = np.array([min(printed.min(), means.min()) / 1.3, max(printed.max(), means.max()) * 1.3])
    axis.fill_between(ends, ends * (1 - WIDE.share), ends * (1 + WIDE.share), color=GRID, linewidth=0, zorder=0)
    axis.plot(ends, ends, color=INK, linewidth=1, zorder=1)
    for (setting, row, _), entry in table.items():
        assert entry.paper is not None
        look: dict[str, Any] = {"markersize": 6, "markeredgewidth": 1.2, "zorder": 2 + (not WIDE.holds(entry))}
        face = VIVID[row] if WIDE.holds(entry) else "white"
        place = (entry.paper[0], max(entry.mean, LEAST))
        axis.plot(*place, PLACES[setting], color=VIVID[row], markerfacecolor=face, **look)
    held = sum(WIDE.holds(entry) is True for entry in table.values())
    _paper_legend(figure, axis, [s for s in settings if any(key[0] == s for key in table)])
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for each in (axis.xaxis, axis.yaxis):
        _plain_ticks(each)
    missing = f"; {len(every) - len(table)} not measured" if len(table) < len(every) else ""
    label_axes(
        axis, "aMMD, paper", "aMMD, ours", f"{held} of {len(every)} cells within 30 % or two of the paper's sd{missing}"
    )
    return figure


def _paper_legend(figure: Figure, axis: Axes, settings: Sequence[str]) -> None:
    """Methods by colour, settings by marker, and what filled means."""
    for row, colour in VIVID.items():
        axis.plot([], [], "o", color=colour, markersize=7, label=row)
    for setting in settings:
        axis.plot([], [], PLACES[setting], color=INK, markerfacecolor="white", markersize=7, label=setting)
    axis.plot([], [], "o", color="#999999", markersize=7, label="in the band")
    axis.plot([], [], "o", color="#999999", markerfacecolor="white", markersize=7, label="out of it")
    axis.fill_between([], [], color=GRID, label="30 %")
    figure.legend(loc="outside right center", frameon=False, fontsize=9)


def _terminal_snr(of: Seeds, results: Path) -> Figure:
    gains = {setting: ratios(setting, seeds, results) for setting, seeds in of.items()}
    gains = {setting: regimes for setting, regimes in gains.items() if any(regimes.values())}
    if not gains:
        raise lacking("of both terminal references", "snr", list(of), _all(of), results)
    figure = Figure(figsize=(2.4 + 1.1 * max(len(gains), 3), 4.2), layout="constrained", dpi=150)
    axis = figure.subplots()
    axis.axhline(1, color=INK, linestyle="--", linewidth=1, zorder=1)
    for near_zero, label, colour, marker in ((False, "kappa 2", SAMPLES, "o"), (True, "near zero SNR", DATA, "s")):
        for place, regimes in enumerate(gains.values()):
            values = list(regimes[near_zero].values())
            if values:
                _ratio(axis, place + (0.2 if near_zero else -0.2), values, colour, marker)
        axis.plot([], [], marker, color=colour, markersize=8, label=label)
    axis.plot([], [], "o", color="#999999", markersize=4, label="single seeds")
    axis.set_yscale("log")
    axis.margins(y=0.15)
    _plain_ticks(axis.yaxis, (1, 2, 3, 4, 6, 8))
    axis.set_xlim(-0.6, len(gains) - 0.4)
    axis.set_xticks(range(len(gains)), gains)
    y = f"aMMD, scalar over fitted reference\n(each at {LEAST:g} if below)"
    label_axes(axis, "", y, "What fitting the terminal reference gains, NFE 16")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _ratio(axis: Axes, x: float, values: list[float], colour: str, marker: str) -> None:
    """The mean with its number beside it, and the single seeds to its left."""
    mean = float(np.mean(values))
    axis.plot([x - 0.1] * len(values), values, "o", color=colour, alpha=0.5, markersize=4, markeredgewidth=0)
    axis.plot(x, mean, marker, color=colour, markersize=8)
    axis.annotate(f"{mean:.2f}", (x, mean), (6, 4), textcoords="offset points", fontsize=8, color=colour)


def _sensor_std(seeds: Sequence[int], results: Path) -> Figure:
    seed, deviation = deviations(seeds, results)
    place = load_dataset("metr-la").graph.coords
    assert place is not None
    limit = max(np.quantile(np.abs(std - 1), 0.99) for std in deviation.values())
    figure = Figure(figsize=(8.8, 5.4), layout="constrained", dpi=150)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for line, near_zero in zip(axes, (False, True), strict=True):
        for axis, (method, name) in zip(line, ((SCALAR, "scalar"), (FITTED, "fitted")), strict=True):
            std = deviation[method, near_zero]
            dots = axis.scatter(
                *place.T, c=std, s=22, cmap="RdBu_r", vmin=1 - limit, vmax=1 + limit, edgecolors=INK, linewidths=0.3
            )
            axis.set_aspect(1 / np.cos(np.radians(place[:, 1].mean())))
            axis.set(xticks=[], yticks=[])  # a picture, not a table of where sensors are
            regime = "near zero SNR" if near_zero else "kappa 2"
            label_axes(axis, "", "", f"{name}, {regime}: mean {std.mean():.3f}")
            axis.spines[:].set_visible(False)
    _scale(axes[1, 0], place)
    figure.suptitle(f"METR-LA: per-sensor standard deviation of generated signals, NFE 16, seed {seed}", color=INK)
    figure.colorbar(dots, ax=axes, shrink=0.7, extend="both", label="standard deviation (correct: 1)")
    return figure


def _scale(axis: Axes, place: np.ndarray) -> None:
    """A bar of five kilometres in the lower left corner; a degree of longitude is shorter than one of latitude."""
    length = 5 / (111.32 * np.cos(np.radians(place[:, 1].mean())))
    (left, low), height = place.min(0), np.ptp(place[:, 1])
    axis.plot([left, left + length], [low, low], color=INK, linewidth=2)
    axis.annotate("5 km", (left + length / 2, low + 0.03 * height), ha="center", fontsize=8, color=INK)


def _cost(setting: str, seeds: Sequence[int], results: Path) -> Figure:
    by_method = costs(setting, seeds, results)
    figure, axis = _quality()
    for target in TARGETS:
        axis.axhline(target, color="#cccccc", linewidth=0.8, zorder=0)
        beside: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": 8}
        axis.text(1.01, target, f"target {target:g}", **beside)
    for method, points in by_method.items():
        _line(axis, method, [cost.seconds for cost in points], [cost.quality for cost in points], seeds)
    _level(axis, {name: value for name, value in levels(setting, results).items() if name == "floor"})
    _plain_ticks(axis.xaxis)
    title = f"{setting}: quality and time, larger budgets to the right, seeds {', '.join(map(str, seeds))}"
    return _finished(figure, axis, "seconds per 1,000 signals", title)


def _nfe(setting: str, seeds: Sequence[int], results: Path) -> Figure:
    by_method = curves(setting, seeds, results)
    figure, axis = _quality()
    for method, entries in by_method.items():
        _line(axis, method, entries.keys(), entries.values(), seeds, band=True)
    _level(axis, levels(setting, results))
    budgets = sorted({nfe for entries in by_method.values() for nfe in entries})
    axis.set_xticks(budgets, [*map(str, budgets)])
    axis.xaxis.set_minor_locator(NullLocator())
    title = f"{setting}: quality by budget, mean and sd, seeds {', '.join(map(str, seeds))}"
    return _finished(figure, axis, "network evaluations (NFE)", title)


def _quality() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9, 5), layout="constrained", dpi=150)
    axis = figure.subplots()
    axis.set_xscale("log")
    axis.set_yscale("log")
    return figure, axis


def _line(
    axis: Axes,
    method: str,
    levels: Iterable[float],
    each: Iterable[Entry],
    seeds: Sequence[int],
    band: bool = False,
) -> None:
    """A method's line; its name says if seeds are missing somewhere on it."""
    x, entries, strong = list(levels), list(each), method.startswith("grcd")
    colour, marker, size = STYLES.get(method, OTHER)
    fewest = min(len(entry.values) for entry in entries)
    name = literal(method)
    label = name if fewest == len(set(seeds)) else f"{name} ({fewest} of {len(set(seeds))} seeds)"
    mean, sd = (np.array([getattr(entry, key) for entry in entries]) for key in ("mean", "sd"))
    look: dict[str, Any] = {"linewidth": size / 3} if strong else {"linewidth": 1, "markerfacecolor": "white"}
    look |= {"color": colour, "marker": marker, "markersize": size, "zorder": 3 if strong else 2}
    axis.plot(x, np.maximum(mean, LEAST), label=label, **look)
    if band:
        low, high = np.maximum(mean - sd, LEAST), np.maximum(mean + sd, LEAST)
        axis.fill_between(x, low, high, color=colour, alpha=0.2 if strong else 0.08, linewidth=0, zorder=1)


def _level(axis: Axes, values: dict[str, float]) -> None:
    for name, value in values.items():
        # Both are seen if they coincide.
        look: dict[str, Any] = {"color": INK, "linestyle": "--"} if name == "floor" else {"color": "#a0a0a0"}
        label = f"{name.replace('control-', 'best control: ')} ({value:.4f})"
        axis.axhline(max(value, LEAST), linewidth=1.3, label=label, zorder=1, **look)


def _finished(figure: Figure, axis: Axes, x: str, title: str) -> Figure:
    _plain_ticks(axis.yaxis)
    label_axes(axis, x, AMMD, title)
    figure.legend(loc="outside right center", frameon=False, fontsize=9, borderpad=1.5)
    return figure


def _plain_ticks(axis: Axis, digits: Sequence[int] = (1, 2, 5)) -> None:
    """These of each decade, as numbers and not as powers of ten."""
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
