"""Every row by itself: each reading given what other nodes read at that moment.

A sensor that is silent throughout is known by the others alone, and the shrinkage that suits whole windows need not
suit moments: where nodes drift apart, noise that keeps windows from overfitting is too much for them, and so is what
distance along the graph says. So beside the reference stands a Gaussian of the z-scores of single rows, with the
covariance ``C_0`` of training rows as it is, shrunk in a way of its own: a share ``graph`` towards what distance along
the graph says of it (see ``references/nearness``), and then

    Sigma = w * C_0 + noise I,    w_ij = rho_ij^2 / (rho_ij^2 + local^2) between nodes

(see ``references/lags``). All three weights are fitted to hidden readings, and so are ``spread``, which standard
deviations are multiplied by, ``tail`` and ``shift`` (see ``tails``).

**Gaps.** Covariances over the pairs of readings that were both there need not fit together: of AQI-36 they do not, and
noise has to hide it. So where there are gaps ``C_0`` goes on to a covariance under which what was read is more
probable, by ``ROUNDS`` of expectation maximisation: gaps are drawn given the rest of their row, and the covariance is
taken again.

**Plain.** What makes readings of one node Gaussian need not make those of two of them linear in each other (jumps that
neighbours share), and a mean by the calendar is of little use where a trend is what nodes share. So ``C_0`` is that of
z-scores on their scale about their mean by the calendar, or ``plain``, that of readings as they stand about one mean a
column; which of the two is decided with the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.rows import BLOCK, evenly, split
from ..core.streams import Stream
from ..references.lags import FLOOR, Shrinkage, lag_covariances
from ..references.nearness import towards
from ..references.stationary import Stationary
from .columns import TINY, mirrored
from .tails import stretched

MOST = 4096  # columns of which a law of single rows is kept
ROUNDS, DRAWS, ROWS = 8, 4, 4000  # of expectation maximisation; draws of each row, and rows
START = 0.01  # noise of the first covariance


@dataclass(frozen=True)
class Moments:
    """How the law of single rows is made of their covariance."""

    local: float
    noise: float
    spread: float = 1.0
    graph: float = 0.0
    plain: bool = False
    tail: float = 0.0
    shift: float = 0.0

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> Moments:
        """The way back."""
        return cls(**numbers)

    def law(self, C0: Tensor, distance: np.ndarray) -> MomentLaw:
        """Of rows with this covariance (columns, columns), on nodes so far from each other (nodes, nodes)."""
        node = torch.arange(len(C0), device=C0.device) // (len(C0) // len(distance))
        shrinkage = Shrinkage(0.0, 0.0, self.local, self.noise)
        law = Stationary.of(towards(C0[None], distance, self.graph), shrinkage, node)
        return MomentLaw(law, self.spread, self.tail, self.shift)


def covariance(z: Tensor) -> Tensor:  # (rows, columns) -> (columns, columns)
    """``C_0`` of z-scores, NaN where missing."""
    C0 = lag_covariances(z, 1)[0]
    z = z[torch.from_numpy(evenly(len(z), ROWS)).to(z.device)].double()
    observed = ~z.isnan()
    if observed.all() or not observed.any():
        return C0
    still = ~observed.any(0)
    for k in range(ROUNDS):
        law = Stationary.of(C0[None], Shrinkage(0.0, 0.0, 0.0, START if k == 0 else FLOOR))
        xi = mirrored(Stream(k, "gaps of rows", z.device), np.arange(len(z)), DRAWS, z.shape[1]).to(z)
        drawn = law.posterior(z.nan_to_num(), observed, xi).draws
        assert drawn is not None
        x = torch.where(observed[:, None], z.nan_to_num()[:, None], drawn).flatten(0, 1)
        C0 = x.T @ x / len(x)
    return torch.where(still | still[:, None], 0.0, C0)


@dataclass(frozen=True, eq=False)
class Plain:
    """Rows as they stand: mean and standard deviation of each column, and the covariance of what they make of it."""

    mean: Tensor  # (columns,)
    sd: Tensor  # (columns,)
    C0: Tensor  # (columns, columns)

    @classmethod
    def of(cls, rows: np.ndarray, device: torch.device) -> Plain:
        """Of (rows, columns), NaN where missing; of a column without a reading, or always the same, 0 and 1."""
        x = torch.from_numpy(rows.astype(np.float64)).to(device)
        seen = ~x.isnan()
        count = seen.sum(0).clamp(min=1)
        mean = x.nan_to_num().sum(0) / count
        sd = (torch.where(seen, x - mean, 0.0).square().sum(0) / count).sqrt()
        sd = torch.where(sd > 0, sd, 1.0)
        return cls(mean, sd, covariance((x - mean) / sd))

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "sd": self.sd, "C0": self.C0}

    def scored(self, rows: np.ndarray) -> Tensor:  # (rows, columns) twice
        """z-scores."""
        return (torch.from_numpy(rows.astype(np.float64)).to(self.mean) - self.mean) / self.sd

    def back(self, z: Tensor) -> Tensor:  # (..., columns) twice
        """z-scores as readings."""
        return z * self.sd + self.mean


@dataclass(frozen=True)
class MomentLaw:
    """A Gaussian of single rows, asked as ``columns`` is."""

    reference: Stationary  # of one step
    spread: float
    tail: float
    shift: float

    def posterior(self, z: Tensor, stretches: Sequence[slice]) -> tuple[Tensor, Tensor]:  # two of (rows, columns)
        """Median, and standard deviation but for the tails, of z-scores (rows, columns), NaN where missing, given those
        of the same row."""
        found = self.reference.posterior(z.nan_to_num(), ~z.isnan())
        mean, sd = found.mean.to(z), found.sd.to(z)
        return torch.where(z.isnan(), mean + self.shift * sd, z), torch.where(z.isnan(), self.spread * sd, 0.0)

    def draws(
        self, z: Tensor, stretches: Sequence[slice], n: int, seed: int, chunk: int | None = None
    ) -> Iterator[tuple[np.ndarray, Tensor]]:  # each (rows,), (n, rows, columns)
        """``n`` draws of z-scores given those that are there, some rows at a time, in the order of the stretches."""
        rows = np.concatenate([np.arange(s.start, s.stop) for s in stretches])
        for some in split(rows, chunk or max(1, BLOCK // (n * z.shape[1]))):
            yield some, self.drawn(z[some], some, n, seed)

    def drawn(self, z: Tensor, rows: np.ndarray, n: int, seed: int) -> Tensor:  # (n, rows, columns)
        """``n`` draws of the z-scores (rows, columns) of rows with these numbers; in pairs, each second one the mirror
        image of the first."""
        xi = mirrored(Stream(seed, "moments", z.device), rows, n, z.shape[1]).to(z)
        found = self.reference.posterior(z.nan_to_num(), ~z.isnan(), xi)
        assert found.draws is not None
        mean, sd = (each[:, None].to(z) for each in (found.mean, found.sd))
        off = (found.draws.to(z) - mean) / sd.clamp(min=TINY)
        drawn = mean + sd * (self.shift + self.spread * stretched(off, self.tail))
        return torch.where(z.isnan()[:, None], drawn, z[:, None]).transpose(0, 1)
