"""Signals compared by every distance: floors and spreads, frozen bandwidths, and what the command prints."""

import json
import math

import numpy as np
import pytest
from samples import chance, normal
from typer.testing import CliRunner

import grcd
from grcd.cli.commands import app
from grcd.core.streams import Stream
from grcd.data.formats.exported import write_dataset
from grcd.data.formats.writing import write_signals
from grcd.evaluation import Distance, ammd, distances, floor
from grcd.evaluation.comparison import METRICS, TITLES, bandwidths, frozen_ammd, table
from grcd.metrics import distances as metrics

NAMES = ["frozen_ammd", *METRICS, "copies"]


# -- all of them, with floor and spread ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generated(tiny):
    return tiny.train.mean(axis=0) + tiny.train.std(axis=0) * normal(45, 6, 5, 0.2)


@pytest.fixture(scope="module")
def found(tiny, generated):
    return distances(generated, tiny)


def z_scored(data):
    mean, std = data.train.mean(axis=0), data.train.std(axis=0)
    return lambda signals: (signals - mean) / std


def test_values_and_floors_are_those_of_z_scored_signals(tiny, generated, found):
    z = z_scored(tiny)
    chosen, y = z(tiny.train[np.linspace(0, 59, 40).astype(int)]), z(tiny.test)
    assert list(found) == NAMES
    for name in METRICS:
        metric = getattr(metrics, name)
        assert found[name].value == pytest.approx(metric(z(generated), y), rel=1e-9), name
        assert found[name].floor == pytest.approx(metric(chosen, y), rel=1e-9), name
    assert found["copies"].value == pytest.approx(metrics.copies(z(generated), y, z(tiny.train)), rel=1e-9)
    assert metrics.copies(chosen, y, z(tiny.train)) == found["copies"].floor == 1.0
    assert found["frozen_ammd"].floor == pytest.approx(floor(tiny).ammd, rel=1e-12)
    widths = bandwidths(tiny.graph, chosen, y)
    expected = frozen_ammd(z(generated), y, tiny.graph, widths)
    assert found["frozen_ammd"].value == pytest.approx(expected, rel=1e-9)


def test_the_spread_is_that_of_five_disjoint_parts_over_the_root_of_five(tiny, found):
    z = z_scored(tiny)
    sides = [z(tiny.train[np.linspace(0, 59, 40).astype(int)]), z(tiny.test)]
    parts = [
        [side[sorted(order[k : k + 8])] for k in range(0, 40, 8)]
        for side, order in zip(sides, Stream(0, "floor parts").uniform(range(2), 40).argsort().tolist(), strict=True)
    ]
    for name in ("energy", "sliced_wasserstein", "kolmogorov_smirnov", "correlation_error", "tail_coverage"):
        values = [getattr(metrics, name)(a, b) for a, b in zip(*parts, strict=True)]
        assert found[name].spread == pytest.approx(np.std(values, ddof=1) / math.sqrt(5), rel=1e-9), name


def test_the_spread_is_about_that_of_floors_from_other_signals(tiny):
    def drawn(seed):
        return grcd.Dataset("drawn", tiny.graph, *(normal(200, 6, 10 * seed + k, 0.3 * k) for k in range(3)))

    found = [distances(drawn(seed).val, drawn(seed)) for seed in range(8)]
    for name in ("sliced_wasserstein", "kolmogorov_smirnov", "correlation_error", "tail_coverage"):
        floors, spreads = ([getattr(one[name], key) for one in found] for key in ("floor", "spread"))
        assert 1 / 3 < np.mean(spreads) / np.std(floors, ddof=1) < 3, name


def test_a_ratio_needs_a_floor_that_is_more_than_chance_and_an_ideal_of_zero():
    assert Distance(3.0, 1.5, 0.4).ratio == 2.0
    assert Distance(3.0, 1.5, 0.5).ratio is None
    assert Distance(3.0, -1.5, 0.1).ratio is None
    assert Distance(3.0, 0.0, 0.0).ratio is None
    assert Distance(0.9, 0.7, 0.01, ideal=0.5).ratio is None


def test_scored_against_another_split(tiny, generated):
    z, other = z_scored(tiny), distances(generated, tiny, "val")
    assert other["energy"].value == pytest.approx(metrics.energy(z(generated), z(tiny.val)), rel=1e-9)
    chosen = tiny.train[np.linspace(0, 59, 30).astype(int)]
    assert other["energy"].floor == pytest.approx(metrics.energy(z(chosen), z(tiny.val)), rel=1e-9)


def test_neither_the_order_of_signals_nor_that_of_nodes_counts(tiny, generated, found):
    nodes, rows = [3, 0, 5, 1, 4, 2], np.random.RandomState(0).permutation(45)
    parts = (part[:, nodes] for part in (tiny.train, tiny.val, tiny.test))
    moved = distances(generated[np.ix_(rows, nodes)], grcd.Dataset("moved", tiny.graph.permuted(nodes), *parts))
    for name in sorted(set(NAMES) - {"sliced_wasserstein", "classifier_accuracy"}):
        here, there = found[name].to_dict(), moved[name].to_dict()
        told = [key for key, value in here.items() if value is not None]
        assert told == [key for key, value in there.items() if value is not None], name
        assert [there[key] for key in told] == pytest.approx([here[key] for key in told], rel=1e-7), name
    z = z_scored(tiny)
    x, y = z(generated), z(tiny.test)
    assert metrics.sliced_wasserstein(x[rows], y) == pytest.approx(found["sliced_wasserstein"].value, rel=1e-12)
    # Its directions stay where they are: other nodes, other projections.
    assert moved["sliced_wasserstein"].value == pytest.approx(found["sliced_wasserstein"].value, rel=0.2)


def test_a_covariance_does_not_fool_them(tiny):
    """All nodes at 1 or all at -1, and some noise, against a Gaussian with the same mean and covariance."""

    def signals(n, seed, common=np.sign):
        return common(normal(n, 1, seed)) + 0.3 * normal(n, 6, 100 + seed)

    data = grcd.Dataset("two sides", tiny.graph, *(signals(n, n) for n in (300, 50, 280)))
    same, gaussian = distances(signals(280, 7), data), distances(signals(280, 8, np.array), data)
    for name in ("energy", "sliced_wasserstein", "kolmogorov_smirnov"):
        assert abs(same[name].value - same[name].floor) < 4 * same[name].spread, name
        assert gaussian[name].value - gaussian[name].floor > 4 * gaussian[name].spread, name
    assert gaussian["correlation_error"].value < 0.05
    assert abs(same["classifier_accuracy"].value - 0.5) < chance(140) < gaussian["classifier_accuracy"].value - 0.5


@pytest.mark.parametrize("split", ["test", "train"])
def test_gaps_are_refused(tiny, generated, split):
    parts = {name: tiny.split(name).copy() for name in ("train", "val", "test")}
    parts[split][3:5, 2] = np.nan
    with pytest.raises(
        grcd.InputError, match=f"(?s)got 2 missing readings in the {split}.*expected.*to fix: .*gaps are filled"
    ):
        distances(generated, grcd.Dataset("gaps", tiny.graph, **parts))


def test_what_cannot_be_measured_is_refused(tiny, generated):
    with pytest.raises(grcd.InputError, match="1 sample in generated signals"):
        distances(generated[:1], tiny)
    with pytest.raises(grcd.InputError, match=r"(?s)9 test signals.*10 or more"):
        distances(generated, grcd.Dataset("few", tiny.graph, tiny.train, tiny.val, tiny.test[:9]))
    ten = grcd.Dataset("ten", tiny.graph, tiny.train, tiny.val, tiny.test[:10])
    assert all(math.isfinite(distance.spread) for distance in distances(generated[:2], ten).values())


# -- aMMD with frozen bandwidths -----------------------------------------------------------------------------------


def test_wild_signals_have_no_say_in_frozen_bandwidths(tiny, generated, found):
    wild = distances(np.vstack([generated, 1e6 * generated]), tiny)["frozen_ammd"]
    assert (wild.floor, wild.spread) == (found["frozen_ammd"].floor, found["frozen_ammd"].spread)
    train, y = (tiny.normalizer.apply(part) for part in (tiny.train[np.linspace(0, 59, 40).astype(int)], tiny.test))
    widths, x = bandwidths(tiny.graph, train, y), tiny.normalizer.apply(np.vstack([generated, 1e6 * generated]))
    assert wild.value == frozen_ammd(x, y, tiny.graph, widths) != ammd(x, y, tiny.graph).ammd


def test_with_bandwidths_of_its_own_signals_the_frozen_ammd_is_the_papers(tiny):
    x, y = (tiny.normalizer.apply(part) for part in (tiny.val, tiny.test))
    assert frozen_ammd(x, y, tiny.graph, bandwidths(tiny.graph, x, y)) == ammd(x, y, tiny.graph).ammd


# -- command line --------------------------------------------------------------------------------------------------


def test_the_option_adds_a_table_and_a_key_and_changes_nothing_else(tmp_path, tiny, generated, found):
    write_dataset(tmp_path / "tiny.npz", tiny)
    write_signals(tmp_path / "x.npz", generated, tiny.graph.node_ids, "")

    def printed(*options):
        result = CliRunner().invoke(
            app, ["evaluate", str(tmp_path / "x.npz"), "--data", str(tmp_path / "tiny.npz"), *options]
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    plain, beside = printed().splitlines(), printed("--distances").splitlines()
    first = next(k for k, line in enumerate(beside) if not line)
    added = beside[first : first + len(NAMES) + 3]
    assert plain == beside[:first] + beside[first + len(added) :]
    assert [line[:22].strip() for line in added[2:-1]] == [TITLES[name] for name in NAMES]
    assert added[1:-1] == table(found).splitlines()
    without, scores = json.loads(printed("--json")), json.loads(printed("--distances", "--json"))
    assert {name: Distance(**pick(given)) for name, given in scores.pop("distances").items()} == found
    assert scores == without


def pick(given):
    return {key: given[key] for key in ("value", "floor", "spread", "ideal")}


def test_the_table_by_hand():
    rows = table({"energy": Distance(0.5, 0.25, 0.01), "copies": Distance(0.5, 1.0, 0.0, 0.01)}).splitlines()
    assert [row.split() for row in rows] == [
        ["value", "floor", "ratio", "ideal"],
        ["energy", "0.5000", "0.2500", "2.00", "0"],
        ["memorisation", "0.5000", "1.0000", "-", "0.01"],
    ]
    assert Distance(math.nan, 0.0, 0.0, 1.0).to_dict()["value"] is None
