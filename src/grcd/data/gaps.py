"""Missing readings: marked, counted, and filled by a policy that is named, or left as they are.

    forward-backward   the last reading at that node, and before the first one the first (the paper's, for METR-LA)
    linear             on a straight line in time between the readings around the gap, constant beyond the ends
    mean               the node's mean over its training readings
    none               left missing: the model trains on what is there (the default for files)

Filling must not carry anything from validation or test data into training data. So the training rows are filled first,
from training rows alone; then the validation rows, from training and validation rows; then the test rows, from all.
For splits in time order and "forward-backward" that is the same as filling the whole series at once. Signals from files
of their own are filled from themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError, counted, some, unknown
from ..core.rows import blocks

ZEROS, CLEAR = 0.01, 3.0  # a share of exact zeros, and standard deviations between them and all other readings
FEW = 1 << 20  # readings that are enough to look at
OFTEN, FAR = 1e-3, 2.0  # a share of readings, and a distance in ranges of the others, that give a marker away
ENOUGH = 8  # of any number of readings: one spell of one sensor
Rows = slice | np.ndarray


def mark(values: np.ndarray, markers: Sequence[float]) -> None:
    """Turn the markers into NaN, in place."""
    for part in _parts(values):
        for marker in markers:
            part[part == marker] = np.nan


def missing(values: np.ndarray) -> np.ndarray:  # (nodes,)
    """How many readings each node misses."""
    return sum((np.isnan(part).sum(axis=0) for part in _parts(values)), np.zeros(values.shape[1], dtype=np.int64))


@dataclass(frozen=True)
class Silent:
    """Zeros that cannot be values: how many nodes have them, their share of all readings, and what is usual there."""

    nodes: int
    share: float
    usual: float


def silent_zeros(values: np.ndarray) -> Silent | None:  # (rows, nodes)
    """Zeros between readings that are far from zero, as a sensor has that falls silent; None if there are none.

    A count that is often zero has small counts beside, and rain sets in with little: there zero is a value. Where a
    node is never near zero otherwise (its mean is ``CLEAR`` standard deviations away, without the zeros), and neither
    just before nor just after them, they are not.
    """
    nodes, zeros, readings, usual = 0, 0, 0, list[float]()
    for column in values.T:
        x = column[~np.isnan(column)].astype(np.float64)
        zero = x == 0
        readings, count = readings + len(x), int(zero.sum())
        if not ZEROS * len(x) < count < len(x) / 2 or (x < 0).any():
            continue
        rest = x[~zero]
        beside = ~zero & (np.r_[False, zero[:-1]] | np.r_[zero[1:], False])  # the readings on both sides of each run
        if rest.mean() > CLEAR * rest.std() > 0 and np.median(x[beside]) > np.median(rest) / 2:
            nodes, zeros = nodes + 1, zeros + count
            usual.append(float(np.median(rest)))
    return Silent(nodes, zeros / readings, float(np.median(usual))) if nodes else None


def far_constant(values: np.ndarray) -> float | None:
    """The smallest or largest reading, if it occurs again and again and lies far outside all others: -9999, 999."""
    sample = values[:: max(1, values.size // FEW)] if values.size > FEW else values
    sample = sample[np.isfinite(sample)]
    for end in (sample.min(), sample.max()) if sample.size else ():
        rest = sample[sample != end]
        often = sample.size - rest.size >= max(2, min(OFTEN * sample.size, ENOUGH))
        if often and rest.size and np.abs(rest - end).min() > FAR * np.ptp(rest) > 0:  # of two values none is a marker
            return float(end)
    return None


def any_reading(values: np.ndarray) -> np.ndarray:  # (rows,)
    """Rows with one reading or more."""
    return np.concatenate([~np.isnan(part).all(axis=1) for part in _parts(values)])


def fill(
    values: np.ndarray,
    policy: str,
    splits: Sequence[Rows],  # training rows first
    node_ids: Sequence[str],
    times: np.ndarray | None = None,  # (rows,), for straight lines
    apart: Sequence[Rows] = (),  # splits from files of their own, each filled from itself alone
) -> np.ndarray | None:
    """Fill in place, split after split. Returns the mask of what was filled, None if there was nothing to fill."""
    if policy not in POLICIES:
        raise unknown("fill policy", policy, POLICIES)
    if not missing(values).any():
        return None
    absent = np.isnan(values)
    _refuse_unseen(absent, splits[0], node_ids)
    if policy == "none":
        return None
    if policy == "mean":
        means = _means(values, splits[0])
        for part, holes in zip(_parts(values), _parts(absent), strict=True):
            part[holes] = np.broadcast_to(means, part.shape)[holes]
        return absent
    place = np.arange(len(values), dtype=float) if times is None else (times - times[0]).astype(float)
    for rows in (*_growing(splits), *apart):
        part = values[rows]  # a view for splits in time order
        for column in part.T:
            FILLERS[policy](column, place[rows])
        if not isinstance(rows, slice):
            values[rows] = part
    return absent & ~np.isnan(values)


def _forward_backward(column: np.ndarray, place: np.ndarray) -> None:
    seen = ~np.isnan(column)
    last = np.maximum.accumulate(np.where(seen, np.arange(len(column)), -1))
    column[:] = column[np.where(last < 0, seen.argmax(), last)]


def _linear(column: np.ndarray, place: np.ndarray) -> None:
    holes = np.isnan(column)
    if holes.any() and not holes.all():
        column[holes] = np.interp(place[holes], place[~holes], column[~holes])


FILLERS: dict[str, Callable[[np.ndarray, np.ndarray], None]] = {
    "forward-backward": _forward_backward,
    "linear": _linear,
}
POLICIES = (*FILLERS, "mean", "none")


def _growing(splits: Sequence[Rows]) -> list[Rows]:
    """Training rows; training and validation rows; all rows: each in the order of the table."""
    stops = [0, *(rows.stop for rows in splits if isinstance(rows, slice))]
    if stops[:-1] == [rows.start for rows in splits if isinstance(rows, slice)] and len(stops) == len(splits) + 1:
        return [slice(0, stop) for stop in stops[1:]]
    parts = [np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows for rows in splits]
    return [np.sort(np.concatenate(parts[: k + 1])) for k in range(len(parts))]


def _means(values: np.ndarray, train: Rows) -> np.ndarray:
    part = values[train]
    return np.array([np.nanmean(column, dtype=np.float64) for column in part.T])


def _refuse_unseen(mask: np.ndarray, train: Rows, node_ids: Sequence[str]) -> None:
    never = [node_ids[int(place)] for place in np.flatnonzero(mask[train].all(axis=0))]
    if never:
        raise InputError(
            f"{counted(len(never), 'node')} without a reading among the training rows: {some(never)}",
            "some training readings at every node",
            "leave those nodes out (--drop NAME), or split the rows otherwise (--split-by)",
        )


def _parts(values: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of rows, as views: no temporary is as large as the table."""
    return (values[rows] for rows in blocks(*values.shape))
