"""Readings so far from all others of their node that they are probably mistakes, and would drown the rest.

One reading of 1e9 among 2 to 17 makes the standard deviation of its node, and every z-score of it is nothing after
that. Distances are counted in robust standard deviations from the median,

    z = |x - median| / s,       s = 1.4826 median |x - median|

which a few wild readings cannot move. Where more than half of the readings are the same (counts that are mostly
zero, a switch that is mostly off) ``s`` would vanish: there it is the median distance of those that differ, and where
hardly any do, what is usual at the other nodes.

Being far is not enough, for honest readings have heavy tails: rain, prices, counts. What is wrong stands alone. So up
to ``MOST`` readings of a node, one in twenty at most, are named if they are more than ``FAR`` away and ``APART`` times
as far as the next one: a tail has no such gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.rows import BLOCK, blocks, evenly
from . import times as clock
from .notes import Note
from .notes import warn as warn_of

FAR, APART = 30.0, 20.0  # robust standard deviations; times the distance of the next reading
MOST, SHARE = 8, 20  # of a node, and one in so many: more of them are no accident
DIFFERENT = 5  # readings from which a distance can be told
NAMED = 3  # that a note names
FEW = 10  # signals of which nothing is said


@dataclass(frozen=True)
class Outlier:
    """One reading: where it is, what it says, and how far that is from the median of its node."""

    node: int
    row: int
    value: float
    z: float


def find(signals: np.ndarray) -> list[Outlier]:  # (samples, nodes), NaN where missing
    """The farthest first."""
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of nodes without any reading
        centre, scale = _usual(signals)
        farthest = np.zeros_like(centre)
        for rows in blocks(*signals.shape):
            farthest = np.fmax(farthest, np.nanmax(np.abs(signals[rows] - centre) / scale, axis=0))
        wild = np.flatnonzero(farthest > FAR)
        outliers = [each for node in wild for each in _apart(signals[:, node], int(node), centre[node], scale[node])]
    return sorted(outliers, key=lambda each: -each.z)


def _usual(signals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (nodes,) each
    """Median and robust standard deviation of each node, from as many rows as are looked at together."""
    x = np.asarray(signals[evenly(len(signals), max(1, BLOCK // signals.shape[1]))], dtype=np.float64)
    centre = np.nanmedian(x, axis=0)
    off = np.abs(x - centre)
    scale = 1.4826 * np.nanmedian(off, axis=0)
    for node in np.flatnonzero(scale <= 1e-12 * np.abs(centre)):  # all but the rounding is zero
        different = off[:, node][off[:, node] > 1e-12 * np.abs(centre[node])]
        scale[node] = np.median(different) if len(different) >= DIFFERENT else np.nan
    return centre, np.where(np.isnan(scale), np.nanmedian(scale), scale)


def _apart(column: np.ndarray, node: int, centre: float, scale: float) -> Iterator[Outlier]:
    """The readings of one node that stand alone."""
    z = np.abs(np.asarray(column, dtype=np.float64) - centre) / scale
    seen = np.flatnonzero(~np.isnan(z))
    order = seen[np.argsort(-z[seen], kind="stable")][: MOST + 1]
    most = min(len(order) - 1, max(1, len(seen) // SHARE))
    alone = [k for k in range(most) if z[order[k]] > max(FAR, APART * z[order[k + 1]])]
    for row in order[: max(alone, default=-1) + 1]:
        yield Outlier(node, int(row), float(column[row]), float(z[row]))


def notes(
    signals: np.ndarray,  # (samples, nodes)
    node_ids: Sequence[str],
    times: np.ndarray | None = None,  # (samples,)
    what: str = "signal",
) -> list[Note]:
    """The outliers there are and what to do about them, in one note, if there are any."""
    outliers = find(signals)
    if not outliers:
        return []
    worst, one = outliers[:NAMED], len(outliers) == 1
    rows = [each.row for each in worst]
    when = [f"{what} {row + 1}" for row in rows] if times is None else [f"time {t}" for t in clock.as_text(times[rows])]
    named = [
        f"{each.value:g} at node {node_ids[each.node]}, {moment}, robust z-score {each.z:.3g}"
        for each, moment in zip(worst, when, strict=True)
    ]
    rest = f"; and {len(outliers) - NAMED} more" if len(outliers) > NAMED else ""
    markers = " ".join(f"--missing {value!r}" for value in dict.fromkeys(each.value for each in outliers))
    by = f"an empty cell, NaN, or {markers}" if len(outliers) <= NAMED else "empty cells, NaN, or --missing VALUE"
    return [
        Note(
            f"{len(outliers)} reading{' is' if one else 's are'} far from all others of {'its' if one else 'their'} "
            f"node ({'; '.join(named)}{rest})",
            f"if {'it is wrong, make it a gap' if one else 'they are wrong, make them gaps'} ({by}); if not, train "
            "with --set marginals=quantile, or the rest of the node counts for nothing",
        )
    ]


def warn(node_ids: Sequence[str], **signals: np.ndarray) -> None:
    """The same as warnings, of signals by what they are for; of a few nobody can tell what is usual."""
    for purpose, x in signals.items():
        if len(x) < FEW:
            continue
        warn_of(notes(x, node_ids, what=f"{purpose} signal"), stacklevel=3)
