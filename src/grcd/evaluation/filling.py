"""How good filled gaps are: readings are hidden, filled, and compared with what they were.

**Masks**, as gaps come about: ``random-25`` and ``random-75``, so many per cent of all readings at random; ``sensors``,
a tenth of the sensors in every signal; ``blocks``, sensors that fall silent for ``RUN`` signals in a row, a quarter of
all readings.

**Scores**, over hidden readings that were really there (filled-in ones do not count), in the signals' units:

    mae        mean |median - y|                          rmse    sqrt(mean (mean - y)^2)
    crps       E|x - y| - 1/2 E|x - x'|, over distinct pairs of draws: unbiased in their number. A point's is its mae
    cover_50   share of readings between the quartiles of their draws; cover_90 between the 5 % and 95 % quantiles
               (of an ensemble, see ``ensemble``: draws that are exchangeable with the readings cover as said)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.errors import unknown
from ..core.streams import Stream
from ..metrics.ensemble import quantiles

MASKS = ("random-25", "random-75", "sensors", "blocks")
RUN = 24  # signals that a silent sensor misses
INTERVALS = {"cover_50": (0.25, 0.75), "cover_90": (0.05, 0.95)}


def hidden(kind: str, signals: int, nodes: int, seed: int = 0) -> np.ndarray:  # (signals, nodes)
    """True where a reading is hidden; no signal loses all of its readings."""
    random = Stream(seed, f"mask {kind}")
    if kind.startswith("random-") and kind in MASKS:
        u = random.uniform(0, signals * nodes).view(signals, nodes).numpy()
        found = u < int(kind.removeprefix("random-")) / 100
    elif kind == "sensors":
        silent = random.uniform(0, nodes).argsort().numpy()[: max(1, nodes // 10)]
        found = np.zeros((signals, nodes), dtype=bool)
        found[:, silent] = True
    elif kind == "blocks":
        runs = -(-signals // RUN) + 1
        start = random.integers(1, nodes, RUN).numpy()  # where a sensor's first run ends
        silent = random.uniform(0, runs * nodes).view(runs, nodes).numpy() < 0.25
        found = silent[(np.arange(signals)[:, None] + start) // RUN, np.arange(nodes)]
    else:
        raise unknown("mask", kind, MASKS)
    found[found.all(axis=1), 0] = False
    return found


class Tally:
    """Scores that add up over parts of the signals."""

    def __init__(self) -> None:
        self.count, self.sums = 0, dict.fromkeys(("mae", "squares", "crps", *INTERVALS), 0.0)

    def add(self, draws: np.ndarray, truth: np.ndarray, where: np.ndarray) -> None:
        """(n, signals, nodes), and (signals, nodes) twice; one draw is a point, which covers nothing."""
        x, y = np.sort(draws[:, where], axis=0), truth[where]
        n = len(x)
        self.count += len(y)
        pairs = (2 * np.arange(n) - n + 1) @ x / max(1, n * (n - 1))  # half of E|x - x'|, from sorted draws
        found = {
            "mae": np.abs(np.median(x, axis=0) - y),
            "squares": np.square(x.mean(axis=0) - y),
            "crps": np.abs(x - y).mean(axis=0) - pairs,
        }
        for name, levels in INTERVALS.items():
            low, high = quantiles(x, levels)
            found[name] = (low <= y) & (y <= high)
        for name, values in found.items():
            self.sums[name] += float(values.sum())

    def scores(self) -> dict[str, float | int]:
        means = {name: total / self.count for name, total in self.sums.items()}
        return {"rmse": means.pop("squares") ** 0.5, **means, "readings": self.count}


def score(fillings: Iterable[tuple[np.ndarray, np.ndarray]], truth: np.ndarray, where: np.ndarray) -> dict:
    """Of draws that come some rows at a time."""
    tally = Tally()
    for rows, draws in fillings:
        tally.add(draws, truth[rows], where[rows])
    return tally.scores()
