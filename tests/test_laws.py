"""That laws are tried on the same examples every time, and what counts as close."""

import importlib.util
import sys

import laws
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def tried(**changes):
    """The examples of a law."""
    seen = []

    @settings(settings.get_profile(laws.TEST), max_examples=200, **changes)
    @given(x=st.floats(), n=st.integers(), s=st.text())
    def law(x, n, s):
        seen.append((repr(x), n, s))

    law()
    return seen


def test_the_examples_are_the_same_every_time_whichever_modules_are_loaded(tmp_path):
    before = tried()
    path = tmp_path / "of_the_user.py"
    path.write_text("\n".join(f"x{k} = {k}.12345, 1{k}8765, 'text {k}'" for k in range(99)))
    spec = importlib.util.spec_from_file_location("of_the_user", path)
    sys.modules["of_the_user"] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        assert tried() == before
    finally:
        del sys.modules["of_the_user"]


def test_a_search_tries_other_examples_every_time():
    assert tried(derandomize=False) != tried(derandomize=False)


def test_a_search_tries_ten_times_as_many():
    counts, before = [], settings.get_current_profile_name()
    try:
        for profile in (laws.TEST, laws.FUZZ):
            settings.load_profile(profile)
            counts.append(laws.examples(30).max_examples)
    finally:
        settings.load_profile(before)
    assert counts == [30, 300]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_close_is_relative_to_the_largest_entry(scale):
    x = scale * np.array([1e3, 1e-9, 0.0])
    laws.close(x + scale * 0.9e-9, x, rtol=1e-12)
    with pytest.raises(AssertionError):
        laws.close(x + scale * 1.1e-9, x, rtol=1e-12)
    laws.close(x + scale * 0.9e-5, x, rtol=1e-12, size=[scale * 1e7])
    with pytest.raises(AssertionError):
        laws.close(x, np.full(3, np.nan), rtol=1e-12)
