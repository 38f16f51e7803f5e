"""An ensemble of draws, and the quantiles it stands for.

A reading and ``n`` draws that are exchangeable with it fall in any order alike, so the reading lies below the ``k``-th
smallest draw with probability ``k / (n + 1)``. The quantile of level ``p`` is therefore the order statistic at
``p (n + 1)``, interpolated between its neighbours, and an interval between two of them covers what it says. (At
``1 + p (n - 1)``, numpy's default, 90 % intervals of a hundred draws cover 88 %.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quantiles(draws: np.ndarray, levels: Sequence[float]) -> np.ndarray:  # (n, ...) -> (levels, ...)
    """Of draws along the first axis. Beyond the outermost draws there is nothing: levels there are theirs."""
    return np.quantile(draws, levels, axis=0, method="weibull")
