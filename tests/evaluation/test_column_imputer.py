"""The iterative imputer on windows of columns, against itself on windows that are cut by hand."""

import warnings

import numpy as np
import pytest
from laws import close
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from grcd.data.series import Series
from grcd.evaluation import competitors, foretelling
from grcd.evaluation.column_imputer import TOLERANCE, ColumnImputer, cut

NAN = np.nan
STEPS, ROUNDS = 6, 5


def hide(random, shape):
    return random.random_sample(shape) < 0.2


def made(rows, nodes=3, channels=2, seed=0, gaps=0.1):
    """Autoregressions of each column by itself about means of their own, slow in the first channel."""
    random, x = np.random.RandomState(seed), np.zeros((rows, nodes, channels))
    for t in range(1, rows):
        x[t] = np.array([0.95, 0.6])[:channels] * x[t - 1] + random.standard_normal((nodes, channels))
    x += 10 * np.arange(nodes * channels).reshape(nodes, channels)
    x[random.random_sample(x.shape) < gaps] = NAN
    return x


def by_hand(train, asked, parts):
    """One channel: windows from every row on learn; ``parts`` are windows of ``asked`` and what of each is new."""
    mean, sd = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    z, filled = (train - mean) / sd, (asked - mean) / sd
    learn = np.array([z[t : t + STEPS, node] for t in range(len(z) - STEPS + 1) for node in range(z.shape[1])])
    learn = learn[~np.isnan(learn).all(axis=1)]
    learn[np.random.RandomState(0).random_sample(learn.shape) < 0.2] = NAN
    imputer = IterativeImputer(max_iter=ROUNDS, random_state=0, tol=TOLERANCE, keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer.fit(learn)
    whole = filled.copy()
    for start, first, stop in parts:
        for node in range(z.shape[1]):
            rows = np.full(STEPS, NAN)
            inside = filled[start : start + STEPS, node]
            rows[: len(inside)] = inside
            window = imputer.transform(rows[None])[0]
            whole[start + first : start + stop, node] = window[first:stop]
    return whole * sd + mean


def test_each_channel_is_filled_as_by_hand_and_not_across_a_break():
    train, asked = made(300), made(20, seed=1, gaps=0.3)
    model = ColumnImputer.fit(Series(train), STEPS, hide, 10**6, ROUNDS)
    filled = model.fill(Series(asked, borders=(16,)), STEPS, 1)
    # windows of 6 rows, of whose ends the next one answers for 1; one of 4 rows behind the break
    parts = [(0, 0, 5), (4, 1, 5), (8, 1, 5), (10, 3, 6)]
    for channel in range(2):
        right = by_hand(train[..., channel], asked[:16, :, channel], parts)
        close(filled[:16, :, channel], right)
        close(filled[16:, :, channel], by_hand(train[..., channel], asked[16:, :, channel], [(0, 0, 4)]))


def test_windows_end_with_the_stretch_of_one_of_their_rows():
    series = Series(np.zeros((10, 1, 1)), borders=(4,))
    z = np.arange(10.0)[:, None]
    before = cut(series, z, np.array([-2, 1, 3, 7]), np.array([0, 3, 5, 9]), 3)[..., 0]
    np.testing.assert_array_equal(before, [[NAN, NAN, 0], [1, 2, 3], [NAN, 4, 5], [7, 8, 9]])
    behind = cut(series, z, np.array([0, 3, 8]), np.array([0, 3, 8]), 3)[..., 0]
    np.testing.assert_array_equal(behind, [[0, 1, 2], [3, NAN, NAN], [8, 9, NAN]])


@pytest.mark.parametrize("borders", [(), tuple(range(10, 400, 10))])  # stretches that are shorter than a window
def test_an_autoregression_is_filled_better_than_by_means_and_always_the_same(borders):
    train, whole = made(600, gaps=0.05), made(400, seed=2, gaps=0.0)
    hidden = np.random.RandomState(3).random_sample(whole.shape) < 0.2
    asked = Series(np.where(hidden, NAN, whole), borders=borders)
    series = Series(train, borders=tuple(range(10, 600, 10)) if borders else ())
    fill = competitors.fitted("iterative-column", series, series)
    filled = fill(asked)
    np.testing.assert_array_equal(filled[~hidden], whole[~hidden])
    np.testing.assert_array_equal(filled, competitors.fitted("iterative-column", series, series)(asked))
    mean = competitors.fitted("mean", series, series)(asked)
    off, far = (np.abs(guess - whole)[..., 0][hidden[..., 0]].mean() for guess in (filled, mean))
    assert off < 0.5 * far


def test_what_was_never_read_is_at_the_mean():
    train, asked = made(200), made(60, seed=1)
    train[:, 1, 0] = asked[:, 2, 0] = NAN  # a column of the training rows, and one of those that are asked for
    train[:, :, 1] = NAN  # a whole channel
    fill = competitors.fitted("iterative-column", Series(train), Series(train))
    filled = fill(Series(asked))
    assert np.isfinite(filled).all()
    close(filled[:, 2, 0], np.full(60, np.nanmean(train[:, 2, 0])))
    gone = np.isnan(asked[..., 1])
    np.testing.assert_array_equal(filled[..., 1][gone], 0)  # nothing is known of its readings
    for name in ("iterative", "ridge"):
        ahead = foretelling.fitted(name, Series(train), Series(train))(Series(asked), np.array([4, 40]), 6)
        assert np.isfinite(ahead).all()
        np.testing.assert_array_equal(ahead[..., 1], 0)


def test_a_forecast_is_that_of_windows_with_one_reading_ahead():
    """Of an autoregression the future is its last reading times powers, whatever was read before."""
    x = made(4000, nodes=2, channels=1, gaps=0.0)
    train, held = Series(x[:3000]), Series(x[3000:])
    ends = np.arange(20, 900, 10)
    guess = foretelling.fitted("iterative", train, train)(held, ends, 5)[..., 0]
    mean = x[:3000].mean(axis=0)[:, 0]
    best = mean + 0.95 ** np.arange(1, 6)[None, :, None] * (held.values[ends - 1, :, 0] - mean)[:, None]
    assert np.abs(guess - best).mean() < 0.1 * np.abs(mean - best).mean()
