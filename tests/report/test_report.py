"""The report: one page that holds what was measured, needs nothing from outside, and shows in a browser."""

import json
import re
import shutil
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from browser import browse, in_browser, told
from commands import QUICK
from conftest import EDGES, speaking
from laws import close
from matplotlib.dates import date2num
from matplotlib.image import imread
from pages import Parsed

import grcd
from grcd import cli, report
from grcd.cli import paper_demo
from grcd.core.files import make_folder
from grcd.data.formats.exported import write_dataset
from grcd.data.formats.writing import write_signals
from grcd.evaluation import baselines, distances, evaluate
from grcd.metrics.distances import node_kolmogorov_smirnov
from grcd.report import drawings, hover, pictures
from grcd.report import material as material_of
from grcd.report import page as page_of
from grcd.report.material import DRAWS, LEVELS, _hidden


@pytest.fixture(scope="module")
def trained(tiny, quick, tmp_path_factory):
    run = tmp_path_factory.mktemp("report") / "run"
    grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val, run=run, name="tiny")
    return run, speaking(grcd.load(run, "cpu"))


@pytest.fixture(scope="module")
def material(trained, tiny):
    run, model = trained
    return report.Material.of(model, tiny, None, run, n=30, nfe=2, seed=5, filled=True, command="grcd report run")


@pytest.fixture(scope="module")
def page(material):
    return report.html(material)


def test_the_page_is_whole_and_refers_to_nothing_outside(page):
    found = Parsed(page)
    assert found.ids == [
        *("signals", "nodes", "frequencies", "correlations", "marginals", "scores", "training", "gaps", "provenance")
    ]
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in found.refers)
    assert {f"#{name}" for name in found.ids} <= set(found.refers)
    assert re.search(r"@import|url\((?!#)|fetch\(|XMLHttp|https?://(?!www\.w3\.org)", page) is None
    assert len(page.encode()) < 5e6


def test_tables_hold_what_evaluation_says(material, page, tiny, trained):
    _, model = trained
    x = model.sample(30, nfe=2, seed=5)
    scores, further, _, facts = Parsed(page).tables
    expected = evaluate(x, tiny, controls=True)
    named = {"generated": expected, "floor": expected.floor, "own reference": material.beside.scores}
    named |= expected.controls
    assert [row[0] for row in scores[1:]] == list(named)
    for row, score in zip(scores[1:], named.values(), strict=True):
        parts = (score.ammd, score.quadratic_variation, score.spectral_centroid, score.degree_correlation)
        assert row[1:] == [f"{part:.4f}" for part in parts]
    test = tiny.test[np.linspace(0, 39, 30).astype(int)]  # as many as there are samples
    beyond = distances(x, grcd.Dataset("tiny", tiny.graph, tiny.train, tiny.val, test))
    assert [row[1] for row in further[1:]] == [f"{d.value:.4f}" for d in beyond.values()]
    assert further[-1][2] == ""  # training signals are their own copies
    told = dict(facts)
    assert told["by"] == "grcd report run"
    assert told["data"].endswith(model.facts["data"]["hash"])
    assert told["graph"].endswith(tiny.graph.hash)
    assert "width 8" in told["settings"]
    assert "torch" in told["versions then"]
    assert "torch" in told["versions now"]


def test_the_same_numbers_make_the_same_page(material, page):
    assert report.html(material) == page


def test_the_worst_nodes_are_those_furthest_from_held_out_readings(material, tiny):
    z = [tiny.normalizer.apply(x) for x in (material.samples, tiny.test)]
    apart = node_kolmogorov_smirnov(*z).numpy()
    assert [node for node, _ in material.worst(3)] == list(np.argsort(-apart, kind="stable")[:3])
    assert [value for _, value in material.worst(3)] == pytest.approx(sorted(apart)[::-1][:3])


def test_bands_are_quantiles_of_what_the_model_fills_in(material, tiny, trained):
    bands, truth = material.bands, tiny.test  # forty signals: all of them
    assert bands.first == 0
    assert np.array_equal(bands.truth, truth[:, bands.nodes])
    spread = truth.std(axis=0) / tiny.train.std(axis=0)
    assert bands.nodes == list(np.argsort(-spread)[:3])
    given = truth.copy()
    given[:, bands.nodes] = np.nan
    drawn = trained[1].impute(given, n=DRAWS, seed=5)[:, :, bands.nodes]
    assert bands.quantiles == pytest.approx(np.quantile(drawn, LEVELS, axis=0, method="weibull"))


def test_coverage_is_the_share_of_hidden_readings_within_their_bands(material):
    levels = np.array([0.0, 1.0, 2.0, 3.0, 4.0])[:, None, None] * np.ones((5, 2, 2))
    truth = np.array([[0.5, 2.0], [3.5, np.nan]])
    assert replace(material.bands, truth=truth, quantiles=levels).covered() == (1 / 3, 1.0)


@pytest.mark.parametrize(
    ("ammd", "gain", "kind", "sentence"),
    [
        (0.02, 0.01, "good", "Nearer to 40 held-out signals than those of this run's own reference"),
        (0.02, 0.001, "good", "As near to 40 held-out signals as those of this run's own reference"),
        (0.04, 0.01, "fair", "Nearer to"),
        (0.04, -0.001, "fair", "As near to"),
        (0.04, -0.01, "bad", "Further from"),
    ],
)
def test_the_verdict_follows_the_floor_and_the_run_s_own_reference(material, ammd, gain, kind, sentence):
    scores = replace(material.scores, ammd=ammd, floor=replace(material.scores, ammd=0.019))
    shown = replace(material, scores=scores, beside=replace(material.beside, gain=gain, noise=0.005))
    found, said = report.verdict(shown)
    assert found == kind
    assert sentence in said
    assert said.startswith(f"Generated signals are {'' if kind == 'good' else 'not '}as near to 40 held-out ones")


def test_the_verdict_names_a_baseline_that_fills_gaps_better(material):
    truth = material.bands.truth
    near, far = truth + 0.1, truth + 2.0
    for ours, others, said in ((far, near, True), (near, far, False)):
        levels = np.repeat(ours[None], len(LEVELS), axis=0)
        bands = replace(material.bands, quantiles=levels, others={"fill-mean": others, "fill-gaussian": truth + 9})
        words = report.verdict(replace(material, bands=bands))[1]
        many = f"in {truth.size} hidden readings at 3 nodes."
        assert words.endswith(f"Gaps are filled better by the node's mean: 0.1 against 2, {many}") == said
    nothing = replace(bands, truth=np.full(truth.shape, np.nan))
    assert "filled better" not in report.verdict(replace(material, bands=nothing))[1]


def test_the_verdict_of_few_rows_is_that_nothing_can_be_said(material, tiny):
    few = replace(material, data=grcd.Dataset("few", tiny.graph, tiny.train, tiny.val, tiny.test[:8]))
    assert report.verdict(few) == ("fair", "8 held-out signals: nothing can be said of how near generated ones are.")


def test_the_reference_beside_is_that_of_the_run(material, trained, tiny):
    model = trained[1]
    z = model.normalizer.apply(model.signals.sample_reference(4000, seed=2))
    close(np.cov(z.T), model.reference.covariance().numpy(), 0.1)
    expected = evaluate(model.signals.sample_reference(len(material.samples), seed=5), tiny)
    assert material.beside.scores.ammd == pytest.approx(expected.ammd, rel=1e-9)


def test_the_verdict_says_if_the_network_adds_nothing(material):
    assert "nothing to add" in report.verdict(replace(material, beside=None))[1]


def test_what_is_worth_knowing_of_the_data_is_said_at_the_top(material, tiny):
    data = replace(tiny, notes=("1 reading is far from all others (1e+09 at node <c>)", "2 rows have no reading"))
    top = Parsed(page_of._summary(replace(material, data=data))).text
    assert [text for text in top if text.startswith("Note: ")] == [f"Note: {note}." for note in data.notes]


def test_names_are_shown_and_never_read_as_html(material, tiny, trained):
    ids = ["<b>bold</b>", "a & b", '"quoted"', "station 3", "station 4", "station 5"]
    data = grcd.Dataset("<i>", replace(tiny.graph, node_ids=tuple(ids)), tiny.train, tiny.val, tiny.test, unit="<u>")
    page = report.html(replace(material, data=data))
    assert not any(tag in page for tag in ("<b>bold", "<i>", "<u>"))
    shown = "".join(Parsed(page).text)
    assert all(name in shown for name in ("<i>", *(ids[node] for node, _ in material.worst(6))))


def test_gaps_no_log_and_other_data_leave_sections_out_and_say_so(tiny, trained):
    _, model = trained
    test = tiny.test.copy()
    test[::3, 1] = np.nan
    page = report.html(report.Material.of(model, grcd.Dataset("other", tiny.graph, tiny.train[:50], tiny.val, test)))
    found = Parsed(page)
    assert {"training", "gaps"}.isdisjoint(found.ids)
    assert "Distances of whole signals are left out" in page
    assert "not the data that the run was trained on" in page
    assert "not the data" not in report.html(report.Material.of(model, tiny, model.sample(12)))


def test_data_on_another_graph_are_refused(tiny, trained):
    other = grcd.Graph.from_adjacency(2 * tiny.graph.weights.toarray() + 0.1 - 0.1 * np.eye(6), tiny.graph.node_ids)
    data = grcd.Dataset("other", other, tiny.train, tiny.val, tiny.test)
    with pytest.raises(grcd.InputError, match="another graph"):
        report.Material.of(trained[1], data)


def test_colours_follow_the_page(material):
    svg = drawings.svg(drawings.training, material)
    assert svg.startswith("<svg")
    assert not re.search(r"#333333|#1b6ca8|#b3123f|#000000", svg)
    assert all(name in svg for name in ("currentColor", "var(--data)", "var(--samples)", "var(--reference)"))


def test_a_large_matrix_is_shown_by_the_means_of_its_blocks():
    matrix = np.random.RandomState(0).standard_normal((601, 601))
    found = drawings._coarse(matrix)
    assert found.shape == (300, 300)
    edges = [int(k * 601 / 300) for k in range(301)]
    for i, j in ((0, 0), (150, 7), (299, 299)):
        block = matrix[edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
        assert found[i, j] == pytest.approx(block.mean())
    assert np.array_equal(drawings._coarse(matrix[:5, :5]), matrix[:5, :5])


def test_correlations_are_over_the_signals_in_which_both_have_a_reading():
    x = np.random.RandomState(1).standard_normal((50, 3)) @ np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1.0]])
    assert drawings._correlation(x) == pytest.approx(np.corrcoef(x.T), abs=1e-12)
    x[::2, 0] = np.nan
    z = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
    assert drawings._correlation(x)[0, 1] == pytest.approx(np.nanmean(z[:, 0] * z[:, 1]))


def test_nodes_are_drawn_where_they_are_and_joined_there(tiny):
    """Else by hops: a map of stations that is no map would look as good."""
    places = np.random.RandomState(0).uniform(size=(6, 2)) * [1.0, 30.0]
    graph = grcd.Graph.from_adjacency(tiny.graph.weights, coords=places)
    figure = pictures.signals_on_graph(pictures.Drawn(graph), {"a": np.arange(12.0).reshape(2, 6)})
    for axis, values in zip(figure.axes, (np.arange(6.0), np.arange(6.0, 12.0)), strict=False):
        lines, dots = axis.collections
        assert np.array_equal(dots.get_offsets(), places)
        assert np.array_equal(dots.get_array(), values)
        joined = {frozenset(map(places.tolist().index, ends.tolist())) for ends in lines.get_segments()}
        assert joined == {frozenset(edge[:2]) for edge in EDGES}


def test_a_large_graph_is_drawn_in_little_space():
    ring = sp.diags_array([np.ones(1019)], offsets=[1], shape=(1020, 1020)).tolil()
    ring[0, 1019] = 1.0
    graph = grcd.Graph.from_adjacency((ring + ring.T).toarray())
    svg = drawings.svg(
        pictures.signals_on_graph, pictures.Drawn(graph), {"a": np.random.RandomState(0).standard_normal((2, 1020))}
    )
    assert len(svg) < 400_000


def test_what_differs_by_little_looks_alike():
    found = pictures.scale(np.array([9.99, 10.0, 10.01]), least=1.0)
    assert found["vmax"] - found["vmin"] == pytest.approx(1.0)
    assert (found["vmax"] + found["vmin"]) / 2 == pytest.approx(10.0)


@pytest.mark.parametrize("values", [np.linspace(-3, 2, 99), np.linspace(10, 70, 99), np.linspace(-0.1, 5, 99)])
def test_colours_meet_at_zero_only_where_readings_lie_about_it(values):
    found = pictures.scale(values)
    assert (found["cmap"] == "RdBu_r") == (values[0] == -3)
    assert found["vmin"] < found["vmax"]
    if values[0] == -3:
        assert found["vmin"] == -found["vmax"]


# -- command line ------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, capsys):
    """A command in some folder: its exit status and what it said."""

    def command(*words, cwd):
        with monkeypatch.context() as patched:
            patched.chdir(cwd)
            patched.setattr(sys, "argv", ["grcd", *map(str, words)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises(SystemExit) as stopped:
                    cli.main()
        return stopped.value.code or 0, capsys.readouterr()

    return command


@pytest.fixture
def folder(tmp_path, tiny, run):
    write_dataset(tmp_path / "tiny.npz", tiny)
    status, _ = run("train", "--data", "tiny.npz", "--max-updates", 40, "--out", "run", *QUICK, cwd=tmp_path)
    assert status == 0
    return tmp_path


def refused(result):
    status, said = result
    assert status == 2
    assert all(part in said.err for part in ("got ", "\nexpected ", "\nto fix: "))
    return said.err


def test_a_run_finds_its_data_again_and_reports_into_its_folder(folder, tiny, run):
    status, said = run("report", "run", "-n", 20, "--device", "cpu", cwd=folder)
    assert status == 0
    assert said.out.startswith("run/report.html: ")
    told = dict(Parsed((folder / "run/report.html").read_text()).tables[-1])
    assert told["by"] == "grcd report run -n 20 --device cpu"
    assert told["trained by"].startswith("grcd train --data tiny.npz --max-updates 40")
    write_signals(folder / "x.npz", tiny.train[:25], tiny.graph.node_ids)
    assert run("report", "run", "--samples", "x.npz", "--out", "given.html", cwd=folder)[0] == 0
    scores = Parsed((folder / "given.html").read_text()).tables[0]
    assert scores[1][1] == f"{evaluate(tiny.train[:25], tiny).ammd:.4f}"
    assert "exists already" in refused(run("report", "run", "--out", "given.html", cwd=folder))


def test_what_cannot_be_reported_is_refused_and_leaves_nothing(folder, tiny, quick, run):
    tmp_path = make_folder(folder / "elsewhere")
    grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val).save(tmp_path / "arrays")
    assert "--data FILE" in refused(run("report", "arrays", cwd=tmp_path))
    named = run("report", "arrays", "--data", folder / "tiny.npz", "--out", "page.html", "-n", 12, cwd=tmp_path)
    assert named[0] == 0
    assert "not a run folder" in refused(run("report", "nowhere", cwd=tmp_path))
    assert "n = 0" in refused(run("report", "run", "-n", 0, "--out", tmp_path / "none.html", cwd=folder))
    shutil.copytree(folder / "run", tmp_path / "moved")
    (tmp_path / "moved/report.html").unlink(missing_ok=True)
    (folder / "tiny.npz").unlink()
    moved = refused(run("report", "moved", cwd=tmp_path))
    assert "tiny.npz" in moved
    assert "--data FILE" in moved
    assert not (tmp_path / "moved/report.html").exists()
    assert not (tmp_path / "none.html").exists()


# -- maps and colours --------------------------------------------------------------------------------------------------


def test_nodes_of_a_map_have_their_names_in_order(material, tiny):
    ids = ("<b>", "a & b", *tiny.graph.node_ids[2:])
    drawn = pictures.Drawn(tiny.graph)
    text = hover.named(drawings.svg(drawings.signals, material, drawn), ids)
    groups = re.findall(r'<g class="nodes">(.*?)</g>', text, re.DOTALL)
    assert len(groups) == 8
    for group in groups:
        assert re.findall(r"<use [^>]*><title>(.*?)</title></use>", group) == ["&lt;b&gt;", "a &amp; b", *ids[2:]]
    x, y = (np.array(re.findall(rf' {axis}="([\d.]+)"', groups[0]), dtype=float) for axis in "xy")
    across, up = drawn.place.T  # drawn where they are: one scale, and y downwards
    assert np.corrcoef(x, across)[0, 1] == pytest.approx(1.0)
    assert np.corrcoef(y, up)[0, 1] == pytest.approx(-1.0)


def test_readings_lie_on_the_page_and_are_thinned_where_they_are_many(monkeypatch):
    x = np.array([[1.23456, np.nan], [2.0, -3e-7], [4.0, 5.0]])
    told = read(hover.script(["</script>", "b"], {"held-out": x, "generated": x}, ("then", "now"), "m"))
    assert told["names"] == ["</script>", "b"]
    assert told["lines"] == {name: [[1.235, 2.0, 4.0], [None, -3e-7, 5.0]] for name in ("held-out", "generated")}
    monkeypatch.setattr(hover, "MOST", 4)
    assert read(hover.script(["a", "b"], {"held-out": x}, ("", ""), ""))["lines"]["held-out"][0] == [1.235, 4.0]


def read(scripts):
    return json.loads(re.search(r'id="readings">(.*?)</script>', scripts, re.DOTALL)[1])


def test_of_many_edges_the_strongest_are_drawn_and_none_that_holds_the_graph_together_is_left_out():
    random = np.random.default_rng(0)
    W = np.triu(random.random((60, 60)), 1)
    W[:, 0] = W[0, :] = 0.0
    W[0, 1] = 1e-6  # the only edge of the first node, and the weakest
    graph = grcd.Graph.from_adjacency(W + W.T)
    drawn = pictures.Drawn(graph)
    assert (len(drawn.edges), drawn.left_out) == (pictures.MOST_EDGES, graph.pairs - pictures.MOST_EDGES)
    kept = {tuple(edge) for edge in drawn.edges.tolist()}
    assert (0, 1) in kept
    network = networkx.Graph([*kept])
    assert networkx.number_connected_components(network) == 1
    order = sorted(zip(*np.nonzero(W), strict=True), key=lambda edge: -W[edge])
    tree = networkx.maximum_spanning_tree(networkx.from_numpy_array(W + W.T)).edges
    strongest = [edge for edge in order if edge not in tree][: pictures.MOST_EDGES - 59]
    assert kept == {*strongest, *((min(edge), max(edge)) for edge in tree)}


@pytest.mark.parametrize(
    ("values", "norm"),
    [
        (np.exp(np.linspace(-4, 8, 500)), "LogNorm"),  # half of them within a thousandth of the range
        (np.concatenate([np.zeros(10), np.exp(np.linspace(-4, 8, 500))]), "AsinhNorm"),
        (np.sinh(np.linspace(-9, 9, 500)), "AsinhNorm"),
        (np.linspace(1, 5, 500), None),
        (np.concatenate([np.full(400, 3.0), np.linspace(1, 5, 100)]), None),  # one value: nothing to tell apart
    ],
)
def test_colours_are_logarithmic_where_most_readings_would_look_alike(values, norm):
    found = pictures.scale(values)
    assert (type(found["norm"]).__name__ if "norm" in found else None) == norm
    if norm:
        shown = np.asarray(found["norm"](values))
        assert np.ptp(np.quantile(shown, [0.25, 0.75])) > 0.2  # and now they do not
        assert (np.diff(np.sort(shown)) >= 0).all()


def test_times_stand_in_place_of_numbers(material, tiny):
    times = np.datetime64("2024-05-01T00:00", "s") + np.arange(len(tiny.test)) * np.timedelta64(1, "h")
    dated = replace(material, data=replace(tiny, times={"test": times}))
    text = drawings.svg(drawings.signals, dated, pictures.Drawn(tiny.graph))
    chosen = np.linspace(0, len(times) - 1, 6).astype(int)[1:-1]
    assert re.findall(r">(2024-05-0\d \d\d:\d\d)<", text) == [pictures.written(times[row]) for row in chosen]
    bottom = drawings.fillings(dated, dated.bands).axes[-1]
    line = next(each for each in bottom.lines if each.get_label() == "median")
    assert np.array_equal(line.get_xdata(), date2num(times[dated.bands.first :][: len(dated.bands.truth)]))
    assert bottom.get_xlabel() == ""


def test_the_title_names_the_data(material, tiny):
    data = replace(material.data, name="stations", unit="km")
    title = re.search(r"<title>(.*?)</title>", report.html(replace(material, data=data)))[1]
    many = sum(len(tiny.split(split)) for split in ("train", "val", "test"))
    assert title == f"stations, 6 nodes, {many} signals, km: GRCD"


def test_simple_ways_to_fill_stand_beside_the_models(material, page, tiny):
    shown = dict(row for row in Parsed(page).tables[2][1:])
    bands = material.bands
    off = np.abs(tiny.train.mean(axis=0)[bands.nodes] - bands.truth).mean()
    assert float(shown["the node's mean"]) == pytest.approx(off, rel=1e-3)
    assert float(shown["GRCD"]) == pytest.approx(np.abs(bands.quantiles[2] - bands.truth).mean(), rel=1e-3)
    holed = tiny.test.copy()
    holed[:, bands.nodes] = np.nan
    (_, drawn), *_ = baselines.fitted("fill-gaussian", tiny)(holed, DRAWS, 5)
    gaussian = np.abs(np.median(drawn, axis=0)[:, bands.nodes] - bands.truth).mean()
    assert float(shown["one Gaussian"]) == pytest.approx(gaussian, rel=1e-3)


# -- in a browser ------------------------------------------------------------------------------------------------------


@in_browser
@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_sticks_out_of_the_window(page, tmp_path, width):
    measure = "document.title = document.documentElement.scrollWidth + ' of ' + window.innerWidth"
    scrolls, window = map(int, told(page, tmp_path, measure, width).split(" of "))
    assert scrolls <= window


@in_browser
def test_the_page_is_dark_on_light_or_light_on_dark_as_asked(page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page)
    for scheme, bright in ((1, True), (0, False)):
        shot = tmp_path / f"{scheme}.png"
        browse(
            "--window-size=900,900",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--screenshot={shot}",
            file.as_uri(),
        )
        shown = imread(shot)[..., :3]
        corner = shown[:10, :10].mean()
        assert (corner > 0.9) == bright
        assert (np.abs(shown - corner).max(axis=-1) > 0.5).mean() > 0.005  # and something can be read on it


@in_browser
def test_pointing_at_a_node_shows_its_name_and_its_readings(page, material, tmp_path):
    """And leaving it hides them; nothing goes wrong on the way."""
    point = """
    addEventListener("error", (event) => { document.title = "error " + event.message; });
    const dot = document.querySelectorAll("g.nodes")[3].querySelectorAll("use")[4];
    const tip = document.getElementById("tip");
    const at = { clientX: 300, clientY: 300 }, before = tip.hidden;
    dot.dispatchEvent(new PointerEvent("pointerenter", at));
    const shown = [tip.querySelector("b").textContent, tip.querySelector("path").getAttribute("d"), tip.innerText];
    const inside = tip.getBoundingClientRect(), fits = inside.left >= 0 && inside.right <= innerWidth;
    dot.dispatchEvent(new PointerEvent("pointerleave", at));
    document.title = JSON.stringify([before, ...shown, fits, tip.hidden]);
    """
    before, name, path, words, fits, after = json.loads(told(page, tmp_path, point, 390))
    assert (before, fits, after) == (True, True, True)
    assert name == material.data.graph.node_ids[4]
    y = np.array(re.findall(r"[ML][\d.]+ ([\d.]+)h0", path), dtype=float)
    readings = material.real[:, 4]
    assert np.corrcoef(y, readings)[0, 1] == pytest.approx(-1.0, abs=1e-3)  # upwards
    assert f"{float(f'{readings.min():.3g}'):g} to {float(f'{readings.max():.3g}'):g}" in words


def test_the_variance_of_a_frequency_is_that_of_whole_signals_and_with_gaps_of_the_pairs_there_are(tiny):
    U, random = tiny.graph.spectrum.U, np.random.default_rng(0)
    x = random.standard_normal((300, 6)) @ (np.eye(6) + 0.5)
    assert pictures._variance(x, U) == pytest.approx((x @ U).var(axis=0), rel=1e-9)
    x[random.random(x.shape) < 0.5] = np.nan  # one in sixty-four is whole
    off = x - np.nanmean(x, axis=0)
    C = [[np.nanmean(off[:, i] * off[:, j]) for j in range(6)] for i in range(6)]
    assert pictures._variance(x, U) == pytest.approx(np.diag(U.T @ np.array(C) @ U), rel=1e-9)


def test_a_page_is_html_and_another_graph_needs_its_data(trained, run, tmp_path):
    folder = trained[0]
    status, said = run("report", folder, "--out", "page.pdf", cwd=tmp_path)
    assert (status, [*tmp_path.iterdir()]) == (2, [])
    assert ".html" in said.err
    status, said = run("report", folder, "--graph", "other.csv", cwd=tmp_path)
    assert status == 2
    assert "--graph without --data" in said.err


def test_readings_that_were_filled_in_are_not_compared_with(trained, tiny):
    """They are hidden from the model too: nothing of them is on the page but the map of the signals."""
    made_up = np.zeros(tiny.test.shape, dtype=bool)
    made_up[::2] = True
    data = replace(tiny, test=np.where(made_up, 1e3, tiny.test), filled={"test": made_up})
    few = replace(tiny, test=np.where(made_up, np.nan, tiny.test))
    found, expected = (
        report.Material(trained[1], each, tiny.train, "", None, {}, bands=_hidden(trained[1], each, 0))
        for each in (data, few)
    )
    assert found.worst(6) == expected.worst(6)
    assert np.array_equal(found.bands.truth, expected.bands.truth, equal_nan=True)
    assert np.array_equal(found.bands.quantiles, expected.bands.quantiles)
    assert np.array_equal(found.real, few.test, equal_nan=True)


def test_every_picture_shows_what_its_title_says(material, tiny, monkeypatch):
    shown, model = {}, material.model
    z, U = tiny.normalizer.apply, tiny.graph.spectrum.U
    monkeypatch.setattr(pictures, "mode_variances", lambda graph, *given: shown.update(modes=given))
    drawings.frequencies(material)
    data, reference, samples = shown["modes"]
    assert np.array_equal(data, z(tiny.test))
    assert reference == pytest.approx(np.diag(U.T @ model.reference.covariance().numpy() @ U))
    assert np.array_equal(samples, z(material.samples))
    monkeypatch.setattr(pictures, "signals_on_graph", lambda drawn, rows, unit, when: shown.update(rows))
    drawings.signals(material, None)
    assert np.array_equal(shown["Generated signals"], material.samples[:4])
    assert np.isin(shown["Held-out signals"], tiny.test).all()


def test_maps_matrices_histograms_and_curves_are_of_their_sides(material, tiny, monkeypatch):
    maps, drawn = [], pictures.Drawn(tiny.graph)
    usual = pictures.Drawn.signal
    monkeypatch.setattr(pictures.Drawn, "signal", lambda *a, **k: maps.append(a[2]) or usual(*a, **k))
    drawings.node_moments(material, drawn)
    sides = (tiny.test, material.samples)
    expected = [*(x.mean(axis=0) for x in sides), *(x.std(axis=0) for x in sides)]
    assert np.array(maps) == pytest.approx(np.array(expected))
    order = np.argsort(drawn.place[:, np.argmax(np.ptp(drawn.place, axis=0))])
    images = [axis.images[0].get_array() for axis in drawings.correlations(material, drawn).axes[:3]]
    real, made = (np.corrcoef(x[:, order].T) for x in sides)
    for image, matrix in zip(images, (real, made, made - real), strict=True):
        assert np.asarray(image) == pytest.approx(matrix, abs=1e-9)
    (node, _), *_ = material.worst(1)
    bins = drawings.marginals(material).axes[0].patches
    both = np.concatenate([x[:, node] for x in sides])
    edges = np.linspace(*np.quantile(both, [0.001, 0.999]), 31)
    for patch, x in zip(bins, sides, strict=True):
        heights = np.histogram(np.clip(x[:, node], edges[0], edges[-1]), edges, density=True)[0]
        assert patch.get_xy()[:, 1].max() == pytest.approx(heights.max())
    curves = {line.get_label(): line.get_ydata() for line in drawings.training(material).axes[0].lines}
    assert list(curves["validation"]) == [record["val"] for record in material.curve]
    assert list(curves["training"]) == [record["train"] for record in material.curve]


def test_the_page_has_rules_for_print(page):
    assert "@media print" in page


def test_the_demo_of_the_paper_ends_with_the_report(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paper_demo, "load_dataset", lambda name: tiny)
    quick = {"width": 8, "max_updates": 20, "validate_every": 10}
    monkeypatch.setattr(paper_demo, "SETTINGS", dict.fromkeys(paper_demo.SETTINGS, quick))
    paper_demo.demo(tmp_path / "demo")
    page = (tmp_path / "demo/report.html").read_text()
    assert "gaps" in Parsed(page).ids
    assert capsys.readouterr().out.count("report.html") == 1


def test_maps_of_a_large_graph_stay_small():
    side = np.arange(1600).reshape(40, 40)
    W = np.zeros((1600, 1600))
    for a, b in ((side[1:], side[:-1]), (side[:, 1:], side[:, :-1])):
        W[a.ravel(), b.ravel()] = W[b.ravel(), a.ravel()] = 1.0
    graph = replace(grcd.Graph.from_adjacency(W), coords=np.argwhere(side >= 0).astype(float))
    x = np.random.default_rng(0).standard_normal((20, 1600))
    data = SimpleNamespace(graph=graph, test=x, unit="", times={})
    material, drawn = SimpleNamespace(data=data, real=x, samples=x[::-1]), pictures.Drawn(graph)
    pages = [drawings.svg(each, material, drawn) for each in (drawings.signals, drawings.node_moments)]
    assert sum(len(page) for page in pages) < 2.5e6  # of 5 MB, for half of what is on a page


def test_what_is_filled_is_near_the_middle_where_most_was_read(trained, tiny, monkeypatch):
    monkeypatch.setattr(material_of, "SPAN", 4)
    assert _hidden(trained[1], tiny, 0).first == 18  # nothing is missing: the middle of forty
    x = tiny.test.copy()
    x[13:24, 1:] = np.nan
    assert _hidden(trained[1], replace(tiny, test=x), 0).first == 26  # all from 10 to 22 lack some


NAMES = ["$x^2$", "=SUM(A1)", "price $5", "שלום", "a" * 300, "two\nlines"]


def test_names_are_drawn_as_they_are(material):
    """A dollar starts no formula, what is long loses its middle, and what follows a name stays behind it."""
    graph = replace(material.data.graph, node_ids=tuple(NAMES))
    named = replace(material, data=replace(material.data, graph=graph, unit="$/m^2$"))
    shown = drawings.svg(drawings.marginals, named)
    titles = re.findall(r">([^<>]*): \d\.\d\d</text>", shown)
    short = f"{'a' * 18}\u2026{'a' * 11}"
    assert sorted(titles) == sorted(["$x^2$", "=SUM(A1)", "price $5", "שלום\u200e", short, "two lines"])
    assert shown.count(">$/m^2$</text>") == 6


def test_a_gap_is_named_literally_in_the_picture_of_an_inspection(tiny):
    graph = replace(tiny.graph, node_ids=tuple(NAMES))
    shown = pictures.inspected(replace(tiny, name="$a$ and $b$", graph=graph))
    shown.draw_without_rendering()
    labels = [label.get_text() for label in shown.axes[2].get_xticklabels()]
    assert labels[:3] == [r"\$x^2\$", "=SUM(A1)", r"price \$5"]
    assert max(map(len, labels)) == 20
    assert shown.get_suptitle().startswith(r"\$a\$ and \$b\$: ")


def test_the_name_of_the_data_is_isolated_from_the_words_around_it(material):
    page = report.html(replace(material, data=replace(material.data, name="שלום <b>")))
    assert "<h1><bdi>שלום &lt;b&gt;</bdi></h1>" in page
