"""Graphs: nodes, weights, Laplacians and the graph-Fourier basis (section 2 of the paper).

A ``Graph`` is undirected, with non-negative weights and no self-loops. With ``W`` its weights and ``D = diag(W 1)``:

    combinatorial Laplacian           L = D - W                          (evaluation, SBM signals)
    symmetric normalised Laplacian    L = I - D^-1/2 W D^-1/2            (the model's basis)
    diffusion operator                L_delta = L / lambda_max + delta I = U diag(mu) U^T

Weights come as a matrix, as a list of edges, or are made from positions or distances (``weights.py``). A list in which
no pair occurs in both directions lists each pair once and is undirected. Otherwise, or if ``symmetrize`` is named, it
is directed. A directed graph has to have equal weights both ways, or ``symmetrize`` says how to make them equal.

An isolated node has degree zero; its row of the normalised Laplacian is the identity row, so that node is an
eigenvector of its own with eigenvalue 1. Several components simply give several zero eigenvalues.

Eigenvectors are defined up to sign, and inside an eigenspace up to rotation. The sign is fixed here (the entry of
largest magnitude is positive). The rotation cannot be, so whatever is read off the basis mode by mode is averaged
inside each eigenspace (``Spectrum.average``), and then no result depends on the linear-algebra library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..core.errors import InputError, counted, shortened, some, unknown
from .edges import EdgeList, checked_ids
from .weights import checked_positions, kernel, nearest

if TYPE_CHECKING:
    from torch import Tensor

    from .kronecker import Kronecker
    from .polynomials import Polynomials

DEGENERATE_GAP = 1e-8  # eigenvalues nearer than this, relative to the largest, belong to one eigenspace
HUGE = 1e300  # sums of weights stay finite below this
LARGE = 4096  # nodes beyond which nothing of nodes x nodes is formed
SYMMETRIZERS = {
    "half-sum": lambda W: (W + W.T) / 2,  # the paper's
    "max": lambda W: W.maximum(W.T),
}


@dataclass(frozen=True)
class Spectrum:
    """Eigenpairs of a Laplacian, ``L = U diag(lam) U^T``, with deterministic signs; of a graph in ascending order."""

    lam: np.ndarray  # (nodes,)
    U: np.ndarray  # (nodes, modes)

    @classmethod
    def of(cls, laplacian: np.ndarray) -> Spectrum:
        lam, U = np.linalg.eigh(laplacian)
        # A Laplacian is positive semi-definite: what rounding puts below zero is zero.
        return cls(np.maximum(lam, 0.0), fix_signs(U))

    def scaled(self, delta: float = 0.0) -> np.ndarray:
        """``lam / lambda_max + delta``: the paper's ``mu`` (delta 0.05), and the backbone's shift (delta 0)."""
        top = self.lam.max()
        return (self.lam / top if top > 0 else self.lam) + delta

    @cached_property
    def basis(self) -> Tensor | Kronecker:  # (nodes, modes)
        """``U``, as what signals are multiplied with."""
        import torch  # which reading a graph can do without

        return torch.from_numpy(self.U)

    @cached_property
    def eigenspaces(self) -> np.ndarray:  # (modes,) the number of the eigenspace each mode belongs to
        order, lam = np.argsort(self.lam, kind="stable"), self.scaled()
        numbers = np.empty(len(lam), dtype=int)
        numbers[order] = np.concatenate([[0], np.cumsum(np.diff(lam[order]) > DEGENERATE_GAP)])
        return numbers

    def diagonal(self, covariance: np.ndarray) -> np.ndarray:  # (d, d) -> (modes,)
        """Of a covariance in this basis: the variance of each mode."""
        return np.einsum("ni,nm,mi->i", self.U, covariance, self.U, optimize=True)

    def average(self, values: np.ndarray) -> np.ndarray:
        """Replace per-mode values by their mean over each eigenspace: the part that no choice of basis changes."""
        space = self.eigenspaces
        return (np.bincount(space, weights=values) / np.bincount(space))[space]


class LargeSpectrum(Spectrum):
    """Of a graph of more than ``LARGE`` nodes: filters in place of eigenpairs, which are refused (``polynomials``)."""

    def __init__(self, laplacian: sp.csr_array):
        object.__setattr__(self, "laplacian", laplacian)

    @property
    def lam(self) -> NoReturn:
        from .polynomials import refuse

        refuse(self.nodes)

    U = lam

    @property
    def nodes(self) -> int:
        return int(vars(self)["laplacian"].shape[0])

    @cached_property
    def shift(self) -> sp.csr_array:  # (nodes, nodes)
        """``S = L / lambda_max``."""
        from .polynomials import largest_eigenvalue

        laplacian = vars(self)["laplacian"]
        return sp.csr_array(laplacian / max(largest_eigenvalue(laplacian), 1e-300))

    @cached_property
    def basis(self) -> Polynomials:
        from .polynomials import Polynomials

        return Polynomials(self.shift)


def fix_signs(U: np.ndarray) -> np.ndarray:
    """Flip columns so that the entry of largest magnitude is positive; of near-equal ones the first decides."""
    size = np.abs(U)
    first = np.argmax(size >= size.max(axis=0) * (1 - 1e-6), axis=0)
    return U * np.where(U[first, np.arange(U.shape[1])] < 0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected weighted graph with named nodes. Build it with one of the ``Graph.from_...``.

    ``weights`` (nodes, nodes) sparse, ``node_ids`` their names, ``coords`` (nodes, 2) positions to draw them at.
    """

    weights: sp.csr_array  # (nodes, nodes) symmetric, non-negative, zero diagonal
    node_ids: tuple[str, ...]
    coords: np.ndarray | None = None  # (nodes, 2) for drawing, if known
    origin: str = "adjacency as given"  # where its weights are from; written into every run
    one_way: int = 0  # pairs that had a weight in one direction only
    one_way_share: float = 0.0  # of the weight between nodes
    named: bool = True  # False where nobody gave names and "0", "1", ... stand in

    @classmethod
    def from_adjacency(
        cls,
        adjacency: ArrayLike | sp.sparray,
        node_ids: Sequence[str] | None = None,
        symmetrize: str | None = None,
        coords: ArrayLike | None = None,
        origin: str = "adjacency as given",
    ) -> Graph:
        """A graph from a weight matrix. Self-loops are removed after symmetrisation, as in the paper.

        ``adjacency``    weights (nodes, nodes): dense, scipy sparse, or a data frame, which brings its names
        ``node_ids``     names of the nodes; "0", "1", ... without
        ``symmetrize``   None (the matrix has to be symmetric already), "half-sum" ``(W + W^T)/2`` or "max"
        ``coords``       positions (nodes, 2) to draw them at
        ``origin``       where the weights are from, in words
        """
        if node_ids is None:  # a data frame brings its names
            node_ids = getattr(adjacency, "columns", None)
        W = _checked_weights(adjacency)
        ids = checked_ids(node_ids, W.shape[0])
        if symmetrize is None:
            _refuse_asymmetric(W, ids)
            symmetrize = "half-sum"  # only takes rounding out of what is symmetric already
        elif symmetrize not in SYMMETRIZERS:
            raise unknown("symmetrizer", symmetrize, SYMMETRIZERS)
        else:
            origin = f"{origin}, symmetrised by {symmetrize}"
        one_way = _one_way(W)
        W = _without_loops(SYMMETRIZERS[symmetrize](W))
        positions = None if coords is None else checked_positions(coords, len(ids))
        return cls(W, ids, positions, origin, *one_way, node_ids is not None)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable,
        node_ids: Sequence[str] | None = None,
        symmetrize: str | None = None,
    ) -> Graph:
        """A graph from a list of edges by node name.

        ``edges``        rows (source, target, weight), or (source, target) of weight 1
        ``node_ids``     all nodes in order; without, those of the edges in the order in which they are named
        ``symmetrize``   as for ``from_adjacency``, where pairs are listed both ways
        """
        listed = EdgeList.of(edges, node_ids)
        return cls._from_list(listed, listed.matrix, symmetrize, "edge list")

    @classmethod
    def from_distances(
        cls,
        edges: Iterable,
        node_ids: Sequence[str] | None = None,
        bandwidth: float | None = None,
        threshold: float = 0.1,
        symmetrize: str | None = None,
    ) -> Graph:
        """A graph from a table of distances, by DCRNN's thresholded Gaussian kernel.

        ``edges``        rows (source, target, distance); ``node_ids`` and ``symmetrize`` as for ``from_edges``
        ``bandwidth``    of the kernel; without, the standard deviation of the distances
        ``threshold``    the smallest weight that is kept
        """
        listed = EdgeList.of(edges, node_ids, "distance")
        W, s = kernel(listed.matrix, bandwidth, threshold)
        origin = f"distance table, weights exp(-(d/s)^2) with s = {s:.6g}, those below {float(threshold):g} dropped"
        return cls._from_list(listed, W, symmetrize, origin)

    @classmethod
    def from_coordinates(
        cls,
        coords: ArrayLike,
        node_ids: Sequence[str] | None = None,
        k: int | None = None,
        bandwidth: float | None = None,
        metric: str = "euclidean",
    ) -> Graph:
        """A graph of nearest neighbours, with Gaussian weights.

        ``coords``       positions (nodes, 2): x and y, or longitude and latitude in degrees
        ``node_ids``     names of the nodes; "0", "1", ... without
        ``k``            how many neighbours each node is linked to; without, five, or all of fewer
        ``bandwidth``    of the weights; without, the median of all pairwise distances
        ``metric``       "euclidean", or "great-circle" in kilometres: to be asked for, as an array does not say that
                         it holds degrees; a file or a frame with columns of longitude and latitude does
        """
        W, s = nearest(coords, k, bandwidth, metric)
        k = min(5, W.shape[0] - 1) if k is None else k
        how = "great-circle, km" if metric == "great-circle" else metric
        origin = f"{k} nearest neighbour{'s' * (k > 1)} of positions ({how}), Gaussian weights of bandwidth {s:.6g}"
        return cls.from_adjacency(W, node_ids, coords=coords, origin=origin)

    @classmethod
    def _from_list(cls, listed: EdgeList, W: sp.sparray, symmetrize: str | None, origin: str) -> Graph:
        if symmetrize is None and listed.once:
            W, origin = W + W.T, f"{origin}, each pair listed once, taken as undirected"
        return cls.from_adjacency(W, listed.node_ids, symmetrize, origin=origin)

    def __len__(self) -> int:
        return len(self.node_ids)

    def __repr__(self) -> str:
        """Two lines: how large, and where its weights are from."""
        named = f" ({some(self.node_ids, 3)})" if self.named else ""
        size = f"{counted(len(self), 'node')}{named}, {counted(self.pairs, 'pair')}"
        return f"Graph of {size}\n  {shortened(self.origin, 110)}"

    @cached_property
    def degree(self) -> np.ndarray:  # (nodes,)
        """The sum of each node's weights."""
        return self.weights.sum(axis=1)

    @cached_property
    def combinatorial(self) -> sp.csr_array:
        """``L = D - W``."""
        return sp.csr_array(sp.diags_array(self.degree) - self.weights)

    @cached_property
    def normalized(self) -> sp.csr_array:
        """``L = I - D^-1/2 W D^-1/2``; the row of an isolated node is the identity row."""
        linked = self.degree > 0
        scale = np.zeros(len(self))
        scale[linked] = self.degree[linked] ** -0.5
        return sp.csr_array(sp.eye_array(len(self)) - self.weights * scale[:, None] * scale[None, :])

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of the symmetric normalised Laplacian: the model's Fourier basis. Of a large graph, filters."""
        if self.large:
            return LargeSpectrum(self.normalized)
        return Spectrum.of(self.normalized.toarray())

    @property
    def large(self) -> bool:
        """Whether it has too many nodes for anything of nodes x nodes."""
        return len(self) > LARGE

    @property
    def pairs(self) -> int:
        """Connected pairs of nodes."""
        return self.weights.nnz // 2

    @cached_property
    def components(self) -> int:
        """How many connected components there are."""
        return int(sp.csgraph.connected_components(self.weights, directed=False)[0])

    @cached_property
    def hash(self) -> str:
        """A fingerprint of weights and node names, kept in every run."""
        W, digest = self.weights, hashlib.sha256()
        for part in (W.indptr.astype("<i8"), W.indices.astype("<i8"), W.data.astype("<f8")):
            digest.update(part.tobytes())
        digest.update(json.dumps(self.node_ids).encode())
        return digest.hexdigest()

    def permuted(self, order: Sequence[int]) -> Graph:
        """The same graph with its nodes listed in another ``order``, a permutation (nodes,)."""
        places = np.asarray(order)
        W = sp.csr_array(self.weights[places][:, places])
        W.sort_indices()
        coords = None if self.coords is None else self.coords[places]
        return replace(self, weights=W, node_ids=tuple(self.node_ids[i] for i in places), coords=coords)


def _checked_weights(adjacency: ArrayLike | sp.sparray) -> sp.csr_array:
    try:
        values: Any = adjacency if sp.issparse(adjacency) else np.asarray(adjacency)
        if values.dtype.kind not in "biuf":  # text, dates and complex numbers would be cast in silence
            raise TypeError(f"of type {values.dtype}")
        W = sp.csr_array(values, dtype=np.float64, copy=True)
        W.sum_duplicates()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"an adjacency that is no numeric matrix ({error})", "a square matrix", "pass numbers only"
        ) from None
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] < 2:
        raise InputError(
            f"an adjacency of shape {W.shape}",
            "a square matrix of two nodes or more",
            "pass one row and one column per node",
        )
    for what, bad in (("NaN or infinite", ~np.isfinite(W.data)), ("negative", W.data < 0)):
        if bad.any():
            entries = W.tocoo()
            pairs = list(zip(entries.row[bad].tolist(), entries.col[bad].tolist(), strict=True))
            raise InputError(
                f"{len(pairs)} {what} weights, at (row, column) {some(pairs, 3)}",
                "finite, non-negative weights",
                "remove those edges, or use weights that grow with similarity",
            )
    with np.errstate(over="ignore"):
        total = W.sum()
    if total > HUGE:
        raise InputError(f"weights that add up to {total:g}", f"a sum below {HUGE:g}", "divide them by their largest")
    return W


def _without_loops(W: sp.sparray) -> sp.csr_array:
    W = sp.csr_array(W)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.sort_indices()
    return W


def _one_way(W: sp.csr_array) -> tuple[int, float]:
    """How many pairs have a weight in one direction only, and their share of the weight; self-loops aside."""
    W = _without_loops(W.copy())
    alone = W.astype(bool).astype(int) - W.T.astype(bool).astype(int) > 0
    return int(alone.sum()), float(W.multiply(alone).sum() / W.sum()) if W.nnz else 0.0


def _refuse_asymmetric(W: sp.csr_array, ids: tuple[str, ...]) -> None:
    gap = sp.csr_array(abs(W - W.T))
    gap.sort_indices()  # of equal gaps the first is named
    gap = gap.tocoo()
    if gap.nnz and gap.data.max() > 1e-8 * W.max():
        largest = gap.data.argmax()
        i, j = gap.row[largest], gap.col[largest]
        raise InputError(
            f"asymmetric weights: W[{ids[i]}, {ids[j]}] = {W[i, j]:g} but W[{ids[j]}, {ids[i]}] = {W[j, i]:g}",
            "the same weight both ways",
            'symmetrise it: symmetrize="half-sum" (the paper\'s) or "max"; on the command line --symmetrize half-sum',
        )
