"""The settings of both suites: which table, what is hidden of it, and which network answers.

imputation
    metr-la-point, metr-la-block    the public masks (``evaluation/protocol``), windows of 24 rows one after the other
    aqi36                           the benchmark's own mask in its test months, windows of 36 hours
    metr-la-sensors                 a tenth of the sensors, all the time
    metr-la-recent                  at 284 moments, the last two hours of a tenth of the sensors; four hours are seen
    metr-la-10 ... metr-la-90       so many per cent of all readings, at random
forecast
    metr-la                         DCRNN's: 12 rows in and 12 out, every test window
    beijing                         PM2.5, 24 hours from the 24 before, a test window every 7 hours

**What training sees.** As in PriSTI's protocol a network trains on all readings of the training rows, those that a mask
hides there too; validation rows choose by readings that are hidden from it. ``grcd-unseen`` trains without the readings
that any public mask of its table hides in the training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...core.streams import Stream
from ...data.loading import load_series
from ...data.series_dataset import SeriesDataset
from ...evaluation import hiding, protocol
from ...evaluation.pieces import Pieces

SHARES = tuple(range(10, 100, 10))  # per cent missing
RECENT, CONTEXT = 24, 48  # rows that are silent, and rows that are seen of the others
DAY = 24  # hours ahead of Beijing, and the past that is seen
STRIDE = 7  # hours between its windows: all times of the day come up
PM25 = 0  # the channel of Beijing that is scored


@dataclass(frozen=True)
class Setting:
    """A table, and what is asked of it."""

    table: str  # of TABLES
    pieces: Callable[[SeriesDataset], Pieces]
    steps: tuple[int, ...] = ()  # leads that are reported beside all of them
    unseen: bool = False  # whether its mask is hidden from ``grcd-unseen``


@dataclass(frozen=True)
class Variant:
    """How a network is trained."""

    unseen: bool = False
    channels: int | None = None  # the first so many; None: all
    calendar: str = "auto"


def _masked(data: SeriesDataset, kind: str) -> Pieces:
    return Pieces.covering(data.part("test"), _mask(data, kind)[data.rows("test")], TABLES["metr-la"])


def _mask(data: SeriesDataset, kind: str) -> np.ndarray:  # (rows, nodes, 1)
    rows, nodes, _ = data.series.values.shape
    return protocol.hidden((rows, nodes), kind)[:, :, None]


def _aqi36(data: SeriesDataset) -> Pieces:
    assert data.hidden is not None
    return Pieces.covering(data.part("test"), data.hidden[data.rows("test")], TABLES["aqi36"])


def _sensors(data: SeriesDataset) -> Pieces:
    test, steps = data.part("test"), TABLES["metr-la"]
    return Pieces.covering(test, hiding.hidden("sensors", test, steps, protocol.SEED), steps)


def _missing(data: SeriesDataset, share: int) -> Pieces:
    test = data.part("test")
    u = Stream(protocol.SEED, f"{share} % missing").uniform(0, test.values.size).view(test.values.shape).numpy()
    return Pieces.covering(test, u < share / 100, TABLES["metr-la"])


def _recent(data: SeriesDataset) -> Pieces:
    test = data.part("test")
    stops = np.arange(CONTEXT, len(test) + 1, RECENT)
    nodes = test.values.shape[1]
    u = Stream(protocol.SEED, "recent").uniform(range(len(stops)), nodes).numpy()
    silent = u.argsort(axis=1).argsort(axis=1) < max(1, round(hiding.SENSORS * nodes))  # (stops, nodes)
    hidden = np.zeros((len(stops), CONTEXT, nodes, test.values.shape[2]), dtype=bool)
    hidden[:, -RECENT:] = silent[:, None, :, None]
    return Pieces.ends(test, stops, CONTEXT, hidden)


def _dcrnn(data: SeriesDataset) -> Pieces:
    return Pieces.ahead(data.series, protocol.forecast_windows(len(data.series)), protocol.LEADS[-1])


def _beijing(data: SeriesDataset) -> Pieces:
    rows = protocol.forecast_windows(len(data.series), DAY, DAY)[::STRIDE]
    return Pieces.ahead(data.series, rows, DAY, PM25)


TABLES = {"metr-la": 24, "aqi36": 36, "beijing": 2 * DAY}  # rows of a window
IMPUTATION = {
    "metr-la-point": Setting("metr-la", partial(_masked, kind="point"), unseen=True),
    "metr-la-block": Setting("metr-la", partial(_masked, kind="block"), unseen=True),
    "aqi36": Setting("aqi36", _aqi36, unseen=True),
    "metr-la-sensors": Setting("metr-la", _sensors),
    "metr-la-recent": Setting("metr-la", _recent),
    **{f"metr-la-{share}": Setting("metr-la", partial(_missing, share=share)) for share in SHARES},
}
FORECAST = {
    "metr-la": Setting("metr-la", _dcrnn, protocol.LEADS),
    "beijing": Setting("beijing", _beijing, (1, 6, 12, 24)),
}
SETTINGS = {"imputation": IMPUTATION, "forecast": FORECAST}
VARIANTS = {
    "grcd": Variant(),
    "grcd-unseen": Variant(unseen=True),
    "grcd-one-channel": Variant(channels=1),
    "grcd-no-calendar": Variant(calendar="none"),
}


def load(table: str, variant: Variant) -> SeriesDataset:
    """The table as a network of this variant is trained on it; test rows are whole, what is hidden of them is asked."""
    data = load_series(table)
    if variant.channels is not None:
        keep = slice(variant.channels)
        series = replace(data.series, values=data.series.values[:, :, keep])
        data = replace(data, series=series, channels=data.channels[keep], units=data.units[keep])
    if variant.unseen:
        data = replace(data, series=replace(data.series, values=_without(data)))
    return data


def _without(data: SeriesDataset) -> np.ndarray:  # (rows, nodes, channels)
    """The readings without those that a public mask hides in the training rows."""
    masks = [_mask(data, kind) for kind in protocol.MASKS] if data.hidden is None else [data.hidden]
    train = np.zeros(len(data.series), dtype=bool)
    train[data.rows("train")] = True
    return np.where(train[:, None, None] & np.any(masks, axis=0), np.nan, data.series.values)
