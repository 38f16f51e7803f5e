"""What an attack may end with.

    ok                  the command did what it would have done undisturbed
    refused             exit status 2, and a message in three parts

and what it must not:

    traceback           Python's own words in place of ours
    silent difference   exit status 0 with other numbers than undisturbed, and nothing said of it
    wrong exit code     another than 0, 2 or (interrupted) 130; or not the one that this situation asks for
    unclear message     status 2 without the three parts, or without the name of what is wrong
    leftovers           files that nobody asked for stay behind for good
    time-out            more than its share of time; memory is limited too, and too little of it is to be a refusal
"""

from __future__ import annotations

import re
from typing import NamedTuple

GOOD = ("ok", "refused")
BAD = ("traceback", "silent difference", "wrong exit code", "unclear message", "leftovers", "time-out")
PARTS = re.compile(r"grcd: got .*\nexpected .*\nto fix: .*", re.DOTALL)
LINES = 12  # of what a command said, in an example


class Verdict(NamedTuple):
    what: str
    seen: str = ""


class End(NamedTuple):
    """How a process ended."""

    args: list[str]
    status: int  # negative: killed by that signal
    out: str
    err: str
    late: bool = False  # it ran into the limit of time

    @property
    def told(self) -> bool:
        return self.status == 2 and bool(PARTS.search(self.err))

    def __str__(self) -> str:
        lines = [line[:300] for line in (self.out + self.err).strip().splitlines()]
        return "\n".join([f"$ grcd {' '.join(arg[:80] for arg in self.args)}  -> {self.status}", *lines[-LINES:]])


def judged(end: End, allowed: tuple[int, ...] = (0, 2), names: tuple[str, ...] = ()) -> Verdict | None:
    """What is wrong about the way that a command ended, if anything; a refusal has to name one of ``names``."""
    if end.late:
        return Verdict("time-out", str(end))
    if "Traceback (most recent call last)" in end.err:
        return Verdict("traceback", str(end))
    if end.status not in allowed:
        return Verdict("wrong exit code", f"{end}\n(allowed here: {allowed})")
    if end.status == 2 and not end.told:
        return Verdict("unclear message", str(end))
    if end.status == 2 and names and not any(name in end.err for name in names):
        return Verdict("unclear message", f"{end}\n(names none of {', '.join(names)})")
    return None
