"""Metrics that a covariance cannot fool: generated signals ``x`` against real ones ``y``, in all their nodes at once.

aMMD sees three numbers of a signal, and a Gaussian with the right covariance comes close in all three. These look at
the signals themselves, z-scored, in float64:

    energy                2 E|x - y| - E|x - x'| - E|y - y'|, Euclidean; zero for equal distributions and for no others.
                          Means over distinct pairs, hence unbiased: it may come out slightly below zero
    sliced_wasserstein    mean over random unit directions of the integral over u in [0, 1] of |F^-1(u) - G^-1(u)|, with
                          F^-1 and G^-1 the quantile functions of the two projected samples. Both are steps, so the
                          integral is a sum: over sorted pairs, or over n + m steps at most where sizes differ
    kolmogorov_smirnov    mean over nodes of the largest |F - G|
    correlation_error     root mean square over all entries of the difference between the two correlation matrices
    tail_coverage         share of real readings outside the range that holds the middle 98 % of the generated ones, the
                          mean over nodes: 0.02 is right, more says that tails are missing, less that they are too long
    classifier_accuracy   of boosted trees that were taught to tell the two apart, on signals they have not seen: 0.5 is
                          right, 1 says that no generated signal passes for a real one
    copies                share of generated signals that are nearer to a training signal than the nearest hundredth of
                          real ones: 0.01 is right, more says that training signals were copied. (The median of those
                          distances does not move while most signals are new)

Signals are arrays or tensors (samples, nodes); work is done on ``device`` in blocks, so that memory does not grow with
the number of pairs. What is random is keyed by ``seed``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..core.rows import evenly
from ..core.streams import Stream

BLOCK = 1 << 21  # entries held at a time: 16 MB in float64
DIRECTIONS = 500
TAILS = 0.01, 0.99
MOST = 2000  # signals a side that a classifier sees: it is done within seconds, and right to about 0.01
BLUR = 0.05  # of a standard deviation
NEAR = 0.01  # share of real signals that count as near to a training signal

Signals = np.ndarray | Tensor  # (samples, nodes), z-scored


def energy(x: Signals, y: Signals, device: torch.device | str = "cpu") -> float:
    """``2 E|x - y| - E|x - x'| - E|y - y'|`` over distinct pairs."""
    return 2 * float(apart(x, y, device).mean()) - within(x, device) - within(y, device)


def apart(x: Signals, y: Signals, device: torch.device | str = "cpu") -> Tensor:  # (len(y),)
    """``E|x - y|`` of every real signal: what the energy distance is linear in."""
    x, y = on(device, x, y)
    return torch.cat([block.mean(dim=1) for block in pair_distances(y, x)])


def within(x: Signals, device: torch.device | str = "cpu") -> float:
    """``E|x - x'|`` over distinct pairs."""
    (x,) = on(device, x)
    return _total(x, x) / (len(x) * (len(x) - 1))


def sliced_wasserstein(x: Signals, y: Signals, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """Mean distance between quantile functions along random directions, the same ones for every pair of samples."""
    x, y = on(device, x, y)
    directions = Stream(seed, "directions", device).normal(range(DIRECTIONS), x.shape[1])
    directions /= directions.norm(dim=1, keepdim=True)
    of_x, of_y, length = _steps(len(x), len(y), device)
    total = 0.0
    for part in directions.split(max(1, BLOCK // len(length))):
        along_x, along_y = ((part @ z.T).sort(dim=1).values for z in (x, y))
        total += float(((along_x[:, of_x] - along_y[:, of_y]).abs_() @ length).sum())
    return total / DIRECTIONS


def kolmogorov_smirnov(x: Signals, y: Signals, device: torch.device | str = "cpu") -> float:
    """Mean over nodes of the largest ``|F - G|``."""
    return float(node_kolmogorov_smirnov(x, y, device).mean())


def node_kolmogorov_smirnov(x: Signals, y: Signals, device: torch.device | str = "cpu") -> Tensor:  # (nodes,)
    """The largest ``|F - G|`` of each node. It is taken after all readings of one value, so that ties are exact."""
    largest = []
    for of_x, of_y in _nodes(*on(device, x, y)):
        values = torch.cat([of_x, of_y], dim=1)
        F, G = (torch.searchsorted(z, values, right=True).double() / z.shape[1] for z in (of_x, of_y))
        largest.append((F - G).abs().amax(dim=1))
    return torch.cat(largest)


def correlation_error(x: Signals, y: Signals, device: torch.device | str = "cpu") -> float:
    """Root mean square over all entries. A node that never changes is correlated with nothing, itself included."""
    of_x, of_y = (_correlation(z) for z in on(device, x, y))
    return float((of_x - of_y).square().mean().sqrt())


def tail_coverage(x: Signals, y: Signals, device: torch.device | str = "cpu") -> float:
    """Share of the readings ``y`` outside the 1 % .. 99 % quantiles of ``x`` at their node."""
    outside = 0
    for of_x, of_y in _nodes(*on(device, x, y)):
        low, high = of_x.quantile(torch.tensor(TAILS, dtype=torch.float64, device=device), dim=1)
        outside += int(((of_y < low[:, None]) | (of_y > high[:, None])).sum())
    return outside / (y.shape[0] * y.shape[1])


def classifier_accuracy(x: Signals, y: Signals, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """Taught on the first half of both sides, tried on the second; as many of either side, so that 0.5 is chance.

    Halves as they come, not shuffled: signals recorded minutes apart are nearly the same, and one in each half would
    let the trees know a real signal by its neighbour. Real readings may be rounded, which would give them away too:
    both sides are blurred alike. The trees grow on the CPU, whatever the device.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    half = min(len(x), len(y), MOST) // 2
    sides = [_blurred(z, 2 * half, index, seed) for index, z in enumerate(on("cpu", x, y))]
    taught, unseen = (np.concatenate([side[rows] for side in sides]) for rows in (slice(half), slice(half, None)))
    which = np.repeat([0, 1], half)
    with threadpool_limits(1):  # a second is enough for one; several would wait for each other on a busy machine
        trees = HistGradientBoostingClassifier(early_stopping=False, random_state=seed).fit(taught, which)
        return float(trees.score(unseen, which))


def copies(x: Signals, y: Signals, train: Signals, device: torch.device | str = "cpu") -> float:
    """Share of ``x`` nearer to a training signal than the 1 % quantile, by ranks, of ``y``; NaN where that is 0: real
    signals are copies themselves, and nothing can be nearer."""
    x, y, train = on(device, x, y, train)
    of_x, of_y = nearest(x, train), nearest(y, train).sort().values
    place = min(max(NEAR * (len(y) + 1) - 1, 0.0), len(y) - 1.0)
    low, high = of_y[int(place)], of_y[min(int(place) + 1, len(y) - 1)]
    near = low + (place - int(place)) * (high - low)
    return float((of_x < near).double().mean()) if near > 0 else float("nan")


def nearest(x: Tensor, train: Tensor) -> Tensor:  # (samples,)
    """Distance to the nearest training signal: found with a matrix product, which rounds, then measured afresh."""
    index = torch.cat([block.argmin(dim=1) for block in pair_distances(x, train)])
    return (x - train[index]).norm(dim=1)


def pair_distances(x: Tensor, y: Tensor) -> Iterator[Tensor]:  # each (rows, len(y)), overwritten by the next
    """Euclidean distances between all signals of both sides, some rows at a time: one matrix product for each."""
    parts, squares = x.split(max(1, BLOCK // len(y))), y.square().sum(dim=1)
    buffer = y.new_empty(len(parts[0]), len(y))
    for part in parts:
        block = torch.addmm(squares, part, y.T, alpha=-2, out=buffer[: len(part)])
        block += part.square().sum(dim=1, keepdim=True)
        yield block.clamp_(min=0.0).sqrt_()


def on(device: torch.device | str, *signals: Signals) -> list[Tensor]:
    """Signals as float64 tensors. Arrays are copied: they may be read-only, or a view of another backwards."""
    return [
        torch.as_tensor(z if isinstance(z, Tensor) else np.array(z, np.float64)).to(device, torch.float64)
        for z in signals
    ]


def _total(x: Tensor, y: Tensor) -> float:
    return float(sum(block.sum() for block in pair_distances(x, y)))


def _steps(n: int, m: int, device: torch.device | str) -> tuple[Tensor, Tensor, Tensor]:
    """Where either quantile function steps, [0, 1] is cut: which value each of them has on a piece, and its length."""
    ends = torch.cat([m * torch.arange(1, n + 1, device=device), n * torch.arange(1, m + 1, device=device)]).unique()
    length = ends.diff(prepend=ends.new_zeros(1))  # in units of 1 / nm: whole numbers, hence exact
    return (ends - 1) // m, (ends - 1) // n, length.double() / (n * m)


def _nodes(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:  # (some nodes, n), (some nodes, m)
    """The sorted readings of both sides, some nodes at a time."""
    some = max(1, BLOCK // (len(x) + len(y)))
    for parts in zip(x.T.split(some), y.T.split(some), strict=True):
        yield tuple(part.contiguous().sort(dim=1).values for part in parts)


def _correlation(x: Tensor) -> Tensor:  # (nodes, nodes)
    centred = x - x.mean(dim=0)
    constant = centred.abs().amax(dim=0) <= 1e-12 * x.abs().amax(dim=0)  # up to rounding
    unit = torch.where(constant, 0.0, centred / centred.norm(dim=0))
    return unit.T @ unit


def _blurred(x: Tensor, count: int, index: int, seed: int) -> np.ndarray:  # (count, nodes)
    """So many signals, evenly spaced, with a little noise."""
    chosen = x[evenly(len(x), count)]
    return (chosen + BLUR * Stream(seed, "classifier blur").normal(index, chosen.numel()).view_as(chosen)).numpy()
