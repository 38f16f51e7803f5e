"""Gaps of a table by family, and hidden readings that are as long as they."""

import numpy as np

from grcd.data.series import Series
from grcd.evaluation import hiding


def naive_runs(gap, stretches):
    """Rows of the gap that each entry is part of, one entry at a time."""
    length = np.zeros(gap.shape, dtype=int)
    for s in stretches:
        for row in range(s.start, s.stop):
            for column in np.flatnonzero(gap[row]):
                first, stop = row, row + 1
                while first > s.start and gap[first - 1, column]:
                    first -= 1
                while stop < s.stop and gap[stop, column]:
                    stop += 1
                length[row, column] = stop - first
    return length


def test_gaps_are_as_long_as_they_are_and_end_at_breaks():
    random = np.random.RandomState(0)
    gap = random.random_sample((60, 5)) < 0.6
    series = Series(np.where(gap, np.nan, 1.0)[..., None], borders=(13, 40))
    assert np.array_equal(hiding.runs(series)[..., 0], naive_runs(gap, series.stretches))


def test_short_gaps_are_points_long_ones_sensors():
    x = np.ones((60, 4, 1))
    x[3:5, 0], x[10:20, 0] = np.nan, np.nan  # two rows, then ten
    x[5:40, 1] = np.nan  # longer than four windows of eight
    x[:, 2] = np.nan
    found = hiding.families(Series(x), 8)
    assert [int(found[row, column, 0]) for row, column in ((3, 0), (12, 0), (6, 1), (0, 2), (0, 0), (9, 3))] == [
        0, 1, 2, 2, -1, -1,
    ]  # fmt: skip
    lengths = [int(hiding.families(Series(np.where(np.arange(60) < k, np.nan, x[:, 3, 0])[:, None, None]), 36)[0, 0, 0])
               for k in (1, 3, 4, 17)]  # fmt: skip
    assert lengths == [0, 0, 1, 1]  # of a long window, too
    # A stretch without a reading is silent, however short.
    assert (hiding.families(Series(x[:4], borders=(3,)), 8)[3:, 0] == 2).all()


def test_spells_are_as_long_as_those_of_the_table():
    x = np.ones((400, 6, 1))
    for k in range(20):
        x[20 * k + 2 : 20 * k + 9, k % 6] = np.nan
    lengths = hiding.spells(Series(x), 8)
    assert lengths.tolist() == [7] * 20
    hidden = hiding.hidden("spells", Series(np.ones((400, 6, 1))), 8, 1, lengths)
    ends = naive_runs(hidden[..., 0], [slice(0, 400)])
    inside = hidden[..., 0] & (np.arange(400) < 380)[:, None]
    assert inside.any()
    assert (ends[inside] >= 7).all()
    assert 0.05 < hidden.mean() < 0.2
    assert hiding.spells(Series(x[:150]), 8) is None  # too few to tell


def test_one_of_several_channels_is_silent_and_such_gaps_are_told_from_silent_sensors():
    there = np.random.RandomState(0).random_sample((50, 20, 3)) < 0.9
    series = Series(np.where(there, 1.0, np.nan))
    hidden = hiding.hidden("channels", series, 8, seed=3)
    silent = (hidden == there).all(axis=0)  # (nodes, channels)
    assert (silent.sum(axis=1) <= 1).all()
    assert silent.sum() == 4  # twice a tenth of the nodes
    assert np.array_equal(hidden, there & silent)
    assert not hiding.hidden("channels", Series(np.ones((50, 20, 1))), 8).any()
    x = np.where(silent, np.nan, np.ones((50, 20, 3)))
    other = int(silent.any(axis=1).argmin())
    x[:, other], x[7, silent.any(axis=1)] = np.nan, np.nan  # a sensor, and a row of which nothing was read
    found = hiding.families(Series(x), 8)
    assert (found[:, other] == 2).all()
    assert (found[:, silent][np.arange(50) != 7] == 3).all()
    assert (found[7, silent] == 2).all()  # nothing beside it


def test_of_one_channel_nothing_is_beside_a_gap():
    assert (hiding.families(Series(np.full((30, 4, 1), np.nan)), 8) == 2).all()
