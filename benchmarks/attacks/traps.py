"""Traps that are set in a child: a signal to itself at a chosen file operation, or at a chosen call of any function.

File operations are what Python audits (opening for writing, renaming, removing, making folders, locking) and fsync.
A trap springs before the operation, so the one after it is what follows the operation.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

OPERATIONS = ("os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Seen = Callable[[str, str], None]


def changes(event: str, args: tuple) -> bool:
    """Whether an audited event is about to change what lies on the disk."""
    path = args[0] if args and isinstance(args[0], str | bytes) else None
    if event == "open":
        there = path is not None and not os.path.isdir(path) and not os.fsdecode(path).startswith(("/dev", "/proc"))
        return there and bool((args[2] or 0) & WRITING)
    if event in ("os.mkdir", "os.remove"):
        return os.path.lexists(path) == (event == "os.remove")
    return event in OPERATIONS or event.startswith("fcntl.") or event == "os.fsync"


def watched(seen: Seen) -> Callable[[], None]:
    """Call ``seen`` with every file operation to come and the name of its file (of two names, the second)."""

    def arm() -> None:
        real, busy = os.fsync, []

        def hook(event: str, args: tuple) -> None:
            if busy:
                return
            if not changes(event, args):
                return
            given = args[:1] if event == "open" else args[:2]
            paths = [os.fsdecode(arg) for arg in given if isinstance(arg, str | bytes)]
            busy.append(event)
            try:
                seen(event, Path(paths[-1]).name if paths else "")
            finally:
                busy.pop()

        def fsync(handle: int) -> None:
            hook("os.fsync", ())
            real(handle)

        os.fsync = fsync
        sys.addaudithook(hook)

    return arm


def counted(count: Callable[[str], bool], number: int, sent: signal.Signals, twice: int = 0) -> Callable[[], None]:
    """At file operation ``number`` of those that count; with ``twice``, once more so many operations later."""
    left = [number, number + twice] if twice else [number]
    at = [0]

    def seen(event: str, name: str) -> None:
        at[0] += count(name)
        if left and at[0] >= left[0]:
            left.pop(0)
            os.kill(os.getpid(), sent)

    return watched(seen)


def at_operation(number: int, sent: signal.Signals = signal.SIGKILL, twice: int = 0) -> Callable[[], None]:
    return counted(lambda name: True, number, sent, twice)


def at_file(name: str, number: int, sent: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """Before a file of that name is opened for writing (or renamed to) for the so many-th time."""
    return counted(lambda found: found == name, number, sent)


def at_call(number: int, sent: signal.Signals, twice: int = 0) -> Callable[[], None]:
    """At the so many-th call of any function."""

    def arm() -> None:
        count, left = 0, [number, number + twice] if twice else [number]

        def profile(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")
            if left and count >= left[0]:
                left.pop(0)
                if not left:
                    sys.setprofile(None)
                os.kill(os.getpid(), sent)

        sys.setprofile(profile)

    return arm


def no_larger(size: int, dies: bool) -> Callable[[], None]:
    """No file grows beyond ``size`` bytes, as on a full disk; or the process dies in the middle of that write."""

    def arm() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if dies else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return arm


def operations_into(log: Path) -> Callable[[], None]:
    """No trap: note every file operation, a line each."""

    def seen(event: str, name: str) -> None:
        with log.open("a") as file:
            file.write(f"{event} {name}\n")

    return watched(seen)


def calls_into(log: Path) -> Callable[[], None]:
    """No trap: note how many calls of functions there were."""

    def arm() -> None:
        count, leave = 0, os._exit

        def profile(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        def leaving(status: int) -> None:
            log.write_text(str(count))
            leave(status)

        os._exit = leaving
        sys.setprofile(profile)

    return arm
