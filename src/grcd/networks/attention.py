"""Softmax attention of short sequences with narrow heads.

``o = P v``, ``P = softmax(q k^T / sqrt(width))``, for many sequences: a window has one for every column and head, and
one for every step and head.

**On a CPU** the library's kernel, made for long sequences, takes them one by one. A score takes ``4 width`` operations
and an exponential, less than a nanosecond of one core; the kernel takes 1.5 nanoseconds where sequences are of two
hundred, 4 where they are of twenty-four (two cores are no quicker than one there). So the scores of as many sequences
as stay in cache are made by one product of many matrices. ``o^T = v^T P^T``, in which the long side is along the
vectors of the machine, takes a third of the time of ``o = P v`` where a head has 8 numbers.

Nothing of the size of all scores is kept for gradients: ``P`` is made again. With ``g`` the gradient of ``o``

    dv^T = g^T P        dS = P (g v^T - rows' sums of P g v^T)        dq^T = k^T dS^T        dk^T = q^T dS

Rows that are shorter than the vectors of the machine are filled up with scores of minus infinity: a softmax of them
would go number by number.

**On a GPU** the library has a kernel with small tiles, twice as fast for short sequences as the one it would choose,
which pads them to 128.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

SHORT = {"cpu": 1024, "cuda": 64}  # the longest sequence that is taken otherwise than by the library's choice
SCORES = 1 << 18  # that one core makes at a time: they stay in its cache
VECTOR = 16  # numbers of the widest vectors


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # (batch, heads, sequence, width of a head) each
    """What every place of a sequence reads of the others."""
    short = q.shape[2] <= SHORT.get(q.device.type, 0)
    if short and q.is_cuda and q.dtype == torch.bfloat16 and q.shape[3] % 8 == 0:
        gradients = torch.is_grad_enabled()
        return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, gradients)[0]
    if short and not q.is_cuda:
        rows = (q / math.sqrt(q.shape[3])).flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
        return _InCache.apply(*rows).view_as(q)
    return F.scaled_dot_product_attention(q, k, v)


class _InCache(torch.autograd.Function):
    """Of ``q``, already divided, ``k`` and ``v`` (sequences, length, width) each."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v)
        out = q.new_empty(len(q), q.shape[2], q.shape[1])
        for some in _parts(q):
            torch.bmm(v[some].mT, _weights(q[some], k[some]).mT, out=out[some])
        return out.mT

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = ctx.saved_tensors
        dq, dk, dv = (q.new_empty(len(q), q.shape[2], q.shape[1]) for _ in range(3))
        for some in _parts(q):
            P = _weights(q[some], k[some])
            torch.bmm(g[some].mT, P, out=dv[some])
            dS = torch._softmax_backward_data(torch.bmm(g[some], v[some].mT), P, -1, P.dtype)
            torch.bmm(k[some].mT, dS.mT, out=dq[some])
            torch.bmm(q[some].mT, dS, out=dk[some])
        return dq.mT, dk.mT, dv.mT


def _parts(q: Tensor) -> Iterator[slice]:
    """Some sequences at a time."""
    size = max(1, SCORES * torch.get_num_threads() // q.shape[1] ** 2)
    yield from (slice(first, first + size) for first in range(0, len(q), size))


def _weights(q: Tensor, k: Tensor) -> Tensor:  # (some, length, length)
    """``P`` of some sequences."""
    length = q.shape[1]
    if length >= VECTOR:
        return torch.bmm(q, k.mT).softmax(-1)
    scores = torch.bmm(q, F.pad(k, (0, 0, 0, VECTOR - length)).mT)
    scores[..., length:] = -math.inf
    return scores.softmax(-1)[..., :length]
