"""A dataset and a graph introduce themselves in three lines, whatever they are called."""

import numpy as np
import pytest

import grcd


def long(graph):
    return grcd.Dataset("x\n" * 50, graph, *np.ones((3, 5, len(graph))), unit="furlongs\nper fortnight " * 9)


@pytest.mark.parametrize("named", [False, True])
def test_three_lines_are_enough(named):
    ids = [f"a name of many words {i}\n" * 9 for i in range(40)] if named else None
    graph = grcd.Graph.from_adjacency(np.ones((40, 40)), ids, origin="made\nby hand " * 50)
    for thing in (graph, long(graph)):
        assert len(repr(thing).splitlines()) <= 3
        assert max(map(len, repr(thing).splitlines())) < 400


def test_they_say_what_they_are():
    data = grcd.load_dataset("sbm-c16")
    assert repr(data).splitlines() == [
        "Dataset sbm-c16: 4,000 / 1,000 / 5,000 signals (train / val / test)",
        "  from memory",
        f"  Graph of 32 nodes, {data.graph.pairs:,} pairs",
    ]
    assert repr(data.graph).splitlines()[1] == "  stochastic block model, seed 0"
    road = grcd.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    assert repr(road) == (
        "Graph of 5 nodes (a, b, c and 2 more), 4 pairs\n  edge list, each pair listed once, taken as undirected"
    )
