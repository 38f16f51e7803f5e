"""The public tables of windows: what is hidden, what is scored, and what needs no model.

METR-LA, imputation: the protocol of GRIN, CSDI and PriSTI. Readings of 0 are missing; 70 % of the rows train, to 80 %
validate, the rest test. Forecasts: DCRNN's, 12 rows in and 12 out, zeros left out of the score.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

SEED = 9101112
MASKS = {"point": (0.0, 0.25), "block": (0.0015, 0.05)}
LINE = {"point": (311_473, 2.434, 14.80), "block": (112_339, 3.270, 33.84)}  # scored readings, MAE and MSE of a line
LEVELS = np.arange(1, 20) / 20
LEADS = (3, 6, 12)
LAST = (3.50, 4.21, 5.38)  # MAE of the last non-zero reading, 3, 6 and 12 rows ahead


def hidden(shape: tuple[int, int], kind: str) -> np.ndarray:  # of bool
    """What the protocol hides of a table, whether it was recorded or not."""
    rng = np.random.default_rng(SEED)
    share, noise = MASKS[kind]
    mask = rng.random(shape) < share
    for column in range(shape[1]):
        starts = np.flatnonzero(mask[:, column])
        if len(starts):
            length = 12 + rng.integers(36)
            for start in starts:
                mask[start : start + length, column] = True
    return mask | (rng.random(shape) < noise)


def line_in_time(values: np.ndarray) -> np.ndarray:  # (rows, columns), the same without gaps
    """Every column between its readings, the first and the last held."""
    rows, columns = np.arange(len(values)), []
    for column in values.T:
        seen = np.flatnonzero(~np.isnan(column))
        columns.append(np.interp(rows, seen, column[seen]) if len(seen) else column)
    return np.stack(columns, axis=1)


def last_reading(values: np.ndarray) -> np.ndarray:  # (rows, columns)
    """The last one that was recorded, at every row."""
    row = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    return np.take_along_axis(values, np.maximum.accumulate(row, axis=0), axis=0)


def point_scores(guess: Tensor, truth: Tensor) -> dict[str, float]:  # two of (readings,)
    error = (guess - truth).double()
    return {"MAE": float(error.abs().mean()), "MSE": float(error.square().mean())}


def quantile_scores(quantiles: Tensor, truth: Tensor) -> dict[str, float]:  # (levels, readings), (readings,)
    """MAE and MSE of the median, CRPS as CSDI has it, and what the intervals of 50 and 90 % cover."""
    quantiles, truth = quantiles.double(), truth.double()
    level = torch.from_numpy(LEVELS).to(truth.device)[:, None]
    loss = 2 * ((quantiles - truth) * ((truth <= quantiles).double() - level)).abs().sum(1)

    def inside(low: int, high: int) -> float:
        return float(((truth >= quantiles[low]) & (truth <= quantiles[high])).double().mean())

    about = {"CRPS": float(loss.mean() / truth.abs().sum()), "cover 50": inside(4, 14), "cover 90": inside(0, 18)}
    return point_scores(quantiles[9], truth) | about


def draw_scores(draws: Tensor, truth: Tensor) -> dict[str, float]:  # (draws, readings), (readings,)
    """The same of draws, with quantiles by ranks: the order statistic at p (n + 1), as in ``metrics/ensemble``."""
    ordered, count = draws.sort(dim=0).values, len(draws)
    place = np.clip(LEVELS * (count + 1) - 1, 0, count - 1)
    low = torch.from_numpy(np.floor(place).astype(int)).to(draws.device)
    share = torch.from_numpy(place - np.floor(place)).to(draws)[:, None]
    high = (low + 1).clamp(max=count - 1)
    return quantile_scores(ordered[low] + share * (ordered[high] - ordered[low]), truth)


def normal_scores(mean: Tensor, sd: Tensor, truth: Tensor, bounds: tuple[float, float]) -> dict[str, float]:
    """The same of normal laws, cut off at the bounds."""
    levels = torch.special.ndtri(torch.from_numpy(LEVELS).to(mean))[:, None]
    return quantile_scores((mean + levels * sd).clamp(*bounds), truth)
