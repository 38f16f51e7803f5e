"""How training readings came, so that generated ones come alike: as a data frame, as a labelled array, or as an array.

Kept in a run folder as text. Of a frame its columns, in its order, and how times are written; of a labelled array its
dimensions, nodes and channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .frames import Frame, places
from .labelled import Labelled
from .written_times import Written, are_written

if TYPE_CHECKING:
    from pandas import DataFrame, Index

KINDS = ("frame", "array", "dataset")


@dataclass(frozen=True)
class Layout:
    """Of generated readings."""

    kind: str  # one of ``KINDS``, the last two labelled
    labels: tuple  # of a frame its columns; else names of nodes
    names: tuple  # of a frame the levels of its columns; else the dimensions time, node and channel
    time: str = "time"  # what the index of times is called
    zone: str = ""  # of its dates, if they have one
    written: tuple[str, ...] = ()  # how they are written, if they are text

    @classmethod
    def of(cls, form: object) -> Layout | None:
        """Of readings that came as a frame or labelled; None for arrays."""
        if isinstance(form, Labelled):
            labels = form.coords[form.dims[1]].to_numpy().tolist() if form.dims[1] in form.coords else ()
            return cls("dataset" if form.variables else "array", tuple(labels), tuple(map(str, form.dims)))
        if not isinstance(form, Frame):
            return None
        index = form.index
        written = Written.as_in(index) if form.times is not None and are_written(index) else None
        return cls(
            "frame",
            tuple(_plain(name) for name in form.columns),
            tuple(None if name is None else str(name) for name in form.columns.names),
            "time" if index.name is None else str(index.name),
            "" if getattr(index, "tz", None) is None else str(index.tz),
            () if written is None else (written.pattern, written.zone),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> Layout | None:
        """From what ``to_dict`` made."""
        if values is None:
            return None
        layout = cls(**{key: _tuples(value) for key, value in values.items()})
        if layout.kind not in KINDS:
            raise ValueError(f"a layout of kind {layout.kind!r}")
        return layout

    def sampled(
        self,
        values: np.ndarray,  # (draws, steps, nodes, channels)
        times: np.ndarray | None,  # (draws, steps)
        nodes: Sequence[str],
        channels: Sequence[str],
    ) -> Any:
        """Generated readings: a frame with a row a step, indexed by (sample, time) or (sample, step), and of one step
        by sample; or a labelled array (draw, time, node[, channel]) with ``times`` (draw, time) beside it."""
        if self.kind == "frame":
            return self._frame(values, times, nodes, channels)
        return self._labelled(values, times, nodes, channels)

    def _frame(
        self, values: np.ndarray, times: np.ndarray | None, nodes: Sequence[str], channels: Sequence[str]
    ) -> DataFrame:
        import pandas

        several = len(self.names) > 1
        columns = (
            pandas.MultiIndex.from_tuples(self.labels, names=self.names)
            if several
            else pandas.Index(self.labels, name=self.names[0], tupleize_cols=False)
        )
        n, steps = values.shape[:2]
        cells = values.reshape(n * steps, -1)[:, places(columns, nodes, channels)]
        index: Index = pandas.RangeIndex(n, name="sample")
        if steps > 1 or times is not None:
            second = np.tile(np.arange(steps), n) if times is None else self._times(times.ravel())
            label = "step" if times is None else self.time
            index = pandas.MultiIndex.from_arrays([np.repeat(np.arange(n), steps), second], names=["sample", label])
        return pandas.DataFrame(cells, index, columns)

    def _times(self, times: np.ndarray) -> Any:
        import pandas

        if self.written:
            return Written(*self.written).text(times)
        dates = pandas.DatetimeIndex(times) if times.dtype.kind == "M" else pandas.Index(times)
        return dates.tz_localize("UTC").tz_convert(self.zone) if self.zone else dates

    def _labelled(
        self, values: np.ndarray, times: np.ndarray | None, nodes: Sequence[str], channels: Sequence[str]
    ) -> Any:
        import xarray

        time, node, *channel = self.names
        place = {name: k for k, name in enumerate(nodes)}
        labels = self.labels or tuple(nodes)
        cells = values[:, :, [place[str(label)] for label in labels]]
        coords: dict[str, Any] = {"draw": np.arange(len(values)), node: list(labels)}
        coords |= {name: list(channels) for name in channel}
        if times is not None:
            coords["times"] = (("draw", time), times)
        array = xarray.DataArray(cells if channel else cells[..., 0], coords, ("draw", time, node, *channel))
        if values.shape[1] == 1 and times is None:
            array = array[:, 0]
        return array.to_dataset(channel[0]) if self.kind == "dataset" and channel else array


def _plain(name: Any) -> Any:
    """A label as JSON keeps it."""
    if isinstance(name, tuple):
        return tuple(_plain(part) for part in name)
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, str | int | float) else str(name)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(entry) for entry in value) if isinstance(value, list) else value
