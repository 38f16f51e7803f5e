"""Mixtures on many nodes: fitted in principal coordinates, with one variance for all other directions."""

import numpy as np
import pytest
import torch

from grcd.references import mixture_fit
from grcd.references.gaussian import LowRank

NODES, RANK = 40, 6


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(mixture_fit, "LARGE", 30)
    monkeypatch.setattr(mixture_fit, "RANK", RANK)


def two_sides(rows=3000, seed=0):
    """Two Gaussians of rank two about opposite means in a common plane, and a little noise everywhere."""
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(np.random.default_rng(9).standard_normal((NODES, 5)))[0]
    side = np.where(random.random(rows) < 0.3, -1.0, 1.0)[:, None]
    own = np.where(side < 0, basis[:, 1:3].T[:, None], basis[:, 3:5].T[:, None])  # directions of either side
    loose = sum(random.standard_normal((rows, 1)) * direction for direction in own)
    x = 8 * side * basis[:, 0] + 2 * loose + 0.1 * random.standard_normal((rows, NODES))
    return torch.from_numpy(x), basis


def test_two_sides_are_found_with_their_means_covariances_and_the_variance_of_the_rest():
    z, basis = two_sides()
    mixture = mixture_fit.select(z, z)
    assert len(mixture.parts) == 2
    assert all(isinstance(part, LowRank) for part in mixture.parts)
    order = np.argsort(mixture.weights.numpy())
    assert mixture.weights[order[0]] == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / len(z)))
    for k, sign, directions in ((order[0], -1, basis[:, 1:3]), (order[1], 1, basis[:, 3:5])):
        n = len(z) * float(mixture.weights[k])
        expected = 4 * directions @ directions.T + 0.01 * np.eye(NODES)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        # The shared covariance has a weight of RANK signals, which takes RANK / (n + RANK) away.
        slack = 5 * np.sqrt(2 / n) * scale + 2 * RANK / n * 4
        assert (np.abs(mixture.parts[k].covariance().numpy() - expected) < slack).all()
        assert np.linalg.norm(mixture.means[k].numpy() - 8 * sign * basis[:, 0]) < 5 * np.sqrt(8 / n)
        assert float(mixture.parts[k].v[-1]) == pytest.approx(0.01, rel=0.05)


def test_it_is_the_mixture_of_the_principal_coordinates_with_one_variance_for_the_rest():
    """Densities by the formula: that of the coordinates, times independent normal ones of all that is left."""
    z, _ = two_sides(200)
    mixture = mixture_fit.fit(z, 2)
    P = torch.linalg.eigh(z.T @ z)[1][:, -RANK:]
    inner = mixture_fit.fit(z @ P, 2)
    left = z - z @ P @ P.T
    rest = left.square().sum() / (200 * (NODES - RANK)) + 1e-6
    outside = -(left.square().sum(1) / rest + (NODES - RANK) * (2 * torch.pi * rest).log()) / 2
    np.testing.assert_allclose(mixture.log_prob(z), inner.log_prob(z @ P) + outside, rtol=1e-9)


def test_one_component_is_enough_for_one_gaussian():
    random = np.random.default_rng(1)
    z = torch.from_numpy(random.standard_normal((500, 3)) @ random.standard_normal((3, NODES)))
    z = z + 0.1 * torch.from_numpy(random.standard_normal((500, NODES)))
    assert len(mixture_fit.select(z, z).parts) == 1
