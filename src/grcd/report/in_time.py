"""Do rows follow each other in time, and does the past help? Facts of a series for the inspection.

**How far the past helps** is the autocorrelation of readings at a few lags. **What the calendar explains** is the share
of the variance of held-out readings that a mean by time of day and weekend takes away from each column's own mean.
**A window** is suggested: the longest in ``WINDOWS`` of which what the calendar leaves over is correlated by ``HELPS``
or more at half its length, that has no more than ``MOST`` readings, and that fits ten times into the longest stretch of
rows without a break. Where even neighbouring rows have less than ``LEAST`` it is one row, or a short one if the
calendar explains ``SHARE`` or more: single rows do not know what time it is. Whether a training takes what is
suggested, is decided in ``window``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..core.errors import counted
from ..core.rows import evenly
from ..data.clock import Clock
from ..data.series import Series, readable
from ..references.calendar import CalendarMean

ENTRIES = 1 << 22  # readings looked at, of nodes evenly chosen
WINDOWS = (2, 3, 4, 6, 8, 12, 16, 24, 36)
HELPS, LEAST, MOST = 0.3, 0.1, 5_000
SHORT, SHARE = 4, 0.02
LAGS = {"1h": 3600, "6h": 6 * 3600, "1d": 86_400, "1week": 7 * 86_400}  # beside one row
ROW_LAGS = (1, 3, 10, 30)  # without dates
TRAINING = 0.7  # share of the rows, the first ones, that the calendar's mean is fitted to


def facts(series: Series, channels: Sequence[str], units: Sequence[str]) -> dict[str, Any]:
    """Interval, breaks, autocorrelation, what the calendar explains, a window; and what is missing by channel."""
    some, lags = _some(series), _lags(series)
    explained, left = _calendar(some)
    return {
        "interval": None if series.interval is None else readable(series.interval),
        "breaks": len(series.breaks),
        "longest_stretch": _longest(series),
        "channels": {
            name: {"unit": unit or None, "missing": float(np.isnan(part).mean()), "range": _range(part)}
            for name, unit, part in zip(channels, units, np.moveaxis(series.values, -1, 0), strict=True)
        },
        "autocorrelation": dict(zip(lags, _mean(some, np.array([*lags.values()], dtype=int)), strict=True)),
        "calendar_explains": explained,
        "window_suggested": _window(left, _longest(series), series.values[0].size, explained or 0.0),
    }


def suggested(series: Series) -> int:
    """The window alone."""
    explained, left = _calendar(_some(series))
    return _window(left, _longest(series), series.values[0].size, explained or 0.0)


def _some(series: Series) -> Series:
    """As many nodes as are looked at."""
    nodes, channels = series.values.shape[1:]
    chosen = evenly(nodes, max(1, ENTRIES // max(1, len(series) * channels)))
    return Series(series.values[:, chosen].astype(np.float64), series.times, series.borders)


def _longest(series: Series) -> int:
    return max(s.stop - s.start for s in series.stretches)


def _range(values: np.ndarray) -> list[float] | None:
    seen = values[~np.isnan(values)]
    return [float(seen.min()), float(seen.max())] if seen.size else None


def _lags(series: Series) -> dict[str, int]:
    """Numbers of rows, by what they are called: at most a third of all."""
    lags = {f"{rows} row{'s' * (rows > 1)}": rows for rows in ROW_LAGS}
    if isinstance(series.interval, np.timedelta64):
        step = series.interval / np.timedelta64(1, "s")
        lags = {readable(series.interval): 1}
        lags |= {name: round(length / step) for name, length in LAGS.items() if length > step and not length % step}
    return {name: lag for name, lag in lags.items() if lag <= len(series) // 3}


def _mean(series: Series, lags: np.ndarray) -> list[float | None]:
    """The autocorrelation over all channels that have one."""
    values = series.autocorrelation(lags).tolist() if len(lags) else []
    seen = [[each for each in row if each == each] for row in values]
    return [float(np.mean(row)) if row else None for row in seen]


def _calendar(series: Series) -> tuple[float | None, Series]:
    """The share of held-out variance that the calendar explains, None if there is none; and what it leaves over."""
    clock, cut = Clock.of(series), round(TRAINING * len(series))
    if series.times is None or clock.slots * clock.kinds == 1 or cut < 2 or cut == len(series):
        return None, series
    slot, kind = (torch.from_numpy(each) for each in (clock.slot(series.times), clock.kind(series.times)))
    x = torch.from_numpy(series.values.reshape(len(series), -1))
    mean = CalendarMean.fit(x[:cut], slot[:cut], kind[:cut], clock.slots, clock.kinds, max(0.5, clock.slots / 144))
    left = ((x - mean.rows(slot, kind)[0]) / mean.sd)[cut:].square().nansum()
    total = ((x - mean.mean) / mean.sd)[cut:].square().nansum()
    rest = mean.scores(x, slot, kind).numpy().reshape(series.values.shape)
    share = 1 - float(left / total) if total > 0 else None
    return share, Series(rest, series.times, series.borders)


def _window(left: Series, longest: int, columns: int, explained: float) -> int:
    lags = np.array([1, *(steps // 2 for steps in WINDOWS)])
    values = [each or 0.0 for each in _mean(left, lags[lags < len(left)])]
    if not values or values[0] < LEAST:
        return SHORT if explained >= SHARE and SHORT * columns <= MOST and longest >= 10 * SHORT else 1
    halves = zip(WINDOWS, values[1:], strict=False)
    fit = [steps for steps, value in halves if value >= HELPS and steps * columns <= MOST and 10 * steps <= longest]
    return max(fit, default=2 if 2 * columns <= MOST and longest >= 20 else 1)


def lines(f: dict[str, Any]) -> list[tuple[str, str]]:
    """For the screen."""
    if not f:
        return []
    shown = [] if len(f["channels"]) < 2 else _channel_lines(f["channels"])
    known = [f"{value:.2f} after {lag}" for lag, value in f["autocorrelation"].items() if value is not None]
    shown.append(("past", f"correlation {', '.join(known)}" if known else "no correlation can be told"))
    if f["calendar_explains"] is not None:
        share = f"{f['calendar_explains']:.0%} of held-out variance" if f["calendar_explains"] > 0 else "nothing"
        shown.append(("calendar", f"time of day and weekend explain {share}"))
    window = f["window_suggested"]
    if "window_why" in f:
        return [*shown, ("window", f"{counted(window, 'row')}: {f['window_why']}")]
    helps = f"{window} rows suggested" if window > 1 else "none suggested: neither the past nor the calendar helps"
    return [*shown, ("window", helps)]


def _channel_lines(channels: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Two to a line."""
    texts = []
    for name, each in channels.items():
        low, high = each["range"] or (np.nan, np.nan)
        texts.append(
            f"{name} {low:.4g} to {high:.4g} {each['unit'] or ''}".rstrip() + f", {each['missing']:.1%} missing"
        )
    pairs = ["; ".join(texts[k : k + 2]) for k in range(0, len(texts), 2)]
    return [("channels" if not place else "", pair) for place, pair in enumerate(pairs)]
