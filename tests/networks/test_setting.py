"""A network's setting: its size known beforehand, held to its limits; a backbone from outside has its own."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import grcd
from grcd import networks
from grcd.core.errors import InputError
from grcd.core.settings import ranged
from grcd.networks import NETWORKS, Backbone
from grcd.networks.setting import NetworkSetting

SMALL = {"validate_every": 10, "max_updates": 20, "batch": 16}


@dataclass(frozen=True)
class Hidden(NetworkSetting):
    hidden: int = ranged(5, most=100)
    slope: float = 0.1
    start: str = "zero"

    def size(self, nodes):
        return self.hidden * (2 * nodes + 2) + nodes

    def layer(self, nodes):
        return max(nodes, self.hidden)

    def kept(self, nodes):
        return nodes + self.hidden


class Toy(torch.nn.Module):
    """All nodes and the time to a hidden layer, and back."""

    def __init__(self, spectrum, setting):
        super().__init__()
        nodes = len(spectrum.lam)
        self.into, self.out = torch.nn.Linear(nodes + 1, setting.hidden), torch.nn.Linear(setting.hidden, nodes)
        self.slope = setting.slope
        if setting.start == "zero":
            torch.nn.init.zeros_(self.out.weight)

    def forward(self, x, t):
        time = t.float().reshape(-1, 1).expand(len(x), 1)
        return self.out(torch.nn.functional.leaky_relu(self.into(torch.cat([x.float(), time], 1)), self.slope))


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(NETWORKS, "toy", Backbone(Toy, Hidden))


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("sizes", [(8, 3, 5, 64), (6, 1, 2, 4), (5, 2, 1, 2)])
def test_the_size_of_a_network_is_known_before_it_is_made(tiny, backbone, sizes):
    setting = NETWORKS[backbone].setting(*sizes)
    network = networks.make(backbone, tiny.graph.spectrum, setting)
    assert setting.size(len(tiny.graph)) == sum(p.numel() for p in network.parameters())


def test_a_setting_is_held_to_its_limits_with_or_without_a_configuration():
    for make in (NETWORKS["gnn"].setting, grcd.Config):
        assert make(width="64").width == 64
        with pytest.raises(InputError, match=r"got width = 70000\nexpected a value above zero: from 1 to 65,536\n"):
            make(width=70_000)
        with pytest.raises(InputError, match="got time_dim = 7\nexpected an even time_dim"):
            make(time_dim=7)


def test_a_backbone_from_outside_trains_saves_and_loads_with_a_setting_of_its_own(toy, tiny, tmp_path):
    model = grcd.GRCD(tiny.graph, "grcd-rho3", device="cpu", backbone="toy", hidden=7, slope="0.2", **SMALL)
    model.fit(tiny.train, tiny.val, run=tmp_path / "run")
    written = json.loads((tmp_path / "run/run.json").read_text())["config"]
    assert written == model.config.to_dict()
    assert {key: written[key] for key in ("backbone", "hidden", "slope", "start")} == {
        "backbone": "toy",
        "hidden": 7,
        "slope": 0.2,
        "start": "zero",
    }
    assert "width" not in written
    again = grcd.load(tmp_path / "run", device="cpu")
    assert again.config == model.config
    assert again.network.into.out_features == again.config.hidden == 7
    assert np.array_equal(again.sample(5, nfe=2), model.sample(5, nfe=2))
    with pytest.raises(InputError, match=r"another configuration in .*: hidden is 7 there and 8 here"):
        grcd.GRCD(tiny.graph, "grcd-rho3", device="cpu", backbone="toy", hidden=8, slope=0.2, **SMALL).fit(
            tiny.train, tiny.val, run=tmp_path / "run"
        )


def test_the_settings_of_another_backbone_are_unknown(toy):
    with pytest.raises(
        InputError, match=r"got setting 'width'\nexpected one of method, .*, hidden, slope, start, optimizer, lr"
    ):
        grcd.Config(backbone="toy", width=64)
    with pytest.raises(
        InputError, match=r"got setting 'hidden'\nexpected one of method, .*, time_dim, shift, optimizer, lr"
    ):
        grcd.Config(hidden=7)
    with pytest.raises(InputError, match=r"hidden = 101\nexpected .* from 1 to 100"):
        grcd.Config(backbone="toy", hidden=101)


def test_a_configuration_is_replaced_setting_by_setting_whosever_it_is(toy):
    config = replace(grcd.Config(width=32, lr=1e-3), blocks=2, batch=8)
    assert config == grcd.Config(width=32, blocks=2, lr=1e-3, batch=8)
    assert config != grcd.Config(width=33, blocks=2, lr=1e-3, batch=8)
    assert replace(grcd.Config(backbone="toy", hidden=7), seed=3).hidden == 7
    with pytest.raises(AttributeError, match="hidden"):
        _ = config.hidden
    with pytest.raises(InputError, match="got setting 'network'"):
        grcd.Config(network={"width": 3})
