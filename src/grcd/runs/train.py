"""Training, kept in a run folder: begun there, interrupted anywhere, gone on with, and found finished the next time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.errors import InputError
from ..core.parallel import team
from ..core.rows import blocks, evenly
from ..data import marginals, outliers
from ..data.normalizer import Normalizer
from ..data.origin import Origin
from ..graphs.space import SignalSpace
from ..references.sparse_fit import refuse_dense
from ..tasks.moments import MOST, Plain
from ..training import fit
from ..training.config import Config
from ..training.loop import VALIDATION_MOST
from . import contents
from .contents import Trained
from .folder import Run, read
from .shared import Following, opened


def train(
    space: SignalSpace,
    config: Config,
    device: torch.device,
    x_train: np.ndarray,  # (samples, d), checked, NaN where missing
    x_val: np.ndarray,
    run: str | Path | None = None,
    force: bool = False,
    name: str = "signals",
    origin: Origin | None = None,
    *,
    readings: Sequence[str] = (),
    judge: Callable[[Trained], dict | None] = lambda trained: None,
) -> Trained:
    """Train on signals in their own units; with ``run`` in that folder, where the same call goes on.

    ``force`` begins anew; ``name`` and ``origin`` say in the folder where the signals came from, ``readings`` what
    kind of numbers they are and what was decided for them. ``judge`` says what filled hidden readings best (see
    ``evaluation/contest``), which is kept with the result.
    """
    if space.graph.large:
        refuse_dense(space.graph)
    if not fit.alone(space, config, device):
        fit.refuse_too_large(space, config, device, training=True)
    config.limits().refuse_outside(x_train)
    if origin is None:  # of signals from files it was said when they were read
        outliers.warn(space.graph.node_ids, training=x_train, validation=x_val)
    moments = Normalizer.fit(x_train, space.graph)
    normalizer = marginals.fitted(config.marginals, x_train, space.graph)
    used, missing = _observed(x_train, "training signals")
    facts = contents.described(space, config, {"train": x_train, "val": x_val}, moments.to_dict(), name)
    facts["data"] |= {"missing": missing, "dropped": len(x_train) - len(used), "made": (origin or Origin()).to_dict()}
    facts["data"]["readings"] = list(readings)
    with opened(run, facts, force) as folder:
        if folder is not None and folder.finished:
            manifest, tensors = team().from_first(lambda: read(folder.path))
            with contents.fitting(folder.path):
                return contents.restored(space, config, device, manifest, tensors)
        validating, _ = _observed(x_val, "validation signals")
        validating = validating[evenly(len(validating), VALIDATION_MOST)]
        z = normalizer.apply(x_train, used), normalizer.apply(x_val, validating)
        hooks = hooks_of(folder, facts)
        diffusion, result = fit.fit(space, config, device, *z, **hooks)
        plain = None if space.graph.large or space.d > MOST else Plain.of(x_train[used], device)
        trained = Trained(diffusion, normalizer, facts, result, plain)
        result |= {"contest": team().from_first(lambda: judge(trained))}
        if plain is not None:  # all was decided: validation signals may teach too
            trained = replace(trained, plain=Plain.of(np.concatenate([x_train[used], x_val[validating]]), device))
        if folder is not None:
            folder.finish(trained.tensors(), result)
        return trained


def hooks_of(folder: Run | Following | None, facts: dict) -> dict[str, Any]:
    """What training tells a run folder; ``facts`` remember what a budget of time decided."""

    def settle(decide: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        facts["settled"] = team().from_first(lambda: decide() if folder is None else folder.settle(decide))
        return facts["settled"]

    return {"settle": settle} | ({} if folder is None else {"log": folder.log, "resume": folder.resume})


def _observed(signals: np.ndarray, what: str) -> tuple[np.ndarray, float]:
    """The rows in which anything was observed, and the share of all entries that was not."""
    count = np.concatenate([np.isnan(signals[rows]).sum(axis=1) for rows in blocks(*signals.shape)])
    rows = np.flatnonzero(count < signals.shape[1])
    if len(rows) == 0:
        raise InputError(f"{what} in which nothing was observed", "some readings", "give other signals, or fill these")
    return rows, float(count.sum() / signals.size)
