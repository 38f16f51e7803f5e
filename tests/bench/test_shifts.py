"""Shifts by hand-made numbers: what a band lets through one by one, and what chance explains."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy import stats

from grcd.bench.measured import LEAST, Entry
from grcd.bench.shifts import PAPER_SEEDS, log_ratio, of_group, of_row


def around(mean, sd, paper, seeds=3):
    """An entry with this mean and sample standard deviation."""
    steps = np.arange(seeds) - (seeds - 1) / 2
    return Entry(dict(enumerate(mean + sd * steps / steps.std(ddof=1))), paper=paper)


def test_four_numbers_at_three_quarters_are_a_shift_that_no_band_of_30_percent_sees():
    row = [around(0.75 * mean, 0.02 * mean, (mean, 0.03 * mean)) for mean in (2.0, 1.0, 0.2, 0.1)]
    shift = of_row(row)
    assert shift.called
    assert (shift.ratio, shift.least, shift.most, shift.units) == pytest.approx((0.75, 0.75, 0.75, 4))
    assert shift.sign == pytest.approx(2 / 2**4)  # four heads or four tails


def test_the_same_numbers_with_the_spread_of_the_band_are_chance():
    row = [around(0.75 * mean, 0.3 * mean, (mean, 0.3 * mean)) for mean in (2.0, 1.0, 0.2, 0.1)]
    assert of_row(row).one_side
    assert not of_row(row).called


def test_a_row_of_one_budget_is_welchs_test_of_the_logarithms():
    """To first order: sd of a logarithm is the relative sd."""
    ours, theirs = 1e-3 * np.array([-1.0, 0.5, 0.7, -0.2, 0.4]) - 0.002, 1e-3 * np.array([0.3, -0.8, 0.9])
    one = Entry(dict(enumerate(np.exp(ours))), paper=(float(np.exp(theirs.mean())), float(theirs.std(ddof=1))))
    expected = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    assert of_row([one]).p == pytest.approx(expected, rel=0.01)
    assert len(theirs) == PAPER_SEEDS


def test_budgets_of_a_network_do_not_add_evidence():
    one = around(0.9, 0.05, (1.0, 0.05))
    assert of_row([one] * 4).p == pytest.approx(of_row([one]).p)


def test_numbers_on_both_sides_are_no_shift():
    row = [around(0.7, 0.001, (1.0, 0.001)), around(1.1, 0.001, (1.0, 0.001))]
    shift = of_row(row)
    assert shift.p < 0.05
    assert not shift.one_side
    assert not shift.called


def test_a_sure_shift_of_a_few_percent_is_not_called_one():
    shift = of_row([around(1.03, 1e-4, (1.0, 1e-4))] * 4)
    assert shift.p < 1e-3
    assert not shift.called


def test_networks_are_compared_by_students_t():
    logs = [-0.28, -0.32, -0.23]
    shift = of_group([[Entry({0: math.exp(log)}, paper=(1.0, 0.1))] for log in logs])
    assert shift.p == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)
    assert shift.ratio == pytest.approx(math.exp(np.mean(logs)))
    assert shift.sign == pytest.approx(2 / 2**3)
    assert shift.called


def test_several_rows_of_a_network_count_as_one():
    def entries(*logs):
        return [Entry({0: math.exp(log)}, paper=(1.0, 0.1)) for log in logs]

    together, apart = of_group([entries(-0.2, -0.4), entries(-0.3)]), of_group([*map(entries, (-0.2, -0.4, -0.3))])
    assert (together.units, apart.units) == (2, 3)
    assert together.log == pytest.approx(-0.3)


def test_what_was_not_measured_is_left_out():
    empty, alone = Entry(paper=(1.0, 0.1)), Entry({0: 0.5}, paper=(1.0, 0.1))
    assert of_row([empty, alone]) is None  # one seed has no spread
    assert of_group([[empty], [alone]]) is None
    assert of_group([[empty], [alone], [alone]]).units == 2


def test_an_ammd_below_zero_counts_as_the_least():
    assert log_ratio(Entry({0: -0.01}, paper=(0.02, 0.001))) == pytest.approx(math.log(LEAST / 0.02))
    assert of_row([around(-0.01, 0.001, (0.02, 0.001))]).ratio == pytest.approx(LEAST / 0.02)


@examples(50)
@given(st.floats(0.1, 10), st.floats(0.01, 0.3), st.floats(0.01, 0.3), st.floats(0.01, 100))
def test_units_do_not_matter(ratio, sd, paper_sd, scale):
    row = [around(ratio, sd, (1.0, paper_sd))]
    scaled = [around(scale * ratio, scale * sd, (scale, scale * paper_sd))]
    if min(ratio, scale * ratio) > LEAST:
        close(of_row(scaled).p, of_row(row).p, 1e-9)
        close(of_row(scaled).ratio, of_row(row).ratio, 1e-9)
