"""Which mean a series has: what is kept where it is true, and that nothing is where it is not."""

import json

import numpy as np
import pytest
import torch
from laws import close

import grcd
from grcd.core.errors import InputError
from grcd.data.covariates import Covariates
from grcd.data.series import Series
from grcd.graphs.space import SignalSpace
from grcd.training.mean import Mean, Terms
from grcd.training.means import Means, often_read

HOUR, DAY = (np.timedelta64(1, unit).astype("timedelta64[ns]") for unit in "hD")
CPU = torch.device("cpu")


def space(nodes=3, steps=6, channels=1):
    W = np.diag(np.ones(nodes - 1), 1)
    return SignalSpace(grcd.Graph.from_adjacency(W + W.T), steps, channels)


def noise(rows, columns=3, memory=0.6, seed=0):
    """Autoregressions of unit variance that have something in common."""
    random = np.random.RandomState(seed)
    x = np.zeros((rows, columns))
    steps = random.standard_normal((rows, columns)) + random.standard_normal((rows, 1))
    x[0] = steps[0]
    for t in range(1, rows):
        x[t] = memory * x[t - 1] + np.sqrt(1 - memory**2) * steps[t]
    return x / np.sqrt(2)


def means(x, step, cut, covariates=None, calendar="auto", last=None, **more):
    times = None if step is None else np.datetime64("2020-01-01", "ns") + np.arange(len(x)) * step
    if covariates is not None:
        covariates = Covariates.of(covariates, times=times)
    parts = [
        Series(x[rows][:, :, None], None if times is None else times[rows])
        for rows in (slice(cut), slice(cut, last or len(x)))
    ]
    return Means(space(x.shape[1], **more), *parts, CPU, covariates, calendar), times


def test_only_mondays_differ():
    x = noise(400)
    x[5::7] += 3.0  # 2020-01-06 was a Monday
    about, _ = means(x, DAY, 330)
    terms, kept = about.chosen()
    assert terms == Terms(clock=True, week=True)
    assert kept["calendar"] == "mean and day of week"
    table = about.fitted(terms, about.train.stretches).table.table[:, 0]
    assert (table[0] - table[1:].mean(0) > 2.5).all()
    assert [entry["step"] for entry in kept["tried"] if entry["kept"]][-1] == "day of week"


@pytest.mark.parametrize("seed", range(4))
def test_a_sensor_that_is_dead_most_of_the_time_does_not_decide_for_all_others(seed):
    """In the third that has its readings it would be judged by a mean of next to none."""
    hours, random = np.arange(24 * 40) % 24, np.random.RandomState(seed)
    x = noise(len(hours), 8, seed=seed) + 2 * np.sin(2 * np.pi * hours / 24)[:, None]
    x[24 * 12 - 8 : 24 * 34, 1] = np.nan  # of the other two thirds it has eight readings
    about, _ = means(x, HOUR, 24 * 34, random.standard_normal((40, 3)).repeat(24, axis=0))
    terms, kept = about.chosen()
    assert terms.clock
    assert kept["covariates"] == []
    first = next(entry for entry in kept["tried"] if entry["step"] == "time of day, weekend")
    alive, _ = means(np.delete(x, 1, axis=1), HOUR, 24 * 34)
    other = alive.chosen()[1]["tried"][0]
    assert first["needed"] < 2 * other["needed"]


def test_columns_are_often_read_beside_what_is_usual():
    x = torch.ones(40, 5)
    x[10:, 0] = x[9:, 1] = torch.nan  # 10 and 9 of 40
    assert often_read(x).tolist() == [True, False, True, True, True]
    assert often_read(x[:, :0]).tolist() == []


def test_a_year_is_kept_over_three_years_and_cannot_be_over_one():
    rows = np.arange(3 * 365 + 120)
    x = noise(len(rows)) + 2 * np.cos(2 * np.pi * rows / 365.25)[:, None]
    about, times = means(x, DAY, 3 * 365)
    terms, _ = about.chosen()
    assert terms.calendar == "year"
    mean = about.fitted(terms, about.train.stretches).rows(times, len(times))[0]
    close(mean, np.repeat(2 * np.cos(2 * np.pi * rows / 365.25)[:, None], 3, 1), 0.2)
    once, _ = means(x[:420], DAY, 360)
    assert not once.chosen()[0].year
    assert "year" not in [entry["step"] for entry in once.chosen()[1]["tried"]]


def test_hours_that_spread_more_are_kept():
    x = noise(24 * 80, memory=0.2)
    hours = np.arange(len(x)) % 24
    x = x * np.where(hours < 12, 1.0, 3.0)[:, None] + 2 * np.sin(2 * np.pi * hours / 24)[:, None]
    assert means(x, HOUR, 24 * 65)[0].chosen()[0] == Terms(clock=True, spread=True)


def test_a_covariate_with_an_effect_is_kept_among_others_and_its_coefficient_recovered():
    c = noise(900, 5, 0.8, seed=1)
    x = 10 + noise(900, 3, 0.6) + c[:, [2]] * [1.0, 2.0, -0.5]
    about, times = means(x, HOUR, 750, c)
    terms, kept = about.chosen()
    assert terms == Terms(covariates=("covariate 3",))
    assert kept["covariates"] == ["covariate 3"]
    mean = about.fitted(terms, about.train.stretches)
    close(mean.table.weights[0] / mean.usual[1, 0], [1.0, 2.0, -0.5], 0.1)
    rows = mean.rows(times, 900, c[:, [2]])
    for one, other in zip(rows, mean.rows(times, 900, Covariates.of(c, times=times)), strict=True):
        close(one, other, 0)
    close(rows[0], 10 + c[:, [2]] * [1.0, 2.0, -0.5], 0.05)
    with pytest.raises(InputError, match=r"no covariates(.|\n)*covariate 3, which the model was trained with"):
        mean.rows(times, 900)
    with pytest.raises(InputError, match="one row a row"):
        mean.rows(times, 900, c)


def held_out(mean, x, times, covariates, first):
    """Log-likelihood a reading, each by itself."""
    centre, spread, _ = mean.rows(times, len(x), covariates, first)
    return float((-0.5 * ((torch.from_numpy(x) - centre) / spread).square() - spread.log()).mean())


@pytest.mark.parametrize(("rows", "step"), [(35, DAY), (61, 7 * DAY), (364, DAY), (240, HOUR)])
def test_what_says_nothing_is_not_kept_and_does_not_hurt(rows, step):
    """Pure noise as covariates, no calendar in the readings: against the column's mean, on as many rows to come."""
    gains, kept = [], 0
    for seed in range(6):
        cut, last = round(0.85 * rows), rows
        x, c = noise(2 * rows, 3, 0.7, seed), noise(2 * rows, 1 + seed % 4, 0.7, 100 + seed)
        about, times = means(x, step, cut, c, last=last)
        terms, _ = about.chosen()
        kept += terms != Terms()
        mean, plain = (about.fitted(each, about.train.stretches) for each in (terms, Terms()))
        known = Covariates.of(c, times=times)
        ahead = x[last:], times[last:], known, last
        gains.append(held_out(mean, *ahead) - held_out(plain, *ahead))
    assert kept <= 1
    assert np.mean(gains) > -0.01


def test_where_times_say_nothing_or_nothing_is_wanted_there_is_no_calendar():
    x = noise(400, memory=0.0) + 3 * np.sin(2 * np.pi * np.arange(400) / 24)[:, None]
    assert means(x, HOUR, 300)[0].chosen()[0].clock
    for step, calendar in ((None, "auto"), (HOUR, "none")):
        about, times = means(x, step, 300, x[:, :1], calendar)
        terms, kept = about.chosen()
        assert terms == Terms(covariates=("covariate 1",))  # covariates are tried all the same
        assert kept["calendar"] == "none"
        known = Covariates.of(x[:, :1])
        mean = about.fitted(terms, about.train.stretches)
        assert (
            mean.rows(None if times is None else times[300:], 100, known, 300)[2].shape == (100, 1) == (100, mean.told)
        )
    with pytest.raises(InputError, match="calendar 'sometimes'"):
        means(x, HOUR, 300, calendar="sometimes")


def test_constant_covariates_are_left_out_and_said_and_gaps_count_as_the_mean():
    x = noise(300, memory=0.0)
    c = np.stack([np.full(300, 7.0), x[:, 0]], axis=1)
    about, times = means(x, DAY, 250, c)
    assert about.names == ("covariate 2",)
    assert "same in all training rows: covariate 1" in about.notes[0]
    mean = about.fitted(Terms(covariates=("covariate 2",)), about.train.stretches)
    unknown, usual = np.full((300, 1), np.nan), np.full((300, 1), c[:250, 1].mean())
    close(mean.rows(times, 300, unknown)[0], mean.rows(times, 300, usual)[0], 1e-12)
    beyond, most = np.full((300, 1), 1e9), np.full((300, 1), c[:250, 1].max())
    close(mean.rows(times, 300, beyond)[0], mean.rows(times, 300, most)[0], 0)


def test_columns_in_another_order_give_the_same_choice_and_means_in_that_order():
    x = noise(500, 4, 0.4) * [1, 2, 3, 4] + 2 * np.sin(2 * np.pi * np.arange(500) / 24)[:, None] * [1, 2, 0, 4]
    x[np.random.RandomState(0).random_sample(x.shape) < 0.1] = np.nan
    c = noise(500, 2, seed=5)
    order = [2, 0, 3, 1]
    (about, times), (other, _) = (means(values, HOUR, 400, c) for values in (x, x[:, order]))
    terms, _ = about.chosen()
    assert terms == other.chosen()[0]
    assert terms.clock
    terms = Terms(True, True, True, covariates=("covariate 2", "covariate 1"))
    fits = [each.fitted(terms, each.train.stretches).rows(times, 500, c[:, ::-1]) for each in (about, other)]
    close(fits[1][0], fits[0][0][:, order], 1e-9)
    close(fits[1][1], fits[0][1][:, order], 1e-9)


def test_it_comes_back_from_a_run_to_the_bit():
    x = noise(24 * 30) + 3 * np.sin(2 * np.pi * np.arange(720) / 24)[:, None]
    c = noise(720, 2, seed=3)
    about, times = means(x, HOUR, 600, c)
    terms = Terms(True, True, True, covariates=("covariate 2",))
    mean = about.fitted(terms, about.train.stretches)
    written = json.loads(json.dumps(mean.to_dict()))
    again = Mean.from_parts(written, {key: value.clone() for key, value in mean.tensors().items()}).to(CPU)
    for one, other in zip(mean.rows(times, 720, c[:, 1:]), again.rows(times, 720, c[:, 1:]), strict=True):
        assert torch.equal(one, other)
    assert (again.terms, again.terms.calendar) == (terms, "mean, day of week and spread")
    assert again.told == mean.rows(times, 720, c[:, 1:])[2].shape[1] == 4 + 1 + 7 + 1
    for kind in (terms, Terms()):  # a file of tensors refuses memory that two of them share
        tensors = about.fitted(kind, about.train.stretches).tensors().values()
        assert len({tensor.data_ptr() for tensor in tensors if tensor.numel()}) == sum(t.numel() > 0 for t in tensors)
    z, spread = about.scored(mean)
    centre, other, told = mean.rows(times, 720, c[:, 1:])
    close(z * spread + centre, x, 1e-12)
    assert torch.equal(spread, other)
    assert torch.equal(told, about.told(terms))


def test_rows_without_dates_are_refused_where_the_calendar_was_learned():
    x = noise(100)
    about, _ = means(x, HOUR, 80)
    mean = about.fitted(Terms(clock=True), about.train.stretches)
    for times, got in ((None, "rows without times"), (np.arange(5.0), "times that are numbers")):
        with pytest.raises(InputError, match=got):
            mean.rows(times, 5)
