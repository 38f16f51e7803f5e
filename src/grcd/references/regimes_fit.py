"""Regimes of windows: a mixture of stationary references, fitted by expectation-maximisation over windows with gaps.

A regime has a mean a column, the same at every step, and lag covariances of its own (see ``lags``). A window belongs to
one of them; with ``r`` how probable each regime is of a window, given what was observed of it, and all pairs of
readings of a window weighed by ``r``, pairwise over gaps,

    mean_k = n_k mean / (n_k + 1)
    C_k = (n_k C_k + n_0 C) / (n_k + n_0),      C = sum_k n_k C_k / n,      n_0 = columns

with ``n_k`` windows in regime ``k``: a regime of few windows is that of all. Shrinkage is the same for all of them.

It is fitted on **short windows, one after the other**, and some of them alone: regimes are told apart by a few steps
of many columns, and the cost falls with the cube of the steps. Lag covariances of longer windows are then those of all
rows, each weighed by the regimes of the short window that it lies in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..core.rows import evenly
from .lags import Shrinkage, lag_covariances
from .mixture import Mixture
from .stationary import Stationary

WINDOWS, ITERATIONS = 256, 8  # of the fit, at most
GAIN = 1e-4  # nats a reading: what an iteration must bring
LEAST = 8  # windows a regime


def fit(
    z: Tensor, runs: Sequence[slice], steps: int, short: int, components: int, by: Shrinkage, node: Tensor
) -> Mixture | None:
    """So many regimes of windows of ``steps`` rows of ``z`` (rows, columns), NaN where missing, fitted on windows of
    ``short`` rows; None where there are too few of them."""
    rows = np.concatenate([_cut(run, short) for run in runs])  # (windows, short)
    if len(rows) < LEAST * components:
        return None
    windows = z[torch.from_numpy(rows).to(z.device)]
    weight = _responsible(_regimes(windows, components, by, node), windows)  # (windows, K)
    of_row = torch.zeros(len(z), components, dtype=torch.float64, device=z.device)
    of_row[torch.from_numpy(rows.ravel()).to(z.device)] = weight.repeat_interleave(short, 0)
    means = _means(z[:, None], of_row, per=short)
    lags = [
        lag_covariances((z - mean).double(), steps, runs, share) for mean, share in zip(means, of_row.T, strict=True)
    ]
    return _mixture(weight.sum(0), means, torch.stack(lags), steps, by, node)


def _cut(run: slice, steps: int) -> np.ndarray:  # (windows, steps)
    """Rows of windows one after the other."""
    count = (run.stop - run.start) // steps
    return run.start + np.arange(count * steps).reshape(count, steps)


def _regimes(windows: Tensor, components: int, by: Shrinkage, node: Tensor) -> Mixture:  # (windows, steps, columns)
    """Expectation-maximisation on some of the windows."""
    some = windows[torch.from_numpy(np.asarray(evenly(len(windows), WINDOWS))).to(windows.device)]
    weight = torch.nn.functional.one_hot(_grouped(some, components), components).double()
    steps, readings, before = windows.shape[1], float((~some.isnan()).sum()), -torch.inf
    mixture = best = _maximised(some, weight, steps, by, node)
    for _ in range(ITERATIONS):
        joint = _joint(mixture, some)
        likelihood = float(joint.logsumexp(1).sum()) / readings
        best = mixture if likelihood > before else best
        if likelihood - before < GAIN:
            break
        before, mixture = likelihood, _maximised(some, joint.softmax(1), steps, by, node)
    return best


def _grouped(windows: Tensor, components: int) -> Tensor:  # (windows,)
    """Groups to start from: k-means of leading principal coordinates of the windows' means, and of their spread."""
    from sklearn.cluster import KMeans

    level = windows.nanmean(1).nan_to_num().double()
    basis = torch.linalg.eigh(level.T @ level)[1][:, -8:]
    spread = (windows - level[:, None]).square().nanmean((1, 2)).nan_to_num().double()
    features = torch.cat([level @ basis, (spread + 1e-3).log()[:, None]], 1)
    features = (features - features.mean(0)) / features.std(0).clamp(min=1e-9)
    labels = KMeans(components, n_init=4, random_state=0).fit_predict(features.cpu().numpy())
    return torch.from_numpy(labels).long().to(windows.device)


def _joint(mixture: Mixture, windows: Tensor) -> Tensor:  # (windows, K)
    """``log w_k + log p_k`` of what was observed."""
    flat = windows.flatten(1)
    parts = zip(mixture.parts, mixture.means, strict=True)
    return torch.stack([p.posterior(flat - m, ~flat.isnan()).log_prob for p, m in parts], 1) + mixture.weights.log()


def _responsible(mixture: Mixture, windows: Tensor) -> Tensor:  # (windows, K)
    return _joint(mixture, windows).softmax(1)


def _maximised(windows: Tensor, weight: Tensor, steps: int, by: Shrinkage, node: Tensor) -> Mixture:
    """The M step: windows (windows, steps, columns) belong to regimes as ``weight`` (windows, K) says."""
    means = _means(windows, weight)
    lags = torch.stack([_lags((windows - m).double(), w) for m, w in zip(means, weight.T, strict=True)])
    return _mixture(weight.sum(0), means, lags, steps, by, node)


def _means(windows: Tensor, weight: Tensor, per: int = 1) -> Tensor:  # (K, columns)
    """Of columns in each regime, as if there were one window more, of zeros; ``per`` windows count for one."""
    total = torch.einsum("wk,wc->kc", weight, windows.nan_to_num().double().sum(1))
    seen = torch.einsum("wk,wc->kc", weight, (~windows.isnan()).double().sum(1))
    return total / (seen + windows.shape[1] * per)


def _lags(
    windows: Tensor, weight: Tensor
) -> Tensor:  # (windows, steps, columns), (windows,) -> (steps, columns, columns)
    """Lag covariances within windows, pairwise over gaps."""
    share = weight[:, None, None].sqrt()
    seen, filled = (~windows.isnan()).double() * share, windows.nan_to_num() * share
    lags = []
    for lag in range(windows.shape[1]):
        late, early = slice(lag, None), slice(0, windows.shape[1] - lag)
        total, count = (each[:, late].flatten(0, 1).T @ each[:, early].flatten(0, 1) for each in (filled, seen))
        lags.append(total / count.clamp(min=1e-9))
    return torch.stack(lags)


def _mixture(count: Tensor, means: Tensor, lags: Tensor, steps: int, by: Shrinkage, node: Tensor) -> Mixture:
    """Of regimes with so many windows (K,), means (K, columns) and lag covariances (K, steps, columns, columns)."""
    shared, columns = torch.einsum("k,klij->lij", count / count.sum(), lags), means.shape[1]
    mixed = (count[:, None, None, None] * lags + columns * shared) / (count[:, None, None, None] + columns)
    parts = tuple(Stationary.of(C, by, node, torch.float32) for C in mixed)
    return Mixture(count / count.sum(), means.repeat(1, steps), parts)
