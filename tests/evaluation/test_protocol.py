"""The public protocols: what they hide and score, by numbers that others print, and scores by hand."""

import os
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.stats import norm

from grcd.bench.windows.settings import FORECAST, IMPUTATION
from grcd.data.loading import load_series
from grcd.evaluation import competitors, foretelling, protocol
from grcd.evaluation.baselines import straight
from grcd.metrics.ensemble import quantiles

real = pytest.mark.skipif(not os.environ.get("GRCD_DATA"), reason="GRCD_DATA does not name a folder with the data")


# -- scores ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 99), st.sampled_from([1, 2, 19, 50, 101]))
@examples(20)
def test_quantiles_of_draws_are_those_of_ensembles(seed, count):
    draws = np.random.RandomState(seed).standard_normal((count, 7))
    close(protocol.draw_quantiles(torch.from_numpy(draws)), quantiles(draws, protocol.LEVELS))


def test_scores_by_hand():
    """Of a point: CRPS is the mean absolute error over the mean size."""
    truth = torch.tensor([10.0, -2.0, 4.0])
    scores = protocol.draw_scores(torch.tensor([[11.0, -2.0, 1.0]]), truth)
    assert scores == pytest.approx({"MAE": 4 / 3, "MSE": 10 / 3, "CRPS": 4 / 16, "cover 50": 1 / 3, "cover 90": 1 / 3})
    assert protocol.quantile_losses(torch.zeros(19, 1), torch.ones(1)).tolist() == pytest.approx([1.0])


def test_the_loss_of_normal_quantiles_is_nearly_the_crps_of_the_normal():
    """Nineteen levels of all there are; CRPS of N(0, 1) at y is y (2 Phi - 1) + 2 phi - 1 / sqrt pi."""
    y = np.linspace(-1.5, 1.5, 11)
    q = torch.from_numpy(norm.ppf(protocol.LEVELS))[:, None].expand(19, 11)
    exact = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - np.pi**-0.5
    losses = protocol.quantile_losses(q, torch.from_numpy(y)).numpy() * 19 / 20  # the ends, .0 and 1, count for nothing
    assert np.abs(losses - exact).max() < 0.02


# -- what is hidden ----------------------------------------------------------------------------------------------------


def test_blocks_are_of_one_length_a_column_and_noise_lies_on_top():
    mask = protocol.hidden((4000, 12), "block")
    rng = np.random.default_rng(9101112)
    begins = rng.random((4000, 12)) < 0.0015
    expected = np.zeros_like(begins)
    for column in range(12):
        rows = np.flatnonzero(begins[:, column])
        if len(rows):
            length = 12 + rng.integers(36)
            ages = np.arange(4000)[:, None] - rows
            expected[:, column] = ((ages >= 0) & (ages < length)).any(axis=1)
    np.testing.assert_array_equal(mask, expected | (rng.random((4000, 12)) < 0.05))


@pytest.mark.parametrize(("kind", "count", "sum_of_bits"), [("point", 672, 329606233), ("block", 227, 3354400715)])
def test_masks_are_the_same_readings_everywhere(kind, count, sum_of_bits):
    """Of the public seed, 9101112, and nothing else."""
    mask = protocol.hidden((400, 7), kind)
    assert mask.sum() == count
    assert zlib.crc32(np.packbits(mask).tobytes()) == sum_of_bits


def test_points_are_a_quarter_and_come_second():
    rng = np.random.default_rng(9101112)
    rng.random((50, 3))
    np.testing.assert_array_equal(protocol.hidden((50, 3), "point"), rng.random((50, 3)) < 0.25)


def test_forecast_windows_are_the_last_fifth_of_all():
    rows = protocol.forecast_windows(123)  # 100 windows of 24
    np.testing.assert_array_equal(rows[[0, -1], :1], [[80], [99]])
    assert rows[-1, -1] == 122
    assert rows.shape == (20, 24)


# -- constants that others print ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metr_la():
    return load_series("metr-la")


def error(pieces, guess):  # (rows, nodes, channels) of the series
    every = np.arange(len(pieces))
    scored, truth = pieces.scored(every), pieces.truth(every)
    off = (guess[pieces.rows] - truth)[scored]
    return len(off), round(float(np.abs(off).mean()), 3), round(float(np.square(off).mean()), 2)


@real
@pytest.mark.parametrize(
    ("setting", "expected"),
    [("metr-la-point", (311_473, 2.434, 14.80)), ("metr-la-block", (112_339, 3.270, 33.84))],
)
def test_a_line_in_time_has_the_error_that_the_protocol_says(metr_la, setting, expected):
    pieces = IMPUTATION[setting].pieces(metr_la)
    assert len(pieces) == 343  # 286 one after the other; with two rows of 24 at either end answered by the next one
    line = competitors.fitted("line", metr_la.part("train"), metr_la.part("val"))
    assert error(pieces, line(pieces.holed)) == expected


@real
def test_the_last_reading_has_the_errors_that_the_protocol_says(metr_la):
    pieces = FORECAST["metr-la"].pieces(metr_la)
    assert len(pieces) == 6850
    last = foretelling.fitted("last", metr_la.part("train"), metr_la.part("val"))
    ahead = last(pieces.series, pieces.rows[:, 12], 12)
    off = np.abs(ahead - pieces.truth(np.arange(len(pieces)))[:, 12:])
    assert [round(float(np.nanmean(off[:, lead - 1])), 2) for lead in (3, 6, 12)] == [3.50, 4.21, 5.38]
    as_it_stands = np.nan_to_num(pieces.truth(np.arange(len(pieces)))[:, 11:12])  # what is missing is 0 in the file
    off = np.abs(as_it_stands - pieces.truth(np.arange(len(pieces)))[:, 12:])
    assert [round(float(np.nanmean(off[:, lead - 1])), 2) for lead in (3, 6, 12)] == [4.02, 5.09, 6.80]


@real
def test_aqi36_has_so_many_scored_readings_and_a_line_this_error():
    data = load_series("aqi36")
    pieces = IMPUTATION["aqi36"].pieces(data)
    line = straight(np.where(data.hidden, np.nan, data.series.values)[:, :, 0])[:, :, None]
    count, mae, _ = error(pieces, line[data.rows("test")])
    assert (count, round(mae, 2)) == (20_434, 14.68)
