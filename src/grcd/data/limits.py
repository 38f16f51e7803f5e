"""What generated readings keep to: the ends of their range, and whole numbers where the readings are such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError
from ..core.rows import blocks


@dataclass(frozen=True)
class Limits:
    """Of each channel of rows (..., nodes x channels)."""

    bounds: tuple[tuple[float, float], ...]  # infinite where there is none
    whole: tuple[bool, ...]

    @classmethod
    def of(cls, bounds: Sequence[tuple[float, float]], whole: Sequence[bool], channels: int) -> Limits:
        """Of one for all channels, or of one for each."""
        return cls(
            tuple(bounds[k % len(bounds)] for k in range(channels)),
            tuple(whole[k % len(whole)] for k in range(channels)),
        )

    def kept(self, x: np.ndarray) -> np.ndarray:  # (..., columns) twice
        """In place: beyond an end at it, as a sensor that saturates; then at the nearest whole number."""
        for k, (ends, whole) in enumerate(zip(self.bounds, self.whole, strict=True)):
            own = x[..., k :: len(self.bounds)]
            if np.isfinite(ends).any():
                np.clip(own, *ends, out=own)
            if whole:
                np.rint(own, out=own)
        return x

    def refuse_outside(self, x: np.ndarray) -> None:  # (rows, columns)
        """Training readings beyond an end."""
        for k, (low, high) in enumerate(self.bounds):
            own = x[:, k :: len(self.bounds)]
            outside = sum(int(((own[rows] < low) | (own[rows] > high)).sum()) for rows in blocks(*own.shape))
            if outside:
                raise InputError(
                    f"{outside} training readings outside {low:g} to {high:g}",
                    "all of them in the support",
                    "widen --support, or mark what cannot be as missing (--missing)",
                )


def in_words(ends: tuple[float, float], whole: bool) -> str:
    """As "whole numbers, from 0 up"; empty for any numbers."""
    low, high = (f"{end:g}" if np.isfinite(end) else "" for end in ends)
    within = {(True, True): f"from {low} to {high}", (True, False): f"from {low} up", (False, True): f"up to {high}"}
    return ", ".join(filter(None, ["whole numbers" * whole, within.get((bool(low), bool(high)), "")]))
