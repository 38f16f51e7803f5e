"""How `make docs` builds the pages: Markdown as it stands here and in `results`, and the API from the docstrings.

The root of the sources is the project's, so that links between folders are links between pages. Nothing is fetched:
neither while building nor by a reader's browser, which may open the pages from a folder.
"""

import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[1]
project, author = "GRCD", "the GRCD authors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/*.rst", "results/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"GRCD {release}"
html_show_sourcelink = html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # would be fetched, which browsers refuse to pages in a folder

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "exclude-members": "__init__"}

ARGUMENTS = re.compile(r"^(\s*)((?:``[^`]+``(?:, )?)+)\s{2,}(\S.*)$")


def as_definitions(app, what, name, obj, options, lines):
    """Our docstrings list arguments in two columns, which is no markup: name and text become a definition."""
    result, hanging, indent = [], None, ""
    for line in lines:
        found = ARGUMENTS.match(line)
        if found:
            indent, names, text = found.groups()
            if hanging is None and result and result[-1].strip():
                result.append("")
            hanging = found.start(3)
            result += [f"{indent}{names}", f"{indent}    {text}"]
        elif hanging is not None and line.strip() and len(line) - len(line.lstrip()) >= hanging:
            result.append(f"{indent}    {line.strip()}")
        else:
            if hanging is not None and line.strip():
                result.append("")
            hanging = None
            result.append(line)
    lines[:] = result


class Page(HTMLParser):
    """What a page links to, and what in it can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.path, self.targets, self.anchors = path, set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.add(value)
            elif name == "id":
                self.anchors.add(value)

    def broken(self, pages):
        """Links into this site that lead nowhere; those to elsewhere need a network to be tried."""
        for target in sorted(self.targets):
            file, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target) or target.startswith("//"):
                continue
            there = (self.path.parent / unquote(file.partition("?")[0])).resolve() if file else self.path
            if not there.is_file() or (there in pages and unquote(anchor) not in pages[there].anchors):
                yield f"{self.path.name}: {target}"


def check_links(app, exception):
    """Every link between the pages that were built."""
    if exception is None and app.builder.name == "html":
        pages = {path.resolve(): Page(path.resolve()) for path in Path(app.outdir).rglob("*.html")}
        if lost := [link for page in pages.values() for link in page.broken(pages)]:
            raise ExtensionError("links that lead nowhere:\n" + "\n".join(lost))


def setup(app):
    app.connect("autodoc-process-docstring", as_definitions)
    app.connect("build-finished", check_links)
