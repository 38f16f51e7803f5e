"""The scale of readings: what is true is chosen where it is known, z-scores wherever nothing else wins for certain."""

import numpy as np
import pytest
from laws import close

import grcd
from grcd.data.series import Series
from grcd.graphs.space import SignalSpace
from grcd.training import marginals
from grcd.training.marginals import Cost
from grcd.training.window_config import AS_THEY_ARE, OURS, configured

NODES, ROWS = 6, 900
GRAPH = grcd.Graph.from_adjacency(np.ones((NODES, NODES)) - np.eye(NODES))


def correlated(seed: int, rows: int = ROWS, past: float = 0.7) -> np.ndarray:
    """Standard normal, correlated between nodes and in time."""
    random = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.6 + 0.4 * np.eye(NODES))
    e = random.standard_normal((rows, NODES)) @ root.T
    for t in range(1, rows):
        e[t] = past * e[t - 1] + np.sqrt(1 - past**2) * e[t]
    return e


def laws(seed: int) -> dict[str, np.ndarray]:
    random, e = np.random.default_rng(seed + 100), correlated(seed)
    return {
        "normal": 10 + 2 * e,
        "lognormal": np.exp(1 + e),
        "squared": np.square(2.5 + e),
        "counts": random.poisson(np.exp(0.9 * e - 0.5)).astype(float),
        "rain": np.maximum(0, e - 0.5) ** 1.5,
    }


def verdict(x: np.ndarray, steps: int, mixture: bool = False, times=None) -> marginals.Verdict:
    cut = round(0.8 * len(x))
    parts = [
        Series(x[rows, :, None], None if times is None else times[rows]) for rows in (slice(cut), slice(cut, None))
    ]
    (found,) = marginals.choose(SignalSpace(GRAPH, steps), *parts, "auto", mixture)
    return found


@pytest.mark.parametrize("steps", [1, 6])
def test_laws_whose_scale_is_known(steps):
    x = laws(0)
    assert verdict(x["normal"], steps).scale == "z-score"
    assert verdict(x["lognormal"], steps).scale == "log"
    assert verdict(x["squared"], steps).scale == "root"
    assert verdict(x["rain"], steps).scale == "quantile"
    counts = verdict(x["counts"], steps)
    assert counts.scale == "quantile"
    assert counts.kind.whole
    assert counts.crps["quantile"] < 1.01 * min(counts.crps.values())


def test_beside_a_mixture_a_scale_has_to_win_again():
    x = np.exp(correlated(0, past=0.0))
    found, plain = verdict(x, 1, mixture=True), verdict(x, 1)
    assert found.scale == plain.scale == "log"
    gains = [each.crps["z-score"] / each.crps["log"] for each in (found, plain)]
    assert 1 < gains[0] < gains[1]  # several Gaussians make up for some of the shape


@pytest.mark.parametrize("seed", range(3))
def test_few_rows_and_normal_ones_are_left_on_z_scores(seed):
    assert verdict(laws(seed)["lognormal"][:70], 6).scale == "z-score"
    assert verdict(10 + correlated(seed), 1).scale == "z-score"
    uniform = np.random.default_rng(seed).uniform(3, 4, (300, NODES))  # flat, and far from zero: no scale helps
    assert verdict(uniform, 1).scale in ("z-score", "quantile")
    assert verdict(uniform, 1).scale != "log"


def test_a_mean_by_the_clock_is_not_taken_for_a_shape():
    times = np.datetime64("2024-01-01T00") + np.arange(ROWS) * np.timedelta64(1, "h")
    x = 20 * np.sin(np.arange(ROWS) / 24 * 2 * np.pi)[:, None] + correlated(0)
    assert marginals._shaped(x)  # two humps
    found = verdict(x, 6, times=times)
    assert found.scale == "z-score"
    assert found.crps["z-score"] < 0.8 * found.crps["quantile"]


def test_units_do_not_matter():
    x = laws(0)["lognormal"]
    one, other = verdict(x, 6), verdict(1000 * x, 6)
    assert one.scale == other.scale
    for name in one.crps:
        close(other.crps[name], 1000 * one.crps[name], 1e-6)


def test_a_gain_has_to_exceed_its_noise_and_a_hundredth():
    random = np.random.default_rng(0)
    level = np.full(3, 400.0)
    cost = Cost(100 + random.standard_normal(12), level, 1000)
    assert not cost.beats(cost, 1)
    assert Cost(cost.blocks - 5 + 0.1 * random.standard_normal(12), level - 20, 1000).beats(cost, 3)
    assert not Cost(cost.blocks - 0.5, level - 2, 1000).beats(cost, 1)  # certain, and not worth it
    assert not Cost(cost.blocks - 5 + 30 * random.standard_normal(12), level - 20, 1000).beats(cost, 1)
    assert not Cost(cost.blocks - 5, level + np.array([-40, -40, 20]), 1000).beats(
        cost, 1
    )  # at the cost of one kind of gap
    assert not Cost(np.full(12, np.inf), level, 1000).beats(cost, 1)


# -- settings --------------------------------------------------------------------------------------------------------


def settle(config, *channels):
    values = np.stack(channels, axis=2)
    space = SignalSpace(GRAPH, config.window, len(channels))
    return marginals.settled(config, space, Series(values[:700]), Series(values[700:]))


def test_settings_are_settled_channel_by_channel_and_those_that_were_named_are_left():
    import torch

    x, cpu = laws(0), torch.device("cpu")
    config, verdicts = settle(configured("grcd", 0, 6, 2, cpu, {}), x["counts"], x["normal"])
    assert [each.kind.whole for each in verdicts] == [True, False]
    assert config.marginals.endswith(",z-score")
    assert (config.integers, config.support) == ("yes,no", "0.0,inf;-inf,inf")
    named = {"marginals": "z-score", "support": "-5,inf"}
    config, _ = settle(configured("grcd", 0, 6, 1, cpu, named), x["counts"])
    assert (config.marginals, config.integers, config.support) == ("z-score", "yes", "-5.0,inf")
    config, verdicts = settle(configured("grcd", 0, 6, 1, cpu, AS_THEY_ARE), x["counts"])
    assert (config, verdicts) == (configured("grcd", 0, 6, 1, cpu, AS_THEY_ARE), [])


def test_the_papers_methods_take_readings_as_they_are():
    import torch

    for method in ("grcd-rho3", "edm", "clock"):
        config = configured(method, 0, 1, 1, torch.device("cpu"), {}).to_dict()
        assert {key: config[key] for key in AS_THEY_ARE} == AS_THEY_ARE
    config = configured("grcd", 0, 1, 1, torch.device("cpu"), {}).to_dict()
    assert {key: config[key] for key in OURS} == OURS


def test_few_rows_of_which_many_are_zero_have_their_own_quantiles_and_others_z_scores():
    random = np.random.RandomState(0)
    rare, often = (random.poisson(rate, (50, 6)).astype(float) for rate in (0.6, 9.0))
    assert [verdict(x, 1).scale for x in (rare, often, rare[:20])] == ["quantile", "z-score", "z-score"]


def test_in_words():
    x = laws(0)
    found = verdict(x["counts"], 6)
    lines = marginals.words([found], configured_limits("0,inf", "yes"), ("",))
    assert lines[0] == f"readings: {found.kind}"
    assert lines[1].startswith("scale: ")
    assert lines[1].endswith("; drawn: whole numbers, from 0 up")
    known = marginals.words([verdict(x["normal"], 6)], configured_limits("", "no"), ("",))
    assert known == ["readings: none negative", "scale: z-scores"]
    assert marginals.words([verdict(x["normal"] - 100, 6)], configured_limits("", "no"), ("",)) == []


def configured_limits(support, integers):
    return grcd.Config(support=support, integers=integers).limits()
