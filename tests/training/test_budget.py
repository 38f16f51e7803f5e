"""A budget of time: what fits is trained, what does not is left, and what was decided is kept."""

from __future__ import annotations

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

import grcd
from grcd.core.errors import InputError, InputWarning
from grcd.data.series import Series
from grcd.diffusion.conditional import Conditional
from grcd.graphs.space import SignalSpace
from grcd.runs import contents
from grcd.training import budget, fit, windows
from grcd.training.budget import LEAST, MARGIN, Pace
from grcd.training.config import Config
from grcd.training.window_config import WindowConfig

USUAL = {"width": 32, "heads": 4, "batch": 8, "pool": 12_000, "max_updates": 1_600, "validate_every": 200}
positive = st.floats(1e-5, 1.0)


@examples(60)
@given(
    pair=positive,
    update=positive,
    validation=positive,
    after=st.floats(0, 100),
    left=st.floats(1, 1e4),
    seen=st.integers(0, 50_000),
)
def test_what_is_decided_ends_in_time(pair, update, validation, after, left, seen):
    def pace(width):
        return Pace(pair, update * width / 32, validation * width / 32, after)

    settled = budget.of_windows(USUAL, pace, lambda: left, seen)
    if settled["max_updates"] == 0:  # not even the narrowest network would get its least
        own = pace(16)
        enough = left * MARGIN - after - (1 + budget.VALIDATIONS) * own.validation
        assert enough < LEAST * (own.update + USUAL["batch"] * own.pair) * (1 + 1e-9) + own.update
        return
    assert settled["max_updates"] >= LEAST
    assert settled["pool"] <= min(4 * USUAL["pool"], settled["max_updates"] * USUAL["batch"])
    assert settled["max_updates"] <= max(2 * USUAL["max_updates"], 16 * seen / USUAL["batch"])
    total = pace(settled["width"]).total(settled["max_updates"], settled["pool"], settled["validate_every"])
    assert total <= MARGIN * left * (1 + 1e-9)


def test_more_time_is_never_a_smaller_network_or_fewer_updates_of_the_same():
    def pace(width):
        return Pace(0.002, 0.03 * width / 32, 0.5 * width / 32, 5.0)

    decided = [budget.of_windows(USUAL, pace, lambda left=left: left) for left in (10, 20, 40, 80, 160, 320, 640)]
    sizes = [(each.get("width", 0), each["max_updates"]) for each in decided]
    assert sizes == sorted(sizes)
    assert sizes[0] == (0, 0)
    assert [size for size, _ in itertools.groupby(width for width, _ in sizes)] == [0, 16, 32, 64]


def test_more_windows_are_worth_more_updates_and_more_pairs_by_hand():
    pace = Pace(0.004, 0.08, 0.0)
    decided = [
        budget.of_windows(USUAL, lambda width: pace, lambda: 2000.0, windows) for windows in (0, 1000, 5000, 10**6)
    ]
    # 1,500 s: at most 15 % of them for 4 times 12,000 pairs, 192 s; the rest for updates of 80 ms
    assert [each["max_updates"] for each in decided] == [3200, 3200, 10_000, 16_350]
    assert [each["pool"] for each in decided] == [25_600, 25_600, 48_000, 48_000]
    short = budget.of_windows(USUAL, lambda width: pace, lambda: 400.0, 10**6)  # 300 s: 12,000 pairs in 48 s
    assert (short["pool"], short["max_updates"]) == (12_000, 3150)


def test_moments_by_hand():
    usual = {"width": 128, "max_updates": 12_000, "validate_every": 250}

    def seconds(settings):
        return 0.01 * settings.get("width", 128) / 128

    assert budget.of_moments(usual, seconds, lambda: 1e6) == {"max_updates": 12_000, "validate_every": 250}
    assert budget.of_moments(usual, seconds, lambda: 100) == {"max_updates": 7_500, "validate_every": 250}
    # 750 updates of the usual one; 1,500 of half of it; 3,000 of a quarter
    expected = {"width": 32, "max_updates": 3_000, "validate_every": 250}
    assert budget.of_moments(usual, seconds, lambda: 10) == expected
    tiny = budget.of_moments(usual, lambda settings: 1.0, lambda: -3.0)  # too late already
    assert (tiny["max_updates"], tiny["validate_every"]) == (1, 1)
    # 133 ms an update of the narrowest: 75 updates in 13 s, 112 in 20
    slow = lambda settings: 0.1333 * max(settings.get("width", 128) / 8, 1)  # noqa: E731
    assert budget.of_moments(usual, slow, lambda: 13, alone=True) == {"backbone": "none"}
    assert budget.of_moments(usual, slow, lambda: 20, alone=True)["max_updates"] == 112
    assert "width" not in budget.of_moments({k: v for k, v in usual.items() if k != "width"}, seconds, lambda: 1)


def test_without_any_time_the_reference_of_moments_stands_alone(tiny, tmp_path):
    with pytest.warns(
        InputWarning, match="cannot be trained in 0.0001 minutes here .*: the model is its reference alone"
    ):
        model = grcd.GRCD(tiny.graph, device="cpu", minutes=1e-4).fit(tiny.train, tiny.val, run=tmp_path / "run")
    assert (model.result["updates"], model.config.backbone, model.config.minutes) == (0, "none", 0)
    assert model.facts["settled"] == {"backbone": "none"}
    assert np.array_equal(grcd.load(tmp_path / "run", device="cpu").sample(3), model.sample(3))


def test_what_time_decides_is_not_set_beside_it(tiny):
    with pytest.raises(InputError, match="minutes = 5 and width, batch"):
        grcd.GRCD(tiny.graph, minutes=5, batch=3, width=8)
    assert grcd.GRCD(tiny.graph, minutes=5, lr=1e-4).config.minutes == 5


def test_a_long_training_says_so_before_it_begins(monkeypatch):
    monkeypatch.setattr(budget, "LONG", 3600)
    with pytest.warns(InputWarning, match=r"up to 2\.0 hours here: --minutes 30"):
        budget.warn_long(7200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget.warn_long(3599)


def series(rows, first=0, seed=0):
    random = np.random.default_rng(seed)
    x = np.zeros((rows, 4))
    for k in range(1, rows):
        x[k] = 0.8 * x[k - 1] + random.standard_normal(4)
    times = np.datetime64("2024-01-01", "h") + np.arange(first, first + rows)
    return Series(x[:, :, None], times)


def space():
    return SignalSpace(grcd.Graph.from_adjacency(np.ones((4, 4)) - np.eye(4)), 6)


def test_no_time_for_a_network_leaves_the_reference_alone():
    config = WindowConfig(window=6, minutes=1e-4, calendar="none", width=8)
    model, summary = windows.fit(space(), series(300), series(80, 300, 1), config, torch.device("cpu"))
    assert isinstance(model.law, Conditional)
    assert model.law.network is None
    assert (summary["network"], summary["updates"], summary["stopped"]) == (False, 0, "no network")
    assert budget.words({"max_updates": 0}) == "no time for a network, the reference alone"


def test_what_was_decided_is_kept_and_gone_on_with(tiny, tmp_path, monkeypatch):
    decided = [{"width": 8, "max_updates": 6, "validate_every": 3}, {"width": 16, "max_updates": 9}]
    monkeypatch.setattr(budget, "of_moments", lambda *about, alone: decided.pop(0))

    def trained():
        return grcd.train(grcd.GRCD(tiny.graph, device="cpu", minutes=1), tiny, tmp_path / "run")

    with monkeypatch.context() as patch:
        patch.setattr("grcd.runs.folder.Run.log", _interrupting)
        with pytest.raises(KeyboardInterrupt):
            trained()
    model = trained()  # is not decided again
    assert (model.config.width, model.config.max_updates, model.config.minutes) == (8, 6, 0)
    assert len(decided) == 1
    again = grcd.load(tmp_path / "run")
    assert again.config == model.config
    np.testing.assert_array_equal(again.sample(3), model.sample(3))
    assert trained().config == model.config  # finished: is read
    model.save(tmp_path / "copy")
    np.testing.assert_array_equal(grcd.load(tmp_path / "copy").sample(3), model.sample(3))


def _interrupting(self, state, record):
    raise KeyboardInterrupt


def test_a_configuration_without_a_budget_stays_as_it_is():
    for config in (Config(width=8), WindowConfig(width=8)):
        assert contents.settled(config, {}) is config
        changed = contents.settled(dataclasses.replace(config, minutes=3), {"settled": {"max_updates": 7}})
        assert changed == dataclasses.replace(config, max_updates=7)


def test_time_that_is_up_ends_training_at_the_next_validation(tiny):
    model = grcd.GRCD(tiny.graph, device="cpu", minutes=1e-6)
    z = tiny.normalizer.apply(tiny.train), tiny.normalizer.apply(tiny.val)
    before = {"width": 8, "max_updates": 40, "validate_every": 5}
    _, summary = fit.fit(model.space, model.config, model.device, *z, settle=lambda decide: before)
    assert summary["updates"] == 5
    assert summary["stopped"].startswith("its time was up")


def test_a_run_that_needed_no_time_loads_again(tmp_path):
    """Too few validation rows to tell whether a network helps: none is trained, whatever time there is."""
    rows = np.random.RandomState(0).standard_normal((40, 4))
    graph = grcd.Graph.from_adjacency(np.ones((4, 4)) - np.eye(4))
    model = grcd.GRCD(graph, window=2, device="cpu", minutes=5)
    with pytest.warns(InputWarning, match="make 2 windows of 2 rows that do not overlap, too few"):
        model.fit(rows[:36], rows[36:], run=tmp_path / "run")
    assert model.result["updates"] == 0
    again = grcd.load(tmp_path / "run")
    assert again.config.minutes == 0
    assert np.array_equal(again.impute(rows[:4], n=3), model.impute(rows[:4], n=3))
