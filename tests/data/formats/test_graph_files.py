"""Graph files: every kind gives the same graph, bad ones give an `InputError`, and nothing else ever escapes."""

import io
import itertools
import math
import os
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError
from grcd.data.formats.graphs import READERS, read_graph
from grcd.graphs.graph import Graph
from grcd.graphs.weights import distance

few = examples(40)
many = examples(200)

NAMES = ["007", "NA", "Plouescat-é", "12", "1e5", "x"]  # none of them a number, a gap or a column
W = np.zeros((6, 6))
for _i, _j, _w in [(0, 1, 1.0), (1, 2, 0.1), (2, 3, 1 / 3), (3, 4, 1e-7), (4, 0, 12345.678), (0, 2, 2.0)]:
    W[_i, _j] = W[_j, _i] = _w  # node x is isolated
COORDS = np.array([(0.0, 0.1), (1.5, 0), (2, 2), (-1, 3), (0.25, -2), (4, 4)])
GRAPH = Graph.from_adjacency(W, NAMES)
PLACED = Graph.from_coordinates(COORDS, NAMES, k=2)
pairs = [(i, j) for i, j in itertools.combinations(range(6), 2) if W[i, j]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


def text(header, rows, separator=","):
    lines = [header, *(separator.join(str(cell) for cell in row) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def packed(save, *arguments, **arrays):
    buffer = io.BytesIO()
    save(buffer, *arguments, **arrays)
    return buffer.getvalue()


def network(directed=False):
    G = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(NAMES)
    G.add_weighted_edges_from((NAMES[i], NAMES[j], float(W[i, j])) for i, j in pairs)
    if directed:
        G.add_weighted_edges_from((NAMES[j], NAMES[i], float(W[i, j])) for i, j in pairs)
    return G


def dcrnn(ids, weights, **changes):
    return pickle.dumps((ids, {name: place for place, name in enumerate(ids)}, weights), protocol=2)


LOOPS = [(name, name, 0.0) for name in NAMES]  # they name the nodes in order
FILES = {  # the same graph in every way to write it
    "edges.csv": text("source,target,weight", [*LOOPS, *((NAMES[j], NAMES[i], W[i, j]) for i, j in pairs)]),
    "both-ways.csv": text("From,To,WEIGHT", [*LOOPS, *((NAMES[i], NAMES[j], W[i, j]) for i, j in np.argwhere(W))]),
    "gephi.csv": text(
        "Source,Target,Type,Id,Weight",
        [
            (a, b, "Undirected", i, w)
            for i, (a, b, w) in enumerate([*LOOPS, *((NAMES[i], NAMES[j], W[i, j]) for i, j in pairs)])
        ],
    ),
    "semicolons.csv": text(";".join(NAMES), W, ";"),
    "matrix.csv": text(",".join(NAMES), W),
    "named-rows.csv": text(",".join(["", *NAMES]), ([name, *row] for name, row in zip(NAMES, W, strict=True))),
    "rows-in-another-order.csv": text(",".join(["node", *NAMES]), ([NAMES[i], *W[i]] for i in (3, 1, 5, 0, 4, 2))),
    "adjacency.npz": packed(np.savez_compressed, adjacency=W, node_ids=NAMES),
    "sensors.npz": packed(np.savez, adjacency=np.asfortranarray(W), sensor_ids=NAMES, coords=COORDS),
    "bytes.npz": packed(np.savez, adjacency=W, node_ids=[name.encode() for name in NAMES]),
    "sparse.npz": packed(np.savez, node_ids=NAMES, **np.load(io.BytesIO(packed(sp.save_npz, sp.csr_array(W))))),
    "network.graphml": "\n".join(nx.generate_graphml(network())).encode(),
    "directed.graphml": "\n".join(nx.generate_graphml(network(directed=True))).encode(),
    "network.gml": "\n".join(nx.generate_gml(network())).encode(),
    "directed.GML": "\n".join(nx.generate_gml(network(directed=True))).encode(),
    "adj_mx.pkl": dcrnn(NAMES, W),
}
NUMBERED = {  # without names
    "adjacency.npy": packed(np.save, W),
    "fortran.npy": packed(np.save, np.asfortranarray(W)),
    "nameless.npz": packed(np.savez, adjacency=W),
    **{
        f"{kind}.npz": packed(sp.save_npz, sp.csr_array(W).asformat(kind))
        for kind in ("csr", "csc", "coo", "bsr", "dia")
    },
    "matrix.npz": packed(sp.save_npz, sp.csr_matrix(W)),
    "array.pkl": pickle.dumps(W, protocol=2),
}
PLACES = {  # the same positions
    "stations.csv": text("Station,X,Y", ([name, *p] for name, p in zip(NAMES, COORDS, strict=True))),
    "sensors.csv": text(
        "index,y,sensor_id,x,altitude",
        ((i, p[1], name, p[0], "unknown") for i, (name, p) in enumerate(zip(NAMES, COORDS, strict=True))),
    ),
    "coords.npz": packed(np.savez, coords=COORDS, station_ids=NAMES),
}


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path, *words, **options):
    with pytest.raises(InputError) as error:
        read_graph(path, **options)
    got, expected, fix = str(error.value).split("\n")
    assert (got[:4], expected[:9], fix[:8]) == ("got ", "expected ", "to fix: ")
    assert all(word in str(error.value) for word in words), str(error.value)


# -- every kind ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_graph(folder, name):
    graph = read_graph(written(folder, name, FILES[name]))
    assert graph.node_ids == GRAPH.node_ids
    assert graph.hash == GRAPH.hash
    assert graph.origin.startswith(f"{name}: ")


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("edges.csv", "gephi.csv")])
def test_a_symmetrizer_changes_nothing_in_what_is_symmetric(folder, name):
    graph = read_graph(written(folder, name, FILES[name]), symmetrize="half-sum")
    assert graph.hash == GRAPH.hash
    assert graph.origin.endswith(", symmetrised by half-sum")


@pytest.mark.parametrize(("symmetrize", "share"), [("half-sum", 0.5), ("max", 1.0)])
def test_with_a_symmetrizer_a_list_of_each_pair_once_is_one_way(folder, symmetrize, share):
    graph = read_graph(written(folder, "edges.csv", FILES["edges.csv"]), symmetrize)
    np.testing.assert_array_equal(graph.weights.toarray(), W * share)
    assert (graph.one_way, graph.one_way_share) == (len(pairs), 1.0)


@pytest.mark.parametrize("name", NUMBERED)
def test_without_names_the_nodes_are_numbered(folder, name):
    assert read_graph(written(folder, name, NUMBERED[name])).hash == Graph.from_adjacency(W).hash


@pytest.mark.parametrize("name", PLACES)
def test_positions_give_the_nearest_neighbours(folder, name):
    graph = read_graph(written(folder, name, PLACES[name]), k=2)
    assert (graph.hash, graph.origin) == (PLACED.hash, f"{name}: {PLACED.origin}")
    np.testing.assert_array_equal(graph.coords, COORDS)
    other = read_graph(folder / name, k=3, bandwidth=200, metric="great-circle")
    assert other.hash == Graph.from_coordinates(COORDS, NAMES, 3, 200, "great-circle").hash
    assert read_graph(folder / name).hash == Graph.from_coordinates(COORDS, NAMES).hash


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("detector,x,y\nA,0,0\nB,1,0\nC,2,1\n", "ABC"),
        (",x,y\nA,0,0\nB,1,0\nC,2,1\n", "ABC"),
        (",x,y\n0,0,0\n1,1,0\n2,2,1\n", "012"),
        (",detector,y,x\n0,7,0,0\n1,8,1,0\n2,9,2,1\n", "789"),
        ("height,kind,stop,x,y\n0.5,a,S,0,0\n1,a,T,1,0\n2.5,b,U,2,1\n", "STU"),
        ("height,name,stop,x,y\n1,A,S,0,0\n2,B,T,1,0\n3,C,U,2,1\n", "ABC"),
    ],
)
def test_any_column_of_names_serves_beside_positions(folder, text, names):
    graph = read_graph(written(folder, "any.csv", text), k=1)
    assert graph.node_ids == tuple(names)
    assert "nearest neighbour of positions" in graph.origin


@pytest.mark.parametrize("text", ["x,y,z\n0,1,2\n1,0,3\n2,3,0\n", ",x,y,z\nx,0,1,2\ny,1,0,3\nz,2,3,0\n"])
def test_nodes_called_x_and_y_may_have_a_matrix(folder, text):
    graph = read_graph(written(folder, "xyz.csv", text))
    assert graph.node_ids == ("x", "y", "z")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 2], [1, 0, 3], [2, 3, 0]])


def test_an_index_that_pandas_wrote_does_not_make_an_edge_list_something_else(folder):
    graph = read_graph(written(folder, "index.csv", ",source,target,weight\n0,a,b,1\n1,b,c,2\n"))
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    assert graph.node_ids == ("a", "b", "c")


def test_a_square_matrix_may_be_of_nodes_that_are_called_by_numbers(folder):
    graph = read_graph(written(folder, "square.csv", "773869,767541,12\n0,1,0\n1,0,1\n0,1,0\n"))
    assert graph.node_ids == ("773869", "767541", "12")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("header", ["longitude,latitude", "lon,lat", "LNG,Lat"])
def test_degrees_are_measured_along_the_great_circle(folder, header):
    content = f"name,{header},x,y\nBrest,-4.486,48.39,1,1\nParis,2.352,48.857,2,2\nNantes,-1.553,47.218,9,9\n"
    graph = read_graph(written(folder, "cities.csv", content), k=1)
    p = np.array([(-4.486, 48.39), (2.352, 48.857), (-1.553, 47.218)])
    d = distance(p[:, None], p, "great-circle")
    s = np.median([d[0, 1], d[0, 2], d[1, 2]])
    expected = np.exp(-(d**2) / (2 * s**2)) * [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=1e-12)
    assert graph.origin == (
        f"cities.csv: 1 nearest neighbour of positions (great-circle, km), Gaussian weights of bandwidth {s:.6g}"
    )


@pytest.mark.parametrize("header", ["source,target,distance", "from,to,cost", "From,Target,Dist"])
def test_a_distance_table_is_weighted_by_dcrnns_kernel(folder, header):
    path = written(folder, "distances.csv", f"{header}\n01,01,0\n01,02,2\n03,02,4\n")
    expected = Graph.from_distances([("01", "01", 0), ("01", "02", 2), ("03", "02", 4)])
    graph = read_graph(path)
    assert (graph.hash, graph.origin) == (expected.hash, f"distances.csv: {expected.origin}")
    assert graph.node_ids == ("01", "02", "03")
    directed = read_graph(path, symmetrize="max", bandwidth=9, threshold=0.5)
    w = [math.exp(-4 / 81), math.exp(-16 / 81)]
    np.testing.assert_allclose(directed.weights.toarray(), [[0, w[0], 0], [w[0], 0, w[1]], [0, w[1], 0]], rtol=1e-12)


def test_an_edge_list_without_weights_has_weight_1(folder):
    graph = read_graph(written(folder, "plain.csv", "target\tsource\nb\ta\nc\tb\n"))
    assert graph.node_ids == ("a", "b", "c")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert graph.origin == "plain.csv: edge list, each pair listed once, taken as undirected"


@pytest.mark.parametrize("name", ["edges.csv", "both-ways.csv", "stations.csv", "rows-in-another-order.csv"])
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_only_reorders_the_nodes(folder, name, seed):
    header, *lines = (FILES | PLACES)[name].splitlines()
    np.random.default_rng(seed).shuffle(lines)
    graph = read_graph(
        written(folder, f"shuffled-{name}", b"\n".join([header, *lines])), k=2 if name in PLACES else None
    )
    again = graph.permuted([graph.node_ids.index(node) for node in NAMES])
    assert again.hash == (PLACED if name in PLACES else GRAPH).hash


def test_of_two_columns_that_might_name_the_nodes_the_first_counts(folder):
    places = "".join(f"a{i},b{i},{i},0\n" for i in range(6))
    assert read_graph(written(folder, "case.csv", "Node,node,x,y\n" + places)).node_ids[1] == "a1"
    assert read_graph(written(folder, "alias.csv", "name,station,x,y\n" + places)).node_ids[1] == "b1"


def test_weights_survive_to_the_last_bit(folder):
    w = np.random.default_rng(0).random(200)
    rows = ((f"n{i}", f"n{i + 1}", repr(float(x))) for i, x in enumerate(w))
    graph = read_graph(written(folder, "bits.csv", text("source,target,weight", rows)))
    np.testing.assert_array_equal(graph.weights.diagonal(1), w)


# -- networkx --------------------------------------------------------------------------------------------------------


def test_a_one_way_network_is_asymmetric_even_if_each_pair_occurs_once(folder):
    G = nx.DiGraph([("a", "b"), ("b", "c")])
    path = written(folder, "one-way.gml", "\n".join(nx.generate_gml(G)))
    refused(path, "W[a, b] = 1 but W[b, a] = 0", "--symmetrize half-sum")
    graph = read_graph(path, "half-sum")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]])
    assert (graph.one_way, graph.one_way_share) == (2, 1.0)


@pytest.mark.parametrize("axes", [("x", "y"), ("lon", "lat"), ("Longitude", "Latitude")])
@pytest.mark.parametrize("ending", ["gml", "graphml"])
def test_node_positions_are_kept_if_every_node_has_them(folder, axes, ending):
    G = network()
    for name, place in zip(NAMES, COORDS, strict=True):
        G.nodes[name].update(zip(axes, place.tolist(), strict=True))
    write = nx.generate_gml if ending == "gml" else nx.generate_graphml
    graph = read_graph(written(folder, f"placed.{ending}", "\n".join(write(G))))
    np.testing.assert_array_equal(graph.coords, COORDS)
    assert graph.hash == GRAPH.hash
    del G.nodes["12"][axes[1]]
    assert read_graph(written(folder, f"placed.{ending}", "\n".join(write(G)))).coords is None


def test_labels_name_the_nodes_and_a_key_may_have_a_default(folder):
    keys = (
        '<key id="d0" for="node" attr.name="label" attr.type="string"/>'
        '<key id="d1" for="edge" attr.name="weight" attr.type="double"><default>2.5</default></key>'
    )
    nodes = "".join(f'<node id="n{i}"><data key="d0">{name}</data></node>' for i, name in enumerate(["007", "b", "c"]))
    edges = '<edge source="n0" target="n1"/><edge source="n1" target="n2"><data key="d1">4</data></edge>'
    top = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    content = f'{top}{keys}<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>'
    graph = read_graph(written(folder, "labels.graphml", content))
    assert graph.node_ids == ("007", "b", "c")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 2.5, 0], [2.5, 0, 4], [0, 4, 0]])
    refused(written(folder, "twice.graphml", content.replace(">b<", ">c<")), "occur twice: c")
    again = content.replace(edges, edges + '<edge source="n1" target="n0"/>')
    refused(written(folder, "parallel.graphml", again), "occur twice", "007")


LABELLED = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"/>
<key id="w" for="edge" attr.name="{name}" attr.type="{kind}"/>
<graph edgedefault="undirected"><node id="n0"><data key="l">a</data></node><node id="n1">{label}</node><node id="n2">
<data key="l">c</data></node><edge id="4" source="n0" target="n1"><data key="w">{value}</data></edge>
<edge source="n1" target="{end}">{more}</edge></graph>{after}</graphml>"""
LABEL = '<data key="l">b</data>'


def graphml(name="weight", kind="double", label=LABEL, value="2", end="n2", more='<data key="w">3</data>', after=""):
    return LABELLED.format(name=name, kind=kind, label=label, value=value, end=end, more=more, after=after)


def test_without_a_number_at_any_edge_weights_are_1_and_said_to_be(folder):
    graph = read_graph(written(folder, "colour.graphml", graphml("colour", "string")))
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert graph.origin == "colour.graphml: adjacency, unit weights"
    assert read_graph(written(folder, "weight.graphml", graphml())).origin == "weight.graphml: adjacency"
    ids = GML.format(top="", edge="id 7", more="")  # as Gephi writes them
    assert read_graph(written(folder, "ids.gml", ids)).origin == "ids.gml: adjacency, unit weights"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Weight"}, ["without the edge attribute `weight`, but with 'Weight'"]),
        ({"name": "distance", "kind": "int"}, ["but with 'distance'", "rename"]),
        ({"more": ""}, ["1 edge without a weight: b -> c"]),
        ({"label": ""}, ["1 node without a label", "n1"]),
        ({"end": "n9"}, ["does not declare: n9"]),
        ({"after": '<graph edgedefault="undirected"><node id="n0"/></graph>'}, ["2 graphs"]),
        (
            {"label": f"{LABEL}<graph edgedefault='undirected'><node id='m'/></graph>"},
            ["nested in the nodes n1", "flat"],
        ),
    ],
)
def test_graphml_that_would_be_taken_for_something_else_is_refused(folder, change, words):
    refused(written(folder, "bad.graphml", graphml(**change)), *words)


GML = 'graph [ {top} node [ id 0 label "a" ] node [ id 1 label "b" ] edge [ source 0 target 1 {edge} ] {more} ]'


@pytest.mark.parametrize(
    ("top", "edge", "more", "words"),
    [
        ("multigraph 1", "", "edge [ source 0 target 1 ]", ["occur twice: a -> b"]),
        ("", "", "edge [ source 0 target 1 ]", ["cannot be read", "duplicated"]),
        ("", "weight -1", "", ["a -> b (-1)"]),
        ("", "weight NAN", "", ["a -> b (nan)"]),
        ("", 'weight "heavy"', "", ["heavy", "a number"]),
        ("", "weight [ a 1 ]", "", ["a number"]),
        ("", "", "edge [ source 0 target 7 ]", ["cannot be read"]),
        ("", "", "node [ id 0 ]", ["cannot be read"]),
        ("", "value 2.5", "", ["but with 'value'"]),
        ("", "weight 2", 'node [ id 2 label "c" ] edge [ source 1 target 2 ]', ["1 edge without a weight: b -> c"]),
        ("", "", "node [ id 2 ]", ["1 node without a label", "2"]),
        ("", "", "] graph [ node [ id 0 ]", ["cannot be read"]),
        ("edge_default 5", "", "", ["cannot be read"]),
    ],
)
def test_bad_networks_are_refused(folder, top, edge, more, words):
    refused(written(folder, "bad.gml", GML.format(top=top, edge=edge, more=more)), *words)


def test_gml_may_hold_self_loops_and_text_weights_and_utf8(folder):
    content = GML.format(top="", edge='weight "0.5"', more="edge [ source 1 target 1 ]").replace('"a"', '"é"')
    graph = read_graph(written(folder, "fine.gml", content))
    assert graph.node_ids == ("é", "b")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 0.5], [0.5, 0]])


def test_without_networkx_the_extra_is_named(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "networkx", None)
    refused(written(folder, "network.gml", FILES["network.gml"]), "no networkx", 'pip install "grcd[graphs]"')


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "option", "belongs"),
    [
        ("matrix.csv", {"k": 5}, "k with positions"),
        ("matrix.csv", {"threshold": 0.1}, "threshold with a distance table"),
        ("adjacency.npz", {"bandwidth": 1.0}, "bandwidth with a distance table or positions"),
        ("network.gml", {"metric": "euclidean"}, "metric with positions"),
        ("adj_mx.pkl", {"k": 5}, "holds an adjacency"),
        ("edges.csv", {"bandwidth": 2.0}, "holds an edge list"),
        (
            "stations.csv",
            {"symmetrize": "half-sum"},
            "symmetrize with an adjacency or an edge list or a distance table",
        ),
        ("coords.npz", {"threshold": 0.5}, "holds positions"),
    ],
)
def test_an_option_of_another_kind_of_file_is_refused(folder, name, option, belongs):
    refused(written(folder, name, (FILES | PLACES)[name]), f"the option {next(iter(option))}", belongs, **option)


def test_distances_take_no_neighbours(folder):
    refused(written(folder, "d.csv", "from,to,cost\na,b,1\nb,c,2\n"), "the option k", "holds a distance table", k=3)


def test_bad_options_are_refused_by_name(folder):
    matrix, stations = written(folder, "m.csv", FILES["matrix.csv"]), written(folder, "s.csv", PLACES["stations.csv"])
    refused(matrix, "did you mean 'half-sum'?", symmetrize="halfsum")
    refused(stations, "one of euclidean, great-circle", metric="road")
    refused(stations, "6 neighbours among 6 nodes", k=6)
    refused(stations, "bandwidth -1", bandwidth=-1)


# -- bad files -------------------------------------------------------------------------------------------------------

BAD_CSV = {
    "empty": ("", ["empty"]),
    "blank": ("\n\n", ["empty"]),
    "header only": ("source,target\n", ["no rows"]),
    "ragged": ("source,target,weight\na,b,1\nb,c\n", ["2 cells in row 2"]),
    "text weight": ("source,target,weight\na,b,heavy\n", ["'heavy' in row 1, column 'weight'"]),
    "decimal comma": ("source;target;weight\na;b;0,5\n", ["decimal points"]),
    "NaN weight": ("source,target,weight\na,b,NaN\n", ["a -> b (nan)"]),
    "no weight": ("source,target,weight\na,b,\n", ["a -> b (nan)"]),
    "negative weight": ("source,target,weight\na,b,-2\n", ["a -> b (-2)"]),
    "infinite weight": ("source,target,weight\na,b,inf\n", ["a -> b (inf)"]),
    "same edge": ("source,target,weight\na,b,1\na,b,2\n", ["occur twice: a -> b"]),
    "asymmetric": ("source,target,weight\na,b,1\nb,a,2\n", ["W[a, b] = 1 but W[b, a] = 2", "--symmetrize half-sum"]),
    "no name": ("source,target\na,b\na,\n", ["no 'target' in row 2"]),
    "unnamed weight": ("source,target,w\na,b,5\n", ["'w'", "one column `weight`"]),
    "two values": ("source,target,weight,distance\na,b,1,2\n", ["'weight', 'distance'"]),
    "negative distance": ("from,to,cost\na,b,1\nb,c,-1\n", ["b -> c (-1)"]),
    "equal distances": ("from,to,cost\na,b,1\nb,c,1\n", ["name a bandwidth"]),
    "one station": ("node,x,y\na,0,0\n", ["(1, 2)"]),
    "same station": ("node,x,y\n" + "".join(f"s{i % 6},{i},0\n" for i in range(7)), ["occur twice: s0"]),
    "station nowhere": ("node,x,y\n" + "".join(f"s{i},{i},\n" for i in range(7)), ["not finite, at node 0"]),
    "text position": ("node,lon,lat\na,east,1\nb,1,1\n", ["'east' in row 1, column 'lon'"]),
    "swapped degrees": ("node,lat,lon\n" + "".join(f"s{i},-118.{i},34\n" for i in range(7)), ["swap the columns"]),
    "positions of nothing": ("lon,lat\n0,0\n1,1\n2,2\n", ["3 rows", "node,longitude,latitude"]),
    "oblong": ("a,b,c\n0,1,0\n", ["1 row and the columns 'a', 'b', 'c'", "a square matrix"]),
    "long": ("a,b\n0,1\n1,0\n0,0\n0,0\n", ["4 rows"]),
    "single": (",a\na,0\n", ["two nodes or more"]),
    "other row names": (",a,b\na,0,1\nc,1,0\n", ["only its rows or only its columns have: c"]),
    "same gauge": ("gauge,x,y\n" + "".join(f"s{i % 6},{i},0\n" for i in range(7)), ["occur twice: s0"]),
    "row names twice": (",a,b\na,0,1\na,1,0\n", ["only its columns have: b"]),
    "column names twice": ("a,a\n0,1\n1,0\n", ["occur twice: 'a'"]),
    "unnamed column": ("a,b,\n0,1,1\n1,0,1\n1,1,0\n", ["a square matrix"]),
    "text in matrix": ("a,b\n0,one\n1,0\n", ["'one' in row 1, column 'b'"]),
    "gap in matrix": ("a,b\n0,\n1,0\n", ["1 NaN or infinite weights"]),
    "asymmetric matrix": ("a,b\n0,1\n3,0\n", ["W[a, b] = 1 but W[b, a] = 3", "--symmetrize half-sum"]),
    "no header": ("0.5,1.5\n1.5,0.5\n", ["numbers in its first row"]),
    "matrix without a header": ("0,2,5\n2,0,1\n5,1,0\n", ["numbers in its first row"]),
    "edges without a header": ("0,1\n1,2\n2,0\n", ["numbers in its first row", "add a first row with names"]),
    "latin-1": ("source,target\né,b\n".encode("latin1"), ["UTF-8"]),
    "binary": (FILES["adjacency.npz"], []),
    "signals": ("a,b,c\n" + "1,2,3\n" * 50, ["50 rows"]),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_files_are_refused_with_the_reason(folder, case):
    content, words = BAD_CSV[case]
    refused(written(folder, "bad.csv", content), *words)


class Code:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


OBJECTS = packed(np.save, np.array([[0, Code()], [Code(), 0]], dtype=object), allow_pickle=True)
COO = dict(np.load(io.BytesIO(packed(sp.save_npz, sp.coo_array(W)))))
CSR = dict(np.load(io.BytesIO(packed(sp.save_npz, sp.csr_array(W)))))
BAD_ARRAYS = {
    "empty.npy": (b"", ["cannot be read"]),
    "text.npy": (b"source,target\na,b\n", ["cannot be read"]),
    "archive.npy": (FILES["adjacency.npz"], ["cannot be read"]),
    "cut.npy": (NUMBERED["adjacency.npy"][:-7], ["cannot be read"]),
    "objects.npy": (OBJECTS, ["Python objects"]),
    "pickle.npy": (pickle.dumps(Code()), ["cannot be read"]),
    "0x0.npy": (packed(np.save, np.zeros((0, 0))), ["(0, 0)"]),
    "1x1.npy": (packed(np.save, np.zeros((1, 1))), ["two nodes or more"]),
    "2x3.npy": (packed(np.save, np.zeros((2, 3))), ["(2, 3)"]),
    "0d.npy": (packed(np.save, np.float64(1)), ["no numeric matrix"]),
    "1d.npy": (packed(np.save, np.zeros(4)), ["(4,)"]),
    "3d.npy": (packed(np.save, np.zeros((2, 2, 2))), ["no numeric matrix"]),
    "complex.npy": (packed(np.save, np.zeros((2, 2), complex)), ["complex"]),
    "words.npy": (packed(np.save, np.array([["0", "1"], ["1", "0"]])), ["no numeric matrix"]),
    "fields.npy": (packed(np.save, np.zeros((2, 2), [("a", float)])), ["no numeric matrix"]),
    "nan.npy": (packed(np.save, np.full((2, 2), np.nan)), ["NaN or infinite"]),
    "negative.npy": (packed(np.save, -np.ones((2, 2))), ["negative"]),
    "asymmetric.npy": (packed(np.save, np.triu(np.ones((3, 3)))), ["W[0, 1] = 1 but W[1, 0] = 0"]),
    "empty.npz": (b"", ["cannot be read"]),
    "nothing.npz": (packed(np.savez), ["the arrays none", "`adjacency` or `coords`"]),
    "array.npz": (NUMBERED["adjacency.npy"], ["cannot be read"]),
    "cut.npz": (FILES["adjacency.npz"][:-30], ["cannot be read"]),
    "signals.npz": (packed(np.savez, signals=W), ["the arrays signals", "`adjacency` or `coords`"]),
    "objects.npz": (packed(np.savez, adjacency=np.array([[0, Code()]], dtype=object)), ["Python objects"]),
    "names.npz": (packed(np.savez, adjacency=W, node_ids=NAMES[:5]), ["5 node names for 6 nodes"]),
    "twice.npz": (packed(np.savez, adjacency=W, node_ids=["a"] * 6), ["occur twice: a"]),
    "one-name.npz": (packed(np.savez, adjacency=W, node_ids="abcdef"), ["node names of shape ()"]),
    "floats.npz": (packed(np.savez, adjacency=W, node_ids=np.arange(6.0)), ["type float64"]),
    "latin.npz": (packed(np.savez, adjacency=W, node_ids=[b"\xe9"] * 6), ["node names", "text"]),
    "code-points.npz": (packed(np.savez, adjacency=W, node_ids=np.full(6, 2**30).view("U1")), ["node names", "text"]),
    "coords.npz": (packed(np.savez, adjacency=W, coords=COORDS[:3]), ["coordinates of shape (3, 2)"]),
    "far.npz": (packed(np.savez, coords=np.full((6, 2), np.inf)), ["not finite"]),
    "text.npz": (packed(np.savez, coords=COORDS.astype(str)), ["no numbers"]),
    "3d.npz": (packed(np.savez, coords=np.ones((6, 3))), ["coordinates of shape (6, 3)"]),
    "index.npz": (packed(np.savez, **CSR | {"indices": CSR["indices"] + 10**6}), ["cannot be read"]),
    "pointer.npz": (packed(np.savez, **CSR | {"indptr": CSR["indptr"][::-1]}), ["cannot be read"]),
    "row.npz": (packed(np.savez, **COO | {"row": COO["row"] - 9}), ["cannot be read"]),
    "format.npz": (packed(np.savez, **CSR | {"format": np.array("lil")}), ["cannot be read"]),
    "huge.npz": (packed(np.savez, **COO | {"shape": np.array([10**12] * 2)}), ["up to 10000000 nodes"]),
    "oblong.npz": (packed(sp.save_npz, sp.coo_array(W[:2])), ["(2, 6)"]),
    "1d-sparse.npz": (packed(np.savez, **COO | {"shape": np.array([6])}), ["shape [6]"]),
    "code.pkl": (pickle.dumps(Code()), ["mkdir"]),
    "code-inside.pkl": (pickle.dumps((NAMES, {}, Code())), ["mkdir"]),
    "empty.pkl": (b"", ["cannot be read"]),
    "cut.pkl": (FILES["adj_mx.pkl"][:-20], ["cannot be read"]),
    "oblong.pkl": (dcrnn(NAMES[:2], W[:2]), ["(2, 6)"]),
    "names.pkl": (dcrnn(NAMES[:5], W), []),
    "text.pkl": (b"source,target\na,b\n", []),
    "empty.graphml": (b"", ["cannot be read"]),
    "text.graphml": (FILES["edges.csv"], ["cannot be read"]),
    "html.graphml": (b"<html><body/></html>", ["cannot be read"]),
    "cut.graphml": (FILES["network.graphml"][:-40], ["cannot be read"]),
    "empty.gml": (b"", ["cannot be read"]),
    "text.gml": (FILES["edges.csv"], ["cannot be read"]),
    "deep.gml": (b"graph [ " + b"a [ " * 10**5, ["cannot be read"]),
    "latin.gml": ('graph [ node [ id 0 label "é" ] ]'.encode("latin1"), ["cannot be read"]),
    "nodeless.gml": (b"graph [ ]", ["no edges"]),
    "single.gml": (b"graph [ node [ id 0 ] ]", ["two nodes or more"]),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_files_are_refused_with_the_reason(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    content, words = BAD_ARRAYS[name]
    refused(written(folder, name, content), *words)
    assert not (folder / "made-by-a-pickle").exists()


def test_a_missing_file_a_folder_and_an_unknown_ending_are_refused(folder):
    refused(folder / "missing.csv", "which is no file")
    refused(folder, "which is no file")
    refused(folder / ("long" * 100), "which is no file")
    refused(written(folder, "graph.xlsx", b""), "'.xlsx'", ".csv")
    refused(written(folder, "graph.graphm", b""), "did you mean '.graphml'?")


# -- fuzz ------------------------------------------------------------------------------------------------------------


def valid_or_refused(path, **options):
    try:
        graph = read_graph(path, **options)
    except InputError:
        return
    dense = graph.weights.toarray()
    assert len(graph) == len(dense) == len(set(graph.node_ids)) >= 2
    assert np.isfinite(dense).all()
    assert (dense >= 0).all()
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_array_equal(np.diag(dense), 0)
    assert np.isfinite(graph.normalized.toarray()).all()
    assert len(graph.hash) == 64


cells = st.sampled_from(
    ["a", "b", "c", "0", "1", "-1", "0.5", "1e308", "1e-320", "inf", "nan", "", " ", "é", '"', "007", "1,5"]
)
HEADERS = ["source", "target", "weight", "cost", "to", "node", "id", "lon", "lat", "x", "y", "a", "b", "", "0", "1"]
headers = st.lists(
    st.sampled_from(HEADERS),
    min_size=1,
    max_size=4,
)
tables = st.tuples(headers, st.lists(st.lists(cells, min_size=1, max_size=4), max_size=5)).map(
    lambda table: "\n".join(",".join(row) for row in (table[0], *table[1]))
)
options = st.fixed_dictionaries(
    {}, optional={"symmetrize": st.sampled_from(["half-sum", "max"]), "k": st.integers(0, 3)}
)


@many
@given(content=tables | st.text(max_size=60) | st.binary(max_size=60), options=options)
@example("source,target,weight\na,b,1e308\nb,c,1e308\n", {})
@example("node,x,y\na,1e308,0\nb,-1e308,0\n", {"k": 1})
@example("node,x,y\na,1e-320,0\nb,0,0\n", {"k": 1})
@example("from,to,cost\na,b,1e308\nb,c,0\n", {})
@example("from,to,cost\na,b,1e-320\nb,c,0\n", {})
@example("a,b\r0,1\r1,0\r", {})
@example("a,b\n0,1\n1,0\x00\n", {})
@example('a,b\n0,"1\n1",0\n', {})
def test_any_text_is_a_graph_or_refused(folder, content, options):
    valid_or_refused(
        written(folder, "any.csv", content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content),
        **options,
    )


@pytest.mark.parametrize("ending", sorted(READERS))
@few
@given(content=st.binary(max_size=80))
def test_any_bytes_are_refused_or_a_graph(folder, ending, content):
    valid_or_refused(written(folder, f"any{ending}", content))


WHOLE = FILES | PLACES | {"adjacency.npy": NUMBERED["adjacency.npy"], "coo.npz": NUMBERED["coo.npz"]}


@pytest.mark.parametrize("name", WHOLE)
@few
@given(data=st.data())
def test_a_damaged_file_is_a_graph_or_refused(folder, name, data):
    content = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        how = data.draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert"]))
        if how == "flip" and at < len(content):
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del content[end:]
        elif how == "drop":
            del content[at : min(end, at + 8)]
        elif how == "repeat":
            content[at:at] = content[at : min(end, at + 40)]
        else:
            content[at:at] = data.draw(
                st.binary(max_size=4) | st.sampled_from([b"1e400", b"-", b"nan", b"\n", b'"', b","])
            )
    path = written(folder, f"damaged-{Path(name).stem}{Path(name).suffix}", bytes(content))
    valid_or_refused(path, symmetrize=data.draw(st.sampled_from([None, "half-sum"])) if name in FILES else None)


# -- the real files --------------------------------------------------------------------------------------------------


@pytest.mark.skipif("GRCD_DATA" not in os.environ, reason="the real data are not here")
def test_the_real_graphs():
    folder = Path(os.environ["GRCD_DATA"])
    graph = read_graph(folder / "metr_la_graph.npz", symmetrize="half-sum")
    assert (graph.pairs, graph.one_way, graph.node_ids[0]) == (1313, 1111, "773869")
    refused(folder / "metr_la_graph.npz", "asymmetric weights: W[7", "--symmetrize half-sum")
    molene = read_graph(folder / "molene.npz")
    assert (len(molene), molene.pairs, molene.node_ids[0]) == (37, 113, "22147006")
    assert (
        molene.origin
        == "molene.npz: 5 nearest neighbours of positions (euclidean), Gaussian weights of bandwidth 139779"
    )
