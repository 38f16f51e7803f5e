"""The report on a run of windows: the page holds what was measured, and says where a simple competitor wins."""

import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import six_nodes
from pages import Parsed

import grcd
from grcd import report
from grcd.data.series import Series
from grcd.data.series_dataset import SeriesDataset
from grcd.diffusion.conditional import Conditional
from grcd.evaluation import windows
from grcd.evaluation.guesses import Guesses
from grcd.metrics.ensemble import quantiles
from grcd.report import drawings_in_time as drawings
from grcd.report import first_look, page_in_time
from grcd.report.material_in_time import OURS, REFERENCE, a_day, along
from grcd.training.conditional import fresh_network

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00:00", "s")
NAN = np.nan
TINY = {"width": 8, "blocks": 1, "heads": 2, "max_updates": 2, "validate_every": 1, "pool": 32, "device": "cpu"}
ROWS = {"train": 200, "val": 40, "test": 90}


def dataset(channels=2, times=True, test=ROWS["test"], seed=0):
    """An autoregression with a day in it, a tenth missing; node 4 is silent among the test rows."""
    random, rows = np.random.RandomState(seed), 240 + test
    x = np.zeros((rows, 6, channels))
    for k in range(1, rows):
        x[k] = 0.8 * x[k - 1] + random.standard_normal((6, 1)) + 0.3 * random.standard_normal((6, channels))
    x += 2 * np.sin(2 * np.pi * np.arange(rows) / 24)[:, None, None] + 10
    x[random.random_sample(x.shape) < 0.1] = NAN
    x[240:, 4] = NAN
    edges = np.cumsum([0, 200, 40, test]).tolist()
    splits = {name: (slice(*edges[k : k + 2]),) for k, name in enumerate(ROWS)}
    names, units = ("heat", "wind")[:channels], ("K", "")[:channels]
    series = Series(x, START + np.arange(rows) * HOUR if times else None, (200, 240))
    return SeriesDataset("made up", series, six_nodes(), names, units, splits)


def fitted(data, run, window=4):
    with warnings.catch_warnings():  # that so little training brings nothing
        warnings.simplefilter("ignore")
        return grcd.train(grcd.GRCD(data.graph, window=window, **TINY), data, run)


def speaking(model):
    """The model with a network, fresh as it is."""
    trained = model._trained
    law = trained.model.law
    network = fresh_network(law.space, trained.model.mean.told, model.config).eval()
    whole = replace(trained.model, law=Conditional(law.space, law.reference, network))
    model._trained = replace(trained, model=whole, result=trained.result | {"network": True})
    return model


@pytest.fixture(scope="module")
def data():
    return dataset()


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report in time") / "run"
    fitted(data, folder)
    return folder


@pytest.fixture(scope="module")
def model(run):
    return speaking(grcd.load(run, "cpu"))


@pytest.fixture(scope="module")
def material(model, data, run):
    return report.SeriesMaterial.of(model, data, None, run, n=12, nfe=2, seed=3, command="grcd report run")


@pytest.fixture(scope="module")
def page(material):
    return report.html(material)


def test_the_page_is_whole_and_refers_to_nothing_outside(page):
    parsed = Parsed(page)
    sections = (
        "series",
        "gaps",
        "forecasts",
        "coverage",
        "autocorrelation",
        "day",
        "map",
        "scores",
        "kept",
        "training",
        "provenance",
    )
    assert parsed.ids == [*sections]
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in parsed.refers)
    assert re.search(r"@import|url\((?!#)|fetch\(|XMLHttp|https?://(?!www\.w3\.org)", page) is None
    assert len(page.encode()) < 5e6
    assert "nan" not in "".join(text for table in parsed.tables for row in table for text in row)


def test_tables_hold_the_errors_of_all_methods(material, page):
    gaps, ahead, scores, kept, facts = Parsed(page).tables
    methods = [OURS, REFERENCE, "line", "last", "calendar", "mean", "neighbours", "iterative", "regression"]
    assert gaps[0] == ["mean absolute error", *map(drawings.names, methods), "CRPS", "in 50 %", "in 90 %", "readings"]
    lines = {row[0]: row[1:] for row in gaps[1:] + ahead[1:]}
    for label, family, channel in (
        ("scattered readings (heat, K)", "points", 0),
        ("silent spells (wind)", "spells", 1),
    ):
        g = material.gaps[family]
        chosen = g.channel == channel
        for k, method in enumerate(methods):
            error = np.abs(np.median(g.draws[method][:, chosen], axis=0) - g.truth[chosen]).mean()
            assert float(lines[label][k]) == pytest.approx(error, rel=0.006)
        assert lines[label][-1] == str(chosen.sum())
        low, high = quantiles(g.draws[OURS][:, chosen], (0.05, 0.95))
        inside = ((low <= g.truth[chosen]) & (g.truth[chosen] <= high)).mean()
        assert lines[label][-2].startswith(f"{inside:.0%}")
    first = material.ahead.of((material.ahead.lead == 1) & (material.ahead.channel == 1))
    assert lines["1h ahead (wind)"][-1] == str(len(first))
    assert float(lines["1h ahead (wind)"][2]) == pytest.approx(
        np.abs(first.draws["last"][0] - first.truth).mean(), rel=0.006
    )
    expected = windows.evaluate(material.generated, material.data)
    assert [row[1] for row in scores[1:]] == [f"{expected.ammd:.4f}", f"{expected.floor.ammd:.4f}"]
    assert dict(kept)["calendar"]
    assert dict(kept)["channels"] == "heat (K), wind"
    assert dict(facts)["by"] == "grcd report run"


def test_the_same_seed_makes_the_same_numbers(material, model, data):
    again, other = (report.SeriesMaterial.of(model, data, n=12, nfe=2, seed=seed) for seed in (3, 4))
    for family, g in (material.gaps | {"future": material.ahead}).items():
        same = again.ahead if family == "future" else again.gaps[family]
        assert all(np.array_equal(same.draws[method], draws) for method, draws in g.draws.items())
    assert np.array_equal(again.generated, material.generated)
    assert np.array_equal(again.day.generated, material.day.generated)
    assert report.verdict(again) == report.verdict(material)
    assert not np.array_equal(other.generated, material.generated)
    assert not np.array_equal(other.gaps["points"].row, material.gaps["points"].row)


def test_what_is_hidden_is_held_out_and_was_read(material, data):
    assert set(material.held.tolist()) <= set(data.rows("test").tolist())
    for g in (*material.gaps.values(), material.ahead):
        assert np.isfinite(g.truth).all()
        assert all(np.isfinite(draws).all() for draws in g.draws.values())
        assert 4 not in g.node  # silent among the held-out rows
    g = material.gaps["points"]
    assert np.array_equal(data.series.values[material.held[g.row], g.node, g.channel], g.truth)
    later = material.ahead
    assert np.array_equal(data.series.values[240 + later.row, later.node, later.channel], later.truth)


def guesses(truth, **draws):
    zero = np.zeros(len(truth), dtype=int)
    rows = np.arange(len(truth))
    every = {name: np.asarray(part, dtype=float)[None] for name, part in draws.items()}
    return Guesses(np.asarray(truth, dtype=float), rows, zero, zero, zero + 1, rows, every)


@pytest.mark.parametrize(
    ("ours", "line", "kind", "sentence"),
    [
        ([1.0, 1.1, 1.2, 1.0], [2.0, 2.1, 2.2, 2.3], "good", "nearer to the truth than those of every simple"),
        ([2.0, 2.1, 2.2, 2.3], [1.0, 1.1, 1.2, 1.1], "bad", "A line in time is nearer to the truth than the model"),
        ([1.0, 3.0, 1.0, 3.0], [3.0, 1.0, 3.0, 1.2], "fair", "(2.00 against 2.05 K, a line in time)"),
    ],
)
def test_the_headline_says_who_wins(material, ours, line, kind, sentence):
    off = {OURS: ours, "line": line, "mean": [9, 9, 9, 9], "iterative": [9, 9, 9, 9]}
    shown = replace(material, gaps={"points": guesses(np.zeros(4), **off)}, ahead=None)
    found, said = report.verdict(shown)
    assert found == kind
    assert sentence in said
    assert ("simple competitor" in said) == (kind != "bad")
    if kind == "good":  # and it does not claim to have won against those that were not asked
        del off["iterative"]
        few = report.verdict(replace(material, gaps={"points": guesses(np.zeros(4), **off)}, ahead=None))[1]
        assert "than those of a line in time and the column's mean (there are too many columns" in few
    if kind == "bad":
        assert "scattered readings of heat: 1.10 against 2.15 K." in said
        assert said in "".join(Parsed(page_in_time._summary(shown)).text)


def test_a_reference_alone_is_said_and_not_shown_twice(data, material, run):
    alone = grcd.load(run, "cpu")
    shown = report.SeriesMaterial.of(alone, data, n=12, nfe=2)
    assert REFERENCE not in shown.gaps["points"].draws
    assert "the reference is used alone" in report.verdict(shown)[1]
    assert "the reference is used alone" not in report.verdict(material)[1]
    assert shown.same_data
    other = dataset(seed=1)
    assert not report.SeriesMaterial.of(alone, other, n=12, nfe=2).same_data


def test_a_single_held_out_window_without_times_is_shown_and_said_to_say_little(tmp_path):
    data = dataset(channels=1, times=False, test=5)
    shown = report.SeriesMaterial.of(fitted(data, tmp_path / "run"), data, n=12, nfe=2)
    page = report.html(shown)
    text = "".join(Parsed(page).text)
    assert shown.scores is None
    assert "5 held-out rows (1 window): nothing can be said." in text
    assert "Left out: 1 held-out windows" in text
    assert "calendar" not in shown.gaps["points"].draws
    assert not shown.day.whole
    axis = drawings.filled(shown, "points").axes[0]
    assert axis.get_xlabel() == "row"
    assert axis.get_xlim() == (239.0, 245.0)


def test_too_few_rows_for_a_forecast_are_said(material):
    page = "".join(section.body for section in page_in_time._ahead(replace(material, ahead=None)))
    assert "long enough" in page


def test_data_on_another_graph_are_refused(model, data):
    other = grcd.Graph.from_adjacency(2 * data.graph.weights.toarray() + 0.1 - 0.1 * np.eye(6))
    with pytest.raises(grcd.InputError, match="another graph"):
        report.SeriesMaterial.of(model, replace(data, graph=other))


def test_neighbours_are_near_each_other_in_the_picture_of_a_day():
    shuffled = np.random.RandomState(0).permutation(9)
    W = np.zeros((12, 12))
    for a, b in pairwise(shuffled):
        W[a, b] = W[b, a] = 1.0
    W[9, 11] = W[11, 9] = 1.0  # another component, and a node by itself
    order = along(grcd.Graph.from_adjacency(W)).tolist()
    assert order[:9] in (shuffled.tolist(), shuffled.tolist()[::-1])
    assert order[9:] == [9, 11, 10]


def test_a_day_begins_at_midnight_and_is_livelier_than_three_in_four(data):
    rows, whole = a_day(data)
    assert whole
    assert len(rows) == 24
    assert rows[0] % 24 == 0
    assert rows[0] >= 240
    x, lively = data.series.values, {}
    mean, sd = np.nanmean(x[:200], axis=0), np.nanstd(x[:200], axis=0)
    counts = {first: (~np.isnan(x[first : first + 24])).sum() for first in range(240, 330 - 23, 24)}
    for first, count in counts.items():
        if count >= 0.9 * max(counts.values()):
            lively[first] = np.nanmean(np.square((x[first : first + 24] - mean) / sd))
    assert len(lively) > 1
    assert sorted(lively.values())[-(len(lively) // 4) - 1] == lively[rows[0]]
    rows, whole = a_day(dataset(times=False))
    assert not whole
    assert rows.tolist() == [*range(240, 330)]


def test_the_days_picture_is_the_day_along_the_graph_on_one_scale(material, data):
    figure = drawings.day(material)
    images = [axis.images[0] for axis in figure.axes if axis.images and axis.get_ylabel() is not None][:4]
    order = along(data.graph)
    for image, side, channel in zip(images, ("real", "generated") * 2, (0, 0, 1, 1), strict=True):
        shown = np.ma.filled(image.get_array().astype(float), NAN)
        np.testing.assert_array_equal(shown, getattr(material.day, side)[:, order, channel].T)
    assert images[0].get_clim() == images[1].get_clim()
    assert np.isfinite(material.day.generated).all()


def test_coverage_is_drawn_as_it_is_counted(material):
    axis = drawings.coverage(material).axes[0]
    line = axis.containers[0].lines[0]  # of 90 %, the first channel
    g = material.ahead
    for lead, share in zip(*line.get_data(), strict=True):
        one = g.of((g.lead == lead) & (g.channel == 0))
        low, high = quantiles(one.draws[OURS], (0.05, 0.95))
        assert share == pytest.approx(100 * ((low <= one.truth) & (one.truth <= high)).mean())


def moved(values, sd):
    seen = values[~np.isnan(values)]
    return np.ptp(seen) / sd if len(seen) else 0.0


def test_a_gap_is_chosen_by_its_readings_and_a_forecast_by_its_past(material, data):
    """Whatever any method made of them: nine in ten move less."""
    sd = np.nanstd(data.part("train").values, axis=0)
    g, chosen = material.gaps["spells"], first_look.gap(material)
    spells = []
    for node, channel in {*zip(g.node.tolist(), g.channel.tolist(), strict=True)}:
        places = np.flatnonzero((g.node == node) & (g.channel == channel))
        runs = np.split(places, np.flatnonzero(np.diff(g.row[places]) > first_look.FEW) + 1)
        for part in (run[k : k + 8] for run in runs for k in range(0, len(run), 8)):
            if len(part) >= 2:
                spells.append((moved(g.truth[part], sd[node, channel]), node, channel, g.row[part[0]]))
    ranked = sorted(spells)[int(0.9 * (len(spells) - 1))]
    assert (chosen.node, chosen.channel) == ranked[1:3]
    assert chosen.rows.start <= ranked[3] < chosen.rows.stop
    ahead, pasts = material.ahead, []
    for group, node, channel in {
        *zip(*(part.tolist() for part in (ahead.group, ahead.node, ahead.channel)), strict=True)
    }:
        place = np.flatnonzero(ahead.group == group)[0]
        end = ahead.row[place] - ahead.lead[place] + 1
        past = material.test.values[max(0, end - 4) : end, node, channel]
        pasts.append((moved(past, sd[node, channel]), group, node, channel))
    one, node, channel = first_look.forecast(material)
    assert (one.group[0], node, channel) == sorted(pasts)[int(0.9 * (len(pasts) - 1))][1:]
    noise = {OURS: np.zeros_like(g.draws[OURS])}
    other = replace(material, gaps={"spells": replace(g, draws=g.draws | noise)})
    assert first_look.gap(other).rows == chosen.rows


def test_hours_are_those_in_which_readings_are_furthest_from_their_means(material, data):
    train = data.part("train").values
    off = np.square((material.day.real - np.nanmean(train, axis=0)) / np.nanstd(train, axis=0))
    sums = [np.nansum(off[k : k + 8]) for k in range(len(off) - 7)]
    assert first_look.hours(material) == slice(int(np.argmax(sums)), int(np.argmax(sums)) + 8)


def test_leads_are_times_where_rows_have_dates(material):
    assert drawings._ahead(material, np.array([0, 2, 3])) == (pytest.approx([0, 2, 3]), "hours ahead")
    daily = replace(material.data.series, times=START + np.arange(len(material.data.series)) * 24 * HOUR)
    assert (
        drawings._ahead(replace(material, data=replace(material.data, series=daily)), np.array([1, 2]))[1]
        == "days ahead"
    )
    without = replace(material, data=dataset(times=False))
    assert drawings._ahead(without, np.array([1, 4])) == (pytest.approx([1, 4]), "rows ahead")


def test_names_are_shown_and_never_read_as_html(material, data):
    ids = tuple(f"<b>{k}</b> & $x$" for k in range(6))
    odd = replace(data, name="<i>", graph=replace(data.graph, node_ids=ids), channels=("<u>", "$y"), units=("<s>", "%"))
    page = report.html(replace(material, data=odd))
    assert not any(tag in page for tag in ("<b>0</b>", "<i>", "<u>", "<s>"))
    assert "<i>" in Parsed(page).text
