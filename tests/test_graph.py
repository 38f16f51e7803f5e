"""Graphs against naive dense formulas, and the basis against everything that a basis leaves to chance."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from grcd.errors import InputError
from grcd.graph import Graph, Spectrum, fix_signs
from grcd.reference import spectral

few = settings(max_examples=30, deadline=None)
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


def same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


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
    same(weights, W)


@pytest.mark.parametrize("symmetrize", ["half-sum", "max"])
def test_the_callers_matrix_is_left_as_it_was(symmetrize):
    sparse = sp.csr_array(directed(3, 6))  # float64 and CSR already: nothing forces a copy
    Graph.from_adjacency(sparse, symmetrize=symmetrize)
    np.testing.assert_array_equal(sparse.toarray(), directed(3, 6))


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
    same(graph.degree, degree)
    same(graph.combinatorial.toarray(), combinatorial)
    same(graph.normalized.toarray(), normalized)


@few
@given(seed=seeds, n=sizes)
def test_the_quadratic_form_sums_squared_differences_over_edges(seed, n):
    W, x = undirected(seed, n), np.random.default_rng(seed).standard_normal(n)
    variation = sum(W[i, j] * (x[i] - x[j]) ** 2 for i in range(n) for j in range(i))
    same(x @ Graph.from_adjacency(W).combinatorial @ x, variation)


def test_an_isolated_node_keeps_the_identity_row_and_is_its_own_eigenvector():
    W = complete(5)
    W[2] = W[:, 2] = 0  # what is left is complete on 4 nodes, with eigenvalues 0 and 4/3
    graph = Graph.from_adjacency(W)
    np.testing.assert_array_equal(graph.normalized.toarray()[[2]], np.eye(5)[[2]])
    same(graph.spectrum.lam, [0, 1, 4 / 3, 4 / 3, 4 / 3])
    same(graph.spectrum.U[:, 1], np.eye(5)[2])


@few
@given(blocks=st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda blocks: sum(blocks) > 1))
def test_components_are_the_zero_eigenvalues_of_the_combinatorial_laplacian(blocks):
    graph = Graph.from_adjacency(sp.block_diag([complete(size) for size in blocks]))
    lam = Spectrum.of(graph.combinatorial.toarray()).lam
    assert graph.components == len(blocks)
    assert np.sum(lam < 1e-10) == len(blocks)


@few
@given(seed=seeds, n=sizes, delta=st.floats(0, 1))
def test_the_scaled_spectrum_diagonalises_the_diffusion_operator(seed, n, delta):
    graph = Graph.from_adjacency(undirected(seed, n))
    L = graph.normalized.toarray()
    L_delta = L / np.linalg.eigvalsh(L)[-1] + delta * np.eye(n)
    mu, U = graph.spectrum.scaled(delta), graph.spectrum.U
    same(mu, np.linalg.eigvalsh(L_delta))
    assert np.all(mu >= delta), "what rounding puts below zero is zero"
    same(U @ np.diag(mu) @ U.T, L_delta)
    same(U.T @ U, np.eye(n))


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
    same(spectrum.average(values), expected)


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
    same(spectral(covariance, rotated).covariance(), spectral(covariance, spectrum).covariance())
    # It would, were the variances not averaged: without this the test proves nothing.
    raw = [np.einsum("ni,nm,mi->i", U, covariance, U) for U in (spectrum.U, rotated.U)]
    assert np.abs(raw[0] - raw[1]).max() > 1e-9


@few
@given(seed=seeds, n=sizes)
def test_a_permuted_graph_has_permuted_laplacians_and_the_same_spectrum(seed, n):
    order = np.random.default_rng(seed).permutation(n)
    W, names, coords = undirected(seed, n), [f"s{i}" for i in range(n)], np.arange(2.0 * n).reshape(n, 2)
    graph = Graph.from_adjacency(W, names, coords=coords)
    other = graph.permuted(order)
    for laplacian in ("combinatorial", "normalized"):
        same(getattr(other, laplacian).toarray(), getattr(graph, laplacian).toarray()[np.ix_(order, order)])
    same(other.spectrum.lam, graph.spectrum.lam)
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


TWO = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("adjacency", "options", "words"),
    [
        (np.ones((2, 3)), {}, "(2, 3)"),
        (np.ones(4), {}, "(4,)"),
        (np.ones((2, 2, 2)), {}, "no numeric matrix"),
        (np.ones((1, 1)), {}, "two nodes or more"),
        ([["a", "b"], ["c", "d"]], {}, "no numeric matrix"),
        ([[0, 1], [1]], {}, "no numeric matrix"),
        ([[0, np.nan], [np.nan, 0]], {}, "2 NaN or infinite weights, at (row, column) (0, 1), (1, 0)"),
        ([[0, np.inf], [np.inf, 0]], {}, "2 NaN or infinite weights"),
        ([[0, -1], [-1, 0]], {}, "2 negative weights, at (row, column) (0, 1), (1, 0)"),
        ([[0, 1], [3, 0]], {}, 'W[0, 1] = 1 but W[1, 0] = 3|symmetrize="half-sum"'),
        ([[0, 1], [3, 0]], {"symmetrize": "half_sum"}, "one of half-sum, max|did you mean 'half-sum'?"),
        (TWO, {"node_ids": ["a", "a"]}, "occur twice: a"),
        (TWO, {"node_ids": ["1", 1]}, "occur twice: 1"),
        (TWO, {"node_ids": ["a", "b", "c"]}, "3 node names for 2 nodes"),
    ],
)
def test_a_bad_adjacency_is_refused_with_the_reason_and_the_remedy(adjacency, options, words):
    with pytest.raises(InputError) as error:
        Graph.from_adjacency(adjacency, **options)
    got, expected, fix = str(error.value).split("\n")
    assert (got[:4], expected[:9], fix[:8]) == ("got ", "expected ", "to fix: ")
    assert all(part in str(error.value) for part in words.split("|"))
