"""The `grcd` command, and `python -m grcd`: interrupts are watched for before anything large is loaded."""

from __future__ import annotations

from .core import interrupts


def main() -> None:
    interrupts.watch()
    from .cli import main as command
    from .core import memory

    memory.limit()
    command()


if __name__ == "__main__":
    main()
