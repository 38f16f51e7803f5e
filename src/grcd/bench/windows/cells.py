"""Cells of windows: hidden readings that a method filled or foretold, in one setting of one suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import ClassVar, Literal

from ...core.errors import unknown
from ...evaluation import foretelling
from ..cells import Cell, Fit
from .settings import SETTINGS, VARIANTS, Setting

BUDGETS = (1, 2, 4, 8)
REFERENCE = "reference"
REFERENCES = {REFERENCE: "grcd"} | {f"{REFERENCE}-{what}": f"grcd-{what}" for what in ("one-channel", "no-calendar")}
FILLING = ("calendar", "last", "line", "neighbours", "iterative", "iterative-column", "var")
FORETELLING = tuple(foretelling.NAMES)
METHODS = (*VARIANTS, *REFERENCES, *dict.fromkeys((*FILLING, *FORETELLING)))


@dataclass(frozen=True)
class Windowed(Cell):
    """Scores of readings that were hidden; without a budget there is no network in it."""

    nfe: int | None = None
    suite: str = field(kw_only=True)
    measure: Literal["windows"] = "windows"

    needs_network: ClassVar[bool] = True  # a run folder may be needed; whether it is says ``trained``

    @property
    def trained(self) -> bool:
        """Whether it needs a run: a trained one, or for the reference alone one without a network."""
        return self.method in VARIANTS or self.method in REFERENCES

    @property
    def variant(self) -> str:
        """The network it is about, or whose reference: one of ``VARIANTS``."""
        return self.method if self.method in VARIANTS else REFERENCES.get(self.method, "grcd")

    @property
    def about(self) -> Setting:
        return SETTINGS[self.suite][self.setting]

    @property
    def revision(self) -> int:
        """2: windows of gaps overlap, and of our own a third is scored; the reference has not learned from validation
        rows, which no network has; the imputer that foretells learns from windows whose future is missing."""
        return 2 if self.suite == "imputation" or self.method in (*REFERENCES, "iterative") else 1

    @property
    def budget(self) -> int | None:
        return self.nfe

    @property
    def row(self) -> str:
        return self.method if self.nfe is None else f"{self.method}, NFE {self.nfe}"

    @property
    def fit(self) -> Fit:
        """One network serves all settings of a table, of both suites, and so does a reference, which waits for none: on
        the same kind of device it is the network's. A competitor serves those of one suite."""
        table = self.about.table
        return (table, self.method, self.seed) if self.trained else (table, self.suite, self.method)

    def path(self, results: Path) -> Path:
        budget = [] if self.nfe is None else [f"nfe{self.nfe}"]
        name = "_".join([self.method, f"s{self.seed}", *budget])
        return results / "cells" / self.suite / self.setting / f"{name}.json"


def cells(suite: str, settings: Sequence[str], seeds: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    """Of a suite, setting by setting: networks by seed and budget, variants of them with seed 0 only; and what needs no
    network once, as seed 0, whichever are asked for."""
    for name in settings:
        if name not in SETTINGS[suite]:
            raise unknown("setting", name, SETTINGS[suite])
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    members = [cell for name in settings or SETTINGS[suite] for cell in _of(suite, name, seeds)]
    return [cell for cell in members if not methods or cell.method in methods]


def _of(suite: str, name: str, seeds: Sequence[int]) -> list[Windowed]:
    setting = SETTINGS[suite][name]
    networks = ["grcd"] + ["grcd-unseen"] * setting.unseen
    networks += ["grcd-one-channel", "grcd-no-calendar"] * (setting.table == "beijing")
    drawn = [Windowed(name, *place, suite=suite) for place in product(networks, seeds, BUDGETS)]
    references = [method for method, variant in REFERENCES.items() if variant in networks]
    alone = [Windowed(name, method, 0, suite=suite) for method in (*references, *_simple(suite))]
    return [cell for cell in drawn if cell.method == "grcd" or cell.seed == 0] + alone


def _simple(suite: str) -> tuple[str, ...]:
    return FILLING if suite == "imputation" else FORETELLING
