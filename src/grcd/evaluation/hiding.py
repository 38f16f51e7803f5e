"""What is hidden of rows in time, to be filled or foretold: readings that are there, as gaps come about.

    points     a quarter of all readings, at random
    spells     columns that fall silent for half a window to two windows, about a tenth of all readings (one length a
               column, starts at random, as in the public benchmarks of METR-LA)
    sensors    a tenth of the nodes, one at the least, in all channels and all the time
    future     everything after a row: ``ends`` says after which, evenly spaced over the rows

All of it is decided by a seed. What was never recorded is not hidden.
"""

from __future__ import annotations

import numpy as np
import torch

from ..core.errors import unknown
from ..core.rows import evenly
from ..core.streams import Stream
from ..data.series import Series

FAMILIES = ("points", "spells", "sensors")
POINTS, SPELLS, SENSORS = 0.25, 0.1, 0.1  # shares that are hidden


def hidden(family: str, series: Series, steps: int, seed: int = 0) -> np.ndarray:  # (rows, nodes, channels) of bool
    """True where a reading is hidden by one of ``FAMILIES``; ``steps`` is the length of a window."""
    rows, nodes, channels = series.values.shape
    if family not in FAMILIES:
        raise unknown("family", family, FAMILIES)
    random, there = Stream(seed, f"hidden {family}"), ~np.isnan(series.values)
    if family == "points":
        return there & (_uniform(random, there.shape) < POINTS)
    if family == "sensors":
        u = np.where(there.any(axis=(0, 2)), random.uniform(0, nodes).numpy(), np.inf)  # some that have a reading
        silent = np.zeros(nodes, dtype=bool)
        silent[u.argsort(kind="stable")[: max(1, round(SENSORS * nodes))]] = True
        return there & silent[:, None]
    columns, least, more = nodes * channels, max(1, steps // 2), max(1, 3 * steps // 2)
    length = least + random.integers(1, columns, more).numpy()
    u = _uniform(random, (rows, columns))
    first = u[there.reshape(rows, columns)].min(initial=0.0 if not there.any() else 1.0)  # one at the least
    begins = u <= max(SPELLS / (least + (more - 1) / 2), first)
    spell = np.zeros((rows, columns), dtype=bool)
    for row, column in zip(*begins.nonzero(), strict=True):
        spell[row : row + length[column], column] = True
    return there & spell.reshape(there.shape)


def ends(series: Series, steps: int, horizon: int, most: int) -> np.ndarray:  # (forecasts,)
    """Rows before which a series might end, ``horizon`` more behind each, and before it what a window sees of the past;
    at most so many, evenly spaced."""
    seen = max(1, steps - horizon)
    rows = [np.arange(s.start + seen, s.stop - horizon + 1) for s in series.stretches]
    all_rows = np.concatenate(rows).astype(int)
    return all_rows[evenly(len(all_rows), most)]


def _uniform(random: Stream, shape: tuple[int, ...]) -> np.ndarray:
    return random.uniform(0, int(np.prod(shape))).view(torch.Size(shape)).numpy()
