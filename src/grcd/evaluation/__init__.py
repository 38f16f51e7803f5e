"""Scores: aMMD and its parts, and distances that a covariance cannot fool, with the floor beside them.

The package is called ``evaluation`` because ``grcd.evaluate`` is the function users call.
"""

from ..metrics.permutation import farther_test, permutation_test
from .ammd import Scores, ammd, evaluate, floor
from .controls import controls
from .distances import Distance, distances

__all__ = [
    "Distance",
    "Scores",
    "ammd",
    "controls",
    "distances",
    "evaluate",
    "farther_test",
    "floor",
    "permutation_test",
]
