"""What the paper prints about data, graphs, references and networks, computed here. Nothing is trained.

python benchmarks/facts.py --out results/facts.json
"""

from __future__ import annotations

import argparse

import numpy as np
from provenance import provenance

import grcd
from grcd.bench.suites import NEAR_ZERO
from grcd.bench.tables import printed
from grcd.core.files import write_json
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import off_diagonal_energy, spectral
from grcd.training.methods import METHODS

SPLITS = ("train", "val", "test")
OURS = ("grcd", "grcd-full", "grcd-spectral")  # with a network of their own


def of_setting(name: str) -> dict:
    """Sizes, the graph, the fitted reference and its terminal SNR in both regimes."""
    data = grcd.load_dataset(name)
    covariance = ledoit_wolf(data.normalizer.apply(data.train))
    reference = spectral(covariance, data.graph.spectrum)
    variance = np.sort(np.asarray(reference.v))
    graph = data.graph
    return {
        "nodes": len(graph),
        "signals": [len(data.split(split)) for split in SPLITS],
        "components": graph.components,
        "pairs": graph.pairs,
        "one_way": graph.one_way,
        "one_way_share": graph.one_way_share,
        "off_diagonal_energy": off_diagonal_energy(covariance, reference),
        "variance_largest_over_least": float(variance[-1] / variance[0]),
        "snr": {"kappa 2": reference.energy_snr(2.0), "near zero": reference.energy_snr(NEAR_ZERO.get(name, 32.64))},
        "kappa_of_snr_0.010": reference.q_for_snr(0.010),
    }


def parameters() -> dict[str, int]:
    """Of the network of every method that is the paper's."""
    graph = grcd.load_dataset("sbm-c1").graph
    models = {name: grcd.GRCD(graph, name, device="cpu") for name in METHODS if name not in OURS}
    return {name: model.config.network.size(len(graph)) for name, model in models.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    whole = grcd.load_dataset("metr-la", cap=(10**6,))
    facts = {
        "settings": {name: of_setting(name) for name in dict.fromkeys(setting for setting, _, _ in printed("main"))},
        "metr-la before caps": [len(whole.split(split)) for split in SPLITS],
        "parameters": parameters(),
    }
    write_json(out, provenance("cpu") | facts)


if __name__ == "__main__":
    main()
