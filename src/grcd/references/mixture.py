"""A Gaussian mixture as a reference: several regimes, each with a mean and a covariance, and still no network.

In conjugate coordinates the marginal of ``sum_k w_k N(m_k, Sigma_k)`` at noise level ``q`` is the same mixture with
``Sigma_k + q^2 I``, so with the posterior probabilities ``r_k`` of its components (softmax of ``log w_k + log N_k``)

    score               sum_k r_k(x~, q) s_k(x~ - m_k, q),      s_k the score of component k
    noise prediction    eps_ref = -q score

are exact. Its probability flow has no closed form: it is integrated by Runge-Kutta steps of order four, evenly spaced
in ``log q``. They ask nothing of the network, and there may be as many as one likes. With one component there is
nothing to integrate, and the Gaussian's own propagator is taken.

**Fitting** is expectation-maximisation from k-means in the leading principal coordinates, first on a part of the
signals, then on all. With ``n_k`` signals in a component its covariance is mixed with the one that all components
share, as if the latter had been seen on as many signals as there are nodes:

    Sigma_k = (n_k S_k + nodes S~) / (n_k + nodes) + eps I,     S~ = (1 - b) S + b m I,     S = sum_k n_k S_k / n

so that a component of few signals is never singular, and one of many is its own. ``b`` is Ledoit and Wolf's (see
``reference``), of signals about the means of their components: few signals altogether are not singular either.

**How many components** is decided by the likelihood of validation signals: more for as long as each of them gains a
tenth of what the second one did. Without that share it would go on rising slowly (on METR-LA to eight components and
more, where now there are four), but what the network then makes of the reference gets worse on the same validation
signals, not better: sharp components that lie side by side have a score that turns quickly, which is hard to correct.
A control has no validation signals; there it is the Bayesian information criterion on the training signals, one more
for as long as it falls. It asks for more signals before it allows for a second component.

    BIC = p log n - 2 log-likelihood,       p = K (nodes + nodes (nodes + 1) / 2) + K - 1

**Thousands of nodes.** Above ``LARGE`` nodes whole covariances cost too much. The mixture is then fitted in ``RANK``
leading principal coordinates, and all directions that these leave out share one variance: components are of low rank,
``p`` counts ``RANK`` in place of the nodes, and nothing grows faster than ``nodes RANK``, but for one covariance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast

import numpy as np
import torch
from torch import Tensor

from ..core.progress import bar
from ..core.rows import evenly
from ..diffusion.process import Level
from .gaussian import EPS_REF, Gaussian, LowRank, stacked

COMPONENTS = (2, 3, 4, 6, 8)  # tried in this order, after one
LARGE, RANK = 512, 256  # nodes; principal coordinates where there are more
WARM_UP = 5000  # signals of the first iterations
ITERATIONS, LAST = 40, 10  # on a part, on all
GAIN = 1e-3  # nats a signal: what an iteration must bring
NOTICEABLE, SHARE = 0.1, 0.1  # nats a signal that a component must bring; and the share of the second one's
CHUNK = 1 << 22  # entries held at a time


@dataclass(frozen=True)
class Mixture:
    """``sum_k weight_k N(mean_k, Sigma_k)``; the parts are Gaussian references of any kind."""

    weights: Tensor  # (components,)
    means: Tensor  # (components, nodes)
    parts: tuple[Gaussian, ...]
    _stacks: list[tuple[Tensor, Gaussian]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_stacks", [*self._stacked()])

    def _stacked(self) -> Iterator[tuple[Tensor, Gaussian]]:  # means (k, 1, nodes), and the parts as one
        """On a GPU neighbours of one kind share their products; on a processor, for the sake of its caches, none do."""
        kinds = [(type(part), part.B.shape) if part.B.is_cuda else k for k, part in enumerate(self.parts)]
        for _, run in groupby(range(len(kinds)), kinds.__getitem__):
            here = [*run]
            yield self.means[here, None], stacked([self.parts[k] for k in here])

    def to(self, device: torch.device | str) -> Mixture:
        return Mixture(self.weights.to(device), self.means.to(device), tuple(part.to(device) for part in self.parts))

    def tensors(self) -> dict[str, Tensor]:
        """What there is to save, for parts of one kind."""
        v, B = (torch.stack([getattr(part, key) for part in self.parts]) for key in ("v", "B"))
        return {"weights": self.weights, "means": self.means, "v": v, "B": B}

    @classmethod
    def of(cls, weights: Tensor, means: Tensor, v: Tensor, B: Tensor) -> Mixture:
        """From what was saved: a part with fewer modes than nodes is of low rank."""
        nodes, rank = B.shape[1:]
        kind = Gaussian if rank == nodes else LowRank
        if not len(weights) == len(B) or means.shape != B.shape[:2] or v.shape != (len(B), rank + (kind is LowRank)):
            raise ValueError("weights, means and covariances of the mixture have different sizes")
        return cls(weights, means, tuple(kind(*part) for part in zip(v, B, strict=True)))

    def covariance(self, q: Level = 0.0) -> Tensor:
        """Of all components together, about their common mean."""
        centred = self.means - self.weights @ self.means
        within = sum(w * part.covariance(q) for w, part in zip(self.weights, self.parts, strict=True))
        return within + (self.weights[:, None] * centred).T @ centred

    def variances(self) -> tuple[np.ndarray, np.ndarray]:  # two of (modes of all parts,)
        """The spectra of all parts, which count as much as the parts weigh."""
        v, counts = zip(*(part.variances() for part in self.parts), strict=True)
        return np.concatenate(v), np.concatenate([float(w) * c for w, c in zip(self.weights, counts, strict=True)])

    def scored(self, x: Tensor, q: Level) -> tuple[Tensor, Tensor]:  # (...), (..., nodes)
        """Log-density and score of the marginal at level ``q``."""
        joint, scores = self._components(x, q)
        responsible = joint.softmax(-1)
        score = sum(responsible[..., k, None] * score for k, score in enumerate(scores))
        return joint.logsumexp(-1), cast(Tensor, score)  # of one component at least

    def _components(
        self, x: Tensor, q: Level
    ) -> tuple[Tensor, list[Tensor]]:  # (..., components), components of (..., nodes)
        """``log w_k + log N_k``, and the scores of the components."""
        rows = x.reshape(-1, x.shape[-1])
        q = q.expand(*x.shape[:-1], 1).reshape(-1, 1) if isinstance(q, Tensor) else q
        found = [parts.scored(rows - means, q) for means, parts in self._stacks]
        joint = torch.cat([log_prob for log_prob, _ in found]).T + self.weights.log()
        return joint.view(*x.shape[:-1], -1), [score.view_as(x) for _, scores in found for score in scores]

    def responsible(self, x: Tensor, q: Level = 0.0) -> Tensor:  # (..., components)
        """Posterior probabilities of the components."""
        return self._components(x, q)[0].softmax(-1)

    def log_prob(self, x: Tensor, q: Level = 0.0) -> Tensor:
        return self._components(x, q)[0].logsumexp(-1)

    def score(self, x: Tensor, q: Level) -> Tensor:
        return self.scored(x, q)[1]

    def eps(self, x: Tensor, q: Level) -> Tensor:
        """The noise prediction, ``-q`` times the score."""
        return -q * self.score(x, q)

    def draw(self, noise: Tensor, q: Level = 0.0, u: Tensor | None = None) -> Tensor:  # (batch, nodes), (batch,)
        """Draws of the marginal: ``u``, uniform on [0, 1), chooses the component; ``noise`` the rest."""
        if u is None:
            if len(self.parts) > 1:
                raise ValueError("a mixture needs uniform numbers to choose components by")
            return self.means[0] + self.parts[0].draw(noise, q)
        chosen = torch.searchsorted(self.weights.cumsum(0), u, right=True).clamp(max=len(self.parts) - 1)
        drawn = torch.stack([mean + part.draw(noise, q) for mean, part in zip(self.means, self.parts, strict=True)])
        return drawn[chosen, torch.arange(len(noise), device=noise.device)]

    def propagate(self, x: Tensor, q1: float, q0: float, steps: int = 8) -> Tensor:
        """Carry a state along the mixture's own probability flow."""
        return self.carry(x, q1, q0, (), steps)

    def carry(self, x: Tensor, q1: float, q0: float, forcing: Sequence[Tensor], steps: int = 8) -> Tensor:
        """The same with ``sum_j forcing_j (q - q0)^j`` added to the flow."""
        if len(self.parts) == 1:
            return self.means[0] + self.parts[0].carry(x - self.means[0], q1, q0, forcing)

        def slope(x: Tensor, q: float) -> Tensor:  # dx / d log q
            total = self.eps(x, q)
            for j, force in enumerate(forcing):
                total = total + (q - q0) ** j * force
            return q * total

        h = math.log(q1 / q0) / steps
        for step in range(steps):
            a = q0 * math.exp(step * h)
            b, c = a * math.exp(h / 2), a * math.exp(h)
            k1 = slope(x, a)
            k2 = slope(x + h / 2 * k1, b)
            k3 = slope(x + h / 2 * k2, b)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3, c))
        return x


Reference = Gaussian | Mixture


# -- fitting -----------------------------------------------------------------------------------------------------------


def select(train: Tensor, val: Tensor) -> Mixture:  # (samples, nodes) each, complete
    """The mixture with as many components as pay off on validation signals."""
    best, least = fit(train, 1), NOTICEABLE
    likelihood = mean_log_prob(best, val)
    for found in _more(train):
        other = mean_log_prob(found, val)
        gain = (other - likelihood) / (len(found.parts) - len(best.parts))
        if gain <= least:
            break
        if len(best.parts) == 1:
            least = max(least, SHARE * gain)
        best, likelihood = found, other
    return best


def select_by_bic(train: Tensor) -> Mixture:
    """The mixture with as many components as the Bayesian information criterion wants."""
    best = fit(train, 1)
    for found in _more(train):
        if bic(found, train) >= bic(best, train):
            break
        best = found
    return best


def _more(train: Tensor) -> Iterator[Mixture]:
    """Mixtures of more and more components, as far as there are signals for them."""
    counts = [count for count in COMPONENTS if len(train) >= 4 * count]
    with bar("reference", len(counts)) as advance:
        for tried, count in enumerate(counts):
            advance(tried, f"{count} components")
            yield fit(train, count)


def bic(found: Mixture, z: Tensor) -> float:
    count, modes = len(found.parts), found.parts[0].B.shape[1]
    free = count * (modes + modes * (modes + 1) / 2) + count - 1
    return free * math.log(len(z)) - 2 * len(z) * mean_log_prob(found, z)


def fit(z: Tensor, components: int) -> Mixture:  # (samples, nodes), complete
    """Expectation-maximisation: full covariances, or of low rank where there are many nodes."""
    z = z.double()
    if z.shape[1] > LARGE:
        return _low_rank(z, components)
    if components == 1:
        return maximised(z, torch.ones(len(z), 1).to(z))
    part = z[torch.from_numpy(np.asarray(evenly(len(z), WARM_UP))).to(z.device)]
    found = maximised(part, torch.nn.functional.one_hot(_grouped(part, components), components).to(z))
    found = _improved(found, part, ITERATIONS)
    return found if len(part) == len(z) else _improved(found, z, LAST)


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


def _improved(found: Mixture, z: Tensor, iterations: int) -> Mixture:
    """Iterate for as long as the likelihood rises noticeably; the shared covariance can make it fall by a little."""
    best, before = found, -math.inf
    for _ in range(iterations):
        joint = torch.cat([found._components(rows, 0.0)[0] for rows in _chunks(z, len(found.parts))])
        likelihood = float(joint.logsumexp(-1).mean())
        best = found if likelihood > before else best
        if likelihood - before < GAIN:
            break
        before, found = likelihood, maximised(z, joint.softmax(-1))
    return best


def maximised(z: Tensor, responsible: Tensor) -> Mixture:  # (samples, nodes), (samples, components)
    """The mixture that fits best if signals belong to components as they are said to (the M step)."""
    count, nodes = responsible.sum(0).clamp(min=1e-9), z.shape[1]
    means = (responsible.T @ z) / count[:, None]
    scatter, fourth = [], torch.zeros(()).to(z)
    for mean, r in zip(means, responsible.T, strict=True):
        off = z - mean
        scatter.append((off * r[:, None]).T @ off)  # n_k S_k
        fourth = fourth + r @ off.square().sum(1).square()
    shared, eye = _shrunk(sum(scatter) / len(z), fourth / len(z), len(z)), torch.eye(nodes).to(z)
    parts = [(s + nodes * shared) / (n + nodes) + EPS_REF * eye for s, n in zip(scatter, count, strict=True)]
    return Mixture(count / count.sum(), means, tuple(_eigen(C) for C in parts))


def _shrunk(S: Tensor, fourth: Tensor, n: int) -> Tensor:
    """Ledoit and Wolf's shrinkage of a covariance, with ``fourth`` the mean of ``|x|^4``."""
    target = S.trace() / len(S) * torch.eye(len(S)).to(S)
    distance, error = (S - target).square().sum(), (fourth - S.square().sum()) / n
    b = (error / distance).clamp(0.0, 1.0).nan_to_num(0.0)
    return (1 - b) * S + b * target


def _eigen(covariance: Tensor) -> Gaussian:
    v, B = torch.linalg.eigh(covariance)
    return Gaussian(v, B.contiguous())  # as it will be when it is loaded: products are then the same to the bit


def mean_log_prob(found: Mixture, z: Tensor) -> float:
    return float(torch.cat([found.log_prob(rows) for rows in _chunks(z.double(), len(found.parts))]).mean())


def _chunks(z: Tensor, components: int) -> Sequence[Tensor]:
    return z.split(max(1, CHUNK // (components * z.shape[1])))
