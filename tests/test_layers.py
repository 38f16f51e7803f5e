"""The layers: a room imports only rooms before it in the table in CONTRIBUTING, and no modules import in a ring.

Read off the sources: imports inside functions and under ``TYPE_CHECKING`` count like any other.
"""

import ast
import graphlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "grcd"
MODULES = {  # a package that keeps the layers a < b < grcd
    "__init__": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import high",
    "a.__init__": "",
    "a.low": "import numpy",
    "a.middle": "from . import low\nfrom .low import something",
    "b.__init__": "from .high import thing",
    "b.high": "def lazy():\n    from ..a.middle import something",
}


def layers(page):
    """The first column of the table of rooms, from the lowest to the highest."""
    _, table = page.split("| room | what it is |\n")
    return re.findall(r"^\| `(\w+)` \|", table.split("\n\n")[0], re.MULTILINE)


def room(module):
    """The room of a module; the package itself and how it starts are one."""
    name = [*module.split("."), PACKAGE][1]
    return PACKAGE if name == "__main__" else name


def import_graph(source):
    """For every module in a folder the other modules there that it imports."""
    paths = {path.relative_to(source).with_suffix(""): path for path in source.rglob("*.py")}
    trees = {".".join(place.parts): ast.parse(path.read_text()) for place, path in paths.items()}
    modules = {name.removesuffix(".__init__") for name in trees}
    graph = {}
    for name, tree in trees.items():
        named = [full for node in ast.walk(tree) for full in _named(node, name.split(".")[:-1])]
        targets = {full if full in modules else full.rpartition(".")[0] for full in named}
        graph[name.removesuffix(".__init__")] = targets & modules
    return graph


def _named(node, package):
    """What an import statement names: modules, or names inside modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = package[: len(package) + 1 - node.level] if node.level else []
        return [".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names]
    return []


def upward(graph, order):
    """The imports that lead from a room to one that comes after it."""
    edges = ((name, target) for name, targets in sorted(graph.items()) for target in sorted(targets))
    return [f"{name} -> {target}" for name, target in edges if order.index(room(name)) < order.index(room(target))]


def ring(graph):
    """Modules that import each other in a ring; empty if there are none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


GRAPH, ORDER = import_graph(ROOT / "src"), layers((ROOT / "CONTRIBUTING.md").read_text())


def test_the_table_of_rooms_has_them_all():
    assert sorted(ORDER) == sorted({room(module) for module in GRAPH})


def test_a_room_imports_only_rooms_before_it():
    assert upward(GRAPH, ORDER) == []


def test_no_modules_import_each_other_in_a_ring():
    assert ring(GRAPH) == []


def made_up(folder, changes):
    for name, text in (MODULES | changes).items():
        path = folder.joinpath(PACKAGE, *name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return import_graph(folder)


def test_the_graph_is_that_of_the_sources(tmp_path):
    graph = made_up(tmp_path, {})
    assert graph == {
        "grcd": {"grcd.b.high"},
        "grcd.a": set(),
        "grcd.a.low": set(),
        "grcd.a.middle": {"grcd.a.low"},
        "grcd.b": {"grcd.b.high"},
        "grcd.b.high": {"grcd.a.middle"},
    }
    assert upward(graph, ["a", "b", "grcd"]) == ring(graph) == []


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("from ..b.high import thing", "b.high"),
        ("from ..b import high", "b.high"),
        ("from ..b import thing", "b"),
        ("from .. import b", "b"),
        ("import grcd.b.high", "b.high"),
        ("from grcd.b import high as h", "b.high"),
        ("def lazy():\n    import grcd.b", "b"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..b.high import Thing", "b.high"),
    ],
)
def test_an_upward_import_is_seen_however_it_is_written(tmp_path, text, target):
    graph = made_up(tmp_path, {"a.low": text})
    assert upward(graph, ["a", "b", "grcd"]) == [f"grcd.a.low -> grcd.{target}"]
    assert {"grcd.a.low", f"grcd.{target}"} <= {*ring(graph)}  # a ring too: b.high imports a.middle, and that a.low


def test_a_ring_inside_a_room_is_seen(tmp_path):
    graph = made_up(tmp_path, {"a.low": "def lazy():\n    from . import middle"})
    assert upward(graph, ["a", "b", "grcd"]) == []
    assert {*ring(graph)} == {"grcd.a.low", "grcd.a.middle"}


def test_a_name_of_the_package_itself_is_the_package(tmp_path):
    graph = made_up(tmp_path, {"a.low": "import grcd\nfrom .. import __version__"})
    assert upward(graph, ["a", "b", "grcd"]) == ["grcd.a.low -> grcd"]
