"""What is hidden of rows in time, to be filled or foretold: readings that are there, as gaps come about.

    points     a quarter of all readings, at random
    spells     columns that fall silent for half a window to two windows, about a tenth of all readings (one length a
               column, starts at random, as in the public benchmarks of METR-LA)
    sensors    a tenth of the nodes, one at the least, in all channels and all the time
    channels   of several channels one, at twice as many nodes, all the time; the others are read
    outages    rows in which everything is silent: a tenth of all rows, in stretches of a row to half a window
    future     everything after a row: ``ends`` says after which, evenly spaced over the rows

All of it is decided by a seed. What was never recorded is not hidden. Where a table has silent spells or outages of its
own, what is hidden of it may be as long as they are.

**Gaps of a table** are of the same families: up to ``SHORT`` rows in a row they are points (as long as a quarter of all
readings at random makes them); longer than ``LONG`` windows, or as long as a stretch, a silent sensor, or a silent
channel where another one was read at that node and moment; and spells between. But a row of which next to nothing was
read is part of an outage, however long: what says much of all other gaps, the same row elsewhere, says nothing there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ..core.errors import unknown
from ..core.rows import evenly
from ..core.streams import Stream
from ..data.series import Series

FAMILIES = ("points", "spells", "sensors")  # of all tables
OF_SEVERAL = (*FAMILIES, "channels")  # of those with several channels
OUTAGES = "outages"  # of windows, which know of the rows around
KINDS = (*OF_SEVERAL, OUTAGES)
SILENT = ("sensors", "channels")  # all the time
POINTS, SPELLS, SENSORS, DOWN = 0.25, 0.1, 0.1, 0.1  # shares that are hidden
MOST = 0.95  # of the columns are silent in an outage, at least
SHORT = 3  # rows of a gap that is still one of points: chance makes longer ones once in 256 times
LONG = 4  # windows of a gap whose ends say nothing of most of it
SPAN = 6  # rows: shorter windows tell gaps apart as if they were so long
FEW = 10  # gaps of a table that say nothing of how long others are


def hidden(
    family: str, series: Series, steps: int, seed: int = 0, lengths: np.ndarray | None = None
) -> np.ndarray:  # (rows, nodes, channels) of bool
    """True where a reading is hidden by one of ``KINDS``; ``steps`` is the length of a window, ``lengths`` those of
    spells or outages, where they are not its."""
    rows, nodes, channels = series.values.shape
    if family not in KINDS:
        raise unknown("family", family, KINDS)
    random, there = Stream(seed, f"hidden {family}"), ~np.isnan(series.values)
    if family == "points":
        return there & (_uniform(random, there.shape) < POINTS)
    if family in SILENT:
        u = np.where(there.any(axis=(0, 2)), random.uniform(0, nodes).numpy(), np.inf)  # some that have a reading
        share, silent = SENSORS if family == "sensors" else 2 * SENSORS, np.zeros((nodes, channels), dtype=bool)
        some = u.argsort(kind="stable")[: max(1, round(share * nodes))]
        if family == "sensors":
            silent[some] = True
        elif channels > 1:
            silent[some, random.integers(1, nodes, channels).numpy()[some]] = True
        return there & silent
    if family == OUTAGES:
        return there & _down(random, there.any(axis=(1, 2)), steps, lengths)[:, None, None]
    columns, least, more = nodes * channels, max(1, steps // 2), max(1, 3 * steps // 2)
    length = least + random.integers(1, columns, more).numpy()
    if lengths is not None:
        length = np.sort(lengths)[random.integers(1, columns, len(lengths)).numpy()]
    mean = least + (more - 1) / 2 if lengths is None else float(np.mean(lengths))
    u = _uniform(random, (rows, columns))
    first = u[there.reshape(rows, columns)].min(initial=0.0 if not there.any() else 1.0)  # one at the least
    begins = u <= max(SPELLS / mean, first)
    spell = np.zeros((rows, columns), dtype=bool)
    for row, column in zip(*begins.nonzero(), strict=True):
        spell[row : row + length[column], column] = True
    return there & spell.reshape(there.shape)


def _down(random: Stream, there: np.ndarray, steps: int, lengths: np.ndarray | None) -> np.ndarray:  # (rows,)
    """Outages of rows of which something is ``there`` (rows,); never all of them."""
    rows = len(there)
    lengths = np.arange(1, max(1, steps // 2) + 1) if lengths is None else np.sort(lengths)
    u, length = random.uniform(0, rows).numpy(), lengths[random.integers(1, rows, len(lengths)).numpy()]
    first = u[there].min(initial=1.0) if there.any() else 0.0  # one at the least
    down = np.zeros(rows, dtype=bool)
    for row in np.flatnonzero(u <= max(DOWN / lengths.mean(), first)):
        down[row : row + min(int(length[row]), rows // 2)] = True
    return down


def span(steps: int) -> int:
    """What counts as a window where gaps are told apart: of windows of two rows, a gap of five is no silent sensor."""
    return max(steps, SPAN)


def families(series: Series, steps: int) -> np.ndarray:  # (rows, nodes, channels) of int
    """The family of each gap, as its place in ``KINDS``; -1 where there is a reading."""
    gap, length = np.isnan(series.values), runs(series)
    whole = np.concatenate([np.full(s.stop - s.start, s.stop - s.start) for s in series.stretches])
    always = length == whole[:, None, None]
    beside = ~gap.all(axis=2, keepdims=True)
    family = np.where(always | (length > LONG * steps), np.where(beside, 3, 2), np.where(length > SHORT, 1, 0))
    family = np.where(outages(series)[:, None, None] & ~always, KINDS.index(OUTAGES), family)
    return np.where(gap, family, -1)


def outages(series: Series) -> np.ndarray:  # (rows,) of bool
    """Rows that lack nearly all of the columns that have a reading in their stretch, if those are several."""
    gap, down = np.isnan(series.values).reshape(len(series), -1), np.zeros(len(series), dtype=bool)
    for s in series.stretches:
        known = ~gap[s].all(axis=0)
        down[s] = (known.sum() > 1) & (gap[s][:, known].sum(axis=1) >= MOST * known.sum())
    return down


def runs(series: Series) -> np.ndarray:  # (rows, nodes, channels) of int
    """How many rows the gap has that an entry is part of, within its stretch; 0 where there is a reading."""
    gap = np.isnan(series.values)
    length = np.zeros(gap.shape, dtype=int)
    for s in series.stretches:
        part, row = gap[s], np.arange(s.stop - s.start)[:, None, None]
        last = np.maximum.accumulate(np.where(part, -1, row), axis=0)
        after = np.minimum.accumulate(np.where(part, len(row), row)[::-1], axis=0)[::-1]
        length[s] = np.where(part, after - last - 1, 0)
    return length


def lengths(series: Series, steps: int) -> dict[str, np.ndarray]:
    """How long a series' own silent spells and outages are, by family; without those that are few."""
    length, of_spells = runs(series), families(series, steps) == FAMILIES.index("spells")
    down = replace(series, values=np.where(outages(series), np.nan, 1.0)[:, None, None])
    found = {"spells": length[of_spells], OUTAGES: runs(down).ravel()}
    own = {name: _of_gaps(entries[entries > 0]) for name, entries in found.items()}
    return {name: each for name, each in own.items() if len(each) >= FEW}


def _of_gaps(entries: np.ndarray) -> np.ndarray:  # (entries,) -> (gaps,)
    """Lengths of gaps, from that of the gap which each entry is part of."""
    values, count = np.unique(entries, return_counts=True)
    return np.repeat(values, count // values)


def ends(series: Series, steps: int, horizon: int, most: int) -> np.ndarray:  # (forecasts,)
    """Rows before which a series might end, ``horizon`` more behind each, and before it what a window sees of the past;
    at most so many, evenly spaced."""
    seen = max(1, steps - horizon)
    rows = [np.arange(s.start + seen, s.stop - horizon + 1) for s in series.stretches]
    all_rows = np.concatenate(rows).astype(int)
    return all_rows[evenly(len(all_rows), most)]


def _uniform(random: Stream, shape: tuple[int, ...]) -> np.ndarray:
    return random.uniform(0, int(np.prod(shape))).view(torch.Size(shape)).numpy()
