"""SpaceTimeNet: what the reference leaves over in a window, given what was observed of it.

A window has ``steps x columns`` readings; a column is a node, or a channel of one. Hidden readings are seen in units
of the reference's posterior, ``u = (x - m) / sqrt(diag P)``, noised to level ``q``: ``u~ = u + q eps``. The network
answers two numbers a reading, ``F`` and ``s``, which say what ``u`` is given ``u~`` and everything observed:

    mean        u_hat = u~ / (1 + q^2) + q / sqrt(1 + q^2) F
    variance    V     = q^2 / (1 + q^2) exp(s)

Zeros are the reference itself, ``u ~ N(0, 1)``: there mean and variance are exact, and there training starts.

    input    h = linear[u~ / sqrt(1 + q^2), what is known of the reading] + column + step + linear(calendar of the step)
    block    h = h + attention over steps(norm(h))
             h = h + attention over columns(norm(h)) + S norm(h) diag(c)          S: the graph, c = 0 before training
             h = h + MLP(norm(h))
    output   linear(norm(h)), two numbers, at zero

Sampling by the reverse process of that mean and variance, from level ``q`` to ``p``, with ``r = (p / q)^2``,

    u~_p = u_hat + r (u~_q - u_hat) + sqrt(p^2 (1 - r) + (1 - r)^2 V) xi          p = 0: u_hat + sqrt(V) xi

has exact marginals at zero residual whatever the number of steps, and calibrated ones soon after.

Attention over steps and the MLP have a kernel each for sampling on a GPU, not in use yet (see ``block_kernels``).

Every norm is scaled and shifted by the level, ``log q / 4`` in sines and cosines through an MLP. A column's embedding
is the sum of its node's and its channel's.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import block_kernels as kernels
from .attention import attended

FREQUENCIES = 16
LOG_VARIANCE = (-8.0, 4.0)  # how far s may go

Answer = tuple[Tensor, Tensor]  # F and s, (batch, steps, columns) each
Network = Callable[[Tensor, Tensor, Tensor, Tensor], Answer]  # what ``SpaceTimeNet.forward`` takes


class Modulation(nn.Module):
    """``LayerNorm(h) (1 + scale(level)) + shift(level)``; a plain norm before training."""

    def __init__(self, width: int, level_dim: int):
        super().__init__()
        self.level = nn.Linear(level_dim, 2 * width)
        nn.init.zeros_(self.level.weight)
        nn.init.zeros_(self.level.bias)

    def forward(self, h: Tensor, tau: Tensor) -> Tensor:  # (batch, steps, columns, width), (batch, level_dim)
        scale, shift = self.level(tau)[:, None, None].chunk(2, dim=-1)
        return torch.addcmul(shift, F.layer_norm(h, h.shape[-1:]).to(scale.dtype), 1 + scale)


class Attention(nn.Module):
    """Every reading looks at the others of its column (``over`` = 1) or of its step (``over`` = 2)."""

    def __init__(self, width: int, heads: int, over: int):
        super().__init__()
        self.heads, self.over = heads, over
        self.inward, self.outward = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:  # (batch, steps, columns, width)
        batch, steps, columns, width = h.shape
        qkv = self.inward(h).reshape(batch, steps, columns, 3, self.heads, width // self.heads)
        # (3, batch, the other axis, heads, sequence, width of a head)
        qkv = qkv.permute(3, 0, 2, 4, 1, 5) if self.over == 1 else qkv.permute(3, 0, 1, 4, 2, 5)
        q, k, v = qkv.flatten(1, 2)
        mixed = attended(q, k, v).unflatten(0, (batch, -1))
        mixed = mixed.permute(0, 3, 1, 2, 4) if self.over == 1 else mixed.permute(0, 1, 3, 2, 4)
        return self.outward(mixed.flatten(3))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, level_dim: int):
        super().__init__()
        self.norms = nn.ModuleList(Modulation(width, level_dim) for _ in range(3))
        self.steps = Attention(width, heads, over=1)
        self.columns = Attention(width, heads, over=2)
        self.neighbours = nn.Parameter(torch.zeros(width))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, h: Tensor, tau: Tensor, S: Tensor) -> Tensor:  # (batch, steps, columns, width)
        if kernels.serves(h, self.steps.heads):
            return self._by_kernels(h, tau, S)
        h = h + self.steps(self.norms[0](h, tau))
        h = self._over_columns(h, tau, S)
        return h + self.mlp(self.norms[2](h, tau))

    def _over_columns(self, h: Tensor, tau: Tensor, S: Tensor) -> Tensor:
        u = self.norms[1](h, tau)
        return h + self.columns(u) + torch.matmul(S, u) * self.neighbours

    def _by_kernels(self, h: Tensor, tau: Tensor, S: Tensor) -> Tensor:
        """The same, what is between the parts in half of the bits."""
        first, _, last = (cast(Modulation, norm).level(tau) for norm in self.norms)
        inward, _, outward = (cast(nn.Linear, layer) for layer in self.mlp)
        h = kernels.over_steps(h.bfloat16(), first, self.steps.inward, self.steps.outward, self.steps.heads)
        return kernels.mlp(self._over_columns(h, tau, S).bfloat16(), last, inward, outward)


class SpaceTimeNet(nn.Module):
    """``F`` and ``s`` for every reading of a window; zero before training."""

    node: Tensor
    channel: Tensor
    S: Tensor
    frequencies: Tensor

    def __init__(
        self,
        steps: int,
        graph: Tensor,  # (nodes, nodes) its weights, normalised
        node: Tensor,  # (columns,) the node of each column
        channel: Tensor,  # (columns,) its channel
        features: int,  # numbers known of a reading
        calendar: int,  # numbers known of a step
        width: int = 128,
        blocks: int = 4,
        heads: int = 4,
    ):
        super().__init__()
        self.register_buffer("node", node, persistent=False)
        self.register_buffer("channel", channel, persistent=False)
        S = graph[node][:, node] * (channel[:, None] == channel)  # a channel hears of the same one next door
        self.register_buffer("S", S.float(), persistent=False)
        frequencies = 2 * math.pi * 2.0 ** (torch.arange(FREQUENCIES // 2) / 2 - 3)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.input = nn.Linear(1 + features, width)
        self.of_node = nn.Parameter(0.5 * torch.randn(int(node.max()) + 1, width))
        self.of_channel = nn.Parameter(0.5 * torch.randn(int(channel.max()) + 1, width))
        self.of_step = nn.Parameter(0.5 * torch.randn(steps, width))
        self.of_calendar = nn.Linear(calendar, width)
        self.level = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.blocks = nn.ModuleList(Block(width, heads, width) for _ in range(blocks))
        self.norm = Modulation(width, width)
        self.output = nn.Linear(width, 2)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, u: Tensor, q: Tensor, features: Tensor, calendar: Tensor) -> Answer:
        """``u`` (batch, steps, columns) noised to ``q`` (batch,), 0 where nothing is hidden; what is known of every
        reading (batch, steps, columns, features) and of every step (batch, steps, calendar)."""
        phase = (q.float().log() / 4)[:, None] * self.frequencies
        tau = self.level(torch.cat([phase.cos(), phase.sin()], dim=-1))
        scaled = u * (1 + q.square()).rsqrt()[:, None, None]
        h = self.input(torch.cat([scaled[..., None], features], dim=-1))
        h = h + self.of_node[self.node] + self.of_channel[self.channel]
        h = h + (self.of_step + self.of_calendar(calendar))[:, :, None]
        for block in self.blocks:
            h = block(h, tau, self.S)
        answer = self.output(self.norm(h, tau)).float()
        return answer[..., 0], answer[..., 1]


class Fused:
    """A network whose kernels are compiled at its first call, for inputs of one shape; the network itself where that
    fails (no Triton, no C compiler), which the log says: the same answers up to rounding, some slower."""

    def __init__(self, network: nn.Module):
        self.network = network
        self.call: Network = torch.compile(network, dynamic=False)
        self.compiled: bool | None = None  # not before the first call

    def __call__(self, u: Tensor, q: Tensor, features: Tensor, calendar: Tensor) -> Answer:
        if self.compiled is None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the compiler's own, none of which asks anything of the user
                    self.call(u, q, features, calendar)
                self.compiled = True
            except Exception as error:
                logging.getLogger(__name__).info("the network is not compiled: %r", error)
                self.call, self.compiled = self.network, False
        return self.call(u, q, features, calendar)


def stepped(u: Tensor, q: float, p: float, mean: Tensor, variance: Tensor, xi: Tensor) -> Tensor:
    """From level ``q`` to ``p``, 0 included, given what the network says at ``q``; ``xi`` is standard normal."""
    r = (p / q) ** 2
    return mean + r * (u - mean) + (p**2 * (1 - r) + (1 - r) ** 2 * variance).sqrt() * xi


def denoised(u: Tensor, q: Tensor, answer: Answer) -> tuple[Tensor, Tensor]:
    """Mean and variance of ``u`` given ``u~`` at level ``q``, which broadcasts."""
    raw, s = answer
    variance = q.square() / (1 + q.square())
    return u / (1 + q.square()) + variance.sqrt() * raw, variance * s.clamp(*LOG_VARIANCE).exp()
