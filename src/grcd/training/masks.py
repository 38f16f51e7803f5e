"""Masks: what of a window is hidden while the network learns, drawn from families that cover what users will hide.

| family | what is hidden |
| --- | --- |
| points | readings here and there, 5 to 60 % of them |
| spells | some columns, or all channels of some nodes, silent for half a window or longer; and a few points |
| sensors | some nodes, all the time; and a few points |
| channels | some channels, at all nodes and all the time |
| future | everything after some step |
| nothing | nothing is observed: everything is hidden |
| everything | everything is observed but one reading in a hundred |

A window has at least one reading hidden, unless it was missing by itself: what never was recorded is neither hidden nor
observed. A family that a window has no use for (channels of one variable, the future of one moment) leaves its share to
the others. A mask depends on the stream and on the number of its window, not on the windows beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.streams import Stream
from ..graphs.space import SignalSpace

SCALARS = 3  # uniform numbers a window, and a column
FEW = 0.1  # of readings are points beside spells or sensors, at most


@dataclass(frozen=True)
class Uniform:
    """The uniform numbers of some windows, as they are used: broadcast over steps and columns."""

    windows: Tensor  # (SCALARS, windows, 1, 1)
    columns: Tensor  # (SCALARS, windows, 1, columns)
    readings: Tensor  # (windows, steps, columns)
    channels: int

    @classmethod
    def drawn(cls, stream: Stream, numbers: list[int], space: SignalSpace) -> Uniform:
        columns = space.d // space.steps
        sizes = [1, SCALARS, SCALARS * columns, space.d]  # the first one chose the family
        _, scalars, by_column, by_reading = stream.uniform(numbers, sum(sizes)).split(sizes, dim=1)
        return cls(
            scalars.T[:, :, None, None],
            by_column.unflatten(1, (SCALARS, 1, columns)).movedim(1, 0),
            by_reading.unflatten(1, (space.steps, columns)),
            space.channels,
        )

    @property
    def nodes(self) -> Tensor:  # like ``columns``
        """The same numbers for all channels of a node."""
        return self.columns[..., :: self.channels].repeat_interleave(self.channels, dim=-1)

    @property
    def steps(self) -> Tensor:  # (steps, 1)
        return torch.arange(self.readings.shape[1], device=self.readings.device)[:, None]


def _least(u: Tensor, share: Tensor | float) -> Tensor:
    """A share of the numbers, the lowest ones, and at least one a window."""
    return u <= u.amin(dim=(1, 2), keepdim=True).clamp(min=share)


def _points(u: Uniform) -> Tensor:
    return _least(u.readings, 0.05 + 0.55 * u.windows[0])


def _spells(u: Uniform) -> Tensor:
    steps = len(u.steps)
    silent, long, late = torch.where(u.windows[2] < 0.5, u.nodes, u.columns)
    length = max(1, steps // 2) + (1.5 * steps * long).floor()
    first = (late * (steps + length - 1)).floor() - (length - 1)  # any that shows in the window
    spell = _least(silent, 0.02 + 0.23 * u.windows[0]) & (u.steps >= first) & (u.steps < first + length)
    return spell | (u.readings < FEW * u.windows[1])


def _sensors(u: Uniform) -> Tensor:
    return _least(u.nodes[0], 0.02 + 0.5 * u.windows[0]) | (u.readings < FEW * u.windows[1])


def _channels(u: Uniform) -> Tensor:
    chosen = u.columns[0][..., : u.channels]
    some = _least(chosen, 0.5) & (chosen < chosen.amax(dim=2, keepdim=True))  # never all of them
    return some.repeat(1, len(u.steps), u.readings.shape[2] // u.channels)


def _future(u: Uniform) -> Tensor:
    seen = 1 + (u.windows[0] * (len(u.steps) - 1)).floor()
    return (u.steps >= seen).expand_as(u.readings)


def _nothing(u: Uniform) -> Tensor:
    return torch.ones_like(u.readings, dtype=torch.bool)


def _everything(u: Uniform) -> Tensor:
    return _least(u.readings, 0.01)


class Family(NamedTuple):
    """How often its masks occur, relative to the others; and how they are made."""

    weight: float
    hidden: Callable[[Uniform], Tensor]  # (windows, steps, columns) of bool


FAMILIES = {
    "points": Family(0.41, _points),
    "spells": Family(0.37, _spells),
    "sensors": Family(0.08, _sensors),
    "channels": Family(0.15, _channels),
    "future": Family(0.08, _future),
    "nothing": Family(0.04, _nothing),
    "everything": Family(0.02, _everything),
}


def shares(space: SignalSpace) -> dict[str, float]:
    """How often each family occurs in windows of a space."""
    useless = {"channels": space.channels == 1, "future": space.steps == 1, "spells": space.steps == 1}
    weights = {name: family.weight for name, family in FAMILIES.items() if not useless.get(name, False)}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def families(stream: Stream, number: int, windows: int, space: SignalSpace) -> list[str]:  # (windows,)
    """The family of each window's mask, from window ``number`` on."""
    names, edges = list(shares(space)), torch.tensor(list(shares(space).values()), dtype=torch.float64).cumsum(0)
    u = stream.uniform(range(number, number + windows), 1)[:, 0].cpu()
    return [names[k] for k in torch.bucketize(u, edges, right=True).clamp(max=len(names) - 1).tolist()]


def masks(stream: Stream, number: int, space: SignalSpace, observed: Tensor) -> Tensor:  # (windows, d) of bool
    """What is hidden of windows ``number``, ``number + 1``, ... of which ``observed`` (windows, d) was recorded."""
    chosen, hidden = families(stream, number, len(observed), space), torch.zeros_like(observed)
    for name in dict.fromkeys(chosen):
        rows = [row for row, family in enumerate(chosen) if family == name]
        uniform = Uniform.drawn(stream, [number + row for row in rows], space)
        hidden[rows] = FAMILIES[name].hidden(uniform).flatten(1)
    return hidden & observed
