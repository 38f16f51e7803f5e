"""The demo of the paper over seeds 0, 1, 2: what does our GRCD gain over the paper's and the Gaussians, in which time?

python benchmarks/demo_seeds.py --out results/demo.json
"""

from __future__ import annotations

import argparse
import tempfile
import time

from provenance import provenance

from grcd.cli.paper_demo import SETTINGS, demo
from grcd.core.files import write_json


def cell(seed: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        scores = demo(folder, seed)
        seconds = time.perf_counter() - began
    gaussians = [score.ammd for name, score in scores.items() if name.startswith("control") and "mixture" not in name]
    named = {name: scores[name].ammd for name in ("grcd, NFE 1", "grcd, NFE 4", "grcd-rho3, NFE 4", "control-mixture")}
    return {"seed": seed, **named, "best Gaussian": min(gaussians), "seconds": seconds}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default="results/demo.json")
    args = options.parse_args()
    write_json(args.out, {**provenance("cpu"), "settings": SETTINGS, "cells": [cell(seed) for seed in (0, 1, 2)]})


if __name__ == "__main__":
    main()
