"""Random numbers keyed by what they are for, never by generator state.

Number ``i`` of a stream is a hash of its place: SplitMix64's finaliser applied to ``key + (index 2^40 + i) gamma``,
with the key taken from the seed and the purpose, ``gamma`` the golden ratio in 64 bits. So update 1,234 of a run draws
its batch, its noise and its times from ``index=1234`` whatever happened before; a resumed run draws what an
uninterrupted one would have drawn; every method with the same seed sees the same randomness; and any device computes
the same integers, hence the same uniform numbers to the bit and the same normal ones (Box-Muller) to rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .errors import whole_number

SEED_MOST = 2**63 - 1
GAMMA = 0x9E3779B97F4A7C15 - 2**64  # as signed 64-bit numbers: torch's integers wrap around
MULTIPLY = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
STRIDE = 1 << 40  # numbers a stream may draw before it runs into the next index


Index = int | range | Sequence[int] | np.ndarray


class Stream:
    """The random numbers of one purpose under one seed; ``index`` may be several, drawn for at once."""

    def __init__(self, seed: int, purpose: str, device: torch.device | str = "cpu"):
        seed = whole_number("seed", seed, 0, SEED_MOST)
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        self.key = int.from_bytes(digest[:8], "little", signed=True)
        self.device = device

    def bits(self, index: Index, count: int, first: int = 0) -> Tensor:  # (count,) or (len(index), count), int64
        """Hashes: 64 random bits each. ``count`` numbers from number ``first`` on, here and below."""
        place = torch.arange(first, first + count, device=self.device)
        if isinstance(index, range):
            place = place + STRIDE * torch.arange(index.start, index.stop, index.step, device=self.device)[:, None]
        elif isinstance(index, int):
            place = place + STRIDE * index
        else:
            place = place + STRIDE * torch.as_tensor(index, device=self.device)[:, None]
        z = place * GAMMA + self.key
        z = (z ^ _shifted(z, 30)) * MULTIPLY[0]
        z = (z ^ _shifted(z, 27)) * MULTIPLY[1]
        return z ^ _shifted(z, 31)

    def integers(self, index: Index, count: int, below: int, first: int = 0) -> Tensor:
        """Uniform on 0 .. below - 1 (to within below / 2^63)."""
        return _shifted(self.bits(index, count, first), 1) % below

    def uniform(self, index: Index, count: int, first: int = 0) -> Tensor:
        """Uniform on [0, 1), float64, with 53 random bits."""
        return _shifted(self.bits(index, count, first), 11).double() * 2.0**-53

    def normal(self, index: Index, count: int, first: int = 0) -> Tensor:
        """Standard normal, float64: Box-Muller on the two halves of each hash."""
        odd = first % 2
        z = self.bits(index, (odd + count + 1) // 2, first // 2)
        radius = ((_shifted(z, 32).double() + 0.5) * 2.0**-32).log_().mul_(-2).sqrt_()
        angle = (z & 0xFFFFFFFF).double() * (2 * math.pi * 2.0**-32)
        pairs = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
        return pairs.flatten(-2)[..., odd : odd + count]


def _shifted(z: Tensor, by: int) -> Tensor:
    """A logical shift to the right: torch's would drag the sign along."""
    return (z >> by) & ((1 << (64 - by)) - 1)
