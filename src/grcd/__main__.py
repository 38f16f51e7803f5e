"""The `grcd` command, and `python -m grcd`: interrupts are watched for before anything large is loaded."""

from __future__ import annotations

from . import interrupts


def main() -> None:
    interrupts.watch()
    from . import memory
    from .cli import main as command

    memory.limit()
    command()


if __name__ == "__main__":
    main()
