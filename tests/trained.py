"""Trained models with other parts."""

import copy
from dataclasses import replace

from grcd.tasks.sample import Memory
from grcd.training import fit


def with_parts(model, **parts):
    """The same model, but for these parts of its diffusion."""
    other = copy.copy(model)
    other._trained = replace(model.trained, diffusion=replace(model.diffusion, **parts))
    other._memory = Memory()
    return other


def sampled_as(model, method):
    """The same model, sampled as another method would, whether or not it was trained for that."""
    return with_parts(model, **vars(fit.sampled_as(model.diffusion, method)))
