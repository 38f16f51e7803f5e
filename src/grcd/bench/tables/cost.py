"""The cost of a quality target: the cheapest measured sampling with which a method reaches it (appendix A.7.2).

Seconds per 1,000 signals. The paper's are of another machine, so what can be compared with it are the ratios of methods
and the budget at which a target is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

from ...core.tables import comma_separated, escaped, joined, latex, refuse_unknown, titled
from ..measured import Cost, costs
from .ammd import COLUMNS, paper

TARGETS = (0.2, 0.1, 0.06)
LEGEND = "Seconds per 1,000 signals at the cheapest budget that reaches the target, and the network's share of them."
Costs = dict[str, list[Cost]]  # by method, a budget each


def cheapest(points: Sequence[Cost], target: float) -> Cost | None:
    """The cheapest budget whose mean aMMD reaches a target; None if none does."""
    reached = [cost for cost in points if cost.quality.mean <= target]
    return min(reached, key=lambda cost: cost.seconds, default=None)


def table(settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The cost of every target for every method, as md, tex or csv."""
    refuse_unknown(kind)
    by_setting = {setting: costs(setting, seeds, results) for setting in settings}
    if kind == "csv":
        return comma_separated(_fields(by_setting))
    if kind == "md":
        head = ["method", *(f"aMMD <= {target:g}" for target in TARGETS)]
        sheets = (titled(setting, [head, *_rows(points, _markdown_cell)]) for setting, points in by_setting.items())
        return joined(sheets, LEGEND)
    head = ["method", *(rf"aMMD $\le {target:g}$" for target in TARGETS)]
    bodies = ((setting, _rows(points, _latex_cell)) for setting, points in by_setting.items())
    return joined(latex(setting, head, [[escaped(name), *cells] for name, *cells in body]) for setting, body in bodies)


def _rows(points: Costs, show: Callable[[Cost, bool], str]) -> list[list[str]]:
    """A line a method, a column a target; the cheapest of a column is marked."""
    least = [cheapest([cost for each in points.values() for cost in each], target) for target in TARGETS]
    rows = []
    for method, each in points.items():
        reached = zip((cheapest(each, target) for target in TARGETS), least, strict=True)
        rows.append([method, *("never" if cost is None else show(cost, cost is best) for cost, best in reached)])
    return rows


def _markdown_cell(cost: Cost, best: bool) -> str:
    mark = "**" if best else ""
    return f"{mark}{cost.seconds:.4f}{mark} (NFE {cost.nfe}, network {cost.network / cost.seconds:.0%})"


def _latex_cell(cost: Cost, best: bool) -> str:
    number = rf"\mathbf{{{cost.seconds:.4f}}}" if best else f"{cost.seconds:.4f}"
    return rf"${number}$ (NFE {cost.nfe})"


def _fields(by_setting: dict[str, Costs]) -> Iterator[Sequence[object]]:
    yield COLUMNS
    for setting, points in by_setting.items():
        for method, target in product(points, TARGETS):
            cost, row = cheapest(points[method], target), f"{method} to {target:g}"
            if cost is not None:
                printed = paper("cost", setting, row, cost.nfe)
                yield [setting, row, cost.nfe, f"{cost.seconds:.6f}", "", 1, printed[0] if printed else ""]
