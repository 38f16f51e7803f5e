"""Ctrl-C and SIGTERM at any moment: the command cleans up, says so in one line, and exits with 130.

While modules load libraries turn an interrupt into errors of their own, or swallow it: there the process is left at
once, after its temporary files are removed. One that strikes where Python cannot raise it (in a finaliser) is sent
again.

A process that works for another leaves interrupts to that one, which ends it by SIGTERM: a terminal sends its Ctrl-C to
both, and one of them has to say so. It is born with both signals ``held``, and ``serve`` lets SIGTERM through.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STATUS = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
AGAIN = (signal.SIGALRM,) if hasattr(signal, "SIGALRM") else ()
watched = received = False
temporary: set[str] = set()  # files that must not outlive this process


def watch() -> None:
    """Let interrupts end this process as said above; for the main thread of a command, not for a library."""
    global watched
    watched = True
    for number in (*SIGNALS, *AGAIN):
        signal.signal(number, _handle)
    usual = sys.unraisablehook

    def again(failure: sys.UnraisableHookArgs) -> None:
        if isinstance(failure.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)  # not at once: nothing can be raised in here either
        else:
            usual(failure)

    sys.unraisablehook = again


@contextmanager
def held() -> Iterator[None]:
    """Interrupts wait for the end of this block, and processes that are started in it are born with them held."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve() -> None:
    """In a process that works for another: to be ended is to clean up and go, at once and without a word."""

    def end(number: int, frame: FrameType | None) -> None:
        clean()
        os._exit(STATUS)

    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def ignore() -> None:
    """From here on the command is as good as done."""
    for number in (*SIGNALS, *AGAIN) if watched else ():
        signal.signal(number, signal.SIG_IGN)


def clean() -> None:
    """Remove what an interrupt in the middle of cleaning up has left."""
    for path in temporary:
        with suppress(OSError):
            os.unlink(path)


def message() -> str:
    """What an interrupted command says."""
    resumes = sys.argv[1:2] in (["train"], ["bench"])
    return "\ngrcd: interrupted; nothing is left half-written" + (
        ". The same command goes on from here\n" if resumes else "\n"
    )


def _handle(number: int, frame: FrameType | None) -> None:
    global received
    received = True
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            _leave()
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave() -> None:
    ignore()
    clean()
    with suppress(OSError):
        os.write(2, message().encode())
    os._exit(STATUS)
