"""The three graph statistics: by hand on a path of three nodes, and against dense definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.graphs.graph import Graph
from grcd.metrics.statistics import STATISTICS, degree_correlation, quadratic_variation, spectral_centroid

# a --2-- b --3-- c: degrees 2, 5, 3
PATH = Graph.from_adjacency([[0, 2, 0], [2, 0, 3], [0, 3, 0]])
RING = Graph.from_adjacency(np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1))


def random_graph(seed, nodes=8):
    """Weighted, with node 0 isolated."""
    random = np.random.RandomState(seed)
    W = np.triu(random.random_sample((nodes, nodes)) * (random.random_sample((nodes, nodes)) < 0.5), k=1)
    W[0] = 0.0
    return Graph.from_adjacency(W + W.T)


def random_signals(seed, n=7, nodes=8):
    return np.random.RandomState(seed).standard_normal((n, nodes)) + 0.3


def naive_variation(x, graph):
    """Half the sum over all ordered pairs of ``W_ij (x_i - x_j)^2``."""
    W = graph.weights.toarray()
    return sum(W[i, j] * (x[i] - x[j]) ** 2 for i in range(len(x)) for j in range(len(x))) / 2


def terms(x, graph):
    """How large the terms are that add up to a quadratic form, with both signs."""
    return np.square(x).sum(axis=-1).max() * graph.degree.max()


def test_statistics_of_a_path_of_three_nodes_by_hand():
    x = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    # 2 (1 - 2)^2 + 3 (2 - 0)^2 = 14 over 1 + 4 = 5;   3 (0 - 1)^2 = 3 over 1
    assert quadratic_variation(x, PATH) == pytest.approx([14.0, 3.0], rel=1e-14)
    assert spectral_centroid(x, PATH) == pytest.approx([14 / 5, 3.0], rel=1e-14)
    # degrees less their mean (-4/3, 5/3, -1/3); signals less theirs (0, 1, -1) and (-1/3, -1/3, 2/3):
    # products 2 and -1/3, norms of the signals sqrt(2) and sqrt(2/3), of the degrees sqrt(14/3)
    expected = [2 / np.sqrt(2 * 14 / 3), -(1 / 3) / np.sqrt(2 / 3 * 14 / 3)]
    assert degree_correlation(x, PATH) == pytest.approx(expected, rel=1e-14)


@examples(25)
@given(st.integers(0, 10**6))
def test_statistics_equal_their_dense_definitions(seed):
    graph, x = random_graph(seed), random_signals(seed + 1)
    close(quadratic_variation(x, graph), [naive_variation(row, graph) for row in x], 1e-14, size=terms(x, graph))
    L = np.diag(graph.weights.toarray().sum(1)) - graph.weights.toarray()
    lam, U = np.linalg.eigh(L)
    # The centroid is the mean frequency, weighted by the energy of the coefficients.
    centroid = [(lam * (row @ U) ** 2).sum() / ((row @ U) ** 2).sum() for row in x]
    close(spectral_centroid(x, graph), centroid)
    correlation = [np.corrcoef(row, graph.weights.toarray().sum(0))[0, 1] for row in x]
    close(degree_correlation(x, graph), correlation, size=1.0)


def test_an_eigenvector_has_its_eigenvalue_as_centroid():
    lam, U = np.linalg.eigh(PATH.combinatorial.toarray())
    close(spectral_centroid(7.0 * U.T, PATH), lam, 1e-14)


@pytest.mark.parametrize("weight", [1.0, 0.1, 1e-9, 0.0])
def test_degree_correlation_is_zero_where_all_degrees_are_equal(weight):
    graph = Graph.from_adjacency(weight * RING.weights.toarray())
    assert np.array_equal(degree_correlation(random_signals(0, nodes=5), graph), np.zeros(7))


def test_degrees_that_differ_by_rounding_count_as_equal():
    # Three edges of weight 0.1 to each node, summed in other orders: 0.3 and 0.30000000000000004.
    W = np.array([[0, 0.1, 0.2, 0.0], [0.1, 0, 0.0, 0.2], [0.2, 0.0, 0, 0.1 + 1e-17], [0.0, 0.2, 0.1, 0]])
    W[0, 3] = W[3, 0] = 4e-17
    graph = Graph.from_adjacency((W + W.T) / 2)
    assert len(set(graph.degree.tolist())) > 1
    assert np.array_equal(degree_correlation(random_signals(0, nodes=4), graph), np.zeros(7))


@pytest.mark.parametrize("name", list(STATISTICS))
def test_the_zero_signal_has_statistic_zero(name):
    x = np.stack([np.zeros(3), [1.0, 2.0, 0.0]])
    values = STATISTICS[name](x, PATH)
    assert values[0] == 0.0
    assert values[1] != 0.0


@pytest.mark.parametrize("name", list(STATISTICS))
@pytest.mark.parametrize("level", [1.0, 0.1, -1e6])
def test_a_constant_signal_has_statistic_zero(name, level):
    graph = random_graph(3)
    size = terms(np.full((2, 8), level), graph) if name == "quadratic_variation" else graph.degree.max()
    close(STATISTICS[name](np.full((2, 8), level), graph), [0.0, 0.0], 1e-14, size=size)


@examples(20)
@given(st.integers(0, 10**6), st.permutations(range(8)))
@pytest.mark.parametrize("name", list(STATISTICS))
def test_statistics_do_not_depend_on_the_order_of_nodes(name, seed, order):
    graph, x = random_graph(seed), random_signals(seed)
    moved = STATISTICS[name](x[:, order], graph.permuted(order))
    close(moved, STATISTICS[name](x, graph), size=1.0 if name == "degree_correlation" else None)


@examples(20)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_scale_squares_into_variation_and_leaves_centroid_and_correlation(seed, scale):
    graph, x = random_graph(seed), random_signals(seed)
    close(quadratic_variation(scale * x, graph), scale**2 * quadratic_variation(x, graph), size=terms(scale * x, graph))
    for statistic in (spectral_centroid, degree_correlation):
        close(statistic(scale * x, graph), statistic(x, graph), size=graph.degree.max() + 1)
        assert np.array_equal(
            statistic(-x, graph), statistic(x, graph) * (-1 if statistic is degree_correlation else 1)
        )


@examples(20)
@given(st.integers(0, 10**6), st.floats(-100, 100))
def test_an_offset_leaves_variation_and_correlation(seed, offset):
    graph, x = random_graph(seed), random_signals(seed)
    close(quadratic_variation(x + offset, graph), quadratic_variation(x, graph), size=terms(x + offset, graph))
    close(degree_correlation(x + offset, graph), degree_correlation(x, graph), size=1 + abs(offset))


def test_degree_correlation_is_one_for_the_degrees_themselves():
    graph = random_graph(5)
    x = np.stack([3.0 * graph.degree - 1.0, -graph.degree])
    assert degree_correlation(x, graph) == pytest.approx([1.0, -1.0], rel=1e-14)


# -- gaps ----------------------------------------------------------------------------------------------------------


def random_mask(seed, n=7, nodes=8):
    """Signals with nothing, one node, two nodes, everything observed, and others."""
    mask = np.random.RandomState(seed).random_sample((n, nodes)) < 0.6
    mask[0], mask[1], mask[2], mask[3] = False, np.arange(nodes) == 3, np.arange(nodes) % 5 == 2, True
    return mask


def naive_masked(x, mask, graph):
    """Edge by edge and node by node, over what is observed."""
    W = graph.weights.toarray()
    nodes = [i for i in range(len(x)) if mask[i]]
    variation = sum(W[i, j] * (x[i] - x[j]) ** 2 for i in nodes for j in nodes if i < j)
    energy = sum(x[i] ** 2 for i in nodes)
    values, degrees = [x[i] for i in nodes], [W[i].sum() for i in nodes]
    constant = len(nodes) < 2 or np.ptp(degrees) <= 1e-12 * max(degrees)
    correlation = 0.0 if constant else np.corrcoef(values, degrees)[0, 1]
    return [variation, variation / energy if energy else 0.0, correlation]


@examples(25)
@given(st.integers(0, 10**6))
def test_statistics_with_gaps_equal_the_naive_ones_whatever_stands_in_the_gaps(seed):
    graph, x, mask = random_graph(seed), random_signals(seed + 1), random_mask(seed + 2)
    expected = [naive_masked(row, seen, graph) for row, seen in zip(x, mask, strict=True)]
    for hidden in (0.0, 1e3, np.nan):
        found = [statistic(np.where(mask, x, hidden), graph, mask) for statistic in STATISTICS.values()]
        close(np.transpose(found), expected, size=terms(x, graph) + 1)


@pytest.mark.parametrize("name", list(STATISTICS))
@pytest.mark.parametrize("graph", [random_graph(1), RING], ids=["random", "ring"])
def test_with_everything_observed_a_mask_changes_nothing(name, graph):
    x = random_signals(0, nodes=len(graph))
    masked = STATISTICS[name](x, graph, np.ones_like(x, dtype=bool))
    close(masked, STATISTICS[name](x, graph), 1e-14)


@examples(20)
@given(st.integers(0, 10**6), st.permutations(range(8)))
@pytest.mark.parametrize("name", list(STATISTICS))
def test_masks_move_with_the_order_of_nodes(name, seed, order):
    graph, x, mask = random_graph(seed), random_signals(seed), random_mask(seed)
    moved = STATISTICS[name](x[:, order], graph.permuted(order), mask[:, order])
    close(moved, STATISTICS[name](x, graph, mask), size=1.0 if name == "degree_correlation" else None)
