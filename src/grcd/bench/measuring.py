"""How a cell is measured, by its kind, once what it needs has been fitted: a model, the controls, or a baseline.

Each function takes a cell, what was fitted and the data, and returns what the cell's file is to hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.rows import evenly
from ..data import Dataset, catalog
from ..evaluation import ammd, distances, farther_test, filling, floor, permutation_test
from ..evaluation.bootstrap import by_day
from ..evaluation.controls import draw
from ..metrics import distances as metrics
from ..model import GRCD
from ..tasks.sample import network_alone
from .cells import Baseline, Cell, Control, Filled, Floor, Generated

FILLINGS = 100  # draws for each signal with gaps
TIMED = 200  # signals that are filled to see how long it takes
LONG = 500  # evaluations from which a network's products are TF32 on a GPU, as in training: minutes in place of an hour
Fill = Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]]  # signals with gaps -> rows and completions


def measurement(cell: Cell, fitted: Any, data: Dataset) -> dict[str, Any]:
    """What the file of a cell is to hold; ``fitted`` is a trained model, the controls by name, or a baseline."""
    if isinstance(cell, Generated):
        return _of_generated(cell, fitted, data)
    if isinstance(cell, Floor):
        return {"scores": floor(data).to_dict()}
    if isinstance(cell, Control):
        x = draw(fitted[cell.method], data, len(data.test), cell.seed)
        return (_distances if cell.measure == "distances" else _ammd)(x, data, cell.split)
    if isinstance(cell, Filled):
        model = fitted.as_method(cell.method)
        nfe, kind = cell.nfe or 1, cell.posterior
        return _of_filled(cell, lambda x: model.fillings(x, FILLINGS, nfe, cell.seed, kind), data) | _about(model)
    assert isinstance(cell, Baseline)
    return _of_filled(cell, lambda x: fitted(x, FILLINGS, cell.seed), data)


def _about(model: GRCD) -> dict[str, Any]:
    return {"training": model.result, "config": model.config.to_dict()}


# -- generated signals -------------------------------------------------------------------------------------------------


def _of_generated(cell: Generated, fitted: GRCD, data: Dataset) -> dict[str, Any]:
    model = fitted.as_method(cell.method)
    about = _about(model) | {"spent": model.spends(cell.nfe, cell.solver)}
    if cell.support:  # of what comes out, not of the network
        model.config = replace(model.config, support=cell.support)
    if cell.measure == "time":
        return _sampling_time(cell, model) | about
    began = time.perf_counter()
    precision = "tf32" if cell.nfe >= LONG else "float32"
    x = model.sample(len(data.split(cell.split)), cell.nfe, cell.seed, *_how(cell), precision=precision)
    seconds = time.perf_counter() - began
    if not np.isfinite(x).all():
        raise ArithmeticError(f"{(~np.isfinite(x)).sum()} of {x.size} generated readings are not finite")
    if cell.measure == "distances":
        return _distances(x, data, cell.split, model.device) | about
    content = _ammd(x, data, cell.split, model.device)
    content |= diagnostics(x, data.normalizer.apply(x), data.split(cell.split), cell.setting)
    content["seconds_per_1000"] = round(1000 * seconds / len(x), 4)
    content["precision"] = precision
    if cell.support:
        ((low, high),) = model.config.limits().bounds
        content["outside_support"] = int(((x < low) | (x > high)).sum())
    return content | about


def _how(cell: Generated) -> tuple[str | None, float | None, str | None]:
    """Solver, rho and grid as ``sample`` takes them: the power grid without an exponent is the method's own choice."""
    return cell.solver, cell.rho, None if cell.grid == "power" and cell.rho is None else cell.grid


def _ammd(x: np.ndarray, data: Dataset, split: str, device: Any = "cpu") -> dict[str, Any]:
    z = data.normalizer.apply
    return {"scores": ammd(z(x), z(data.split(split)), data.graph, device).to_dict()}


def _distances(x: np.ndarray, data: Dataset, split: str, device: Any = "cpu") -> dict[str, Any]:
    """Every distance, and the permutation tests against the split and against as many training signals, the floor's."""
    real, z = data.split(split), data.normalizer.apply
    near = data.train[evenly(len(data.train), len(real))]
    apart = metrics.apart(z(x), z(real), device).cpu().numpy()
    return _days(data, split, {"apart": apart, "signals": np.ones(len(real))}) | {
        "within": metrics.within(z(x), device),
        "distances": {name: each.to_dict() for name, each in distances(x, data, split, device).items()},
        "p": permutation_test(z(x), z(real), device=device),
        "p_floor": farther_test(z(x), z(near), z(real), device=device),
    }


def diagnostics(x: np.ndarray, z: np.ndarray, real: np.ndarray, setting: str) -> dict[str, Any]:
    """Of signals, z-scored ones and real ones, as the paper reports: dispersion, sd a node, share out of range."""
    content = {
        "dispersion": float(np.median(x.std(axis=0) / real.std(axis=0))),
        "node_std": [round(float(s), 4) for s in z.std(axis=0)],
    }
    if setting in catalog.SETTINGS and (possible := catalog.SETTINGS[setting].possible):
        low, high = possible
        content["outside"] = float(((x < low) | (x > high)).mean())
    return content


# -- filled gaps -------------------------------------------------------------------------------------------------------


def _of_filled(cell: Filled | Baseline, fill: Fill, data: Dataset) -> dict[str, Any]:
    """Hide readings of the test signals, fill them, and compare; those that were never there do not count."""
    if cell.measure == "time":
        real = data.test[:TIMED]
        holed = np.where(filling.hidden(cell.mask, *real.shape), np.nan, real)
        return {"time": {"filling": _least(lambda: list(fill(holed)), 2) * 1000 / len(holed)}}
    real, observed = data.test, data.observed("test")
    hidden = filling.hidden(cell.mask, *real.shape)
    compared = hidden if observed is None else hidden & observed
    sums = filling.by_signal(fill(np.where(hidden, np.nan, real)), real, compared)
    errors = filling.overall(sums)
    if not np.isfinite(list(errors.values())).all():
        raise ArithmeticError("filled readings that are not finite")
    return {"filling": errors} | _days(data, "test", {name: sums[name] for name in ("crps", "readings")})


def _days(data: Dataset, split: str, values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Sums by day, for intervals over weeks, of numbers of a split's signals; None where these have no dates."""
    times = data.times.get(split)
    return {"days": None if times is None or times.dtype.kind != "M" else by_day(times, values)}


# -- time --------------------------------------------------------------------------------------------------------------


def _sampling_time(cell: Generated, model: GRCD) -> dict[str, Any]:
    """Seconds for 1,000 signals, and of those the ones that the network alone takes."""
    repeats = 5 if cell.nfe < LONG else 1
    alone = network_alone(model.diffusion, 1000, model.spends(cell.nfe, cell.solver))
    sampling = _least(lambda: model.sample(1000, cell.nfe, cell.seed, *_how(cell)), repeats)
    return {"time": {"sampling": sampling, "network": _least(alone, repeats)}}


def _least(work: Callable[[], object], repeats: int) -> float:
    """The least of some repetitions. Two calls warm up: what is repeated is captured on a GPU."""
    seconds = []
    for _ in range(repeats + 2):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds[2:])
