"""The cost of a quality target: the cheapest measured sampling with which a method reaches it (appendix A.7.2).

Seconds per 1,000 signals. The paper's are of another machine, so what can be compared with it are the ratios of methods
and the budget at which a target is reached.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from .measured import Cost, costs
from .tables import escaped, formatted, paper

TARGETS = (0.2, 0.1, 0.06)


def cheapest(points: Sequence[Cost], target: float) -> Cost | None:
    """None if no budget reaches it."""
    reached = [cost for cost in points if cost.quality.mean <= target]
    return min(reached, key=lambda cost: cost.seconds, default=None)


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The cost of every target for every method, as md, tex or csv."""
    found = {setting: costs(setting, seeds, results) for setting in settings}
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(found)


def _rows(points: dict[str, list[Cost]], show) -> list[list[str]]:
    """A line a method, a column a target; the cheapest of a column is marked."""
    least = {target: cheapest([cost for each in points.values() for cost in each], target) for target in TARGETS}
    rows = []
    for method, each in points.items():
        reached = {target: cheapest(each, target) for target in TARGETS}
        rows.append([method, *(show(cost, cost is least[target] is not None) for target, cost in reached.items())])
    return rows


def _markdown(found: dict[str, dict[str, list[Cost]]]) -> str:
    def show(cost: Cost | None, best: bool) -> str:
        if cost is None:
            return "never"
        mark = "**" if best else ""
        return f"{mark}{cost.seconds:.4f}{mark} (NFE {cost.nfe}, network {cost.network / cost.seconds:.0%})"

    parts = []
    for setting, points in found.items():
        head = ["method", *(f"aMMD <= {target:g}" for target in TARGETS)]
        lines = [head, ["---"] * len(head), *_rows(points, show)]
        parts.append(f"### {setting}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    legend = (
        "Seconds per 1,000 signals at the cheapest budget that reaches the target, and the network's share of them."
    )
    return f"{legend}\n\n" + "\n\n".join(parts) + "\n"


def _latex(found: dict[str, dict[str, list[Cost]]]) -> str:
    def show(cost: Cost | None, best: bool) -> str:
        if cost is None:
            return "never"
        number = rf"\mathbf{{{cost.seconds:.4f}}}" if best else f"{cost.seconds:.4f}"
        return rf"${number}$ (NFE {cost.nfe})"

    parts = []
    for setting, points in found.items():
        head = " & ".join(["method", *(rf"aMMD $\le {target:g}$" for target in TARGETS)]) + r" \\ \hline"
        body = [" & ".join([escaped(row[0]), *row[1:]]) + r" \\" for row in _rows(points, show)]
        begin = rf"\begin{{tabular}}{{l{'c' * len(TARGETS)}}}"
        parts.append("\n".join([f"% {setting}", begin, head, *body, r"\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def _csv(found: dict[str, dict[str, list[Cost]]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["setting", "method", "nfe", "mean", "sd", "seeds", "paper"])
    for setting, points in found.items():
        for method, target in ((method, target) for method in points for target in TARGETS):
            cost, row = cheapest(points[method], target), f"{method} to {target:g}"
            if cost is not None:
                printed = paper("cost", setting, row, cost.nfe)
                writer.writerow([setting, row, cost.nfe, f"{cost.seconds:.6f}", "", 1, printed[0] if printed else ""])
    return out.getvalue()
