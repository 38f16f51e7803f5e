"""The contract: signals (samples x nodes) in their own units, split in three, on a graph with named nodes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..core.errors import InputError, shortened, unknown
from ..core.rows import blocks
from ..graphs.graph import Graph
from ..graphs.space import SignalSpace
from .normalizer import Normalizer, check_signals
from .notes import Note
from .origin import Origin
from .splits import NAMES as SPLIT_NAMES


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training, validation and test signals on one graph.

    ``train``, ``val`` and ``test`` are arrays (samples, nodes) in the signals' own ``unit``, NaN where a reading is
    missing; ``times`` and ``filled`` say of a split when its signals were read, and which readings were filled in.
    """

    name: str
    graph: Graph
    train: np.ndarray  # (samples, nodes)
    val: np.ndarray
    test: np.ndarray
    unit: str = ""
    times: dict[str, np.ndarray] = field(default_factory=dict)  # by split: (samples,), if known
    filled: dict[str, np.ndarray] = field(default_factory=dict)  # by split: (samples, nodes), True where filled in
    notes: tuple[Note, ...] = ()  # what was done on reading that the user should know
    origin: Origin = field(default_factory=Origin)  # where it came from and how it was prepared; written into every run

    def __post_init__(self) -> None:
        for split in SPLIT_NAMES:
            what = f"{split} signals of {self.name}"
            checked = check_signals(self.split(split), SignalSpace(self.graph), what, gaps=True)
            object.__setattr__(self, split, checked)
            self._check_beside(split, checked.shape)

    def _check_beside(self, split: str, shape: tuple[int, int]) -> None:
        filled, times = self.filled.get(split), self.times.get(split)
        if filled is not None and (np.shape(filled) != shape or np.asarray(filled).dtype != bool):
            raise InputError(f"a {split} mask of shape {np.shape(filled)}", f"{shape}, true or false", "export again")
        if times is not None and np.shape(times) != shape[:1]:
            raise InputError(f"{np.shape(times)} times for {shape[0]} {split} signals", "one a signal", "export again")

    def __repr__(self) -> str:
        """Three lines: how many signals, where from, on which graph."""
        counts = " / ".join(f"{len(self.split(split)):,}" for split in SPLIT_NAMES)
        unit = f" in {shortened(self.unit)}" if self.unit else ""
        lines = (
            f"Dataset {shortened(self.name)}: {counts} signals{unit} (train / val / test)",
            f"from {shortened(self.origin.source or 'memory', 80)}",
            repr(self.graph).partition("\n")[0],
        )
        return "\n  ".join(lines)

    @property
    def facts(self) -> dict:
        """``origin`` as a run keeps it."""
        return self.origin.to_dict()

    def split(self, name: str) -> np.ndarray:  # (samples, nodes)
        """The signals (samples, nodes) of the split ``name``: train, val or test."""
        if name not in SPLIT_NAMES:
            raise unknown("split", name, SPLIT_NAMES)
        return getattr(self, name)

    def observed(self, split: str) -> np.ndarray | None:  # (samples, nodes)
        """(samples, nodes): True where ``split`` had a reading, neither missing nor filled; None if everywhere."""
        observed = ~np.isnan(self.split(split))
        if split in self.filled:
            observed &= ~self.filled[split]
        return None if observed.all() else observed

    @cached_property
    def normalizer(self) -> Normalizer:
        """z-scores with training statistics: the common scale of training and evaluation."""
        return Normalizer.fit(self.train, self.graph)


def fingerprint(*arrays: np.ndarray) -> str:
    """A hash of signals, kept in every run so that it goes on with the data it began with."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode())
        for rows in blocks(*array.shape):
            part = np.array(array[rows], dtype="<f8", order="C")
            part[np.isnan(part)] = np.nan  # NaN has many bit patterns and one meaning
            digest.update(part.data)
    return digest.hexdigest()
