"""The public tables of windows: what is hidden, what is scored, and how.

**METR-LA, imputation**: the protocol of GRIN, CSDI and PriSTI. Readings of 0 are missing; 70 % of the rows train, to
80 % validate, the rest test. What is hidden comes from one generator over the whole table: every reading begins a spell
with a small probability, as long as its column's length says, and noise hides more readings here and there.

**Forecasts**: DCRNN's, 12 rows in and 12 out, every window of the table in order, the last fifth of them test; readings
of 0 are left out of the score.

**CRPS** is the normalised quantile loss that CSDI introduced, with ``x_q`` the quantile of level ``q``:

    mean over q = .05 ... .95 of 2 sum |(x_q - y) (1[y <= x_q] - q)|, over sum |y|

both sums over scored readings. Quantiles of draws are by ranks, as in ``metrics/ensemble``; MAE and MSE are those of
the median. Of a point, CRPS is its MAE over the mean of ``|y|``.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

SEED = 9101112
MASKS = {"point": (0.0, 0.25), "block": (0.0015, 0.05)}  # how probable a spell is to begin, and how much is noise
LEVELS = np.arange(1, 20) / 20
MIDDLE, HALF, NINE_TENTHS = 9, (4, 14), (0, 18)  # numbers of levels: the median, intervals of 50 and 90 %
PAST, LEADS = 12, (3, 6, 12)  # rows that a forecast of METR-LA sees, and those ahead that are reported
SHARE = 0.2  # of all windows, the last ones test


def hidden(shape: tuple[int, int], kind: str) -> np.ndarray:  # of bool
    """What the protocol hides of a table (rows, columns), whether it was recorded or not."""
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


def forecast_windows(rows: int, past: int = PAST, horizon: int = LEADS[-1]) -> np.ndarray:  # (windows, past + horizon)
    """The rows of DCRNN's test windows of a table of so many rows."""
    windows = rows - past - horizon + 1
    return np.arange(windows)[-round(SHARE * windows) :, None] + np.arange(past + horizon)


def point_scores(guess: Tensor, truth: Tensor) -> dict[str, float]:  # two of (readings,)
    """MAE and MSE."""
    error = (guess - truth).double()
    return {"MAE": float(error.abs().mean()), "MSE": float(error.square().mean())}


def quantile_losses(quantiles: Tensor, truth: Tensor) -> Tensor:  # (levels, readings), (readings,) -> (readings,)
    """The mean over levels of twice the quantile loss: CRPS before it is normalised."""
    level = torch.from_numpy(LEVELS).to(truth)[:, None]
    return 2 * ((quantiles - truth) * ((truth <= quantiles).to(truth) - level)).abs().mean(0)


def inside(quantiles: Tensor, truth: Tensor, levels: tuple[int, int]) -> Tensor:  # (readings,) of bool
    """Whether readings lie between two of their quantiles."""
    return (truth >= quantiles[levels[0]]) & (truth <= quantiles[levels[1]])


def quantile_scores(quantiles: Tensor, truth: Tensor) -> dict[str, float]:  # (levels, readings), (readings,)
    """MAE and MSE of the median, CRPS as CSDI has it, and what the intervals of 50 and 90 % cover."""
    quantiles, truth = quantiles.double(), truth.double()
    about = {
        "CRPS": float(quantile_losses(quantiles, truth).sum() / truth.abs().sum()),
        "cover 50": float(inside(quantiles, truth, HALF).double().mean()),
        "cover 90": float(inside(quantiles, truth, NINE_TENTHS).double().mean()),
    }
    return point_scores(quantiles[MIDDLE], truth) | about


def draw_quantiles(draws: Tensor) -> Tensor:  # (draws, readings) -> (levels, readings)
    """By ranks: the order statistic at p (n + 1), as in ``metrics/ensemble``."""
    ordered, count = draws.sort(dim=0).values, len(draws)
    place = np.clip(LEVELS * (count + 1) - 1, 0, count - 1)
    low = torch.from_numpy(np.floor(place).astype(int)).to(draws.device)
    share = torch.from_numpy(place - np.floor(place)).to(draws)[:, None]
    high = (low + 1).clamp(max=count - 1)
    return ordered[low] + share * (ordered[high] - ordered[low])


def draw_scores(draws: Tensor, truth: Tensor) -> dict[str, float]:  # (draws, readings), (readings,)
    """``quantile_scores`` of draws."""
    return quantile_scores(draw_quantiles(draws), truth)


def normal_scores(mean: Tensor, sd: Tensor, truth: Tensor, bounds: tuple[float, float]) -> dict[str, float]:
    """The same of normal laws (readings,), cut off at the bounds."""
    levels = torch.special.ndtri(torch.from_numpy(LEVELS).to(mean))[:, None]
    return quantile_scores((mean + levels * sd).clamp(*bounds), truth)


def last_reading(values: np.ndarray) -> np.ndarray:  # (rows, columns)
    """The last one that was recorded, at every row; NaN before the first."""
    row = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    return np.take_along_axis(values, np.maximum.accumulate(row, axis=0), axis=0)
