"""Ctrl-C and SIGTERM: at seeded calls of any function, at file operations, twice in a row; and, in processes of their
own, at seeded moments while modules load. Exit status 130, no traceback, nothing half-written; and the same command
again does what it would have done.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import traps
from .child import ENTRY, PATIENCE, SECONDS, command
from .crash import as_if_nothing
from .stage import FILES, SCENARIOS, Stage, look
from .verdict import End, Verdict, judged

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CALLS, OPERATIONS, MOMENTS = 5, 2, 24  # for each scenario and signal; moments for each signal
LOADED = ("train", "sample", "report", "impute")  # whose modules load for real
LIGHT = 0.2  # seconds of processor time: what cannot be caught, before the command's first line, has to be short
PROGRAM = """
import os, sys, time
began = time.process_time()
from {0} import {1} as main
if time.process_time() - began > {3}:
    sys.exit("the command loads too much before its first line")
os.write({2}, b".")
os.close({2})
main()
"""


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    found = []
    for name in SCENARIOS:
        for sent in SIGNALS:
            _, _, operations, calls = stage.undisturbed[name]
            for k in random.integers(1, calls, CALLS):
                twice = int(random.integers(1, 400)) if random.random() < 0.4 else 0
                again = f" and {twice} later" if twice else ""
                found.append((f"{name}: {sent.name} at call {k}{again}", name, "call", int(sent), int(k), twice))
            for k in random.integers(1, operations + 1, OPERATIONS) if operations else ():
                found.append((f"{name}: {sent.name} at file operation {k}", name, "file", int(sent), int(k), 0))
    stage.seconds = {name: seconds(stage, name) for name in LOADED}
    for number in range(MOMENTS):
        for sent in SIGNALS:
            name, share = LOADED[number % len(LOADED)], (number + random.random()) / MOMENTS
            found.append((f"{name}: {sent.name} after {share:.0%} of its time", name, "load", int(sent), share, 0))
    return found


def seconds(stage: Stage, name: str) -> float:
    """Of processor time, that a scenario takes with everything it loads."""
    run, args = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as folder:
        stage.put(Path(folder), run)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        really(args, Path(folder))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def attack(stage: Stage, case: tuple, folder: Path) -> Verdict:
    _, name, how, sent, place, twice = case
    run, args = SCENARIOS[name]
    stage.put(folder, run)
    known = {*look(folder), *stage.undisturbed[name].left, "run", *(f"run/{file}" for file in FILES)}
    if how == "load":
        end = really(args, folder, sent, place * stage.seconds[name])
    else:
        trap = traps.at_call if how == "call" else traps.at_operation
        end = command(args, folder, trap(place, signal.Signals(sent), twice))
    if wrong := judged(end, (0, 130)):
        return wrong
    if extra := [name for name in look(folder) if name not in known]:
        return Verdict("leftovers", f"{end}\n(left: {', '.join(extra)})")
    return as_if_nothing(stage, name, folder)


def really(args: list[str], folder: Path, sent: int = 0, after: float | None = None) -> End:
    """A process of its own, and a signal after so many seconds of its time; but not before Python has come to grcd."""
    read, write = os.pipe()
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = [sys.executable, "-c", PROGRAM.format(*ENTRY.split(":"), write, LIGHT), *args]
    with subprocess.Popen(program, cwd=folder, **pipes, pass_fds=[write]) as process:
        os.close(write)
        os.read(read, 1)
        os.close(read)
        if after is not None:
            while process.poll() is None and used(process.pid) < after:
                time.sleep(0.002)
            process.send_signal(sent)
        late = False
        try:
            said = process.communicate(timeout=SECONDS * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            said, late = process.communicate(), True
    return End(args, process.returncode, *(text.decode("utf-8", "replace") for text in said), late)


def used(pid: int) -> float:
    """Seconds of processor time that a process has used; all there are if it has ended."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    except OSError:
        return float("inf")
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
