"""Likelihoods against closed forms: of the reference, of a flow whose density is known, and of single readings."""

import json
import sys

import mixtures
import numpy as np
import pandas
import pytest
import torch
from scipy.stats import multivariate_normal

import grcd
from grcd import cli, likelihood
from grcd.config import Config
from grcd.mixture import Mixture
from grcd.process import make
from grcd.reference import full, low_rank, spectral

NODES = 5
GRAPH = mixtures.random_graph(NODES)
DENSE = mixtures.random_mixture(NODES)
PROCESS = make("conjugate", GRAPH.spectrum, Config(), (0.02, 32.64))
PARTS = (spectral(DENSE.C[0].numpy(), GRAPH.spectrum), full(DENSE.C[1].numpy()), low_rank(DENSE.C[2].numpy(), 2))
THREE = Mixture(DENSE.w, DENSE.m, PARTS)
X = mixtures.normal(6, NODES, seed=1)
SIGNS = likelihood.random_signs(0, range(6), NODES, 3, "cpu")
references = pytest.mark.parametrize("reference", [PARTS[1], THREE], ids=["gaussian", "mixture"])


def integrated(eps_hat, reference, steps, signs=SIGNS):
    return likelihood.under_model(eps_hat, reference, PROCESS, X, steps, signs)


@references
def test_without_a_residual_the_flow_has_the_density_of_the_reference_at_second_order(reference):
    exact, errors = reference.log_prob(X, PROCESS.q_min), []
    for steps in (32, 64, 128):
        found, told = integrated(reference.eps, reference, steps)
        errors.append(float((found - exact).abs().max()))
        assert ((found - exact).abs() <= told + 1e-12).all()  # the error told covers the true one
    assert errors[-1] < 5e-3
    assert (np.log2(np.array(errors[:-1]) / errors[1:]) > 1.8).all()


@references
def test_a_residual_whose_density_is_known_is_found_by_the_probes(reference):
    """The noise prediction of another Gaussian, seen from this reference: all there is has to come from ``div f``."""
    other = full(np.diag([0.5, 1.0, 1.5, 2.0, 0.7]) + 0.2)
    start = PROCESS.q_max  # there the flow hands over to the reference: exchange it for the other's density
    signs = torch.stack([e.expand(6, NODES) for e in _all_signs()])  # the mean over all signs is the exact trace
    found, _ = integrated(other.eps, reference, 128, signs)
    x = other.propagate(X, start, PROCESS.q_min)
    handed = reference.log_prob(x, start) - other.log_prob(x, start)
    np.testing.assert_allclose(found, other.log_prob(X, PROCESS.q_min) + handed, atol=2e-2)


def _all_signs():
    return [torch.tensor([1.0 if k >> i & 1 else -1.0 for i in range(NODES)]).double() for k in range(2**NODES)]


def test_probes_are_unbiased_and_their_error_is_their_spread():
    def wavy(x, q):
        return PARTS[1].eps(x, q) + 0.3 * torch.sin(x @ DENSE.C[0])

    signs = torch.stack([e.expand(6, NODES) for e in _all_signs()])
    exact, _ = integrated(wavy, PARTS[1], 64, signs)
    few = likelihood.random_signs(1, range(6), NODES, 64, "cpu")
    found, told = integrated(wavy, PARTS[1], 64, few)
    assert ((found - exact).abs() < 5 * told).all()
    each = torch.stack([integrated(wavy, PARTS[1], 64, few[[k]])[0] for k in range(64)])
    half, _ = integrated(wavy, PARTS[1], 32, few)
    torch.testing.assert_close(told.square(), each.var(0) / 64 + (found - half).square())


@references
def test_a_reading_given_all_others_is_the_ratio_of_joint_and_marginal_density(reference):
    found = likelihood.of_nodes(reference, X)
    mixture = likelihood.as_mixture(reference)
    parts = [
        (float(w), m.numpy(), p.covariance().numpy())
        for w, m, p in zip(mixture.weights, mixture.means, mixture.parts, strict=True)
    ]
    x = X.numpy()
    joint = sum(w * multivariate_normal(m, C).pdf(x) for w, m, C in parts)
    for i in range(NODES):
        rest = [j for j in range(NODES) if j != i]
        left = sum(w * multivariate_normal(m[rest], C[np.ix_(rest, rest)]).pdf(x[:, rest]) for w, m, C in parts)
        np.testing.assert_allclose(found[:, i], np.log(joint / left), rtol=1e-8)


@references
def test_with_gaps_a_reading_is_given_the_others_that_are_there(reference):
    z = X.clone()
    z[0, [1, 3]], z[1], z[2, :4] = torch.nan, torch.nan, torch.nan
    found, mixture = likelihood.of_nodes(reference, z), likelihood.as_mixture(reference)

    def density(x, kept):
        parts = zip(mixture.weights, mixture.means, mixture.parts, strict=True)
        return sum(
            float(w)
            * (multivariate_normal(m[kept], p.covariance().numpy()[np.ix_(kept, kept)]).pdf(x[kept]) if kept else 1)
            for w, m, p in parts
        )

    for x, row in zip(z.numpy(), found, strict=True):
        there = np.flatnonzero(~np.isnan(x)).tolist()
        expected = np.full(NODES, np.nan)
        for i in there:
            expected[i] = np.log(density(x, there) / density(x, [j for j in there if j != i]))
        np.testing.assert_allclose(row, expected, rtol=1e-8)


@references
def test_of_a_signal_with_gaps_what_was_observed_counts(reference):
    z = X.clone()
    z[0, [1, 3]], z[1] = torch.nan, torch.nan
    found = likelihood.under_reference(reference, z)
    mixture = likelihood.as_mixture(reference)
    kept = [0, 2, 4]
    expected = sum(
        float(w) * multivariate_normal(m[kept], p.covariance().numpy()[np.ix_(kept, kept)]).pdf(X[0, kept])
        for w, m, p in zip(mixture.weights, mixture.means, mixture.parts, strict=True)
    )
    assert float(found[0]) == pytest.approx(np.log(expected), rel=1e-9)
    assert float(found[1]) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found[2:], reference.log_prob(X[2:]), rtol=1e-9)


# -- models and files --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tiny, quick):
    """Read-only."""
    return grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val)


def test_a_model_scores_its_signals_in_any_batch_and_order(model, tiny, monkeypatch):
    whole, error = model.log_prob(tiny.test, steps=8)
    assert np.isfinite(whole).all()
    assert (error > 0).all()
    monkeypatch.setattr(type(model), "batch", lambda self: 7)
    assert model.log_prob(tiny.test, steps=8)[0] == pytest.approx(whole, rel=1e-4)
    z = torch.from_numpy(model.normalizer.apply(tiny.test))
    exact, none = model.log_prob(tiny.test, "reference")
    assert exact == pytest.approx(model.reference.log_prob(z).numpy(), rel=1e-12)
    assert not none.any()


def test_a_reading_that_its_neighbours_do_not_expect_stands_out(model, tiny):
    x = tiny.test.copy()
    x[4, 2] += 8 * tiny.train.std(axis=0)[2]
    assert model.log_prob(x, "reference")[0].argmin() == 4
    assert model.log_prob(x, steps=8)[0].argmin() == 4
    assert model.node_log_prob(x)[4].argmin() == 2


def test_readings_are_scored_alike_however_many_at_a_time(model, tiny, monkeypatch):
    x = np.where(np.random.RandomState(0).random_sample(tiny.test.shape) < 0.3, np.nan, tiny.test)
    whole = model.node_log_prob(x)
    assert np.array_equal(np.isnan(whole), np.isnan(x))
    monkeypatch.setattr(likelihood, "ENTRIES", 3 * 36)
    np.testing.assert_allclose(model.node_log_prob(x), whole, rtol=1e-9)


def test_gaps_are_for_the_reference_only(model, tiny):
    holes = tiny.test.copy()
    holes[0, 0] = np.nan
    assert np.isfinite(model.log_prob(holes, "reference")[0]).all()
    with pytest.raises(grcd.InputError, match=r"1 missing readings[\s\S]*reference"):
        model.log_prob(holes)
    with pytest.raises(grcd.InputError, match="posterior 'flow'"):
        model.log_prob(holes, "flow")


def test_a_model_on_another_process_has_the_likelihood_of_its_reference_only(tiny, quick):
    model = grcd.GRCD(tiny.graph, "edm", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    assert np.isfinite(model.log_prob(tiny.test, "reference")[0]).all()
    with pytest.raises(grcd.InputError, match="--posterior reference"):
        model.log_prob(tiny.test)


def test_the_command_writes_what_the_function_says(model, tiny, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "run")
    order = [3, 0, 5, 1, 4, 2]
    frame = pandas.DataFrame(tiny.test[:, order], columns=[model.graph.node_ids[i] for i in order])
    frame.to_csv(tmp_path / "x.csv", index=False)
    out = tmp_path / "s.csv"
    given = ["grcd", "score", str(tmp_path / "run"), "--signals", str(tmp_path / "x.csv"), "--posterior", "reference"]
    monkeypatch.setattr(sys, "argv", [*given, "--out", str(out), "--nodes", "--json"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    found = pandas.read_csv(out)
    assert found["log_likelihood"].to_numpy() == pytest.approx(model.log_prob(tiny.test, "reference")[0], rel=1e-9)
    assert found[list(model.graph.node_ids)].to_numpy() == pytest.approx(model.node_log_prob(tiny.test), rel=1e-9)
    assert len(json.loads(capsys.readouterr().out)["log_likelihood"]) == len(tiny.test)


def scored(tmp_path, monkeypatch, *more):
    """The exit status of the command on ``x.csv``."""
    given = ["grcd", "score", str(tmp_path / "run"), "--signals", str(tmp_path / "x.csv"), "--posterior", "reference"]
    monkeypatch.setattr(sys, "argv", [*given, *map(str, more)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


def test_the_least_probable_readings_are_printed_with_time_and_node(model, tiny, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "run")
    x = tiny.test.copy()
    x[7, 2] += 8 * tiny.train[:, 2].std()
    frame = pandas.DataFrame(x, columns=model.graph.node_ids)
    frame.insert(0, "time", pandas.date_range("2024-01-01", periods=len(frame), freq="h"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert scored(tmp_path, monkeypatch, "--nodes") == 0
    readings = capsys.readouterr().out.split("least probable readings")[1].splitlines()
    assert readings[2].split()[:5] == ["2024-01-01", "07:00", *model.graph.node_ids[2].split(), readings[2].split()[-1]]
    assert float(readings[2].split()[-1]) == pytest.approx(model.node_log_prob(x).min(), rel=1e-4)


def test_with_gaps_the_readings_of_a_signal_are_counted_beside_its_score(model, tiny, tmp_path, monkeypatch):
    model.save(tmp_path / "run")
    x = np.where(np.random.RandomState(1).random_sample(tiny.test.shape) < 0.3, np.nan, tiny.test)
    pandas.DataFrame(x, columns=model.graph.node_ids).to_csv(tmp_path / "x.csv", index=False)
    assert scored(tmp_path, monkeypatch, "--out", tmp_path / "s.csv") == 0
    assert pandas.read_csv(tmp_path / "s.csv")["readings"].tolist() == (~np.isnan(x)).sum(axis=1).tolist()
    assert scored(tmp_path, monkeypatch, "--out", tmp_path / "s.parquet") == 2
    assert not (tmp_path / "s.parquet").exists()


def test_the_command_passes_on_the_posterior_and_tells_the_error(model, tiny, tmp_path, monkeypatch):
    model.save(tmp_path / "run")
    pandas.DataFrame(tiny.test[:6], columns=model.graph.node_ids).to_csv(tmp_path / "x.csv", index=False)
    assert scored(tmp_path, monkeypatch, "--posterior", "diffusion", "--out", tmp_path / "s.csv", "--seed", 4) == 0
    found = pandas.read_csv(tmp_path / "s.csv")
    value, error = model.log_prob(tiny.test[:6], seed=4)
    assert found["log_likelihood"].to_numpy() == pytest.approx(value, rel=1e-6)
    assert found["error"].to_numpy() == pytest.approx(error, rel=1e-3)
