"""Splits: which rows train, which validate, and which are held out.

    chronological   the first 70 % train, the next 10 % validate, the last 20 % test: the default. Rows of a file are
                    taken as ordered in time, by their timestamps or else as they stand
    random          the same shares, drawn by seed: for rows that have no order
    NAME            a column of the table that says train, val or test

or the table trains, and validation and test signals come from files of their own. Another share than 20 % may be held
out, down to two rows; of the others an eighth validates. A cap keeps that many rows of a
split, evenly spaced (``linspace(0, n - 1, cap)`` truncated to integers, as the paper's figures pin it down).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.errors import InputError, some

NAMES = ("train", "val", "test")
SHARES = {"train": 7, "val": 1, "test": 2}
LEAST = 2  # rows that are held out
LABELS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def cut(rows: int, names: Sequence[str] = NAMES, hold_out: float | None = None) -> dict[str, slice]:
    """Consecutive rows in the usual proportions; what rounding leaves goes to the last split. Or with another share of
    them in the last split, ``hold_out``, and the others in the usual proportions."""
    if hold_out is not None:
        kept = rows - max(LEAST, round(hold_out * rows))
        return cut(max(0, kept), names[:-1]) | {names[-1]: slice(max(0, kept), rows)}
    whole, start, cuts = sum(SHARES[name] for name in names), 0, {}
    for name in names:
        stop = rows if name == names[-1] else start + SHARES[name] * rows // whole
        cuts[name] = slice(start, stop)
        start = stop
    return cuts


def drawn(rows: int, seed: int, names: Sequence[str] = NAMES, hold_out: float | None = None) -> dict[str, np.ndarray]:
    """The same shares at random; inside a split rows keep their order."""
    from ..core.streams import Stream  # torch, which listing data can do without

    order = Stream(seed, "split").uniform(0, rows).argsort().numpy()
    return {name: np.sort(order[part]) for name, part in cut(rows, names, hold_out).items()}


def labelled(labels: np.ndarray, where: str) -> dict[str, np.ndarray]:
    """As a column of the table says."""
    folded = np.array([LABELS.get(str(label).strip().casefold(), "") for label in labels])
    strange = sorted({str(label) for label in labels[folded == ""]})
    absent = [name for name in NAMES if not (folded == name).any()]
    if strange or absent:
        raise InputError(
            f"a split column in {where} with {some(map(repr, strange)) or 'no rows for ' + ', '.join(absent)}",
            "train, val or test in every row, and each of them somewhere",
            "correct the column, or leave the split to --split-by chronological or random",
        )
    return {name: np.flatnonzero(folded == name) for name in NAMES}
