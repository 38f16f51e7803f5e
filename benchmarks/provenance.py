"""What every file under ``results/`` that a script here wrote opens with: its command, and where it ran."""

from __future__ import annotations

import sys
from pathlib import Path

from grcd.provenance import record


def provenance(device: str) -> dict:
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return {"command": command, **record(device)}
