"""The table of distances: metrics that a covariance cannot fool (evaluation.distances), the floor in the first line.

Mean and sample standard deviation over seeds. Two permutation tests (evaluation.permutation), the least ``p``
over the seeds: generated against test signals, below 0.05 a method can be told from the data; and against the floor,
below 0.05 it is further from test signals than training signals are. Metrics have ideals of their own, which the
head names where it is not zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..evaluation.distances import IDEALS, TITLES
from . import suites
from .cells import measured
from .measured import lacking
from .tables import escaped, formatted

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
        lines.append([name, *(_shown(values.get(metric, [])) for metric in SHORT), *least])
    return lines


def _shown(values: list[float]) -> str:
    if not values:
        return "-"
    spread = f" +- {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def _markdown(found: dict[str, Rows]) -> str:
    parts = []
    for setting, each in found.items():
        head, *lines = _lines(each)
        laid_out = [head, ["---"] * len(head), *lines]
        parts.append(f"### {setting}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in laid_out))
    legend = "Generated against test signals, mean +- sd over seeds; in parentheses what is right, if that is not 0."
    tests = (
        "p: permutation test against test signals; p, floor: whether they are further from them than training signals"
    )
    return f"{legend} {tests}; the least over seeds.\n\n" + "\n\n".join(parts) + "\n"


def _latex(found: dict[str, Rows]) -> str:
    parts = []
    for setting, each in found.items():
        head, *lines = ([escaped(text).replace("+-", r"$\pm$") for text in line] for line in _lines(each))
        body = [" & ".join(line) + r" \\" for line in lines]
        begin = rf"\begin{{tabular}}{{l{'c' * (len(head) - 1)}}}"
        parts.append("\n".join([f"% {setting}", begin, " & ".join(head) + r" \\ \hline", *body, r"\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def _csv(found: dict[str, Rows]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["setting", "method", "nfe", "metric", "mean", "sd", "seeds"])
    for setting, each in found.items():
        for (method, nfe), values in each.items():
            for metric, numbers in values.items():
                spread = f"{np.std(numbers, ddof=1):.6f}" if len(numbers) > 1 else ""
                place = [setting, method, "" if nfe is None else nfe, metric]
                writer.writerow([*place, f"{np.mean(numbers):.6f}", spread, len(numbers)])
    return out.getvalue()
