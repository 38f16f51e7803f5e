"""Is the first row of a CSV file a header, or the first of the readings?

A first name that is a date, or names that are all numbers, are readings: taken for names they would be lost without a
word. Yet METR-LA's sensors are called 773869, 767541, ..., and a table of them may have no column of times. Whole
numbers, each once, are names

- if the graph at hand has most of them, or in a graph's file as many rows follow (a matrix), or
- behind a first cell that is empty, as pandas writes an index, or
- if they number the columns from 0 or 1 up, or have leading zeros.

Anything else is refused, and the way out is easy: a first row with names.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ...core.errors import InputError, some

GAPS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-nan", "-NaN", "null", "NULL", "None"]
DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{8}T\d+|\d{1,2}:\d\d)(\D.*)?")


def is_number(cell: str) -> bool:
    """As Python reads numbers, but not 1_000."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def refuse_header(path: Path, header: list[str], known: Collection[str] = ()) -> None:
    """``known`` are names that nodes have."""
    if len(header) == 1:
        raise InputError(
            f"{path} with one column in its first row, {header[0][:40]!r}",
            "a header, with columns separated by commas, semicolons or tabs",
            "save the table so, without lines above the header",
        )
    if DATE.fullmatch(header[0]):
        raise _no_header(path, "a date", header)
    names = header if header[0] else header[1:]
    if all(is_number(name) or name in GAPS for name in names) and not _whole_names(header, names, set(known)):
        raise _no_header(path, "numbers", header)
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(
            f"{path} with column names that occur twice: {some(repr(name) for name in twice)}",
            "unique names",
            "rename or merge those columns",
        )


def _whole_names(header: list[str], names: list[str], known: set[str]) -> bool:
    if not all(map(_is_whole, names)) or len(set(names)) < len(names):
        return False
    if not header[0] or 2 * len(known.intersection(names)) >= len(names):
        return True
    numbered = any(names == [str(first + place) for place in range(len(names))] for first in (0, 1))
    return (numbered and len(names) > 2) or any(name.startswith("0") and len(name) > 1 for name in names)


def _is_whole(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _no_header(path: Path, what: str, header: list[str]) -> InputError:
    return InputError(
        f"{path} with {what} in its first row, where names should be: {some(map(repr, header), 3)}",
        "a header: the names of the columns",
        "add a first row with names, e.g. time,north,south; numbers are names beside a column `time`, "
        "or of a graph that has them (--graph)",
    )
