"""Scores: aMMD and its parts, with the floor beside them.

The package is called ``evaluation`` because ``grcd.evaluate`` is the function users call.
"""

from .controls import controls
from .score import Scores, ammd, evaluate, floor

__all__ = ["Scores", "ammd", "controls", "evaluate", "floor"]
