"""A cell of the benchmark: one method, setting, seed and budget, and the small file that holds its score.

Cells are written whole, so a benchmark that was killed goes on where it was and nothing is computed twice. A cell that
failed says why, and is tried again the next time; so is one whose file is damaged.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.files import write_json


@dataclass(frozen=True)
class Cell:
    """What is measured. None stands for the method's own choice."""

    setting: str
    method: str  # of methods.py, or control-..., or floor
    seed: int = 0
    nfe: int | None = None  # the nominal budget; controls and floor have none
    solver: str | None = None
    rho: float | None = None
    grid: str = "power"
    kappa: float | None = None
    symmetrize: str | None = None
    support: str | None = None  # "LOW,HIGH", which generated readings may not leave
    split: str = "test"  # what samples are compared with: choices are made on "val"
    mask: str | None = None  # gaps to fill (see evaluation.filling), in place of signals to generate
    distances: bool = False  # by the metrics of evaluation.distances, in place of aMMD
    timed: bool = False  # how long sampling or filling takes, in place of how good what comes out is

    @property
    def needs_network(self) -> bool:
        return not (self.method.startswith(("control-", "fill-")) or self.method == "floor")

    @property
    def budget(self) -> int:
        """The nominal budget of a cell that has one."""
        assert self.nfe is not None, f"{self} has no budget"
        return self.nfe

    @property
    def holds(self) -> str:
        """What its file says."""
        if self.timed:
            return "time"
        return "filling" if self.mask is not None else "distances" if self.distances else "scores"

    def path(self, results: Path) -> Path:
        """Where its file is: the folder says the setting, the name the rest."""
        choices = [self.method, f"s{self.seed}"]
        choices += [f"nfe{self.nfe}"] if self.nfe is not None else []
        choices += [self.solver] if self.solver else []
        choices += [f"rho{self.rho:g}"] if self.rho is not None else []
        choices += [self.grid] if self.grid != "power" else []
        choices += [f"kappa{self.kappa:g}"] if self.kappa is not None else []
        choices += [self.symmetrize] if self.symmetrize else []
        choices += [f"within{self.support.replace(',', '-')}"] if self.support else []
        choices += [self.split] if self.split != "test" else []
        choices += [self.mask] if self.mask else []
        choices += ["distances"] if self.distances else []
        choices += ["timed"] if self.timed else []
        return results / "cells" / self.setting / ("_".join(choices) + ".json")


def read(cell: Cell, results: Path) -> dict | None:
    """What is known of a cell; None if nothing is, or what there is cannot be read."""
    try:
        found = json.loads(cell.path(results).read_text())
        known = "error" in found or (cell.holds in found and (cell.holds != "scores" or "ammd" in found["scores"]))
        return found if known and Cell(**found["cell"]) == cell else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def measured(cell: Cell, results: Path) -> dict | None:
    """What was measured; None if it failed, too."""
    found = read(cell, results)
    return None if found is None or found.get("error") else found


def done(cell: Cell, results: Path) -> bool:
    return measured(cell, results) is not None


def write(cell: Cell, results: Path, **found: Any) -> None:
    write_json(cell.path(results), {"cell": asdict(cell), **found})
