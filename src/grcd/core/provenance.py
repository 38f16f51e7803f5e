"""Where a number comes from: the machine, the versions, the date."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import numpy as np
import torch


def record(device: str | torch.device) -> dict:
    """What every measured number is kept with."""
    return {
        "date": datetime.date.today().isoformat(),
        "hardware": hardware(str(device)),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }


def hardware(device: str) -> str:
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
