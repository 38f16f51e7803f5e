"""The benchmark's figures: the numbers drawn, by hand on invented cells, and what becomes of those that lack cells."""

import math
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from commands import refused
from matplotlib.figure import Figure

import grcd
from grcd.bench import cells as files
from grcd.bench import figures
from grcd.bench.cells import Control, Floor, Generated
from grcd.core.errors import InputError

SEEDS = (0, 1, 2)


@pytest.fixture
def measure(tmp_path):
    """Write a cell as if it had been measured."""

    def written(cell, ammd=None, **more):
        files.write(cell, tmp_path, **({} if ammd is None else {"scores": {"ammd": ammd}}), **more)

    return written


@pytest.fixture
def snr(measure):
    """Both terminal references on METR-LA in both regimes, for three sensors; without the fitted one of seed 0."""
    for kappa, scalar, fitted in ((None, 0.4, 0.1), (32.6356, 0.2, 0.2)):
        for seed in SEEDS:
            cell = Generated("metr-la", "clock", seed, 16, kappa=kappa)
            measure(cell, scalar, node_std=[0.5 + seed, 1.0, scalar])
            if seed > 0:
                measure(replace(cell, method="clock+reference"), fitted * seed, node_std=[0.9, 1.0 + seed, fitted])


@pytest.fixture
def main(measure):
    """Two methods on SBM c = 16, with a failed cell and one that is not there; controls and floor."""
    for seed, (first, second) in enumerate(((0.1, 2.0), (0.2, 4.0), (0.6, -9.0))):
        measure(Generated("sbm-c16", "grcd", seed, 4), first)
        measure(Generated("sbm-c16", "edm", seed, 8), second)
    measure(Generated("sbm-c16", "edm", 0, 4), 3.0)
    measure(Generated("sbm-c16", "edm", 1, 4), error="RuntimeError: no memory")
    for name, values in (("full", (0.3, 0.5)), ("mixture", (0.1, 0.5)), ("diagonal", (0.05, 2.0))):
        for seed, value in enumerate(values):
            measure(Control("sbm-c16", f"control-{name}", seed), value)
    measure(Floor("sbm-c16"), -0.0001)


# -- the numbers -------------------------------------------------------------------------------------------------------


def test_ratios_are_paired_by_seed(measure, tmp_path):
    values = {0: (0.1, 0.1), 1: (0.9, 0.3), 2: (0.3, None)}  # mean of the ratios 2, ratio of the means 2.5
    for seed, (scalar, fitted) in values.items():
        cell = Generated("sbm-c4", "clock", seed, 16)
        measure(cell, scalar)
        measure(replace(cell, kappa=32.64), scalar / 2)
        if fitted is not None:
            measure(replace(cell, method="clock+reference"), fitted)
    measure(Generated("sbm-c4", "clock+reference", 1, 16, kappa=32.64), 0.5)
    measure(Generated("sbm-c4", "clock+reference", 0, 8), 0.7)  # another budget
    found = figures.ratios("sbm-c4", SEEDS, tmp_path)
    assert found == {False: pytest.approx({0: 1.0, 1: 3.0}), True: pytest.approx({1: 0.9})}
    assert figures.ratios("sbm-c4", [0], tmp_path) == {False: {0: 1.0}, True: {}}
    (axis,) = figures._terminal_snr(dict.fromkeys(["molene", "sbm-c4"], SEEDS), tmp_path).axes
    assert [text.get_text() for text in axis.texts] == ["2.00", "0.90"]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["sbm-c4"]


def test_a_ratio_of_what_is_below_zero(measure, tmp_path):
    measure(Generated("sbm-c1", "clock", 0, 16), 0.05)
    measure(Generated("sbm-c1", "clock+reference", 0, 16), -0.0002)
    assert figures.ratios("sbm-c1", [0], tmp_path)[False][0] == pytest.approx(0.05 / figures.LEAST)


def test_near_zero_is_where_the_suite_measures_it(snr, tmp_path):
    assert figures.ratios("metr-la", SEEDS, tmp_path) == {
        False: pytest.approx({1: 4.0, 2: 2.0}),
        True: pytest.approx({1: 1.0, 2: 0.5}),
    }


def test_deviations_of_the_lowest_seed_that_is_complete(snr, tmp_path):
    seed, found = figures.deviations([2, 0, 1], tmp_path)
    assert seed == 1
    assert {place: list(std) for place, std in found.items()} == {
        ("clock", False): [1.5, 1.0, 0.4],
        ("clock", True): [1.5, 1.0, 0.2],
        ("clock+reference", False): [0.9, 2.0, 0.1],
        ("clock+reference", True): [0.9, 2.0, 0.2],
    }
    with pytest.raises(InputError, match="grcd bench run snr --settings metr-la --seeds 0 "):
        figures.deviations([0], tmp_path)


def test_curves_are_means_over_the_seeds_that_came_through(main, tmp_path):
    found = figures.curves("sbm-c16", SEEDS, tmp_path)
    assert {name: {nfe: entry.values for nfe, entry in row.items()} for name, row in found.items()} == {
        "grcd": {4: {0: 0.1, 1: 0.2, 2: 0.6}},
        "edm": {4: {0: 3.0}, 8: {0: 2.0, 1: 4.0, 2: -9.0}},
    }
    assert (found["grcd"][4].mean, found["grcd"][4].sd) == pytest.approx((0.3, math.sqrt(0.07)))
    with pytest.raises(InputError, match="grcd bench run main --settings molene"):
        figures.curves("molene", SEEDS, tmp_path)


def test_the_papers_cells_are_drawn_where_they_are_and_filled_in_its_band(measure, tmp_path):
    measure(Generated("sbm-c1", "edm", 0, 16), 0.33)  # the paper: 0.4285 +- 0.0026, and 30 % of it down to 0.29995
    measure(Generated("sbm-c1", "gad", 0, 4), 1.5)  # 2.2376 +- 0.0018, down to 1.566
    measure(Generated("sbm-c4", "grcd-rho3", 0, 8), -0.01)  # 0.0646, drawn at the least
    measure(Generated("sbm-c4", "grcd", 0, 8), 0.02)  # not the paper's
    (axis,) = figures._paper(["sbm-c1", "sbm-c4"], SEEDS, tmp_path).axes
    dots = {tuple(line.get_xydata()[0]): line for line in axis.lines if len(line.get_xydata()) == 1}
    assert set(dots) == {(0.4285, 0.33), (2.2376, 1.5), (0.0646, figures.LEAST)}
    assert [dots[place].get_marker() for place in dots] == ["D", "D", "^"]
    assert {place: dot.get_markerfacecolor() for place, dot in dots.items()} == {
        (0.4285, 0.33): figures.VIVID["edm"],
        (2.2376, 1.5): "white",
        (0.0646, figures.LEAST): "white",
    }
    title = axis.get_title(loc="left")
    assert title == "1 of 80 cells within 30 % or two of the paper's sd; 77 not measured"
    with pytest.raises(InputError, match="grcd bench run main --settings molene"):
        figures._paper(["molene"], SEEDS, tmp_path)


def test_every_budget_that_was_measured_has_its_tick(main, measure, tmp_path):
    (axis,) = figures._nfe("sbm-c16", [0, 1], tmp_path).axes
    before = list(axis.get_xticks())
    measure(Generated("sbm-c16", "grcd", 0, 1), 0.02)
    (axis,) = figures._nfe("sbm-c16", [0, 1], tmp_path).axes
    assert list(axis.get_xticks()) == [1, *before]
    assert [text.get_text() for text in axis.get_xticklabels()] == [str(nfe) for nfe in (1, *before)]


def test_the_best_control_has_the_lowest_mean(main, tmp_path):
    assert figures.levels("sbm-c16", tmp_path) == {"control-mixture": pytest.approx(0.3), "floor": -0.0001}
    assert figures.levels("molene", tmp_path) == {}


def test_what_is_below_zero_is_drawn_at_the_least(main, tmp_path):
    (axis,) = figures._nfe("sbm-c16", SEEDS, tmp_path).axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
    assert lines == {
        "grcd": [pytest.approx(0.3)],
        "edm (1 of 3 seeds)": [3.0, figures.LEAST],
        "best control: mixture (0.3000)": pytest.approx([0.3, 0.3]),
        "floor (-0.0001)": [figures.LEAST] * 2,
    }
    assert f"{figures.LEAST:g}" in axis.get_ylabel()
    band = axis.collections[0].get_paths()[0].vertices[:, 1]  # of grcd
    assert (band.min(), band.max()) == pytest.approx((0.3 - math.sqrt(0.07), 0.3 + math.sqrt(0.07)))


def test_costs_join_the_time_of_one_seed_with_the_quality_of_all(main, measure, tmp_path):
    def took(method, nfe, seconds):
        measure(Generated("sbm-c16", method, 0, nfe, measure="time"), time={"sampling": seconds, "network": 99.0})

    took("grcd", 4, 0.5)
    took("grcd", 6, 0.7)  # of no known quality
    took("edm", 8, 0.9)
    took("gad", 4, 0.1)
    measure(Generated("sbm-c16", "edm", 0, 4, measure="time"), error="RuntimeError: no memory")
    found = figures.costs("sbm-c16", SEEDS, tmp_path)
    assert {name: [(at.nfe, at.seconds, at.network, at.quality.mean) for at in row] for name, row in found.items()} == {
        "grcd": [(4, 0.5, 99.0, pytest.approx(0.3))],
        "edm": [(8, 0.9, 99.0, pytest.approx(-1.0))],
    }
    (axis,) = figures._cost("sbm-c16", SEEDS, tmp_path).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axis.lines}
    assert drawn["grcd"] == [pytest.approx([0.5, 0.3])]
    assert drawn["edm"] == [[0.9, figures.LEAST]]
    with pytest.raises(InputError, match="grcd bench run cost --settings sbm-c16 --seeds 1 "):
        figures.costs("sbm-c16", [1], tmp_path)


def test_a_method_with_two_names_is_one_line(measure, tmp_path):
    for name in ("grcd-epsilon-heun", "clock+reference", "clock", "clock+reference+residual+exponential"):
        measure(Generated("metr-la", name, 0, 4), 0.1)
        measure(Generated("metr-la", name, 0, 4, measure="time"), time={"sampling": 1.0, "network": 1.0})
    found = figures.costs("metr-la", [0], tmp_path)
    assert list(found) == ["grcd-epsilon-heun", "clock", "clock+reference+residual+exponential"]


# -- the files ---------------------------------------------------------------------------------------------------------


def test_the_sensors_are_where_they_are(snr, tmp_path, monkeypatch):
    W = np.ones((3, 3)) - np.eye(3)
    place = np.array([[-118.5, 34.1], [-118.4, 34.2], [-118.3, 34.1]])
    graph = grcd.Graph.from_adjacency(W, coords=place)
    random = np.random.RandomState(0)
    data = grcd.Dataset("metr-la", graph, *(random.standard_normal((5, 3)) for _ in range(3)))
    monkeypatch.setattr(figures, "load_dataset", lambda name: {"metr-la": data}[name])
    figure = figures._sensor_std(SEEDS, tmp_path)
    panels = figure.axes[:4]
    assert [panel.get_title(loc="left") for panel in panels] == [
        "scalar, kappa 2: mean 0.967",
        "fitted, kappa 2: mean 1.000",
        "scalar, near zero SNR: mean 0.900",
        "fitted, near zero SNR: mean 1.033",
    ]
    for panel, values in zip(panels, ([1.5, 1.0, 0.4], [0.9, 2.0, 0.1], [1.5, 1.0, 0.2], [0.9, 2.0, 0.2]), strict=True):
        (dots,) = panel.collections
        assert np.array_equal(dots.get_offsets(), place)
        assert list(dots.get_array()) == values
        assert sum(dots.get_clim()) == pytest.approx(2.0)  # white is 1
        assert not len(panel.get_xticks())  # no positions to read off
        assert not len(panel.get_yticks())
        assert dots.get_clim() == panels[0].collections[0].get_clim()
    (bar,) = panels[2].lines
    degrees = np.ptp(bar.get_xdata()) * np.cos(np.radians(place[:, 1].mean()))
    assert degrees * 40_075 / 360 == pytest.approx(5, rel=1e-3)  # kilometres around the earth


def test_files_are_written_whole_or_not_at_all(main, tmp_path, monkeypatch):
    out = tmp_path / "figures"
    figures.draw(tmp_path, out, ["sbm-c16"])
    assert sorted(path.name for path in out.iterdir()) == ["nfe-sbm-c16.png", "paper.png"]
    before = (out / "nfe-sbm-c16.png").read_bytes()
    assert np.ptp(matplotlib.image.imread(out / "nfe-sbm-c16.png")) > 0

    def full(figure, path, **settings):
        path.write_bytes(b"half a pict")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(InputError, match="No space left"):  # not a figure that lacks cells
        figures.draw(tmp_path, out, ["sbm-c16"])
    assert sorted(path.name for path in out.iterdir()) == ["nfe-sbm-c16.png", "paper.png"]
    assert (out / "nfe-sbm-c16.png").read_bytes() == before


def test_on_the_command_line(main, snr, tmp_path, here, monkeypatch):
    chosen = ["--results", ".", "--settings", "metr-la,sbm-c16", "--out", "drawn"]
    for variable in ("GRCD_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    result = here("bench", "figures", *chosen, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    drawn = [line for line in result.stdout.splitlines() if line.startswith("drawn: ")]
    names = ["paper.png", "terminal-snr.png", "nfe-sbm-c16.png"]
    assert drawn == [f"drawn: drawn/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == sorted(names)
    left = dict(line.split(": ", 2)[1:] for line in result.stdout.splitlines() if line not in drawn)
    assert {name: why.split("; ", 1)[1] for name, why in left.items() if name != "sensor-std.png"} == {
        "calibration.png": "grcd bench run imputation --settings metr-la-point --seeds 0,1,2 --results .",
        "cost-metr-la.png": "grcd bench run cost --settings metr-la --seeds 0,1,2 --results .",
        "cost-sbm-c16.png": "grcd bench run cost --settings sbm-c16 --seeds 0,1,2,3,4 --results .",
        "nfe-metr-la.png": "grcd bench run main --settings metr-la --seeds 0,1,2 --results .",
    }
    assert "grcd data get metr-la" in left["sensor-std.png"]


def test_nothing_at_all_is_an_error(tmp_path, here):
    message = refused(here("bench", "figures", cwd=tmp_path))
    assert "nothing to draw in runs/bench-results" in message
    assert "grcd bench run main --settings metr-la,molene,sbm-c1,sbm-c4,sbm-c16 --seeds 0,1,2,3,4" in message
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_setting_is_no_figure_left_out(main, tmp_path):
    with pytest.raises(InputError, match="setting 'sbm-c2'"):
        figures.draw(tmp_path, tmp_path / "figures", ["sbm-c16", "sbm-c2"])


def test_controls_alone_are_nothing_to_draw(measure, tmp_path):
    measure(Control("molene", "control-full"), 0.2)
    measure(Generated("molene", "edm", 0, 4), error="RuntimeError: no memory")
    with pytest.raises(InputError, match="nothing to draw"):
        figures.draw(tmp_path, tmp_path / "figures", ["molene"])
    assert not (tmp_path / "figures").exists()
