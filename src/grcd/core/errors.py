"""What a user can correct: every message says what was got, what was expected, and what to do about it.

Advice names options as the command line spells them. Where no command runs, it says what their keywords are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from numbers import Integral

KEYWORDS = {"neighbours": "k", "set": "", "data": "", "out": "", "run": ""}  # none where there is none
commands = False  # whether a command runs


def in_python(advice: str) -> str:
    """The keywords of the options that advice names, to be added to it; nothing where a command runs."""
    options = dict.fromkeys(re.findall(r"--([a-z]+(?:-[a-z]+)*)", advice)) if not commands else {}
    names = [KEYWORDS.get(option, option.replace("-", "_")) for option in options]
    missing = [f"{name}=" for name in names if name and f"{name}=" not in advice]
    return f" (in Python: {', '.join(missing)})" if missing else ""


class InputError(ValueError):
    """An input the user can correct. The command line prints it in one piece and exits with status 2."""

    def __init__(self, got: str, expected: str, do: str):
        super().__init__(f"got {got}\nexpected {expected}\nto fix: {do}")
        self.got, self.expected, self.do = got, expected, do

    def __str__(self) -> str:
        return f"{super().__str__()}{in_python(self.do)}"

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        """In its three parts, so that it can leave a worker process."""
        return type(self), (self.got, self.expected, self.do)


class InputWarning(UserWarning):
    """Something about the input that was dealt with and that the user should know. The command line prints it."""


def unknown(kind: str, name: str, names: Iterable[str]) -> InputError:
    """The error for a name that is in no table: lists those that are and suggests the nearest."""
    names = list(names)
    folded = {entry.casefold(): entry for entry in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    do = f"did you mean {folded[near[0]]!r}?" if near else f"choose a known {kind}"
    return InputError(f"{kind} {name!r}", f"one of {', '.join(names)}", do)


def whole_number(name: str, value: object, least: int = 1, most: int = 10**12) -> int:
    """The value as an int, if it is one in this range; 3.0, True and "3" are none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise InputError(
            f"{name} = {value!r:.60}", f"a whole number from {least:,} to {most:,}", f"give {name} in that range"
        )
    return int(value)


def shortened(name: object, most: int = 40) -> str:
    """A name as a picture or a message can show it: on one line, and a long one without its middle."""
    text = " ".join(str(name).split())
    return text if len(text) <= most else f"{text[: most - 12]}\u2026{text[-11:]}"


def counted(n: int, one: str, several: str = "") -> str:
    """As "1 row" or "1,200 rows"; ``several`` is for what gets no s at its end: "1 node has", "2 nodes have"."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def some(names: Iterable[object], limit: int = 5) -> str:
    """A short list for a message: the first few names and how many more there are."""
    short = [shortened(name, 100) for name in names]
    rest = len(short) - limit
    return ", ".join(short[:limit]) + (f" and {rest} more" if rest > 0 else "")
