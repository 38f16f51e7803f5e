"""The record of where signals came from: written under the keys that runs have always had, and nothing is lost."""

import json
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.data.notes import Note
from grcd.data.origin import Origin

names = st.text(string.ascii_lowercase, min_size=1, max_size=6)
values = st.none() | st.booleans() | st.floats(allow_nan=False) | names | st.lists(st.integers(), max_size=3)
records = st.dictionaries(
    names | st.sampled_from(["source", "unit", "markers", "fill", "split_by", "asked", "command"]),
    values.filter(lambda value: value is not None),
)


@examples(100)
@given(record=records)
def test_what_a_run_holds_comes_back_as_it_was(record):
    kept = Origin.of(json.loads(json.dumps(record))).to_dict()
    assert kept.pop("split_seed", None) is None
    assert kept == record


def test_the_keys_in_a_run_are_what_they_have_always_been(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    x[3, 1] = -1.0
    np.savez(tmp_path / "x.npz", signals=x, adjacency=np.ones((3, 3)) - np.eye(3), unit="mph")
    with pytest.warns(grcd.core.errors.InputWarning, match="missing"):
        data = grcd.load_dataset(tmp_path / "x.npz", missing=-1, fill="mean", split_by="random", split_seed=3, cap=20)
    assert data.facts == {
        "source": str(tmp_path / "x.npz"),
        "unit": "mph",
        "missing": 1 / 120,
        "markers": [-1.0],
        "fill": "mean",
        "split_by": "random",
        "split_seed": 3,
        "files": {},
        "cap": [20],
    }
    assert grcd.load_dataset("sbm-c1").facts == {}


def test_a_run_remembers_and_what_it_does_not_say_is_unknown():
    manifest = {"data": {"name": "x", "made": {"unit": "mph", "asked": {"source": "x.csv"}, "command": "grcd train"}}}
    origin = Origin.of_run(manifest)
    assert (origin.unit, origin.options, origin.command) == ("mph", {"source": "x.csv"}, "grcd train")
    assert origin.prepared() == {"unit": "mph"}
    assert Origin.of_run({}) == Origin.of_run({"data": {"name": "old"}}) == Origin()


def test_a_note_is_one_sentence_in_two_parts():
    note = Note("the times: sorted", "nothing: they are right")
    assert (note, note.what, note.do) == ("the times: sorted: nothing: they are right", note.what, note.do)
    assert (note.what, note.do) == ("the times: sorted", "nothing: they are right")
    assert str(Note("2 rows left out")) == "2 rows left out"
