"""Rows that a contest is held on: which they are, how often, and what is read around them."""

import numpy as np

from grcd.data.series import Series
from grcd.evaluation import held_rows


def test_pieces_are_rows_of_the_series_evenly_chosen():
    series = Series(np.arange(120.0)[:, None, None], borders=(50,))
    found, times = held_rows.pieces(series, 12, 40)
    assert times == 1
    assert len(found) <= 48
    assert {s.stop - s.start for s in found.stretches} <= {*range(8, 14)}
    assert np.isin(found.values, series.values).all()
    assert (np.diff(found.values.ravel()) > 0).all()
    assert all((np.diff(found.values[s].ravel()) == 1).all() for s in found.stretches)
    found, times = held_rows.pieces(series, 12, 300)  # few rows, and twice
    assert times == 2
    assert np.array_equal(found.values, np.concatenate(2 * [series.values]))


def test_validation_rows_beyond_the_network_s_are_others_and_without_it():
    series = Series(np.arange(400.0)[:, None, None])
    (first, times, network, inside), (more, again, without, _) = held_rows.of_validation(series, 12, 300, 50)
    assert inside.all()
    assert (network, without, times, again) == (True, False, 1, 1)
    assert 40 <= len(first) <= 62
    assert 200 <= len(more) <= 270
    assert not np.isin(first.values, more.values).any()
    ((only, _, network, _),) = held_rows.of_validation(series, 12, 300, 0)
    assert not network
    assert 250 <= len(only) <= 320


def test_stretches_of_training_rows_are_filled_with_what_is_read_around_them():
    series = Series(np.arange(60.0)[:, None, None] + np.zeros((60, 2, 1)), borders=(20,))
    seen = np.zeros(60, dtype=int)
    for wider, others, inside in held_rows.stretches(series, 3):
        around, times, network, marked = held_rows.around(series, wider, inside, 30)
        rows = around.values[: len(around) // times, 0, 0].astype(int)
        assert not network
        assert np.array_equal(marked[: len(rows)], inside[rows])
        assert not (inside[np.concatenate([np.arange(60)[s] for s in others])]).any()
        beyond = {int(row) for row in rows[~inside[rows]]}  # up to three on each side, none beyond the border
        ends = np.flatnonzero(np.diff(inside.astype(int), prepend=0, append=0))
        for first, stop in zip(ends[::2], ends[1::2], strict=True):
            before, after = (20 if first >= 20 else 0), (20 if stop <= 20 else 60)
            beyond -= {*range(max(before, first - 3), first)} | {*range(stop, min(after, stop + 3))}
        assert not beyond
        seen[rows[inside[rows]]] += 1
    assert (seen == 1).all()
