"""A page of sections: words, drawings and tables in one HTML document that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from importlib import resources

from matplotlib.figure import Figure

from ..core import provenance
from ..core.progress import bar
from ..core.tables import html as table
from ..data.origin import Origin
from ..model import GRCD
from .drawings import svg


@dataclass(frozen=True)
class Section:
    """A heading, how to read what is below it, and that."""

    name: str
    title: str
    words: str
    body: str


def document(name: str, summary: str, sections: Iterable[Section], count: int) -> str:
    """The whole page on data of this name: a summary, links to about ``count`` sections, and those."""
    written = []
    with bar("drawing", count) as advance:
        for section in sections:
            written.append(section)
            advance(len(written), section.title)
    style = (resources.files(__package__) / "page.css").read_text()
    links = "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in written)
    parts = [
        f'<h2 id="{s.name}">{escape(s.title)}</h2>\n<p class="soft">{escape(s.words)}</p>\n{s.body}' for s in written
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(f'GRCD on {name}')}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<h1>GRCD on <bdi>{escape(name)}</bdi></h1>\n{summary}\n<nav>{links}</nav>",
            *parts,
            "</body>\n</html>\n",
        ]
    )


def figure(label: str, draw: Callable[..., Figure], *args: object) -> str:
    """A drawing with a name for those who cannot see it."""
    return f'<figure aria-label="{escape(label)}">{svg(draw, *args)}</figure>'


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
