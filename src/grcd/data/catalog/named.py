"""What a dataset with a name is: made here, or read from published files that `grcd data get` brings.

One file in this folder holds all there is to say of a dataset, and lists it as ``DATASETS``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...graphs.graph import Graph
from ..assembly import Opened
from ..dataset import Dataset
from ..formats.table import Table
from ..options import Options
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


@dataclass(frozen=True, kw_only=True)
class Generated(NamedDataset):
    """Made here, from nothing: there are no options but those that choose nothing."""

    make: Callable[[], Dataset]

    def opened(self, options: Options) -> Opened:
        options.refuse_changed(f"the built-in {self.name}", {"data_dir"})
        return Opened.ready(self.make(), options, self.name)


@dataclass(frozen=True, kw_only=True)
class Published(NamedDataset):
    """Read from files that were published, and used with these options unless others are given."""

    source: Source
    read: Callable[[Path, str | None], tuple[Table, Graph]]  # of the folder of the files, and a symmetrizer
    defaults: dict[str, Any] = field(default_factory=dict)  # options

    def opened(self, options: Options) -> Opened:
        if options.graph is not None:
            raise InputError(f"--graph for {self.name}", "no graph: it has its own", "leave --graph out")
        options = replace(options, **{key: v for key, v in self.defaults.items() if getattr(options, key) is None})
        folder = self.source.folder(options.data_dir)
        self.source.verify(folder)  # a few tenths of a second: other numbers under these names would be worse than none
        return Opened(self.name, *self.read(folder, options.symmetrize), options, self.name)
