"""One process at a time in a folder: a lock that dies with its process.

The lock is the operating system's (``flock``) on a file in the folder, so that a process that is killed holds nothing.
The file says who holds it. It is removed with the lock; whoever got hold of a removed one tries again. Where there is
no ``flock`` (Windows), nothing is locked.
"""

from __future__ import annotations

import datetime
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..core import interrupts
from ..core.errors import InputError
from ..core.files import refused

try:
    import fcntl

    LOCKS = True
except ImportError:  # pragma: no cover
    LOCKS = False

NAME = ".grcd.lock"


class Lock:
    """Held from its making until ``release``, or until the process ends."""

    def __init__(self, folder: Path):
        self.path = folder / NAME
        self.file = _held(self.path)
        interrupts.temporary.add(str(self.path))

    def release(self) -> None:
        """Let others in; a second time it does nothing."""
        file, self.file = self.file, None
        if file is not None:
            with file, suppress(OSError):
                self.path.unlink(missing_ok=True)  # while it is held: nobody else can be waiting for this very file
        interrupts.temporary.discard(str(self.path))


def remove_stale(folder: Path) -> None:
    """What a killed process left, if nobody holds it."""
    if os.path.exists(folder / NAME):
        with suppress(InputError):
            Lock(folder).release()


def _held(path: Path) -> BinaryIO | None:
    """The lock's file, open and locked; None where there are no locks."""
    while LOCKS:
        try:
            file = path.open("ab+", buffering=0)
        except OSError as error:
            raise refused(path, error) from error
        try:
            _take(file, path)
            if _is_there(file, path):
                return file
            file.close()  # removed by its holder between our opening and our locking it
        except BaseException as error:  # an interrupt too: nobody is to hold what nobody knows of
            file.close()
            if not isinstance(error, OSError):
                raise
            path.unlink(missing_ok=True)  # a file system without locks: as good as it gets
            return None
    return None


def _take(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path.parent}, in which another process is at work ({_holder(file)})",
            "a folder that nobody else is writing to",
            "wait until it has ended, or choose another folder",
        ) from None
    now = datetime.datetime.now().isoformat(" ", "seconds")
    with suppress(OSError):  # a full disk: what is to be written next will say so
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}, since {now}".encode())


def _is_there(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _holder(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(200).decode(errors="replace").strip() or "it does not say which"
