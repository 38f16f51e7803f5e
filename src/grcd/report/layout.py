"""A page of sections: words, drawings and tables in one HTML document that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

import numpy as np
from matplotlib.figure import Figure

from ..core import provenance
from ..core.progress import working
from ..core.tables import html as table
from ..data.origin import Origin
from ..model import GRCD
from .drawings import svg
from .hover import named
from .pictures import Drawn, written


@dataclass(frozen=True)
class Section:
    """A heading, how to read what is below it, and that."""

    name: str
    title: str
    words: str
    body: str


def document(name: str, about: Sequence[str], summary: str, sections: Iterable[Section], script: str = "") -> str:
    """The whole page on data of this name, and a few words on them: a summary, links to the sections, and
    those; then what a browser may run."""
    with working("drawing"):
        written = list(sections)
    style = (resources.files(__package__) / "page.css").read_text()
    links = "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in written)
    parts = [
        f'<h2 id="{s.name}">{escape(s.title)}</h2>\n<p class="soft">{escape(s.words)}</p>\n{s.body}' for s in written
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(', '.join([name, *about]))}: GRCD</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f'<h1><bdi>{escape(name)}</bdi></h1>\n<p class="about">{escape(", ".join(about))}. A report by GRCD.</p>',
            f"{summary}\n<nav>{links}</nav>",
            *parts,
            f"{script}</body>\n</html>\n",
        ]
    )


def figure(label: str, draw: Callable[..., Figure], *args: object, names: Sequence[str] = ()) -> str:
    """A drawing with a name for those who cannot see it, and ``names`` for the nodes of its maps."""
    return f'<figure aria-label="{escape(label)}">{named(svg(draw, *args), names)}</figure>'


def span(times: np.ndarray | None) -> list[str]:
    """From when to when, for a title; nothing where there are no times."""
    if times is None or not len(times):
        return []
    first, last = (written(time)[:10] if times.dtype.kind == "M" else written(time) for time in (times[0], times[-1]))
    return [f"{first} to {last}" if first != last else first]


def strongest(drawn: Drawn) -> str:
    """How many edges of a map are left out, if any are."""
    if not drawn.left_out:
        return ""
    return f" The {len(drawn.edges):,} strongest of {drawn.left_out + len(drawn.edges):,} edges are drawn."


def cards(numbers: dict[str, str]) -> str:
    """Numbers to look at first, by what they are."""
    items = "".join(f"<li><b>{escape(number)}</b><span>{escape(what)}</span></li>" for what, number in numbers.items())
    return f'<ul class="cards">{items}</ul>'


def headline(source: str, verdict: tuple[str, str], same_data: bool, notes: Iterable[object]) -> str:
    """What was looked at, what came of it (a kind and a sentence), and what is worth knowing of the data."""
    kind, sentence = verdict
    other = "" if same_data else "<p><strong>These are not the data that the run was trained on.</strong></p>"
    other += "".join(f'<p class="soft">Note: {escape(str(note))}.</p>' for note in notes)
    return f'<p class="soft">{escape(source)}</p>\n<p><strong class="{kind}">{escape(sentence)}</strong></p>{other}'


def where_from(model: GRCD, command: str, more: dict[str, str]) -> str:
    """A table of enough to make it all again: data, graph, training, ``more`` of it, settings and versions."""
    data, result, origin = model.facts["data"], model.result, Origin.of_run(model.facts)
    now = provenance.record(model.device)
    facts = {
        "written": f"{now['date']}, {now['hardware']}",
        "by": command or "Python",
        "trained by": origin.command or "Python",
        "data": f"{data['name']}, sha256 {data['hash']}",
        "prepared": ", ".join(
            f"{key} {round(value, 4) if isinstance(value, float) else value}"
            for key, value in origin.prepared().items()
            if value not in (None, [], {}, "")
        ),
        "graph": f"{model.facts['graph']['nodes']} nodes, sha256 {model.facts['graph']['hash']}",
        "graph from": str(model.facts["graph"].get("origin", "")),
        "training": f"{result['updates']:,} updates in {result['seconds']:.0f} s; {result['stopped']}",
        **more,
        "settings": ", ".join(f"{key} {value}" for key, value in model.config.to_dict().items() if value != ""),
        "versions then": ", ".join(f"{name} {number}" for name, number in model.facts.get("versions", {}).items()),
        "versions now": ", ".join(f"{name} {number}" for name, number in provenance.versions().items()),
    }
    return table([], [[key, value] for key, value in facts.items() if value], kind="facts")
