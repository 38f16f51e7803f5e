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

from grcd.core.errors import InputError
from grcd.graphs.weights import EARTH_RADIUS, distances, kernel, nearest

few = examples(40)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)
lattice = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12)  # ties and shared places
degrees = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
BREST, PARIS = (-4.486, 48.390), (2.352, 48.857)


def cloud(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 2)) * [3.0, 50.0] + [0.0, 1e3]


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
        distances(coords, metric)
    assert all(part in str(error.value) for part in words.split("|"))


# -- nearest neighbours ----------------------------------------------------------------------------------------------


def naive_nearest(d, k, s):
    """Every node takes all that are no farther than the k-th of its sorted distances; an edge if either end did."""
    n = len(d)
    W = np.zeros((n, n))
    for i in range(n):
        reach = sorted(d[i][j] for j in range(n) if j != i)[k - 1]
        for j in range(n):
            if j != i and d[i][j] <= reach:
                W[i, j] = W[j, i] = math.exp(-(d[i][j] ** 2) / (2 * s**2))
    return W


def median_of_pairs(d):
    return statistics.median(d[i][j] for i, j in itertools.combinations(range(len(d)), 2))


@few
@given(seed=seeds, n=sizes, k=st.integers(1, 11))
def test_nearest_neighbours_are_the_naive_loop(seed, n, k):
    assume(k < n)
    d = distances(cloud(seed, n))
    W, s = nearest(d, k)
    each_close(s, median_of_pairs(d), rtol=1e-15)
    each_close(W.toarray(), naive_nearest(d, k, s), rtol=1e-9)


@few
@given(points=lattice, k=st.integers(1, 11), s=st.floats(0.5, 10))
def test_ties_and_shared_places_are_the_naive_loop_too(points, k, s):
    d = [[math.dist(a, b) for b in points] for a in points]
    assume(k < len(points) and np.any(d))
    W, used = nearest(d, k, s)
    assert used == s
    each_close(W.toarray(), naive_nearest(d, k, s), rtol=1e-9)
    np.testing.assert_array_equal((W - W.T).toarray(), 0)


@few
@given(points=lattice, k=st.integers(1, 11), seed=seeds)
def test_the_order_of_the_nodes_does_not_matter_even_where_distances_tie(points, k, seed):
    p = np.array(points, dtype=float)
    d = distances(p)
    assume(k < len(p) and np.median(d[np.triu_indices(len(p), 1)]) > 0)
    order = np.random.default_rng(seed).permutation(len(p))
    W, s = nearest(d, k)
    other, t = nearest(distances(p[order]), k)
    assert s == t
    np.testing.assert_array_equal(other.toarray(), W.toarray()[np.ix_(order, order)])


@few
@given(points=lattice, k=st.integers(1, 11), unit=st.floats(1e-6, 1e6))
def test_the_unit_of_positions_and_bandwidth_does_not_matter(points, k, unit):
    p = np.array(points, dtype=float)
    assume(k < len(p) and np.ptp(p, axis=0).any())
    W = nearest(distances(p), k, 2.0)[0]
    other = nearest(distances(p * unit), k, 2.0 * unit)[0]
    each_close(other.toarray(), W.toarray(), rtol=1e-9)


@few
@given(seed=seeds, n=sizes, unit=st.floats(1e-6, 1e6))
def test_the_default_bandwidth_scales_with_the_positions(seed, n, unit):
    d = distances(cloud(seed, n))
    (W, s), (other, t) = nearest(d, 1), nearest(d * unit, 1)
    each_close(t, s * unit)
    each_close(other.toarray(), W.toarray(), rtol=1e-9)


def test_rounding_does_not_choose_among_equal_neighbours():
    """On a grid with steps of 0.1 the four neighbours of a node are equally far up to the last bits."""
    grid = np.array(list(itertools.product(range(5), range(5))))
    for k in (1, 2, 3, 4, 5):
        whole, tenths = nearest(distances(grid), k)[0], nearest(distances(grid * 0.1 + 0.7), k)[0]
        np.testing.assert_array_equal(tenths.toarray() > 0, whole.toarray() > 0)


def test_every_tied_neighbour_is_chosen():
    square = nearest(distances([(0, 0), (0, 1), (1, 1), (1, 0)]), k=1, bandwidth=1.0)[0].toarray()
    side = math.exp(-0.5)
    each_close(square, side * np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]))


def test_nodes_at_one_place_are_tied_with_weight_1():
    W, _ = nearest(distances([(0, 0), (0, 0), (3, 4), (3, 4)]), k=1)
    each_close(W.toarray(), np.kron(np.eye(2), [[0, 1], [1, 0]]))


def test_all_the_others_as_neighbours_make_the_complete_gaussian():
    d = distances(cloud(3, 6))
    W, s = nearest(d, k=5)
    each_close(W.toarray(), np.exp(-(d**2) / (2 * s**2)) - np.eye(6))


def test_the_callers_distances_are_left_as_they_were():
    d = distances(cloud(1, 5))
    before = d.copy()
    nearest(d, 2), kernel(d)
    np.testing.assert_array_equal(d, before)


LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize(
    ("d", "options", "words"),
    [
        (LINE, {"k": 0}, "0 neighbours among 3 nodes|1 to 2"),
        (LINE, {"k": 3}, "3 neighbours among 3 nodes"),
        (LINE, {"k": -1}, "-1 neighbours"),
        (LINE, {"k": 1.5}, "1.5 neighbours|whole number"),
        (LINE, {"k": "two"}, "'two' neighbours"),
        (LINE, {"k": 1, "bandwidth": 0}, "bandwidth 0|positive"),
        (LINE, {"k": 1, "bandwidth": -2.0}, "bandwidth -2.0"),
        (LINE, {"k": 1, "bandwidth": math.nan}, "bandwidth nan"),
        (LINE, {"k": 1, "bandwidth": math.inf}, "bandwidth inf"),
        (LINE, {"k": 1, "bandwidth": "wide"}, "bandwidth 'wide'"),
        (LINE, {"k": 1, "bandwidth": 1e-3}, "no weight between any two nodes, with bandwidth 0.001"),
        (np.zeros((3, 3)), {"k": 1}, "3 nodes at one place"),
        (np.zeros((3, 3)), {"k": 1, "bandwidth": 1.0}, "3 nodes at one place"),
        (distances([(0, 0)] * 4 + [(1, 0)]), {"k": 1}, "median of all pairwise distances of 0|name a bandwidth"),
        ([[0, 1], [2, 0]], {"k": 1}, "depend on the direction"),
        ([[0, -1], [-1, 0]], {"k": 1}, "negative"),
        ([[0, math.nan], [math.nan, 0]], {"k": 1}, "not finite"),
        ([[0, math.inf], [math.inf, 0]], {"k": 1}, "not finite"),
        ([[0]], {"k": 1}, "shape (1, 1)"),
        ([[0, 1, 2]], {"k": 1}, "shape (1, 3)"),
        ([["a", "b"], ["c", "d"]], {"k": 1}, "no numbers"),
    ],
)
def test_bad_neighbourhoods_are_refused_with_the_reason(d, options, words):
    with pytest.raises(InputError) as error:
        nearest(d, **options)
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
    W, used = nearest(distances(coords))
    each_close(used, s, rtol=1e-14)
    assert W.nnz == 2 * 113
    each_close(W.toarray(), naive_nearest(d, 5, s), rtol=1e-9)
    # The file has ground distances in metres of its own: ours agree but for the shape of the Earth.
    np.testing.assert_allclose(distances(lonlat, "great-circle") * 1e3, ground, rtol=5e-3, atol=1)
