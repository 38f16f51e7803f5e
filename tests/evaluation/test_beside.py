"""The network's signals beside its reference's: who is nearer where it is known, ties, and too few rows."""

import numpy as np
import pytest
from scipy import stats

import grcd
from grcd.evaluation import ammd, beside


@pytest.fixture(scope="module")
def data():
    """Rough signals on a ring, and as many that are smooth."""
    nodes = 8
    W = np.roll(np.eye(nodes), 1, axis=1)
    graph = grcd.Graph.from_adjacency(W + W.T)
    random = np.random.RandomState(0)
    splits = {split: random.standard_normal((n, nodes)) for split, n in (("train", 200), ("val", 20), ("test", 120))}
    return grcd.Dataset("ring", graph, **splits), lambda n, seed: np.random.RandomState(seed).standard_normal(
        (n, nodes)
    )


def smooth(x):
    return (x + np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1)) / 3**0.5


def test_who_is_nearer_is_said_and_a_tie_is_none(data):
    held, drawn = data
    right, wrong = drawn(150, 1), smooth(drawn(150, 2))
    found = [beside.of_signals(*pair, held) for pair in ((right, wrong), (wrong, right), (right, drawn(150, 3)))]
    assert [each.ahead for each in found] == [1, -1, 0]
    starts = "Nearer to 120 held-out signals", "Further from 120", "As near to 120"
    assert all(each.words().startswith(start) for each, start in zip(found, starts, strict=True))
    assert found[0].gain == pytest.approx(-found[1].gain, rel=1e-9)


def test_noise_is_the_spread_over_parts_one_after_the_other(data):
    held, drawn = data
    x, other = drawn(150, 1), smooth(drawn(150, 2))
    z = held.normalizer.apply
    parts = [slice(15 * k, 15 * k + 15) for k in range(8)]
    gains = [
        ammd(z(other), z(held.test)[part], held.graph).ammd - ammd(z(x), z(held.test)[part], held.graph).ammd
        for part in parts
    ]
    expected = stats.t.ppf(0.975, 7) * np.std(gains, ddof=1) / 8**0.5
    assert beside.of_signals(x, other, held).noise == pytest.approx(expected, rel=1e-9)


def test_of_few_rows_nothing_is_said(data):
    held, drawn = data
    few = grcd.Dataset("few", held.graph, held.train, held.val, held.test[:8])
    found = beside.of_signals(drawn(150, 1), smooth(drawn(150, 2)), few)
    assert found.ahead == 0
    assert found.words() == "8 held-out signals: nothing can be said of how near generated ones are."
    assert found.to_dict()["noise"] is None
