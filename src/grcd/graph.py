"""Graphs: nodes, weights, Laplacians and the graph-Fourier basis (section 2 of the paper).

A ``Graph`` is undirected, with non-negative weights and no self-loops. With ``W`` its weights and ``D = diag(W 1)``:

    combinatorial Laplacian           L = D - W                          (evaluation, SBM signals)
    symmetric normalised Laplacian    L = I - D^-1/2 W D^-1/2            (the model's basis)
    diffusion operator                L_delta = L / lambda_max + delta I = U diag(mu) U^T

An isolated node has degree zero; its row of the normalised Laplacian is the identity row, so that node is an
eigenvector of its own with eigenvalue 1. Several components simply give several zero eigenvalues.

Eigenvectors are defined up to sign, and inside an eigenspace up to rotation. The sign is fixed here (the entry of
largest magnitude is positive). The rotation cannot be, so whatever is read off the basis mode by mode is averaged
inside each eigenspace (``Spectrum.average``), and then no result depends on the linear-algebra library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from .errors import InputError, some, unknown

DEGENERATE_GAP = 1e-8  # eigenvalues nearer than this, relative to the largest, belong to one eigenspace
SYMMETRIZERS = {
    "half-sum": lambda W: (W + W.T) / 2,  # the paper's
    "max": lambda W: W.maximum(W.T),
}


@dataclass(frozen=True)
class Spectrum:
    """Eigenpairs of a Laplacian in ascending order, ``L = U diag(lam) U^T``, with deterministic signs."""

    lam: np.ndarray  # (nodes,)
    U: np.ndarray  # (nodes, modes)

    @classmethod
    def of(cls, laplacian: np.ndarray) -> Spectrum:
        lam, U = np.linalg.eigh(laplacian)
        # A Laplacian is positive semi-definite: what rounding puts below zero is zero.
        return cls(np.maximum(lam, 0.0), fix_signs(U))

    def scaled(self, delta: float = 0.0) -> np.ndarray:
        """``lam / lambda_max + delta``: the paper's ``mu`` (delta 0.05), and the backbone's shift (delta 0)."""
        top = self.lam[-1]
        return (self.lam / top if top > 0 else self.lam) + delta

    @cached_property
    def eigenspaces(self) -> np.ndarray:  # (modes,) the number of the eigenspace each mode belongs to
        return np.concatenate([[0], np.cumsum(np.diff(self.scaled()) > DEGENERATE_GAP)])

    def average(self, values: np.ndarray) -> np.ndarray:
        """Replace per-mode values by their mean over each eigenspace: the part that no choice of basis changes."""
        space = self.eigenspaces
        return (np.bincount(space, weights=values) / np.bincount(space))[space]


def fix_signs(U: np.ndarray) -> np.ndarray:
    """Flip columns so that the entry of largest magnitude is positive; of near-equal ones the first decides."""
    size = np.abs(U)
    first = np.argmax(size >= size.max(axis=0) * (1 - 1e-6), axis=0)
    return U * np.where(U[first, np.arange(U.shape[1])] < 0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected weighted graph with named nodes. Build it with ``Graph.from_adjacency``."""

    weights: sp.csr_array  # (nodes, nodes) symmetric, non-negative, zero diagonal
    node_ids: tuple[str, ...]
    coords: np.ndarray | None = None  # (nodes, 2) for drawing, if known
    origin: str = "adjacency as given"  # how the graph was made; written into every run

    @classmethod
    def from_adjacency(
        cls,
        adjacency,  # (nodes, nodes), dense or scipy sparse
        node_ids: Sequence[str] | None = None,
        symmetrize: str | None = None,
        coords: np.ndarray | None = None,
        origin: str = "adjacency as given",
    ) -> Graph:
        """A graph from a weight matrix. Self-loops are removed after symmetrisation, as in the paper.

        ``symmetrize`` is None (the matrix has to be symmetric already), "half-sum" ``(W + W^T)/2`` or "max".
        """
        W = _checked_weights(adjacency)
        if symmetrize is None:
            _refuse_asymmetric(W)
            symmetrize = "half-sum"  # only takes rounding out of what is symmetric already
        elif symmetrize not in SYMMETRIZERS:
            raise unknown("symmetrizer", symmetrize, SYMMETRIZERS)
        else:
            origin = f"{origin}, symmetrised by {symmetrize}"
        W = sp.csr_array(SYMMETRIZERS[symmetrize](W))
        W.setdiag(0.0)
        W.eliminate_zeros()
        W.sort_indices()
        return cls(W, _checked_ids(node_ids, W.shape[0]), _checked_coords(coords, W.shape[0]), origin)

    def __len__(self) -> int:
        return len(self.node_ids)

    @cached_property
    def degree(self) -> np.ndarray:  # (nodes,)
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
        """Eigenpairs of the symmetric normalised Laplacian: the model's graph-Fourier basis."""
        return Spectrum.of(self.normalized.toarray())

    @cached_property
    def components(self) -> int:
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
        """The same graph with its nodes listed in another order."""
        order = np.asarray(order)
        W = sp.csr_array(self.weights[order][:, order])
        W.sort_indices()
        coords = None if self.coords is None else self.coords[order]
        return Graph(W, tuple(self.node_ids[i] for i in order), coords, self.origin)


def _checked_weights(adjacency) -> sp.csr_array:
    try:
        if np.iscomplexobj(adjacency):
            raise TypeError("complex numbers")
        W = sp.csr_array(adjacency, dtype=np.float64)
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
            at = W.tocoo()
            pairs = list(zip(at.row[bad].tolist(), at.col[bad].tolist(), strict=True))
            raise InputError(
                f"{len(pairs)} {what} weights, at (row, column) {some(pairs, 3)}",
                "finite, non-negative weights",
                "remove those edges, or use weights that grow with similarity",
            )
    return W


def _refuse_asymmetric(W: sp.csr_array) -> None:
    gap = abs(W - W.T)
    largest = gap.max() if gap.nnz else 0.0
    if largest > 1e-8 * (W.max() if W.nnz else 0.0):
        i, j = divmod(int(gap.tocoo().toarray().argmax()), W.shape[1])
        raise InputError(
            f"an asymmetric adjacency: W[{i}, {j}] = {W[i, j]:g} but W[{j}, {i}] = {W[j, i]:g}",
            "a symmetric one",
            'symmetrise it: symmetrize="half-sum" (the paper\'s) or "max"; on the command line --symmetrize half-sum',
        )


def _checked_coords(coords, nodes: int) -> np.ndarray | None:
    if coords is None:
        return None
    coords = np.asarray(coords, dtype=np.float64)
    if coords.shape != (nodes, 2) or not np.isfinite(coords).all():
        raise InputError(
            f"coordinates of shape {coords.shape}", f"({nodes}, 2) finite numbers", "give each node two coordinates"
        )
    return coords


def _checked_ids(node_ids: Sequence[str] | None, nodes: int) -> tuple[str, ...]:
    ids = tuple(str(i) for i in range(nodes)) if node_ids is None else tuple(str(name) for name in node_ids)
    if len(ids) != nodes:
        raise InputError(
            f"{len(ids)} node names for {nodes} nodes", "one name per node", "give every node exactly one name"
        )
    if len(set(ids)) != nodes:
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InputError(f"node names that occur twice: {some(twice)}", "unique names", "rename or merge those nodes")
    return ids
