"""Masks: what each family hides, how often it occurs, and that a mask depends on seed and number alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.core.streams import Stream
from grcd.graphs.space import SignalSpace
from grcd.training.masks import FAMILIES, Uniform, families, masks, shares

SPACES = [(12, 5, 1), (12, 5, 3), (1, 5, 1), (1, 5, 2), (6, 2, 1), (1, 2, 1)]  # steps, nodes, channels


def space(steps, nodes, channels):
    return SignalSpace(grcd.Graph.from_adjacency(np.ones((nodes, nodes)) - np.eye(nodes)), steps, channels)


def of_family(name, where, windows=300):
    """Masks of a family as (windows, steps, nodes, channels)."""
    hidden = FAMILIES[name].hidden(Uniform.drawn(Stream(0, "masks"), list(range(windows)), where))
    return hidden.reshape(windows, where.steps, -1, where.channels)


@given(seed=st.integers(0, 10**6), which=st.sampled_from(SPACES), share=st.floats(0, 1))
@examples(30)
def test_only_what_was_recorded_is_hidden_and_something_of_it_where_all_was(seed, which, share):
    where = space(*which)
    recorded = torch.rand(40, where.d, generator=torch.Generator().manual_seed(seed)) < share
    before = recorded.clone()
    hidden = masks(Stream(seed, "masks"), 7, where, recorded)
    assert torch.equal(recorded, before)
    assert not (hidden & ~recorded).any()
    assert masks(Stream(seed, "masks"), 7, where, torch.ones_like(recorded)).any(1).all()


def test_a_mask_depends_on_seed_and_number_and_not_on_the_windows_beside_it():
    where = space(12, 5, 3)
    recorded = torch.ones(50, where.d, dtype=torch.bool)
    whole = masks(Stream(1, "masks"), 0, where, recorded)
    for first, last in ((0, 1), (20, 33), (49, 50)):
        assert torch.equal(masks(Stream(1, "masks"), first, where, recorded[first:last]), whole[first:last])
    assert (masks(Stream(2, "masks"), 0, where, recorded) != whole).any(1).float().mean() > 0.8
    assert len({row.numpy().tobytes() for row in whole}) > 40  # few are whole windows


@pytest.mark.parametrize("which", SPACES)
def test_every_family_occurs_with_its_share(which):
    where, windows = space(*which), 20_000
    chosen = families(Stream(3, "masks"), 0, windows, where)
    expected = shares(where)
    close(sum(expected.values()), 1.0)
    assert set(chosen) == set(expected)
    for name, share in expected.items():
        assert abs(chosen.count(name) - windows * share) < 5 * np.sqrt(windows * share)
    assert ("channels" in expected) == (where.channels > 1)
    assert ("future" in expected) == (where.steps > 1)


def test_points_hide_from_a_twentieth_to_three_fifths():
    share = of_family("points", space(24, 20, 1)).float().mean((1, 2, 3))
    assert 0.03 < share.min() < 0.1
    assert 0.55 < share.max() < 0.65


def test_a_spell_is_one_stretch_of_half_a_window_or_longer_or_reaches_its_end():
    u = Uniform.drawn(Stream(0, "masks"), list(range(400)), space(12, 6, 2))
    u.readings.fill_(1.0)  # no points beside
    hidden = FAMILIES["spells"].hidden(u).reshape(400, 12, 6, 2)
    padded = torch.nn.functional.pad(hidden.byte(), (0, 0, 0, 0, 1, 1)).int()
    assert ((padded.diff(dim=1) == 1).sum(1) <= 1).all()
    within = hidden.any(1) & ~hidden[:, 0] & ~hidden[:, -1]
    assert (hidden.sum(1)[within] >= 6).all()
    assert hidden.any(1).any(2).any(1).all()
    together = (hidden == hidden[..., :1]).all((1, 2, 3))  # all channels of a node at once
    assert 0.4 < together.float().mean() < 0.7


def test_sensors_are_silent_all_the_time_in_all_channels():
    u = Uniform.drawn(Stream(0, "masks"), list(range(300)), space(7, 9, 2))
    u.readings.fill_(1.0)
    hidden = FAMILIES["sensors"].hidden(u).reshape(300, -1, 9, 2)
    assert torch.equal(hidden.any(1), hidden.all(1))
    assert torch.equal(hidden.any(3), hidden.all(3))
    count = hidden[:, 0, :, 0].sum(1)
    assert count.min() == 1
    assert count.max() >= 5


def test_channels_are_hidden_whole_but_never_all_of_them():
    hidden = of_family("channels", space(4, 5, 3))
    by_channel = hidden.flatten(1, 2).any(1)
    assert torch.equal(by_channel, hidden.flatten(1, 2).all(1))
    assert set(by_channel.sum(1).tolist()) == {1, 2}


def test_the_future_begins_at_every_step_but_the_first():
    hidden = of_family("future", space(6, 4, 2))
    assert torch.equal(hidden.flatten(2).any(2), hidden.flatten(2).all(2))
    by_step = hidden[:, :, 0, 0].int()
    assert (by_step.diff(dim=1) >= 0).all()
    assert set(by_step.sum(1).tolist()) == {1, 2, 3, 4, 5}


def test_nothing_observed_and_nearly_everything_observed():
    assert of_family("nothing", space(6, 4, 2)).all()
    count = of_family("everything", space(10, 30, 1)).sum((1, 2, 3))
    assert count.min() == 1
    assert 2 < count.float().mean() < 4.5


def test_how_much_a_family_hides_does_not_depend_on_how_it_was_chosen():
    where = space(24, 10, 1)
    chosen = np.array(families(Stream(5, "masks"), 0, 1500, where))
    share = masks(Stream(5, "masks"), 0, where, torch.ones(1500, where.d, dtype=torch.bool)).float().mean(1)
    points = share[chosen == "points"]
    assert abs(float(points.mean()) - 0.325) < 5 * 0.55 / np.sqrt(12 * len(points))
    assert points.min() < 0.1
    assert points.max() > 0.55
