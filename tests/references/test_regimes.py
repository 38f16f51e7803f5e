"""Regimes of windows: choosing by a normal number, and a mixture that is recovered from rows with gaps."""

import numpy as np
import torch
from laws import close

from grcd.references import regimes_fit
from grcd.references.lags import Shrinkage
from grcd.references.regimes import chosen_by

NODE = torch.arange(3)


def two_regimes(rows, seed=0, missing=0.1, length=24):
    """Spells of two regimes: one high with strong memory, one low with little; which of them a row is of."""
    random = np.random.RandomState(seed)
    which = np.repeat(random.randint(0, 2, rows // length + 1), length)[:rows]
    noise, z, state = random.standard_normal((rows, 3)), np.zeros((rows, 3)), np.zeros(3)
    for t in range(rows):
        keep, mean = ((0.9, 1.5), (0.2, -1.5))[which[t]]
        state = keep * state + np.sqrt(1 - keep**2) * 0.6 * noise[t]
        z[t] = mean + state
    z[random.random_sample(z.shape) < missing] = np.nan
    return torch.from_numpy(z), which


def test_a_normal_number_chooses_by_share_and_what_is_left_of_it_is_normal_whatever_it_chose():
    noise = torch.special.ndtri((torch.arange(200_000).double() + 0.5) / 200_000)
    share = torch.tensor([0.2, 0.0, 0.5, 0.3]).double()
    chosen, left = chosen_by(share, noise)
    close(torch.bincount(chosen, minlength=4).double() / 200_000, share, 1e-4)
    for k in (0, 2, 3):
        own = left[chosen == k].sort().values
        expected = torch.special.ndtri((torch.arange(len(own)).double() + 0.5) / len(own))
        close(own[10:-10], expected[10:-10], 1e-3)


def test_two_regimes_are_recovered_from_rows_with_gaps():
    z, which = two_regimes(4800)
    mixture = regimes_fit.fit(z, [slice(0, 4800)], 12, 6, 2, Shrinkage(0, 0, 0, 1e-3), NODE)
    order = mixture.means[:, 0].argsort()
    close(mixture.weights[order], np.array([which.mean(), 1 - which.mean()]), 0.05)
    close(mixture.means[order], np.array([[-1.5], [1.5]]).repeat(36, 1), 0.1)
    low, high = (mixture.parts[k].C for k in order)
    close(low[1].diagonal() / low[0].diagonal(), np.full(3, 0.2), 0.4)
    close(high[1].diagonal() / high[0].diagonal(), np.full(3, 0.9), 0.1)


def test_too_few_windows_have_no_regimes():
    z, _ = two_regimes(40)
    assert regimes_fit.fit(z, [slice(0, 40)], 6, 6, 2, Shrinkage(), NODE) is None
