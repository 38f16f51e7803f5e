"""Many small pieces of work: whole pieces go to threads, and are not shared out among them.

Libraries share each operation out among all cores. Where operations are small, cores wait for each other most of the
time, and the more of them there are the longer it takes. A sparse factor, and every solve by it, is tens of thousands
of products of a few numbers each; regressions on neighbours are as many small systems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


def each(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """``work`` of all items, in their order: by as many threads as PyTorch has, each of which computes by itself.

    So results do not depend on how many there are.
    """
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(
            min(threads, len(items)) or 1, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            return list(pool.map(work, items))  # what fails leaves the rest undone
    finally:
        torch.set_num_threads(threads)


def single() -> AbstractContextManager[Any]:
    """While it lasts, the linear algebra of numpy and scipy works by itself, on one thread; PyTorch's does not mind."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded; found once, for that takes a thousand times as long as to ask one of them."""
    import scipy.sparse.linalg  # noqa: F401  whoever asks needs it

    return ThreadpoolController()
