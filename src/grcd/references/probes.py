"""A Gaussian given some entries of each signal where no factor fits into memory: products with the covariance alone.

Means and draws come from conjugate gradients, to a relative residual of ``TOLERANCE``. With ``M`` the mask of what is
observed, ``Sigma_oo u = b`` is solved preconditioned by ``Q_oo``, which is its inverse but for as many directions as
there are hidden entries:

    mean    x_h = Sigma_ho u,  Sigma_oo u = x_o               draws by Matheron's rule, with x_o - z_o in place of x_o

Spreads and the likelihood are **estimates**, from noise that is the same every time:

    sd          root mean square of ``PROBES`` draws about the mean: 1 / sqrt(2 PROBES), 9 %, off
    log det     of Sigma_oo, by Lanczos quadrature of ``STEPS`` steps from ``STARTS`` random signs
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from ..core.streams import Stream

TOLERANCE, MOST = 1e-6, 2000  # of conjugate gradients: residual, iterations
PROBES, STARTS, STEPS = 64, 8, 64
ENTRIES = 1 << 24  # of signals that are solved for together


class Products(Protocol):
    """A covariance by products with functions of it."""

    @property
    def v(self) -> Tensor: ...

    @property
    def multiplicity(self) -> Tensor: ...

    def filtered(self, x: Tensor, gain: Tensor) -> Tensor: ...


def posterior(
    part: Products, z: Tensor, observed: Tensor, xi: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Mean, spread (signals, d), draws (signals, draws, d), log-likelihood (signals,) of what is observed."""
    parts = list[tuple[Tensor, ...]]()
    noise = Stream(0, "probes of a posterior", z.device).normal(0, PROBES * z.shape[1]).view(PROBES, -1)
    for row in range(len(z)):
        seen = observed[row].to(part.v.dtype)
        x = torch.where(observed[row], z[row], 0).to(part.v.dtype)
        solution = solved(part, x[None], seen)
        mean = torch.where(observed[row], x, part.filtered(solution, part.v)[0])
        spread = _corrected(part, noise.to(x), torch.zeros_like(x), seen).square().mean(0).sqrt() * (1 - seen)
        quadratic = (solution[0] * x).double().sum()
        size = log_determinant(part, seen) + seen.double().sum() * math.log(2 * math.pi)
        own = mean[None] if xi is None else _corrected(part, xi[row].to(x), x, seen)
        parts.append((mean, spread, torch.where(observed[row], x, own), -0.5 * (quadratic + size)))
    mean, sd, draws, log_prob = (torch.stack(each) for each in zip(*parts, strict=True))
    return mean, sd, None if xi is None else draws, log_prob


def completed(part: Products, x: Tensor, xi: Tensor) -> Tensor:  # (signals, d) each
    """Signals with their missing entries (NaN) drawn given the others, from standard normal noise; nothing else."""
    observed = ~x.isnan()
    drawn = list[Tensor]()
    for rows in torch.arange(len(x), device=x.device).split(max(1, ENTRIES // x.shape[1])):
        seen, known = observed[rows].to(part.v), x[rows].nan_to_num().to(part.v)
        drawn.append(torch.where(observed[rows], known, _corrected(part, xi[rows].to(part.v), known, seen)))
    return torch.cat(drawn)


def _corrected(part: Products, xi: Tensor, x: Tensor, seen: Tensor) -> Tensor:  # (draws, d) thrice -> (draws, d)
    """Draws of the posterior from standard normal noise; signals and masks may also be one for all, (d,)."""
    whole = part.filtered(xi, part.v.sqrt())
    return whole + part.filtered(solved(part, (x - whole) * seen, seen), part.v)


def solved(part: Products, b: Tensor, seen: Tensor) -> Tensor:  # (rows, d), (rows, d) or (d,) -> (rows, d)
    """``Sigma_oo u = b_o``, 0 elsewhere, by preconditioned conjugate gradients."""
    u, r = torch.zeros_like(b), b * seen
    enough = TOLERANCE * r.norm(dim=1).clamp(min=torch.finfo(b.dtype).tiny)
    p = s = part.filtered(r, 1 / part.v) * seen
    energy = (r * s).sum(1, keepdim=True)
    for step in range(MOST):
        if step % 8 == 0 and bool((r.norm(dim=1) <= enough).all()):
            break
        along = part.filtered(p, part.v) * seen
        length = energy / (p * along).sum(1, keepdim=True).clamp(min=torch.finfo(b.dtype).tiny)
        u, r = u + length * p, r - length * along
        s = part.filtered(r, 1 / part.v) * seen
        before, energy = energy, (r * s).sum(1, keepdim=True)
        p = s + energy / before.clamp(min=torch.finfo(b.dtype).tiny) * p
    return u


def log_determinant(part: Products, seen: Tensor) -> Tensor:  # (d,) -> ()
    """An estimate of that of ``Sigma_oo``: ``|o|`` times the mean of ``log`` under the spectral measures of starts."""
    count = seen.sum().clamp(min=1)
    signs = Stream(0, "starts of a determinant", seen.device).uniform(0, STARTS * len(seen)).view(STARTS, -1)
    q = torch.where(signs < 0.5, -1, 1).to(seen) * seen / count.sqrt()
    basis, diagonal, beside = [q], list[Tensor](), list[Tensor]()
    for _ in range(min(STEPS, int(count))):
        w = part.filtered(basis[-1], part.v) * seen
        diagonal.append((w * basis[-1]).sum(1))
        for _ in range(2):  # against all that came before: rounding alone would lose it
            stack = torch.stack(basis, 1)  # (starts, steps, d)
            w = w - ((stack @ w[..., None]).mT @ stack)[:, 0]
        beside.append(w.norm(dim=1))
        basis.append(w / beside[-1][:, None].clamp(min=torch.finfo(w.dtype).tiny))
    T = torch.diag_embed(torch.stack(diagonal, 1))
    off = torch.stack(beside, 1)[:, :-1]
    T = T + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    values, vectors = torch.linalg.eigh(T)
    least = part.v.min()  # no eigenvalue of a part of a matrix is smaller than all of its own
    return (count * (vectors[:, 0].square() * values.clamp(min=least).log()).sum(1).mean()).double() * (seen.sum() > 0)
