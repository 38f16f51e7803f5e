"""Where the network runs, and with which arithmetic."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from . import memory
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


def wait(device: torch.device) -> None:
    """Until it has done all that it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def room(device: torch.device) -> float:
    """Bytes of memory that a device has."""
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else memory.total()


@contextmanager
def arithmetic(precision: str = "highest") -> Iterator[None]:
    """Kernels that give the same bits every time, and the precision of the network's float32 products on a GPU.

    "highest" is float32 throughout, "high" TF32. References, processes and solvers work in float64 either way.
    """
    # Must be set before cuBLAS starts; harmless where it is set or started already.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()
    switches: Any = torch.utils.deterministic
    fill, switches.fill_uninitialized_memory = (
        switches.fill_uninitialized_memory,
        False,  # would write every buffer twice, for programs that read what they never wrote
    )
    torch.set_float32_matmul_precision(precision)
    _deterministic(True)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        _deterministic(before[1])
        switches.fill_uninitialized_memory = fill


def _deterministic(wanted: bool) -> None:
    """As `torch.use_deterministic_algorithms`; without a GPU not through it: it loads the compiler, for a second."""
    if torch.cuda.is_available():
        torch.use_deterministic_algorithms(wanted)
    else:
        torch.set_deterministic_debug_mode("error" if wanted else "default")


def captured(work: Callable[[], object]) -> Callable[[], None]:
    """``work`` as a CUDA graph: the same kernels on the same buffers, launched in one go.

    The graph reads and writes what ``work`` refers to, but owns none of it: whoever holds the result holds ``work``.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries set themselves up in the first calls, which may not be captured
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with _no_collection(), torch.cuda.graph(graph):
        work()
    return partial(_replayed, graph, work)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage is collected before, not meanwhile: an old graph that is freed during a capture spoils the capture."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _replayed(graph: torch.cuda.CUDAGraph, work: Callable[[], object]) -> None:
    graph.replay()
