"""DenoiserGNN, the network that every method of the paper shares (appendix A.6.2; 61,185 parameters at its sizes).

    input     linear (1 + time_dim -> width) on [x_n, embedding of t], for every node n
    block     per-channel polynomial filter  sum_k h_kc S^k  (taps S^0 .. S^5),  linear,  SiLU,  LayerNorm
    output    linear (width -> 1), plus the input signal

with ``S = L / lambda_max`` (or ``L`` itself, as in GAD's release). The filter of channel ``c`` is ``U diag(R_c) U^T``
with the response ``R_nc = sum_k h_kc lam_n^k``, so it costs two products with ``U`` whatever the number of taps; the
plain way takes five products with ``S``. And the first filter needs only one: the input layer is linear, so it can be
applied to the coefficients, ``U^T (x w^T + 1 tau^T) = (U^T x) w^T + (U^T 1) tau^T``.

Per signal and channel, the three filters then take five products of ``2 N^2`` operations (the plain way: fifteen),
the mixes ``3 N`` times ``2 width``.

Matrix units want multiples of eight, so ``U`` is padded with ghost nodes and ghost modes: rows and columns
of zeros, through which nothing reaches the real ones. On a product graph ``U`` is applied one axis at a time (see
``graphs/space``), without ghosts; nothing else changes. On a graph too large for ``U`` filters are the plain way, by
sparse products with ``S``: as many as there are taps.

It starts as in GAD's release, whose network the paper takes: taps normal with standard deviation 0.05, weights
Xavier-uniform, biases zero (docs/paper.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core.errors import InputError, unknown
from ..core.settings import ranged
from ..graphs.graph import LargeSpectrum, Spectrum
from ..graphs.kronecker import Basis, Kronecker
from ..graphs.polynomials import sparse_tensor
from .kernels import silu_norm
from .setting import NetworkSetting

SHIFTS = ("scaled", "unscaled")


@dataclass(frozen=True)
class Setting(NetworkSetting):
    """The paper's sizes; what is larger than a range allows is a slip."""

    width: int = ranged(128, most=1 << 16)
    blocks: int = ranged(3, most=1000)
    taps: int = ranged(5, most=1000)
    time_dim: int = ranged(64, most=1 << 16)
    shift: str = "scaled"  # or "unscaled": L as it is, in place of L / lambda_max

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shift not in SHIFTS:
            raise unknown("shift", self.shift, SHIFTS)
        if self.time_dim % 2:
            raise InputError(
                f"time_dim = {self.time_dim}", "an even time_dim", "choose an even one: cosines and sines come in pairs"
            )

    def eigenvalues(self, spectrum: Spectrum) -> np.ndarray:  # (modes,)
        """Of the shift ``S``."""
        return spectrum.scaled() if self.shift == "scaled" else spectrum.lam

    def size(self, nodes: int) -> int:
        block = (self.taps + 1 + self.width + 3) * self.width
        return (2 + self.time_dim) * self.width + self.blocks * block + self.width + 1

    def layer(self, nodes: int) -> int:
        return nodes * self.width

    def kept(self, nodes: int) -> int:
        return 4 * self.blocks * self.layer(nodes)


def frequencies(time_dim: int) -> Tensor:  # (time_dim / 2,)
    """``2 pi 10^(-4 k / K)``."""
    return 2 * math.pi * 10 ** (-4 * torch.arange(time_dim // 2, dtype=torch.float64) / (time_dim // 2))


def embedded(t: Tensor, frequencies: Tensor) -> Tensor:  # () or (batch, 1) -> (1 or batch, time_dim)
    """Cosines and sines of a time."""
    phase = t.float().reshape(-1, 1) * frequencies.float()
    return torch.cat([phase.cos(), phase.sin()], dim=-1)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Block(nn.Module):
    """``LayerNorm(SiLU(linear(filter(h))))``; takes graph-Fourier coefficients, returns node values."""

    def __init__(self, width: int, taps: int):
        super().__init__()
        self.h = nn.Parameter(0.05 * torch.randn(taps + 1, width))
        self.mix = _linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, z: Tensor, U: Basis, powers: Tensor) -> Tensor:  # (batch, modes, width) -> (batch, nodes, width)
        response = powers @ self.h  # (modes, width)
        return silu_norm(self.mix(U @ (response * z)), self.norm.weight, self.norm.bias)

    def by_products(self, h: Tensor, S: Tensor) -> Tensor:  # (batch, nodes, width) twice
        """The same of node values, with ``S`` itself: Horner's rule."""
        total = self.h[-1] * h
        for tap in reversed(self.h[:-1]):
            total = tap * h + products(S, total)
        return silu_norm(self.mix(total), self.norm.weight, self.norm.bias)


class DenoiserGNN(nn.Module):
    """``f_theta(x, t)`` for signals ``x`` in graph coordinates."""

    ones: Tensor  # (modes, 1)
    powers: Tensor  # (modes, taps + 1)
    frequencies: Tensor

    def __init__(self, spectrum: Spectrum, setting: Setting):
        super().__init__()
        width, taps, time_dim = setting.width, setting.taps, setting.time_dim
        self._bound(spectrum, setting)
        self.input = _linear(1 + time_dim, width)
        self.blocks = nn.ModuleList(Block(width, taps) for _ in range(setting.blocks))
        self.output = _linear(width, 1)

    def _bound(self, spectrum: Spectrum, setting: Setting) -> None:
        """What comes from the graph."""
        taps, time_dim = setting.taps, setting.time_dim
        lam, U = torch.from_numpy(setting.eigenvalues(spectrum)), spectrum.basis
        self.nodes, ghosts = len(lam), -len(lam) % 8 if isinstance(U, Tensor) else 0
        U = F.pad(U, (0, ghosts) * 2) if isinstance(U, Tensor) else U
        parts = {f"U{k}": factor for k, factor in enumerate([U] if isinstance(U, Tensor) else U.factors)}
        self.parts = [part if isinstance(part, int) else name for name, part in parts.items()]
        for name, value in {
            **{name: part for name, part in parts.items() if isinstance(part, Tensor)},
            "ones": U.sum(0)[:, None] if isinstance(U, Tensor) else U.T @ torch.ones_like(lam)[:, None],  # U^T 1
            "powers": F.pad(lam, (0, ghosts))[:, None] ** torch.arange(taps + 1),  # lam_n^k
            "frequencies": frequencies(time_dim),
        }.items():
            self.register_buffer(name, value.float().contiguous(), persistent=False)

    @property
    def U(self) -> Basis:  # (nodes, modes), with ghosts
        """The graph-Fourier basis; that of a product graph one factor an axis, and without ghosts."""
        if len(self.parts) == 1:
            return self.get_buffer("U0")
        return Kronecker(*(part if isinstance(part, int) else self.get_buffer(part) for part in self.parts))

    def embed(self, t: Tensor) -> Tensor:
        """Cosines and sines of a time, as the input layer takes them."""
        return embedded(t, self.frequencies)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # (batch, nodes), () or (batch, 1) -> (batch, nodes)
        x, weight = x.float(), self.input.weight
        tau = F.linear(self.embed(t).to(weight.dtype), weight[:, 1:], self.input.bias)
        U = self.U
        z = x.to(weight.dtype) @ (U[: self.nodes] if isinstance(U, Tensor) else U)
        z = z[..., None] * weight[:, 0] + self.ones * tau[:, None, :]
        first, *others = self.blocks
        h = first(z, U, self.powers)
        for block in others:
            h = block(U.T @ h, U, self.powers)
        return self.output(h)[:, : self.nodes, 0].float() + x


class LargeGNN(DenoiserGNN):
    """The same function by sparse products, with ``S`` (nodes, nodes) in place of its eigenvectors."""

    S: Tensor

    def _bound(self, spectrum: Spectrum, setting: Setting) -> None:
        assert isinstance(spectrum, LargeSpectrum)
        self.nodes = spectrum.nodes
        self.register_buffer("S", sparse_tensor(spectrum.shift).float(), persistent=False)
        self.register_buffer("frequencies", frequencies(setting.time_dim).float(), persistent=False)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # (batch, nodes), () or (batch, 1) -> (batch, nodes)
        x, weight = x.float(), self.input.weight
        tau = F.linear(self.embed(t).to(weight.dtype), weight[:, 1:], self.input.bias)
        h = x.to(weight.dtype)[..., None] * weight[:, 0] + tau[:, None, :]
        for block in self.blocks:
            h = cast(Block, block).by_products(h, self.S)
        return self.output(h)[..., 0].float() + x


def on(spectrum: Spectrum, setting: Setting) -> DenoiserGNN:
    """The network on a graph of any size."""
    return (LargeGNN if isinstance(spectrum, LargeSpectrum) else DenoiserGNN)(spectrum, setting)


def products(S: Tensor, h: Tensor) -> Tensor:  # (nodes, nodes) sparse, (batch, nodes, width) -> (batch, nodes, width)
    """``S`` along the nodes."""
    batch, nodes, width = h.shape
    flat = h.transpose(0, 1).reshape(nodes, batch * width)
    return torch.sparse.mm(S.to(flat.dtype), flat).view(nodes, batch, width).transpose(0, 1)
