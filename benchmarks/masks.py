"""How much of a window the point masks of training should hide: chosen on validation rows.

    python benchmarks/masks.py --out results/masks.json

METR-LA's first 30 sensors and 5,000 rows, of which the last 1,500 validate; its test rows are elsewhere. Every variant
trains the default network of a CPU, from scratch and with the same seeds; all other families of masks are as they are.
``u`` is uniform, one number a window, and the share of points that is hidden is

    to 60 %             0.05 + 0.55 u
    a fifth to 95 %     0.05 + 0.55 u / 0.8 where u < 0.8, else 0.6 + 0.35 (u - 0.8) / 0.2

Scored: points, spells and whole sensors that are hidden of the validation rows, by 19 draws of 4 evaluations each; MAE
in mph, CRPS as in the public tables, and what 90 % intervals hold. The reference alone stands beside. Validation rows
also say when a training stops, by masks of the variant's own. The same command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from provenance import provenance
from space_time import cut

from grcd import GRCD, train
from grcd.bench.windows.measuring import Network
from grcd.core.files import write_json
from grcd.core.streams import Stream
from grcd.data.loading import load_series
from grcd.data.series_dataset import SeriesDataset
from grcd.evaluation import hiding, protocol
from grcd.evaluation.pieces import Pieces
from grcd.evaluation.tally import Tally
from grcd.training.masks import FAMILIES, Uniform, _least
from grcd.training.window_config import AS_THEY_ARE

STEPS, MARGIN, DRAWS, NFE = 24, 2, 19, 4
ROWS, COLUMNS, CUT = 5_000, 30, 3_500
SHARES = (10, 25, 50, 75, 90)
VARIANTS: dict[str, Callable[[Uniform], torch.Tensor]] = {
    "to 60 %": lambda u: 0.05 + 0.55 * u.windows[0],
    "a fifth to 95 %": lambda u: torch.where(
        u.windows[0] < 0.8, 0.05 + 0.55 * u.windows[0] / 0.8, 0.6 + 0.35 * (u.windows[0] - 0.8) / 0.2
    ),
}
SCORES = ("mae", "crps", "cover90")


def table() -> SeriesDataset:
    """Training rows, and validation rows in the place of test rows too."""
    data = cut(load_series("metr-la"), ROWS, COLUMNS, (CUT, ROWS))
    return replace(data, splits={"train": (slice(0, CUT),), "val": (slice(CUT, ROWS),), "test": (slice(CUT, ROWS),)})


def asked(data: SeriesDataset) -> dict[str, Pieces]:
    """What is hidden of validation rows, by name."""
    val = data.part("val")
    u = Stream(protocol.SEED, "masks.py").uniform(0, val.values.size).view(val.values.shape).numpy()
    hidden = {f"points, {share} %": u < share / 100 for share in SHARES}
    hidden |= {family: hiding.hidden(family, val, STEPS, protocol.SEED) for family in ("spells", "sensors")}
    return {name: Pieces.covering(val, where, STEPS, MARGIN) for name, where in hidden.items()}


def scored(network: Network, nfe: int | None, pieces: Pieces) -> dict[str, float]:
    answer, tally = network.answer(nfe, DRAWS), Tally.of(pieces)
    for some in np.array_split(np.arange(len(pieces)), 8):
        draws = answer(pieces, some)
        quantiles = protocol.draw_quantiles(draws[:, torch.from_numpy(pieces.scored(some))])
        tally.add(pieces, some, quantiles, draws)
    scores = tally.scores()
    return {name: round(scores[name], 5) for name in SCORES}


def measured(variant: str, seed: int, runs: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """A training, and its scores by what was hidden."""
    points = FAMILIES["points"]._replace(hidden=lambda u: _least(u.readings, VARIANTS[variant](u)))
    data, folder = table(), runs / f"{list(VARIANTS).index(variant)}-s{seed}"
    model = GRCD(data.graph, "grcd", seed, "cpu", window=STEPS, **AS_THEY_ARE, **settings)
    with patch.dict(FAMILIES, points=points):
        network = Network(train(model, data, folder, contest=False), data, None)
    found: dict[str, Any] = {"scores": {name: scored(network, NFE, each) for name, each in asked(data).items()}}
    if variant == next(iter(VARIANTS)):
        found["reference"] = {name: scored(network, None, each) for name, each in asked(data).items()}
    return found | {"training": model.result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/masks.json"))
    parser.add_argument("--runs", type=Path, default=Path("runs/masks"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--variants", default=";".join(VARIANTS), help="with semicolons between them")
    parser.add_argument("--updates", type=int, default=2400)
    args = parser.parse_args()
    for seed in args.seeds.split(","):
        for variant in args.variants.split(";"):
            if seed not in done(args.out).get(variant, {}):
                found = measured(variant, int(seed), args.runs, {"max_updates": args.updates})
                variants = done(args.out)
                variants.setdefault(variant, {})[seed] = found
                write_json(args.out, {**provenance("cpu"), "variants": variants})
                print(variant, seed, found["scores"], flush=True)


def done(path: Path) -> dict[str, dict[str, dict]]:
    """What was measured before, by variant and seed."""
    return json.loads(path.read_text())["variants"] if path.exists() else {}


if __name__ == "__main__":
    main()
