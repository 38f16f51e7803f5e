"""Terminal signal-to-noise ratio of the five settings in both regimes, from their fitted references. No network.

python benchmarks/terminal_snr.py --out results/terminal-snr.json
"""

from __future__ import annotations

import argparse

from provenance import provenance

from grcd import load_dataset
from grcd.bench.suites import NEAR_ZERO, SETTINGS
from grcd.core.files import write_json
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import spectral


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    out, snr = parser.parse_args().out, {}
    for setting in SETTINGS:
        data = load_dataset(setting)
        reference = spectral(ledoit_wolf(data.normalizer.apply(data.train)), data.graph.spectrum)
        kappas = {"kappa 2": 2.0, "near zero": NEAR_ZERO.get(setting, 32.64)}
        snr[setting] = {regime: reference.energy_snr(kappa) for regime, kappa in kappas.items()}
    write_json(out, provenance("cpu") | {"snr": snr})


if __name__ == "__main__":
    main()
