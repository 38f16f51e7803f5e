"""How tables are laid out, in three formats: a title and lines of cells, the first of them the head."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..core.errors import unknown

Lines = Sequence[Sequence[str]]


def formatted(formats: dict[str, Callable], kind: str) -> Callable:
    if kind not in formats:
        raise unknown("format", kind, formats)
    return formats[kind]


def shown(values: Sequence[float], digits: int = 4) -> str:
    """Mean and sample standard deviation."""
    if not values:
        return "-"
    spread = f" +- {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def markdown(title: str, lines: Lines) -> str:
    return f"### {title}\n\n{piped(lines)}"


def piped(lines: Lines) -> str:
    head, *body = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *body))


def latex(title: str, lines: Lines) -> str:
    """Cells are LaTeX already."""
    head, *body = (" & ".join(line) + r" \\" for line in lines)
    begin = rf"\begin{{tabular}}{{l{'c' * (len(lines[0]) - 1)}}}"
    return "\n".join([f"% {title}", begin, rf"{head} \hline", *body, r"\end{tabular}"])


def escaped(text: str) -> str:
    """Plain text as LaTeX; what is bold in Markdown stays bold."""
    text = re.sub(r"([_&%#$])", r"\\\1", text).replace("+-", r"$\pm$")
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", text)


def joined(parts: Iterable[str], legend: str = "") -> str:
    return "\n\n".join([*([legend] if legend else []), *parts]) + "\n"


def comma_separated(rows: Iterable[Sequence]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def long(values: Sequence[float]) -> list:
    """Mean, sd and number of seeds, as a line of comma-separated values has them."""
    return [f"{np.mean(values):.6f}", f"{np.std(values, ddof=1):.6f}" if len(values) > 1 else "", len(values)]
