"""Masks: what of a window is hidden while the network learns, drawn from families that cover what users will hide.

| family | what is hidden |
| --- | --- |
| points | readings here and there, 5 to 60 % of them |
| spells | some columns, or all channels of some nodes, silent for half a window or longer; and a few points |
| outages | most nodes, half of the time all of them, at once, for a row or up to half a window |
| sensors | some nodes, all the time; and a few points |
| channels | some channels, at all nodes and all the time |
| future | everything after some step |
| nothing | nothing is observed: everything is hidden |
| everything | everything is observed but one reading in a hundred |
| recorded | what another window of the same rows lacks by itself; and a few points |

A window of which anything was recorded has at least one reading hidden; what never was is neither hidden nor observed.
A family that a window has no use for (channels of one variable, the future of one moment) leaves its share to the
others. A mask depends on the stream and on the number of its window, not on the windows beside it.

Points up to 95 % in a fifth of their windows were tried (results/masks.json, three seeds): spells are filled nearer by
0.2 %, all else is within chance; so 60 % stay.

Gaps that users will have are like those that their table has: of the readings that AQI-36 lacks in its training rows,
eight in ten are missing at half of the stations or more at once. So ``recorded`` occurs by how much is missing.
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
FEW = 0.1  # of readings are points beside spells, sensors or recorded gaps, at most
RECORDED = 2.0  # weight of recorded gaps, by the share of readings that is missing; as others' are in ``FAMILIES``


@dataclass(frozen=True, eq=False)
class Gaps:
    """What some rows lack by themselves."""

    missing: Tensor  # (rows, columns) of bool
    starts: Tensor  # (windows,) first rows of windows
    share: float  # of readings that are missing

    @classmethod
    def of(cls, z: Tensor, starts: Tensor, steps: int) -> Gaps:  # (rows, columns), NaN where missing; (windows,)
        """Of the rows of windows."""
        missing, rows = z.isnan(), (starts[:, None] + torch.arange(steps, device=starts.device)).unique()
        return cls(missing, starts, float(missing[rows].double().mean()) if len(rows) else 0.0)

    def drawn(self, u: Tensor, steps: int) -> Tensor:  # (masks,) uniform -> (masks, steps, columns)
        """Those of windows by number."""
        chosen = self.starts[(u * len(self.starts)).long().clamp(max=len(self.starts) - 1)]
        return self.missing[chosen[:, None] + torch.arange(steps, device=chosen.device)]


@dataclass(frozen=True)
class Uniform:
    """The uniform numbers of some windows, as they are used: broadcast over steps and columns."""

    windows: Tensor  # (SCALARS, windows, 1, 1)
    columns: Tensor  # (SCALARS, windows, 1, columns)
    readings: Tensor  # (windows, steps, columns)
    channels: int
    gaps: Gaps | None = None

    @classmethod
    def drawn(cls, stream: Stream, numbers: list[int], space: SignalSpace, gaps: Gaps | None = None) -> Uniform:
        columns = space.d // space.steps
        sizes = [1, SCALARS, SCALARS * columns, space.d]  # the first one chose the family
        _, scalars, by_column, by_reading = stream.uniform(numbers, sum(sizes)).split(sizes, dim=1)
        return cls(
            scalars.T[:, :, None, None],
            by_column.unflatten(1, (SCALARS, 1, columns)).movedim(1, 0),
            by_reading.unflatten(1, (space.steps, columns)),
            space.channels,
            gaps,
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


def _outages(u: Uniform) -> Tensor:
    steps = len(u.steps)
    length = 1 + (u.windows[1].square() * (steps // 2)).floor()
    begun = _least(u.readings[..., :1], (0.05 + 0.45 * u.windows[0]) / length)  # (windows, steps, 1)
    since = (u.steps - u.steps.T) % steps  # what goes on after the last row went on before the first
    down = (begun.mT & (since < length)).any(dim=2, keepdim=True)
    return down & (u.nodes[0] <= torch.where(u.windows[2] < 0.5, 1.0, u.windows[2]))


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


def _recorded(u: Uniform) -> Tensor:
    assert u.gaps is not None
    found = u.gaps.drawn(u.windows[0].flatten(), len(u.steps))
    return found | _least(u.readings, FEW * u.windows[1])


class Family(NamedTuple):
    """How often its masks occur, relative to the others; and how they are made."""

    weight: float
    hidden: Callable[[Uniform], Tensor]  # (windows, steps, columns) of bool


FAMILIES = {
    "points": Family(0.41, _points),
    "spells": Family(0.37, _spells),
    "outages": Family(0.08, _outages),
    "sensors": Family(0.08, _sensors),
    "channels": Family(0.15, _channels),
    "future": Family(0.08, _future),
    "nothing": Family(0.04, _nothing),
    "everything": Family(0.02, _everything),
    "recorded": Family(0.0, _recorded),  # by how much is missing
}


def shares(space: SignalSpace, missing: float = 0.0) -> dict[str, float]:
    """How often each family occurs in windows of a space, of whose readings a share is ``missing``."""
    single = space.steps == 1
    useless = {"channels": space.channels == 1, "future": single, "spells": single, "outages": single}
    weights = {name: family.weight for name, family in FAMILIES.items() if not useless.get(name, False)}
    weights = {name: weight for name, weight in (weights | {"recorded": RECORDED * missing}).items() if weight}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def families(stream: Stream, number: int, windows: int, space: SignalSpace, missing: float = 0.0) -> list[str]:
    """The family of each window's mask (windows,), from window ``number`` on."""
    expected = shares(space, missing)
    names, edges = list(expected), torch.tensor(list(expected.values()), dtype=torch.float64).cumsum(0)
    u = stream.uniform(range(number, number + windows), 1)[:, 0].cpu()
    return [names[k] for k in torch.bucketize(u, edges, right=True).clamp(max=len(names) - 1).tolist()]


def masks(stream: Stream, number: int, space: SignalSpace, observed: Tensor, gaps: Gaps | None = None) -> Tensor:
    """What is hidden (windows, d) of windows ``number``, ``number + 1``, ... of which ``observed`` (windows, d) was
    recorded; other windows have ``gaps`` of their own."""
    missing = 0.0 if gaps is None else gaps.share
    chosen, hidden = families(stream, number, len(observed), space, missing), torch.zeros_like(observed)
    for name in dict.fromkeys(chosen):
        rows = [row for row, family in enumerate(chosen) if family == name]
        uniform = Uniform.drawn(stream, [number + row for row in rows], space, gaps)
        hidden[rows] = FAMILIES[name].hidden(uniform).flatten(1)
    hidden &= observed
    idle = (~hidden.any(1) & observed.any(1)).nonzero()[:, 0]
    if len(idle):
        readings = Uniform.drawn(stream, (number + idle).tolist(), space).readings.flatten(1)
        hidden[idle, readings.masked_fill(~observed[idle], 2.0).argmin(1)] = True
    return hidden
