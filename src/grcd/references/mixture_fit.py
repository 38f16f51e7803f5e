"""Fitting a mixture: expectation-maximisation, and how many components there are.

It starts from k-means in the leading principal coordinates, first on a part of the signals, then on all. With ``n_k``
signals in a component its covariance is mixed with the one that all components share, as if the latter had been seen on
as many signals as there are nodes:

    Sigma_k = (n_k S_k + nodes S~) / (n_k + nodes) + eps I,     S~ = (1 - b) S + b m I,     S = sum_k n_k S_k / n

so that a component of few signals is never singular, and one of many is its own. ``b`` is Ledoit and Wolf's (see
``covariance``), of signals about the means of their components: few signals altogether are not singular either.

**How many components** is decided by the likelihood of validation signals: more for as long as each of them gains a
tenth of what the second one did. Without that share it would go on rising slowly (on METR-LA to eight components and
more, where now there are four), but what the network then makes of the reference gets worse on the same validation
signals, not better: sharp components that lie side by side have a score that turns quickly, which is hard to correct.

**Thousands of nodes.** Above ``LARGE`` nodes whole covariances cost too much. The mixture is then fitted in ``RANK``
leading principal coordinates, and all directions that these leave out share one variance: components are of low rank,
and nothing grows faster than ``nodes RANK``, but for one covariance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ..core.progress import bar
from ..core.rows import evenly
from .covariance import EPS_REF, shrunk
from .gaussian import Gaussian, LowRank
from .mixture import Mixture

COMPONENTS = (2, 3, 4, 6, 8)  # tried in this order, after one
LARGE, RANK = 512, 256  # nodes; principal coordinates where there are more
WARM_UP = 5000  # signals of the first iterations
ITERATIONS, LAST = 40, 10  # on a part, on all
GAIN = 1e-3  # nats a signal: what an iteration must bring
NOTICEABLE, SHARE = 0.1, 0.1  # nats a signal that a component must bring; and the share of the second one's
CHUNK = 1 << 22  # entries held at a time


def select(train: Tensor, val: Tensor) -> Mixture:  # (samples, d) each, complete
    """The mixture with as many components as pay off on validation signals."""
    best, least = fit(train, 1), NOTICEABLE
    likelihood = mean_log_prob(best, val)
    for larger in _larger(train):
        other = mean_log_prob(larger, val)
        gain = (other - likelihood) / (len(larger.parts) - len(best.parts))
        if gain <= least:
            break
        if len(best.parts) == 1:
            least = max(least, SHARE * gain)
        best, likelihood = larger, other
    return best


def _larger(train: Tensor) -> Iterator[Mixture]:
    """Mixtures of more and more components, as far as there are signals for them."""
    counts = [count for count in COMPONENTS if len(train) >= 4 * count]
    with bar("reference", len(counts)) as advance:
        for tried, count in enumerate(counts):
            advance(tried, f"{count} components")
            yield fit(train, count)


def mean_log_prob(mixture: Mixture, z: Tensor) -> float:
    """Mean log-density of signals ``z`` (samples, d), in nats a signal."""
    return float(torch.cat([mixture.log_prob(rows) for rows in _chunks(z.double(), len(mixture.parts))]).mean())


def _chunks(z: Tensor, components: int) -> Sequence[Tensor]:
    return z.split(max(1, CHUNK // (components * z.shape[1])))


def fit(z: Tensor, components: int) -> Mixture:  # (samples, d), complete
    """A mixture of so many components: full covariances, or of low rank where there are many nodes."""
    z = z.double()
    if z.shape[1] > LARGE:
        return _low_rank(z, components)
    if components == 1:
        return maximised(z, torch.ones(len(z), 1).to(z))
    part = z[torch.from_numpy(np.asarray(evenly(len(z), WARM_UP))).to(z.device)]
    groups = torch.nn.functional.one_hot(_grouped(part, components), components).to(z)
    mixture = _improved(maximised(part, groups), part, ITERATIONS)
    return mixture if len(part) == len(z) else _improved(mixture, z, LAST)


def _low_rank(z: Tensor, components: int) -> Mixture:
    """Fitted in principal coordinates; one variance for the rest."""
    n, nodes = z.shape
    P = torch.linalg.eigh(z.T @ z)[1][:, -RANK:].contiguous()
    along = z @ P
    rest = (z.square().sum() - along.square().sum()) / (n * (nodes - RANK)) + EPS_REF
    inner = fit(along, components)
    parts = tuple(LowRank(torch.cat([part.v, rest[None]]), (P @ part.B).contiguous()) for part in inner.parts)
    return Mixture(inner.weights, inner.means @ P.T, parts)


def _grouped(z: Tensor, components: int) -> Tensor:  # (samples,)
    """Groups to start from: k-means in the leading principal coordinates."""
    from sklearn.cluster import KMeans

    basis = torch.linalg.eigh(z.T @ z)[1][:, -16:]
    labels = KMeans(components, n_init=4, random_state=0).fit_predict((z @ basis).cpu().numpy())
    return torch.from_numpy(labels).long().to(z.device)


def _improved(mixture: Mixture, z: Tensor, iterations: int) -> Mixture:
    """Iterate for as long as the likelihood rises noticeably; the shared covariance can make it fall by a little."""
    best, before = mixture, -math.inf
    for _ in range(iterations):
        joint = torch.cat([mixture.components(rows, 0.0)[0] for rows in _chunks(z, len(mixture.parts))])
        likelihood = float(joint.logsumexp(-1).mean())
        best = mixture if likelihood > before else best
        if likelihood - before < GAIN:
            break
        before, mixture = likelihood, maximised(z, joint.softmax(-1))
    return best


def maximised(z: Tensor, responsible: Tensor) -> Mixture:  # (samples, d), (samples, K)
    """The mixture that fits best if signals belong to components as they are said to (the M step)."""
    count, (n, nodes) = responsible.sum(0).clamp(min=1e-9), z.shape
    means = (responsible.T @ z) / count[:, None]
    S, scatter, fourth = torch.zeros(nodes, nodes).to(z), [], torch.zeros(()).to(z)
    for mean, r in zip(means, responsible.T, strict=True):
        off = z - mean
        scatter.append((off * r[:, None]).T @ off)  # n_k S_k
        S = S + scatter[-1]
        fourth = fourth + r @ off.square().sum(1).square()
    S, eye = S / n, torch.eye(nodes).to(z)
    shared = shrunk(S, (fourth / n - S.square().sum()) / n, eye)
    parts = [(s + nodes * shared) / (m + nodes) + EPS_REF * eye for s, m in zip(scatter, count, strict=True)]
    return Mixture(count / count.sum(), means, tuple(_eigen(C) for C in parts))


def _eigen(covariance: Tensor) -> Gaussian:
    v, B = torch.linalg.eigh(covariance)
    return Gaussian(v, B.contiguous())  # as it will be when it is loaded: products are then the same to the bit
