"""How cells of windows are measured: pieces are answered some at a time, and their scores added up.

What was added up so far is kept beside the trained networks, so that a cell of many minutes goes on where it was when
the command is given again. Draws are cut off at the range of the training readings.

**Seconds** are those from readings with gaps to quantiles on the host, for all pieces; on a GPU after some pieces that
warm up, so that compiling is not in them. **Training** is what one training without a pause would have taken: updates
and validations, and before them the choice of a reference and the posteriors that are learned from.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.files import write_json
from ...data.series_dataset import SeriesDataset
from ...evaluation import competitors, foretelling, protocol
from ...evaluation.pieces import Pieces
from ...evaluation.tally import Tally
from ...model import GRCD, train
from ...tasks import windows as tasks
from ...training.conditional import Setting
from ...training.config import AUTO
from ...training.window_config import AS_THEY_ARE
from .cells import REFERENCES, Windowed
from .settings import TABLES, VARIANTS, load

DRAWS = {"imputation": 100, "forecast": 40}  # METR-LA has 24 times as many windows to foretell as to fill
NUMBERS = {"cpu": 1 << 22, "cuda": 1 << 26}  # that are drawn at a time
SEEDS = 100_003  # apart are those of two networks' pieces
OF_NETWORKS = frozenset(entry.name for entry in fields(Setting))
MARGINALS = {"metr-la": "z-score"}  # speeds as they are; on what scale other readings are taken, held-out ones say
PAUSE = 20.0  # seconds between two writings of what was added up

Answer = Callable[[Pieces, np.ndarray], Tensor]  # pieces, some of them -> (n, some, length, nodes, channels)


class Network:
    """A trained model of windows, and where its cells keep what is not finished."""

    def __init__(self, model: GRCD, data: SeriesDataset, folder: Path | None):
        self.model, self.folder, self.seed = model, folder, model.config.seed
        self.warm = set[tuple[int, int, int | None]]()  # for what sizes of pieces kernels have been compiled
        values = data.part("train").values
        self.bounds = np.nanmin(values, axis=(0, 1)), np.nanmax(values, axis=(0, 1))  # of a channel

    def answer(self, nfe: int | None, draws: int) -> Answer:
        """By draws with so many evaluations; None: of the reference alone."""
        window, device = self.model.series.model, self.model.device
        law = self.model.series.law if nfe is not None else self.model.series.law.alone
        low, high = (torch.from_numpy(bound).to(device) for bound in self.bounds)
        scales = self.model.series.trained.scales

        def answer(pieces: Pieces, some: np.ndarray) -> Tensor:
            seen = pieces.seen(some)  # (some, length, nodes, channels)
            values = torch.from_numpy(scales.forward(seen.reshape(*seen.shape[:2], -1))).to(device)
            rows, times = pieces.rows[some], pieces.series.times
            about = window.about(None if times is None else times[rows.ravel()], rows.size)
            mean, spread, days = (part.unflatten(0, rows.shape) for part in about)
            z = ((values - mean) / spread).float()
            if pieces.length == law.space.steps:
                drawn = tasks.apart(law, z, days, draws, nfe or 1, self.seed, int(some[0])).transpose(0, 1)
            else:
                seeds = (self.seed * SEEDS + number for number in some.tolist())
                drawn = torch.stack(
                    [_history(law, *one, draws, nfe or 1) for one in zip(z, days, seeds, strict=True)], dim=1
                )
            x = self._units(drawn * spread + mean).unflatten(-1, seen.shape[2:])
            return torch.minimum(torch.maximum(x, low), high)

        return answer

    def _units(self, y: Tensor) -> Tensor:  # (..., columns) twice
        """From the scale of the readings into their units; other scales than their own are known on the host only."""
        if self.model.config.marginals == "z-score":
            return y
        return torch.from_numpy(self.model.series.trained.scales.back(y.double().cpu().numpy())).to(y.device)


def _history(
    law: tasks.WindowLaw, z: Tensor, days: Tensor, seed: int, draws: int, nfe: int
) -> Tensor:  # (n, rows, columns)
    """A piece that is longer than a window: members go on from what they drew."""
    parts = tasks.fill(law, z, days, [slice(0, len(z))], draws, nfe, seed)
    return torch.cat([drawn for _, drawn in parts], dim=1)


def dataset(group: list[Windowed]) -> SeriesDataset:
    """What the cells of a group are about."""
    return load(group[0].about.table, VARIANTS[group[0].variant])


def fitted(group: list[Windowed], data: SeriesDataset, runs: Path, device: str, settings: dict) -> Any:
    """What the cells of a group share: a trained network, or a competitor."""
    cell = group[0]
    if cell.trained:
        name = "-".join(map(str, (cell.about.table, TABLES[cell.about.table], cell.method, f"s{cell.seed}")))
        length, calendar = TABLES[cell.about.table], VARIANTS[cell.variant].calendar
        own = {"window": length, "calendar": calendar, "marginals": MARGINALS.get(cell.about.table, AUTO)}
        chosen: dict[str, Any] = AS_THEY_ARE | own | asked_for(cell, settings)
        model = GRCD(data.graph, "grcd", cell.seed, device, channels=len(data.channels), **chosen)
        return Network(train(model, data, runs / name, contest=False), data, runs / "partial")
    rows = data.part("train"), data.part("val")
    module = competitors if cell.suite == "imputation" else foretelling
    return _simple(module.fitted(cell.method, *rows))


def asked_for(cell: Windowed, settings: dict) -> dict[str, Any]:
    """What of the settings for all networks a cell's run is made with: of a network's own its reference has none."""
    if cell.method not in REFERENCES:
        return settings
    return {key: value for key, value in settings.items() if key not in OF_NETWORKS} | {"max_updates": 0}


def _simple(guess: Any) -> Answer:
    """A competitor as an answer: one draw. All pieces are answered at once, and some of them taken from that."""
    last: list[tuple[Pieces, np.ndarray]] = []

    def answer(pieces: Pieces, some: np.ndarray) -> Tensor:
        if not last or last[0][0] is not pieces:
            ends = pieces.rows[:, -pieces.future]
            whole = guess(pieces.series, ends, pieces.future) if pieces.future else guess(pieces.holed)
            last[:] = [(pieces, whole)]
        points = last[0][1]
        if not pieces.future:
            return torch.from_numpy(points[pieces.rows[some]])[None]
        return torch.from_numpy(np.concatenate([pieces.seen(some)[:, : -pieces.future], points[some]], axis=1))[None]

    return answer


def measurement(cell: Windowed, fitted: Any, data: SeriesDataset) -> dict[str, Any]:
    """What the file of a cell is to hold."""
    pieces, network = cell.about.pieces(data), fitted if isinstance(fitted, Network) else None
    count = 1 if network is None else DRAWS[cell.suite]
    answer = fitted if network is None else network.answer(cell.nfe, count)
    device = "cpu" if network is None else network.model.device.type
    partial = Partial(cell, network)
    tally = partial.read() or Tally.of(pieces, cell.about.steps)
    size = max(1, NUMBERS[device] // (count * pieces.series.values[0].size * pieces.length))
    shape = min(size, len(pieces)), pieces.length, cell.nfe
    if network is not None and device == "cuda" and shape not in network.warm:
        answer(pieces, np.arange(shape[0]))
        network.warm.add(shape)
    for some in _chunks(tally.done, len(pieces), size):
        began, where = time.perf_counter(), torch.from_numpy(pieces.scored(some))
        draws = answer(pieces, some)
        chosen = draws[:, where.to(draws.device)]
        quantiles = protocol.draw_quantiles(chosen).cpu()
        tally.seconds += time.perf_counter() - began
        if not bool(quantiles.isfinite().all()):
            raise ArithmeticError("filled readings that are not finite")
        tally.add(pieces, some, quantiles.to(draws.device), draws)
        partial.write(tally)
    partial.remove()
    scores = {"" if step == 0 else str(step): tally.scores(step) for step in tally.steps}
    windows: dict[str, Any] = {
        "scores": _finite(scores),
        "pieces": len(pieces),
        "draws": count,
    }
    windows |= {"seconds": round(tally.seconds, 3), "days": tally.by_day()}
    if network is None:
        return {"windows": windows}
    result = network.model.result
    minutes = (result["seconds"] + result.get("preparation", 0.0)) / 60
    windows |= {"train_minutes": round(minutes, 2)}
    return {"windows": windows, "training": result, "config": network.model.config.to_dict()}


def _chunks(done: int, count: int, size: int) -> Iterator[np.ndarray]:
    yield from (np.arange(first, min(first + size, count)) for first in range(done, count, size))


def _finite(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float | None]]:
    """JSON has no NaN."""
    return {
        step: {name: value if np.isfinite(value) else None for name, value in each.items()}
        for step, each in scores.items()
    }


class Partial:
    """What was added up of a cell that is not finished; of competitors, which are quick, nothing is kept."""

    def __init__(self, cell: Windowed, network: Network | None):
        self.path, self.written = None, time.monotonic()
        if network is not None and network.folder is not None:
            name = "-".join([cell.suite, cell.setting, cell.path(Path()).stem])
            self.path = network.folder / f"{name}.json"
            self.whose = {"cell": cell.record(), "result": json.dumps(network.model.result, sort_keys=True)}

    def read(self) -> Tally | None:
        """What there is, if it is of the same network."""
        try:
            content = json.loads(self.path.read_text()) if self.path is not None else {}
            return Tally.from_dict(content["tally"]) if content.get("whose") == self.whose else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, tally: Tally) -> None:
        """Now and then."""
        if self.path is not None and time.monotonic() - self.written > PAUSE:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, {"whose": self.whose, "tally": tally.to_dict()})
            self.written = time.monotonic()

    def remove(self) -> None:
        """The cell is about to be written."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
