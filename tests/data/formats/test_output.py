"""Whole numbers in text: without a decimal point, and never touched otherwise."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.data.formats.output import without_points
from grcd.data.formats.writing import write_signals

CELLS = st.one_of(st.integers(-(2**53) + 1, 2**53 - 1).map(float), st.floats(-1e6, 1e6), st.just(np.nan))


@examples(100)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_numbers_are_the_same_and_whole_tables_have_no_point(rows):
    frame = pd.DataFrame(rows, columns=["a", "b"], dtype=float)
    text = without_points(frame.copy()).to_csv(index=False)
    cells = [line.split(",") for line in text.splitlines()[1:]]
    read = np.array([[float(cell or "nan") for cell in row] for row in cells])
    assert np.array_equal(read, frame.to_numpy(), equal_nan=True)
    seen = frame.to_numpy()[frame.notna().to_numpy()]
    points = any("." in cell or "e" in cell for row in cells for cell in row)
    assert points == bool((seen != np.rint(seen)).any())


def test_each_variable_of_a_long_table_by_itself():
    cells = {"time": [0.0, 0.0, 1.0, 1.0], "node": list("aaaa"), "variable": ["n", "t", "n", "t"]}
    frame = without_points(pd.DataFrame(cells | {"value": [3.0, 2.5, 4.0, 2.0]}))
    lines = frame.to_csv(index=False).splitlines()[1:]
    assert lines == ["0.0,a,n,3", "0.0,a,t,2.5", "1.0,a,n,4", "1.0,a,t,2.0"]


def test_a_file_of_counts(tmp_path):
    write_signals(tmp_path / "x.csv", np.array([[1.0, 2.5], [0.0, 3.0]]), ("a", "b"))
    assert (tmp_path / "x.csv").read_text().splitlines() == ["a,b", "1.0,2.5", "0.0,3.0"]  # all alike
    write_signals(tmp_path / "x.csv", np.array([[1.0, 2.0], [0.0, 3.0]]), ("a", "b"))
    assert (tmp_path / "x.csv").read_text().splitlines() == ["a,b", "1,2", "0,3"]
