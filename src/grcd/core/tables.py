"""Tables as text: lines of cells, the first of them the head, as pages, papers, programs and screens want them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape

from .errors import unknown

Lines = Sequence[Sequence[str]]
KINDS = ("md", "tex", "csv")


def render(kind: str, sheets: Iterable[tuple[str, Lines]], legend: str, fields: Iterable[Sequence[object]]) -> str:
    """Titled tables of plain text, bold in stars: ``md``, ``tex``; or ``fields``, lines of a file: ``csv``."""
    refuse_unknown(kind)
    if kind == "csv":
        return comma_separated(fields)
    if kind == "md":
        return joined((titled(title, lines) for title, lines in sheets), legend)
    texts = ((title, [[escaped(cell) for cell in line] for line in lines]) for title, lines in sheets)
    return joined(latex(title, head, body) for title, (head, *body) in texts)


def refuse_unknown(kind: str) -> None:
    """That a format is none of ``KINDS``."""
    if kind not in KINDS:
        raise unknown("format", kind, KINDS)


def markdown(lines: Lines) -> str:
    """A table with bars."""
    head, *body = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *body))


def latex(title: str, head: Sequence[str], *bodies: Lines, columns: int = 0) -> str:
    """A tabular of cells that are LaTeX already, a line below the head and between the bodies; ``columns`` at least."""
    first, *others = ("\n".join(" & ".join(line) + r" \\" for line in body) for body in bodies)
    begin = rf"\begin{{tabular}}{{l{'c' * (max(columns, len(head)) - 1)}}}"
    parts = [f"% {title}", begin, " & ".join(head) + r" \\ \hline", first]
    for body in others:
        parts += [r"\hline", body]
    return "\n".join([*filter(None, parts), r"\end{tabular}"])


def escaped(text: str) -> str:
    """Plain text as LaTeX; what is bold in Markdown stays bold."""
    text = re.sub(r"([_&%#$])", r"\\\1", text).replace("+-", r"$\pm$")
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", text)


def comma_separated(lines: Iterable[Sequence[object]]) -> str:
    """A CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def html(head: Sequence[str], body: Lines, kind: str = "", own: int | None = None) -> str:
    """A table element of class ``kind``, without a head if that is empty; line number ``own`` is marked."""
    lines = []
    for k, line in enumerate(body):
        cells = "".join(f'<td dir="auto">{escape(text)}</td>' for text in line)  # names may run from right to left
        lines.append(f'<tr class="{"own" if k == own else ""}">{cells}</tr>')
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    top = f"<thead><tr>{heads}</tr></thead>" if head else ""
    return f'<div class="wide"><table class="{kind}">{top}<tbody>{"".join(lines)}</tbody></table></div>'


def aligned(lines: Lines, width: int) -> str:
    """Columns for a screen: the first to the left, the others to the right, ``width`` letters each."""
    return "\n".join("".join([f"{line[0]:22}", *(f"{cell:>{width}}" for cell in line[1:])]) for line in lines)


def joined(parts: Iterable[str], legend: str = "") -> str:
    """Tables below each other, a line of explanation above them."""
    return "\n\n".join([*([legend] if legend else []), *parts]) + "\n"


def titled(title: str, lines: Lines) -> str:
    """A Markdown table with a heading."""
    return f"### {title}\n\n{markdown(lines)}"


def number(value: float) -> str:
    """Three digits that count."""
    digits = 2 - math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 2
    return f"{value:.{min(max(digits, 0), 8)}f}"
