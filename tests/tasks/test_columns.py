"""Every column by itself: against the Gaussian law of an autoregression, and its two ends, the mean and the line."""

import numpy as np
import pytest
import torch
from laws import close

from grcd.evaluation.baselines import straight
from grcd.tasks.columns import LINE, WIDEST, Columns

ROWS, STRETCHES = 14, [slice(0, 9), slice(9, 14)]


def holed(columns=4, seed=0):
    random = np.random.RandomState(seed)
    z = random.standard_normal((ROWS, columns))
    z[random.random_sample(z.shape) < 0.5] = np.nan
    z[:9, 0], z[9:, 1] = np.nan, np.nan  # nothing to go by; and only in the other stretch
    return torch.from_numpy(z)


def conditioned(z, rho):
    """Mean and covariance of the gaps of one column in one stretch, by the textbook."""
    gap, place = np.isnan(z), np.arange(len(z))
    C = rho ** np.abs(place[:, None] - place)
    weights = C[np.ix_(gap, ~gap)] @ np.linalg.inv(C[np.ix_(~gap, ~gap)])
    return weights @ z[~gap], C[np.ix_(gap, gap)] - weights @ C[np.ix_(~gap, gap)]


@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_the_posterior_is_that_of_an_autoregression(rho):
    z = holed()
    mean, sd = Columns((rho,), (2.0,)).posterior(z, STRETCHES)
    for stretch in STRETCHES:
        for column in range(z.shape[1]):
            part = z[stretch, column].numpy()
            expected, covariance = conditioned(part, rho)
            gap = np.isnan(part)
            close(mean[stretch, column].numpy()[gap], expected, 1e-9, size=1.0)
            close(sd[stretch, column].numpy()[gap], 2.0 * np.sqrt(np.diag(covariance)), 1e-9)
            assert np.array_equal(mean[stretch, column].numpy()[~gap], part[~gap])
            assert not sd[stretch, column].numpy()[~gap].any()


def test_its_ends_are_the_mean_and_a_straight_line():
    z = holed()
    mean, sd = Columns((0.0,), (1.0,)).posterior(z, STRETCHES)
    close(mean, z.nan_to_num(), 1e-11)
    close(sd, z.isnan().double(), 1e-11)
    line = Columns((LINE,), (1.0,)).posterior(z, STRETCHES)[0].numpy()
    close(line, np.concatenate([straight(z[s].numpy()) for s in STRETCHES]), 1e-4, size=1.0)


def test_draws_have_the_joint_law():
    z, rho, n = holed(), 0.8, 20_000
    parts = list(Columns((rho,), (1.5,)).draws(z, STRETCHES, n, seed=3, chunk=4))
    assert np.array_equal(np.concatenate([rows for rows, _ in parts]), np.arange(ROWS))
    drawn = torch.cat([part for _, part in parts], dim=1).numpy()
    for column in (0, 2):
        part = z[:9, column].numpy()
        gap = np.isnan(part)
        mean, covariance = conditioned(part, rho)
        x = drawn[:, :9, column][:, gap]
        close(np.median(x, axis=0), mean, 1e-9, size=1.0)
        close(x[0] + x[1], 2 * mean, 1e-9, size=1.0)
        assert np.abs(np.cov(x.T) / 1.5**2 - covariance).max() < 5 * np.sqrt(4 / n)  # of half as many pairs
    assert np.array_equal(drawn[0][~z.isnan().numpy()], z[~z.isnan()].numpy())


def test_channels_have_processes_of_their_own_and_draws_depend_neither_on_chunks_nor_on_their_number():
    z = holed()
    both = Columns((0.0, 0.9), (1.0, 3.0))
    for channel, alone in enumerate((Columns((0.0,), (1.0,)), Columns((0.9,), (3.0,)))):
        for one, two in zip(both.posterior(z, STRETCHES), alone.posterior(z, STRETCHES), strict=True):
            assert torch.equal(one[:, channel::2], two[:, channel::2])
    whole, chunked = (torch.cat([x for _, x in both.draws(z, STRETCHES, n, 1, c)], 1) for n, c in ((6, None), (2, 5)))
    assert torch.equal(whole[:2], chunked)
    assert Columns.of(both.to_dict()) == both


def test_near_a_line_a_column_without_readings_is_no_wider_than_a_few_of_its_deviations():
    line, z = Columns((LINE,), (400.0,)), torch.full((40, 2), torch.nan, dtype=torch.float64)
    z[0, 0], z[39, 0] = 0.0, 0.0
    _, sd = line.posterior(z, [slice(0, 40)])
    assert (sd[:, 1] == WIDEST).all()
    assert 0 < sd[20, 0] < WIDEST
    drawn = torch.cat([part for _, part in line.draws(z, [slice(0, 40)], 4000, 0)], dim=1)
    assert float((drawn.std(0)[:, 1] / WIDEST - 1).abs().max()) < 0.05
    assert float(drawn.std(0)[20, 0] / sd[20, 0]) == pytest.approx(1, abs=0.05)
    assert float(Columns((0.0,), (400.0,)).posterior(z, [slice(0, 40)])[1][5, 1]) == 400  # about the mean, as is
