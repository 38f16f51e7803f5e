"""Readings as users hold them, through a model and back: data frames, labelled arrays, plain arrays with times beside.

A data frame comes back as one, with its own index, columns and order, and a labelled array (xarray) with its dimensions
and coordinates; an array as an array, whose axis of channels is there if it came with one. A data frame is filled by
the median unless draws are asked for; arrays, labelled or not, are draws unless quantiles are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .core import memory
from .core.errors import InputError, whole_number
from .data import frames, labelled
from .data import times as clock
from .data.covariates import Covariates
from .data.frames import Frame
from .data.labelled import Labelled
from .data.notes import Note, warn
from .data.series import Series
from .graphs.graph import Graph
from .metrics.ensemble import summaries as of_draws
from .runs.series import Variables
from .series_model import SeriesModel

DRAWS = 100
WINDOWS = 4  # that validate, at the least
COPIES = 3  # of an ensemble in memory


@dataclass(frozen=True)
class Plain:
    """Arrays: what comes out has an axis of channels if they had one."""

    wide: bool

    filled = False  # draws are what comes back

    def table(self, values: np.ndarray, index: None = None) -> np.ndarray:  # (..., nodes, channels)
        """As the array came."""
        return values if self.wide else values[..., 0]

    def bands(self, values: np.ndarray, levels: Sequence[float], index: None = None) -> np.ndarray:
        """One quantile after the other."""
        return self.table(values)

    def draws(self, values: np.ndarray, index: None = None) -> np.ndarray:
        """One draw after the other."""
        return self.table(values)

    def scores(self, values: np.ndarray, name: str) -> np.ndarray:
        """A number a row."""
        return values

    def ahead(self, horizon: int) -> None:
        """Rows to come have no labels."""


Form = Frame | Labelled | Plain


@dataclass(frozen=True, eq=False)
class Readings:
    """What came in, as a series, and what it takes to give back the like."""

    series: Series
    form: Form

    @classmethod
    def of(
        cls,
        x: Any,
        graph: Graph,
        channels: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        absent: bool = False,
        lacking: Container[tuple[str, str]] = (),
    ) -> Readings:
        """From a data frame, a labelled array, an array (time, nodes[, channels]) or a ``Series``.

        ``channels`` None: as many as come; ``absent``: a node or channel that is not there has a gap everywhere, but
        for those ``lacking`` (node, channel).
        """
        if isinstance(x, Series):
            return cls(x, Plain(wide=True))
        if times is not None and is_named(x):
            raise InputError("a data frame, and times", "times in its index", "leave times out")
        form = _named_form(x, graph, channels, absent=absent, lacking=lacking)
        if form is not None:
            return cls(_regular(Series(form.values, form.times)), form)
        values = _array(x, len(graph), None if channels is None else len(channels))
        stamps = None if times is None else _times(times, len(values))
        wide = values.ndim == 3
        return cls(_regular(Series(values if wide else values[:, :, None], stamps)), Plain(wide))


def signals(x: Any, graph: Graph, absent: bool = False) -> tuple[Any, Form]:
    """Signals by themselves, (signals, nodes) in the graph's order where they have names, and how they came."""
    own = channels_of(x) if labelled.is_labelled(x) else []
    form = _named_form(x, graph, own if len(own) == 1 else ("",), absent=absent, timed=False)
    return (x, Plain(wide=False)) if form is None else (form.values[..., 0], form)


def dates(x: Any) -> np.ndarray | None:  # (rows,)
    """Those of a data frame's rows, if it has some that can be read."""
    try:
        return frames.dates_of(x.index) if frames.is_frame(x) else None
    except InputError:
        return None


def is_named(x: Any) -> bool:
    """Whether it brings names: a data frame, or a labelled array."""
    return frames.is_frame(x) or labelled.is_labelled(x)


def named(graph: Graph, x: Any) -> Graph:
    """A graph without names takes those of a frame or a labelled array, in their order, and that is said."""
    ids = _own(x) if is_named(x) and not graph.named else None
    if ids is None or ids == graph.node_ids:
        return graph
    if len(ids) != len(graph):
        what = "columns" if frames.is_frame(x) else "nodes"
        raise InputError(f"readings of {len(ids)} {what}", f"{len(graph)}, as the graph has nodes", "name its nodes")
    warn([Note("the graph has no node names", "its order is taken to be that of the readings' columns")], 4)
    return replace(graph, node_ids=ids, named=True)


def _own(x: Any) -> tuple[str, ...] | None:
    """Names of nodes that readings bring, in their order."""
    if frames.is_frame(x):
        return tuple(dict.fromkeys(str(name) for name in x.columns.get_level_values(0)))
    ids = labelled.nodes_of(x)
    return None if ids is None else tuple(ids)


def _named_form(
    x: Any,
    graph: Graph,
    channels: Sequence[str] | None,
    absent: bool,
    timed: bool = True,
    lacking: Container[tuple[str, str]] = (),
) -> Frame | Labelled | None:
    """A frame or a labelled array, by names; where the graph has none, in their order."""
    if not is_named(x):
        return None
    own = None if graph.named else _own(x)
    nodes = graph.node_ids if own is None or len(own) != len(graph) else own
    channels = channels_of(x) if channels is None else channels
    if frames.is_frame(x):
        return Frame.of(x, nodes, channels, absent, timed, lacking)
    return Labelled.of(x, nodes, channels, absent, timed)


def channels_of(x: Any) -> list[str]:
    """Names of channels that a frame or a labelled array brings."""
    return frames.channels_of(x.columns) if frames.is_frame(x) else labelled.channels_of(x)


def known(covariates: Any) -> Covariates | None:
    """Covariates from a data frame, an array (rows, covariates), or as they are."""
    return covariates if covariates is None or isinstance(covariates, Covariates) else Covariates.of(covariates)


def in_channels(x: Any) -> bool:
    """Whether rows have several channels."""
    return len(channels_of(x)) > 1 if is_named(x) else np.ndim(x) == 3


def split(
    train: Any, val: Any, graph: Graph, window: int, times: ArrayLike | None
) -> tuple[dict[str, Series], Variables, Form]:
    """Training and validation rows; without the latter, the last tenth of the rows, or a few windows, validate."""
    stamps = None if times is None else np.asarray(times)
    both = val is not None
    first = Readings.of(train, graph, None, stamps[: len(train)] if both and stamps is not None else stamps)
    channels = tuple(channels_of(train) if is_named(train) else _numbered(first.series))
    variables = Variables(channels, ("",) * len(channels))
    if both:
        second = Readings.of(val, graph, channels, None if stamps is None else stamps[len(train) :])
        return {"train": first.series, "val": second.series}, variables, first.form
    rows = len(first.series)
    cut = rows - min(max(rows // 10, WINDOWS * window), rows // 3)
    parts = {"train": first.series.rows(slice(0, cut)), "val": first.series.rows(slice(cut, rows))}
    return parts, variables, first.form


def _numbered(series: Series) -> list[str]:
    count = series.values.shape[2]
    return [""] if count == 1 else [f"channel {k}" for k in range(count)]


@dataclass(frozen=True)
class Answer:
    """What was asked for, of readings that came in some form: the table, quantiles of it, or draws."""

    form: Form
    n: int | None  # draws that were asked for
    quantiles: Sequence[float] | None

    def __post_init__(self) -> None:
        if self.quantiles is not None and not _are_levels(self.quantiles):
            got = f"quantiles = {self.quantiles!r:.80}"
            raise InputError(got, "a list of numbers between 0 and 1", "e.g. quantiles=[.05, .5, .95]")

    @property
    def count(self) -> int:
        """How many draws it takes."""
        return DRAWS if self.n is None else self.n

    @property
    def levels(self) -> Sequence[float] | None:
        """The quantiles to keep of them; None: all draws."""
        if self.quantiles is not None:
            return tuple(self.quantiles)
        return (0.5,) if self.n is None and self.form.filled else None

    def kept(self, draws: np.ndarray) -> np.ndarray:  # (draws, ...) -> (kept, ...)
        """Of some rows, what is given back."""
        return draws if self.levels is None else of_draws(draws, self.levels)

    def filled(self, parts: Iterable[tuple[np.ndarray, np.ndarray]], shape: tuple[int, int, int]) -> Any:
        """Of ``parts``, rows and their draws (draws, rows, nodes, channels), the whole in its form."""
        kept, size = self.count if self.levels is None else len(self.levels), int(np.prod(shape))
        memory.refuse_over(COPIES * 8 * kept * size, f"{kept:,} tables of {size:,} readings", "ask for fewer draws")
        result = np.empty((kept, *shape))
        for rows, draws in parts:
            result[:, rows] = self.kept(draws)
        return self.returned(result)

    def returned(self, result: np.ndarray, horizon: int | None = None) -> Any:
        """What was kept (kept, rows, nodes, channels), of the rows that came or of those after them."""
        index: Any = None if horizon is None else self.form.ahead(horizon)
        if self.quantiles is not None:
            return self.form.bands(result, [*self.quantiles], index)
        return self.form.draws(result, index) if self.levels is None else self.form.table(result[0], index)


def _are_levels(levels: Any) -> bool:
    """Whether these are quantiles, one at least."""
    try:
        numbers = [float(level) for level in levels]
    except (TypeError, ValueError):
        return False
    return bool(numbers) and not isinstance(levels, str) and all(0 < level < 1 for level in numbers)


def forecast(
    model: SeriesModel,
    readings: Readings,
    horizon: int,
    n: int | None,
    quantiles: Sequence[float] | None,
    **options: Any,
) -> Any:
    """The rows to come: the median, quantiles, or draws."""
    horizon, answer = whole_number("horizon", horizon), Answer(readings.form, n, quantiles)
    draws = model.forecast(readings.series, horizon, answer.count, **options)
    return answer.returned(answer.kept(draws), horizon)


def varied(form: Form, n: int | None, values: np.ndarray) -> Any:  # (n, rows, nodes, channels)
    """Variations: one as the frame that came, unless several are asked for; of arrays all."""
    return form.table(values[0]) if n is None and form.filled else form.draws(values)


def _regular(series: Series) -> Series:
    if not len(series):
        raise InputError("no rows", "one or more", "give some rows")
    series.refuse_irregular("the rows")
    return series


def _array(x: Any, nodes: int, channels: int | None) -> np.ndarray:
    """(time, nodes) or (time, nodes, channels), float64."""
    try:
        values = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "rows that are not all numbers", "an array (time, nodes)", "remove text and ragged rows"
        ) from None
    shape = "(time, nodes)" if channels in (None, 1) else f"(time, nodes, {channels} channels)"
    fits = values.ndim in (2, 3) and values.shape[1] == nodes and 0 not in values.shape
    own = values.shape[2] if values.ndim == 3 else 1
    if not fits or channels not in (None, own):
        do = "pass one row a time, one column a node of the graph"
        raise InputError(f"rows of shape {np.shape(values)}", f"{shape} with {nodes} nodes", do)
    return values


def _times(times: ArrayLike, rows: int) -> np.ndarray:
    stamps = clock.parsed(np.asarray(times), "times")
    if len(stamps) != rows:
        raise InputError(f"{len(stamps)} times for {rows} rows", "a time a row", "give as many")
    if (stamps[1:] <= stamps[:-1]).any():
        raise InputError("times that do not rise", "each later than the one before", "sort the rows by time")
    return stamps
