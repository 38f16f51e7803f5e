"""Gaussian controls: what a covariance alone achieves, without a network (appendix A.7.1)."""

from __future__ import annotations

import numpy as np
import torch

from .. import reference
from ..data import Dataset
from ..reference import Gaussian
from ..streams import stream


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
    noise = torch.from_numpy(stream(seed, "control").standard_normal((n, len(data.graph))))
    return data.normalizer.undo(control.draw(noise).numpy())
