"""The datasets that have a name. Every module in this folder that lists ``DATASETS`` adds to the table."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...core.errors import unknown
from .named import Generated, NamedDataset, Published, Setting
from .sources import Source

_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]  # by name
_listed: list[NamedDataset] = [dataset for module in _modules for dataset in getattr(module, "DATASETS", ())]

# By name, and those that need no files first.
DATASETS: dict[str, NamedDataset] = {
    dataset.name: dataset for dataset in sorted(_listed, key=lambda dataset: not isinstance(dataset, Generated))
}
# The settings of the benchmark, by name.
SETTINGS: dict[str, Setting] = {dataset.name: dataset.setting for dataset in _listed if dataset.setting is not None}


def source(name: str) -> Source:
    """Where the files of a dataset come from."""
    sources = {dataset.name: dataset.source for dataset in DATASETS.values() if isinstance(dataset, Published)}
    if name not in sources:
        raise unknown("dataset to get", name, sources)
    return sources[name]
