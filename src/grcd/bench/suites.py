"""The suites: which cells each consists of.

main          every method at every budget, and the controls and the floor
ladder        the ablation ladder on METR-LA: clock, + reference, + residual, + exponential
solvers       Heun, DPM-Solver++ 2M and 3M on two grids, exponential: one network
grid          the exponent of the sampling grid
snr           fitted against scalar terminal reference, at kappa 2 and near zero terminal SNR
controls      the Gaussian controls, five draws each, and the floor
quick         SBM c = 16, one seed, GRCD and EDM, controls and floor: for two cores
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ..errors import unknown
from ..methods import METHODS
from .cells import Cell

SETTINGS = ("metr-la", "molene", "sbm-c1", "sbm-c4", "sbm-c16")
BUDGETS = (4, 6, 8, 12, 16, 32, 64)
CONTROLS = ("control-diagonal", "control-full", "control-gmrf", "control-spectral")
DRAWS = 5
LADDER = ("clock", "clock+reference", "clock+reference+residual", "clock+reference+residual+exponential")
NEAR_ZERO = {"metr-la": 32.6356}  # else 32.64: terminal SNR of a hundredth or less


def cells(
    suite: str, settings: Sequence[str] = (), seeds: Sequence[int] = (0, 1, 2), methods: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a suite; ``settings``, ``seeds`` and ``methods`` choose among them."""
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    for kind, names, known in (("setting", settings, SETTINGS), ("method", methods, (*METHODS, *CONTROLS, "floor"))):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    found = SUITES[suite](tuple(settings), tuple(seeds))
    return [cell for cell in found if not methods or cell.method in methods]


def beside(settings: Sequence[str]) -> list[Cell]:
    """Controls and floor: they belong into every table."""
    drawn = [Cell(s, name, seed) for s, name, seed in product(settings, CONTROLS, range(DRAWS))]
    return drawn + [Cell(s, "floor") for s in settings]


def _main(settings, seeds) -> list[Cell]:
    settings, methods = settings or SETTINGS, [name for name in METHODS if name not in LADDER]
    return [Cell(*place) for place in product(settings, methods, seeds, BUDGETS)] + beside(settings)


def _ladder(settings, seeds) -> list[Cell]:
    settings = settings or ("metr-la",)
    return [Cell(*place) for place in product(settings, LADDER, seeds, BUDGETS)] + beside(settings)


def _solvers(settings, seeds) -> list[Cell]:
    settings, budgets = settings or ("metr-la",), (4, 8, 16, 32)
    choices = [
        {"solver": "heun-paper", "rho": 1.0},
        *({"solver": name, "grid": "log-snr"} for name in ("dpm++2m", "dpm++3m")),
        *({"solver": name, "rho": 3.0} for name in ("dpm++2m", "dpm++3m", "exponential-paper", "exponential")),
    ]
    places = product(settings, seeds, choices, budgets)
    return [Cell(s, "grcd-rho3", seed, nfe, **how) for s, seed, how, nfe in places] + beside(settings)


def _grid(settings, seeds) -> list[Cell]:
    settings = settings or ("metr-la",)
    places = product(settings, seeds, (1.0, 2.0, 3.0, 5.0, 7.0), (4, 6, 8, 12, 16))
    return [Cell(s, "grcd-rho3", seed, nfe, rho=rho) for s, seed, rho, nfe in places] + beside(settings)


def _snr(settings, seeds) -> list[Cell]:
    settings = settings or SETTINGS
    found = []
    for s, method, seed in product(settings, ("clock", "clock+reference"), seeds):
        found += [Cell(s, method, seed, 16), Cell(s, method, seed, 16, kappa=NEAR_ZERO.get(s, 32.64))]
    return found + beside(settings)


def _controls(settings, seeds) -> list[Cell]:
    return beside(settings or SETTINGS)


def _quick(settings, seeds) -> list[Cell]:
    settings = settings or ("sbm-c16",)
    places = product(settings, ("grcd", "grcd-rho3", "edm"), seeds[:1], (4, 8, 16, 64))
    return [Cell(*place) for place in places] + beside(settings)


SUITES = {
    "main": _main,
    "ladder": _ladder,
    "solvers": _solvers,
    "grid": _grid,
    "snr": _snr,
    "controls": _controls,
    "quick": _quick,
}
