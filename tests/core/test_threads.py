"""Pieces of work on threads: in order, each by itself, and nothing changed afterwards."""

import threading

import pytest
import torch

from grcd.core import threads


@pytest.fixture
def four():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_pieces_come_in_order_each_by_one_thread_of_several_at_once(four):
    together = threading.Barrier(4, timeout=30)

    def work(k):
        together.wait()  # passes only if four are at it
        return k, torch.get_num_threads()

    assert threads.each(work, range(8)) == [(k, 1) for k in range(8)]
    assert torch.get_num_threads() == 4
    assert threads.each(work, []) == []


def test_what_fails_is_raised_and_the_rest_left(four):
    done = []

    def work(k):
        done.append(k)
        if k == 0:
            raise ValueError("the first")
        return k

    with pytest.raises(ValueError, match="the first"):
        threads.each(work, range(10_000))
    assert len(done) < 10_000
    assert torch.get_num_threads() == 4
