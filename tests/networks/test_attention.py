"""Attention against the formula written out, place by place, and its gradients against those of the formula."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.networks import attention
from grcd.networks.attention import VECTOR, attended


def formula(q, k, v):
    """A weighted mean of `v`, weights by what a place asks and the others offer."""
    weights = (torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])).exp()
    return torch.einsum("bhij,bhjd->bhid", weights, v) / weights.sum(-1, keepdim=True)


def drawn(shape, seed, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=g, dtype=dtype, requires_grad=True) for _ in range(3)]


@examples(25)
@given(
    length=st.sampled_from([1, 2, VECTOR - 1, VECTOR, VECTOR + 1, 40]),
    shape=st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 9)),
    scores=st.sampled_from([1, 700, 1 << 18]),
    seed=st.integers(0, 99),
)
def test_attention_and_its_gradients_are_the_formulas_however_many_sequences_are_taken_at_a_time(
    length, shape, scores, seed
):
    batch, heads, width = shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "SCORES", scores)
        rows = drawn((batch, heads, length, width), seed)
        answers = [function(*rows) for function in (attended, formula)]
        g = torch.randn(answers[0].shape, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
        gradients = [torch.autograd.grad(answer, rows, g) for answer in answers]
    close(*answers, 1e-12)
    for own, right in zip(*gradients, strict=True):
        close(own, right, 1e-11, size=1 + right.detach().abs())


def test_readings_of_any_layout_are_read_alike():
    """What a network hands over is a view across steps and columns."""
    together = torch.randn(2, 24, 5, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    q, k, v = together.permute(3, 0, 2, 4, 1, 5).flatten(1, 2)
    close(attended(q, k, v), attended(*(part.clone() for part in (q, k, v))), 0)
    turned = [part.transpose(2, 3).contiguous().transpose(2, 3) for part in (q, k, v)]
    close(attended(*turned), attended(q, k, v), 1e-6)


def test_huge_scores_leave_the_largest():
    """Neither in full rows nor in those that are filled up does an exponential overflow."""
    for length in (3, 40):
        q, k, v = (part.detach() for part in drawn((1, 1, length, 4), 0, torch.float32))
        k[0, 0, 1] = 1e4 * q[0, 0, 0]
        assert torch.equal(attended(q, k, v)[0, 0, 0], v[0, 0, 1])


def test_a_long_sequence_is_left_to_the_library():
    length = attention.SHORT["cpu"] + 1
    rows = [part.detach() for part in drawn((1, 1, length, 2), 0)]
    close(attended(*rows), formula(*rows), 1e-12)
