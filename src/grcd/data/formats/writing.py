"""Signals into files, by ending, whole or not at all: the table of formats. Each writes an ``Output``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.errors import InputError, InputWarning, some, unknown
from ..written_times import PLAIN, TimeColumn
from . import csv_signals, netcdf, npz, parquet
from .output import Output

FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet takes for one by its first letter


class Writer(NamedTuple):
    """How a format is written, and what has to be installed for it, which is refused where it is not."""

    write: Callable[[Path, Output], None]
    need: Callable[[], object] = lambda: None


WRITERS: dict[str, Writer] = {
    ".npz": Writer(npz.write),
    ".csv": Writer(csv_signals.write),
    ".parquet": Writer(parquet.write, parquet.need),
    ".nc": Writer(netcdf.write, netcdf.need),
}


def check_writable_ending(path: str | Path) -> None:
    """Before signals are made: is there a writer for this ending, and is what it needs installed?"""
    _writer(path).need()


def write_signals(
    path: str | Path,
    signals: np.ndarray,  # (n, nodes)
    node_ids: tuple[str, ...],
    unit: str = "",
    times: np.ndarray | None = None,  # (n,)
    clock: TimeColumn = PLAIN,  # what a table's column of them is called, and how they are written
) -> None:
    """Signals with their node names, and their times if they have any."""
    refuse_not_finite(signals, path)
    write(path, Output(signals, tuple(node_ids), unit, times, clock=clock))


def write(path: str | Path, output: Output) -> None:
    """In the format of the ending."""
    _writer(path).write(Path(path), output)
    warn_of_formulas(path, output.node_ids)


def _writer(path: str | Path) -> Writer:
    ending = Path(path).suffix
    if ending not in WRITERS:
        raise unknown("ending of an output file", ending, WRITERS)
    return WRITERS[ending]


def refuse_not_finite(values: np.ndarray, path: str | Path, lacking: np.ndarray | None = None) -> None:
    """What was generated may be no number where a network diverged or a file was damaged: it is never written.

    ``lacking`` (nodes, channels) says which nodes have no such channel: there is nothing to be written of them.
    """
    wanted = np.isfinite(values) if lacking is None else np.isfinite(values) | (np.isnan(values) & lacking)
    if wrong := int(values.size - wanted.sum()):
        raise InputError(
            f"{wrong} of {values.size} numbers for {path} that are not finite",
            "finite ones",
            "take the settings of training and sampling nearer to their defaults, or train again",
        )


def warn_of_formulas(path: str | Path, names: Iterable[str]) -> None:
    """Names are written as they are; whoever opens the table in a spreadsheet should know what that makes of some."""
    formulas = [name for name in names if str(name).startswith(FORMULAS)]
    if formulas and Path(path).suffix == ".csv":
        note = (
            f"names in {Path(path).name} start like formulas ({some(formulas, 3)}): a spreadsheet would compute them;"
        )
        warnings.warn(f"{note} import such columns as text", InputWarning, stacklevel=4)
