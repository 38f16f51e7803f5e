"""Rows and readings in their context, against conditional Gaussians by hand."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.graphs.space import SignalSpace
from grcd.references.gaussian import full
from grcd.tasks import context

NODES, CHANNELS, STEPS = 2, 2, 4
COLUMNS = NODES * CHANNELS
SPACE = SignalSpace(grcd.Graph.from_adjacency([[0, 1], [1, 0]]), STEPS, CHANNELS)


def covariance():
    """Any covariance: the tasks ask for no more than a posterior."""
    root = torch.from_numpy(np.random.RandomState(0).standard_normal((SPACE.d, SPACE.d)))
    return root @ root.T / SPACE.d + 0.1 * torch.eye(SPACE.d)


SIGMA = covariance()
LAW = full(SIGMA.numpy())


def density(x, chosen, given):
    """Of the readings ``chosen`` given others, both masks (d,) of one window."""
    Sigma, both = SIGMA.numpy(), chosen | given

    def joint(o):
        C = Sigma[np.ix_(o, o)]
        return -0.5 * (x[o] @ np.linalg.solve(C, x[o]) + np.linalg.slogdet(2 * np.pi * C)[1])

    return joint(both) - joint(given)


def table(rows, seed, missing):
    random = np.random.RandomState(seed)
    z = random.standard_normal((rows, COLUMNS))
    z[random.random_sample(z.shape) < missing] = math.nan
    return torch.from_numpy(z)


@given(seed=st.integers(0, 99), missing=st.sampled_from([0.0, 0.4]), rows=st.integers(1, STEPS))
@examples(15)
def test_in_one_window_rows_and_readings_have_the_densities_of_conditional_gaussians(seed, missing, rows):
    z = table(rows, seed, missing)
    x = np.full((STEPS, COLUMNS), math.nan)
    x[:rows] = z
    seen, row = ~np.isnan(x).ravel(), np.arange(SPACE.d) // COLUMNS
    node = np.arange(SPACE.d) % COLUMNS // CHANNELS
    got = context.of_rows(LAW, SPACE, z, [slice(0, rows)])
    close(got, [density(x.ravel(), seen & (row == t), seen & (row != t)) for t in range(rows)])
    readings = context.of_readings(LAW, SPACE, z, [slice(0, rows)]).flatten()
    for k, value in enumerate(readings.tolist()):
        one = np.arange(SPACE.d) == k
        expected = density(x.ravel(), one, seen & (node != node[k])) if seen[k] else math.nan
        np.testing.assert_allclose(value, expected, rtol=1e-8)


@given(rows=st.integers(1, 23), cut=st.integers(0, 22))
@examples(15)
def test_every_row_of_every_stretch_is_looked_at_once_and_knows_nothing_of_other_stretches(rows, cut):
    z, cut = table(rows, 1, 0.1), min(cut, rows)
    stretches = [part for part in (slice(0, cut), slice(cut, rows)) if part.start < part.stop]
    whole = context.of_readings(LAW, SPACE, z, stretches)
    assert torch.equal(whole.isnan(), z.isnan())
    for part in stretches:
        alone = context.of_readings(LAW, SPACE, z[part], [slice(0, part.stop - part.start)])
        close(whole[part].nan_to_num(), alone.nan_to_num())


def test_a_row_of_a_long_table_is_seen_with_what_comes_before_and_after_it():
    z = table(40, 2, 0.0)
    base = context.of_rows(LAW, SPACE, z, [slice(0, 40)])
    for row in range(1, 39):
        for other in (row - 1, row + 1):
            changed = z.clone()
            changed[other] += 1
            moved = context.of_rows(LAW, SPACE, changed, [slice(0, 40)])
            assert abs(moved[row] - base[row]) > 1e-6
