"""When a number counts as the paper's: bands, factors and verdicts by hand, and the table that has ours beside it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.bench import cells as files
from grcd.bench.bands import (
    DIFFERS,
    OPEN,
    REPRODUCED,
    TIGHT,
    WIDE,
    Band,
    Factor,
    beside_paper,
    factor,
    verdict,
)
from grcd.bench.cells import Control, Generated
from grcd.bench.measured import Entry
from grcd.bench.tables import printed
from grcd.core.errors import InputError


def entry(*values, paper=None):
    return Entry(dict(enumerate(values)), paper=paper)


# -- bands -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "paper", "tight", "wide"),
    [
        (0.119, (0.1, 0.001), True, True),  # 20 % is wider than two sd
        (0.121, (0.1, 0.001), False, True),
        (0.079, (0.1, 0.001), False, True),
        (0.131, (0.1, 0.001), False, False),
        (0.139, (0.1, 0.02), True, True),  # two sd are 0.04
        (0.141, (0.1, 0.02), False, False),
        (0.119, (0.1, None), True, True),  # no sd printed
        (0.121, (0.1, None), False, True),
    ],
)
def test_a_band_is_a_share_or_two_of_the_papers_sd_whichever_is_wider(ours, paper, tight, wide):
    assert (TIGHT.holds(entry(ours, paper=paper)), WIDE.holds(entry(ours, paper=paper))) == (tight, wide)


def test_our_own_spread_widens_no_band():
    same_mean = [entry(0.15, paper=(0.1, 0.001)), entry(0.0, 0.3, paper=(0.1, 0.001))]
    assert [WIDE.holds(each) for each in same_mean] == [False, False]
    assert WIDE.holds(entry(0.0, 0.25, paper=(0.1, 0.001))) is True  # 0.125: it is the mean that is judged


def test_without_a_number_there_is_no_judgement():
    assert TIGHT.holds(Entry(paper=(0.1, 0.01))) is None
    assert TIGHT.holds(entry(0.1)) is None
    assert Factor(math.nan, 2.0).holds() is None


@examples(50)
@given(st.floats(0.01, 10), st.floats(0, 1), st.floats(-1, 3))
def test_a_wider_band_holds_what_a_narrower_one_does(mean, sd, ratio):
    one = entry(ratio * mean, paper=(mean, sd * mean))
    assert not (TIGHT.holds(one) and not WIDE.holds(one))
    assert TIGHT.covers(ratio * mean, mean, sd * mean) == TIGHT.holds(one)


# -- factors -----------------------------------------------------------------------------------------------------------


def test_a_factor_that_only_the_papers_sd_lets_in_is_told():
    assert [Factor(ours, 2.0, 0.2).by_spread() for ours in (2.4, 2.5, 2.9, 3.0)] == [False, True, True, False]
    assert not Factor(math.nan, 2.0, 0.2).by_spread()


def test_a_factor_is_judged_by_the_papers_two_sd_in_logarithms():
    above, below = entry(8.0, paper=(10.0, 3.0)), entry(2.0, paper=(1.0, 0.4))
    found = factor(above, below)
    assert (found.ours, found.paper, found.spread) == pytest.approx((4.0, 10.0, 0.5))  # hypot(0.3, 0.4)
    low, high = 10 * math.exp(-1.0), 10 * math.exp(1.0)
    ends = [Factor(value, 10.0, 0.5).holds() for value in (0.99 * low, 1.01 * low, 0.99 * high, 1.01 * high)]
    assert ends == [False, True, True, False]
    assert found.holds() is True  # 3.68 is the lower end
    assert Factor(3.0, 10.0, 0.5).holds(Band(0.2, 3.0)) is True


def test_a_factor_of_sure_numbers_has_the_share():
    assert [Factor(value, 10.0).holds() for value in (7.9, 8.1, 11.9, 12.1)] == [False, True, True, False]
    assert Factor(12.1, 10.0).holds(WIDE) is True


def test_a_factor_needs_what_the_paper_prints():
    with pytest.raises(InputError, match="does not print"):
        factor(entry(1.0), entry(1.0, paper=(1.0, 0.1)))


# -- verdicts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([True, True], REPRODUCED),
        ([False, False], DIFFERS),
        ([True, False, True], "in part, 2 of 3"),
        ([None, None], OPEN),
        ([], OPEN),
        ([True, None], f"{REPRODUCED}; 1 {OPEN}"),
        ([False, None], f"{DIFFERS}; 1 {OPEN}"),
        ([True, False, None], f"in part, 1 of 2; 1 {OPEN}"),
    ],
)
def test_a_claim_in_parts_is_reproduced_if_all_of_them_hold(parts, said):
    assert verdict(parts) == said


# -- the table ---------------------------------------------------------------------------------------------------------


def test_every_number_of_the_main_tables_is_there_measured_or_not(tmp_path):
    empty = beside_paper("main", tmp_path)
    assert len(empty) == 200
    assert not any(entry.values for entry in empty.values())
    assert all(entry.paper == printed("main")[key] for key, entry in empty.items())
    for seed, value in enumerate((1.0, 2.0, 3.0, 4.0, 5.0)):
        files.write(Generated("molene", "edm", seed, 16), tmp_path, scores={"ammd": value})
        files.write(Generated("molene", "grcd", seed, 16), tmp_path, scores={"ammd": value})  # not the paper's
    measured = beside_paper("main", tmp_path)
    assert list(measured) == list(empty)
    assert {key: entry.mean for key, entry in measured.items() if entry.values} == {("molene", "edm", 16): 3.0}
    assert len(measured["molene", "edm", 16].values) == 5  # as many seeds as there are
    assert beside_paper("main", tmp_path, [0, 1])["molene", "edm", 16].mean == 1.5


def test_controls_stand_beside_the_papers_without_a_budget(tmp_path):
    files.write(Control("sbm-c1", "control-spectral", 0), tmp_path, scores={"ammd": 0.05})
    measured = beside_paper("controls", tmp_path)
    assert measured["sbm-c1", "control-spectral", None].paper == (0.0535, 0.0027)
    assert measured["sbm-c1", "control-spectral", None].mean == 0.05


def test_of_two_forms_of_the_third_order_solver_the_halved_one_is_the_papers(tmp_path):
    choice = {"seed": 0, "nfe": 4, "rho": 3.0}
    files.write(Generated("metr-la", "grcd-rho3", solver="dpm++3m", **choice), tmp_path, scores={"ammd": 0.09})
    key = ("metr-la", "dpm++3m-rho3", 4)
    assert not beside_paper("solvers", tmp_path)[key].values  # not measured: the other form does not stand in for it
    files.write(Generated("metr-la", "grcd-rho3", solver="dpm++3m-halved", **choice), tmp_path, scores={"ammd": 0.07})
    measured = beside_paper("solvers", tmp_path)[key]
    assert (measured.mean, measured.paper) == (0.07, (0.0708, 0.0023))
