"""Six families of made-up sensor tables, for asking whether simple ways of filling gaps are ever better than ours.

    counts        whole numbers, many of them zero: stops with a rush hour each, and a field that neighbours share
    few-rows      35 days, 61 days, 364 weeks of a field that moves slowly
    uncorrelated  every reading by itself: nothing is to be learned but means
    calendar      the hour and the day of the week say nearly all
    trend         every node rises or falls, held-out rows lie beyond all that was seen
    heavy-tails   a field with jumps that a Gaussian does not know

All of it follows from a seed. What few rows teach is asked of ``LATER`` rows that come after them and are in no file:
the few that a split would hold out are too few to be asked anything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

LATER = 240


def positions(random: np.random.RandomState, nodes: int) -> pd.DataFrame:
    """Stations within two degrees of each other."""
    names = [f"station {k:02d}" for k in range(nodes)]
    return pd.DataFrame(
        {"station": names, "longitude": 2 * random.rand(nodes), "latitude": 46 + 2 * random.rand(nodes)}
    )


def field(
    random: np.random.RandomState, places: pd.DataFrame, rows: int, rho: float, heavy: bool = False
) -> np.ndarray:  # (rows, nodes)
    """Of variance about one: correlated over half a degree, and from row to row by ``rho``."""
    xy = places[["longitude", "latitude"]].to_numpy()
    gap = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
    root = np.linalg.cholesky(0.95 * np.exp(-((gap / 0.7) ** 2)) + 0.05 * np.eye(len(xy)))
    x = np.zeros((rows, len(xy)))
    for t in range(rows):
        new = root @ random.randn(len(xy))
        if heavy:
            new *= 1 / np.sqrt(random.chisquare(2) / 2) / 2
        x[t] = new if t == 0 else rho * x[t - 1] + np.sqrt(1 - rho**2) * new
    return x


def table(values: np.ndarray, places: pd.DataFrame, step: str) -> pd.DataFrame:
    """A column a station, and their times."""
    times = pd.date_range("2025-01-06", periods=len(values), freq=step).strftime("%Y-%m-%d %H:%M")
    frame = pd.DataFrame(values, columns=places["station"].tolist())
    frame.insert(0, "time", times)
    return frame


def hours(rows: int) -> tuple[np.ndarray, np.ndarray]:  # (rows, 1) each
    hour = np.arange(rows)[:, None]
    return hour % 24, hour // 24 % 7


def counts(random: np.random.RandomState, rows: int = 1440) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 18)
    hour, day = hours(rows)
    busy, peak = random.uniform(-1.0, 1.2, 18), random.uniform(7, 18, 18)
    log = busy + 1.2 * np.cos(2 * np.pi * (hour - peak) / 24) - 0.6 * (day >= 5)
    rate = np.exp(log + 0.6 * field(random, places, rows, 0.8))
    return table(random.poisson(rate), places, "h"), places


def few_rows(random: np.random.RandomState, rows: int, step: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 12)
    level = random.uniform(5, 15, 12)
    return table((level + 3 * field(random, places, rows + LATER, 0.7)).round(1), places, step), places


def uncorrelated(random: np.random.RandomState, rows: int = 1200) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 15)
    values = random.uniform(-20, 20, 15) + random.uniform(0.5, 4, 15) * random.randn(rows, 15)
    return table(values.round(3), places, "h"), places


def calendar(random: np.random.RandomState, rows: int = 56 * 24) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 16)
    hour, day = hours(rows)
    peak, weekend = random.uniform(6, 20, 16), random.uniform(0.2, 0.8, 16)
    profile = 30 + 20 * np.exp(2 * np.cos(2 * np.pi * (hour - peak) / 24) - 2) * np.where(day >= 5, weekend, 1.0)
    return table((profile + 0.8 * random.randn(rows, 16)).round(2), places, "h"), places


def trend(random: np.random.RandomState, rows: int = 730) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 14)
    slope = random.uniform(-1, 1, 14) * 12 / rows
    level = random.uniform(20, 40, 14) + slope * np.arange(rows)[:, None]
    return table((level + field(random, places, rows, 0.6)).round(2), places, "D"), places


def heavy_tails(random: np.random.RandomState, rows: int = 1440) -> tuple[pd.DataFrame, pd.DataFrame]:
    places = positions(random, 16)
    return table((10 + 4 * field(random, places, rows, 0.5, heavy=True)).round(2), places, "h"), places


MAKERS: dict[str, Callable[[np.random.RandomState], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "counts": counts,
    "few-rows-35": lambda random: few_rows(random, 35, "D"),
    "few-rows-61": lambda random: few_rows(random, 61, "D"),
    "few-rows-364": lambda random: few_rows(random, 364, "W"),
    "uncorrelated": uncorrelated,
    "calendar": calendar,
    "trend": trend,
    "heavy-tails": heavy_tails,
}


def made(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
    """Readings (with a column of times), positions, and of few rows those that come later, of one of ``MAKERS``."""
    readings, places = MAKERS[name](np.random.RandomState(seed))
    if not name.startswith("few-rows"):
        return readings, places, None
    return readings[:-LATER], places, readings[-LATER:]
