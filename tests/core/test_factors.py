"""Sparse systems against dense algebra; estimates of a factor against the factor itself."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_info, threadpool_limits

from grcd.core import factors, memory
from grcd.core.errors import InputWarning


def near_planar(n, seed=0):
    places = np.random.default_rng(seed).random((n, 2))
    chosen = cKDTree(places).query(places, 5)[1][:, 1:]
    W = sp.csr_array((np.ones(4 * n), (np.repeat(np.arange(n), 4), chosen.ravel())), shape=(n, n))
    return sp.csr_array(W.maximum(W.T))


def expander(n, seed=0):
    random = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), 3), random.integers(0, n, 3 * n)
    W = sp.csr_array((np.ones(3 * n), (rows, columns)), shape=(n, n))
    return factors.without_diagonal(W + W.T)


def two_steps(pattern):
    return factors.without_diagonal(pattern @ pattern + pattern)


def tree(n):
    child = np.arange(1, n)
    W = sp.csr_array((np.ones(n - 1), (child, (child - 1) // 2)), shape=(n, n))
    return sp.csr_array(W + W.T)


def path(n):
    return sp.csr_array(sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]))


GRAPHS = {"planar": near_planar(60), "expander": expander(40), "tree": tree(31), "path": path(20)}


def definite(pattern, seed):
    """Some matrix with that pattern, not small off its diagonal."""
    upper = sp.triu(pattern).tocsr()
    upper.data = np.random.default_rng(seed).uniform(-1, 1, upper.nnz)
    M = upper + upper.T
    return sp.csr_array(M + sp.diags_array(abs(M).sum(axis=1) + 0.1))


@pytest.mark.parametrize("name", GRAPHS)
@examples(10)
@given(seed=st.integers(0, 2**31))
def test_a_factor_solves_has_the_determinant_and_a_root(name, seed):
    M = definite(GRAPHS[name], seed)
    dense, b = M.toarray(), np.random.default_rng(seed).standard_normal((M.shape[0], 3))
    factor = factors.Factor(M, factors.elimination(GRAPHS[name]))
    close(factor.solve(b), np.linalg.solve(dense, b), 1e-11)
    close(factor.log_det, np.linalg.slogdet(dense)[1], size=M.shape[0])
    root = factor.root.toarray()
    close(root @ root.T, dense)


def test_factors_and_their_solves_work_on_one_thread_and_nothing_after_them(monkeypatch):
    def blas():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    seen = []

    class Solver:
        def solve(self, b):
            seen.append(blas())
            return b

    monkeypatch.setattr(factors, "splu", lambda *_, **__: seen.append(blas()) or Solver())
    with threadpool_limits(2, "blas"):
        factors.Factor(sp.eye_array(3), np.arange(3)).solve(np.ones((3, 1)))
        assert (seen, blas()) == ([{1}, {1}], {2})


@examples(10)
@given(seed=st.integers(0, 2**31))
def test_conjugate_gradients_solve_the_same(seed):
    M = definite(GRAPHS["expander"], seed)
    b = np.random.default_rng(seed).standard_normal((M.shape[0], 3))
    b[:, 2] = 0.0
    close(factors.Iterative(M).solve(b), np.linalg.solve(M.toarray(), b), 1e-8)


def test_a_determinant_by_few_steps_is_near():
    M = definite(near_planar(3000), 1)
    exact = factors.Factor(M, factors.elimination(M)).log_det
    assert abs(factors.Iterative(M).log_det / exact - 1) < 0.01


def test_nothing_to_solve_has_determinant_one():
    for system in (factors.Factor(sp.csr_array((0, 0)), np.arange(0)), factors.Iterative(sp.csr_array((0, 0)))):
        assert system.log_det == 0.0
        assert system.solve(np.zeros((0, 2))).shape == (0, 2)


def test_orders_are_permutations_with_and_without_the_library(monkeypatch):
    for pattern in (*GRAPHS.values(), sp.csr_array((7, 7))):
        n = pattern.shape[0]
        orders = [factors.sweep(pattern), factors.elimination(pattern)]
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "pymetis", None)
            orders.append(factors.elimination(pattern))
        assert all(sorted(order) == [*range(n)] for order in orders)


def test_along_a_sweep_all_but_one_of_a_component_have_a_later_neighbour():
    for pattern in GRAPHS.values():
        place = np.argsort(factors.sweep(pattern))
        ends = [node for node in range(len(place)) if not (place[pattern[[node]].indices] > place[node]).any()]
        assert len(ends) == sp.csgraph.connected_components(pattern)[0]


def test_the_front_of_a_path_is_two_and_branches_are_taken_away():
    assert factors.front(path(50)) == 2
    assert factors.core(tree(127)).nnz == 0
    ring = sp.csr_array(path(30) + sp.csr_array(([1.0, 1.0], ([0, 29], [29, 0])), shape=(30, 30)))
    assert factors.core(ring).shape == (30, 30)


@pytest.mark.parametrize("pattern", [near_planar(3000), near_planar(12000), path(5000), tree(4095), expander(1500)])
def test_a_factor_is_estimated_before_it_is_made(pattern):
    """Never far below what it comes to, and on the graphs that it is for not far above."""
    true = factors.Factor(definite(pattern, 0), factors.elimination(pattern)).nonzeros / 2
    assert 0.5 * true < factors.filling(pattern)[0] < 5 * true


@pytest.mark.parametrize("pattern", [*GRAPHS.values(), tree(255), sp.csr_array(tree(255) @ tree(255))])
def test_nonzeros_are_counted_exactly(pattern):
    order = factors.elimination(pattern)
    dense = definite(factors.without_diagonal(pattern), 0)[order][:, order].toarray()
    lower = np.abs(np.linalg.cholesky(dense)) > 1e-14
    assert factors.counted(pattern, order, 1e9) == (lower.sum(), (lower.sum(0) ** 2).sum())
    assert factors.counted(pattern, order, 10) == (np.inf, np.inf)


def test_a_wide_tree_is_not_mistaken_for_an_expander(monkeypatch):
    """Two steps on a tree: no branch to take away, and a sweep as wide as the tree; the count says that it fits."""
    two = two_steps(tree(4095))
    monkeypatch.setattr(memory, "total", lambda: 1e8)
    assert factors.BYTES * factors.filling(two)[0] > 1e8 / factors.SHARE
    assert factors.too_dear(two) == ""


def test_what_would_not_fit_is_said(monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 5e7)
    assert factors.too_dear(near_planar(3000)) == ""
    assert factors.too_dear(expander(3000)).startswith("a factor of about 7")
    monkeypatch.setattr(memory, "total", lambda: 1e12)
    monkeypatch.setattr(factors, "SECONDS", 1e6)
    monkeypatch.setattr(factors, "ITERATIONS", 1)
    assert factors.too_dear(expander(500)).endswith("operations")
    assert factors.too_dear(tree(4095)) == ""


@pytest.mark.parametrize("library", [True, False])
def test_an_expander_is_told_from_a_plane_before_anything_is_factored(monkeypatch, library):
    """However much memory there is; what a factor takes is known from closed forms: an expander's is dense."""
    monkeypatch.setattr(memory, "total", lambda: 1e12)
    monkeypatch.setattr(factors, "splu", None)
    if not library:
        monkeypatch.setitem(sys.modules, "pymetis", None)
    wide = two_steps(expander(6000))
    s = 6000 * 0.8  # a share of all
    assert factors.filling(wide)[1] > s**3 / 3 > factors.SIGNALS * factors.ITERATIONS * wide.nnz
    assert factors.too_dear(wide).endswith("operations")
    assert factors.too_dear(two_steps(expander(1000))) == ""  # a second at the most
    planar = near_planar(60_000)
    assert factors.too_dear(planar) == factors.too_dear(two_steps(planar)) == ""


def test_an_order_without_the_library_is_that_of_the_factor():
    """Minimum degree, as scipy has it while it factors."""
    pattern = near_planar(500)
    dominant = sp.csc_matrix(sp.diags_array(np.diff(pattern.indptr) + 1.0) - pattern)
    options = {"SymmetricMode": True}
    factor = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    assert np.array_equal(factors._minimum_degree(pattern), np.argsort(factor.perm_c))


def test_too_few_iterations_are_said(monkeypatch):
    M = definite(path(60), 0) - 0.1 * sp.eye_array(60)  # nearly singular
    monkeypatch.setattr(factors, "MOST", 3)
    with pytest.warns(InputWarning, match="after 3 iterations"):
        factors.Iterative(sp.csr_array(M)).solve(np.ones((60, 1)))
