"""Settings, methods and messages: what is known, what is refused, and how a user is told."""

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError, some, unknown
from grcd.diffusion.diffusion import TERMINALS
from grcd.diffusion.parameterisation import PARAMETERISATIONS
from grcd.diffusion.process import PROCESSES
from grcd.diffusion.solvers import SOLVERS
from grcd.references import REFERENCES
from grcd.training.config import Config
from grcd.training.methods import METHODS, find, sharing

many = examples(50)
WHOLE = [key for key, value in Config().to_dict().items() if isinstance(value, int)]
REAL = [key for key, value in Config().to_dict().items() if isinstance(value, float)]


def test_defaults_are_the_papers_hyperparameters():
    """Table app_hparams; ``eps_ref`` and ``t`` included. Width x blocks x taps decide the 61,185 parameters."""
    paper = {"kappa": 2.0, "sigma": 1.0, "delta": 0.05, "t_min": 0.02, "t_max": 1.0, "eps_ref": 1e-6}
    paper |= {"backbone": "gnn", "width": 128, "blocks": 3, "taps": 5, "time_dim": 64, "shift": "scaled"}
    paper |= {"optimizer": "adam", "lr": 3e-4, "weight_decay": 1e-4, "batch": 256, "clip": 1.0, "ema": 0.999}
    paper |= {"validate_every": 250, "patience": 8, "tolerance": 0.002, "max_updates": 40_000}
    own = {"method": "grcd", "seed": 0, "stopping": "gain", "marginals": "z-score", "support": ""}
    own |= {"integers": "no"}
    own |= {"window": 1, "calendar": "auto", "minutes": 0.0}
    assert Config().to_dict() == own | paper


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("width", "64", 64),
        ("width", 64.0, 64),
        ("max_updates", 5e3, 5000),
        ("lr", "1e-3", 0.001),
        ("kappa", 3, 3.0),
        ("method", "clock", "clock"),
        ("seed", 0, 0),
        ("weight_decay", 0, 0.0),
    ],
)
def test_values_become_the_type_of_their_field(key, value, expected):
    made = getattr(Config.make(**{key: value}), key)
    assert made == expected
    assert type(made) is type(expected)


@many
@given(
    width=st.integers(1, 4096),
    seed=st.integers(0, 2**63 - 1),
    lr=st.floats(1e-12, 10),
    kappa=st.floats(1e-3, 1e3),
    method=st.sampled_from(list(METHODS)),
)
def test_a_configuration_survives_being_written_to_a_file(**values):
    config = Config.make(**values)
    assert Config.make(**json.loads(json.dumps(config.to_dict()))) == config


def refused(key, value, message):
    with pytest.raises(InputError) as error:
        Config.make(**{key: value})
    assert re.match(message, str(error.value)), (key, value, str(error.value))


@pytest.mark.parametrize("value", [1.5, "1.5", "many", None, True, [1], math.nan, math.inf], ids=repr)
def test_what_is_no_whole_number_is_refused(value):
    for key in WHOLE:
        refused(key, value, f"got {key} = .*\nexpected a whole number\nto fix: give {key} as a whole number")


@pytest.mark.parametrize("value", ["fast", None, False, [1.0], math.nan, math.inf, "inf"], ids=repr)
def test_what_is_no_finite_number_is_refused(value):
    for key in REAL:
        refused(key, value, f"got {key} = .*\nexpected a finite number\nto fix: give {key} as a finite number")


@pytest.mark.parametrize("value", [0, -1])
def test_what_has_to_be_positive_is(value):
    for key in sorted({*WHOLE, *REAL} - {"seed", "weight_decay", "ema", "minutes"}):
        refused(key, value, f"got {key} = {value}.*\nexpected a value above zero: from .*\nto fix: .*{key}")


@pytest.mark.parametrize(
    "setting", ["blocks=2147483648", "width=1000000000", "sigma=1e308", "kappa=1e-300", "batch=100000000000", "lr=1e31"]
)
def test_absurd_numbers_are_refused(setting):
    key, value = setting.split("=")
    refused(key, value, f"got {key} = .*\nexpected a value above zero: from .* to ")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seed": -1}, "a value from 0 to"),
        ({"weight_decay": -1e-9}, "from 0 to 1,000"),
        ({"t_min": 1.0}, "t_min < t_max"),
        ({"t_min": 0.5, "t_max": 0.4}, "t_min < t_max"),
        ({"ema": 1.0}, "ema below 1"),
        ({"ema": -0.1}, "a value from 0 to 1"),
        ({"time_dim": 63}, "an even time_dim"),
    ],
)
def test_impossible_values_are_refused_however_the_configuration_is_built(values, expected):
    for build in (Config, Config.make):
        with pytest.raises(InputError, match=f"expected .*{expected}") as error:
            build(**values)
        assert all(f"{key} = {value}" in str(error.value) for key, value in values.items())


@pytest.mark.parametrize(("typo", "meant"), [("kapa", "kappa"), ("epsref", "eps_ref"), ("zzz", None)])
def test_an_unknown_setting_lists_the_known_ones_and_suggests_the_nearest(typo, meant):
    with pytest.raises(InputError) as error:
        Config.make(**{typo: 1})
    got, expected, fix = str(error.value).split("\n")
    assert got == f"got setting {typo!r}"
    assert expected == "expected one of " + ", ".join(Config().to_dict())
    assert fix == ("to fix: " + (f"did you mean {meant!r}?" if meant else "choose a known setting"))


def test_a_configuration_cannot_be_changed_after_it_was_checked():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().kappa = -1.0


# -- methods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typo", "meant"), [("grdc", "grcd"), ("grcd-rho-3", "grcd-rho3"), ("clock+referense", "clock+reference")]
)
def test_an_unknown_method_lists_the_known_ones_and_suggests_the_nearest(typo, meant):
    for ask in (find, Config, lambda name: Config.make(method=name)):
        with pytest.raises(InputError) as error:
            ask(typo)
        expected = f"got method {typo!r}\nexpected one of {', '.join(METHODS)}\nto fix: did you mean {meant!r}?"
        assert str(error.value) == expected


def test_every_method_is_made_of_parts_that_exist():
    for name in METHODS:
        method = find(name)
        assert method is METHODS[name]
        assert method.parameterisation in PARAMETERISATIONS, name
        assert method.terminal in TERMINALS, name
        assert method.reference in REFERENCES, name
        assert not (method.reference == "mixture" and SOLVERS[method.solver].gaussian), name
        assert not (method.planned and method.process != "conjugate"), name  # it starts at shares of a conjugate clock
        assert issubclass(PROCESSES[method.process], SOLVERS[method.solver].process), name
        assert Config.make(**dict(method.settings), method=name).method == name
        assert method.rho > 0, name


@pytest.mark.parametrize(
    ("one", "other", "part"),
    [
        ("clock", "clock+reference", "terminal"),
        ("clock+reference", "clock+reference+residual", "parameterisation"),
        ("clock+reference+residual", "clock+reference+residual+exponential", "solver"),
        ("clock+reference+residual+exponential", "grcd-rho3", "rho"),
        ("grcd-rho1", "grcd-rho3", "rho"),
        ("grcd-rho3", "grcd-exponential", "solver"),
        ("grcd", "grcd-full", "reference"),
        ("grcd", "grcd-spectral", "reference"),
        ("grcd", "grcd-sparse", "reference"),
        ("grcd", "grcd-gnn", "settings"),
        ("clock+reference", "grcd-epsilon-heun", None),
        ("clock+reference+residual+exponential", "grcd-rho1", None),
        ("gad", "gad-native", "settings"),
    ],
)
def test_neighbouring_methods_differ_in_one_part(one, other, part):
    """The rungs of the ladder (section 4.3), so that a difference in quality has one cause."""
    a, b = (dataclasses.asdict(find(name)) for name in (one, other))
    assert [key for key in a if key != "about" and a[key] != b[key]] == ([part] if part else [])


def test_methods_that_differ_in_sampling_only_share_one_network():
    assert find("grcd-rho1").network == find("grcd-rho3").network == find("grcd-exponential").network
    assert sharing(find("grcd-exponential"))[0] == "grcd-rho3"  # which names the runs of them all
    assert find("grcd-rho3").network == ("conjugate", "residual")
    assert find("clock").network == find("clock+reference").network
    assert find("clock+reference").network != find("clock+reference+residual").network
    assert find("edm").network == find("isotropic-ve").network == ("ve", "preconditioned")


def test_the_default_and_what_takes_one_part_of_it_back_have_a_network_each():
    ours = ("grcd", "grcd-full", "grcd-spectral", "grcd-sparse", "grcd-gnn")
    assert [sharing(find(name)) for name in ours] == [[name] for name in ours]
    assert [name for name, method in METHODS.items() if method.planned] == list(ours)
    assert [find(name).reference for name in ours] == ["mixture", "full", "spectral", "sparse", "mixture"]
    length = {"lr": 1e-3, "stopping": "gain", "max_updates": 12_000}
    for name in ours:
        backbone = {} if name == "grcd-gnn" else {"backbone": "node"}
        assert dict(find(name).settings) == backbone | length


def test_a_method_with_settings_of_its_own_shares_no_network_with_one_without():
    native = {"width": 24, "shift": "unscaled", "optimizer": "adamw", "lr": 1e-4, "batch": 128, "ema": 0.0}
    native |= {"stopping": "none", "max_updates": 785_000, "validate_every": 2500}
    assert dict(find("gad-native").settings) == native
    own = ["grcd", "grcd-full", "grcd-spectral", "grcd-sparse", "grcd-gnn", "gad-native"]
    assert [name for name, method in METHODS.items() if method.settings] == own
    assert (sharing(find("gad")), sharing(find("gad-native"))) == (["gad"], ["gad-native"])
    wider = dataclasses.replace(find("gad-native"), settings=tuple({**native, "width": 25}.items()))
    assert wider.network != find("gad-native").network  # values count, not only names


def test_whitened_scores_are_sampled_by_the_reverse_equation():
    assert (find("wsd-scalar").solver, find("wsd-graph").solver) == ("euler-maruyama", "euler-maruyama")


# -- messages ----------------------------------------------------------------------------------------------------------


def test_an_input_error_says_got_expected_and_to_fix():
    error = InputError("three", "two", "drop one")
    assert str(error) == "got three\nexpected two\nto fix: drop one"
    assert isinstance(error, ValueError), "callers that know nothing of this package can still catch it"


def test_without_a_near_name_the_advice_is_to_choose():
    assert str(unknown("grid", "zzz", iter(["power", "log-snr"]))) == (
        "got grid 'zzz'\nexpected one of power, log-snr\nto fix: choose a known grid"
    )
    assert "got grid 3\n" in str(unknown("grid", 3, ["power"])), "a name need not even be text"


@many
@given(names=st.lists(st.integers(0, 99), max_size=9), limit=st.integers(1, 9))
def test_a_short_list_shows_the_first_and_counts_the_rest(names, limit):
    shown, _, rest = some(iter(names), limit).partition(" and ")
    assert shown == ", ".join(map(str, names[:limit]))
    assert rest == (f"{len(names) - limit} more" if len(names) > limit else "")


@pytest.mark.parametrize(("key", "known"), [("optimizer", "adam, adamw"), ("shift", "scaled, unscaled")])
def test_an_unknown_optimizer_or_shift_lists_the_known_ones(key, known):
    with pytest.raises(InputError, match=f"got {key} 'sgd'\nexpected one of {known}"):
        Config.make(**{key: "sgd"})
