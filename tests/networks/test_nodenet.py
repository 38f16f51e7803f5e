"""NodeNet: a naive re-implementation node by node, what it starts from, and that it never ends below its reference."""

import json
import math

import numpy as np
import pytest
import torch
from laws import close
from mixtures import normal
from test_gnn import FLOAT32, GRAPHS, every_graph, shift

import grcd
from grcd.core.errors import InputError
from grcd.networks.nodenet import NodeNet, Setting
from grcd.training.loop import Validation

SIZES = {"width": 8, "blocks": 2, "time_dim": 6}


def network_on(graph, seed=0):
    """With every parameter drawn: nothing is zero or one by chance."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = NodeNet(graph.spectrum, Setting(**SIZES))
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, 0.0, 0.5)
    return network


def plain(network, graph, x, t):
    """The module's docstring for one signal, node by node, in float64."""
    p = {name: value.double() for name, value in network.named_parameters()}
    S, nodes, width = shift(graph), len(graph), SIZES["width"]
    k = torch.arange(SIZES["time_dim"] // 2).double()
    phase = 2 * math.pi * t * 10 ** (-4 * k / len(k))
    tau = torch.nn.functional.silu(p["time.0.weight"] @ torch.cat([phase.cos(), phase.sin()]) + p["time.0.bias"])

    def normed(h):
        return (h - h.mean()) / torch.sqrt(((h - h.mean()) ** 2).mean() + 1e-5)

    h = [x[n] * p["input"] + p["embedding"][n] for n in range(nodes)]
    for b in range(SIZES["blocks"]):
        of = {name.removeprefix(f"blocks.{b}."): value for name, value in p.items()}
        time = of["modulation.time.weight"] @ tau + of["modulation.time.bias"]
        scale, move = time[:width], time[width:]
        u = [
            normed(h[n]) * (1 + of["modulation.gain"][n] + scale) + of["modulation.bias"][n] + move
            for n in range(nodes)
        ]
        for n in range(nodes):
            inner = of["inner.weight"] @ u[n] + of["inner.bias"]
            for m in range(nodes):
                inner = inner + of["A"][n, m] * u[m] + S[n, m] * of["c"] * u[m]
            h[n] = h[n] + of["outer.weight"] @ torch.nn.functional.silu(inner) + of["outer.bias"]
    return torch.stack([normed(h[n]) @ p["output"][n] + p["offset"][n] for n in range(nodes)])


@every_graph
def test_it_is_what_its_docstring_says(graph):
    network, x = network_on(graph), normal(3, len(graph), seed=1)
    t = torch.tensor([[0.1], [0.4], [0.9]], dtype=torch.float64)
    expected = torch.stack([plain(network, graph, x[k], float(t[k])) for k in range(3)])
    close(network(x, t).double(), expected, 2e-5)
    same = network(x, torch.tensor(0.4))  # one time for all
    close(same[1], network(x, t)[1], FLOAT32)


def test_before_training_it_is_zero_and_every_node_can_learn():
    graph = GRAPHS["weighted"]
    network, x, t = NodeNet(graph.spectrum, Setting(**SIZES)), normal(4, len(graph), seed=2), torch.tensor(0.3)
    assert not network(x, t).any()
    network(x, t).sum().backward()
    assert bool((network.output.grad != 0).all())
    assert bool((network.offset.grad != 0).all())


def test_its_nodes_are_not_alike():
    """On a complete graph DenoiserGNN treats all nodes alike; this one does not."""
    graph = GRAPHS["complete"]
    network, x = network_on(graph), torch.full((1, len(graph)), 0.7)
    assert len({round(value, 4) for value in network(x, torch.tensor(0.5))[0].tolist()}) == len(graph)


@pytest.mark.parametrize("lr", [1e-3, 10.0])
def test_it_never_ends_worse_than_its_reference(tiny, quick, lr):
    """With a learning rate that ruins everything, what is kept is the start: the reference itself."""
    settings = {**quick, "lr": lr, "max_updates": 40}
    model = grcd.GRCD(tiny.graph, seed=0, device="cpu", **settings).fit(tiny.train, tiny.val)
    assert isinstance(model.network, NodeNet)  # by default
    assert model.result["val"] <= model.result["val_reference_alone"] * (1 + 1e-12)
    if lr == 10.0:
        assert model.result["best_update"] == 0
        assert model.result["val"] == pytest.approx(model.result["val_reference_alone"], rel=1e-9)
        z = torch.from_numpy(tiny.normalizer.apply(tiny.test))
        assert not model.network(z, torch.tensor(0.5)).any()


def test_training_goes_on_while_validations_above_the_reference_improve(tiny, quick, tmp_path, monkeypatch):
    """The first updates lead away from the reference: patience counts from the best validation since."""
    monkeypatch.setattr(Validation, "certain", lambda *networks: True)  # few signals are: the best is to be kept
    settings = {**quick, "lr": 1.0, "max_updates": 300, "validate_every": 5, "patience": 3}
    model = grcd.GRCD(tiny.graph, "grcd-spectral", seed=0, device="cpu", **settings)
    model.fit(tiny.train, tiny.val, run=tmp_path / "run")
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    losses, reference = [json.loads(line)["val"] for line in lines], model.result["val_reference_alone"]
    assert min(losses[:4]) > 1.01 * reference  # had the reference been a milestone, training would have ended here
    assert model.result["val"] == min(losses) < 0.99 * reference  # and nothing would have been learned
    milestone, since = math.inf, []  # the rule by hand
    for loss in losses:
        improved = milestone - loss > 0.002 * max(reference - loss, 0.0)
        since.append(0 if improved else since[-1] + 1)
        milestone = loss if improved else milestone
    assert since.index(3) == len(losses) - 1  # it ends at the third in a row that is no improvement, and not before
    assert model.result["updates"] == 5 * len(losses)


def test_a_run_with_it_comes_back_from_its_folder_to_the_bit(tiny, quick, tmp_path):
    model = grcd.GRCD(tiny.graph, "grcd", seed=1, device="cpu", **quick)
    model.fit(tiny.train, tiny.val, run=tmp_path / "run")
    assert isinstance(model.network, NodeNet)
    assert np.array_equal(grcd.load(tmp_path / "run", device="cpu").sample(5, nfe=2), model.sample(5, nfe=2))


def test_an_unknown_backbone_is_refused(tiny):
    with pytest.raises(InputError, match="one of gnn, node"):
        grcd.GRCD(tiny.graph, backbone="transformer")
