"""What training a network on a large graph comes to: how many signals fit into a batch, and whether there is time.

An update of a network with ``B`` blocks of width ``w`` takes about ``12 B N w^2`` operations a signal, forward and
backward. Where a CPU cannot do the updates that are asked for in the time that is given, an hour if nobody says, the
reference alone is the answer, at once. Where arithmetic leaves hope, a few updates are timed, the solves of their noise
levels included; a budget of time may make the network narrower (see ``budget``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..core import device as devices
from ..graphs.space import SignalSpace
from .budget import FEW, LONG, MARGIN, of_moments
from .config import Config

SPEED = {"cpu": 2e10, "cuda": 1e13}  # operations a second
SHARE = 4  # of a device's memory, what activations may take is one part in so many
NARROWEST = 8  # width that a budget of time goes down to (see ``budget.of_moments``)
NOT_WANTED = "no network was asked for"


def batch(space: SignalSpace, config: Config, device: torch.device) -> int:
    """Signals in a batch: as configured, or as many as memory has room for."""
    room = devices.room(device) / SHARE / (4.0 * max(config.network.kept(space.d), 1))
    return max(1, min(config.batch, int(room)))


def updates(space: SignalSpace, config: Config, device: torch.device, left: float = math.inf) -> int:
    """How many updates there is time for by arithmetic: in ``left`` seconds of a budget, or in an hour; as configured
    if in time."""
    network, signals = config.network, batch(space, config, device)
    operations = 12.0 * network.blocks * space.d * network.width**2 * signals  # type: ignore[attr-defined]
    seconds = operations / SPEED[device.type]
    if math.isfinite(left):
        return min(config.max_updates, int(MARGIN * max(left, 0.0) / seconds))
    return config.max_updates if device.type != "cpu" or config.max_updates * seconds <= LONG else 0


def hopeless(space: SignalSpace, config: Config, device: torch.device, left: float) -> bool:
    """Whether there is no time for a network by arithmetic; within a budget, not for a narrow one either."""
    narrow = min(NARROWEST, config.width) if math.isfinite(left) else config.width
    return updates(space, config.changed({"width": narrow}), device, left) < _least(config)


def _least(config: Config) -> int:
    return max(1, min(FEW, config.max_updates))


def decided(
    space: SignalSpace,
    config: Config,
    device: torch.device,
    seconds: Callable[[Mapping[str, Any]], float],  # of an update with these settings
    left: Callable[[], float],  # of a budget; infinite without one
) -> dict[str, Any]:
    """Settings with which training ends in time, the batch among them; no backbone: there will be no network."""
    none, usual = {"backbone": "none"}, config.to_dict() | {"batch": batch(space, config, device)}
    if hopeless(space, config, device, left()):
        return none
    if math.isinf(left()):
        own = {"batch": usual["batch"]}
        return none if device.type == "cpu" and config.max_updates * seconds(own) > LONG else own
    found = of_moments(usual, lambda own: seconds({"batch": usual["batch"]} | dict(own)), left)
    return none if found["max_updates"] < _least(config) else found | {"batch": usual["batch"]}
