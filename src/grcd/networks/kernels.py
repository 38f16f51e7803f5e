"""SiLU followed by LayerNorm, as one kernel on a GPU.

The two are a third of the network's time there: each is a pass over all activations that does next to no arithmetic,
and the library's LayerNorm is slow on rows as short as the network is wide. Fused, forward reads and writes the
activations once; backward reads them and the gradient once, recomputes the rest, and leaves one row of partial sums a
program for the gradients of scale and shift, which are then added in a fixed order: the same bits every time.

With ``s = y sigmoid(y)``, ``n = (s - mean s) / std s`` and ``out = n w + b``:

    dn = g w,    ds = (dn - mean dn - n mean(n dn)) / std s,    dy = ds sigmoid(y) (1 + y (1 - sigmoid(y)))

Elsewhere (CPU, no Triton, a width that is no power of two) the plain functions are used.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU builds of torch come without it
    triton = None

EPS = 1e-5  # LayerNorm's
ROWS = 32  # rows a program holds at a time


def silu_norm(y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # (..., width)
    """``LayerNorm(SiLU(y))`` over the last dimension."""
    width = y.shape[-1]
    if triton is None or not y.is_cuda or width & (width - 1):
        return F.layer_norm(F.silu(y), (width,), weight, bias, EPS)
    return _SiluNorm.apply(y, weight, bias)


class _SiluNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        y = y.contiguous()
        ctx.save_for_backward(y, weight)
        out, rows = torch.empty_like(y), y.numel() // y.shape[-1]
        _forward[(triton.cdiv(rows, ROWS),)](y, weight, bias, out, rows, y.shape[-1], ROWS, EPS)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, weight = ctx.saved_tensors
        width, rows = y.shape[-1], y.numel() // y.shape[-1]
        programs = min(triton.cdiv(rows, ROWS), 4 * torch.cuda.get_device_properties(y.device).multi_processor_count)
        dy = torch.empty_like(y)
        partial = torch.empty(2, programs, width, dtype=torch.float32, device=y.device)
        _backward[(programs,)](y, weight, g.contiguous(), dy, partial[0], partial[1], rows, programs, width, ROWS, EPS)
        dw, db = partial.sum(1)
        return dy, dw.to(weight.dtype), db.to(weight.dtype)


if triton is not None:

    @triton.jit
    def _normalized(y, width: tl.constexpr, eps: tl.constexpr):
        gate = tl.sigmoid(y)
        s = y * gate
        centred = s - (tl.sum(s, 1) / width)[:, None]
        rstd = tl.rsqrt(tl.sum(centred * centred, 1) / width + eps)[:, None]
        return gate, centred * rstd, rstd

    @triton.jit
    def _forward(y_at, w_at, b_at, out_at, rows, width: tl.constexpr, block: tl.constexpr, eps: tl.constexpr):
        row, column = tl.program_id(0) * block + tl.arange(0, block), tl.arange(0, width)
        place, inside = row[:, None].to(tl.int64) * width + column[None, :], (row < rows)[:, None]
        y = tl.load(y_at + place, mask=inside, other=0.0).to(tl.float32)
        _, n, _ = _normalized(y, width, eps)
        w, b = tl.load(w_at + column).to(tl.float32), tl.load(b_at + column).to(tl.float32)
        tl.store(out_at + place, (n * w[None, :] + b[None, :]).to(out_at.dtype.element_ty), mask=inside)

    @triton.jit
    def _backward(
        y_at,
        w_at,
        g_at,
        dy_at,
        dw_at,
        db_at,
        rows,
        programs,
        width: tl.constexpr,
        block: tl.constexpr,
        eps: tl.constexpr,
    ):
        column = tl.arange(0, width)
        w = tl.load(w_at + column).to(tl.float32)
        dw, db = tl.zeros((width,), tl.float32), tl.zeros((width,), tl.float32)
        for start in range(tl.program_id(0) * block, rows, programs * block):
            row = start + tl.arange(0, block)
            place, inside = row[:, None].to(tl.int64) * width + column[None, :], (row < rows)[:, None]
            y = tl.load(y_at + place, mask=inside, other=0.0).to(tl.float32)
            g = tl.load(g_at + place, mask=inside, other=0.0).to(tl.float32)  # zero outside: adds nothing below
            gate, n, rstd = _normalized(y, width, eps)
            dw += tl.sum(g * n, 0)
            db += tl.sum(g, 0)
            dn = g * w[None, :]
            mean, along = (tl.sum(dn, 1) / width)[:, None], (tl.sum(dn * n, 1) / width)[:, None]
            ds = (dn - mean - n * along) * rstd
            dy = ds * gate * (1 + y * (1 - gate))
            tl.store(dy_at + place, dy.to(dy_at.dtype.element_ty), mask=inside)
        tl.store(dw_at + tl.program_id(0) * width + column, dw)
        tl.store(db_at + tl.program_id(0) * width + column, db)
