"""What `make dist` and `make docs` build: a wheel for any environment, and pages without a broken link."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
USE = """
import grcd, importlib.metadata, numpy, pathlib, sys
assert importlib.metadata.version("grcd") == grcd.__version__
ring = numpy.roll(numpy.eye(6), 1, axis=0)
x = numpy.random.RandomState(0).standard_normal((60, 6)) + 20
model = grcd.GRCD(ring + ring.T, device="cpu", backbone="none").fit(x[:40], x[40:])
model.save("run")
assert grcd.load("run").sample(5).shape == (5, 6)
print(pathlib.Path(grcd.__file__).parent)
"""


def built(kind, folder):
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return next(folder.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def sources():
    files = (path for path in (ROOT / "src/grcd").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT / "src")) for path in files}


def test_the_wheel_is_used_in_an_environment_of_its_own(tmp_path):
    """Beside the libraries of this one, but without its grcd."""
    wheel = built("wheel", tmp_path)
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("grcd/")}
    assert inside == sources()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, timeout=300)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    home = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")}))
    # Named in a .pth file, a folder's own .pth files do not count: an editable grcd in it is not found.
    places = dict.fromkeys(place for place in sys.path if Path(place).name in ("site-packages", "dist-packages"))
    (home / "libraries.pth").write_text("".join(f"{place}\n" for place in places))
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--no-compile", str(wheel)], check=True, env=alone, capture_output=True, timeout=300)
    version = [python.parent / "grcd", "--version"]
    said = subprocess.run(version, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=300).stdout
    assert said == f"grcd {VERSION}\n"
    used = subprocess.run([python, "-c", USE], cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=300)
    assert used.returncode == 0, used.stderr
    assert Path(used.stdout.strip()) == home / "grcd"


def test_the_source_distribution_holds_what_builds_and_tests_it(tmp_path):
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} <= names
    assert {"pyproject.toml", "Makefile", "constraints.txt", "README.md", "CONTRIBUTING.md", "LICENSE"} <= names
    assert {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")} <= names


def test_the_changelog_begins_with_this_version():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first[1] == VERSION


def test_every_page_is_in_the_contents_and_every_public_name_on_the_api_page():
    import grcd

    listed = {line for line in (ROOT / "docs/index.md").read_text().splitlines() if re.fullmatch(r"[\w./-]+", line)}
    pages = {path.stem for path in (ROOT / "docs").iterdir() if path.suffix in (".md", ".rst")} - {"index"}
    assert {name for name in listed if not name.startswith("..")} == pages
    beside = {name.removeprefix("../") for name in listed if name.startswith("..")}
    assert beside == {"CHANGELOG", "CONTRIBUTING"} | {
        f"results/{path.stem}" for path in (ROOT / "results").glob("*.md")
    }
    shown = set(re.findall(r"^\.\. auto\w+:: grcd\.([\w.]+)$", (ROOT / "docs/api.rst").read_text(), re.MULTILINE))
    assert {*grcd.__all__} <= shown
    for name in shown:
        home, _, last = f"grcd.{name}".rpartition(".")
        assert getattr(__import__(home, fromlist=[last]), last).__doc__


def test_the_pages_are_built_without_a_warning_and_without_a_broken_link(tmp_path):
    pytest.importorskip("sphinx", reason="Sphinx is not installed; make docs brings it")
    pytest.importorskip("furo", reason="furo, the theme of the pages, is not installed")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "--conf-dir", "docs", ".", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "docs/api.html").read_text()
    assert all(f'id="grcd.GRCD.{name}"' in api for name in ("fit", "sample", "impute", "forecast", "predict_df"))
    assert (tmp_path / "searchindex.js").read_text().startswith("Search.setIndex(")
    if browser := shutil.which("chromium") or shutil.which("google-chrome"):  # the search works from a folder
        quiet = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
        asked = [*quiet, f"--user-data-dir={tmp_path / 'profile'}", f"{(tmp_path / 'search.html').as_uri()}?q=impute"]
        assert 'href="docs/filling.html' in subprocess.run(asked, capture_output=True, text=True, timeout=300).stdout
