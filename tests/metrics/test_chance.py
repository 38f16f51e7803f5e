"""Groups of one are the usual standard error, copies say nothing new, and few groups have Student's tails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.metrics.chance import chance, standard_error


@examples(30)
@given(seed=st.integers(0, 2**32 - 1))
def test_groups_of_one_have_the_usual_standard_error_and_copies_say_nothing_new(seed):
    x = np.random.RandomState(seed).standard_normal(7)
    usual = x.std(ddof=1) / np.sqrt(7)
    close(standard_error(x, np.arange(7)), usual, 1e-10)
    close(standard_error(np.repeat(x, 3), np.repeat(np.arange(7), 3)), usual, 1e-10)


def test_chance_is_that_of_student():
    random = np.random.RandomState(0)
    gain, group = random.standard_normal(40), np.arange(40) // 10
    means = gain.reshape(4, 10).mean(axis=1)
    expected = 3.182446 * means.std(ddof=1) / 2  # three degrees of freedom
    assert chance(gain, group) == pytest.approx(expected, rel=1e-6)
    assert chance(gain, np.zeros(40)) == np.inf
