"""Speed, side by side in one run with a plain implementation of the same network, at METR-LA's size.

The plain network forms the five powers of every filter by dense N x N products with S, block by block; all else
(protocol, solver) is shared. Sampling is timed in batches that fit the cache, as the model does it, and with all
signals at once, as one would write it. Weights are random: speed does not depend on them. The counts beside the times
are what an update or a sampling run must do at least: the products of filters and mixes, and one read and one write of
every activation that a layer cannot keep in registers.

    python benchmarks/speed.py --out results/speed-cpu.json
    python benchmarks/speed.py --device cuda --out results/speed-gpu.json
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from provenance import provenance

from grcd.core import device as devices
from grcd.core.files import write_json
from grcd.core.streams import Stream
from grcd.data.normalizer import Normalizer
from grcd.evaluation.ammd import ammd
from grcd.graphs.graph import Graph
from grcd.model import GRCD
from grcd.networks.gnn import DenoiserGNN
from grcd.references.gaussian import gmrf
from grcd.runs.contents import Trained
from grcd.tasks.sample import PRECISIONS
from grcd.training import fit
from grcd.training.loop import State, Update, draws

NODES, NEIGHBOURS, BATCH, SAMPLES, NFE = 207, 8, 256, 1000, 4
STEPS = 5  # updates timed together: draws are made ahead of them, as in training


class PlainDenoiserGNN(DenoiserGNN):
    """The same function with the same weights, the obvious way."""

    def __init__(self, spectrum, setting):
        super().__init__(spectrum, setting)
        S = torch.from_numpy((spectrum.U * spectrum.scaled()) @ spectrum.U.T).float()
        self.register_buffer("S", S, persistent=False)

    def forward(self, x, t):
        x = x.float()
        embedding = self.embed(t).expand(len(x), -1)[:, None, :].expand(-1, x.shape[1], -1)
        h = self.input(torch.cat([x[..., None], embedding], dim=-1).to(self.input.weight.dtype))
        for block in self.blocks:
            power, filtered = h, block.h[0] * h
            for tap in block.h[1:]:
                power = self.S @ power
                filtered = filtered + tap * power
            h = block.norm(F.silu(block.mix(filtered)))
        return self.output(h)[..., 0].float() + x


def sensor_graph() -> Graph:
    """A nearest-neighbour graph with about as many edges as METR-LA's."""
    place = Stream(0, "places").uniform(0, NODES * 2).view(NODES, 2).numpy()
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    near = distance <= np.sort(distance, axis=1)[:, [NEIGHBOURS]]
    return Graph.from_adjacency(np.where(near, np.exp(-(distance**2) / 0.01), 0.0), symmetrize="max")


def ready_model(network_class: type, device: str) -> GRCD:
    """A model that samples, with random weights."""
    model = GRCD(sensor_graph(), device=device)
    reference = gmrf(model.graph.spectrum).to(model.device)
    torch.manual_seed(0)
    network = network_class(model.graph.spectrum, model.config.network).to(model.device)
    process = fit.process_of(model.space, model.config, model.device)
    diffusion = fit.bound(model.space, model.config, process, reference, network, {})
    model._trained = Trained(diffusion, Normalizer(np.zeros(NODES), np.ones(NODES)), {"data": {}}, {})
    return model


def timed(call: Callable[[], object], repeats: int, device: str) -> float:
    """Median seconds of a call, after three to warm up."""
    times = []
    for k in range(repeats + 3):
        began = time.perf_counter()
        call()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        if k >= 3:
            times.append(time.perf_counter() - began)
    return float(np.median(times))


def measure(network_class: type, device: str, repeats: int) -> dict[str, float]:
    """Milliseconds of an update (draws included) and of a sampling run (from the seed to signals on the host)."""
    model = ready_model(network_class, device)
    signals = Stream(0, "signals", model.device).normal(0, 20_000 * NODES).view(-1, NODES)
    update = Update(State(model.network, model.config, 0.0), model.diffusion.parameterisation, signals, model.config)
    drawn = draws(model.config, *signals.shape, 0, model.device)
    step = timed(lambda: [update(*next(drawn)) for _ in range(STEPS)], repeats, device) / STEPS
    model.network.requires_grad_(False)
    times = {"step_ms": 1e3 * step}
    for precision in PRECISIONS:
        for name, batch in (("", None), ("_at_once", SAMPLES)):  # batches that fit the cache, or all signals together
            run = partial(model.sample, SAMPLES, NFE, batch=batch, precision=precision)
            times[f"sample_{precision}{name}_ms"] = 1e3 * timed(run, repeats, device)
    return times


def counts(width: int = 128, blocks: int = 3, taps: int = 5) -> dict[str, dict[str, float]]:
    """Operations (1e9) and bytes (1e9) of an update and of a sampling run, ours and plain."""
    needs = {}
    for name, filters in (("ours", 2 * blocks - 1), ("plain", taps * blocks)):
        per_entry = 2 * NODES * filters + 2 * width * blocks  # operations per activation entry, forward
        forward = {"update": BATCH * NODES * width, "sample": NFE * SAMPLES * NODES * width}
        # Forward, a block reads and writes its activations for: filter product(s), response, mix, SiLU, LayerNorm.
        passes = filters + blocks * 4
        needs[name] = {
            "update_gflop": 3 * forward["update"] * 2 * width * blocks / 1e9
            + 2 * forward["update"] * 2 * NODES * filters / 1e9,
            "sample_gflop": forward["sample"] * per_entry / 1e9,
            "update_gbyte": 3 * passes * 8 * forward["update"] / 1e9,
            "sample_gbyte": passes * 8 * forward["sample"] / 1e9,
        }
    return needs


def ceilings(device: str) -> dict[str, float]:
    """What the machine can do: a large product in the network's arithmetic, and a large copy."""
    n = 4096 if device.startswith("cuda") else 2048
    a, b = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    big = torch.randn(1 << (28 if device.startswith("cuda") else 25), device=device)
    copy = torch.empty_like(big)
    return {
        "product_gflops": 2e-9 * n**3 / timed(lambda: a @ b, 10, device),
        "copy_gbyte_s": 8e-9 * big.numel() / timed(lambda: copy.copy_(big), 10, device),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=15)
    options.add_argument("--out", default="results/speed-cpu.json")
    args = options.parse_args()
    with devices.arithmetic("high"):
        ceiling = ceilings(args.device)
        times = {
            name: measure(network, args.device, args.repeats)
            for name, network in (("ours", DenoiserGNN), ("plain", PlainDenoiserGNN))
        }
    x, y = (Stream(0, name).normal(0, 5000 * NODES).view(-1, NODES).numpy() for name in "xy")
    graph = sensor_graph()
    times["ammd_5000_s"] = timed(lambda: ammd(x, y, graph, args.device), 3, args.device)
    ratios = {key: times["plain"][key] / times["ours"][key] for key in times["ours"]}
    result = {"times": times, "ratios": ratios, "ceilings": ceiling, "counts": counts(), "bound_ms": {}}
    for what in ("update", "sample"):
        need = result["counts"]["ours"]
        result["bound_ms"][what] = 1e3 * max(
            need[f"{what}_gflop"] / ceiling["product_gflops"], need[f"{what}_gbyte"] / ceiling["copy_gbyte_s"]
        )
    write_json(args.out, {**provenance(args.device), **result})
    for name, value in result.items():
        print(name, value)


if __name__ == "__main__":
    main()
