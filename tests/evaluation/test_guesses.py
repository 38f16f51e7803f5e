"""Hidden readings, the simplest guesses at them, and their errors, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.data.series import Series
from grcd.evaluation import guesses, hiding
from grcd.evaluation.competitors import FORESEE, TITLES, competitors
from grcd.evaluation.guesses import Guesses, filler, forecaster

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00:00", "s")  # a Monday
NAN = np.nan


def column(*readings, borders=(), first=0):
    values = np.array(readings, dtype=float)[:, None, None]
    return Series(values, START + (first + np.arange(len(values))) * HOUR, borders)


def walk(rows, nodes=4, channels=1, gaps=0.0, seed=0):
    random = np.random.RandomState(seed)
    x = np.cumsum(random.standard_normal((rows, nodes, channels)), axis=0)
    x[random.random_sample(x.shape) < gaps] = NAN
    return Series(x, START + np.arange(rows) * HOUR)


# -- competitors -------------------------------------------------------------------------------------------------------

TRAIN = column(*([0.0] * 23 + [24.0]) * 5)  # 24 at eleven in the evening, on working days; the mean is 1


def filled(name, series):
    return competitors(TRAIN)[name](series)[:, 0, 0].tolist()


def test_lines_and_last_values_by_hand_and_not_across_a_break():
    gaps = column(NAN, 2, NAN, NAN, 8, NAN, 5, NAN, borders=(6,))
    assert filled("line", gaps) == [2, 2, 4, 6, 8, 8, 5, 5]
    assert filled("last", gaps) == [1, 2, 2, 2, 8, 8, 5, 5]
    assert filled("mean", gaps) == [1, 2, 1, 1, 8, 1, 5, 1]
    assert filled("line", column(NAN, NAN, 3, borders=(2,))) == [1, 1, 3]  # no reading in a stretch: the mean


def test_the_calendar_knows_the_hour_and_a_lonely_slot_is_not_believed_whole():
    evening = filled("calendar", column(NAN, NAN, 7, first=22))
    assert evening[2] == 7
    assert evening[0] == pytest.approx(0, abs=0.5)
    assert evening[1] == pytest.approx(24, abs=0.5)
    assert "calendar" not in competitors(Series(TRAIN.values))  # without times there is none


def test_imputers_see_other_columns_and_leave_what_was_read():
    random = np.random.RandomState(0)
    common = 3 * random.standard_normal((600, 1, 1))
    x = Series(common + 0.05 * random.standard_normal((600, 5, 1)), START + np.arange(600) * HOUR)
    held = Series(x.values[400:], x.times[400:])
    hide = hiding.hidden("sensors", held, 4)
    given_to = Series(np.where(hide, NAN, held.values), held.times)
    fills = competitors(Series(x.values[:400], x.times[:400]), imputers=True)
    assert [*fills, "iterative-column", "var"] == [*TITLES]
    for name, fill in fills.items():
        answer = fill(given_to)
        assert np.array_equal(answer[~hide], held.values[~hide])
        assert np.isfinite(answer).all()
        if name in ("neighbours", "iterative", "regression"):
            far = np.abs(fills["mean"](given_to) - held.values)[hide].mean()
            assert np.abs(answer - held.values)[hide].mean() < 0.2 * far


def test_a_node_without_any_reading_is_at_the_training_mean():
    train, held = walk(200, gaps=0.1), walk(50, seed=1)
    held.values[:, 2] = NAN
    for name, fill in competitors(train, imputers=True).items():
        answer = fill(held)
        assert np.isfinite(answer).all()
        if name not in ("calendar", "neighbours", "iterative", "regression"):
            close(answer[:, 2], np.full((50, 1), np.nanmean(train.values[:, 2])), 1e-12)


# -- what is hidden ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", hiding.FAMILIES)
def test_a_family_hides_what_is_there_the_same_with_a_seed(family):
    x = walk(900, 20, 2, gaps=0.2)
    hide = hiding.hidden(family, x, 12)
    assert hide.any()
    assert not (hide & np.isnan(x.values)).any()
    assert np.array_equal(hide, hiding.hidden(family, x, 12))
    assert not np.array_equal(hide, hiding.hidden(family, x, 12, seed=1))
    share = {"points": 0.25, "spells": 0.1, "sensors": 0.1}[family]
    assert hide.sum() / (~np.isnan(x.values)).sum() == pytest.approx(share, rel=0.3)


def test_spells_last_half_a_window_to_two_and_sensors_for_ever():
    x = walk(2000, 20)
    spells = hiding.hidden("spells", x, 12)[..., 0]
    for node in spells.T:
        ends = np.flatnonzero(np.diff(np.concatenate([[0], node.astype(int), [0]])))
        lengths = ends[1::2] - ends[::2]
        assert all(length >= 6 for length, stop in zip(lengths, ends[1::2], strict=True) if stop < 2000)
        assert len(lengths) == 0 or np.median(lengths) <= 2 * 24
    silent = hiding.hidden("sensors", x, 12)[..., 0]
    assert (silent == silent[0]).all()
    assert silent[0].sum() == 2
    assert hiding.hidden("spells", walk(5, 1), 12).any()  # one at the least
    with pytest.raises(grcd.InputError, match="points, spells, sensors"):
        hiding.hidden("point", x, 12)


def test_a_silent_sensor_is_one_that_speaks():
    x = walk(30, 3)
    x.values[:, :2] = NAN
    assert hiding.hidden("sensors", x, 4)[:, 2].all()


@examples(30)
@given(rows=st.integers(1, 60), steps=st.integers(1, 12), horizon=st.integers(1, 8), cut=st.integers(1, 59))
def test_a_forecast_has_a_past_and_a_truth_within_one_stretch(rows, steps, horizon, cut):
    x = Series(np.zeros((rows, 1, 1)), borders=(cut,))
    ends = hiding.ends(x, steps, horizon, 7)
    assert len(ends) <= 7
    for end in ends.tolist():
        (inside,) = [s for s in x.stretches if s.start < end < s.stop]
        assert end + horizon <= inside.stop
        assert end - inside.start >= max(1, steps - horizon)
    if max(s.stop - s.start for s in x.stretches) >= max(1, steps - horizon) + horizon:
        assert len(ends) > 0


# -- errors ------------------------------------------------------------------------------------------------------------


def test_coverage_by_lead_on_three_points():
    """Draws 1, 2, 6 have quartiles 1 and 6: readings 3 and 7 one row ahead, 6 two rows ahead."""
    draws = np.repeat(np.array([[6.0], [1.0], [2.0]]), 3, axis=1)
    zero = np.zeros(3, dtype=int)
    g = Guesses(np.array([3.0, 7.0, 6.0]), zero, zero, zero, np.array([1, 1, 2]), np.array([0, 1, 0]), {"a": draws})
    first, second = (g.of(g.lead == lead) for lead in (1, 2))
    # half of two readings, each its own forecast: sqrt(2 (1/4 + 1/4)) / 2
    assert first.covered("a", 0.5) == (0.5, pytest.approx(0.5))
    share, noise = second.covered("a", 0.5)
    assert share == 1.0
    assert np.isnan(noise)  # of one forecast there is none
    expected = {"mae": 3.0, "rmse": np.sqrt(8.0), "cover_50": 0.5, "cover_90": 0.5, "readings": 2}
    actual = first.errors("a")
    assert {key: actual[key] for key in expected} == pytest.approx(expected)
    assert actual["crps"] == pytest.approx((2 + 4) / 2 - 10 / 3 / 2)  # E|x - 3| = 2, E|x - 7| = 4, pairs 1, 5, 4
    assert first.off("a").tolist() == [1.0, 5.0]


def test_gaps_are_what_was_hidden_in_any_order_of_rows():
    x = walk(20, 3, 2, gaps=0.1)
    hide = hiding.hidden("points", x, 4)

    def whole(series):
        assert np.isnan(series.values[hide]).all()
        draws = np.stack([x.values, x.values + 2, x.values + 4])
        return [(rows, draws[:, rows]) for rows in (np.arange(12, 20), np.arange(12))]

    fills = {"model": whole, "line": filler(competitors(x)["line"])}
    g = guesses.gaps(x, hide, fills, 4)
    close(g.truth, x.values[g.row, g.node, g.channel])
    assert len(g) == hide.sum()
    close(g.off("model"), np.full(len(g), 2.0))
    gain, _ = g.ahead("model", "line")
    close(gain, g.errors("line")["mae"] - 2.0)
    assert set(g.group.tolist()) <= set(range(5))
    close(g.of(g.channel == 1).truth, x.values[..., 1][hide[..., 1]])


def test_a_forecast_sees_nothing_of_the_future_and_is_compared_with_it():
    x = walk(40, 2)
    x.values[30, 1] = NAN
    ends = np.array([10, 30])

    train = walk(200, 2, seed=5)
    methods = {name: forecaster(fill) for name, fill in competitors(train).items() if name in FORESEE}
    g = guesses.forecasts(x, ends, 3, methods)
    assert len(g) == 11  # one was never read
    assert sorted(set(g.lead.tolist())) == [1, 2, 3]
    close(g.truth, x.values[g.row, g.node, 0])
    close(g.draws["last"][0], x.values[np.array([9, 29])[g.group], g.node, 0])
    close(g.draws["mean"][0], train.values.mean(axis=0)[g.node, 0])
    later = x.values.copy()
    later[10:13], later[30:33] = 1e9, 1e9
    changed = guesses.forecasts(Series(np.where(np.isnan(x.values), NAN, later), x.times), ends[:1], 3, methods)
    first = g.of(g.group == 0)
    assert all(np.array_equal(changed.draws[name], first.draws[name]) for name in methods)
