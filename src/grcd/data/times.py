"""Timestamps: ISO 8601 (2012-03-01 00:05, 2012-03-01T00:05:00+01:00) or plain numbers; sorted, and each only once.

Times are used to order rows. With one offset from UTC throughout they are kept as UTC; with several the file mixes
time zones, or a change to summer time, and has to say what it means.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError, InputWarning, some

NAMES = ("time", "timestamp", "timestamps", "datetime", "date")
OFFSET = r"[T ]\s*[0-9].*?\s*(Z|[+-][0-9:]+)$"  # behind a time of day only: 2024-01-02 is no offset of -02


def is_time(name: str) -> bool:
    return name.strip().casefold() in NAMES


def parsed(values: ArrayLike, where: str) -> np.ndarray:  # (rows,) datetime64[ns], int64 or float64
    """Times from text, numbers or dates; an error names the first that is none."""
    cells = np.asarray(values)
    if cells.dtype.kind == "M":
        _refuse(np.isnat(cells), cells, where)
        return _nanoseconds(cells, where)
    if cells.dtype.kind in "iuf":
        _refuse(~np.isfinite(cells), cells, where)
        return _numbers(cells)
    if cells.dtype.kind in "USO":
        return _from_text(cells, where)
    raise InputError(f"times of type {cells.dtype} in {where}", "dates, numbers or text", "save them as one of these")


def _from_text(cells: np.ndarray, where: str) -> np.ndarray:
    import pandas

    text = pandas.Series([_text(cell) for cell in cells.tolist()], dtype=str)
    # pandas would read `now` and `today` off the clock.
    _refuse(~text.str.match("[0-9+.-]").to_numpy(bool), cells, where)
    numbers = pandas.to_numeric(text, errors="coerce").to_numpy()
    if np.isfinite(numbers).all():
        return _numbers(numbers)
    _refuse_mixed_zones(text, where)
    times = pandas.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
    _refuse((times.isna() | ~text.str.match("[0-9]")).to_numpy(bool), cells, where)
    return _nanoseconds(times, where)


def _text(cell: object) -> str:
    """Empty for what is no text."""
    cell = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    return cell.strip() if isinstance(cell, str) else ""


def _numbers(values: np.ndarray) -> np.ndarray:
    """Whole numbers stay whole: nanoseconds since 1970 have more digits than a float64."""
    whole = values.dtype.kind in "iu" and values.max(initial=0) <= np.iinfo(np.int64).max
    return values.astype(np.int64 if whole else np.float64)


def as_text(times: np.ndarray) -> np.ndarray:
    """Days, or dates to the minute where not all are midnight, or finer where they are; numbers stay as they are.

    Of one time alone nothing tells that its rows are days.
    """
    if not np.issubdtype(np.asarray(times).dtype, np.datetime64):
        return times
    import pandas

    index = pandas.DatetimeIndex(times)
    finer = ({"": "D"} if len(index) > 1 else {}) | {" %H:%M": "min", " %H:%M:%S": "s"}
    form = next((form for form, unit in finer.items() if (index.floor(unit) == index).all()), " %H:%M:%S.%f")
    return index.strftime(f"%Y-%m-%d{form}").to_numpy()


def in_order(times: np.ndarray, where: str) -> tuple[np.ndarray | None, np.ndarray]:
    """The order that sorts the times, None if they are sorted already, and the sorted times; a time given twice is
    refused."""
    order = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    ordered = times if order is None else times[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        raise InputError(
            f"times that occur twice in {where}: {some(ordered[again], 3)}",
            "each time once",
            "merge those rows, or for a long table write one row a time and node",
        )
    return order, ordered


def _refuse(bad: np.ndarray, cells: np.ndarray, where: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{str(cells[row]).strip()!r} as time in row {row + 1} of {where}",
            "a time like 2012-03-01 00:05:00, or a number",
            "write times in ISO 8601: year-month-day hour:minute",
        )


def _refuse_mixed_zones(series: Any, where: str) -> None:
    """Several offsets are refused; one is said."""
    offsets = series.str.extract(OFFSET, expand=False).str.replace("^([+-])([0-9])$", r"\g<1>0\2", regex=True)
    offsets = offsets.str.replace(":", "").str.ljust(5, "0")  # +1, +01, +0100 and +01:00 are one
    zones = offsets.replace({"Z0000": "+0000", "-0000": "+0000"}).fillna("none").unique()
    if len(zones) > 1:
        raise InputError(
            f"several offsets from UTC among the times of {where}: {some(zones)}",
            "one time zone",
            "convert the times to UTC",
        )
    if zones[0] not in ("none", "+0000"):
        note = f"the times of {where}, {zones[0]} from UTC, are kept as UTC, and so is their time of day:"
        do = "leave the offset out where readings follow local habits"
        warnings.warn(f"{note} {do}", InputWarning, stacklevel=2)


def _nanoseconds(times: Any, where: str) -> np.ndarray:
    import pandas

    try:
        index = pandas.DatetimeIndex(times)
        index = index.tz_convert("UTC").tz_localize(None) if index.tz is not None else index
        return index.as_unit("ns").to_numpy()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"times in {where} that cannot be kept ({error})", "years 1678 to 2262", "correct them"
        ) from None
