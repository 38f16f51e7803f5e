"""Tables drawn window by window, against the posterior of the whole table under a vector autoregression."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.core.errors import InputError
from grcd.graphs.space import SignalSpace
from grcd.references.stationary import Shrinkage, Stationary, toeplitz
from grcd.tasks import windows

COLUMNS = 2
GRAPH = grcd.Graph.from_adjacency(np.ones((COLUMNS, COLUMNS)) - np.eye(COLUMNS))
AS_IT_IS = Shrinkage(nodes=0.0, separable=0.0, local=0.0, noise=0.0)
WHOLE = [slice(None)]


def autoregression(seed, lags, memory=0.7):
    """``z_(t+1) = A z_t + noise`` of unit variance: ``A``, and ``C_l = A^l C_0`` where ``C_0 = A C_0 A' + I``."""
    A = torch.randn(COLUMNS, COLUMNS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    A *= memory / torch.linalg.matrix_norm(A, 2)
    powers = [torch.linalg.matrix_power(A, k) for k in range(200)]
    C0 = sum(power @ power.T for power in powers)
    return A, torch.stack([powers[lag] @ C0 for lag in range(lags)])


class Exact:
    """The posterior of a window under the autoregression; counts its draws."""

    def __init__(self, steps, seed=0, memory=0.7):
        self.space = SignalSpace(GRAPH, steps)
        self.A, C = autoregression(seed, steps, memory)
        self.reference, self.calls = Stationary.of(C, AS_IT_IS), 0

    def draw(self, z, observed, calendar, n, nfe, noise):
        assert observed.shape == z.shape == (len(calendar), self.space.d)
        assert calendar.shape[1] == self.space.steps
        assert z[observed].isfinite().all()
        self.calls += 1
        return self.reference.posterior(z, observed, noise("posterior", (len(z), n, self.space.d))).draws


class Calendar:
    """Draws that are the calendar's only feature, whatever was observed; keeps the days that it was shown."""

    def __init__(self, steps):
        self.space, self.shown = SignalSpace(GRAPH, steps), []

    def draw(self, z, observed, calendar, n, nfe, noise):
        self.shown.append(calendar[0, :, 0])
        return calendar.expand(-1, -1, COLUMNS).reshape(len(z), 1, -1).expand(-1, n, -1)


class Units:
    """In place of a stream: member 0 has no noise, and every other a single 1, in a place of its own.

    Draws are affine in their noise, so that these members have the mean and the covariance of all, exactly.
    """

    def __init__(self, members, d):
        self.members, self.d, self.places = members, d, {}

    def __call__(self, seed, purpose, device="cpu"):
        self.purpose = purpose
        return self

    def normal(self, index, count):
        assert count == self.members * self.d
        first = 1 + self.d * self.places.setdefault((self.purpose, index), len(self.places))
        noise = torch.zeros(self.members, self.d, dtype=torch.float64)
        noise[first : first + self.d] = torch.eye(self.d, dtype=torch.float64)
        return noise.flatten()


def law(model, most, draw):  # mean (rows columns,), covariance
    """Mean and covariance of what ``draw(n)`` gives, (n, rows, columns), with at most so many windows."""
    members = 1 + most * model.space.d
    units = Units(members, model.space.d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "Stream", units)
        images = draw(members).flatten(1)
    assert len(units.places) <= most
    spread = images[1:] - images[0]
    return images[0], spread.T @ spread


def posterior(model, z, stretches=WHOLE):  # mean (rows columns,), covariance
    """Of the whole table, densely; stretches know nothing of each other."""
    powers = [torch.linalg.matrix_power(model.A, lag) for lag in range(len(z))]
    C0 = model.reference.Sigma[:COLUMNS, :COLUMNS]
    Sigma = toeplitz(torch.stack([power @ C0 for power in powers]))
    stretch = torch.zeros(len(z))
    for number, rows in enumerate(stretches):
        stretch[rows] = number
    stretch = stretch.repeat_interleave(COLUMNS)
    Sigma = Sigma * (stretch[:, None] == stretch)
    x, hidden = z.flatten(), z.flatten().isnan()
    gain = Sigma[hidden][:, ~hidden] @ torch.linalg.inv(Sigma[~hidden][:, ~hidden])
    mean, covariance = x.clone(), torch.zeros_like(Sigma)
    mean[hidden] = gain @ x[~hidden]
    place = hidden.nonzero()[:, 0]
    covariance[place[:, None], place] = Sigma[hidden][:, hidden] - gain @ Sigma[~hidden][:, hidden]
    return mean, covariance


def table(seed, rows, missing=0.5):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, COLUMNS, generator=g, dtype=torch.float64)
    z[torch.rand(rows, COLUMNS, generator=g) < missing] = math.nan
    return z


def complete(z, every, seed=0):
    """Every so many rows one without a gap."""
    z[::every] = table(seed, len(z[::every]), missing=0.0)
    return z


def days(rows):
    return torch.zeros(rows, 0, dtype=torch.float64)


def filled(model, z, stretches=WHOLE, n=4, **options):  # (n, rows, columns)
    parts = list(windows.fill(model, z, days(len(z)), stretches, n, 1, options.pop("seed", 0), **options))
    rows = np.concatenate([rows for rows, _ in parts])
    assert np.array_equal(rows, np.concatenate([np.arange(len(z))[s] for s in stretches]))
    return torch.cat([drawn for _, drawn in parts], dim=1)


def cut(rows, at):
    ends = [0, *sorted({row for row in at if 0 < row < rows}), rows]
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 30),
    guard=st.integers(1, 4),
    context=st.integers(1, 4),
    stride=st.integers(1, 4),
    breaks=st.lists(st.integers(1, 29), max_size=2),
)
@examples(30)
def test_members_are_draws_from_the_posterior_of_the_whole_table(seed, rows, guard, context, stride, breaks):
    """Mean and covariance of all rows together, across the borders of windows and of stretches: a row of every guard is
    complete, and stretches may be shorter than a window."""
    model, stretches = Exact(guard + context + stride, seed), cut(rows, breaks)
    z = complete(table(seed, rows), guard, seed + 1)
    mean, covariance = law(model, rows, lambda n: filled(model, z, stretches, n, guard=guard, context=context))
    exact_mean, exact_covariance = posterior(model, z, stretches)
    close(mean, exact_mean, 1e-9, size=z.nan_to_num())
    close(covariance, exact_covariance, 1e-9, size=model.reference.Sigma)


def test_what_is_lost_falls_with_the_guard_as_correlations_do():
    """No row is complete, and whole spells have nothing observed: what follows a window reaches into it."""
    z = table(3, 60)
    z[20:33] = math.nan
    errors = []
    for guard in (0, 2, 4, 6):
        model = Exact(16, seed=3, memory=0.5)
        law_of = law(model, 20, lambda n, model=model, guard=guard: filled(model, z, n=n, guard=guard, context=4))
        exact = posterior(model, z)
        errors.append([float((ours - theirs).abs().max()) for ours, theirs in zip(law_of, exact, strict=True)])
        assert errors[-1][0] < 0.5**guard
        assert errors[-1][1] < 0.5 ** (2 * guard)
    assert min(errors[0]) > 1e-2  # a guard is needed
    assert errors[-1][0] < 1e-2 * errors[0][0]
    assert errors[-1][1] < 1e-3 * errors[0][1]


def test_draws_have_the_moments_of_the_posterior():
    """With the random numbers of a seed: mean, variance and covariance with the next row, over many members."""
    model, z, n = Exact(8, seed=1), complete(table(1, 30), 3), 20_000
    exact_mean, exact_covariance = posterior(model, z)
    drawn = filled(model, z, n=n, guard=3, context=2).flatten(1)
    sd = exact_covariance.diagonal().sqrt()
    assert ((drawn.mean(0) - exact_mean).abs() <= 4.5 * sd / math.sqrt(n) + 1e-12).all()
    deviation = (drawn.T.cov() - exact_covariance).abs()
    assert (deviation <= 5 * math.sqrt(2 / n) * sd[:, None] * sd + 1e-12).all()
    assert exact_covariance.diagonal(COLUMNS).abs().max() > 0.1  # of a reading and the next, both missing


@pytest.mark.parametrize("chunk", [1, 3, 7, 26, 1000])
def test_rows_taken_any_number_at_a_time_are_the_same_to_the_bit(chunk):
    model, z, stretches = Exact(8), table(2, 53), cut(53, [5, 20])
    options = {"n": 5, "nfe": 1, "seed": 7}
    once = filled(model, z, stretches, n=5, seed=7)
    parts = list(windows.fill(model, z, days(53), stretches, **options, chunk=chunk))
    assert all(len(rows) == chunk for rows, _ in parts[:-1])
    assert torch.equal(torch.cat([drawn for _, drawn in parts], dim=1), once)
    assert np.array_equal(np.concatenate([rows for rows, _ in parts]), np.arange(53))


class Lazy:
    """A table that is made when it is looked at, and remembers how far that was."""

    def __init__(self, rows, like):
        self.rows, self.like, self.furthest = rows, like, 0

    def __len__(self):
        return self.rows

    def __getitem__(self, rows):
        start, stop, _ = rows.indices(self.rows)
        self.furthest = max(self.furthest, stop)
        return self.like[torch.arange(start, stop) % len(self.like)]


def test_a_long_table_is_read_no_further_than_the_window():
    model, z = Exact(8), table(4, 40)
    lazy = Lazy(10**9, z)
    parts = windows.fill(model, lazy, Lazy(10**9, days(1)), WHOLE, 3, 1, 0, guard=2, context=2)
    drawn = torch.cat([drawn for _, drawn in itertools.islice(parts, 5)], dim=1)
    assert lazy.furthest <= 4 * 4 + 8
    assert torch.equal(drawn[:, :16], filled(model, torch.cat([z, z]), n=3, guard=2, context=2)[:, :16])


def test_what_is_observed_comes_out_as_it_went_in():
    model, z = Exact(8), table(5, 40).float()
    drawn = filled(model, z, n=6)
    assert drawn.dtype == torch.float32
    assert drawn.isfinite().all()
    seen = ~z.isnan()
    assert torch.equal(drawn[:, seen], z[seen].expand(6, -1))
    assert (drawn[:, ~seen].std(0) > 0).all()


def test_a_table_without_a_gap_is_itself():
    model, z = Exact(8), table(6, 40, missing=0.0)
    assert torch.equal(filled(model, z, n=3), z.expand(3, -1, -1))
    assert model.calls == 0
    assert list(windows.fill(model, z[:0], days(0), WHOLE, 3, 1, 0)) == []


def test_windows_without_a_gap_are_not_drawn():
    model, z = Exact(8), table(6, 400, missing=0.0)
    z[200, 0] = math.nan
    drawn = filled(model, z, n=3)
    assert model.calls == 1
    assert drawn[:, 200, 0].std() > 0
    assert torch.equal(drawn[:, :200], z[:200].expand(3, -1, -1))


def test_a_member_does_not_depend_on_how_many_there_are_and_every_window_has_its_own_numbers():
    model, z = Exact(8), table(7, 60, missing=1.0)
    many = filled(model, z, n=9)
    close(filled(model, z, n=4), many[:4], 1e-9)
    assert (filled(model, z, n=4, seed=1) - many[:4]).abs().min() > 0
    assert len(torch.unique(many)) == many.numel()


def test_stretches_know_nothing_of_each_other():
    model, z, stretches = Exact(8), table(8, 40), cut(40, [3, 25])
    other = z.clone()
    other[25:] += 10
    assert torch.equal(filled(model, other, stretches)[:, :25], filled(model, z, stretches)[:, :25])
    backwards = filled(model, z, stretches[::-1])
    assert torch.equal(backwards[:, -3:], filled(model, z, stretches)[:, :3])


@pytest.mark.parametrize("rows", [1, 3, 8, 30])
def test_every_row_is_drawn_by_its_own_day(rows):
    calendar = torch.arange(rows + 20, dtype=torch.float64)[:, None]
    z = table(9, rows)
    parts = windows.fill(model := Calendar(8), z, calendar, WHOLE, 2, 1, 0)
    expected = torch.where(z.isnan(), calendar[:rows], z)
    assert torch.equal(torch.cat([drawn for _, drawn in parts], dim=1), expected.expand(2, -1, -1))
    for shown in model.shown:  # no window goes beyond the table, unless the table is shorter
        assert torch.equal(shown, torch.arange(shown[0], shown[0] + 8).clamp(max=rows - 1).double())
        assert rows < 8 or shown[-1] < rows - 1 or shown[0] == rows - 8
    ahead = windows.forecast(Calendar(8), z, calendar, 20, 2, 1, 0)
    assert torch.equal(ahead, calendar[rows:].expand(2, -1, COLUMNS))
    for past in (slice(0, rows), slice(rows // 2, rows - 1), slice(0, 0)):
        (ahead,) = windows.forecasts(Calendar(8), z, calendar, [past], 20, 2, 1, 0)
        assert torch.equal(ahead, calendar[past.stop : past.stop + 20].expand(2, -1, COLUMNS))


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(0, 12),
    steps=st.integers(2, 8),
    horizon=st.integers(1, 20),
)
@examples(30)
def test_forecasts_are_those_of_the_autoregression(seed, rows, steps, horizon):
    """With a last row that is complete: ``A^h`` times it, and the covariance of all leads together, in a window and far
    beyond it; without any row a series out of nothing."""
    model, z = Exact(steps, seed), table(seed, rows)
    z[-1:] = table(seed + 1, len(z[-1:]), missing=0.0)
    draw = lambda n: windows.forecast(model, z, days(rows + horizon), horizon, n, 1, 0)  # noqa: E731
    mean, covariance = law(model, rows + horizon, draw)
    power = [torch.linalg.matrix_power(model.A, k) for k in range(horizon + 1)]
    C0 = model.reference.Sigma[:COLUMNS, :COLUMNS]
    last = z[-1] if rows else torch.zeros(COLUMNS, dtype=torch.float64)
    spread = [sum(power[k] @ power[k].T for k in range(h + 1)) if rows else C0 for h in range(horizon)]
    close(mean, torch.cat([power[h + 1] @ last for h in range(horizon)]), 1e-9, size=z.nan_to_num(1.0))
    covariance = covariance.view(horizon, COLUMNS, horizon, COLUMNS)
    for late in range(horizon):
        for early in range(late + 1):
            close(covariance[late, :, early], power[late - early] @ spread[early], 1e-9, size=C0)


def test_a_forecast_goes_on_from_what_the_last_rows_may_have_been():
    """Gaps at the end of the past: the posterior of the whole table, gaps and future together."""
    model, z = Exact(10, seed=4), complete(table(10, 20), 5)
    z[17:] = torch.where(torch.eye(3, COLUMNS, dtype=torch.bool), z[17:], math.nan)
    mean, covariance = law(model, 20, lambda n: windows.forecast(model, z, days(43), 23, n, 1, 0))
    exact = posterior(model, torch.cat([z, torch.full((23, COLUMNS), math.nan, dtype=torch.float64)]))
    close(mean, exact[0][20 * COLUMNS :], 1e-9, size=z.nan_to_num())
    close(covariance, exact[1][20 * COLUMNS :, 20 * COLUMNS :], 1e-9)


def test_a_forecast_never_sees_the_future():
    model, z = Exact(8), table(11, 60)
    pasts = [slice(0, 30), slice(10, 33), slice(31, 34), slice(40, 40)]
    drawn = list(windows.forecasts(model, z, days(80), pasts, 12, 3, 1, 5))
    for past, ours in zip(pasts, drawn, strict=True):
        changed = z.clone()
        changed[past.stop :] = 100 * torch.rand(60 - past.stop, COLUMNS, dtype=torch.float64)
        changed[: past.start] = math.nan
        assert torch.equal(next(windows.forecasts(model, changed, days(80), [past], 12, 3, 1, 5)), ours)
        alone = windows.forecast(model, z[past], days(80), 12, 3, 1, 5, number=past.stop)
        assert torch.equal(alone, ours)
    assert (drawn[0] - drawn[1]).abs().min() > 0


def test_a_forecast_looks_back_as_far_as_a_window_goes():
    model, z = Exact(8), table(12, 60)
    near = windows.forecast(model, z[-7:], days(8), 1, 3, 1, 5)
    assert torch.equal(near, windows.forecast(model, z, days(61), 1, 3, 1, 5))


def test_windows_out_of_nothing_have_the_covariance_of_the_model():
    model = Exact(5)
    calendar = torch.zeros(30_000, 5, 1, dtype=torch.float64)
    drawn = windows.sample(model, calendar, 1, 0)
    Sigma, n = model.reference.Sigma, len(drawn)
    sd = Sigma.diagonal().sqrt()
    assert ((drawn.flatten(1).T.cov() - Sigma).abs() <= 5 * math.sqrt(2 / n) * sd[:, None] * sd).all()
    close(windows.sample(model, calendar[:7], 1, 0, first=20), drawn[20:27], 1e-12)


def test_a_window_of_one_row_knows_that_row_alone():
    model, z = Exact(1), table(13, 9)
    mean, covariance = law(model, 9, lambda n: filled(model, z, n=n))
    exact = posterior(model, z, cut(9, range(9)))
    close(mean, exact[0], 1e-9)
    close(covariance, exact[1], 1e-9)
    assert windows.forecast(model, z, days(12), 3, 2, 1, 0).isfinite().all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guard": 4, "context": 4}, "a guard of 4 and a context of 4 rows"),
        ({"guard": -1}, "guard = -1"),
        ({"chunk": 0}, "chunk = 0"),
        ({"n": 0}, "n = 0"),
        ({"n": 10**12}, "draws of a window of 16 readings"),
        ({"calendar": days(9)}, "a calendar of 9 rows"),
    ],
)
def test_what_cannot_be_filled_is_refused_at_once(options, words):
    options = {"calendar": days(10), "stretches": WHOLE, "n": 2, "nfe": 1, "seed": 0} | options
    with pytest.raises(InputError, match=words):
        windows.fill(Exact(8), table(0, 10), **options)


def test_covariates_that_end_too_early_and_horizons_that_are_none_are_refused():
    with pytest.raises(InputError, match="a calendar of 12 rows"):
        windows.forecast(Exact(8), table(0, 10), days(12), 3, 2, 1, 0)
    with pytest.raises(InputError, match="horizon = 0"):
        windows.forecast(Exact(8), table(0, 10), days(12), 0, 2, 1, 0)
