"""kill -9 before every file operation of a command, twice in a row at some, and in the middle of a write; and a disk
that is full. The same command again has to end as if nothing had happened, with nothing left behind.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import numpy as np

from . import traps
from .child import command
from .stage import SAMPLE, SCENARIOS, TRAIN, Stage, look, summed
from .verdict import End, Verdict, judged

TWICE, SIZES = 3, 3  # seeded ones for each scenario: second kills, and sizes beyond which no file grows


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    found = []
    for name in SCENARIOS:
        last = stage.undisturbed[name].operations
        found += [(f"{name}: killed at file operation {k}", name, "kill", [k]) for k in range(1, last + 1)]
        for k in random.integers(1, last + 1, TWICE) if last else ():
            again = int(random.integers(1, last + 1))
            found.append((f"{name}: killed at file operations {k} and {again}", name, "kill", [int(k), again]))
        for how, words in (("die", "dies as a file reaches"), ("full", "no file can be longer than")):
            for size in [1, *(int(10 ** random.uniform(1, 3.7)) for _ in range(SIZES - 1))]:
                found.append((f"{name}: {words} {size} bytes", name, how, [size]))
    return found


def attack(stage: Stage, case: tuple, folder: Path) -> Verdict:
    _, name, how, numbers = case
    run, args = SCENARIOS[name]
    stage.put(folder, run)
    for number in numbers:
        trap = traps.at_operation(number) if how == "kill" else traps.no_larger(number, how == "die")
        end = command(args, folder, trap)
        if how == "full" and (wrong := judged(end)):
            return wrong
        if how != "full" and end.status not in (0, 2, -signal.SIGKILL, -signal.SIGXFSZ):
            return judged(end) or Verdict("wrong exit code", str(end))
    return other_ways(stage, name, folder) or as_if_nothing(stage, name, folder)


def as_if_nothing(stage: Stage, name: str, folder: Path) -> Verdict:
    """The same command again; where its output is there already, it may say so, and takes --force."""
    args, left = SCENARIOS[name][1], stage.undisturbed[name].left
    end = command(args, folder)
    if wrong := judged(end):
        return wrong
    if end.status == 2:
        if "exists already" not in end.err or (wrong := different(look(folder), left, end, lenient=True)):
            return wrong or Verdict("wrong exit code", f"{end}\n(the same command must work again)")
        end = command([*args, "--force"], folder)
        if wrong := judged(end, (0,)):
            return wrong
    return different(look(folder), left, end) or Verdict("ok")


def different(found: dict[str, str], left: dict[str, str], end: End, lenient: bool = False) -> Verdict | None:
    """From what an undisturbed command leaves; leniently, more files may be there."""
    changed = [name for name in left if found.get(name) != left[name]]
    if changed:
        return Verdict("silent difference", f"{end}\n(other than undisturbed: {', '.join(changed)})")
    extra = [name for name in found if name not in left]
    return Verdict("leftovers", f"{end}\n(left: {', '.join(extra)})") if extra and not lenient else None


def other_ways(stage: Stage, name: str, folder: Path) -> Verdict | None:
    """What else may be done after a kill inside --force: go on without it, or sample. Never with another's weights."""
    if "--force" not in SCENARIOS[name][1]:
        return None
    copy = folder / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("copy"))
    end = command(SAMPLE, copy)
    if wrong := judged(end):
        return wrong
    if end.status == 0:
        if summed(copy / "samples.csv") not in stage.samples:
            return Verdict("silent difference", f"{end}\n(samples neither of the run before nor of the one after)")
        (copy / "samples.csv").unlink()
    end = command(TRAIN, copy)
    wrong = judged(end) or (different(look(copy), stage.undisturbed[name].left, end) if end.status == 0 else None)
    shutil.rmtree(copy)
    return wrong
