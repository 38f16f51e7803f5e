"""Scores of hidden readings, summed up piece by piece: by day, so that intervals can be had over weeks, and by lead.

    mae, mse            of the median of draws
    crps                normalised, as ``protocol`` has it
    cover50, cover90    shares within intervals; a point has none: NaN
    energy              the energy score of all scored readings of a piece at once

The energy score (``metrics/ensemble``) sees how readings hang together; it is the mean over pieces, in units of the
readings, and grows with how many there are.

Sums are all there is, so they can be written down and added to later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import protocol
from .bootstrap import rounded
from .pieces import Pieces

READINGS = ("count", "absolute", "square", "loss", "size", "inside50", "inside90")  # summed over readings
PIECES = ("energy", "pieces")  # summed over pieces
KEPT = ("count", "absolute", "loss", "size", "inside90", "energy", "pieces")  # by day, in the record


class Tally:
    """Sums by day and lead; lead 0 stands for all of them."""

    def __init__(self, days: Sequence[int], steps: Sequence[int] = ()):
        self.days, self.steps = [int(day) for day in days], [0, *steps]
        shape = (len(self.days), len(self.steps))
        self.sums = {name: np.zeros(shape) for name in (*READINGS, *PIECES)}
        self.points, self.done, self.seconds = False, 0, 0.0

    @classmethod
    def of(cls, pieces: Pieces, steps: Sequence[int] = ()) -> Tally:
        """Without anything in it yet."""
        return cls(np.unique(pieces.days()[np.unique(pieces.rows)]).tolist(), steps)

    def add(self, pieces: Pieces, some: np.ndarray, quantiles: Tensor, draws: Tensor) -> None:
        """Some pieces: ``quantiles`` (levels, readings) of what is scored, in order; ``draws`` (n, pieces, length,
        nodes, channels) of everything."""
        where = pieces.scored(some)
        truth = torch.from_numpy(pieces.truth(some)).to(draws.device, torch.float64)
        mask = torch.from_numpy(where).to(draws.device)
        y, quantiles = truth[mask], quantiles.double()
        off = quantiles[protocol.MIDDLE] - y
        values = {
            "count": torch.ones_like(y),
            "absolute": off.abs(),
            "square": off.square(),
            "loss": protocol.quantile_losses(quantiles, y),
            "size": y.abs(),
            "inside50": protocol.inside(quantiles, y, protocol.HALF),
            "inside90": protocol.inside(quantiles, y, protocol.NINE_TENTHS),
        }
        piece, row, *_ = where.nonzero()
        day = self._numbers(pieces.days()[pieces.rows[some]])  # (some, length)
        lead = row + 1 + pieces.future - pieces.length if pieces.future else np.zeros_like(row)
        for column, step in enumerate(self.steps):
            chosen = (lead == step) if step else np.ones(len(row), dtype=bool)
            for name, each in values.items():
                total = np.bincount(day[piece, row][chosen], each.double().cpu().numpy()[chosen], len(self.days))
                self.sums[name][:, column] += total
            at = slice(pieces.length - pieces.future + step - 1, pieces.length - pieces.future + step) if step else ...
            scores, there = _energy(draws[:, :, at], truth[:, at], mask[:, at])
            first = day[:, -1] if not pieces.future else day[:, pieces.length - pieces.future]
            self.sums["energy"][:, column] += np.bincount(first[there], scores[there], len(self.days))
            self.sums["pieces"][:, column] += np.bincount(first[there], minlength=len(self.days))
        self.points, self.done = len(draws) == 1, self.done + len(some)

    def scores(self, step: int = 0) -> dict[str, float]:
        """By name: mae, mse, crps, energy, cover50, cover90, and how many ``readings`` there were."""
        total = {name: float(sums[:, self.steps.index(step)].sum()) for name, sums in self.sums.items()}
        count = total["count"]
        covers = {f"cover{share}": math.nan if self.points else total[f"inside{share}"] / count for share in (50, 90)}
        return {
            "mae": total["absolute"] / count,
            "mse": total["square"] / count,
            "crps": total["loss"] / total["size"],
            "energy": total["energy"] / total["pieces"],
            **covers,
            "readings": count,
        }

    def by_day(self) -> dict[str, list[float]]:
        """What intervals are taken from, over all leads; numbers are rounded."""
        sums = {name: [rounded(value) for value in self.sums[name][:, 0]] for name in KEPT}
        return {"day": [float(day) for day in self.days], **sums}

    def to_dict(self) -> dict[str, Any]:
        """For JSON, all of it."""
        about = {key: getattr(self, key) for key in ("days", "steps", "points", "done", "seconds")}
        return about | {"sums": {name: sums.tolist() for name, sums in self.sums.items()}}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Tally:
        """The way back."""
        tally = cls(content["days"], content["steps"][1:])
        tally.points, tally.done, tally.seconds = (content[key] for key in ("points", "done", "seconds"))
        tally.sums = {name: np.array(content["sums"][name], dtype=np.float64) for name in (*READINGS, *PIECES)}
        return tally

    def _numbers(self, days: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.days, days)


def _energy(draws: Tensor, truth: Tensor, mask: Tensor) -> tuple[np.ndarray, np.ndarray]:  # two of (pieces,)
    """Of the scored readings of each piece; and whether there are any. Distances are of errors, which are small."""
    n, pieces = draws.shape[:2]
    off = torch.where(mask, draws.double() - truth, 0).reshape(n, pieces, -1).transpose(0, 1)  # (pieces, n, readings)
    score = off.norm(dim=2).mean(dim=1)
    if n > 1:
        score = score - torch.cdist(off, off).sum(dim=(1, 2)) / (2 * n * (n - 1))
    return score.cpu().numpy(), mask.reshape(pieces, -1).any(dim=1).cpu().numpy()
