"""Reasons find what they are for, and those that nothing needs any more are noticed."""

import pytest

from grcd.bench.reasons import parsed, unexplained
from grcd.core.errors import InputError

PAGE = """Words before the first title are nobody's.

### How long to train
Covers: main/sbm-*/edm/*, `claim/5.4-strongest`
Cells of: 2026-11-15

Not long enough: {main/sbm-c1/edm/64}.

A second paragraph, with ### in it.

### Luck
Covers: main/molene/*/16
Cells of: 2026-11-16

Of the draw.
"""


def test_a_reason_has_a_title_places_a_day_and_prose():
    first, second = parsed(PAGE)
    assert (first.title, first.covers, first.day) == (
        "How long to train",
        ("main/sbm-*/edm/*", "claim/5.4-strongest"),
        "2026-11-15",
    )
    assert first.text == "Not long enough: {main/sbm-c1/edm/64}.\n\nA second paragraph, with ### in it."
    assert (second.title, second.text) == ("Luck", "Of the draw.")


def test_numbers_are_filled_in():
    first, second = parsed(PAGE)
    assert first.filled(lambda place: f"<{place}>").startswith("Not long enough: <main/sbm-c1/edm/64>.")
    assert second.filled(str.upper) == second.text


def test_what_is_off_is_explained_by_the_reasons_that_cover_it():
    reasons = parsed(PAGE)
    off = ["main/sbm-c1/edm/64", "main/sbm-c1/edm-2/64", "main/molene/gad/16", "claim/5.4-strongest", "claim/5.4"]
    assert [reason.of(off) for reason in reasons] == [[off[0], off[3]], [off[2]]]
    assert unexplained(reasons, off) == [off[1], off[4]]
    assert [reason.idle(off) for reason in reasons] == [[], []]


def test_a_reason_whose_cells_came_into_band_is_idle():
    reasons = parsed(PAGE)
    off = ["claim/5.4-strongest"]
    assert [reason.idle(off) for reason in reasons] == [["main/sbm-*/edm/*"], ["main/molene/*/16"]]
    assert [reason.of(off) for reason in reasons] == [off, []]
    assert unexplained(reasons, []) == []


@pytest.mark.parametrize(("line", "missing"), [("Covers", "what it covers"), ("Cells of", "the day of its cells")])
def test_a_reason_without_its_places_or_its_day_is_refused(line, missing):
    page = "\n".join(text for text in PAGE.splitlines() if not text.startswith(line))
    with pytest.raises(InputError, match=missing):
        parsed(page)
