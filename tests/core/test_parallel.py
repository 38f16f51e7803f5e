"""Teams: the rows of a batch, and a process by itself. Two processes are in `training/test_two_processes`."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core import parallel, ranks
from grcd.core.errors import InputError
from grcd.core.parallel import Team


def member(rank, size):
    team = Team()
    team.rank, team.size = rank, size
    return team


@examples(60)
@given(size=st.integers(1, 40), more=st.integers(0, 300))
def test_the_rows_of_a_batch_are_shared_out_in_order_and_evenly(size, more):
    parts = [range(size + more)[member(rank, size).rows(size + more)] for rank in range(size)]
    assert [row for part in parts for row in part] == [*range(size + more)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@examples(20)
@given(size=st.integers(1, 7), more=st.integers(0, 9))
def test_weighted_by_their_share_the_means_of_all_rows_are_the_mean_of_the_batch(size, more):
    count = size + more
    x = torch.arange(count, dtype=torch.float64).square()
    slices = [member(rank, size).rows(count) for rank in range(size)]
    close(sum(x[rows].mean() * len(x[rows]) / count for rows in slices), x.mean(), 1e-14)


def test_a_batch_with_fewer_rows_than_processes_is_refused():
    with pytest.raises(InputError, match="got 3 processes for a batch of 2"):
        member(0, 3).rows(2)


def test_a_process_that_torchrun_has_not_started_is_a_team_of_one(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")  # as some clusters set them, without an address to meet at
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    assert (ranks.rank(), ranks.local(), ranks.size()) == (0, 0, 1)
    with parallel.joined("cpu") as team:
        assert (team.rank, team.size) == (0, 1)
        x = torch.ones(2)
        team.add([x])
        team.follow([x])
        team.agree({"data": object()})
        assert torch.equal(x, torch.ones(2))
        assert team.from_first(lambda: "here") == "here"
        assert [int(part) for (part,) in team.each(3, lambda number: (torch.tensor(number),))] == [0, 1, 2]
