"""How signals and graph are read: each option once, for ``load_dataset`` and for the command line.

Nothing heavy is imported with this module: the command line makes its parser of it, which must answer at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from ..core.errors import InputError, unknown

MOST_HELD_OUT = 0.9
GRAPH_OPTIONS = ("symmetrize", "k", "bandwidth", "metric", "threshold")


class Help(NamedTuple):
    """What the command line says of an option, and what it takes it as, where that differs."""

    text: str
    flags: tuple[str, ...] = ()
    typed: Any = None


@dataclass(frozen=True)
class Options:
    """In the order of the help. None is the default of the dataset, or of the kind of file."""

    graph: Annotated[Any, Help("The graph's file, if the data do not hold it.", ("--graph",), str | None)] = None
    symmetrize: Annotated[str | None, Help("half-sum or max, for a graph with directed weights.")] = None
    k: Annotated[
        int | None, Help("Positions: link each node to so many nearest ones [5].", ("--neighbours", "--k"))
    ] = None
    bandwidth: Annotated[float | None, Help("Positions, distances: width of the Gaussian weights.")] = None
    metric: Annotated[str | None, Help("Positions: euclidean or great-circle.")] = None
    threshold: Annotated[float | None, Help("Distances: smallest weight that is kept [0.1].")] = None
    drop: Annotated[Sequence[str], Help("A node to leave out; may be repeated.", typed=list[str] | None)] = ()
    common: Annotated[bool, Help("Drop nodes that only the signals or only the graph have.", ("--common",))] = False
    missing: Annotated[
        Sequence[float] | None,
        Help("A value that marks a missing reading; may be repeated.", typed=list[float] | None),
    ] = None
    fill: Annotated[str | None, Help("forward-backward, linear, mean or none.")] = None
    split_by: Annotated[str | None, Help("chronological, random, or the column that says train, val, test.")] = None
    split_seed: Annotated[int, Help("For a random split.")] = 0
    hold_out: Annotated[
        float | None, Help("Share of the rows that teach nothing, for evaluate and report [0.2]; 0: the last two rows.")
    ] = None
    val: Annotated[str | Path | None, Help("A file of validation signals.", typed=str | None)] = None
    test: Annotated[str | Path | None, Help("A file of test signals.", typed=str | None)] = None
    cap: Annotated[
        Sequence[int] | None, Help("At most so many signals a split: N, or TRAIN,VAL,TEST.", typed=str | None)
    ] = None
    every: Annotated[
        str | None, Help("Put rows with irregular times on a clock, e.g. 5min, 1h, 1d; what it lacks is a gap.")
    ] = None
    unit: Annotated[str | None, Help("The signals' unit, for labels; of several channels with commas.")] = None
    data_dir: Annotated[
        str | Path | None, Help("Where data with a name lie; else GRCD_DATA, then the cache.", typed=Path | None)
    ] = None

    def __post_init__(self) -> None:
        """One number is a list of one; and what cannot be is refused before anything is read."""
        object.__setattr__(self, "missing", markers(self.missing))
        object.__setattr__(self, "cap", _caps(self.cap))
        from .gaps import POLICIES

        if self.fill is not None and self.fill not in POLICIES:
            raise unknown("fill policy", self.fill, POLICIES)
        if self.label and (self.val or self.test):
            raise InputError("a split column and files of their own", "one of them", "leave out --val and --test")
        self._refuse_hold_out()
        if self.graph is not None and not isinstance(self.graph, str | Path):
            from ..graphs.graph import Graph

            if not isinstance(self.graph, Graph):
                object.__setattr__(self, "graph", Graph.from_adjacency(self.graph, symmetrize=self.symmetrize))

    def _refuse_hold_out(self) -> None:
        if self.hold_out is None:
            return
        if not 0 <= self.hold_out <= MOST_HELD_OUT:
            do = "e.g. --hold-out 0.1; 0 keeps the last two rows only"
            raise InputError(f"hold_out = {self.hold_out}", f"a share from 0 to {MOST_HELD_OUT}", do)
        if self.label or self.test:
            other = "a split column" if self.label else "a file of test signals"
            raise InputError(f"hold_out and {other}", "one of them", "leave out --hold-out")

    @classmethod
    def of(cls, options: dict[str, Any]) -> Options:
        """By name; an unknown one is refused."""
        names = [option.name for option in fields(cls)]
        for key in options:
            if key not in names:
                raise unknown("option", key, names)
        return cls(**options)

    @property
    def label(self) -> str | None:
        """The column that says which split a row belongs to, if that is how rows are split."""
        return self.split_by if self.split_by not in (None, "chronological", "random") else None

    @property
    def changed(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {
            option.name: value for option in fields(self) if (value := getattr(self, option.name)) != option.default
        }

    @property
    def of_graph(self) -> dict[str, Any]:
        """What ``read_graph`` takes."""
        return {name: getattr(self, name) for name in GRAPH_OPTIONS}

    def refuse_changed(self, what: str, allowed: Iterable[str]) -> None:
        """For data that are ready: there is nothing to choose but what is allowed."""
        if others := sorted({*self.changed} - {*allowed}):
            raise InputError(
                f"{', '.join(flag(name) for name in others)} for {what}",
                "no such options: its signals, gaps and splits are settled",
                "leave them out",
            )


def listed() -> Iterator[tuple[str, Any, Any, Help]]:
    """All options in order: name, type and default as the command line has them, and its help."""
    for option, hint in zip(fields(Options), get_type_hints(Options, include_extras=True).values(), strict=True):
        kind, help = get_args(hint)
        yield option.name, help.typed or kind, None if option.default == () else option.default, help


def flag(name: str) -> str:
    """An option as the command line spells it."""
    return f"--{name.replace('_', '-')}"


def markers(values: Any) -> tuple[float, ...] | None:
    """Of missing readings; NaN is one anyway, and infinite readings are always refused."""
    if values is None:
        return None
    numbers = _list(values)
    if any(math.isinf(value) for value in numbers):
        do = "empty those cells: an infinite reading is none"
        raise InputError(f"missing = {numbers}", "a finite number, or several", do)
    return tuple(value for value in numbers if not math.isnan(value))


def _caps(values: Any) -> tuple[int, ...] | None:
    if values is None:
        return None
    numbers = _list(values)
    if len(numbers) not in (0, 1, 3) or any(number < 2 for number in numbers):
        raise InputError(f"cap = {numbers}", "one number from 2 up, or three", "give e.g. --cap 20000,3000,5000")
    return tuple(numbers)


def _list(values: Any) -> list:
    """One number is a list of one."""
    import numpy as np

    return np.atleast_1d(values).tolist()
