"""Tables as text, letter by letter."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core import tables
from grcd.core.errors import InputError

LINES = [["name", "a_b", "5 %"], ["x & y", "**1.5 +- 0.1**", "-"]]


def test_the_same_lines_in_every_format():
    assert tables.markdown(LINES).splitlines() == [
        "| name | a_b | 5 % |",
        "| --- | --- | --- |",
        "| x & y | **1.5 +- 0.1** | - |",
    ]
    assert tables.render("md", [("one", LINES), ("two", LINES[:1])], "Words.", []) == (
        f"Words.\n\n### one\n\n{tables.markdown(LINES)}\n\n### two\n\n| name | a_b | 5 % |\n| --- | --- | --- |\n"
    )
    assert tables.render("tex", [("one", LINES)], "Words.", []).splitlines() == [
        "% one",
        r"\begin{tabular}{lcc}",
        r"name & a\_b & 5 \% \\ \hline",
        r"x \& y & \textbf{1.5 $\pm$ 0.1} & - \\",
        r"\end{tabular}",
    ]
    assert tables.aligned([["", "a"], ["long name", "1.5"]], 5) == " " * 22 + "    a\nlong name" + " " * 13 + "  1.5"
    with pytest.raises(InputError, match="format 'html'"):
        tables.render("html", [], "", [])


def test_bodies_of_a_latex_table_are_apart_and_it_is_as_wide_as_it_should():
    assert tables.latex("t", ["h"], [], [["a", "1"]], columns=2).splitlines() == [
        *("% t", r"\begin{tabular}{lc}", r"h \\ \hline", r"\hline", r"a & 1 \\", r"\end{tabular}"),
    ]


def test_html_escapes_its_cells_and_marks_one_line():
    text = tables.html(["<h>"], [["a & b"], ["c"]], kind="facts", own=1)
    assert "<th>&lt;h&gt;</th>" in text
    assert '<tr class=""><td dir="auto">a &amp; b</td></tr><tr class="own"><td dir="auto">c</td></tr>' in text
    assert "<thead>" not in tables.html([], [["a"]])


@examples(30)
@given(
    lines=st.lists(st.lists(st.text(st.characters(exclude_characters="\r\n\0"), min_size=1), min_size=1), min_size=1)
)
def test_what_is_comma_separated_is_read_back(lines):
    assert list(csv.reader(io.StringIO(tables.comma_separated(lines)))) == lines
