"""Graphs against naive dense formulas, and the basis against everything that a basis leaves to chance."""

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core.errors import InputError
from grcd.graphs.graph import Graph, Spectrum, fix_signs
from grcd.references.gaussian import spectral

few = examples(30)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 10)


def directed(seed, n):  # (n, n) with gaps, self-loops and one-way edges
    rng = np.random.default_rng(seed)
    return rng.random((n, n)) * (rng.random((n, n)) < 0.6)


def undirected(seed, n):  # (n, n) symmetric, no self-loops
    upper = np.triu(directed(seed, n), 1)
    return upper + upper.T


def ring(n):
    step = np.roll(np.eye(n), 1, axis=1)
    return step + step.T


def complete(n):
    return np.ones((n, n)) - np.eye(n)


@pytest.mark.parametrize(("name", "pair"), [("half-sum", lambda a, b: (a + b) / 2), ("max", max)])
@few
@given(seed=seeds, n=sizes)
def test_symmetrisation_combines_both_directions_and_then_drops_self_loops(name, pair, seed, n):
    W = directed(seed, n)
    graph = Graph.from_adjacency(W, symmetrize=name)
    expected = [[0.0 if i == j else pair(W[i, j], W[j, i]) for j in range(n)] for i in range(n)]
    np.testing.assert_array_equal(graph.weights.toarray(), expected)
    assert np.all(graph.weights.data > 0), "neither self-loops nor absent edges may be stored"
    assert name in graph.origin


def test_a_self_loop_counts_neither_in_the_degree_nor_in_the_laplacians():
    W = undirected(1, 6)
    looped, plain = Graph.from_adjacency(W + np.diag([3.0, 0, 1, 0, 0, 2])), Graph.from_adjacency(W)
    np.testing.assert_array_equal(looped.degree, plain.degree)
    np.testing.assert_array_equal(looped.combinatorial.toarray(), plain.combinatorial.toarray())
    np.testing.assert_array_equal(looped.normalized.toarray(), plain.normalized.toarray())


def test_rounding_asymmetry_is_accepted_and_taken_out():
    W = undirected(2, 6)
    weights = Graph.from_adjacency(W * (1 + 1e-13 * np.arange(6))).weights.toarray()
    np.testing.assert_array_equal(weights, weights.T)
    close(weights, W)


@pytest.mark.parametrize("symmetrize", ["half-sum", "max"])
def test_the_callers_matrix_is_left_as_it_was(symmetrize):
    sparse = sp.csr_array(directed(3, 6))  # float64 and CSR already: nothing forces a copy
    Graph.from_adjacency(sparse, symmetrize=symmetrize)
    np.testing.assert_array_equal(sparse.toarray(), directed(3, 6))


def test_an_entry_in_several_parts_is_their_sum_and_stays_so_for_the_caller():
    parts = sp.csr_array(([2.0, -1.0, 1.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert Graph.from_adjacency(parts).hash == Graph.from_adjacency([[0, 1], [1, 0]]).hash
    assert parts.nnz == 3


@few
@given(seed=seeds, n=sizes)
def test_laplacians_are_the_dense_formulas(seed, n):
    W = undirected(seed, n)
    graph = Graph.from_adjacency(W)
    degree = [sum(W[i, j] for j in range(n)) for i in range(n)]
    combinatorial, normalized = np.zeros((n, n)), np.eye(n)
    for i in range(n):
        for j in range(n):
            combinatorial[i, j] = degree[i] * (i == j) - W[i, j]
            if W[i, j] > 0:
                normalized[i, j] -= W[i, j] / np.sqrt(degree[i] * degree[j])
    close(graph.degree, degree)
    close(graph.combinatorial.toarray(), combinatorial)
    close(graph.normalized.toarray(), normalized)


@few
@given(seed=seeds, n=sizes)
def test_the_quadratic_form_sums_squared_differences_over_edges(seed, n):
    W, x = undirected(seed, n), np.random.default_rng(seed).standard_normal(n)
    variation = sum(W[i, j] * (x[i] - x[j]) ** 2 for i in range(n) for j in range(i))
    close(x @ Graph.from_adjacency(W).combinatorial @ x, variation, 1e-14, size=W.sum() * x**2)


def test_an_isolated_node_keeps_the_identity_row_and_is_its_own_eigenvector():
    W = complete(5)
    W[2] = W[:, 2] = 0  # what is left is complete on 4 nodes, with eigenvalues 0 and 4/3
    graph = Graph.from_adjacency(W)
    np.testing.assert_array_equal(graph.normalized.toarray()[[2]], np.eye(5)[[2]])
    close(graph.spectrum.lam, [0, 1, 4 / 3, 4 / 3, 4 / 3])
    close(graph.spectrum.U[:, 1], np.eye(5)[2])


@few
@given(blocks=st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda blocks: sum(blocks) > 1))
def test_components_are_the_zero_eigenvalues_of_the_combinatorial_laplacian(blocks):
    graph = Graph.from_adjacency(sp.block_diag([complete(size) for size in blocks]))
    lam = Spectrum.of(graph.combinatorial.toarray()).lam
    assert graph.components == len(blocks)
    assert np.sum(lam <= 1e-12 * lam.max()) == len(blocks)


@few
@given(seed=seeds, n=sizes, delta=st.floats(0, 1))
def test_the_scaled_spectrum_diagonalises_the_diffusion_operator(seed, n, delta):
    graph = Graph.from_adjacency(undirected(seed, n))
    L = graph.normalized.toarray()
    L_delta = L / np.linalg.eigvalsh(L)[-1] + delta * np.eye(n)
    mu, U = graph.spectrum.scaled(delta), graph.spectrum.U
    close(mu, np.linalg.eigvalsh(L_delta))
    assert np.all(mu >= delta), "what rounding puts below zero is zero"
    close(U @ np.diag(mu) @ U.T, L_delta)
    close(U.T @ U, np.eye(n))


def test_a_graph_without_edges_has_a_scaled_spectrum_too():
    graph = Graph.from_adjacency(np.zeros((3, 3)))
    np.testing.assert_array_equal(graph.spectrum.scaled(0.05), np.full(3, 1.05))
    np.testing.assert_array_equal(Spectrum.of(graph.combinatorial.toarray()).scaled(0.05), np.full(3, 0.05))


@few
@given(seed=seeds, n=sizes)
def test_signs_do_not_depend_on_the_signs_they_came_with(seed, n):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    fixed = fix_signs(U)
    np.testing.assert_array_equal(fix_signs(U * rng.choice([-1.0, 1.0], n)), fixed)
    np.testing.assert_array_equal(np.abs(fixed), np.abs(U))
    assert np.all(fixed[np.abs(U).argmax(axis=0), np.arange(n)] > 0)


def test_of_equally_large_entries_the_first_decides_whatever_rounding_says():
    """Ring eigenvectors have entries of equal size: the last bits of a library must not pick the sign."""
    column = np.array([[0.1], [-0.7], [0.7]])
    for nudge in (-1e-12, 0.0, 1e-12):
        nudged = column * (1 + nudge * np.array([[0], [1], [0]]))
        assert fix_signs(nudged)[1] > 0
        assert fix_signs(-nudged)[1] > 0


@pytest.mark.parametrize(
    ("adjacency", "spaces"), [(ring(6), [0, 1, 1, 2, 2, 3]), (complete(5), [0, 1, 1, 1, 1]), (ring(3), [0, 1, 1])]
)
def test_eigenspaces_of_symmetric_graphs_are_found_and_averaged_over(adjacency, spaces):
    spectrum = Graph.from_adjacency(adjacency).spectrum
    values = np.random.default_rng(0).random(len(spaces))
    expected = [np.mean([x for x, other in zip(values, spaces, strict=True) if other == space]) for space in spaces]
    np.testing.assert_array_equal(spectrum.eigenspaces, spaces)
    close(spectrum.average(values), expected)


@pytest.mark.parametrize("adjacency", [ring(6), ring(7), complete(5)], ids=["ring-6", "ring-7", "complete-5"])
@few
@given(seed=seeds)
def test_the_spectral_reference_does_not_see_the_basis_inside_an_eigenspace(adjacency, seed):
    rng = np.random.default_rng(seed)
    spectrum, n = Graph.from_adjacency(adjacency).spectrum, len(adjacency)
    turn = np.zeros((n, n))
    for space in np.unique(spectrum.eigenspaces):
        members = np.flatnonzero(spectrum.eigenspaces == space)
        turn[np.ix_(members, members)] = np.linalg.qr(rng.standard_normal((len(members),) * 2))[0]
    rotated = Spectrum(spectrum.lam, spectrum.U @ turn)
    root = rng.standard_normal((n, n))
    covariance = root @ root.T
    close(spectral(covariance, rotated).covariance(), spectral(covariance, spectrum).covariance())
    # It would, were the variances not averaged: without this the test proves nothing.
    raw = [np.einsum("ni,nm,mi->i", U, covariance, U) for U in (spectrum.U, rotated.U)]
    assert np.abs(raw[0] - raw[1]).max() > 1e-9 * np.abs(raw).max()


@few
@given(seed=seeds, n=sizes)
def test_a_permuted_graph_has_permuted_laplacians_and_the_same_spectrum(seed, n):
    order = np.random.default_rng(seed).permutation(n)
    W, names, coords = undirected(seed, n), [f"s{i}" for i in range(n)], np.arange(2.0 * n).reshape(n, 2)
    graph = Graph.from_adjacency(W, names, coords=coords)
    other = graph.permuted(order)
    for laplacian in ("combinatorial", "normalized"):
        close(getattr(other, laplacian).toarray(), getattr(graph, laplacian).toarray()[np.ix_(order, order)])
    close(other.spectrum.lam, graph.spectrum.lam)
    assert other.node_ids == tuple(names[i] for i in order)
    np.testing.assert_array_equal(other.coords, coords[order])
    assert other.hash == Graph.from_adjacency(W[np.ix_(order, order)], other.node_ids).hash


def test_the_hash_knows_the_graph_and_not_how_it_was_built():
    W, names = undirected(5, 6), list("abcdef")
    i, j = (np.tile(at[::-1], 2) for at in np.nonzero(W))  # every weight in two entries, listed backwards
    halves = sp.coo_array((W[i, j] / 2, (i, j)), shape=W.shape)
    built = [Graph.from_adjacency(w, names) for w in (W, W.tolist(), sp.csc_array(W), halves, W + np.eye(6))]
    built += [Graph.from_adjacency(2 * np.triu(W), names, "half-sum"), Graph.from_adjacency(np.triu(W), names, "max")]
    assert len({graph.hash for graph in built}) == 1


def test_the_hash_changes_with_weights_names_and_order():
    W, names = undirected(5, 6), list("abcdef")
    (i, j), (k, m) = np.argwhere(np.triu(W))[:2]
    nudged, cut, swapped = W.copy(), W.copy(), W.copy()
    nudged[i, j] = nudged[j, i] = np.nextafter(W[i, j], 2)
    cut[i, j] = cut[j, i] = 0
    swapped[[i, j, k, m], [j, i, m, k]] = W[k, m], W[k, m], W[i, j], W[i, j]
    graphs = [Graph.from_adjacency(w, names) for w in (W, nudged, cut, swapped)]
    graphs += [Graph.from_adjacency(W, other) for other in (["A", *names[1:]], names[::-1])]
    graphs += [graphs[0].permuted([1, 0, 2, 3, 4, 5])]
    assert len({graph.hash for graph in graphs}) == len(graphs)


def test_large_graphs_are_refused_without_a_dense_matrix():
    n = 10**6  # dense: 8 TB
    W = sp.coo_array(([1.0, 1.0, 2.0, 1.0], ([5, 7, 9, 1], [7, 5, 3, 0])), shape=(n, n))
    with pytest.raises(InputError, match=r"W\[3, 9\] = 0 but W\[9, 3\] = 2"):
        Graph.from_adjacency(W)
    with pytest.raises(InputError, match=r"1000000 nodes at one place"):
        Graph.from_coordinates(np.zeros((n, 2)))


TWO = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("adjacency", "options", "words"),
    [
        (np.ones((2, 3)), {}, "(2, 3)"),
        (np.ones(4), {}, "(4,)"),
        (np.ones((2, 2, 2)), {}, "no numeric matrix"),
        (np.ones((1, 1)), {}, "two nodes or more"),
        (np.zeros((0, 0)), {}, "(0, 0)"),
        (3.0, {}, "no numeric matrix"),
        (None, {}, "no numeric matrix"),
        ([["a", "b"], ["c", "d"]], {}, "no numeric matrix"),
        ([["0", "1"], ["1", "0"]], {}, "no numeric matrix"),
        (np.zeros((2, 2), dtype="M8[s]"), {}, "no numeric matrix"),
        (np.ones((2, 2), dtype=complex), {}, "no numeric matrix"),
        (np.ones((2, 2), dtype=object), {}, "no numeric matrix"),
        ([[0, 1], [1]], {}, "no numeric matrix"),
        ([[0, np.nan], [np.nan, 0]], {}, "2 NaN or infinite weights, at (row, column) (0, 1), (1, 0)"),
        ([[0, np.inf], [np.inf, 0]], {}, "2 NaN or infinite weights"),
        ([[0, -1], [-1, 0]], {}, "2 negative weights, at (row, column) (0, 1), (1, 0)"),
        ([[0, 1], [3, 0]], {}, 'W[0, 1] = 1 but W[1, 0] = 3|symmetrize="half-sum"'),
        ([[0, 1], [3, 0]], {"node_ids": ["a", "b"]}, "W[a, b] = 1 but W[b, a] = 3|--symmetrize half-sum"),
        ([[0, 1e308], [1e308, 0]], {}, "weights that add up to inf"),
        ([[0, 1], [3, 0]], {"symmetrize": "half_sum"}, "one of half-sum, max|did you mean 'half-sum'?"),
        (TWO, {"node_ids": ["a", "a"]}, "occur twice: a"),
        (TWO, {"node_ids": ["1", 1]}, "occur twice: 1"),
        (TWO, {"node_ids": ["a", "b", "c"]}, "3 node names for 2 nodes"),
        (TWO, {"coords": [(0, 0)]}, "shape (1, 2)|(2, 2)"),
        (TWO, {"coords": [(0, 0), (0, math.nan)]}, "not finite, at node 1"),
        (TWO, {"coords": [("a", "b"), ("c", "d")]}, "no numbers"),
    ],
)
def test_a_bad_adjacency_is_refused_with_the_reason_and_the_remedy(adjacency, options, words):
    with pytest.raises(InputError) as error:
        Graph.from_adjacency(adjacency, **options)
    got, expected, fix = str(error.value).split("\n")
    assert (got[:4], expected[:9], fix[:8]) == ("got ", "expected ", "to fix: ")
    assert all(part in str(error.value) for part in words.split("|"))


# -- one way and both ways -------------------------------------------------------------------------------------------


@few
@given(seed=seeds, n=sizes, symmetrize=st.sampled_from(["half-sum", "max"]))
def test_pairs_and_one_way_pairs_are_counted_without_self_loops(seed, n, symmetrize):
    W = directed(seed, n)
    links = [(W[i, j], W[j, i]) for i, j in itertools.combinations(range(n), 2)]
    alone = [a + b for a, b in links if (a > 0) != (b > 0)]
    total = sum(a + b for a, b in links)
    graph = Graph.from_adjacency(W, symmetrize=symmetrize)
    assert graph.pairs == sum(a > 0 or b > 0 for a, b in links)
    assert graph.one_way == len(alone)
    assert graph.one_way_share == pytest.approx(sum(alone) / total if total else 0.0, rel=1e-14)


def test_one_way_by_hand_and_under_permutation():
    W = [[9, 1, 0, 0], [2, 9, 4, 0], [0, 0, 9, 0], [3, 0, 0, 9]]  # 0-1 both ways; 1-2 and 3-0 one way: 7 of 10
    graph = Graph.from_adjacency(W, symmetrize="half-sum")
    assert (graph.pairs, graph.one_way, graph.one_way_share) == (3, 2, 0.7)
    other = graph.permuted([3, 1, 0, 2])
    assert (other.pairs, other.one_way, other.one_way_share) == (3, 2, 0.7)


@pytest.mark.parametrize("W", [np.zeros((3, 3)), np.eye(3), ring(5), ring(5) + np.eye(5)])
def test_a_symmetric_graph_has_nothing_one_way(W):
    graph = Graph.from_adjacency(W)
    assert (graph.pairs, graph.one_way, graph.one_way_share) == (len(W) if len(W) == 5 else 0, 0, 0.0)


def test_stored_zeros_are_no_edges():
    W = sp.coo_array(([1.0, 1.0, 0.0, 0.0], ([0, 1, 1, 2], [1, 0, 2, 2])), shape=(3, 3))
    graph = Graph.from_adjacency(W)
    assert (graph.pairs, graph.one_way, graph.weights.nnz) == (1, 0, 2)


@pytest.mark.skipif("GRCD_DATA" not in os.environ, reason="the real data are not here")
def test_metr_la_has_the_papers_pairs():
    with np.load(Path(os.environ["GRCD_DATA"]) / "metr_la_graph.npz") as file:
        graph = Graph.from_adjacency(file["adjacency"], file["sensor_ids"], "half-sum")
    assert (graph.pairs, graph.one_way) == (1313, 1111)
    assert round(100 * graph.one_way_share, 2) == 74.96


# -- edge lists ------------------------------------------------------------------------------------------------------


def rows(W, names):
    return [(names[i], names[j], W[i, j]) for i, j in zip(*np.nonzero(W), strict=True)]


NAMES = [f"n{i}" for i in range(10)]


@few
@given(seed=seeds, n=sizes)
def test_a_list_of_each_pair_once_in_either_direction_is_undirected(seed, n):
    rng, W = np.random.default_rng(seed), undirected(seed, n)
    listed = [edge[:2][:: rng.choice([-1, 1])] + edge[2:] for edge in rows(np.triu(W), NAMES)]
    rng.shuffle(listed)
    graph = Graph.from_edges(listed, NAMES[:n])
    assert graph.hash == Graph.from_adjacency(W, NAMES[:n]).hash
    assert graph.origin == "edge list, each pair listed once, taken as undirected"
    assert graph.one_way == 0


@few
@given(seed=seeds, n=sizes)
def test_a_list_of_both_directions_is_the_matrix(seed, n):
    W = undirected(seed, n)
    assume(W.any())
    graph = Graph.from_edges(rows(W, NAMES), NAMES[:n])
    assert (graph.hash, graph.origin) == (Graph.from_adjacency(W, NAMES[:n]).hash, "edge list")


@pytest.mark.parametrize("symmetrize", ["half-sum", "max"])
@few
@given(seed=seeds, n=sizes)
def test_with_a_symmetrizer_a_list_is_directed(symmetrize, seed, n):
    W = directed(seed, n)
    graph, expected = (
        Graph.from_edges(rows(W, NAMES), NAMES[:n], symmetrize),
        Graph.from_adjacency(W, NAMES[:n], symmetrize),
    )
    assert graph.hash == expected.hash
    assert (graph.one_way, graph.one_way_share) == (expected.one_way, expected.one_way_share)
    assert graph.origin == f"edge list, symmetrised by {symmetrize}"


def test_without_names_nodes_stand_in_the_order_in_which_they_appear():
    assert Graph.from_edges([("c", "a"), ("b", "c"), ("d", "d")]).node_ids == ("c", "a", "b", "d")


@few
@given(seed=seeds, n=sizes)
def test_the_order_of_the_edges_only_reorders_the_nodes(seed, n):
    W = undirected(seed, n) + np.eye(n)  # a self-loop names the nodes that have no edge
    listed = rows(np.triu(W), NAMES)
    graph = Graph.from_edges(listed)
    other = Graph.from_edges([listed[i] for i in np.random.default_rng(seed).permutation(len(listed))])
    assert other.permuted([other.node_ids.index(name) for name in graph.node_ids]).hash == graph.hash


def test_a_self_loop_declares_a_node_whatever_its_weight():
    for weight in (0.0, 1.0):
        graph = Graph.from_edges([("a", "b", 2.0), ("c", "c", weight)])
        np.testing.assert_array_equal(graph.weights.toarray(), [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
        assert "undirected" in graph.origin, "a self-loop is not a pair in both directions"


def test_edges_come_in_many_shapes():
    import pandas

    listed = [(0, 1, 0.5), (2, 1, 2.0)]
    text = [tuple(str(entry) for entry in edge) for edge in listed]
    shapes = [
        listed,
        iter(listed),
        np.array(listed),
        np.array(text),
        text,
        pandas.DataFrame(listed, columns=list("abc")),
    ]
    assert len({Graph.from_edges(edges).hash for edges in shapes}) == 1
    plain = [[(0, 1), (2, 1)], np.array([(0, 1), (2, 1)]), [(0, 1, 1), (2, 1)], ["01", "21"]]
    assert len({Graph.from_edges(edges, ["0", "1", "2"]).hash for edges in plain}) == 1


def test_named_nodes_without_edges_are_a_graph():
    graph = Graph.from_edges([], ["a", "b"])
    assert (len(graph), graph.pairs) == (2, 0)


@pytest.mark.parametrize(
    ("edges", "options", "words"),
    [
        ([("a", "b", 1), ("b", "a", 3)], {}, "W[a, b] = 1 but W[b, a] = 3|--symmetrize half-sum"),
        ([("a", "b"), ("b", "a"), ("b", "c")], {}, "W[b, c] = 1 but W[c, b] = 0"),
        ([("a", "b", 1), ("b", "a", 0)], {}, "W[a, b] = 1 but W[b, a] = 0"),
        ([("a", "b", 1), ("a", "b", 1)], {}, "occur twice: a -> b"),
        ([("a", "b"), ("c", "c"), ("c", "c")], {"symmetrize": "max"}, "occur twice: c -> c"),
        ([("a", "b", math.nan)], {}, "1 edge with a weight that is negative or not finite: a -> b (nan)"),
        ([("a", "b", math.inf)], {}, "a -> b (inf)"),
        ([("b", "c"), ("a", "b", -1)], {}, "a -> b (-1)"),
        ([("a", "a", -1), ("a", "b", 1)], {}, "a -> a (-1)"),
        ([("a", "b"), ("c", "d")], {"node_ids": ["a", "b", "c"]}, "1 unknown nodes: d|out of the 3"),
        ([("a", "b")], {"node_ids": ["a", "b", "a"]}, "occur twice: a"),
        ([("a", "b")], {"symmetrize": "half"}, "one of half-sum, max"),
        ([("a", "a")], {}, "(1, 1)|two nodes or more"),
        ([], {}, "no edges"),
        (7, {}, "edges of type int"),
        ([7], {}, "7 as edge 1"),
        ([("a", "b"), ("a",)], {}, "('a',) as edge 2"),
        ([("a", "b", 1, 2)], {}, "(source, target) or (source, target, weight)"),
        ([("a", "b", "heavy")], {}, "as edge 1|a number"),
        ([("a", "b", None)], {}, "as edge 1"),
        ([("a", "b", 10**400)], {}, "as edge 1"),
        ([("a", "b", 1j)], {}, "as edge 1"),
        ([(None, "b", 1)], {}, "as edge 1"),
        ([(math.nan, 1.0, 1.0)], {}, "as edge 1"),
        ([("a", "b", 1e308), ("c", "b", 1e308)], {}, "weights that add up to inf"),
    ],
)
def test_bad_edges_are_refused_with_the_reason(edges, options, words):
    with pytest.raises(InputError) as error:
        Graph.from_edges(edges, **options)
    assert all(part in str(error.value) for part in words.split("|"))


# -- distances and positions -----------------------------------------------------------------------------------------


def test_a_distance_table_listed_once_holds_both_ways():
    """Distances 0, 2 and 4 have variance 8/3, so the weights are exp(-4 * 3/8) and exp(-16 * 3/8), which is dropped."""
    graph = Graph.from_distances([("a", "a", 0), ("a", "b", 2), ("c", "b", 4)])
    w = math.exp(-1.5)
    close(graph.weights.toarray(), [[0, w, 0], [w, 0, 0], [0, 0, 0]])
    assert graph.node_ids == ("a", "b", "c")
    assert graph.origin == (
        "distance table, weights exp(-(d/s)^2) with s = 1.63299, those below 0.1 dropped, "
        "each pair listed once, taken as undirected"
    )


@few
@given(seed=seeds, n=sizes)
def test_a_directed_distance_table_is_dcrnns_matrix(seed, n):
    rng = np.random.default_rng(seed)
    d = np.where(rng.random((n, n)) < 0.7, rng.random((n, n)), np.inf)
    listed = [(NAMES[i], NAMES[j], d[i, j]) for i, j in zip(*np.nonzero(np.isfinite(d)), strict=True)]
    W = np.exp(-((d / 0.7) ** 2))
    W[(W < 0.2) | (np.abs(W - 0.2) < 1e-12)] = 0
    assume((W * (1 - np.eye(n))).any())
    graph = Graph.from_distances(listed, NAMES[:n], bandwidth=0.7, threshold=0.2, symmetrize="half-sum")
    close(graph.weights.toarray(), (W + W.T) / 2 * (1 - np.eye(n)))


@pytest.mark.parametrize(
    ("edges", "options", "words"),
    [
        ([("a", "b")], {}, "as edge 1|(source, target, distance)"),
        ([("a", "b", 1), ("b", "c", -2)], {}, "1 edge with a distance that is negative or not finite: b -> c (-2)"),
        ([("a", "b", 1), ("b", "c", math.nan)], {}, "b -> c (nan)"),
        ([("a", "b", 1), ("b", "c", math.inf)], {}, "b -> c (inf)"),
        ([("a", "b", 1), ("b", "c", 1)], {}, "standard deviation of the distances of 0|name a bandwidth"),
        ([("a", "b", 1), ("b", "a", 2), ("b", "c", 9)], {}, "asymmetric weights: W["),
        ([("a", "b", 1), ("b", "c", 2)], {"threshold": 2}, "threshold 2"),
        ([("a", "b", 1), ("b", "c", 2)], {"bandwidth": 0}, "bandwidth 0"),
        ([("a", "a", 0)], {"bandwidth": 1}, "shape (1, 1)"),
    ],
)
def test_bad_distances_are_refused_with_the_reason(edges, options, words):
    with pytest.raises(InputError) as error:
        Graph.from_distances(edges, **options)
    assert all(part in str(error.value) for part in words.split("|"))


def test_positions_make_a_graph_that_says_how_and_keeps_them():
    """Four stations in a row, one unit apart: distances 1, 1, 1, 2, 2, 3, so the median is 1.5."""
    coords = [(0, 0), (1, 0), (2, 0), (3, 0)]
    graph = Graph.from_coordinates(coords, list("abcd"), k=1)
    w = math.exp(-1 / (2 * 1.5**2))
    close(graph.weights.toarray(), w * np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]))
    assert graph.origin == "1 nearest neighbour of positions (euclidean), Gaussian weights of bandwidth 1.5"
    np.testing.assert_array_equal(graph.coords, coords)
    assert (graph.node_ids, graph.one_way) == (tuple("abcd"), 0)


def test_degrees_are_far_apart_in_kilometres():
    graph = Graph.from_coordinates([(0, 0), (1, 0), (3, 0)], k=1, metric="great-circle", bandwidth=100)
    degree = 6371.0088 * math.pi / 180
    close(graph.weights.toarray()[[0, 1], [1, 2]], np.exp([-(degree**2) / 2e4, -((2 * degree) ** 2) / 2e4]))
    assert graph.origin == "1 nearest neighbour of positions (great-circle, km), Gaussian weights of bandwidth 100"


@few
@given(seed=seeds, n=st.integers(6, 10), metric=st.sampled_from(["euclidean", "great-circle"]))
def test_the_order_of_positions_only_reorders_the_nodes(seed, n, metric):
    rng = np.random.default_rng(seed)
    coords, order = rng.uniform(-80, 80, (n, 2)), rng.permutation(n)
    graph = Graph.from_coordinates(coords, NAMES[:n], metric=metric)
    other = Graph.from_coordinates(coords[order], [NAMES[i] for i in order], metric=metric)
    assert other.hash == graph.permuted(order).hash


@pytest.mark.parametrize(
    ("coords", "options", "words"),
    [
        ([(0, 0), (1, 1), (2, 2)], {"k": 5}, "5 neighbours among 3 nodes|1 to 2"),
        ([(0, 0), (1, 1)], {"k": 1, "metric": "haversine"}, "one of euclidean, great-circle"),
        ([(0, 0), (1, 1)], {"k": 1, "node_ids": ["a"]}, "1 node names for 2 nodes"),
        ([(0, 0), (0, 0)], {"k": 1}, "2 nodes at one place"),
        ([(0, 0)], {"k": 1}, "(1, 2)"),
        (None, {}, "no numbers"),
    ],
)
def test_bad_positions_are_refused_with_the_reason(coords, options, words):
    with pytest.raises(InputError) as error:
        Graph.from_coordinates(coords, **options)
    assert all(part in str(error.value) for part in words.split("|"))


def test_few_positions_are_all_neighbours_by_default():
    graph = Graph.from_coordinates([(0, 0), (1, 1), (2, 2)])
    assert graph.pairs == 3
    assert "2 nearest neighbours" in graph.origin
