"""Rows of a table: some of them evenly spaced, or all of them block by block.

Tables may be as large as memory, so whatever looks at all rows does so in blocks, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:  # not needed to look at rows
    from torch import Tensor

BLOCK = 1 << 22  # entries looked at together: 32 MB in float64


class Rows(Protocol):
    """Signals (rows, d) that are tensors once they are looked at; a tensor is one of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> Tensor: ...


def evenly(rows: int, cap: int) -> np.ndarray:  # (at most cap,) integers
    """All rows, or ``cap`` of them evenly spaced."""
    return np.linspace(0, rows - 1, min(rows, cap)).astype(int)


def split(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Row numbers, at most ``size`` of them at a time, and at least one."""
    return (rows[start : start + max(1, size)] for start in range(0, len(rows), max(1, size)))


def blocks(rows: int, nodes: int) -> Iterator[slice]:
    """Slices that cover all rows, of about ``BLOCK`` entries each."""
    step = max(1, BLOCK // nodes)
    return (slice(start, start + step) for start in range(0, rows, step))


def parts(signals: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # each (rows, nodes)
    """Signals block by block: in float64 with zeros where they are missing, and where they are observed."""
    for rows in blocks(*signals.shape):
        x = np.asarray(signals[rows], dtype=np.float64)
        seen = ~np.isnan(x)
        yield (x if seen.all() else np.where(seen, x, 0.0)), seen


def observed_mean(signals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (nodes,) each
    """How often each node was observed, and the mean of what was; 0 where nothing was."""
    count, total = np.zeros(signals.shape[1], dtype=np.int64), np.zeros(signals.shape[1])
    for x, seen in parts(signals):
        count += seen.sum(axis=0)
        total += x.sum(axis=0)
    return count, total / np.maximum(count, 1)
