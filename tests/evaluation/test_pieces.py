"""What is asked of a method, and how its answers are added up: against sums over single readings."""

import numpy as np
import pytest
import torch
from laws import close

from grcd.data.series import Series
from grcd.evaluation import protocol
from grcd.evaluation.pieces import Pieces
from grcd.evaluation.tally import Tally
from grcd.metrics.ensemble import energy

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00:00", "s")


def walk(rows=110, nodes=3, channels=2, gaps=0.1, borders=(), seed=0):
    random = np.random.RandomState(seed)
    x = 20 + np.cumsum(random.standard_normal((rows, nodes, channels)), axis=0)
    x[random.random_sample(x.shape) < gaps] = np.nan
    return Series(x, START + np.arange(rows) * HOUR, borders)


def hidden(series, share=0.3):
    return np.random.RandomState(9).random_sample(series.values.shape) < share


KINDS = {
    "covering": lambda s: Pieces.covering(s, hidden(s), 8),
    "overlapping": lambda s: Pieces.covering(s, hidden(s), 8, 2, channel=1),
    "ends": lambda s: Pieces.ends(s, np.array([30, 44, 110]), 10, hidden(s)[:30].reshape(3, 10, 3, 2)),
    "ahead": lambda s: Pieces.ahead(s, np.arange(40, 90)[:, None] + np.arange(12), 5, channel=1),
}


@pytest.fixture(params=KINDS)
def pieces(request):
    return KINDS[request.param](walk(borders=(50,)))


@pytest.mark.parametrize("margin", [0, 1, 3])
def test_every_hidden_reading_that_was_recorded_is_scored_once(margin):
    series = walk(borders=(50,))
    mask = hidden(series)
    pieces = Pieces.covering(series, mask, 8, margin)
    count = np.zeros(series.values.shape, dtype=int)
    every = np.arange(len(pieces))
    np.add.at(count, pieces.rows, pieces.scored(every).astype(int))
    np.testing.assert_array_equal(count, mask & ~np.isnan(series.values))
    np.testing.assert_array_equal(pieces.seen(every), np.where(mask, np.nan, series.values)[pieces.rows])
    np.testing.assert_array_equal(pieces.holed.values, np.where(mask, np.nan, series.values))
    some, third = np.arange(len(pieces.every(3))), every[::3]
    np.testing.assert_array_equal(pieces.every(3).scored(some), pieces.scored(third))
    np.testing.assert_array_equal(pieces.every(3).seen(some), pieces.seen(third))


def test_pieces_with_an_end_of_their_own_have_gaps_of_their_own():
    series, gone = walk(), np.zeros((2, 10, 3, 2), dtype=bool)
    gone[0, -4:, 1], gone[1, :, 2, 0] = True, True
    pieces = Pieces.ends(series, np.array([20, 24]), 10, gone)  # they share rows
    some = np.arange(2)
    np.testing.assert_array_equal(pieces.seen(some)[0], np.where(gone[0], np.nan, series.values[10:20]))
    np.testing.assert_array_equal(pieces.seen(some)[1], np.where(gone[1], np.nan, series.values[14:24]))
    assert [(s.start, s.stop) for s in pieces.holed.stretches] == [(0, 10), (10, 20)]
    np.testing.assert_array_equal(pieces.series.times[pieces.rows[1]], series.times[14:24])


def test_nothing_of_the_future_is_seen(pieces):
    if pieces.future:
        some = np.arange(len(pieces))
        assert np.isnan(pieces.seen(some)[:, -5:]).all()
        assert not pieces.scored(some)[:, :-5].any()
        assert not pieces.scored(some)[..., 0].any()  # another channel
        assert [(s.start, s.stop) for s in pieces.series.stretches] == [(0, 110)]  # the past goes on


@pytest.mark.parametrize("draws", [1, 20])
def test_sums_are_those_of_single_readings(pieces, draws):
    random, steps = np.random.RandomState(4), (2, 5) if pieces.future else ()
    every, tally = np.arange(len(pieces)), Tally.of(pieces, steps)
    truth, scored = pieces.truth(every), pieces.scored(every)
    x = np.nan_to_num(truth) + random.standard_normal((draws, *truth.shape))
    for some in np.array_split(every, 3):
        part = torch.from_numpy(x[:, some])
        tally.add(pieces, some, protocol.draw_quantiles(part[:, torch.from_numpy(scored[some])]), part)
        tally = Tally.from_dict(tally.to_dict())  # it can be put down at any time
    assert tally.done == len(pieces)
    for step in (0, *steps):
        where = scored.copy()
        if step:
            where[:, np.arange(pieces.length) != pieces.length - pieces.future + step - 1] = False
        expected = protocol.draw_scores(torch.from_numpy(x[:, where]), torch.from_numpy(truth[where]))
        joint = [
            energy(x[:, k, each], truth[k, each]) for k, each in enumerate(where) if each.any()
        ]  # over all readings of a piece
        scores = tally.scores(step)
        assert scores["readings"] == where.sum()
        close([scores["mae"], scores["mse"]], [expected["MAE"], expected["MSE"]])
        close([scores["crps"], scores["energy"]], [expected["CRPS"], np.mean(joint)], rtol=1e-9)
        covers = [expected["cover 50"], expected["cover 90"]] if draws > 1 else [np.nan, np.nan]
        np.testing.assert_allclose([scores["cover50"], scores["cover90"]], covers)


def test_days_add_up(pieces):
    every, tally = np.arange(len(pieces)), Tally.of(pieces)
    scored, truth = pieces.scored(every), pieces.truth(every)
    x = torch.from_numpy(np.nan_to_num(truth) + 1.0)[None]
    tally.add(pieces, every, protocol.draw_quantiles(x[:, torch.from_numpy(scored)]), x)
    days = tally.by_day()
    expected = np.unique(pieces.days()[pieces.rows][scored.nonzero()[:2]], return_counts=True)
    assert {day: count for day, count in zip(days["day"], days["count"], strict=True) if count} == dict(
        zip(*(part.astype(float).tolist() for part in expected), strict=True)
    )
    assert sum(days["absolute"]) == sum(days["loss"]) == pytest.approx(scored.sum())
    assert sum(days["pieces"]) == scored.any(axis=(1, 2, 3)).sum()
