"""The space of signals, and the basis of its product graph: against the matrices themselves."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.graphs.kronecker import Kronecker
from grcd.graphs.space import SignalSpace, path

RANDOM = np.random.RandomState(0)


def ring(nodes):
    W = np.zeros((nodes, nodes))
    at = np.arange(nodes)
    W[at, (at + 1) % nodes] = 1 + RANDOM.random_sample(nodes)
    return grcd.Graph.from_adjacency(np.maximum(W, W.T))


def factors(*sizes):
    return [torch.from_numpy(RANDOM.standard_normal((size, size))) for size in sizes]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 3))
@examples(30)
def test_products_with_it_are_those_of_the_matrix(sizes, lead):
    """Some factors are identities, given by their size."""
    whole, parts = torch.ones(1, 1, dtype=torch.float64), []
    for number, size in enumerate(sizes):
        factor = factors(size)[0] if number % 2 == 0 else torch.eye(size, dtype=torch.float64)
        parts.append(factor if number % 2 == 0 else size)
        whole = torch.kron(whole, factor)
    K = Kronecker(*parts)
    x = torch.from_numpy(RANDOM.standard_normal((*range(1, lead + 1), len(whole))))
    close(x @ K, x @ whole, 1e-12)
    close(x @ K.T, x @ whole.T, 1e-12)
    columns = x.reshape(-1, len(whole)).mT
    close(K @ columns, whole @ columns, 1e-12)
    close(K.whole(), whole, 1e-12)
    assert K.shape == whole.shape
    assert len(K) == len(whole)


def test_a_matrix_that_is_never_formed_stands_for_nothing_but_products():
    K = Kronecker(*factors(2, 3))
    for wrong in (lambda: torch.stack([K, K]), lambda: torch.ones(6, 6) + K, lambda: torch.ones(2, 5) @ K):
        with pytest.raises((TypeError, RuntimeError)):
            wrong()


@pytest.mark.parametrize(("steps", "channels"), [(4, 1), (1, 3), (4, 3)])
def test_the_spectrum_is_that_of_the_product_graph(steps, channels):
    """``w_t L_time / max (x) I + w_s I (x) L_space / max``, as a matrix, on every channel."""
    graph = ring(5)
    space = SignalSpace(graph, steps, channels, weights=(0.5, 2.0))
    time = np.diag(np.r_[1, np.full(steps - 2, 2), 1]) - np.eye(steps, k=1) - np.eye(steps, k=-1) if steps > 1 else None
    L = 2.0 * np.kron(np.eye(steps), graph.normalized.toarray() / graph.spectrum.lam.max())
    if time is not None:
        L += 0.5 * np.kron(time / np.linalg.eigvalsh(time).max(), np.eye(5))
    L = np.kron(L, np.eye(channels))
    U, lam = space.spectrum.basis.whole().numpy(), space.spectrum.lam
    close(U * lam @ U.T, L, 1e-12)
    close(U.T @ U, np.eye(space.d), 1e-12)
    assert space.spectrum.scaled(0.05).max() == pytest.approx(1.05, rel=1e-12)
    average = space.spectrum.average(np.arange(float(space.d)))
    for value in np.unique(np.round(lam, 9)):
        same = np.abs(lam - value) < 1e-8
        close(average[same], np.full(same.sum(), np.flatnonzero(same).mean()), 1e-12)


def test_a_path_is_its_laplacian():
    L = np.diag([1.0, 2, 2, 2, 1]) - np.eye(5, k=1) - np.eye(5, k=-1)
    found = path(5)
    close(found.U * found.lam @ found.U.T, L, 1e-12)
    assert path(1).lam.tolist() == [0.0]


def test_one_step_and_one_channel_is_the_graph_itself():
    graph = ring(6)
    space = SignalSpace(graph)
    assert space.spectrum is graph.spectrum
    assert space.shape == (6,)
    x = RANDOM.standard_normal((3, 6))
    assert space.flat(x) is x or np.shares_memory(space.flat(x), x)
    assert np.array_equal(space.shaped(x), x)


def test_signals_are_flattened_and_come_back():
    space = SignalSpace(ring(5), steps=4, channels=3)
    assert space.axes == {"steps": 4, "nodes": 5, "channels": 3}
    x = RANDOM.standard_normal((7, 4, 5, 3))
    rows = space.flat(x)
    assert rows.shape == (7, 60)
    assert rows[2, 1 * 15 + 2 * 3 + 1] == x[2, 1, 2, 1]
    assert np.array_equal(space.shaped(rows), x)
    assert np.array_equal(space.shaped(rows[None]), x[None])
    assert SignalSpace(ring(5), steps=4).shape == (4, 5)
    assert SignalSpace(ring(5), channels=2).shape == (5, 2)
    with pytest.raises(grcd.InputError, match=r"(?s)\(samples, 4, 5, 3\).*4 steps and 3 channels"):
        space.flat(x[..., :2])
    with pytest.raises(grcd.InputError, match=r"(?s)of shape \(5, 9\).*transpose"):
        SignalSpace(ring(5)).flat(np.zeros((5, 9)))
    with pytest.raises(grcd.InputError, match="steps"):
        SignalSpace(ring(5), steps=0)
