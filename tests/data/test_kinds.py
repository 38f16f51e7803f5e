"""Kinds of readings: whole numbers, zeros, limits, rounding, told of laws that have them and of none that has not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.data.kinds import Kind, of_channels

ROWS = (3000, 6)


def law(name: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    normal = random.standard_normal(ROWS)
    return {
        "normal": normal,
        "lognormal": np.exp(normal),
        "counts": random.poisson(1.0, ROWS).astype(float),
        "many counts": random.poisson(40.0, ROWS).astype(float),
        "rain": np.where(random.random(ROWS) < 0.2, random.gamma(0.6, 2, ROWS), 0.0),
        "percent": np.minimum(100.0, 90 + 10 * normal),
        "degrees": np.rint(12 + 6 * normal),
        "tenths": np.round(12 + 6 * normal, 1),
        "switch": (normal > 0.5).astype(float),
    }[name]


@pytest.mark.parametrize(
    ("name", "whole", "decimals", "bounds"),
    [
        ("normal", False, None, (-np.inf, np.inf)),
        ("lognormal", False, None, (-np.inf, np.inf)),
        ("counts", True, 0, (0.0, np.inf)),
        ("many counts", True, 0, (-np.inf, np.inf)),
        ("rain", False, None, (0.0, np.inf)),
        ("percent", False, None, (-np.inf, 100.0)),
        ("degrees", True, 0, (-np.inf, np.inf)),
        ("tenths", False, 1, (-np.inf, np.inf)),
        ("switch", True, 0, (0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_law_is_what_it_is(name, whole, decimals, bounds, dtype):
    kind = Kind.of(law(name).astype(dtype))
    assert (kind.whole, kind.decimals, kind.bounds) == (whole, decimals, bounds)


@pytest.mark.parametrize("name", ["counts", "rain", "switch", "percent"])
def test_the_shares_that_are_named_are_those_of_the_readings(name):
    x = law(name)
    x[::7] = np.nan
    kind, seen = Kind.of(x), x[~np.isnan(x)]
    assert kind.zeros == (seen == 0).mean()
    assert kind.negative == bool((seen < 0).any())
    assert kind.high_share == ((seen == seen.max()).mean() if kind.high is not None else 0.0)


def test_in_words():
    share = (law("counts") == 0).mean()
    assert str(Kind.of(law("counts"))) == f"whole numbers, none negative, {share:.0%} exactly 0"
    assert str(Kind.of(law("percent"))).endswith("at exactly 100, the most")
    assert str(Kind.of(law("normal"))) == ""


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from(["counts", "rain", "percent", "degrees", "switch"]))
def test_one_broken_reading_is_no_whole_number_and_order_does_not_matter(seed, name):
    random, x = np.random.default_rng(seed), law(name, seed % 5)
    kind = Kind.of(x)
    shuffled = random.permutation(x.ravel()).reshape(x.shape)
    assert Kind.of(shuffled) == kind
    x[random.integers(len(x)), random.integers(x.shape[1])] = 3.25
    assert not Kind.of(x).whole


def test_nothing_is_said_of_few_readings_or_of_a_constant():
    assert Kind.of(np.arange(40.0).reshape(20, 2)) == Kind()
    assert Kind.of(np.full((100, 3), 7.0)) == Kind()
    assert Kind.of(np.full((100, 3), np.nan)) == Kind()


def test_each_channel_by_itself():
    x = np.stack([law("counts"), law("normal")], axis=2)
    assert of_channels(x) == [Kind.of(law("counts")), Kind.of(law("normal"))]


def test_counts_that_thin_out_have_no_most_and_grades_have():
    random = np.random.RandomState(0)
    counts = np.minimum(random.poisson(0.8, (40, 8)), 3).astype(float)  # so few rows have no more than three
    assert 0.01 < (counts == 3).mean() < (counts == 2).mean() / 2
    assert Kind.of(counts).high is None
    grades = random.choice([1.0, 2, 3, 4, 5], (200, 8), p=[0.1, 0.1, 0.3, 0.3, 0.2])
    assert Kind.of(grades).bounds == (1, 5)
    assert Kind.of((random.random_sample((200, 8)) < 0.02).astype(float)).bounds == (0, 1)
