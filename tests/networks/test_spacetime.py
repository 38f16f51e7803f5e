"""The space-time network: the reference before training, and nothing but names tells its columns apart."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.networks.spacetime import Fused, SpaceTimeNet, denoised, stepped


def network(node, channel):
    torch.manual_seed(0)
    return SpaceTimeNet(4, node, channel, features=2, calendar=3, width=16, blocks=2, heads=2)


def inputs(columns, seed=0):
    g = torch.Generator().manual_seed(seed)
    shapes = ((3, 4, columns), (3,), (3, 4, columns, 2), (3, 4, 3))
    u, q, features, calendar = (torch.randn(shape, generator=g) for shape in shapes)
    return u, q.exp(), features, calendar


def test_before_training_it_is_the_reference():
    net = network(torch.arange(5), torch.zeros(5, dtype=torch.long))
    u, q, features, calendar = inputs(5)
    level = q[:, None, None]
    mean, variance = denoised(u, level, net(u, q, features, calendar))
    close(mean, u / (1 + level**2), 1e-6)
    close(variance, (level**2 / (1 + level**2)).expand_as(variance), 1e-6)


def test_reordered_columns_give_reordered_answers():
    node, channel = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 0, 1, 0])
    order = torch.tensor([3, 0, 4, 2, 1])
    one, other = network(node, channel), network(node[order], channel[order])
    torch.nn.init.normal_(one.output.weight)
    other.load_state_dict(one.state_dict())
    u, q, features, calendar = inputs(5)
    answers = one(u, q, features, calendar)
    reordered = other(u[..., order], q, features[..., order, :], calendar)
    for answer, again in zip(answers, reordered, strict=True):
        close(again, answer[..., order], 1e-4)


@given(levels=st.lists(st.floats(0.01, 50), min_size=1, max_size=8, unique=True))
@examples(50)
def test_at_zero_residual_marginals_are_exact_at_any_number_of_steps(levels):
    """Steps are linear in ``u`` and their noise is independent: variances say all."""
    levels = [*sorted(levels, reverse=True), 0.0]
    variance, zero = 1 + levels[0] ** 2, torch.zeros((), dtype=torch.float64)
    for q, p in pairwise(levels):
        at = torch.tensor(q, dtype=torch.float64)
        one = torch.ones((), dtype=torch.float64)
        mean, V = denoised(one, at, (zero, zero))
        gain = stepped(one, q, p, mean, V, zero)
        _, V = denoised(zero, at, (zero, zero))
        noise = stepped(zero, q, p, zero, V, one)
        variance = float(gain**2 * variance + noise**2)
        close(torch.tensor(variance), torch.tensor(1 + p**2), 1e-5)


@pytest.mark.parametrize("breaks", [True, False])
def test_a_network_that_cannot_be_compiled_answers_as_it_is_and_the_log_says_so(monkeypatch, caplog, breaks):
    def compile(network, dynamic):
        def call(*parts):
            if breaks:
                raise RuntimeError("no compiler")
            return tuple(2 * each for each in network(*parts))

        return call

    monkeypatch.setattr(torch, "compile", compile)
    plain = network(torch.arange(2), torch.zeros(2, dtype=torch.long))
    torch.nn.init.normal_(plain.output.weight)
    fused, parts = Fused(plain), inputs(2)
    with caplog.at_level("INFO"):
        for _ in range(2):
            for got, want in zip(fused(*parts), plain(*parts), strict=True):
                assert torch.equal(got, want if breaks else 2 * want)
    assert fused.compiled is not breaks
    assert caplog.text.count("no compiler") == breaks
