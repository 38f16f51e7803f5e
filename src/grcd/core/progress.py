"""Progress on standard error: a bar on a terminal, silence elsewhere, and of several processes the first one's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import ranks

Advance = Callable[[int, str], None]
_quiet = False


@contextmanager
def bar(label: str, total: int) -> Iterator[Advance]:
    """Yield ``advance(done, note)``. Shows the share done, the rate, the time left, and the note."""
    if not sys.stderr.isatty() or ranks.rank() > 0 or _quiet:
        yield _silent
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
        task = progress.add_task(label, total=total, note="", speed="")

        def advance(done: int, note: str = "") -> None:
            speed = progress.tasks[0].speed
            progress.update(task, completed=done, note=note, speed=f"{speed:.0f}/s" if speed else "")

        yield advance


@contextmanager
def quiet() -> Iterator[None]:
    """Without bars, for work inside something that has one: a terminal shows one at a time."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


def _silent(done: int, note: str) -> None:
    pass
