"""The rows that a contest is held on: those of validation, and stretches of training rows where these are few.

Pieces of them are evenly spaced: as many as may be for what has no network, and of those the network fills what it has
the time for. Where there are fewer than ``ENOUGH`` windows one after the other, ``PARTS`` stretches of training rows
are added, with what is read around each: so has a gap in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..core.rows import evenly
from ..data.series import Series
from ..training.pool import parted

ENOUGH, PARTS = 20, 4
MOST = 600  # rows of validation, and as many of training
PART = MOST // PARTS
TIMES = 6  # that few rows are filled, at most

Rows = tuple[Series, int, bool, np.ndarray]  # rows, times, network, inside: see ``of_validation`` and ``around``


def of_validation(val: Series, length: int, most: int, by_network: int) -> Iterator[Rows]:
    """Rows of validation, how many times they are there, and whether the network fills them; where it may fill fewer
    than ``most`` there are others that it does not. (It may fill none where there is none.)"""
    parts = _cut(val, length)
    first = [parts[k] for k in evenly(len(parts), max(1, (by_network or most) // length))]
    yield _all_inside(_repeated(val, first, by_network or most), by_network > 0)
    others, left = [part for part in parts if part not in first], most - by_network
    if by_network and others and left >= length:
        yield _all_inside(_repeated(val, [others[k] for k in evenly(len(others), left // length)], 0), False)


def _all_inside(rows: tuple[Series, int], network: bool) -> Rows:
    return *rows, network, np.ones(len(rows[0]), dtype=bool)


def around(train: Series, part: list[slice], inside: np.ndarray, length: int) -> Rows:
    """A stretch of training rows with those around it, in pieces; ``inside`` (rows of training,) is the stretch."""
    there = ~np.isnan(train.values).all(axis=2, keepdims=True)
    mark = np.where(there, inside[:, None, None], np.nan)  # where there is a reading: rows without one are no piece
    rows, times = pieces(replace(train, values=np.append(train.values, mark, axis=2)).picked(part), length, PART)
    marked = np.asarray((rows.values[..., -1] > 0).any(axis=1))
    return replace(rows, values=rows.values[..., :-1]), times, False, marked


def pieces(series: Series, length: int, most: int) -> tuple[Series, int]:
    """Rows of a series that have a reading, in stretches of about ``length``, evenly chosen: about ``most`` rows. Where
    there are fewer, all of them several times; and how many times that is."""
    parts = _cut(series, length)
    return _repeated(series, [parts[k] for k in evenly(len(parts), max(1, most // length))], most)


def _cut(series: Series, length: int) -> list[slice]:
    """Stretches of about ``length`` that have a reading."""
    parts = list[slice]()
    for s in series.stretches:
        count = max(1, round((s.stop - s.start) / length))
        edges = np.linspace(s.start, s.stop, count + 1).astype(int)
        parts += [slice(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if b > a]
    return [part for part in parts if not np.isnan(series.values[part]).all()] or parts


def _repeated(series: Series, chosen: list[slice], most: int) -> tuple[Series, int]:
    """So many times that there are about ``most`` rows; and how many times that is."""
    times = int(np.clip(most // sum(part.stop - part.start for part in chosen), 1, TIMES))
    return series.picked(times * chosen), times


def few(series: Series, steps: int) -> bool:
    """Windows one after the other, or rows: of short windows there are many that say little of silent sensors."""
    return len(series.starts(steps, steps)) < ENOUGH or len(series) < MOST / 2


def stretches(train: Series, margin: int) -> Iterator[tuple[list[slice], list[slice], np.ndarray]]:
    """Stretches of training rows with a margin around each, as far as nothing breaks it; all others; and which rows
    are in the stretches (rows,)."""
    parts = parted(train.stretches, PARTS)
    for part in parts if len(parts) > 1 else []:
        inside = np.zeros(len(train), dtype=bool)
        for s in part:
            inside[s] = True
        wider = [
            slice(max(whole.start, s.start - margin), min(whole.stop, s.stop + margin))
            for s in part
            for whole in train.stretches
            if whole.start <= s.start < whole.stop
        ]
        yield wider, [s for other in parts if other is not part for s in other], inside
