"""Timestamps: ISO 8601 (2012-03-01 00:05, 2012-03-01T00:05:00+01:00) or plain numbers; sorted, and each only once.

Times are used to order rows. With one offset from UTC throughout they are kept as UTC; with several the file mixes
time zones, or a change to summer time, and has to say what it means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError, some

NAMES = ("time", "timestamp", "timestamps", "datetime", "date")
OFFSET = r"\d(Z|[+-]\d{2}:?\d{2})$"


def is_time(name: str) -> bool:
    return name.strip().casefold() in NAMES


def parsed(cells: Sequence, where: str) -> np.ndarray:  # datetime64[ns] or float64
    """Times from text, numbers or dates; an error names the first that is none."""
    import pandas

    series = pandas.Series(np.asarray(cells))
    if pandas.api.types.is_datetime64_any_dtype(series.dtype):
        _refuse(series.isna(), series, where)
        return _nanoseconds(series, where)
    numbers = pandas.to_numeric(series, errors="coerce").astype(np.float64)
    if np.isfinite(numbers).all():
        return numbers.to_numpy()
    series = series.astype(str).str.strip()
    _refuse_mixed_zones(series, where)
    times = pandas.to_datetime(series, format="ISO8601", utc=True, errors="coerce")
    _refuse(times.isna(), series, where)
    return _nanoseconds(times, where)


def in_order(times: np.ndarray, where: str) -> tuple[np.ndarray | None, np.ndarray]:
    """The order that sorts the times, None if they are sorted already, and the sorted times; a time given twice is
    refused."""
    order = None if (np.diff(times) >= np.zeros((), np.diff(times).dtype)).all() else np.argsort(times, kind="stable")
    ordered = times if order is None else times[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        raise InputError(
            f"times that occur twice in {where}: {some(ordered[again], 3)}",
            "each time once",
            "merge those rows, or for a long table write one row a time and node",
        )
    return order, ordered


def _refuse(bad, series, where: str) -> None:
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        raise InputError(
            f"{str(series.iloc[row])!r} as time in row {row + 1} of {where}",
            "a time like 2012-03-01 00:05:00, or a number",
            "write times in ISO 8601: year-month-day hour:minute",
        )


def _refuse_mixed_zones(series, where: str) -> None:
    found = series.str.extract(OFFSET, expand=False).replace({"Z": "+00:00"}).str.replace(":", "")
    zones = found.fillna("none").unique()
    if len(zones) > 1:
        raise InputError(
            f"several offsets from UTC among the times of {where}: {some(zones)}",
            "one time zone",
            "convert the times to UTC",
        )


def _nanoseconds(times, where: str) -> np.ndarray:
    import pandas

    try:
        index = pandas.DatetimeIndex(times)
        index = index.tz_convert("UTC").tz_localize(None) if index.tz is not None else index
        return index.as_unit("ns").to_numpy()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"times in {where} that cannot be kept ({error})", "years 1678 to 2262", "correct them"
        ) from None
