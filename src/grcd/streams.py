"""Random numbers keyed by what they are for, never by generator state.

``stream(seed, purpose, index)`` is a fresh counter-based generator (Philox). Update 1,234 of a run draws its batch, its
noise and its times from ``index=1234`` whatever happened before, so a resumed run draws what an uninterrupted one
would have drawn, every method with the same seed sees the same randomness, and the numbers do not depend on the
device: they are drawn on the host, in one order, and moved.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """The generator for one purpose of one seed; streams with different arguments are independent."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    key = np.frombuffer(digest[:16], dtype="<u8")
    # The index fills the counter's top word: below it 2^192 blocks lie free, so streams cannot overlap.
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, index]))
