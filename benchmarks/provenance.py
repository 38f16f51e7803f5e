"""What every file under ``results/`` that a script here wrote opens with: its command, and where it ran."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

from grcd.core.provenance import record


def provenance(device: str) -> dict:
    """The file it was written to is kept by name only: folders of a machine mean nothing elsewhere."""
    args = [f"results/{Path(arg).name}" if before == "--out" else arg for before, arg in pairwise(sys.argv)]
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *args])
    return {"command": command, **record(device)}
