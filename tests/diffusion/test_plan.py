"""Plans: chosen one thing after the other on validation signals, kept with the model, and followed by ``sample``."""

import json
import math
from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
import torch
from folders import edit, record
from gaps import holes
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.spatial.distance import cdist
from trained import with_parts

import grcd
from grcd.core.rows import evenly
from grcd.core.streams import Stream
from grcd.data.normalizer import Normalizer
from grcd.diffusion import plan, solvers
from grcd.diffusion.plan import Choice
from grcd.metrics import distances as metrics
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral
from grcd.training.methods import METHODS

# -- choosing, with distances written by hand --------------------------------------------------------------------------

EVERY = [Choice(start, *grid, solver) for start, grid, solver in product(
    (1.0, 0.5, 0.25), (("power", 3.0), ("power", 1.0), ("entropy", 3.0)), ("residual-2m", "residual-3m")
)]  # fmt: skip


def asked(distance):
    """The plan, and what was asked for on the way to it."""
    calls = []
    chosen = plan.choose(lambda choice, nfe: calls.append((nfe, choice)) or distance(choice, nfe))
    return chosen, calls


def test_one_thing_after_the_other_is_varied_and_what_was_chosen_is_held():
    cost = {0.5: 1, 0.25: 2, 1.0: 3, "entropy": 0, "power": 5, "residual-3m": 1, "residual-2m": 2}
    chosen, calls = asked(lambda choice, nfe: cost[choice.start] + cost[choice.grid] + cost[choice.solver])
    some = [Choice(1.0), Choice(0.5), Choice(0.25)]
    grids, joined = [Choice(0.5, rho=1.0), Choice(0.5, "entropy")], [Choice(0.5, "entropy", solver="residual-3m")]
    made = {1: some, 2: some + grids, 4: some + grids + joined}
    assert calls == [(nfe, choice) for nfe, each in made.items() for choice in each]
    assert chosen == {1: Choice(0.5), 2: Choice(0.5, "entropy"), 4: Choice(0.5, "entropy", 3.0, "residual-3m")}


@examples(50)
@given(st.lists(st.integers(0, 3), min_size=3 * 18, max_size=3 * 18))
def test_the_plan_is_that_of_a_naive_search_and_of_equal_ones_the_first(values):
    known = dict(zip(product(plan.BUDGETS, EVERY), values, strict=True))
    chosen, calls = asked(lambda choice, nfe: known[nfe, choice])
    for nfe in plan.BUDGETS:
        best = {}
        for options in plan.CANDIDATES[:nfe]:
            best |= min(options, key=lambda option: known[nfe, Choice(**(best | option))])
        assert chosen[nfe] == Choice(**best)
    assert len(calls) == len(set(calls)) == plan.count()  # nothing is generated twice


def test_where_nothing_makes_a_difference_the_first_of_each_is_taken():
    assert plan.choose(lambda choice, nfe: 0.0) == {1: Choice(), 2: Choice(), 4: Choice()}


def test_one_evaluation_has_no_grid_and_nothing_to_join_up():
    chosen, calls = asked(lambda choice, nfe: choice.rho + (choice.grid == "power") + (choice.solver == "residual-2m"))
    assert [choice for nfe, choice in calls if nfe == 1] == [Choice(1.0), Choice(0.5), Choice(0.25)]
    assert chosen[1] == Choice()
    assert chosen[2] == Choice(1.0, "power", 1.0)  # two evaluations are joined up in one way
    assert chosen[4] == Choice(1.0, "power", 1.0, "residual-3m")


@pytest.mark.parametrize(("gain", "taken"), [(0.0009, False), (0.0011, True)])
def test_a_gain_below_one_per_cent_is_chance(gain, taken):
    chosen = plan.choose(lambda choice, nfe: 0.1 - gain * (choice.start == 0.5))
    assert set(chosen.values()) == {Choice(0.5 if taken else 1.0)}
    below = plan.choose(lambda choice, nfe: -0.1 - gain * (choice.start == 0.5))  # unbiased: it may be below zero
    assert set(below.values()) == {Choice(0.5 if taken else 1.0)}


@pytest.mark.parametrize("spoilt", ["x", [], None, {"1": None}, {"1": {"speed": 3}}, {"one": {}}])
def test_what_is_no_plan_is_refused_with_its_run(planned, tmp_path, spoilt):
    planned.save(tmp_path / "run")
    edit(tmp_path / "run", lambda told: told["result"].update(plan=spoilt))
    with pytest.raises(grcd.InputError, match="do not fit together" if isinstance(spoilt, dict) else "result.plan is"):
        grcd.load(tmp_path / "run")


def test_a_distance_that_is_not_a_number_is_never_the_smallest():
    known = {choice: 2.0 if choice == Choice() else math.nan for choice in EVERY} | {Choice(0.25): 1.0}
    assert set(plan.choose(lambda choice, nfe: known[choice]).values()) == {Choice(0.25)}


def test_a_budget_takes_the_choice_of_the_largest_one_not_above_it():
    one, two, four = Choice(0.25), Choice(0.5), Choice(rho=1.0)
    known = {4: four, 1: one, 2: two}  # in any order
    found = [plan.at(known, nfe) for nfe in (0, 1, 2, 3, 4, 5, 64, 10**9)]
    assert found == [None, one, two, two, four, four, four, four]
    assert plan.at({4: four}, 3) is None
    assert plan.at({}, 4) is None
    assert plan.at(known, np.int64(3)) == two


choices = st.builds(
    Choice, st.floats(0.01, 1), st.sampled_from(["power", "entropy"]), st.floats(0.1, 9), st.sampled_from(["a", "b"])
)


@examples(50)
@given(st.dictionaries(st.integers(1, 1000), choices, max_size=5))
def test_a_plan_comes_back_from_a_file(made):
    assert plan.of(json.loads(json.dumps(plan.to_dict(made)))) == made


# -- on a model --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tiny, quick, sides):
    """Two sides, a mixture, and a network that starts anywhere: there is a residual, and much to choose."""

    def trained(train=sides[0], val=sides[1], run=None, **changes):
        chosen = {**quick, "method": "grcd-gnn", "seed": 3, **changes}
        return grcd.GRCD(tiny.graph, device="cpu", **chosen).fit(train, val, run=run)

    return trained


@pytest.fixture(scope="module")
def planned(trained):
    """Read-only."""
    return trained()


@pytest.fixture
def seen(monkeypatch):
    """What was compared: pairs of generated and validation signals, in the order of the candidates."""
    pairs, energy = [], metrics.energy
    monkeypatch.setattr(metrics, "energy", lambda x, y, device: pairs.append((x, y)) or energy(x, y, device))
    return pairs


def naive_energy(x, y):
    n, m = len(x), len(y)
    return 2 * cdist(x, y).mean() - cdist(x, x).sum() / (n * (n - 1)) - cdist(y, y).sum() / (m * (m - 1))


def generated(model, choice, nfe, n=1000):
    """Signals from the noise that plans are chosen with, made of the parts of the model."""
    seed = model.config.seed
    xi, u = Stream(seed, "plan").normal(0, n * 6).view(n, 6), Stream(seed, "component").uniform(0, n)
    levels = solvers.levels(
        choice.solver, nfe, model.process, choice.grid, choice.rho, model.reference, start=choice.start
    )
    assert levels[0] == choice.start * 2.0  # kappa 2
    with torch.no_grad():
        x = model.reference.draw(xi, levels[0], u)  # which component is chosen is the same for all purposes
        eps = model.diffusion.prediction()
        x = solvers.solve(choice.solver, eps, x, nfe, model.process, model.reference, tuple(levels))
        return model.process.to_graph(x, levels[-1])


def bare(model, chosen=None):
    """The same model with another plan, by default with none."""
    return with_parts(model, plan=chosen or {})


def test_the_plan_is_what_brings_signals_nearest_to_validation_signals(trained, sides):
    model, distances = trained(), {}
    real = Normalizer.fit(sides[0], model.graph).apply(sides[1])

    def distance(choice, nfe):
        return distances.setdefault((choice, nfe), naive_energy(generated(model, choice, nfe).numpy(), real))

    assert model.plan == plan.choose(distance)
    assert set(model.plan) == {1, 2, 4}
    assert len(set(model.plan.values())) > 1  # there was something to choose,
    assert np.diff(sorted(distances.values())).min() > 1e-9  # and rounding decided nothing


def test_candidates_are_compared_on_the_same_noise_with_all_validation_signals(trained, seen, sides):
    model = trained()
    z = torch.from_numpy(Normalizer.fit(sides[0], model.graph).apply(sides[1]))
    assert len(seen) == plan.count() == 14
    assert all(torch.equal(real, z) for _, real in seen)
    for k, (choice, nfe) in enumerate(((Choice(), 1), (Choice(0.5), 1), (Choice(0.25), 1), (Choice(), 2))):
        close(seen[k][0], generated(model, choice, nfe), 1e-5)
    # Samples of the same seed are others: what a plan was chosen on is not what it is judged by.
    sampled = model.normalizer.apply(bare(model).sample(1000, nfe=1, seed=3))
    assert not np.isclose(sampled, seen[0][0].numpy()).all(axis=1).any()


def test_of_many_validation_signals_a_thousand_are_enough(trained, seen, sides):
    val = np.random.RandomState(1).standard_normal((1234, 6)) + sides[1].mean(axis=0)
    trained(val=val, max_updates=1)
    z = Normalizer.fit(sides[0], grcd.Graph.from_adjacency(np.ones((6, 6)) - np.eye(6))).apply(val)
    rows = np.array([int(k * 1233 / 999 + 1e-9) for k in range(1000)])  # evenly spaced, both ends among them
    assert np.array_equal(rows, evenly(1234, 1000))
    assert np.array_equal(seen[0][1].numpy(), z[rows])
    assert len(seen[0][0]) == 1000


def test_too_few_validation_signals_leave_the_first_of_each(trained, seen, sides):
    assert plan.LEAST == 30
    few = trained(val=sides[1][:29], max_updates=1)
    assert seen == []
    assert few.plan == {1: Choice(), 2: Choice(), 4: Choice()}
    assert few.result["plan"] == {nfe: asdict(Choice()) for nfe in ("1", "2", "4")}
    trained(val=sides[1][:30], max_updates=1)
    assert len(seen) == 14


def test_gaps_in_validation_signals_are_drawn_by_the_spectral_gaussian(trained, seen, sides):
    train, val = holes(sides[0]), holes(sides[1], seed=1)
    val[7] = np.nan  # a signal of which nothing was observed says nothing
    model = trained(train, val)
    normalizer = Normalizer.fit(train, model.graph)
    z = torch.from_numpy(normalizer.apply(np.delete(val, 7, axis=0)))
    plain = spectral(ledoit_wolf(normalizer.apply(train)), model.graph.spectrum)
    expected = plain.completed(z, Stream(3, "plan gaps").normal(0, z.numel()).view_as(z))
    assert z.isnan().any()
    assert torch.equal(seen[0][1], expected)
    assert all(math.isfinite(naive_energy(x.numpy(), y.numpy())) for x, y in seen)
    assert set(model.plan) == {1, 2, 4}
    assert np.isfinite(model.sample(20, nfe=2)).all()


def test_methods_that_are_not_planned_have_no_plan(trained, seen):
    model = trained(method="grcd-exponential", max_updates=1)
    assert (model.plan, seen) == ({}, [])
    assert "plan" not in model.result


def test_a_second_fit_makes_a_plan_of_its_own(trained, planned, sides):
    model = trained()
    assert model.plan == planned.plan
    model.fit(sides[0], sides[1][:10])
    assert model.plan == {1: Choice(), 2: Choice(), 4: Choice()}


# -- what sample does without being told -------------------------------------------------------------------------------

PLAN = {  # everything differs from the method's own, and from budget to budget
    1: Choice(0.25),
    2: Choice(0.5, "entropy", 3.0, "residual-3m"),
    4: Choice(0.75, "power", 1.0, "residual-3m"),
}


@pytest.mark.parametrize("nfe", [1, 2, 3, 4, 5, 9])
def test_samples_are_those_of_the_plans_choice_to_the_bit(planned, nfe):
    for model in (planned, bare(planned, PLAN)):
        choice = plan.at(model.plan, nfe)
        explicit = {key: value for key, value in asdict(choice).items() if key != "rho" or choice.grid == "power"}
        x = model.sample(7, nfe=nfe, seed=5)
        assert np.array_equal(x, bare(model).sample(7, nfe=nfe, seed=5, **explicit))
        assert np.array_equal(x, model.sample(7, nfe=nfe, seed=5, **explicit))
    assert np.abs(x - bare(planned).sample(7, nfe=nfe, seed=5)).max() > 1e-3  # a plan makes a difference


@pytest.mark.parametrize(
    ("nfe", "told", "meant"),
    [
        (2, {"solver": "heun"}, {"start": 0.5, "grid": "entropy", "solver": "heun"}),
        (2, {"grid": "log-snr"}, {"start": 0.5, "grid": "log-snr", "solver": "residual-3m"}),
        (2, {"grid": "power"}, {"start": 0.5, "grid": "power", "rho": 3.0, "solver": "residual-3m"}),
        (2, {"start": 1.0}, {"start": 1.0, "grid": "entropy", "solver": "residual-3m"}),
        # An exponent is that of a power law,
        (2, {"rho": 2.0}, {"start": 0.5, "grid": "power", "rho": 2.0, "solver": "residual-3m"}),
        (4, {"rho": 2.0}, {"start": 0.75, "grid": "power", "rho": 2.0, "solver": "residual-3m"}),
        # unless a grid is named that has none.
        (2, {"rho": 2.0, "grid": "log-snr"}, {"start": 0.5, "grid": "log-snr", "solver": "residual-3m"}),
        (4, {"grid": [1.9, 1.0, 0.5, 0.2, 0.05]}, {"grid": [1.9, 1.0, 0.5, 0.2, 0.05], "solver": "residual-3m"}),
    ],
)
def test_what_is_given_is_taken_and_the_rest_is_the_plans(planned, nfe, told, meant):
    found = bare(planned, PLAN).sample(7, nfe=nfe, seed=5, **told)
    assert np.array_equal(found, bare(planned).sample(7, nfe=nfe, seed=5, **meant))


@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("grcd-exponential", {"solver": "exponential", "rho": 3.0}),
        ("grcd-rho1", {"solver": "exponential-paper", "rho": 1.0}),
        ("edm", {"solver": "heun-edm", "rho": 7.0}),
    ],
)
def test_without_a_plan_the_methods_own_solver_and_exponent_are_taken_from_the_largest_level_on(trained, method, own):
    model = trained(method=method, max_updates=1)
    assert np.array_equal(model.sample(5, nfe=6), model.sample(5, nfe=6, **own, grid="power", start=1.0))


def test_a_budget_below_the_plans_is_left_to_the_method(planned):
    late = bare(planned, {4: Choice(0.5)})
    assert np.array_equal(late.sample(5, nfe=2), bare(planned).sample(5, nfe=2))
    assert np.array_equal(late.sample(5, nfe=4), bare(planned).sample(5, nfe=4, start=0.5))


@pytest.mark.parametrize("nfe", [1, 2, 4])
def test_where_the_residual_is_zero_every_choice_gives_the_same_draws_of_a_gaussian_reference(trained, nfe):
    """The promise of the module: what validation signals prefer cannot harm a network that has learned nothing."""
    model = trained(method="grcd-spectral", max_updates=1, lr=1e-30)
    assert float(model.network(torch.ones(1, 6), torch.tensor(0.5)).abs().max()) < 1e-25
    xi, (U, mu) = Stream(5, "terminal").normal(0, 9 * 6).view(9, 6).numpy(), (model.graph.spectrum.U, model.process.mu)
    response = np.sqrt((model.reference.v.numpy() + 0.04**2) / (1 + mu.numpy() * 0.04**2))  # at the last level
    expected = (xi @ U * response) @ U.T * model.normalizer.std + model.normalizer.mean
    for choice in EVERY:
        assert bare(model, {nfe: choice}).sample(9, nfe=nfe, seed=5) == pytest.approx(expected, rel=1e-10), choice


# -- kept with the model -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(planned, tmp_path):
    planned.save(tmp_path / "run")
    return tmp_path / "run"


def test_a_plan_is_saved_and_loaded_with_its_model(planned, folder):
    loaded = grcd.load(folder, device="cpu")
    assert loaded.plan == planned.plan
    assert loaded.result == planned.result
    assert record(folder)["result"]["plan"] == plan.to_dict(planned.plan) == planned.result["plan"]
    for nfe in (1, 2, 3, 8):
        assert np.array_equal(loaded.sample(6, nfe=nfe, seed=9), planned.sample(6, nfe=nfe, seed=9))


def test_the_file_decides_how_a_loaded_model_samples(planned, folder):
    edit(folder, lambda told: told["result"].update(plan=plan.to_dict(PLAN)))
    loaded = grcd.load(folder, device="cpu")
    assert loaded.plan == PLAN
    assert np.array_equal(loaded.sample(6, nfe=2), bare(planned, PLAN).sample(6, nfe=2))
    edit(folder, lambda told: told["result"].pop("plan"))  # a run from before there were plans
    assert np.array_equal(grcd.load(folder, device="cpu").sample(6, nfe=2), bare(planned).sample(6, nfe=2))


@pytest.mark.parametrize("wrong", [{"four": asdict(Choice())}, {"4": {"begin": 0.5}}, {"4": 0.5}])
def test_a_plan_that_is_none_is_refused(folder, wrong):
    edit(folder, lambda told: told["result"].update(plan=wrong))
    with pytest.raises(grcd.InputError, match="do not fit together"):
        grcd.load(folder)


def test_a_run_that_finished_has_its_plan_without_choosing_again(trained, planned, seen, tmp_path):
    trained(run=tmp_path / "run")
    assert len(seen) == 14
    again = trained(run=tmp_path / "run")
    assert len(seen) == 14
    assert again.plan == planned.plan


@pytest.mark.parametrize("where", ["training", "planning"])
def test_a_run_that_was_interrupted_ends_with_the_same_plan(trained, planned, tmp_path, monkeypatch, where):
    calls, energy, log = [], metrics.energy, grcd.runs.folder.Run.log

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return energy(*args)

    def stopped(self, state, record):
        log(self, state, record)
        if state.update == 40:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "training":
            patch.setattr(grcd.runs.folder.Run, "log", stopped)
        else:
            patch.setattr(metrics, "energy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(run=tmp_path / "run")
    assert record(tmp_path / "run")["status"] == "training"
    found = trained(run=tmp_path / "run")
    assert found.plan == planned.plan
    assert record(tmp_path / "run")["result"] | {"seconds": 0} == planned.result | {"seconds": 0}
    assert np.array_equal(found.sample(5, nfe=2), planned.sample(5, nfe=2))


def test_as_another_method_the_plan_goes_along_only_if_that_one_is_planned(planned, monkeypatch):
    monkeypatch.setitem(METHODS, "unplanned", replace(METHODS["grcd-gnn"], planned=False, rho=1))
    other = planned.as_method("unplanned")
    assert other.plan == {}
    assert np.array_equal(other.sample(5, nfe=2), bare(planned).sample(5, nfe=2, rho=1.0))
    same = planned.as_method("grcd-gnn")
    assert same.plan == planned.plan != {}
    assert np.array_equal(same.sample(5, nfe=2), planned.sample(5, nfe=2))
