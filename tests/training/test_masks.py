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
from grcd.training.masks import FAMILIES, RECORDED, Gaps, Uniform, families, masks, shares

SPACES = [(12, 5, 1), (12, 5, 3), (1, 5, 1), (1, 5, 2), (6, 2, 1), (1, 2, 1)]  # steps, nodes, channels


def space(steps, nodes, channels):
    return SignalSpace(grcd.Graph.from_adjacency(np.ones((nodes, nodes)) - np.eye(nodes)), steps, channels)


def of_family(name, where, windows=300):
    """Masks of a family as (windows, steps, nodes, channels)."""
    hidden = FAMILIES[name].hidden(Uniform.drawn(Stream(0, "masks"), list(range(windows)), where))
    return hidden.reshape(windows, where.steps, -1, where.channels)


@given(seed=st.integers(0, 10**6), which=st.sampled_from(SPACES), share=st.floats(0, 1))
@examples(30)
def test_only_what_was_recorded_is_hidden_and_something_of_it_where_anything_was(seed, which, share):
    where = space(*which)
    recorded = torch.rand(40, where.d, generator=torch.Generator().manual_seed(seed)) < share
    before = recorded.clone()
    hidden = masks(Stream(seed, "masks"), 7, where, recorded)
    assert torch.equal(recorded, before)
    assert not (hidden & ~recorded).any()
    assert torch.equal(hidden.any(1), recorded.any(1))
    assert masks(Stream(seed, "masks"), 7, where, torch.ones_like(recorded)).any(1).all()


@pytest.mark.parametrize("lacking", [False, True])
def test_a_mask_depends_on_seed_and_number_and_not_on_the_windows_beside_it(lacking):
    where = space(12, 5, 3)
    there = gaps(where)[1] if lacking else None
    recorded = torch.ones(50, where.d, dtype=torch.bool)
    whole = masks(Stream(1, "masks"), 0, where, recorded, there)
    for first, last in ((0, 1), (20, 33), (49, 50)):
        assert torch.equal(masks(Stream(1, "masks"), first, where, recorded[first:last], there), whole[first:last])
    assert (masks(Stream(2, "masks"), 0, where, recorded) != whole).any(1).float().mean() > 0.8
    assert len({row.numpy().tobytes() for row in whole}) > 40  # few are whole windows


def gaps(where, rows=60, share=0.3):
    """Rows with missing readings, and the windows in them."""
    z = torch.randn(rows, where.d // where.steps, generator=torch.Generator().manual_seed(0))
    z[torch.rand(z.shape, generator=torch.Generator().manual_seed(1)) < share] = torch.nan
    return z, Gaps.of(z, torch.arange(rows - where.steps + 1), where.steps)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("which", SPACES)
def test_every_family_occurs_with_its_share(which, missing):
    where, windows = space(*which), 20_000
    chosen = families(Stream(3, "masks"), 0, windows, where, missing)
    expected = shares(where, missing)
    close(sum(expected.values()), 1.0)
    assert ("recorded" in expected) == (missing > 0)
    if missing:
        close(expected["recorded"] / expected["points"], RECORDED * missing / FAMILIES["points"].weight)
    assert set(chosen) == set(expected)
    for name, share in expected.items():
        assert abs(chosen.count(name) - windows * share) < 5 * np.sqrt(windows * share)
    assert ("channels" in expected) == (where.channels > 1)
    assert ("future" in expected) == ("outages" in expected) == (where.steps > 1)


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


def test_an_outage_takes_the_same_nodes_in_every_row_that_is_down_and_half_of_the_time_all_of_them():
    hidden = of_family("outages", space(12, 9, 2), 500)
    assert torch.equal(hidden.any(3), hidden.all(3))  # all channels of a node
    nodes, down = hidden[..., 0].any(1), hidden[..., 0].any(2)  # (windows, nodes), (windows, steps)
    assert torch.equal(hidden[..., 0], nodes[:, None] & down[:, :, None])
    assert 0.4 < nodes.all(1).float().mean() < 0.7
    assert nodes.float().mean(1)[~nodes.all(1)].min() < 0.6
    assert down.any(1).all()
    assert 0.1 < down.float().mean() < 0.4
    alone = down & ~down.roll(1, 1) & ~down.roll(-1, 1)
    assert alone.any(1).float().mean() > 0.3  # of single rows
    assert (down.float().mean(0) - down.float().mean()).abs().max() < 0.1  # anywhere in a window


def test_an_outage_of_several_rows_has_one_length_and_no_beginning_need_be_in_the_window():
    """Where one begins in a window they are as long as drawn; at the borders what shows of them."""
    u = Uniform.drawn(Stream(0, "masks"), list(range(400)), space(12, 3, 1))
    u.windows[1].fill_(0.99)  # 1 + floor(0.98 * 6) rows
    down = FAMILIES["outages"].hidden(u).any(2)
    ring = torch.cat([down, down], dim=1)
    lengths = [len(run) for row, both in zip(down, ring, strict=True) for run in runs(both) if not row.all()]
    assert min(lengths) == 6
    assert (down[:, 0] & ~down[:, :6].all(1)).any()  # begun before the window


def runs(ring):
    """Stretches of a ring that is there twice, whole."""
    text = "".join("x" if each else "." for each in ring.tolist())
    return [part for part in text.strip("x").split(".") if part]


def test_recorded_gaps_are_those_of_another_window():
    where = space(6, 5, 1)
    z, there = gaps(where)
    close(there.share, z.isnan().double().mean())
    patterns = {z[k : k + 6].isnan().numpy().tobytes() for k in range(len(z) - 5)}
    u = Uniform.drawn(Stream(0, "masks"), list(range(300)), where, there)
    u.readings[:, 1:].fill_(1.0)
    u.readings[:, 0].clamp_(min=1.0)
    u.readings[:, 0, 0] = 0.999  # the one reading that always goes
    hidden = FAMILIES["recorded"].hidden(u)
    assert hidden[:, 0, 0].all()
    found = set()
    for mask in hidden:
        own = [mask.clone(), mask.clone()]
        own[0][0, 0] = False
        match = [each.numpy().tobytes() for each in own if each.numpy().tobytes() in patterns]
        assert match
        found |= set(match)
    assert len(found) > 40  # of 55 windows


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
