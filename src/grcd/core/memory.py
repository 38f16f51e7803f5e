"""Memory: how much there is, and what is said when something does not fit."""

from __future__ import annotations

import ctypes
import math
import os
import re
from contextlib import suppress
from pathlib import Path

from .errors import InputError

GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # a container's own limit
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names in malloc.h
MAPPED, KEPT = 1 << 28, 1 << 30  # bytes
ROOM = 0.95  # of it for data; the rest is for code, and for the system


def total() -> float:
    """Bytes that this process may have; infinite where the machine does not say."""
    limits = [math.inf]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    for group in GROUPS:
        with suppress(ValueError, OSError):
            limits.append(float(Path(group).read_text()))
    with suppress(ImportError, OSError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_DATA)[0]
        limits.append(math.inf if soft == resource.RLIM_INFINITY else float(soft))
    return min(limits)


def keep() -> None:
    """Let what is freed be used again, up to a gigabyte of it: by itself the C library gives arrays of over 32 MB back
    to the system at once, and has every page of the next one cleared, which on a processor can take longer than what
    is computed with them. Other C libraries do as they do."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, size in ((M_MMAP_THRESHOLD, MAPPED), (M_TRIM_THRESHOLD, KEPT)):
            mallopt(parameter, size)


def limit() -> None:
    """Let an allocation beyond what there is fail: the system would lend it, and end the process when it is used.

    Not beside a GPU, whose driver maps more than there is.
    """
    if os.path.exists("/dev/nvidiactl"):
        return
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = total() * ROOM
        if math.isfinite(most) and soft == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_DATA, (int(most), hard))


def refuse_over(size: float, what: str, do: str, available: float | None = None) -> None:
    """Before memory is asked for: ``size`` bytes for ``what`` must be available, by default to this process."""
    available = total() if available is None else available
    if size > available:
        raise InputError(
            f"{what}, which takes {readable_size(size)}", f"what fits into memory, {readable_size(available)}", do
        )


def is_out(error: BaseException) -> bool:
    """Whether this is how numpy, torch or CUDA say that there is no more."""
    phrases = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED")
    says_so = isinstance(error, RuntimeError) and any(words in str(error) for words in phrases)
    if says_so or isinstance(error, MemoryError):
        return True
    return error.__context__ is not None and is_out(error.__context__)  # where capturing a graph failed because of it


def refusal(error: BaseException, do: str) -> InputError:
    """What was asked for, as far as the error says, and what there is."""
    request = re.search(r"allocate (\d+ bytes|[\d.]+ ?[KMGTPE]i?B)", str(error))
    gpu = re.search(r"total capacity of ([\d.]+ [KMGT]iB)", str(error))
    more = f": {request[1]} more were asked for" if request else ""
    available = f"the {gpu[1]} of the GPU" if gpu else f"memory, {readable_size(total())}"
    return InputError(f"too little memory{more}", f"what fits into {available}", do)


def readable_size(size: float) -> str:
    """Bytes as a person reads them: ``1.5 GB``."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:,.1f} {unit}" if size < 1e16 else f"{size / least:.0e} {unit}"
    return f"{size:.0f} bytes"
