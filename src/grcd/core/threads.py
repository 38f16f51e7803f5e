"""One thread for linear algebra in many small pieces.

A sparse factor, and every solve by it, is tens of thousands of products of a few numbers each. Libraries that share
each of them out among many cores, and have the others wait for the next, take longer than one core does.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def single() -> AbstractContextManager[Any]:
    """While it lasts, the linear algebra of numpy and scipy works by itself, on one thread; PyTorch's does not mind."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded; found once, for that takes a thousand times as long as to ask one of them."""
    import scipy.sparse.linalg  # noqa: F401  whoever asks needs it

    return ThreadpoolController()
