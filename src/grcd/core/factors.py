"""Sparse symmetric positive definite systems: an ordering, a factor, and what to do where the factor would not fit.

**Ordering.** How much a factor fills in depends on the order of elimination alone. Nested dissection (``pymetis``,
where it is installed) or else minimum degree (scipy's) makes one for a pattern; it serves every matrix on that pattern,
and, restricted, every part of one.

**Estimate.** Before anything is factored: eliminating along a sweep of the graph (reverse Cuthill-McKee) keeps a front
of ``s`` unknowns at the most, and a dissection has separators of about that size on every level, of which there are
``log2(n / s)``. That makes

    nonzeros of the factor   ~   nonzeros of the matrix / 2  +  s^2 max(log2(n / s), 1/2)

a few tens a node on near-planar graphs, where ``s`` is like ``sqrt(n)``, and ``n^2 / 2`` on expanders, where it is a
share of ``n``. What hangs on the graph like branches on a tree is eliminated first, without filling in, and is left out
of the sweep. Other graphs are narrow where a sweep is wide: what is estimated to be too much is counted, in the order
of elimination, which takes no factor to find.

**Whether it pays.** The largest separator takes ``s^3 / 3`` operations, the next two those of ``s / sqrt(2)``, and so
on: about ``s^3`` in all, and ``n^3 / 3`` at the most. Conjugate gradients take one for each nonzero of the matrix in
every iteration of every signal. A factor that takes more than ``SIGNALS`` signals of ``ITERATIONS`` iterations do, and
more than some seconds, is not made: near-planar graphs of a million nodes have one, expanders of 6,000 have none. Nor
is one made that is more than memory allows. Systems are then solved by conjugate gradients, preconditioned by the
diagonal, and determinants are estimated by Lanczos quadrature (see ``Iterative``).
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse.linalg import spilu, splu

from . import memory, threads
from .errors import InputWarning

BYTES = 32  # of an entry of the factor: in both triangles, with their indices, and while it is made
SHARE = 6  # of all memory, what one factor may take is one part in so many
SECONDS = 4e9  # operations that any factor may take: seconds
SIGNALS, ITERATIONS = 100, 100  # of conjugate gradients, that a factor may take as long as
TOLERANCE, MOST = 1e-10, 4000  # of conjugate gradients: residual, iterations
STARTS, STEPS = 8, 64  # of Lanczos quadrature
ROUNDS = 1000  # of taking branches away
COUNTED = 3e7  # nonzeros that are counted where an estimate says too many: seconds


def sweep(pattern: sp.csr_array) -> np.ndarray:  # (n,)
    """An order in which each unknown but the last of its component has a neighbour that comes later."""
    if pattern.nnz == 0:
        return np.arange(pattern.shape[0])
    return csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True).astype(np.int64)


def elimination(pattern: sp.csr_array) -> np.ndarray:  # (n,)
    """An order of elimination that fills in little."""
    pattern = without_diagonal(pattern)
    if pattern.nnz == 0:
        return np.arange(pattern.shape[0])
    try:
        import pymetis
    except ImportError:
        return _minimum_degree(pattern)
    graph = pymetis.CSRAdjacency(adj_starts=pattern.indptr, adjacent=pattern.indices)
    return np.asarray(pymetis.nested_dissection(graph)[0], dtype=np.int64)


def _minimum_degree(pattern: sp.csr_array) -> np.ndarray:
    """scipy orders only what it factors: a factor of which nothing is kept but the diagonal has the same order."""
    degree = np.diff(pattern.indptr)
    dominant = sp.csc_matrix(sp.diags_array(degree + 1.0) - abs(pattern).sign())
    options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    dropped = spilu(dominant, drop_tol=1.0, fill_factor=1.0, permc_spec="MMD_AT_PLUS_A", **options)
    return np.argsort(dropped.perm_c).astype(np.int64)


def without_diagonal(matrix: sp.sparray) -> sp.csr_array:
    """The pattern, as a graph."""
    off = sp.coo_array(matrix)
    kept = off.row != off.col
    return sp.csr_array((np.ones(kept.sum()), (off.row[kept], off.col[kept])), shape=off.shape)


def front(pattern: sp.csr_array) -> int:
    """The largest number of unknowns that are waiting while others are eliminated along a sweep."""
    order = sweep(pattern)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = sp.coo_array(pattern)
    first = np.arange(len(order))  # of each place, the earliest neighbour
    np.minimum.at(first, place[rows.row], place[rows.col])
    reach = np.minimum.accumulate(first[::-1])[::-1]
    return int((np.arange(len(order)) - reach).max(initial=0)) + 1


def core(graph: sp.csr_array) -> sp.csr_array:
    """What is left of a graph once nodes with a single neighbour are taken away, again and again."""
    for _ in range(ROUNDS):
        kept = np.diff(graph.indptr) > 1
        if kept.all():
            break
        graph = sp.csr_array(graph[kept][:, kept])
    return graph


def filling(pattern: sp.csr_array) -> tuple[float, float]:
    """About how many nonzeros a factor of this pattern will have, and how many operations it takes."""
    inner = core(pattern)
    n, s = max(inner.shape[0], 1), front(inner)
    s = min(s, n)
    dense = s**2 * max(math.log2(n / s), 0.5)
    rest = pattern.nnz / 2 + pattern.shape[0]
    return rest + min(dense, n**2 / 2), min(float(s) ** 3, n**3 / 3) + 100.0 * rest


def counted(pattern: sp.csr_array, order: np.ndarray, most: float) -> tuple[float, float]:
    """Exactly how many nonzeros a factor in this order will have, and operations; infinite if more than ``most``.

    Row by row, up the elimination tree (Davis 2005): as many steps as there are nonzeros.
    """
    n = len(order)
    permuted = sp.csr_array(pattern[order][:, order])
    starts, columns = permuted.indptr.tolist(), permuted.indices.tolist()
    parent, flag, count, total = [-1] * n, [-1] * n, [1] * n, n
    for row in range(n):
        flag[row] = row
        for node in columns[starts[row] : starts[row + 1]]:
            while node < row and flag[node] != row:
                if parent[node] < 0:
                    parent[node] = row
                count[node] += 1
                total += 1
                flag[node] = row
                node = parent[node]
        if total > most:
            return math.inf, math.inf
    return float(total), float(np.square(count, dtype=np.float64).sum())


def too_dear(pattern: sp.csr_array) -> str:
    """What a factor would take, if that is more than it may; otherwise nothing. An estimate is not the last word."""
    nonzeros, operations = filling(pattern)
    most = max(SECONDS, SIGNALS * ITERATIONS * float(pattern.nnz + pattern.shape[0]))
    if _fits(nonzeros, operations, most) or _fits(*counted(pattern, elimination(pattern), COUNTED), most):
        return ""
    if BYTES * nonzeros > memory.total() / SHARE:
        return f"a factor of about {memory.readable_size(BYTES * nonzeros)}"
    return f"a factor of about {operations:.0e} operations"


def _fits(nonzeros: float, operations: float, most: float) -> bool:
    return BYTES * nonzeros <= memory.total() / SHARE and operations <= most


class System(abc.ABC):
    """``M x = b`` for a symmetric positive definite ``M``."""

    @abc.abstractmethod
    def solve(self, b: np.ndarray) -> np.ndarray:  # (n, k) twice
        """``M^-1 b``."""

    @property
    @abc.abstractmethod
    def log_det(self) -> float:
        """Of ``M``."""


class Factor(System):
    """By an exact factor, ``M = P^T L D L^T P``, in a given order of elimination."""

    def __init__(self, matrix: sp.sparray, order: np.ndarray):
        self.order = order
        self.n = len(order)
        if self.n == 0:
            return
        permuted = sp.csc_matrix(sp.csc_array(matrix)[:, order][order, :])
        permuted.sort_indices()
        with threads.single():
            self._lu = splu(permuted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    @property
    def nonzeros(self) -> int:
        """Of the two triangles."""
        return 0 if self.n == 0 else int(self._lu.nnz)

    def solve(self, b: np.ndarray) -> np.ndarray:
        if self.n == 0:
            return np.array(b, dtype=np.float64)
        x = np.empty(b.shape, order="F")
        right = np.asfortranarray(b[self.order], dtype=np.float64)
        with threads.single():
            x[self.order] = self._lu.solve(right)
        return x

    @cached_property
    def log_det(self) -> float:
        return 0.0 if self.n == 0 else float(np.log(self._lu.U.diagonal()).sum())

    @cached_property
    def root(self) -> sp.csr_array:  # (n, n)
        """``G = P^T L D^1/2``, with ``G G^T = M``."""
        L, pivots = self._lu.L, self._lu.U.diagonal()
        if not (pivots > 0).all():
            raise ValueError("a matrix that is not positive definite")
        back = np.empty_like(self.order)
        back[self.order] = np.arange(self.n)
        return sp.csr_array((sp.csr_array(L) @ sp.diags_array(np.sqrt(pivots)))[back])


class Iterative(System):
    """By conjugate gradients; the determinant is an estimate, from random signs that are the same every time."""

    nonzeros = 0

    def __init__(self, matrix: sp.sparray, tolerance: float = TOLERANCE):
        self.matrix, self.tolerance = sp.csr_array(matrix), tolerance
        self.diagonal = self.matrix.diagonal()

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Says so where ``MOST`` iterations were not enough."""
        x, r = np.zeros(b.shape), np.array(b, dtype=np.float64, order="C")
        least = self.tolerance * np.linalg.norm(r, axis=0)
        z = r / self.diagonal[:, None]
        p, energy = z.copy(), (r * z).sum(0)
        for _ in range(MOST):
            if (np.linalg.norm(r, axis=0) <= least).all():
                break
            Mp = self.matrix @ p
            step = _ratio(energy, (p * Mp).sum(0))
            x += step * p
            r -= step * Mp
            z = r / self.diagonal[:, None]
            before, energy = energy, (r * z).sum(0)
            p = z + _ratio(energy, before) * p
        else:
            left = float(_ratio(np.linalg.norm(r, axis=0), np.linalg.norm(b, axis=0)).max())
            what = f"conjugate gradients ended after {MOST:,} iterations with {left:.0e} of the right side left over"
            warnings.warn(f"{what}: results are that far off", InputWarning, stacklevel=2)
        return x

    @cached_property
    def log_det(self) -> float:
        """``sum log diagonal`` and, of the rest, ``n`` times the mean of ``log`` under the spectral measures."""
        scale = self.diagonal**-0.5
        scaled = sp.csr_array(self.matrix * scale[:, None] * scale[None, :])
        n = len(scale)
        if n == 0:
            return 0.0
        values, weights = spectral_measure(lambda x: scaled @ x, n)
        return float(np.log(self.diagonal).sum() + n * (weights * np.log(np.maximum(values, 1e-300))).sum())


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def spectral_measure(product: Callable[[np.ndarray], np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the eigenvalues of a symmetric matrix are, by its ``product`` with (n, k): values and weights of sum 1."""
    signs = np.where(np.random.default_rng(0).random((n, STARTS)) < 0.5, -1.0, 1.0) / math.sqrt(n)
    basis, diagonal, beside = [signs], [], []
    for _ in range(min(STEPS, n)):
        w = product(basis[-1])
        diagonal.append((w * basis[-1]).sum(0))
        for _ in range(2):  # against all that came before: rounding alone would lose it
            for q in basis:
                w = w - (w * q).sum(0) * q
        beside.append(np.linalg.norm(w, axis=0))
        basis.append(w / np.maximum(beside[-1], 1e-300))
    values, weights = [], []
    for k in range(STARTS):
        off = np.array([each[k] for each in beside[:-1]])
        T = np.diag([each[k] for each in diagonal]) + np.diag(off, 1) + np.diag(off, -1)
        lam, vectors = np.linalg.eigh(T)
        values.append(lam)
        weights.append(vectors[0] ** 2 / STARTS)
    return np.concatenate(values), np.concatenate(weights)


def system(matrix: sp.sparray, order: np.ndarray | None) -> Factor | Iterative:
    """By a factor in this order; without one, where there would be no room for it, by conjugate gradients."""
    return Iterative(matrix) if order is None else Factor(matrix, order)
