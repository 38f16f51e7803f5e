"""What a network is made with: a typed setting for each, which also knows how large the network will be."""

from __future__ import annotations

import abc
from dataclasses import asdict, dataclass

from ..core.settings import Settings


@dataclass(frozen=True)
class NetworkSetting(Settings, abc.ABC):
    """Base of a network's setting. Its fields are settings of training (``--set width=64``) and lie in ``run.json``.

    How large a network is has to be known before memory is asked for: hence the three methods.
    """

    @abc.abstractmethod
    def size(self, nodes: int) -> int:
        """How many numbers it learns on a graph of so many nodes."""

    @abc.abstractmethod
    def layer(self, nodes: int) -> int:
        """How many numbers its largest layer holds of one signal."""

    @abc.abstractmethod
    def kept(self, nodes: int) -> int:
        """How many numbers it keeps of one signal until its gradients are taken."""

    def __str__(self) -> str:
        """As ``width 128, blocks 3``."""
        return ", ".join(f"{key} {value}" for key, value in asdict(self).items())
