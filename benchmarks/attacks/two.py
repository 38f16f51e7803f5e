"""Two processes in one run folder: the first is stopped at a file operation, the second comes, the first goes on; and
both at once. One of them at least has to work, the other may refuse and has to say who is in its way; and what is left
is what one process alone leaves.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from . import traps
from .child import Child
from .stage import OTHER, SAMPLE, TRAIN, Stage, look, summed
from .verdict import Verdict, judged

STOPS, RACES = 10, 8  # seeded ones for each pair
PAIRS = {  # on which run, the first, the second
    "train, train": (None, TRAIN, TRAIN),
    "resume, resume": ("half", TRAIN, TRAIN),
    "train, train with another seed": (None, TRAIN, OTHER),
    "train, train --force": (None, TRAIN, [*TRAIN, "--force"]),
    "train --force, train --force": ("finished", [*TRAIN, "--force"], [*TRAIN, "--force"]),
    "train --force, train": ("finished", [*TRAIN, "--force"], TRAIN),
    "train --force, sample": ("other-finished", [*TRAIN, "--force"], SAMPLE),
    "train, sample": (None, TRAIN, SAMPLE),
    "sample, sample": ("finished", SAMPLE, SAMPLE),
    "sample --force, sample --force": ("finished", [*SAMPLE, "--force"], [*SAMPLE, "--force"]),
}


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    found = []
    for name, (_, first, _) in PAIRS.items():
        last = stage.undisturbed["train" if first[0] == "train" else "sample"].operations
        for k in sorted({int(k) for k in random.integers(1, last + 1, STOPS)}):
            found.append((f"{name}: the first stopped at file operation {k}", name, k, 0.0))
        for number in range(RACES):
            found.append((f"{name}: at once ({number})", name, 0, 0.0 if number < 3 else float(random.uniform(0, 0.6))))
    return found


def attack(stage: Stage, case: tuple, folder: Path) -> Verdict:
    _, name, stop, delay = case
    run, one, two = PAIRS[name]
    stage.put(folder, run)
    first = Child(one, folder, traps.at_operation(stop, signal.SIGSTOP) if stop else None)
    if stop:
        wait_until_stopped(first.pid)
        second = Child(two, folder)
        ends = [second.wait()]
        os.kill(first.pid, signal.SIGCONT)
        ends.insert(0, first.wait())
    else:
        time.sleep(delay)
        second = Child(two, folder)
        ends = [first.wait(), second.wait()]
    for end, other in zip(ends, (second, first), strict=True):
        if wrong := judged(end):
            return wrong
        if stop and end.status == 2 and "another process" in end.err and str(other.pid) not in end.err:
            return Verdict("unclear message", f"{end}\n(does not say that process {other.pid} is there)")
    text = "\n".join(map(str, ends))
    if all(end.status == 2 for end in ends):
        return Verdict("wrong exit code", f"{text}\n(one of them has to work)")
    return one_alone(stage, folder, text) or Verdict("refused" if 2 in (ends[0].status, ends[1].status) else "ok", text)


def wait_until_stopped(pid: int, seconds: float = 120) -> None:
    """Wait until a process has stopped, or ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state in "TZ":
            return
        time.sleep(0.005)


def one_alone(stage: Stage, folder: Path, text: str) -> Verdict | None:
    """What is left has to be what one of the two leaves when it is alone."""
    runs = [look(stage.path / name) for name in ("finished", "other-finished")]
    found = look(folder / "run")
    if found not in runs:
        odd = [name for name in {**found, **runs[0]} if found.get(name) not in [run.get(name) for run in runs]]
        what = "leftovers" if {*found} - {*runs[0]} else "silent difference"
        return Verdict(what, f"{text}\n(the run is no one's: {', '.join(odd) or 'parts of both'})")
    known = stage.undisturbed["sample"].left
    extra = [name for name in look(folder) if not name.startswith("run/") and name not in known]
    if extra:
        return Verdict("leftovers", f"{text}\n(left: {', '.join(extra)})")
    if (folder / "samples.csv").exists() and summed(folder / "samples.csv") not in stage.samples:
        return Verdict("silent difference", f"{text}\n(samples of neither run)")
    return None
