"""Coefficients of features: noise by a closed form, recovery, shrinkage, invariances."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.references.coefficients import _blocked, _noise, block_count, coefficients, order, worth


def walk(rows, columns, memory, seed):
    """Autoregressions of unit variance."""
    random = np.random.RandomState(seed)
    noise = random.standard_normal((rows, columns)) * math.sqrt(1 - memory**2)
    x = random.standard_normal((1, columns))
    out = []
    for step in noise:
        x = memory * x + step
        out.append(x[0])
    return torch.from_numpy(np.array(out))


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_noise_is_that_of_autoregressions_in_closed_form(memory):
    """The product of two autoregressions has correlation ``memory^(2 l)`` at lag ``l``."""
    rows = 4000
    P, e = walk(rows, 40, memory, 0), walk(rows, 1, memory, 1)
    shares = _blocked(P, e, block_count(rows, 1)) / rows
    expected = (1 + memory**2) / (1 - memory**2) / rows
    assert _noise(shares, 1).mean() == pytest.approx(expected, rel=0.35)


def test_effects_are_recovered_common_and_own_with_gaps():
    f = walk(3000, 3, 0.5, 0)
    truth = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.5, 2.0, -1.0]], dtype=torch.float64)
    values = f @ truth + 0.2 * walk(3000, 3, 0.5, 1)
    values[torch.rand(3000, 3, generator=torch.Generator().manual_seed(0)) < 0.3] = torch.nan
    close(coefficients(values, f), truth, 0.02)


def test_features_that_say_nothing_have_hardly_any_coefficients():
    chance, kept = 0.0, 0.0
    for seed in range(30):
        f, values = walk(200, 2, 0.9, seed), walk(200, 5, 0.9, 1000 + seed)
        least_squares = torch.linalg.lstsq(f, values).solution
        chance += float(least_squares.square().sum())
        kept += float(coefficients(values, f).square().sum())
    assert kept < 0.4 * chance


def test_a_feature_that_repeats_another_changes_nothing():
    f = walk(1000, 2, 0.5, 0)
    values = f @ torch.tensor([[1.0], [0.5]], dtype=torch.float64) + walk(1000, 1, 0.5, 1)
    both = torch.cat([f, 3 * f[:, :1], torch.zeros(1000, 1).double()], 1)
    close(both @ coefficients(values, both), f @ coefficients(values, f), 1e-2)


def test_more_features_than_rows_and_columns_without_readings_stay_finite():
    f, values = walk(12, 30, 0.0, 0), walk(12, 3, 0.0, 1)
    values[:, 1] = torch.nan
    values[:, 2] = 0.0
    B = coefficients(values, f)
    assert B.isfinite().all()
    assert not B[:, 2].any()
    assert coefficients(values, f[:, :0]).shape == (0, 3)


@given(st.permutations(range(4)), st.permutations(range(3)), st.integers(0, 50))
@examples(20)
def test_features_and_columns_in_another_order(columns, features, seed):
    f, values = walk(150, 3, 0.3, seed), walk(150, 4, 0.5, 99 + seed)
    values = values + f @ torch.rand(3, 4, generator=torch.Generator().manual_seed(seed)).double()
    B = coefficients(values, f)
    close(coefficients(values[:, columns], f[:, features]), B[features][:, columns], 1e-8)
    close(coefficients(10 * values, f), 10 * B, 1e-8)
    close(coefficients(values, 10 * f), B / 10, 1e-8)


def test_what_explains_more_is_worth_more():
    f = walk(2000, 4, 0.5, 0)
    values = f @ torch.tensor([[0.1], [1.0], [0.0], [0.5]], dtype=torch.float64) + walk(2000, 1, 0.5, 1)
    assert worth(values, f).argsort(descending=True)[:2].tolist() == [1, 3]
    # alone, a feature's share of variance is its squared correlation
    close(worth(f[:, :1], f[:, :1]), torch.ones(1).double(), 0.05)


def test_the_order_is_by_what_is_left_to_explain():
    """The third feature is nearly the first: beside it, it is worth less than the second."""
    f = walk(2000, 3, 0.3, 0)
    f[:, 2] = f[:, 0] + 0.3 * f[:, 2]
    values = f[:, :1] + 0.4 * f[:, 1:2] + 0.5 * walk(2000, 1, 0.3, 1)
    assert worth(values, f).argsort(descending=True).tolist() == [0, 2, 1]
    assert order(values, f, 3) == [0, 1, 2]
    repeated = torch.cat([f[:, :1], f], 1)
    assert order(values, repeated, 2)[1] == 2
