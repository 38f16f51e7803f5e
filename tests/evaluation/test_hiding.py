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
    lengths = hiding.lengths(Series(x), 8)["spells"]
    assert lengths.tolist() == [7] * 20
    hidden = hiding.hidden("spells", Series(np.ones((400, 6, 1))), 8, 1, lengths)
    ends = naive_runs(hidden[..., 0], [slice(0, 400)])
    inside = hidden[..., 0] & (np.arange(400) < 380)[:, None]
    assert inside.any()
    assert (ends[inside] >= 7).all()
    assert 0.05 < hidden.mean() < 0.2
    assert not hiding.lengths(Series(x[:150]), 8)  # too few to tell


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


def test_an_outage_takes_whole_rows_a_tenth_of_all_and_never_all_of_a_stretch():
    there = np.random.RandomState(0).random_sample((600, 5, 2)) < 0.9
    series = Series(np.where(there, 1.0, np.nan))
    hidden = hiding.hidden("outages", series, 12, seed=3)
    down = hidden.any(axis=(1, 2))
    assert np.array_equal(hidden, there & down[:, None, None])
    of_seeds = [hiding.hidden("outages", series, 12, seed).any(axis=(1, 2)).mean() for seed in range(40)]
    assert 0.08 < np.mean(of_seeds) < 0.11
    found = hiding.runs(Series(np.where(down, np.nan, 1.0)[:, None, None]))[down]
    assert found.min() == 1
    assert found.max() <= 12  # two of six, one after the other
    for rows in (2, 3, 9):
        some = hiding.hidden("outages", Series(np.ones((rows, 4, 1))), 30, seed=rows).any(axis=(1, 2))
        assert 0 < some.sum() <= max(1, rows // 2) + 1
        assert not some.all()
    own = hiding.hidden("outages", series, 12, 3, np.full(10, 5)).any(axis=(1, 2))
    found = hiding.runs(Series(np.where(own, np.nan, 1.0)[:, None, None]))[:, 0, 0]
    assert (found[:595][own[:595]] >= 5).all()


def test_a_row_of_which_next_to_nothing_was_read_is_part_of_an_outage():
    x = np.ones((200, 40, 1))
    x[:, 7] = np.nan  # a silent sensor: 39 others
    x[20:23], x[50, 1:], x[60, 2:] = np.nan, np.nan, np.nan  # one of 39 is less than a twentieth, two are not
    place = hiding.KINDS.index("outages")
    found = hiding.families(Series(x), 8)[..., 0]
    others = np.delete(found, 7, axis=1)
    assert (others[20:23] == place).all()
    assert (others[50, 1:] == place).all()
    assert (others[60, 2:] == 0).all()
    assert (found[:, 7] == 2).all()
    assert not (hiding.families(Series(x[:, :1]), 8) == place).any()  # of one column nothing is beside it
    for row in range(80, 180, 9):
        x[row : row + 4] = np.nan
    assert np.array_equal(hiding.lengths(Series(x), 8)["outages"], [1, 3] + 12 * [4])


def test_a_long_outage_is_no_silent_sensor():
    x = np.ones((200, 6, 2))
    x[30:130] = np.nan
    found = hiding.families(Series(x), 8)
    assert (found[30:130] == hiding.KINDS.index("outages")).all()
