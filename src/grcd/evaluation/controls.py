"""Controls: what a covariance, or a few of them, achieve without a network (appendix A.7.1).

The four Gaussians are the paper's. The mixture goes beyond it: it is the one that ``grcd`` takes as its reference, with
as many components as pay off on validation signals (see ``mixture_fit``).
"""

from __future__ import annotations

import numpy as np
import torch

from ..core.errors import InputError
from ..core.streams import Stream
from ..data import Dataset
from ..graphs.graph import LARGE
from ..references import gaussian as reference
from ..references.covariance import EPS_REF, ledoit_wolf
from ..references.mixture_fit import select
from ..references.reference import Reference


def controls(data: Dataset, mixture: bool = False) -> dict[str, Reference]:
    """The four zero-mean Gaussians of the paper, fitted on the z-scored training split, by name.

    The ``mixture`` comes with them on request only: it takes a minute on METR-LA.
    """
    if data.graph.large:
        what = f"Gaussian controls on a graph of {len(data.graph):,} nodes, whose covariances are whole"
        raise InputError(what, f"up to {LARGE:,} nodes", "score without controls")
    z = data.normalizer.apply(data.train)
    covariance = ledoit_wolf(z, eps_ref=0.0)
    shifted = covariance + EPS_REF * np.eye(len(covariance))
    spectral = reference.spectral(shifted, data.graph.spectrum)
    gaussians: dict[str, Reference] = {
        "control-diagonal": reference.diagonal(covariance),
        "control-full": reference.full(covariance),
        "control-gmrf": reference.gmrf(data.graph.spectrum),
        "control-spectral": spectral,
    }
    if not mixture:
        return gaussians
    signals = {"control gaps": z, "control validation gaps": data.normalizer.apply(data.val)}
    complete = [spectral.whole(torch.from_numpy(part), Stream(0, purpose)) for purpose, part in signals.items()]
    return gaussians | {"control-mixture": select(*complete)}


def draw(control: Reference, data: Dataset, n: int, seed: int) -> np.ndarray:  # (n, nodes), in the data's units
    """Signals from a control. All controls of one seed share their noise."""
    noise = Stream(seed, "control").normal(0, n * len(data.graph)).view(n, -1)
    u = Stream(seed, "control component").uniform(0, n)
    return data.normalizer.undo(control.draw(noise, 0.0, u).numpy())
