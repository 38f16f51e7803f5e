"""Splits: every row in exactly one, in the usual proportions, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.core.errors import InputError
from grcd.core.rows import evenly
from grcd.data import splits
from grcd.data.options import Options


def test_the_papers_counts():
    sizes = {n: [part.stop - part.start for part in splits.cut(n).values()] for n in (34_272, 744, 10)}
    assert sizes == {34_272: [23_990, 3_427, 6_855], 744: [520, 74, 150], 10: [7, 1, 2]}


@examples(100)
@given(st.integers(1, 500), st.integers(0, 9))
def test_each_row_is_in_one_split(n, seed):
    rows = np.arange(n)
    for parts in (splits.cut(n), splits.drawn(n, seed)):
        assert sorted(np.concatenate([rows[part] for part in parts.values()])) == rows.tolist()
    for name, part in splits.cut(n).items():
        assert len(rows[part]) == len(splits.drawn(n, seed)[name])


def test_a_random_split_depends_on_its_seed_alone():
    one, same, other = (splits.drawn(200, seed)["train"] for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, np.arange(140))


def test_files_of_their_own_leave_the_rest_in_proportion():
    assert splits.cut(80, ("train", "val")) == {"train": slice(0, 70), "val": slice(70, 80)}
    assert splits.cut(90, ("train", "test")) == {"train": slice(0, 70), "test": slice(70, 90)}


def test_labels_name_the_split():
    labels = np.array(["Train", "test", "validation", "train ", "TEST"])
    found = splits.labelled(labels, "x.csv")
    assert {name: rows.tolist() for name, rows in found.items()} == {"train": [0, 3], "val": [2], "test": [1, 4]}
    with pytest.raises(grcd.InputError, match="'holdout'"):
        splits.labelled(np.array(["train", "holdout"]), "x.csv")
    with pytest.raises(grcd.InputError, match="no rows for val"):
        splits.labelled(np.array(["train", "test"]), "x.csv")


def test_caps_are_evenly_spaced():
    assert evenly(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly(11, 4).tolist() == [0, 3, 6, 10]  # linspace 0, 3.33, 6.67, 10, truncated


def test_another_share_is_held_out_two_rows_at_least_and_of_the_others_an_eighth_validates():
    assert splits.cut(90, hold_out=0.1) == {"train": slice(0, 70), "val": slice(70, 81), "test": slice(81, 90)}
    assert splits.cut(82, hold_out=0.0) == {"train": slice(0, 70), "val": slice(70, 80), "test": slice(80, 82)}
    assert splits.cut(100, ("train", "test"), 0.5) == {"train": slice(0, 50), "test": slice(50, 100)}
    assert [len(part) for part in splits.drawn(90, 3, hold_out=0.1).values()] == [70, 11, 9]


REFUSED = [{"hold_out": share} for share in (1.0, -0.1, float("nan"))]


@pytest.mark.parametrize("options", [*REFUSED, {"hold_out": 0.1, "test": "x"}, {"hold_out": 0.1, "split_by": "part"}])
def test_a_share_that_cannot_be_held_out_is_refused(options):
    with pytest.raises(InputError, match="hold_out"):
        Options.of(options)
