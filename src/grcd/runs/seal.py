"""Seals: a sha256 of what was written, kept beside it, so that what is read is what was written, or is refused.

A tensor's covers its type, its shape and its bytes, and is kept under its name: where the code lives that wrote it does
not matter. A record's covers its JSON in one spelling, so that white space and the order of entries do not matter.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor


def of_bytes(data: bytes) -> str:
    """In hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def of_record(record: dict) -> str:
    """Of what JSON can hold; entries that are not finite are refused."""
    return of_bytes(json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())


def of_tensors(tensors: dict[str, Tensor]) -> dict[str, str]:
    """By name."""
    return {name: _of_tensor(tensor) for name, tensor in tensors.items()}


def _of_tensor(tensor: Tensor) -> str:
    digest = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
    if tensor.numel():  # of nothing there are no bytes
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def broken(tensors: dict[str, Tensor], seals: dict[str, str]) -> str | None:
    """What is wrong with tensors that should have these seals; None if nothing is."""
    if set(tensors) != set(seals):
        return "other tensors than expected"
    wrong = [name for name, seal in of_tensors(tensors).items() if seal != seals[name]]
    return f"{wrong[0]} is not what was written" if wrong else None


def not_finite(tensors: dict[str, Tensor]) -> str | None:
    """The first tensor with entries that are no numbers; None if there is none."""
    return next((name for name, tensor in tensors.items() if not tensor.isfinite().all()), None)


def read_record(path: Path) -> dict:
    """A JSON object from a file, or a ValueError that says why not; whatever the file holds."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} in it")

    try:
        record = json.loads(path.read_bytes().decode(), parse_constant=refuse)
    except RecursionError:
        raise ValueError("brackets nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("no JSON object")
    return record
