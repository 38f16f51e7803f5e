"""Computing cells: those that share a network are computed together, after one training.

Networks are trained as the paper trains them, its stopping rule included, unless other ``settings`` are given. Cells
that are there and were trained otherwise are refused: a table would compare what cannot be compared.

What goes wrong in a cell (training that diverges, samples that are not finite, no memory) is written into it, and the
suite goes on. An interrupt stops everything; the trainings are run folders and go on where they were.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..core import device as devices
from ..core.errors import InputError, whole_number
from ..core.files import make_folder
from ..core.progress import bar
from ..core.provenance import record
from ..core.rows import evenly
from ..data import Dataset, load_dataset
from ..evaluation import ammd, controls, distances, farther_test, fillers, filling, floor, permutation_test
from ..evaluation.controls import draw
from ..evaluation.filling import hidden
from ..model import GRCD, train
from ..tasks.sample import network_alone
from ..training.config import Config
from ..training.methods import METHODS, sharing
from .cells import Cell, done, read, write

T = TypeVar("T")
Fitted = GRCD | dict | Callable  # a model, the controls by name, or a filler, as a cell needs them
Work = Callable[[Cell, Any, Dataset], dict]
PROTOCOL = {"stopping": "paper"}
FILLINGS = 100  # draws for each signal with gaps
TIMED = 200  # signals that are filled to see how long it takes
POSSIBLE = {"metr-la": (0.0, 120.0)}  # what a loop detector can report, in mph


def run(
    cells: Sequence[Cell], results: Path, runs: Path, device: str = "auto", jobs: int = 1, settings: dict | None = None
) -> tuple[int, int]:
    """Compute what is not there yet. Returns how many cells were computed, and how many of them failed."""
    settings = settings or {}
    _refuse(settings, jobs)
    for cell in cells:
        _refuse_others(cell, results, settings)
    groups = _groups([cell for cell in cells if not done(cell, results)])
    if any(group[0].needs_network for group in groups):
        make_folder(runs)  # one that cannot be would fail every cell
    work = partial(_computed, results=make_folder(results), runs=runs, device=device, settings=settings)
    total, computed, failed = sum(map(len, groups)), 0, 0
    with bar("benchmark", total) as advance:
        for count, bad in _each(work, groups, jobs):
            computed, failed = computed + count, failed + bad
            advance(computed, "")
    return computed, failed


def failures(cells: Sequence[Cell], results: Path) -> dict[str, int]:
    """Why cells failed, and how many for that reason; the most frequent first."""
    reasons = ((read(cell, results) or {}).get("error") for cell in cells)
    return dict(Counter(" ".join(reason.split()) for reason in reasons if reason).most_common())


def _refuse(settings: dict, jobs: int) -> None:
    """What is wrong for all cells is an error, not failed cells."""
    Config.make(**settings)
    for key in {"method", "seed"} & set(settings):
        raise InputError(f"{key} = {settings[key]} for all cells", "a setting of training", f"choose it with --{key}s")
    whole_number("jobs", jobs, 1, 1024)


def _refuse_others(cell: Cell, results: Path, settings: dict) -> None:
    """A cell that is there must have been trained with the same settings."""
    found = (read(cell, results) or {}).get("config", {})
    for key, value in Config.make(**_chosen(cell, settings)).to_dict().items() if found else ():
        if key not in ("method", "seed") and found.get(key, value) != value:
            raise InputError(
                f"{cell.path(results)}, trained with {key} = {found[key]}",
                f"cells that are trained with {key} = {value}, as asked for",
                "choose other --results and --runs, or the same --set",
            )


def _chosen(cell: Cell, settings: dict) -> dict:
    """What a cell's network is trained with: the paper's protocol, the method's own, those asked for, the cell's."""
    own = {} if cell.kappa is None else {"kappa": cell.kappa}
    return PROTOCOL | dict(METHODS[cell.method].settings) | settings | own


def _each(work: Callable[[list[Cell]], T], groups: list[list[Cell]], jobs: int) -> Iterator[T]:
    if jobs == 1:
        yield from map(work, groups)
        return
    with ProcessPoolExecutor(min(jobs, len(groups) or 1), mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, groups)


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that one training serves; all controls of a setting, and its floor, are one group."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_network(cell), []).append(cell)
    return list(groups.values())


def _network(cell: Cell) -> tuple:
    if not cell.needs_network:
        return cell.setting, cell.symmetrize, "none", cell.method if cell.mask else "controls"
    return cell.setting, cell.symmetrize, *METHODS[cell.method].network, cell.kappa, cell.seed


def _computed(group: list[Cell], results: Path, runs: Path, device: str, settings: dict) -> tuple[int, int]:
    failed, data, where = 0, _dataset(group), record(devices.find(device))
    if group[0].needs_network:
        model, error = _attempted(_trained, group[0], data, runs, device, settings)
    elif group[0].mask:
        model, error = _attempted(fillers.filler, group[0].method, data)
    else:
        model, error = _attempted(partial(controls, mixture=_mixed(group)), data)
    for cell in group:
        began = time.monotonic()
        found, wrong = (None, error) if error else _attempted(_scored, cell, model, data)
        told: Any = {"error": wrong} if wrong else found
        seconds = round(time.monotonic() - began, 3)
        failed += not _written(cell, results, told | {"seconds": seconds} | where) or wrong is not None
    return len(group), failed


def _mixed(group: list[Cell]) -> bool:
    """Whether the mixture is asked for: fitting it takes a while."""
    return any(cell.method == "control-mixture" for cell in group)


def _written(cell: Cell, results: Path, told: dict) -> bool:
    """A disk that is full for one cell may not be for the next."""
    try:
        write(cell, results, **told)
    except InputError as error:
        print(error, file=sys.stderr)
        return False
    return True


def _attempted(work: Callable, *args: object) -> tuple[Any, str | None]:
    """What came of it, and what went wrong."""
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


def _trained(cell: Cell, data: Dataset, runs: Path, device: str, settings: dict) -> GRCD:
    first = sharing(METHODS[cell.method])[0]  # whichever cell comes first, the folder is the same
    model = GRCD(data.graph, first, cell.seed, device, **_chosen(cell, settings))
    name = "-".join(str(part) for part in _network(cell) if part is not None)
    return train(model, data, runs / name)


def _scored(cell: Cell, model: Fitted, data: Dataset) -> dict:
    sampled = _sampled if cell.needs_network else _without_network
    works: dict[str, Work] = {"time": _timed, "distances": _distanced, "filling": _filled, "scores": sampled}
    work = works[cell.holds]
    if not cell.needs_network:
        return work(cell, model, data)
    assert isinstance(model, GRCD)
    model = model.as_method(cell.method)
    about: dict = {"training": model.result, "config": model.config.to_dict()}
    about |= {} if cell.mask else {"spent": model.spends(cell.budget, cell.solver)}
    if cell.support:  # of what comes out, not of the network
        model.config = replace(model.config, support=cell.support)
    return work(cell, model, data) | about


def _generated(cell: Cell, model: GRCD | dict, data: Dataset) -> np.ndarray:
    """As many signals as there are to compare with; of a control, where there are controls in place of a model."""
    n = len(data.split(cell.split))
    if isinstance(model, dict):
        return draw(model[cell.method], data, n, cell.seed)
    x = model.sample(n, cell.budget, cell.seed, *_how(cell))
    if not np.isfinite(x).all():
        raise ArithmeticError(f"{(~np.isfinite(x)).sum()} of {x.size} generated readings are not finite")
    return x


def _distanced(cell: Cell, model: GRCD | dict, data: Dataset) -> dict:
    real, device = data.split(cell.split), getattr(model, "device", "cpu")
    x, z = _generated(cell, model, data), data.normalizer.apply
    found = distances(x, data, cell.split, device)
    p = permutation_test(z(x), z(real), device=device)
    given = data.train[evenly(len(data.train), len(real))]  # the floor's
    farther = farther_test(z(x), z(given), z(real), device=device)
    return {"distances": {name: distance.to_dict() for name, distance in found.items()}, "p": p, "p_floor": farther}


def _filled(cell: Cell, model: GRCD | Callable, data: Dataset) -> dict:
    """Hide readings of the split, fill them, and compare; those that were never there do not count."""
    real, observed = data.split(cell.split), data.observed(cell.split)
    gone = hidden(cell.mask or "", *real.shape)
    found = _filler(cell, model)(np.where(gone, np.nan, real))
    scores = filling.score(found, real, gone if observed is None else gone & observed)
    if not np.isfinite(list(scores.values())).all():
        raise ArithmeticError("filled readings that are not finite")
    return {"filling": scores}


def _filler(cell: Cell, model: GRCD | Callable) -> Callable[[np.ndarray], Iterator]:
    """From signals with gaps to their completions, some rows at a time; ``model`` may be a fitted baseline."""
    if not isinstance(model, GRCD):
        return lambda x: model(x, FILLINGS, cell.seed)
    kind = "reference" if cell.solver == "reference" else "diffusion"
    return lambda x: model.fillings(x, FILLINGS, cell.nfe or 1, cell.seed, kind)


def _sampled(cell: Cell, model: GRCD, data: Dataset) -> dict:
    real, began = data.split(cell.split), time.perf_counter()
    x = _generated(cell, model, data)
    sampling = time.perf_counter() - began
    z = data.normalizer.apply(x)
    scores = ammd(z, data.normalizer.apply(real), data.graph, model.device)
    about = {"seconds_per_1000": round(1000 * sampling / len(real), 4)}
    if cell.support:
        low, high = model.config.bounds or (-np.inf, np.inf)
        about["outside_support"] = int(((x < low) | (x > high)).sum())
    return {"scores": scores.to_dict(), **diagnostics(x, z, real, cell.setting), **about}


def _how(cell: Cell) -> tuple:
    """Solver, rho and grid as ``sample`` takes them: the power grid without an exponent is the method's own choice."""
    return cell.solver, cell.rho, None if cell.grid == "power" and cell.rho is None else cell.grid


def diagnostics(x: np.ndarray, z: np.ndarray, real: np.ndarray, setting: str) -> dict:
    """As the paper reports them: dispersion ratio, standard deviation a node, share of impossible readings."""
    found = {
        "dispersion": float(np.median(x.std(axis=0) / real.std(axis=0))),
        "node_std": [round(float(s), 4) for s in z.std(axis=0)],
    }
    if setting in POSSIBLE:
        low, high = POSSIBLE[setting]
        found["outside"] = float(((x < low) | (x > high)).mean())
    return found


def _timed(cell: Cell, model: GRCD | Callable, data: Dataset, repeats: int = 5) -> dict:
    """Seconds for 1,000 signals, and of those to sample them those that the network alone takes."""
    if cell.mask is not None:
        real, fill = data.split(cell.split)[:TIMED], _filler(cell, model)
        given = np.where(hidden(cell.mask, *real.shape), np.nan, real)
        return {"time": {"filling": _least(lambda: list(fill(given)), 2) * 1000 / len(given)}}

    assert isinstance(model, GRCD)

    def sampled() -> None:
        model.sample(1000, cell.budget, cell.seed, *_how(cell))

    alone = network_alone(model.diffusion, 1000, model.spends(cell.budget, cell.solver))
    return {"time": {"sampling": _least(sampled, repeats), "network": _least(alone, repeats)}}


def _least(work: Callable[[], object], repeats: int) -> float:
    """The least of some repetitions. Two calls warm up: what is asked for again is captured on a GPU."""
    seconds = []
    for _ in range(repeats + 2):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds[2:])


def _without_network(cell: Cell, known: dict, data: Dataset) -> dict:
    if cell.method == "floor":
        return {"scores": floor(data).to_dict()}
    x, z = _generated(cell, known, data), data.normalizer.apply
    return {"scores": ammd(z(x), z(data.test), data.graph).to_dict()}
