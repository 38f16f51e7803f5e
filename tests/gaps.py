"""Signals with missing readings."""

import numpy as np


def holes(x, share=0.3, seed=0):
    """At random, but every node is observed in the first two signals."""
    missing = np.random.RandomState(seed).random_sample(x.shape) < share
    missing[:2] = False
    return np.where(missing, np.nan, x)
