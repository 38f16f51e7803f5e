"""Permutation test: could two sets of signals have been drawn from the same distribution?

Under that hypothesis it does not matter which signal belongs to which set. So the energy distance between the two (see
``metrics``) is compared with the same distance after the labels were dealt out anew, ``P`` times:

    p = (1 + number of deals at least as far apart) / (1 + P)

which is at most ``alpha`` with probability at most ``alpha``, whatever the distribution and the number of signals. With
``D`` the distances between all signals of both sets and ``s`` the 0-1 vector of the first set, the sums that the energy
distance needs are ``s'Ds`` within the first set, ``s'D1 - s'Ds`` between the two, and the rest of ``1'D1`` within the
second. All deals are columns of one matrix: each block of ``D`` is formed once, multiplied once, and dropped.

The signals of a set have to be exchangeable, which generated ones are. Recorded ones follow each other in time: a small
``p`` may then say no more than that two weeks differ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..streams import Stream
from .metrics import Signals, on, pair_distances

PERMUTATIONS = 500
TIE = 1e-9  # of the mean distance: the same deal summed in another order


def permutation_test(
    x: Signals, y: Signals, permutations: int = PERMUTATIONS, seed: int = 0, device: str = "cpu"
) -> float:
    """p value of "both sets come from one distribution", by their energy distance."""
    pooled = torch.cat(on(device, x, y))
    first = _deals(len(x), len(pooled), permutations, seed, device)
    together = torch.cat([torch.ones_like(first[:, :1]), first], dim=1)
    sums = torch.cat([block @ together for block in pair_distances(pooled, pooled)])
    total, energies = sums[:, 0].sum(), _energies(first, sums[:, 1:], sums[:, :1])
    as_far = energies[1:] >= energies[0] - TIE * total / len(pooled) ** 2
    return (1 + int(as_far.sum())) / (1 + permutations)


def _deals(n: int, size: int, permutations: int, seed: int, device: str) -> Tensor:  # (size, 1 + permutations)
    """1 for the signals of the first set, 0 for the others: as they are, then dealt out anew."""
    places = Stream(seed, "permutations", device).uniform(range(permutations), size).argsort(dim=1)
    given = torch.arange(size, device=device)
    return (torch.cat([given[None], places]) < n).double().T


def _energies(first: Tensor, sums: Tensor, all_sums: Tensor) -> Tensor:  # (deals,), from s, Ds and D1
    n, m = (int(count) for count in (first[:, 0].sum(), (1 - first[:, 0]).sum()))
    within_x, of_x = (first * sums).sum(dim=0), (first * all_sums).sum(dim=0)
    between = of_x - within_x
    within_y = all_sums.sum() - within_x - 2 * between
    return 2 * between / (n * m) - within_x / (n * (n - 1)) - within_y / (m * (m - 1))
