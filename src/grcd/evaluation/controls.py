"""Gaussian controls: what a covariance alone achieves, without a network (appendix A.7.1)."""

from __future__ import annotations

import numpy as np

from .. import reference
from ..data import Dataset
from ..reference import Gaussian
from ..streams import Stream


def controls(data: Dataset) -> dict[str, Gaussian]:
    """The four zero-mean Gaussians of the paper, fitted on the z-scored training split."""
    covariance = reference.ledoit_wolf(data.normalizer.apply(data.train), eps_ref=0.0)
    shifted = covariance + reference.EPS_REF * np.eye(len(covariance))
    return {
        "control-diagonal": reference.diagonal(covariance),
        "control-full": reference.full(covariance),
        "control-gmrf": reference.gmrf(data.graph.spectrum),
        "control-spectral": reference.spectral(shifted, data.graph.spectrum),
    }


def draw(control: Gaussian, data: Dataset, n: int, seed: int) -> np.ndarray:  # (n, nodes), in the data's units
    """Signals from a control. All controls of one seed share their noise."""
    noise = Stream(seed, "control").normal(0, n * len(data.graph)).view(n, -1)
    return data.normalizer.undo(control.draw(noise).numpy())
