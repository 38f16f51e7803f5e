"""Graphs from what users hold in memory, against the builders that they stand for."""

import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import grcd
from grcd.core.errors import InputError
from grcd.data.graph_source import complete, graph_of

NAMES = ["north", "south", "east", "west"]
EDGES = [("north", "south", 0.5), ("south", "east", 2.0), ("west", "north", 1.5)]
PLACES = np.array([[-4.4, 48.4], [-3.5, 48.8], [-2.0, 47.2], [-1.7, 48.1]])


def edges(columns=("source", "target", "weight")):
    return pandas.DataFrame([edge[: len(columns)] for edge in EDGES], columns=list(columns))


def same(one, other):
    assert one.node_ids == other.node_ids
    assert one.named
    np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray())


def test_a_networkx_graph_keeps_its_names_weights_and_positions():
    network = networkx.Graph()
    network.add_nodes_from((name, {"pos": tuple(place)}) for name, place in zip(NAMES, PLACES, strict=True))
    network.add_weighted_edges_from(EDGES)
    graph = graph_of(network)
    same(graph, grcd.Graph.from_edges(EDGES, NAMES))
    np.testing.assert_array_equal(graph.coords, PLACES)
    plain = graph_of(networkx.path_graph(4))  # nodes are numbers, edges have no weight
    same(plain, grcd.Graph.from_edges([(0, 1), (1, 2), (2, 3)]))


def test_a_directed_networkx_graph_has_to_be_the_same_both_ways():
    network = networkx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    with pytest.raises(InputError, match=r"asymmetric weights: W\[b, c\]"):
        graph_of(network)
    network.add_edge("c", "b")
    same(graph_of(network), grcd.Graph.from_edges([("a", "b"), ("b", "c")]))


@pytest.mark.parametrize("columns", [("source", "target", "weight"), ("From", "To", "Weight"), ("source", "target")])
def test_a_frame_of_edges_is_a_list_of_edges(columns):
    same(graph_of(edges(columns)), grcd.Graph.from_edges([edge[: len(columns)] for edge in EDGES]))
    shuffled = edges(columns)[list(columns[::-1])]  # by name, in any order
    same(graph_of(shuffled), grcd.Graph.from_edges([edge[: len(columns)] for edge in EDGES]))


def test_a_frame_of_distances_is_a_table_of_distances():
    same(graph_of(edges(("from", "to", "distance"))), grcd.Graph.from_distances(EDGES))


def test_whole_numbers_are_names_without_a_point():
    listed = pandas.DataFrame({"source": [7.0, 8.0], "target": [8, 9]})
    assert graph_of(listed).node_ids == ("7", "8", "9")


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize(
    ("axes", "metric"),
    [(("longitude", "latitude"), "great-circle"), (("lon", "lat"), "great-circle"), ("xy", "euclidean")],
)
def test_a_frame_of_positions_is_a_graph_of_nearest_neighbours(axes, metric, by_index):
    places = pandas.DataFrame({"station": NAMES, axes[1]: PLACES[:, 1], axes[0]: PLACES[:, 0], "height": 7.5})
    graph = graph_of(places.set_index("station") if by_index else places)
    same(graph, grcd.Graph.from_coordinates(PLACES, NAMES, metric=metric))
    np.testing.assert_array_equal(graph.coords, PLACES)


@pytest.mark.parametrize("matrix", [sp.csr_matrix, sp.coo_array, sp.csc_array, np.asarray])
def test_weights_may_be_of_any_kind_of_matrix(matrix):
    W = grcd.Graph.from_edges(EDGES, NAMES).weights.toarray()
    np.testing.assert_array_equal(graph_of(matrix(W)).weights.toarray(), W)
    assert not graph_of(matrix(W)).named


def test_a_square_frame_is_a_matrix_named_by_its_columns_whatever_the_order_of_its_rows():
    W = grcd.Graph.from_edges(EDGES, NAMES).weights.toarray()
    square = pandas.DataFrame(W, NAMES, NAMES)
    same(graph_of(square), grcd.Graph.from_adjacency(W, NAMES))
    same(graph_of(square.iloc[[2, 0, 3, 1]]), grcd.Graph.from_adjacency(W, NAMES))
    same(graph_of(pandas.DataFrame(W, columns=NAMES)), grcd.Graph.from_adjacency(W, NAMES))


def test_a_graph_is_itself_and_the_model_takes_all_of_them():
    graph = grcd.Graph.from_edges(EDGES, NAMES)
    assert graph_of(graph) is graph
    assert grcd.GRCD(edges()).graph.node_ids == graph_of(edges()).node_ids
    assert complete(4).pairs == 6
    assert not complete(4).named


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pandas.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0], "c": [2.0, 2.0]}), "2 rows with the columns a, b, c"),
        (edges().assign(weight=["1", "x", "2"]), "'x' in row 2, column 'weight' of the data frame"),
        (edges().assign(target=[None, "a", "b"]), "no 'target' in row 1"),
        (edges().rename(columns={"weight": "flow"}), "'flow'"),
    ],
)
def test_frames_that_are_no_graph_are_refused(frame, words):
    with pytest.raises(InputError, match=words):
        graph_of(frame)
