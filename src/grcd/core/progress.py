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

EVERY = 10.0  # seconds between two lines
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
    if ranks.rank() > 0 or _quiet:
        yield _silent
        return
    if not sys.stderr.isatty():
        if math.isinf(_after()):
            yield _silent
            return
        lines = Lines(label, total, start)
        yield lines.advance
        lines.end()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=start, note="", speed="")

        def advance(done: int, note: str = "") -> None:
            speed = progress.tasks[0].speed
            progress.update(task, completed=done, note=note, speed=f"{speed:.0f}/s" if speed else "")

        yield advance


@contextmanager
def working(label: str) -> Iterator[None]:
    """Shows that something goes on of which nobody knows how long it takes, and how long it has."""
    if ranks.rank() > 0 or _quiet:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(bar_width=10), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task(label, total=None)
            yield
    elif math.isinf(_after()):
        yield
    else:
        done, context = Event(), copy_context()  # a thread has a context of its own
        thread = Thread(target=context.run, args=(_so_far, label, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _so_far(label: str, done: Event) -> None:
    """A line soon, and then as often as any other, until it is ``done``."""
    began = time.monotonic()
    if done.wait(SOON):
        return
    _emit(f"{label} ...")
    while not done.wait(EVERY):
        _emit(f"{label}: {_readable(time.monotonic() - began)} so far")


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
    """One bar as lines: every ``EVERY`` seconds one, and one at the end."""

    def __init__(self, label: str, total: int, start: int = 0, clock: Callable[[], float] = time.monotonic):
        self.label, self.total, self.start, self.clock = label, total, start, clock
        self.began = self.said = clock()
        self.done, self.note, self.shown = start, "", -1
        if start:
            _emit(f"{label} goes on from {start:,} of {total:,}")

    def advance(self, done: int, note: str = "") -> None:
        """So much is done."""
        self.done, self.note, now = done, note, self.clock()
        if now - self.said >= EVERY:
            self.said = now
            self._say()

    def end(self) -> None:
        """The last line, unless it was just said, or all is over soon."""
        if self.shown != self.done and self.clock() - self.began >= _after():
            self._say()

    def _say(self) -> None:
        self.shown = self.done
        seconds = self.clock() - self.began
        rate = (self.done - self.start) / seconds if seconds > 0 else 0.0
        parts = [f"{self.label} {self.done:,} of {self.total:,}"]
        if rate > 0:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
            if self.done < self.total:
                parts.append(f"{_readable((self.total - self.done) / rate)} left")
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


def _readable(seconds: float) -> str:
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= size), UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


def _emit(line: str) -> None:
    if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
        LOGGER.info(line)
    else:
        print(line if _telling.get() else f"grcd: {line}", file=sys.stderr, flush=True)


def _silent(done: int, note: str) -> None:
    pass
