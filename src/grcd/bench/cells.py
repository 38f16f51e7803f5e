"""A cell of the benchmark: one measurement, and the small file that holds it. There are five kinds here, and one more
for windows in ``windows/cells``:

    Generated   signals that a trained network generated: their aMMD, their distances, or the time it takes
    Control     signals drawn from a control, without a network: their aMMD or their distances
    Floor       training signals: their aMMD
    Filled      hidden readings that a trained model filled: how far off they are, or the time it takes
    Baseline    hidden readings that something simpler filled: the same

Cells are written whole, so a benchmark that was killed goes on where it was and nothing is computed twice. A cell that
failed says why, and is tried again the next time; so is one whose file is damaged, one that was measured before
what it is about changed: its data, or the network (``revision``), and one that lacks what has been kept since
(``whole``): its numbers are right, but not all there. Files of all kinds have one layout, ``LAYOUT``; what a cell does
not have stands there as it stands here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..core.files import write_json
from ..training.methods import METHODS

Measure = Literal["ammd", "distances", "filling", "time", "windows"]
KEYS: dict[str, str] = {"ammd": "scores", "distances": "distances", "filling": "filling", "time": "time"}  # in a file
KEYS |= {"windows": "windows"}
LAYOUT: dict[str, Any] = {"setting": None, "method": None, "seed": 0, "nfe": None, "solver": None, "rho": None}
LAYOUT |= {"grid": "power", "kappa": None, "symmetrize": None, "support": None, "split": "test", "mask": None}
LAYOUT |= {"distances": False, "timed": False}
Fit = tuple[str | float | None, ...]


@dataclass(frozen=True)
class Cell(ABC):
    """What all kinds share: a dataset, a method of it, and a seed."""

    setting: str
    method: str  # of METHODS for what needs a network
    seed: int

    needs_network: ClassVar[bool] = False

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """What is measured."""

    @property
    def split(self) -> str:
        """What signals are compared with: choices are made on "val"."""
        return "test"

    @property
    def budget(self) -> int | None:
        """The column of a table that it belongs to: network evaluations; None beside the table."""
        return None

    @property
    def symmetrize(self) -> str | None:
        """How directed weights are made symmetric, if not as the dataset does it."""
        return None

    @property
    def row(self) -> str:
        """What a table calls it: the method, and what is not the method's own choice."""
        return self.method

    @property
    def revision(self) -> int:
        """Of what is measured. 2: the synthetic settings have another graph."""
        return 2 if self.setting.startswith("sbm-") else 1

    @property
    @abstractmethod
    def fit(self) -> Fit:
        """Which fit it needs: cells for which it is the same are computed together."""

    @property
    def key(self) -> str:
        """Where in its file the measurement is."""
        return KEYS[self.measure]

    def path(self, results: Path) -> Path:
        """Where its file is: the folder says the setting, the name the rest."""
        measure = {"distances": ["distances"], "time": ["timed"]}.get(self.measure, [])
        name = "_".join([self.method, f"s{self.seed}", *self._name(), *measure])
        return results / "cells" / self.setting / f"{name}.json"

    def _name(self) -> list[str]:
        """What its file is called, beside method, seed and measure."""
        return []

    def record(self) -> dict[str, Any]:
        """The cell as its file says it."""
        own = {key: value for key, value in asdict(self).items() if key != "measure"}
        return LAYOUT | own | {"distances": self.measure == "distances", "timed": self.measure == "time"}


@dataclass(frozen=True)
class Generated(Cell):
    """Signals that a trained network generated. None stands for the method's own choice."""

    nfe: int  # the nominal budget of network evaluations
    solver: str | None = None
    rho: float | None = None
    grid: str = "power"
    kappa: float | None = None
    symmetrize: str | None = None
    support: str | None = None  # "LOW,HIGH", which generated readings may not leave
    split: str = "test"
    measure: Literal["ammd", "distances", "time"] = "ammd"

    needs_network: ClassVar[bool] = True

    @property
    def budget(self) -> int:
        return self.nfe

    @property
    def row(self) -> str:
        return ", ".join([self.method, *(words for _, words in self._choices())])

    @property
    def revision(self) -> int:
        """2: DenoiserGNN starts another way, and the paper's rule stops elsewhere. 3: a network that starts as its
        reference is kept only if it gains more than chance, which on METR-LA it does by far."""
        method = METHODS.get(self.method)
        if method is None or ("backbone", "node") not in method.settings:
            return 2
        return super().revision if self.setting == "metr-la" else 3

    @property
    def fit(self) -> Fit:
        return self.setting, self.symmetrize, *METHODS[self.method].network, self.kappa, self.seed

    def _name(self) -> list[str]:
        split = [self.split] if self.split != "test" else []
        return [f"nfe{self.nfe}", *(short for short, _ in self._choices()), *split]

    def _choices(self) -> list[tuple[str, str]]:
        """What is not the method's own: as the name of a file has it, and in the words of a table."""
        choices = [(self.solver, self.solver)] if self.solver else []
        choices += [(f"rho{self.rho:g}", f"rho {self.rho:g}")] if self.rho is not None else []
        choices += [(self.grid, self.grid)] if self.grid != "power" else []
        choices += [(f"kappa{self.kappa:g}", f"kappa {self.kappa:g}")] if self.kappa is not None else []
        choices += [(self.symmetrize, self.symmetrize)] if self.symmetrize else []
        low, _, high = (self.support or "").partition(",")
        return choices + ([(f"within{low}-{high}", f"within {low} to {high}")] if self.support else [])


@dataclass(frozen=True)
class Control(Cell):
    """Signals drawn from a control, which is fitted to training signals: no network."""

    seed: int = 0
    measure: Literal["ammd", "distances"] = "ammd"

    @property
    def fit(self) -> Fit:
        return self.setting, "controls"


@dataclass(frozen=True)
class Floor(Control):
    """Training signals in place of generated ones: what all others are read against."""

    method: str = "floor"


@dataclass(frozen=True)
class Filled(Cell):
    """Hidden readings that a trained model filled; without a budget, by the posterior of its reference alone."""

    nfe: int | None = None
    mask: str = field(kw_only=True)  # what is hidden, see evaluation.filling
    measure: Literal["filling", "time"] = "filling"

    needs_network: ClassVar[bool] = True

    @property
    def posterior(self) -> Literal["diffusion", "reference"]:
        return "reference" if self.nfe is None else "diffusion"

    @property
    def row(self) -> str:
        return f"{self.method}, " + ("reference" if self.nfe is None else f"NFE {self.nfe}")

    @property
    def fit(self) -> Fit:
        return self.setting, None, *METHODS[self.method].network, None, self.seed

    def _name(self) -> list[str]:
        return ["reference" if self.nfe is None else f"nfe{self.nfe}", self.mask]

    def record(self) -> dict[str, Any]:
        return super().record() | {"solver": "reference" if self.nfe is None else None}


@dataclass(frozen=True)
class Baseline(Cell):
    """Hidden readings that a baseline of evaluation.baselines filled."""

    seed: int = 0
    mask: str = field(kw_only=True)
    measure: Literal["filling", "time"] = "filling"

    @property
    def fit(self) -> Fit:
        return self.setting, self.method

    def _name(self) -> list[str]:
        return [self.mask]


def read(cell: Cell, results: Path) -> dict[str, Any] | None:
    """What the file of a cell holds, the reason if it failed; None if there is none, or it cannot be read."""
    try:
        content: dict[str, Any] = json.loads(cell.path(results).read_text())
        there = "error" in content or (cell.key in content and (cell.measure != "ammd" or "ammd" in content["scores"]))
        return content if there and LAYOUT | content["cell"] == cell.record() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def measured(cell: Cell, results: Path) -> dict[str, Any] | None:
    """What the file of a cell holds; None if it failed, too."""
    content = read(cell, results)
    return None if content is None or content.get("error") else content


def valid(cell: Cell, content: dict[str, Any]) -> bool:
    """Whether that was measured since the data and the network are what they are."""
    return bool(content.get("revision", 1) == cell.revision)


def whole(cell: Cell, content: dict[str, Any]) -> bool:
    """Whether all is there that is kept by now: of earlier cells, sums by day or the share of copies are not."""
    if cell.measure == "filling":
        return "days" in content
    return cell.measure != "distances" or "copies" in content["distances"]


def current(cell: Cell, content: dict[str, Any]) -> bool:
    """Whether that need not be measured again."""
    return valid(cell, content) and whole(cell, content)


def done(cell: Cell, results: Path) -> bool:
    """Whether a cell was measured, and need not be again."""
    content = measured(cell, results)
    return content is not None and current(cell, content)


def earlier(cells: Iterable[Cell], results: Path) -> int:
    """How many were measured before the data, the network or what is kept changed: shown until they are measured
    again."""
    contents = ((cell, measured(cell, results)) for cell in cells)
    return sum(content is not None and not current(cell, content) for cell, content in contents)


def write(cell: Cell, results: Path, **content: Any) -> None:
    """Write the file of a cell: itself, and ``content``."""
    write_json(cell.path(results), {"cell": cell.record(), "revision": cell.revision, **content})
