"""Files written whole or not at all: into a temporary neighbour first, then moved over the target in one step.

A temporary file is named after its process and machine. What a killed process left is removed by the next one that
writes into the same folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from . import interrupts
from .errors import InputError


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it becomes ``path``, on failure nothing is left of it."""
    path = Path(path)
    with scratch(path.parent, path.name) as temporary:
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.chmod(0o666 & ~_umask())  # mkstemp's 0600 would keep colleagues out
            temporary.replace(path)
        except Exception as error:
            if isinstance(error, OSError) or is_full(error):  # safetensors has an exception of its own
                raise refused(path, error) from error
            raise


@contextmanager
def scratch(folder: str | Path, name: str) -> Iterator[Path]:
    """Yield an empty temporary file in a folder, gone in the end; ``name`` is part of its name."""
    folder = make_folder(folder)
    remove_leftovers(folder)
    prefix = f".{name}.{os.getpid()}-{_machine()}-"
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=Path(name).suffix)
    except OSError as error:  # a name that is too long
        raise refused(folder / name, error) from error
    os.close(handle)
    interrupts.temporary.add(temporary)
    try:
        yield Path(temporary)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        interrupts.temporary.discard(temporary)  # now: an interrupt in between leaves it to the command's end


def remove_leftovers(folder: Path) -> None:
    """Temporary files of processes of this machine that are no longer there."""
    for entry in os.scandir(folder):
        leftover = re.fullmatch(rf"\..+\.(\d+)-{_machine()}-\w+(\.\w+)?", entry.name, re.ASCII | re.DOTALL)
        if leftover and not _is_alive(int(leftover[1])):
            with suppress(OSError):
                os.unlink(entry.path)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # pragma: no cover (there a signal 0 would end it)
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


def _machine() -> str:
    """A short name of this machine: processes of another one cannot be looked up here."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextmanager
def appending(path: Path) -> Iterator[TextIO]:
    """A log to add to."""
    try:
        with path.open("a") as file:
            yield file
    except OSError as error:
        raise refused(path, error) from error


def write_json(path: str | Path, value: dict) -> None:
    """One entry a line; of lists of numbers, one list a line."""
    text = re.sub(r"\[[-+\d.eE,\s]*\]", lambda numbers: " ".join(numbers.group().split()), json.dumps(value, indent=1))
    with whole(path) as temporary:
        temporary.write_text(text + "\n")


def make_folder(path: str | Path) -> Path:
    """The folder, made if need be and known to be writable."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Asking the file system beats asking for permissions: read-only mounts and full disks answer too.
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise refused(path, error) from error


def refuse_existing(path: str | Path, force: bool) -> None:
    """Before any work is done for it: an output that exists is only replaced on request."""
    if os.path.exists(path) and not force:  # Path.exists raises on a name that is too long
        raise InputError(f"an output that exists already: {path}", "a new path", "choose another, or add --force")


def refuse_other_ending(path: str | Path, ending: str, do: str = "choose another --out") -> None:
    """Before any work is done for it: an output is what its name says."""
    if Path(path).suffix != ending:
        raise InputError(f"the output {path}", f"a name that ends in {ending}", do)


def refused(path: Path, error: Exception) -> InputError:
    """What the file system said, and what helps against it."""
    if is_full(error):
        reason = os.strerror(getattr(error, "errno", None) or errno.ENOSPC)
        got, do = f"a full disk ({reason}) while writing {path}", "free some space, or choose another place"
    else:
        got = f"{getattr(error, 'strerror', None) or error} while writing {path}"
        do = "choose another place, or allow writing there"
    return InputError(got, "a folder that can be written and has room", do)


def is_full(error: Exception) -> bool:
    """Whether there was no room left: by the number of the error or, where a writer has lost it, by its words."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return True
    phrases = os.strerror(errno.ENOSPC), "requested and"  # the latter is numpy's: so many, and so many written
    return not getattr(error, "errno", None) and any(words in str(error) for words in phrases)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
