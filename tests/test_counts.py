"""Readings that are not just any numbers through a whole model: counts, zeros, limits, scales; windows and moments."""

import json

import numpy as np
import pandas as pd
import pytest
from folders import edit, record
from laws import close

import grcd
from grcd.core.errors import InputWarning

NODES, STEPS, ROWS = 4, 4, 500
NAMES = [f"s{i}" for i in range(NODES)]
W = np.ones((NODES, NODES)) - np.eye(NODES)
TIMES = pd.date_range("2024-01-01", periods=ROWS, freq="h", name="time")
QUICK = {"width": 8, "blocks": 1, "heads": 2, "pool": 100, "max_updates": 2, "validate_every": 2}
ALONE = {"backbone": "none"}  # moments without a network


def shared(seed=0):
    """(rows, nodes) standard normal, correlated between nodes and in time."""
    random = np.random.default_rng(seed)
    e = random.standard_normal((ROWS, NODES)) @ np.linalg.cholesky(0.7 + 0.3 * np.eye(NODES)).T
    for t in range(1, ROWS):
        e[t] = 0.8 * e[t - 1] + 0.6 * e[t]
    return e


def counts(seed=0):
    return np.random.default_rng(seed + 50).poisson(np.exp(0.9 * shared(seed) - 0.3)).astype(float)


def graph():
    return grcd.Graph.from_adjacency(W, node_ids=NAMES)


def gaps(x, share=0.2):
    return np.where(np.random.default_rng(9).random(x.shape) < share, np.nan, x)


def trained(x, window, **settings):
    """A model of arrays (rows, nodes[, channels])."""
    model = grcd.GRCD(graph(), device="cpu", window=window, **(QUICK if window > 1 else ALONE), **settings)
    if window == 1:
        return model.fit(x)
    with pytest.warns(InputWarning, match="reference is used alone"):
        return model.fit(x, times=TIMES.to_numpy())


@pytest.fixture(scope="module")
def both():
    """Windows of counts and of temperatures, two channels."""
    return trained(np.stack([gaps(counts()), 10 + 3 * shared(1)], axis=2), STEPS)


@pytest.fixture(scope="module")
def moments():
    return trained(gaps(counts()), 1)


def whole(x):
    x = np.asarray(x)
    return np.array_equal(x, np.rint(x)) and (x >= 0).all()


def test_counts_stay_counts_in_everything_that_is_drawn_in_time(both):
    x = np.stack([gaps(counts(3)), 10 + 3 * shared(4)], axis=2)[:60]
    assert both.config.integers == "yes,no"
    assert both.config.support == "0.0,inf;-inf,inf"
    times = TIMES[:60].to_numpy()
    drawn = {
        "impute": both.impute(x, n=6, times=times),
        "quantiles": both.impute(x, quantiles=[0.1, 0.5, 0.85], times=times),
        "forecast": both.forecast(x, 3, n=6, times=times),
        "sample": both.sample(20),
        "augment": both.augment(both.impute(x, n=1, times=times)[0], 0.3, times=times),
    }
    for what, values in drawn.items():
        assert whole(values[..., 0]), what
        assert not np.array_equal(values[..., 1], np.rint(values[..., 1])), what


def test_counts_stay_counts_at_single_moments(moments):
    x = gaps(counts(3))[:60]
    assert (moments.config.integers, moments.config.support) == ("yes", "0.0,inf")
    assert whole(moments.sample(200))
    assert whole(moments.impute(x, n=7))
    frame = pd.DataFrame(x, columns=NAMES)
    assert whole(moments.impute(frame))  # the median of a hundred
    assert whole(moments.impute(frame, quantiles=[0.05, 0.33, 0.95]))


@pytest.mark.parametrize("which", ["both", "moments"])
def test_the_share_of_zeros_is_that_of_the_readings(which, request):
    model = request.getfixturevalue(which)
    x = model.sample(400, seed=1)
    x = x[..., 0] if which == "both" else x
    assert abs((x == 0).mean() - (counts() == 0).mean()) < 0.06


def test_what_was_observed_is_never_touched(both, moments):
    x = gaps(counts(3))[:50]
    x[3, 1], x[4, 2] = 2.5, -1.25  # neither whole nor within the limits
    filled = moments.impute(pd.DataFrame(x, columns=NAMES)).to_numpy()
    assert np.array_equal(filled[~np.isnan(x)], x[~np.isnan(x)])
    two = np.stack([x, 10 + shared(4)[:50]], axis=2)
    filled = both.impute(two, n=5, times=TIMES[:50].to_numpy())
    assert all(np.array_equal(draw[~np.isnan(two)], two[~np.isnan(two)]) for draw in filled)


def test_what_was_decided_is_said_and_kept_in_the_run(both, moments, tmp_path):
    lines = both.facts["data"]["readings"]
    assert lines[0].startswith("channel 0: readings: whole numbers, none negative, ")
    assert lines[1].startswith("channel 0: scale: ")
    for model in (both, moments):
        path = tmp_path / str(model.window)
        model.save(path)
        again = grcd.load(path, device="cpu")
        assert again.config == model.config
        assert "auto" not in json.dumps(record(path)["config"]).replace('"calendar": "auto"', "")
        assert np.array_equal(again.sample(5, seed=2), model.sample(5, seed=2))


def test_a_run_from_before_knows_of_none_of_it(tmp_path):
    from grcd.training.window_config import AS_THEY_ARE

    for window in (1, STEPS):
        model, path = trained(counts(), window, **AS_THEY_ARE), tmp_path / str(window)
        model.save(path)
        before = model.sample(6, seed=1)
        assert (before < 0).any()

        def older(told):
            for key in ("integers", *["marginals"] * (told["config"]["window"] > 1)):
                told["config"].pop(key)
            told["data"].pop("readings")

        edit(path, older)
        assert np.array_equal(grcd.load(path, device="cpu").sample(6, seed=1), before)


# -- a scale is a change of variables --------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, STEPS])
def test_logarithms_are_z_scores_of_the_logarithm(window):
    """Draws are the same but for the exponential; densities but for its slope."""
    y = 0.5 * shared()
    plain, scaled = trained(y, window), trained(np.exp(y), window, marginals="log")
    assert plain.config.marginals == "z-score"
    rows, hidden = y[:30], gaps(y[:30])
    times = {} if window == 1 else {"times": TIMES[:30].to_numpy()}
    how = {"n": 8, "posterior": "reference", "seed": 4} | times
    close(scaled.impute(np.exp(hidden), **how), np.exp(plain.impute(hidden, **how)), 1e-5)
    units = np.zeros(NODES)
    if window == 1:  # densities of moments are of readings in standard deviations of their node
        learned = y[: len(y) - len(y) // 10]
        units = np.log(np.exp(learned).std(axis=0)) - np.log(learned.std(axis=0))
    own = {"posterior": "reference"} | times
    expected = plain.log_prob(rows, **own)[0] + (units - rows).sum(axis=1)
    close(scaled.log_prob(np.exp(rows), **own)[0], expected, 1e-6)
    each = plain.node_log_prob(rows, **times) + units - rows
    close(scaled.node_log_prob(np.exp(rows), **times), each, 1e-6)


# -- on the command line ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, STEPS])
def test_counts_on_the_command_line(window, here, tmp_path):
    cells = pd.DataFrame(gaps(counts(), 0.05), TIMES, NAMES).astype("Int64")
    cells.to_csv(tmp_path / "counts.csv")
    pd.DataFrame(W, NAMES, NAMES).rename_axis("node").to_csv(tmp_path / "g.csv")
    small = ["--max-updates", 2, "--set", "width=8"] if window > 1 else ["--set", "backbone=none"]
    data = ["--data", "counts.csv", "--graph", "g.csv", "--window", window, "--out", "run", "--device", "cpu"]
    done = here("train", *data, *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    share = f"{(cells == 0).sum().sum() / cells.notna().sum().sum():.0%}"
    assert "readings: whole numbers, none negative, " in done.stderr
    assert "; drawn: whole numbers, from 0 up" in done.stderr
    assert "--missing 0" not in done.stderr
    told = here("data", "inspect", "counts.csv", "--graph", "g.csv", cwd=tmp_path).stdout
    assert f"whole numbers, none negative, {share} exactly 0" in told
    assert "--missing 0" not in told
    impute = ["impute", "run", "--observed", "counts.csv", "--out", "filled.csv", "--quantiles", "0.1,0.9", "-n", 20]
    assert here(*impute, cwd=tmp_path).returncode == 0
    assert here("sample", "run", "-n", 5, "--out", "new.csv", cwd=tmp_path).returncode == 0
    for file in ("filled.csv", "new.csv"):
        assert "." not in (tmp_path / file).read_text()
    filled = pd.read_csv(tmp_path / "filled.csv")[NAMES].to_numpy()
    seen = cells.notna().to_numpy()
    assert np.array_equal(filled[seen], cells.to_numpy()[seen].astype(float))
    if window > 1:
        ahead = ["forecast", "run", "--observed", "counts.csv", "--horizon", 3, "--out", "next.csv", "-n", 20]
        assert here(*ahead, cwd=tmp_path).returncode == 0
        assert "." not in (tmp_path / "next.csv").read_text()


def test_a_support_with_one_end_on_the_command_line(here, tmp_path):
    pd.DataFrame(np.abs(shared()), TIMES, NAMES).to_csv(tmp_path / "x.csv")
    pd.DataFrame(W, NAMES, NAMES).rename_axis("node").to_csv(tmp_path / "g.csv")
    data = ["--data", "x.csv", "--graph", "g.csv", "--window", 1, "--device", "cpu", "--set", "backbone=none"]
    plain = ["--set", "marginals=z-score"]
    for name, support, least in (("free", ("-inf", "inf"), -np.inf), ("kept", ("0", "inf"), 0.0)):
        done = here("train", *data, *plain, "--support", *support, "--out", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert here("sample", name, "-n", 300, "--out", f"{name}.csv", cwd=tmp_path).returncode == 0
        x = pd.read_csv(tmp_path / f"{name}.csv").to_numpy()
        assert x.min() == least or (x.min() < 0 and name == "free")
        assert x.max() > 2.5
