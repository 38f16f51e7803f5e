"""The paper's method on a product graph: windows of steps and channels, against the same with whole matrices."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import Zeros
from laws import close

from grcd.diffusion.process import ConjugateProcess
from grcd.graphs.graph import Spectrum
from grcd.graphs.space import SignalSpace
from grcd.networks.gnn import DenoiserGNN, Setting
from grcd.references.covariance import ledoit_wolf
from grcd.references.observations import Observations
from grcd.tasks import fill
from grcd.tasks.sample import sample
from grcd.training import fit
from grcd.training.config import Config

SHAPES = [(3, 1), (1, 2), (3, 2)]


def whole(space):
    """The same spectrum with its basis as one matrix."""
    return Spectrum(space.spectrum.lam, space.spectrum.basis.whole().numpy())


@pytest.mark.parametrize(("steps", "channels"), SHAPES)
def test_the_network_on_a_product_graph_is_the_one_with_the_whole_basis(tiny, steps, channels):
    space = SignalSpace(tiny.graph, steps, channels)
    torch.manual_seed(0)
    one, other = (DenoiserGNN(spectrum, Setting(width=8)) for spectrum in (space.spectrum, whole(space)))
    other.load_state_dict(one.state_dict())
    x, t = torch.randn(5, space.d), torch.rand(5, 1)
    with torch.no_grad():
        close(one(x, t), other(x, t), 1e-5)


@pytest.mark.parametrize(("steps", "channels"), SHAPES)
def test_the_process_on_a_product_graph_is_the_one_with_the_whole_basis(tiny, steps, channels):
    space = SignalSpace(tiny.graph, steps, channels)
    one, other = (ConjugateProcess.on(spectrum) for spectrum in (space.spectrum, whole(space)))
    x = torch.from_numpy(np.random.RandomState(0).standard_normal((4, space.d)))
    for q in (0.1, 2.0):
        close(one.to_graph(x, q), other.to_graph(x, q), 1e-12)
        close(one.to_conjugate(one.to_graph(x, q), q), x, 1e-12)


@pytest.fixture(scope="module")
def windows(tiny):
    """A diffusion of windows of three steps, each row a moment of a slow process; with its training windows."""
    random = np.random.RandomState(1)
    rows = np.zeros((400, 6))
    for t in range(1, 400):
        rows[t] = 0.9 * rows[t - 1] + random.standard_normal(6) @ np.linalg.cholesky(np.eye(6) + 0.5).T
    rows /= rows.std(axis=0)
    space = SignalSpace(tiny.graph, steps=3)
    z = space.flat(np.lib.stride_tricks.sliding_window_view(rows, 3, axis=0).swapaxes(1, 2).copy())
    config = Config(method="grcd-rho3", seed=3, width=8, batch=16, max_updates=30, validate_every=10)
    diffusion, summary = fit.fit(space, config, torch.device("cpu"), z[:300], z[300:])
    return diffusion, summary, z


def test_the_reference_is_the_diagonal_of_the_covariance_in_the_product_basis(windows):
    diffusion, _, z = windows
    U = diffusion.space.spectrum.basis.whole().numpy()
    v = np.diag(U.T @ ledoit_wolf(z[:300]) @ U)
    close(diffusion.reference.v, diffusion.space.spectrum.average(v), 1e-10)
    assert np.ptp(U[:, :6].reshape(3, 6, 6), axis=0).max() < 1e-12  # the first modes are constant in time
    assert v[:6].mean() > 5 * v[12:].mean()  # a slow process lives there


def test_windows_are_sampled_and_filled(windows):
    diffusion, summary, z = windows
    assert summary["updates"] == 30
    choices = ("exponential-paper", 4, tuple(diffusion.levels(4, diffusion.choice(4))))
    alone = replace(diffusion, network=Zeros())  # few updates teach nothing: what is sampled is the reference
    x = diffusion.space.shaped(sample(alone, 4000, "terminal", 0, choices).numpy())
    U = diffusion.space.spectrum.basis.whole()
    S = ((U * diffusion.reference.v) @ U.T).view(3, 6, 3, 6)
    exact = sum(S[t, :, t + 1].diagonal().sum() for t in (0, 1)) / 2 / (sum(S[t, :, t].trace() for t in range(3)) / 3)
    lag = np.mean(x[:, 1:] * x[:, :-1]) / np.mean(x**2)
    assert lag == pytest.approx(float(exact), abs=0.03)  # consecutive steps go together as they should
    gaps = torch.from_numpy(z[:5].copy())
    gaps[:, 6:12] = torch.nan  # the middle step
    parts = fill.fill(diffusion, lambda rows: Observations(gaps[rows]), np.arange(5), 200, 4, 0, "reference", None)
    draws = torch.cat([part for _, part in parts], 1)
    close(draws[:, :, :6], gaps[:, :6].expand(200, -1, -1), 1e-12)
    exact = diffusion.reference.condition(Observations(gaps)).mean
    close(draws.mean(0)[:, 6:12], exact[:, 6:12], 0.2)
    line = (gaps[:, :6] + gaps[:, 12:]) / 2
    assert (exact[:, 6:12] - line).abs().max() < 1.0


def test_a_graph_solver_serves_a_product_graph_by_its_very_basis(windows):
    diffusion, *_ = windows
    assert diffusion.reference.B is diffusion.process.U
    other = replace(diffusion, reference=diffusion.reference.scalar())
    assert other.choice(4).solver == "exponential-paper"
