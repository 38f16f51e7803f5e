"""What chance makes of the mean of numbers that come in groups.

Errors near each other in time are alike, and so are those of one silent sensor, of windows that overlap or of one
forecast: they count once, as a **group**. With ``k_g`` the sum of the numbers of group ``g``, ``n_g`` how many there
are and ``p`` the mean over all, the standard error of ``p`` is

    sqrt(G / (G - 1) sum_g (k_g - p n_g)^2) / sum_g n_g

over ``G`` groups; of one group there is none. A mean is **more than chance** beyond the ``SURE`` quantile of Student's
t, of so many groups, in standard errors: of two groups that is thirteen, of many two, and of one nothing can be said.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

SURE = 0.975  # of Student's t


def standard_error(values: np.ndarray, group: np.ndarray) -> float:  # two of (numbers,)
    """Of the mean of values that come in groups; NaN of a single group."""
    _, number = np.unique(group, return_inverse=True)
    count = np.bincount(number)
    if len(count) < 2:
        return float("nan")
    left = np.bincount(number, weights=np.asarray(values, dtype=np.float64)) - values.mean() * count
    return float(np.sqrt(len(count) / (len(count) - 1) * np.square(left).sum()) / len(values))


def chance(values: np.ndarray, group: np.ndarray) -> float:  # two of (numbers,)
    """What the mean of values that come in groups has to exceed to be more than chance; infinite of one group."""
    groups = len(np.unique(group))
    return float(stdtrit(groups - 1, SURE)) * standard_error(values, group) if groups > 1 else np.inf
