"""Means by the calendar."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.references.calendar import CalendarMean


def days(count: int, slots: int = 6):
    row = torch.arange(count * slots)
    return row % slots, (row // slots) % 7 // 5


def test_many_days_of_a_clock_without_noise_give_the_clock_back():
    slot, kind = days(70)
    truth = torch.sin(slot.double()) + 3 * kind
    mean = CalendarMean.fit(truth[:, None], slot, kind, 6, 2, 0.0)
    close(mean.rows(slot, kind)[0][:, 0], truth, 1e-9)


def test_noise_alone_is_shrunk_to_the_mean_of_the_column():
    slot, kind = days(14)
    g = torch.Generator().manual_seed(0)
    values = 5 + torch.randn(84, 50, generator=g, dtype=torch.float64)
    raw = torch.stack([values[(slot == s) & (kind == 0)].mean(0) for s in range(6)])
    mean = CalendarMean.fit(values, slot, kind, 6, 2, 0.0)
    column = values.mean(0)
    assert (mean.table[0] - column).square().mean() < 0.5 * (raw - column).square().mean()


def test_a_column_without_readings_and_a_constant_one_stay_finite():
    slot, kind = days(7)
    values = torch.stack([torch.full((42,), torch.nan), torch.full((42,), 2.0)], 1).double()
    mean = CalendarMean.fit(values, slot, kind, 6, 2, 1.0, power=0.5)
    close(mean.scores(values, slot, kind)[:, 1], torch.zeros(42, dtype=torch.float64), size=1.0)
    assert mean.table.isfinite().all()
    assert (mean.spread > 0).all()


def test_hours_that_spread_more_are_divided_by_more():
    slot, kind = days(1400)
    g = torch.Generator().manual_seed(0)
    size = torch.where(slot < 3, 1.0, 4.0).double()[:, None]
    values = size * torch.randn(8400, 3, generator=g, dtype=torch.float64)
    for power in (0.0, 0.5, 1.0):
        mean = CalendarMean.fit(values, slot, kind, 6, 2, 0.1, power)
        z = mean.scores(values, slot, kind)
        ratio = z[slot >= 3].std() / z[slot < 3].std()
        close(ratio, torch.tensor(4.0 ** (1 - power), dtype=torch.float64), 0.05)


def test_the_weight_is_that_of_empirical_bayes_by_hand():
    """Three days of two slots, one column: slot means 1 and 5 about 3, squares about them 2 + 8, 6 - 2 of them free."""
    values = torch.tensor([0.0, 3.0, 1.0, 5.0, 2.0, 7.0], dtype=torch.float64)[:, None]
    slot, kind = torch.arange(6) % 2, torch.zeros(6, dtype=torch.long)
    noise = (10 / 4) / 3  # of a mean of three days
    tau2 = 2.0**2 - noise
    mean = CalendarMean.fit(values, slot, kind, 2, 1, 0.0)
    deviation = 2 * tau2 / (tau2 + noise)
    close(mean.table[0, :, 0], torch.tensor([3 - deviation, 3 + deviation], dtype=torch.float64), 1e-12)
    close(mean.mean, torch.tensor([3.0], dtype=torch.float64), 1e-12)


def test_a_kind_of_day_is_shrunk_towards_all_days_by_hand():
    """One slot: of four kinds, with as many days as they have readings, each its empirical Bayes weight."""
    values = [[4.0, 6.0], [1.0, 3.0, 2.0], [0.0, 1.0], [9.0]]
    flat = np.concatenate([np.array(part) for part in values])
    kind = np.repeat(np.arange(4), [len(part) for part in values])
    rows = flat - flat.mean()
    means = np.array([rows[kind == k].mean() for k in range(4)])
    count = np.bincount(kind)
    left = ((rows - means[kind]) ** 2).sum() / (len(flat) - 4)
    tau2 = max(0.0, (count * (means**2 - left / count)).sum() / count.sum())
    expected = flat.mean() + means * tau2 / (tau2 + left / count)
    slot = torch.zeros(len(flat), dtype=torch.long)
    mean = CalendarMean.fit(torch.from_numpy(flat)[:, None], slot, torch.from_numpy(kind), 1, 4, 0.0)
    close(mean.table[:, 0, 0], expected, 1e-12)


def test_a_daily_curve_is_known_the_better_the_more_days_at_the_rate_of_a_mean():
    g = torch.Generator().manual_seed(0)
    off = []
    for count in (40, 640):
        slot, kind = days(count, 24)
        truth = 3 * torch.sin(2 * torch.pi * slot / 24).double()
        values = truth[:, None] + torch.randn(len(slot), 60, generator=g, dtype=torch.float64)
        off.append((CalendarMean.fit(values, slot, kind, 24, 2, 0.0).table - truth[:24, None]).square().mean())
    assert 1 / 32 < off[1] / off[0] < 1 / 8  # sixteen times the days
    assert off[1] < 2 / 640


def test_mondays_alone_differ():
    row = torch.arange(7 * 60)
    day = row % 7
    g = torch.Generator().manual_seed(1)
    values = 4.0 * (day == 0).double()[:, None] + torch.randn(420, 8, generator=g, dtype=torch.float64)
    mean = CalendarMean.fit(values, 0 * day, day, 1, 7, 0.0)
    close(mean.table[0], torch.full((1, 8), 4.0, dtype=torch.float64), 0.1)
    assert mean.table[1:].abs().max() < 0.5
    weekend = CalendarMean.fit(values, 0 * day, (day >= 5).long(), 1, 2, 0.0)
    assert mean.sd.mean() < 0.7 * weekend.sd.mean()


def test_what_columns_have_in_common_is_known_better_together():
    """Few days, a common curve and much noise of their own."""
    slot, kind = days(7, 24)
    curve = torch.sin(2 * torch.pi * slot / 24).double()
    g = torch.Generator().manual_seed(2)
    values = curve[:, None] + 2 * torch.randn(168, 40, generator=g, dtype=torch.float64)
    together = CalendarMean.fit(values, slot, 0 * kind, 24, 1, 0.0).table
    alone = torch.cat([CalendarMean.fit(values[:, [i]], slot, 0 * kind, 24, 1, 0.0).table for i in range(40)], 2)
    off = [(table[0] - curve[:24, None]).square().mean() for table in (together, alone)]
    assert off[0] < 0.4 * off[1]


@given(st.permutations(range(4)), st.integers(0, 100))
@examples(20)
def test_columns_and_rows_in_another_order_give_the_same_means_in_that_order(order, seed):
    g = torch.Generator().manual_seed(seed)
    slot, kind = days(21)
    values = torch.randn(126, 4, generator=g, dtype=torch.float64).cumsum(1)
    values[torch.rand(126, 4, generator=g) < 0.2] = torch.nan
    features = torch.randn(126, 2, generator=g, dtype=torch.float64)
    mean = CalendarMean.fit(values, slot, kind, 6, 2, 0.5, 0.5, features)
    other = CalendarMean.fit(values[:, order], slot, kind, 6, 2, 0.5, 0.5, features)
    for whole, part in zip(mean.rows(slot, kind, features), other.rows(slot, kind, features), strict=True):
        close(part, whole[:, order], 1e-9)
    shuffled = torch.randperm(126, generator=g)
    again = CalendarMean.fit(values[shuffled], slot[shuffled], kind[shuffled], 6, 2, 0.5)
    close(again.table, CalendarMean.fit(values, slot, kind, 6, 2, 0.5).table, 1e-9)


def test_a_feature_that_has_a_clock_of_its_own_has_the_coefficient_of_a_joint_fit():
    slot, kind = days(700)
    g = torch.Generator().manual_seed(3)
    curve = torch.cos(slot.double())
    feature = 5 * curve + torch.randn(4200, generator=g, dtype=torch.float64)
    values = torch.stack([curve + 2 * feature, 3 - 1 * feature], 1) + 0.5 * torch.randn(
        4200, 2, generator=g, dtype=torch.float64
    )
    mean = CalendarMean.fit(values, slot, 0 * kind, 6, 1, 0.0, 0.0, feature[:, None])
    design = np.column_stack([np.eye(6)[slot.numpy()], feature.numpy()])
    joint = np.linalg.lstsq(design, values.numpy(), rcond=None)[0]
    close(mean.weights[0], joint[6], 2e-3)
    fitted = mean.rows(slot, 0 * kind, feature[:, None])[0]
    close(fitted, design @ joint, 2e-3)
