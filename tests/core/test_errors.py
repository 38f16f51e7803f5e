"""Advice speaks of options on the command line, and of keywords in Python."""

import pytest

from grcd.core import errors
from grcd.core.errors import InputError, counted


@pytest.mark.parametrize(
    ("advice", "keywords"),
    [
        ("leave those nodes out (--drop NAME), or --split-by a column", " (in Python: drop=, split_by=)"),
        ("take posterior='reference' (--posterior reference)", ""),
        ("lower the batch (--set batch=...), or name the file with --data", ""),
        ("add edges, or --neighbours", " (in Python: k=)"),
        ("2024-01-02 -- or a number", ""),
    ],
)
def test_keywords_of_options_are_named_where_no_command_runs(monkeypatch, advice, keywords):
    error = InputError("this", "that", advice)
    monkeypatch.setattr(errors, "commands", False)
    assert str(error) == f"got this\nexpected that\nto fix: {advice}{keywords}"
    monkeypatch.setattr(errors, "commands", True)
    assert str(error) == f"got this\nexpected that\nto fix: {advice}"


def test_a_command_leaves_python_as_it_was(here, tmp_path):
    before = errors.commands
    said = here("data", "inspect", "nothing.csv", "--drop", "a", cwd=tmp_path).stderr
    assert "in Python" not in said
    assert errors.commands == before


def test_what_is_counted_is_one_or_several():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [counted(n, "node has", "nodes have") for n in (1, 2)] == ["1 node has", "2 nodes have"]
