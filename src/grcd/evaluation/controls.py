"""Controls: what a covariance, or a few of them, achieve without a network (appendix A.7.1).

The four Gaussians are the paper's. The mixture goes beyond it: full covariances fitted by expectation-maximisation, one
component more for as long as the Bayesian information criterion on the training signals falls.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

from .. import reference
from ..data import Dataset
from ..mixture import Mixture
from ..reference import Gaussian
from ..streams import Stream

MOST_COMPONENTS = 8
RIDGE = 1e-3  # added to the variances of a component, of z-scored signals


def controls(data: Dataset, mixture: bool = False) -> dict[str, Gaussian | Mixture]:
    """The four zero-mean Gaussians of the paper, fitted on the z-scored training split.

    The ``mixture`` takes a minute on METR-LA, so it has to be asked for.
    """
    z = data.normalizer.apply(data.train)
    covariance = reference.ledoit_wolf(z, eps_ref=0.0)
    shifted = covariance + reference.EPS_REF * np.eye(len(covariance))
    found = {
        "control-diagonal": reference.diagonal(covariance),
        "control-full": reference.full(covariance),
        "control-gmrf": reference.gmrf(data.graph.spectrum),
        "control-spectral": reference.spectral(shifted, data.graph.spectrum),
    }
    if mixture:
        complete = found["control-spectral"].whole(torch.from_numpy(z), Stream(0, "control gaps"))
        found["control-mixture"] = fit_mixture(complete.numpy())
    return found


def fit_mixture(z: np.ndarray) -> Mixture:  # (samples, nodes)
    """As many components as the Bayesian information criterion wants."""
    from sklearn.mixture import GaussianMixture

    best, z = None, z.astype(np.float64)
    for components in range(1, min(MOST_COMPONENTS, len(z)) + 1):
        model = GaussianMixture(components, reg_covar=RIDGE, random_state=0)
        with warnings.catch_warnings():  # what has not quite converged is judged by the same criterion
            warnings.simplefilter("ignore")
            model.fit(z)
        found = model.bic(z), model
        if best is not None and found[0] >= best[0]:
            break
        best = found
    model = best[1]
    parts = tuple(reference.full(covariance) for covariance in model.covariances_)
    return Mixture(torch.from_numpy(model.weights_), torch.from_numpy(model.means_), parts)


def draw(
    control: Gaussian | Mixture, data: Dataset, n: int, seed: int
) -> np.ndarray:  # (n, nodes), in the data's units
    """Signals from a control. All controls of one seed share their noise."""
    noise = Stream(seed, "control").normal(0, n * len(data.graph)).view(n, -1)
    which = [0.0, Stream(seed, "control component").uniform(0, n)] if isinstance(control, Mixture) else []
    return data.normalizer.undo(control.draw(noise, *which).numpy())
