"""A graph too large for a basis, made small: everything by sparse products agrees with what the basis says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core.errors import InputError
from grcd.diffusion.process import ConjugateProcess
from grcd.graphs import graph as graphs
from grcd.graphs.graph import Graph, LargeSpectrum
from grcd.graphs.polynomials import largest_eigenvalue, series
from grcd.networks import gnn

NODES = 2000
PLACES = np.random.default_rng(0).random((NODES, 2))
SMALL = Graph.from_coordinates(PLACES)
DENSE, SPARSE = SMALL.spectrum, LargeSpectrum(SMALL.normalized)
X = torch.from_numpy(np.random.default_rng(1).standard_normal((4, NODES)))


@examples(10)
@given(q=st.floats(1e-3, 30.0), delta=st.floats(0.01, 0.5))
def test_graph_coordinates_are_those_of_the_basis(q, delta):
    one, other = (ConjugateProcess.on(spectrum, delta=delta, sigma=1.3) for spectrum in (DENSE, SPARSE))
    for name in ("to_graph", "to_conjugate", "graph_score"):
        close(getattr(other, name)(X, q), getattr(one, name)(X, q), 1e-10)
    levels = torch.tensor([[q], [0.3], [2.0], [1.0]]).double()
    close(other.to_graph(X, levels), one.to_graph(X, levels), 1e-10)


def test_the_paper_network_is_the_same_function_of_the_same_weights():
    setting = gnn.Setting(width=16, time_dim=8)
    one, other = gnn.on(DENSE, setting), gnn.on(SPARSE, setting)
    other.load_state_dict(one.state_dict())
    for t in (torch.tensor(0.3), torch.rand(4, 1, generator=torch.Generator().manual_seed(0))):
        close(other(X, t), one(X, t), 1e-5)
    for network in (one, other):
        network(X, torch.tensor(0.3)).square().sum().backward()
    for p, again in zip(one.parameters(), other.parameters(), strict=True):
        close(again.grad, p.grad, 1e-4)


def test_the_largest_frequency_is_the_bases():
    close(largest_eigenvalue(SMALL.normalized), DENSE.lam.max(), 1e-12)


def test_a_series_takes_what_degree_it_needs():
    s = torch.linspace(0, 1, 50).double()
    for function in (lambda s: 1 / (0.1 + s), lambda s: torch.stack([s.exp(), 1 - 3 * s**2]), torch.ones_like):
        c = series(function)
        terms = torch.cos(torch.arange(len(c)).double()[:, None] * torch.arccos(2 * s - 1))
        close(torch.einsum("k...,ks->...s", c, terms), function(s), 1e-11)
    assert len(series(torch.ones_like)) < len(series(lambda s: 1 / (0.1 + s)))


def test_frequencies_of_a_large_graph_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(graphs, "LARGE", 100)
    spectrum = Graph.from_coordinates(PLACES).spectrum
    for ask in (lambda: spectrum.lam, lambda: spectrum.U, spectrum.scaled, lambda: X @ spectrum.basis):
        with pytest.raises(InputError, match="all frequencies of a graph of 2,000 nodes"):
            ask()


def test_many_positions_have_the_bandwidth_of_some(monkeypatch):
    """The median distance of evenly spaced nodes: near that of all, and neighbours are the same."""
    from grcd.graphs import weights

    monkeypatch.setattr(weights, "ALL", 250)
    monkeypatch.setattr(weights, "SAMPLED", 200)
    many = Graph.from_coordinates(PLACES)
    assert np.array_equal(many.weights.indices, SMALL.weights.indices)
    s, all_of = (float(each.origin.rsplit(" ", 1)[1]) for each in (many, SMALL))
    assert s != all_of
    assert abs(s / all_of - 1) < 0.05
