"""Progress on standard error: a bar on a terminal; elsewhere lines, if they are wanted, else silence.

Lines are wanted within ``verbose(True)``, on the command line, and where the logger "grcd" hears of INFO: there they
go, or to standard error where nobody listens to it. A line says how much is done, how fast, and how long the rest will
take; on the command line there is none of what is done within ``SOON``. Of several processes the first one speaks.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Thread

from . import ranks

Advance = Callable[[int, str], None]
_quiet = False

EVERY, LONGEST = 10.0, 300.0  # seconds between two lines, at least and at most
SELDOM = 0.1  # of the time that work has taken, between two lines
SOON = 2.0  # seconds that nobody wonders
UNITS = (("h", 3600.0), ("min", 60.0), ("s", 1.0))
LOGGER = logging.getLogger("grcd")
_wanted: ContextVar[float] = ContextVar("wanted", default=math.inf)  # seconds that work must take to have lines
_telling: ContextVar[bool] = ContextVar("telling", default=False)


@contextmanager
def verbose(wanted: bool = True) -> Iterator[None]:
    """Within, whatever takes long says so line by line where there is no terminal."""
    with _lines(0.0 if wanted else math.inf):
        yield


@contextmanager
def on_command() -> Iterator[None]:
    """The same of what takes longer than ``SOON``."""
    with _lines(SOON):
        yield


@contextmanager
def _lines(after: float) -> Iterator[None]:
    before = _wanted.set(min(_wanted.get(), after))
    try:
        yield
    finally:
        _wanted.reset(before)


def _after() -> float:
    """Seconds that work must take to have lines; infinite where nobody wants any."""
    return 0.0 if LOGGER.isEnabledFor(logging.INFO) else _wanted.get()


@contextmanager
def bar(label: str, total: int, start: int = 0) -> Iterator[Advance]:
    """Yield ``advance(done, note)``. Shows the share done, the rate, the time left, and the note.

    ``start`` is what was done before, by whatever was interrupted: it does not count for the rate.
    """
    with _shown(label, total, start) as advance:
        yield advance


@contextmanager
def working(label: str) -> Iterator[None]:
    """Shows that something goes on of which nobody knows how long it takes, and how long it has."""
    with _shown(label, None):
        yield


@contextmanager
def _shown(label: str, total: int | None, start: int = 0) -> Iterator[Advance]:
    if ranks.rank() > 0 or _quiet:
        yield _silent
    elif sys.stderr is not None and sys.stderr.isatty():
        with _on_terminal(label, total, start) as advance:
            yield advance
    elif math.isinf(_after()):
        yield _silent
    else:
        with _in_lines(Lines(label, total, start)) as advance:
            yield advance


@contextmanager
def _on_terminal(label: str, total: int | None, start: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description}"), BarColumn(bar_width=10)]
    if total is None:
        columns.append(TimeElapsedColumn())
    else:
        columns += [MofNCompleteColumn(), TextColumn("{task.fields[speed]}"), TimeRemainingColumn()]
        columns.append(TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=start, note="", speed="")

        def advance(done: int, note: str = "") -> None:
            progress.update(task, completed=done, note=note, speed=_rate(progress.tasks[0].speed or 0.0))

        yield advance


@contextmanager
def _in_lines(lines: Lines) -> Iterator[Advance]:
    """A thread speaks, for work may be long in coming back; it has a context of its own, which says where to."""
    over, context = Event(), copy_context()

    def speak() -> None:
        while not over.wait(lines.pause()):
            lines.say()

    thread = Thread(target=context.run, args=(speak,), daemon=True)
    thread.start()
    try:
        yield lines.advance
    finally:
        over.set()
        thread.join()
    lines.end()


@contextmanager
def quiet() -> Iterator[None]:
    """Without bars, for work inside something that has one: a terminal shows one at a time."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


class Lines:
    """One bar as lines: the first one soon, then every ``EVERY`` seconds, of long work fewer; and one at the end."""

    def __init__(self, label: str, total: int | None, start: int = 0, clock: Callable[[], float] = time.monotonic):
        self.label, self.total, self.start, self.clock = label, total, start, clock
        self.began, self.done, self.note, self.shown = clock(), start, "", -1
        if start:
            _emit(f"{label} goes on from {start:,} of {total:,}")

    def advance(self, done: int, note: str = "") -> None:
        """So much is done."""
        self.done, self.note = done, note

    def pause(self) -> float:
        """Seconds to the next line."""
        if self.shown < 0:
            return SOON
        return min(LONGEST, max(EVERY, SELDOM * (self.clock() - self.began)))

    def end(self) -> None:
        """The last line, unless it was just said, or all is over soon."""
        if self.total is not None and self.shown != self.done and self.clock() - self.began >= _after():
            self.say()

    def say(self) -> None:
        """How far it is by now."""
        first, seconds = self.shown < 0, self.clock() - self.began
        self.shown = self.done
        if self.total is None:
            _emit(f"{self.label} ..." if first else f"{self.label}: {_readable(seconds)} so far")
            return
        rate = (self.done - self.start) / seconds if seconds > 0 else 0.0
        parts = [f"{self.label} {self.done:,} of {self.total:,}"]
        if rate > 0:
            parts.append(_rate(rate))
            if self.done < self.total:
                parts.append(f"{_readable((self.total - self.done) / rate)} left")
        elif not first:
            parts.append(f"{_readable(seconds)} so far")
        _emit(", ".join([*parts, *[self.note] * bool(self.note)]))


def tell(line: str) -> None:
    """A line on what was decided, where lines are wanted, or on the command line."""
    if ranks.rank() == 0 and (_after() == 0 or _telling.get()):
        _emit(line)


@contextmanager
def telling() -> Iterator[None]:
    """Within, decisions are told on standard error."""
    before = _telling.set(True)
    try:
        yield
    finally:
        _telling.reset(before)


def _rate(per_second: float) -> str:
    """Of slow work too; empty where nothing is done yet."""
    if not per_second > 0:
        return ""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.2g}/s"


def _readable(seconds: float) -> str:
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= size), UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


def _emit(line: str) -> None:
    if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
        LOGGER.info(line)
    elif sys.stderr is not None:  # nowhere, if it is closed
        print(line if _telling.get() else f"grcd: {line}", file=sys.stderr, flush=True)


def _silent(done: int, note: str) -> None:
    pass
