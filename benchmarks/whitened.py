"""How were the paper's WSD-style rows sampled? Readings with a closed-form score in place of the network.

The paper transfers the whitened score "to the conjugate forward process" and says neither at which terminal noise
(kappa 2 or the near-zero SNR), nor with which sampler, nor whether the forward noise is coloured by the covariance, as
in WSD itself. Here the score is exact, that of a Gaussian mixture fitted to the training signals (components chosen on
validation signals), so what is left are the process and the sampler. With noise ``x~ = x_0 + q K^1/2 eps``

    dx~ = -2 q K score dq + sqrt(2 q) K^1/2 dW        (Euler-Maruyama; the flow has half the drift and no noise)

``K`` is the identity, or for coloured noise the fitted spectral covariance. In graph coordinates the same equations are
integrated in ``t``. Grids are uniform in ``t``, signals are returned at ``t_min``, aMMD is against test signals.
The misfit is the mean of ``|log(ours / paper)|`` over NFE 4, 8, 16, 64.

    OMP_NUM_THREADS=1 python benchmarks/whitened.py --out results/whitened.json
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from dataclasses import dataclass, replace
from importlib import resources
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from provenance import provenance
from torch import Tensor

import grcd
from grcd.core.files import write_json
from grcd.core.rows import evenly
from grcd.core.streams import Stream
from grcd.diffusion.process import ConjugateProcess
from grcd.evaluation import ammd
from grcd.references import REFERENCES, Reference, TrainingSignals

SETTINGS = ("sbm-c1", "sbm-c4", "sbm-c16", "molene", "metr-la")
BUDGETS = (4, 8, 16, 64)
SIGNALS = 2500
SAMPLERS = ("Euler-Maruyama", "Euler-Maruyama, graph", "Heun", "Heun, graph")
ROWS = {"wsd-graph": "fitted", "wsd-scalar": "scalar"}  # and their terminal reference


@dataclass
class Problem:
    """A setting: its process at one kappa, its reference's variances a mode, and the law whose score is taken."""

    process: ConjugateProcess
    v: Tensor  # (modes,)
    law: Reference

    def score(self, x: Tensor, q: float, K: Tensor) -> Tensor:  # (n, nodes)
        """Of ``sum_k w_k N(m_k, C_k + q^2 K)``."""
        logs, scores = [], []
        for weight, mean, part in zip(self.law.weights, self.law.means, self.law.parts, strict=True):
            L = torch.linalg.cholesky(part.covariance() + q**2 * K)
            gap = (x - mean).T
            solved = torch.cholesky_solve(gap, L)
            logs.append(weight.log() - (gap * solved).sum(0) / 2 - L.diagonal().log().sum())
            scores.append(-solved.T)
        share = torch.stack(logs).softmax(0)
        return sum(share[k, :, None] * score for k, score in enumerate(scores))

    def of_modes(self, values: Tensor) -> Tensor:  # (modes,) -> (nodes, nodes)
        return (self.process.U * values) @ self.process.U.T

    def sampled(self, n: int, nfe: int, sampler: str, coloured: bool, terminal: str, seed: int) -> Tensor:
        """Signals (n, nodes), z-scored."""
        p, heun, graph = self.process, sampler.startswith("Heun"), sampler.endswith("graph")
        noise = self.v if coloured else torch.ones_like(self.v)
        v = self.v if terminal == "fitted" else self.v.mean().expand_as(self.v)
        K, root, d = self.of_modes(noise), self.of_modes(noise.sqrt()), len(self.v)
        levels = np.linspace(p.q_max, p.q_min, (nfe // 2 if heun else nfe) + 1).tolist()
        x = Stream(seed, "terminal", "cpu").normal(0, n * d).view(n, d) @ self.of_modes(
            (v + levels[0] ** 2 * noise).sqrt()
        )
        x = p.to_graph(x, levels[0]) if graph else x

        def slope(x: Tensor, q: float, share: float) -> Tensor:  # dx / dq, with ``share`` 1 of the flow, 2 of the noisy
            if not graph:
                return -share * q * self.score(x, q, K) @ K
            t = q / p.kappa
            score = p.modes(self.score(p.to_conjugate(x, q), q, K) @ K) / p.a(q)
            return p.nodes(p.b(t) * p.modes(x) - share / 2 * p.g2(t) * score) / p.kappa

        for step, (q0, q1) in enumerate(pairwise(levels)):
            if heun:
                first = slope(x, q0, 1)
                x = x + (q1 - q0) / 2 * (first + slope(x + (q1 - q0) * first, q1, 1))
                continue
            fresh = Stream(seed, "steps", "cpu").normal(step, n * d).view(n, d) @ root
            if graph:
                size = p.nodes(p.modes(fresh) * (p.g2(q0 / p.kappa) * (q0 - q1) / p.kappa).sqrt())
            else:
                size = math.sqrt(2 * q0 * (q0 - q1)) * fresh
            x = x + (q1 - q0) * slope(x, q0, 2) + size
        return x if graph else p.to_graph(x, levels[-1])


def published() -> dict[tuple[str, str], list[float]]:
    """By setting and row, what the paper prints."""
    with resources.files("grcd.bench").joinpath("paper.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["suite"] == "main" and line["method"] in ROWS]
    table = {(line["setting"], line["method"], int(line["nfe"])): float(line["mean"]) for line in lines}
    return {(s, m): [table[s, m, nfe] for nfe in BUDGETS] for s, m in product(SETTINGS, ROWS)}


def measured(setting: str, samplers: list[str]) -> dict:
    """Every reading of one setting beside the paper."""
    data, paper = grcd.load_dataset(setting), published()
    train, val, test = (data.normalizer.apply(part) for part in (data.train, data.val, data.test))
    test, process = test[evenly(len(test), SIGNALS)], ConjugateProcess.on(data.graph.spectrum)
    signals = TrainingSignals.of(train, val, data.graph.spectrum, process.U, 1e-6, 0)
    law, readings = REFERENCES["mixture"].fit(signals), {}
    for kappa, coloured, sampler in product((2.0, 32.64), (False, True), samplers):
        problem = Problem(replace(process, kappa=kappa), signals.spectral.v, law)
        rows = {}
        for row, terminal in ROWS.items():
            if coloured and terminal == "scalar":
                continue  # a scalar variance colours nothing
            values = []
            for nfe in BUDGETS:
                x = problem.sampled(len(test), nfe, sampler, coloured, terminal, 0)
                values.append(round(float(ammd(x.numpy(), test, data.graph).ammd), 4))
            theirs = paper[setting, row]
            misfit = np.mean([abs(math.log(max(a, 1e-3) / b)) for a, b in zip(values, theirs, strict=True)])
            rows[row] = {"ammd": values, "paper": theirs, "misfit": round(float(misfit), 3)}
            print(
                setting,
                f"kappa {kappa:g}",
                sampler,
                "coloured" * coloured,
                row,
                values,
                rows[row]["misfit"],
                flush=True,
            )
        readings[f"kappa {kappa:g}, {sampler}{', coloured' if coloured else ''}"] = rows
    return {"components": len(law.weights), "readings": readings}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--settings", nargs="+", default=SETTINGS)
    options.add_argument("--samplers", nargs="+", default=SAMPLERS, choices=SAMPLERS)
    options.add_argument("--out", default="results/whitened.json", help="what it holds of other settings stays")
    args = options.parse_args()
    before = json.loads(Path(args.out).read_text()) if Path(args.out).exists() else {}
    results, about = before.get("settings", {}), provenance("cpu")
    about["command"] = "; ".join([*([before["command"]] if before else []), about["command"]])
    for setting in args.settings:
        results[setting] = measured(setting, args.samplers)
        write_json(args.out, {**about, "signals": SIGNALS, "settings": results})


if __name__ == "__main__":
    main()
