"""Training on signals with gaps: on what was observed, the rest drawn by the reference; and on float32 signals."""

import hashlib
import json
import math

import numpy as np
import pytest
import torch
from gaps import holes
from test_loop import Setting, Zeros, same, values

import grcd
from grcd.core.streams import Stream
from grcd.data.dataset import fingerprint
from grcd.data.normalizer import Normalizer
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral
from grcd.runs.folder import Run
from grcd.training import loop as training
from grcd.training.loop import Signals, State, Update, Validation


@pytest.fixture(scope="module")
def patchy(tiny):
    return grcd.Dataset("patchy", tiny.graph, holes(tiny.train), holes(tiny.val, seed=1), tiny.test)


@pytest.fixture(scope="module")
def trained(quick):
    def trained(data, run=None, train=None, **changes):
        model = grcd.GRCD(data.graph, device="cpu", **{**quick, "method": "grcd-exponential", "seed": 3, **changes})
        return model.fit(data.train if train is None else train, data.val, run=run)

    return trained


def stream(seed=0):
    return Stream(seed, "gaps")


# -- what a batch is made of ---------------------------------------------------------------------------------------


def test_a_batch_is_completed_by_the_reference_from_the_noise_of_its_update(patchy):
    setting = Setting(patchy)
    index = torch.tensor([7, 7, 0, 59, 12])
    x0, weight = Signals(setting.x_train, setting.reference, stream())(index, number=41)
    given = setting.x_train[index]
    assert torch.equal(x0, setting.reference.completed(given, stream().normal(41, 30).view(5, 6)))
    assert torch.allclose(weight, given.isfinite().double() / np.mean(~np.isnan(patchy.train)), rtol=1e-15)


def test_another_seed_or_update_changes_the_missing_entries_and_no_others(patchy):
    setting = Setting(patchy)
    first, second, third = (
        Signals(setting.x_train, setting.reference, stream(seed))(slice(None), number)[0]
        for seed, number in ((0, 1), (0, 2), (5, 1))
    )
    missing = setting.x_train.isnan()
    assert torch.equal(first[~missing], setting.x_train[~missing])
    for other in (second, third):
        assert torch.equal(other[~missing], first[~missing])
        assert not torch.isin(other[missing], first[missing]).any()


def test_the_training_loss_is_the_mean_square_over_observed_entries(patchy):
    """One update on a batch with gaps, against a loop over its observed entries."""
    setting = Setting(patchy, batch=32)
    state = State(setting.network, setting.config, baseline=1.0)
    state.update = 7
    update = Update(state, setting.parameterisation, setting.x_train, setting.config, setting.reference)
    (index, noise, u), network = setting.drawn(1)[0], setting.network
    x0 = setting.reference.completed(setting.x_train[index], stream().normal(7, 32 * 6).view(32, 6))
    q = 2.0 * (0.02 + 0.98 * u)
    x = x0 + q * noise
    with torch.no_grad():
        error = setting.parameterisation.prediction(network)(x, q) - noise
    total = sum(float(error[k, i]) ** 2 for k in range(32) for i in range(6) if setting.x_train[index[k], i].isfinite())
    update(index, noise, u)
    # Divided by the share of the whole training set, not of the batch: batches with many gaps count less.
    assert float(update.total) == pytest.approx(total / (32 * 6) / np.mean(~np.isnan(patchy.train)), rel=1e-6)


def test_methods_with_one_seed_complete_alike(patchy):
    batches = []
    for method in ("grcd-exponential", "clock"):
        setting = Setting(patchy, method)
        state = State(setting.network, setting.config, baseline=1.0)
        update = Update(state, setting.parameterisation, setting.x_train, setting.config, setting.reference)
        update(*setting.drawn(1)[0])
        batches.append(update.x0)
    assert torch.equal(*batches)


def regression(target, x):
    """Of the target on the noisy signal, entry by entry, in standard errors."""
    products = target[:, :, None] * x[:, None, :]
    return (products.mean(0) / (products.std(0) / math.sqrt(len(x)))).abs().max()


@pytest.mark.parametrize("q", [0.3, 1.0])
def test_where_the_reference_is_the_truth_gaps_leave_nothing_to_learn(tiny, q):
    """Completed Gaussian signals are Gaussian signals: the residual target has no regression on what is seen."""
    setting = Setting(tiny)
    xi = torch.from_numpy(np.random.RandomState(0).standard_normal((2, 100_000, 6)))
    x = torch.from_numpy(holes(setting.reference.draw(xi[0]).numpy(), 0.3))
    completed, _ = Signals(x, setting.reference, stream())(slice(None))
    for x0, found in ((completed, True), (x.nan_to_num(0.0), False)):  # gaps filled by means leave much
        noisy = x0 + q * xi[1]
        assert (regression(setting.parameterisation.target(noisy, xi[1], q), noisy) < 5) == found


# -- validation ----------------------------------------------------------------------------------------------------


def test_validation_with_gaps_is_the_mean_square_over_observed_entries(patchy):
    setting = Setting(patchy)
    validation = Validation(setting.parameterisation, setting.x_val, setting.config, setting.reference)
    [(noise, q)] = validation.draws()
    known = (setting.x_val.isfinite()).repeat(35, 1)
    left = noise - setting.reference.eps(validation.x + q * noise, q)
    expected = np.mean([float(e) ** 2 for e in left[known]])
    assert validation.baseline(setting.reference) == pytest.approx(expected, rel=1e-12)
    assert validation(Zeros()) == pytest.approx(expected, rel=1e-12)
    assert torch.equal(validation.x[known], setting.x_val.repeat(35, 1)[known])


def test_the_papers_error_with_gaps_is_the_mean_square_over_observed_entries(patchy):
    setting = Setting(patchy, stopping="paper")
    validation = Validation(setting.parameterisation, setting.x_val, setting.config, setting.reference)
    known, squares = setting.x_val.isfinite(), []
    for noise, q in validation.draws():
        left = q * (noise - setting.reference.eps(validation.x + q * noise, q))
        squares += [float(e) ** 2 for e in left[known]]
    assert validation.baseline(setting.reference) == pytest.approx(np.mean(squares), rel=1e-12)
    assert validation(Zeros()) == pytest.approx(np.mean(squares), rel=1e-12)


def test_with_gaps_the_baseline_of_the_truth_is_still_the_best_possible_error(tiny):
    setting = Setting(tiny)
    xi = torch.from_numpy(np.random.RandomState(0).standard_normal((5000, 6)))
    x = torch.from_numpy(holes(setting.reference.draw(xi).numpy(), 0.3))
    found = Validation(setting.parameterisation, x, setting.config, setting.reference).baseline(setting.reference)
    q = 2.0 * np.linspace(0.02, 1.0, 2001)[:, None]
    v = setting.reference.v.numpy()
    assert found == pytest.approx(np.mean(v / (v + q**2)), rel=0.03)


# -- the whole fit -------------------------------------------------------------------------------------------------


def test_normaliser_and_reference_come_from_what_was_observed(patchy, trained):
    model = trained(patchy, max_updates=1)
    assert model.normalizer.mean == pytest.approx(np.nanmean(patchy.train, axis=0), rel=1e-12)
    assert model.normalizer.std == pytest.approx(np.nanstd(patchy.train, axis=0), rel=1e-12)
    z = (patchy.train - np.nanmean(patchy.train, axis=0)) / np.nanstd(patchy.train, axis=0)
    assert model.reference.v.numpy() == pytest.approx(spectral(ledoit_wolf(z), patchy.graph.spectrum).v.numpy())


def test_a_mask_that_hides_nothing_changes_no_bit(tiny, trained, monkeypatch):
    plain = trained(tiny)
    made = Signals.__init__

    def always_masked(self, *given):
        made(self, *given)
        assert not self.gaps
        self.gaps = True

    monkeypatch.setattr(Signals, "__init__", always_masked)
    masked = trained(tiny)
    assert same(masked.network.parameters(), plain.network.parameters())
    assert {**masked.result, "seconds": 0} == {**plain.result, "seconds": 0}


@pytest.mark.parametrize("method", ["grcd-exponential", "grcd-gnn"])
def test_a_run_with_gaps_that_was_interrupted_goes_on_to_the_bit(patchy, trained, tmp_path, monkeypatch, method):
    whole, log = trained(patchy, method=method), Run.log

    def stop_at_the_second(self, state, record):
        log(self, state, record)
        if state.update == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "log", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        trained(patchy, tmp_path / "run", method=method)
    monkeypatch.setattr(Run, "log", log)
    resumed = trained(patchy, tmp_path / "run", method=method)
    assert same(resumed.network.parameters(), whole.network.parameters())
    assert resumed.plan == whole.plan
    assert np.array_equal(resumed.sample(5), whole.sample(5))


def test_signals_in_which_nothing_was_observed_are_dropped_and_counted(patchy, trained, tmp_path):
    empty = np.full((5, 6), np.nan)
    more = np.concatenate([empty[:2], patchy.train[:30], empty[2:], patchy.train[30:]])
    model = trained(patchy, tmp_path / "run", train=more)
    assert same(model.network.parameters(), trained(patchy).network.parameters())
    data = json.loads((tmp_path / "run" / "run.json").read_text())["data"]
    assert (data["train"], data["dropped"]) == (65, 5)
    assert data["missing"] == pytest.approx(np.isnan(more).mean(), rel=1e-12)


def test_training_on_gaps_learns_what_training_on_complete_signals_learns(tiny):
    """Two clusters, which no Gaussian describes: with 30 % missing most of the gain over the reference is there."""

    def clusters(n, seed):
        random = np.random.RandomState(seed)
        side = 2.0 * random.randint(0, 2, size=(n, 1)) - 1.0
        return 3.0 * side * [1, -1, 1, 1, -1, 1] + random.standard_normal((n, 6))

    settings = {"width": 16, "batch": 64, "max_updates": 400, "validate_every": 400, "lr": 5e-3, "ema": 0.95}
    x, val, gain = clusters(3000, 0), clusters(2000, 1), {}
    for name, train in {"complete": x, "gaps": holes(x)}.items():
        result = grcd.GRCD(tiny.graph, "grcd-exponential", device="cpu", **settings).fit(train, val).result
        gain[name] = result["val_reference_alone"] - result["val"]
    assert gain["complete"] > 0.03
    assert gain["gaps"] > 0.8 * gain["complete"]


# -- float32 and size ----------------------------------------------------------------------------------------------


def test_float32_signals_train_as_float64_ones_do(patchy, trained):
    low = grcd.Dataset("low", patchy.graph, patchy.train.astype(np.float32), patchy.val.astype(np.float32), patchy.test)
    one, other = trained(patchy, max_updates=20), trained(low, max_updates=20)
    gap = np.concatenate([(a - b).ravel() for a, b in zip(values(one.network), values(other.network), strict=True)])
    assert 0 < np.abs(gap).max() < 1e-3  # twenty steps of 3e-3 on gradients that differ in the seventh digit
    assert other.result["val"] == pytest.approx(one.result["val"], rel=1e-4)


def test_signals_are_copied_once_and_in_their_own_precision(patchy, trained, monkeypatch):
    seen, train = {}, training.train

    def spy(score, reference, network, x_train, x_val, *rest, **hooks):
        seen.update(train=x_train, val=x_val)
        return train(score, reference, network, x_train, x_val, *rest, **hooks)

    monkeypatch.setattr("grcd.training.loop.train", spy)
    train32, kept = patchy.train.astype(np.float32), patchy.train.astype(np.float32)
    model = grcd.GRCD(patchy.graph, "grcd-exponential", device="cpu", width=4, max_updates=1)
    model.fit(train32, np.tile(patchy.val, (400, 1)))
    assert seen["train"].dtype == torch.float32
    assert len(seen["val"]) == 5000  # chosen before they are normalised
    assert np.array_equal(train32, kept, equal_nan=True)
    z = Normalizer.fit(train32, patchy.graph).apply(train32)
    assert np.array_equal(seen["train"].numpy(), z, equal_nan=True)


def test_the_fingerprint_of_data_is_the_hash_of_their_float64_bytes_whatever_the_blocks(tiny, monkeypatch):
    x = tiny.train
    expected = hashlib.sha256(b"(60, 6)" + x.astype("<f8").tobytes()).hexdigest()
    assert fingerprint(x) == fingerprint(np.asfortranarray(x)) == expected
    monkeypatch.setattr("grcd.core.rows.BLOCK", 50)
    assert fingerprint(x) == expected
    assert fingerprint(x.astype(np.float32)) == fingerprint(x.astype(np.float32).astype(np.float64)) != expected


def test_the_fingerprint_does_not_depend_on_which_nan_a_gap_is(tiny):
    x = tiny.train.copy()
    x[3, 2] = x[5, 1] = np.nan
    other = x.copy()
    other[3, 2] = np.array(0xFFF8000000000123, dtype=np.uint64).view(np.float64)
    assert x.tobytes() != other.tobytes()
    assert fingerprint(x) == fingerprint(other)
    assert fingerprint(x) != fingerprint(np.nan_to_num(x))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_gaps_are_completed_outside_of_the_captured_update(patchy, quick):
    """The same bits twice, and what the CPU learns to rounding."""
    fits = {}
    for name, device in (("gpu", "cuda"), ("again", "cuda"), ("cpu", "cpu")):
        model = grcd.GRCD(patchy.graph, "grcd-exponential", device=device, **{**quick, "seed": 3})
        model.fit(patchy.train, patchy.val)
        fits[name] = torch.cat([p.detach().flatten().cpu() for p in model.network.parameters()])
    assert torch.equal(fits["gpu"], fits["again"])
    assert (fits["gpu"] - fits["cpu"]).norm() <= 1e-3 * fits["cpu"].norm()  # TF32 products, 60 updates
