"""Appendix A.6.7, the table of hyperparameters, group by group: what the networks of the cells were trained with, as
their files say; and for processes, data and samplers what stands in the code that made them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

import numpy as np
import torch

from grcd.bench import suites, tables
from grcd.bench.cells import measured
from grcd.data import catalog
from grcd.data.catalog.named import Published
from grcd.diffusion import parameterisation, process, solvers
from grcd.metrics import mmd
from grcd.training.config import Config
from grcd.training.methods import EDM_RANGE, METHODS, VE_RANGE

from .evidence import RESULTS, SEEDS, Claim

TRAINED = {
    "backbone": {"width": 128, "blocks": 3, "taps": 5, "time_dim": 64},
    "optimization": {
        **{"lr": 3e-4, "weight_decay": 1e-4, "batch": 256, "clip": 1.0, "ema": 0.999, "validate_every": 250},
        **{"optimizer": "adam"},
    },
    "stopping": {"patience": 8, "tolerance": 0.002, "max_updates": 40_000},
    "graph and reference": {"delta": 0.05, "shift": "scaled", "eps_ref": 1e-6},
    "conjugate forward": {"t_min": 0.02, "t_max": 1.0, "sigma": 1.0},
}
GAD = {"gamma": 0.8, "S": 7.0, "sigma": 1.0, "alpha": 4.0, "c_min": 0.1, "draw": 0.65}


def claims() -> Iterator[Claim]:
    used = configurations()
    for group, expected in TRAINED.items():
        own = {key: sorted({config.get(key, Config().to_dict()[key]) for config in used}, key=str) for key in expected}
        parts = [values == [expected[key]] if values else None for key, values in own.items()]
        what = f"A.6.7: {group}: {', '.join(expected)}, of every network of the main tables and the ladder"
        yield Claim(f"A.6.7-{group}", what, words(expected.values()), words(listed(own.values())), parts)
    kappas = sorted({config["kappa"] for config in used if not config["method"].startswith("wsd")})
    yield Claim(
        "A.6.7-kappa",
        "A.6.7: kappa at finite SNR (but for the WSD-style comparator, which is read otherwise here: see below)",
        "2",
        words(listed([kappas])) if kappas else "-",
        [kappas == [2.0] if kappas else None],
    )
    yield from processes()
    yield from prepared()
    yield sampling()


def configurations() -> list[dict]:
    """What every network of the paper's tables at its matched protocol was trained with."""
    methods = {row for _, row, _ in tables.printed("main")} | {"clock", "clock+reference+residual"}
    cells = suites.generated("main", seeds=SEEDS) + suites.generated("ladder", seeds=SEEDS)
    contents = (measured(cell, RESULTS) for cell in cells if cell.method in methods and cell.nfe == 4)
    return [content["config"] for content in contents if content and "config" in content]


def processes() -> Iterator[Claim]:
    ve, heat = (defaults(each) for each in (process.VEProcess, process.HeatProcess))
    own = [*VE_RANGE, ve["mean"], ve["spread"], METHODS["isotropic-ve"].rho, *EDM_RANGE, METHODS["edm"].rho]
    expected = [0.02, 32.64, -1.2, 1.2, 7.0, 0.002, 80.0, 7.0]
    yield Claim(
        "A.6.7-ve",
        "A.6.7: VE controls and EDM: range of noise, log-normal draw, exponent of the grid; EDM's range and exponent",
        words(expected),
        words(own),
        [a == b for a, b in zip(own, expected, strict=True)],
    )
    heat |= {"gamma": defaults(process.HeatProcess.on)["gamma"]}
    weight = defaults(parameterisation.Denoised)["tv"]
    yield Claim(
        "A.6.7-gad",
        f"A.6.7: GAD: {', '.join(GAD)} (exponent of its draw of time), weight of the total variation",
        words([*GAD.values(), 5e-3]),
        words([*(heat[key] for key in GAD), weight]),
        [*(heat[key] == value for key, value in GAD.items()), weight == 5e-3],
    )


def prepared() -> Iterator[Claim]:
    """What METR-LA is made of where nothing else is asked for, and the end of GAD's sampler. That Laplacians, z-scores
    and the shrunk covariance are what their names say, tests hold."""
    metr_la = catalog.DATASETS["metr-la"]
    assert isinstance(metr_la, Published)
    own = [*metr_la.defaults["cap"], metr_la.defaults["symmetrize"], *suites.seeds_of("main", "metr-la")]
    expected = [20_000, 3_000, 5_000, "half-sum", 0, 1, 2]
    yield Claim(
        "A.6.7-data",
        "A.6.7: METR-LA's caps, its symmetrizer, the seeds",
        " / ".join(map(str, expected)),
        " / ".join(map(str, own)),
        [a == b for a, b in zip(own, expected, strict=True)],
    )
    heat = process.HeatProcess(torch.ones(2), torch.eye(2))
    ends = [heat.newton(0.0), heat.heat(1.0)]
    yield Claim(
        "A.6.7-gad-sampler",
        "A.6.7: GAD's sampler ends at heat time 0; its heat time at T = 1 is S",
        "0 / 7",
        words(ends),
        [ends[0] == 0.0, abs(ends[1] - 7.0) < 1e-9],
    )


def sampling() -> Claim:
    own = [solvers.SIMPSON_NODES, METHODS["grcd-rho3"].rho, *np.round(mmd.MULTIPLIERS, 2).tolist()]
    expected = [65, 3, 0.1, 0.32, 1.0, 3.16, 10.0]  # the paper prints 3.2
    what = "A.6.7: GRCD's sampler and aMMD: nodes of Simpson's rule, exponent of the grid, bandwidths over the median"
    same = [a == b for a, b in zip(own, expected, strict=True)]
    return Claim("A.6.7-sampling", what, words(expected), words(own), same)


def defaults(of: object) -> dict:
    """Of a class's fields, or a function's arguments."""
    parameters = inspect.signature(of).parameters.values()  # type: ignore[arg-type]
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def listed(values) -> Iterator[object]:
    """What is one number, and what is several."""
    yield from (each[0] if len(each) == 1 else json.dumps(each) for each in values)


def words(values) -> str:
    return " / ".join(f"{value:g}" if isinstance(value, int | float) else str(value) for value in values)
