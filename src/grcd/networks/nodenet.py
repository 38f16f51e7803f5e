"""NodeNet, a network that knows its nodes (beyond the paper). Beside DenoiserGNN, with the same interface.

DenoiserGNN shares its weights over all nodes, so two sensors with the same surroundings are the same to it, whatever
their readings look like. Real sensors differ: one is skewed, one is capped, one always agrees with a far one. Here

    input     h_n = x_n w + e_n                        e_n: an embedding of node n
    block     u = LayerNorm(h) (1 + g_n + scale(t)) + b_n + shift(t)          node and time modulate every channel
              h = h + linear(SiLU(linear(u) + A u + S u diag(c)))             A: learned N x N, S: the graph
    output    f_n = LayerNorm(h)_n . o_n + d_n         a read-out for each node

with ``S = L / lambda_max``. The read-out starts at zero, so training starts at the reference itself and can only
improve on it: a network that learns nothing leaves the reference as it is.

**Size**, for N nodes, width w and B blocks: ``B (N^2 + 2 N w + 2 w^2) + 2 N w`` numbers and what time takes, half a
million for METR-LA at width 128 (DenoiserGNN: 61,185). **Cost**, per signal and channel: two products of ``2 N^2``
operations and two mixes a block, about as much as DenoiserGNN. **When**: signals by the thousands on a fixed graph. A
few hundred signals are too few for so many numbers, and a graph that changes has no use for them: take DenoiserGNN.

On a large graph ``A`` is of low rank, ``A = P R^T`` with ``RANK`` columns each, and ``S`` acts by sparse products.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.graph import LARGE, LargeSpectrum, Spectrum
from ..graphs.kronecker import dense
from ..graphs.polynomials import sparse_tensor
from . import gnn
from .gnn import embedded, frequencies, products

RANK = 16  # of ``A`` on a large graph


@dataclass(frozen=True)
class Setting(gnn.Setting):
    """DenoiserGNN's, by the same names. ``taps`` has no effect: there are no filters; run folders hold it."""

    def size(self, nodes: int) -> int:
        width, time_dim = self.width, self.time_dim
        pairs = 2 * RANK * nodes if nodes > LARGE else nodes**2
        block = pairs + 2 * nodes * width + 2 * (time_dim + 1) * width + (2 * width + 3) * width
        return self.blocks * block + 2 * nodes * width + width + nodes + (time_dim + 1) * time_dim


class Modulation(nn.Module):
    """``LayerNorm(h) (1 + g_n + scale(t)) + b_n + shift(t)``: the same at the start for all nodes and times."""

    def __init__(self, nodes: int, width: int, time_dim: int):
        super().__init__()
        self.gain, self.bias = (nn.Parameter(torch.zeros(nodes, width)) for _ in range(2))
        self.time = nn.Linear(time_dim, 2 * width)
        nn.init.zeros_(self.time.weight)
        nn.init.zeros_(self.time.bias)

    def forward(self, h: Tensor, tau: Tensor) -> Tensor:  # (batch, nodes, width), (1 or batch, time_dim)
        scale, shift = self.time(tau)[:, None, :].chunk(2, dim=-1)
        return torch.addcmul(self.bias + shift, F.layer_norm(h, h.shape[-1:]), 1 + self.gain + scale)  # in one pass


class NodeBlock(nn.Module):
    """``h + linear(SiLU(linear(u) + A u + S u diag(c)))`` with ``u`` the modulated ``h``."""

    def __init__(self, nodes: int, width: int, time_dim: int, rank: int = 0):
        super().__init__()
        self.modulation = Modulation(nodes, width, time_dim)
        if rank:
            self.to_far = nn.Parameter(torch.randn(nodes, rank) / nodes)
            self.from_far = nn.Parameter(torch.randn(nodes, rank) / rank**0.5)
        else:
            self.A = nn.Parameter(torch.randn(nodes, nodes) / nodes)
        self.c = nn.Parameter(torch.zeros(width))
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h: Tensor, tau: Tensor, S: Tensor) -> Tensor:
        u = self.modulation(h, tau)
        if S.is_sparse:
            far, near = self.from_far @ (self.to_far.T @ u), products(S, u)
        else:
            far, near = self.A @ u, S @ u
        return h + self.outer(F.silu(torch.addcmul(self.inner(u) + far, near, self.c)))


class NodeNet(nn.Module):
    """``f_theta(x, t)`` for signals ``x`` in graph coordinates; zero before training."""

    starts_at_zero = True
    S: Tensor  # (nodes, nodes)
    frequencies: Tensor

    def __init__(self, spectrum: Spectrum, setting: Setting):
        super().__init__()
        width, time_dim = setting.width, setting.time_dim
        if isinstance(spectrum, LargeSpectrum):
            S, rank = sparse_tensor(spectrum.shift).float(), RANK
        else:
            U = dense(spectrum.basis).numpy()
            S, rank = torch.from_numpy((U * setting.eigenvalues(spectrum)) @ U.T).float().contiguous(), 0
        nodes = S.shape[0]
        self.register_buffer("S", S, persistent=False)  # comes from the graph
        self.register_buffer("frequencies", frequencies(time_dim).float(), persistent=False)
        self.input = nn.Parameter(torch.randn(width))
        self.embedding = nn.Parameter(torch.randn(nodes, width))
        self.time = nn.Sequential(nn.Linear(time_dim, time_dim), nn.SiLU())
        self.blocks = nn.ModuleList(NodeBlock(nodes, width, time_dim, rank) for _ in range(setting.blocks))
        self.output = nn.Parameter(torch.zeros(nodes, width))
        self.offset = nn.Parameter(torch.zeros(nodes))

    @property
    def is_zero(self) -> bool:
        """Whether it is still what it was before training."""
        return not (self.output.any() or self.offset.any())

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # (batch, nodes), () or (batch, 1) -> (batch, nodes)
        kind = self.output.dtype
        tau = self.time(embedded(t, self.frequencies).to(kind))
        h = x.to(kind)[..., None] * self.input + self.embedding
        for block in self.blocks:
            h = block(h, tau, self.S)
        return ((F.layer_norm(h, h.shape[-1:]) * self.output).sum(-1) + self.offset).float()
