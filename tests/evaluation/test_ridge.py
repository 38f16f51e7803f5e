"""Ridge regressions of the future, against their closed form."""

import numpy as np
import pytest
from laws import close

from grcd.data.series import Series
from grcd.evaluation import foretelling, ridge
from grcd.evaluation.ridge import RidgeForecast

NAN = np.nan
HORIZON = 3


def made(rows, seed=0, gaps=0.0):
    """The second column is the first one two rows before, with noise; the third is by itself."""
    random = np.random.RandomState(seed)
    x = np.cumsum(random.standard_normal((rows + 2, 3)), axis=0) * 0.1 + random.standard_normal((rows + 2, 3))
    x[2:, 1] = x[:-2, 0] + 0.1 * random.standard_normal(rows)
    x = x[2:]
    x[random.random_sample(x.shape) < gaps] = NAN
    return x[:, :, None] + 5


def test_it_is_the_closed_form(monkeypatch):
    """With an intercept that is not penalised."""
    monkeypatch.setattr(ridge, "NEAREST", (1,))
    monkeypatch.setattr(ridge, "PENALTIES", (7.0,))
    train, held = made(200), made(50, seed=1)
    model = RidgeForecast.fit(Series(train), Series(train), HORIZON)
    guess = model.foretell(Series(held), np.array([10, 40]))[..., 0]
    mean, sd = train.mean(axis=0)[:, 0], train.std(axis=0)[:, 0]
    z, given = (train[..., 0] - mean) / sd, (held[..., 0] - mean) / sd
    correlation = np.abs(np.corrcoef(z.T)) - 2 * np.eye(3)
    for column in range(3):
        seen = [column, correlation[column].argmax()]
        ends = range(HORIZON, len(z) - HORIZON + 1)
        x = np.array([z[end - HORIZON : end][:, seen].ravel() for end in ends])
        y = np.array([z[end : end + HORIZON, column] for end in ends])
        middle = x - x.mean(axis=0)
        weights = np.linalg.solve(middle.T @ middle + 7 * np.eye(x.shape[1]), middle.T @ (y - y.mean(axis=0)))
        for k, end in enumerate((10, 40)):
            past = given[end - HORIZON : end][:, seen].ravel() - x.mean(axis=0)
            right = (past @ weights + y.mean(axis=0)) * sd[column] + mean[column]
            close(guess[k, :, column], right, rtol=1e-9)


def test_columns_that_know_are_looked_at_and_their_number_is_chosen_on_validation_rows():
    x = made(3000)
    train, val, test = (Series(part) for part in (x[:2000], x[2000:2500], x[2500:]))
    ends = np.arange(10, 490)
    guess = foretelling.fitted("ridge", train, val)(test, ends, HORIZON)[..., 0]
    assert np.abs(guess[:, 0, 1] - test.values[ends, 1, 0]).mean() < 0.15  # its noise is 0.08 on average
    assert [len(seen) for seen in RidgeForecast.fit(train, val, HORIZON).seen] == [3, 3, 3]


def test_the_penalty_is_that_of_the_least_error_over_validation_rows(monkeypatch):
    x = made(400)
    train, val = Series(x[:60]), Series(x[60:])
    off = {}
    for penalty in (0.01, 30.0, 1e6):
        monkeypatch.setattr(ridge, "PENALTIES", (penalty,))
        alone = RidgeForecast.fit(train, val, HORIZON)
        ends = np.arange(HORIZON, len(val) - HORIZON + 1)
        ahead = val.values[ends[:, None] + np.arange(HORIZON)]
        off[penalty] = (np.abs(alone.foretell(val, ends) - ahead) / alone.sd).mean()
    monkeypatch.setattr(ridge, "PENALTIES", (0.01, 30.0, 1e6))
    chosen = RidgeForecast.fit(train, val, HORIZON)
    assert {model.alpha for model in chosen.models} == {min(off, key=off.get)}


def test_gaps_in_the_past_are_the_last_reading_and_nothing_goes_on_across_a_break(monkeypatch):
    monkeypatch.setattr(ridge, "NEAREST", (0,))
    train = made(500, gaps=0.1)
    model = RidgeForecast.fit(Series(train), Series(train), HORIZON)
    mean = model.mean[:, 0]
    rows = made(9, seed=4)
    holed, carried, broken = rows.copy(), rows.copy(), rows.copy()
    holed[5:7], carried[5:7] = NAN, rows[4]
    guess = model.foretell(Series(holed), np.array([8]))
    close(guess, model.foretell(Series(carried), np.array([8])))
    broken[:7] = mean[:, None]
    behind = model.foretell(Series(rows, borders=(7,)), np.array([8]))
    close(behind, model.foretell(Series(broken), np.array([8])))
    early = np.concatenate([np.broadcast_to(mean[:, None], (2, 3, 1)), rows])
    close(model.foretell(Series(rows), np.array([1])), model.foretell(Series(early), np.array([3])))


@pytest.mark.parametrize("gaps", [0.1, 0.6])
def test_readings_that_are_missing_do_not_spoil_it(gaps):
    x = made(3000, gaps=gaps)
    train, test = Series(x[:2500]), Series(x[2500:])
    ends = np.arange(10, 490)
    guess = foretelling.fitted("ridge", train, train)(test, ends, HORIZON)
    truth = test.values[ends[:, None] + np.arange(HORIZON)]
    assert np.nanmean(np.abs(guess - truth)) < np.nanmean(np.abs(np.nanmean(train.values, axis=0) - truth))
