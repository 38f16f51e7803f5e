"""A mixture of sparse Gaussians: several regimes on a large graph. As ``mixture``, with parts that have no modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ..core.streams import Stream
from ..graphs.kronecker import Basis
from .mixture import Mixture
from .observations import Observations
from .regimes import chosen_by
from .sparse import Sparse


class SparseMixture(Mixture):
    """``sum_k weight_k N(mean_k, Q_k^-1 + V_k V_k^T)``; all parts have the same regressions, and as many modes."""

    parts: tuple[Sparse, ...]  # type: ignore[assignment]

    def _stacked(self) -> Iterator[tuple[Tensor, Any]]:
        """Each by itself."""
        for k, part in enumerate(self.parts):
            yield self.means[k, None, None], part

    def scalar(self) -> Self:
        within = sum(float(w) * part.mean_variance for w, part in zip(self.weights, self.parts, strict=True))
        between = float(self.weights @ (self.means - self.mean).square().mean(1))
        part: Any = Sparse.alike(self.d, within + between, self.parts[0].device)
        return type(self)(torch.ones_like(self.weights[:1]), self.mean[None], (part,))

    def drawn(self, z: Tensor, observed: Tensor, xi: Tensor) -> Tensor:  # (signals, draws, d)
        chosen = torch.zeros(xi.shape[:2], dtype=torch.long, device=xi.device)
        if len(self.parts) > 1:
            share = self.condition(Observations(torch.where(observed, z.double(), torch.nan))).weights
            chosen, first = chosen_by(share[:, None], xi[..., 0])
            xi = torch.cat([first[..., None].to(xi), xi[..., 1:]], dim=-1)
        draws = torch.empty_like(xi)
        for k, (mean, part) in enumerate(zip(self.means, self.parts, strict=True)):
            rows = (chosen == k).any(1).nonzero()[:, 0]
            if len(rows):
                own = part.drawn(z[rows] - mean, observed[rows], xi[rows]) + mean
                own = torch.where(observed[rows, None], z[rows, None].to(own), own)
                draws[rows] = torch.where((chosen[rows] == k)[..., None], own, draws[rows])
        return draws

    def completed(self, x: Tensor, noise: Tensor) -> Tensor:  # (batch, d) each
        """Missing entries (NaN) drawn given the observed ones of their row, from standard normal ``noise``."""
        x = x.double()
        return self.drawn(x, ~x.isnan(), noise[:, None])[:, 0] if x.isnan().any() else x

    def whole(self, x: Tensor, random: Stream) -> Tensor:  # (batch, d) twice
        """Signals as they are if they have no gaps, and completed if they have."""
        return self.completed(x, random.normal(0, x.numel()).view_as(x)) if x.isnan().any() else x

    def tensors(self) -> dict[str, Tensor]:
        parts = [part.tensors() for part in self.parts]
        stacks = {key: torch.stack([part[key] for part in parts]) for key in parts[0]}
        return {"weights": self.weights, "means": self.means} | stacks

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], basis: Basis | None = None) -> Self:
        weights, means = tensors["weights"], tensors["means"]
        keys = [key for key in tensors if key not in ("weights", "means")]
        if any(len(tensors[key]) != len(weights) for key in (*keys, "means")):
            raise ValueError("weights, means and covariances of the mixture have different sizes")
        rows = ({key: tensors[key][k] for key in keys} for k in range(len(weights)))
        parts: Any = tuple(Sparse.from_tensors(row) for row in rows)
        mixture = cls(weights, means, parts)
        if means.shape[1] != mixture.parts[0].d:
            raise ValueError("means and covariances of the mixture have different sizes")
        return mixture


def from_tensors(tensors: Mapping[str, Tensor], basis: Basis | None = None) -> Sparse | SparseMixture:
    """One or several, back from what was saved."""
    return SparseMixture.from_tensors(tensors) if "weights" in tensors else Sparse.from_tensors(tensors)


def mixed(weights: np.ndarray, means: np.ndarray, parts: list[Sparse]) -> SparseMixture:
    """Of weights (K,), means (K, d) and parts about zero."""
    w, m = (torch.from_numpy(np.asarray(each, dtype=np.float64)) for each in (weights, means))
    return SparseMixture(w / w.sum(), m, tuple(parts))  # type: ignore[arg-type]
