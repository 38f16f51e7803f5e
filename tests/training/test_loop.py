"""The training protocol: its draws, its update against one written in numpy, its validation, and when it ends."""

import copy
from contextlib import closing
from itertools import islice

import numpy as np
import pytest
import torch
from laws import close

from grcd.diffusion.parameterisation import Epsilon, Residual
from grcd.diffusion.process import ConjugateProcess
from grcd.networks import gnn
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral
from grcd.training import loop as training
from grcd.training.config import Config
from grcd.training.loop import State, Update, Validation, draws, train
from grcd.training.stopping import Plateau


class Setting:
    """The parts of a training on the tiny data."""

    def __init__(self, tiny, method="grcd-exponential", **settings):
        self.config = Config.make(method=method, **({"width": 8, "batch": 16, "lr": 1e-3} | settings))
        self.x_train, self.x_val = (torch.from_numpy(tiny.normalizer.apply(x)) for x in (tiny.train, tiny.val))
        self.process = ConjugateProcess.on(tiny.graph.spectrum)
        self.reference = spectral(ledoit_wolf(self.x_train.numpy()), tiny.graph.spectrum)
        self.parameterisation = (
            Residual(self.process, self.reference) if method == "grcd-exponential" else Epsilon(self.process)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            self.network = gnn.DenoiserGNN(tiny.graph.spectrum, gnn.Setting(width=8))

    def drawn(self, count, start=0):
        with closing(draws(self.config, *self.x_train.shape, start=start)) as endless:
            return list(islice(endless, count))

    def updates(self, state, count, start=0):
        """Do that many updates, and yield what each was given before it is done."""
        update = Update(state, self.parameterisation, self.x_train, self.config)
        for given in self.drawn(count, start):
            yield given
            update(*given)

    def train(self, **hooks):
        return train(
            self.parameterisation, self.reference, self.network, self.x_train, self.x_val, self.config, **hooks
        )

    def validation(self):
        return Validation(self.parameterisation, self.x_val, self.config)


def values(module):
    return [p.detach().numpy().astype(np.float64) for p in module.parameters()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


class Zeros(torch.nn.Module):
    def forward(self, x, t):
        return torch.zeros_like(x)


# -- draws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1, 25, 37])
def test_draws_from_a_later_update_are_those_of_a_stream_that_began_at_the_first(tiny, start):
    setting = Setting(tiny)
    whole, late = setting.drawn(start + 30), setting.drawn(30, start)
    assert all(same(a, b) for a, b in zip(whole[start:], late, strict=True))


def test_draws_depend_on_the_seed_and_the_update_and_on_nothing_else(tiny):
    first = Setting(tiny).drawn(2)
    for other in (Setting(tiny), Setting(tiny, "clock"), Setting(tiny, lr=0.1, width=4, max_updates=7)):
        assert all(same(a, b) for a, b in zip(first, other.drawn(2), strict=True))
    for one, another in ((first[0], first[1]), (first[0], Setting(tiny, seed=1).drawn(1)[0])):
        assert not any(torch.equal(a, b) for a, b in zip(one, another, strict=True))


def test_draws_are_uniform_over_samples_and_times_and_normal_in_the_noise(tiny):
    index, noise, u = (torch.cat(part).numpy() for part in zip(*Setting(tiny, batch=256).drawn(40), strict=True))
    counts = np.bincount(index, minlength=60)
    assert len(counts) == 60
    assert np.abs(counts - len(index) / 60).max() < 5 * np.sqrt(len(index) / 60)
    assert np.abs(np.sort(u[:, 0]) - (np.arange(len(u)) + 0.5) / len(u)).max() < 1.95 / np.sqrt(len(u))  # Kolmogorov
    assert np.abs(noise.T @ noise / len(noise) - np.eye(6)).max() < 5 * np.sqrt(2 / len(noise))
    assert np.abs(noise.mean(0)).max() < 5 / np.sqrt(len(noise))


# -- the update ----------------------------------------------------------------------------------------------------


def naive_gradients(setting, network, index, noise, u):
    """Of the mean over batch and nodes of the squared error of the noise prediction, written out."""
    network = copy.deepcopy(network)
    q = 2.0 * (0.02 + 0.98 * u)
    x = setting.x_train[index] + q * noise.double()
    U, mu, v = setting.process.U, setting.process.mu, setting.reference.v
    known = (x @ U * q / (v + q**2)) @ U.T if isinstance(setting.parameterisation, Residual) else 0.0
    seen = (x @ U * (1 + mu * q**2) ** -0.5) @ U.T
    error = known + network(seen, q / 2.0).double() - noise.double()
    (error**2).mean().backward()
    return [p.grad.numpy().astype(np.float64) for p in network.parameters()]


@pytest.mark.parametrize("method", ["grcd-exponential", "clock"])
def test_updates_are_clipped_adam_steps_with_weight_decay_in_the_gradient(tiny, method):
    lr, decay, clip = 0.01, 0.2, 0.1
    setting = Setting(tiny, method, lr=lr, weight_decay=decay, clip=clip)
    state = State(setting.network, setting.config, baseline=1.0)
    p, norms = values(state.network), []
    m, s = ([np.zeros_like(part) for part in p] for _ in range(2))
    for k, given in enumerate(setting.updates(state, 3), start=1):
        if k > 1:
            assert np.concatenate([(a - b).ravel() for a, b in zip(values(state.network), p, strict=True)]) == (
                pytest.approx(0, abs=2e-3 * lr)
            )
            p = values(state.network)
        gradient = naive_gradients(setting, state.network, *given)
        norms.append(np.sqrt(sum((g**2).sum() for g in gradient)))
        for i, g in enumerate(gradient):
            g = g * min(1.0, clip / norms[-1]) + decay * p[i]
            m[i], s[i] = 0.9 * m[i] + 0.1 * g, 0.999 * s[i] + 0.001 * g**2
            p[i] = p[i] - lr * (m[i] / (1 - 0.9**k)) / (np.sqrt(s[i] / (1 - 0.999**k)) + 1e-8)
    assert min(norms) > 2 * clip  # the clipping was at work
    assert max(norms) > 1.05 * min(norms)


def test_adamw_takes_weight_decay_out_of_the_gradient(tiny):
    lr, decay = 0.01, 0.2
    setting = Setting(tiny, optimizer="adamw", lr=lr, weight_decay=decay, clip=1e6)
    state = State(setting.network, setting.config, baseline=1.0)
    for given in setting.updates(state, 1):
        p, gradient = values(state.network), naive_gradients(setting, state.network, *given)
    for before, g, after in zip(p, gradient, values(state.network), strict=True):
        close(after, before * (1 - lr * decay) - lr * g / (np.abs(g) + 1e-8), 1e-4)


def test_without_an_average_the_weights_kept_are_those_of_the_last_update(tiny):
    setting = Setting(tiny, ema=0.0, stopping="none", patience=1, lr=0.05, max_updates=40, validate_every=10)
    states = []
    outcome = setting.train(log=lambda state, record: states.append(values(state.network)))
    assert len(states) == 4
    assert all(map(np.array_equal, values(outcome.network), states[-1]))
    assert outcome.summary["stopped"] == "max_updates reached"
    assert outcome.summary["best_update"] == outcome.summary["updates"] == 40


def test_ema_weights_equal_the_recursion(tiny):
    setting = Setting(tiny, ema=0.8, lr=0.01)
    state = State(setting.network, setting.config, baseline=1.0)
    began = expected = values(state.network)
    for k, _ in enumerate(setting.updates(state, 6)):
        if k > 0:
            expected = [0.8 * e + 0.2 * p for e, p in zip(expected, values(state.network), strict=True)]
            for found, naive in zip(values(state.ema), expected, strict=True):
                close(found, naive, 1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(began, values(state.ema), strict=True)) > 1e-3
    assert all(np.array_equal(a, b) for a, b in zip(began, values(state.best), strict=True))


def test_a_restored_state_goes_on_to_the_bit(tiny):
    setting = Setting(tiny)
    state = State(setting.network, setting.config, baseline=1.0)
    for _ in setting.updates(state, 3):
        pass
    kept = {name: tensor.clone() for name, tensor in state.tensors().items()}
    for _ in setting.updates(state, 4, start=3):
        pass
    expected = {name: tensor.clone() for name, tensor in state.tensors().items()}
    assert not any(
        torch.equal(kept[name], expected[name]) for name in kept if name.startswith(("network", "ema", "adam"))
    )

    fresh = Setting(tiny)
    other = State(fresh.network, fresh.config, baseline=1.0)
    places = {name: tensor.data_ptr() for name, tensor in other.tensors().items()}
    other.restore(kept)
    assert {name: tensor.data_ptr() for name, tensor in other.tensors().items()} == places  # in place
    assert all(torch.equal(tensor, kept[name]) for name, tensor in other.tensors().items())
    for _ in fresh.updates(other, 4, start=3):
        pass
    assert all(torch.equal(tensor, expected[name]) for name, tensor in other.tensors().items())


# -- validation ----------------------------------------------------------------------------------------------------


def test_the_baseline_is_the_error_of_a_residual_network_that_returns_zeros(tiny):
    setting = Setting(tiny)
    validation = setting.validation()
    assert validation.baseline(setting.reference) == pytest.approx(validation(Zeros()), rel=1e-12)


def test_the_baseline_is_the_same_for_both_parameterisations(tiny):
    one, other = Setting(tiny), Setting(tiny, "clock")
    expected = one.validation().baseline(one.reference)
    assert other.validation().baseline(other.reference) == expected
    # Without a reference a network of zeros predicts no noise: the error is that of the noise, 1.
    assert other.validation()(Zeros()) == pytest.approx(1.0, abs=0.05)


def test_the_baseline_of_gaussian_data_with_the_references_covariance_is_the_best_possible_error(tiny):
    setting = Setting(tiny)
    xi = torch.from_numpy(np.random.RandomState(0).standard_normal((20_000, 6)))
    found = Validation(setting.parameterisation, setting.reference.draw(xi), setting.config).baseline(setting.reference)
    q = 2.0 * np.linspace(0.02, 1.0, 2001)[:, None]
    v = setting.reference.v.numpy()
    assert found == pytest.approx(np.mean(v / (v + q**2)), rel=0.02)


def test_validation_gives_the_same_error_to_the_same_network_every_time(tiny):
    setting = Setting(tiny)
    validation = setting.validation()
    first = validation(setting.network)
    validation(Zeros())
    assert validation(setting.network) == first == setting.validation()(setting.network)


@pytest.mark.parametrize("method", ["grcd-exponential", "clock"])
def test_under_the_papers_rule_the_error_is_of_the_denoised_signal_at_eight_levels(tiny, method):
    """Written out: every validation signal, at every level, with noise of its own, in graph coordinates and back."""
    setting = Setting(tiny, method, stopping="paper")
    validation, errors = setting.validation(), []
    U, mu, v = (part.double() for part in (setting.process.U, setting.process.mu, setting.reference.v))
    for k, (noise, q) in enumerate(validation.draws()):
        level = 2.0 * (0.02 + 0.98 * (2 * k + 1) / 16)
        assert q.flatten().tolist() == pytest.approx([level] * len(tiny.val))
        x = setting.x_val + level * noise
        seen = (x @ U / torch.sqrt(1 + mu * level**2)) @ U.T
        with torch.no_grad():
            eps = setting.network(seen, torch.tensor(level / 2.0)).double()
        known = (x @ U * level / (v + level**2)) @ U.T if method == "grcd-exponential" else 0
        errors.append((x - level * (known + eps) - setting.x_val).square().mean())
    assert len(errors) == 8
    assert validation(setting.network) == pytest.approx(float(torch.stack(errors).mean()), rel=1e-6)


def test_under_the_papers_rule_the_noise_is_the_same_every_time_and_another_at_every_level(tiny):
    one, other = Setting(tiny, stopping="paper"), Setting(tiny, stopping="paper")
    first, second = ([noise for noise, _ in setting.validation().draws()] for setting in (one, other))
    assert all(map(torch.equal, first, second))
    assert len({noise.numpy().tobytes() for noise in first}) == 8
    validation = one.validation()
    assert validation(one.network) == validation(one.network) == other.validation()(other.network)


def test_the_error_of_the_denoised_signal_is_the_same_whatever_the_parameterisation(tiny):
    """So is that of the reference alone; a residual of zero is the reference."""
    one, other = Setting(tiny, stopping="paper"), Setting(tiny, "clock", stopping="paper")
    alone = one.validation().baseline(one.reference)
    assert alone == pytest.approx(one.validation()(Zeros()), rel=1e-12)
    assert other.validation().baseline(other.reference) == pytest.approx(alone, rel=1e-12)


def test_the_papers_error_of_gaussian_data_is_the_posterior_variance(tiny):
    setting = Setting(tiny, stopping="paper")
    xi = torch.from_numpy(np.random.RandomState(0).standard_normal((5000, 6)))
    found = Validation(setting.parameterisation, setting.reference.draw(xi), setting.config).baseline(setting.reference)
    q2 = (2.0 * (0.02 + 0.98 * (np.arange(8)[:, None] + 0.5) / 8)) ** 2
    v = setting.reference.v.numpy()
    assert found == pytest.approx(np.mean(v * q2 / (v + q2)), rel=0.02)


def test_validation_does_not_depend_on_the_batch_size(tiny):
    one, other = Setting(tiny, batch=16), Setting(tiny, batch=1000)
    assert one.validation()(one.network) == pytest.approx(other.validation()(one.network), rel=1e-6)


def test_validation_looks_at_every_stretch_of_the_time_axis_and_repeats_few_signals_with_other_noise(tiny):
    setting = Setting(tiny)
    validation = setting.validation()
    n = len(validation.x)
    assert n == 1050  # 35 times 30: the first multiple from 1024 up
    [(noise, q)] = validation.draws()
    u = (np.sort(q[:, 0].numpy()) / 2.0 - 0.02) / 0.98
    assert np.array_equal(np.floor(u * n + 1e-9), np.arange(n))
    assert torch.equal(validation.x[:30], validation.x[30:60])
    assert len({row.numpy().tobytes() for row in noise}) == n
    assert abs(np.corrcoef(q[:, 0], np.arange(n))[0, 1]) < 0.15  # in random order


@pytest.mark.parametrize(("n", "used"), [(1500, 1500), (5000, 5000), (12_345, 5000)])
def test_of_many_validation_signals_5000_are_used_evenly_spaced(tiny, n, used):
    setting = Setting(tiny)
    numbered = torch.arange(n, dtype=torch.float64)[:, None] * torch.ones(6)
    rows = Validation(setting.parameterisation, numbered, setting.config).x[:, 0].numpy()
    assert len(rows) == used
    assert (rows[0], rows[-1]) == (0, n - 1)
    step = (n - 1) / (used - 1)
    assert np.array_equal(rows, [int(k * step + 1e-9) for k in range(used)])


# -- the loop ------------------------------------------------------------------------------------------------------


def test_training_lowers_the_error_and_keeps_the_ema_weights_of_the_best_validation(tiny):
    setting = Setting(tiny, max_updates=50, validate_every=20, lr=3e-3, ema=0.9)
    before, records = setting.validation()(setting.network), []
    outcome = setting.train(log=lambda state, record: records.append(record))
    assert [record["update"] for record in records] == [20, 40, 50]
    losses = [record["val"] for record in records]
    assert losses[-1] < losses[0] < before
    assert outcome.summary["val"] == min(losses) == setting.validation()(outcome.network)
    assert outcome.summary["val_reference_alone"] == setting.validation().baseline(setting.reference)
    assert outcome.summary["updates"] == outcome.summary["best_update"] == 50


def test_the_training_loss_of_a_record_is_the_mean_since_the_last(tiny):
    fine, coarse = [], []
    for every, records in ((1, fine), (4, coarse)):
        Setting(tiny, max_updates=10, validate_every=every).train(log=lambda _, r, to=records: to.append(r["train"]))
    expected = [np.mean(fine[:4]), np.mean(fine[4:8]), np.mean(fine[8:])]
    assert coarse == pytest.approx(expected, rel=1e-12)


def test_training_ends_when_the_rule_says_so_and_returns_the_best_weights(tiny, monkeypatch):
    losses, seen = iter([0.9, 0.5, 0.7, 0.6, 0.8]), []

    def scripted(self, network):
        seen.append([p.clone() for p in network.parameters()])
        return next(losses)

    monkeypatch.setattr(Validation, "__call__", scripted)
    outcome = Setting(tiny, max_updates=60, validate_every=3, patience=2).train()
    assert (outcome.summary["updates"], outcome.summary["best_update"], outcome.summary["val"]) == (12, 6, 0.5)
    assert outcome.summary["stopped"] == "validation stopped improving"
    assert same(outcome.network.parameters(), seen[1])
    assert not same(outcome.network.parameters(), seen[3])


def test_a_network_that_starts_at_zero_is_kept_until_it_is_beaten_and_given_time(tiny, monkeypatch):
    losses, seen = iter([1.0, 3.0, 2.5, 2.0, 1.5, 1.5, 1.5]), []  # the first before any update

    def scripted(self, network):
        seen.append([p.clone() for p in network.parameters()])
        return next(losses)

    monkeypatch.setattr(Validation, "__call__", scripted)
    setting = Setting(tiny, max_updates=60, validate_every=3, patience=2)
    setting.network.starts_at_zero = True
    outcome = setting.train()
    assert len(seen) == 7
    assert (outcome.summary["updates"], outcome.summary["best_update"], outcome.summary["val"]) == (18, 0, 1.0)
    assert same(outcome.network.parameters(), seen[0])


def test_training_that_runs_out_of_updates_says_so(tiny):
    outcome = Setting(tiny, max_updates=4, validate_every=4).train()
    assert outcome.summary["stopped"].startswith("max_updates reached")


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([0.9, 0.8, 0.7], "max_updates reached, still improving"),
        ([0.9, 0.7, 0.8], "max_updates reached"),
        ([0.7, 0.8, 0.8, 0.8], "validation stopped improving"),
    ],
)
def test_how_training_ended_is_said_as_it_was(losses, said):
    plateau = Plateau(1.0, patience=3)
    for update, loss in enumerate(losses, start=1):
        plateau.observe(loss, update)
    assert training._stopped(plateau, len(losses)) == said


@pytest.mark.parametrize(("gain", "kept"), [(0.2, True), (0.001, False)])
def test_a_network_is_kept_if_its_gain_is_more_than_chance_and_else_as_it_started(tiny, monkeypatch, gain, kept):
    """Validation signals that are neighbours are alike: their gains differ from group to group, by 0.05 or so."""
    off = np.random.RandomState(0).standard_normal(20)
    gains = gain + 0.05 * (off - off.mean())

    def trained(certain):
        setting = Setting(tiny, max_updates=4, validate_every=4)
        setting.network.starts_at_zero = True
        before = [p.clone() for p in setting.network.parameters()]

        def moved(network):
            return any((p != q).any() for p, q in zip(network.parameters(), before, strict=True))

        def scripted(self, network, noise, q):
            own = np.bincount(self.group)[self.group]  # some groups are larger
            return torch.from_numpy(1 - moved(network) * gains[self.group] * own.mean() / own)

        monkeypatch.setattr(Validation, "_errors", scripted)
        outcome = setting.train(certain=certain)
        return moved(outcome.network), outcome.summary["best_update"]

    assert trained(certain=True) == ((True, 4) if kept else (False, 0))
    assert trained(certain=False) == (True, 4)
