"""The stopping rule on sequences written by hand, with a patience of three and a tolerance of one tenth."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.training.config import Config
from grcd.training.stopping import Plateau


def rule(baseline=1.0, **settings):
    return Plateau(baseline, **({"patience": 3, "tolerance": 0.1} | settings))


def told(plateau, *losses):
    """Whether each loss was the lowest so far; updates are counted 10, 20, 30, ..."""
    return [plateau.observe(loss, 10 * (i + 1)) for i, loss in enumerate(losses)]


def test_the_first_validation_always_counts():
    plateau = rule()
    assert told(plateau, 5.0) == [True]
    assert (plateau.milestone, plateau.stale, plateau.best_loss, plateau.best_update) == (5.0, 0, 5.0, 10)


def test_an_improvement_is_measured_against_the_gain_over_the_reference():
    # Gain 0.5 at a loss of 0.5: the milestone moves for more than 0.05, not for less.
    small, large = rule(), rule()
    told(small, 0.54, 0.5)
    told(large, 0.56, 0.5)
    assert (small.milestone, small.stale) == (0.54, 1)
    assert (large.milestone, large.stale) == (0.5, 0)


def test_the_same_step_counts_where_the_gain_is_small_and_not_where_it_is_large():
    near, far = rule(baseline=1.0), rule(baseline=10.0)
    for plateau in (near, far):
        told(plateau, 0.99, 0.95)
    assert near.stale == 0  # gain 0.05, step 0.04
    assert far.stale == 1  # gain 9.05, step 0.04


def test_the_papers_rule_measures_against_the_error_itself():
    # At a loss of 0.5 the milestone moves for more than 0.05, whatever the reference achieves.
    for baseline in (0.5001, 1.0, 10.0):
        small, large = rule(baseline, rule="paper"), rule(baseline, rule="paper")
        told(small, 0.54, 0.5)
        told(large, 0.56, 0.5)
        assert (small.stale, large.stale) == (1, 0)


def test_the_papers_rule_counts_a_small_gain_once_it_has_added_up_since_the_last_milestone():
    """Steps of six hundredths of the error, a tenth asked for: every second one counts, whatever the last error was."""
    plateau, stale = rule(rule="paper"), []
    for k in range(7):
        plateau.observe(0.94**k, k)
        stale.append(plateau.stale)
    assert stale == [0, 1, 0, 1, 0, 1, 0]


def test_without_a_rule_the_last_weights_are_kept_and_training_never_stops():
    plateau = rule(rule="none")
    assert told(plateau, 0.5, 0.4, *[0.6] * 20) == [True] * 22
    assert (plateau.best_loss, plateau.best_update, plateau.reached) == (0.6, 220, False)


def test_while_the_network_is_worse_than_the_reference_any_improvement_counts():
    plateau = rule(baseline=1.0)
    told(plateau, 3.0, 2.999999, 2.999998)
    assert (plateau.stale, plateau.milestone) == (0, 2.999998)
    plateau.observe(2.999998, 40)  # no improvement at all
    assert plateau.stale == 1


def test_slow_progress_adds_up_until_the_milestone_moves():
    # Steps of 0.02 against a threshold near 0.05: each third one counts, so the rule never stops.
    plateau = rule(baseline=1.0)
    stale = []
    for k in range(10):
        plateau.observe(0.6 - 0.02 * k, k)
        stale.append(plateau.stale)
    assert stale == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert not plateau.reached


def test_it_stops_after_as_many_stale_validations_as_its_patience():
    plateau = rule()
    told(plateau, 0.5, 0.51, 0.5)
    assert (plateau.stale, plateau.reached) == (2, False)
    plateau.observe(0.52, 40)
    assert (plateau.stale, plateau.reached) == (3, True)


def test_the_count_starts_again_when_the_milestone_moves():
    plateau = rule()
    told(plateau, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4)
    assert (plateau.stale, plateau.milestone, plateau.reached) == (2, 0.4, False)


def test_the_lowest_loss_is_kept_even_where_the_milestone_does_not_move():
    plateau = rule()
    assert told(plateau, 0.5, 0.49, 0.495, 0.485) == [True, True, False, True]
    assert (plateau.best_loss, plateau.best_update) == (0.485, 40)
    assert (plateau.milestone, plateau.stale, plateau.reached) == (0.5, 3, True)


def test_a_loss_equal_to_the_best_is_not_a_new_best():
    plateau = rule()
    assert told(plateau, 0.5, 0.5) == [True, False]
    assert plateau.best_update == 10


def test_a_loss_that_is_not_a_number_never_counts_as_progress():
    plateau = rule()
    assert told(plateau, 0.5, math.nan, math.nan, math.nan) == [True, False, False, False]
    assert (plateau.best_loss, plateau.reached) == (0.5, True)


def test_the_configuration_brings_the_papers_numbers():
    plateau = Plateau(1.0)
    assert (plateau.patience, plateau.tolerance) == (8, 0.002) == (Config().patience, Config().tolerance)


@examples(40)
@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=30), st.integers(0, 29))
def test_a_rule_restored_from_its_dictionary_goes_on_alike(losses, cut):
    whole, first = rule(), rule()
    for k, loss in enumerate(losses):
        if k == cut:
            first = Plateau(**json.loads(json.dumps(first.to_dict())))
        assert whole.observe(loss, k) == first.observe(loss, k)
    assert whole == first


def test_a_rule_that_has_seen_nothing_survives_the_dictionary():
    assert Plateau(**json.loads(json.dumps(rule().to_dict()))) == rule()


@examples(40)
@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=30))
def test_the_rule_equals_a_naive_one_that_remembers_everything(losses):
    plateau, milestones = rule(), [math.inf]
    for k, loss in enumerate(losses):
        plateau.observe(loss, k)
        gain = max(1.0 - loss, 0.0)
        milestones.append(loss if milestones[-1] - loss > 0.1 * gain else milestones[-1])
        since = len(milestones) - 1 - milestones.index(milestones[-1])
        assert (plateau.milestone, plateau.stale) == (milestones[-1], since)
        assert plateau.best_loss == min(losses[: k + 1])
        assert plateau.best_update == losses.index(min(losses[: k + 1]))
    assert plateau.reached == (plateau.stale >= 3)


@pytest.mark.parametrize("kind", ["gain", "paper"])
def test_a_network_that_begins_as_its_reference_may_get_worse_before_it_gets_better(kind):
    plateau = rule(baseline=1.0, rule=kind)
    plateau.begin(1.0)
    # At first nothing counts, for as many validations as the patience: three; but the best weights are kept.
    assert told(plateau, 0.99, 1.5, 2.0) == [True, False, False]
    assert (plateau.best_loss, plateau.best_update) == (0.99, 10)
    assert (plateau.milestone, plateau.stale, plateau.reached) == (math.inf, 0, False)
    # Above what it began with, but below what went before: progress.
    assert told(plateau, 1.8, 1.3) == [False] * 2
    assert (plateau.milestone, plateau.stale) == (1.3, 0)
    assert told(plateau, 0.9, 0.95, 0.95) == [True, False, False]
    assert (plateau.best_loss, plateau.milestone, plateau.stale, plateau.reached) == (0.9, 0.9, 2, False)
    plateau.observe(0.95, 80)
    assert plateau.reached


def test_what_gets_worse_and_stays_there_is_given_up_after_twice_the_patience():
    plateau = rule()
    plateau.begin(1.0)
    assert told(plateau, 2.0, 2.0, 2.5, 3.0, 3.0, 3.0) == [False] * 6
    assert not plateau.reached
    assert told(plateau, 3.0) == [False]
    assert (plateau.stale, plateau.reached, plateau.best_loss, plateau.best_update) == (3, True, 1.0, 0)


@examples(40)
@given(st.floats(0.1, 3.0), st.lists(st.floats(0.1, 3.0), min_size=1, max_size=30))
def test_beginning_puts_the_rule_off_by_the_patience_and_keeps_what_it_began_with_if_that_is_best(first, losses):
    begun, plain = rule(), rule()
    begun.begin(first)
    for k, loss in enumerate(losses, start=1):
        assert begun.observe(loss, k) == (loss < min([first, *losses[: k - 1]]))
        if k > begun.patience:
            plain.observe(loss, k)
        assert (begun.milestone, begun.stale, begun.reached) == (plain.milestone, plain.stale, plain.reached)
    assert begun.best_loss == min([first, *losses])
    assert begun.best_update == [first, *losses].index(begun.best_loss)
    assert Plateau(**json.loads(json.dumps(begun.to_dict()))) == begun


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_rule_does_not_depend_on_the_scale_of_the_losses(scale):
    losses = [2.0, 1.2, 0.8, 0.79, 0.7, 0.69, 0.68]
    one, other = rule(baseline=1.0), rule(baseline=scale)
    told(one, *losses)
    told(other, *(scale * loss for loss in losses))
    assert one.stale == other.stale
    assert one.best_update == other.best_update
