"""Trained models with other parts."""

import copy
from dataclasses import replace

from grcd.tasks.sample import Memory


def with_parts(model, **parts):
    """The same model, but for these parts of its diffusion."""
    other = copy.copy(model)
    other._trained = replace(model.trained, diffusion=replace(model.diffusion, **parts))
    other._memory = Memory()
    return other
