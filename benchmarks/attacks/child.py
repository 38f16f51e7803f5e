"""A `grcd` command in a process of its own, forked from this one, which has all modules loaded: milliseconds, not
seconds. Memory and time are limited. ``arm`` is called in the child before the command, to set a trap for it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path

import grcd

from .verdict import End

PROJECT = tomllib.loads((Path(grcd.__file__).parents[2] / "pyproject.toml").read_text())["project"]
ENTRY = PROJECT["scripts"]["grcd"]
SECONDS = 40  # of processor time
PATIENCE = 6  # times as long by the clock: other processes want the cores too
MEMORY = 3 << 30  # bytes of addresses more than this process has


def entry() -> Callable[[], None]:
    """What the installed command calls."""
    module, name = ENTRY.split(":")
    return getattr(importlib.import_module(module), name)


class Child:
    """A command that is running."""

    def __init__(self, args: list[str], folder: Path, arm: Callable[[], None] | None = None, seconds: float = SECONDS):
        self.args, self.seconds, self.began = args, seconds, time.monotonic()
        pipes = [os.pipe(), os.pipe()]
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(folder, [write for _, write in pipes], arm)
        for _, write in pipes:
            os.close(write)
        self.reads, self.said = [read for read, _ in pipes], [b"", b""]

    def _run(self, folder: Path, writes: list[int], arm: Callable[[], None] | None) -> None:
        status = 1
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, write in enumerate(writes, start=1):
                os.dup2(write, number)
            # Its own, as a process that is started has them: the parent's may know their file to be one that can seek.
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", 1, closefd=False)
            os.closerange(3, 256)  # an end of a pipe in a child that lives on would keep its reader waiting
            os.chdir(folder)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            limited(MEMORY, self.seconds)
            sys.argv = ["grcd", *self.args]
            main = entry()
            if arm is not None:
                arm()
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            with contextlib.suppress(BaseException):
                traceback.print_exc()
        finally:
            sys.setprofile(None)
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException:
                status = 120  # as Python ends where it cannot write what is left
            os._exit(status)

    def wait(self, seconds: float | None = None) -> End | None:
        """Its end; None if it has not come after so many seconds."""
        until = time.monotonic() + (self.seconds * PATIENCE if seconds is None else seconds)
        late = False
        with selectors.DefaultSelector() as ready:
            for number, read in enumerate(self.reads):
                if read is not None:
                    ready.register(read, selectors.EVENT_READ, number)
            while any(read is not None for read in self.reads):
                for key, _ in ready.select(max(0.0, until - time.monotonic())):
                    data = os.read(key.fd, 1 << 16)
                    self.said[key.data] += data
                    if not data:
                        ready.unregister(key.fd)
                        os.close(key.fd)
                        self.reads[key.data] = None
                if time.monotonic() >= until:
                    if seconds is not None:
                        return None
                    late = True
                    os.kill(self.pid, signal.SIGKILL)
                    until = float("inf")
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # processes that it started and did not wait for
        out, err = (said.decode("utf-8", "replace") for said in self.said)
        return End(self.args, status, out, err, late or status == -signal.SIGXCPU)


def command(args: list[str], folder: Path, arm: Callable[[], None] | None = None, seconds: float = SECONDS) -> End:
    """Run one to its end."""
    return Child(args, folder, arm, seconds).wait()


def limited(memory: int, seconds: float) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + memory
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def learn(args: list[str], folder: Path) -> End:
    """Run a command, and load here what it loaded there: the next one starts with it."""
    known = set(sys.modules)
    with tempfile.NamedTemporaryFile() as file:

        def arm() -> None:
            leave = os._exit

            def leaving(status: int) -> None:
                Path(file.name).write_text(json.dumps([name for name in sys.modules if name not in known]))
                leave(status)

            os._exit = leaving

        end = command(args, folder, arm)
        for name in json.loads(Path(file.name).read_text() or "[]"):
            with contextlib.suppress(Exception):  # some can only be loaded by what needs them
                importlib.import_module(name)
    return end
