"""Which of several processes this is, where torchrun has started them: by what it put in the environment.

The first speaks for all: it shows progress and notes, prints, and writes files (see ``parallel``).
"""

from __future__ import annotations

import os

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def size() -> int:
    """How many processes there are; 1 for one that torchrun has not started."""
    return int(os.environ["WORLD_SIZE"]) if all(os.environ.get(name) for name in NAMES) else 1


def rank() -> int:
    """The number of this process, from 0 on."""
    return int(os.environ["RANK"]) if size() > 1 else 0


def local() -> int:
    """Its number among those on this machine."""
    return int(os.environ["LOCAL_RANK"]) if size() > 1 else 0
