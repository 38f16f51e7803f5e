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
imputation    gaps of windows filled: the public tables of METR-LA and AQI-36, and our own gaps (``windows``)
forecast      rows foretold: METR-LA by DCRNN's protocol, PM2.5 in Beijing
quick         SBM c = 16, one seed, GRCD and EDM, controls and floor: for two cores
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ..core.errors import unknown
from ..data import catalog
from ..evaluation.baselines import BASELINES
from ..evaluation.filling import MASKS
from ..training.methods import METHODS
from .cells import Baseline, Cell, Control, Filled, Floor, Generated
from .windows import cells as in_time
from .windows.settings import SETTINGS as IN_TIME

SETTINGS = tuple(catalog.SETTINGS)
BUDGETS = (4, 6, 8, 12, 16, 32, 64)
CONTROLS = ("control-diagonal", "control-full", "control-gmrf", "control-spectral", "control-mixture")
DRAWS = 5
PAPERS = ("main", "ladder", "solvers", "grid", "snr", "cost", "symmetrizer", "gad-native")  # suites after its tables
CHEAP = tuple(name for name in SETTINGS if name != "metr-la")  # settings whose networks take seconds: more seeds
PARTS = ("grcd-full", "grcd-spectral", "grcd-gnn")
Names = Sequence[str] | None  # of settings; None: the suite's own
FEW = (1, 2)  # budgets below those of the paper
NATIVE = 5000  # steps of GAD's authors
RHOS = (1.0, 2.0, 3.0, 5.0, 7.0)
LADDER = ("clock", "clock+reference", "clock+reference+residual", "clock+reference+residual+exponential")
APART = (*LADDER, *PARTS, "gad-native", "grcd-sparse")  # which the main table does not have
BOUNDS = {name: setting.bounds for name, setting in catalog.SETTINGS.items() if setting.bounds}
NEAR_ZERO = {name: setting.near_zero_kappa for name, setting in catalog.SETTINGS.items()}


def seeds_of(suite: str, setting: str) -> tuple[int, ...]:
    """The seeds of a suite where none are chosen: three, and five where the paper's tables can have them cheaply."""
    return tuple(range(5 if suite in PAPERS and setting in CHEAP else 3))


def cells(
    suite: str, settings: Sequence[str] = (), seeds: Sequence[int] | None = None, methods: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a suite, in the order of its table; ``settings``, ``seeds`` and ``methods`` choose among them."""
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    if suite in IN_TIME:
        return in_time.cells(suite, settings, range(3) if seeds is None else seeds, methods)
    if seeds is None:
        members = cells(suite, settings, range(max(len(seeds_of(suite, name)) for name in SETTINGS)), methods)
        return [cell for cell in members if not cell.needs_network or cell.seed in seeds_of(suite, cell.setting)]
    for kind, names, choices in (
        ("setting", settings, SETTINGS),
        ("method", methods, (*METHODS, *CONTROLS, *BASELINES, "floor")),
    ):
        for name in names:
            if name not in choices:
                raise unknown(kind, name, choices)
    members = SUITES[suite](tuple(settings), tuple(seeds))
    return [cell for cell in members if not methods or cell.method in methods]


def generated(
    suite: str, settings: Sequence[str] = (), seeds: Sequence[int] | None = None, methods: Sequence[str] = ()
) -> list[Generated]:
    """Those cells of a suite that are about signals of a network."""
    return [cell for cell in cells(suite, settings, seeds, methods) if isinstance(cell, Generated)]


def beside(settings: Sequence[str]) -> list[Cell]:
    """Controls and floor: they belong into every table."""
    drawn = [Control(s, name, seed) for s, name, seed in product(settings, CONTROLS, range(DRAWS))]
    return [*drawn, *map(Floor, settings)]


def _main(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings, methods = settings or SETTINGS, [name for name in METHODS if name not in APART]
    places = [*product(settings, ("grcd",), seeds, FEW), *product(settings, methods, seeds, BUDGETS)]
    return [*(Generated(*place) for place in places), *beside(settings)]


def _ladder(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    return [*(Generated(*place) for place in product(settings, LADDER, seeds, BUDGETS)), *beside(settings)]


def _solvers(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings, budgets = settings or ("metr-la", *(name for name in SETTINGS if name.startswith("sbm"))), (4, 8, 16, 32)
    choices: list[dict[str, Any]] = [
        {"solver": "heun-paper", "rho": 1.0},
        *({"solver": name, "grid": "log-snr"} for name in ("dpm++2m", "dpm++3m-halved", "dpm++3m")),
        *({"solver": name, "rho": 3.0} for name in ("dpm++2m", "dpm++3m-halved", "dpm++3m")),
        *({"solver": name, "rho": 3.0} for name in ("exponential-paper", "exponential")),
    ]
    places = product(settings, seeds, choices, budgets)
    return [*(Generated(s, "grcd-rho3", seed, nfe, **how) for s, seed, how, nfe in places), *beside(settings)]


def _grid(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, seeds, RHOS, (4, 6, 8, 12, 16), ("test", "val"))
    generated = [Generated(s, "grcd-rho3", seed, nfe, rho=rho, split=split) for s, seed, rho, nfe, split in places]
    return [*generated, *beside(settings)]


def _snr(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or SETTINGS
    cells = [
        Generated(s, name, seed, 16, kappa=kappa)
        for s, name, seed in product(settings, ("clock", "clock+reference"), seeds)
        for kappa in (None, NEAR_ZERO.get(s, 32.64))
    ]
    return [*cells, *beside(settings)]


def _controls(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    return beside(settings or SETTINGS)


def _cost(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    """Timed with one seed, for time does not depend on it; and all cells whose quality stands beside, but for GAD's at
    its authors' size, which is a suite of its own."""
    settings = settings or ("metr-la",)
    quality = [cell for cell in (*_main(settings, seeds), *_ladder(settings, seeds)) if isinstance(cell, Generated)]
    timed = [replace(cell, measure="time") for cell in quality if cell.seed == min(seeds)]
    timed += [Generated(s, "gad-native", min(seeds), NATIVE, measure="time") for s in settings]
    return [*quality, *timed, *beside(settings)]


def _symmetrizer(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, ("grcd-rho1", "conjugate-precond"), seeds, (None, "max"))
    return [*(Generated(s, name, seed, 16, symmetrize=how) for s, name, seed, how in places), *beside(settings)]


def _gad_native(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    """The 785,000 updates of GAD's own length with one seed: 17 minutes of an H200."""
    settings = settings or ("metr-la",)
    matched = product(settings, ("gad",), seeds, (1000, 3000))
    own = product(settings, ("gad-native",), seeds[:1], (NATIVE,))
    return [*(Generated(*place) for place in (*matched, *own)), *beside(settings)]


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
    return [*(Generated(s, seed=seed, nfe=nfe, **how) for s, how, seed, nfe in places), *beside(settings)]


def _distances(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or SETTINGS
    drawn = product(settings, ("control-full", "control-mixture"), seeds)
    sampled = product(settings, ("grcd", "grcd-rho3"), seeds, (4, 64))
    cells: list[Cell] = [Generated(*place, measure="distances") for place in sampled]
    return [*cells, *(Control(*place, measure="distances") for place in drawn)]


def _impute(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    """By the reference alone, and at two budgets, the default first. Timed with one seed."""
    settings = settings or ("metr-la", "molene")
    baselines, places = product(settings, BASELINES, MASKS), product(settings, seeds, MASKS, (None, 8, 16))
    cells: list[Baseline | Filled] = [Baseline(s, name, mask=mask) for s, name, mask in baselines]
    cells += [Filled(s, "grcd", seed, nfe, mask=mask) for s, seed, mask, nfe in places]
    timed = [cell for cell in cells if isinstance(cell, Baseline) or cell.seed == min(seeds)]
    return [*cells, *(replace(cell, measure="time") for cell in timed)]


def _quick(settings: Names, seeds: Sequence[int]) -> list[Cell]:
    settings = settings or ("sbm-c16",)
    places = product(settings, ("grcd", "edm"), seeds[:1], (4, 8, 16, 64))
    return [*(Generated(*place) for place in places), *beside(settings)]


SUITES: dict[str, Callable[[Names, Sequence[int]], list[Cell]]] = {
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
    "imputation": lambda settings, seeds: in_time.cells("imputation", settings or (), seeds, ()),
    "forecast": lambda settings, seeds: in_time.cells("forecast", settings or (), seeds, ()),
    "quick": _quick,
}
