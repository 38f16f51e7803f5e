"""The documentation works as it stands: every block runs, with a few dozen updates, and every link leads somewhere."""

import contextlib
import os
import pickle
import re
import shlex
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy
import xarray

import grcd
from grcd import cli
from grcd.bench import runner
from grcd.data import catalog, load_dataset
from grcd.data.formats.writing import write_signals

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "results").glob("*.md"))]
KINDS = ("sh", "python", "text")  # commands, code, and what only looks like it
SHORT = ["--max-updates", "40", "--set", "width=8", "--set", "validate_every=20"]
QUICK = {  # what is added to a command: the last of two values counts
    "train": [*SHORT, "--device", "cpu"],
    "impute": ["-n", "4", "--nfe", "2"],
    "forecast": ["-n", "4", "--nfe", "2"],
    "report": ["-n", "60", "--nfe", "2"],
    "bench run": ["--set", "max_updates=20", "--set", "width=8", "--set", "validate_every=10", "--device", "cpu"],
}


def blocks(page):
    """Kind and text of every block, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert page.read_text().count("```") == 2 * len(found)
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on the example files, which some pages take for granted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that gaps were filled
        data = load_dataset(str(ROOT / "examples/readings.csv"), str(ROOT / "examples/stations.csv"), fill="linear")
    model = grcd.GRCD(data.graph, device="cpu", width=8, max_updates=40, validate_every=20).fit(data.train, data.val)
    path = tmp_path_factory.mktemp("docs")
    about = {"asked": {"source": "examples/readings.csv", "graph": "examples/stations.csv", "fill": "linear"}}
    model.facts["data"]["made"] = about
    model.save(path / "run")
    other = load_dataset("sbm-c16")
    write_signals(path / "samples.npz", other.val[:200], other.graph.node_ids)
    return path


@pytest.fixture
def folder(tmp_path, trained, monkeypatch):
    """A folder with everything that pages refer to, and trainings that take a second."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("readings.csv", "stations.csv"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    make, real = grcd.GRCD.__init__, grcd.data.load_dataset

    def quick(self, graph, *args, **settings):
        updates = min(40, int(settings.get("max_updates", 40)))
        in_time = {"pool": 300, "blocks": 1} if int(settings.get("window", 1)) > 1 else {}
        few = {"width": 8, "max_updates": updates, "validate_every": 20, **in_time}
        make(self, graph, *args, **settings | few)

    def few(source, graph=None, **how):
        data = real(source, graph, **how)
        small = {split: data.split(split)[:200] for split in ("train", "val", "test")}
        return replace(data, **small) if source == "sbm-c16" else data

    monkeypatch.setattr(grcd.GRCD, "__init__", quick)
    for where in (grcd, grcd.data, runner):
        monkeypatch.setattr(where, "load_dataset", few)
    return tmp_path


def lines(page):
    """Every command of a page."""
    return [line for kind, text in blocks(page) if kind == "sh" for line in text.splitlines() if line]


def asks_for_data(line):
    """Of the paper's real data: not everybody has them."""
    return "data get" in line or "metr-la" in shlex.split(line, comments=True)


def run(line, folder, trained, monkeypatch):
    """A line as a shell would read it."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
        return
    assert words[0] == "grcd"
    words += next((more for start, more in QUICK.items() if words[1:][: len(start.split())] == start.split()), [])
    if words[1:3] == ["data", "get"]:
        catalog.source(words[3])
        words = ["grcd", "data", "list"]  # bringing files is tests/test_fetch.py; here they are at hand
    elif "metr-la" in words:
        words += ["--cap", "300,50,50", "--method", "grcd-rho3"]  # two hundred nodes
    if words[1] in ("impute", "score", "augment", "report") and "run" in words and not (folder / "run").exists():
        shutil.copytree(trained / "run", folder / "run")
    if "evaluate" in words and "samples.npz" in words and not (folder / "samples.npz").exists():
        shutil.copy(trained / "samples.npz", folder)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code, line


def run_all(page, folder, trained, monkeypatch):
    values = np.random.RandomState(0).uniform(size=(30, 3))
    at_hand = {"readings": values, "names": ["a", "b", "c"], "W": np.ones((3, 3)) - np.eye(3)}
    at_hand |= {"times": pd.date_range("2024-01-01", periods=30, freq="h"), "pandas": pd, "numpy": np, "scipy": scipy}
    at_hand |= {"networkx": networkx, "xarray": xarray, "pickle": pickle}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, text in blocks(page):
            assert kind in KINDS
            if kind == "sh":
                for line in filter(None, text.splitlines()):
                    if not asks_for_data(line):
                        run(line, folder, trained, monkeypatch)
            elif kind == "python" and page.stem != "benchmark":  # that one is run by tests/test_bench.py
                needs = contextlib.suppress(ImportError) if "to_hdf" in text else contextlib.nullcontext()
                with needs:  # pandas writes HDF5 through a package of its own
                    exec(compile(text, page.name, "exec"), at_hand)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "tutorial"], ids=lambda page: page.stem)
def test_every_block_runs(page, folder, trained, monkeypatch):
    run_all(page, folder, trained, monkeypatch)


@pytest.mark.skipif(not os.environ.get("GRCD_DATA"), reason="GRCD_DATA does not name a folder with the data")
@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in lines(page) if asks_for_data(line)}))
def test_every_line_about_the_real_data_runs(line, folder, trained, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(line, folder, trained, monkeypatch)


def test_the_tutorial_runs_and_ends_with_what_it_promises(folder, trained, monkeypatch, capsys):
    run_all(ROOT / "docs/tutorial.md", folder, trained, monkeypatch)
    said = capsys.readouterr().out
    assert "5 nearest neighbours of positions (great-circle" in said
    assert "floor" in said
    assert (folder / "look.png").read_bytes().startswith(b"\x89PNG")
    samples, readings = pd.read_csv("new.csv"), pd.read_csv("readings.csv").iloc[:, 1:]
    assert sorted(samples.columns) == sorted(readings.columns)
    assert np.isfinite(samples).all(axis=None)
    assert abs(samples.mean() - readings[:1008].mean()).max() < 2.0  # degrees


def anchors(page):
    """How headings are linked to."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    for target in targets:
        if re.match(r"https?://", target):
            continue
        path, _, heading = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not heading or heading in anchors(there), target


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_is_named_is_there(page):
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
        assert any((root / name).exists() for root in (ROOT, ROOT / "src/grcd")), name


def test_every_symbol_is_in_the_module_that_the_table_says():
    table = [line.split(" | ") for line in (ROOT / "docs/symbols.md").read_text().splitlines() if ".py`" in line]
    for _, code, _, where, *_ in filter(lambda cells: len(cells) > 3, table):
        text = "".join((ROOT / "src/grcd" / module).read_text() for module in re.findall(r"`(.+?)`", where))
        for name in re.findall(r"`(?:\w+\.)?(\w+)(?:\(.*?\))?`", code):  # of `Gaussian.phi(q1, q0)`: phi
            assert re.search(rf"(def {name}\b|self\.{name}\b|\b{name}: |\b{name} = )", text), name


def test_every_page_can_be_found_from_the_first_one():
    seen, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        seen.add(page)
        found = (
            (page.parent / target.partition("#")[0]).resolve()
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        )
        queue += [path for path in found if path.suffix == ".md" and path.is_file() and path not in seen]
    assert set(PAGES) <= seen


def test_the_examples_are_what_their_script_makes(tmp_path, monkeypatch):
    source = (ROOT / "examples/make.py").read_text()
    namespace = {"__file__": str(tmp_path / "make.py"), "__name__": "made"}
    exec(compile(source, "make.py", "exec"), namespace)
    namespace["main"]()
    for name in ("readings.csv", "stations.csv"):
        made, kept = pd.read_csv(tmp_path / name), pd.read_csv(ROOT / "examples" / name)
        assert made.columns.tolist() == kept.columns.tolist()
        assert made.iloc[:, 0].tolist() == kept.iloc[:, 0].tolist()
        assert np.allclose(
            made.iloc[:, 1:], kept.iloc[:, 1:], atol=0.11, equal_nan=True
        )  # a tenth: rounding of libraries
