"""How a sparse reference is fitted: regressions on neighbours, network-wide modes, and which of them pays.

**Regressions** (see ``precision``). Nodes are taken along a sweep of the graph (reverse Cuthill-McKee), so that each
has neighbours both before and after it, and is regressed on up to ``MOST`` of the nodes within two steps that come
later, the nearest first. That is local: a batch of small systems. Their diagonals are raised by a ridge, chosen by the
likelihood of validation signals.

**Modes**, by expectation and maximisation of ``x = e + V f``: they start as the leading principal components (by
random projections); given ``Q`` and ``V``

    f | x ~ N(G^-1 V^T Q x, G^-1),   G = I + V^T Q V         V = (sum x f^T) (sum f f^T)^-1

and regressions are fitted again to ``x - V f``, whose second moments have ``V G^-1 V^T`` added.

**Polynomials** in the Laplacian, ``Q = tau (k1 + L)`` and ``tau (k1 + L) (k2 + L)``, have two or three numbers, and
their likelihood asks of signals for ``x^T x``, ``x^T L x`` and ``|L x|^2`` alone: for few signals. ``log det (k + L)``
is exact at some ``k``, and smooth in between. The paper's ``sigma^2 / mu`` is the first of them.

Which of these, and how many modes, is decided by the likelihood of validation signals, with exact determinants.

**Gaps** are first filled with what neighbours read, then drawn given the rest under the fit that there is, and fitted
again, ``ROUNDS`` times; once, where readings are many.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core import factors
from ..core.errors import InputError
from ..core.rows import blocks, evenly
from ..core.streams import Stream
from ..graphs.graph import Graph
from .observations import Observations
from .precision import Given, Precision, Regressions
from .sparse import Sparse

MOST = 16  # nodes that one is regressed on
RANKS = (0, 16, 64)  # modes that are tried
SIGNALS, TRIED, VALIDATED, GAPPY = 2048, 512, 128, 16  # signals to fit, to choose by, to judge by; with gaps
STEPS, ROUNDS = 2, 2  # of expectation and maximisation; of drawing gaps
DIGITS = 1e-3  # of conjugate gradients for gaps
MANY = 1 << 26  # readings beyond which gaps are drawn once
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the diagonal
LEAST = 1e-6  # variance that is left of a z-score, at least
ENTRIES = 1 << 20  # of gathered signals at a time
NEIGHBOURS = 256  # a node, on average, beyond which a graph is no sparse one
SMALL = np.geomspace(1e-4, 1e3, 15)  # ``k`` at which determinants of polynomials are exact
FEW = 20 * MOST  # signals beyond which regressions need no polynomial beside them


def fit(train: Tensor, val: Tensor, graph: Graph, seed: int = 0, ranks: tuple[int, ...] = RANKS) -> Sparse:
    """Of z-scored signals (samples, nodes), NaN where missing; validation signals choose among ``ranks`` of ``V``."""
    refuse_dense(graph)
    x, held_out = _some(train, SIGNALS), _some(val, VALIDATED)
    gaps = bool(np.isnan(x).any())
    task = Task(graph, neighbourly(held_out, graph), held_out)
    whole = neighbourly(x, graph) if gaps else x
    best = task.chosen(whole, ranks)
    for number in range((ROUNDS if x.size <= MANY else 1) if gaps else 0):
        random = Stream(seed, f"gaps of a sparse reference {number}")
        whole = drawn(best, x, whole, random)
        best = task.refitted(whole, best)
    return best


def refuse_dense(graph: Graph) -> None:
    """A graph that is dense although large."""
    if graph.pairs > NEIGHBOURS / 2 * len(graph):
        each = f"{2 * graph.pairs / len(graph):,.0f} neighbours a node"
        raise InputError(
            f"a graph of {len(graph):,} nodes with {graph.pairs:,} pairs, {each}",
            f"up to {NEIGHBOURS} neighbours a node on a graph of this size",
            "keep the strongest weights of each node: a few nearest neighbours, or a higher threshold",
        )


def _some(signals: Tensor, most: int) -> np.ndarray:  # (at most most, nodes)
    return (signals if len(signals) <= most else signals[evenly(len(signals), most)]).cpu().numpy()


class Task:
    """A graph, its regressions' parents, and validation signals: without gaps to choose by, with them to judge by."""

    def __init__(self, graph: Graph, val: np.ndarray, judge: np.ndarray):
        self.graph, self.val, self.judge = graph, torch.from_numpy(val.T.astype(np.float64)), judge
        self.order = factors.sweep(graph.weights)
        self.parents = torch.from_numpy(later_neighbours(graph.weights, self.order))

    def chosen(self, x: np.ndarray, ranks: tuple[int, ...]) -> Sparse:
        """The best of several ranks, and of polynomials where signals are few, on some signals; then on all."""
        some = x[evenly(len(x), TRIED)]
        by_node = _by_node(some)
        candidates = [self._with_modes(by_node, r) for r in ranks if r <= min(some.shape) / 4]
        if len(x) < FEW and not factors.too_dear(self.graph.weights):
            candidates.append(Sparse(polynomial(some, self.graph), np.zeros((len(self.graph), 0))))
        best = max(candidates, key=self.likelihood) if len(candidates) > 1 else candidates[0]
        return best if len(some) == len(x) else self.refitted(x, best)

    def refitted(self, x: np.ndarray, start: Sparse) -> Sparse:
        """To other signals (samples, nodes), from a fit."""
        if isinstance(start.precision, Given):
            return Sparse(polynomial(x, self.graph), start.modes)
        return self._improved(_by_node(x), start) if start.modes.shape[1] else self._with_modes(_by_node(x), 0)

    def likelihood(self, reference: Sparse) -> float:
        """Of a validation signal, on average; where it has gaps, of what was observed."""
        z = torch.from_numpy(self.judge.astype(np.float64))
        if not z.isnan().any():
            return float(reference.log_prob(z).mean())
        return float(reference.condition(Observations(z[evenly(len(z), GAPPY)])).log_evidence.mean())

    # -- modes -----------------------------------------------------------------------------------------------------

    def _with_modes(self, x: Tensor, rank: int) -> Sparse:  # (nodes, samples)
        """Regressions of what so many principal components leave, and then both in turn."""
        if rank == 0:
            nothing = torch.zeros(len(x), 0, dtype=torch.float64)
            return Sparse(self._regressed(x, self.val, nothing, nothing[:0]), nothing.numpy())
        U, v = principal(x, rank)
        rest = max(float(x.square().mean()) - float(v.sum()) / len(x), LEAST)  # a direction, on average
        share = (v - rest).clamp(min=0) / v
        V = U * (v * share).sqrt()
        f = (share / v).sqrt()[:, None] * (U.to(x).T @ x).double()
        val = self.val - V @ ((share / v).sqrt()[:, None] * (U.T @ self.val))
        precision = self._regressed(_left(x, V, f), val, V, torch.diag(1 - share))
        return self._improved(x, Sparse(precision, V.numpy()))

    def _improved(self, x: Tensor, start: Sparse) -> Sparse:
        """Some steps of expectation and maximisation."""
        for _ in range(STEPS):
            f, spread = _factors(start, x)
            second = f @ f.T / x.shape[1] + spread
            V = torch.linalg.solve(second, (x @ f.to(x).T).double().T / x.shape[1]).T.contiguous()
            val = self.val - V @ _factors(start, self.val)[0]
            start = Sparse(self._regressed(_left(x, V, f), val, V, spread), V.numpy())
        return start

    # -- regressions -----------------------------------------------------------------------------------------------

    def _regressed(self, e: Tensor, val: Tensor, modes: Tensor, spread: Tensor) -> Regressions:
        """Of signals ``e`` (nodes, samples), whose second moments have ``modes spread modes^T`` added; the ridge is the
        one under which ``val`` (nodes, samples) is most probable."""
        (nodes, samples), most = e.shape, self.parents.shape[1]
        a = torch.zeros(len(RIDGES), nodes, most, dtype=torch.float64)
        d, score = torch.zeros(len(RIDGES), nodes, dtype=torch.float64), torch.zeros(len(RIDGES), dtype=torch.float64)
        for rows in torch.arange(nodes).split(max(1, ENTRIES // ((most + 1) * (samples + val.shape[1])))):
            family = torch.cat([rows[:, None], self.parents[rows]], 1)  # (block, 1 + most)
            there, family = (family >= 0).double(), family.clamp(min=0)
            y, V = e[family].double() * there[..., None], modes[family] * there[..., None]
            second = y @ y.mT / samples + V @ spread @ V.mT
            own, across = second[:, 0, 0], second[:, 1:, :1]
            among = second[:, 1:, 1:] + torch.diag_embed(1 - there[:, 1:])
            size, seen = among.diagonal(dim1=1, dim2=2), val[family] * there[..., None]
            degrees = (samples - there[:, 1:].sum(1)).clamp(min=1) / samples
            for k, ridge in enumerate(RIDGES):
                weights = torch.linalg.solve(among + torch.diag_embed(ridge * size + LEAST**2), across)
                left = own - 2 * (weights * across).sum((1, 2)) + (weights.mT @ among @ weights)[:, 0, 0]
                left = (left / degrees).clamp(min=LEAST)
                off = seen[:, 0] - (weights.mT @ seen[:, 1:])[:, 0]
                a[k, rows], d[k, rows] = weights[..., 0] * there[:, 1:], left
                score[k] -= (left.log()[:, None] + off.square() / left[:, None]).sum()
        best = int(score.argmax())
        real = (self.parents >= 0).numpy()
        offsets = np.concatenate([[0], real.sum(1).cumsum()])
        A = sp.csr_array((a[best].numpy()[real], self.parents.numpy()[real], offsets), shape=(nodes, nodes))
        A.sort_indices()
        return Regressions(A, d[best].numpy(), self.order)


def _by_node(x: np.ndarray) -> Tensor:  # (samples, nodes) -> (nodes, samples)
    return torch.from_numpy(np.ascontiguousarray(x.T, dtype=np.float32))


def _left(x: Tensor, V: Tensor, f: Tensor) -> Tensor:  # (nodes, samples)
    """``x - V f``, in the precision of ``x``."""
    return torch.addmm(x, V.to(x), f.to(x), alpha=-1)


def _factors(reference: Sparse, x: Tensor) -> tuple[Tensor, Tensor]:  # (nodes, samples) -> (r, samples), (r, r)
    """Mean and covariance of ``f`` given signals."""
    QV, G = reference.coupling
    return torch.linalg.solve(torch.from_numpy(G), (torch.from_numpy(QV).to(x).T @ x).double()), torch.from_numpy(
        np.linalg.inv(G)
    )


def principal(x: Tensor, rank: int, beyond: int = 8, powers: int = 2) -> tuple[Tensor, Tensor]:  # (nodes, r), (r,)
    """Leading principal directions and their variances, of signals (nodes, samples), by random projections."""
    start = Stream(0, "random projections").normal(0, x.shape[1] * (rank + beyond)).view(x.shape[1], -1)
    Y = torch.linalg.qr(x @ start.to(x))[0]
    for _ in range(powers):
        Y = torch.linalg.qr(x @ (x.T @ Y))[0]
    left, values, _ = torch.linalg.svd((Y.T @ x).double(), full_matrices=False)
    return (Y.double() @ left)[:, :rank], values[:rank].square() / x.shape[1]


def later_neighbours(weights: sp.csr_array, order: np.ndarray) -> np.ndarray:  # (nodes, most), -1 where there are fewer
    """Up to ``MOST`` nodes within two steps that come later in the order: direct neighbours first, and by weight."""
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    near = sp.csr_array(weights / max(weights.max(), 1e-300)) if weights.nnz else weights
    far = sp.csr_array(near @ near)
    pairs = sp.coo_array(near.sign() + near + far / (1 + far.max())) if far.nnz else sp.coo_array(near)
    kept = place[pairs.col] > place[pairs.row]
    row, col, score = pairs.row[kept].astype(np.int64), pairs.col[kept].astype(np.int64), pairs.data[kept]
    ranked = np.lexsort((place[col], -score, row))
    row, col = row[ranked], col[ranked]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(n))[row]
    kept = rank < MOST
    parents = np.full((n, int(rank[kept].max(initial=0)) + 1), -1, dtype=np.int64)
    parents[row[kept], rank[kept]] = col[kept]
    return parents


# -- polynomials -------------------------------------------------------------------------------------------------------


def polynomial(x: np.ndarray, graph: Graph) -> Precision:
    """``tau (k1 + L)`` or ``tau (k1 + L) (k2 + L)``, whichever is the more probable, with the best numbers.

    ``x`` (samples, nodes), complete; ``L`` is the symmetric normalised Laplacian.
    """
    from scipy.interpolate import CubicSpline  # which are slow to load, and of no use to a trained run
    from scipy.optimize import minimize

    L, d = graph.normalized, len(graph)
    columns = x[evenly(len(x), FEW)].astype(np.float64).T
    smooth = L @ columns
    energies = [float((a * b).sum() / columns.shape[1]) for a, b in ((columns, columns), (columns, smooth))]
    energies.append(float((smooth**2).sum() / columns.shape[1]))
    order, eye = factors.elimination(graph.weights), sp.eye_array(d)
    sizes = CubicSpline(np.log(SMALL), [factors.Factor(k * eye + L, order).log_det for k in SMALL])

    def loss(logs: np.ndarray) -> tuple[float, float]:
        """``-2 log p`` at the best ``tau``, and that ``tau``."""
        if not (np.log(SMALL[0]) <= logs.min() and logs.max() <= np.log(SMALL[-1])):
            return np.inf, 1.0
        energy = float(np.polynomial.polynomial.polyfromroots(-np.exp(logs)) @ energies[: len(logs) + 1])
        tau = d / energy
        return d - d * float(np.log(tau)) - float(sizes(logs).sum()), tau

    starts = [np.zeros(1), np.array([-1.0, 1.0])]
    options = [minimize(lambda logs: loss(logs)[0], start, method="Nelder-Mead").x for start in starts]
    best = min(options, key=lambda logs: loss(logs)[0])
    Q = loss(best)[1] * eye
    for k in np.exp(best):
        Q = Q @ (k * eye + L)
    Q = sp.csr_array(Q)
    Q.sort_indices()
    return Given(sp.csr_array((Q + Q.T) / 2))


# -- gaps --------------------------------------------------------------------------------------------------------------


def neighbourly(x: np.ndarray, graph: Graph, rounds: int = 3) -> np.ndarray:  # (samples, nodes) twice
    """Gaps filled with the mean of what neighbours have, theirs included; with 0 where none has anything."""
    result = np.array(x)
    for rows in blocks(*x.shape):
        part = x[rows]
        gaps = np.isnan(part)
        if not gaps.any():
            continue
        filled, known = np.nan_to_num(part), ~gaps
        for _ in range(rounds):
            total = (graph.weights @ known.T.astype(x.dtype)).T
            mean = np.divide((graph.weights @ (filled * known).T).T, total, out=np.zeros_like(filled), where=total > 0)
            filled, known = np.where(gaps, mean, part), known | (total > 0)
        result[rows] = filled
    return result


def drawn(
    reference: Sparse, x: np.ndarray, filled: np.ndarray, random: Stream
) -> np.ndarray:  # (samples, nodes) thrice
    """Signals ``x`` with their gaps drawn given the rest, from how they were ``filled`` before.

    First ``f`` given the signals as they were filled, then what is hidden of ``e = x - V f`` given the rest of it
    (Gibbs), by Matheron's rule. Each signal misses others: their systems ``Q_hh`` are the blocks of one.
    """
    result, V = np.array(x), torch.from_numpy(reference.modes)
    for rows in blocks(*x.shape):
        noise = random.normal(range(len(x))[rows], x.shape[1] + V.shape[1])
        mean, spread = _factors(reference, torch.from_numpy(filled[rows].T.astype(np.float64)))
        f = mean + torch.linalg.cholesky(spread) @ noise[:, x.shape[1] :].T if V.shape[1] else mean
        wide = (V @ f).numpy()  # (nodes, signals)
        e = reference.precision.coloured(noise[:, : x.shape[1]].numpy().T)
        hidden = np.isnan(x[rows]).T
        off = np.where(hidden, 0.0, np.nan_to_num(x[rows].T) - wide - e)
        e = e + _hidden(reference.precision.Q, hidden, -(reference.precision.Q @ off))
        result[rows] = np.where(hidden, wide + e, x[rows].T).T
    return result


def _hidden(Q: sp.csr_array, hidden: np.ndarray, right: np.ndarray) -> np.ndarray:  # (nodes, signals) each
    """``Q_hh u = right_h`` for each signal, 0 elsewhere: one sparse system of all that is hidden.

    It is well conditioned, for what is hidden hangs on what is seen beside it, and some digits are enough for a fit.
    """
    node, signal = np.nonzero(hidden)
    place = np.full(hidden.shape, -1, dtype=np.int64)
    place[node, signal] = np.arange(len(node))
    count = np.diff(Q.indptr)[node]
    entry = np.repeat(Q.indptr[node] - np.concatenate([[0], count.cumsum()[:-1]]), count) + np.arange(count.sum())
    column = place[Q.indices[entry], np.repeat(signal, count)]
    kept = column >= 0
    row = np.repeat(np.arange(len(node)), count)[kept]
    blocks_of_all = sp.csr_array((Q.data[entry[kept]], (row, column[kept])), shape=(len(node),) * 2)
    u = np.zeros_like(right)
    u[node, signal] = factors.Iterative(blocks_of_all, DIGITS).solve(right[node, signal][:, None])[:, 0]
    return u
