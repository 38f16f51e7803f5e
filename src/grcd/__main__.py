"""The `grcd` command, and `python -m grcd`: interrupts are watched for before anything large is loaded."""

from __future__ import annotations

import os

from .core import interrupts


def main() -> None:
    interrupts.watch()
    # Threads wait for each other asleep instead of spinning, unless the user says otherwise: on a busy machine training
    # is several times faster. Read when torch is first imported. Only here: the environment of a library's user is his.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from .cli import main as command
    from .core import memory

    memory.limit()
    memory.keep()
    command()


if __name__ == "__main__":
    main()
