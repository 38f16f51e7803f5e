"""No network: the reference alone, where nothing is to be learned beside it, or nothing can be in the time there is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..graphs.graph import Spectrum
from . import gnn


@dataclass(frozen=True)
class Setting(gnn.Setting):
    """DenoiserGNN's, by the same names, so that other settings may stand; none has an effect."""

    def size(self, nodes: int) -> int:
        return 0

    def kept(self, nodes: int) -> int:
        return 0


class Nothing(nn.Module):
    """``f_theta = 0``."""

    starts_at_zero = True
    is_zero = True

    def __init__(self, spectrum: Spectrum | None = None, setting: Setting | None = None):
        super().__init__()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # (batch, nodes) twice
        return torch.zeros_like(x, dtype=torch.float32)
