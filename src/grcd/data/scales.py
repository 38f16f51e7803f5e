"""Scales: numbers that a Gaussian suits better than the readings themselves, and the way back.

    z-score    y = x
    root       y = sqrt(x)          of readings from 0 up; below 0 there is nothing: whatever is less comes back as 0
    log        y = log(x + c)       c = 0 where no reading is zero, else the least of those that are not; never below 0
    quantile   y = Phi^-1(F(x))     F a node's own distribution; never beyond its ends (see ``quantiles``)

Every one rises, so medians and quantiles come back as medians and quantiles, and a density of ``y`` is one of ``x``
when it is multiplied by the slope ``dy/dx``, whose logarithm a scale knows. Mean and spread are taken of ``y`` after
that. A reading below all that training had counts as the least of them, where there would be no number for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from ..core.errors import InputError
from .quantiles import Quantiles


class Scale(Protocol):
    """Of the columns of one variable."""

    @classmethod
    def of(cls, train: np.ndarray) -> Self:
        """Fitted to readings (rows, columns), NaN where missing."""
        ...

    def forward(self, x: np.ndarray) -> np.ndarray:  # (..., columns) twice
        """Readings on the scale; gaps stay gaps."""
        ...

    def back(self, y: np.ndarray) -> np.ndarray:  # (..., columns) twice
        """And back into their units."""
        ...

    def log_slope(self, x: np.ndarray) -> np.ndarray:  # (..., columns) twice
        """``log dy/dx``."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save, by name."""
        ...

    @classmethod
    def saved(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The way back."""
        ...


@dataclass(frozen=True)
class Plain:
    """``y = x``"""

    @classmethod
    def of(cls, train: np.ndarray) -> Plain:
        return cls()

    def forward(self, x: np.ndarray) -> np.ndarray:
        return x

    def back(self, y: np.ndarray) -> np.ndarray:
        return y

    def log_slope(self, x: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(x), np.nan, 0.0)

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def saved(cls, arrays: Mapping[str, np.ndarray]) -> Plain:
        return cls()


@dataclass(frozen=True)
class Root:
    """``y = sqrt(x)``"""

    least: float  # above zero: where the slope stays finite

    @classmethod
    def of(cls, train: np.ndarray) -> Root:
        _refuse_negative(train, "root")
        return cls(_least(train))

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(x, 0.0))

    def back(self, y: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(y, 0.0))

    def log_slope(self, x: np.ndarray) -> np.ndarray:
        """``-log(2 sqrt(x))``; of a zero that of half the least reading above it: the root is vertical there."""
        return -np.log(2.0) - 0.5 * np.log(np.maximum(x, 0.5 * self.least))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"least": np.array([self.least])}

    @classmethod
    def saved(cls, arrays: Mapping[str, np.ndarray]) -> Root:
        return cls(float(arrays["least"][0]))


@dataclass(frozen=True)
class Log:
    """``y = log(x + offset)``"""

    offset: float
    least: float  # of the training readings, offset included

    @classmethod
    def of(cls, train: np.ndarray) -> Log:
        _refuse_negative(train, "log")
        positive = _least(train)
        offset = positive if np.nanmin(train, initial=np.inf) <= 0 else 0.0
        return cls(offset, offset or positive)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(x + self.offset, self.least))

    def back(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # beyond all numbers, and said to be not finite where it is written
            return np.maximum(np.exp(y) - self.offset, 0.0)

    def log_slope(self, x: np.ndarray) -> np.ndarray:
        return -np.log(np.maximum(x + self.offset, self.least))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"log": np.array([self.offset, self.least])}

    @classmethod
    def saved(cls, arrays: Mapping[str, np.ndarray]) -> Log:
        offset, least = arrays["log"].tolist()
        return cls(offset, least)


SCALES: dict[str, type[Scale]] = {"z-score": Plain, "quantile": Quantiles, "root": Root, "log": Log}


@dataclass(frozen=True)
class Scales:
    """One for each channel of rows (rows, nodes x channels)."""

    parts: tuple[Scale, ...]

    @classmethod
    def of(cls, names: Sequence[str], train: np.ndarray) -> Scales:  # (rows, columns)
        """Fitted to training rows."""
        return cls(tuple(SCALES[name].of(train[:, k :: len(names)]) for k, name in enumerate(names)))

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self._each("forward", x)

    def back(self, y: np.ndarray) -> np.ndarray:
        return self._each("back", y)

    def log_slope(self, x: np.ndarray) -> np.ndarray:
        return self._each("log_slope", x)

    def _each(self, what: str, x: np.ndarray) -> np.ndarray:
        if all(isinstance(part, Plain) for part in self.parts) and what != "log_slope":
            return x
        y = np.empty(x.shape)
        for k, part in enumerate(self.parts):
            own = (..., slice(k, None, len(self.parts)))
            y[own] = getattr(part, what)(x[own])
        return y

    def arrays(self) -> dict[str, np.ndarray]:
        """By channel and name."""
        return {f"{k}.{name}": array for k, part in enumerate(self.parts) for name, array in part.arrays().items()}

    @classmethod
    def saved(cls, names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> Scales:
        """The way back."""
        own = [
            {name.partition(".")[2]: array for name, array in arrays.items() if name.partition(".")[0] == str(k)}
            for k in range(len(names))
        ]
        return cls(tuple(SCALES[name].saved(part) for name, part in zip(names, own, strict=True)))


def _refuse_negative(x: np.ndarray, name: str) -> None:
    if negative := int((x < 0).sum()):
        do = "take marginals=quantile, or z-score"
        raise InputError(f"{negative} negative readings for marginals={name}", "readings from 0 up", do)


def _least(x: np.ndarray) -> float:
    """Of the readings above zero; 1 where there are none."""
    least = np.min(x, where=x > 0, initial=np.inf)
    return float(least) if np.isfinite(least) else 1.0
