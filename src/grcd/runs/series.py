"""Training on a series, kept in a run folder: as ``train`` does for signals, and what the folder holds then."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..core.errors import InputError, InputWarning, some
from ..core.parallel import team
from ..data.covariates import Covariates
from ..data.normalizer import Normalizer
from ..data.origin import Origin
from ..data.scales import Scales
from ..data.series import Series
from ..data.timeline import Timeline
from ..diffusion.conditional import Conditional
from ..graphs.space import SignalSpace
from ..references import of_windows
from ..references.sparse_fit import refuse_dense
from ..tasks.guided import Guided
from ..tasks.moments import Plain
from ..training import conditional, windows
from ..training.config import Config
from ..training.mean import Mean
from ..training.sparse_references import refuse_rows
from ..training.window_config import WindowConfig
from ..training.window_references import refuse_window
from ..training.windows import WindowModel
from . import contents
from .folder import read
from .shared import opened
from .train import hooks_of


@dataclass(frozen=True)
class TrainedSeries:
    """A trained model of windows, what its run folder says of it, and how training went."""

    model: WindowModel  # of readings on their scales
    scales: Scales
    facts: dict
    result: dict
    plain: Plain | None = None  # rows as they stand; None where there is no law of single rows

    def tensors(self) -> dict[str, Tensor]:
        """All its numbers by name: graph, network if it is used, reference, mean, and where there are any the
        covariance of a row and scales."""
        law, mean = self.model.law, self.model.mean
        network = law.network if isinstance(law, Conditional) else law.diffusion.network
        parts = {
            "graph": contents.of_graph(law.space.graph),
            "network": {} if network is None else network.state_dict(),
            "reference": law.reference.tensors(),
            "mean": mean.tensors(),
            "row": {} if self.model.C0 is None else {"C0": self.model.C0},
            "plain": {} if self.plain is None else self.plain.tensors(),
            "scale": {key: torch.from_numpy(array) for key, array in self.scales.arrays().items()},
        }
        return contents.named(parts)


@dataclass(frozen=True)
class Variables:
    """What is read at the nodes: channels by name, and their units; "" where they have none."""

    channels: tuple[str, ...] = ("",)
    units: tuple[str, ...] = ("",)


def train(
    space: SignalSpace,
    config: Config | WindowConfig,
    device: torch.device,
    series: dict[str, Series],  # train and val, in their own units
    variables: Variables,
    run: str | Path | None = None,
    force: bool = False,
    name: str = "series",
    origin: Origin | None = None,
    covariates: Covariates | None = None,
    *,
    readings: Sequence[str] = (),
    judge: Callable[[TrainedSeries], dict | None] | None = None,
) -> TrainedSeries:
    """Train on rows in time; with ``run`` in that folder, where the same call goes on.

    ``judge`` says what filled hidden readings best (see ``evaluation/contest``), which is kept with the result; after
    that all is decided, and validation rows teach too what no network is bound to. Without it they never do.
    """
    flat = {split: part.values.reshape(len(part), -1) for split, part in series.items()}
    config.limits(space.channels).refuse_outside(flat["train"])
    Timeline.of(series["train"]).refuse_other(series["val"], "validation rows")
    for which, split in (("training", "train"), ("validation", "val")):
        series[split].refuse_short(space.steps, which)
    if space.graph.large or (isinstance(config, WindowConfig) and config.sparse):
        refuse_dense(space.graph)
        refuse_rows(space, sum(len(part) for part in series.values()))
    else:
        refuse_window(space, device)
    moments = _moments(flat["train"], space)
    beside = {} if covariates is None else {"covariates": covariates.values}
    facts = contents.described(space, config, flat | beside, moments.to_dict(), name)
    facts["data"] |= {
        "missing": float(np.isnan(flat["train"]).mean()),
        "made": (origin or Origin()).to_dict(),
        "channels": list(variables.channels),
        "units": list(variables.units),
        "readings": list(readings),
        "timeline": Timeline.of(series["train"]).to_dict(),
        "lacking": np.flatnonzero(np.isnan(flat["train"]).all(axis=0)).tolist(),
    }
    with opened(run, facts, force) as folder:
        if folder is not None and folder.finished:
            manifest, tensors = team().from_first(lambda: read(folder.path))
            with contents.fitting(folder.path):
                return restored(space, config, device, manifest, tensors)
        hooks = hooks_of(folder, facts)
        scales = Scales.of(_scales(config, space), flat["train"])
        learn, held = (
            replace(series[split], values=scales.forward(flat[split]).reshape(series[split].values.shape))
            for split in ("train", "val")
        )
        model, result = windows.fit(space, learn, held, config, device, covariates=covariates, **hooks)
        trained = TrainedSeries(model, scales, facts, result, plain_rows(model, flat["train"]))
        if judge is not None:
            result |= {"contest": team().from_first(lambda: judge(trained))}
            again = windows.rows_again(model, (learn, held), covariates)
            if windows.may_fit_again(model, result):
                every = [*learn.stretches, *(slice(s.start + len(learn), s.stop + len(learn)) for s in held.stretches)]
                again = windows.fit_again(model, result, learn, held, every, covariates)
                result |= {"fitted_again": sum(map(len, (learn, held)))}
            plain = plain_rows(again, np.concatenate([flat["train"], flat["val"]]))
            trained = replace(trained, model=again, plain=plain)
        result |= {"mean": trained.model.mean.to_dict()}
        if folder is not None:
            folder.finish(trained.tensors(), result)
        return trained


def restored(
    space: SignalSpace,
    config: Config | WindowConfig,
    device: torch.device,
    manifest: dict,
    tensors: dict[str, Tensor],
) -> TrainedSeries:
    """What was saved, if it is all of one size."""
    result, config = manifest["result"], contents.settled(config, manifest)
    numbers = contents.part({key: value.to(device) for key, value in tensors.items()}, "mean")
    mean = Mean.from_parts(result["mean"], numbers)
    law: Conditional | Guided
    if isinstance(config, WindowConfig):
        numbers = contents.part({key: value.to(device) for key, value in tensors.items()}, "reference")
        reference = of_windows(numbers, space)
        if reference.d != space.d:
            raise ValueError("reference and windows have different sizes")
        network = None
        if result["network"]:
            network = conditional.fresh_network(space, mean.told, config)
            network.load_state_dict(contents.part(tensors, "network"))
            network = network.to(device).eval().requires_grad_(False)
        law = Conditional(space, reference, network)
    else:
        law = Guided(contents.restored_diffusion(space, config, device, manifest, tensors))
    if len(mean.table.mean) * space.steps != space.d:
        raise ValueError("mean and windows have different sizes")
    scales = Scales.saved(_scales(config, space), contents.arrays(tensors, "scale"))
    C0, columns = contents.part(tensors, "row").get("C0"), space.d // space.steps
    if C0 is not None and C0.shape != (columns, columns):
        raise ValueError("the covariance of a row and windows have different sizes")
    model = WindowModel(law, mean, None if C0 is None else C0.to(device))
    return TrainedSeries(model, scales, manifest, result, contents.plain_of(tensors, columns, device))


def plain_rows(model: WindowModel, x: np.ndarray) -> Plain | None:
    """Rows (rows, columns) as they stand, where a model has a law of single rows."""
    return None if model.C0 is None else Plain.of(x, model.C0.device)


def _scales(config: Config | WindowConfig, space: SignalSpace) -> list[str]:
    """One a channel."""
    names = config.marginals.split(",")
    return [names[k % len(names)] for k in range(space.channels)]


def _moments(x: np.ndarray, space: SignalSpace) -> Normalizer:
    """Mean and spread of columns; 0 and 1 of those that have no readings, or always the same."""
    seen = ~np.isnan(x)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, x, 0.0).sum(axis=0) / count
    std = np.sqrt(np.square(np.where(seen, x - mean, 0.0)).sum(axis=0) / count)
    if not np.isfinite(std).all():
        raise InputError("readings too large to average", "values below about 1e150", "rescale them")
    still = seen.any(axis=0) & (std == 0)
    if still.any():
        nodes = [space.graph.node_ids[i] for i in np.unique(np.flatnonzero(still) // space.channels)]
        warnings.warn(
            f"training readings never change at {some(nodes)}: neither will what is drawn", InputWarning, stacklevel=4
        )
    return Normalizer(mean, np.where(std > 0, std, 1.0))
