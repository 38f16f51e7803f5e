"""How far from what a machine allows: METR-LA's test set filled, an update of its network, a thousand moments.

    python benchmarks/limit.py --out results/limit-cpu.json
    python benchmarks/limit.py --device cuda --counts only --out results/limit-gpu.json     on any machine, minutes
    python benchmarks/limit.py --device cuda --counts kept --out results/limit-gpu.json     then on one with a GPU

    fill      the public point mask: 343 windows, 100 draws, 4 evaluations, from NaN to quantiles on the host, as cells
              of ``imputation`` have it. With ``--windows`` of some windows, and as much more for all; on a CPU of two
    update    of the space-time network with the settings of the device
    moments   1,000 signals of the default ``grcd`` at 1 and 4 evaluations; the network alone beside, and the mixture:
              between two evaluations of the network signals are carried along its flow by a Runge-Kutta scheme of
              fourth order, sixteen steps in all however many evaluations there are, which is 64 scores of the mixture
              in float64

Weights are random (speed does not depend on them), references are fitted. **Operations** are those of products, and
**bytes** what PyTorch's operations read and write when each is run by itself; both are counted on a CPU, of one window
and one or two draws, and multiplied: what a draw needs, and what a window needs once. They need no GPU, and may be
counted beforehand. The **bound** is the longer of
operations at the rate of a large product and bytes at the rate of a large copy, both measured beside. Kernels that do
several operations in one pass move fewer bytes, so what is measured may be below the bound in bytes. The profile says
which operations took the longest.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from provenance import provenance
from speed import ceilings, timed
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from grcd.bench.windows import measuring
from grcd.bench.windows.cells import Windowed
from grcd.core import device as devices
from grcd.core.files import write_json
from grcd.data import load_dataset
from grcd.diffusion.conditional import Conditional
from grcd.diffusion.diffusion import Diffusion
from grcd.evaluation import protocol
from grcd.model import GRCD
from grcd.runs.contents import Trained
from grcd.tasks import windows as tasks
from grcd.tasks.sample import PRECISIONS, network_alone
from grcd.training import conditional, fit
from grcd.training.pool import Fold, Pool
from grcd.training.window_config import AS_THEY_ARE, WindowConfig

SETTING, NFE, SIGNALS = "metr-la-point", 4, 1000
DRAWS = measuring.DRAWS["imputation"]
LONGEST = 16  # operations of a profile that are told
NUMBERS = 1 << 26  # that windows on a GPU are drawn at a time
ATTENTION = {  # of a CPU, which PyTorch does not count by itself
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda out, q, k, v, *_, **__: (
        sdpa_backward_flop_count(out, q, k, v)
    ),
}


class Traffic(TorchDispatchMode):
    """Bytes that operations read and write, each by itself; one that only looks at a tensor in another way has none."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            tensors = [leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, Tensor)]
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return out


def counted(work: Callable[[], object]) -> np.ndarray:  # operations and bytes
    """What work needs, run by itself on a CPU."""
    with FlopCounterMode(display=False, custom_mapping=ATTENTION) as operations, Traffic() as traffic:
        work()
    return np.array([float(operations.get_total_flops()), float(traffic.bytes)])


def longest(work: Callable[[], object], device: str) -> list[dict[str, Any]]:
    """The operations that took the longest, and their share of all."""
    on_gpu = device.startswith("cuda")
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=kinds) as record:
        work()
        devices.wait(torch.device(device))
    key = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    events = sorted(record.key_averages(), key=lambda event: -getattr(event, key))
    total = sum(getattr(event, key) for event in events) or 1.0
    return [
        {"operation": event.key[:80], "share": round(getattr(event, key) / total, 3), "calls": event.count}
        for event in events[:LONGEST]
    ]


# -- windows -----------------------------------------------------------------------------------------------------------


class Windows:
    """METR-LA's windows: its reference, fitted, and a network with random weights, of the size that is trained here."""

    def __init__(self, runs: Path, device: str, meant: str):
        """``meant``: the device whose network it is."""
        cell = Windowed(SETTING, "reference", 0, suite="imputation")
        self.data, self.device = measuring.dataset([cell]), device
        self.network: measuring.Network = measuring.fitted([cell], self.data, runs, device, {})
        self.pieces = cell.about.pieces(self.data)
        trained = self.network.model._trained
        self.space, self.window = trained.model.law.space, trained.model
        self.config = WindowConfig.on(torch.device(meant), window=self.space.steps)
        fresh = conditional.fresh_network(self.space, self.features(), self.config).to(device)
        with torch.no_grad():  # an output layer at zero would be skipped
            for parameter in fresh.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
        self.law = replace(trained.model.law, network=fresh.eval())
        self.network.model._trained = replace(trained, model=replace(trained.model, law=self.law))

    def features(self) -> int:
        """Numbers that the network is told of a row."""
        return self.window.about(self.data.series.times[:1], 1)[2].shape[1]

    def asked(self, some: np.ndarray, device: str = "cpu") -> tuple[Tensor, Tensor]:  # (some, length, ...) twice
        """z-scores with gaps, and what the network is told."""
        rows = self.pieces.rows[some]
        about = self.window.about(self.pieces.series.times[rows.ravel()], rows.size)
        mean, spread, days = (part.unflatten(0, rows.shape).to(device) for part in about)
        values = torch.from_numpy(self.pieces.seen(some)).to(device).flatten(2)
        return ((values - mean) / spread).float(), days

    def fill(self, windows: int, repeats: int) -> dict[str, Any]:
        """Seconds for all windows, from those of some."""
        some, size = np.arange(windows), self.space.d * DRAWS
        chunks = np.array_split(some, max(1, -(-windows * size // NUMBERS)))
        answer = self.network.answer(NFE, DRAWS)

        def work() -> None:
            for chunk in chunks:
                drawn = answer(self.pieces, chunk)
                where = torch.from_numpy(self.pieces.scored(chunk)).to(drawn.device)
                protocol.draw_quantiles(drawn[:, where]).cpu()

        seconds = timed(work, repeats, self.device) * len(self.pieces) / windows
        return {
            "seconds": seconds,
            "windows": windows,
            "pieces": len(self.pieces),
            "longest": longest(work, self.device),
        }

    def fill_needs(self) -> dict[str, float]:
        """Of all windows, from one of them with one draw and with two."""
        one, two = (self._needs(n) for n in (1, 2))
        return needs(len(self.pieces) * (one + (DRAWS - 1) * (two - one)))

    def _needs(self, draws: int) -> np.ndarray:
        """Of one window, on a CPU."""
        law = Conditional(self.space, self.law.reference.to("cpu"), copy.deepcopy(self.law.network).cpu())
        z, days = self.asked(np.arange(1))
        return counted(lambda: tasks.apart(law, z, days, draws, NFE, 0, 0))

    def update(self, repeats: int) -> dict[str, Any]:
        """Milliseconds of one, drawn pairs and noise included."""
        pool = self._pool(self.config.batch, self.device)
        fresh = conditional.fresh_network(self.space, self.features(), self.config).to(self.device)
        update = conditional.Update(conditional.State(fresh, self.config, 1.0), pool, self.config, self.space.steps)
        seconds = timed(update, repeats, self.device)
        return {"ms": 1e3 * seconds, "longest": longest(update, self.device)}

    def update_needs(self) -> dict[str, float]:
        """From one window; what the optimizer does is done once."""
        few = replace(self.config, batch=1)
        network = conditional.fresh_network(self.space, self.features(), few)
        single = conditional.Update(conditional.State(network, few, 1.0), self._pool(1, "cpu"), few, self.space.steps)
        both = counted(lambda: single.forward().backward())
        rest = counted(single._step) - both
        return needs(self.config.batch * both + rest)

    def _pool(self, pairs: int, device: str) -> Pool:
        rows = self.data.part("train")
        mean, spread, days = (part.to(device) for part in self.window.about(rows.times, len(rows)))
        z = ((torch.from_numpy(rows.values).to(device).flatten(1) - mean) / spread).float()
        starts = torch.from_numpy(rows.starts(self.space.steps)).to(device)
        fold = Fold(z, days, starts, self.law.reference.to(device), spread.float())
        return Pool.drawn(self.space, [fold], pairs, 0, "training")


# -- moments -----------------------------------------------------------------------------------------------------------


def moments(device: str, repeats: int) -> dict[str, Any]:
    """Milliseconds for a thousand signals, all of it and the network alone, by evaluations and precision."""
    model, result = fresh_model(device), dict[str, Any]()
    for nfe in (1, NFE):
        alone = 1e3 * timed(network_alone(model.diffusion, SIGNALS, nfe), repeats, device)
        scores = scored(model, nfe)
        mixture = 1e3 * timed(mixture_alone(model.diffusion, scores), repeats, device)
        for how, work in samplings(model, nfe):
            milliseconds = 1e3 * timed(work, repeats, device)
            result[how] = {"ms": milliseconds, "network alone, float32, ms": alone, "longest": longest(work, device)}
            result[how] |= {"scores of the mixture": scores, "mixture alone, float64, ms": mixture}
    return result


def scored(model: GRCD, nfe: int) -> int:
    """How often the score of the reference is asked for, of a batch."""
    reference = model.diffusion.reference
    with mock.patch.object(type(reference), "scored", autospec=True, side_effect=type(reference).scored) as asked:
        model.sample(min(SIGNALS, model.diffusion.batch), nfe)
    return int(asked.call_count)


def mixture_alone(diffusion: Diffusion, scores: int) -> Callable[[], object]:
    """So many scores of a thousand signals and nothing else; captured on a GPU, as sampling is."""
    x = torch.zeros(SIGNALS, diffusion.space.d, dtype=torch.float64, device=diffusion.device)

    def work() -> None:
        for part in x.split(diffusion.batch):
            for _ in range(scores):
                diffusion.reference.score(part, 0.5)

    with devices.arithmetic(), torch.inference_mode():
        replay = devices.captured(work) if diffusion.device.type == "cuda" else work

    def timed() -> None:
        with devices.arithmetic(), torch.inference_mode():
            replay()

    return timed


def moments_needs() -> dict[str, Any]:
    model = fresh_model("cpu")
    return {how: needs(counted(work)) for nfe in (1, NFE) for how, work in samplings(model, nfe)}


def samplings(model: GRCD, nfe: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """By precision."""
    for precision in PRECISIONS:
        yield f"NFE {nfe}, {precision}", partial(model.sample, SIGNALS, nfe, precision=precision)


def fresh_model(device: str) -> GRCD:
    """The default model with its reference, and random weights."""
    data = load_dataset("metr-la")
    model = GRCD(data.graph, "grcd", 0, device, **AS_THEY_ARE)
    z = [data.normalizer.apply(part) for part in (data.train, data.val)]
    alone = fit.reference_alone(model.space, model.config, model.device, *z)
    network = fit.fresh_network(model.space, model.config, model.device)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    bound = fit.bound(model.space, model.config, alone.process, alone.reference, network.eval(), {})
    model._trained = Trained(bound, data.normalizer, {"data": {}}, {})
    return model


def needs(counts: np.ndarray) -> dict[str, float]:
    return {"gflop": counts[0] / 1e9, "gbyte": counts[1] / 1e9}


def measured(args: argparse.Namespace, part: str, windows: Windows | None) -> dict[str, Any]:
    """A part, timed and counted as asked; of several rows, of each of them."""
    timing, counting = args.counts != "only", args.counts != "kept"
    if windows is None:
        times = moments(args.device, args.repeats) if timing else {}
        counts = moments_needs() if counting else {}
        return {how: times.get(how, {}) | counts.get(how, {}) for how in {**times, **counts}}
    if part == "update":
        return (windows.update(args.repeats) if timing else {}) | (windows.update_needs() if counting else {})
    count = args.windows or (2 if args.device == "cpu" else len(windows.pieces))
    return (windows.fill(count, args.repeats) if timing else {}) | (windows.fill_needs() if counting else {})


def merged(before: dict[str, Any], found: dict[str, Any], rates: dict[str, float]) -> dict[str, Any]:
    """A part with what was known of it, and its bounds."""
    if any(isinstance(value, dict) for key, value in found.items() if key != "bound_s"):
        return {how: merged(before.get(how, {}), each, rates) for how, each in found.items()}
    whole = before | found
    if "gflop" in whole and rates:
        times = whole["gflop"] / rates["product_gflops"], whole["gbyte"] / rates["copy_gbyte_s"]
        whole["bound_s"] = {"operations": times[0], "bytes": times[1]}
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parts", default="moments,update,fill", help="which; what the file has of others stays")
    parser.add_argument("--counts", choices=["taken", "only", "kept"], default="taken", help="of operations and bytes")
    parser.add_argument("--windows", type=int, help="that are filled: by default two on a CPU, elsewhere all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("runs/bench"), help="where the reference is kept")
    parser.add_argument("--out", type=Path, default=Path("results/limit-cpu.json"))
    args = parser.parse_args()
    content: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    if args.counts != "only":
        with devices.arithmetic("high"):
            content |= provenance(args.device) | {"rates": ceilings(args.device)}
    parts = args.parts.split(",")
    device = "cpu" if args.counts == "only" else args.device
    windows = Windows(args.runs, device, args.device) if {"update", "fill"} & {*parts} else None
    for part in parts:
        found = measured(args, part, None if part == "moments" else windows)
        content[part] = merged(content.get(part, {}), found, content.get("rates", {}))
        write_json(args.out, content)
        print(part, json.dumps(content[part], indent=1), flush=True)


if __name__ == "__main__":
    main()
