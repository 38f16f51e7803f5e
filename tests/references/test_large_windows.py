"""References of windows that are too large for a covariance: low rank, and the paper's by projections."""

import numpy as np
import pytest
import torch
from laws import close

import grcd
from grcd.graphs.space import SignalSpace
from grcd.references import TrainingSignals, low_rank_fit, projections
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import full, spectral


def space():
    W = np.triu(np.random.RandomState(0).random_sample((4, 4)), 1)
    return SignalSpace(grcd.Graph.from_adjacency(W + W.T), steps=3)


def windows(count, missing=0.0, seed=0):
    random = np.random.RandomState(seed)
    x = random.standard_normal((count, 12)) @ np.random.RandomState(1).standard_normal((12, 12)) / 3
    x[random.random_sample(x.shape) < missing] = np.nan
    return x


@pytest.mark.parametrize("count", [8, 60])  # fewer than a window has numbers, and more
def test_variances_by_projection_are_those_of_the_whole_covariance(count):
    x, spectrum = windows(count), space().spectrum
    expected = spectral(ledoit_wolf(x, 1e-3), spectrum).v
    close(projections.spectral_by_projection(x, spectrum, 1e-3), expected, 1e-10)


def test_gaps_are_drawn_until_variances_are_those_of_signals_without():
    spectrum = space().spectrum
    whole = projections.spectral_by_projection(windows(2000), spectrum)
    drawn = projections.spectral_by_projection(windows(2000, 0.1), spectrum)
    zeros = projections.spectral_by_projection(np.nan_to_num(windows(2000, 0.1)), spectrum)
    assert (drawn - whole).norm() < 0.5 * (zeros - whole).norm()
    assert (drawn - whole).abs().max() < 0.1 * whole.max()


def test_signals_of_many_numbers_are_projected(monkeypatch):
    x, where = windows(60), space()
    expected = TrainingSignals.of(x, x, where.spectrum, where.spectrum.basis, 1e-3, 0).spectral.v
    monkeypatch.setattr(projections, "LARGE", 5)
    monkeypatch.setattr("grcd.references.kinds.ledoit_wolf", None)  # nobody asks for a covariance
    close(TrainingSignals.of(x, x, where.spectrum, where.spectrum.basis, 1e-3, 0).spectral.v, expected, 1e-10)


@pytest.mark.parametrize("count", [8, 400])
def test_modes_are_the_principal_ones_and_the_rest_of_the_energy_is_shared(count):
    x = torch.from_numpy(windows(count))
    fitted = low_rank_fit.fit(x, rank=3)
    v, B = np.linalg.eigh(x.numpy().T @ x.numpy() / count)
    close((fitted.B.T.numpy() @ B[:, -3:]) @ (fitted.B.T.numpy() @ B[:, -3:]).T, np.eye(3), 1e-8)
    close(fitted.covariance().trace(), v.sum(), 1e-10)
    order = np.argsort(fitted.v[:3].numpy())
    assert (np.sort(fitted.v[:3].numpy()) <= v[-3:] + 1e-9).all()  # shrunk towards the mean
    close(np.corrcoef(fitted.v[:3].numpy()[order], v[-3:])[0, 1], 1.0, 1e-8)


def test_gaps_of_windows_are_drawn_given_the_rest_and_what_is_there_stays():
    x = torch.from_numpy(windows(500, 0.3))
    truth = np.random.RandomState(1).standard_normal((12, 12)) / 3
    filled = low_rank_fit.completed(x, full(truth.T @ truth))
    assert torch.equal(filled[~x.isnan()], x[~x.isnan()])
    assert (filled.T @ filled / 500 - torch.from_numpy(truth.T @ truth)).norm() < 0.15 * np.linalg.norm(truth.T @ truth)
