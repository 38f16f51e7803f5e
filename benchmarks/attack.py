"""Attack the package as accidents do, and count how it ends: files, crashes, corruptions, options, interrupts, two at
once (see `attacks/`, a module a kind). Seeded; an interrupted attack goes on with the same command.

    python benchmarks/attack.py --out results/attack.json
    python benchmarks/attack.py --only crash,two --minutes 5

Commands run in processes forked from this one, which has all modules loaded. What each case ended with is kept under
`runs/attack/`; the file of results is written once all are through, and the exit status is 1 if any ended badly.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from attacks import corruptions, crash, files, interrupts, options, two
from attacks.stage import Stage
from attacks.verdict import BAD, GOOD, Verdict
from provenance import provenance

import grcd

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(grcd.__file__).parent
KINDS = {module.__name__.split(".")[-1]: module for module in (files, crash, corruptions, options, interrupts, two)}
EXAMPLES = 5  # of each way to end badly, in the results
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main() -> None:
    options = parsed()
    until = time.monotonic() + 60 * options.minutes
    rooms = ROOT / "runs" / "attack"
    path = rooms / f"stage-{os.getpid()}"
    try:
        records_of = attacked(options, Stage(path), rooms, until)
    finally:
        shutil.rmtree(path, ignore_errors=True)
    results = {**provenance("cpu"), "commit": commit(), "seed": options.seed, "kinds": counted(records_of)}
    print(table(results["kinds"]))
    missing = sum(record is None for records in records_of.values() for record in records)
    if missing:
        sys.exit(f"{missing} cases are still to come: the same command goes on")
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(any(kind[what] for kind in results["kinds"].values() for what in BAD))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=20)
    options = parser.parse_args()
    if unknown := set(options.only) - set(KINDS):
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    return options


def attacked(options: argparse.Namespace, stage: Stage, rooms: Path, until: float) -> dict[str, list]:
    """The record of every case, kind by kind; None for what there was no time for."""
    log = rooms / f"seed-{options.seed}-{version()}.jsonl"
    done = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        record = json.loads(line)
        done[record["kind"], record["case"]] = record
    cases = {
        kind: KINDS[kind].cases(stage, np.random.default_rng([options.seed, *kind.encode()])) for kind in options.only
    }
    todo = [(kind, case) for kind in cases for case in cases[kind] if (kind, case[0]) not in done]
    # In no order, so that an attack that runs out of time has seen something of everything.
    todo = [todo[i] for i in np.random.default_rng(options.seed).permutation(len(todo))]
    print(f"{len(todo)} cases to do, {len(done)} done before", file=sys.stderr)
    with (
        multiprocessing.get_context("fork").Pool(options.jobs, begin, (stage, rooms, until)) as pool,
        log.open("a") as file,
    ):
        for number, record in enumerate(pool.imap_unordered(one, todo)):
            if record is not None:
                done[record["kind"], record["case"]] = record
                file.write(json.dumps(record) + "\n")
                file.flush()
                for what, _ in record["bad"]:
                    print(f"{number}/{len(todo)} {what}: {record['kind']}: {record['case']}", file=sys.stderr)
    return {kind: [done.get((kind, case[0])) for case in cases[kind]] for kind in cases}


def begin(stage: Stage, rooms: Path, until: float) -> None:
    global STAGE, ROOM, UNTIL
    STAGE, ROOM, UNTIL = stage, rooms / f"room-{os.getpid()}", until


def one(task: tuple[str, tuple]) -> dict | None:
    """One case in an empty folder of its own; some are several attacks."""
    kind, case = task
    if time.monotonic() > UNTIL:
        return None
    shutil.rmtree(ROOM, ignore_errors=True)
    ROOM.mkdir(parents=True)
    began = processor_time()
    try:
        verdict = KINDS[kind].attack(STAGE, case, ROOM)
        verdicts = [verdict] if isinstance(verdict, Verdict) else verdict
    except Exception:  # of the attack itself: never to be taken for a good end
        verdicts = [Verdict("wrong exit code", f"the attack failed:\n{traceback.format_exc()}")]
    shutil.rmtree(ROOM, ignore_errors=True)
    bad = [verdict for verdict in verdicts if verdict.what in BAD]
    ends = Counter(verdict.what for verdict in verdicts)
    return {"kind": kind, "case": case[0], "ends": ends, "bad": bad, "seconds": round(processor_time() - began, 2)}


def processor_time() -> float:
    """Of this process and those it has waited for: other work on the machine does not count."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def counted(records_of: dict[str, list]) -> dict[str, dict]:
    """Of each kind the number of attacks, how they ended, and examples of bad ends."""
    kinds = {}
    for kind, records in records_of.items():
        done = [record for record in records if record is not None]
        ends = sum((Counter(record["ends"]) for record in done), Counter())
        examples = {what: [] for what in BAD if ends[what]}
        for record in done:
            for what, seen in record["bad"]:
                examples[what].append({"case": record["case"], "seen": seen.replace(str(ROOT), ".")})
        kinds[kind] = {"cases": ends.total(), **{what: ends[what] for what in (*GOOD, *BAD)}}
        kinds[kind] |= {"seconds": round(sum(record["seconds"] for record in done))}
        kinds[kind] |= {"examples": {what: some[:EXAMPLES] for what, some in examples.items()}}
    return kinds


def table(kinds: dict[str, dict]) -> str:
    columns = ["cases", *GOOD, *BAD, "seconds"]
    rows = [["", *columns], *([kind, *(str(ends[column]) for column in columns)] for kind, ends in kinds.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def commit() -> str:
    """What was attacked; with a plus if sources have changed since."""
    name, changed = git("rev-parse", "--short=12", "HEAD"), git("status", "--porcelain", ".")
    return name + ("+" if changed else "")


def version() -> str:
    """Of the sources: what is known of other ones does not count."""
    sources = [*sorted(PACKAGE.rglob("*.py")), *sorted(Path(__file__).parent.glob("attacks/*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=PACKAGE, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    if not ALONE.items() <= os.environ.items():  # pools of threads do not outlive a fork: none may have been made
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ALONE)
    torch.set_num_threads(1)
    main()
