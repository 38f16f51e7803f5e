"""Variations of signals: from the signals themselves to any signal, and what lies between by closed form."""

import sys

import numpy as np
import pandas
import pytest
from conftest import Zeros
from laws import close
from trained import with_parts

import grcd
from grcd import cli
from grcd.core.streams import Stream
from grcd.data.formats.signals import read_signals
from grcd.tasks import vary as augmentation


@pytest.fixture(scope="module")
def model(tiny, quick):
    """Read-only."""
    return grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val)


@pytest.fixture(scope="module")
def bare(tiny, quick):
    """One Gaussian as reference, and a network that adds nothing to it. Read-only."""
    model = grcd.GRCD(tiny.graph, "grcd-full", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    return with_parts(model, network=Zeros(), plan={})


def test_strength_zero_returns_the_signals(model, tiny):
    found = model.augment(tiny.test, 0.0, n=3)
    assert (found == tiny.test).all()
    assert found.shape == (3, *tiny.test.shape)


@pytest.mark.parametrize("strength", [0.01, 0.2, 0.5, 0.8])
def test_without_a_residual_a_variation_is_its_closed_form(bare, tiny, strength):
    """Draw by draw, and so are mean and covariance: the flow of a Gaussian from level q to 0.04 is linear.

    x~ = z + q xi, carried by sqrt((v + 0.04^2) / (v + q^2)) on the modes of the reference; mean and covariance to five
    standard errors.
    """
    n, z = 4000, bare.normalizer.apply(tiny.test[:1])[0]
    found = bare.normalizer.apply(bare.augment(tiny.test[:1], strength, n=n)[:, 0])
    q, part, mean = 2.0 * strength / (1 - strength), bare.reference.parts[0], bare.reference.means[0].numpy()
    v, B = part.v.numpy(), part.B.numpy()
    factor = np.sqrt((v + 0.04**2) / (v + q**2)) if q > 0.04 else np.ones_like(v)
    phi = (B * factor) @ B.T
    U, mu = bare.graph.spectrum.U, bare.process.mu.numpy()
    A = (U * (1 + mu * 0.04**2) ** -0.5) @ U.T if q > 0.04 else np.eye(6)  # to graph coordinates
    xi = Stream(0, "augment").normal(0, n * 6).view(n, 6).numpy()
    close(found, (mean + (z + q * xi - mean) @ phi) @ A, 1e-10)
    expected, covariance = A @ (mean + phi @ (z - mean)), q**2 * A @ phi @ phi.T @ A.T
    assert (np.abs(found.mean(0) - expected) < 5 * np.sqrt(np.diag(covariance) / n)).all()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert (np.abs(np.cov(found.T) - covariance) < 5 * np.sqrt(2 / n) * scale).all()


def test_from_beyond_the_largest_level_a_mixture_leads_back_along_its_own_flow(tiny, sides, quick, monkeypatch):
    """In steps so short that five times as many change nothing to be seen."""
    model = grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick | {"max_updates": 20}).fit(*sides)
    assert len(model.reference.parts) > 1
    for strength in (0.6, 0.99):
        found = model.augment(sides[1][:3], strength, nfe=1)
        with monkeypatch.context() as patch:
            patch.setattr(augmentation, "SUBSTEPS", 5 * augmentation.SUBSTEPS)
            exact = model.augment(sides[1][:3], strength, nfe=1)
        close(found, exact, 1e-5, size=exact - sides[1][:3])


def test_strength_one_forgets_the_signal(model, tiny):
    far = tiny.test + 10.0
    assert np.array_equal(model.augment(tiny.test, 1.0, n=2), model.augment(far, 1.0, n=2))
    nearly = model.augment(tiny.test, 1 - 1e-7, n=2)
    x = model.augment(tiny.test, 1.0, n=2)
    assert not np.isin(x, tiny.test).any()
    assert nearly.std() == pytest.approx(x.std(), rel=0.2)  # the same distribution, not the same draws


def test_strength_one_is_a_draw_of_the_reference_led_back_from_the_largest_level(bare, tiny):
    """Its flow carries a draw to the draw from the same noise: here to level 0.04, and to graph coordinates."""
    found = bare.normalizer.apply(bare.augment(tiny.test[:1], 1.0, n=9)[:, 0])
    xi = Stream(0, "augment").normal(0, 9 * 6).view(9, 6).numpy()
    part, U, mu = bare.reference.parts[0], bare.graph.spectrum.U, bare.process.mu.numpy()
    v, B = part.v.numpy(), part.B.numpy()
    drawn = bare.reference.means[0].numpy() + xi @ (B * np.sqrt(v + 0.04**2)) @ B.T
    close(found, drawn @ (U * (1 + mu * 0.04**2) ** -0.5) @ U.T, 1e-10)


def test_the_stronger_the_farther(model, tiny):
    distances = [np.abs(model.augment(tiny.test, s, n=4) - tiny.test).mean() for s in (0.05, 0.2, 0.5, 0.8, 1.0)]
    assert (np.diff(distances) > 0).all()


def test_a_variation_depends_on_its_signal_and_the_seed_alone(model, tiny, monkeypatch):
    whole = model.augment(tiny.test, 0.3, n=3, seed=1)
    assert np.array_equal(model.augment(tiny.test, 0.3, n=3, seed=1), whole)
    assert model.augment(tiny.test, 0.3, n=2, seed=1) == pytest.approx(whole[:2], rel=1e-4)
    assert model.augment(tiny.test[:5], 0.3, n=3, seed=1) == pytest.approx(whole[:, :5], rel=1e-4)
    model = with_parts(model, batch=4)
    assert model.augment(tiny.test, 0.3, n=3, seed=1) == pytest.approx(whole, rel=1e-4)
    assert not np.isin(model.augment(tiny.test, 0.3, n=3, seed=2), whole).any()


def test_a_method_with_a_stochastic_solver_varies_too(tiny, quick):
    model = grcd.GRCD(tiny.graph, "wsd-graph", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    whole = model.augment(tiny.test, 0.4, n=3)
    assert np.isfinite(whole).all()
    assert model.augment(tiny.test[:4], 0.4, n=2) == pytest.approx(whole[:2, :4], rel=1e-4)


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan"), "a", None])
def test_another_strength_is_refused(model, tiny, strength):
    with pytest.raises(grcd.InputError, match="from 0"):
        model.augment(tiny.test, strength)


def test_gaps_and_other_processes_are_refused(model, tiny, quick):
    with pytest.raises(grcd.InputError, match="NaN or infinite values in signals to vary"):
        model.augment(np.where(tiny.test > 15, np.nan, tiny.test), 0.5)
    heat = grcd.GRCD(tiny.graph, "gad", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    with pytest.raises(grcd.InputError, match="conjugate process"):
        heat.augment(tiny.test, 0.5)


def test_the_command_writes_all_first_variations_then_all_second_ones(model, tiny, tmp_path, monkeypatch):
    model.save(tmp_path / "run")
    order = [3, 0, 5, 1, 4, 2]
    frame = pandas.DataFrame(tiny.test[:, order], columns=[model.graph.node_ids[i] for i in order])
    frame.to_csv(tmp_path / "x.csv", index=False)
    given = ["grcd", "augment", str(tmp_path / "run"), "--signals", str(tmp_path / "x.csv"), "--strength", "0.3"]
    monkeypatch.setattr(sys, "argv", [*given, "-n", "2", "--out", str(tmp_path / "y.csv")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    found = pandas.read_csv(tmp_path / "y.csv")
    assert list(found) == list(frame)
    expected = model.augment(tiny.test, 0.3, n=2)[:, :, order].reshape(-1, 6)
    assert found.to_numpy() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "nc"])
def test_one_variation_of_each_signal_keeps_their_times(model, tiny, tmp_path, monkeypatch, ending):
    if ending in ("parquet", "nc"):
        pytest.importorskip({"parquet": "pyarrow", "nc": "xarray"}[ending])
    model.save(tmp_path / "run")
    frame = pandas.DataFrame(tiny.test, columns=model.graph.node_ids)
    frame.insert(0, "time", pandas.date_range("2024-01-01", periods=len(frame), freq="90s"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    given = ["grcd", "augment", str(tmp_path / "run"), "--signals", str(tmp_path / "x.csv"), "--strength", "0"]
    for n in (1, 2):
        out = tmp_path / f"{n}.{ending}"
        monkeypatch.setattr(sys, "argv", [*given, "-n", str(n), "--out", str(out)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code
        found = read_signals(out)
        assert (found.times is None) == (n == 2)
        assert n == 2 or (found.times == frame["time"].to_numpy()).all()
        np.testing.assert_allclose(found.values[: len(frame)], tiny.test, rtol=1e-12)
