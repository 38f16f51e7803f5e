"""Weights against naive loops and closed forms, and against everything that must not matter: order, unit, rounding."""

import itertools
import math
import os
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from laws import close, each_close, examples

from grcd.core import rows
from grcd.core.errors import InputError
from grcd.graphs import weights
from grcd.graphs.weights import EARTH_RADIUS, distance, kernel, nearest

few = examples(40)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)
lattice = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12)  # ties and shared places
degrees = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
BREST, PARIS = (-4.486, 48.390), (2.352, 48.857)


def cloud(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 2)) * [3.0, 50.0] + [0.0, 1e3]


def distances(coords, metric="euclidean"):
    """All pairs, as nothing in the package keeps them."""
    p = np.array(coords, dtype=float)
    return distance(p[:, None], p[None], metric)


# -- distances -------------------------------------------------------------------------------------------------------


@few
@given(seed=seeds, n=sizes)
def test_euclidean_distances_are_pythagoras(seed, n):
    p = cloud(seed, n)
    each_close(distances(p, "euclidean"), [[math.dist(a, b) for b in p] for a in p])


@few
@given(points=st.lists(degrees, min_size=2, max_size=6))
def test_great_circle_distances_are_angles_between_unit_vectors(points):
    lam, phi = np.radians(points).T
    u = np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=1)
    angle = [[math.atan2(np.linalg.norm(np.cross(a, b)), a @ b) for b in u] for a in u]
    close(distances(points, "great-circle"), EARTH_RADIUS * np.array(angle), 1e-7, size=EARTH_RADIUS)


def test_brest_is_505_km_from_paris():
    (lam1, phi1), (lam2, phi2) = np.radians(BREST), np.radians(PARIS)
    cosine = math.sin(phi1) * math.sin(phi2) + math.cos(phi1) * math.cos(phi2) * math.cos(lam2 - lam1)
    found = distances([BREST, PARIS], "great-circle")[0, 1]
    assert found == pytest.approx(EARTH_RADIUS * math.acos(cosine), rel=1e-10)
    assert found == pytest.approx(505, abs=2)


def test_quarters_antipodes_and_the_date_line():
    def between(a, b):
        return distances([a, b], "great-circle")[0, 1]

    quarter = EARTH_RADIUS * math.pi / 2
    assert between((17, 0), (17, 90)) == pytest.approx(quarter)
    assert between((0, 0), (90, 0)) == pytest.approx(quarter)
    assert between((20, 35), (-160, -35)) == pytest.approx(2 * quarter)
    assert between((179, 10), (-179, 10)) == pytest.approx(between((-1, 10), (1, 10)))
    assert between((350, 10), (-10, 10)) == pytest.approx(0, abs=1e-14 * EARTH_RADIUS)
    assert between((0, 90), (120, 90)) == pytest.approx(0, abs=1e-14 * EARTH_RADIUS), "a pole is one place"


@pytest.mark.parametrize("metric", ["euclidean", "great-circle"])
@few
@given(points=st.lists(degrees, min_size=2, max_size=6))
def test_distances_are_symmetric_to_the_last_bit_and_zero_on_the_diagonal(metric, points):
    d = distances(points, metric)
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(np.diag(d), 0)


@pytest.mark.parametrize(
    ("coords", "metric", "words"),
    [
        ([BREST, PARIS], "manhattan", "one of euclidean, great-circle"),
        ([BREST, PARIS], "Great-Circle", "did you mean 'great-circle'?"),
        ([(48.4, -4.5), (34.1, -118.3)], "great-circle", "latitude -118.3 at node 1|swap the columns"),
        ([(0, 90.001), (0, 0)], "great-circle", "latitude 90.001 at node 0 (1 such nodes)"),
        ([(361, 0), (0, 0)], "great-circle", "longitude 361"),
        ([(0, 0)], "euclidean", "shape (1, 2)|two nodes or more"),
        ([(0, 0, 0), (1, 1, 1)], "euclidean", "shape (2, 3)"),
        ([0.0, 1.0], "euclidean", "shape (2,)"),
        ([], "euclidean", "shape (0,)"),
        ([("a", "b"), ("c", "d")], "euclidean", "no numbers"),
        ([(0, 0), (1,)], "euclidean", "no numbers"),
        ([(0, 0), (1, None)], "euclidean", "no numbers"),
        ([(0, 0), (1, math.nan)], "euclidean", "not finite, at node 1"),
        ([(0, 0), (1, math.inf)], "great-circle", "not finite, at node 1"),
        ([(1e308, 0), (-1e308, 0)], "euclidean", "too far apart"),
    ],
)
def test_bad_positions_are_refused_with_the_reason(coords, metric, words):
    with pytest.raises(InputError) as error:
        nearest(coords, 1, metric=metric)
    assert all(part in str(error.value) for part in words.split("|"))


# -- nearest neighbours ----------------------------------------------------------------------------------------------


def naive_nearest(d, k, s, tie=1e-9):
    """Every node takes all that are no farther than the k-th of its sorted distances; an edge if either end did."""
    n = len(d)
    W = np.zeros((n, n))
    for i in range(n):
        reach = sorted(d[i][j] for j in range(n) if j != i)[k - 1]
        for j in range(n):
            if j != i and d[i][j] <= reach * (1 + tie):
                W[i, j] = W[j, i] = np.exp(-((d[i][j] / s) ** 2) / 2)
    return W


def median_of_pairs(d):
    return statistics.median(d[i][j] for i, j in itertools.combinations(range(len(d)), 2))


@few
@given(seed=seeds, n=sizes, k=st.integers(1, 11))
def test_nearest_neighbours_are_the_naive_loop_to_the_bit(seed, n, k):
    assume(k < n)
    p = cloud(seed, n)
    d = distances(p)
    W, s = nearest(p, k)
    assert s == median_of_pairs(d)
    np.testing.assert_array_equal(W.toarray(), naive_nearest(d, k, s))


@few
@given(points=lattice, k=st.integers(1, 11), s=st.floats(0.5, 10))
def test_ties_and_shared_places_are_the_naive_loop_too(points, k, s):
    d = [[math.dist(a, b) for b in points] for a in points]
    assume(k < len(points) and np.any(d))
    W, used = nearest(points, k, s)
    assert used == s
    each_close(W.toarray(), naive_nearest(d, k, s), rtol=1e-9)
    np.testing.assert_array_equal((W - W.T).toarray(), 0)


@few
@given(
    points=st.lists(
        st.sampled_from([*itertools.product((-180, -90, 0, 90, 180, 350), (-90, -45, 0, 45, 90))]), min_size=3
    ),
    near=st.lists(st.tuples(st.floats(-1e-6, 1e-6), st.floats(-1e-6, 1e-6)), min_size=3, max_size=3),
    k=st.integers(1, 6),
)
def test_on_the_globe_poles_antipodes_the_date_line_and_metres_are_the_naive_loop(points, near, k):
    p = np.array(points + [(-4.5 + x, 48.4 + y) for x, y in near], dtype=float)[:12]
    d = distances(p, "great-circle")
    assume(k < len(p) and median_of_pairs(d) > 0)
    W, s = nearest(p, k, metric="great-circle")
    assert s == median_of_pairs(d)
    np.testing.assert_array_equal(W.toarray(), naive_nearest(d, k, s))


@few
@given(points=lattice, unit=st.sampled_from([1e-200, 1e-9, 1.0, 1e9, 1e150]), offset=st.sampled_from([0.0, 1e6]))
def test_far_off_huge_and_tiny_positions_are_the_naive_loop(points, unit, offset):
    p = (np.array(points, dtype=float) + offset) * unit
    d = distances(p)
    assume(d[0].any() and median_of_pairs(d) > 0)
    W, s = nearest(p, 1)
    np.testing.assert_array_equal(W.toarray(), naive_nearest(d, 1, s))


@pytest.mark.parametrize("metric", ["euclidean", "great-circle"])
@pytest.mark.parametrize("n", [200, 201])
def test_blocks_of_rows_and_of_bits_make_no_difference(metric, n, monkeypatch):
    """Many nodes share few places, so that the two middle distances are apart, or equal, or tie with many others."""
    for seed in range(4):
        p = np.random.default_rng(seed).normal(size=(n, 2)).round(1 if seed % 2 else 9)
        d = distances(p, metric)
        expected = naive_nearest(d, 3, np.median(d[np.triu_indices(n, 1)]))
        with monkeypatch.context() as patch:
            for module in (rows, weights):
                patch.setattr(module, "BLOCK", 700)
            W, s = nearest(p, 3, metric=metric)
        assert s == np.median(d[np.triu_indices(n, 1)])
        np.testing.assert_array_equal(W.toarray(), expected)


@few
@given(points=lattice, k=st.integers(1, 11), seed=seeds)
def test_the_order_of_the_nodes_does_not_matter_even_where_distances_tie(points, k, seed):
    p = np.array(points, dtype=float)
    assume(k < len(p) and median_of_pairs(distances(p)) > 0)
    order = np.random.default_rng(seed).permutation(len(p))
    W, s = nearest(p, k)
    other, t = nearest(p[order], k)
    assert s == t
    np.testing.assert_array_equal(other.toarray(), W.toarray()[np.ix_(order, order)])


@few
@given(points=lattice, k=st.integers(1, 11), unit=st.floats(1e-6, 1e6))
def test_the_unit_of_positions_and_bandwidth_does_not_matter(points, k, unit):
    p = np.array(points, dtype=float)
    assume(k < len(p) and np.ptp(p, axis=0).any())
    W = nearest(p, k, 2.0)[0]
    other = nearest(p * unit, k, 2.0 * unit)[0]
    each_close(other.toarray(), W.toarray(), rtol=1e-9)


@few
@given(seed=seeds, n=sizes, unit=st.floats(1e-6, 1e6))
def test_the_default_bandwidth_scales_with_the_positions(seed, n, unit):
    p = cloud(seed, n)
    (W, s), (other, t) = nearest(p, 1), nearest(p * unit, 1)
    each_close(t, s * unit)
    each_close(other.toarray(), W.toarray(), rtol=1e-9)


def test_rounding_does_not_choose_among_equal_neighbours():
    """On a grid with steps of 0.1 the four neighbours of a node are equally far up to the last bits."""
    grid = np.array(list(itertools.product(range(5), range(5))))
    for k in (1, 2, 3, 4, 5):
        whole, tenths = nearest(grid, k)[0], nearest(grid * 0.1 + 0.7, k)[0]
        np.testing.assert_array_equal(tenths.toarray() > 0, whole.toarray() > 0)


def test_every_tied_neighbour_is_chosen():
    square = nearest([(0, 0), (0, 1), (1, 1), (1, 0)], k=1, bandwidth=1.0)[0].toarray()
    side = math.exp(-0.5)
    each_close(square, side * np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]))


def test_nodes_at_one_place_are_tied_with_weight_1():
    W, _ = nearest([(0, 0), (0, 0), (3, 4), (3, 4)], k=1)
    each_close(W.toarray(), np.kron(np.eye(2), [[0, 1], [1, 0]]))


def test_all_the_others_as_neighbours_make_the_complete_gaussian():
    p = cloud(3, 6)
    W, s = nearest(p, k=5)
    each_close(W.toarray(), np.exp(-(distances(p) ** 2) / (2 * s**2)) - np.eye(6))


def test_many_nodes_need_no_room_for_all_their_pairs():
    """All distances of these 90,000 would take 65 GB."""
    side = np.arange(300.0)
    p = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    W, _ = nearest(p, 1, bandwidth=1.0)
    assert W.nnz == 4 * 300 * 299
    assert set(W.data.tolist()) == {float(np.exp(-0.5))}


def test_the_callers_numbers_are_left_as_they_were():
    p, d = cloud(1, 5), distances(cloud(1, 5))
    before = p.copy(), d.copy()
    nearest(p, 2), kernel(d)
    np.testing.assert_array_equal(p, before[0])
    np.testing.assert_array_equal(d, before[1])


LINE = [(0, 0), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("positions", "options", "words"),
    [
        (LINE, {"k": 0}, "0 neighbours among 3 nodes|1 to 2"),
        (LINE, {"k": 3}, "3 neighbours among 3 nodes"),
        (np.random.default_rng(0).random((5000, 2)), {"k": 257}, "257 neighbours among 5,000 nodes|1 to 256"),
        (LINE, {"k": -1}, "-1 neighbours"),
        (LINE, {"k": 1.5}, "1.5 neighbours|whole number"),
        (LINE, {"k": "two"}, "'two' neighbours"),
        (LINE, {"k": 1, "bandwidth": 0}, "bandwidth 0|positive"),
        (LINE, {"k": 1, "bandwidth": -2.0}, "bandwidth -2.0"),
        (LINE, {"k": 1, "bandwidth": math.nan}, "bandwidth nan"),
        (LINE, {"k": 1, "bandwidth": math.inf}, "bandwidth inf"),
        (LINE, {"k": 1, "bandwidth": "wide"}, "bandwidth 'wide'"),
        (LINE, {"k": 1, "bandwidth": 1e-3}, "no weight between any two nodes, with bandwidth 0.001"),
        ([(1, 2)] * 3, {"k": 1}, "3 nodes at one place"),
        ([(1, 2)] * 3, {"k": 1, "bandwidth": 1.0}, "3 nodes at one place"),
        ([(0, 0)] * 4 + [(1, 0)], {"k": 1}, "median of all pairwise distances of 0|name a bandwidth"),
    ],
)
def test_bad_neighbourhoods_are_refused_with_the_reason(positions, options, words):
    with pytest.raises(InputError) as error:
        nearest(positions, **options)
    assert all(part in str(error.value) for part in words.split("|"))


# -- DCRNN's kernel --------------------------------------------------------------------------------------------------


def dcrnn(d, threshold=0.1):
    """Its script, in words: infinity is no distance; the spread is that of all entries that are finite."""
    d = np.asarray(d, dtype=float)
    s = statistics.pstdev(d[~np.isinf(d)].tolist())
    weights = np.exp(-np.square(d / s))
    weights[weights < threshold] = 0
    return weights, s


def table(seed, n):  # directed, with gaps and with the zeros that DCRNN's table lists from a node to itself
    rng = np.random.default_rng(seed)
    d = np.where(rng.random((n, n)) < 0.6, rng.gamma(2.0, 1e3, (n, n)), np.inf)
    np.fill_diagonal(d, 0.0)
    d[0, 1] = 1500.0  # one at least
    return d


@few
@given(seed=seeds, n=st.integers(3, 12), threshold=st.floats(0, 0.9))
def test_the_kernel_is_dcrnns(seed, n, threshold):
    d = table(seed, n)
    expected, s = dcrnn(d, threshold)
    assume(np.count_nonzero(expected) > n)
    W, used = kernel(d, threshold=threshold)
    each_close(used, s)
    assume(not np.any(np.isclose(np.exp(-np.square(d / s)), threshold, rtol=1e-9)))
    each_close(W.toarray(), expected, rtol=1e-9)
    assert np.all(W.data >= threshold)


def test_the_kernel_by_hand():
    """Distances 1 and 3 have mean 2 and spread 1: weights exp(-1), and exp(-9), which is below 0.1."""
    W, s = kernel([[np.inf, 1, np.inf], [np.inf, np.inf, 3], [np.inf] * 3])
    assert s == 1
    each_close(W.toarray(), [[0, math.exp(-1), 0], [0] * 3, [0] * 3])
    each_close(kernel([[np.inf, 1], [3, np.inf]], threshold=0)[0].toarray(), [[0, math.exp(-1)], [math.exp(-9), 0]])
    each_close(kernel([[np.inf, 1], [3, np.inf]], bandwidth=3)[0].toarray(), [[0, math.exp(-1 / 9)], [math.exp(-1), 0]])


def test_a_stored_zero_is_a_distance_and_an_absent_entry_is_none():
    d = table(5, 7)
    i, j = np.nonzero(np.isfinite(d))
    listed = sp.coo_array((d[i, j], (i, j)), shape=d.shape)
    assert listed.nnz > np.count_nonzero(listed.toarray()), "the zeros on the diagonal are stored"
    (sparse, s), (dense, t) = kernel(listed), kernel(d)
    assert s == t
    np.testing.assert_array_equal(sparse.toarray(), dense.toarray())
    bare = listed.copy()
    bare.eliminate_zeros()
    assert kernel(bare)[1] != s, "DCRNN's spread counts the zeros from a node to itself"


def test_a_weight_at_the_threshold_stays():
    w = math.exp(-1.0)
    assert kernel([[np.inf, 1], [3, np.inf]], bandwidth=1, threshold=w)[0].nnz == 1
    with pytest.raises(InputError, match="no weight between any two nodes"):
        kernel([[np.inf, 1], [3, np.inf]], bandwidth=1, threshold=math.nextafter(w, 1))


@few
@given(seed=seeds, n=st.integers(3, 12), unit=st.floats(1e-6, 1e6))
def test_the_kernel_has_no_unit(seed, n, unit):
    d = table(seed, n)
    W, s = kernel(d, threshold=0.0)
    other, t = kernel(d * unit, threshold=0.0)
    each_close(t, s * unit)
    each_close(other.toarray(), W.toarray(), rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "options", "words"),
    [
        ([[0, -1], [1, 0]], {}, "1 distances such as (0, 1) -1"),
        ([[0, 1], [math.nan, 0]], {}, "1 distances such as (1, 0) nan"),
        ([[0, -math.inf], [1, 0]], {}, "(0, 1) -inf"),
        ([[np.inf, 2], [2, np.inf]], {}, "standard deviation of the distances of 0|name a bandwidth"),
        (
            sp.coo_array(([0.1] * 3, ([0, 1, 2], [1, 2, 0])), shape=(3, 3)),
            {},
            "standard deviation of the distances of 0",
        ),
        (sp.coo_array((2, 2)), {}, "standard deviation of the distances of 0"),
        (sp.coo_array((2, 2)), {"bandwidth": 1}, "no weight between"),
        ([[0, 1], [1, 0]], {"threshold": -0.1}, "threshold -0.1|0 to 1"),
        ([[0, 1], [1, 0]], {"threshold": 1.1}, "threshold 1.1"),
        ([[0, 1], [1, 0]], {"threshold": math.nan}, "threshold nan"),
        ([[0, 1], [1, 0]], {"threshold": None}, "threshold None"),
        ([[0, 1], [1, 0]], {"bandwidth": 1e-9}, "no weight between any two nodes"),
        ([[0, 1]], {}, "shape (1, 2)"),
        ([0, 1], {}, "shape (2,)"),
        ([["a", "b"], ["c", "d"]], {}, "no numbers"),
    ],
)
def test_bad_distance_tables_are_refused_with_the_reason(d, options, words):
    with pytest.raises(InputError) as error:
        kernel(d, **options)
    assert all(part in str(error.value) for part in words.split("|"))


# -- the Molene graph ------------------------------------------------------------------------------------------------


@pytest.mark.skipif("GRCD_DATA" not in os.environ, reason="the real data are not here")
def test_the_molene_graph():
    with np.load(Path(os.environ["GRCD_DATA"]) / "molene.npz") as file:
        coords, lonlat, ground = file["coords"], file["lonlat"], file["distances"]
    d = [[math.dist(a, b) for b in coords] for a in coords]
    s = median_of_pairs(d)
    W, used = nearest(coords)
    each_close(used, s, rtol=1e-14)
    assert W.nnz == 2 * 113
    each_close(W.toarray(), naive_nearest(d, 5, s), rtol=1e-9)
    # The file has ground distances in metres of its own: ours agree but for the shape of the Earth.
    np.testing.assert_allclose(distances(lonlat, "great-circle") * 1e3, ground, rtol=5e-3, atol=1)
