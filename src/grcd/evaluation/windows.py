"""aMMD of generated windows against held-out ones, on the product graph of time and space; and their autocorrelation.

**The graph of a window** is that of its signal space (``graphs/space``): a path in time beside the sensor graph, the
Laplacian of each divided by its largest eigenvalue, channels not coupled. The three statistics are those of moments,
on it. A window of one step and one channel has the scores of a moment: MMD takes its bandwidths from the sample, so
that a factor of all weights changes nothing.

**Windows** of a split come one after the other and do not overlap. Where rows have dates, as few rows as possible are
left out between two of them for windows to begin at all times of the day: windows of a day that all began at midnight
would differ from generated ones, which begin at any time, for that reason alone. Readings are z-scored with each
column's mean and spread over the training rows, the same at all steps.

**Gaps** are treated as in ``ammd``: what is missing in a held-out window is left out of a generated one too.

**Autocorrelation** at a lag is the mean over nodes of the correlation between two readings of one window that many
steps apart; the mean and the variance of a node are those over all windows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch

from ..core.errors import InputError
from ..core.rows import evenly
from ..data.series import Series
from ..data.series_dataset import SeriesDataset
from ..graphs.graph import Graph
from ..graphs.polynomials import largest_eigenvalue
from ..graphs.space import SignalSpace, path
from .ammd import Scores, ammd

DAY = np.timedelta64(1, "D")


def evaluate(
    windows: np.ndarray, data: SeriesDataset, split: str = "test", device: torch.device | str = "cpu"
) -> Scores:
    """``Scores``: aMMD of windows against those of a split, both z-scored with training statistics; the floor beside.

    ``windows``   (n, steps, nodes[, channels]), in the data's units, complete
    ``data``      graph, training rows and held-out rows
    ``split``     "test", "val" or "train"
    ``device``    where the sums over pairs are taken
    """
    x = checked(windows, data)
    space = SignalSpace(data.graph, x.shape[1], len(data.channels))
    graph, y = product(space), held_out(data, split, space.steps)

    def compared(x: np.ndarray) -> Scores:
        observed = ~np.isnan(x), ~np.isnan(y)
        return ammd(x, y, graph, device, observed)

    train = _with_readings(cut(data.part("train"), space.steps), "train")
    floor = compared(scored(train[evenly(len(train), len(y))], data))
    return replace(compared(scored(x, data)), floor=floor)


def checked(windows: np.ndarray, data: SeriesDataset) -> np.ndarray:  # (n, steps, nodes, channels)
    """Generated windows (n, steps, nodes[, channels]) with all axes, or an error that says why not."""
    if not isinstance(data, SeriesDataset):
        raise InputError(
            f"{type(data).__name__} to evaluate windows against",
            "a SeriesDataset: it has the graph, the training rows and the held-out rows",
            "load one with grcd.data.load_series",
        )
    x, columns = np.asarray(windows, dtype=np.float64), (len(data.graph), len(data.channels))
    x = x[..., None] if x.ndim == 3 and columns[1] == 1 else x
    if x.ndim != 4 or x.shape[2:] != columns or len(x) < 2:
        sizes = f"{columns[0]} nodes" + (f", {columns[1]} channels" if columns[1] > 1 else "")
        raise InputError(
            f"windows of shape {np.shape(windows)}", f"(windows, steps, {sizes}), two or more", "check them"
        )
    never = np.isnan(data.part("train").values).all(axis=0)  # a channel that a node lacks, it lacks in windows too
    if not np.isfinite(x[..., ~never]).all():
        raise InputError("generated windows with gaps, or infinite", "numbers", "leave those windows out")
    return x


def cut(series: Series, steps: int) -> np.ndarray:  # (windows, steps, nodes, channels)
    """The windows of a series, one after the other; no two have a row in common."""
    stride, interval = steps, series.interval
    rows_a_day = int(DAY / interval) if isinstance(interval, np.timedelta64) and interval < DAY else 1
    while math.gcd(stride, rows_a_day) > 1:
        stride += 1
    return series.windows(series.starts(steps, stride), steps)


def product(space: SignalSpace) -> Graph:
    """The product of a path in time and the sensor graph, for statistics of windows as rows of ``d`` numbers."""
    time = sp.diags_array([np.ones(space.steps - 1)], offsets=[1], shape=2 * (space.steps,)).tocsr()
    along = (time + time.T) / max(path(space.steps).lam.max(), 1e-300)
    L = space.graph.combinatorial
    most = largest_eigenvalue(L) if space.graph.large else np.linalg.eigvalsh(L.toarray()).max()
    across = space.graph.weights / max(most, 1e-300)
    w_time, w_space = space.weights
    both = w_time * sp.kron(along, sp.eye_array(len(space.graph))) + w_space * sp.kron(
        sp.eye_array(space.steps), across
    )
    weights = sp.csr_array(sp.kron(both, sp.eye_array(space.channels)))
    return Graph(weights, tuple(map(str, range(space.d))), origin="product of a path and a graph")


def autocorrelation(windows: np.ndarray) -> np.ndarray:  # (windows, steps, nodes, channels) -> (steps, channels)
    """By lag, from 0 on; over what was observed."""
    n, steps = windows.shape[:2]
    rows = windows.reshape(n * steps, *windows.shape[2:])
    return Series(rows, borders=tuple(range(steps, n * steps, steps))).autocorrelation(np.arange(steps))


def moments(train: Series) -> tuple[np.ndarray, np.ndarray]:  # two of (nodes, channels)
    """Mean and spread of each column over what was observed; 0 and 1 where nothing was, or where nothing varies."""
    seen = ~np.isnan(train.values)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, train.values, 0.0).sum(axis=0) / count
    sd = np.sqrt(np.square(np.where(seen, train.values - mean, 0.0)).sum(axis=0) / count)
    return mean, np.where(sd > 0, sd, 1.0)


def held_out(data: SeriesDataset, split: str, steps: int) -> np.ndarray:  # (windows, d)
    """The windows of a split that have a reading, z-scored."""
    return scored(_with_readings(cut(data.part(split), steps), split), data)


def scored(windows: np.ndarray, data: SeriesDataset) -> np.ndarray:  # (windows, d)
    """With each column's mean and spread over the training rows."""
    mean, sd = moments(data.part("train"))
    return ((windows - mean) / sd).reshape(len(windows), -1)


def _with_readings(windows: np.ndarray, split: str) -> np.ndarray:
    """Those of which anything was recorded; aMMD needs two."""
    some = windows[~np.isnan(windows).all(axis=(1, 2, 3))]
    if len(some) < 2:
        expected = "two or more that do not overlap"
        do = "take a shorter window, or more rows, or hold out more of them (--hold-out)"
        raise InputError(f"{len(some)} {split} windows with a reading", expected, do)
    return some
