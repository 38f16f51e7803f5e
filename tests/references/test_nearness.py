"""How correlation falls with distance along the graph: found again where it is known, in any order of nodes."""

import numpy as np
import pytest
import torch
from laws import close

import grcd
from grcd.references.nearness import nearness, path_lengths, towards

PLACES = np.array([0.0, 0.7, 1.1, 2.0, 2.4, 3.3])
APART = np.abs(np.subtract.outer(PLACES, PLACES))


def line():
    """Each node and the next, weighed by a Gaussian kernel: distances along it are those of the places."""
    W = np.where(np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1, np.exp(-(APART**2) / 2), 0.0)
    return grcd.Graph.from_adjacency(W)


def test_lengths_of_paths_are_those_that_a_gaussian_kernel_was_made_of():
    """Up to the shortest edge, which is taken for next to nothing: weights say ratios only."""
    edges = np.diff(PLACES)
    lengths = np.sqrt(np.maximum(edges**2 - edges.min() ** 2, -2 * np.log(1 - 1e-3)))
    places = np.concatenate([[0.0], np.cumsum(lengths)])
    close(path_lengths(line()), np.abs(np.subtract.outer(places, places)), 1e-9)


def test_nodes_without_a_path_are_infinitely_far():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = W[2, 3] = W[3, 2] = 1.0
    assert np.isinf(path_lengths(grcd.Graph.from_adjacency(W))[:2, 2:]).all()


@pytest.mark.parametrize(("share", "power"), [(1.0, 1.0), (0.8, 1.5), (0.5, 2.0)])
def test_a_curve_of_the_grid_is_found_again(share, power):
    distance = path_lengths(line())
    length = 2 * np.median(distance[np.triu_indices(6, 1)])
    rho = share * np.exp(-((distance / length) ** power))
    np.fill_diagonal(rho, 1.0)
    apart = np.abs(nearness(rho, distance) - rho).max()
    assert apart < 0.06 * share  # the grid's lengths are a fifth apart
    random = np.random.RandomState(0).standard_normal((6, 6))
    noisy = rho + 0.2 * (random + random.T) / 2
    assert np.abs(nearness(noisy, distance) - rho).mean() < 0.5 * np.abs(noisy - rho).mean()


def test_it_does_not_depend_on_the_order_of_nodes():
    random, order = np.random.RandomState(1), [3, 0, 5, 1, 4, 2]
    rho = np.corrcoef(random.standard_normal((6, 20)))
    distance = path_lengths(line())
    moved = nearness(rho[np.ix_(order, order)], distance[np.ix_(order, order)])
    close(moved, nearness(rho, distance)[np.ix_(order, order)], 1e-9)


def test_variances_stay_lags_fall_together_and_channels_hang_together_as_on_average():
    random, distance = np.random.RandomState(2), path_lengths(line())
    z = random.standard_normal((200, 12)) @ random.standard_normal((12, 12))
    C = torch.from_numpy(np.stack([z[lag:].T @ z[: 200 - lag] / (200 - lag) for lag in range(3)]))
    close(towards(C, distance, 0.0), C)
    whole = towards(C, distance, 1.0)
    close(whole[0].diagonal(), C[0].diagonal())
    ratio = C.diagonal(dim1=1, dim2=2).sum(1) / C[0].trace()
    for lag in (1, 2):
        close(whole[lag], ratio[lag] * whole[0])
    sd = C[0].diagonal().sqrt()
    rho = (whole[0] / (sd[:, None] * sd)).reshape(6, 2, 6, 2)
    own = (C[0] / (sd[:, None] * sd)).reshape(6, 2, 6, 2)
    close(rho[2, :, 2, :], torch.einsum("icid->cd", own) / 6)  # at any node
    close(rho[1, 0, 4, 1] * rho[1, 0, 1, 0], rho[1, 0, 4, 0] * rho[1, 0, 1, 1])
    assert torch.linalg.eigvalsh(whole[0])[0] > 0
    close(towards(C, distance, 0.4), 0.6 * C + 0.4 * whole)
