"""Computing cells: those that share a network are computed together, after one training.

Networks are trained as the paper trains them, its stopping rule included, unless other ``settings`` are chosen. Cells
that are there and were trained otherwise are refused: a table would compare what cannot be compared.

What goes wrong in a cell (training that diverges, samples that are not finite, no memory) is written into it, and the
suite goes on. An interrupt stops everything; the trainings are run folders and go on where they were.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..core import device as devices
from ..core import interrupts
from ..core.errors import InputError, whole_number
from ..core.files import make_folder
from ..core.progress import bar
from ..core.provenance import record
from ..data import Dataset, load_dataset
from ..evaluation import baselines, controls
from ..model import GRCD, train
from ..training.config import Config
from ..training.methods import METHODS, sharing
from ..training.window_config import AS_THEY_ARE, configured
from . import suites
from .cells import Baseline, Cell, Generated, current, done, measured, read, write
from .measuring import measurement
from .windows import measuring as in_time
from .windows.cells import Windowed

T = TypeVar("T")
TIMED = 10  # updates of a network that is only timed
MOMENT = 1.0  # seconds that a worker has to clean up
PROTOCOL = {"stopping": "paper"}
COMPARATORS: dict[str, dict[str, Any]] = {  # by method: what the paper's figures say of it in some settings
    name: {setting: {"kappa": suites.NEAR_ZERO[setting]} for setting in suites.CHEAP}  # docs/paper.md
    for name in ("wsd-scalar", "wsd-graph")
}
WINDOWS: tuple[Callable, Callable, Callable] = (in_time.dataset, in_time.fitted, in_time.measurement)


def run(
    cells: Sequence[Cell], results: Path, runs: Path, device: str = "auto", jobs: int = 1, settings: dict | None = None
) -> tuple[int, int]:
    """Compute what is not there yet. Returns how many cells were computed, and how many of them failed.

    results     folder that holds the cells, as files
    runs        folder of the trained networks: a run folder each, which a later call goes on with
    device      of training and sampling
    jobs        processes side by side
    settings    of training, for all networks, where the protocol's are not wanted
    """
    settings = settings or {}
    _refuse(cells, settings, jobs)
    for cell in cells:
        _refuse_others(cell, results, settings)
    groups = _groups([cell for cell in cells if not done(cell, results)])
    if any(group[0].needs_network for group in groups):
        make_folder(runs)  # one that cannot be would fail every cell
    work = partial(_computed, results=make_folder(results), runs=runs, device=device, settings=settings)
    total, computed, failed = sum(map(len, groups)), 0, 0
    with bar("benchmark", total) as advance, closing(_each(work, groups, jobs)) as done_now:
        for count, bad in done_now:
            computed, failed = computed + count, failed + bad
            advance(computed, "")
    return computed, failed


def failures(cells: Sequence[Cell], results: Path) -> dict[str, int]:
    """Why cells failed, and how many for that reason; the most frequent first."""
    reasons = ((read(cell, results) or {}).get("error") for cell in cells)
    return dict(Counter(" ".join(reason.split()) for reason in reasons if reason).most_common())


def _refuse(cells: Sequence[Cell], settings: dict, jobs: int) -> None:
    """What is wrong for all cells is an error, not failed cells."""
    if any(isinstance(cell, Windowed) for cell in cells):
        configured("grcd", 0, 2, 1, devices.find("cpu"), {key: settings[key] for key in settings if key != "seed"})
    else:
        Config.make(**settings)
    for key in {"method", "seed"} & set(settings):
        raise InputError(f"{key} = {settings[key]} for all cells", "a setting of training", f"choose it with --{key}s")
    whole_number("jobs", jobs, 1, 1024)


def _refuse_others(cell: Cell, results: Path, settings: dict) -> None:
    """A cell that is there must have been trained with the same settings."""
    content = measured(cell, results)
    config = content.get("config", {}) if content is not None and current(cell, content) else {}
    for key, value in _asked_for(cell, settings).items() if config else ():
        if key not in ("method", "seed") and config.get(key, value) != value:
            raise InputError(
                f"{cell.path(results)}, trained with {key} = {config[key]}",
                f"cells that are trained with {key} = {value}, as asked for",
                "choose other --results and --runs, or the same --set",
            )


def _asked_for(cell: Cell, settings: dict) -> dict:
    """What a cell that is there has to have been trained with; of windows, whose defaults are a device's, what was
    set."""
    if not isinstance(cell, Windowed):
        return Config.make(**_chosen(cell, settings)).to_dict()
    settings = in_time.asked_for(cell, settings)
    typed = configured("grcd", 0, 2, 1, devices.find("cpu"), settings).to_dict()
    return {key: typed[key] for key in settings if key != "minutes"}  # what they decided is in its place


def _chosen(cell: Cell, settings: dict) -> dict:
    """What a cell's network is trained with: the paper's protocol, the method's own, those for all, the cell's."""
    own = {"kappa": cell.kappa} if isinstance(cell, Generated) and cell.kappa is not None else {}
    here = COMPARATORS.get(cell.method, {}).get(cell.setting, {})
    return PROTOCOL | dict(METHODS[cell.method].settings) | here | settings | own


def _each(work: Callable[[list[Cell]], T], groups: list[list[Cell]], jobs: int) -> Generator[T, None, None]:
    if jobs == 1:
        yield from map(work, groups)
        return
    others, count = {*active_children()}, min(jobs, len(groups) or 1)
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=interrupts.serve)
    try:
        with interrupts.held():
            results = pool.map(work, groups)
        yield from results
    except BaseException:  # an interrupt above all: nobody waits for what a worker is at
        _end({*active_children()} - others)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end(workers: Collection[BaseProcess]) -> None:
    """Give them a moment to remove their temporary files; run folders and cells are whole at any time."""
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + MOMENT
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        worker.kill()


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that one training serves; all controls of a setting, and its floor, are one group."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.fit, []).append(cell)
    return list(groups.values())


def _computed(group: list[Cell], results: Path, runs: Path, device: str, settings: dict) -> tuple[int, int]:
    """Fit what a group needs, measure its cells and write them. Returns how many there were, and how many failed."""
    windowed = isinstance(group[0], Windowed)
    load, fit, measure = WINDOWS if windowed else (_dataset, _fitted, measurement)
    failed, data, where = 0, load(group), record(devices.find(device))
    fitted, unfitted = _attempted(fit, group, data, runs, device, settings)
    for cell in group:
        began = time.monotonic()
        content, error = ({}, unfitted) if unfitted else _attempted(measure, cell, fitted, data)
        content = {"error": error} if error else content
        seconds = round(time.monotonic() - began, 3)
        failed += not _written(cell, results, content | {"seconds": seconds} | where) or error is not None
    return len(group), failed


def _fitted(group: list[Cell], data: Dataset, runs: Path, device: str, settings: dict) -> Any:
    """What the cells of a group share: a trained model, a baseline, or the controls, the mixture only if needed."""
    first = group[0]
    if first.needs_network:
        timed = all(cell.measure == "time" for cell in group) and not METHODS[first.method].planned
        return _trained(first, data, runs, device, settings, timed)
    if isinstance(first, Baseline):
        return baselines.fitted(first.method, data)
    return controls(data, mixture=any(cell.method == "control-mixture" for cell in group))


def _written(cell: Cell, results: Path, content: dict) -> bool:
    """Whether a cell could be written: a disk that is full for one may not be for the next."""
    try:
        write(cell, results, **content)
    except InputError as error:
        print(error, file=sys.stderr)
        return False
    return True


def _attempted(work: Callable, *args: object) -> tuple[Any, str | None]:
    """What came of it, and what went wrong, if anything did."""
    try:
        return work(*args), None
    except (InputError, RuntimeError, MemoryError, ArithmeticError) as error:
        return None, f"{type(error).__name__}: {error}"


def _dataset(group: list[Cell]) -> Dataset:
    setting, symmetrize = group[0].setting, group[0].symmetrize
    data = load_dataset(setting, **({"symmetrize": symmetrize} if symmetrize else {}))
    for split in sorted({cell.split for cell in group}):
        if np.isnan(data.split(split)).any():
            raise InputError(
                f"gaps in the {split} signals of {setting}", "complete ones", "fill them: see docs/data.md"
            )
    return data


def _trained(cell: Cell, data: Dataset, runs: Path, device: str, settings: dict, timed: bool = False) -> GRCD:
    """A trained network. Where only its speed is asked, which does not depend on its weights, and it is not there yet:
    one that was hardly trained, and is not kept."""
    first = sharing(METHODS[cell.method])[0]  # whichever cell comes first, the folder is the same
    chosen = AS_THEY_ARE | _chosen(cell, settings)
    folder = runs / "-".join(str(part) for part in cell.fit if part is not None)
    if not timed or folder.exists():
        return train(GRCD(data.graph, first, cell.seed, device, **chosen), data, folder, contest=False)
    whole = GRCD(data.graph, first, cell.seed, device, **chosen).config
    model = GRCD(data.graph, first, cell.seed, device, **chosen | {"max_updates": TIMED})
    model.fit(data.train, data.val)
    model.config = whole
    return model
