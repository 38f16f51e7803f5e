"""CSV files, read strictly: rows as long as the header, unique names, and text among numbers named by row and column.

The separator is a comma, a semicolon or a tab, whichever the header has most of. Numbers have decimal points. An empty
cell, `NA` or `NaN` in a number column is a gap. Columns of names and times are read as text, so that node `007` stays
`007` and a station called `NA` is a station.

Is the first row a header, or the first of the readings? A first name that is a date, or names that are all numbers, are
readings: taken for names they would be lost without a word. Yet METR-LA's sensors are called 773869, 767541, ..., and a
table of them may have no column of times. Whole numbers, each once, are names

- if the graph at hand has most of them, or in a graph's file as many rows follow (a matrix), or
- behind a first cell that is empty, as pandas writes an index, or
- if they number the columns from 0 or 1 up, or have leading zeros.

Anything else is refused, and the way out is easy: a first row with names.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InputError, counted, some
from ..splits import LABELS
from .refusals import unreadable

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SEPARATORS = (",", ";", "\t")
# What is NaN in a column of numbers. In a column of names or times it is text.
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-nan", "-NaN", "null", "NULL", "None"]
DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{8}T\d+|\d{1,2}:\d\d)(\D.*)?")


@dataclass(frozen=True)
class Columns:
    """A table by column, with the names as the file has them."""

    path: Path
    names: list[str]
    frame: DataFrame  # its columns are numbered

    def __len__(self) -> int:
        return len(self.frame)

    def text(self, name: str) -> np.ndarray:  # (rows,) of str
        """A column of names; every cell has to hold one."""
        cells = self.frame[self.names.index(name)].to_numpy(dtype=object)
        empty = [row for row, cell in enumerate(cells) if not isinstance(cell, str) or not cell.strip()]
        if empty:
            raise InputError(
                f"{self.path} with no {name!r} in row {empty[0] + 1} ({len(empty)} such rows)",
                "a name in every row",
                "complete or remove those rows",
            )
        return np.array([cell.strip() for cell in cells], dtype=str)

    def numbers(self, names: Iterable[str]) -> np.ndarray:  # (rows, columns) float64
        """Columns of numbers, with NaN for gaps."""
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

        places = [self.names.index(name) for name in names]
        for place in places:
            kind = self.frame[place].dtype
            if is_bool_dtype(kind) or not is_numeric_dtype(kind):
                raise self._text_among_numbers(place)
        return self.frame[places].to_numpy(np.float64, copy=True)

    def _text_among_numbers(self, place: int) -> InputError:
        from pandas import to_numeric

        cells = self.frame[place].astype(str)
        bad = to_numeric(cells, errors="coerce").isna() & ~self.frame[place].isna()
        row = int(np.argmax(bad.to_numpy())) if bad.any() else 0
        cell, name = cells.iloc[row], self.names[place]
        again = bad.sum() > len(cells) / 2 and cells.nunique() < len(cells) / 2
        of_nodes = "if it says which node a reading is of, call the columns time, node and value"
        return InputError(
            f"{cell!r} in row {row + 1}, column {name!r} of {self.path}",
            "a number or an empty cell",
            of_nodes if again and place > 0 and cell.strip().casefold() not in LABELS else _remedy(cell, name, place),
        )


def _remedy(cell: str, name: str, place: int) -> str:
    """What probably helps against text where a number should be."""
    plain = re.sub(r"[\s_'\u2019]", "", unicodedata.normalize("NFKC", cell).replace("\u2212", "-"))
    if is_number(plain):  # 1_000, 1 000 with any kind of space, a typesetter's minus
        return f"write it plainly: {plain}"
    if "," in plain and is_number(plain.replace(".", "").replace(",", ".")):
        return "write decimal points, not commas"
    if cell.strip().casefold() in LABELS:
        return f"if the column says which split a row belongs to: --split-by {name}"
    if place == 0:
        return "if it is a time, write it like 2024-03-01 00:05; a first column of dates is taken as the time"
    return "correct it, or leave it empty"


def read_columns(
    path: Path,
    text: Callable[[list[str]], Iterable[str]] = lambda names: (),
    node_ids: Collection[str] = (),
    square: bool = False,
) -> Columns:
    """A CSV file. ``text`` says, given the header, which columns hold names or times.

    Numbers in the header are names if they are ``node_ids`` of a graph; with ``square`` if as many rows follow.
    """
    import pandas

    try:
        names, separator, rows = _scanned(path, node_ids, square)
        if rows == 0:
            raise InputError(f"{path} with a header and no rows", "rows of values", "export the table again")
        kept = {names.index(name) for name in text(names)}
        places = range(len(names))
        frame = pandas.read_csv(
            path,
            sep=separator,
            header=None,
            skiprows=1,
            names=list(places),
            index_col=False,
            encoding="utf-8-sig",
            dtype=dict.fromkeys(kept, str),
            na_values={place: [] if place in kept else MISSING for place in places},
            keep_default_na=False,
            low_memory=False,
            # From 3.1 on pandas is exact without being told, and would rather not be.
            **({} if _version(pandas) >= (3, 1) else {"float_precision": "round_trip"}),
        )
    except UnicodeDecodeError:
        raise InputError(f"{path}, which is not UTF-8 text", "a CSV file in UTF-8", "save it again as UTF-8") from None
    except (csv.Error, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise unreadable(path, error) from None
    if len(frame) != rows:
        raise unreadable(path, f"{rows} rows by its lines, {len(frame)} by its quotes")
    for place in places:
        if place not in kept and not pandas.api.types.is_numeric_dtype(frame[place].dtype):
            frame[place] = _beyond_64_bits(frame[place])
    return Columns(path, names, frame)


def _version(package: ModuleType) -> tuple[int, ...]:
    return tuple(int(part) for part in package.__version__.split(".")[:2])


def _beyond_64_bits(cells: Series) -> Series:
    """Whole numbers so large that pandas leaves them as text or objects, as numbers; other text as it is."""
    text = cells.astype(str)
    gap = cells.isna() | text.isin(MISSING)  # in such a column pandas leaves them as they are
    whole = text[~gap].str.fullmatch(r"\s*[+-]?[0-9]+\s*").all()
    return text.mask(gap, "nan").map(float) if whole else cells


def _scanned(path: Path, node_ids: Collection[str], square: bool) -> tuple[list[str], str, int]:
    """Header, separator, and the number of rows, each as long as the header."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        if not first.strip():
            raise InputError(f"{path}, which is empty or begins with an empty line", "a header", "write names first")
        separator = max(SEPARATORS, key=first.count)
        header = [name.strip() for name in next(csv.reader([first], delimiter=separator, strict=True))]
        rows = 0
        for row in csv.reader(file, delimiter=separator, strict=True):
            if row and len(row) != len(header):
                if len(header) == 1:
                    refuse_header(path, header)
                raise InputError(
                    f"{counted(len(row), 'cell')} in row {rows + 1} of {path}",
                    f"{counted(len(header), 'cell')}, as its header has",
                    "complete the row, and look for stray separators",
                )
            rows += bool(row)
    matrix = square and rows == len(header) > 2
    refuse_header(path, header, header if matrix else node_ids)
    return header, separator, rows


# -- the header -----------------------------------------------------------------------------------------------------


def is_number(cell: str) -> bool:
    """As Python reads numbers, but not 1_000."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def refuse_header(path: Path, header: list[str], node_ids: Collection[str] = ()) -> None:
    """``node_ids`` are names that nodes have."""
    if len(header) == 1:
        raise InputError(
            f"{path} with one column in its first row, {header[0][:40]!r}",
            "a header, with columns separated by commas, semicolons or tabs",
            "save the table so, without lines above the header",
        )
    if DATE.fullmatch(header[0]):
        raise _no_header(path, "a date", header)
    names = header if header[0] else header[1:]
    if all(is_number(name) or name in MISSING for name in names) and not _whole_names(header, names, set(node_ids)):
        raise _no_header(path, "numbers", header)
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        raise InputError(
            f"{path} with column names that occur twice: {some(repr(name) for name in twice)}",
            "unique names",
            "rename or merge those columns",
        )


def _whole_names(header: list[str], names: list[str], node_ids: set[str]) -> bool:
    if not all(map(_is_whole, names)) or len(set(names)) < len(names):
        return False
    if not header[0] or 2 * len(node_ids.intersection(names)) >= len(names):
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
