"""Computing cells: those that share a network are computed together, after one training.

What goes wrong in a cell (training that diverges, samples that are not finite, no memory) is written into it, and the
suite goes on. An interrupt stops everything; the trainings are run folders and go on where they were.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from .. import device as devices
from ..config import Config
from ..data import Dataset, load_dataset
from ..errors import InputError
from ..evaluation import ammd, controls, floor
from ..evaluation.controls import draw
from ..methods import METHODS, sharing
from ..model import GRCD
from ..progress import bar
from ..provenance import record
from .cells import Cell, done, write


def run(
    cells: Sequence[Cell], results: Path, runs: Path, device: str = "auto", jobs: int = 1, settings: dict | None = None
) -> tuple[int, int]:
    """Compute what is not there yet. Returns how many cells were computed, and how many of them failed."""
    _refuse(settings or {}, jobs)
    groups = _groups([cell for cell in cells if not done(cell, results)])
    work = partial(_computed, results=results, runs=runs, device=device, settings=settings or {})
    total, computed, failed = sum(map(len, groups)), 0, 0
    with bar("benchmark", total) as advance:
        for count, bad in _each(work, groups, jobs):
            computed, failed = computed + count, failed + bad
            advance(computed, "")
    return computed, failed


def _refuse(settings: dict, jobs: int) -> None:
    """What is wrong for all cells is an error, not failed cells."""
    Config.make(**settings)
    for key in {"method", "seed"} & set(settings):
        raise InputError(f"{key} = {settings[key]} for all cells", "a setting of training", f"choose it with --{key}s")
    if jobs < 1:
        raise InputError(f"jobs = {jobs}", "a whole number from 1 up", "leave it at 1")


def _each(work, groups: list[list[Cell]], jobs: int):
    if jobs == 1:
        yield from map(work, groups)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, groups)


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that one training serves; all controls of a setting, and its floor, are one group."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_network(cell), []).append(cell)
    return list(groups.values())


def _network(cell: Cell) -> tuple:
    network = METHODS[cell.method].network if cell.needs_network else ("none", "controls")
    return cell.setting, cell.symmetrize, *network, cell.kappa, cell.seed if cell.needs_network else None


def _computed(group: list[Cell], results: Path, runs: Path, device: str, settings: dict) -> tuple[int, int]:
    failed, data, where = 0, _dataset(group[0]), record(devices.find(device))
    model, error = (
        _attempted(_trained, group[0], data, runs, device, settings) if group[0].needs_network else (None, None)
    )
    for cell in group:
        began = time.monotonic()
        found, wrong = (None, error) if error else _attempted(_scored, cell, model, data)
        failed += wrong is not None
        seconds = round(time.monotonic() - began, 3)
        write(cell, results, **({"error": wrong} if wrong else found), seconds=seconds, **where)
    return len(group), failed


def _attempted(work, *args) -> tuple:
    """What came of it, and what went wrong."""
    try:
        return work(*args), None
    except (InputError, RuntimeError, MemoryError, ArithmeticError) as error:
        return None, f"{type(error).__name__}: {error}"


def _dataset(cell: Cell) -> Dataset:
    options = {"symmetrize": cell.symmetrize} if cell.symmetrize else {}
    data = load_dataset(cell.setting, **options)
    if np.isnan(data.test).any():
        raise InputError(f"gaps in the test signals of {cell.setting}", "complete ones", "fill them: see docs/data.md")
    return data


def _trained(cell: Cell, data: Dataset, runs: Path, device: str, settings: dict) -> GRCD:
    chosen = settings | ({} if cell.kappa is None else {"kappa": cell.kappa})
    first = sharing(METHODS[cell.method])[0]  # whichever cell comes first, the folder is the same
    model = GRCD(data.graph, first, cell.seed, device, **chosen)
    name = "-".join(str(part) for part in _network(cell) if part is not None)
    return model.fit(data.train, data.val, run=runs / name, name=data.name, about=data.facts)


def _scored(cell: Cell, model: GRCD | None, data: Dataset) -> dict:
    return _without_network(cell, data) if model is None else _sampled(cell, model, data)


def _sampled(cell: Cell, model: GRCD, data: Dataset) -> dict:
    model = model.as_method(cell.method)
    x = model.sample(len(data.test), cell.nfe, cell.seed, cell.solver, cell.rho, cell.grid)
    if not np.isfinite(x).all():
        raise ArithmeticError(f"{(~np.isfinite(x)).sum()} of {x.size} generated readings are not finite")
    scores = ammd(data.normalizer.apply(x), data.normalizer.apply(data.test), data.graph, model.device)
    return {
        "scores": scores.to_dict(),
        "spent": model.spends(cell.nfe, cell.solver),
        "dispersion": float(np.median(x.std(axis=0) / data.test.std(axis=0))),
        "training": model.result,
        "config": asdict(model.config),
    }


def _without_network(cell: Cell, data: Dataset) -> dict:
    if cell.method == "floor":
        return {"scores": floor(data).to_dict()}
    x = draw(controls(data)[cell.method], data, len(data.test), cell.seed)
    z = data.normalizer.apply
    return {"scores": ammd(z(x), z(data.test), data.graph).to_dict()}
