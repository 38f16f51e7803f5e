"""Permutation tests: could two sets of signals have been drawn from the same distribution?

Under that hypothesis it does not matter which signal belongs to which set. So the energy distance between the two (see
``distances``) is compared with the same distance after the labels were dealt out anew, ``P`` times:

    p = (1 + number of deals at least as far apart) / (1 + P)

which is at most ``alpha`` with probability at most ``alpha``, whatever the distribution and the number of signals. With
``D`` the distances between all signals of both sets and ``s`` the 0-1 vector of the first set, the sums that the energy
distance needs are ``s'Ds`` within the first set, ``s'D1 - s'Ds`` between the two, and the rest of ``1'D1`` within the
second. All deals are columns of one matrix: each block of ``D`` is formed once, multiplied once, and dropped.

**Against the floor.** Recorded splits differ from each other, so even training signals can often be told from test
signals. The question is then whether generated ones are further from them. ``farther_test`` deals out generated and
training signals, and compares

    energy distance of the first set from the test signals, less that of the second

with the same after each deal. A small ``p`` says: further from the test signals than training signals are. It is a
strict test: a model of the right form, fitted to ``n`` signals, still has the error of its parameters, of which the
unbiased distance of those ``n`` signals is free on average.

The signals of a set have to be exchangeable, which generated ones are. Recorded ones follow each other in time: a small
``p`` may then say no more than that two weeks differ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..core.streams import Stream
from .distances import Signals, on, pair_distances

PERMUTATIONS = 500
TIE = 1e-9  # of the mean distance: the same deal summed in another order


def permutation_test(
    x: Signals, y: Signals, permutations: int = PERMUTATIONS, seed: int = 0, device: torch.device | str = "cpu"
) -> float:
    """p value of "``x`` (n, nodes) and ``y`` (m, nodes) come from one distribution", by their energy distance."""
    _, means, between = _dealt(x, y, permutations, seed, device)
    return _p(2 * between - means.sum(dim=0), means[0, 0])


def farther_test(
    x: Signals,
    floor: Signals,
    real: Signals,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> float:
    """p value of "both sets come from one distribution", by how much further ``x`` is from real signals."""
    first, means, _ = _dealt(x, floor, permutations, seed, device)
    pooled, real = torch.cat(on(device, x, floor)), on(device, real)[0]
    away = torch.cat([block.mean(dim=1) for block in pair_distances(pooled, real)])  # (signals,)
    shares = torch.stack([first / len(x), (1 - first) / len(floor)])
    energies = 2 * torch.einsum("sid,i->sd", shares, away) - means
    return _p(energies[0] - energies[1], means[0, 0])


def _p(statistics: Tensor, scale: Tensor) -> float:
    """Share of deals whose statistic is at least that of the first, the sets as they are."""
    as_far = statistics[1:] >= statistics[0] - TIE * scale
    return (1 + int(as_far.sum())) / len(statistics)


def _dealt(
    x: Signals, y: Signals, permutations: int, seed: int, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor]:  # (signals, deals), (2, deals), (deals,)
    """Deals, and for each the mean distance between distinct signals within its sets, and between the two."""
    pooled = torch.cat(on(device, x, y))
    first = _deals(len(x), len(pooled), permutations, seed, device)
    together = torch.cat([torch.ones_like(first[:, :1]), first], dim=1)
    sums = torch.cat([block @ together for block in pair_distances(pooled, pooled)])
    within_x, of_x = (first * sums[:, 1:]).sum(dim=0), (first * sums[:, :1]).sum(dim=0)
    between, n, m = of_x - within_x, len(x), len(y)
    within_y = sums[:, 0].sum() - within_x - 2 * between
    return first, torch.stack([within_x / (n * (n - 1)), within_y / (m * (m - 1))]), between / (n * m)


def _deals(
    n: int, size: int, permutations: int, seed: int, device: torch.device | str
) -> Tensor:  # (size, 1 + permutations)
    """1 for the signals of the first set, 0 for the others: as they are, then dealt out anew."""
    places = Stream(seed, "permutations", device).uniform(range(permutations), size).argsort(dim=1)
    as_they_are = torch.arange(size, device=device)
    return (torch.cat([as_they_are[None], places]) < n).double().T
