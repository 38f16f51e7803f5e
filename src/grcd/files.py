"""Files written whole or not at all: into a temporary neighbour first, then moved over the target in one step."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from .errors import InputError


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it becomes ``path``, on failure nothing is left of it."""
    path = Path(path)
    folder = make_folder(path.parent)
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.", suffix=path.suffix)
    except OSError as error:  # a name that is too long
        raise refused(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # mkstemp's 0600 would keep colleagues out
        temporary.replace(path)
    except OSError as error:
        raise refused(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


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
    text = re.sub(r"\[[-+\d.eE,\s]*\]", lambda found: " ".join(found.group().split()), json.dumps(value, indent=1))
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


def refused(path: Path, error: OSError) -> InputError:
    """What the file system said, and what helps against it."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return InputError(
        f"{error.strerror or error} while writing {path}",
        "a folder that can be written and has room",
        "free some space, or choose another place" if full else "choose another place, or allow writing there",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
