"""The three synthetic settings of appendix A.6.1: signals on a two-block stochastic block model, c = 1, 4, 16.

    x = g(L)^1/2 xi + 3 s u_2,      g(nu) = 0.2 + 0.8 / (1 + c nu),      s = +-1

``L`` is the combinatorial Laplacian, ``nu = lambda/lambda_max + delta`` its scaled and shifted eigenvalues, ``u_2`` the
Fiedler vector with its largest entry positive. This is the paper's recipe (independent coefficients of variance
``g(nu_i)``, a shift of +-3 in the second) written so that it does not depend on eigenvector signs. Everything is drawn
from streams that numpy has frozen (``RandomState`` for signals, the raw numbers of ``PCG64`` for the graph) and signals
are rounded to six decimals, so the data are the same on every machine; a test holds their checksums.

The paper does not say which graph it drew. Seed 0, ``default_rng(0).random`` once for every pair of nodes, is a
stand-in: of 1,145 graphs it agrees with the paper's figures that need no network (docs/paper.md,
``benchmarks/standin_sbm.py``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...graphs.graph import Graph, Spectrum
from ..dataset import Dataset
from .named import Generated, Setting

NODES, P_IN, P_OUT, DELTA, SHIFT = 32, 0.4, 0.04, 0.05, 3.0
SPLITS = {"train": 4_000, "val": 1_000, "test": 5_000}
CONCENTRATIONS = (1, 4, 16)
GRAPH_SEED = SIGNAL_SEED = 0


def sbm_graph(seed: int = GRAPH_SEED) -> Graph:
    """Two blocks of 16 nodes; edges of weight 1 with probability 0.4 inside a block and 0.04 between blocks."""
    block, upper = np.arange(NODES) >= NODES // 2, np.triu_indices(NODES, 1)
    probability = np.where(block[:, None] == block[None, :], P_IN, P_OUT)
    # default_rng(seed).random(pairs), from what is frozen of it: 53 of the 64 bits of each raw number.
    uniform = (np.random.PCG64(seed).random_raw(len(upper[0])) >> np.uint64(11)) * 2.0**-53
    weights = np.zeros((NODES, NODES))
    weights[upper] = uniform < probability[upper]
    return Graph.from_adjacency(weights + weights.T, origin=f"stochastic block model, seed {seed}")


def sbm_signals(graph: Graph, c: int, seed: int, split: str) -> np.ndarray:  # (samples, nodes)
    """Independent signals of one split."""
    spectrum = Spectrum.of(graph.combinatorial.toarray())
    deviation = np.sqrt(0.2 + 0.8 / (1 + c * spectrum.scaled(DELTA)))
    root = (spectrum.U * deviation) @ spectrum.U.T  # g(L)^1/2
    random = np.random.RandomState([seed, c, list(SPLITS).index(split)])
    xi = random.standard_normal((SPLITS[split], len(graph)))
    s = 2.0 * random.randint(0, 2, size=(SPLITS[split], 1)) - 1.0
    return np.round(xi @ root + SHIFT * s * spectrum.U[:, 1], 6) + 0.0  # no negative zeros


def load(c: int, graph_seed: int = GRAPH_SEED, signal_seed: int = SIGNAL_SEED) -> Dataset:
    """Graph and all three splits."""
    graph = sbm_graph(graph_seed)
    train, val, test = (sbm_signals(graph, c, signal_seed, split) for split in SPLITS)
    return Dataset(f"sbm-c{c}", graph, train, val, test)


ABOUT = {
    1: "two-block graph, mild low-pass signals with two modes",
    4: "the same, energy more concentrated at low frequencies",
    16: "the same, most concentrated",
}
DATASETS = [
    Generated(name=f"sbm-c{c}", about=f"synthetic, {NODES} nodes: {ABOUT[c]}", setting=Setting(), make=partial(load, c))
    for c in CONCENTRATIONS
]
