"""DenoiserGNN against the same network written plainly: powers of S, one node and one tap at a time, in float64.

The network computes in float32 (24 bits, 6e-8). Three filters and LayerNorms on numbers of order one leave about 1e-6
of rounding in the output and in gradients; a wrong tap or a lost bias leaves 1e-2 and more.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from mixtures import normal, random_graph
from scipy.stats import ortho_group

from grcd.graphs.graph import Graph, Spectrum
from grcd.networks.gnn import DenoiserGNN, Setting

FLOAT32 = 5e-6


def ring_with_islands():
    """A ring of four (a double eigenvalue), a pair, and a node without any neighbour."""
    W = np.zeros((7, 7))
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5)):
        W[i, j] = W[j, i] = 1.0
    return Graph.from_adjacency(W)


def complete(nodes=5):
    """All but one eigenvalue coincide."""
    return Graph.from_adjacency(np.ones((nodes, nodes)) - np.eye(nodes))


GRAPHS = {"weighted": random_graph(6), "disconnected": ring_with_islands(), "complete": complete()}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def network_on(spectrum, seed=0, **sizes):
    """With every parameter drawn, so that no bias is zero and no scale one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = DenoiserGNN(spectrum, Setting(**sizes))
        for name, parameter in network.named_parameters():
            if "norm" in name or "bias" in name:
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return network


def shift(graph):
    """``S = L / lambda_max`` from the weights, entry by entry."""
    W = graph.weights.toarray()
    L = np.eye(len(W))
    for i in range(len(W)):
        for j in range(len(W)):
            if W[i, j] > 0:
                L[i, j] -= W[i, j] / math.sqrt(W[i].sum() * W[j].sum())
    return torch.from_numpy(L / np.linalg.eigvalsh(L).max())


def plainly(p, S, x, t):
    """The docstring's network for one signal and one time; ``p`` are its parameters by name, in float64."""
    half = (p["input.weight"].shape[1] - 1) // 2
    phases = [2 * math.pi * t * 10 ** (-4 * k / half) for k in range(half)]
    embedding = torch.tensor(
        [math.cos(phase) for phase in phases] + [math.sin(phase) for phase in phases], dtype=torch.float64
    )
    h = torch.stack([p["input.weight"] @ torch.cat([x[n : n + 1], embedding]) + p["input.bias"] for n in range(len(x))])
    for b in range(sum(name.endswith(".h") for name in p)):
        block = {name.removeprefix(f"blocks.{b}."): value for name, value in p.items()}
        h = sum(torch.linalg.matrix_power(S, k) @ h * block["h"][k] for k in range(len(block["h"])))
        h = h @ block["mix.weight"].T + block["mix.bias"]
        h = h / (1 + torch.exp(-h))
        gap = h - h.mean(-1, keepdim=True)
        h = gap / torch.sqrt(gap.square().mean(-1, keepdim=True) + 1e-5)
        h = h * block["norm.weight"] + block["norm.bias"]
    return h @ p["output.weight"][0] + p["output.bias"] + x


def in_double(network):
    return {name: value.detach().double().requires_grad_() for name, value in network.named_parameters()}


@every_graph
def test_it_has_the_papers_61185_parameters_on_any_graph(graph):
    network = DenoiserGNN(graph.spectrum, Setting())
    assert sum(parameter.numel() for parameter in network.parameters()) == 61_185
    assert sum(value.numel() for value in network.state_dict().values()) == 61_185  # the graph is not among them


@pytest.mark.parametrize("sizes", [{}, {"width": 12, "blocks": 1, "taps": 2, "time_dim": 8}], ids=["paper", "small"])
@every_graph
def test_the_forward_pass_equals_the_plain_network(graph, sizes):
    network = network_on(graph.spectrum, **sizes)
    x, t = normal(3, len(graph)), torch.tensor([[0.02], [0.4], [1.0]])
    parameters, S = in_double(network), shift(graph)
    plain = torch.stack([plainly(parameters, S, x[n].float().double(), float(t[n])) for n in range(3)])
    close(network(x, t).double(), plain, FLOAT32)


@every_graph
def test_the_gradient_of_a_loss_equals_that_of_the_plain_network(graph):
    network = network_on(graph.spectrum, width=16, time_dim=8)
    x, t, target = normal(3, len(graph)).float(), torch.tensor([[0.02], [0.4], [1.0]]), normal(3, len(graph), seed=5)
    (network(x, t) - target).square().mean().backward()
    parameters, S = in_double(network), shift(graph)
    plain = torch.stack([plainly(parameters, S, x[n].double(), float(t[n])) for n in range(3)])
    (plain - target).square().mean().backward()
    for name, parameter in network.named_parameters():
        exact = parameters[name].grad
        assert exact.abs().max() > 1e-4, name  # the loss depends on it
        # a sum of terms that cancel: the rounding is relative to the largest entry
        gap = (parameter.grad.double() - exact).abs().max() / exact.abs().max()
        assert gap < 5e-6, f"{name}: {gap}"


@examples(20)
@given(t=st.floats(-2, 2, width=32), time_dim=st.sampled_from([2, 8, 64]))
def test_the_embedding_is_cosines_then_sines_of_four_decades_of_frequencies(t, time_dim):
    network = DenoiserGNN(GRAPHS["weighted"].spectrum, Setting(width=2, blocks=1, time_dim=time_dim))
    half = time_dim // 2
    phases = [2 * math.pi * t * 10 ** (-4 * k / half) for k in range(half)]
    expected = torch.tensor([math.cos(phase) for phase in phases] + [math.sin(phase) for phase in phases])
    # a phase of up to 4 pi, rounded twice in float32
    close(network.embed(torch.tensor(t))[0], expected, 2e-6, size=1.0)


@examples(5)
@given(order=st.permutations(range(7)))
def test_the_order_of_the_nodes_does_not_matter(order):
    graph = GRAPHS["disconnected"]
    x, t, order = normal(3, 7), torch.tensor(0.4), list(order)
    network, other = network_on(graph.spectrum), network_on(graph.permuted(order).spectrum)
    close(other(x[:, order], t), network(x, t)[:, order], FLOAT32)


@examples(5)
@given(seed=st.integers(0, 2**16), name=st.sampled_from(sorted(GRAPHS)))
def test_eigenvectors_may_flip_and_rotate_inside_their_eigenspaces(seed, name):
    random = np.random.default_rng(seed)
    spectrum = GRAPHS[name].spectrum
    U = spectrum.U * random.choice([-1.0, 1.0], len(spectrum.lam))
    for space in range(spectrum.eigenspaces.max() + 1):
        inside = np.flatnonzero(spectrum.eigenspaces == space)
        if len(inside) > 1:
            U[:, inside] = U[:, inside] @ ortho_group.rvs(len(inside), random_state=random)
    x, t = normal(3, len(U)), torch.tensor(0.4)
    close(network_on(Spectrum(spectrum.lam, U))(x, t), network_on(spectrum)(x, t), FLOAT32)


@every_graph
def test_signals_do_not_know_of_each_other(graph):
    network, x = network_on(graph.spectrum), normal(4, len(graph))
    t = torch.tensor([[0.02], [0.3], [0.7], [1.0]])
    apart = torch.cat([network(x[n : n + 1], t[n : n + 1]) for n in range(4)])
    close(network(x, t), apart, FLOAT32)


@every_graph
def test_one_time_for_all_equals_the_same_time_for_each(graph):
    network, x = network_on(graph.spectrum), normal(4, len(graph))
    close(network(x, torch.tensor(0.3)), network(x, torch.full((4, 1), 0.3)), FLOAT32)


def test_a_signal_cannot_reach_beyond_the_taps_or_into_another_component():
    network = network_on(GRAPHS["disconnected"].spectrum, blocks=1, taps=1)
    torch.nn.init.ones_(network.blocks[0].h)  # small taps would leave neighbours little beside the input itself
    x = normal(1, 7).float().requires_grad_()
    for node, near in {0: {3, 0, 1}, 1: {0, 1, 2}, 4: {4, 5}, 6: {6}}.items():
        (gradient,) = torch.autograd.grad(network(x, torch.tensor(0.4))[0, node], x)
        gradient = gradient[0].abs() / gradient.abs().max()
        assert {n for n in range(7) if gradient[n] > 1e-3} == near
        # products with U in float32 leave rounding where S has a zero
        assert all(gradient[n] < 1e-6 for n in set(range(7)) - near)


def test_a_graph_without_edges_is_one_filter_for_all_nodes():
    graph = Graph.from_adjacency(np.zeros((3, 3)))
    network, x, t = network_on(graph.spectrum), normal(2, 3), torch.tensor(0.4)
    alone = network(x.reshape(6, 1).expand(6, 3), t)  # with S = I a node sees itself only
    close(network(x, t), alone[:, 0].reshape(2, 3), FLOAT32)


# -- how it starts -----------------------------------------------------------------------------------------------------


def test_it_starts_as_in_gads_release():
    """Taps normal with sd 0.05, weights uniform within sqrt(6 / (in + out)), biases zero, scales one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = DenoiserGNN(GRAPHS["weighted"].spectrum, Setting(width=256, blocks=2, taps=63, time_dim=254))
    for name, parameter in network.named_parameters():
        p = parameter.detach().double().flatten()
        if name.endswith("bias"):
            assert not p.any()
        elif "norm" in name:
            assert (p == 1).all()
        elif name.endswith(".h"):
            assert float(p.std()) == pytest.approx(0.05, rel=5 / math.sqrt(2 * len(p)))
            assert abs(float(p.mean())) < 5 * 0.05 / math.sqrt(len(p))
            assert float((p / 0.05).pow(4).mean()) == pytest.approx(3, abs=5 * math.sqrt(96 / len(p)))
        else:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.97 * bound < float(p.abs().max()) <= bound * (1 + 1e-6)
            assert float(p.square().mean()) == pytest.approx(bound**2 / 3, rel=5 * math.sqrt(4 / 5 / len(p)))
