"""What training a network on a large graph comes to: how many signals fit into a batch, and whether there is time.

An update of a network with ``B`` blocks of width ``w`` takes about ``12 B N w^2`` operations a signal, forward and
backward. Where a CPU cannot do the updates that are asked for in the time that is given, an hour if nobody says, the
reference alone is the answer, at once.
"""

from __future__ import annotations

import math

import torch

from ..core import device as devices
from ..graphs.space import SignalSpace
from .budget import FEW, LONG, MARGIN
from .config import Config

SPEED = {"cpu": 2e10, "cuda": 1e13}  # operations a second
SHARE = 4  # of a device's memory, what activations may take is one part in so many
NOT_WANTED = "no network was asked for"


def batch(space: SignalSpace, config: Config, device: torch.device) -> int:
    """Signals in a batch: as configured, or as many as memory has room for."""
    room = devices.room(device) / SHARE / (4.0 * max(config.network.kept(space.d), 1))
    return max(1, min(config.batch, int(room)))


def updates(space: SignalSpace, config: Config, device: torch.device, left: float = math.inf) -> int:
    """How many updates there is time for: in ``left`` seconds of a budget, or in an hour; as configured if in time."""
    network, signals = config.network, batch(space, config, device)
    operations = 12.0 * network.blocks * space.d * network.width**2 * signals  # type: ignore[attr-defined]
    seconds = operations / SPEED[device.type]
    if math.isfinite(left):
        return min(config.max_updates, int(MARGIN * max(left, 0.0) / seconds))
    return config.max_updates if device.type != "cpu" or config.max_updates * seconds <= LONG else 0


def alone(space: SignalSpace, config: Config, device: torch.device, left: float = math.inf) -> str:
    """Why there will be no network; empty if there will be one."""
    if config.backbone == "none":
        return NOT_WANTED
    if updates(space, config, device, left) >= min(FEW, config.max_updates) > 0:
        return ""
    time = f"{left / 60:.0f} minutes" if math.isfinite(left) else "an hour"
    return f"a network on {space.d:,} nodes cannot be trained in {time} here"
