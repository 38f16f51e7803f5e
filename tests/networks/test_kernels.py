"""SiLU + LayerNorm against the formula written out."""

import torch
from laws import close

from grcd.networks.kernels import EPS, silu_norm


def test_silu_norm_is_the_formula():
    torch.manual_seed(0)
    y, w, b = torch.randn(5, 3, 8).double(), torch.randn(8).double(), torch.randn(8).double()
    s = y / (1 + torch.exp(-y))
    centred = s - s.mean(-1, keepdim=True)
    expected = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + EPS) * w + b
    close(silu_norm(y, w, b), expected)
