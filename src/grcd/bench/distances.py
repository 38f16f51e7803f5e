"""The table of distances: metrics that a covariance cannot fool (evaluation.distances), the floor in the first line.

Mean and sample standard deviation over seeds. Two permutation tests (evaluation.permutation), the least ``p``
over the seeds: generated against test signals, below 0.05 a method can be told from the data; and against the floor,
below 0.05 it is further from test signals than training signals are. Metrics have ideals of their own, which the
head names where it is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..evaluation.distances import IDEALS, TITLES
from . import suites
from .cells import measured
from .layout import comma_separated, escaped, formatted, joined, latex, long, markdown, shown
from .measured import lacking

SHORT = {name: f"{title} ({IDEALS[name]:g})" if IDEALS.get(name) else title for name, title in TITLES.items()}
TESTS = {"p": "p", "p_floor": "p, floor"}
Rows = dict[tuple[str, int | None], dict[str, list[float]]]  # by method and budget: values by metric, a seed each


def rows(setting: str, seeds: Sequence[int], results: Path) -> Rows:
    """What has been measured, the floor first."""
    found: Rows = {}
    for cell in suites.cells("distances", [setting], seeds):
        known = measured(cell, results)
        if known is None:
            continue
        floor = found.setdefault(("floor", None), {})
        values = found.setdefault((cell.method, cell.nfe), {})
        for name, distance in known["distances"].items():
            if distance["value"] is not None:
                values.setdefault(name, []).append(distance["value"])
            if name != "memorisation":  # training signals are their own copies
                floor[name] = [distance["floor"]]
        for test in TESTS:
            values.setdefault(test, []).append(known[test])
    if not found:
        raise lacking("with distances", "distances", [setting], seeds, results)
    return found


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    found = {setting: rows(setting, seeds, results) for setting in settings}
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(found)


def _lines(found: Rows) -> list[list[str]]:
    lines = [["method", *SHORT.values(), *TESTS.values()]]
    for (method, nfe), values in found.items():
        name = method if nfe is None else f"{method}, NFE {nfe}"
        least = [f"{min(values[test]):.3f}" if test in values else "-" for test in TESTS]
        lines.append([name, *(shown(values.get(metric, [])) for metric in SHORT), *least])
    return lines


def _markdown(found: dict[str, Rows]) -> str:
    legend = (
        "Generated against test signals, mean +- sd over seeds; in parentheses what is right, if that is not 0. p:"
        " permutation test against test signals; p, floor: whether they are further from them than training signals;"
        " the least over seeds."
    )
    return joined((markdown(setting, _lines(each)) for setting, each in found.items()), legend)


def _latex(found: dict[str, Rows]) -> str:
    return joined(latex(setting, [[*map(escaped, line)] for line in _lines(each)]) for setting, each in found.items())


def _csv(found: dict[str, Rows]) -> str:
    lines: list[list[object]] = [["setting", "method", "nfe", "metric", "mean", "sd", "seeds"]]
    for setting, each in found.items():
        for (method, nfe), values in each.items():
            place = [setting, method, "" if nfe is None else nfe]
            lines += [[*place, metric, *long(numbers)] for metric, numbers in values.items()]
    return comma_separated(lines)
