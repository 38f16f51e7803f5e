"""What a dataset with a name is: made here, or read from published files that `grcd data get` brings.

One file in this folder holds all there is to say of a dataset, and lists it as ``DATASETS``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...graphs.graph import Graph
from ..assembly import Opened
from ..channels import UNNAMED, Channels
from ..dataset import Dataset
from ..formats.table import Table
from ..options import Options
from ..series_dataset import SeriesDataset, assembled
from .sources import Source


@dataclass(frozen=True)
class Setting:
    """A dataset as a setting of the benchmark."""

    bounds: str = ""  # of the readings there are, as LOW,HIGH
    possible: tuple[float, float] | None = None  # what a sensor can report
    near_zero_kappa: float = 32.64  # where the terminal SNR of the reference is a hundredth or less


@dataclass(frozen=True, kw_only=True)
class NamedDataset(abc.ABC):
    """A dataset that ``load_dataset`` knows by name."""

    name: str
    about: str
    setting: Setting | None = None  # None: no setting of the benchmark

    @abc.abstractmethod
    def opened(self, options: Options) -> Opened:
        """Signals and graph, read or made."""

    def series(self, options: Options) -> SeriesDataset:
        """As rows in time, with all channels there are, unless they are none."""
        expected = "data whose rows follow each other in time"
        raise InputError(f"{self.name} in time", expected, "leave --window out: its signals have no order")


@dataclass(frozen=True, kw_only=True)
class Generated(NamedDataset):
    """Made here, from nothing: there are no options but those that choose nothing."""

    make: Callable[[], Dataset]

    def opened(self, options: Options) -> Opened:
        options.refuse_changed(f"the built-in {self.name}", {"data_dir"})
        return Opened.ready(self.make(), options, self.name)

    def series(self, options: Options) -> SeriesDataset:
        """Where they have times: the same rows, split as they are."""
        made = self.opened(options)
        if made.table.times is None or made.graph is None:
            return super().series(options)
        return assembled(self.name, Channels.of({UNNAMED: made.table}, self.name), made.graph, options, self.name)


@dataclass(frozen=True, kw_only=True)
class Published(NamedDataset):
    """Read from files that were published, and used with these options unless others are given."""

    source: Source
    read: Callable[[Path, str | None], tuple[Table, Graph]]  # of the folder of the files, and a symmetrizer
    defaults: dict[str, Any] = field(default_factory=dict)  # options
    channel: str = UNNAMED  # what the table of ``read`` measures
    channels: Callable[[Path], Channels] | None = None  # where there are more than that table has
    hidden: Callable[[Path], np.ndarray] | None = None  # (rows, nodes) what its benchmark hides and scores

    def opened(self, options: Options) -> Opened:
        options, folder = self._found(options, {})
        return Opened(self.name, *self._read(folder, options), options, self.name)

    def series(self, options: Options) -> SeriesDataset:
        """Uncapped and unfilled."""
        options, folder = self._found(options, {"fill", "cap"})
        table, graph = self._read(folder, options)
        if self.channels is None:
            channels = Channels.of({self.channel: table}, self.name)
        else:
            channels = replace(self.channels(folder), labels=table.labels)
        hidden = None if self.hidden is None else self.hidden(folder)[:, :, None]
        return assembled(self.name, channels, graph, options, self.name, hidden)

    def _found(self, options: Options, without: Container[str]) -> tuple[Options, Path]:
        """The options in full, but for some defaults, and the folder of the files."""
        for key, why in (("graph", "no graph: it has its own"), ("every", "its own times: they are regular")):
            if getattr(options, key) is not None:
                raise InputError(f"--{key} for {self.name}", why, f"leave --{key} out")
        defaults = {key: value for key, value in self.defaults.items() if key not in without}
        options = replace(options, **{key: v for key, v in defaults.items() if getattr(options, key) is None})
        folder = self.source.folder(options.data_dir)
        self.source.verify(folder)  # a few tenths of a second: other numbers under these names would be worse than none
        return options, folder

    def _read(self, folder: Path, options: Options) -> tuple[Table, Graph]:
        """Splits of its own are those of its defaults."""
        table, graph = self.read(folder, options.symmetrize)
        own = options.split_by is not None and options.split_by == self.defaults.get("split_by")
        return table if own else replace(table, labels=None), graph
