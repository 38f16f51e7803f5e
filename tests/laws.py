"""What laws share: how many examples they try, and when two results count as one.

`make test` tries the same examples every time, on every machine: a change is to blame for a failure, not a draw. `make
fuzz` searches, with fresh randomness and ten times the examples.
"""

import contextlib

import numpy as np
import torch
from hypothesis import HealthCheck, settings

TEST, FUZZ, MORE = "test", "fuzz", 10

# How fast the machine is, is no law: no deadline, and no complaint that examples are slow to make.
FREE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile(TEST, derandomize=True, database=None, **FREE)
settings.register_profile(FUZZ, derandomize=False, print_blob=True, **FREE)

# Among its examples hypothesis puts the constants of modules that are loaded, and of those that other tests load
# meanwhile: examples that change with the order of tests and the name of the folder.
with contextlib.suppress(ImportError):
    from hypothesis.internal.conjecture import providers

    providers._get_local_constants = lambda: providers.Constants()


def examples(count: int, suppress: tuple[HealthCheck, ...] = ()) -> settings:
    """A law that is tried on so many examples."""
    checks = [*settings.default.suppress_health_check, *suppress]
    return settings(max_examples=count * (1 if settings.default.derandomize else MORE), suppress_health_check=checks)


def close(actual, expected, rtol: float = 1e-12, size=None) -> None:
    """Differ by at most `rtol` of the largest entry expected; or of `size`, where larger numbers cancelled."""
    if torch.is_tensor(actual) and torch.is_tensor(expected):
        actual, expected = actual.detach(), expected.detach()
        assert actual.dtype == expected.dtype
    actual, expected = (np.asarray(part, dtype=np.float64) for part in (actual, expected))
    size = np.abs(expected if size is None else np.asarray(size))
    size = size.max(initial=0.0, where=~np.isnan(size))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * size)


def each_close(actual, expected, rtol: float = 1e-12) -> None:
    """Every entry differs by at most `rtol` of itself: for what is computed without cancellation."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=0)
