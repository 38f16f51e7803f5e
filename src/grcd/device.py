"""Where the network runs, and with which arithmetic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .errors import InputError


def find(name: str = "auto") -> torch.device:
    """A device by name; "auto" is the GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r}", "auto, cpu or cuda", "use auto, or leave the option out") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r}", "auto, cpu or cuda", "use cpu")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device {name!r}, but torch {torch.__version__} sees no GPU",
            "a CUDA device",
            "use cpu, or install a CUDA build of torch",
        )
    return device


@contextmanager
def arithmetic() -> Iterator[None]:
    """TF32 for the network's products on a GPU, and kernels that give the same bits every time.

    References, processes and solvers work in float64 and are not touched by it.
    """
    # Must be set before cuBLAS starts; harmless where it is set or started already.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    precision = torch.get_float32_matmul_precision()
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(deterministic)
