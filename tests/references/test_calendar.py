"""Means by the calendar."""

import torch
from laws import close

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
