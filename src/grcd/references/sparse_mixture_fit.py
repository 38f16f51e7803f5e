"""Regimes on a large graph: how a mixture of sparse references is fitted, where it pays.

What tells regimes apart is wide: they are looked for in the ``RANK`` leading principal coordinates of the signals, by
an ordinary mixture (``mixture_fit``), with as many components as validation signals ask for. If that is more than one,
every component gets a sparse reference of the signals that are most probably its own, about their mean. It is taken if
validation signals are then more probable, by ``NOTICEABLE`` for each component, under the whole mixture; each
likelihood has exact determinants. A component needs ``LEAST`` signals.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..graphs.graph import Graph
from . import mixture_fit
from .mixture_fit import NOTICEABLE
from .precision import Given
from .sparse import Sparse
from .sparse_fit import RANKS, SIGNALS, Task, principal, some_of
from .sparse_gaps import neighbourly
from .sparse_mixture import SparseMixture, mixed

RANK, MOST = 16, 4  # principal coordinates; components
LEAST = 64  # signals of a component


def fit(
    train: Tensor, val: Tensor, graph: Graph, seed: int = 0, ranks: tuple[int, ...] = RANKS
) -> Sparse | SparseMixture:
    """Of z-scored signals (samples, nodes), NaN where missing: one, or several where that pays."""
    task = Task.of(graph, val)
    one, whole = task.fitted(some_of(train, SIGNALS), ranks, seed)
    groups = grouped(whole, task.val.numpy().T)
    if groups is None or isinstance(one.precision, Given):
        return one
    several = separate(task, whole, *groups, one.modes.shape[1], seed)
    gain = (task.likelihood(several) - task.likelihood(one)) * len(graph) / (len(several.parts) - 1)
    return several if gain > NOTICEABLE else one


def grouped(x: np.ndarray, val: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:  # (samples,), (validation,)
    """Which component each of the signals (samples, nodes) is of; None where there is one."""
    if len(x) < 2 * LEAST:
        return None
    columns = torch.from_numpy(np.ascontiguousarray(x.T, dtype=np.float32))
    U = principal(columns, min(RANK, *x.shape))[0]
    along, held = (U.to(columns).T @ columns).double().T, torch.from_numpy(val.astype(np.float64)) @ U
    mixture = mixture_fit.select(along, held)
    if len(mixture.parts) > MOST:
        mixture = mixture_fit.fit(along, MOST)
    own, other = (mixture.components(each, 0.0)[0].argmax(1).numpy() for each in (along, held))
    counts = np.bincount(own, minlength=len(mixture.parts))
    return (own, other) if len(counts) > 1 and counts.min() >= LEAST else None


def separate(task: Task, x: np.ndarray, own: np.ndarray, held: np.ndarray, rank: int, seed: int) -> SparseMixture:
    """A reference of each group's signals about their mean, with as many modes as one of all has, if it has enough."""
    weights, means, parts = [], [], []
    rank = min(rank, int(np.bincount(own).min() / 4))
    for k in range(own.max() + 1):
        group = x[own == k]
        mean = group.mean(0)
        judge = task.judge[held == k] if (held == k).any() else task.judge
        part = Task(task.neighbours, task.weights, neighbourly(judge, task.weights) - mean)
        parts.append(part.fitted(group - mean, (rank,), seed)[0])
        weights.append(len(group))
        means.append(mean)
    return mixed(np.array(weights), np.array(means), parts)
