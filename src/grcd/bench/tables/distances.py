"""The table of distances: metrics that a covariance cannot fool (evaluation.comparison), the floor in the first line.

Mean and sample standard deviation over seeds. Two permutation tests (metrics.permutation), the least ``p``
over the seeds: generated against test signals, below 0.05 a method can be told from the data; and against the floor,
below 0.05 it is further from test signals than training signals are. Metrics have ideals of their own, which the
head names where it is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.tables import Lines, render
from ...evaluation.comparison import IDEALS, TITLES
from .. import suites
from ..cells import measured
from ..measured import Statistic, lacking, over_seeds

SHORT = {name: f"{title} ({IDEALS[name]:g})" if IDEALS.get(name) else title for name, title in TITLES.items()}
TESTS = {"p": "p", "p_floor": "p, floor"}
LEGEND = (
    "Generated against test signals, mean +- sd over seeds; in parentheses what is right, if that is not 0. p:"
    " permutation test against test signals; p, floor: whether they are further from them than training signals;"
    " the least over seeds."
)
Rows = dict[tuple[str, int | None], dict[str, Statistic]]  # by method and budget, and by metric


def rows(setting: str, seeds: Sequence[int], results: Path) -> Rows:
    """What has been measured on a dataset, the floor first."""
    floor, lines = dict[str, Statistic](), []
    for cell in suites.cells("distances", [setting], seeds):
        content = measured(cell, results)
        if content is None:
            continue
        known = {name: distance for name, distance in content["distances"].items() if name in TITLES}
        numbers = {name: distance["value"] for name, distance in known.items()}
        numbers |= {test: content[test] for test in TESTS}
        lines += [(cell.method, cell.budget, *number) for number in numbers.items() if number[1] is not None]
        for name, distance in known.items():
            if name != "copies":  # training signals are their own copies
                floor[name] = Statistic(distance["floor"], None, 1, distance["floor"])
    if not lines:
        raise lacking("with distances", "distances", [setting], seeds, results)
    table: Rows = {("floor", None): floor}
    for (method, nfe, metric), statistic in over_seeds(lines).items():
        table.setdefault((method, nfe), {})[metric] = statistic
    return table


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The table of some datasets as md, tex or csv."""
    by_setting = {setting: rows(setting, seeds, results) for setting in settings}
    sheets = ((setting, _lines(table)) for setting, table in by_setting.items())
    return render(kind, sheets, LEGEND, _fields(by_setting))


def _lines(table: Rows) -> Lines:
    lines = [["method", *SHORT.values(), *TESTS.values()]]
    for (method, nfe), metrics in table.items():
        name = method if nfe is None else f"{method}, NFE {nfe}"
        means = [metrics[metric].text(4) if metric in metrics else "-" for metric in SHORT]
        lines.append([name, *means, *(f"{metrics[test].least:.3f}" if test in metrics else "-" for test in TESTS)])
    return lines


def _fields(by_setting: dict[str, Rows]) -> Iterator[list[object]]:
    yield ["setting", "method", "nfe", "metric", "mean", "sd", "seeds"]
    for setting, table in by_setting.items():
        for (method, nfe), metrics in table.items():
            place = [setting, method, "" if nfe is None else nfe]
            yield from ([*place, metric, *statistic.fields()] for metric, statistic in metrics.items())
