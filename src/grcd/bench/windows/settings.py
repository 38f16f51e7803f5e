"""The settings of both suites: which table, what is hidden of it, and which network answers.

imputation
    metr-la-point, metr-la-block    the public masks (``evaluation/protocol``), windows of 24 rows
    aqi36                           the benchmark's own mask in its test months, windows of 36 hours
    beijing                         a quarter of the readings of PM2.5; of the other variables nothing is hidden
    metr-la-sensors                 a tenth of the sensors, all the time
    metr-la-recent                  the last two hours of a tenth of the sensors, every 6 hours or so; four are seen
    metr-la-10 ... metr-la-90       so many per cent of all readings, at random
    metr-la-blocks-10, -50, -90     the same in spells as long as the protocol's, 12 to 47 rows, one length a sensor
    metr-la-sensors-10, -50, -90    so many per cent of the sensors, all the time
forecast
    metr-la                         DCRNN's: 12 rows in and 12 out, every test window
    beijing                         PM2.5, 24 hours from the 24 before, a test window every 7 hours

**Windows overlap** by a twelfth of their rows at either end: there less is known of a reading, and the next window says
it better (reference alone, METR-LA's validation rows, points: MAE 1.964 one after the other, 1.946 with 2 of 24 rows,
1.943 with 6). What is scored is what the protocol scores. Of our own gaps and of Beijing's every third window is.

**What training sees.** As in PriSTI's protocol a network trains on all readings of the training rows, those that a mask
hides there too. It is chosen by validation readings that masks of our own hide from it, out of all that were recorded.
``grcd-unseen`` is shown neither in training nor in validation rows what any public mask of its table hides there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...core.streams import Stream
from ...data.loading import load_series
from ...data.series import Series
from ...data.series_dataset import SeriesDataset
from ...evaluation import hiding, protocol
from ...evaluation.pieces import Pieces

SHARES, FEW = tuple(range(10, 100, 10)), (10, 50, 90)  # per cent missing: of points; in blocks, and of sensors
SPELL = (12, 36)  # rows of a spell: the least, and how many lengths there are from there on
RECENT, CONTEXT, PAUSE = 24, 48, 71  # rows that are silent, that are seen of the others, and from one end to the next
MARGIN = 12  # a window's rows over those at either end that the next window answers
EVERY = 3  # windows of our own gaps, of which one is scored
QUARTER = 0.25  # of PM2.5 in Beijing is hidden
DAY = 24  # hours ahead of Beijing, and the past that is seen
STRIDE = 7  # hours between its windows: all times of the day come up
PM25 = 0  # the channel of Beijing that is scored
Hide = Callable[[tuple[int, ...], float, str], np.ndarray]  # (rows, nodes, channels), a share, a purpose -> where


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


def _covering(table: str, test: Series, hidden: np.ndarray, channel: int | None = None) -> Pieces:
    steps = TABLES[table]
    return Pieces.covering(test, hidden, steps, steps // MARGIN, channel)


def _masked(data: SeriesDataset, kind: str) -> Pieces:
    return _covering("metr-la", data.part("test"), _mask(data, kind)[data.rows("test")])


def _mask(data: SeriesDataset, kind: str) -> np.ndarray:  # (rows, nodes, 1)
    rows, nodes, _ = data.series.values.shape
    return protocol.hidden((rows, nodes), kind)[:, :, None]


def _aqi36(data: SeriesDataset) -> Pieces:
    assert data.hidden is not None
    return _covering("aqi36", data.part("test"), data.hidden[data.rows("test")])


def _sensors(data: SeriesDataset) -> Pieces:
    test = data.part("test")
    hidden = hiding.hidden("sensors", test, TABLES["metr-la"], protocol.SEED)
    return _covering("metr-la", test, hidden).every(EVERY)


def _scattered(shape: tuple[int, ...], share: float, purpose: str) -> np.ndarray:  # of bool
    return Stream(protocol.SEED, purpose).uniform(0, math.prod(shape)).view(shape).numpy() < share


def _in_blocks(shape: tuple[int, ...], share: float, purpose: str) -> np.ndarray:  # (rows, nodes, 1) of bool
    """Spells begin so often that each reading is outside all of them with a probability of ``1 - share``, the first
    ones before the table does."""
    (rows, nodes, _), random, (least, lengths) = shape, Stream(protocol.SEED, purpose), SPELL
    length = least + random.integers(1, nodes, lengths).numpy()
    first = least + lengths  # rows before the table
    u = random.uniform(0, (first + rows) * nodes).view(first + rows, nodes).numpy()
    begun = (u < 1 - (1 - share) ** (1 / length)).cumsum(axis=0)  # so many up to and with a row
    row, node = np.arange(first, first + rows)[:, None], np.arange(nodes)
    return (begun[row, node] > begun[row - length, node])[:, :, None]


def _of_sensors(shape: tuple[int, ...], share: float, purpose: str) -> np.ndarray:  # of bool
    rank = Stream(protocol.SEED, purpose).uniform(0, shape[1]).argsort().argsort().numpy()
    return np.broadcast_to((rank < round(share * shape[1]))[:, None], shape)


def _missing(data: SeriesDataset, family: str, share: int) -> Pieces:
    test, (hide, what) = data.part("test"), HIDDEN[family]
    return _covering("metr-la", test, hide(test.values.shape, share / 100, f"{share} % {what}")).every(EVERY)


def _quarter(data: SeriesDataset) -> Pieces:
    test = data.part("test")
    hidden = np.zeros(test.values.shape, dtype=bool)
    hidden[..., PM25] = _scattered(hidden.shape[:2], QUARTER, "PM2.5")
    return _covering("beijing", test, hidden, PM25).every(EVERY)


def _recent(data: SeriesDataset) -> Pieces:
    test = data.part("test")
    stops = np.arange(CONTEXT, len(test) + 1, PAUSE)
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


BY_SHARE = {  # by family of gaps: settings by per cent missing
    "points": {share: f"metr-la-{share}" for share in SHARES},
    "blocks": {share: f"metr-la-blocks-{share}" for share in FEW},
    "sensors": {share: f"metr-la-sensors-{share}" for share in FEW},
}
HIDDEN: dict[str, tuple[Hide, str]] = {  # by those families; and what their masks are keyed by
    "points": (_scattered, "missing"),
    "blocks": (_in_blocks, "in blocks"),
    "sensors": (_of_sensors, "of sensors"),
}
TABLES = {"metr-la": 24, "aqi36": 36, "beijing": 2 * DAY}  # rows of a window
IMPUTATION = {
    "metr-la-point": Setting("metr-la", partial(_masked, kind="point"), unseen=True),
    "metr-la-block": Setting("metr-la", partial(_masked, kind="block"), unseen=True),
    "aqi36": Setting("aqi36", _aqi36, unseen=True),
    "beijing": Setting("beijing", _quarter),
    "metr-la-sensors": Setting("metr-la", _sensors),
    "metr-la-recent": Setting("metr-la", _recent),
    **{
        name: Setting("metr-la", partial(_missing, family=family, share=share))
        for family, names in BY_SHARE.items()
        for share, name in names.items()
    },
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
    """The readings without those that a public mask hides in training and validation rows."""
    masks = [_mask(data, kind) for kind in protocol.MASKS] if data.hidden is None else [data.hidden]
    rows = np.zeros(len(data.series), dtype=bool)
    rows[data.rows("train")] = rows[data.rows("val")] = True
    return np.where(rows[:, None, None] & np.any(masks, axis=0), np.nan, data.series.values)
