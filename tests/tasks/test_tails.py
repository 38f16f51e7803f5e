"""Spreads and tails: against draws, known laws, and the Gaussian that they are without."""

import numpy as np
import pytest
import torch
from laws import close

from grcd.references.stationary import normal_crps
from grcd.tasks import tails
from grcd.tasks.columns import Columns
from grcd.tasks.moments import Moments


def normal(n, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).standard_normal(n))


@pytest.mark.parametrize("tail", [0.0, 0.7, 2.0])
def test_it_is_odd_and_monotone_and_without_a_tail_nothing(tail):
    u = torch.linspace(-3, 3, 41, dtype=torch.float64)
    x = tails.stretched(u, tail)
    close(x, np.sinh(tail * u.numpy()) / tail if tail else u.numpy(), 1e-12, size=1.0)
    close(x, -x.flip(0), 1e-12, size=1.0)
    assert (x.diff() > 0).all()
    of_columns = tails.stretched(u[:, None], torch.tensor([0.0, tail]))
    assert torch.equal(of_columns[:, 0], u)
    close(of_columns[:, 1], x, 1e-6)  # float32 tails


def test_crps_of_a_gaussian_is_its_formula_and_of_no_spread_the_absolute_error():
    y, sd = normal(500), 0.5 + torch.rand(500, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    close(tails.crps(y, sd, 0.0), float(normal_crps(y, torch.zeros_like(y), sd).mean()), 0.01)
    close(tails.crps(y, 1e-9 * sd, 1.0), float(y.abs().mean()), 1e-6)


@pytest.mark.parametrize(("spread", "tail"), [(0.4, 0.0), (2.0, 1.0), (0.1, 2.0)])
def test_spread_and_tail_of_errors_that_have_them_come_back(spread, tail):
    sd = torch.full((20_000,), 3.0, dtype=torch.float64)
    away = spread * sd * tails.stretched(normal(20_000, 1), tail)
    found = tails.fitted(away, sd)
    assert found[1:] == (tail, 0.0)
    close(found[0], spread, 0.25)  # one of a few


def test_the_median_of_errors_that_lean_is_where_their_absolute_value_is_least():
    """Counts that are mostly 0, about their mean."""
    counts = torch.from_numpy(np.random.RandomState(0).poisson(0.6, 4000).astype(float))
    sd = torch.full_like(counts, 0.77)
    mean = float(counts.mean())
    shift = tails.fitted(counts - mean, sd)[2]
    close(mean + 0.77 * shift, 0.0, 1e-9, size=1.0)
    # What errors are off by in these rows, all of them alike, says nothing of others.
    assert tails.fitted(normal(4000) + 3, torch.ones(4000, dtype=torch.float64))[2] == 0
    away, sd = (torch.tensor(numbers, dtype=torch.float64) for numbers in ([0.0, 0.0, 6.0], [1.0, 1.0, 3.0]))
    close(tails.fitted(away, sd)[2], 6 / 3 - 6 / 5, 1e-9)  # the median is that of the widest


def test_a_line_that_is_mostly_exact_is_no_worse_with_its_spread_than_without():
    """One jump in twenty: a Gaussian of the mean squared error is worse than no spread at all."""
    away = 0.01 * normal(4000)
    away[::20] *= 300
    sd = torch.ones_like(away)
    gaussian = tails.crps(away, away.square().mean().sqrt() * sd, 0.0)
    spread, tail, shift = tails.fitted(away, sd)
    assert shift == 0
    assert tails.crps(away, spread * sd, tail) < float(away.abs().mean()) < gaussian
    assert tails.fitted(torch.zeros(5), torch.ones(5)) == (1.0, 0.0, 0.0)


def test_draws_of_columns_and_of_rows_are_the_gaussian_ones_stretched():
    z = torch.from_numpy(np.random.RandomState(2).standard_normal((9, 4)))
    z[2:6, 1:3] = torch.nan
    every, C = [slice(0, 9)], torch.eye(4, dtype=torch.float64) * 0.4 + 0.6
    plain, heavy = (Columns((0.8,), (1.5,), tail, tail) for tail in ((), (1.0,)))
    mean, sd = plain.posterior(z, every)
    ((_, one),), ((_, two),) = (list(each.draws(z, every, 6, seed=3)) for each in (plain, heavy))
    gap = z.isnan()
    shifted, _ = heavy.posterior(z, every)
    close(shifted - mean, sd / 1.5, 1e-9)
    close(((two - shifted) / sd)[:, gap], np.sinh(((one - mean) / sd)[:, gap].numpy()), 1e-9)
    u = normal(4)
    close(heavy.of_rows(u), 1 + 1.5 * torch.sinh(u), 1e-9)
    far = np.zeros((4, 4))
    one, two = (Moments(0.0, 0.1, 2.0, tail=tail, shift=tail).law(C, far) for tail in (0.0, 1.0))
    (mean, sd), (shifted, _) = (law.posterior(z, every) for law in (one, two))
    close(shifted - mean, sd / 2, 1e-9)
    a, b = (law.drawn(z, np.arange(9), 6, seed=3) for law in (one, two))
    close(((b - shifted) / sd)[:, gap], np.sinh(((a - mean) / sd)[:, gap].numpy()), 1e-9)
    assert torch.equal(b[:, ~gap], z[~gap].expand(6, -1))
    assert Columns.of({"rho": [0.8], "spread": [1.5]}) == plain  # as older runs have it
    assert Columns.of(heavy.to_dict()) == heavy
