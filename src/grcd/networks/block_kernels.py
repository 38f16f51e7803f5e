"""Two parts of a block of SpaceTimeNet as one kernel each, where no gradients are wanted: attention over steps, MLP.

    h + attention over steps(norm(h)),        h + MLP(norm(h))

By themselves the operations of either write what they find for the next one to read: a dozen passes over activations
for a few hundred operations a number, on a machine that does two hundred in the time of reading one. A tile of 128
readings fits on a multiprocessor with all that comes of it, so each kernel reads ``h`` once and writes it once; weights
come from the cache.

    attention   a tile is all steps of a few columns; products of readings of different columns are made and masked
    MLP         hidden units some at a time, so that they are never written

Attention over columns stays with the library: a step has hundreds of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU builds of torch come without it
    triton = None

TRIED = False  # on a GPU: until then the plain operations are used
ROWS = 128  # readings of a tile
UNITS = 64  # hidden units of the MLP at a time
LEAST = 16  # numbers that a product of matrix units has along every axis
EPS = 1e-5  # LayerNorm's


def serves(h: Tensor, heads: int) -> bool:  # (batch, steps, columns, width)
    """Whether the kernels take a block with so many heads: in half of the bits, on a GPU, without gradients."""
    _, steps, _, width = h.shape
    sized = steps <= ROWS and width & (width - 1) == 0 and width // heads >= LEAST and heads & (heads - 1) == 0
    halved = h.is_cuda and torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.bfloat16
    return TRIED and triton is not None and halved and sized and not torch.is_grad_enabled()


def over_steps(h: Tensor, level: Tensor, inward: nn.Linear, outward: nn.Linear, heads: int) -> Tensor:
    """``h + attention(norm(h))``: ``h`` (batch, steps, columns, width), the norm scaled and shifted by ``level``
    (batch, 2 width), attention from ``inward`` to ``outward``."""
    batch, steps, columns, width = h.shape
    padded = max(LEAST, triton.next_power_of_2(steps))
    group = ROWS // padded
    out = torch.empty_like(h)
    weights = (part.to(level.dtype) for part in (inward.weight, outward.weight, outward.bias))
    sizes = width, heads, width // heads, padded, group, EPS
    _over_steps[(batch * triton.cdiv(columns, group),)](h, out, level, *weights, steps, columns, *sizes, num_warps=8)
    return out


def mlp(h: Tensor, level: Tensor, inward: nn.Linear, outward: nn.Linear) -> Tensor:
    """``h + MLP(norm(h))``, likewise."""
    batch, steps, columns, width = h.shape
    out, rows = torch.empty_like(h), steps * columns
    weights = (part.to(level.dtype) for part in (inward.weight, inward.bias, outward.weight, outward.bias))
    sizes = width, inward.out_features, ROWS, min(UNITS, inward.out_features), EPS
    _mlp[(batch * triton.cdiv(rows, ROWS),)](h, out, level, *weights, rows, *sizes, num_warps=8)
    return out


if triton is not None:

    @triton.jit
    def _normed(h, level_at, batch, width: tl.constexpr, eps: tl.constexpr):
        column = tl.arange(0, width)
        centred = h - (tl.sum(h, 1) / width)[:, None]
        n = centred * tl.rsqrt(tl.sum(centred * centred, 1) / width + eps)[:, None]
        at = level_at + batch * (2 * width) + column
        return tl.load(at + width).to(tl.float32)[None, :] + n * (1 + tl.load(at).to(tl.float32))[None, :]

    @triton.jit
    def _over_steps(
        h_at,
        out_at,
        level_at,
        inward_at,
        outward_at,
        bias_at,
        steps,
        columns,
        width: tl.constexpr,
        heads: tl.constexpr,
        dim: tl.constexpr,
        padded: tl.constexpr,
        group: tl.constexpr,
        eps: tl.constexpr,
    ):
        tiles = tl.cdiv(columns, group)
        batch, first = tl.program_id(0) // tiles, (tl.program_id(0) % tiles) * group
        row, unit = tl.arange(0, group * padded), tl.arange(0, width)
        dtype = inward_at.dtype.element_ty
        step, column = row % padded, first + row // padded
        inside = ((step < steps) & (column < columns))[:, None]
        place = ((batch * steps + step) * columns + column).to(tl.int64)[:, None] * width + unit[None, :]
        h = tl.load(h_at + place, mask=inside, other=0.0).to(tl.float32)
        u = _normed(h, level_at, batch, width, eps).to(dtype)
        together = (column[:, None] == column[None, :]) & (step < steps)[None, :]
        total = h + tl.load(bias_at + unit).to(tl.float32)[None, :]
        for head in tl.static_range(heads):
            part = head * dim + tl.arange(0, dim)
            of_part = inward_at + part[None, :] * width + unit[:, None]  # (width, dim) of the query's rows
            q = tl.dot(u, tl.load(of_part)).to(dtype)
            k = tl.dot(u, tl.load(of_part + width * width)).to(dtype)
            v = tl.dot(u, tl.load(of_part + 2 * width * width)).to(dtype)
            score = tl.where(together, tl.dot(q, tl.trans(k)) * dim**-0.5, float("-inf"))
            share = tl.exp(score - tl.max(score, 1)[:, None])
            share = (share / tl.sum(share, 1)[:, None]).to(dtype)
            mixed = tl.dot(share, v).to(dtype)
            total = tl.dot(mixed, tl.load(outward_at + unit[None, :] * width + part[:, None]), total)
        tl.store(out_at + place, total.to(out_at.dtype.element_ty), mask=inside)

    @triton.jit
    def _mlp(
        h_at,
        out_at,
        level_at,
        inward_at,
        inward_bias_at,
        outward_at,
        outward_bias_at,
        rows,
        width: tl.constexpr,
        hidden: tl.constexpr,
        block: tl.constexpr,
        units: tl.constexpr,
        eps: tl.constexpr,
    ):
        tiles = tl.cdiv(rows, block)
        batch, first = tl.program_id(0) // tiles, (tl.program_id(0) % tiles) * block
        row, column = first + tl.arange(0, block), tl.arange(0, width)
        inside = (row < rows)[:, None]
        place = (batch.to(tl.int64) * rows + row)[:, None] * width + column[None, :]
        h = tl.load(h_at + place, mask=inside, other=0.0).to(tl.float32)
        dtype = inward_at.dtype.element_ty
        u = _normed(h, level_at, batch, width, eps).to(dtype)
        total = h + tl.load(outward_bias_at + column).to(tl.float32)[None, :]
        for some in range(0, hidden, units):
            unit = some + tl.arange(0, units)
            a = tl.dot(u, tl.load(inward_at + unit[None, :] * width + column[:, None]))
            a += tl.load(inward_bias_at + unit).to(tl.float32)[None, :]
            a = a * tl.sigmoid(1.5957691216 * (a + 0.044715 * a * a * a))  # GELU, by its tangent
            total = tl.dot(a.to(dtype), tl.load(outward_at + column[None, :] * hidden + unit[:, None]), total)
        tl.store(out_at + place, total.to(out_at.dtype.element_ty), mask=inside)
