"""Training the conditional model of windows, against a mixture of two regimes in time whose posterior is known."""

import math
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from laws import close
from mixtures import Mixture

import grcd
from grcd.core.errors import InputWarning
from grcd.core.streams import Stream
from grcd.graphs.space import SignalSpace
from grcd.networks.spacetime import denoised
from grcd.references.gaussian import full
from grcd.references.guidance import guided
from grcd.references.observations import Observations
from grcd.references.stationary import Shrinkage, Stationary, lag_covariances
from grcd.runs.folder import Run, read
from grcd.training import conditional as training
from grcd.training import masks as hiding
from grcd.training.conditional import Setting, State, Update, Validation, fit, fresh_network, losses
from grcd.training.masks import FAMILIES
from grcd.training.muon import Muon, orthogonal
from grcd.training.pool import Fold, Pool, cross_fitted, parted

STEPS, NODES, D = 4, 2, 8
SPACE = SignalSpace(grcd.Graph.from_adjacency([[0, 1], [1, 0]]), STEPS)
# Two regimes that part in time: from the same start readings rise or fall, with correlated noise about them.
RISE = torch.tensor([0.0, 0.2, 1.0, 1.2], dtype=torch.float64).repeat_interleave(NODES)
STEP = torch.arange(STEPS)
NOISE = 0.1 * torch.kron(0.5 ** (STEP[:, None] - STEP).abs(), torch.tensor([[1, 0.3], [0.3, 1]])).double()
SMALL = Setting(width=8, blocks=1, heads=2, pool=60, batch=16, max_updates=12, validate_every=4, lr=1e-2)


def gaussian(Sigma):
    return full(Sigma.numpy())


REFERENCE = gaussian(NOISE + torch.outer(RISE, RISE))  # the best that a Gaussian can do


def regimes(count, seed):
    """Windows (count, d)."""
    random = Stream(seed, "regimes")
    sign = 1 - 2.0 * random.integers(0, count, 2)
    return sign[:, None] * RISE + random.normal(1, count * D).view(count, D) @ torch.linalg.cholesky(NOISE).T


def fold(windows, reference=REFERENCE, **parts):
    """Windows one after the other, with a break between any two; no calendar."""
    z = windows.reshape(-1, NODES)
    return Fold(z, torch.zeros(len(z), 0), torch.arange(0, len(z), STEPS), reference, **parts)


def keyed(purpose, shape):
    return Stream(9, purpose).normal(range(shape[0]), shape[1] * shape[2]).view(shape)


# -- folds and pools -------------------------------------------------------------------------------------------------


def test_parts_have_every_row_once_and_about_as_many_each():
    stretches = [slice(0, 17), slice(20, 23), slice(30, 70)]
    parts = parted(stretches, 4)
    rows = [[row for s in part for row in range(s.start, s.stop)] for part in parts]
    assert sorted(row for part in rows for row in part) == [row for s in stretches for row in range(s.start, s.stop)]
    assert [len(part) for part in rows] == [15] * 4
    for part in parts:
        assert all(any(own.start >= s.start and own.stop <= s.stop for s in stretches) for own in part)


def test_what_a_fold_learned_never_saw_its_windows():
    z, seen = torch.randn(90, NODES, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), []

    def learn(stretches):
        seen.append({row for s in stretches for row in range(s.start, s.stop)})
        return z, Stationary.of(lag_covariances(z, STEPS, stretches), Shrinkage()), None

    folds = cross_fitted(learn, torch.zeros(90, 0), [slice(0, 40), slice(45, 90)], STEPS, 3)
    assert len(folds) == 3
    for each, learned in zip(folds, seen, strict=True):
        rows = set(each.windows(each.starts, STEPS).flatten().tolist())
        assert rows
        assert not rows & learned
        assert len(rows | learned) == 85
        assert not any(start < 40 < start + STEPS or 40 <= start < 45 for start in each.starts.tolist())
    for rows, count in ((STEPS + 1, 3), (20, 1)):
        with pytest.raises(grcd.InputError, match="row"):
            cross_fitted(learn, torch.zeros(90, 0), [slice(0, rows)], STEPS, count)


def test_a_pool_is_windows_masks_and_their_posteriors():
    windows = regimes(30, 0)
    windows[torch.rand(30, D, generator=torch.Generator().manual_seed(1)) < 0.2] = torch.nan
    scale = torch.rand(30 * STEPS, NODES, generator=torch.Generator().manual_seed(2)) + 0.5
    source = fold(windows, scale=scale)
    pool = Pool.evenly(SPACE, source, 30, 0, "some")
    batch, recorded = pool.batch(slice(None)), ~windows.isnan()
    hidden, observed = batch.weight > 0, pool.sd == 0
    assert hidden.any(1).all()
    assert not (hidden & (observed | ~recorded)).any()  # a gap of its own is neither hidden nor observed
    assert torch.equal(hidden | observed, recorded)
    posterior = REFERENCE.posterior(windows, observed)
    close(pool.sd.double(), posterior.sd, 1e-3)
    close(pool.mean.double(), posterior.mean, 1e-3)
    close((pool.mean.double() + pool.sd * batch.u.double())[hidden], windows[hidden], 3e-3)
    assert not batch.u[~hidden].any()
    weight = torch.where(hidden, posterior.sd * scale.reshape(30, D), 0)
    weight *= hidden.sum(1, keepdim=True) / weight.sum(1, keepdim=True).clamp(min=1e-9)
    close(batch.weight.double(), weight.clamp(max=4), 2e-3)


def test_a_pool_and_the_judge_hide_what_other_windows_of_the_fold_lack(monkeypatch):
    """Half of the windows lack their third row, and no family but that of recorded gaps is left."""
    windows = regimes(200, 0).unflatten(1, (STEPS, NODES))
    windows[::2, 2] = torch.nan
    source = fold(windows.flatten(1))
    close(source.gaps(STEPS).share, 1 / 8)
    for name, family in FAMILIES.items():
        monkeypatch.setitem(FAMILIES, name, family._replace(weight=0.0))
    monkeypatch.setattr(hiding, "FEW", 1e-9)  # no points beside, but for one
    hidden = (Pool.evenly(SPACE, source, 200, 0, "some").weight > 0).unflatten(1, (STEPS, NODES))
    there, others = hidden[1::2, 2].all(1), hidden[:, [0, 1, 3]].flatten(1).sum(1)
    assert 0.3 < there.float().mean() < 0.7  # as many as lack it
    assert (others <= 1).all()
    assert not hidden[::2, 2].any()
    asked = []
    monkeypatch.setattr(training, "masks", lambda *about: asked.append(about[4]) or hiding.masks(*about))
    training.scores_of(fit(SPACE, [source], source, replace(SMALL, max_updates=0))[0], source, 0)
    assert asked == [source.gaps(STEPS)]


def test_a_pool_is_keyed_by_seed_and_takes_windows_of_all_folds_alike():
    folds = [fold(regimes(10, 0)), fold(regimes(30, 1))]
    pools = [Pool.drawn(SPACE, folds, 2000, seed, "training") for seed in (0, 0, 1)]
    assert torch.equal(pools[0].u, pools[1].u)
    assert not torch.equal(pools[0].u, pools[2].u)
    whole = torch.cat([regimes(10, 0), regimes(30, 1)]).half()
    seen = pools[0].sd == 0
    match = ((pools[0].mean[:, None] == whole) | ~seen[:, None]).all(2) & (seen.sum(1) > 1)[:, None]
    count = match[match.sum(1) == 1].sum(0).double()
    assert (count - count.mean()).abs().max() < 5 * count.mean().sqrt()


# -- objective and updates -------------------------------------------------------------------------------------------


def drawn(pool, seed=0):
    noise = Stream(seed, "noise").normal(0, pool.u.numel()).view(pool.u.shape).float()
    return pool.batch(slice(None)), noise, Stream(seed, "q").normal(0, len(pool)).exp().float()


def test_the_objective_is_the_error_of_the_denoised_and_the_likelihood_of_it():
    """Written out in terms of ``u``: the error is ``(u_hat - u)^2 (1 + q^2) / q^2``."""
    network = fresh_network(SPACE, 0, SMALL)
    torch.nn.init.normal_(network.output.weight)
    batch, noise, q = drawn(Pool.evenly(SPACE, fold(regimes(20, 0)), 20, 0, "some"))
    hidden = batch.weight > 0
    noised = torch.where(hidden, batch.u + q[:, None] * noise, 0)
    answer = network(noised.view(-1, STEPS, NODES), q, batch.features.view(-1, STEPS, NODES, 5), batch.calendar)
    mean, variance = denoised(noised.view(-1, STEPS, NODES), q[:, None, None], answer)
    share, unit = 0.3, q[:, None] ** 2 / (1 + q[:, None] ** 2)
    error = (mean.flatten(1) - batch.u).square() / unit
    spread = variance.flatten(1) / unit
    loss = error + share / 2 * (spread.log() + error / spread)
    expected = torch.stack([(w * row)[h].mean() for w, row, h in zip(batch.weight, loss, hidden, strict=True)])
    close(losses(network, batch, noise, q, share, STEPS), expected, 1e-4)


def test_the_mean_learns_nothing_from_the_variance():
    network = fresh_network(SPACE, 0, SMALL)
    parts = drawn(Pool.evenly(SPACE, fold(regimes(20, 0)), 20, 0, "some"))
    gradients = []
    for share in (0.0, 1.0):
        network.zero_grad()
        losses(network, *parts, share, STEPS).mean().backward()
        gradients.append(network.output.weight.grad.clone())
    close(gradients[1][0], gradients[0][0], 1e-6)
    assert not gradients[0][1].any()
    assert gradients[1][1].any()


def test_muon_makes_matrices_orthogonal_each_for_itself():
    B = torch.randn(3, 6, 20, generator=torch.Generator().manual_seed(0))
    for some in (B, B.mT):
        values = torch.linalg.svdvals(orthogonal(some))
        assert values.min() > 0.6
        assert values.max() < 1.25
        close(orthogonal(some)[1:2], orthogonal(some[1:2]), 1e-5)
    U, _, V = torch.linalg.svd(B[0], full_matrices=False)
    assert (orthogonal(B[:1])[0] * (U @ V)).sum() > 0.97 * orthogonal(B[:1])[0].norm() * (U @ V).norm()


def test_muon_is_momentum_and_decay():
    g = torch.Generator().manual_seed(0)
    p = torch.nn.Parameter(torch.randn(4, 7, generator=g))
    optimizer, lr, before, kept = Muon([p], rate := torch.tensor(0.1), 0.9, 0.3), 0.1, p.detach().clone(), 0
    for _ in range(3):
        p.grad = torch.randn(4, 7, generator=g)
        kept = 0.9 * kept + 0.1 * p.grad
        ahead = orthogonal((0.1 * p.grad + 0.9 * kept)[None])[0]
        optimizer.step()
        before = before * (1 - lr * 0.3) - lr * 0.2 * math.sqrt(7) * ahead
        close(p, before, 1e-5)
        lr /= 2
        rate.fill_(lr)


def test_rates_rise_then_fall_by_a_cosine_and_the_average_forgets_how_it_began():
    state = State(fresh_network(SPACE, 0, SMALL), setting := replace(SMALL, max_updates=1000, warmup=50), 1.0)
    rates, blends = [], []
    for state.update in range(1000):
        state.schedule()
        rates.append(float(state.rate)), blends.append(float(state.blend))
        close(float(state.muon_rate), setting.muon * rates[-1], 1e-6)
    assert rates[0] < 0.03 * setting.lr
    assert np.argmax(rates) == 49
    close(rates[500], setting.lr / 2, 1e-6)
    assert rates[-1] < 1e-5 * setting.lr
    close(blends, [max(1 - setting.ema, 9 / (10 + k)) for k in range(1000)], 1e-5)


def test_the_average_is_a_blend_of_all_weights():
    state = State(fresh_network(SPACE, 0, SMALL), SMALL, 1.0)
    update = Update(state, Pool.drawn(SPACE, [fold(regimes(40, 0))], 60, 0, "training"), SMALL, STEPS)
    expected = [p.detach().clone() for p in state.parameters]
    for k in range(4):
        update()
        state.update += 1
        weight = 9 / (10 + k)
        expected = [(1 - weight) * a + weight * p.detach() for a, p in zip(expected, state.parameters, strict=True)]
    for mine, other in zip(state.ema.parameters(), expected, strict=True):
        close(mine, other, 1e-5, size=1)
    assert any((a != b).any() for a, b in zip(state.ema.parameters(), state.parameters, strict=True))


@pytest.fixture
def kept(monkeypatch):
    """Whatever was learned stays: no judge."""
    monkeypatch.setattr(training, "judged", lambda conditional, fold, seed, summary: (conditional, summary))


def test_a_training_that_was_interrupted_goes_on_in_its_folder_and_ends_with_the_same_bits(kept, tmp_path):
    parts = [fold(regimes(40, 0))], fold(regimes(20, 1)), SMALL
    about = {"config": asdict(SMALL), "node_ids": ["0", "1"], "normalizer": {"mean": [0.0], "std": [1.0]}}
    about |= {"data": {"name": "z", "train": 40, "val": 20, "hash": ""}, "graph": {"nodes": 2, "hash": ""}}
    records, later = [], []
    whole, summary = fit(SPACE, *parts, lambda state, record: records.append(record))

    def interrupted(state, record):
        folder.log(state, record)
        if record["update"] == 8:
            raise KeyboardInterrupt

    with Run(tmp_path / "run", about) as folder, pytest.raises(KeyboardInterrupt):
        fit(SPACE, *parts, interrupted, folder.resume)
    with Run(tmp_path / "run", about) as folder:
        again, resumed = fit(SPACE, *parts, lambda state, record: later.append(record), folder.resume)
        folder.finish(again.network.state_dict(), resumed)
    assert later == records[2:]
    assert {**summary, "seconds": 0} == {**resumed, "seconds": 0}
    tensors = read(tmp_path / "run")[1]
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, tensors[name])


def test_training_begins_as_the_reference_and_validation_is_always_the_same(kept):
    source = fold(regimes(20, 1))
    network, validation = fresh_network(SPACE, 0, SMALL), Validation(SPACE, source, SMALL)
    batch = validation.pool.batch(slice(None))
    q, hidden = validation.q[:, None], batch.weight > 0
    right = torch.where(hidden, (batch.u - (batch.u + q * validation.noise) / (1 + q**2)) * (1 + q**2).sqrt() / q, 0)
    error = (batch.weight * right.square()).sum(1) / hidden.sum(1).clamp(min=1)
    close(validation(network), float((1 + SMALL.likelihood / 2) * error.mean()), 1e-5)
    _, summary = fit(SPACE, [fold(regimes(40, 0))], source, SMALL)
    assert summary["val_reference_alone"] == validation(network) == Validation(SPACE, source, SMALL)(network)


def test_wild_numbers_end_training_with_what_to_do():
    with pytest.raises(grcd.InputError, match="learning rate"):
        fit(SPACE, [fold(regimes(40, 0))], fold(regimes(20, 1)), replace(SMALL, lr=1e30))


@pytest.mark.parametrize("wrong", [{"width": 10, "heads": 4}, {"lr": 0}, {"max_updates": 1.5}, {"ema": 2.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(grcd.InputError, match=next(iter(wrong))):
        Setting(**wrong)


# -- what is learned -------------------------------------------------------------------------------------------------


def test_where_the_reference_is_the_truth_it_is_used_alone_and_that_is_said():
    windows = [REFERENCE.draw(Stream(seed, "z").normal(0, 100 * D).view(100, D)) for seed in (0, 1)]
    with pytest.warns(InputWarning, match="reference is used alone"):
        conditional, summary = fit(SPACE, [fold(windows[0])], fold(windows[1]), SMALL)
    assert conditional.network is None
    assert conditional.reference is REFERENCE
    assert summary["network"] is False


@pytest.fixture(scope="module")
def learned():
    """Trained on many futures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "future", FAMILIES["future"]._replace(weight=3.0))
        setting = Setting(
            width=16, blocks=1, heads=1, pool=6000, batch=128, max_updates=250, validate_every=50, lr=1e-2, muon=3
        )
        return fit(SPACE, [fold(regimes(3000, 0))], fold(regimes(300, 1)), setting)


def truth(z, o):
    """Of hidden readings given ``z[o]``: the regimes' probabilities (2,), their means (2, h), and spreads (h,)."""
    gain = NOISE[~o][:, o] @ torch.linalg.inv(NOISE[o][:, o])
    about = torch.stack([(z - RISE)[o], (z + RISE)[o]])
    chances = torch.softmax(-0.5 * (about * torch.linalg.solve(NOISE[o][:, o], about.T).T).sum(1), 0)
    means = torch.stack([RISE[~o], -RISE[~o]]) + about @ gain.T
    return chances, means, (NOISE[~o][:, ~o] - gain @ NOISE[o][:, ~o]).diagonal().sqrt()


def distances(conditional, nfe, n=400):
    """From the known posterior of forecasts: Kolmogorov's distance, of means in posterior spreads, of log spreads."""
    z, observed = regimes(24, 7), (torch.arange(D) < 2 * NODES).expand(24, D)
    x = conditional.draw(z, observed, torch.zeros(24, STEPS, 0), n, nfe, keyed)
    rows = []
    for window, draws, o in zip(z, x, observed, strict=True):
        chances, means, sd = truth(window, o)
        mean = chances @ means
        spread = (sd**2 + chances @ means**2 - mean**2).sqrt()
        y = draws[:, ~o].sort(0).values
        below = (chances[:, None, None] * torch.special.ndtr((y - means[:, None]) / sd)).sum(0)
        apart = (below - (torch.arange(n)[:, None] + 0.5) / n).abs().amax(0)
        rows.append(torch.stack([apart, (y.mean(0) - mean).abs() / spread, (y.std(0) / spread).log().abs()]))
    return torch.stack(rows).mean((0, 2))


def test_the_trained_model_comes_closer_to_the_known_posterior_than_its_reference(learned):
    conditional, summary = learned
    assert summary["network"] is True
    assert summary["crps"] < summary["crps_reference_alone"]
    reference = distances(replace(conditional, network=None), 1)
    ours = distances(conditional, 8)
    assert (ours < 0.6 * reference).all()
    assert (distances(conditional, 4) < 0.75 * reference).all()


class Guidance:
    """The best that guidance can be: the regimes' exact score without observations, and their best Gaussian."""

    def draw(self, z, observed, calendar, n, nfe, noise):
        reference, data = REFERENCE, Mixture(torch.ones(2) / 2, torch.stack([RISE, -RISE]), NOISE.expand(2, D, D))
        seen = Observations(torch.where(observed, z, math.nan))
        eps = guided(lambda x, q: data.eps_hat(x, q) - reference.eps(x, q), reference, seen)
        levels = torch.logspace(1.5, -2, nfe + 1, dtype=torch.float64).tolist()
        x = reference.condition(seen).draw(n, noise, torch.zeros(len(z), n, dtype=torch.float64))
        x = (x + levels[0] * noise("start", x.shape)).flatten(0, 1)
        for q, p in pairwise(levels):  # Heun's method, with two evaluations a step
            first = eps(x, q)
            x = x + (p - q) * (first + eps(x + (p - q) * first, p)) / 2
        return x.view(len(z), n, D)


def test_the_trained_model_comes_closer_to_the_known_posterior_than_guidance_by_an_exact_score(learned):
    ours, theirs = distances(learned[0], 8), distances(Guidance(), 64)
    assert (ours < 0.85 * theirs).all()
    apart = (distances(Guidance(), 128) - theirs).abs()
    assert (apart < 0.1 * theirs).all()  # more steps do not mend it


@pytest.mark.parametrize(("easy", "wins"), [(0.9, True), (1.1, False)])
def test_a_network_is_judged_by_its_share_of_gain_in_every_window(monkeypatch, easy, wins):
    """Forty windows of gaps that are filled a tenth better or worse, and eight that nobody can foresee, a little
    better: what is large by nature does not decide."""
    reference = torch.cat([torch.full((40,), 0.1), torch.full((8,), 10.0)]).double()
    share = torch.cat([torch.full((40,), easy), torch.full((8,), 0.95)]).double() + 1e-3 * torch.arange(48)
    scores = training.Scores(reference * share, reference, 0.9 * reference, reference, torch.arange(48))
    monkeypatch.setattr(training, "scores_of", lambda conditional, fold, seed: scores)
    model = SimpleNamespace(space=None, reference=None)
    with nullcontext() if wins else pytest.warns(InputWarning, match="does not clearly beat its reference"):
        _, summary = training.judged(model, None, 0, {"best_update": 1})
    assert summary["network"] is wins


def test_a_network_whose_readings_fall_apart_is_not_used(monkeypatch):
    """However near each of them is by itself."""
    one = torch.ones(40, dtype=torch.float64)
    model = SimpleNamespace(space=None, reference=None)
    for joint, used in ((0.99, True), (1.01, False)):
        scores = training.Scores((0.9 + 1e-3 * torch.arange(40)) * one, one, joint * one, one, torch.arange(40))
        monkeypatch.setattr(training, "scores_of", lambda conditional, fold, seed, scores=scores: scores)
        with nullcontext() if used else pytest.warns(InputWarning, match="does not clearly beat its reference"):
            assert training.judged(model, None, 0, {"best_update": 1})[1]["network"] is used


@pytest.mark.parametrize(("windows", "used"), [(1, True), (20, False)])
def test_windows_that_overlap_count_once(monkeypatch, windows, used):
    """Forty gains that two or forty groups of windows speak for: of two groups as many say nothing."""
    gain = 0.1 + 0.1 * torch.sign(torch.arange(40) - 19.5).double()
    one = torch.ones(40, dtype=torch.float64)
    scores = training.Scores(1 - gain, one, 0.9 * one, one, torch.arange(40) // windows)
    monkeypatch.setattr(training, "scores_of", lambda conditional, fold, seed: scores)
    model = SimpleNamespace(space=None, reference=None)
    with nullcontext() if used else pytest.warns(InputWarning, match="does not clearly beat its reference"):
        assert training.judged(model, None, 0, {"best_update": 1})[1]["network"] is used
