"""The simulated city is what its module says: jams travel upstream at their speed, gaps come as stated, bits stay."""

import hashlib

import numpy as np
import pytest

import grcd
from grcd.data import load_series
from grcd.data.catalog import city

# To refresh after a deliberate change of the data:  python tests/data/catalog/test_city.py
CHECKSUM = "9cd8bdc570f8d18ffb2e8cc21921adfaccb379f64d441e56ddac6688abeca19f"


def checksum():
    speeds, lost = city.simulated()
    return hashlib.sha256(np.where(lost, -10, np.round(10 * speeds)).astype("<i8").tobytes()).hexdigest()


@pytest.fixture(scope="module")
def roads():
    return city.roads()


@pytest.fixture(scope="module")
def many():
    """Speeds over half a year, of other seeds."""
    return np.concatenate([city.simulated(seed, 60)[0] for seed in (1, 2, 3)])


def test_the_same_bits_everywhere():
    assert checksum() == CHECKSUM


def test_roads_are_as_long_as_they_are_drawn(roads):
    at = {name: k for k, name in enumerate(roads.names)}
    km = {
        ("North 1", "North 2"): 2.0,
        ("North 1", "Ring N"): 1.0,
        ("North 1", "North 4"): 6.0,
        ("Ring E", "Ring N"): np.sqrt(18),
        ("East 1", "North 2"): 1 + np.sqrt(18) + 1,  # along the ring, then out
        ("South 4", "South 3"): np.inf,  # with the traffic: never
        ("North 1", "South 1"): np.inf,
    }
    for (begins, reached), length in km.items():
        assert roads.upstream[at[begins], at[reached]] == pytest.approx(length, rel=1e-3)
    near = roads.graph.weights[at["Ring N"], at["North 1"]]
    assert near == pytest.approx(1.0)
    assert roads.graph.components == 1


def test_jams_hold_each_sensor_when_they_should(roads):
    """Minute by minute, one jam after the other."""
    jams = city.Jams(*map(np.array, ([0, 18, 0], [1.0, 2.13, 4.4], [1.5, 1.0, 2.2], [5.0, 12.0, 9.0], [0.5, 0.6, 0.7])))
    rows, minutes = 40, 15
    worst = np.zeros((rows * minutes, len(roads.names)))
    for k in range(3):
        for v in range(len(roads.names)):
            d = roads.upstream[jams.at[k], v]
            if d < jams.reach[k]:
                first = jams.begins[k] + d / city.JAM_SPEED
                last = first + jams.lasts[k] * (1 - d / jams.reach[k])
                hour = (np.arange(rows * minutes) + 0.5) / 60
                worst[:, v] = np.maximum(worst[:, v], jams.depth[k] * ((hour > first) & (hour < last)))
    naive = worst.reshape(rows, minutes, -1).mean(axis=1)
    exact = jams.severity(roads.upstream, rows)
    assert naive.max() == pytest.approx(0.7)
    assert np.abs(naive - exact).max() < 0.7 * 2 / minutes  # a minute at either end


def onsets(speeds):
    """How much slower it gets from one row to the next, at least 10 km/h; 0 elsewhere."""
    drop = np.maximum(speeds[:-1] - speeds[1:] - 10, 0)
    return drop - drop.mean(axis=0)


def test_jams_travel_upstream_at_their_speed(roads, many):
    drop, rows = onsets(many), round(1 / city.HOURS / city.JAM_SPEED * 2)  # a row for 2 km
    at = {name: k for k, name in enumerate(roads.names)}
    lags = np.arange(-5, 6)
    for arm in city.ARMS:
        inner = drop[:, at[f"{arm} 1"]]
        for further in (2, 3, 4):
            outer = drop[:, at[f"{arm} {further}"]]
            shared = [np.mean(inner[5:-5] * outer[5 + lag : len(outer) - 5 + lag]) for lag in lags]
            assert lags[int(np.argmax(shared))] == rows * (further - 1)
            behind = max(value for lag, value in zip(lags, shared, strict=True) if lag < 0)
            assert max(shared) > 5 * behind  # none goes with the traffic


def test_rush_hours_are_on_workdays(many):
    day, row = np.divmod(np.arange(len(many)), city.PER_DAY)
    work = day % 60 % 7 < 5
    for hour, slower in ((8, True), (3, False)):
        there = row == round(hour / city.HOURS)
        means = [many[there & days].mean(axis=0) for days in (work, ~work)]
        assert ((means[0] < means[1] - 2).all()) == slower


def test_gaps_come_as_often_and_stay_as_long_as_stated():
    rows, sensors = 50_000, 20
    lost = city.drawn_gaps(np.random.RandomState(5), rows, sensors)
    least, most = (round(hours / city.HOURS) for hours in city.SILENT_HOURS)
    lengths = np.arange(least, most + 1)
    covers = [(lengths > k).mean() for k in range(most)]  # that a spell which began k rows ago lasts
    seen = (1 - city.SCATTERED) * np.prod(1 - city.SPELLS_A_DAY / city.PER_DAY * np.array(covers))
    spells = rows * sensors * city.SPELLS_A_DAY / city.PER_DAY
    assert lost.mean() == pytest.approx(1 - seen, abs=4 * (1 - seen) / np.sqrt(spells))
    edges = np.diff(np.pad(lost.astype(int), ((1, 1), (0, 0))), axis=0)
    runs = np.concatenate([np.flatnonzero(e < 0) - np.flatnonzero(e > 0) for e in edges.T])
    assert not (runs[runs > 3] < least).any()  # readings lost here and there seldom meet
    assert (runs >= least).sum() == pytest.approx(spells, abs=5 * np.sqrt(spells))


def test_named_data_have_the_simulated_readings_and_open_gaps():
    speeds, lost = city.simulated()
    series, moments = load_series("city"), grcd.load_dataset("city")
    assert np.array_equal(series.series.values[:, :, 0], np.where(lost, np.nan, speeds), equal_nan=True)
    assert series.units == ("km/h",)
    assert str(series.series.times[0]).startswith("2024-04-01T00:00")
    for split in ("train", "val", "test"):
        assert np.array_equal(series.part(split).values[:, :, 0], moments.split(split), equal_nan=True)
        assert np.array_equal(series.part(split).times, moments.times[split])
    with pytest.raises(grcd.InputError, match="--cap for the built-in city"):
        load_series("city", cap=100)
    with pytest.raises(grcd.InputError, match="its signals have no order"):
        load_series("sbm-c1")


if __name__ == "__main__":
    print(checksum())
