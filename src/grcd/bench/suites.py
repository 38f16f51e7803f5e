"""The suites: which cells each consists of.

main          every method at every budget, and the controls and the floor
ladder        the ablation ladder on METR-LA: clock, + reference, + residual, + exponential
solvers       Heun, DPM-Solver++ 2M and 3M on two grids, exponential: one network
grid          the exponent of the sampling grid, on validation signals (where it is chosen) and on test signals
snr           fitted against scalar terminal reference, at kappa 2 and near zero terminal SNR
controls      the controls without a network, five draws each, and the floor
cost          how long sampling takes; the quality beside it is that of main and ladder. Nothing else at the same time!
symmetrizer   METR-LA's directed weights made symmetric by the larger of the two, not by their mean
ablation      what each part of grcd brings: reference, backbone, solver, grid, kappa; one taken back at a time. And
              what it costs to keep readings within their range
impute        hidden readings filled: grcd and its reference alone beside baselines, four kinds of gaps
distances     grcd and the paper's GRCD by metrics that a covariance cannot fool, beside a Gaussian and a mixture
gad-native    GAD at its authors' numbers of steps, and trained at their size and length
quick         SBM c = 16, one seed, GRCD and EDM, controls and floor: for two cores
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ..core.errors import unknown
from ..data import catalog
from ..evaluation.fillers import FILLERS
from ..evaluation.filling import MASKS
from ..training.methods import METHODS
from .cells import Cell

SETTINGS = tuple(catalog.SETTINGS)
BUDGETS = (4, 6, 8, 12, 16, 32, 64)
CONTROLS = ("control-diagonal", "control-full", "control-gmrf", "control-spectral", "control-mixture")
DRAWS = 5
PARTS = ("grcd-full", "grcd-spectral", "grcd-gnn")
Names = Sequence[str] | None  # of settings; None: the suite's own
FEW = (1, 2)  # budgets below those of the paper
RHOS = (1.0, 2.0, 3.0, 5.0, 7.0)
LADDER = ("clock", "clock+reference", "clock+reference+residual", "clock+reference+residual+exponential")
BOUNDS = {name: setting.bounds for name, setting in catalog.SETTINGS.items() if setting.bounds}
NEAR_ZERO = {name: setting.near_zero_kappa for name, setting in catalog.SETTINGS.items()}


def cells(
    suite: str, settings: Sequence[str] = (), seeds: Sequence[int] = (0, 1, 2), methods: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a suite; ``settings``, ``seeds`` and ``methods`` choose among them."""
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    for kind, names, known in (
        ("setting", settings, SETTINGS),
        ("method", methods, (*METHODS, *CONTROLS, *FILLERS, "floor")),
    ):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    found = SUITES[suite](tuple(settings), tuple(seeds))
    return [cell for cell in found if not methods or cell.method in methods]


def beside(settings: Sequence[str]) -> list[Cell]:
    """Controls and floor: they belong into every table."""
    drawn = [Cell(s, name, seed) for s, name, seed in product(settings, CONTROLS, range(DRAWS))]
    return drawn + [Cell(s, "floor") for s in settings]


def _main(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings, methods = settings or SETTINGS, [name for name in METHODS if name not in (*LADDER, *PARTS, "gad-native")]
    few = [Cell(*place) for place in product(settings, ("grcd",), seeds, FEW)]
    return few + [Cell(*place) for place in product(settings, methods, seeds, BUDGETS)] + beside(settings)


def _ladder(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    return [Cell(*place) for place in product(settings, LADDER, seeds, BUDGETS)] + beside(settings)


def _solvers(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings, budgets = settings or ("metr-la",), (4, 8, 16, 32)
    choices: list[dict[str, Any]] = [
        {"solver": "heun-paper", "rho": 1.0},
        *({"solver": name, "grid": "log-snr"} for name in ("dpm++2m", "dpm++3m")),
        *({"solver": name, "rho": 3.0} for name in ("dpm++2m", "dpm++3m", "exponential-paper", "exponential")),
    ]
    places = product(settings, seeds, choices, budgets)
    return [Cell(s, "grcd-rho3", seed, nfe, **how) for s, seed, how, nfe in places] + beside(settings)


def _grid(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, seeds, RHOS, (4, 6, 8, 12, 16), ("test", "val"))
    found = [Cell(s, "grcd-rho3", seed, nfe, rho=rho, split=split) for s, seed, rho, nfe, split in places]
    return found + beside(settings)


def _snr(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or SETTINGS
    found = []
    for s, method, seed in product(settings, ("clock", "clock+reference"), seeds):
        found += [Cell(s, method, seed, 16), Cell(s, method, seed, 16, kappa=NEAR_ZERO.get(s, 32.64))]
    return found + beside(settings)


def _controls(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    return beside(settings or SETTINGS)


def _cost(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    """Timed with one seed, for time does not depend on it; and all cells whose quality is told beside."""
    settings = settings or ("metr-la",)
    quality = [cell for cell in (*_main(settings, seeds), *_ladder(settings, seeds)) if cell.nfe is not None]
    timed = [replace(cell, timed=True) for cell in quality if cell.seed == min(seeds)]
    return quality + timed + beside(settings)


def _symmetrizer(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, ("grcd-rho1", "conjugate-precond"), seeds, (None, "max"))
    return [Cell(s, name, seed, 16, symmetrize=how) for s, name, seed, how in places] + beside(settings)


def _gad_native(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, (("gad", 1000), ("gad", 3000), ("gad-native", 5000)), seeds)
    return [Cell(s, name, seed, nfe) for s, (name, nfe), seed in places] + beside(settings)


def _ablation(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    varied: list[dict[str, Any]] = [
        *({"method": name} for name in ("grcd", *PARTS, "grcd-rho3")),
        *({"method": "grcd", "solver": name} for name in ("residual-2m", "residual-3m", "dpm++2m", "heun")),
        *({"method": "grcd", "rho": rho} for rho in (3.0, 1.0)),
        *({"method": "grcd", "grid": name} for name in ("entropy", "log-snr")),
        *({"method": "grcd", "kappa": kappa} for kappa in (1.0, 4.0)),
    ]
    places = [*product(settings, varied, seeds, (*FEW, 4, 8, 64))]
    bounded = [(s, {"method": "grcd", "support": BOUNDS[s]}) for s in settings if s in BOUNDS]
    places += [(*place, seed, nfe) for place, seed, nfe in product(bounded, seeds, (*FEW, 4, 8, 64))]
    return [Cell(s, seed=seed, nfe=nfe, **how) for s, how, seed, nfe in places] + beside(settings)


def _distances(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or SETTINGS
    sampled = [Cell(*place, distances=True) for place in product(settings, ("grcd", "grcd-rho3"), seeds, (4, 64))]
    controls = product(settings, ("control-full", "control-mixture"), seeds)
    return sampled + [Cell(*place, distances=True) for place in controls]


def _impute(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    """At two budgets, the default first; the reference (``solver="reference"``) needs none. Timed with one seed."""
    settings = settings or ("metr-la", "molene")
    found = [Cell(s, name, mask=mask) for s, name, mask in product(settings, FILLERS, MASKS)]
    for s, seed, mask in product(settings, seeds, MASKS):
        found.append(Cell(s, "grcd", seed, solver="reference", mask=mask))
        found += [Cell(s, "grcd", seed, nfe, mask=mask) for nfe in (8, 16)]
    return found + [replace(cell, timed=True) for cell in found if not cell.needs_network or cell.seed == min(seeds)]


def _quick(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("sbm-c16",)
    places = product(settings, ("grcd", "edm"), seeds[:1], (4, 8, 16, 64))
    return [Cell(*place) for place in places] + beside(settings)


SUITES = {
    "main": _main,
    "ladder": _ladder,
    "solvers": _solvers,
    "grid": _grid,
    "snr": _snr,
    "controls": _controls,
    "cost": _cost,
    "symmetrizer": _symmetrizer,
    "gad-native": _gad_native,
    "ablation": _ablation,
    "distances": _distances,
    "impute": _impute,
    "quick": _quick,
}
