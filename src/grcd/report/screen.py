"""The screen of an inspection: rows, sensors, gaps and what can be done, and only then what the paper's method asks.

Each function turns facts (see ``inspection``) into pairs of a title and a text, a line each.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import counted
from ..data import limits
from ..data.kinds import Kind
from . import in_time

Lines = list[tuple[str, str]]


def lines(facts: dict[str, dict[str, Any]], steps: int, ready: bool) -> list[str]:
    """Facts by section, and the rows of a window that a training would learn."""
    pairs = [
        *_rows(facts["signals"], facts["time"]),
        *in_time.lines(facts["time"]),
        *_graph(facts["graph"]),
        *_splits(facts["method"]),
        *(_next(steps) if ready else []),
        *_method(facts["method"], steps),
    ]
    return [f"  {title:<12}{text}" for title, text in pairs]


def _rows(f: dict[str, Any], time: dict[str, Any]) -> Lines:
    """How many rows, when, of how many sensors, with which gaps."""
    rows = f"{f['samples']:,}"
    if time and time["interval"]:
        breaks = f"{counted(time['breaks'], 'break')}" if time["breaks"] else "no break"
        rows += f", every {time['interval']}, {f['times']}; {breaks}"
        rows += f", at most {counted(time['longest_stretch'], 'row')} without one" if time["breaks"] else ""
    elif f["times"]:
        rows += f", {f['times']}"
    else:
        rows += ", without times" if time else ""
    sensors = f"{f['nodes']:,}"
    if "channels" in f:
        sensors += f", {counted(len(f['channels']), 'channel')}"
    else:
        low, high = ("?" if end is None else f"{end:g}" for end in f["range"])
        sensors += f", readings from {low} to {high} {f['unit'] or ''}".rstrip()
    worst = ", ".join(f"{name} {share:.1%}" for name, share in f["missing_most_at"].items())
    gaps = f"{f['missing']:.2%} of the readings are missing" + (f"; most at {worst}" if worst else "")
    lines = [("rows", rows), ("sensors", sensors), ("gaps", gaps if f["missing"] else "none")]
    lines += _readings({name: Kind(**each) for name, each in f["kinds"].items()})
    return [*lines, ("constant", counted(len(f["constant_nodes"]), "node"))] if f["constant_nodes"] else lines


def _readings(each: dict[str, Kind]) -> Lines:
    """What kind of numbers there are, channel by channel, and what a training makes of that."""
    lines = Lines()
    for name, kind in each.items():
        if str(kind):
            kept = limits.in_words(kind.bounds, kind.whole)
            drawn = f"; generated as {kept}" if kept else ""
            lines.append(("" if lines else "readings", f"{name}: {kind}{drawn}" if name else f"{kind}{drawn}"))
    return lines


def _graph(f: dict[str, Any]) -> Lines:
    if not f:
        return []
    shape = f"{counted(f['pairs'], 'pair')}, {f['one_way']:,} of them one-way"
    shape += f" ({f['one_way_share_of_weight']:.1%} of the weight)" if f["one_way"] else ""
    shape += f"; {counted(f['components'], 'component')}, {counted(len(f['isolated_nodes']), 'isolated node')}"
    least, middle, most = f["neighbours_a_node"]
    low, _, high = f["weighted_degree"]
    degrees = f"{least} to {most} neighbours a node, median {middle:g}; weighted degrees {low:.3g} to {high:.3g}"
    return [("graph", f["graph"]), ("", shape), ("", degrees)]


def _splits(f: dict[str, Any]) -> Lines:
    return [("split", "{:,} training, {:,} validation, {:,} test rows".format(*f["split"]))] if "split" in f else []


def _next(steps: int) -> Lines:
    """What a training makes of such data."""
    if steps > 1:
        does = f"grcd train learns windows of {steps} rows: it fills gaps, forecasts rows and generates windows"
    else:
        does = "grcd train learns rows by themselves: it fills gaps, scores rows and generates new ones"
    return [("training", does), ("", "--minutes 10, say, makes it end in time on this machine")]


def _method(f: dict[str, Any], steps: int) -> Lines:
    """What the paper's method asks: of rows by themselves."""
    if "snr_at_kappa_2" not in f:
        return []
    share = f"{f['modes_sharing_energy']:.1f} modes share the energy, {f['energy_in_lowest_tenth']:.0%} of it is in the"
    share += f" lowest tenth of the frequencies; {f['covariance_off_the_modes']:.0%} of the covariance is between modes"
    kappa = f"{f['kappa_suggested']:g} suggested; the reference's SNR at kappa 2 is {f['snr_at_kappa_2']:.2f}"
    return [("spectrum", share), ("kappa", kappa + (", of single rows (--window 1)" if steps > 1 else ""))]
