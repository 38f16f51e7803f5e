"""How good filled gaps are: readings are hidden, filled, and compared with what they were.

**Masks**, as gaps come about: ``random-25`` and ``random-75``, so many per cent of all readings at random; ``sensors``,
a tenth of the sensors in every signal; ``blocks``, sensors that fall silent for ``RUN`` signals in a row, a quarter of
all readings.

**Errors**, over hidden readings that were really there (filled-in ones do not count), in the signals' units:

    mae        mean |median - y|                          rmse    sqrt(mean (mean - y)^2)
    crps       see metrics.ensemble; a point's is its mae
    cover_50   share of readings between the quartiles of their draws; cover_90 between the 5 % and 95 % quantiles
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.errors import unknown
from ..core.streams import Stream
from ..metrics.ensemble import covered, crps

MASKS = ("random-25", "random-75", "sensors", "blocks")
RUN = 24  # signals that a silent sensor misses
INTERVALS = {"cover_50": (0.25, 0.75), "cover_90": (0.05, 0.95)}


def hidden(kind: str, signals: int, nodes: int, seed: int = 0) -> np.ndarray:  # (signals, nodes)
    """True where a reading is hidden by a mask of ``MASKS``; no signal loses all of its readings."""
    random = Stream(seed, f"mask {kind}")
    if kind.startswith("random-") and kind in MASKS:
        u = random.uniform(0, signals * nodes).view(signals, nodes).numpy()
        mask = u < int(kind.removeprefix("random-")) / 100
    elif kind == "sensors":
        silent = random.uniform(0, nodes).argsort().numpy()[: max(1, nodes // 10)]
        mask = np.zeros((signals, nodes), dtype=bool)
        mask[:, silent] = True
    elif kind == "blocks":
        runs = -(-signals // RUN) + 1
        start = random.integers(1, nodes, RUN).numpy()  # where a sensor's first run ends
        silent = random.uniform(0, runs * nodes).view(runs, nodes).numpy() < 0.25
        mask = silent[(np.arange(signals)[:, None] + start) // RUN, np.arange(nodes)]
    else:
        raise unknown("mask", kind, MASKS)
    mask[mask.all(axis=1), 0] = False
    return mask


def errors(
    fillings: Iterable[tuple[np.ndarray, np.ndarray]], truth: np.ndarray, where: np.ndarray
) -> dict[str, float | int]:
    """The errors of filled readings, which come some rows at a time.

    fillings    pairs of row numbers (rows,) and completions (n, rows, nodes); one draw is a point, which covers nothing
    truth       (signals, nodes), what the readings were
    where       (signals, nodes), True for the readings that count
    returns     mae, rmse, crps, cover_50 and cover_90, and how many readings there were
    """
    return overall(by_signal(fillings, truth, where))


def by_signal(
    fillings: Iterable[tuple[np.ndarray, np.ndarray]], truth: np.ndarray, where: np.ndarray
) -> dict[str, np.ndarray]:  # each (signals,)
    """What ``errors`` are taken from: sums over the readings of each signal that count, and how many those are."""
    sums = {name: np.zeros(len(truth)) for name in ("squares", "mae", "crps", *INTERVALS, "readings")}
    for rows, completions in fillings:
        y, x = truth[rows][where[rows]], np.sort(completions[:, where[rows]], axis=0)  # (readings,), (n, readings)
        parts = {"mae": np.abs(np.median(x, axis=0) - y), "squares": np.square(x.mean(axis=0) - y), "crps": crps(x, y)}
        parts |= {name: covered(x, y, levels) for name, levels in INTERVALS.items()} | {"readings": np.ones(len(y))}
        signal = np.nonzero(where[rows])[0]
        for name, values in parts.items():
            sums[name][rows] += np.bincount(signal, values, len(rows))
    return sums


def overall(sums: dict[str, np.ndarray]) -> dict[str, float | int]:
    """The errors of all signals, from the sums of each."""
    totals = {name: float(values.sum()) for name, values in sums.items()}
    readings = totals.pop("readings")
    means = {name: total / readings for name, total in totals.items()}
    return {"rmse": means.pop("squares") ** 0.5, **means, "readings": int(readings)}
