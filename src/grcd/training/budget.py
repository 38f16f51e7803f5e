"""A budget of time: how large a network is, and how many updates it gets, so that training ends in time here.

``minutes`` leaves to the clock what costs time (``TIMED``): a few updates of a network are timed on this machine, once
everything before them is done and its seconds are known, and the settings that fit into what is left are written down.
Training then is what it is with those settings, wherever it is repeated.

**Windows.** What is left after a margin is spent on posteriors of pairs, at most a ``POSTERIORS`` share (of more pairs
than usual a ``MORE`` share), and on updates, at most ``MOST`` times the usual ones, or as many as see every training
window ``PASSES`` times: until then there is more to be learned. Of the usual width, half of it and twice of it that
width is taken which gets as many updates as it needs; a wide network that is stopped early is worse than a narrow one
that is not. Where not even ``LEAST`` updates of the narrowest fit, the reference stands alone.

**Moments.** Updates as many as fit, at most the usual number: validation stops them when nothing is learned any more. A
network that would get fewer than ``FEW`` is made narrower; where not even ``LEAST`` of the narrowest fit, the
reference stands alone, if the method's network starts from it.

Without a budget, a training that would take over an hour on a CPU says so before it begins.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import InputError, InputWarning

TIMED = ("width", "batch", "pool", "max_updates", "validate_every")  # what ``minutes`` decides
MARGIN = 0.75  # of the time that is left is planned with: machines are not always as quick, and a contest comes after
POSTERIORS, MORE = 0.4, 0.15
POOL = 4.0  # times the usual pairs, at most
LEAST, FEW = 100, 2_000
WIDTHS = (2.0, 1.0, 0.5)  # times the usual one, from the best to the quickest
NEEDED = {2.0: 1.0, 1.0: 0.5, 0.5: 0.0}  # share of the usual updates without which a narrower one is better
MOST = 2.0  # times the usual updates
PASSES = 16  # METR-LA's network gains until it has seen every window so often, and then no more
VALIDATIONS = 10
LONG = 3600.0  # seconds


@dataclass(frozen=True)
class Pace:
    """Seconds that things take here."""

    pair: float  # the posterior of a window and a mask
    update: float
    validation: float
    after: float = 0.0  # what comes after the last update

    def total(self, updates: int, pairs: int, every: int) -> float:
        """Of a whole training."""
        return pairs * self.pair + updates * self.update + (1 + updates // every) * self.validation + self.after


def refuse_timed(settings: Mapping[str, Any]) -> None:
    """What the clock decides is not set beside it."""
    both = [name for name in TIMED if name in settings]
    if settings.get("minutes") and both:
        raise InputError(
            f"minutes = {settings['minutes']} and {', '.join(both)}",
            "one of them: time decides how large a network is and how long it trains",
            "leave out either",
        )


Settle = Callable[[Callable[[], dict[str, Any]]], dict[str, Any]]  # what was decided before, or what is decided now


def anew(decide: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Nothing was decided before."""
    return decide()


def left(until: float) -> Callable[[], float]:
    """Seconds until then, by ``time.monotonic``."""
    return lambda: until - time.monotonic()


def of_windows(
    usual: Mapping[str, Any], pace: Callable[[int], Pace], left: Callable[[], float], windows: int = 0
) -> dict[str, Any]:
    """Settings that end in ``left()`` seconds, from the ``usual`` ones; no updates: there is no time for a network.

    ``pace(width)`` measures; widths are multiples of ``usual["heads"]``. ``windows``: how many there are to learn from.
    """
    heads, most = usual["heads"], max(round(MOST * usual["max_updates"]), PASSES * windows // usual["batch"])
    for factor in WIDTHS:
        if left() <= 0:  # measuring takes time too
            break
        width = max(heads, round(factor * usual["width"] / heads) * heads)
        own = pace(width)
        updates, pairs = _fitting(usual, own, MARGIN * left(), most)
        if updates >= max(LEAST, NEEDED[factor] * usual["max_updates"]):
            every = max(1, math.ceil(updates / VALIDATIONS))
            return {"width": width, "pool": pairs, "max_updates": updates, "validate_every": every}
    return {"max_updates": 0}


def _fitting(usual: Mapping[str, Any], pace: Pace, left: float, most: int) -> tuple[int, int]:
    """Updates and pairs that fit."""
    left -= pace.after + (1 + VALIDATIONS) * pace.validation
    batch, affordable = usual["batch"], max(left, 0.0) / max(pace.pair, 1e-9)
    # Every update wants pairs of its own, as long as they cost less than their share.
    share = max(
        min(usual["pool"], int(POSTERIORS * affordable)), min(round(POOL * usual["pool"]), int(MORE * affordable))
    )
    alone = int(max(left, 0.0) / (pace.update + batch * pace.pair))
    updates = alone if alone * batch <= share else int((left - share * pace.pair) / pace.update)
    updates = min(updates, most)
    return max(0, updates), max(1, min(share, updates * batch))


def of_moments(
    usual: Mapping[str, Any],
    seconds: Callable[[Mapping[str, Any]], float],
    left: Callable[[], float],
    alone: bool = False,
) -> dict[str, Any]:
    """The same for signals by themselves; ``seconds(settings)`` is what an update takes with these. Where the reference
    can stand ``alone``, it does if there is no time for ``LEAST`` updates: no backbone."""
    settings = dict[str, Any]()
    updates = _updates(seconds(settings), left())
    while updates < FEW and settings.get("width", usual.get("width", 0)) >= 16:
        settings["width"] = settings.get("width", usual["width"]) // 2
        updates = _updates(seconds(settings), left())
    if alone and updates < min(LEAST, usual["max_updates"]):
        return {"backbone": "none"}
    updates = max(1, min(updates, usual["max_updates"]))
    return settings | {"max_updates": updates, "validate_every": min(usual["validate_every"], updates)}


def _updates(seconds: float, left: float) -> int:
    return int(MARGIN * max(left, 0.0) / seconds)


def warn_long(seconds: float) -> None:
    """Before a training on a CPU that takes long."""
    if seconds > LONG:
        text = f"training takes up to {seconds / 3600:.1f} hours here: --minutes 30 makes it end in time"
        warnings.warn(f"{text}, with a smaller network or fewer updates", InputWarning, stacklevel=3)


def words(settled: Mapping[str, Any]) -> str:
    """What was decided, for a person."""
    if not settled.get("max_updates"):
        return "no time for a network, the reference alone"
    return ", ".join(f"{name} {value:,}" for name, value in settled.items())
