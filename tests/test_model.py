"""What users touch: samples in the units of the data, the same from a saved model, and inputs that cannot work."""

import copy
import random
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Zeros
from folders import edit, edit_tensors, unsealed
from laws import close
from trained import sampled_as, with_parts

import grcd
from grcd.core.streams import Stream
from grcd.data.normalizer import Normalizer
from grcd.diffusion.process import HeatProcess
from grcd.diffusion.solvers import SOLVERS
from grcd.references import mixture_fit
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import Gaussian, spectral
from grcd.references.mixture import Mixture
from grcd.runs import contents as saving
from grcd.tasks import sample as sampling
from grcd.training import loop as training
from grcd.training.methods import METHODS


@pytest.fixture(scope="module")
def brief(tiny, quick):
    """Fit the plain spectral model for a few updates, or another one, with other settings."""

    def brief(train=tiny.train, val=tiny.val, graph=tiny.graph, **changes):
        chosen = {**quick, "method": "grcd-exponential", "max_updates": 20, "seed": 3, **changes}
        return grcd.GRCD(graph, device="cpu", **chosen).fit(train, val)

    return brief


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """Read-only."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    fitted.save(folder)
    return folder


@pytest.fixture
def copied(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "copied"))


def without_network(fitted, method):
    """The model with a network that predicts nothing, as that method samples it."""
    return with_parts(sampled_as(fitted, method), network=Zeros())


@pytest.fixture
def noise(monkeypatch):
    """What the terminal draws are made from: filled as they are made."""
    seen, draw = [], Gaussian.draw
    noted = lambda self, xi, q=0.0, u=None: (seen.append(xi.numpy()), draw(self, xi, q))[1]  # noqa: E731
    monkeypatch.setattr(Gaussian, "draw", noted)
    return seen


def filtered(fitted, noise, response):
    """Noise with a response per mode, attenuated as at q_min, in the units of the data: samples by hand."""
    U, mu = fitted.graph.spectrum.U, fitted.process.mu.numpy()
    z = noise @ U * response * (1 + mu * 0.04**2) ** -0.5
    return (z @ U.T) * fitted.normalizer.std + fitted.normalizer.mean


# -- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exponential", "exponential-paper"])
@pytest.mark.parametrize("nfe", [1, 4, 5])
def test_without_a_residual_samples_are_draws_of_the_reference_at_the_last_level(fitted, noise, solver, nfe):
    # kappa 2, t from 1 to 0.02: levels 2 and 0.04. The propagator is exact, so the number of steps does not matter.
    found = without_network(fitted, "grcd-exponential").sample(9, nfe=nfe, seed=5, solver=solver)
    response = np.sqrt(fitted.reference.v.numpy() + 0.04**2)
    assert found == pytest.approx(filtered(fitted, np.concatenate(noise), response), rel=1e-10)


@pytest.mark.parametrize(("method", "terminal"), [("clock", "scalar"), ("clock+reference", "fitted")])
def test_the_clock_starts_from_the_scalar_reference_and_the_next_rung_from_the_fitted_one(
    fitted, noise, method, terminal
):
    # A noise prediction of zero leaves conjugate coordinates where they were drawn, at level 2.
    v = fitted.reference.v.numpy()
    v = np.full(6, v.mean()) if terminal == "scalar" else v
    found = without_network(fitted, method).sample(9, nfe=4, seed=5, solver="heun")
    assert found == pytest.approx(filtered(fitted, np.concatenate(noise), np.sqrt(v + 2.0**2)), rel=1e-10)


@pytest.mark.parametrize("solver", [name for name, row in SOLVERS.items() if row.process is not HeatProcess])
def test_every_solver_and_budget_gives_finite_signals_with_that_many_evaluations(fitted, solver):
    counted, calls = with_parts(fitted, network=copy.deepcopy(fitted.network)), []
    counted.network.register_forward_hook(lambda *_: calls.append(1))
    results = []
    for nfe in range(1, 7):
        calls.clear()
        results.append(counted.sample(4, nfe=nfe, solver=solver))
        assert len(calls) == SOLVERS[solver].spends(nfe)
    assert np.isfinite(results).all()
    assert len({x.tobytes() for x in results}) == (3 if SOLVERS[solver].to_zero else 6)


def test_a_seed_gives_the_same_signals_again_and_another_seed_others(fitted):
    x = fitted.sample(20, seed=1)
    assert np.array_equal(x, fitted.sample(20, seed=1))
    assert not np.isin(x, fitted.sample(20, seed=2)).any()
    assert len(np.unique(x)) == x.size


def test_the_size_of_a_batch_and_the_number_of_signals_change_nothing_but_rounding(fitted):
    x = fitted.sample(23, seed=1)
    for other in (fitted.sample(23, seed=1, batch=5), fitted.sample(23, seed=1, batch=1)):
        assert other == pytest.approx(x, rel=1e-5)
    assert fitted.sample(7, seed=1) == pytest.approx(x[:7], rel=1e-5)
    assert np.array_equal(fitted.sample(20, seed=1, batch=10)[:10], fitted.sample(10, seed=1))


@pytest.mark.parametrize("nfe", [1, 3])
def test_a_stochastic_solver_adds_noise_of_its_own_at_every_step(fitted, noise, nfe):
    # A noise prediction of zero leaves the terminal draw, at level 2, and the noise from there to level 0.04.
    found = without_network(fitted, "clock+reference").sample(9, nfe=nfe, seed=5, solver="euler-maruyama", rho=1)
    (drawn,), U, q = noise, fitted.graph.spectrum.U, np.linspace(2.0, 0.04, nfe + 1)
    x = drawn @ (U * np.sqrt(fitted.reference.v.numpy() + 2.0**2)) @ U.T
    for k in range(nfe):
        fresh = Stream(5, "steps").normal(k, 9 * 6).view(9, 6).numpy()
        x = x + np.sqrt(2 * q[k] * (q[k] - q[k + 1])) * fresh
    assert found == pytest.approx(filtered(fitted, x, 1.0), rel=1e-10)


@pytest.mark.parametrize("method", ["grcd-exponential", "edm"])
def test_a_stochastic_solver_serves_conjugate_and_isotropic_noise_at_every_budget(brief, method):
    model, calls = brief(method=method), []
    model.network.register_forward_hook(lambda *_: calls.append(1))

    def sample(n=23, nfe=6, seed=1, **choices):
        return model.sample(n, nfe=nfe, seed=seed, solver="euler-maruyama", **choices)

    for nfe in range(1, 9):
        calls.clear()
        assert np.isfinite(sample(nfe=nfe)).all()
        assert len(calls) == nfe
    x = sample()
    assert np.array_equal(x, sample())
    assert not np.isin(x, sample(seed=2)).any()
    for batch in (5, 1):
        assert sample(batch=batch) == pytest.approx(x, rel=1e-5)
    assert sample(7) == pytest.approx(x[:7], rel=1e-5)


def test_tf32_is_a_way_of_a_gpu(fitted):
    """Elsewhere there is but one float32. The setting of the process is what it was afterwards."""
    before = torch.get_float32_matmul_precision()
    assert np.array_equal(fitted.sample(5, nfe=3, precision="tf32"), fitted.sample(5, nfe=3))
    assert torch.get_float32_matmul_precision() == before


def test_what_is_asked_for_twice_in_a_row_is_noticed(fitted, monkeypatch):
    """Only then is a sampler worth capturing on a GPU; the seed is no part of it."""
    model, seen, make = copy.copy(fitted), [], sampling._sampler
    memory = model._memory = sampling.Memory()

    def noted(model, noise, precision, choices, place, memory):
        seen.append(memory is not None)
        return make(model, noise, precision, choices, place, memory)

    monkeypatch.setattr(sampling, "_sampler", noted)
    plain = {"n": 6, "nfe": 3}
    others = [{"n": 7}, {"nfe": 4}, {"solver": "heun"}, {"rho": 2.0}, {"grid": "log-snr"}, {"precision": "bfloat16"}]
    others += [{"precision": "tf32"}, {"start": 0.5}, {"grid": "entropy"}]
    for choices in [plain, *({**plain, **other} for other in others), plain]:
        seen.clear()
        memory.replays = {6: "captured for what was asked before"}
        model.sample(**choices)
        assert (seen, memory.replays) == ([False], {}), choices
        memory.replays = {6: "captured for this"}
        model.sample(seed=1, **choices)
        model.sample(seed=2, **choices)
        assert (seen, memory.replays) == ([False, True, True], {6: "captured for this"}), choices
    seen.clear()
    model.sample(batch=4, **plain)
    model.sample(batch=4, **plain)
    assert seen == [False, False, True, True]  # two batches each


def test_another_network_is_never_asked_for_again(tiny, brief, monkeypatch):
    seen, again = [], sampling.Memory.again
    monkeypatch.setattr(sampling.Memory, "again", lambda self, *asked: seen.append(again(self, *asked)) or seen[-1])
    model = brief()
    model.sample(3)
    model.sample(3)
    other = model.as_method("grcd-exponential")
    other.sample(3)
    model.sample(3)  # the first is not disturbed
    assert seen == [False, True, False, True]
    model.fit(tiny.train[::-1], tiny.val)
    model.sample(3)
    model.sample(3)
    assert seen[4:] == [False, True]


def test_the_network_alone_is_what_sampling_asks_of_it(fitted):
    counted, calls = with_parts(fitted, network=copy.deepcopy(fitted.network), batch=4), []
    counted.network.register_forward_hook(
        lambda network, args, out: calls.append((tuple(args[0].shape), torch.is_inference_mode_enabled()))
    )
    alone = sampling.network_alone(counted.diffusion, 10, evaluations=3)
    alone()
    once = [((rows, 6), True) for rows in (4, 4, 2) for _ in range(3)]
    assert calls == once
    alone()
    assert calls == once + once
    calls.clear()
    counted.sample(10, nfe=3)
    assert calls == once
    calls.clear()
    sampling.network_alone(counted.diffusion, 4, evaluations=1)()
    assert calls == [((4, 6), True)]


def test_samples_follow_the_units_of_the_training_signals(tiny, brief):
    scale, shift = np.array([10.0, 0.1, 3.0, 7.0, 1e-3, 1.0]), np.array([0.0, 5.0, -40.0, 1.0, 2.0, 1e3])
    x = brief().sample(15, seed=4)
    other = brief(tiny.train * scale + shift, tiny.val * scale + shift).sample(15, seed=4)
    assert (other - shift) / scale == pytest.approx(x, rel=1e-4)


def test_samples_follow_the_order_of_nodes(fitted, quick, monkeypatch):
    order = np.array([3, 0, 5, 1, 4, 2])
    manifest = copy.deepcopy(fitted.facts) | {"result": {}}
    manifest["normalizer"] = {key: [value[i] for i in order] for key, value in manifest["normalizer"].items()}
    moved = grcd.GRCD(fitted.graph.permuted(order), "grcd-exponential", device="cpu", seed=3, **quick)
    tensors = fitted.trained.tensors()
    moved._trained = saving.restored(moved.space, moved.config, moved.device, manifest, tensors)
    expected = fitted.sample(9, seed=5)[:, order]

    draw = Gaussian.draw
    monkeypatch.setattr(Gaussian, "draw", lambda self, xi, q=0.0, u=None: draw(self, xi[:, order], q))
    assert moved.sample(9, seed=5) == pytest.approx(expected, rel=1e-5)


def test_nothing_random_outside_of_the_model_is_touched_or_looked_at(brief):
    def fitted_and_sampled(seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
        x = brief().sample(5)
        assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
        return x

    assert np.array_equal(fitted_and_sampled(77), fitted_and_sampled(78))


# -- fit -----------------------------------------------------------------------------------------------------------


def test_fit_returns_the_model_and_the_seed_decides_what_it_learns(brief, tiny, quick):
    model = grcd.GRCD(tiny.graph, "grcd-exponential", **{**quick, "max_updates": 20})
    assert model.fit(tiny.train, tiny.val) is model
    assert np.array_equal(brief(seed=0).sample(4), model.sample(4))
    assert not np.isin(brief(seed=1).sample(4), model.sample(4)).any()


def test_the_default_is_the_method_of_that_name_with_settings_of_its_own(tiny, quick, sides):
    chosen = {"backbone": "node", "lr": 1e-3, "stopping": "gain", "max_updates": 12_000}
    chosen |= {"marginals": "auto", "integers": "auto", "support": "auto"}  # until there are data
    plain = grcd.GRCD(tiny.graph, "grcd-rho3", device="cpu").config.to_dict()
    assert grcd.GRCD(tiny.graph, device="cpu").config.to_dict() == plain | chosen | {"method": "grcd"}
    given = grcd.GRCD(tiny.graph, device="cpu", lr=0.5, backbone="gnn").config
    assert (given.lr, given.backbone, given.max_updates) == (0.5, "gnn", 12_000)
    one, other = (grcd.GRCD(tiny.graph, *name, device="cpu", **quick).fit(*sides) for name in ((), ("grcd",)))
    assert np.array_equal(one.sample(4), other.sample(4))


def test_without_validation_signals_the_last_tenth_of_training_validates(brief, tiny):
    expected = brief(tiny.train[:54], tiny.train[54:])
    found = brief(tiny.train, None)
    assert found.result["val"] == expected.result["val"]
    assert np.array_equal(found.sample(4), expected.sample(4))


def test_an_adjacency_is_as_good_as_a_graph(brief, tiny):
    assert np.array_equal(brief(graph=tiny.graph.weights.toarray()).sample(4), brief().sample(4))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda x: np.where(np.arange(6) == 2, np.nan, x),
            "1 node with fewer than two observed training signals: station 2",
        ),
        (lambda x: x[:, :5], r"training signals of shape \(60, 5\)\nexpected \(samples, 6\)"),
        (
            lambda x: np.where(np.arange(6) == 2, np.inf, x),
            "60 infinite .* training signals, at nodes station 2.*, the first in signal 1",
        ),
        (lambda x: x[:1], "1 sample in training signals"),
        (lambda x: np.where(np.arange(6) == 4, 0.1, x), "1 node whose training signals never change: station 4"),
        (lambda x: x[0], r"shape \(6,\)"),
    ],
)
def test_training_signals_that_cannot_work_are_refused(brief, tiny, spoil, message):
    with pytest.raises(grcd.InputError, match=message):
        brief(spoil(tiny.train))


def test_validation_signals_that_cannot_work_are_refused(brief, tiny):
    with pytest.raises(grcd.InputError, match=r"validation signals of shape \(30, 4\)"):
        brief(val=tiny.val[:, :4])
    with pytest.raises(grcd.InputError, match="left after a tenth"):
        brief(tiny.train[:2], None)
    with pytest.raises(grcd.InputError, match="validation signals in which nothing was observed"):
        brief(val=np.full((3, 6), np.nan))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widht": 4}, r"setting 'widht'\nexpected one of method, seed, kappa,.*max_updates, minutes\n.*'width'"),
        ({"method": "grdc"}, r"method 'grdc'\nexpected one of grcd, grcd-full,.*\n.*'grcd'"),
        ({"device": "tpu"}, "device 'tpu'"),
        ({"width": 0}, "width = 0"),
        ({"width": 2.5}, r"width = 2\.5\nexpected a whole number"),
        ({"lr": float("nan")}, "lr = nan"),
        ({"seed": -1}, "seed = -1"),
        ({"t_min": 1.0}, "t_min < t_max"),
        ({"time_dim": 7}, "even time_dim"),
        ({"ema": 1.0}, "ema below 1"),
        ({"width": float("inf")}, "width = inf"),
        ({"lr": 10**400}, "lr = 1000"),
    ],
)
def test_settings_that_cannot_work_are_refused(tiny, settings, message):
    with pytest.raises(grcd.InputError, match=message):
        grcd.GRCD(tiny.graph, **settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n = 0"),
        ({"n": True}, "n = True"),
        ({"n": 2.0}, "n = 2.0"),
        ({"nfe": 0}, "nfe = 0"),
        ({"solver": "hune"}, "did you mean 'heun'"),
        ({"rho": 0.0}, "rho = 0"),
        ({"grid": "linear"}, "one of power, log-snr, entropy"),
        ({"start": 0.0}, "start = 0.0\nexpected a share of the largest noise level, above 0.02 and at most 1"),
        ({"start": 0.02}, "start = 0.02"),  # the smallest level: nothing to integrate
        ({"start": 1.001}, "start = 1.001"),
        ({"start": float("nan")}, "start = nan"),
        ({"grid": [2.0, 0.04]}, "a grid of 2 levels\nexpected 3 levels"),
        ({"batch": -1}, "batch = -1"),
    ],
)
def test_requests_that_cannot_work_are_refused(fitted, arguments, message):
    with pytest.raises(grcd.InputError, match=message):
        fitted.sample(**{"n": 3, **arguments})


def test_a_seed_of_63_bits_makes_a_network_of_its_own_and_more_are_refused(tiny):
    def weights(seed):
        network = grcd.GRCD(tiny.graph, seed=seed, width=4).fresh_network()
        return torch.cat([p.detach().flatten() for p in network.parameters()])

    largest = 2**63 - 1
    assert torch.equal(weights(largest), weights(largest))
    for bit in (0, 31):  # torch takes no more of them; what else is random does
        assert not torch.equal(weights(largest), weights(largest - 2**bit))
    for seed in (2**63, 2**70, -1):
        with pytest.raises(grcd.InputError, match=f"got seed = {seed}"):
            grcd.GRCD(tiny.graph, seed=seed)


def test_a_model_that_was_not_fitted_neither_samples_nor_saves(tiny, tmp_path):
    model = grcd.GRCD(tiny.graph)
    for call in (lambda: model.sample(3), lambda: model.save(tmp_path / "run")):
        with pytest.raises(grcd.InputError, match="not been fitted"):
            call()
    assert not (tmp_path / "run").exists()


# -- saved and loaded ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["grcd", "grcd-exponential", "clock", "grcd-rho1"])
def test_a_loaded_model_gives_the_same_samples_to_the_bit(brief, tmp_path, method):
    model = brief(method=method)
    model.save(tmp_path / "run")
    loaded = grcd.load(tmp_path / "run", device="cpu")
    assert np.array_equal(loaded.sample(6, nfe=3, seed=9), model.sample(6, nfe=3, seed=9))
    assert loaded.config == model.config
    assert loaded.result == model.result
    assert (loaded.graph.hash, loaded.graph.origin) == (model.graph.hash, model.graph.origin)


def test_coordinates_and_names_of_nodes_are_loaded_too(tiny, brief, tmp_path):
    coords = np.arange(12).reshape(6, 2)
    brief(graph=grcd.Graph(tiny.graph.weights, tiny.graph.node_ids, coords)).save(tmp_path / "run")
    loaded = grcd.load(tmp_path / "run")
    assert np.array_equal(loaded.graph.coords, coords)
    assert loaded.graph.node_ids == tiny.graph.node_ids


def test_a_loaded_model_can_be_saved_elsewhere(saved, fitted, tmp_path):
    grcd.load(saved).save(tmp_path / "elsewhere")
    assert np.array_equal(grcd.load(tmp_path / "elsewhere").sample(4), fitted.sample(4))


def test_saving_over_another_model_needs_force(brief, copied):
    other = brief(seed=8)
    with pytest.raises(grcd.InputError, match=r"seed is 3 there and 8 here"):
        other.save(copied)
    other.save(copied, force=True)
    assert np.array_equal(grcd.load(copied).sample(4), other.sample(4))


def cut(path, share):
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def shorten(tensors, name):
    tensors[name] = tensors[name][:3].clone()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), "not a run folder"),
        (lambda f: (f / "run.json").unlink(), "not a run folder"),
        (lambda f: (f / "model.safetensors").unlink(), "damaged or missing"),
        (lambda f: cut(f / "model.safetensors", 0.0), "damaged"),
        (lambda f: cut(f / "model.safetensors", 0.5), "damaged"),
        (lambda f: cut(f / "model.safetensors", 0.999), "damaged"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 500), "damaged"),
        (lambda f: cut(f / "run.json", 0.5), "damaged"),
        (lambda f: (f / "run.json").write_bytes(b"\xff\xfe"), "damaged"),
        (lambda f: (f / "run.json").write_text("[]"), "damaged"),
        (lambda f: edit(f, lambda m: m.pop("config")), "damaged"),
        (lambda f: edit(f, lambda m: m.pop("node_ids")), "it lacks node_ids"),
        (lambda f: edit(f, lambda m: m.pop("result")), "it lacks result"),
        (lambda f: edit(f, lambda m: m["config"].update(width=16)), "do not fit together"),
        (lambda f: edit(f, lambda m: m.update(node_ids=["a"])), "do not fit together"),
        (lambda f: edit(f, lambda m: m.update(status="training")), "has not finished"),
        (lambda f: unsealed(f, format=3), r"format 3.*\n.*format 2 or older\n.*update grcd"),
        *[
            (lambda f, name=name: edit_tensors(f, lambda t: t.pop(name)), "do not fit together")
            for name in ("reference.v", "graph.data", "graph.indptr", "network.input.weight", "network.blocks.2.h")
        ],
        (lambda f: (f / "run.json").write_text('{"format": 3}'), "update grcd"),
        (lambda f: unsealed(f, format="x"), "format is 'x'"),
        (lambda f: unsealed(f, format=2), "it lacks its sha256"),
        (lambda f: edit(f, lambda m: m["config"].update(x=1)), "setting 'x'"),
        (lambda f: edit(f, lambda m: m["config"].update(method="x")), "method 'x'"),
        (lambda f: edit_tensors(f, lambda t: shorten(t, "reference.v")), "fit together"),
        (lambda f: edit(f, lambda m: m["normalizer"].update(mean=[0.0])), "fit together"),
        (lambda f: edit_tensors(f, lambda t: t["graph.data"].mul_(2)), "fit together"),
    ],
)
def test_a_damaged_or_foreign_run_is_refused_by_name(copied, damage, message):
    damage(copied)
    with pytest.raises(grcd.InputError, match=message) as caught:
        grcd.load(copied)
    assert str(copied) in str(caught.value)


def test_a_path_without_a_run_is_refused_and_the_runs_beside_it_are_named(copied):
    with pytest.raises(grcd.InputError, match=f"(?s)copid, which is not a run folder.*beside it: {copied}"):
        grcd.load(copied.parent / "copid")


# -- a mixture as the reference ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blended(brief, sides):
    """Read-only."""
    return brief(*sides, method="grcd-gnn")


def tensors_of(reference):
    return [reference.weights, reference.means, *(t for part in reference.parts for t in (part.v, part.B))]


def test_a_mixture_is_the_one_that_validation_signals_choose(blended, sides, brief):
    z = [torch.from_numpy(Normalizer.fit(sides[0], blended.graph).apply(x)) for x in sides]
    assert isinstance(blended.reference, Mixture)
    assert len(blended.reference.parts) == 2
    elsewhere = brief(sides[0], sides[1][:35], method="grcd-gnn")  # they say how many, and nothing else
    for found in (mixture_fit.select(*z), mixture_fit.fit(z[0], 2), elsewhere.reference):
        for one, other in zip(tensors_of(blended.reference), tensors_of(found), strict=True):
            assert torch.equal(one, other)


def test_one_full_gaussian_is_a_mixture_of_one_part_whatever_the_signals_look_like(brief, sides):
    model = brief(*sides, method="grcd-full", max_updates=1)
    z = torch.from_numpy(Normalizer.fit(sides[0], model.graph).apply(sides[0]))
    for found, expected in zip(tensors_of(model.reference), tensors_of(mixture_fit.fit(z, 1)), strict=True):
        assert torch.equal(found, expected)
    C, U = model.reference.covariance().numpy(), model.graph.spectrum.U
    assert np.abs(C - np.cov(z.T, bias=True)).max() < 0.05  # the whole of it,
    off = U.T @ C @ U
    assert np.abs(off - np.diag(np.diag(off))).max() > 0.1  # which a spectral reference leaves out in part


@pytest.mark.parametrize("nfe", [1, 4])
def test_without_a_residual_samples_of_a_mixture_are_its_draws_carried_along_its_flow(blended, nfe):
    bare, found = without_network(blended, "grcd-gnn"), blended.reference
    xi, u = Stream(5, "terminal").normal(0, 9 * 6).view(9, 6), Stream(5, "component").uniform(0, 9)
    cut = float(found.weights[0])
    assert 0 < int((u < cut).sum()) < 9  # both are drawn
    x = torch.stack([found.means[k] + found.parts[k].draw(e, 2.0) for k, e in zip((u >= cut).long(), xi, strict=True)])
    levels = np.linspace(2.0 ** (1 / 3), 0.04 ** (1 / 3), nfe + 1) ** 3
    for q0, q1 in pairwise(levels.tolist()):
        x = found.propagate(x, q1, q0, 16 // nfe)
    plain = {"solver": "residual-2m", "rho": 3.0, "start": 1.0}  # whatever the plan is
    assert bare.sample(9, nfe=nfe, seed=5, **plain) == pytest.approx(filtered(blended, x.numpy(), 1.0), rel=1e-10)


def test_batches_of_a_mixture_draw_what_all_together_would(blended):
    x = blended.sample(23, seed=1)
    for batch in (5, 1):
        assert blended.sample(23, seed=1, batch=batch) == pytest.approx(x, rel=1e-5)
    assert blended.sample(7, seed=1) == pytest.approx(x[:7], rel=1e-5)
    assert not np.isin(x, blended.sample(23, seed=2)).any()


def test_a_mixture_comes_back_from_its_folder_to_the_bit(blended, tmp_path):
    blended.save(tmp_path / "run")
    loaded = grcd.load(tmp_path / "run", device="cpu")
    for found, expected in zip(tensors_of(loaded.reference), tensors_of(blended.reference), strict=True):
        assert torch.equal(found, expected)
    for solver in ("residual-2m", "residual-3m", "heun", "dpm++2m"):
        samples = (model.sample(6, nfe=3, seed=9, solver=solver) for model in (loaded, blended))
        assert np.array_equal(*samples)


@pytest.mark.parametrize("name", ["weights", "means", "v", "B"])
def test_a_mixture_that_lost_a_part_is_refused(blended, tmp_path, name):
    blended.save(tmp_path / "run")
    edit_tensors(tmp_path / "run", lambda t: t.pop(f"reference.{name}"))
    with pytest.raises(grcd.InputError, match="do not fit together"):
        grcd.load(tmp_path / "run")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t | {"reference.weights": t["reference.weights"][:1]},
        lambda t: t | {"reference.means": t["reference.means"][:, :3]},
        lambda t: t | {"reference.B": t["reference.B"][:, :3]},
        lambda t: t | {"reference.B": t["reference.B"][:, :, :3]},
    ],
)
def test_a_mixture_whose_parts_differ_in_size_is_refused(blended, tmp_path, spoil):
    blended.save(tmp_path / "run")
    edit_tensors(tmp_path / "run", lambda t: t.update({k: v.contiguous() for k, v in spoil(dict(t)).items()}))
    with pytest.raises(grcd.InputError, match="do not fit together"):
        grcd.load(tmp_path / "run")


def test_a_model_of_one_reference_does_not_sample_as_one_of_another(blended, fitted):
    with pytest.raises(grcd.InputError, match="one that is trained alike: grcd-gnn\n"):
        blended.as_method("grcd-exponential")
    with pytest.raises(grcd.InputError, match="one that is trained alike: grcd-rho3, "):
        fitted.as_method("grcd-gnn")


def test_gaps_are_drawn_by_the_spectral_gaussian_when_the_reference_is_a_mixture(brief, sides, monkeypatch):
    """For the fit of the mixture, in training and in validation, from random numbers of their own."""
    holes = [np.where(np.random.RandomState(k).random_sample(x.shape) < 0.2, np.nan, x) for k, x in enumerate(sides)]
    fillers, init = [], training.Signals.__init__
    monkeypatch.setattr(
        training.Signals,
        "__init__",
        lambda self, x, filler, random: (fillers.append(filler), init(self, x, filler, random))[1],
    )
    model = brief(*holes, method="grcd-gnn")
    graph = model.graph
    z = [Normalizer.fit(holes[0], graph).apply(x) for x in holes]
    plain = spectral(ledoit_wolf(z[0]), graph.spectrum)
    assert len(fillers) == 2
    for filler in fillers:
        assert torch.equal(filler.covariance(), plain.covariance())
    purposes = ("reference gaps", "reference validation gaps")
    complete = [
        plain.completed(torch.from_numpy(x), Stream(3, purpose).normal(0, x.size).view(x.shape))
        for x, purpose in zip(z, purposes, strict=True)
    ]
    for found, expected in zip(tensors_of(model.reference), tensors_of(mixture_fit.select(*complete)), strict=True):
        assert torch.equal(found, expected)
    assert np.isfinite(model.sample(5)).all()
    assert model.result["val_reference_alone"] > 0


# -- every method ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tiny, sides, quick, tmp_path_factory):
    """A method, trained once for all tests on signals that tell one Gaussian from two, and its folder; what a network
    has learned is kept, little as it is. Read-only."""

    @cache
    def trained(method):
        folder = tmp_path_factory.mktemp("every") / "run"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training.Validation, "certain", lambda *networks: True)
            return grcd.GRCD(tiny.graph, method, seed=3, device="cpu", **quick).fit(*sides, run=folder), folder

    return trained


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_samples_and_comes_back_from_its_folder(trained, method):
    model, folder = trained(method)
    samples = [model.sample(7, nfe=nfe, seed=1) for nfe in (1, 2, 3, 8)]
    assert np.isfinite(samples).all()
    again = grcd.load(folder, device="cpu")
    assert np.array_equal(again.sample(7, nfe=8, seed=1), samples[-1])
    close(model.sample(7, nfe=8, seed=1, batch=3), samples[-1], 1e-5)
    assert not np.isclose(model.sample(7, nfe=8, seed=2), samples[-1]).any()


def test_methods_with_the_same_network_train_the_same_weights(trained):
    weights = {}
    for name, method in METHODS.items():
        model, _ = trained(name)
        # Other settings are the same here: given ones win over a method's.
        own = [getattr(model.config, setting) for setting in ("backbone", "optimizer", "shift")]
        kind = (method.process, method.parameterisation, method.reference, *own)
        weights.setdefault(kind, []).append([p.numpy().tobytes() for p in model.network.state_dict().values()])
    assert all(one == group[0] for group in weights.values() for one in group)
    assert len({tuple(group[0]) for group in weights.values()}) == len(weights) > 8


@pytest.mark.parametrize(
    ("method", "solver"),
    [
        ("grcd", "euler-maruyama-heat"),
        ("edm", "euler-maruyama-heat"),
        ("edm", "heun-paper"),
        ("edm", "exponential-paper"),
        *(("grcd-gnn", name) for name in ("exponential", "exponential-paper", "euler-maruyama-heat")),
        *(("gad", name) for name, row in SOLVERS.items() if name != "euler-maruyama-heat"),
    ],
)
def test_a_solver_of_another_process_is_refused(trained, method, solver):
    with pytest.raises(grcd.InputError, match=f"(?s){re.escape(repr(solver))} for .*{method}.*for its forward process"):
        trained(method)[0].sample(2, solver=solver)


def test_gad_at_its_authors_size_has_settings_of_its_own(tiny):
    native = {"width": 24, "shift": "unscaled", "optimizer": "adamw", "lr": 1e-4, "batch": 128, "ema": 0.0}
    native |= {"stopping": "none", "max_updates": 785_000, "validate_every": 2500}
    plain, model = (grcd.GRCD(tiny.graph, name, device="cpu").config.to_dict() for name in ("gad", "gad-native"))
    assert model == plain | native | {"method": "gad-native"}
    given = grcd.GRCD(tiny.graph, "gad-native", 5, "cpu", width=16, validate_every=10, lr=1e-3)
    assert given.config.to_dict() == model | {"width": 16, "validate_every": 10, "lr": 1e-3, "seed": 5}
    # Input 65 x 24 + 24; three blocks of 6 x 24 taps, 24 x 24 + 24, 2 x 24; output 24 + 1.
    network = grcd.GRCD(tiny.graph, "gad-native", device="cpu").fresh_network()
    assert sum(p.numel() for p in network.parameters()) == 1584 + 3 * (144 + 600 + 48) + 25 == 3985


def test_gad_and_gad_at_its_authors_size_share_no_network(brief, tmp_path):
    model = brief(method="gad-native", patience=8)
    with pytest.raises(grcd.InputError, match="one that is trained alike: gad-native\n"):
        model.as_method("gad")
    with pytest.raises(grcd.InputError, match="one that is trained alike: gad\n"):
        brief(method="gad").as_method("gad-native")
    model.save(tmp_path / "run")
    assert grcd.load(tmp_path / "run", device="cpu").config == model.config  # what was given, not the method's own
