"""The synthetic settings: their graph, the variances and the two modes of their signals, and checksums of all of it."""

import hashlib
from itertools import product

import numpy as np
import pytest

import grcd
from grcd.data.catalog import sbm
from grcd.graphs.graph import Spectrum

# To refresh after a deliberate change of the data:  python tests/data/catalog/test_sbm.py
CHECKSUMS = {
    "graph": "ad9a7d7517440d6604db4c019c2f9737d463aa0efdd1b9d988f2a5a9c702af0c",
    "sbm-c1 train": "25cf4f25623aa65a0e18ca5ae4c8c045e61f4732e6ed369795787a4219114964",
    "sbm-c1 val": "342723c212093db7193724555a7a31dbf749eedac1d69e596a6108e39917c404",
    "sbm-c1 test": "14ac278b3b6e0d8a3c84843477a4d523613c576702f86eac7dde28e02f4a8fc2",
    "sbm-c4 train": "3bc3ab97ea24c3eb3c4aea1348556b8314e49b856aa21ddc1b7bf0c42376da51",
    "sbm-c4 val": "b9f95d56ade7bc44394180e56163a67bc3d0063d36cdf8e2d1663afad2d5c150",
    "sbm-c4 test": "85f9ff12a1181eaa9a18463c6e2b23ba44f507a41b96dba9f34c47485856814a",
    "sbm-c16 train": "58ebf89da0205afb7374ebd22036c5b5a75fbf3d4b56bcbb55a7a1ef38a21610",
    "sbm-c16 val": "54dd2ae598adc55cfed4c602fdacb2a8bd9f4d7f980278f5762d3e5f113213d4",
    "sbm-c16 test": "265082c0a0da715d876af9a91d5804ff59fe7de5d97ccac3bc09618784f5866b",
}


def checksum(x):
    return hashlib.sha256(np.round(x * 1e6).astype("<i8").tobytes()).hexdigest()


def checksums():
    found = {"graph": checksum(sbm.sbm_graph().weights.toarray())}
    for c in sbm.CONCENTRATIONS:
        data = grcd.load_dataset(f"sbm-c{c}")
        found |= {f"sbm-c{c} {split}": checksum(data.split(split)) for split in ("train", "val", "test")}
    return found


@pytest.fixture(scope="module", params=[1, 4, 16])
def setting(request):
    """(concentration, data, eigenvalues and eigenvectors of the combinatorial Laplacian)."""
    data = grcd.load_dataset(f"sbm-c{request.param}")
    W = data.graph.weights.toarray()
    return request.param, data, *np.linalg.eigh(np.diag(W.sum(axis=1)) - W)


def variances(c, lam):
    return 0.2 + 0.8 / (1 + c * (lam / lam[-1] + 0.05))


def test_the_data_are_the_same_on_every_machine():
    assert checksums() == CHECKSUMS


# -- graph ---------------------------------------------------------------------------------------------------------


def test_the_built_in_graph_is_connected_undirected_and_has_unit_weights_and_no_loops():
    W = sbm.sbm_graph().weights.toarray()
    assert W.shape == (32, 32)
    assert set(np.unique(W)) == {0.0, 1.0}
    assert np.array_equal(W, W.T)
    assert not W.diagonal().any()
    assert np.linalg.matrix_power(np.eye(32) + W, 31).all()


def test_the_built_in_graph_has_no_double_eigenvalue_that_would_leave_the_basis_open():
    graph = sbm.sbm_graph()
    for laplacian in (graph.combinatorial, graph.normalized):
        assert np.diff(np.linalg.eigvalsh(laplacian.toarray())).min() > 1e-3


def test_edges_have_the_two_probabilities_inside_and_between_blocks():
    seeds = 150
    mean = sum(sbm.sbm_graph(seed).weights.toarray() for seed in range(seeds)) / seeds
    pairs = 16 * 15 // 2
    inside = [mean[:16, :16].sum() / 2 / pairs, mean[16:, 16:].sum() / 2 / pairs]
    assert inside == pytest.approx([0.4, 0.4], abs=5 * np.sqrt(0.4 * 0.6 / (pairs * seeds)))
    assert mean[:16, 16:].mean() == pytest.approx(0.04, abs=5 * np.sqrt(0.04 * 0.96 / (256 * seeds)))
    # Every pair by itself, too: no pair is favoured.
    off = ~np.eye(32, dtype=bool)
    expected = np.kron([[0.4, 0.04], [0.04, 0.4]], np.ones((16, 16)))
    assert np.all((np.abs(mean - expected) < 6 * np.sqrt(expected * (1 - expected) / seeds))[off])


def test_another_seed_is_another_graph_and_the_same_seed_the_same():
    assert sbm.sbm_graph(5).hash == sbm.sbm_graph(5).hash != sbm.sbm_graph(6).hash


def test_the_built_in_graph_is_the_stand_in_a_number_for_every_pair_from_default_rng_0():
    random, W = np.random.default_rng(0), np.zeros((32, 32))
    for i in range(32):
        for j in range(i + 1, 32):
            W[i, j] = W[j, i] = random.random() < (0.4 if (i < 16) == (j < 16) else 0.04)
    assert np.array_equal(sbm.sbm_graph().weights.toarray(), W)
    assert (W.sum() / 2, W[:16, 16:].sum()) == (98, 6)


def test_the_graph_and_the_signals_have_seeds_of_their_own():
    one, graph, signals = sbm.load(4), sbm.load(4, graph_seed=1), sbm.load(4, signal_seed=1)
    assert one.graph.hash == signals.graph.hash != graph.graph.hash
    noise = [np.random.RandomState([seed, 4, 1]).standard_normal((1000, 32)) for seed in (0, 1)]
    own, other = ([abs(np.corrcoef(x.ravel(), data.val.ravel())[0, 1]) for x in noise] for data in (one, signals))
    assert own[0] > 0.3 > 0.05 > own[1]
    assert other[1] > 0.3 > 0.05 > other[0]


# -- signals -------------------------------------------------------------------------------------------------------


def test_every_mode_has_the_variance_of_the_recipe(setting):
    c, data, lam, U = setting
    g, n = variances(c, lam), len(data.test)
    assert n == 5000
    z = data.test @ U
    expected, error = g.copy(), g * np.sqrt(2 / n)
    # The second mode is +-3 + sqrt(g) xi: its second moment is 9 + g, that of its square 81 + 54 g + 3 g^2.
    expected[1], error[1] = 9 + g[1], np.sqrt((36 * g[1] + 2 * g[1] ** 2) / n)
    assert np.all(np.abs((z**2).mean(axis=0) - expected) < 4.5 * error)


def test_modes_are_uncorrelated_and_centred(setting):
    c, data, lam, U = setting
    z = data.test @ U
    deviation = np.sqrt(variances(c, lam) + 9 * (np.arange(32) == 1))
    assert np.all(np.abs(z.mean(axis=0) / deviation) < 5 / np.sqrt(len(z)))
    correlation = np.corrcoef(z.T) - np.eye(32)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(z))


def test_the_fiedler_coefficient_has_two_modes_at_plus_and_minus_three(setting):
    c, data, lam, U = setting
    z, g, n = data.test @ U[:, 1], variances(c, lam)[1], len(data.test)
    assert np.mean(z > 0) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(n))
    # Each cluster is N(+-3, g). Few cross zero, so that splitting by sign recovers them.
    for side in (z[z > 0], -z[z < 0]):
        assert side.mean() == pytest.approx(3.0, abs=5 * np.sqrt(g / len(side)) + 0.002)
        assert side.var() == pytest.approx(g, rel=5 * np.sqrt(2 / len(side)) + 0.02)
    assert np.mean(np.abs(z) < 0.5) < 0.02 < 0.1 < np.mean(np.abs(np.abs(z) - 3) < 0.5)


def test_other_modes_have_one_mode(setting):
    c, data, lam, U = setting
    z = (data.test @ U) / np.sqrt(variances(c, lam))
    kurtosis = (z**4).mean(axis=0) / (z**2).mean(axis=0) ** 2
    gaussian = np.arange(32) != 1
    assert np.abs(kurtosis[gaussian] - 3).max() < 5 * np.sqrt(24 / len(z))
    assert kurtosis[1] < 2  # two clusters have a kurtosis near 1


def test_sizes_are_those_of_the_paper_and_splits_are_different_draws(setting):
    _, data, *_ = setting
    parts = [data.train, data.val, data.test]
    assert [len(part) for part in parts] == [4000, 1000, 5000]
    rows = {row.tobytes() for part in parts for row in part}
    assert len(rows) == 10_000
    for one, other in ((0, 1), (0, 2), (1, 2)):  # nor do rows at the same place have noise in common
        a, b = (data.normalizer.apply(parts[k])[:1000] for k in (one, other))
        a, b = a[:, 3:] - a[:, :-3], b[:, 3:] - b[:, :-3]
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.05


def test_settings_and_seeds_are_different_draws():
    graph = sbm.sbm_graph()
    kinds = {
        checksum(np.sign(sbm.sbm_signals(graph, c, seed, "val") @ np.ones(32)))
        for c, seed in product((1, 4, 16), (0, 1))
    }
    assert len(kinds) == 6


def test_values_have_six_decimals_and_no_negative_zero(setting):
    _, data, *_ = setting
    for part in (data.train, data.val, data.test):
        assert np.array_equal(part, np.round(part, 6))
        assert not np.signbit(part[part == 0]).any()


def test_signals_do_not_depend_on_the_signs_of_eigenvectors(monkeypatch):
    graph = sbm.sbm_graph()
    expected = sbm.sbm_signals(graph, 4, 0, "val")
    eigh, flipped = np.linalg.eigh, []

    def with_other_signs(matrix):
        lam, U = eigh(matrix)
        flipped.append(
            np.random.RandomState(1).choice([-1.0, 1.0], len(lam)) * np.where(np.arange(len(lam)) == 1, -1, 1)
        )
        return lam, U * flipped[-1]

    monkeypatch.setattr(np.linalg, "eigh", with_other_signs)
    assert np.array_equal(sbm.sbm_signals(graph, 4, 0, "val"), expected)
    assert len(flipped) == 1


def test_signals_are_the_recipe_written_out():
    graph = sbm.sbm_graph()
    spectrum = Spectrum.of(graph.combinatorial.toarray())
    random = np.random.RandomState([7, 16, 1])
    xi, s = random.standard_normal((1000, 32)), random.randint(0, 2, size=1000)
    # The paper: independent coefficients of variance g, +-3 added to the second, back to the nodes.
    z = (xi @ spectrum.U) * np.sqrt(variances(16, spectrum.lam))
    z[:, 1] += np.where(s == 1, 3.0, -3.0)
    assert sbm.sbm_signals(graph, 16, 7, "val") == pytest.approx(z @ spectrum.U.T, abs=6e-7)


def test_an_unknown_dataset_is_refused_with_the_known_ones():
    with pytest.raises(grcd.InputError, match=r"(?s)one of city, sbm-c1, sbm-c4, sbm-c16.*sbm-c4"):
        grcd.load_dataset("sbm-4")


if __name__ == "__main__":
    print("CHECKSUMS = {", *(f'    "{name}": "{value}",' for name, value in checksums().items()), "}", sep="\n")
