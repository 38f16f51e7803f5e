"""The suite of filled gaps: what its cells hold and how its table reads."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import grcd
from grcd.bench import measuring, runner, suites
from grcd.bench.cells import Baseline, Control, Filled, read, write
from grcd.bench.tables.filling import table
from grcd.evaluation import baselines, controls, filling
from grcd.evaluation.controls import draw
from grcd.metrics.distances import within


@pytest.fixture
def on_tiny(tiny, monkeypatch):
    monkeypatch.setattr(suites, "SETTINGS", ("tiny",))
    monkeypatch.setattr(runner, "load_dataset", lambda name: tiny)
    monkeypatch.setattr(measuring, "FILLINGS", 4)


def test_the_suite_fills_compares_and_prints(on_tiny, tiny, quick, tmp_path):
    cells = suites.cells("impute", ["tiny"], [0])
    settings = {key: value for key, value in quick.items() if key != "lr"}
    assert runner.run(cells, tmp_path, tmp_path / "runs", "cpu", 1, settings) == (len(cells), 0)
    assert len(cells) == 2 * 4 * (len(baselines.BASELINES) + 3)  # how good, and how fast
    cell = Baseline("tiny", "fill-mean", mask="random-25")
    gone = filling.hidden("random-25", *tiny.test.shape)
    expected = np.abs(tiny.test - tiny.train.mean(axis=0))[gone].mean()
    assert read(cell, tmp_path)["filling"]["mae"] == pytest.approx(expected, rel=1e-9)
    text = table(["tiny"], [0], tmp_path, "md")
    assert all(f"### tiny, {mask}" in text for mask in filling.MASKS)
    assert text.count("| grcd, reference |") == text.count("| fill-gaussian |") == 4


def test_the_table_by_hand(on_tiny, tmp_path):
    def put(cell, crps, cover):
        scores = {"mae": 2.0, "rmse": 3.0, "crps": crps, "cover_50": cover / 2, "cover_90": cover, "readings": 7}
        write(cell, tmp_path, filling=scores)

    put(Baseline("tiny", "fill-mean", mask="sensors"), 2.0, 0.0)
    write(Baseline("tiny", "fill-mean", mask="sensors", measure="time"), tmp_path, time={"filling": 0.5})
    put(Filled("tiny", "grcd", 0, 16, mask="sensors"), 1.0, 0.8)
    put(Filled("tiny", "grcd", 1, 16, mask="sensors"), 1.2, 0.9)
    text = table(["tiny"], [0, 1], tmp_path, "md")
    assert "| fill-mean | 2.000 | 3.000 | 2.000 | - | - | 0.500 |" in text
    assert "| 1.100 +- 0.141 | 0.425 +- 0.035 | 0.850 +- 0.071 | - |" in text  # not bold: others may be better
    assert "| fill-last | - | - | - | - | - | - |" in text
    for cell in suites.cells("impute", ["tiny"], [0, 1]):
        if cell.mask == "sensors" and cell.measure != "time" and read(cell, tmp_path) is None:
            put(cell, 1.3, 0.9)
    text = table(["tiny"], [0, 1], tmp_path, "md")
    assert text.count("**") == 2
    assert "| **1.100 +- 0.141** | 0.425 +- 0.035 | 0.850 +- 0.071 | - |" in text
    lines = table(["tiny"], [0, 1], tmp_path, "csv").splitlines()
    assert 'tiny,sensors,"grcd, NFE 16",crps,1.100000,0.141421,2' in lines
    assert r"\textbf{1.100 $\pm$ 0.141}" in table(["tiny"], [0, 1], tmp_path, "tex")
    with pytest.raises(grcd.InputError, match="grcd bench run impute"):
        table(["tiny"], [5], tmp_path / "none", "md")


def test_readings_that_were_filled_in_do_not_count(tiny, tmp_path, monkeypatch):
    made_up = np.random.RandomState(2).random_sample(tiny.test.shape) < 0.4
    data = replace(tiny, filled={"test": made_up})
    monkeypatch.setattr(suites, "SETTINGS", ("tiny",))
    monkeypatch.setattr(runner, "load_dataset", lambda name: data)
    cell = Baseline("tiny", "fill-mean", mask="random-25")
    assert runner.run([cell], tmp_path, tmp_path / "runs", "cpu", 1, {}) == (1, 0)
    gone = filling.hidden("random-25", *tiny.test.shape) & ~made_up
    found = read(cell, tmp_path)["filling"]
    assert found["readings"] == gone.sum()
    assert found["mae"] == pytest.approx(np.abs(tiny.test - tiny.train.mean(axis=0))[gone].mean(), rel=1e-9)


def test_cells_of_dated_signals_have_sums_by_day(tiny):
    """Ratios of the sums are the scores; signals without dates have none."""
    dated = replace(tiny, times={"test": np.datetime64("2024-03-01T20:00") + np.arange(40) * np.timedelta64(1, "h")})
    for data, days in ((dated, {"2024-03-01", "2024-03-02", "2024-03-03"}), (tiny, None)):
        fitted = baselines.fitted("fill-mean", data)
        content = measuring.measurement(Baseline("tiny", "fill-mean", mask="blocks"), fitted, data)
        if days is None:
            assert content["days"] is None
        else:
            assert {str(np.datetime64(int(day), "D")) for day in content["days"]["day"]} == days
            assert sum(content["days"]["readings"]) == content["filling"]["readings"]
            ratio = sum(content["days"]["crps"]) / sum(content["days"]["readings"])
            assert ratio == pytest.approx(content["filling"]["crps"], rel=1e-6)
    real, x = dated.normalizer.apply(dated.test), draw(controls(dated)["control-full"], dated, 40, 0)
    content = measuring.measurement(Control("tiny", "control-full", 0, "distances"), controls(dated), dated)
    apart = sum(content["days"]["apart"]) / sum(content["days"]["signals"])
    energy = 2 * apart - content["within"] - within(real)
    assert energy == pytest.approx(content["distances"]["energy"]["value"], abs=1e-6 * apart)
    assert content["within"] == pytest.approx(within(dated.normalizer.apply(x)), rel=1e-12)


def test_cells_ask_for_what_they_say(on_tiny, tiny, quick, tmp_path, monkeypatch):
    """Draws, evaluations, seed and posterior; and a time is that of a thousand signals, drawn to the end."""
    asked, clock = [], [0.0]

    def fillings(self, x, n, nfe, seed, posterior):
        asked.append((n, nfe, seed, posterior))
        for row in range(len(x)):
            clock[0] += 0.5
            yield np.array([row]), x[None, [row]] * 0.0 + np.zeros((n, 1, 6))

    monkeypatch.setattr(grcd.GRCD, "fillings", fillings)
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(filling, "by_signal", lambda fillings, *_: {"crps": np.ones(1), "readings": len([*fillings])})
    monkeypatch.setattr(filling, "overall", lambda sums: {"readings": sums["readings"]})
    cells = [cell for cell in suites.cells("impute", ["tiny"], [1], ["grcd"]) if cell.mask == "sensors"]
    settings = {key: value for key, value in quick.items() if key != "lr"}
    assert runner.run(cells, tmp_path, tmp_path / "runs", "cpu", 1, settings) == (6, 0)
    assert {*asked} == {(4, 1, 1, "reference"), (4, 8, 1, "diffusion"), (4, 16, 1, "diffusion")}
    for cell in cells:
        assert cell.measure != "time" or read(cell, tmp_path)["time"] == {"filling": pytest.approx(500.0)}
