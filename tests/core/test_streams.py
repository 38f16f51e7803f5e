"""Keyed random numbers: against SplitMix64 on Python integers, and for what must and must not change them."""

import hashlib
import math
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.core.streams import Stream

many = examples(40)
seeds = st.integers(0, 2**63 - 1)
purposes = st.sampled_from(["batch", "noise", "time", "terminal", "validation"])
indices = st.integers(0, 40_000)
counts = st.integers(1, 9)
KINDS = {
    "bits": lambda stream, index, count: stream.bits(index, count),
    "integers": lambda stream, index, count: stream.integers(index, count, 1000),
    "uniform": lambda stream, index, count: stream.uniform(index, count),
    "normal": lambda stream, index, count: stream.normal(index, count),
}
LATER = {
    "bits": lambda stream, index, count, first: stream.bits(index, count, first),
    "integers": lambda stream, index, count, first: stream.integers(index, count, 1000, first),
    "uniform": lambda stream, index, count, first: stream.uniform(index, count, first),
    "normal": lambda stream, index, count, first: stream.normal(index, count, first),
}
every_kind = pytest.mark.parametrize("draw", KINDS.values(), ids=list(KINDS))


def same(actual, expected):
    """Integers to the bit, floats to rounding: a sine may round differently at another place in memory."""
    if actual.is_floating_point():
        close(actual, expected, 1e-14, size=1.0)
    else:
        assert torch.equal(actual, expected)


def splitmix64(seed, purpose, index, place):
    """Output ``index 2^40 + place`` of the generator of Steele, Lea and Flood 2014, started from the key."""
    key = int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:8], "little")
    z = (key + (index * 2**40 + place) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_the_oracle_gives_the_published_outputs_of_splitmix64():
    """The first outputs from the state 1234567, as printed with the reference implementation."""
    key = int.from_bytes(hashlib.sha256(b"0/noise").digest()[:8], "little")
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    start = (1234567 - key) * inverse % 2**64  # the place at which the stream passes that state
    outputs = [splitmix64(0, "noise", 0, start + step) for step in (1, 2, 3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@many
@given(seed=seeds, purpose=purposes, index=indices, count=counts)
def test_every_number_is_a_function_of_the_hash_of_its_place(seed, purpose, index, count):
    stream = Stream(seed, purpose)
    hashes = [splitmix64(seed, purpose, index, place) for place in range(count)]
    assert [z % 2**64 for z in stream.bits(index, count).tolist()] == hashes
    assert stream.integers(index, count, 1000).tolist() == [(z >> 1) % 1000 for z in hashes]
    assert stream.uniform(index, count).tolist() == [(z >> 11) / 2**53 for z in hashes]


@many
@given(seed=seeds, purpose=purposes, index=indices, count=counts)
def test_normal_numbers_are_box_muller_on_the_two_halves_of_each_hash(seed, purpose, index, count):
    expected, sizes = [], []
    for place in range((count + 1) // 2):
        high, low = divmod(splitmix64(seed, purpose, index, place), 2**32)
        radius, angle = math.sqrt(-2 * math.log((high + 0.5) / 2**32)), 2 * math.pi * low / 2**32
        expected += [radius * math.cos(angle), radius * math.sin(angle)]
        sizes += [radius, radius]
    # angles are rounded, so that a number near zero is off by a share of its radius
    for found, exact, size in zip(Stream(seed, purpose).normal(index, count), expected, sizes, strict=False):
        close(found, exact, 1e-14, size=size)


def test_numbers_are_the_same_in_every_version():
    """Golden numbers: whoever changes the keys changes every published result."""
    assert Stream(0, "noise").bits(3, 2).tolist() == [4879425999403421576, 6661362883862820124]


@every_kind
@many
@given(seed=seeds, first=indices, length=st.integers(1, 5), step=st.integers(1, 3), count=counts)
def test_a_range_of_indices_draws_what_each_of_them_draws(draw, seed, first, length, step, count):
    """A resumed run starts its chunks elsewhere: update 1,234 has the same numbers in any chunk."""
    stream, chunk = Stream(seed, "noise"), range(first, first + length * step, step)
    same(draw(stream, chunk, count), torch.stack([draw(stream, index, count) for index in chunk]))


@every_kind
@many
@given(seed=seeds, index=indices, few=st.integers(1, 20), more=st.integers(0, 20))
def test_the_first_numbers_are_the_same_however_many_are_drawn(draw, seed, index, few, more):
    """So are the first signals of a seed, whatever ``n`` is."""
    stream = Stream(seed, "terminal")
    same(draw(stream, index, few + more)[:few], draw(stream, index, few))


def test_seed_purpose_and_index_each_make_another_stream():
    """All pairs, by correlation, also one place apart: at 20,000 numbers 5 standard errors are 0.035."""
    arguments = [(0, "noise", 0), (1, "noise", 0), (0, "time", 0), (0, "noise", 1), (1, "noise", 1), (10, "noise", 0)]
    draws = [Stream(seed, purpose).normal(index, 20_000) for seed, purpose, index in arguments]
    for one, other in combinations(draws, 2):
        for x, y in ((one, other), (one[1:], other[:-1]), (one.square(), other.square())):
            assert abs(np.corrcoef(x, y)[0, 1]) < 0.035


@pytest.mark.parametrize("along", ["one index", "many indices"])
def test_numbers_have_the_distribution_they_are_named_after(along):
    """Kolmogorov-Smirnov and chi-square on fixed draws, in the order within an update and across updates."""
    index, count = (0, 50_000) if along == "one index" else (range(50_000), 1)
    stream = Stream(0, "noise")
    uniform, normal, integers = (
        stream.uniform(index, count),
        stream.normal(index, count),
        stream.integers(index, count, 7),
    )
    assert scipy.stats.kstest(uniform.flatten(), "uniform").pvalue > 1e-3
    assert scipy.stats.kstest(normal.flatten(), "norm").pvalue > 1e-3
    assert scipy.stats.chisquare(torch.bincount(integers.flatten(), minlength=7)).pvalue > 1e-3
    serial = np.corrcoef(normal.flatten()[1:], normal.flatten()[:-1])[0, 1]
    assert abs(serial) < 5 / math.sqrt(50_000)


@many
@given(seed=seeds, index=indices, below=st.integers(1, 2**40))
def test_numbers_stay_in_their_range(seed, index, below):
    stream = Stream(seed, "batch")
    integers, uniform, normal = stream.integers(index, 64, below), stream.uniform(index, 64), stream.normal(index, 64)
    assert 0 <= integers.min() <= integers.max() < below
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert normal.abs().max() <= math.sqrt(2 * math.log(2**33))


def test_global_generators_are_neither_read_nor_moved():
    def state():
        return np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    before, expected = state(), Stream(0, "noise").normal(0, 10)
    assert state() == before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        assert torch.equal(Stream(0, "noise").normal(0, 10), expected)


@pytest.mark.parametrize("kind", list(KINDS))
@many
@given(seed=seeds, purpose=purposes, index=indices, count=counts, first=st.integers(0, 9), several=st.booleans())
def test_some_numbers_of_a_stream_are_drawn_without_those_before_them(
    kind, seed, purpose, index, count, first, several
):
    stream, index = Stream(seed, purpose), range(index, index + 3) if several else index
    same(LATER[kind](stream, index, count, first), KINDS[kind](stream, index, first + count)[..., first:])
