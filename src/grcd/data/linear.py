"""Linear readings of signals, ``y = H x + noise``: sums, averages, any rows; checked, and as readings of z-scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..core.errors import InputError
from .normalizer import Normalizer


@dataclass(frozen=True)
class Linear:
    """What was read of signals on ``nodes``, and through which rows."""

    y: np.ndarray  # (signals, m), NaN where nothing was read
    H: np.ndarray  # (m, nodes)
    noise: np.ndarray  # (m,) standard deviations

    @classmethod
    def checked(cls, readings: ArrayLike, rows: Any, noise: ArrayLike, nodes: int) -> Linear:
        """From what a user gave: ``rows`` dense or sparse, ``noise`` one for all or one a row."""
        H = np.atleast_2d(np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64))
        y = np.asarray(readings, dtype=np.float64)
        zero = H.ndim == 2 and not np.abs(H).sum(axis=1).all()
        if H.ndim != 2 or H.shape[1] != nodes or not len(H) or not np.isfinite(H).all() or zero:
            expected = f"finite rows over {nodes} nodes, one or more, none of them zero"
            raise InputError(f"H of shape {H.shape}", expected, "one row a reading")
        if y.ndim != 2 or y.shape[1] != len(H) or np.isinf(y).any():
            expected = f"(signals, {len(H)}), as many columns as H has rows"
            raise InputError(f"y of shape {y.shape}", expected, "one row a signal")
        one_or_each = np.size(noise) in (1, len(H))
        r = np.broadcast_to(np.asarray(noise, dtype=np.float64), len(H)).copy() if one_or_each else np.array([-1.0])
        if not np.isfinite(r).all() or (r < 0).any():
            expected = f"standard deviations from 0 up: one, or {len(H)}"
            raise InputError(f"noise {noise!r}", expected, "0 for exact readings")
        return cls(y, H, r)

    def z_scored(self, moments: Normalizer) -> Linear:
        """The same of z-scores, of which signals are ``mean + std z``."""
        return Linear(self.y - self.H @ moments.mean, self.H * moments.std, self.noise)

    def to(self, device: torch.device) -> LinearTensors:
        y, H, variance = (torch.from_numpy(part).to(device) for part in (self.y, self.H, self.noise**2))
        return LinearTensors(y, H, variance)


@dataclass(frozen=True)
class LinearTensors:
    """The same on a device."""

    y: Tensor
    H: Tensor
    variance: Tensor  # (m,)
