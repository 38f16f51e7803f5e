"""The cost of a quality target: the cheapest measured sampling with which a method reaches it (appendix A.7.2).

Seconds per 1,000 signals. The paper's are of another machine, so what can be compared with it are the ratios of methods
and the budget at which a target is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .layout import comma_separated, escaped, formatted, joined, latex, markdown
from .measured import Cost, costs
from .tables import paper

TARGETS = (0.2, 0.1, 0.06)


def cheapest(points: Sequence[Cost], target: float) -> Cost | None:
    """None if no budget reaches it."""
    reached = [cost for cost in points if cost.quality.mean <= target]
    return min(reached, key=lambda cost: cost.seconds, default=None)


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The cost of every target for every method, as md, tex or csv."""
    found = {setting: costs(setting, seeds, results) for setting in settings}
    return formatted({"md": _markdown, "tex": _latex, "csv": _csv}, kind)(found)


def _rows(points: dict[str, list[Cost]], show: Callable[[Cost | None, bool], str]) -> list[list[str]]:
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

    head = ["method", *(f"aMMD <= {target:g}" for target in TARGETS)]
    legend = (
        "Seconds per 1,000 signals at the cheapest budget that reaches the target, and the network's share of them."
    )
    return joined((markdown(setting, [head, *_rows(points, show)]) for setting, points in found.items()), legend)


def _latex(found: dict[str, dict[str, list[Cost]]]) -> str:
    def show(cost: Cost | None, best: bool) -> str:
        if cost is None:
            return "never"
        number = rf"\mathbf{{{cost.seconds:.4f}}}" if best else f"{cost.seconds:.4f}"
        return rf"${number}$ (NFE {cost.nfe})"

    head = ["method", *(rf"aMMD $\le {target:g}$" for target in TARGETS)]
    rows = {
        setting: [[escaped(name), *each] for name, *each in _rows(points, show)] for setting, points in found.items()
    }
    return joined(latex(setting, [head, *lines]) for setting, lines in rows.items())


def _csv(found: dict[str, dict[str, list[Cost]]]) -> str:
    lines: list[list[object]] = [["setting", "method", "nfe", "mean", "sd", "seeds", "paper"]]
    for setting, points in found.items():
        for method, target in ((method, target) for method in points for target in TARGETS):
            cost, row = cheapest(points[method], target), f"{method} to {target:g}"
            if cost is not None:
                printed = paper("cost", setting, row, cost.nfe)
                lines.append([setting, row, cost.nfe, f"{cost.seconds:.6f}", "", 1, printed[0] if printed else ""])
    return comma_separated(lines)
