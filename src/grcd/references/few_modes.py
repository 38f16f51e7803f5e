"""A Gaussian of low rank given some entries of each signal, by a system as large as it has modes, for any mask.

With ``Sigma = r I + B D B^T``, ``B`` (d, k) orthonormal, ``A = B_o^T B_o`` over what is observed and
``S = (r I + D A)^-1 D``, which is symmetric, what is hidden is ``N(m, P)`` with

    m = B_h S B_o^T x_o          P = r (I + B_h S B_h^T)

and what is observed has

    x_o^T Sigma_oo^-1 x_o = (|x_o|^2 - y^T S y) / r,    y = B_o^T x_o
    log det Sigma_oo = |o| log r + log det (I + D A / r)

``D`` may have any sign, so that variances of modes may be smaller than that of the rest. Draws by Matheron's rule.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .conditioning import ELEMENTS, WindowPosterior


class FewModes:
    """``v`` (k + 1,): variances of the modes ``B`` (d, k), and of all directions that they leave out."""

    def __init__(self, v: Tensor, B: Tensor):
        self.v, self.B, self.like, self.d = v, B, B, len(B)

    def posterior(self, z: Tensor, observed: Tensor, xi: Tensor | None = None) -> WindowPosterior:
        z = torch.where(observed, z, 0).to(self.like.dtype)
        size = max(1, ELEMENTS[self.like.device.type] // (self.d * max(1, self.B.shape[1])))
        rows = torch.arange(len(z), device=z.device).split(size)
        parts = [self._some(z[some], observed[some], None if xi is None else xi[some].to(z.dtype)) for some in rows]
        mean, sd, draws, log_prob = (torch.cat(each) for each in zip(*parts, strict=True))
        return WindowPosterior(mean, sd, None if xi is None else draws, log_prob)

    def _some(self, z: Tensor, observed: Tensor, xi: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        B, r, D = self.B, self.v[-1], self.v[:-1] - self.v[-1]
        seen = observed.to(z.dtype)
        A = (B.T * seen[:, None]) @ B  # (signals, k, k)
        inner = D[:, None] * A + r * torch.eye(len(D), dtype=z.dtype, device=z.device)
        S = torch.linalg.solve(inner, D.diag().expand_as(A))
        S = (S + S.mT) / 2
        y = (z @ B)[:, None]  # (signals, 1, k)
        mean = torch.where(observed, z, ((y @ S) @ B.T)[:, 0])
        variance = r * (1 + ((B @ S) * B).sum(2))
        sd = torch.where(observed, 0, variance.clamp(min=0).sqrt())
        count = observed.sum(1).double()
        quadratic = (z.double().square().sum(1) - ((y @ S) * y).double().sum((1, 2))) / float(r)
        log_det = (count - len(D)) * math.log(float(r)) + torch.linalg.slogdet(inner.double())[1]
        log_prob = -0.5 * (quadratic + log_det + count * math.log(2 * math.pi))
        if xi is None:
            return mean, sd, mean[:, None], log_prob
        whole = self.draw(xi)
        off = torch.where(observed[:, None], z[:, None] - whole, 0)
        draws = torch.where(observed[:, None], z[:, None], whole + (off @ B) @ S @ B.T)
        return mean, sd, draws, log_prob

    def draw(self, xi: Tensor) -> Tensor:
        root = self.v.sqrt()
        return xi * root[-1] + ((xi @ self.B) * (root[:-1] - root[-1])) @ self.B.T
