"""What the conditional model of windows learns from: windows, masks, and posteriors that never saw their windows.

Posteriors that the network trains on must come from a mean and a covariance that were fitted without the window, or
residuals look smaller than they will be. So training rows are cut into a few parts, and each part has a ``Fold``: its
z-scores by the mean of all other parts, and the reference of all other parts.

Pairs of a window and a mask are drawn beforehand, with their posteriors, which cost more than an update does; and kept
in half precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.device import arithmetic
from ..core.errors import InputError
from ..core.parallel import team
from ..core.progress import bar
from ..core.rows import evenly
from ..core.streams import Stream
from ..diffusion.conditional import LEAST_SD, features
from ..graphs.space import SignalSpace
from ..references.reference import Reference
from .masks import Gaps, masks

MOST_WEIGHT = 4.0  # of a reading in the loss, over the mean of its window: few readings do not rule
CHUNK = 1 << 22  # readings whose posteriors are taken together
BYTES = {"cpu": 1 << 30, "cuda": 1 << 34}  # of a pool


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows, and what was learned from others; all on one device."""

    z: Tensor  # (rows, columns) z-scores, NaN where missing
    calendar: Tensor  # (rows, features)
    starts: Tensor  # (windows,) first rows of windows, none of which crosses a break
    reference: Reference
    scale: Tensor | None = None  # (rows, columns) what a z-score of one is in units; None: the same for all
    _gaps: dict[int, Gaps] = field(default_factory=dict)  # by length of windows

    def gaps(self, steps: int) -> Gaps:
        """What the rows of its windows lack by themselves."""
        if steps not in self._gaps:
            self._gaps[steps] = Gaps.of(self.z, self.starts, steps)
        return self._gaps[steps]

    def windows(self, starts: Tensor, steps: int) -> Tensor:  # (windows, steps)
        """The rows of windows."""
        return starts[:, None] + torch.arange(steps, device=starts.device)


Learned = tuple[Tensor, Reference, Tensor | None]  # z-scores of all rows (rows, columns), the reference, the scale


def cross_fitted(
    learn: Callable[[list[slice]], Learned], calendar: Tensor, stretches: Sequence[slice], steps: int, count: int
) -> list[Fold]:
    """Folds of training rows, each with what ``learn`` takes from the stretches of all others.

    ``calendar`` (rows, features) is that of all rows; ``stretches`` are training rows without a break.
    """
    parts = parted(stretches, count)
    folds = []
    for part in parts:
        starts = [torch.arange(s.start, max(s.start, s.stop - steps + 1), device=calendar.device) for s in part]
        others = [s for other in parts if other is not part for s in other]
        if not sum(map(len, starts)):
            continue
        if not others:
            raise InputError(
                "training rows in one part", "two at least, to learn each from the other", "give more rows"
            )
        z, reference, scale = learn(others)
        folds.append(Fold(z, calendar, torch.cat(starts), reference, scale))
    if not folds:
        longest = max((s.stop - s.start for s in stretches), default=0)
        raise InputError(
            f"training rows of which at most {longest // max(1, count)} in a row can be left out",
            f"{steps}, a window",
            "give more rows, or choose a shorter window",
        )
    return folds


def parted(stretches: Sequence[slice], count: int) -> list[list[slice]]:
    """Stretches cut into so many parts of as many rows each, in order."""
    rows = sum(s.stop - s.start for s in stretches)
    edges, parts = [round(rows * k / count) for k in range(count + 1)], [list[slice]() for _ in range(count)]
    done = 0
    for s in stretches:
        for part, (low, high) in zip(parts, pairwise(edges), strict=True):
            first, last = max(s.start, s.start + low - done), min(s.stop, s.start + high - done)
            if first < last:
                part.append(slice(first, last))
        done += s.stop - s.start
    return [part for part in parts if part]


class Batch(NamedTuple):
    """Windows as the network learns them."""

    u: Tensor  # (batch, d) hidden readings in units of their posterior, 0 elsewhere
    weight: Tensor  # (batch, d) of a reading in the loss, 0 where it is not hidden; a window's are 1 on average
    features: Tensor  # (batch, d, FEATURES)
    calendar: Tensor  # (batch, steps, features)


@dataclass(frozen=True, eq=False)
class Pool:
    """Pairs of a window and a mask, with their posterior."""

    u: Tensor  # (pairs, d), half precision, as is
    mean: Tensor  # (pairs, d)
    sd: Tensor  # (pairs, d)
    weight: Tensor  # (pairs, d)
    calendar: Tensor  # (pairs, steps, features), float32

    @classmethod
    def drawn(cls, space: SignalSpace, folds: Sequence[Fold], pairs: int, seed: int, purpose: str) -> Pool:
        """Windows of all folds, each as likely as any other, with replacement; by seed, purpose and number."""
        stream, total = Stream(seed, f"{purpose} windows", folds[0].z.device), sum(len(fold.starts) for fold in folds)
        pairs = min(pairs, max(1, BYTES[folds[0].z.device.type] // (8 * space.d)))
        chosen = stream.integers(0, pairs, total).sort().values
        return cls._at(space, folds, chosen, Stream(seed, f"{purpose} masks", chosen.device))

    @classmethod
    def evenly(cls, space: SignalSpace, fold: Fold, most: int, seed: int, purpose: str) -> Pool:
        """All windows of a fold, or so many of them evenly spaced, a mask each."""
        chosen = torch.from_numpy(evenly(len(fold.starts), most)).to(fold.starts.device)
        return cls._at(space, [fold], chosen, Stream(seed, f"{purpose} masks", chosen.device))

    @classmethod
    def _at(cls, space: SignalSpace, folds: Sequence[Fold], chosen: Tensor, stream: Stream) -> Pool:
        """``chosen`` (pairs,) are ascending numbers of windows, counted through all folds."""
        pieces, first, number = list[tuple[Fold, Tensor, int]](), 0, 0
        for fold in folds:
            last = first + len(fold.starts)
            own = chosen[(chosen >= first) & (chosen < last)] - first
            for some in own.split(max(1, CHUNK // space.d)):
                pieces.append((fold, fold.starts[some], number))
                number += len(some)
            first = last

        def posteriors(piece: int) -> tuple[Tensor, ...]:
            fold, starts, number = pieces[piece]
            found = _posteriors(space, fold, starts, stream, number)
            advance(number + len(starts), "")
            return found

        with bar("posteriors to learn from", len(chosen)) as advance:
            parts = team().each(len(pieces), posteriors)
            advance(len(chosen), "")
        return cls(*(torch.cat(each) for each in zip(*parts, strict=True)))

    def __len__(self) -> int:
        return len(self.u)

    def batch(self, index: Tensor | slice) -> Batch:
        """Pairs by number."""
        u, mean, sd, weight = (each[index].float() for each in (self.u, self.mean, self.sd, self.weight))
        return Batch(u, weight, features(mean, sd, weight > 0), self.calendar[index])


def _posteriors(space: SignalSpace, fold: Fold, starts: Tensor, stream: Stream, number: int) -> tuple[Tensor, ...]:
    """The tensors of a pool for some windows of a fold, whose masks are numbered from ``number`` on."""
    rows = fold.windows(starts, space.steps)
    z = fold.z[rows].flatten(1)
    recorded = ~z.isnan()
    hidden = masks(stream, number, space, recorded, fold.gaps(space.steps))
    with arithmetic():  # factors of covariances want full precision
        posterior = fold.reference.posterior(z, recorded & ~hidden)
    spread = posterior.sd.clamp(min=LEAST_SD)
    u = torch.where(hidden, (z.to(spread) - posterior.mean) / spread, 0)
    weight = hidden * spread * (1 if fold.scale is None else fold.scale[rows].flatten(1).to(spread))
    weight = weight / (weight.sum(1, keepdim=True) / hidden.sum(1, keepdim=True).clamp(min=1)).clamp(min=1e-9)
    halves = (each.half() for each in (u, posterior.mean, posterior.sd, weight.clamp(max=MOST_WEIGHT)))
    return (*halves, fold.calendar[rows].float())
