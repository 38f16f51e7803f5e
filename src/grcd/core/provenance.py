"""Where a number comes from: the machine, the versions, the date."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def record(device: str | torch.device) -> dict:
    """What every measured number is kept with: date, hardware and versions."""
    everything = versions()
    return {
        "date": datetime.date.today().isoformat(),
        "hardware": hardware(str(device)),
        "versions": {name: everything[name] for name in ("python", "torch", "numpy")},
    }


def versions() -> dict[str, str]:
    """What runs here, by package: for the record, not for comparison."""
    import numpy as np
    import torch

    packages = {name: version(name) for name in ("grcd", "scipy", "scikit-learn")}
    return {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__, **packages}


def version(package: str) -> str:
    """Of an installed package; "unknown" for one that runs from a source tree."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def hardware(device: str) -> str:
    """The name of the GPU, or of the CPU with its cores and threads."""
    import torch  # not before: `grcd --version` must not wait for it

    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    return f"{_cpu_name()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
