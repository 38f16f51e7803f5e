"""Linear systems on rows of one matrix, against numpy's solution of each on its own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, each_close, examples

from grcd.core import systems

law = examples(40)


def problem(seed, size=5, batch=4, n=3, alike=False):
    random = np.random.default_rng(seed)
    root = random.standard_normal((size, size))
    keep = random.random((1 if alike else batch, size)) < random.random()
    A, b = root @ root.T + 0.1 * np.eye(size), random.standard_normal((batch, n, size))
    return A, np.broadcast_to(keep, (batch, size)).copy(), b


def naive(A, keep, b):
    u, sizes = np.zeros_like(b), np.zeros(len(b))
    for i, rows in enumerate(keep):
        part = A[np.ix_(rows, rows)]
        u[i][:, rows] = np.linalg.solve(part, b[i][:, rows].T).T if rows.any() else 0.0
        sizes[i] = np.linalg.slogdet(part)[1] if rows.any() else 0.0
    return u, sizes


@pytest.mark.parametrize("room", [1, 300, systems.BYTES])
@pytest.mark.parametrize("alike", [True, False])
@law
@given(seed=st.integers(0, 2**32 - 1))
def test_each_system_is_solved_on_its_own_rows(room, alike, seed):
    before, systems.BYTES = systems.BYTES, room  # one by one, some at a time, all together
    try:
        A, keep, b = problem(seed, alike=alike)
        solution, sizes = systems.solve(*(torch.from_numpy(part) for part in (A, keep, b)))
    finally:
        systems.BYTES = before
    u, logs = naive(A, keep, b)
    close(solution, u, 1e-9)
    each_close(np.exp(sizes), np.exp(logs), 1e-9)  # determinants


def test_masks_that_are_all_the_same_are_factored_once(monkeypatch):
    factored, cholesky = [], torch.linalg.cholesky
    monkeypatch.setattr(torch.linalg, "cholesky", lambda K: (factored.append(len(K)), cholesky(K))[1])
    A, keep, b = problem(1, alike=True)
    systems.solve(*(torch.from_numpy(part) for part in (A, keep, b)))
    assert factored == [1]


def test_no_rows_at_all_are_a_solution_of_zero():
    A, keep, b = (torch.from_numpy(part) for part in problem(1))
    u, size = systems.solve(A, torch.zeros_like(keep), b)
    assert not u.any()
    assert not size.any()


def test_what_is_not_kept_does_not_matter_and_comes_out_as_zero():
    A, keep, b = (torch.from_numpy(part) for part in problem(2))
    assert 0 < keep.sum() < keep.numel()
    u, size = systems.solve(A, keep, b)
    assert not torch.where(keep[:, None], 0.0, u).any()
    for hidden in (0.0, 1e9):  # no NaN: callers put numbers there
        other = systems.solve(A, keep, torch.where(keep[:, None], b, hidden))
        assert torch.equal(other[0], u)
        assert torch.equal(other[1], size)
