"""Likelihoods against closed forms: of the reference, of a flow whose density is known, and of single readings."""

import json
import sys

import mixtures
import numpy as np
import pandas
import pytest
import torch
from conftest import speaking
from scipy.integrate import solve_ivp
from scipy.stats import multivariate_normal
from scipy.stats import t as student
from trained import with_parts

import grcd
from grcd import cli
from grcd.core.errors import InputWarning
from grcd.diffusion.process import ConjugateProcess
from grcd.references.gaussian import full, low_rank, spectral
from grcd.references.mixture import Mixture
from grcd.tasks import likelihood

NODES = 5
GRAPH = mixtures.random_graph(NODES)
DENSE = mixtures.random_mixture(NODES)
PROCESS = ConjugateProcess.on(GRAPH.spectrum)
PARTS = (spectral(DENSE.C[0].numpy(), GRAPH.spectrum), full(DENSE.C[1].numpy()), low_rank(DENSE.C[2].numpy(), 2))
THREE = Mixture(DENSE.w, DENSE.m, PARTS)
X = mixtures.normal(6, NODES, seed=1)
OTHER = full(np.diag([0.5, 1.0, 1.5, 2.0, 0.7]) + 0.2)
RANK_1 = full(np.ones((NODES, NODES)) + 1e-6 * np.eye(NODES))
RARE = Mixture(  # mostly at rest, with hardly any spread; now and then far away
    torch.tensor([0.97, 0.03]).double(),
    torch.zeros(2, NODES).double(),
    (full(1e-4 * np.eye(NODES)), full(np.eye(NODES))),
)
references = pytest.mark.parametrize("reference", [PARTS[1], THREE], ids=["gaussian", "mixture"])


@pytest.fixture
def steps_as_asked(monkeypatch):
    monkeypatch.setattr(likelihood, "DOUBLINGS", 0)


def integrated(residual, reference, steps, signs=None, x=X):
    """Log-likelihoods, their error from the signs, and from the steps."""
    return likelihood.under_model(residual, reference, PROCESS, x, steps, signs)


def towards(other, reference):
    """The residual that makes the flow another Gaussian's."""
    return lambda x, q: other.eps(x, q) - reference.eps(x, q)


def known(other, reference, x):
    """Log-density of signals that the reference carries to the smallest level, and the other Gaussian from there."""
    q = PROCESS.q_min
    there = torch.from_numpy(np.stack([carried(reference, one, q) for one in x]))
    beyond = other.propagate(there, PROCESS.q_max, q)
    below = reference.log_prob(x) - reference.log_prob(there, q)
    handed = reference.log_prob(beyond, PROCESS.q_max) - other.log_prob(beyond, PROCESS.q_max)
    return below + other.log_prob(there, q) + handed


def carried(reference, x, q):
    """Along the reference's own flow from no noise, with somebody else's integrator."""
    flow = solve_ivp(lambda q, x: reference.eps(torch.from_numpy(x), q).numpy(), (0.0, q), x.numpy(), rtol=1e-11)
    return flow.y[:, -1]


def steep(x, q):
    """A network that tells readings above zero from those below, which takes short steps."""
    return torch.tanh(10 * x) / 2


@references
def test_without_a_residual_the_density_is_the_references_for_any_number_of_steps(reference):
    value, *errors = integrated(lambda x, q: 0 * x, reference, 4)
    assert torch.equal(value, reference.log_prob(X))
    assert not any(error.any() for error in errors)


@references
def test_a_flow_whose_density_is_known_has_it_at_fourth_order_within_the_error_told(reference, steps_as_asked):
    exact, off = known(OTHER, reference, X), []
    for steps in (16, 32):
        found, none, told = integrated(towards(OTHER, reference), reference, steps)
        off.append(float((found - exact).abs().max()))
        assert ((found - exact).abs() <= told).all()
        assert not none.any()  # the divergence is exact
    assert off[1] < 1e-5 * float((exact - reference.log_prob(X)).abs().max())
    assert off[0] / off[1] == pytest.approx(2**4, rel=0.3)


@pytest.mark.parametrize("reference", [RANK_1, RARE], ids=["one factor", "rare spikes"])
def test_where_the_reference_is_nearly_singular_the_error_covers_what_finer_steps_find(reference, steps_as_asked):
    x = mixtures.normal(6, 1, seed=2).expand(-1, NODES) + 1e-3 * X
    finest, *_ = integrated(steep, reference, 128, x=x)
    for steps in (8, 16, 32):
        found, _, told = integrated(steep, reference, steps, x=x)
        assert ((found - finest).abs() <= told).all()


def test_signals_that_steps_still_change_get_more_of_them_and_the_others_do_not(monkeypatch):
    x = torch.where(torch.arange(6)[:, None] < 3, X, 10.0 + X.abs())  # far from the rise there is nothing to see
    asked, gained = [], likelihood._gained

    def counted(residual, mixture, process, z, steps, probes):
        asked.append((steps, len(z)))
        return gained(residual, mixture, process, z, steps, probes)

    monkeypatch.setattr(likelihood, "_gained", counted)
    *_, told = integrated(steep, PARTS[1], 16, x=x)
    assert [count for count, _ in asked] == [4, 8, 16, 32, 64, 128, 256][: len(asked)]
    assert [left for _, left in asked[:3]] == [6, 6, 6]
    assert len(asked) > 3
    assert all(0 < left <= 3 for _, left in asked[3:])
    assert (told <= likelihood.TOLERANCE).all()


def test_the_mean_over_all_signs_is_the_exact_divergence(steps_as_asked):
    signs = torch.stack([e.expand(6, NODES) for e in _all_signs()])
    exact, *_ = integrated(towards(OTHER, PARTS[1]), PARTS[1], 8)
    found, *_ = integrated(towards(OTHER, PARTS[1]), PARTS[1], 8, signs)
    torch.testing.assert_close(found, exact, rtol=1e-10, atol=0)


def _all_signs():
    return [torch.tensor([1.0 if k >> i & 1 else -1.0 for i in range(NODES)]).double() for k in range(2**NODES)]


def test_the_error_of_four_probes_covers_the_exact_divergence_95_times_in_100(steps_as_asked):
    """Of 1,200 signals; twice the standard error, which is for many probes, covers 86 %."""
    n, nodes = 1200, 12
    z, W = mixtures.normal(n, nodes, seed=4), mixtures.normal(nodes, nodes, seed=5)
    reference = full(np.eye(nodes))

    def wavy(x, q):
        return 0.3 * torch.sin(x @ W)

    exact, *_ = integrated(wavy, reference, 4, x=z)
    found, told, _ = integrated(wavy, reference, 4, likelihood.random_signs(0, range(n), nodes, 4, "cpu"), z)
    covered = float(((found - exact).abs() <= told).double().mean())
    assert covered == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / n))


def test_the_error_of_probes_is_students_interval_of_what_each_of_them_says(steps_as_asked):
    def wavy(x, q):
        return 0.3 * torch.sin(x @ DENSE.C[0])

    signs = likelihood.random_signs(1, range(6), NODES, 5, "cpu")
    found, told, _ = integrated(wavy, PARTS[1], 8, signs)
    each = np.stack([integrated(wavy, PARTS[1], 8, signs[[k, k]])[0].numpy() for k in range(5)])
    np.testing.assert_allclose(found, each.mean(0), rtol=1e-12)
    interval = student.interval(0.95, 4, scale=each.std(0, ddof=1) / np.sqrt(5))
    np.testing.assert_allclose(told, interval[1], rtol=1e-9)


@references
def test_a_reading_given_all_others_is_the_ratio_of_joint_and_marginal_density(reference):
    found = likelihood.of_nodes(reference, X)
    mixture = reference
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
    found, mixture = likelihood.of_nodes(reference, z), reference

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
    mixture = reference
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
    """Read-only. So short a training adds nothing to the reference: here the network is made to."""
    return speaking(grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val))


def test_a_model_scores_its_signals_in_any_batch_and_order(model, tiny, monkeypatch):
    whole, error = model.log_prob(tiny.test, steps=8)
    exact, none = model.log_prob(tiny.test, "reference")
    assert (np.abs(whole - exact) > error).all()
    model = with_parts(model, batch=7)
    assert model.log_prob(tiny.test, steps=8)[0] == pytest.approx(whole, rel=1e-4)
    z = torch.from_numpy(model.normalizer.apply(tiny.test))
    assert exact == pytest.approx(model.reference.log_prob(z).numpy(), rel=1e-12)
    assert not none.any()


def test_with_many_nodes_four_probes_stand_for_the_divergence_and_the_error_tells(model, tiny, monkeypatch):
    exact, of_steps = model.log_prob(tiny.test, steps=8)
    monkeypatch.setattr(likelihood, "FEW", 5)  # the graph has six
    found, error = model.log_prob(tiny.test, steps=8)
    assert (error > of_steps).all()
    assert (np.abs(found - exact) <= error).mean() > 0.8  # of 40 signals 95 %, give or take three times 3.4 %
    assert np.array_equal(model.log_prob(tiny.test, steps=8, probes=6)[0], exact)  # as many probes as nodes
    with pytest.raises(grcd.InputError, match="probes = 1"):
        model.log_prob(tiny.test, probes=1)


def test_a_network_that_adds_nothing_leaves_the_references_likelihood_and_says_so(model, tiny):
    silent = with_parts(model, network=model.fresh_network())
    with pytest.warns(InputWarning, match="adds nothing to its reference"):
        found, error = silent.log_prob(tiny.test)
    assert np.array_equal(found, model.log_prob(tiny.test, "reference")[0])
    assert not error.any()


def test_a_network_that_predicts_all_of_the_noise_is_compared_with_what_its_reference_would(tiny, quick):
    model = grcd.GRCD(tiny.graph, "grcd-epsilon-heun", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    x = torch.from_numpy(model.normalizer.apply(tiny.test))
    found = likelihood.residual(model.diffusion)(x, 0.5) + model.reference.eps(x, 0.5)
    torch.testing.assert_close(found, model.diffusion.prediction()(x, 0.5))


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
    assert readings[2].split()[:5] == [
        "2024-01-01",
        "07:00:00",
        *model.graph.node_ids[2].split(),
        readings[2].split()[-1],
    ]
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
