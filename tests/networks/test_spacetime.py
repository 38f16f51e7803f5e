"""The space-time network: the reference before training, and nothing but names tells its columns apart."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.networks.spacetime import Fused, SpaceTimeNet, denoised, stepped

GRAPH = torch.tensor([[0, 0.5, 0, 0, 0], [0.5, 0, 0.2, 0, 0], [0, 0.2, 0, 0, 0.9], [0, 0, 0, 0, 0], [0, 0, 0.9, 0, 0]])


def network(node, channel):
    torch.manual_seed(0)
    return SpaceTimeNet(4, GRAPH, node, channel, features=2, calendar=3, width=16, blocks=2, heads=2)


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
    for block in one.blocks:
        torch.nn.init.normal_(block.neighbours)
    other.load_state_dict(one.state_dict())
    u, q, features, calendar = inputs(5)
    answers = one(u, q, features, calendar)
    reordered = other(u[..., order], q, features[..., order, :], calendar)
    for answer, again in zip(answers, reordered, strict=True):
        close(again, answer[..., order], 1e-4)


def test_along_the_graph_a_channel_hears_of_the_same_channel_next_door_and_of_nothing_else():
    """Without attention, and with one block, that is all that columns know of each other."""
    node, channel = torch.tensor([0, 0, 1, 1, 2, 3]), torch.tensor([0, 1, 0, 1, 0, 0])
    net = network(node, channel)
    net.blocks = net.blocks[:1]
    torch.nn.init.normal_(net.output.weight)
    torch.nn.init.ones_(net.blocks[0].neighbours)
    for part in (net.blocks[0].columns.outward, net.blocks[0].steps.outward):
        torch.nn.init.zeros_(part.weight)
    u, q, features, calendar = inputs(6)
    u = u.requires_grad_()
    for column in range(6):
        (gradient,) = torch.autograd.grad(net(u, q, features, calendar)[0][:, :, column].sum(), u)
        heard = (gradient != 0).any(0).any(0)
        linked = (GRAPH[node[column]][node] > 0) & (channel == channel[column])
        assert torch.equal(heard, linked | (torch.arange(6) == column))


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
