"""Stationary references of windows: a covariance that depends on the lag between two steps alone.

A window is a row of ``steps x columns`` z-scores, one step after the other; a column is a node, or a channel of one.

**Lag covariances.** ``C_l = E[z_(t+l) z_t^T]``, entry by entry over the pairs of readings that were both observed. Raw,
they overfit badly (METR-LA: 49,704 readings a column for 207 x 24 numbers), so they are mixed with two smaller models,

    C'_l = w * [(1 - a - b) C_l + a (C_l within a node, 0 between nodes) + b r_l C_0] + noise [l = 0] I
    w_ij = rho_ij^2 / (rho_ij^2 + local^2) between nodes, 1 within

with ``r_l = tr C_l / tr C_0``: the second is time (x) space. ``w`` (entry by entry; ``rho`` the correlation at lag 0)
takes weak correlations for noise and leaves strong ones alone, as if correlations were estimated from ``1 / local^2``
independent moments. The window's covariance is the block Toeplitz matrix ``Sigma[(t, i), (s, j)] = C'_(t-s)[i, j]``,
``C'_-l = C'_l^T``. Such matrices need not be positive definite: eigenvalues below the noise are raised to it (raised
to a small floor they are directions known for sure, and AQI-36's MAE is 18 in place of 14).

**Conditioning.** With ``Q = Sigma^-1`` kept, hidden readings ``h`` given observed ones ``o`` are ``N(m, P)`` with

    P = (Q_hh)^-1               m = -P Q_ho x_o                            a factor as large as what is hidden
    P = Sigma_hh - G^T G        m = G^T L^-1 x_o,   G = L^-1 Sigma_oh     L L^T = Sigma_oo: as large as what is observed

Each window takes the cheaper one; windows of about the same size are factored in one batch, padded with the identity,
and windows that all have one mask share its factor.
Both want ``L^-1`` alone. With ``Q_hh = L L^T`` a draw is ``m + L^-T xi``. Otherwise Matheron's rule corrects a draw
``z`` of the whole window, ``x_h = z_h + Sigma_ho Sigma_oo^-1 (x_o - z_o)``.

**Likelihood**, of what was observed, from the same factor: with ``x_h = m`` filled in,

    -2 log p(x_o) = x^T Q x + log det Sigma + log det Q_hh + (number observed) log 2 pi

so that shrinkage can be chosen by validation windows at the cost of an inverse a candidate. Better than by this joint
likelihood, which rewards small noise in smooth directions, it is chosen by the CRPS of readings hidden at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import torch
from torch import Tensor

FLOOR = 1e-3  # least noise, in z-scores
LEAF = {"cpu": 64, "cuda": 64}  # rows under which a factor is the library's
ELEMENTS = {"cpu": 2**20, "cuda": 2**31}  # numbers in one batch of factors
CROSSOVER = 0.4  # share observed under which the factor of what is observed is the cheaper one


@dataclass(frozen=True)
class Shrinkage:
    """How much of a covariance goes to independent nodes, how much to time (x) space, the correlation that counts for
    half, and what is added as noise."""

    nodes: float = 0.0
    separable: float = 0.3
    local: float = 0.3
    noise: float = 0.05


def lag_covariances(z: Tensor, lags: int, runs: Sequence[slice] | None = None) -> Tensor:  # (lags, columns, columns)
    """``C_l = E[z_(t+l) z_t^T]`` over the pairs both observed, 0 for a pair never seen together.

    ``z`` (rows, columns) has NaN where missing; ``runs`` are stretches of rows without a break (default: all of them).
    """
    columns = z.shape[1]
    total = torch.zeros(lags, columns, columns, dtype=torch.float64, device=z.device)
    count = torch.zeros_like(total)
    for run in runs or [slice(None)]:
        seen = ~z[run].isnan()
        filled, seen = z[run].nan_to_num(), seen.to(z.dtype)
        for lag in range(min(lags, len(filled))):
            early = slice(0, len(filled) - lag)
            total[lag] += filled[lag:].T @ filled[early]
            count[lag] += seen[lag:].T @ seen[early]
    return total / count.clamp(min=1)


def shrunk(C: Tensor, by: Shrinkage, node: Tensor | None = None) -> Tensor:  # (lags, columns, columns)
    """Lag covariances mixed with smaller models; ``node`` (columns,) is each one's node (default: one a column)."""
    node = torch.arange(C.shape[1], device=C.device) if node is None else node
    within = node[:, None] == node
    correlation = C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace()
    mixed = (1 - by.nodes - by.separable) * C + by.nodes * C * within
    mixed += by.separable * correlation[:, None, None] * C[0]
    if by.local > 0:
        sd = C[0].diagonal().clamp(min=1e-12).sqrt()
        rho2 = (C[0] / (sd[:, None] * sd)).square()
        mixed *= torch.where(within, 1, rho2 / (rho2 + by.local**2))
    mixed[0] += by.noise * torch.eye(len(within), dtype=C.dtype, device=C.device)
    return mixed


def toeplitz(C: Tensor) -> Tensor:  # (lags, columns, columns) -> (lags columns, lags columns)
    """The covariance of a window of as many steps as there are lags."""
    steps, columns, _ = C.shape
    Sigma = C.new_empty(steps, columns, steps, columns)
    for lag in range(steps):
        later = torch.arange(lag, steps, device=C.device)
        Sigma[later, :, later - lag] = C[lag] if lag else (C[0] + C[0].T) / 2
        Sigma[later - lag, :, later] = C[lag].T if lag else (C[0] + C[0].T) / 2
    return Sigma.reshape(steps * columns, steps * columns)


def factored(Sigma: Tensor, noise: float) -> tuple[Tensor, Tensor]:  # the covariance, its lower factor
    """A covariance with no eigenvalue much below ``noise``, and its Cholesky factor: ``Sigma`` itself where half of the
    noise is left over everywhere, else with eigenvalues raised to the noise, so that no direction is known for sure."""
    noise = max(noise, FLOOR)
    if torch.linalg.cholesky_ex(Sigma - noise / 2 * torch.eye(len(Sigma), dtype=Sigma.dtype, device=Sigma.device))[1]:
        v, B = torch.linalg.eigh(Sigma)
        Sigma = (B * v.clamp(min=noise)) @ B.T
        Sigma = (Sigma + Sigma.T) / 2
    return Sigma, torch.linalg.cholesky(Sigma)


def inverse_factor(A: Tensor) -> Tensor:  # (batch, n, n) -> (batch, n, n), lower
    """``L^-1`` of ``A = L L^T``, by halves, so that nearly all of it is matrix products: on a GPU a batch of Cholesky
    factors of some thousand rows each is many times slower."""
    n = A.shape[-1]
    if n <= LEAF[A.device.type]:
        L = torch.linalg.cholesky(A)
        return torch.linalg.solve_triangular(L, torch.eye(n, dtype=A.dtype, device=A.device), upper=False)
    half = n // 2
    first = inverse_factor(A[..., :half, :half])
    below = A[..., half:, :half] @ first.mT
    second = inverse_factor(A[..., half:, half:] - below @ below.mT)
    root = torch.zeros_like(A)
    root[..., :half, :half], root[..., half:, half:] = first, second
    root[..., half:, :half] = -(second @ below) @ first
    return root


@dataclass(frozen=True)
class Posterior:
    """Windows given what was observed of them: everywhere a mean and a spread, and draws where they were asked for."""

    mean: Tensor  # (windows, d): what was observed, or the posterior mean
    sd: Tensor  # (windows, d): 0 where observed
    draws: Tensor | None  # (windows, draws, d) of the whole posterior
    log_prob: Tensor  # (windows,) of what was observed


@dataclass(frozen=True)
class Stationary:
    """``N(0, Sigma)`` over windows of ``steps x columns`` z-scores."""

    Sigma: Tensor  # (d, d)
    L: Tensor  # (d, d), its lower Cholesky factor
    Q: Tensor  # (d, d), its inverse
    shrinkage: Shrinkage

    @classmethod
    def of(cls, C: Tensor, by: Shrinkage, node: Tensor | None = None, dtype: torch.dtype = torch.float64) -> Stationary:
        """From lag covariances; kept in ``dtype``, whatever they were."""
        Sigma, L = factored(toeplitz(shrunk(C, by, node)).to(torch.promote_types(dtype, torch.float32)), by.noise)
        return cls(Sigma.to(dtype), L.to(dtype), torch.cholesky_inverse(L).to(dtype), by)

    @property
    def d(self) -> int:
        return len(self.Sigma)

    def tensors(self) -> dict[str, Tensor]:
        """What there is to save, by name."""
        return {"Sigma": self.Sigma, "shrinkage": torch.tensor(astuple(self.shrinkage), dtype=torch.float64)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Stationary:
        """The way back."""
        Sigma, by = tensors["Sigma"], Shrinkage(*tensors["shrinkage"].tolist())
        L = torch.linalg.cholesky(Sigma)
        return cls(Sigma, L, torch.cholesky_inverse(L), by)

    def log_determinant(self) -> float:
        return 2 * float(self.L.diagonal().double().log().sum())

    def draw(self, xi: Tensor) -> Tensor:  # (..., d) standard normal -> (..., d)
        """Whole windows."""
        return xi @ self.L.T

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> Posterior:
        """Windows ``z`` (windows, d) of which ``observed`` (windows, d) says what may be seen; the rest is ignored.

        ``xi`` (windows, draws, d), standard normal: draws from the whole posterior as well.
        """
        z = torch.where(observed, z, 0).to(self.Sigma.dtype)
        groups = 1 if bool((observed == observed[:1]).all()) else len(z)  # one factor serves all members of a history
        wide, seen = z.view(groups, len(z) // groups, self.d), observed[:groups]
        mean, sd = torch.empty_like(wide), torch.empty_like(wide)
        log_prob = torch.empty(wide.shape[:2], dtype=torch.float64, device=z.device)
        noise = None if xi is None else xi.to(z.dtype).reshape(*wide.shape[:2], *xi.shape[1:])
        draws = None if noise is None else torch.empty_like(noise)
        for some, few_observed in self._batches(seen):
            share = None if noise is None else noise[some]
            by = self._by_observed if few_observed else self._by_hidden
            mean[some], sd[some], log_prob[some], draw = by(wide[some], seen[some], share)
            if draws is not None:
                draws[some] = draw
        drawn = None if draws is None else draws.flatten(0, 1)
        return Posterior(mean.view_as(z), sd.view_as(z), drawn, log_prob.flatten())

    def _batches(self, observed: Tensor) -> Iterator[tuple[Tensor, bool]]:
        """Windows of about the same cost, as many as memory allows, and whether to go by what is observed."""
        count = observed.sum(1)
        for few in (False, True):
            chosen = torch.nonzero((count < CROSSOVER * self.d) == few)[:, 0]
            size = count[chosen] if few else self.d - count[chosen]
            order = size.argsort(descending=True)
            chosen, sizes, first = chosen[order], size[order].tolist(), 0
            while first < len(sizes):
                width = max(sizes[first], 1) * (self.d if few else sizes[first] or 1)
                last = first + max(1, ELEMENTS[self.Sigma.device.type] // (3 * width))
                yield chosen[first:last], few
                first = last

    # Windows in groups of one mask each: z (groups, windows, d), observed (groups, d), xi (groups, windows, draws, d).

    def _by_hidden(self, z: Tensor, observed: Tensor, xi: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        place, real = _places(~observed)
        root = inverse_factor(_picked(self.Q, place, real))  # P = root^T root
        m = -(_taken(z @ self.Q, place, real) @ root.mT) @ root
        mean = _put(z, place, real, m)
        sd = _put(torch.zeros_like(z[:, :1]), place, real, root.square().sum(1)[:, None].sqrt())
        quadratic = ((mean @ self.Q) * mean).double().sum(2)
        log_det = self.log_determinant() - 2 * root.diagonal(dim1=1, dim2=2).double().log().sum(1)
        log_prob = -0.5 * (quadratic + (log_det + observed.sum(1) * math.log(2 * math.pi))[:, None])
        if xi is None:
            return mean, sd, log_prob, mean
        spread = _put(torch.zeros_like(xi).flatten(1, 2), place, real, _taken(xi.flatten(1, 2), place, real) @ root)
        return mean, sd, log_prob, mean[:, :, None] + spread.view_as(xi)

    def _by_observed(self, z: Tensor, observed: Tensor, xi: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        place, real = _places(observed)
        root = inverse_factor(_picked(self.Sigma, place, real))
        G = root @ (self.Sigma[place] * real[..., None])  # (groups, o, d)
        y = _taken(z, place, real) @ root.mT
        mean = torch.where(observed[:, None], z, y @ G)
        sd = torch.where(observed, 0, (self.Sigma.diagonal() - G.square().sum(1)).clamp(min=0).sqrt())[:, None]
        log_det = -2 * root.diagonal(dim1=1, dim2=2).double().log().sum(1)
        quadratic = y.double().square().sum(2)
        log_prob = -0.5 * (quadratic + (log_det + real.sum(1) * math.log(2 * math.pi))[:, None])
        if xi is None:
            return mean, sd, log_prob, mean
        whole = self.draw(xi)
        gap = _taken((z[:, :, None] - whole).flatten(1, 2), place, real) @ root.mT @ G
        return mean, sd, log_prob, torch.where(observed[:, None, None], z[:, :, None], whole + gap.view_as(xi))


@dataclass(frozen=True)
class Trial:
    """Windows that a choice is made on, and lag covariances that were fitted without them."""

    C: Tensor  # (lags, columns, columns)
    z: Tensor  # (windows, lags columns)
    observed: Tensor  # (windows, lags columns)
    hidden: Tensor | None = None  # what of it to hide and to predict; None: judge by the likelihood of what is observed

    def cost(self, by: Shrinkage, node: Tensor | None) -> tuple[float, int]:
        """A sum over readings, and their number: CRPS of hidden ones given the rest, or the likelihood's loss."""
        reference = Stationary.of(self.C, by, node, self.z.dtype)
        if self.hidden is None:
            return -float(reference.posterior(self.z, self.observed).log_prob.sum()), int(self.observed.sum())
        posterior = reference.posterior(self.z, self.observed & ~self.hidden)
        scored = self.observed & self.hidden
        loss = normal_crps(self.z[scored], posterior.mean[scored], posterior.sd[scored])
        return float(loss.double().sum()), int(scored.sum())


def normal_crps(y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    """``sd (w (2 Phi(w) - 1) + 2 phi(w) - 1 / sqrt(pi))`` with ``w = (y - mean) / sd``."""
    w = (y - mean) / sd
    density = torch.exp(-0.5 * w.square()) / math.sqrt(2 * math.pi)
    return sd * (w * torch.special.erf(w / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))


def chosen_shrinkage(
    trials: Sequence[Trial], node: Tensor | None = None, start: Shrinkage | None = None, rounds: int = 2
) -> tuple[Shrinkage, dict[Shrinkage, float]]:
    """The shrinkage that costs least a reading over the trials, and what was tried: a walk along one weight at a time.

    One trial of validation windows, or several that leave out a stretch of training rows each. Covariances may have
    fewer lags than the reference will: weights hardly depend on it, and the cost falls with its cube.
    """
    tried: dict[Shrinkage, float] = {}

    def cost(by: Shrinkage) -> float:
        if by not in tried:
            total, count = map(sum, zip(*(trial.cost(by, node) for trial in trials), strict=True))
            tried[by] = total / count
        return tried[by]

    best = start or Shrinkage()
    for _ in range(rounds):
        before = best
        for weight in WALK:
            for other in _beside(best, weight):
                while other is not None and cost(other) < cost(best):
                    best, other = other, _further(best, other)
        if best == before:
            break
    return best, tried


# How a weight moves: by factors or by steps, and where it stops.
WALK = {
    "local": (1.5, 0.0, 0.02, 2.0),
    "noise": (2.0, 0.0, 2e-3, 1.0),
    "separable": (1.0, 0.1, 0.0, 1.0),
    "nodes": (1.0, 0.1, 0.0, 1.0),
}


def _beside(by: Shrinkage, weight: str) -> list[Shrinkage | None]:
    """One step up and one down along a weight, None beyond its ends."""
    factor, step, least, most = WALK[weight]
    value = getattr(by, weight)
    both = [replace(by, **{weight: round(each, 6)}) for each in (value * factor + step, value / factor - step)]
    return [e if least <= getattr(e, weight) <= most and e.nodes + e.separable <= 1 else None for e in both]


def _further(before: Shrinkage, now: Shrinkage) -> Shrinkage | None:
    """The next step in the direction of the last one."""
    weight = next(name for name in WALK if getattr(before, name) != getattr(now, name))
    up, down = _beside(now, weight)
    return up if getattr(now, weight) > getattr(before, weight) else down


def _places(chosen: Tensor) -> tuple[Tensor, Tensor]:  # two of (windows, most)
    """Where each window's chosen entries are, padded to the longest, and which of the places are real."""
    most = max(int(chosen.sum(1).max()), 1)
    place = chosen.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
    return place, chosen.gather(1, place)


def _picked(A: Tensor, place: Tensor, real: Tensor) -> Tensor:  # (windows, most, most)
    """A window's rows and columns of ``A``, the identity in the padding."""
    part = A[place[:, :, None], place[:, None, :]]
    part *= real[:, :, None] & real[:, None, :]
    part.diagonal(dim1=1, dim2=2).add_((~real).to(A))
    return part


def _taken(z: Tensor, place: Tensor, real: Tensor) -> Tensor:  # (groups, rows, d) -> (groups, rows, most)
    """Each group's places of its rows, 0 in the padding."""
    return z.gather(2, place[:, None].expand(-1, z.shape[1], -1)) * real[:, None]


def _put(z: Tensor, place: Tensor, real: Tensor, values: Tensor) -> Tensor:  # (groups, rows, d)
    """``z`` with values (groups, rows, most) at each group's places."""
    place = place[:, None].expand(-1, z.shape[1], -1)
    return z.scatter(2, place, torch.where(real[:, None], values, z.gather(2, place)))
