"""The demo: its table holds what was measured, its words say who won, and its page begins with what it did."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from browser import in_browser, told
from pages import Parsed

import grcd
from grcd.cli import demo
from grcd.core.errors import InputWarning
from grcd.data import load_series
from grcd.data.catalog import city
from grcd.data.catalog.named import Generated
from grcd.data.options import Options
from grcd.data.series import Series
from grcd.evaluation import hiding, windows
from grcd.evaluation.ammd import Scores
from grcd.evaluation.guesses import Guesses
from grcd.report.material_in_time import OURS, REFERENCE

TINY = {"width": 8, "blocks": 1, "heads": 2, "max_updates": 2, "validate_every": 1, "pool": 16}


def guessed(truth, **draws):
    n = len(truth)
    parts = {name: np.zeros(n, dtype=int) for name in ("row", "node", "channel", "lead")}
    named = {method: np.array(values, dtype=float) for method, values in draws.items()}
    return Guesses(np.array(truth, dtype=float), **parts, group=np.arange(n), draws=named)


def scored(value, floor):
    parts = dict.fromkeys(("quadratic_variation", "spectral_centroid", "degree_correlation"), 0.0)
    return Scores(value, **parts, n=2, floor=Scores(floor, **parts, n=2))


def material(ours, network=True, reference=(11, 23)):
    """Three draws of ours at 10 and 20; the last value is 2 off and nothing is foretold by a line."""
    draws = {OURS: ours, REFERENCE: [list(reference)] * 3, "line": [[10, 23]], "last": [[12, 22]]}
    g = guessed([10, 20], **draws)
    ahead = guessed([10, 20], **{method: draws[method] for method in (OURS, REFERENCE, "last")})
    gaps = {"points": g, "spells": g, "sensors": g, "outages": g}
    model = SimpleNamespace(result={"network": network})
    return SimpleNamespace(gaps=gaps, ahead=ahead, data=SimpleNamespace(units=("km/h",)), model=model)


def test_every_family_of_gaps_has_its_column():
    """Of several channels there is one family more, and the city has one."""
    assert {*demo.COLUMNS} == {*hiding.KINDS, "future"} - {"channels"}


def test_the_table_is_what_a_hand_computes():
    shown = material([[9, 21], [10.5, 21], [40, 20]])  # medians 10.5 and 21
    lines = demo.table(shown, {OURS: scored(0.25, 0.0125), REFERENCE: scored(0.5, 0.0125)})
    assert lines[0] == ["km/h, and aMMD", "scattered", "spells", "silent", "outages", "two hours", "days"]
    assert lines[1:] == [
        ["GRCD", *["0.75"] * 5, "0.250"],  # (0.5 + 1) / 2
        ["its reference alone", *["2.00"] * 5, "0.500"],  # (1 + 3) / 2
        ["a line in time", *["1.50"] * 4, "-", "-"],
        ["the last value", *["2.00"] * 5, "-"],
        [demo.FLOOR, *["-"] * 5, "0.013"],
    ]


@pytest.mark.parametrize(
    ("ours", "reference", "network", "days", "words"),
    [
        ([[10, 20]] * 3, (12, 22), True, 0.1, "The network pays: scattered (+2.00 +- 0.00), spells"),
        ([[10, 20]] * 3, (12, 22), True, 0.9, "there the reference alone is nearer"),
        ([[10, 20]] * 3, (11, 23), True, 0.1, "It cannot be told: scattered (+2.00 +- 2.00), spells"),
        ([[15, 25]] * 3, (12, 22), True, 0.1, "The reference alone is nearer: scattered (-3.00 +- 0.00), spells"),
        ([[10, 20]] * 3, (12, 22), False, 0.1, "the reference is used alone"),
    ],
)
def test_the_words_say_who_won(ours, reference, network, days, words):
    shown = material(ours, network, reference)
    said = demo.verdict(shown, {OURS: scored(days, 0.0), REFERENCE: scored(0.5, 0.0)})
    assert words in said[-1]
    assert ("The network pays" in " ".join(said)) == (network and ours[0][0] == 10 and reference == (12, 22))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Nine days of the city, windows of four rows, and a network that has hardly begun."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    few = Generated(name="city", about="", make=lambda: city.load(days=9))
    data = few.series(Options())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "load_series", lambda name: data)
        patch.setattr(demo, "SETTINGS", TINY)
        patch.setattr(demo, "WINDOW", 4)
        with pytest.warns(InputWarning, match="the reference is used alone"):
            lines = demo.demo(folder)
    return folder, data, lines


def test_everything_is_left_where_it_says(small):
    folder, data, lines = small
    assert {path.name for path in folder.iterdir()} == {"run", "readings.csv", "first-look.png", "report.html"}
    again = load_series(folder / "readings.csv", data.graph)
    assert np.array_equal(again.series.values, data.series.values, equal_nan=True)
    page = (folder / "report.html").read_text()
    assert "grcd demo" in page
    errors = next(table for table in Parsed(page).tables if table[0][0] == "mean absolute error")
    own = {row[0].partition(" (")[0]: row for row in errors[1:]}
    families = ("scattered readings", "silent spells", "silent sensors", "rows of which nothing was read")
    for column, family in enumerate(families, 1):
        assert float(lines[1][column]) == pytest.approx(float(own[family][1]), rel=0.01)
    scores = next(table for table in Parsed(page).tables if table[0][1] == "aMMD")
    assert float(scores[1][1]) == pytest.approx(float(lines[1][6]), abs=6e-4)  # rounded to three places, and to four
    assert float(scores[2][1]) == pytest.approx(float(lines[-1][6]), abs=6e-4)


@in_browser
def test_the_first_screen_shows_a_gap_a_forecast_and_some_hours(small, tmp_path):
    page = (small[0] / "report.html").read_text()
    measure = """document.title = JSON.stringify([...document.querySelectorAll(".first figure")].map((figure) =>
      [figure.getAttribute("aria-label"), figure.querySelector("svg").getBoundingClientRect().bottom]))"""
    shown = dict(json.loads(told(page, tmp_path, measure)))
    assert [*shown] == [
        "A gap filled, with its band",
        "A forecast, with its band",
        "Some hours, held-out and generated",
    ]
    assert max(shown.values()) <= 900
    assert page.index('class="first"') < page.index("<nav>")


def test_generated_days_are_the_held_out_ones_from_nothing(small, monkeypatch):
    """Cut where held-out windows are cut, and drawn without a look at a single reading."""
    folder, data, _ = small
    monkeypatch.setattr(demo, "WINDOW", 4)
    model = grcd.load(folder / "run", "cpu")
    made = demo.histories(model, data, seed=0)
    test = data.part("test")
    assert len(made) == demo.HISTORIES * len(windows.cut(test, 4))
    hidden = Series(np.full_like(data.series.values, np.nan), data.series.times, data.series.borders)
    blind = type(data)(data.name, hidden, data.graph, data.channels, data.units, data.splits)
    assert np.array_equal(demo.histories(model, blind, seed=0), made)
