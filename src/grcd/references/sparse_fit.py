"""How a sparse reference is fitted: regressions on neighbours, network-wide modes, and which of them pays.

**Regressions** are in ``neighbours``.

**Modes**, by expectation and maximisation of ``x = e + V f``: they start as the leading principal components (by
random projections); given ``Q`` and ``V``

    f | x ~ N(G^-1 V^T Q x, G^-1),   G = I + V^T Q V         V = (sum x f^T) (sum f f^T)^-1

and regressions are fitted again to ``x - V f``, whose second moments have ``V G^-1 V^T`` added.

**Polynomials** in the Laplacian, ``Q = tau (k1 + L)`` and ``tau (k1 + L) (k2 + L)``, have two or three numbers, and
their likelihood asks of signals for ``x^T x``, ``x^T L x`` and ``|L x|^2`` alone: for few signals, and without modes.
``log det (k + L)`` is exact at some ``k``, and a spline in between. The paper's ``sigma^2 / mu`` is the first of them.

Which of these, and how many modes, is decided by the likelihood of validation signals, with exact determinants.

**Gaps** are first filled with what neighbours read, then drawn given the rest under the fit that there is, and fitted
again, ``ROUNDS`` times; once, where readings are many.

**Windows** are signals of several rows, whose regressions go back in time; how many rows, is tried first. They have no
polynomials.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..core import factors
from ..core.errors import InputError, InputWarning
from ..core.rows import evenly
from ..core.streams import Stream
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from ..graphs.weights import NEIGHBOURS
from .neighbours import HUB, LEAST, MOST, Neighbours
from .observations import Observations
from .precision import Given, Precision
from .reference import Reference
from .sparse import Sparse
from .sparse_gaps import drawn, neighbourly

RANKS = (0, 16, 64)  # modes that are tried
SIGNALS, TRIED, VALIDATED, GAPPY = 2048, 512, 128, 16  # signals to fit, to choose by, to judge by; with gaps
STEPS, ROUNDS = 2, 2  # of expectation and maximisation; of drawing gaps
MANY = 1 << 26  # readings beyond which gaps are drawn once
LAGS = (0, 1, 2, 3)  # rows before a row of a window that are tried
BESIDE = 4  # times the largest weight in space: that of the rows before and after, for a first guess at gaps
SMALL = np.geomspace(1e-4, 1e3, 15)  # ``k`` at which determinants of polynomials are exact
FEW = 20 * MOST  # signals beyond which regressions need no polynomial beside them


def fit(train: Tensor, val: Tensor, graph: Graph, seed: int = 0, ranks: tuple[int, ...] = RANKS) -> Sparse:
    """Of z-scored signals (samples, nodes), NaN where missing; validation signals choose among ``ranks`` of ``V``."""
    return Task.of(graph, val).fitted(some_of(train, SIGNALS), ranks, seed)[0]


def fit_windows(
    train: Tensor,
    val: Tensor,
    space: SignalSpace,
    seed: int = 0,
    lags: tuple[int, ...] = LAGS,
    ranks: tuple[int, ...] = RANKS,
) -> tuple[Sparse, int, dict[str, float]]:
    """Of z-scored windows (windows, d), NaN where missing: the reference, how many rows it goes back, and the
    log-likelihood of validation windows, in nats a reading, by what was tried."""
    refuse_dense(space.graph)
    say_apart(space.graph, "")
    x, held_out = some_of(train, SIGNALS), some_of(val, VALIDATED)
    columns = of_columns(space)
    beside = of_windows(columns, space.steps)
    tasks = [Task(Neighbours(columns, space.steps, each), beside, held_out) for each in lags if each < space.steps]
    likelihoods = [-np.inf]
    if len(tasks) > 1:
        some = neighbourly(x[evenly(len(x), TRIED)], beside)
        likelihoods = [task.likelihood(task.chosen(some, (0,))) for task in tasks]
    task = tasks[int(np.argmax(likelihoods))]
    reference = task.fitted(x, ranks, seed)[0]
    tried = {f"{each.neighbours.lags} rows back": value for each, value in zip(tasks, likelihoods, strict=False)}
    return reference, task.neighbours.lags, tried | {"sparse": task.likelihood(reference)}


def of_columns(space: SignalSpace) -> sp.csr_array:  # (nodes channels, nodes channels)
    """Weights between the columns of a row: those of the graph in every channel, and channels of a node all linked."""
    weights, channels = space.graph.weights, space.channels
    if channels == 1:
        return weights
    each = sp.kron(weights, sp.eye_array(channels))
    across = sp.kron(sp.eye_array(len(space.graph)), np.ones((channels, channels)) - np.eye(channels))
    return sp.csr_array(each + max(weights.max(), 1e-300) * across)


def of_windows(columns: sp.csr_array, steps: int) -> sp.csr_array:  # (d, d)
    """Weights between the readings of a window: rows, each linked with the next."""
    beside = BESIDE * max(columns.max(), 1e-300)
    path = sp.diags_array([np.full(steps - 1, beside)] * 2, offsets=[-1, 1], shape=(steps, steps))
    return sp.csr_array(sp.kron(sp.eye_array(steps), columns) + sp.kron(path, sp.eye_array(columns.shape[0])))


def refuse_dense(graph: Graph) -> None:
    """A graph that is dense although large."""
    if graph.pairs > NEIGHBOURS / 2 * len(graph):
        each = f"{2 * graph.pairs / len(graph):,.0f} neighbours a node"
        raise InputError(
            f"a graph of {len(graph):,} nodes with {graph.pairs:,} pairs, {each}",
            f"up to {NEIGHBOURS} neighbours a node on a graph of this size",
            "keep the strongest weights of each node: a few nearest neighbours, or a higher threshold"
            + _at_one_place(graph),
        )


def _at_one_place(graph: Graph) -> str:
    """That nodes have the position of others, which makes them next to all of these."""
    if graph.coords is None:
        return ""
    count = len(graph) - len(np.unique(graph.coords, axis=0))
    return f"; {count:,} nodes are at the place of another one, next to all that are there: join them" if count else ""


def say_apart(graph: Graph, more: str = "; or a window (--window): a node's own past says much of its gaps") -> None:
    """A large graph in parts: nothing but modes that all nodes share says anything across."""
    parts, single = graph.components if graph.large else 1, int((graph.degree == 0).sum())
    if parts > 1:
        what = f"the graph falls into {parts:,} parts, {single:,} of them single nodes"
        do = "what they have in common are wide modes alone; give more edges or neighbours if they belong together"
        warnings.warn(f"{what}: {do}{more}", InputWarning, stacklevel=2)


def some_of(signals: Tensor, most: int) -> np.ndarray:  # (at most most, nodes)
    return (signals if len(signals) <= most else signals[evenly(len(signals), most)]).cpu().numpy()


class Task:
    """Whom readings are regressed on, and validation signals ``judge`` (samples, d), with gaps.

    ``weights`` (d, d) guess at gaps; a ``graph`` has polynomials beside.
    """

    def __init__(self, neighbours: Neighbours, weights: sp.csr_array, judge: np.ndarray, graph: Graph | None = None):
        self.neighbours, self.weights, self.judge, self.graph = neighbours, weights, judge, graph
        self.val = torch.from_numpy(neighbourly(judge, weights).T.astype(np.float64))

    @classmethod
    def of(cls, graph: Graph, val: Tensor) -> Task:
        """Of single moments on a graph."""
        refuse_dense(graph)
        say_apart(graph)
        return cls(Neighbours(graph.weights), graph.weights, some_of(val, VALIDATED), graph)

    def fitted(self, x: np.ndarray, ranks: tuple[int, ...], seed: int) -> tuple[Sparse, np.ndarray]:
        """To signals (samples, d) with gaps; and the signals, their gaps drawn."""
        gaps = bool(np.isnan(x).any())
        whole = neighbourly(x, self.weights) if gaps else x
        best = self.chosen(whole, ranks)
        for number in range((ROUNDS if x.size <= MANY else 1) if gaps else 0):
            random = Stream(seed, f"gaps of a sparse reference {number}")
            whole = drawn(best, x, whole, random)
            best = self.refitted(whole, best)
        return best, whole

    def chosen(self, x: np.ndarray, ranks: tuple[int, ...]) -> Sparse:
        """The best of several ranks, and of polynomials where signals are few, on some signals; then on all."""
        some = x[evenly(len(x), TRIED)]
        by_node = _by_node(some)
        candidates = [self._with_modes(by_node, r) for r in ranks if r <= min(some.shape) / 4]
        if self.graph is not None and len(x) < FEW and has_square(self.graph):
            candidates.append(Sparse(polynomial(some, self.graph), np.zeros((len(self.graph), 0))))
        best = max(candidates, key=self.likelihood) if len(candidates) > 1 else candidates[0]
        return best if len(some) == len(x) else self.refitted(x, best)

    def refitted(self, x: np.ndarray, start: Sparse) -> Sparse:
        """To other signals (samples, d), from a fit."""
        if self.graph is not None and isinstance(start.precision, Given):
            return Sparse(polynomial(x, self.graph), start.modes)
        return self._improved(_by_node(x), start) if start.modes.shape[1] else self._with_modes(_by_node(x), 0)

    def likelihood(self, reference: Reference) -> float:
        """Of a reading of validation signals that was observed, on average."""
        z = torch.from_numpy(self.judge.astype(np.float64))
        if not z.isnan().any():
            return float(reference.log_prob(z).sum()) / z.numel()
        z = z[evenly(len(z), GAPPY)]
        return float(reference.condition(Observations(z)).log_evidence.sum()) / max(1, int((~z.isnan()).sum()))

    # -- modes -----------------------------------------------------------------------------------------------------

    def _with_modes(self, x: Tensor, rank: int) -> Sparse:  # (nodes, samples)
        """Regressions of what so many principal components leave, and then both in turn."""
        if rank == 0:
            nothing = torch.zeros(len(x), 0, dtype=torch.float64)
            return Sparse(self.neighbours.regressed(x, self.val, nothing, nothing[:0]), nothing.numpy())
        U, v = principal(x, rank)
        rest = max(float(x.square().mean()) - float(v.sum()) / len(x), LEAST)  # a direction, on average
        share = (v - rest).clamp(min=0) / v
        V = U * (v * share).sqrt()
        f = (share / v).sqrt()[:, None] * (U.to(x).T @ x).double()
        val = self.val - V @ ((share / v).sqrt()[:, None] * (U.T @ self.val))
        precision = self.neighbours.regressed(_left(x, V, f), val, V, torch.diag(1 - share))
        return self._improved(x, Sparse(precision, V.numpy()))

    def _improved(self, x: Tensor, start: Sparse) -> Sparse:
        """Some steps of expectation and maximisation."""
        for _ in range(STEPS):
            f, spread = start.factors(x)
            second = f @ f.T / x.shape[1] + spread
            V = torch.linalg.solve(second, (x @ f.to(x).T).double().T / x.shape[1]).T.contiguous()
            val = self.val - V @ start.factors(self.val)[0]
            start = Sparse(self.neighbours.regressed(_left(x, V, f), val, V, spread), V.numpy())
        return start


def _by_node(x: np.ndarray) -> Tensor:  # (samples, nodes) -> (nodes, samples)
    return torch.from_numpy(np.ascontiguousarray(x.T, dtype=np.float32))


def _left(x: Tensor, V: Tensor, f: Tensor) -> Tensor:  # (nodes, samples)
    """``x - V f``, in the precision of ``x``."""
    return torch.addmm(x, V.to(x), f.to(x), alpha=-1)


def principal(x: Tensor, rank: int, beyond: int = 8, powers: int = 2) -> tuple[Tensor, Tensor]:  # (nodes, r), (r,)
    """Leading principal directions and their variances, of signals (nodes, samples), by random projections."""
    start = Stream(0, "random projections").normal(0, x.shape[1] * (rank + beyond)).view(x.shape[1], -1)
    Y = torch.linalg.qr(x @ start.to(x))[0]
    for _ in range(powers):
        Y = torch.linalg.qr(x @ (x.T @ Y))[0]
    left, values, _ = torch.linalg.svd((Y.T @ x).double(), full_matrices=False)
    return (Y.double() @ left)[:, :rank], values[:rank].square() / x.shape[1]


# -- polynomials -------------------------------------------------------------------------------------------------------


def has_square(graph: Graph) -> bool:
    """Whether ``L^2`` is sparse, and has a factor: hubs link all that they are linked with."""
    degree = np.diff(graph.weights.indptr).astype(np.int64)
    return bool((degree**2).sum() <= HUB * (degree.sum() + 1)) and not factors.too_dear(two_steps(graph))


def two_steps(graph: Graph) -> sp.csr_array:
    """The pattern of ``L^2``, that of a polynomial's precision."""
    return sp.csr_array(graph.weights + graph.weights @ graph.weights)


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
