"""The table that leads the others: what a network gains, over weeks or seeds, and where nothing was measured yet."""

import numpy as np
import pytest

from grcd.bench import suites
from grcd.bench.cells import Baseline, Control, Filled, Floor, Generated, write
from grcd.bench.tables import purpose
from grcd.bench.windows.cells import Windowed
from grcd.evaluation.bootstrap import drawn_days
from grcd.metrics import distances as metrics

AT_THE_FLOOR = ["none to be had: the reference is at the floor", "no"]
HARD = [10.0] * 14 + [30.0] * 14  # two easy weeks, two hard ones


def rows(folder, task, seeds=(0, 1)):
    """By dataset, what follows it."""
    return {line[1]: line[2:] for line in purpose.lines(seeds, folder)[1:] if line[0] == task}


def put(folder, method, loss, seed=0, nfe=None, suite="imputation", setting="metr-la-point"):
    days = {"day": [*range(len(loss))], "loss": loss, "size": [100.0] * len(loss)}
    content = {"scores": {"": {"mae": 1.0, "crps": 0.1}}, "seconds": 1.0, "days": days}
    write(Windowed(setting, method, seed, nfe, suite=suite), folder, windows=content)


def bounds(text):
    """Of an interval, in per cent."""
    return [float(part.strip("%+ ")) for part in text.split("[")[1].split("]")[0].split(",")]


def test_every_task_and_dataset_has_a_row_before_anything_is_measured(tmp_path):
    lines = purpose.lines((0, 1, 2), tmp_path)
    assert [len(line) for line in lines] == [len(purpose.HEAD)] * len(lines)
    assert all(line[2:] == ["-", "-", "-", "-", "not measured yet"] for line in lines[1:])
    for task in ("generate, aMMD", "generate, energy distance"):
        assert [line[1] for line in lines if line[0] == task] == list(suites.SETTINGS)
    windows = {line[1] for line in lines if line[0] == "fill windows, CRPS"}
    assert {"metr-la-point", "metr-la-block", "aqi36", "metr-la-sensors", "metr-la-recent", "metr-la-50"} <= windows
    assert [line[1] for line in lines if line[0] == "forecast, CRPS"] == ["metr-la", "beijing"]
    assert len([line for line in lines if line[0] == "fill moments, CRPS"]) == 8


def test_windows_by_hand(tmp_path):
    """The network is ahead of the better of reference and competitor by the same share of hard weeks and easy ones."""
    task = "fill windows, CRPS"
    put(tmp_path, "line", HARD)
    put(tmp_path, "last", [2 * loss for loss in HARD])
    assert rows(tmp_path, task)["metr-la-point"] == ["-", "-", "0.2000 (line)", "-", "not measured yet"]
    put(tmp_path, "reference", [0.8 * loss for loss in HARD])
    assert rows(tmp_path, task)["metr-la-point"] == ["0.1600", "-", "0.2000 (line)", "-", "not measured yet"]
    for seed in (0, 1):
        put(tmp_path, "grcd", [0.5 * loss for loss in HARD], seed, 4)
    *numbers, gain, pays = rows(tmp_path, task)["metr-la-point"]
    assert (numbers, pays) == (["0.1600", "0.1000", "0.2000 (line)"], "yes")
    assert gain.startswith("+37.5% [")
    assert gain.endswith("] over weeks")
    low, high = bounds(gain)
    assert 18.75 <= low < 37.5 < high <= 56.25  # all weeks easy: 10 x 0.3 of 16 on average; all hard: 30 x 0.3
    for seed, odd, even in ((0, 0.9, 0.7), (1, 0.7, 0.9)):
        put(tmp_path, "grcd", [loss * (odd if k % 2 else even) for k, loss in enumerate(HARD)], seed, 4)
    assert rows(tmp_path, task)["metr-la-point"][-1] == "not clear"  # as good as the reference, every day
    for seed in (0, 1):
        put(tmp_path, "grcd", [0.9 * loss for loss in HARD], seed, 4)
    assert rows(tmp_path, task)["metr-la-point"][-1] == "no"


def test_of_one_week_there_is_no_interval_over_weeks(tmp_path):
    """And of two seeds none over seeds: gains of 0.4 and 0.5 of 1."""
    for method, nfe, seed, crps in (
        ("grcd", 8, 0, 0.6),
        ("grcd", 8, 1, 0.5),
        ("grcd", None, 0, 1.0),
        ("grcd", None, 1, 1.0),
    ):
        days = {"day": [*range(7)], "crps": [crps * 10] * 7, "readings": [10.0] * 7}
        cell = Filled("molene", method, seed, nfe, mask="blocks")
        write(cell, tmp_path, filling={"crps": crps}, days=days)
    write(Baseline("molene", "fill-linear", mask="blocks"), tmp_path, filling={"crps": 2.0})
    *numbers, gain, pays = rows(tmp_path, "fill moments, CRPS")["molene, blocks"]
    assert numbers == ["1.000", "0.5500", "2.000 (fill-linear)"]
    assert (gain, pays) == ("+45.0% (2 seeds)", "too few seeds to tell")


@pytest.mark.parametrize(
    ("level", "gain", "pays"),
    [
        # Log ratios have mean log(level) and sd 0.1; Student's t of five is 2.7764, so half an interval is 0.12417
        (0.5, "+50.0% [+43.4%, +55.8%] over 5 seeds", "yes"),
        (0.9, "+10.0% [-1.9%, +20.5%] over 5 seeds", "not clear"),
        (1.25, "-25.0% [-41.5%, -10.4%] over 5 seeds", "no"),
    ],
)
def test_five_seeds_are_judged_by_their_log_ratios(tmp_path, level, gain, pays):
    """The reference varies with the seed by much more than the ratio to it does; what is simple has no seed."""
    noise = np.array([-1, 1, -1, 1, 0]) * 0.1
    for seed in range(5):
        alone, ours = 2.0**seed, level * float(np.exp(noise[seed]))
        write(Filled("molene", "grcd", seed, mask="blocks"), tmp_path, filling={"crps": alone})
        write(Filled("molene", "grcd", seed, 8, mask="blocks"), tmp_path, filling={"crps": ours * alone})
        write(Filled("molene", "grcd", seed, 8, mask="sensors"), tmp_path, filling={"crps": ours})
        write(Filled("molene", "grcd", seed, mask="sensors"), tmp_path, filling={"crps": 3.0})
    write(Baseline("molene", "fill-linear", mask="blocks"), tmp_path, filling={"crps": 100.0})
    write(Baseline("molene", "fill-linear", mask="sensors"), tmp_path, filling={"crps": 1.0})
    found = rows(tmp_path, "fill moments, CRPS", range(5))
    assert found["molene, blocks"][-2:] == found["molene, sensors"][-2:] == [gain, pays]
    assert rows(tmp_path, "fill moments, CRPS", range(4))["molene, sensors"][-1] == "too few seeds to tell"


def test_moments_with_sums_by_day_have_intervals_over_weeks(tmp_path):
    for name, factor in (("reference", 1.0), ("network", 0.75), ("simple", 2.0)):
        days = {"day": [*range(28)], "crps": [factor * loss for loss in HARD], "readings": [10.0] * 28}
        content = {"filling": {"crps": factor * 2.0}, "days": days}
        cells = {
            "network": Filled("metr-la", "grcd", 0, 8, mask="blocks"),
            "reference": Filled("metr-la", "grcd", 0, mask="blocks"),
        }
        cell = cells.get(name, Baseline("metr-la", "fill-linear", mask="blocks"))
        write(cell, tmp_path, **content)
    *numbers, gain, pays = rows(tmp_path, "fill moments, CRPS")["metr-la, blocks"]
    assert (numbers, pays) == (["2.000", "1.500", "4.000 (fill-linear)"], "yes")
    assert gain.startswith("+25.0% [+1")
    assert gain.endswith("over weeks")


def test_what_lacks_sums_by_day_is_shown_with_its_seeds_and_what_another_network_made_is_not(tmp_path):
    """Six networks, measured before there were days, beside a competitor that has them."""
    seeds = range(6)
    for seed in seeds:
        write(Filled("metr-la", "grcd", seed, 8, mask="blocks"), tmp_path, filling={"crps": 1.0 + seed / 10})
        write(Filled("metr-la", "grcd", seed, mask="blocks"), tmp_path, filling={"crps": 2.0})
    days = {"day": [*range(28)], "crps": HARD, "readings": [10.0] * 28}
    write(Baseline("metr-la", "fill-linear", mask="blocks"), tmp_path, filling={"crps": 4.0}, days=days)
    *numbers, gain, _ = rows(tmp_path, "fill moments, CRPS", seeds)["metr-la, blocks"]
    assert numbers == ["2.000", "1.250", "4.000 (fill-linear)"]
    assert gain.endswith("over 6 seeds")
    cell = Generated("sbm-c1", "grcd", 0, 4, measure="distances")
    write(cell, tmp_path, distances={"energy": {"value": 1.0, "floor": 0.0, "spread": 0.1}})
    assert rows(tmp_path, "generate, energy distance")["sbm-c1"][1] == "1.000"
    path = cell.path(tmp_path)
    path.write_text(path.read_text().replace('"revision": 3', '"revision": 2'))
    assert rows(tmp_path, "generate, energy distance")["sbm-c1"][1] == "-"


def test_where_the_reference_is_at_the_floor_nothing_is_gained(tmp_path):
    for cell, ammd in (
        (Generated("molene", "grcd", 0, 4), 0.1),
        (Generated("molene", "grcd", 1, 4), 0.2),
        (Control("molene", "control-mixture"), 0.185),
        (Floor("molene"), 0.19),
        (Generated("metr-la", "grcd", 0, 4), 0.03),
        (Generated("metr-la", "grcd", 1, 4), 0.05),
        (Control("metr-la", "control-mixture"), 0.05),
        (Floor("metr-la"), 0.03),
    ):
        write(cell, tmp_path, scores={"ammd": ammd})
    found = rows(tmp_path, "generate, aMMD")
    assert found["molene"] == ["0.1850", "0.1500", "0.1900", *AT_THE_FLOOR]
    assert found["metr-la"] == ["0.0500", "0.0400", "0.0300", "+20.0% (2 seeds)", "too few seeds to tell"]


def test_energy_distances_have_intervals_over_weeks(tmp_path):
    """As if the energy distance were computed of the signals of the drawn days, afresh every time."""
    random = np.random.RandomState(0)
    y = random.standard_normal((84, 3)) + np.repeat(random.standard_normal((28, 1)), 3, axis=0)  # three a day
    samples = {"control-mixture": 2 + random.standard_normal((40, 3)), "grcd": 0.5 + random.standard_normal((40, 3))}
    for name, x in samples.items():
        apart = metrics.apart(x, y).numpy().reshape(28, 3).sum(axis=1).tolist()
        days = {"day": [*range(28)], "apart": apart, "signals": [3.0] * 28}
        about = {"energy": {"value": metrics.energy(x, y), "floor": 0.0, "spread": 0.001}}
        network = name == "grcd"
        cell = (
            Generated("metr-la", name, 0, 4, measure="distances")
            if network
            else Control("metr-la", name, 0, "distances")
        )
        write(cell, tmp_path, distances=about, days=days, within=metrics.within(x), p=0.5, p_floor=0.5)
    *numbers, gain, pays = rows(tmp_path, "generate, energy distance")["metr-la"]
    whole = {name: metrics.energy(x, y) for name, x in samples.items()}
    assert numbers == [f"{whole['control-mixture']:.3f}", f"{whole['grcd']:.4f}", "0.0000"]
    gains = []
    for chosen in drawn_days(np.arange(28))[:400]:
        some = y.reshape(28, 3, 3)[chosen].reshape(-1, 3)
        gains.append(metrics.energy(samples["control-mixture"], some) - metrics.energy(samples["grcd"], some))
    expected = 100 * np.quantile(gains, [0.025, 0.975]) / whole["control-mixture"]
    assert bounds(gain) == pytest.approx(expected, abs=0.1 * np.ptp(expected))  # of 400 draws in place of 2,000
    assert gain.startswith(f"{1 - whole['grcd'] / whole['control-mixture']:+.1%}")
    assert pays == "yes"
