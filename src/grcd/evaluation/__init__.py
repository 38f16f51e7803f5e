"""How near generated signals are to held-out ones: aMMD, distances that a covariance cannot fool, filled gaps.

``ammd`` and ``comparison`` compare signals, the floor beside; ``controls`` are what needs no network; ``filling`` hides
readings and compares what fills them, and ``baselines`` are what a model that fills gaps has to beat. In time the same
are ``windows``, ``hiding`` and ``guesses``, and ``competitors``. The public tables of windows have a ``protocol``; what
they ask are ``pieces``, answered by competitors or, of the future, by ``foretelling``, and summed up in a ``tally``,
from which ``bootstrap`` has intervals over weeks.

The package is called ``evaluation`` because ``grcd.evaluate`` is the function users call.
"""

from ..metrics.permutation import farther_test, permutation_test
from .ammd import Scores, ammd, floor
from .comparison import Distance, distances
from .controls import controls
from .held_out import evaluate

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
