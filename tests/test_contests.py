"""The contest at the end of a training, where it is known who has to win; and what impute makes of it."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import grcd
from grcd import contests
from grcd.core.errors import InputWarning
from grcd.data.series import Series
from grcd.evaluation import held_rows, hiding
from grcd.evaluation.competitors import fitted
from grcd.evaluation.contest import COLUMNS, MOMENTS, REFERENCE
from grcd.evaluation.guesses import filler, gaps
from grcd.graphs import graph as graphs
from grcd.references.lags import Shrinkage, shrunk
from grcd.references.nearness import path_lengths, towards
from grcd.tasks.columns import Columns
from grcd.tasks.moments import Moments
from grcd.training.windows import rows_again

NODES = 6
GRAPH = grcd.Graph.from_adjacency(np.diag(np.ones(NODES - 1), 1) + np.diag(np.ones(NODES - 1), -1))


@pytest.fixture(autouse=True)
def quick(contested, monkeypatch):
    """Without what takes seconds."""
    monkeypatch.setattr(contests, "SIMPLE", ("mean", "line"))


def rows(kind, count, seed=0):
    random = np.random.RandomState(seed)
    x = random.standard_normal((count, NODES))
    if kind == "together":  # what others read says nearly all
        x = x[:, :1] + 0.1 * x
    if kind == "walks":  # what was read before and after says all, and others nothing
        x = np.cumsum(x, axis=0)
    return 10 + 3 * x


def won(model):
    return {name: family.won for name, family in model.contest.families.items()}


def alike(count, seed=0):
    """Nodes that read nearly the same, which goes on from row to row."""
    random = np.random.RandomState(seed)
    walk = np.zeros(count)
    for row in range(1, count):
        walk[row] = 0.97 * walk[row - 1] + 0.25 * random.standard_normal()
    return 10 + 3 * (walk[:, None] + 0.1 * random.standard_normal((count, NODES)))


def test_an_outage_is_not_filled_row_by_row_whatever_fills_all_other_gaps():
    """Else rows of which nothing was read would be their mean; of an older run, too, which did not try them."""
    x = alike(500)
    model = grcd.GRCD(GRAPH, window=8, max_updates=0).fit(x[:300], x[300:400])
    assert won(model)["points"] == MOMENTS
    family = model.contest.families["outages"]
    assert MOMENTS not in family.errors
    holed = x[400:].copy()
    down = np.zeros(100, dtype=bool)
    for first in range(5, 95, 10):
        down[first : first + 1 + first % 4] = True
    holed[down] = np.nan
    rows = np.flatnonzero(down)
    line = np.stack([np.interp(rows, np.flatnonzero(~down), column[~down]) for column in holed.T], axis=1)

    def off(filled):
        return np.abs(filled - x[400:][down]).mean()

    contest = model.result["contest"]
    older = {name: family for name, family in contest["families"].items() if name != "outages"}
    for families in (contest["families"], older):
        contest["families"] = families
        filled = np.median(model.impute(holed, n=100), axis=0)[down]
        assert off(filled) < 1.05 * off(line)
        assert off(filled) < 0.7 * off(10.0)
    by_row = np.median(model.impute(holed, n=100, posterior="moments"), axis=0)[down]
    assert off(by_row) > 1.5 * off(line)  # asked for by name it is what was asked for


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("kind", ["apart", "together"])
def test_few_rows_end_at_independent_nodes_where_nodes_are(window, kind):
    """Of 24 training rows, and three of validation, which say nothing by themselves."""
    settings = {"max_updates": 0, "seed": 1} if window > 1 else {"backbone": "none", "seed": 1}
    x = rows(kind, 32)
    model = grcd.GRCD(GRAPH, window=window, **settings).fit(x[:28], x[28:])
    if kind == "together":
        assert won(model)["points"] == won(model)["sensors"] == REFERENCE
    assert model.contest.stretches == held_rows.PARTS
    # So what is filled is never worse than the mean, and here about as good.
    test = Series(rows(kind, 200, 5)[:, :, None])
    hidden = hiding.hidden("points", test, 12, 0)
    holed = np.where(hidden, np.nan, test.values)[:, :, 0]
    off = np.abs(np.median(model.impute(holed, n=100), axis=0) - test.values[:, :, 0])[hidden[:, :, 0]].mean()
    mean = np.abs(x[:28].mean(axis=0) - test.values[:, :, 0])[hidden[:, :, 0]].mean()
    assert off < (1.03 if kind == "apart" else 0.5) * mean


def test_a_walk_is_filled_by_the_line_and_with_its_spread():
    x = rows("walks", 400)
    model = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(x[:300], x[300:])
    line = model.contest.families["points"]
    assert line.errors[COLUMNS]["mae"] < 1.05 * line.errors["line"]["mae"]
    assert line.errors[COLUMNS]["crps"] < 0.8 * line.errors["line"]["mae"]
    assert 0.8 < line.errors[COLUMNS]["cover_90"] < 0.97
    assert line.columns["rho"][0] > 0.9


def test_walks_go_on_from_their_last_reading_and_fields_as_the_reference_says():
    x = rows("walks", 400)
    model = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(x[:300], x[300:])
    future = model.contest.future
    assert future.won == COLUMNS
    assert future.errors[COLUMNS]["mae"] < 1.03 * future.errors["line"]["mae"]
    with pytest.warns(InputWarning, match=r"5 rows to come, and training compared the first 3 alone"):
        drawn, again = (model.forecast(x[:350], 5, n=200, **by) for by in ({}, {"posterior": "auto"}))  # by what won
    # Draws are mirror images, so medians go back to the mean by rho a row, whatever that mean is: exactly.
    away = np.diff(np.concatenate([x[349][None], np.median(drawn, axis=0)]), axis=0)
    (rho,), (shift,) = future.columns["rho"], future.columns["shift"]
    assert shift == 0
    np.testing.assert_allclose(away[1:], rho * away[:-1], rtol=1e-4)
    assert np.array_equal(drawn, again)
    spread = drawn.std(axis=0).mean(axis=1)
    assert 1.5 < spread[3] / spread[0] < 2.5  # as a walk spreads: twice in four rows
    pushed = np.zeros((600, NODES))  # every node is what the one before it was a row ago
    noise = np.random.RandomState(1).standard_normal((600, NODES))
    for t in range(1, 600):
        pushed[t, 1:] = pushed[t - 1, :-1]
        pushed[t, 0] = noise[t, 0]
    field = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(pushed[:500] + 0.1 * noise[:500], pushed[500:])
    assert field.contest.future.won == REFERENCE
    assert np.array_equal(
        field.forecast(pushed[:99], 3, n=4), field.forecast(pushed[:99], 3, n=4, posterior="reference")
    )


def test_errors_are_those_of_readings_hidden_in_rows_that_were_held_out():
    """The competitors' by another way: fitted to training rows, and asked for the hidden ones."""
    x = rows("walks", 1000)
    train, val = Series(x[:300, :, None]), Series(x[300:, :, None])
    model = grcd.GRCD(GRAPH, window=4, max_updates=0).fit(x[:300], x[300:])
    steps = hiding.span(4)
    pieces, times = held_rows.pieces(val, contests.PIECE * steps, held_rows.MOST)
    assert times == 1
    held = contests.Held(None, train, pieces, 1, False, np.ones(len(pieces), dtype=bool))
    hidden = contests._hidden("points", held, steps, {}, 0)
    found = gaps(pieces, hidden, {name: filler(fitted(name, train, val)) for name in ("mean", "line")}, steps)
    for name in ("mean", "line"):
        expected = found.errors(name)["mae"]
        assert model.contest.families["points"].errors[name]["mae"] == pytest.approx(expected, rel=1e-9)


def test_it_is_kept_in_the_run_and_one_without_is_filled_as_before(tmp_path):
    x = rows("apart", 32)
    model = grcd.GRCD(GRAPH, window=4, max_updates=0).fit(x[:28], x[28:])
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run")
    assert again.contest == model.contest
    holed = rows("apart", 20, 3)
    holed[4:6, 2] = np.nan
    assert np.array_equal(again.impute(holed, n=3), model.impute(holed, n=3))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["result"]["contest"]["families"]
    del model.result["contest"]  # as of an older run
    assert model.contest is None
    assert np.array_equal(model.impute(holed, n=3), model.impute(holed, n=3, posterior="diffusion"))


@pytest.mark.filterwarnings("ignore:no network was asked for")
@pytest.mark.parametrize("kind", ["apart", "together"])
def test_a_large_graph_has_a_contest_of_what_needs_no_network(monkeypatch, kind):
    """Where neighbours say nearly all the reference wins; where nodes know nothing of each other, the smallest."""
    monkeypatch.setattr(graphs, "LARGE", NODES - 1)
    x = rows(kind, 400)
    model = grcd.GRCD(GRAPH, backbone="none", seed=1).fit(x[:300], x[300:])
    best = {"apart": COLUMNS, "together": REFERENCE}[kind]
    assert won(model)["points"] == won(model)["sensors"] == best
    assert set(model.contest.families["points"].errors) == {"mean", "line", COLUMNS, REFERENCE}
    assert model.contest.stretches == 0  # nothing is fitted again
    few = grcd.GRCD(GRAPH, backbone="none", seed=1).fit(x[:300], x[300:320])
    assert few.contest is None  # one group of rows: nothing can be said
    monkeypatch.setitem(contests.WORK, "reference", 23 * NODES * contests.DRAWS)
    assert grcd.GRCD(GRAPH, backbone="none", seed=1).fit(x[:300], x[300:]).contest is None


def test_silent_nodes_of_rows_that_have_no_past_are_filled_row_by_row():
    """Where the others say nearly all, and rows before and after only mislead: as near as a regression is."""
    random = np.random.RandomState(5)
    z = random.standard_normal((400, 2)) @ random.standard_normal((2, NODES)) + 0.02 * random.standard_normal(
        (400, NODES)
    )
    model = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(z[:320], z[320:360])
    assert won(model)["sensors"] == MOMENTS
    few = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(z[:39], z[320:360])
    assert MOMENTS not in few.contest.families["sensors"].errors  # what few rows can bear is the shrinkage of windows
    later = z[360:].copy()
    later[:, 2] = np.nan
    weights = np.linalg.lstsq(np.delete(z[:360], 2, 1), z[:360, 2], rcond=None)[0]
    regressed = np.abs(np.delete(later, 2, 1) @ weights - z[360:, 2]).mean()
    off = {
        how: np.abs(np.median(model.impute(later, n=20, posterior=how), axis=0) - z[360:])[:, 2].mean()
        for how in ("auto", "reference")
    }
    assert off["auto"] < 1.2 * regressed < off["reference"]


def test_what_the_contest_tried_can_be_asked_for_by_name():
    """Each kind of gaps by its own numbers, whoever won there; and not where training did not try it."""
    x = rows("together", 400)
    model = grcd.GRCD(GRAPH, window=6, max_updates=0).fit(x[:300], x[300:360])
    points, sensors = x[360:].copy(), x[360:].copy()
    points[5, 1], sensors[:, 2] = np.nan, np.nan
    for holed, kind in ((points, "points"), (sensors, "sensors")):
        family = model.contest.families[kind]
        for name, process in ((COLUMNS, Columns.of(family.columns)), (MOMENTS, Moments.of(family.moments))):
            expected = np.empty((4, *holed.shape))
            for some, drawn in model.series.by_process(Series(holed[:, :, None]), process, 4, seed=3):
                expected[:, some] = drawn[..., 0]
            assert np.array_equal(model.impute(holed, n=4, seed=3, posterior=name), expected)
        assert np.array_equal(model.impute(holed, n=4), model.impute(holed, n=4, posterior=family.won))
    with pytest.raises(grcd.InputError, match=r"posterior 'row'\nexpected one of auto, diffusion.*columns, moments"):
        model.impute(points, n=4, posterior="row")
    for family in model.result["contest"]["families"].values():
        family["moments"] = {}
    with pytest.raises(grcd.InputError, match="'moments' of a run that did not try it") as refused:
        model.impute(points, n=4, posterior=MOMENTS)
    assert refused.value.expected == "one of auto, diffusion, reference"


def test_single_rows_have_a_law_of_rows_as_they_stand_beside_their_reference():
    """Against a naive conditional mean of all rows that train and validate, by the numbers that were chosen."""
    x = rows("together", 200)
    model = grcd.GRCD(GRAPH, width=8, max_updates=2).fit(x[:150], x[150:])
    holed = x[:4].copy()
    holed[1, 2] = np.nan
    by = model.contest.families["points"].moments
    assert by["plain"]
    z = (x - x.mean(0)) / x.std(0)
    C = towards(torch.from_numpy(z.T @ z / 200)[None], path_lengths(GRAPH), by["graph"])[0].numpy()
    C = shrunk(torch.from_numpy(C)[None], Shrinkage(0, 0, by["local"], by["noise"]))[0].numpy()
    others = np.arange(len(C)) != 2
    centre = C[2, others] @ np.linalg.solve(C[np.ix_(others, others)], z[1, others])
    filled = model.impute(holed, n=4, posterior=MOMENTS)
    assert np.median(filled[:, 1, 2]) == pytest.approx(centre * x[:, 2].std() + x[:, 2].mean(), rel=1e-6)
    assert np.array_equal(filled[:, [0, 2, 3]], np.repeat(x[None, [0, 2, 3]], 4, axis=0))


def test_the_law_of_single_rows_is_of_all_rows_that_train_and_validate_about_the_mean_of_a_network():
    """Naively: z-scores by the mean that is kept, one part after the other."""
    x = rows("together", 200)
    kept = grcd.GRCD(GRAPH, window=4, max_updates=0).fit(x[:100], x[100:120])._trained.model
    again = rows_again(kept, [Series(x[:150, :, None]), Series(x[150:, :, None])])
    mean, spread, _ = kept.about(None, 200)
    z = ((torch.from_numpy(x) - mean) / spread).numpy()
    np.testing.assert_allclose(again.C0, z.T @ z / 200, rtol=1e-9)
    assert again.law is kept.law
    assert again.mean is kept.mean


@pytest.mark.parametrize("split", [True, False])
def test_single_rows_with_dates_have_the_calendar_beside_them_and_are_told_where_it_is_ahead(monkeypatch, split):
    monkeypatch.setattr(contests, "SIMPLE", ("mean", "calendar"))
    times, random = pd.date_range("2026-03-02", periods=24 * 40, freq="h", name="time"), np.random.RandomState(0)
    wave = np.sin(2 * np.pi * (times.hour.to_numpy()[:, None] / 24 + random.rand(NODES)))
    x = pd.DataFrame(10 + 3 * (wave + random.standard_normal(wave.shape)), times, [str(k) for k in range(NODES)])
    model = grcd.GRCD(GRAPH, width=8, max_updates=2, marginals="z-score")
    contest = model.fit(*((x[:700], x[700:]) if split else (x,))).contest
    for family in contest.families.values():
        # Noise of 3 is what the calendar leaves; the mean leaves the waves too.
        assert family.errors["calendar"]["mae"] == pytest.approx(3 * np.sqrt(2 / np.pi), rel=0.1)
        assert family.rival == "calendar"
    assert "a model of windows knows of time" in contest.lost()["sensors"][0]
    irregular = x.set_axis(times + pd.to_timedelta(random.uniform(0, 50, len(x)), "min"))
    assert "calendar" not in model.fit(irregular).contest.families["points"].errors


def test_signals_are_a_series_at_their_times_only_if_those_are_one():
    x, times = np.zeros((10, 2)), np.arange(10.0)
    assert np.array_equal(Series.of_signals(x, times).times, times)
    assert Series.of_signals(x, times).values.shape == (10, 2, 1)
    for broken in (times[::-1], times**2, np.zeros(10), None):
        assert Series.of_signals(x, broken).times is None
    assert Series.of_signals(x[:1], times[:1]).interval is None


def test_a_variable_that_is_silent_at_a_node_is_filled_by_what_won_at_that():
    """Both variables of a node are nearly the same, and nodes know nothing of each other."""
    random = np.random.RandomState(0)
    one = rows("apart", 420)
    x = np.stack([one, one + 0.3 * random.standard_normal(one.shape)], axis=2)
    model = grcd.GRCD(GRAPH, window=4, max_updates=0).fit(x[:300], x[300:])
    families = model.contest.families
    assert list(families) == ["points", "spells", "sensors", "channels", "outages"]
    assert families["channels"].ours < 0.2 * families["channels"].errors["mean"]["mae"]
    assert families["sensors"].ours > 0.8 * families["sensors"].errors["mean"]["mae"]
    holed = x[300:].copy()
    holed[:, 2, 1], holed[:, 4] = np.nan, np.nan
    filled = model.impute(holed, n=20)
    for node, channel, name in ((2, 1, "channels"), (4, 0, "sensors"), (4, 1, "sensors")):
        by = model.impute(holed, n=20, posterior=families[name].way(channel)[0])
        assert np.array_equal(filled[:, :, node, channel], by[:, :, node, channel])
    shown = [line.split() for line in model.contest.lines()]
    assert shown.index(["channels", "outages"]) > shown.index(["points", "spells", "sensors"])


def test_of_few_rows_the_mean_stays_unless_another_process_is_nearer_for_more_than_chance():
    off = torch.tensor([[1.0, 1.2, 0.8, 1.0]])
    assert contests._surer(off - 0.3, off, 1)  # by the same everywhere
    assert not contests._surer(off, off, 1)
    worse = off + torch.tensor([[-0.5, 0.4, -0.3, 0.3]])  # on average nearer by 0.025, and by chance
    assert not contests._surer(worse, off, 1)
    gain = torch.tensor([[0.1, 0.3, 0.2, 0.0]])  # 0.15 with a standard error of 0.065; of rows there six times, 0.158
    assert contests._surer(off - gain, off, 1)
    assert not contests._surer(off - gain, off, 6)
    # And so of rows without a past: of these a process with one, 0.3, is nearer to hidden readings by chance.
    x = np.random.RandomState(7).poisson(np.linspace(2, 9, NODES), (35, NODES)).astype(float)
    model = grcd.GRCD(GRAPH, window=4, max_updates=0, marginals="z-score").fit(x[:31], x[31:])
    assert model.contest.families["points"].columns["rho"] == [0.0]


def test_a_gap_of_a_few_rows_is_no_silent_sensor_where_windows_are_shorter_and_long_ones_know_their_ends():
    x = rows("walks", 120)
    model = grcd.GRCD(GRAPH, window=2, max_updates=0, marginals="z-score").fit(x[:105], x[105:])
    families = model.contest.families
    (near,) = families["spells"].columns["rho"]
    assert near > contests.NEARLY  # a line; of what is silent throughout anything would do
    assert families["sensors"].columns["rho"] == [contests.NEARLY]
    assert (families["spells"].won, families["sensors"].won) == (COLUMNS, MOMENTS)
    holed = x.copy()
    holed[20:30, 2] = np.nan  # five windows
    line = np.linspace(x[19, 2], x[30, 2], 12)[1:-1]
    np.testing.assert_allclose(np.median(model.impute(holed, n=40), axis=0)[20:30, 2], line, rtol=1e-3)


def test_what_is_silent_throughout_is_silent_around_a_stretch_too_and_all_else_is_read_there():
    series = Series(np.zeros((60, 2, 1)))
    rows_of = Series(np.where(np.arange(6)[:, None, None] < 3, np.nan, 1.0) + np.zeros((6, 2, 1)), borders=(3,))
    held = contests.Held(None, series, Series(np.ones((8, 2, 1))), 1, False, np.array([0, 0, 1, 1, 1, 1, 0, 0]) > 0)
    assert contests._hidden("sensors", held, 4, {}, 0)[:2].any()  # a silent sensor is silent around it, too
    assert not contests._hidden("points", held, 4, {}, 0)[:2].any()
    assert contests._hidden("future", held, 4, {}, 0)[:, 0, 0].tolist() == [False] * 4 + [True] * 4
    assert contests._silent(rows_of, np.zeros((6, 2, 1), dtype=bool))[:, 0, 0].tolist() == [True] * 3 + [False] * 3
