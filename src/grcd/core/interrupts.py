"""Ctrl-C and SIGTERM at any moment: the command cleans up, says so in one line, and exits with 130.

While modules load libraries turn an interrupt into errors of their own, or swallow it: there the process is left at
once, after its temporary files are removed. One that strikes where Python cannot raise it (in a finaliser) is sent
again.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
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
