"""Tables of any length, window by window: gaps filled, the rows to come, variations, and windows out of nothing.

A model of windows draws what is hidden of ``steps`` rows given what is observed of them. A longer table is drawn by
several that overlap, and a **member** of the ensemble is one coherent history of it:

    window       |  context  |         stride         |  guard  |
    the next                              |  context  |         stride         |  guard  |

What a member drew is observed by its next window, ``context`` rows of it at the least; but for a **guard** of last
rows, which lacked what follows and are drawn again. The last window ends with the stretch, and no window crosses its
ends; in a stretch shorter than a window the rest are rows of which nothing is known.

Rows that are kept see at least a guard of what follows them. So where the process is Markov and a row of the guard is
complete, members are draws from the posterior of the whole stretch, exactly; otherwise what is lost falls with the
guard as correlations do.

**A forecast** is the same with a future of which nothing is observed: nothing follows that a guard could wait for, so
each window draws what it adds given its past, and that is a draw from the joint law of all rows to come. Without any
past it is a series out of nothing, of any length.

Random numbers are those of the seed, of the window (by its first row) and of the member, so that neither the number of
members nor how many rows are taken at a time changes a draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..core import device as devices
from ..core import memory
from ..core.errors import InputError, whole_number
from ..core.progress import Advance, bar
from ..core.rows import Rows
from ..core.streams import Stream
from ..graphs.space import SignalSpace
from ..references.observations import Noise

SHARE = 4  # a window's rows over those of its guard, and of its context
COPIES = 8  # of the draws of one window, at the most, while they are made


class WindowLaw(Protocol):
    """What is hidden of windows of a space, drawn given what is observed."""

    @property
    def space(self) -> SignalSpace: ...

    def draw(self, z: Tensor, observed: Tensor, calendar: Tensor, n: int, nfe: int, noise: Noise) -> Tensor:
        """(windows, n, d): ``z`` (windows, d) where ``observed`` (windows, d), draws elsewhere; ``calendar`` (windows,
        steps, features)."""
        ...

    def vary(
        self, z: Tensor, observed: Tensor, calendar: Tensor, x: Tensor, strength: float, n: int, nfe: int, noise: Noise
    ) -> Tensor:
        """(windows, n, d): the same, but that the readings ``x`` (windows, d) are varied in place of drawn."""
        ...


def fill(
    model: WindowLaw,
    z: Rows,
    calendar: Rows,
    stretches: Sequence[slice],
    n: int,
    nfe: int,
    seed: int,
    guard: int | None = None,
    context: int | None = None,
    chunk: int | None = None,
) -> Iterator[tuple[np.ndarray, Tensor]]:  # each (rows,), (n, rows, columns)
    """``n`` draws of a table given what was observed of it, some rows at a time, in the order of the stretches.

    ``z``: (rows, columns) z-scores, NaN where missing; a tensor, or anything whose slices are.
    ``calendar``: (rows, features) of each row.
    ``stretches``: rows without a break; rows of none of them are left out.
    ``guard``: last rows of a window that are drawn again by the next; a quarter of it by default.
    ``context``: rows of the last window that the next observes, at the least; a quarter of it by default.
    ``chunk``: rows taken at a time; by default as they come.
    """
    steps = model.space.steps
    guard = default_guard(steps) if guard is None else whole_number("guard", guard, 0)
    context = default_context(steps) if context is None else whole_number("context", context, 0)
    if guard + context >= steps:
        got, expected = f"a guard of {guard} and a context of {context} rows", f"fewer than the {steps} of a window"
        raise InputError(got, expected, "take fewer of both, or a longer window")
    _refuse_short(calendar, len(z))
    chunk = None if chunk is None else whole_number("chunk", chunk)
    members = _Members(model, z, calendar, n, nfe, lambda start: _keyed(seed, "fill", start, z[:0].device))
    drawn = (part for rows in stretches for part in members.history(rows, guard, context))
    return _chunks(drawn, sum(len(range(len(z))[rows]) for rows in stretches), chunk, "filling")


def forecast(
    model: WindowLaw,
    z: Rows,
    calendar: Rows,
    horizon: int,
    n: int,
    nfe: int,
    seed: int,
    number: int = 0,
    advance: Advance = lambda done, note: None,
) -> Tensor:  # (n, horizon, columns)
    """``n`` draws of the ``horizon`` rows after the last.

    ``z``: (rows, columns) z-scores up to the last row, without a break, NaN where missing; there may be none.
    ``calendar``: (rows + horizon, features).
    ``number``: tells forecasts of one seed apart.
    ``advance``: hears how many rows are drawn.
    """
    steps, rows = model.space.steps, len(z)
    ahead = min(whole_number("horizon", horizon), max(steps // 2, 1))
    seen = min(rows, steps - ahead)
    _refuse_short(calendar, rows + horizon)
    past, days = z[rows - seen : rows], calendar[rows - seen : rows + horizon]
    table = torch.cat([past, past.new_full((horizon, past.shape[1]), math.nan)])

    def random(start: int) -> Noise:
        return _keyed(seed, f"forecast window {start}", number, table.device)

    members = _Members(model, table, days, n, nfe, random)
    parts = []
    for done, drawn in members.history(slice(0, len(table)), guard=0, context=steps - ahead):
        parts.append(drawn)
        advance(max(0, int(done[-1]) + 1 - seen), "")
    return torch.cat(parts, dim=1)[:, seen:]


def forecasts(
    model: WindowLaw, z: Rows, calendar: Rows, pasts: Sequence[slice], horizon: int, n: int, nfe: int, seed: int
) -> Iterator[Tensor]:  # each (n, horizon, columns)
    """Forecasts as they would have been made after each of these ``pasts``, stretches of rows of one table: what of
    ``z`` comes later is not seen. Each has the number of the row it begins with."""
    for past in pasts:
        first, stop, _ = past.indices(len(z))
        first = max(first, stop - model.space.steps)  # no window looks further back
        yield forecast(model, z[first:stop], calendar[first : stop + horizon], horizon, n, nfe, seed, number=stop)


def sample(model: WindowLaw, calendar: Tensor, nfe: int, seed: int, first: int = 0) -> Tensor:
    """Windows out of nothing, (windows, steps, columns): one for each ``calendar`` (windows, steps, features), by
    number from ``first`` on."""
    space, windows = model.space, len(calendar)
    unknown = calendar.new_full((windows, space.d), math.nan)
    noise = _keyed(seed, "sample window", range(first, first + windows), calendar.device)
    with devices.arithmetic("high"), torch.inference_mode():
        drawn = model.draw(unknown, torch.zeros_like(unknown, dtype=torch.bool), calendar, 1, nfe, noise)
    return drawn.view(windows, space.steps, -1)


def apart(
    model: WindowLaw, z: Tensor, calendar: Tensor, n: int, nfe: int, seed: int, first: int = 0
) -> Tensor:  # (windows, n, steps, columns)
    """Windows each by itself: draws of what is NaN in ``z`` (windows, steps, columns), given the rest of its window; by
    number from ``first`` on. ``calendar``: (windows, steps, features)."""
    space, window = model.space, z.flatten(1)
    noise = _keyed(seed, "window apart", range(first, first + len(z)), z.device)
    with devices.arithmetic("high"), torch.inference_mode():
        drawn = model.draw(window, ~window.isnan(), calendar, n, nfe, noise)
    return drawn.view(len(z), n, space.steps, -1)


def vary(
    model: WindowLaw,
    z: Rows,
    calendar: Rows,
    stretches: Sequence[slice],
    strength: Any,
    n: int,
    nfe: int,
    seed: int,
) -> Iterator[tuple[np.ndarray, Tensor]]:  # each (rows,), (n, rows, columns)
    """``n`` variations of a complete table, some rows at a time: at ``strength`` 0 itself, at 1 any history.

    Each window starts from its own readings, noised, and observes what its member became before it.
    """
    if not isinstance(strength, Real) or not 0 <= float(strength) <= 1:
        raise InputError(f"strength = {strength!r}", "a number from 0 (the rows) to 1 (any rows)", "try 0.2")
    steps = model.space.steps
    members = _Variations(model, z, calendar, n, nfe, lambda start: _keyed(seed, "vary", start, z[:0].device))
    members.strength = float(strength)
    guard, context = default_guard(steps), default_context(steps)
    drawn = (part for rows in stretches for part in members.history(rows, guard, context))
    return _chunks(drawn, sum(len(range(len(z))[rows]) for rows in stretches), None, "varying")


def default_guard(steps: int) -> int:
    """A quarter of a window, and a row if there is one to spare."""
    return max(steps // SHARE, min(steps - 2, 1), 0)


def default_context(steps: int) -> int:
    """A quarter of a window, and a row if there are two."""
    return max(steps // SHARE, min(steps - 1, 1))


class _Members:
    """Histories of one table, each of which goes on from what it drew."""

    def __init__(
        self, model: WindowLaw, z: Rows, calendar: Rows, n: int, nfe: int, random: Callable[[int], Noise]
    ) -> None:
        self.model, self.z, self.calendar, self.nfe, self.random = model, z, calendar, nfe, random
        self.n, self.steps = whole_number("n", n), model.space.steps
        what = f"n = {n:,} draws of a window of {model.space.d:,} readings"
        do = "take fewer: a hundred are enough for a median, a thousand for most quantiles"
        memory.refuse_over(COPIES * 8 * n * model.space.d, what, do)

    def history(self, rows: slice, guard: int, context: int) -> Iterator[tuple[np.ndarray, Tensor]]:
        """The rows of a stretch in order, as soon as they are not drawn again: (rows,), (n, rows, columns)."""
        first, stop, _ = rows.indices(len(self.z))
        done, before = first, self.z[first:first].expand(self.n, -1, -1)
        for start, end in _schedule(first, stop, self.steps, guard, context):
            with devices.arithmetic("high"), torch.inference_mode():
                new = self._drawn(before[:, before.shape[1] - (done - start) :], start, done, end, stop)
                before = torch.cat([before, new], dim=1)[:, -self.steps :]
            yield np.arange(done, end), new
            done = end

    def _drawn(self, past: Tensor, start: int, done: int, end: int, stop: int) -> Tensor:  # (n, end - done, columns)
        """Rows ``done`` to ``end`` by the window from ``start`` on; ``past`` (n, done - start, columns) is what it
        observes of each member, and rows from ``stop`` on are unknown."""
        known = self.z[done:end]
        if not known.isnan().any():
            return known.expand(self.n, -1, -1)
        if not self.z[start:done].isnan().any():
            past = past[:1]  # nothing of it was drawn: to all members the window looks the same
        ahead = _lengthened(self.z[done : min(start + self.steps, stop)], self.steps - (done - start), math.nan)
        window = torch.cat([past, ahead.expand(len(past), -1, -1)], dim=1)
        days = self.calendar[start : min(start + self.steps, stop)]
        days = _lengthened(days, self.steps).expand(len(past), -1, -1)
        z, each = window.flatten(1), self.n // len(past)
        drawn = self.model.draw(z, ~z.isnan(), days, each, self.nfe, self.random(start))
        drawn = drawn.reshape(self.n, self.steps, -1)[:, done - start : end - start]
        return torch.where(known.isnan(), drawn.to(known), known)


class _Variations(_Members):
    """Histories that begin as the table and go their own way."""

    strength: float

    def _drawn(self, past: Tensor, start: int, done: int, end: int, stop: int) -> Tensor:
        last = min(start + self.steps, stop)
        ahead = _lengthened(self.z[done:last], self.steps - (done - start)).expand(self.n, -1, -1)
        window = torch.cat([past, ahead], dim=1)
        observed = torch.zeros_like(window, dtype=torch.bool)
        observed[:, : done - start] = True
        days = _lengthened(self.calendar[start:last], self.steps).expand(self.n, -1, -1)
        z, seen = window.flatten(1), observed.flatten(1)
        varied = self.model.vary(z, seen, days, z, self.strength, 1, self.nfe, self.random(start))
        return varied.reshape(self.n, self.steps, -1)[:, done - start : end - start].to(window)


def _schedule(first: int, stop: int, steps: int, guard: int, context: int) -> Iterator[tuple[int, int]]:
    """For each window of a stretch its first row, and the row up to which nothing is drawn again after it."""
    start = first
    while start + steps < stop:
        yield start, start + steps - guard
        start += steps - guard - context
    if stop > first:
        yield max(first, stop - steps), stop


def _lengthened(rows: Tensor, count: int, value: float | None = None) -> Tensor:  # (count, ...)
    """With more rows at the end: of a value, or of the last row again."""
    more = rows[-1:] if value is None else torch.full_like(rows[:1], value)
    return torch.cat([rows, more.expand(count - len(rows), -1)])


def _chunks(
    parts: Iterator[tuple[np.ndarray, Tensor]], total: int, size: int | None, label: str
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """The same rows, so many at a time; fewer at the end."""
    done = 0
    with bar(label, total) as advance:
        for rows, drawn in parts if size is None else _regrouped(parts, size):
            yield rows, drawn
            done += len(rows)
            advance(done, "")


def _regrouped(parts: Iterator[tuple[np.ndarray, Tensor]], size: int) -> Iterator[tuple[np.ndarray, Tensor]]:
    rows, drawn = np.empty(0, dtype=int), None
    for more_rows, more in parts:
        rows, drawn = np.append(rows, more_rows), more if drawn is None else torch.cat([drawn, more], dim=1)
        while len(rows) >= size:
            yield rows[:size], drawn[:, :size]
            rows, drawn = rows[size:], drawn[:, size:]
    if drawn is not None and len(rows):
        yield rows, drawn


def _keyed(seed: int, purpose: str, number: int | range, device: torch.device) -> Noise:
    """Standard normal numbers of one window, or of several; the first of a window are its first member's."""

    def noise(step: str, shape: tuple[int, ...]) -> Tensor:
        count = math.prod(shape) // (len(number) if isinstance(number, range) else 1)
        return Stream(seed, f"{purpose}: {step}", device).normal(number, count).view(shape)

    return noise


def _refuse_short(calendar: Rows, rows: int) -> None:
    if len(calendar) < rows:
        got = f"a calendar of {len(calendar):,} rows"
        raise InputError(
            got, f"one of {rows:,}: it is needed for every row, those to come too", "give covariates further"
        )
