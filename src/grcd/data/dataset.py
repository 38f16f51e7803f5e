"""The contract: signals (samples x nodes) in their own units, split in three, on a graph with named nodes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import unknown
from ..graph import Graph
from ..normalizer import Normalizer, check_signals

SPLIT_NAMES = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training, validation and test signals on one graph."""

    name: str
    graph: Graph
    train: np.ndarray  # (samples, nodes)
    val: np.ndarray
    test: np.ndarray
    unit: str = ""

    def __post_init__(self):
        for split in SPLIT_NAMES:
            checked = check_signals(self.split(split), self.graph, f"{split} signals of {self.name}")
            object.__setattr__(self, split, checked)

    def split(self, name: str) -> np.ndarray:
        if name not in SPLIT_NAMES:
            raise unknown("split", name, SPLIT_NAMES)
        return getattr(self, name)

    @cached_property
    def normalizer(self) -> Normalizer:
        """z-scores with training statistics: the common scale of training and evaluation."""
        return Normalizer.fit(self.train, self.graph)


def fingerprint(*arrays: np.ndarray) -> str:
    """A hash of signals, kept in every run so that it goes on with the data it began with."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def load_dataset(name: str) -> Dataset:
    """A built-in dataset by name."""
    if name not in BUILT_IN:
        raise unknown("dataset", name, BUILT_IN)
    from . import sbm

    return sbm.load(int(name.removeprefix("sbm-c")))


BUILT_IN = {
    "sbm-c1": "synthetic, 32 nodes: two-block graph, mild low-pass signals with two modes",
    "sbm-c4": "synthetic, 32 nodes: the same, energy more concentrated at low frequencies",
    "sbm-c16": "synthetic, 32 nodes: the same, most concentrated",
}
