"""METR-LA imputation, the protocol of section 5: data, masks, windows, scores."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

SEED = 9101112
STEPS = 24
QUANTILES = np.arange(1, 20) / 20


def load(path):
    """Speeds (rows, nodes) with NaN where missing, and each row's slot of five minutes and weekend flag."""
    d = np.load(path)
    values = d["values"].astype(np.float32)
    values[0] = np.nan
    times = d["timestamps"].astype("datetime64[m]")
    minutes = times.astype(np.int64)
    slot = (minutes % 1440) // 5
    weekday = (minutes // 1440 + 3) % 7  # 1970-01-01 was a Thursday; Monday is 0
    return values[d["codes"]], slot, (weekday >= 5).astype(np.int64)


def hidden(shape, kind):
    rng = np.random.default_rng(SEED)
    p, noise = {"point": (0.0, 0.25), "block": (0.0015, 0.05)}[kind]
    mask = rng.random(shape) < p
    for column in range(shape[1]):
        starts = np.flatnonzero(mask[:, column])
        if len(starts):
            length = 12 + rng.integers(36)
            for start in starts:
                mask[start : start + length, column] = True
    return mask | (rng.random(shape) < noise)


def windows(rows, steps=STEPS, stride=None, last=None):
    """Starts of windows over ``rows`` rows and, for each, which of its rows count."""
    stride = stride or steps
    starts = list(range(0, rows - steps + 1, stride))
    if starts[-1] + steps < rows:
        starts.append(rows - steps)
    counted = np.zeros((len(starts), steps), bool)
    guard = (steps - stride) // 2  # the middle of overlapping windows
    done = 0
    for k, start in enumerate(starts):
        end = rows if k == len(starts) - 1 else start + steps - guard
        counted[k, done - start : end - start] = True
        done = end
    return np.array(starts), counted


def interpolation(values, hide):
    total = absolute = square = 0.0
    for x, h in zip(values.T, hide.T, strict=True):
        seen = ~np.isnan(x) & ~h
        scored = h & ~np.isnan(x)
        e = np.interp(np.flatnonzero(scored), np.flatnonzero(seen), x[seen]) - x[scored]
        total, absolute, square = total + len(e), absolute + np.abs(e).sum(), square + (e**2).sum()
    return int(total), absolute / total, square / total


def normal_quantiles(mean: Tensor, sd: Tensor) -> Tensor:  # (19, ...)
    levels = torch.tensor(QUANTILES, dtype=mean.dtype, device=mean.device)
    return mean + sd * torch.special.ndtri(levels).reshape(-1, *[1] * mean.dim())


def scores(quantiles: Tensor, truth: Tensor) -> dict:
    """``quantiles`` (19, n) at .05 ... .95, ``truth`` (n,): MAE, MSE, CRPS, coverage of 50 and 90 %."""
    levels = torch.tensor(QUANTILES, dtype=truth.dtype, device=truth.device)[:, None]
    loss = 2 * ((quantiles - truth) * ((truth <= quantiles).to(truth) - levels)).abs().sum(1)
    median = quantiles[9]

    def inside(low, high):
        return float(((truth >= quantiles[low]) & (truth <= quantiles[high])).double().mean())

    return {
        "MAE": float((median - truth).abs().mean()),
        "MSE": float((median - truth).square().mean()),
        "CRPS": float(loss.mean() / truth.abs().sum()),
        "cover50": inside(4, 14),
        "cover90": inside(0, 18),
    }
