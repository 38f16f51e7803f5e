"""The table of networks: each a module that answers ``f_theta(x, t)``, made from a spectrum and a setting of its own.

A further one is a file with a network and its setting, and a row here; configuration, run folders and the command line
take its settings from the row. A network that is zero before training says so (``starts_at_zero``, ``is_zero``, see
``nodenet``): then it is never left worse than its reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from ..core.errors import unknown
from ..graphs.graph import Spectrum
from . import gnn, nodenet
from .nothing import Nothing
from .nothing import Setting as NoSetting
from .setting import NetworkSetting


class Backbone(NamedTuple):
    """A network and what it is made with."""

    network: Callable[[Spectrum, Any], nn.Module]
    setting: type[NetworkSetting]


NETWORKS: dict[str, Backbone] = {
    "gnn": Backbone(gnn.on, gnn.Setting),  # the paper's, shared over nodes
    "node": Backbone(nodenet.NodeNet, nodenet.Setting),  # the one that knows its nodes
    "none": Backbone(Nothing, NoSetting),  # the reference alone
}


def find(name: str) -> Backbone:
    """The row of a name; an unknown one is an error that lists the known ones."""
    if name not in NETWORKS:
        raise unknown("backbone", name, NETWORKS)
    return NETWORKS[name]


def make(name: str, spectrum: Spectrum, setting: NetworkSetting) -> nn.Module:
    """A network of this name on a graph, with weights drawn from torch's generator."""
    return find(name).network(spectrum, setting)
