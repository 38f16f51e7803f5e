"""Every option of every command, as the parser itself lists them, with values that nobody should give; and a standard
output that nobody reads, that is full, or that knows only ASCII, where a node is called \u00e9.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .child import command, learn
from .stage import AUGMENT, EVALUATE, EXPORT, IMPUTE, INSPECT, REPORT, SAMPLE, SCORE, TRAIN, Stage
from .verdict import Verdict, judged

NUMBERS = """0 -1 1 1.5 1e308 -1e308 1e-320 nan -inf 100000000000000000000 2147483648 4294967297 9223372036854775807
-9223372036854775808 0x10 1_000 1,5 0,0,0 nan,nan 1e9,1e9 \u0663"""
WORDS = """x None true \u00e9 \u202eabc =1+1 $x^2$ , a=b [] \udcff"""
VALUES = [*NUMBERS.split(), *WORDS.split(), "", " ", "a" * 5000, "../" * 1000]
PATHS = """. / missing/folder/x signals.csv signals.csv/x empty.csv fifo.csv link.csv /proc/1/x run graph.csv x.csv
x.npz x.nc x.parquet x.html x.png /dev/zero"""
WRITTEN = ("--out", "--picture", "--runs", "--results", "--data-dir")  # never at a device
RESULTS = str(Path(__file__).parent.parent.parent / "results")
BASES = {
    "demo": ["demo"],
    "train": TRAIN,
    "sample": SAMPLE,
    "impute": IMPUTE,
    "augment": AUGMENT,
    "score": SCORE,
    "report": REPORT,
    "evaluate": EVALUATE,
    "data list": ["data", "list"],
    "data get": ["data", "get", "molene", "--data-dir", "got", "--from", "signals.csv"],
    "data inspect": INSPECT,
    "data export": EXPORT,
    "bench run": ["bench", "run", "controls", "--settings", "sbm-c1", "--seeds", "0"],
    "bench table": ["bench", "table", "controls", "--results", RESULTS],
    "bench figures": ["bench", "figures", "--results", RESULTS, "--out", "drawn"],
}
LONG = ("demo", "bench run")  # may go on beyond the limit: that they go on is all that is asked of them
DEAR = ("report", "data inspect", "bench run", "bench figures", "demo")  # of whose options a smaller share is tried
SHARE, LESS, SETTINGS = 0.3, 0.06, 0.3
SECONDS, BRIEFLY = 30, 3


def unread() -> None:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 1)


OUTPUTS = {
    "that nobody reads": unread,
    "that is full": lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1),
    "in ASCII": lambda: sys.stdout.reconfigure(encoding="ascii", errors="strict"),
}


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    found = []
    for name in ("data list", "bench table", "bench figures"):
        learn(BASES[name], stage.path)
    for name, option in options():
        paths = [path for path in PATHS.split() if not (option in WRITTEN and path.startswith("/dev"))]
        for value in [*VALUES, *paths, "a" * 300 + ".csv"]:
            if random.random() < (LESS if name in DEAR else SHARE):
                given = [option, value] if option else [value]
                found.append((f"{name} {option} {value[:40]!a}", name, given))
    for key in settings(stage):
        for value in VALUES:
            if random.random() < SETTINGS:
                found.append((f"train --set {key}={value[:40]!a}", "train", ["--set", f"{key}={value}"]))
    shown = [name for name in BASES if name not in LONG]
    return found + [(f"{name}, standard output {where}", name, [], where) for name in shown for where in OUTPUTS]


def options() -> Iterator[tuple[str, str]]:
    """Of every command the options that take a value; its arguments have no name."""
    from typer.main import get_command

    from grcd.cli.commands import app

    def walk(node, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for name, inner in getattr(node, "commands", {}).items():
            yield from walk(inner, (*path, name))
        if not hasattr(node, "commands"):
            for parameter in node.params:
                if parameter.param_type_name == "argument":
                    yield " ".join(path), ""
                elif not parameter.is_flag:
                    yield " ".join(path), max(parameter.opts, key=len)

    yield from walk(get_command(app), ())


def settings(stage: Stage) -> list[str]:
    """The keys of --set, as the message about an unknown one lists them."""
    end = command([*TRAIN, "--set", "nothing=1"], stage.path)
    return end.err.split("expected one of ")[1].split("\n")[0].split(", ")


def attack(stage: Stage, case: tuple, folder: Path) -> Verdict:
    _, name, given, *where = case
    stage.put(folder, "finished")
    if name == "train":
        (folder / "run").rename(folder / "trained")
    (folder / "empty.csv").touch()
    os.mkfifo(folder / "fifo.csv")
    (folder / "link.csv").symlink_to("link.csv")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file() and "fifo" not in path.name}
    args = placed(name, given)
    trap = OUTPUTS[where[0]] if where else None
    end = command(args, folder, trap, seconds=BRIEFLY if name in LONG else SECONDS)
    if end.late and name in LONG:
        return Verdict("ok", "goes on")
    if wrong := judged(end):
        return wrong
    gone = [path.name for path in before if not path.exists() or path.stat().st_mtime_ns != before[path]]
    if gone:
        return Verdict("silent difference", f"{end}\n(changed what was there: {', '.join(gone)})")
    hidden = [path.name for path in folder.rglob("*") if path.name.startswith((".", "tmp"))]
    if hidden:
        return Verdict("leftovers", f"{end}\n(left: {', '.join(hidden)})")
    return Verdict("ok" if end.status == 0 else "refused", "")


def placed(name: str, given: list[str]) -> list[str]:
    """The command with that option: in place of its own, if it has it, since the last one need not count."""
    base, words = list(BASES[name]), len(name.split())
    if not given:
        return base
    if len(given) == 1:  # an argument: in place of the first one
        if len(base) > words and not base[words].startswith("-"):
            base[words] = given[0]
            return base
        return [*base[:words], "--", given[0]]
    if given[0] in base and given[0] != "--set":
        at = base.index(given[0])
        return [*base[:at], *given, *base[at + 2 :]]
    return [*base, *given]
