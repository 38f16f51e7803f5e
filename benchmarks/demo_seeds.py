"""The demo over seeds 0, 1, 2: is GRCD at NFE 4 below the best Gaussian control, and how long does it take?

python benchmarks/demo_seeds.py --out results/demo.json
"""

from __future__ import annotations

import argparse
import tempfile
import time

from provenance import provenance

from grcd.demo import SETTINGS, demo
from grcd.files import write_json


def cell(seed: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        scores = demo(folder, seed)
        seconds = time.perf_counter() - began
    best = min(score.ammd for name, score in scores.items() if name.startswith("control"))
    grcd = scores["GRCD, NFE 4"].ammd
    return {"seed": seed, "grcd_nfe4": grcd, "best_control": best, "ratio": grcd / best, "seconds": seconds}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default="results/demo.json")
    args = options.parse_args()
    write_json(args.out, {**provenance("cpu"), "settings": SETTINGS, "cells": [cell(seed) for seed in (0, 1, 2)]})


if __name__ == "__main__":
    main()
