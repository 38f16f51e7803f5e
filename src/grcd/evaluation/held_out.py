"""``grcd.evaluate``: signals against held-out signals, windows against held-out windows."""

from __future__ import annotations

import numpy as np
import torch

from ..core.errors import InputError
from ..data import Dataset
from ..data.series_dataset import SeriesDataset
from . import windows
from .ammd import Scores
from .ammd import evaluate as of_signals


def evaluate(
    signals: np.ndarray,
    data: Dataset | SeriesDataset,
    split: str = "test",
    device: torch.device | str = "cpu",
    observed_only: bool = False,
    controls: bool = False,
    support: tuple[float, float] | None = None,
) -> Scores:
    """``Scores``: aMMD of signals against a split, both z-scored with training statistics; the floor beside.

    ``signals``         (samples, nodes), in the data's units; windows (samples, steps, nodes[, channels]) where rows of
                        the data are in time (``load_series``), which are compared on the product graph
    ``data``            graph, training statistics and held-out signals
    ``split``           "test", "val" or "train"
    ``device``          where the sums over pairs are taken
    ``observed_only``   entries that were missing in the data, filled or not, are left out on both sides; where the data
                        still have gaps there is no other way
    ``controls``        whether as many signals from each control are compared too: what a covariance, or a few of
                        them, achieve without a network (the mixture takes a minute on METR-LA)
    ``support``         LOW, HIGH that the readings of controls keep to, as those of a model with that support do
    """
    if not isinstance(data, SeriesDataset):
        return of_signals(signals, data, split, device, observed_only, controls, support)
    if controls:
        raise InputError("controls for windows", "none: they are of signals by themselves", "leave controls out")
    return windows.evaluate(signals, data, split, device)
