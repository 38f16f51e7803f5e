"""The datasets that have a name. Every module in this folder that lists ``DATASETS`` adds to the table."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...core.errors import unknown
from .named import Generated, NamedDataset, Published, Setting
from .sources import Source


def discovered() -> tuple[dict[str, NamedDataset], dict[str, Setting]]:
    """All datasets by name, those that need no files first; and which of them are settings of the benchmark."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    listed: list[NamedDataset] = [dataset for module in modules for dataset in getattr(module, "DATASETS", ())]
    ordered = sorted(listed, key=lambda dataset: not isinstance(dataset, Generated))
    settings = {dataset.name: dataset.setting for dataset in listed if dataset.setting is not None}
    return {dataset.name: dataset for dataset in ordered}, settings


DATASETS, SETTINGS = discovered()


def source(name: str) -> Source:
    """Where the files of a dataset come from."""
    sources = {dataset.name: dataset.source for dataset in DATASETS.values() if isinstance(dataset, Published)}
    if name not in sources:
        raise unknown("dataset to get", name, sources)
    return sources[name]
