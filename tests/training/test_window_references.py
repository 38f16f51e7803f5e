"""Which reference of windows is chosen, on series whose law is known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import grcd
from grcd.core.errors import InputError
from grcd.graphs.space import SignalSpace
from grcd.references import of_windows
from grcd.references.mixture import Mixture
from grcd.references.stationary import Stationary
from grcd.training import window_references
from grcd.training.window_references import Choice, Shrinkage, WindowReferences, refuse_window

NODES, STEPS = 4, 6


def space(steps=STEPS, channels=1):
    W = np.diag(np.ones(NODES - 1), 1)
    return SignalSpace(grcd.Graph.from_adjacency(W + W.T), steps, channels)


def autoregression(rows, keep, root, seed=0, missing=0.1):
    """``z_(t+1) = keep z_t + sqrt(1 - keep^2) root noise``: separable where ``keep`` is the same for all nodes."""
    random = np.random.RandomState(seed)
    noise, z = random.standard_normal((rows, NODES)) @ root.T, np.zeros((rows, NODES))
    z[0] = noise[0]
    for t in range(1, rows):
        z[t] = keep * z[t - 1] + np.sqrt(1 - np.square(keep)) * noise[t]
    z[random.random_sample(z.shape) < missing] = np.nan
    return torch.from_numpy(z)


def together():
    """A root of a covariance of unit variances and strong correlations."""
    C = np.full((NODES, NODES), 0.6) + 0.4 * np.eye(NODES)
    return np.linalg.cholesky(C)


def references(z, train, where=None):
    """Of rows that are z-scores already: the first ones train."""
    steps = (where or space()).steps
    starts = np.arange(train, len(z) - steps + 1)
    return WindowReferences(where or space(), lambda stretches: z, [slice(0, train)], starts)


def filled(reference, windows, share=0.4, seed=9):
    """Mean squared error of hidden readings given the others."""
    g = torch.Generator().manual_seed(seed)
    recorded = ~windows.isnan()
    hidden = (torch.rand(windows.shape, generator=g) < share) & recorded
    posterior = reference.posterior(windows, recorded & ~hidden)
    return float((posterior.mean - windows)[hidden].square().mean())


def later(z, train):
    rows = torch.arange(train, len(z) - STEPS + 1, STEPS)[:, None] + torch.arange(STEPS)
    return z[rows].flatten(1)


def test_few_rows_of_noise_end_as_independent_readings_and_fill_gaps_with_the_mean():
    z = autoregression(900, 0.0, np.eye(NODES))
    choice = references(z[:70], 50).choose()
    reference = references(z[:70], 50).fit(choice, z[:70], [slice(0, 50)])
    assert choice.log_prob["stationary"] >= choice.log_prob["independent readings"]
    windows = later(z, 70)
    assert filled(reference, windows) < 1.03 * float(windows[~windows.isnan()].square().mean())


def test_nodes_that_know_nothing_of_each_other_are_shrunk_to_themselves():
    z = autoregression(1200, np.array([0.95, 0.8, 0.5, 0.1]), np.eye(NODES))
    chooser = references(z[:200], 120)
    choice = chooser.choose()
    reference = chooser.fit(choice, z[:200], [slice(0, 120)])
    as_it_is = chooser.fit(Choice("stationary", Shrinkage(0, 0, 0, 1e-3)), z[:200], [slice(0, 120)])
    assert filled(reference, later(z, 200)) < filled(as_it_is, later(z, 200))
    assert choice.log_prob["independent nodes"] > choice.log_prob["separable"]


def test_separable_rows_are_shrunk_to_time_and_space():
    z = autoregression(1500, 0.8, together())
    chooser = references(z[:260], 160)
    choice = chooser.choose()
    assert choice.log_prob["separable"] > choice.log_prob["independent nodes"]
    assert choice.log_prob["separable"] > choice.log_prob["spectral"]
    left = (1 - choice.graph) * (1 - choice.shrinkage.separable)  # all correlations are the same, at any distance too
    assert left <= 0.5
    assert choice.log_prob["stationary"] >= choice.log_prob["separable"]


def test_with_many_rows_the_truth_is_as_probable_as_it_is():
    """The log-likelihood a reading of the chosen reference against the true one's, on rows that nobody saw."""
    z, root = autoregression(6000, np.array([0.9, 0.7, 0.5, 0.3]), together()), together()
    chooser = references(z[:4000], 3000)
    reference = chooser.fit(chooser.choose(), z[:4000], [slice(0, 3000)])
    keep, noise = np.array([0.9, 0.7, 0.5, 0.3]), root @ root.T
    scale = np.sqrt(1 - keep**2)
    C0 = noise * np.outer(scale, scale) / (1 - np.outer(keep, keep))
    C = torch.from_numpy(np.array([np.diag(keep**lag) @ C0 for lag in range(STEPS)]))
    truth = Stationary.of(C, Shrinkage(0, 0, 0, 0))
    windows = later(z, 4000)
    seen = ~windows.isnan()
    chosen, true = (float(each.posterior(windows, seen).log_prob.sum() / seen.sum()) for each in (reference, truth))
    assert abs(chosen - true) < 0.01


def regimes(rows, seed=0):
    """Long spells of two laws: low, calm and lasting; high, wild and short of memory."""
    which = np.repeat(np.random.RandomState(seed).randint(0, 2, rows // 90 + 1), 90)[:rows, None]
    calm, wild = autoregression(rows, 0.9, 0.3 * together(), seed), autoregression(rows, 0.2, np.eye(NODES), seed + 1)
    return torch.where(torch.from_numpy(which > 0), 0.7 + wild, calm - 0.7)


def test_regimes_are_noticed_and_one_law_is_not_taken_for_several():
    z = regimes(3000)
    chooser = references(z[:2400], 1800)
    choice = chooser.choose()
    assert (choice.kind, choice.components) == ("mixture", 2)
    assert choice.log_prob["mixture of 2"] > choice.log_prob["stationary"] + window_references.NOTICEABLE
    reference, one = (
        chooser.fit(each, z[:2400], [slice(0, 1800)]) for each in (choice, Choice("stationary", choice.shrinkage))
    )
    assert isinstance(reference, Mixture)
    assert filled(reference, later(z, 2400)) < filled(one, later(z, 2400))
    plain = autoregression(2400, 0.8, together())
    assert references(plain, 1800).choose().kind == "stationary"


def test_the_choice_says_what_it_was_and_comes_back_as_numbers():
    z = regimes(1500)
    chooser = references(z, 1100)
    choice = chooser.choose()
    summary = json.loads(json.dumps(choice.summary()))
    assert summary["kind"] == choice.kind
    assert Shrinkage(**summary["shrinkage"]) == choice.shrinkage
    assert summary["log_prob"]["stationary"] == pytest.approx(choice.log_prob["stationary"], abs=1e-4)
    assert "validation" in summary["judged"]
    reference = chooser.fit(choice, z, [slice(0, 1100)])
    again = of_windows(reference.tensors(), space())
    windows = later(z, 1100)
    one, other = (each.posterior(windows, ~windows.isnan()) for each in (reference, again))
    assert all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("mean", "sd", "log_prob"))


def test_few_validation_rows_are_joined_by_stretches_of_training_rows():
    z = autoregression(1500, 0.8, together())
    assert "stretches of training" in references(z, 1500 - 3 * STEPS).choose().judged
    assert "stretches" not in references(z, 1500 - 50 * STEPS).choose().judged


def test_stretches_are_judged_by_what_was_learned_from_others():
    """Each time z-scores are asked for, it is by the mean of the rows that are not judged."""
    z, asked = autoregression(600, 0.8, together()), list[list[slice]]()
    chooser = references(z, 560)
    chooser.scored = lambda stretches: asked.append(list(stretches)) or z
    held = chooser._held(STEPS, 64)
    assert asked[0] == [slice(0, 560)]
    for each, rows in zip(held[1:], asked[1:], strict=True):
        kept = np.concatenate([np.arange(s.start, s.stop) for s in rows])
        judged = z[[row for row in range(560) if row not in kept]]
        assert len(kept) == pytest.approx(560 * 2 / 3, abs=2)
        windows = each.trial.z.view(-1, STEPS, NODES)
        assert all((judged.nan_to_num().float()[:, None] == window[0]).all(-1).any() for window in windows)


def test_windows_too_large_for_memory_fall_to_smaller_references_and_say_so(monkeypatch):
    z = autoregression(900, 0.8, together())
    monkeypatch.setattr(window_references, "fits_densely", lambda d, dtype, device: d <= 20)
    where = space(30)
    chooser = references(z, 600, where)
    choice = chooser.choose()
    assert choice.kind in ("separable", "low rank", "sparse")
    assert "120 readings" in choice.summary()["memory"]
    assert "does not fit into memory" in choice.words()
    for kind in ("separable", "low rank"):
        reference = chooser.fit(Choice(kind, choice.shrinkage), z, [slice(0, 600)])
        assert reference.d == 120
        again = of_windows(reference.tensors(), where)
        rows = torch.arange(600, 871, 30)[:, None] + torch.arange(30)
        windows = z[rows].flatten(1)
        assert filled(reference, windows) == filled(again, windows)
        assert filled(reference, windows) < 0.6  # of a variance of one


def test_a_window_beyond_all_memory_is_refused_with_its_size_and_a_shorter_one(monkeypatch):
    refuse_window(space(24), torch.device("cpu"))
    monkeypatch.setattr(window_references.devices, "room", lambda device: 1e6)
    with pytest.raises(InputError, match=r"(?s)window of 500 rows, 2,000 readings.*at most \d+ rows") as refused:
        refuse_window(space(500), torch.device("cpu"))
    most = int(str(refused.value).split("at most ")[1].split(" rows")[0])
    refuse_window(space(most), torch.device("cpu"))
    with pytest.raises(InputError):
        refuse_window(space(most + 1), torch.device("cpu"))


def test_on_a_good_graph_and_few_rows_it_is_the_papers():
    """A field that is smooth along a ring, row by row anew: its variances are a function of the frequency."""
    W = np.roll(np.eye(20), 1, axis=1)
    ring = SignalSpace(grcd.Graph.from_adjacency(W + W.T), 4)
    spectrum = ring.graph.spectrum
    root = spectrum.U * (0.05 + 1 / (0.1 + 5 * spectrum.scaled()) ** 1.0)
    z = torch.from_numpy(np.random.RandomState(0).standard_normal((90, 20)) @ root.T)
    z = z / z.std(0)
    found = references(z, 60, ring)
    choice = found.choose()
    assert choice.kind == "spectral"
    assert choice.log_prob["spectral, whole windows"] > choice.log_prob["stationary, whole windows"]
    assert Choice.of(json.loads(json.dumps(choice.summary()))).words() == choice.words()
    reference = found.fit(choice, z, [slice(0, 60)])
    again = of_windows(reference.tensors(), ring)
    windows = z[60:88].reshape(7, 80)
    observed = torch.rand(7, 80, generator=torch.Generator().manual_seed(0)) < 0.5
    assert torch.equal(again.posterior(windows, observed).mean, reference.posterior(windows, observed).mean)


def along_a_line(rows, seed, nodes=16, length=5.0):
    """Nodes a step apart whose correlation falls with distance, and their graph by a Gaussian kernel."""
    d = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes)))
    W = np.where(d == 1, 0.6, 0.0)
    root = np.linalg.cholesky(np.exp(-((d / length) ** 1.5)))
    z = np.random.RandomState(seed).standard_normal((rows, nodes)) @ root.T
    return torch.from_numpy(z), SignalSpace(grcd.Graph.from_adjacency(W), 2)


def test_few_rows_go_by_distance_along_the_graph_and_fill_silent_nodes_better():
    gains = []
    for seed in range(4):
        z, where = along_a_line(300, seed)
        chooser = references(z[:36], 28, where)
        choice = chooser.choose()
        assert choice.graph >= 0.3
        assert "to distance along the graph" in choice.words()
        with_it, without = (
            chooser.fit(each, z[:28], [slice(0, 28)])
            for each in (choice, replace(choice, graph=0.0, shrinkage=Shrinkage(separable=0.8, noise=0.1)))
        )
        windows = z[36:].reshape(-1, 2 * 16)
        observed = torch.ones_like(windows, dtype=torch.bool)
        observed[:, 5::16] = False
        gains.append(
            [
                float((each.posterior(windows, observed).mean - windows)[~observed].square().mean())
                for each in (with_it, without)
            ]
        )
    with_it, without = np.mean(gains, axis=0)
    assert with_it < 0.8 * without


def test_nodes_that_have_nothing_to_do_with_each_other_gain_nothing_by_the_graph():
    z = torch.from_numpy(np.random.RandomState(0).standard_normal((400, 16)))
    chooser = references(z, 300, along_a_line(2, 0)[1])
    choice = chooser.choose()
    windows = z[300:].reshape(-1, 2 * 16)
    observed = torch.ones_like(windows, dtype=torch.bool)
    observed[:, 5::16] = False
    guess = chooser.fit(choice, z[:300], [slice(0, 300)]).posterior(windows, observed).mean[~observed]
    assert guess.square().mean() < 0.02


def test_a_choice_with_a_share_of_the_graph_comes_back_from_a_file():
    choice = Choice("stationary", Shrinkage(), graph=0.6)
    assert Choice.of(json.loads(json.dumps(choice.summary()))).graph == 0.6
    older = {key: value for key, value in choice.summary().items() if key != "graph"}
    assert Choice.of(older).graph == 0.0


def test_a_column_that_was_hardly_read_in_training_rows_is_not_judged():
    z = torch.from_numpy(np.random.RandomState(0).standard_normal((400, NODES)))
    z[5:300, 1] = torch.nan
    chosen = references(z, 300)
    observed = chosen._held(chosen.lags, 64)[0].trial.observed  # of validation windows
    columns = observed.unflatten(1, (chosen.lags, NODES))
    assert not columns[:, :, 1].any()
    assert columns[:, :, [k for k in range(NODES) if k != 1]].all()
