"""What a page shows of a node under the pointer: its name, and its readings as a line.

Maps are drawn with their nodes in a group of class ``nodes``, in the order of the graph, each with its name as a title,
which a browser shows by itself. Readings lie on the page as JSON, once for all maps, and a script of some lines
(``page.js``) draws those of the node that is pointed at. Without scripts nothing else is missing; nothing is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources

import numpy as np

GROUP = "nodes"  # as the maps call it
MOST = 200_000  # numbers on a page; rows are thinned for it
DIGITS = 4


def named(svg: str, names: Sequence[str]) -> str:
    """A drawing whose maps say the name of every node."""

    def group(found: re.Match[str]) -> str:
        dots = iter(names)
        inside = re.sub(r"(<use [^>]*?)/>", lambda dot: f"{dot[1]}><title>{escape(next(dots))}</title></use>", found[1])
        return f'<g class="{GROUP}">{inside}</g>'

    return re.sub(rf'<g id="{GROUP}">(.*?)</g>', group, svg, flags=re.DOTALL)


def script(
    names: Sequence[str], lines: Mapping[str, np.ndarray], span: tuple[str, str], unit: str
) -> str:  # each line (rows, nodes)
    """The readings and what draws them; ``lines`` are ``held-out`` and, if there are any, ``generated`` ones."""
    some = next(iter(lines.values()))
    step = -(-some.size * len(lines) // MOST)
    told = {
        "names": list(names),
        "lines": {name: [[_short(x) for x in column] for column in each[::step].T] for name, each in lines.items()},
        "span": span,
        "unit": unit,
    }
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    code = (resources.files(__package__) / "page.js").read_text()
    return f'<script type="application/json" id="readings">{text}</script>\n<script>\n{code}</script>'


def _short(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
