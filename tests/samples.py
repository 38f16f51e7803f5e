"""Small samples of signals that tests of metrics compare, and the energy distance written out."""

import math

import numpy as np


def normal(n, nodes, seed, shift=0.0, scale=1.0):
    return shift + scale * np.random.RandomState(seed).standard_normal((n, nodes))


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def naive_energy(x, y):
    def mean(a, b, distinct):
        pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if i != j or not distinct]
        return np.mean([math.dist(a[i], b[j]) for i, j in pairs])

    return 2 * mean(x, y, False) - mean(x, x, True) - mean(y, y, True)


def chance(half):
    """Four standard errors of the accuracy that guessing has on two halves."""
    return 4 * 0.5 / math.sqrt(2 * half)
