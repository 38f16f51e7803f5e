"""From a series to a model of its windows: what is chosen, and that it pays."""

import numpy as np
import pytest
import torch

import grcd
from grcd.data.series import Series
from grcd.diffusion.conditional import Conditional
from grcd.graphs.space import SignalSpace
from grcd.tasks import windows as tasks
from grcd.training import windows
from grcd.training.mean import Terms
from grcd.training.window_config import WindowConfig
from grcd.training.window_references import Choice, Shrinkage

HOUR = np.timedelta64(1, "h")
NODES = 5


def series(rows, first=0, daily=2.0, seed=0, times=True):
    """An autoregression beside a daily curve; a tenth of the readings are missing."""
    random = np.random.RandomState(seed)
    x, root = np.zeros((rows, NODES)), np.linalg.cholesky(np.eye(NODES) + 1.0)
    for t in range(1, rows):
        x[t] = 0.85 * x[t - 1] + root @ random.standard_normal(NODES)
    hours = first + np.arange(rows)
    x += 10 + daily * np.sin(2 * np.pi * hours / 24)[:, None] * np.arange(1, NODES + 1)
    x[random.random_sample(x.shape) < 0.1] = np.nan
    return Series(x[..., None], np.datetime64("2024-01-01T00") + hours * HOUR if times else None)


def space(steps=8):
    W = np.diag(np.ones(NODES - 1), 1)
    return SignalSpace(grcd.Graph.from_adjacency(W + W.T), steps)


@pytest.fixture(scope="module")
def fitted():
    setting = WindowConfig.on(
        torch.device("cpu"), width=16, blocks=1, heads=2, max_updates=40, validate_every=20, pool=400
    )
    with pytest.warns(grcd.core.errors.InputWarning, match="does not clearly beat its reference"):
        return windows.fit(space(), series(1500), series(400, 1500, seed=1), setting, torch.device("cpu"))


def test_the_calendar_is_kept_where_it_makes_readings_more_probable_and_the_network_is_not_where_it_does_not(fitted):
    model, summary = fitted
    assert summary["calendar"] == "mean"
    assert summary["network"] is False
    assert model.law.network is None  # Gaussian data: there is nothing to learn


def test_filled_gaps_are_nearer_than_a_line_in_time_and_the_calendars_mean(fitted):
    model, _ = fitted
    truth = series(240, 1900, seed=2)
    random = np.random.RandomState(3)
    hidden = (random.random_sample(truth.values.shape) < 0.25) & ~np.isnan(truth.values)
    given = np.where(hidden, np.nan, truth.values)[..., 0]
    mean, spread, features = model.about(truth.times, len(truth))
    z = (torch.from_numpy(given) - mean) / spread
    parts = tasks.fill(model.law, z, features, truth.stretches, n=40, nfe=2, seed=0)
    draws = torch.cat([part for _, part in parts], 1) * spread + mean
    filled = draws.median(0).values.numpy()
    off = np.abs(filled - truth.values[..., 0])[hidden[..., 0]].mean()
    rows = np.arange(len(truth))
    line = np.stack([np.interp(rows, rows[~np.isnan(x)], x[~np.isnan(x)]) for x in given.T], axis=1)
    assert off < np.abs(line - truth.values[..., 0])[hidden[..., 0]].mean()
    assert off < 0.7 * np.abs(mean.numpy() - truth.values[..., 0])[hidden[..., 0]].mean()
    low, high = np.quantile(draws.numpy(), (0.05, 0.95), axis=0, method="weibull")
    inside = (low <= truth.values[..., 0]) & (truth.values[..., 0] <= high)
    assert inside[hidden[..., 0]].mean() == pytest.approx(0.9, abs=0.05)


def test_what_a_third_of_the_rows_trains_beside_was_learned_from_the_others(monkeypatch):
    """However its own rows are changed, as long as the choices stay."""
    seen = []

    def remembered(space, folds, validation, *rest):
        seen.append((folds, validation))
        return Conditional(space, validation.reference), {"network": False}

    monkeypatch.setattr(windows.conditional, "fit", remembered)
    monkeypatch.setattr(windows.Means, "chosen", lambda self: (Terms(clock=True), {}))
    choice = Choice("stationary", Shrinkage())
    monkeypatch.setattr(windows.WindowReferences, "choose", lambda self: choice)
    train, val = series(900), series(200, 900, seed=1)
    changed, later = (Series(part.values.copy(), part.times) for part in (train, val))
    changed.values[:300] = 7 + 3 * np.random.RandomState(5).standard_normal(changed.values[:300].shape)
    later.values[:] = 50.0
    config = WindowConfig(window=8)
    for one, other in ((train, val), (changed, val), (train, later)):
        windows.fit(space(), one, other, config, torch.device("cpu"))
    (plain, whole), (first, after), (_, held) = seen
    rows = torch.arange(300, 900)
    assert torch.equal(plain[0].reference.C, first[0].reference.C)  # of the second and last third
    assert torch.equal(plain[0].z[rows].nan_to_num(), first[0].z[rows].nan_to_num())
    assert not torch.equal(plain[1].reference.C, first[1].reference.C)
    assert not torch.equal(whole.reference.C, after.reference.C)
    assert torch.equal(whole.reference.C, held.reference.C)  # validation rows teach nothing
    assert torch.equal(whole.z[:900].nan_to_num(), held.z[:900].nan_to_num())
