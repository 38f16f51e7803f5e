"""Scores: aMMD and its parts, and distances that a covariance cannot fool, with the floor beside them.

The package is called ``evaluation`` because ``grcd.evaluate`` is the function users call.
"""

from .controls import controls
from .distances import Distance, distances
from .permutation import farther_test, permutation_test
from .score import Scores, ammd, evaluate, floor

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
